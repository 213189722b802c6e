"""What each kind of test and each kind of failure is recorded as."""

import textwrap

import pytest

PLANTS = textwrap.dedent(
    """
    import os, random, unittest
    import pytest

    class Base(AssertionError): pass
    class OutOfMemoryError(RuntimeError): pass
    CompilationError = type("CompilationError", (Exception,), {"__module__": "triton.compiler.errors"})

    @pytest.fixture
    def broken():
        raise ValueError("no fixture")

    @pytest.fixture
    def breaks():
        yield
        raise ValueError("no teardown")

    def test_passes(): pass
    def test_asserts():
        left = 3
        assert left == 4
    def test_fails(): pytest.fail("on purpose")
    def test_subclass(): raise Base("derived")
    def test_other(): raise ValueError("other")
    def test_skips(): pytest.skip("not here")
    @pytest.mark.skip
    def test_marked_skip(): pass
    @pytest.mark.xfail
    def test_xfail(): assert False
    def test_compile(): raise CompilationError("bad kernel")
    def test_wrapped():
        try:
            raise CompilationError("bad kernel")
        except CompilationError as error:
            raise RuntimeError("launch failed") from error
    def test_memory(): raise OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
    def test_setup(broken): pass
    def test_teardown(breaks): pass
    def test_exits(): pytest.exit("enough")
    def test_system_exit(): raise SystemExit(3)
    def test_sticky(): raise RuntimeError("CUDA error: an illegal memory access was encountered")
    class TestClass:
        def test_fresh(self):
            assert not hasattr(self, "seen")
            self.seen = True
    class Case(unittest.TestCase):
        def setUp(self): self.fresh = getattr(self, "fresh", 0) + 1
        def test_passes(self): self.assertEqual(self.fresh, 1)
        def test_fails(self): self.assertEqual(1, 2)
        def test_skips(self): self.skipTest("not here")
        def test_subtests(self):
            for i in range(3):
                with self.subTest(i=i):
                    self.assertNotEqual(i, 1)
    class Later(unittest.IsolatedAsyncioTestCase):
        async def test_passes(self): pass
        async def test_fails(self): self.fail("late")
    """
)


@pytest.mark.parametrize(
    ("test", "outcome", "place"),
    [
        ("test_passes", "PASSED", None),
        ("test_asserts", "FAILED", "call"),
        ("test_fails", "FAILED", "call"),
        ("test_subclass", "FAILED", "call"),
        ("test_other", "FAILED_OTHERWISE", "call"),
        ("test_skips", "SKIPPED", "call"),
        ("test_marked_skip", "SKIPPED", "setup"),
        ("test_xfail", "FAILED", "call"),
        ("test_compile", "COMPILE_ERROR", "call"),
        ("test_wrapped", "COMPILE_ERROR", "call"),
        ("test_memory", "INFRA", "call"),
        ("test_setup", "FAILED_OTHERWISE", "setup"),
        ("test_teardown", "FAILED_OTHERWISE", "teardown"),
        ("test_exits", "FAILED_OTHERWISE", "call"),
        ("test_system_exit", "FAILED_OTHERWISE", "call"),
        ("TestClass::test_fresh", "PASSED", None),
        ("Case::test_passes", "PASSED", None),
        ("Case::test_fails", "FAILED", "call"),
        ("Case::test_skips", "SKIPPED", "call"),
        ("Case::test_subtests", "FAILED", "call"),
        ("Later::test_passes", "PASSED", None),
        ("Later::test_fails", "FAILED", "call"),
    ],
)
def test_outcomes(run_block, test, outcome, place):
    done = run_block({"test_subject.py": PLANTS}, test)
    assert done.outcomes == [outcome] * 3, done.stderr
    assert [event["event"] for event in done.events] == ["cell", *["start", "end"] * 3, "block_end"]
    assert done.events[-1]["counts"] == {outcome: 3}
    assert done.of("end")[0].get("signature", {}).get("place") == place


def test_a_lost_context_ends_the_block(run_block):
    done = run_block({"test_subject.py": PLANTS}, "test_sticky")
    assert done.outcomes == ["FAILED_OTHERWISE"]
    assert done.events[-1]["complete"] is False
    assert "context" in done.events[-1]["reason"]


def test_an_assert_tells_its_values_and_place(run_block):
    end = run_block({"test_subject.py": PLANTS}, "test_asserts", seeds=[1]).of("end")[0]
    assert end["message"] == "assert 3 == 4"
    assert end["signature"]["key"] == "AssertionError in test_asserts: assert left == 4"
    assert end["signature"]["function"] == "test_asserts"


@pytest.mark.parametrize(
    ("signature", "outcome"),
    [
        ({"exception": "ValueError"}, "FAILED"),
        ({"exception": "builtins.ValueError", "message": "^oth", "function": "test_other"}, "FAILED"),
        ({"exception": "ValueError", "message": "nothing such"}, "FAILED_OTHERWISE"),
        ({"exception": "ValueError", "function": "test_elsewhere"}, "FAILED_OTHERWISE"),
        ({"exception": "ValueError", "comparison": 0}, "FAILED_OTHERWISE"),
    ],
)
def test_the_target_signature_decides(run_block, signature, outcome):
    done = run_block({"test_subject.py": PLANTS}, "test_other", seeds=[1], signature=signature)
    assert done.outcomes == [outcome]


def test_a_dead_process_leaves_its_seed(run_block):
    text = "import os, random\ndef test_it():\n    if random.random() > 0.8: os._exit(9)\n"
    done = run_block({"test_subject.py": text}, seeds=list(range(40)))
    assert done.status == 9
    assert done.events[-1]["event"] == "start"
    assert len(done.of("start")) == len(done.of("end")) + 1


def test_seeds_decide(run_block):
    text = "import random\ndef test_it(): assert random.random() > 0.3\n"
    seeds = list(range(100))
    first = run_block({"test_subject.py": text}, seeds=seeds, first_trial=7)
    again = run_block({"test_subject.py": text}, seeds=seeds[::-1])
    assert first.outcomes == again.outcomes[::-1]
    assert 15 < first.outcomes.count("FAILED") < 45
    assert [end["trial"] for end in first.of("end")] == list(range(7, 107))


def test_repeat_mode_runs_one_seed_again(run_block):
    text = "import random\ndef test_it(record_property): record_property('drawn', random.random())\n"
    done = run_block({"test_subject.py": text}, seeds=[5] * 3, mode="repeat")
    assert len({end["properties"]["drawn"] for end in done.of("end")}) == 1
    assert [end["trial"] for end in done.of("end")] == [0, 1, 2]


def test_output_and_properties_are_bounded_and_clean(run_block):
    text = (
        "def test_it(record_property):\n"
        "    record_property('levels', [64, 32]); record_property('n', 3)\n"
        "    print('\\x1b[31mred\\x1b[0m' + 'x' * 9000 + 'end')\n"
        "    assert False, '\\x1b[1m' + 'm' * 9000\n"
    )
    end = run_block({"test_subject.py": text}, seeds=[1]).of("end")[0]
    assert end["properties"] == {"levels": "[64, 32]", "n": 3}
    assert len(end["output"]) < 4200
    assert "end" in end["output"][-20:]
    assert "\x1b" not in end["output"] + end["message"]
    assert len(end["message"]) < 4100


def test_fixtures_of_each_scope(run_block):
    conftest = (
        "import pytest\nmade = []\n"
        "@pytest.fixture\ndef small():\n    made.append('small'); yield; made.append('gone')\n"
        "@pytest.fixture(scope='module')\ndef wide(): made.append('wide')\n"
    )
    text = (
        "from conftest import made\n"
        "def test_it(small, wide, record_property): record_property('made', ' '.join(sorted(made)))\n"
    )
    done = run_block({"conftest.py": conftest, "test_subject.py": text})
    made = [end["properties"]["made"].split() for end in done.of("end")]
    assert [(one.count("small"), one.count("gone"), one.count("wide")) for one in made] == [
        (1, 0, 1),
        (2, 1, 1),
        (3, 2, 1),
    ]


def test_output_stays_with_the_trial_and_the_phase_that_wrote_it(run_block):
    text = """
import os, pytest

@pytest.fixture
def noisy():
    print("from setup")
    yield
    os.write(1, b"from teardown")

def test_it(noisy, capsys):
    with capsys.disabled():
        os.write(2, b"not captured")
    print("read by the test")
    assert capsys.readouterr().out == "read by the test\\n"
    os.system("echo from a child")
    assert False
"""
    done = run_block({"test_subject.py": text}, seeds=[1, 2])
    outputs = [end["output"] for end in done.of("end")]
    assert outputs[0] == outputs[1]
    assert [outputs[0].count(word) for word in ("from setup", "from teardown", "from a child")] == [1, 1, 1]
    assert "--- stdout in teardown ---" in outputs[0]
    assert "not captured" not in outputs[0]
    assert done.stderr.count("not captured") >= 2
