"""Compile the kernels to PTX without a GPU, and print as JSON what the PTX asks of global memory.

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

from msda_triton import kernels
from msda_triton.tiles import Tile, backward_tile, coarse_tile, forward_tile, unrolled

VERSION = tuple(map(int, triton.__version__.split(".")[:2]))
KERNELS = {
    "forward": kernels.deformable_attention_forward_kernel,
    "backward": kernels.deformable_attention_backward_kernel,
    "exact": kernels.deformable_attention_backward_kernel,
    "coarse": kernels.deformable_attention_coarse_kernel,
    "density": kernels.deformable_attention_density_kernel,
    "grid": kernels.deformable_attention_grid_kernel,
    "total": kernels.deformable_attention_total_kernel,
}
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
    return triton.compile(
        source, target=GPUTarget("cuda", arch, 32), options={"num_warps": warps, "num_stages": 1}
    ).asm["ptx"]


def sources(kind, channels):
    """(name, kernel, types of arguments, constants, warps) of every kernel, as a launch would have them."""
    double = kind == "fp64"
    data, sums = f"*{kind}", "*fp64" if double else "*fp32"
    types = dict.fromkeys(("img_ptr", "points_ptr", "weights_ptr", "out_ptr", "grad_out_ptr"), data)
    types |= dict.fromkeys(("grad_points_ptr", "grad_weights_ptr", "largest_ptr", "unit_ptr"), data)
    types |= dict.fromkeys(("sums_ptr", "rest_ptr", "grids_ptr", "unit_ptr", "largest_ptr"), sums)
    types |= {"shapes_ptr": "*i64", "density_ptr": "*i32", "total_ptr": data}
    types |= dict.fromkeys(("I", "N", "PART", "ROWS"), "i32")
    constants = {"H": 8, "C": channels, "L": 4, "P": 3, "BORDER": True, "ALIGN_CORNERS": False, "ATEN": False}
    constants |= {"WIDE": False, "SUM": tl.float64 if double else tl.float32, "UNITS": 2**18, "BLOCK": 256}
    constants |= {"SCATTER": True, "GATHER": True, "SIDE": 8, "TILES": 4, "SMALLER": 2.0**-11}
    constants |= {"DIGITS": 52 if double else 23, "TINY": 2.0**-80}
    constants |= {"UNROLLED": unrolled(constants["P"]), "IN_PLACE": data == sums, "BLOCK_R": 64}
    sizes = 8 if double else 4 if kind == "fp32" else 2
    tiles = (("forward", forward_tile(channels, sizes, True)), ("backward", backward_tile(channels)))
    tiles += (("exact", backward_tile(channels)), ("coarse", coarse_tile(channels)))
    tiles += (("density", Tile(0, 0, 4)), ("grid", Tile(0, 0, 4)), ("total", Tile(0, 32, 4)))
    for name, tile in tiles:
        if name == "coarse" and (double or VERSION < (3, 2)):  # nor does the operator use it there
            continue
        constants["PRECISION"] = {"bf16": "bf16", "fp16": "tf32"}.get(kind, "tf32x3")
        blocks = {"BLOCK_N": tile.queries, "BLOCK_C": tile.channels, "EXACT": name == "exact"}
        yield name, KERNELS[name], types, constants | blocks, tile.warps


def main(arch, kind, channels):
    report = {"triton": triton.__version__}
    for name, kernel, types, constants, warps in sources(kind, channels):
        types = {argument: types[argument] for argument in kernel.arg_names if argument in types}
        constants = {argument: constants[argument] for argument in kernel.arg_names if argument in constants}
        report[name] = Counter(MEMORY.findall(ptx(kernel, types, constants, arch, warps)))
    print(json.dumps(report))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
