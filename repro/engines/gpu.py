"""How a GPU gets into a container."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from docker.types import DeviceRequest, Mount

from repro import ui
from repro.engines.base import GpuMode
from repro.engines.nvidia import GpuHost
from repro.errors import NotReadyError

INSIDE = "/usr/local/nvidia/lib64"
SHARED_NODES = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools")


@dataclass(frozen=True, kw_only=True)
class GpuAccess:
    """What a container is given for its GPU."""

    mode: GpuMode = GpuMode.NONE
    device_requests: tuple[DeviceRequest, ...] = ()
    devices: tuple[str, ...] = ()
    mounts: tuple[Mount, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)


def decide(mode: GpuMode, host: GpuHost, runtimes: Mapping[str, object], cdi_dirs: object) -> GpuMode:
    """Which mode `auto` stands for: the toolkit, CDI, plain devices, or none where there is no GPU."""
    if mode is not GpuMode.AUTO:
        return mode
    if host.nodes or host.toolkit:
        if "nvidia" in runtimes or host.toolkit:
            return GpuMode.TOOLKIT
        if cdi_dirs and host.cdi_names:
            return GpuMode.CDI
        if host.nodes and "libcuda.so.1" in host.libraries:
            return GpuMode.DEVICES
    return GpuMode.NONE


def access(mode: GpuMode, index: int, host: GpuHost) -> GpuAccess:
    """What to hand to a container so that it sees one GPU.

    Raises:
        NotReadyError: the GPU, or what the mode needs, is not on this machine.
    """
    if mode is GpuMode.TOOLKIT:
        request = DeviceRequest(device_ids=[str(index)], capabilities=[["gpu"]])
        environment = {"NVIDIA_DRIVER_CAPABILITIES": "compute,utility"}
        return GpuAccess(mode=mode, device_requests=(request,), environment=environment)
    if mode is GpuMode.CDI:
        request = DeviceRequest(driver="cdi", device_ids=[f"nvidia.com/gpu={index}"])
        return GpuAccess(mode=mode, device_requests=(request,))
    if mode is GpuMode.DEVICES:
        return _plain_devices(index, host)
    raise NotReadyError(
        f"GPU {index} was asked for, and no way to hand one to a container was found",
        why="there is no NVIDIA device node, no container toolkit and no CDI description on this machine"
        if mode is GpuMode.AUTO or not host.nodes
        else "the GPU mode is none",
        next_step="repro doctor shows what is missing; without a GPU, use --profile cpu",
    )


def _plain_devices(index: int, host: GpuHost) -> GpuAccess:
    nodes = host.nodes
    if index >= len(nodes):
        raise NotReadyError(
            f"GPU {index} was asked for, and {host.dev} has {ui.count(len(nodes), 'NVIDIA device node')}",
            why="the driver is not loaded, or this container of your own was not given the GPU",
            next_step="`nvidia-smi` must work here first; without a GPU, use --profile cpu",
        )
    if "libcuda.so.1" not in host.libraries:
        raise NotReadyError(
            "the driver's libraries (libcuda.so.1) were not found",
            why="neither `ldconfig -p` nor LD_LIBRARY_PATH names them",
            next_step="add their folder to LD_LIBRARY_PATH, or install NVIDIA's container toolkit",
        )
    shared = [str(host.dev / name) for name in SHARED_NODES if (host.dev / name).exists()]
    # Triton up to 3.4 links its launchers with -lcuda, which looks for a file without a version in its name.
    libraries = {**host.libraries, "libcuda.so": host.libraries["libcuda.so.1"]}
    mounts = [
        Mount(f"{INSIDE}/{name}", str(path.resolve()), type="bind", read_only=True)
        for name, path in sorted(libraries.items())
    ]
    return GpuAccess(
        mode=GpuMode.DEVICES,
        devices=tuple(f"{node}:{node}:rw" for node in (nodes[index], *shared)),
        mounts=tuple(mounts),
        environment={"LD_LIBRARY_PATH": INSIDE, "TRITON_LIBCUDA_PATH": INSIDE},
    )
