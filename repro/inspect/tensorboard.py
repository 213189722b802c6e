"""A probe as event files for TensorBoard, written by its own package, without tensorflow."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from repro.errors import NotReadyError
from repro.inspect.records import Probe, Step


def check() -> None:
    """Refuse before anything runs.

    Raises:
        NotReadyError: the package `tensorboard` is not installed.
    """
    _modules()


def write(probe: Probe, folder: Path, name: str) -> Path:
    """Write a probe's steps as scalars over the steps' numbers, in a run of that name.

    Args:
        probe: what to write.
        folder: what `tensorboard --logdir` is given.
        name: of the run: a cell.

    Raises:
        NotReadyError: the package `tensorboard` is not installed.
    """
    writer_module, event, summary = _modules()
    home = folder / name
    writer = writer_module.EventFileWriter(str(home))
    now = time.time()
    for step in probe.steps:
        values = [summary.Summary.Value(tag=tag, simple_value=value) for tag, value in _scalars(step)]
        record = event.Event(
            wall_time=now + step.n * 1e-3, step=step.n, summary=summary.Summary(value=values)
        )
        writer.add_event(record)
    writer.close()
    return home


def _scalars(step: Step) -> Iterator[tuple[str, float]]:
    numbers = {
        "nan": step.nan,
        "inf": step.inf,
        "zero": step.zero,
        "subnormal": step.subnormal,
        "min": step.min,
        "max": step.max,
        "mean_abs": step.mean_abs,
        "growth": step.growth,
        "cancellation": step.cancellation,
        "max_ulp": step.error.max_ulp if step.error else None,
    }
    for name, value in numbers.items():
        if value is not None:
            yield f"{step.phase}/{name}", float(value)
    for share, value in zip((1, 25, 50, 75, 99), step.quantiles, strict=False):
        yield f"{step.phase}/quantile {share} %", value


def _modules() -> tuple[Any, Any, Any]:
    try:
        return (
            importlib.import_module("tensorboard.summary.writer.event_file_writer"),
            importlib.import_module("tensorboard.compat.proto.event_pb2"),
            importlib.import_module("tensorboard.compat.proto.summary_pb2"),
        )
    except ImportError as error:
        raise NotReadyError(
            f"event files need the package tensorboard: {error}",
            why="the kit brings it along only when asked to, as its extra `tensorboard`",
            next_step=f"{sys.executable} -m pip install 'tensorboard>=2.18'; or leave --tensorboard out: "
            "--json has the same numbers",
        ) from None
