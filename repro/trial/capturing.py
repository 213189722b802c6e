"""What a trial writes: kept phase by phase as pytest does, without turning capture off and on in between."""

from __future__ import annotations

import contextlib
from typing import Any, Iterator


@contextlib.contextmanager
def staying_captured(manager: Any) -> Iterator[None]:
    """Leave pytest's capture on from phase to phase of the body.

    pytest turns it off after each phase for its own progress report; a block has none, and the file
    descriptors that are put back each time cost a sixth of a plain trial.

    Args:
        manager: pytest's plugin `capturemanager`, or None where there is none.
    """
    if not hasattr(manager, "item_capture"):
        yield
        return

    @contextlib.contextmanager
    def item_capture(when: str, item: Any) -> Iterator[None]:
        manager.resume_global_capture()  # a debugger may have suspended it
        manager.activate_fixture()
        try:
            yield
        finally:
            manager.deactivate_fixture()
            out, err = manager.read_global_capture()
            item.add_report_section(when, "stdout", out)
            item.add_report_section(when, "stderr", err)

    manager.item_capture = item_capture
    try:
        yield
    finally:
        del manager.item_capture
        manager.suspend_global_capture()
