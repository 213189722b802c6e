"""When to stop, and what may be said then."""

from __future__ import annotations

import random

import pytest

from repro.stats import Method, Reason, Stopping, wilson

RULE = Stopping(most=1000, least=20, half_width=0.05)


@pytest.mark.parametrize(
    ("rule", "outcomes", "reason"),
    [
        (RULE, {"failed": 0, "passed": 0}, Reason.TOO_FEW),
        (RULE, {"failed": 0, "passed": 19}, Reason.TOO_FEW),
        (RULE, {"failed": 10, "passed": 10}, Reason.WIDE),
        (RULE, {"failed": 0, "passed": 100}, Reason.NARROW),
        (RULE, {"failed": 500, "passed": 500}, Reason.ALL_RUN),
        (RULE, {"failed": 1, "passed": 9, "others": 990}, Reason.ALL_RUN),
        (RULE, {"failed": 0, "passed": 0, "others": 9}, Reason.TOO_FEW),
        (RULE, {"failed": 0, "passed": 0, "others": 10}, Reason.HOPELESS),
        (RULE, {"failed": 1, "passed": 0, "others": 10}, Reason.TOO_FEW),
        (Stopping(most=50), {"failed": 0, "passed": 49}, Reason.TOO_FEW),
        (Stopping(most=50), {"failed": 0, "passed": 50}, Reason.ALL_RUN),
    ],
)
def test_reasons(rule, outcomes, reason):
    decision = rule.decide(**outcomes)
    assert decision.reason is reason
    assert decision.stop == (reason not in (Reason.TOO_FEW, Reason.WIDE))
    assert decision.more == (0 if decision.stop else rule.most - sum(outcomes.values()))
    assert decision.why == reason.value


def test_an_interval_that_was_looked_at_says_so():
    assert RULE.decide(failed=500, passed=500).rate.method is Method.ANYTIME
    assert Stopping(most=50).decide(failed=5, passed=45).rate.method is Method.WILSON


@pytest.mark.parametrize("wrong", [{"most": 0}, {"most": 9, "half_width": 0.0}, {"most": 9, "hopeless": 0}])
def test_senseless_rules(wrong):
    with pytest.raises(ValueError, match=r"sensible|half width"):
        Stopping(**wrong)


@pytest.mark.parametrize("p", [0.003, 0.05, 0.3])
def test_rates_hold_where_the_rule_stopped(p):
    rule = Stopping(most=400, least=20, half_width=0.06)
    rng = random.Random(5)
    held = held_by_half = 0
    for _ in range(150):
        failed = passed = 0
        while not (decision := rule.decide(failed=failed, passed=passed)).stop:
            for _ in range(10):
                failed, passed = (failed + 1, passed) if rng.random() < p else (failed, passed + 1)
        held += p in decision.rate.interval
        held_by_half += p in wilson(failed, failed + passed, 0.5).interval
    assert held >= 150 * 0.95 > held_by_half
