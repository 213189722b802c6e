"""The plugin that runs inside a cell, copied to where cells find it."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import repro.trial
from repro import __version__


def install_plugin(state: Path) -> Path:
    """Put the plugin as `repro_trial` into the run's folder, where every engine finds it; its parent folder.

    A copy, so that a run goes on with the plugin it began with, and containers see nothing else of the kit.
    """
    source = Path(repro.trial.__file__).parent
    home = state / "kit" / __version__
    target = home / "repro_trial"
    files = sorted(source.rglob("*.py"))
    if not all(_same(file, target / file.relative_to(source)) for file in files):
        for file in files:
            copy = target / file.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            part = copy.with_name(f".{file.name}.{os.getpid()}.{threading.get_ident()}")
            shutil.copyfile(file, part)
            part.replace(copy)
    return home


def _same(source: Path, copy: Path) -> bool:
    return copy.exists() and copy.read_bytes() == source.read_bytes()
