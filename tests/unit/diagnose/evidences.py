"""Evidence made up for tests: a failure that is one thing and nothing else."""

from repro.diagnose.evidence import Evidence
from repro.diagnose.shots import Shot
from repro.inspect import Derivative, Precision, Probe, Step
from repro.store import Series, Trial
from repro.trial.records import Mode, Outcome

FAILING, PASSING = (3, 5, 8), tuple(range(20, 80))
SERIES = Series(cell="cell", revision="r", test="test_it", mode=Mode.SEEDS)


def comparison(error=2.0, *, ratio=20.0, nan=0, passed=False, index=0):
    return {
        **{"index": index, "passed": passed, "max_abs": error, "max_rel": error, "ratio": ratio},
        **{"nan": [nan, 0], "mismatched": int(not passed), "mismatched_at": "a" if not passed else ""},
    }


def shot(seed, *, failed=True, error=2.0, order=0, touched=None, drawn=(), nan=0, ratio=20.0):
    return Shot(
        seed=seed,
        order=order,
        outcome=Outcome.FAILED if failed else Outcome.PASSED,
        comparisons=[comparison(error, ratio=ratio, nan=nan, passed=not failed)],
        touched=touched or {},
        drawn=drawn,
    )


def recorded(seed, ratio=20.0):
    return Trial(
        **{"series": SERIES, "seed": seed, "repetition": 0, "outcome": Outcome.FAILED, "seconds": 0.1},
        **{"time": 0.0, "signature_key": "k", "signature": {}, "message": "no", "block": "b", "line": 1},
        comparisons=[comparison(ratio=ratio)],
    )


def switched(name, *, failed, error=2.0, touched=1, nan=0):
    """Eight runs with an intervention."""
    return {name: [shot(3, failed=failed, error=error, touched={name: touched}, nan=nan) for _ in range(8)]}


def element(**fields):
    usual = {"comparison": 0, "element": (1,), "actual": 1.0, "expected": 3.0, "truth": 3.0}
    return Precision(**{**usual, "actual_ulp": 3.0, "expected_ulp": 1.0, **fields})


def derivative(**fields):
    usual = {"comparison": 0, "element": (1,), "actual": 1.0, "expected": 3.0, "noise": 1e-4}
    return Derivative(**{**usual, **fields})


def step(n=0, op="aten.mul.Tensor", low=-1.0, high=1.0, **fields):
    return Step(n=n, op=op, min=low, max=high, **fields)


def look(precisions=(), derivatives=(), steps=()):
    return {seed: Probe(precisions=precisions, derivatives=derivatives, steps=steps) for seed in FAILING}


def evidence(**changes):
    """A failure that is a function of its inputs, goes away in float64, and has no cause that is known."""
    usual = {
        **{"failed": 12, "trials": 100, "failing": FAILING, "passing": PASSING, "clean_ratio": 0.5},
        "recorded": [recorded(seed) for seed in FAILING],
        "same": {seed: [shot(seed, order=i) for i in range(5)] for seed in FAILING},
        "fresh": [shot(seed) for seed in FAILING],
        "baseline": [shot(3) for _ in range(8)],
        "switched": {
            **switched("float64", failed=False, error=1e-9),
            **switched("zero-fill", failed=True, touched=0),
            **switched("poison", failed=True, touched=0),
            **switched("first-config", failed=True, touched=0),
        },
        "watched": [shot(seed, drawn=[draw(seed / 100)]) for seed in FAILING]
        + [shot(seed, failed=False, drawn=[draw((seed * 37 % 100) / 100)]) for seed in PASSING],
        "probes": look([element()], steps=[step()]),
    }
    return Evidence(**{**usual, **changes})


def draw(value):
    return {"function": "random.random", "where": "test_x.py:3", "value": value}
