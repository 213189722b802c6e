"""Probes made by hand."""

import json

from repro.inspect.records import Apart, Begin, Derivative, End, Gradcheck, Precision, Probe, Rounding, Step


def step(n, op="aten.mul.Tensor", *, low=-1.0, high=2.0, digest="", **more):
    return Step(n=n, op=op, shape=(4,), dtype="float32", size=4, min=low, max=high, mean_abs=1.0,
                quantiles=(low, 0.0, 0.5, 1.0, high), digest=digest or f"{n}", **more)  # fmt: skip


def probe(*steps, precisions=(), derivatives=(), gradchecks=(), **end):
    ended = End(**{"outcome": "FAILED", "original": "FAILED", "steps": len(steps), **end})
    return Probe(
        steps=steps, precisions=precisions, derivatives=derivatives, gradchecks=gradchecks,
        begin=Begin(seed=7), end=ended,
    )  # fmt: skip


def write(path, *events):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(event) + "\n" for event in events))


__all__ = ["Apart", "Derivative", "Gradcheck", "Precision", "Rounding", "probe", "step", "write"]
