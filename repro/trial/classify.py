"""Sorts a failure into an outcome."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import unittest
from pathlib import Path
from typing import Iterator, Mapping, Optional

import pytest

from .records import Outcome
from .request import Target

_COMPILERS = (
    "triton.compiler",
    "triton.runtime.errors",
    "torch._inductor.exc",
    "torch._dynamo.exc",
)
_COMPILE_MESSAGES = re.compile(
    r"PassManager::run failed|ptxas` failed|Internal Triton PTX codegen error|ptxas fatal"
    r"|failed to translate module to LLVM ?IR"
)
_MEMORY = re.compile(
    r"CUDA out of memory|CUDA error: out of memory|CUBLAS_STATUS_ALLOC_FAILED", re.IGNORECASE
)
_LOST = re.compile(
    r"no CUDA-capable device|GPU is lost|fallen off the bus|uncorrectable ECC"
    r"|CUDA driver initialization failed|CUDA-capable device\(s\) is/are busy"
)
_STICKY = re.compile(
    r"illegal memory access|device-side assert|unspecified launch failure|misaligned address"
    r"|illegal instruction|uncorrectable ECC|invalid program counter|GPU is lost|hardware stack error"
)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
_DENIED = (errno.EACCES, errno.EPERM)
_CACHES = ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
_STORED = re.compile(r"\[Errno (\d+)\] [^:'\"]*(?:: ['\"]([^'\"]*))?")
_BUILDERS = ("ptxas", "gcc", "cc", "clang", "c++", "g++", "nvcc")


def classify(error: BaseException, place: str, signature: Mapping[str, object], target: Target) -> Outcome:
    """The outcome of a trial that raised.

    Args:
        error: what was raised.
        place: "setup", "call" or "teardown".
        signature: where it was raised, as `signature.signature` describes it.
        target: the failure that counts as FAILED.
    """
    if isinstance(error, (pytest.skip.Exception, unittest.SkipTest)):
        return Outcome.SKIPPED
    causes = list(chain(error))
    if any(_is_infra(cause) for cause in causes):
        return Outcome.INFRA
    if any(is_compile_error(cause) for cause in causes):
        return Outcome.COMPILE_ERROR
    if place == "call" and _is_target(error, signature, target):
        return Outcome.FAILED
    return Outcome.FAILED_OTHERWISE


def chain(error: Optional[BaseException]) -> Iterator[BaseException]:
    """The error and what it was raised from, nearest first."""
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def is_compile_error(error: BaseException) -> bool:
    """Whether a kernel or a graph could not be compiled."""
    kind = type(error)
    if any((one.__module__ or "").startswith(_COMPILERS) for one in kind.__mro__):
        return True
    if isinstance(error, AssertionError):
        return False
    if isinstance(error, subprocess.CalledProcessError):
        command = error.cmd if isinstance(error.cmd, str) else " ".join(map(str, error.cmd))
        return Path(command.split(" ", 1)[0]).name.startswith(_BUILDERS)
    return bool(_COMPILE_MESSAGES.search(text_of(error))) or _raised_in_triton_compile(error)


def is_sticky(error: BaseException) -> bool:
    """Whether the error leaves the process's CUDA context unusable, so that no later trial counts."""
    return any(_STICKY.search(text_of(cause)) and _from_cuda(cause) for cause in chain(error))


def text_of(error: BaseException) -> str:
    """The error's message, even where making it fails."""
    try:
        return str(error)
    except Exception as broken:
        return f"<message could not be made: {type(broken).__name__}>"


def _from_cuda(error: BaseException) -> bool:
    return type(error).__name__ in ("AcceleratorError", "DeferredCudaCallError") or bool(
        re.search(r"CUDA|Triton Error", text_of(error))
    )


def _is_infra(error: BaseException) -> bool:
    if isinstance(error, AssertionError):
        return False
    text = text_of(error)
    if type(error).__name__ == "OutOfMemoryError" or _MEMORY.search(text) or _LOST.search(text):
        return True
    return (is_compile_error(error) and _could_not_store(error, text)) or _denied_cache(error)


def _could_not_store(error: BaseException, text: str) -> bool:
    """Whether a compiler, however it wraps the error, could not write: that is no fault of the code."""
    found = [(int(number), path) for number, path in _STORED.findall(text)]
    if isinstance(error, OSError):
        found.append((error.errno or 0, str(error.filename or "")))
    return any(number in _FULL or (number in _DENIED and _of_kernel_cache(path)) for number, path in found)


def _denied_cache(error: BaseException) -> bool:
    """Whether a kernel cache cannot be written to: it is asked for outside of compiling, too."""
    if not isinstance(error, OSError) or error.errno not in (*_FULL, *_DENIED):
        return False
    return _of_kernel_cache(str(error.filename or ""))


def _of_kernel_cache(path: str) -> bool:
    """Whether a path lies in a kernel cache, or is a folder on the way to one."""
    folders = [os.environ.get(name, "") for name in _CACHES] + [os.path.expanduser("~/.triton")]  # noqa: PTH111
    within = any(path.startswith(folder) or folder.startswith(path + os.sep) for folder in folders if folder)
    return bool(path) and (within or "/torchinductor_" in path)


def _raised_in_triton_compile(error: BaseException) -> bool:
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_name == "compile" and code.co_filename.endswith("triton/compiler/compiler.py"):
            return True
        trace = trace.tb_next
    return False


def _is_target(error: BaseException, signature: Mapping[str, object], target: Target) -> bool:
    kinds = [
        name for kind in type(error).__mro__ for name in (kind.__name__, f"{kind.__module__}.{kind.__name__}")
    ]
    if isinstance(error, pytest.fail.Exception):
        kinds.append("AssertionError")
    return (
        target.exception in kinds
        and target.comparison in (None, signature.get("comparison"))
        and target.function in ("", signature.get("function"))
        and (not target.message or re.search(target.message, text_of(error)) is not None)
    )
