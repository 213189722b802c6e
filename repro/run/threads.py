"""Threads that cells are prepared in, and threads that run their trials side by side."""

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


@contextmanager
def run_threads(stop: threading.Event, number: int) -> Iterator[ThreadPoolExecutor]:
    """Threads to run trials in. Where the body is left by an exception, trials that run are ended, too.

    Args:
        stop: the runner's.
        number: threads.
    """
    pool = ThreadPoolExecutor(number)
    try:
        yield pool
    except BaseException:
        stop.set()
        pool.shutdown(cancel_futures=True)
        raise
    pool.shutdown()
