"""One trial: pytest's own setup, call and teardown of one test, with nothing left over for the next."""

from __future__ import annotations

import copy
import unittest
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Tuple

import pytest
from _pytest.runner import call_and_report

_SKIPS = (pytest.skip.Exception, unittest.SkipTest)


@dataclass
class Ran:
    """What pytest said about one run of a test.

    Args:
        error: what was raised, or None.
        place: "setup", "call" or "teardown": where it was raised.
        duration: seconds of the call.
        output: what the test wrote, with pytest's headings.
        properties: what the test told through `record_property`.
    """

    error: Optional[BaseException] = None
    place: str = ""
    duration: float = 0.0
    output: str = ""
    properties: List[Tuple[str, Any]] = field(default_factory=list)


class Protocol:
    """A pytest plugin that runs one item again and again.

    Function-scoped fixtures are made anew each time; those of wider scopes live on.
    """

    def __init__(self, item: pytest.Item) -> None:
        self.item = item
        self._markers = list(getattr(item, "own_markers", ()))
        # Teardown goes as far up as the next item demands: a sibling keeps module and session alive.
        self._sibling = copy.copy(item)
        self._ran = Ran()

    def run(self) -> Ran:
        """Run the item once."""
        self._ran = Ran()
        self._reset()
        try:
            self.item.ihook.pytest_runtest_protocol(item=self.item, nextitem=self._sibling)
        except pytest.exit.Exception as error:
            self._note(error, "call")
        self._ran.properties = list(self.item.user_properties)
        sections = getattr(self.item, "_report_sections", ())
        self._ran.output = "".join(f"--- {kind} in {when} ---\n{text}\n" for when, kind, text in sections)
        return self._ran

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Optional[bool]:
        """The phases themselves; pytest's wrappers around them (warnings, assertion text) stay in force."""
        if item is not self.item:
            return None
        request = getattr(item, "_initrequest", None)
        if request is not None:
            request()
        try:
            if call_and_report(item, "setup", log=False).passed:
                report = call_and_report(item, "call", log=False)
                self._ran.duration = report.duration
                if report.passed and isinstance(self._ran.error, _SKIPS):
                    self._ran.error, self._ran.place = None, ""  # a subtest was skipped, the test was not
            call_and_report(item, "teardown", log=False, nextitem=self._sibling)
        finally:
            if request is not None:
                vars(item).update(_request=False, funcargs=None)
        return True

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: "pytest.CallInfo[None]") -> Any:
        """Keep the exception itself; reports hold text alone. Called for each subtest, too."""
        yield
        if item is self.item and call.excinfo is not None:
            self._note(call.excinfo.value, call.when)

    def _note(self, error: BaseException, place: str) -> None:
        if self._ran.error is None or isinstance(self._ran.error, _SKIPS):
            self._ran.error, self._ran.place = error, place

    def _reset(self) -> None:
        """Forget what pytest keeps on an item that it means to run once."""
        state: Dict[str, Any] = vars(self.item)
        state["_report_sections"] = []
        self.item.user_properties = []
        self.item.own_markers = list(self._markers)
        for name in ("_obj", "_instance", "_excinfo"):
            state.pop(name, None)
