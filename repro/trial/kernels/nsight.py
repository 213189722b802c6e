"""What Nsight Compute says of a block's kernels, where it is on PATH: the block runs once more under it."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, List

_SECTIONS = ("SpeedOfLight", "MemoryWorkloadAnalysis", "LaunchStats")
_LAUNCHES, _SECONDS = 40, 240
_PLUGIN = str(__package__).rpartition(".")[0]
"""The package that runs blocks, under the name that it has here."""


def nsight(request: Path) -> Dict[str, Any]:
    """By kernel, its metrics as text with their units; or the reason why there are none."""
    program = shutil.which("ncu")
    if program is None:
        return {"nsight": [], "reason": "ncu is not on PATH"}
    with tempfile.TemporaryDirectory() as folder:
        asked = json.loads(request.read_text(encoding="utf-8"))
        asked.update(records=folder, profile=False, machine_code=False, keep_inputs=0)
        copy = Path(folder) / "request.json"
        copy.write_text(json.dumps(asked), encoding="utf-8")
        command = [program, "--csv", "--target-processes", "all", "--launch-count", str(_LAUNCHES)]
        command += [word for section in _SECTIONS for word in ("--section", section)]
        command += [sys.executable, "-m", _PLUGIN, str(copy)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_SECONDS, check=False, env=dict(os.environ)
            )
        except (OSError, subprocess.SubprocessError) as error:
            return {"nsight": [], "reason": f"{type(error).__name__}: {error}"[:300]}
    rows = parse(done.stdout)
    words = (done.stdout + done.stderr).strip().splitlines()
    return {"nsight": rows, "reason": "" if rows else " ".join(words[-3:])[:300] or "ncu said nothing"}


def parse(text: str) -> List[Dict[str, Any]]:
    """Kernels of ncu's CSV, each once: name, launches, and the first launch's metrics."""
    lines = text.splitlines()
    start = next((place for place, line in enumerate(lines) if '"Metric Name"' in line), None)
    if start is None:
        return []
    kernels: Dict[str, Dict[str, Any]] = {}
    launches: Dict[str, set[str]] = {}
    for row in csv.DictReader(lines[start:]):
        name = row.get("Kernel Name") or ""
        launches.setdefault(name, set()).add(row.get("ID") or "")
        metrics = kernels.setdefault(name, {})
        value = f"{row.get('Metric Value') or ''} {row.get('Metric Unit') or ''}".strip()
        metrics.setdefault(row.get("Metric Name") or "", value)
    return [
        {"name": name, "launches": len(launches[name]), "metrics": metrics}
        for name, metrics in kernels.items()
    ]
