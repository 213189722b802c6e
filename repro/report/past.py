"""What searches and the diagnosis left in the run's folder, read with care: another kit may have written."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from repro import ui
from repro.report.inline import code
from repro.report.model import Cause, Diagnosis, Search, Tried, Verdict

_VERDICTS: Mapping[str, Verdict] = {
    "supported": "supported",
    "ruled out": "ruled out",
    "untested": "untested",
}
PLACES = 8
"""Places of a change that are shown, at most."""
_CHANGES = {
    "appears": "first fails at",
    "rises": "fails more often from",
    "falls": "fails less often from",
}


def read_searches(state: Path, test: str) -> list[Search]:
    """The answers of searches for a test, newest first; files that hold none are left out."""
    files = sorted((state / "searches").glob("*.json"), key=_written, reverse=True)
    found = []
    for path in files:
        held = _object(path)
        answer, about = held.get("answer"), held.get("about")
        if isinstance(answer, dict) and _is_about(about, test):
            try:
                found.append(_search(answer))
            except (KeyError, TypeError, ValueError, AttributeError):
                continue  # of a kit that wrote answers otherwise
    return found


def _written(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _object(path: Path) -> Mapping[str, Any]:
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return held if isinstance(held, dict) else {}


def _is_about(about: object, test: str) -> bool:
    """Whether a search was for this test; one that does not say is shown."""
    name = about.get("test") if isinstance(about, dict) else None
    return not isinstance(name, str) or name.split("[")[0] == test.split("[")[0]


def _search(answer: Mapping[str, Any]) -> Search:
    labels = {
        str(row["candidate"]): str(row["label"]) for row in (*answer["tried"], *answer.get("findings", ()))
    }
    first_bad = answer.get("first_bad")
    return Search(
        axis=str(answer["axis"]),
        sentence=_sentence(answer, labels),
        decided=bool(answer.get("final", True)) and answer["kind"] != "inconclusive",
        changed=_changed(answer),
        link=str(answer.get("link") or ""),
        tried=[_tried(row, first_bad) for row in answer["tried"]],
        untestable=[
            f"{row['label']}: {row['outcome']}, {ui.one_line(str(row['message']))}"
            for row in answer.get("findings", ())
        ],
        details=_details(answer),
        belief=_belief(answer, labels),
    )


def _belief(answer: Mapping[str, Any], labels: Mapping[str, str]) -> list[tuple[str, float]]:
    """Where the change may be: at a candidate, or between two."""
    rows = sorted(answer.get("belief") or (), key=lambda row: -float(row["probability"]))
    places = [[labels.get(str(row[end]), str(row[end])) for end in ("low", "high")] for row in rows]
    said = [f"after {low}, not after {high}" for low, high in places]
    return [(place, float(row["probability"])) for place, row in zip(said, rows, strict=True)][:PLACES]


def _tried(row: Mapping[str, Any], first_bad: object) -> Tried:
    replayed = row.get("replayed") or {}
    return Tried(
        label=str(row["label"]),
        failed=int(row["failed"]),
        trials=int(row["trials"]),
        replayed_failed=int(replayed.get("failed") or 0),
        replayed=int(replayed.get("trials") or 0),
        first_bad=row["candidate"] == first_bad,
    )


def _changed(answer: Mapping[str, Any]) -> bool | None:
    """Whether a search found a change; None where it has no answer."""
    if answer["kind"] in ("throughout", "absent") or not answer.get("reproduced", True):
        return False
    return None if answer["kind"] == "inconclusive" or answer.get("high") is None else True


def _sentence(answer: Mapping[str, Any], labels: Mapping[str, str]) -> str:
    kind, before, after = answer["kind"], answer["rate_before"], answer["rate_after"]
    sure = f"confidence {ui.percent(float(answer['confidence']))}"
    changed = _changed(answer)
    if kind == "throughout":
        return f"Nothing changed: it fails throughout, {_rate(after)}; {sure}."
    if changed is False:
        return f"It was not seen to fail: {_rate(after)}."
    if changed is None:
        return f"No answer: {_rate(before)} at first and {_rate(after)} at last."
    rates = f"{_rate(before)} before, {_rate(after)} from there on; {sure}."
    if answer.get("first_bad") is not None:
        name = str(answer["first_bad"])
        return f"It {_CHANGES.get(kind, 'changes at')} {labels.get(name, name)}: {rates}"
    low, high = str(answer["low"]), str(answer["high"])
    return f"It changes after {labels.get(low, low)} and not after {labels.get(high, high)}: {rates}"


def _rate(rate: Mapping[str, Any]) -> str:
    if not rate["trials"]:
        return "no trials"
    interval = f"{ui.percent(rate['low'])} to {ui.percent(rate['high'])}"
    return f"{rate['failed']} of {rate['trials']} ({ui.percent(rate['failed'] / rate['trials'])}; {interval})"


def _details(answer: Mapping[str, Any]) -> list[str]:
    told = [
        f"Searched by {'failing inputs, replayed' if answer.get('method') == 'replay' else 'failure rates'}:"
        f" {ui.count(int(answer['candidates']), 'candidate')}, {answer['oldest']} to {answer['newest']};"
        f" {ui.count(int(answer['trials']), 'trial')}, {ui.count(int(answer['builds']), 'build')}."
    ]
    for key in ("split", "touched"):
        part = answer.get(key)
        said = part.get("said" if key == "split" else "words") if isinstance(part, dict) else None
        if said:
            told.append(str(said))
    return [*told, *(str(note) for note in answer.get("notes") or ())]


def read_diagnosis(state: Path, test: str, revision: str) -> Diagnosis:
    """What `repro diagnose` left about a test, or an empty diagnosis."""
    path = state / "diagnosis.json"
    if not path.exists():
        return Diagnosis()
    held = _object(path)
    if held.get("test") not in (None, test):
        return Diagnosis(
            problem=f"`repro diagnose` was last run on {code(str(held['test']))}, not on this test"
        )
    try:
        return Diagnosis(
            causes=[_cause(row) for row in held["causes"]],
            minimized=_lines(held.get("minimized")),
            conclusion=_lines(held.get("conclusion")),
            predicted_rate=_share(held.get("predicted_rate")),
            offsets=[_offset(jump) for jump in held.get("jumps") or ()],
            advice=_lines(held.get("advice")),
            experiments=_lines(held.get("experiments")),
            about=_about(held, revision),
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return Diagnosis(problem="diagnosis.json cannot be read: `repro diagnose` writes it anew")


def _offset(jump: Mapping[str, Any]) -> float:
    return math.copysign(float(jump["distance_ulp"]), float(jump["coordinate"]) - float(jump["place"]))


def _about(held: Mapping[str, Any], revision: str) -> str:
    """Where it was weighed, and whether the subject has changed since."""
    if "cell" not in held:
        return ""
    at = str(held.get("revision") or revision)
    other = "" if at == revision else f", at another revision than the trials above: {code(at)}"
    return f"Weighed in {code(str(held['cell']))}{other}."


def _cause(row: Mapping[str, Any]) -> Cause:
    evidence = row.get("evidence") or ()
    return Cause(
        name=str(row["name"]),
        verdict=_VERDICTS[str(row["verdict"]).replace("_", " ")],
        evidence=_lines(evidence),
        share=_share(row.get("share")),
    )


def _share(value: Any) -> float | None:
    if isinstance(value, dict):
        value = value.get("rate")
    return None if value is None else float(value)


def _lines(value: Any) -> Sequence[str]:
    """Lines of text, from a text, a list of texts, or an object."""
    if isinstance(value, str):
        return value.splitlines()
    if isinstance(value, dict):
        return [f"{key}: {_plain(each)}" for key, each in value.items()]
    return [_plain(each) for each in value or ()]


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
