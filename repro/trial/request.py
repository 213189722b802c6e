"""What a block is asked to do: request.json, written by the kit and read in the cell."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, List, Mapping, Optional, Tuple

from .adapter.calls import AdapterRequest, parse_adapter
from .altering.alteration import Alteration, parse_alteration
from .altering.interventions import INTERVENTIONS
from .records import SCHEMA, Mode


class BadRequest(Exception):  # noqa: N818
    """request.json cannot be used; the message names the field."""


@dataclass(frozen=True)
class Target:
    """The signature of the failure that is looked for.

    Args:
        exception: class name, bare or dotted; subclasses count, and `pytest.fail` is an AssertionError.
        comparison: index of the comparison that must have failed, or None for any.
        function: function of the test file that must have failed, or "" for any.
        message: regular expression that must be found in the message, or "" for any.
    """

    exception: str = "AssertionError"
    comparison: Optional[int] = None
    function: str = ""
    message: str = ""


@dataclass(frozen=True)
class ProbeRequest:
    """How much a probe writes and measures.

    Args:
        steps: steps written one by one; after that every tenth, and every one with a first NaN.
        bytes: size of the file at which steps are no longer written.
        derivatives: whether compared gradients are held against differences.
        elements: failing elements of a comparison that are looked at, at most.
        controls: passing elements of the same tensor, at most.
        differentiated: failing elements of a comparison whose derivative is measured, at most.
        gradcheck: elements of each compared gradient that go to `torch.autograd.gradcheck`, at most; those of
            comparisons that pass, too. 0 for none.
        seconds: time for the differences, over which no further element is begun.
        perturbed: runs with all inputs moved by their own rounding, to see what no formula could avoid.
    """

    steps: int = 2000
    bytes: int = 64 * 2**20
    derivatives: bool = True
    elements: int = 20
    controls: int = 5
    differentiated: int = 20
    gradcheck: int = 0
    seconds: float = 120.0
    perturbed: int = 3


@dataclass(frozen=True)
class Request:
    """One block: a test, its seeds, and where results go.

    Args:
        root: folder of the subject; working directory and pytest's rootdir.
        test_file: file that holds the test.
        test: id inside that file, such as `TestClass::test_x[param]`; a name or glob where `list_only`.
        records: folder for `records.jsonl` and `inputs/`.
        block: id of the block.
        cell: id of the cell.
        mode: how trials differ from each other.
        seeds: one seed per trial.
        first_trial: index of the first trial.
        target: the failure that counts as FAILED.
        keep_inputs: failing seeds whose inputs are kept, at most.
        replay: by seed, the file of kept inputs whose draws take the place of the generators'; a seed
            without one is run as it is.
        list_only: collect, write the ids that match, run nothing.
        python_path: folders put in front of `sys.path`.
        altered: what is changed about the test.
        probe: look into each trial, and write `probe.jsonl`; None to run trials as they are.
        debug: stop in a debugger where a trial fails, and give it these commands; none to read them from the
            terminal. None to stop nowhere.
        interventions: what is switched around each trial, names of `interventions.INTERVENTIONS`: one list a
            trial, and from the first one on again where there are more trials than lists.
        watch: write what each trial draws, and what its comparisons would make of bugs.
        adapter: asked about failing elements of gradients, into `adapter.jsonl`; or None.
    """

    root: Path
    test_file: Path
    test: str
    records: Path
    block: str = ""
    cell: str = ""
    mode: Mode = Mode.SEEDS
    seeds: Tuple[int, ...] = ()
    first_trial: int = 0
    target: Target = field(default_factory=Target)
    keep_inputs: int = 0
    replay: Mapping[int, Path] = field(default_factory=dict)
    list_only: bool = False
    python_path: Tuple[str, ...] = ()
    altered: Alteration = field(default_factory=Alteration)
    probe: Optional[ProbeRequest] = None
    debug: Optional[Tuple[str, ...]] = None
    interventions: Tuple[Tuple[str, ...], ...] = ()
    watch: bool = False
    adapter: Optional[AdapterRequest] = None


def read_request(path: Path) -> Request:
    """Read request.json; fields that this version does not know are ignored.

    Raises:
        BadRequest: when the file cannot be read, a needed field is absent, or one has the wrong type.
    """
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadRequest(f"{path.name} cannot be read: {error}") from error
    if not isinstance(raw, dict):
        raise BadRequest(f"{path.name} holds no JSON object")
    return parse_request(raw)


def parse_request(raw: Mapping[str, Any]) -> Request:
    """Turn the JSON object of request.json into a Request.

    Raises:
        BadRequest: when a needed field is absent or one has the wrong type.
    """
    if int(raw.get("schema") or SCHEMA) > SCHEMA:
        raise BadRequest(f"schema {raw['schema']} is newer than this plugin's {SCHEMA}")
    root = Path(_text(raw, "root"))
    try:
        return Request(
            root=root,
            test_file=root / _text(raw, "test_file"),
            test=_text(raw, "test"),
            records=Path(_text(raw, "records")),
            block=str(raw.get("block") or ""),
            cell=str(raw.get("cell") or ""),
            mode=Mode(raw.get("mode") or "seeds"),
            seeds=tuple(_integers(raw, "seeds")),
            first_trial=int(raw.get("first_trial") or 0),
            target=_target(raw.get("signature") or {}),
            keep_inputs=int(raw.get("keep_inputs") or 0),
            replay=_replay(raw),
            list_only=raw.get("expand") == "list",
            python_path=tuple(str(folder) for folder in raw.get("python_path") or ()),
            altered=parse_alteration(raw),
            probe=_probe(raw.get("probe")),
            debug=None if raw.get("debug") is None else tuple(str(line) for line in raw["debug"]),
            interventions=_interventions(raw),
            watch=bool(raw.get("watch")),
            adapter=parse_adapter(raw.get("adapter")),
        )
    except (TypeError, ValueError) as error:
        raise BadRequest(str(error)) from error


def _text(raw: Mapping[str, Any], name: str) -> str:
    value = raw.get(name)
    if not isinstance(value, str) or not value:
        raise BadRequest(f"{name} must be a text that is not empty, not {value!r}")
    return value


def _replay(raw: Mapping[str, Any]) -> Mapping[int, Path]:
    files = raw.get("replay") or {}
    if not isinstance(files, dict):
        raise BadRequest("replay must name a file for each seed")
    folder = Path(str(raw.get("inputs") or "."))
    return {int(seed): folder / str(name) for seed, name in files.items()}


def _probe(raw: Any) -> Optional[ProbeRequest]:
    """The probe's options; those that this version does not know are ignored."""
    if raw is None:
        return None
    if not isinstance(raw, dict):
        raise BadRequest("probe must be an object with its options")
    usual = vars(ProbeRequest())
    return ProbeRequest(**{name: type(usual[name])(raw[name]) for name in usual if name in raw})


def _interventions(raw: Mapping[str, Any]) -> Tuple[Tuple[str, ...], ...]:
    found = tuple(tuple(str(name) for name in names) for names in raw.get("interventions") or ())
    unknown = [name for names in found for name in names if name not in INTERVENTIONS]
    if unknown:
        raise BadRequest(f"no intervention is called {unknown[0]!r}; there are {', '.join(INTERVENTIONS)}")
    return found


def _integers(raw: Mapping[str, Any], name: str) -> List[int]:
    values = raw.get(name) or []
    if not isinstance(values, list) or not all(type(value) is int for value in values):
        raise BadRequest(f"{name} must be a list of whole numbers")
    return values


def _target(raw: Mapping[str, Any]) -> Target:
    comparison = raw.get("comparison")
    return Target(
        exception=str(raw.get("exception") or "AssertionError"),
        comparison=None if comparison is None else int(comparison),
        function=str(raw.get("function") or ""),
        message=str(raw.get("message") or ""),
    )
