"""Which errors are whose fault."""

import subprocess

import pytest

from repro.trial.classify import chain, classify, is_sticky
from repro.trial.records import Outcome
from repro.trial.request import Target


def made(name, module, base=Exception):
    return type(name, (base,), {"__module__": module})


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (made("PTXASError", "triton.runtime.errors")("bad"), Outcome.COMPILE_ERROR),
        (made("CompileTimeAssertionFailure", "triton.compiler.errors")("bad"), Outcome.COMPILE_ERROR),
        (made("BackendCompilerFailed", "torch._dynamo.exc")("bad"), Outcome.COMPILE_ERROR),
        (made("InductorError", "torch._inductor.exc")("bad"), Outcome.COMPILE_ERROR),
        (
            made("Derived", "somewhere", made("CompilationError", "triton.compiler.errors"))(),
            Outcome.COMPILE_ERROR,
        ),
        (RuntimeError("PassManager::run failed"), Outcome.COMPILE_ERROR),
        (subprocess.CalledProcessError(1, ["/usr/bin/gcc", "x.c"]), Outcome.COMPILE_ERROR),
        (subprocess.CalledProcessError(1, "ls -l"), Outcome.FAILED_OTHERWISE),
        (RuntimeError("CUDA error: out of memory"), Outcome.INFRA),
        (RuntimeError("CUBLAS_STATUS_ALLOC_FAILED when calling"), Outcome.INFRA),
        (RuntimeError("no CUDA-capable device is detected"), Outcome.INFRA),
        (AssertionError("the message quotes: CUDA out of memory"), Outcome.FAILED),
        (AssertionError("PassManager::run failed"), Outcome.FAILED),
        (MemoryError(), Outcome.FAILED_OTHERWISE),
        (pytest.fail.Exception("x"), Outcome.FAILED),
    ],
)
def test_classify(error, outcome):
    assert classify(error, "call", {}, Target()) is outcome


def test_only_the_call_can_fail_as_looked_for():
    assert classify(AssertionError(), "setup", {}, Target()) is Outcome.FAILED_OTHERWISE


def test_what_an_error_was_raised_from():
    first, second = ValueError(), KeyError()
    first.__context__, second.__cause__ = second, first
    assert list(chain(second)) == [second, first]


def test_an_error_that_cannot_be_shown():
    class ShyError(Exception):
        def __str__(self):
            raise RuntimeError

    assert classify(ShyError(), "call", {}, Target()) is Outcome.FAILED_OTHERWISE


def test_sticky_errors_come_from_cuda():
    assert is_sticky(RuntimeError("CUDA error: device-side assert triggered"))
    assert is_sticky(RuntimeError("Triton Error [CUDA]: an illegal memory access was encountered"))
    assert not is_sticky(RuntimeError("misaligned address"))


def compiling(error):
    """The error, as raised in the midst of Triton's compile."""
    names = {}
    exec(compile("def compile(error): raise error", "/x/triton/compiler/compiler.py", "exec"), names)
    try:
        names["compile"](error)
    except type(error) as raised:
        return raised


CACHE = "/cache/triton"
WRAPPED = made("InductorError", "torch._inductor.exc")


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (compiling(PermissionError(13, "Permission denied", f"{CACHE}/KEY")), Outcome.INFRA),
        (compiling(PermissionError(13, "Permission denied", "/cache")), Outcome.INFRA),
        (compiling(OSError(28, "No space left on device")), Outcome.INFRA),
        (compiling(OSError(30, "Read-only file system", "/tmp/kernel.ptx")), Outcome.INFRA),
        (PermissionError(13, "Permission denied", f"{CACHE}/KEY"), Outcome.INFRA),
        (OSError(28, "No space left on device", f"{CACHE}/KEY/kernel.ttir"), Outcome.INFRA),
        (WRAPPED(f"PermissionError: [Errno 13] Permission denied: '{CACHE}/KEY'"), Outcome.INFRA),
        (WRAPPED("OSError: [Errno 28] No space left on device"), Outcome.INFRA),
        (compiling(PermissionError(13, "Permission denied", "/usr/bin/ptxas")), Outcome.COMPILE_ERROR),
        (compiling(FileNotFoundError(2, "No such file", f"{CACHE}/KEY")), Outcome.COMPILE_ERROR),
        (WRAPPED("PermissionError: [Errno 13] Permission denied: '/data'"), Outcome.COMPILE_ERROR),
        (PermissionError(13, "Permission denied", "/data"), Outcome.FAILED_OTHERWISE),
        (OSError(28, "No space left on device", "/data/out"), Outcome.FAILED_OTHERWISE),
        (AssertionError(f"[Errno 13] Permission denied: '{CACHE}/KEY'"), Outcome.FAILED),
    ],
)
def test_a_cache_that_cannot_be_written_is_no_fault_of_the_code(monkeypatch, error, outcome):
    monkeypatch.setenv("TRITON_CACHE_DIR", CACHE)
    assert classify(error, "call", {}, Target()) is outcome
