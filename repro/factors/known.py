"""The environment variables that are varied, and where each can make a difference."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from repro.cells import Cell

NAMED = "named in the matrix"


class Needs(StrEnum):
    """What must be there for a variable to matter at all."""

    NOTHING = ""
    GPU = "gpu"
    COMPILER = "compiler"
    """Kernels that are compiled, not interpreted."""
    TWO_GPUS = "two gpus"


@dataclass(frozen=True, kw_only=True)
class Factor:
    """Variables that are set together, or left out.

    Args:
        env: variables and values.
        what: what they change, for a person.
        needs: what must be there.
        usual: whether it is tried unless others are named.
    """

    env: tuple[tuple[str, str], ...]
    what: str
    needs: Needs = Needs.NOTHING
    usual: bool = True

    @property
    def name(self) -> str:
        """`NAME=value`, several with spaces between them."""
        return " ".join(f"{name}={value}" for name, value in self.env)


def _one(name: str, value: str, what: str, needs: Needs, *, usual: bool = True) -> Factor:
    return Factor(env=((name, value),), what=what, needs=needs, usual=usual)


FACTORS = (
    _one("NVIDIA_TF32_OVERRIDE", "0", "TF32 off in NVIDIA's libraries, whatever the test asks", Needs.GPU),
    _one("NVIDIA_TF32_OVERRIDE", "1", "TF32 on in NVIDIA's libraries", Needs.GPU),
    _one("TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "1", "torch.backends.cuda.matmul.allow_tf32 on", Needs.GPU),
    _one("TRITON_DEFAULT_FP_FUSION", "0", "no contraction to fused multiply-adds", Needs.COMPILER),
    _one("DISABLE_PTXAS_OPT", "1", "ptxas without optimisation", Needs.COMPILER),
    _one("CUBLAS_WORKSPACE_CONFIG", ":4096:8", "cuBLAS with a fixed workspace: deterministic", Needs.GPU),
    _one("CUDA_LAUNCH_BLOCKING", "1", "each kernel ends before the next begins", Needs.GPU),
    _one("CUDA_VISIBLE_DEVICES", "1", "the second GPU in place of the first", Needs.TWO_GPUS),
    _one("PYTHONHASHSEED", "0", "a fixed order of sets and of hashes", Needs.NOTHING),
    _one("TRITON_INTERPRET", "1", "kernels interpreted in place of compiled: slow", Needs.GPU, usual=False),
)
"""Sources: NVIDIA's cuBLAS manual (reproducibility, TF32), torch's notes on CUDA semantics and on
reproducibility, and the variables that Triton reads (its README)."""


@dataclass(frozen=True, kw_only=True)
class Host:
    """What the machine has, as far as a factor needs it.

    Args:
        gpus: GPUs that trials may use.
        engine: name of the engine.
    """

    gpus: int
    engine: str


def known_factors(cells: Iterable[Cell]) -> list[Factor]:
    """Every factor: the kit's own, and the environments that the matrix names."""
    named = {cell.env: None for cell in cells if cell.env}
    own = {factor.env for factor in FACTORS}
    more = [Factor(env=env, what=NAMED) for env in named if env not in own]
    return [*FACTORS, *more]


def chosen(factors: Sequence[Factor], names: Sequence[str]) -> list[Factor]:
    """The factors whose text begins with one of the names, or which set a variable of that name."""
    if not names:
        return [factor for factor in factors if factor.usual]
    return [
        factor for factor in factors if any(factor.name == name or name in dict(factor.env) for name in names)
    ]


def why_not(factor: Factor, cell: Cell, host: Host) -> str:
    """Why a factor cannot be tried in a cell here; "" if it can."""
    if set(factor.env) <= set(cell.env):
        return "the cell has it already"
    on_gpu = cell.on_gpu and host.gpus > 0
    if factor.needs is Needs.NOTHING:
        return ""
    if not on_gpu:
        return "there is no GPU, so that nothing reads it"
    if factor.needs is Needs.COMPILER and _interprets(dict(cell.env)):
        return "kernels are interpreted, not compiled"
    if factor.needs is Needs.TWO_GPUS and host.gpus < 2:
        return "there is one GPU, and trials see it alone"
    if factor.needs is Needs.TWO_GPUS and host.engine == "docker":
        return "a container is given one GPU, and sees no other"
    return ""


def _interprets(env: Mapping[str, str]) -> bool:
    return env.get("TRITON_INTERPRET", "0") not in ("", "0")
