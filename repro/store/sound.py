"""Which events of a block file can be used: the code under test can write to the file, too.

Every reader of evidence goes on from here, so that none has to doubt a field's type. A line that is not
sound is treated as one that is no event at all: it is left out, and counted.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from repro.trial.reader import OnGarbled, read_events
from repro.trial.records import Event, Outcome
from repro.ui import shown

Check = Callable[[Any], bool]

_INTEGERS = range(-(2**63), 2**63)
_NUMBERS = ("nan", "inf", "-inf")
"""How a record writes numbers that JSON has none for."""


def read_sound_events(
    path: Path, *, asked: Collection[int] | None = None, on_garbled: OnGarbled | None = None
) -> Iterator[dict[str, Any]]:
    """The events of a block file that can be used, in order; see `repro.trial.reader.read_events`.

    Args:
        asked: seeds that the block was to run: a trial of another one is left out. None for all.
    """
    for event in read_events(path, on_garbled=on_garbled):
        if not unsound(event) and (asked is None or _was_asked(event, asked)):
            yield without_controls(event)


def unsound(event: Mapping[str, Any]) -> str:
    """The field that an event lacks or has wrong, or "" where it can be used."""
    kind = event.get("event")
    if not isinstance(kind, str):
        return "event"
    if kind not in _KINDS:
        return ""
    required, checks = _KINDS[kind]
    return _first_wrong(event, required, {**checks, "time": _finite})


def unsound_comparison(comparison: Any) -> str:
    """The same of one comparison of a trial."""
    if not isinstance(comparison, dict):
        return "comparison"
    return _first_wrong(comparison, (), _COMPARISON)


def without_controls(value: Any) -> Any:
    """A record whose texts no terminal obeys: escapes and other control characters become marks."""
    if isinstance(value, str):
        return value if value.isprintable() else shown(value)
    if isinstance(value, dict):
        return {without_controls(name): without_controls(each) for name, each in value.items()}
    if isinstance(value, list):
        return [without_controls(each) for each in value]
    return value


def unsound_signature(signature: Any) -> str:
    """The same of a failure's signature."""
    return "" if _SIGNATURE(signature) else "signature"


def sound_comparisons(text: str | None) -> list[dict[str, Any]]:
    """The comparisons of a trial, out of the text that a ledger keeps of them.

    Raises:
        ValueError: the text holds anything else.
    """
    held = json.loads(text) if text else []
    if not isinstance(held, list) or any(map(unsound_comparison, held)):
        raise ValueError("comparisons")
    return held


def sound_signature(text: str) -> dict[str, Any]:
    """A signature, out of the text that a ledger keeps of it.

    Raises:
        ValueError: the text holds anything else.
    """
    held = json.loads(text)
    if not isinstance(held, dict) or unsound_signature(held):
        raise ValueError("a signature")
    return held


def _first_wrong(record: Mapping[str, Any], required: tuple[str, ...], checks: Mapping[str, Check]) -> str:
    """A field that is required must be there; one that is there may be null."""
    for name in required:
        if record.get(name) is None:
            return name
    for name, value in record.items():
        if value is not None and name in checks and not checks[name](value):
            return name
    return ""


def _was_asked(event: Mapping[str, Any], asked: Collection[int]) -> bool:
    return event["event"] not in _OF_TRIALS or event["seed"] in asked


# Values ------------------------------------------------------------------------------------------------


def _whole(value: Any) -> bool:
    return type(value) is int and value in _INTEGERS


def _count(value: Any) -> bool:
    return _whole(value) and value >= 0


def _number(value: Any) -> bool:
    return isinstance(value, float) or _whole(value) or value in _NUMBERS


def _finite(value: Any) -> bool:
    return _whole(value) or (isinstance(value, float) and math.isfinite(value))


def _value(value: Any) -> bool:
    """A tensor's element: a complex number is recorded as text."""
    return isinstance(value, bool | str) or _number(value)


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _inside(value: Any) -> bool:
    """A path that leads to nowhere but below its block's folder."""
    return _text(value) and not value.startswith("/") and ".." not in value.split("/")


def _digest(value: Any) -> bool:
    return _text(value) and not set(value) - set("0123456789abcdef")


def _name(value: Any) -> bool:
    return isinstance(value, str) or _whole(value)


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _mapping(value: Any) -> bool:
    return isinstance(value, dict)


def _outcome(value: Any) -> bool:
    return isinstance(value, str) and value in Outcome.__members__


def _list(each: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(each, value))


def _values(each: Check) -> Check:
    return lambda value: isinstance(value, dict) and all(map(each, value.values()))


def _record(checks: Mapping[str, Check], *required: str) -> Check:
    return lambda value: isinstance(value, dict) and not _first_wrong(value, required, checks)


# Records -----------------------------------------------------------------------------------------------

_PLACE: Mapping[str, Check] = {"index": _list(_count), "actual": _value, "expected": _value}
_COMPARISON: Mapping[str, Check] = {
    **dict.fromkeys(("index", "size", "mismatched", "left_out"), _count),
    **dict.fromkeys(("function", "where", "dtype", "unmeasured", "mismatched_at"), _text),
    **dict.fromkeys(("atol", "rtol", "max_abs", "max_rel", "ratio"), _number),
    **dict.fromkeys(("shape", "nan", "inf"), _list(_count)),
    **dict.fromkeys(("max_abs_at", "max_rel_at"), _record(_PLACE)),
    "item": _name,
    "passed": _flag,
    "worst": _list(_record(_PLACE, "index")),
}
_SIGNATURE = _record(
    {
        **dict.fromkeys(("key", "exception", "file", "function", "source"), _text),
        "line": _whole,
        "comparison": _whole,
    }
)
_DRAW = _record({"function": _text, "where": _text}, "function", "where")
_MUTANT = _record({"index": _whole, "mutants": _values(_number)}, "index", "mutants")
_TRIAL: Mapping[str, Check] = {"seed": _whole, "trial": _whole}
_OF_TRIALS = (Event.START, Event.END, Event.INPUTS)
_SAID: Mapping[str, Check] = {"message": _text, "reason": _text, "died": _text, "outcome": _outcome}
_KINDS: Mapping[str, tuple[tuple[str, ...], Mapping[str, Check]]] = {
    Event.START.value: (("seed",), _TRIAL),
    Event.END.value: (
        ("seed", "outcome"),
        {
            **_TRIAL,
            **_SAID,
            "duration": _finite,
            "signature": _SIGNATURE,
            "comparisons": _list(lambda one: not unsound_comparison(one)),
        },
    ),
    Event.INPUTS.value: (
        ("seed",),
        {**_TRIAL, "path": _inside, "sha256": _digest, "failed_again": _flag, "same_elements": _flag},
    ),
    Event.MISSING.value: ((), {**_SAID, "nearest": _list(_text)}),
    Event.BLOCK_END.value: ((), {**_SAID, "counts": _mapping}),
    Event.OWN_SEEDS.value: (("libraries",), {"libraries": _list(_text)}),
    Event.TESTS.value: (("ids",), {"ids": _list(_text)}),
    Event.PROFILE.value: ((), {"kernels": _list(_mapping), "nsight": _list(_mapping), "reason": _text}),
    Event.CIRCUMSTANCES.value: (
        (),
        {
            "touched": _values(_count),
            "drawn": _list(_DRAW),
            "mutants": _list(_MUTANT),
        },
    ),
}
