"""A length of time on the command line: `90s`, `20m`, `1h30m`."""

from __future__ import annotations

import re

import click

_PARTS = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s?)?")


class _Duration(click.ParamType[float]):
    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Seconds."""
        if isinstance(value, float):
            return value
        found = _PARTS.fullmatch(str(value).replace(" ", ""))
        hours, minutes, seconds = (float(part or 0) for part in (found.groups() if found else (0, 0, 0)))
        total = 3600 * hours + 60 * minutes + seconds
        if total <= 0:
            self.fail(f"{value!r} is no length of time: write such as 90s, 20m or 1h30m", param, ctx)
        return total


DURATION = _Duration()
