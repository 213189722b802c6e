"""What a search has to remember beside the ledger, so that it goes on where it was killed."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from repro.bisect.lines import Candidate
from repro.bisect.tryout import Finding
from repro.trial.records import Outcome

_LASTING = (Outcome.TEST_MISSING, Outcome.COMPILE_ERROR, Outcome.FAILED_OTHERWISE, Outcome.SKIPPED)
"""What will not go away; anything else may have been the machine's fault, or its limits'."""
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


class Journal:
    """One file below `searches/`: candidates that cannot be tested, subjects that were tried, the answer.

    Args:
        path: the file; one that cannot be read is begun anew, since the ledger holds what matters.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._data: dict[str, Any] = {"about": {}, "findings": {}, "series": {}, "labels": {}, "answer": None}
        try:
            held = json.loads(path.read_text(encoding="utf-8"))
            self._data.update({key: held[key] for key in self._data if key in held})
        except (OSError, ValueError, TypeError):
            pass

    @classmethod
    def open(cls, state: Path, about: Mapping[str, object]) -> Journal:
        """The journal of a search, named after what it is about."""
        text = json.dumps(about, sort_keys=True)
        name = hashlib.sha256(text.encode()).hexdigest()[:12]
        journal = cls(state / "searches" / f"{name}.json")
        journal._data["about"] = dict(about)
        return journal

    @property
    def series(self) -> dict[str, tuple[str, str]]:
        """The subject's revision and its test's name at each candidate that was tried, by its name."""
        return {name: (revision, test) for name, (revision, test) in self._data["series"].items()}

    def findings(self, candidates: Sequence[Candidate]) -> list[Finding]:
        """Candidates that earlier runs found untestable, for reasons that will not go away."""
        places = {candidate.name: index for index, candidate in enumerate(candidates)}
        found = [
            Finding(index=places[name], outcome=Outcome(row["outcome"]), message=row["message"])
            for name, row in self._data["findings"].items()
            if name in places
        ]
        return [finding for finding in found if finding.outcome in _LASTING]

    def untestable(self, candidate: Candidate, finding: Finding) -> None:
        """Remember a candidate that cannot be tested; one that lacks contents may have them the next time."""
        if finding.lacks:
            return
        row = {"outcome": finding.outcome.value, "message": finding.message}
        self._data["findings"][candidate.name] = row
        self._write()

    def tried(self, candidate: Candidate, revision: str, test: str) -> None:
        """Remember which revision of the subject a candidate has, and how its test is called there."""
        if self._data["series"].get(candidate.name) != [revision, test]:
            self._data["series"][candidate.name] = [revision, test]
            self._data["labels"][candidate.name] = candidate.label
            self._write()

    def answer(self, answer: Mapping[str, Any]) -> None:
        """Keep the answer, for reports."""
        self._data["answer"] = dict(answer)
        self._write()

    def commits(self) -> dict[str, str]:
        """The commits that were tried, as a person reads them, by the revision of their subject.

        Where a subject is the whole commit, its revision is the commit's id.
        """
        held = {name: str(label) for name, label in self._data["labels"].items()}
        rows = self._data["answer"]["tried"] if self._data["answer"] else ()
        labels = {**held, **{str(row["candidate"]): str(row["label"]) for row in rows}}
        found: dict[str, list[str]] = {}
        for name, (revision, _) in self.series.items():
            if _COMMIT.fullmatch(name):
                found.setdefault(str(revision), []).append(labels.get(name, name[:10]))
        whole = {name: label for name, label in labels.items() if _COMMIT.fullmatch(name)}
        return whole | {revision: _first(names) for revision, names in found.items()}

    def _write(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        draft = self.path.with_suffix(".part")
        draft.write_text(json.dumps(self._data, indent=1), encoding="utf-8")
        draft.replace(self.path)


def known_commits(state: Path) -> dict[str, str]:
    """Commits that searches tried, as a person reads them, by their revision.

    Args:
        state: folder of the searches; a journal of another kit's that is not understood is left out.
    """
    found: dict[str, str] = {}
    for path in sorted((state / "searches").glob("*.json")):
        try:
            found.update(Journal(path).commits())
        except (AttributeError, KeyError, TypeError, ValueError):
            continue
    return found


def _first(names: Sequence[str]) -> str:
    """One name for several commits whose subject is the same."""
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
