"""The files that Triton leaves in its cache for each kernel that it compiled."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from repro.trial.plain import plain_size, read_plain
from repro.ui import shown

STAGES = ("ttir", "ttgir", "llir", "ptx", "sass")
"""In the order in which one is made from the other."""

_METADATA = ("num_warps", "num_ctas", "num_stages", "maxnreg", "enable_fp_fusion", "shared", "triton_version")


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """One compiled kernel.

    Args:
        name: of its function.
        stages: text by stage, of those that are there.
        metadata: what Triton wrote beside it: warps, stages, shared memory, target.
        folder: where it lies.
        without_text: whether there is machine code that nothing turned into text.
    """

    name: str
    stages: Mapping[str, str]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    folder: Path = Path()
    without_text: bool = False

    @property
    def facts(self) -> dict[str, Any]:
        """What of the metadata a person asks for first."""
        target = self.metadata.get("target") or {}
        arch = {"arch": target.get("arch")} if isinstance(target, dict) else {}
        return {**{name: self.metadata[name] for name in _METADATA if name in self.metadata}, **arch}


def collect(cache: Path, *, disassembler: str | None = None) -> list[Kernel]:
    """Every kernel below a folder of Triton's cache, by name and then by place; other files are passed over.

    Args:
        cache: TRITON_CACHE_DIR, or a folder above it.
        disassembler: an nvdisasm, for machine code that has no text yet; None to leave it. It runs here,
            outside of any container, on whatever the trial left there.
    """
    found = [_read(path, disassembler) for path in sorted(cache.rglob("*.ttir"))]
    return sorted(found, key=lambda kernel: (kernel.name, str(kernel.folder)))


def find_disassembler() -> str | None:
    """An nvdisasm on PATH, or None."""
    return shutil.which("nvdisasm")


def _read(ttir: Path, disassembler: str | None) -> Kernel:
    texts = {stage: read_plain(ttir.with_suffix(f".{stage}")) for stage in STAGES}
    stages = {stage: shown(text.decode("utf-8", "replace")) for stage, text in texts.items() if text}
    cubin = ttir.with_suffix(".cubin")
    coded = plain_size(cubin) > 0
    if "sass" not in stages and disassembler is not None and coded:
        text = disassemble(cubin, disassembler)
        stages |= {"sass": text} if text else {}
    return Kernel(
        name=ttir.stem,
        stages=stages,
        metadata=_metadata(ttir),
        folder=ttir.parent,
        without_text=coded and "sass" not in stages,
    )


def disassemble(cubin: Path, disassembler: str) -> str:
    """The machine code as text, or "" where the tool cannot read it."""
    try:
        done = subprocess.run(
            [disassembler, "-c", str(cubin)], capture_output=True, text=True, timeout=120, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout if done.returncode == 0 else ""


def _metadata(ttir: Path) -> dict[str, Any]:
    try:
        held = json.loads(read_plain(ttir.with_suffix(".json")))
    except ValueError:
        return {}
    return held if isinstance(held, dict) else {}
