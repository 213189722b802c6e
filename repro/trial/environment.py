"""What was really imported, and where it ran: the first line of a block file."""

from __future__ import annotations

import contextlib
import ctypes
import importlib.metadata
import importlib.util
import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, Optional, Tuple

_VARIABLES = re.compile(
    r"TRITON_|TORCH|PYTORCH_|CUDA|CUBLAS_|NVIDIA_TF32_OVERRIDE$|DISABLE_PTXAS_OPT$|PYTHONHASHSEED$|OMP_|MKL_"
)
_CAPABILITY = (75, 76)  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR


def describe() -> Dict[str, Any]:
    """The environment of this process, without names of users and hosts."""
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "platform": f"{platform.system()}-{platform.machine()}",
        "libc": "-".join(platform.libc_ver()),
        "cpus": _cpus(),
        "pytest": _version("pytest"),
        "numpy": _version("numpy"),
        **_torch(),
        **_triton(),
        **_gpu(),
        "interpreter": os.environ.get("TRITON_INTERPRET", "0") not in ("", "0"),
        "imported": [name for name in ("numpy", "torch", "triton") if name in sys.modules],
        "env": variables(),
    }


def variables() -> Dict[str, str]:
    """The environment variables that can change what a kernel computes."""
    home = str(Path.home())
    found = {name: value for name, value in sorted(os.environ.items()) if _VARIABLES.match(name)}
    return {name: value.replace(home, "~") for name, value in found.items()}


def _cpus() -> int:
    with contextlib.suppress(AttributeError):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _version(name: str) -> Optional[str]:
    """The version of a module if it is loaded, else of the installed distribution, else None."""
    loaded = getattr(sys.modules.get(name), "__version__", None)
    if loaded is not None:
        return str(loaded)
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(name)
    return None


def _torch() -> Dict[str, Any]:
    version = getattr(sys.modules.get("torch"), "version", None)
    return {
        "torch": _version("torch"),
        "torch_git": getattr(version, "git_version", None),
        "cuda": getattr(version, "cuda", None),
    }


def _triton() -> Dict[str, Any]:
    path, source = _ptxas()
    return {
        "triton": _version("triton"),
        "ptxas": _ptxas_version(path) if path else None,
        "ptxas_from": source,
    }


def _ptxas() -> Tuple[Optional[Path], Optional[str]]:
    """The assembler that Triton calls: TRITON_PTXAS_PATH, or the one that its wheel brings."""
    named = os.environ.get("TRITON_PTXAS_PATH")
    if named:
        return Path(named), "TRITON_PTXAS_PATH"
    spec = importlib.util.find_spec("triton")
    for folder in (spec and spec.submodule_search_locations) or ():
        for place in ("backends/nvidia/bin/ptxas", "common/../third_party/cuda/bin/ptxas"):
            if (Path(folder) / place).is_file():
                return Path(folder) / place, "bundled"
    return None, None


def _ptxas_version(path: Path) -> Optional[str]:
    try:
        output = subprocess.run(
            [str(path), "--version"], capture_output=True, text=True, timeout=20, check=False
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r"V(\d[\d.]*)|release (\d[\d.]*)", output)
    return (match.group(1) or match.group(2)) if match else None


def _gpu() -> Dict[str, Any]:
    torch: Any = sys.modules.get("torch")
    names = {"driver": _driver(), "gpu": None, "capability": None, "gpus": 0}
    if torch is None or not torch.cuda.is_available():
        return names
    with contextlib.suppress(OSError, AttributeError, ValueError):
        names.update(_first_device(ctypes.CDLL("libcuda.so.1")))
    return names


def _first_device(cuda: Any) -> Dict[str, Any]:
    """Ask the driver itself: torch would create a context, which a test may not want in this process."""
    count, device, value = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    if cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count)) or not count.value:
        raise ValueError("no device")
    name = ctypes.create_string_buffer(256)
    cuda.cuDeviceGet(ctypes.byref(device), 0)
    cuda.cuDeviceGetName(name, len(name), device)
    numbers = []
    for attribute in _CAPABILITY:
        cuda.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
        numbers.append(str(value.value))
    return {"gpu": name.value.decode(), "capability": ".".join(numbers), "gpus": count.value}


def _driver() -> Optional[str]:
    with contextlib.suppress(OSError):
        text = Path("/proc/driver/nvidia/version").read_text(encoding="utf-8")
        match = re.search(r"\s(\d+\.\d+(?:\.\d+)?)\s", text)
        return match.group(1) if match else None
    return None
