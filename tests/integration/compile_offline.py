"""Compile one kernel without a GPU, in several ways, each into a cache of its own. Usage: FOLDER.

A program of its own: Triton decides at its import whether it interprets.
"""

import os
import sys
from pathlib import Path

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def scale_kernel(x, y, out, n, FACTOR: tl.constexpr, BLOCK: tl.constexpr):  # noqa: N803
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    a = tl.load(x + at, mask=mask, other=0.0)
    b = tl.load(y + at, mask=mask, other=0.0)
    tl.atomic_add(out + at, a * b * FACTOR + a, mask=mask, sem="relaxed")


def compile_into(folder, arch, block, **options):
    os.environ["TRITON_CACHE_DIR"] = str(folder)
    types = {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32"}
    constants = {"FACTOR": 2.5, "BLOCK": block}
    signature = {**types, **dict.fromkeys(constants, "constexpr")}
    source = ASTSource(fn=scale_kernel, signature=signature, constexprs=constants)
    triton.compile(source, target=GPUTarget("cuda", arch, 32), options={"num_warps": 4, **options})


if __name__ == "__main__":
    root = Path(sys.argv[1])
    compile_into(root / "one", 80, 256)
    compile_into(root / "again", 80, 256)
    compile_into(root / "apart", 80, 256, enable_fp_fusion=False)
    compile_into(root / "larger", 80, 512)
