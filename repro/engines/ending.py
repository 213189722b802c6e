"""Whether a container ended by itself, or was ended by its engine, as happens when that one is shut down."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from docker.models.containers import Container

from repro.engines.client import FAILURES

SIGNALS = (signal.SIGTERM, signal.SIGKILL)
"""What an engine ends its containers with, the second where the first is not heard; a test may do so, too."""

EVENTS_KEPT = 256
"""Events that an engine remembers, until it ends."""

_LATER = 2
"""Seconds after the end, at most, up to which events are waited for: they are written beside it."""


def ended_from_outside(container: Container) -> str:
    """What ended a container by SIGTERM or SIGKILL beside its own processes, or "" where nothing did.

    Code inside of a container cannot reach its engine, so that it can neither write these events nor keep
    them from being written.
    """
    try:
        events = _events(container)
    except FAILURES:
        return "the Docker engine went away when the container ended"
    own = [event for event in events if _actor(event).get("ID") == container.id]
    if any(_sent(event) == signal.SIGTERM for event in own):
        return "the Docker engine was told to end the container, as it does when it is shut down"
    known = any(event.get("Action") == "start" for event in own)
    if not known and len(events) < EVENTS_KEPT:
        return "the Docker engine was started anew while the container ran"
    return ""


def _events(container: Container) -> Sequence[Mapping[str, Any]]:
    """All events of the engine from before the container's start to a moment after its end, by its clock."""
    created, ended = container.attrs["Created"], container.attrs["State"]["FinishedAt"]
    since, until = (int(datetime.fromisoformat(time).timestamp()) for time in (created, ended))
    assert container.client is not None
    return list(container.client.api.events(since=since, until=until + _LATER, decode=True))


def _actor(event: Mapping[str, Any]) -> Mapping[str, Any]:
    return event.get("Actor") or {}


def _sent(event: Mapping[str, Any]) -> int:
    """The signal that the engine sent, or 0."""
    number = str((_actor(event).get("Attributes") or {}).get("signal") or "")
    return int(number) if event.get("Action") == "kill" and number.isdecimal() else 0
