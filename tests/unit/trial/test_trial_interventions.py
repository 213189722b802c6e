"""What is switched around a trial, and what is noted of its draws."""

import textwrap

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.slow


@pytest.fixture
def told(run_block):
    def run(code, **request):
        text = "import random\nimport torch\n" + textwrap.dedent(code)
        done = run_block({"test_subject.py": text}, seeds=[7, 8], **request)
        assert done.status == 0, done.stderr
        return done

    return run


READS_UNWRITTEN_MEMORY = """
    def test_it():
        x = torch.empty(8)
        x[:7] = 1.0
        assert bool(torch.isnan(x[7])) is {nan}, x
        assert bool(x[7] == 0) is {zero}, x
"""


@pytest.mark.parametrize(("name", "nan", "zero"), [("poison", True, False), ("zero-fill", False, True)])
def test_memory_that_nobody_wrote(told, name, nan, zero):
    done = told(READS_UNWRITTEN_MEMORY.format(nan=nan, zero=zero), interventions=[[name]])
    assert done.outcomes == ["PASSED", "PASSED"]
    assert [event["touched"][name] for event in done.of("circumstances")] == [1, 1]


def test_integers_are_poisoned_too(told):
    done = told(
        "def test_it():\n assert int(torch.empty(1, dtype=torch.int32)) == 2**31 - 1",
        interventions=[["poison"]],
    )
    assert done.outcomes == ["PASSED", "PASSED"]


WIDE = """
    def test_it():
        x, y = torch.rand(5), torch.rand_like(torch.rand(3))
        z = torch.empty(4, dtype=torch.float32).uniform_()
        for each in (x, y, z, torch.zeros(2), x.float(), x.to(torch.float32), torch.tensor([0.5])):
            assert each.dtype == torch.float64
        for each in (x, y, z):
            assert torch.equal(each, each.to(torch.float32).to(torch.float64).clone())
        assert torch.rand(2, dtype=torch.float16).dtype == torch.float16
        print(x.tolist())
        raise ValueError(repr(x.tolist()))
"""
NARROW = """
    def test_it():
        raise ValueError(repr(torch.rand(5).tolist()))
"""


def test_a_test_in_float64_draws_the_same_numbers(told):
    wide = told(WIDE, interventions=[["float64"]])
    narrow = told(NARROW)
    assert [event["message"] for event in wide.of("end")] == [event["message"] for event in narrow.of("end")]
    assert all(event["touched"]["float64"] for event in wide.of("circumstances"))


def test_settings_are_put_back_after_each_trial(told):
    code = """
        SEEN = []
        def test_it():
            SEEN.append((torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()))
            assert SEEN[-1] == (1, True)
        def test_after():
            assert torch.get_default_dtype() == torch.float32
    """
    names = ["one-thread", "deterministic", "float64", "zero-fill", "first-config"]
    assert told(code, interventions=[names]).outcomes == ["PASSED", "PASSED"]


AUTOTUNED = """
    import sys, types
    tuner = types.ModuleType("triton.runtime.autotuner")
    class Autotuner:
        configs = ["a", "b", "c"]
        def run(self):
            return list(self.configs)
    tuner.Autotuner = Autotuner
    sys.modules["triton.runtime.autotuner"] = tuner
    def test_it():
        assert Autotuner().run() == ["a"]
"""


def test_the_autotuner_takes_its_first_configuration(told):
    done = told(AUTOTUNED, interventions=[["first-config"]])
    assert done.outcomes == ["PASSED", "PASSED"]
    assert done.of("circumstances")[0]["touched"] == {"first-config": 1}


def test_each_trial_has_interventions_of_its_own(told):
    code = READS_UNWRITTEN_MEMORY.format(nan=True, zero=False)
    assert told(code, interventions=[["poison"], ["zero-fill"]]).outcomes == ["PASSED", "FAILED"]


def test_draws_are_noted_with_their_place(told):
    code = """
        def test_it():
            random.randint(3, 3)
            random.choice(["a"])
            torch.full((2,), 0.0).uniform_(2.0, 2.5)
            random.shuffle([1, 2, 3])
    """
    drawn = told(code, watch=True).of("circumstances")[0]["drawn"]
    assert [one["function"] for one in drawn] == [
        *("random.randint", "random.choice", "torch.uniform_", "random.shuffle"),
    ]
    assert drawn[0]["value"] == 3
    assert drawn[0]["where"] == "test_subject.py:5"
    assert drawn[1]["text"] == "'a'"
    assert 2.0 <= drawn[2]["min"] <= drawn[2]["max"] < 2.5
    assert drawn[3] | {"where": ""} == {
        "function": "random.shuffle",
        "where": "",
        "min": 1,
        "max": 3,
        "size": 3,
    }


def test_what_comparisons_would_make_of_bugs(told):
    code = """
        def test_it():
            x = torch.tensor([1.0, 100.0])
            torch.testing.assert_close(x, x.clone(), atol=0.5, rtol=0)
    """
    (found,) = told(code, watch=True).of("circumstances")[0]["mutants"]
    assert found["index"] == 0
    assert found["mutants"] == {
        **{"all 1 % too large": 2.0, "the largest element lost": 200.0},
        **{"the largest element's sign wrong": 400.0, "all shifted by one": 198.0},
    }


def test_an_intervention_that_does_not_exist(run_block):
    done = run_block({"test_subject.py": "def test_it(): pass"}, interventions=[[], ["luck"]])
    assert done.status == 2
    assert "no intervention is called 'luck'" in done.stderr
