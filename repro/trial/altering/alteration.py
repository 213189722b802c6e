"""What a request asks to change about a test, and to find out about a failing case."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, Mapping, Optional, Tuple


@dataclass(frozen=True)
class Reduction:
    """How the inputs of a failing trial are made small.

    Args:
        key: key of the signature that has to stay; "" for whatever counts as FAILED.
        record: whether draws are recorded and replaced, which every trial then pays for.
        confirm: further runs of the same inputs, all of which have to fail.
        elements: whether elements of the inputs are set to 0 as far as the failure stays.
        known: digest of a failure that is known; the same again is not made smaller.
        manners: in which compared values may differ; of the failure that is found if there are none.
        seconds: time for all of it.
    """

    key: str = ""
    record: bool = True
    confirm: int = 2
    elements: bool = True
    known: str = ""
    manners: Tuple[str, ...] = ()
    seconds: float = 60.0


@dataclass(frozen=True)
class Alteration:
    """Another case than the one that the test file states.

    Args:
        arguments: by name, other values for the test's arguments.
        constants: by address (`FILE:LINE:COLUMN`), other values for literals.
        reduction: look for one failing trial and make its inputs small, in place of plain trials; or None.
        describe: run the first seed once and say what the case is made of, in place of trials.
        machine_code: write the machine code of compiled kernels as text beside them, at the end.
        profile: run trials under torch's profiler.
        compile_for: compute capability, such as 90, of a GPU that is not here: what trials launch under
            Triton's interpreter is compiled for it; 0 for none.
    """

    arguments: Mapping[str, Any] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)
    reduction: Optional[Reduction] = None
    describe: bool = False
    machine_code: bool = False
    profile: bool = False
    compile_for: int = 0


def parse_alteration(raw: Mapping[str, Any]) -> Alteration:
    """The alteration that a request names.

    Raises:
        ValueError: a field has the wrong type.
    """
    return Alteration(
        arguments=_object(raw, "arguments"),
        constants=_object(raw, "constants"),
        reduction=_reduction(raw.get("reduce")),
        describe=raw.get("expand") == "case",
        machine_code=bool(raw.get("machine_code")),
        profile=bool(raw.get("profile")),
        compile_for=int(raw.get("compile_for") or 0),
    )


def _reduction(raw: Any) -> Optional[Reduction]:
    if raw is None:
        return None
    if not isinstance(raw, dict):
        raise ValueError("reduce must be an object with its options")
    usual = vars(Reduction())
    return Reduction(**{name: type(usual[name])(raw[name]) for name in usual if name in raw})


def _object(raw: Mapping[str, Any], name: str) -> Dict[str, Any]:
    value = raw.get(name) or {}
    if not isinstance(value, dict):
        raise ValueError(f"{name} must be an object")
    return value
