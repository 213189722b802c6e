"""A block: collects the test once, runs its trials one after the other, and records each."""

from __future__ import annotations

import gc
import time
from typing import Any, Dict, Optional, Tuple, Type

import pytest

from . import environment, selection
from .adapter.adapting import Adapting
from .altering.alteration import Alteration
from .altering.altered import change_arguments
from .capturing import staying_captured
from .classify import classify, text_of
from .comparing.comparisons import Comparisons
from .debugger import Debugger
from .kernels.compiled import Profiling
from .kernels.compiling import Compiling
from .minimizing.case import Describing
from .minimizing.reducing import Reducing
from .protocol import Protocol
from .records import SCHEMA, Event, Outcome
from .request import Request
from .seeding import Seeding
from .signature import Places, signature
from .trials import Trials
from .writer import RecordFile, clean

_ABSENT = {
    "absent": "the file has no test {!r}",
    "ambiguous": "{!r} has several parametrizations, each of which is a test of its own",
}
_MESSAGE = 4000


class Block:
    """A pytest plugin that takes the place of pytest's loop over all tests."""

    def __init__(
        self, request: Request, records: RecordFile, seeding: Seeding, comparisons: Comparisons
    ) -> None:
        self._request = request
        self._records = records
        self._seeding = seeding
        self._comparisons = comparisons
        self._places = Places(request.test_file, request.root)
        self._collection: Optional[Tuple[Outcome, str, str]] = None
        self.began = False
        self.internal_error = ""

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
    def pytest_internalerror(self, excinfo: "pytest.ExceptionInfo[BaseException]") -> None:
        """Keep what stopped pytest itself, or a plugin."""
        self.internal_error = excinfo.exconly()

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
            self._records.write(Event.BLOCK_END, counts={}, complete=True, reason="", time=time.time())
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
        """Write why no trial could run; the last line of such a block.

        Args:
            reason: "absent", "ambiguous", "file", "collection" or "configuration".
            outcome: what each trial of the block would have come to.
            message: what pytest said.
            fields: `nearest` or `exception`.
        """
        fields.setdefault("nearest", [])
        self._records.write(
            Event.MISSING,
            reason=reason,
            outcome=outcome.value,
            message=clean(message, _MESSAGE),
            test=self._request.test,
            **fields,
        )

    def _run_named(self, items: Dict[str, pytest.Item], session: pytest.Session) -> None:
        name = self._request.test
        found = selection.matching(name, list(items))
        if len(found) != 1:
            reason = "ambiguous" if found else "absent"
            close = selection.nearest(name, found or list(items))
            return self.write_missing(
                reason, Outcome.TEST_MISSING, _ABSENT[reason].format(name), nearest=close
            )
        protocol = Protocol(items[found[0]])
        session.config.pluginmanager.register(protocol)
        if self._request.debug is not None:
            session.config.pluginmanager.register(Debugger(self._request, self._places, session.config))
        self._stop_log_capture(protocol.item, session.config)
        altered = self._request.altered
        change_arguments(protocol.item, altered.arguments)
        kind = Adapting if self._request.adapter is not None else _kind(altered)
        trials = kind(self._request, self._records, self._seeding, self._comparisons, self._places)
        gc.freeze()  # what imports and collection left stays: looking through it again costs every trial
        with staying_captured(session.config.pluginmanager.get_plugin("capturemanager")):
            return trials.run(protocol)

    def _stop_log_capture(self, item: pytest.Item, config: pytest.Config) -> None:
        """Log capture hooks into every logger in each phase: with torch's, half a millisecond a trial."""
        used = "caplog" in getattr(item, "fixturenames", ())
        named = "caplog" in self._request.test_file.read_text(encoding="utf-8", errors="replace")
        plugin = config.pluginmanager.get_plugin("logging-plugin")
        if plugin is not None and not used and not named:
            config.pluginmanager.unregister(plugin)


def _kind(altered: Alteration) -> Type[Trials]:
    """Plain trials, unless something else is asked for."""
    if altered.describe:
        return Describing
    if altered.reduction is not None:
        return Reducing
    if altered.compile_for:
        return Compiling
    return Profiling if altered.profile else Trials
