"""Engines: ways to make a cell and to run trials in it. See `repro.engines.base` for the protocol."""

from repro.engines.base import Engine, GpuMode
from repro.engines.nvidia import gpu_count, gpu_model, has_gpu
from repro.engines.select import create, describe

__all__ = ["Engine", "GpuMode", "create", "describe", "gpu_count", "gpu_model", "has_gpu"]
