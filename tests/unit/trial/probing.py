"""Probes a function in this process, as a block probes a test."""

import contextlib
import functools

from repro.inspect.records import read
from repro.trial.comparing.comparisons import Compared, Comparisons
from repro.trial.comparing.measure_torch import measure_close
from repro.trial.probe.calls import Enough
from repro.trial.probe.file import ProbeFile
from repro.trial.probe.hooks import loaded
from repro.trial.probe.trial import begin, look_into
from repro.trial.request import ProbeRequest


def look(torch, path, function, *, predicate=False, **options):
    """Probe `function`, which takes a measured `assert_close` or `allclose`; what `probe.jsonl` says."""
    loaded("torch")
    comparisons = Comparisons()
    measure = functools.partial(measure_close, torch)
    name, original = "torch.testing.assert_close", torch.testing.assert_close
    if predicate:
        name, original = "torch.allclose", torch.allclose
    compared = Compared(name, ("actual", "expected"), measure, {"equal_nan": False}, predicate=predicate)
    close = comparisons.wrap(original, compared)

    def run(inside):
        torch.manual_seed(1)
        comparisons.begin()
        message = ""
        try:
            with inside, contextlib.suppress(Enough):
                function(close)
        except AssertionError as error:
            message = str(error) or "failed"
        comparisons.end()
        return {"outcome": "FAILED" if message else "PASSED", "message": message}

    request = ProbeRequest(**options)
    file = ProbeFile(path, request)
    begin(file, 1, "seeds")
    look_into(run, comparisons, file, request, run(contextlib.nullcontext()))
    return read(path)
