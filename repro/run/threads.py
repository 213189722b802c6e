"""Threads that cells are prepared in."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from repro.engines.process import cancel_running

_POLL_SECONDS = 0.05


@contextmanager
def build_threads(number: int) -> Iterator[ThreadPoolExecutor]:
    """Threads to build in. Where the body is left by an exception, builds that run are ended, too."""
    pool = ThreadPoolExecutor(number)
    try:
        yield pool
    except BaseException:
        ending = threading.Thread(target=pool.shutdown, kwargs={"cancel_futures": True})
        ending.start()
        while ending.is_alive():
            cancel_running()
            ending.join(_POLL_SECONDS)
        raise
    pool.shutdown()
