"""A block: collects the test once, runs its trials one after the other, and records each."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any, Dict, List, Optional, Tuple

import pytest

from . import environment, selection
from .classify import classify, is_sticky, text_of
from .protocol import Protocol, Ran
from .records import SCHEMA, Event, Outcome
from .request import Request
from .seeding import Seeding
from .signature import Places, signature
from .writer import RecordFile, clean

_MESSAGE, _OUTPUT, _PROPERTIES = 4000, 4096, 32


class Block:
    """A pytest plugin that takes the place of pytest's loop over all tests."""

    def __init__(self, request: Request, records: RecordFile, seeding: Seeding) -> None:
        self._request = request
        self._records = records
        self._seeding = seeding
        self._places = Places(request.test_file, request.root)
        self._collection: Optional[Tuple[Outcome, str, str]] = None
        self._counts: Counter[str] = Counter()
        self.began = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_exception_interact(self, node: Any, call: Any, report: Any) -> None:
        """Keep the exception of a test file that cannot be imported."""
        if isinstance(report, pytest.CollectReport):
            error = call.excinfo.value
            signed = signature(error, self._places, None)
            outcome = classify(error, "collection", signed, self._request.target)
            message = text_of(error) if signed["exception"] == "CollectError" else call.excinfo.exconly()
            self._collection = (outcome, signed["exception"], message)

    @pytest.hookimpl(trylast=True)
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep why a whole file is skipped."""
        if report.skipped and self._collection is None:
            self._collection = (Outcome.SKIPPED, "Skipped", str(report.longrepr))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run what was asked for, in place of all that was collected."""
        self.write_cell()
        items = {selection.short_id(item.nodeid): item for item in session.items}
        if self._collection is not None and not items:
            outcome, exception, message = self._collection
            self.write_missing("collection", outcome, message, exception=exception)
        elif self._request.list_only:
            ids = selection.matching_glob(self._request.test, list(items))
            self._records.write(Event.TESTS, test=self._request.test, ids=ids)
        else:
            self._run_named(items, session)
        return True

    def write_cell(self) -> None:
        """Write the first line."""
        self.began = True
        request = self._request
        self._records.write(
            Event.CELL,
            schema=SCHEMA,
            block=request.block,
            cell=request.cell,
            test=request.test,
            mode=request.mode.value,
            time=time.time(),
            **environment.describe(),
        )

    def write_missing(self, reason: str, outcome: Outcome, message: str, **fields: Any) -> None:
        """Write why no trial could run.

        Args:
            reason: "absent", "ambiguous", "file", "collection" or "configuration".
            outcome: what each trial of the block would have come to.
            message: what pytest said.
            fields: `nearest` or `exception`.
        """
        self._counts[outcome.value] += 1
        fields.setdefault("nearest", [])
        self._records.write(
            Event.MISSING,
            reason=reason,
            outcome=outcome.value,
            message=clean(message, _MESSAGE),
            test=self._request.test,
            **fields,
        )

    def write_end(self, reason: str = "") -> None:
        """Write the last line; `reason` says why trials that were asked for did not run."""
        self._records.write(
            Event.BLOCK_END, counts=dict(self._counts), complete=not reason, reason=reason, time=time.time()
        )

    def _run_named(self, items: Dict[str, pytest.Item], session: pytest.Session) -> None:
        name = self._request.test
        found = selection.matching(name, list(items))
        if len(found) != 1:
            reason = "ambiguous" if found else "absent"
            close = selection.nearest(name, found or list(items))
            self.write_missing(reason, Outcome.TEST_MISSING, f"{reason}: {name}", nearest=close)
            return self.write_end()
        protocol = Protocol(items[found[0]])
        session.config.pluginmanager.register(protocol)
        return self._run_trials(protocol)

    def _run_trials(self, protocol: Protocol) -> None:
        for trial, seed in enumerate(self._request.seeds, start=self._request.first_trial):
            self._records.write(Event.START, trial=trial, seed=seed, time=time.time())
            began = time.perf_counter()
            self._seeding.seed(seed)
            ran = protocol.run()
            end = self._end(ran)
            self._counts[end["outcome"]] += 1
            total = time.perf_counter() - began
            self._records.write(Event.END, trial=trial, seed=seed, total=total, **end)
            if ran.error is not None and is_sticky(ran.error):
                return self.write_end("the CUDA context of this process is lost")
        return self.write_end()

    def _end(self, ran: Ran) -> Dict[str, Any]:
        """The fields of an `end` line."""
        end: Dict[str, Any] = {"outcome": Outcome.PASSED.value, "duration": ran.duration}
        if ran.error is not None:
            signed = {"place": ran.place, **signature(ran.error, self._places, None)}
            outcome = classify(ran.error, ran.place, signed, self._request.target)
            end.update(outcome=outcome.value, signature=signed, message=clean(text_of(ran.error), _MESSAGE))
            if ran.output:
                end["output"] = clean(ran.output, _OUTPUT, keep_end=True)
        if ran.properties:
            end["properties"] = _bounded(ran.properties)
        return end


def _bounded(properties: List[Tuple[str, Any]]) -> Dict[str, Any]:
    plain = (bool, int, float, type(None))
    return {
        clean(str(name), 100): value if isinstance(value, plain) else clean(str(value), 500)
        for name, value in properties[:_PROPERTIES]
    }
