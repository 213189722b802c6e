"""Searches whose answer is known: a step, none, a fix, candidates that cannot be tested, a budget."""

import json
import threading
from dataclasses import replace

import pytest
from fake_engine import HANG
from planted import chance, noisy, step

from repro.bisect import Find, sentences, to_json
from repro.errors import NotReadyError

KEYS = [
    *("kind", "first_bad", "low", "high", "confidence", "rate_before", "rate_after", "trials", "builds"),
    "skipped",
]


def text(result):
    return "\n".join(sentences(result))


def test_failing_inputs_lead_to_the_first_candidate_at_which_they_fail(plant):
    search = plant(step(11, 0.0, 0.3))
    result = search.run()
    told = to_json(result)
    assert list(told)[: len(KEYS)] == KEYS
    assert (told["kind"], told["first_bad"], told["low"], told["high"]) == (
        "appears",
        "3.11.0",
        "3.10.0",
        "3.11.0",
    )
    assert told["method"] == "replay"
    assert told["confidence"] == 0.95
    assert told["rate_before"]["failed"] == 0
    assert told["rate_after"]["failed"] > 0
    assert max(told["belief"], key=lambda each: each["probability"])["high"] == "3.11.0"
    assert set(told["rate_after"]) == {"failed", "trials", "rate", "low", "high"}
    modes = [request["mode"] for request in search.engine.requests]
    assert modes.count("replay") <= 10  # one run a candidate, and one more at each side of the boundary
    assert "first fails at triton 3.11.0" in text(result)


@pytest.mark.parametrize("before", [0.0, 0.05])
def test_without_inputs_that_replay_the_rates_decide(plant, before):
    search = plant(noisy(5, before, 0.6))
    told = to_json(search.run())
    assert told["first_bad"] == "3.5.0"
    assert told["kind"] in (("appears",) if before == 0.0 else ("rises", "appears"))
    assert told["method"] == "rates"
    assert any("rates decide" in note for note in told["notes"])


def test_where_no_inputs_are_kept_the_answer_says_so(plant):
    told = to_json(plant(step(5, 0.0, 0.5), keeps=False).run())
    assert told["first_bad"] == "3.5.0"
    assert told["notes"] == ["no failing inputs were kept, so rates decide"]


def test_inputs_that_fail_often_by_chance_do_not_pass_for_steady_ones(plant):
    answers = [plant(noisy(8, 0.2, 0.8)).run(fresh=True).answer for _ in range(10)]
    assert {answer.method for answer in answers} == {"rates"}
    named = [answer.name(answer.first_bad) for answer in answers]
    assert named.count("3.8.0") >= 7, named  # each answer claims 95 %


def test_a_rise_is_told_from_a_first_failure(plant):
    result = plant(step(9, 0.1, 0.6)).run()
    assert result.answer.kind == "rises"
    assert result.answer.name(result.answer.first_bad) == "3.9.0"
    assert "fails more often from triton 3.9.0 on" in text(result)


def test_every_version_fails_with_the_same_inputs(plant):
    result = plant(step(0, 0.0, 0.2), size=6).run()
    told = to_json(result)
    assert told["kind"] == "throughout"
    assert told["first_bad"] is told["low"] is told["high"] is None
    assert told["everywhere"] == {"inputs": 3, "fails": 6, "ran": 6, "same_elements": True}
    assert told["rate_before"] == told["rate_after"]
    assert "Nothing changed" in text(result)
    assert "in all 6 versions that were tried: a change in Triton is not the reason" in text(result)


def test_replays_that_the_ledger_holds_are_not_run_again(plant):
    search = plant(step(0, 0.0, 0.2), size=6)
    first = to_json(search.run())
    begun = len(search.engine.requests)
    again = to_json(search.run())
    assert len(search.engine.requests) == begun
    assert (again["everywhere"], again["notes"]) == (first["everywhere"], first["notes"])
    search.run(fresh=True)
    other = to_json(search.run(find=Find.FIX))  # inputs of the other end, replayed beside the first ones
    assert other["everywhere"] == first["everywhere"]
    assert len(search.engine.requests) > begun


@pytest.mark.parametrize("crowded", ["PASSED", "FAILED_OTHERWISE"])
def test_what_fares_otherwise_beside_others_is_replayed_alone(plant, crowded):
    """Memory that several processes share may not be enough: that is no news of a version."""
    beside = []

    def outcome(number, seed):
        if threading.current_thread() is not threading.main_thread():
            beside.append(number)
            if number == 3:
                return crowded
        return "FAILED" if chance(seed) < 0.2 else "PASSED"

    search = plant(outcome, size=6)
    told = to_json(search.run())
    assert set(beside) == {1, 2, 3, 4}
    assert told["everywhere"] == {"inputs": 3, "fails": 6, "ran": 6, "same_elements": True}
    assert search.said.count("triton 3.3.0: 3 of 3 replayed inputs failed") == 1


def test_an_error_beside_others_ends_them_too(plant):
    def outcome(number, seed):
        if threading.current_thread() is not threading.main_thread():
            if number == 1:
                raise NotReadyError("the engine is gone")
            return HANG
        return "FAILED" if chance(seed) < 0.2 else "PASSED"

    search = plant(outcome, size=6)
    with pytest.raises(NotReadyError, match="gone"):
        search.run()
    assert search.engine.running == set()


def test_the_same_rate_from_other_inputs_is_no_proof_of_the_compilers_innocence(plant):
    def moved(number, seed):
        return "FAILED" if chance(seed, salt="a" if number < 3 else "b") < 0.3 else "PASSED"

    result = plant(moved, size=6).run(confidence=0.9)
    assert result.answer.kind == "throughout"
    assert result.everywhere is None
    assert "not the reason" not in text(result)


def test_inputs_that_begin_to_fail_are_not_taken_for_the_failure(plant):
    """The failure comes at 4; from 10 on other inputs fail, just as often."""

    def moved(number, seed):
        rate = 0.3 if number >= 4 else 0.0
        return "FAILED" if chance(seed, salt="a" if number < 10 else "b") < rate else "PASSED"

    result = plant(moved).run()
    assert result.answer.name(result.answer.first_bad) == "3.4.0"
    assert any("other inputs fail than before" in note for note in result.answer.notes)


def test_what_does_not_fail_is_not_reproduced(plant):
    result = plant(step(99, 0.0, 1.0)).run(trials=60)
    told = to_json(result)
    assert (told["kind"], told["reproduced"]) == ("absent", False)
    assert told["rate_after"]["trials"] >= 60
    assert "Not reproduced: 0 of" in text(result)


@pytest.mark.parametrize("noise", [step, noisy])
def test_the_end_of_a_failure_is_found(plant, noise):
    result = plant(noise(7, 0.5, 0.0)).run(find="fix")
    assert result.answer.kind == "falls"
    assert result.answer.name(result.answer.first_bad) == "3.7.0"


def broken(numbers, outcome, message="CompilationError: at 3:4"):
    def trial(number, seed):
        if number in numbers:
            return {"outcome": "COMPILE_ERROR", "message": message}
        return outcome(number, seed)

    return trial


def test_a_version_that_does_not_compile_is_a_finding_of_its_own(plant):
    result = plant(broken(range(13, 16), step(6, 0.0, 0.4))).run()
    told = to_json(result)
    assert told["first_bad"] == "3.6.0"
    assert told["newest"] == "3.12.0"
    assert "3.13.0" in told["skipped"]
    assert "from triton 3.13.0 on: COMPILE_ERROR, CompilationError: at 3:4" in text(result)


def test_a_change_among_candidates_that_cannot_be_tested_is_a_range(plant):
    result = plant(broken({6, 7, 8}, step(7, 0.0, 0.5))).run()
    told = to_json(result)
    assert told["first_bad"] is None
    assert (told["low"], told["high"]) == ("3.5.0", "3.9.0")
    assert result.answer.decided
    assert "The 3 candidates in between cannot be tested" in text(result)


def test_a_test_that_was_born_on_the_way(plant):
    def born(number, seed):
        outcome = {"outcome": "TEST_MISSING", "message": "the file has no test 'test_it'"}
        return outcome if number < 6 else step(0, 0.0, 0.3)(number, seed)

    result = plant(born).run()
    assert result.answer.kind == "throughout"
    assert result.answer.name(result.answer.oldest) == "3.6.0"
    assert "The oldest triton that has this test is triton 3.6.0; it fails there" in text(result)


def test_nothing_can_be_tested(plant):
    result = plant(broken(range(16), step(1, 0, 1))).run()
    assert result.answer.kind == "inconclusive"
    assert not result.answer.decided


# Budgets, and going on -------------------------------------------------------------------------------------


def test_a_budget_ends_with_what_is_known(plant):
    search = plant(noisy(5, 0.02, 0.3), seconds=1.0)
    result = search.run(budget=120.0)
    assert not result.answer.final
    assert result.answer.first_bad is None
    assert search.engine.clock.now < 240
    assert any("of the budget are left" in line for line in search.said)


def test_the_cost_is_told_before_it_is_spent(plant):
    search = plant(step(5, 0.0, 0.4))
    search.run()
    said = next(index for index, line in enumerate(search.said) if "to prepare and" in line)
    assert not any("now: after" in line for line in search.said[:said])


def test_the_same_search_again_costs_nothing_much(plant):
    search = plant(broken(range(13, 16), step(11, 0.0, 0.4)))
    first, requests = search.run(), len(search.engine.requests)
    second = search.run()
    assert second.answer.first_bad == first.answer.first_bad
    assert len(search.engine.requests) - requests <= requests / 2 + 3
    again = [request["cell"] for request in search.engine.requests[requests:]]
    assert not any("triton3.13" in cell or "triton3.14" in cell for cell in again)


def test_a_fresh_search_leaves_the_ledger_out_of_account(plant):
    search = plant(noisy(99, 0.0, 0.0))
    search.run(trials=50)
    search.outcome = step(3, 0.0, 0.5)
    assert search.run(fresh=True).answer.kind == "appears"


def test_candidates_have_seeds_of_their_own(plant):
    search = plant(noisy(5, 0.0, 0.5))
    search.run()
    seeds = {}
    for request in search.engine.requests:
        if request["mode"] == "seeds":
            seeds.setdefault(request["cell"], []).extend(request["seeds"])
    assert len(seeds) > 4
    for mine in seeds.values():
        assert len(mine) == len(set(mine))
    pairs = [(a, b) for a in seeds for b in seeds if a < b]
    assert not any(set(seeds[a]) & set(seeds[b]) for a, b in pairs)


def test_the_answer_is_kept_for_reports(plant):
    search = plant(step(11, 0.0, 0.4))
    told = to_json(search.run())
    kept = [json.loads(path.read_text()) for path in (search.home / "searches").glob("*.json")]
    assert [each["answer"] for each in kept] == [json.loads(json.dumps(told))]
    assert kept[0]["about"] == {"planted": True, "axis": "triton", "test": "test_it"}


def test_an_end_that_fails_where_it_should_not(plant):
    result = plant(noisy(8, 0.5, 0.0)).run(trials=40)
    assert not result.answer.reproduced
    assert "turn the question round with --find" in text(result)


def test_a_candidate_whose_copy_is_not_whole_is_not_called_broken_and_tried_again(plant):
    """The user can provide what is missing: a submodule, a file of Git LFS."""
    search = plant(
        lambda number, seed: "FAILED_OTHERWISE" if number == 15 else step(11, 0.0, 1.0)(number, seed)
    )
    whole = search.line
    line = replace(whole, subject=replace(whole.subject, notes=("submodule lib is not copied: no copy",)))
    search.run(line=line)
    (told,) = [said for said in search.said if "triton 3.15.0: cannot be tested" in said]
    assert told.endswith("(its copy is not whole: submodule lib is not copied: no copy)")
    asked = len(search.engine.requests)
    search.said.clear()
    search.outcome = step(11, 0.0, 1.0)
    search.run(line=whole)
    assert len(search.engine.requests) > asked
    assert not any("3.15.0: cannot be tested" in said for said in search.said)
