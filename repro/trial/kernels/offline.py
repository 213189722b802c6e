"""`python -m repro_trial.kernels.offline LAUNCHES SM`: compile noted launches for a GPU that is not here.

A process of its own: Triton decides at its import whether it interprets. Prints a JSON line for each launch.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any, Dict, List, TextIO, Tuple

from .launches import Note

_WARP = 32
_DEEP = 8
_KEPT = 500


class NotCompiled(Exception):  # noqa: N818
    """A launch cannot be compiled offline; the message says why."""


def main(arguments: List[str]) -> int:
    """Compile each launch of a file; results go to stdout, what modules print to stderr."""
    file, arch = Path(arguments[0]), int(arguments[1])
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for note in json.loads(file.read_text(encoding="utf-8")):
        _tell(out, note["kernel"], _why_not(note, arch))
    return 0


def _why_not(note: Note, arch: int) -> str:
    """Compile a launch; "" or why that failed."""
    try:
        compile_launch(note, arch)
    except Exception as error:
        return f"{type(error).__name__}: {error}".strip()[:_KEPT] if str(error) else type(error).__name__
    return ""


def _tell(out: TextIO, kernel: str, why: str) -> None:
    print(json.dumps({"kernel": kernel, "why": why}), file=out, flush=True)


def compile_launch(note: Note, arch: int) -> Any:
    """Compile one launch as Triton itself would on a GPU; what is made lies in Triton's cache.

    Args:
        note: the launch.
        arch: compute capability without its dot, such as 90.

    Raises:
        NotCompiled: the kernel cannot be found again, or has an argument of a kind that is not known.
    """
    import triton
    from triton.backends.compiler import GPUTarget

    kernel = find_kernel(note)
    types, constants, aligned = specialised(kernel, note["arguments"])
    source = _source(kernel, types, constants, aligned)
    return triton.compile(source, target=GPUTarget("cuda", arch, _WARP), options=note["options"])


def find_kernel(note: Note) -> Any:
    """The kernel of a launch, below whatever wraps it.

    Raises:
        NotCompiled: its module has none of that name.
    """
    module = _module(note["module"], note["file"])
    for value in vars(module).values():
        for _ in range(_DEEP):  # autotuners and heuristics wrap each other
            inner = getattr(value, "fn", None)
            if hasattr(value, "params") and getattr(inner, "__name__", "") == note["kernel"]:
                return value
            value = inner
    raise NotCompiled(f"module {note['module']} has no kernel of that name at its top level")


def _module(name: str, file: str) -> Any:
    if name in sys.modules:
        return sys.modules[name]
    try:
        return importlib.import_module(name)
    except ImportError:
        spec = importlib.util.spec_from_file_location(name, file)
        if spec is None or spec.loader is None:
            raise
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module


def specialised(
    kernel: Any, arguments: Dict[str, Dict[str, Any]]
) -> Tuple[Dict[str, str], Dict[str, Any], List[int]]:
    """Types by name, constants by name, and places of arguments that are multiples of 16.

    Raises:
        NotCompiled: an argument is of a kind that is not known.
    """
    types: Dict[str, str] = {}
    constants: Dict[str, Any] = {}
    aligned: List[int] = []
    for place, param in enumerate(kernel.params):
        told = arguments[param.name]
        if "why" in told:
            raise NotCompiled(f"argument {param.name} is {told['why']}")
        if "type" not in told:
            constants[param.name] = _value(told)
            continue
        stated = "" if told["type"][0] == "*" else str(getattr(param, "annotation_type", "") or "")
        if told.get("one") and not stated and not param.do_not_specialize:
            constants[param.name] = 1
            continue
        types[param.name] = stated or told["type"]
        fixed = param.do_not_specialize or getattr(param, "do_not_specialize_on_alignment", False)
        aligned += [place] if told.get("aligned") and not fixed else []
    return types, constants, aligned


def _value(told: Dict[str, Any]) -> Any:
    if "dtype" in told:
        import triton.language as tl

        return tl.dtype(told["dtype"])
    value = told["constant"]
    return tuple(value) if isinstance(value, list) else value


def _source(kernel: Any, types: Dict[str, str], constants: Dict[str, Any], aligned: List[int]) -> Any:
    """What `triton.compile` takes: Triton renamed the constants in 3.3, and changed the attributes in 3.2."""
    import triton
    from triton.compiler import ASTSource

    version = tuple(int(part) for part in triton.__version__.split(".")[:2])
    if version >= (3, 3):
        signature = {param.name: types.get(param.name, "constexpr") for param in kernel.params}
        attrs: Any = {(place,): [["tt.divisibility", 16]] for place in aligned}
        return ASTSource(fn=kernel, signature=signature, constexprs=constants, attrs=attrs)
    if version >= (3, 2):
        described = {"tt.divisibility": aligned, "tt.equal_to": []}
        module = importlib.import_module("triton.backends.compiler")
        attrs = module.AttrsDescriptor.from_dict({"arg_properties": described, "cls": "AttrsDescriptor"})
    else:
        module = importlib.import_module("triton.compiler.compiler")
        attrs = module.AttrsDescriptor(divisible_by_16=set(aligned), equal_to_1=set())
    return ASTSource(fn=kernel, signature=types, constants=constants, attrs=attrs)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
