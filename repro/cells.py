"""Cells: the points of the matrix, and why some points are left out."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One point of the matrix: frozen versions and environment.

    Args:
        python: minor version, such as "3.12".
        torch: release, such as "2.11.0".
        triton: release that runs in the cell.
        cuda: build of torch, such as "cu130", or "cpu".
        pinned_triton: release that torch pins; another `triton` makes the cell a crossed one.
        ptxas: release of `nvidia-cuda-nvcc-cu12` whose ptxas Triton calls, or None for the bundled one.
        env: environment variables, sorted by name.
        packages: further pip requirements that these versions need (such as "numpy<2").
    """

    python: str
    torch: str
    triton: str
    cuda: str
    pinned_triton: str
    ptxas: str | None = None
    env: tuple[tuple[str, str], ...] = ()
    packages: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """Readable and stable: `torch2.11.0-triton3.6.0-cu130-py312`, then ptxas and environment."""
        parts = [f"torch{self.torch}", f"triton{self.triton}", self.cuda, "py" + self.python.replace(".", "")]
        if self.ptxas is not None:
            parts.append(f"ptxas{self.ptxas}")
        parts += [re.sub(r"[^A-Za-z0-9_.=]", "_", f"{name}={value}") for name, value in self.env]
        return "-".join(parts)

    @property
    def crossed(self) -> bool:
        """Whether its triton or ptxas is not the stack's own."""
        return self.triton != self.pinned_triton or self.ptxas is not None

    @property
    def on_gpu(self) -> bool:
        """Whether its torch is a CUDA build; otherwise kernels run under Triton's interpreter."""
        return self.cuda != "cpu"
