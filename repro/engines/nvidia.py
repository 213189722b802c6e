"""Whether this machine has an NVIDIA GPU, and where its driver lives; without torch."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

DRIVER_LIBRARIES = (
    "libcuda.so.1",
    "libnvidia-ml.so.1",
    "libnvidia-ptxjitcompiler.so.1",
    "libnvidia-nvvm.so.4",
    "libnvidia-gpucomp.so",
    "libcudadebugger.so.1",
)
"""What belongs to the driver rather than to torch's wheels; newer drivers split parts of the compiler off."""

CDI_FOLDERS = (Path("/etc/cdi"), Path("/var/run/cdi"))


@dataclass(frozen=True, kw_only=True)
class GpuHost:
    """The parts of a machine that decide how a GPU gets into a container; a test draws its own.

    Args:
        dev: folder of device nodes.
        cdi: folders with device descriptions of the Container Device Interface.
        libraries: the driver's libraries, by the name that programs ask the loader for.
        toolkit: whether NVIDIA's container toolkit is installed.
    """

    dev: Path = Path("/dev")
    cdi: tuple[Path, ...] = CDI_FOLDERS
    libraries: Mapping[str, Path] = field(default_factory=dict)
    toolkit: bool = False

    @classmethod
    def here(cls) -> GpuHost:
        """This machine."""
        names = ("nvidia-container-runtime-hook", "nvidia-container-cli", "nvidia-container-runtime")
        return cls(libraries=driver_libraries(), toolkit=any(shutil.which(name) for name in names))

    @property
    def nodes(self) -> list[str]:
        """One device node a GPU, in the order of their numbers."""
        found = [path for path in self.dev.glob("nvidia[0-9]*") if path.name[6:].isdigit()]
        return [str(path) for path in sorted(found, key=lambda path: int(path.name[6:]))]

    @property
    def cdi_names(self) -> bool:
        """Whether a description names NVIDIA's GPUs."""
        files = [file for folder in self.cdi for file in (*folder.glob("*.yaml"), *folder.glob("*.json"))]
        return any("nvidia.com/gpu" in file.read_text(encoding="utf-8", errors="replace") for file in files)


def has_gpu() -> bool:
    """Whether this machine has an NVIDIA GPU that its driver answers for."""
    return gpu_count() > 0


@lru_cache(maxsize=1)
def gpu_count() -> int:
    """How many GPUs the driver counts, by NVML; device nodes where NVML is not there."""
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
        count = ctypes.c_uint()
        if nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0:
            return int(count.value)
    except (OSError, AttributeError):
        pass
    host = GpuHost.here()
    return len(host.nodes) if "libcuda.so.1" in host.libraries else 0


def gpu_model(index: int = 0) -> str:
    """A GPU's model as the driver names it, such as "NVIDIA H100 80GB HBM3"; "" where it does not say."""
    name = ctypes.create_string_buffer(96)
    device = ctypes.c_void_p()
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
        known = (
            nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(device)) == 0
        )
        if known and nvml.nvmlDeviceGetName(device, name, len(name)) == 0:
            return name.value.decode()
    except (OSError, AttributeError):
        pass
    return ""


def driver_version() -> str | None:
    """Version of the kernel's NVIDIA driver, or None."""
    try:
        text = Path("/proc/driver/nvidia/version").read_text(encoding="utf-8")
    except OSError:
        return None
    found = re.search(r"Kernel Module.*?(\d+\.\d+(?:\.\d+)?)", text)
    return found.group(1) if found else None


@lru_cache(maxsize=1)
def driver_libraries() -> dict[str, Path]:
    """The driver's libraries as the loader finds them here."""
    path = f"{os.environ.get('PATH', '')}:/sbin:/usr/sbin"
    try:
        asked = subprocess.run(
            ["ldconfig", "-p"], capture_output=True, text=True, timeout=10, env={**os.environ, "PATH": path}
        )
        listed = dict(re.findall(r"^\s*(\S+) \([^)]*x86-64[^)]*\) => (\S+)$", asked.stdout, re.MULTILINE))
        listed |= dict(re.findall(r"^\s*(\S+) \([^)]*AArch64[^)]*\) => (\S+)$", asked.stdout, re.MULTILINE))
    except (OSError, subprocess.SubprocessError):
        listed = {}
    folders = [Path(folder) for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder]
    found: dict[str, Path] = {}
    for name in DRIVER_LIBRARIES:
        for folder in folders:
            if (folder / name).exists():
                listed.setdefault(name, str(folder / name))
        if name in listed:
            found[name] = Path(listed[name])
    if "libcuda.so.1" in found:
        found |= _beside(found["libcuda.so.1"])
    return found


def _beside(libcuda: Path) -> dict[str, Path]:
    """Libraries beside libcuda with the driver's version in their name, which the loader does not list."""
    version = libcuda.resolve().name.partition(".so.")[2]
    names = [path.name for path in libcuda.parent.glob(f"libnvidia-*.so.{version}")]
    parts = ("gpucomp", "nvvm", "ptxjitcompiler", "ml")
    return {name: libcuda.parent / name for name in names if name.split(".")[0][10:] in parts}
