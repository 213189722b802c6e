"""Compile both kernels to PTX without a GPU, and print as JSON what the PTX asks of global memory.

A program of its own: under TRITON_INTERPRET=1 nothing can be compiled. Usage: offline.py ARCH TYPE CHANNELS.
"""

import json
import re
import sys
from collections import Counter

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from msda_triton.kernels import deformable_attention_backward_kernel, deformable_attention_forward_kernel
from msda_triton.launch import backward_tile, forward_tile

VERSION = tuple(map(int, triton.__version__.split(".")[:2]))
MEMORY = re.compile(r"\b(?:(?:atom|red)(?:\.\w+)*\.global|(?:ld|st)\.global)[\w.:]*")


def aligned(names, signature):
    """What a launch with torch's tensors tells the compiler: pointers are multiples of 16 bytes."""
    pointers = [index for index, name in enumerate(names) if str(signature.get(name)).startswith("*")]
    if VERSION >= (3, 3):
        return {(index,): [["tt.divisibility", 16]] for index in pointers}
    if VERSION >= (3, 2):
        from triton.backends.compiler import AttrsDescriptor

        return AttrsDescriptor.from_dict(
            {"arg_properties": {"tt.divisibility": pointers, "tt.equal_to": []}, "cls": "AttrsDescriptor"}
        )
    from triton.compiler.compiler import AttrsDescriptor

    return AttrsDescriptor(divisible_by_16=set(pointers), equal_to_1=set())


def ptx(kernel, signature, constants, arch, warps):
    """PTX of `kernel`, also assembled by the ptxas in Triton's wheel."""
    signature = {name: signature[name] for name in kernel.arg_names if name in signature}
    attrs = aligned(kernel.arg_names, signature)
    if VERSION >= (3, 3):
        signature = {name: signature.get(name, "constexpr") for name in kernel.arg_names}
        source = ASTSource(fn=kernel, signature=signature, constexprs=constants, attrs=attrs)
    else:
        source = ASTSource(fn=kernel, signature=signature, constants=constants, attrs=attrs)
    return triton.compile(source, target=GPUTarget("cuda", arch, 32), options={"num_warps": warps}).asm["ptx"]


def main(arch, kind, channels):
    double = kind == "fp64"
    data, sums = f"*{kind}", "*fp64" if double else "*fp32"
    signature = {"img_ptr": data, "points_ptr": data, "weights_ptr": data, "shapes_ptr": "*i64"}
    signature.update(I="i32", N="i32")
    constants = {"H": 8, "C": channels, "L": 4, "P": 3, "BORDER": True, "ALIGN_CORNERS": False, "ATEN": False}
    constants.update(WIDE=False, SUM=tl.float64 if double else tl.float32)
    tile = forward_tile(channels)
    tiles = {"BLOCK_N": tile.queries, "BLOCK_C": tile.channels}
    forward = ptx(
        deformable_attention_forward_kernel,
        {**signature, "out_ptr": data},
        {**constants, **tiles},
        arch,
        tile.warps,
    )
    tile = backward_tile(channels)
    tiles = {"BLOCK_N": tile.queries, "BLOCK_C": tile.channels, "SCATTER": True, "GATHER": True}
    gradients = {
        "grad_out_ptr": data,
        "grad_img_ptr": sums,
        "grad_points_ptr": data,
        "grad_weights_ptr": data,
    }
    backward = ptx(
        deformable_attention_backward_kernel,
        {**signature, **gradients},
        {**constants, **tiles},
        arch,
        tile.warps,
    )
    report = {"forward": Counter(MEMORY.findall(forward)), "backward": Counter(MEMORY.findall(backward))}
    print(json.dumps({"triton": triton.__version__, **report}))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
