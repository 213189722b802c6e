"""Reports with every section filled, made without a ledger."""

from __future__ import annotations

from dataclasses import replace

from repro.report.model import Cause, Diagnosis, Proof, Report, Search, Tried

SEARCH = Search(
    axis="triton",
    sentence="It first fails at triton 3.6.0: 0 of 44 (0 %; 0 % to 11.7 %) before, 5 of 20 from there on.",
    decided=True,
    changed=True,
    link="https://github.com/triton-lang/triton/compare/v3.5.1...v3.6.0",
    tried=[
        Tried(label="3.5.1", failed=0, trials=44),
        Tried(label="3.6.0", failed=5, trials=20, first_bad=True),
    ],
    untestable=["3.5.0: BUILD_FAILED, no wheel"],
    details=["Searched by failure rates: 4 candidates, 3.4.0 to 3.6.0; 64 trials, 3 builds."],
    belief=[("after 3.5.1, not after 3.6.0", 0.97), ("after 3.4.0, not after 3.5.1", 0.03)],
)
DIAGNOSIS = Diagnosis(
    causes=[
        Cause(
            name="a jump of the derivative",
            verdict="supported",
            evidence=[
                "12 of 12 elements lie within 1 ulp of a whole coordinate",
                "both one-sided derivatives fit",
            ],
            share=1.0,
        ),
        Cause(name="a race", verdict="ruled out", evidence=["40 of 40 repetitions fail alike"]),
        Cause(name="Triton's compiler", verdict="untested", evidence=["one cell alone"]),
    ],
    minimized=["B=1 N=1 H=1 P=1", "levels=((64, 64),)"],
    conclusion=["Both sides are right: the derivative has two values there."],
    predicted_rate=0.082,
    offsets=[-0.5, 0.25, 1.0],
    advice=["Keep sampling points away from whole coordinates."],
    experiments=["replayed 4 inputs 10 times"],
    about="Weighed in `torch2.11.0-triton3.6.0-cu130-py312`.",
)
PROOF = Proof(
    script='"""It fails."""\n\nimport sys\n\nsys.exit(1)\n',
    cell="torch2.11.0-triton3.6.0-cu130-py312",
    gpu="NVIDIA H200",
    status=1,
    printed="seed 1: AssertionError at torch.testing.assert_close(a, b)\n",
    seconds=12.0,
)


def filled(report: Report) -> Report:
    """A report with a search, a diagnosis and a script as well."""
    return replace(report, searches=[SEARCH], diagnosis=DIAGNOSIS, proof=PROOF, origin="kernels", kit="1.2.3")
