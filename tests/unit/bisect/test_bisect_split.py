"""Which part of a release carries a change: every table of crossed cells, and real searches over them."""

import pytest
from fake_engine import subject
from planted import Search, noisy, step

from repro.bisect import sentences, to_json, version_line
from repro.bisect.split import Cross, Judged, conclude, crosses
from repro.bisect.tryout import Counts
from repro.cells import Cell
from repro.errors import UsageError
from repro.stacks import stacks, version

OLD = Cell(python="3.12", torch="2.8.0", triton="3.4.0", cuda="cu128", pinned_triton="3.4.0")
NEW = Cell(python="3.12", torch="2.11.0", triton="3.6.0", cuda="cu130", pinned_triton="3.6.0")

ONLY_TRITON = {"old_triton": False, "new_triton": True}


def judged(**after):
    """Crossed cells by name, such as `old_triton`, and whether each behaves as after the change."""
    return [
        Judged(
            cross=Cross(part=name.split("_")[1], new=name.startswith("new"), cell=NEW),
            counts=Counts(failed=1, passed=1),
            after=value,
        )
        for name, value in after.items()
    ]


@pytest.mark.parametrize(
    ("cells", "parts", "interaction"),
    [
        (judged(old_triton=False, new_triton=True), ["triton"], False),
        (judged(old_triton=True, new_triton=False), ["torch"], False),
        (judged(old_triton=False, new_triton=False), ["torch", "triton"], True),
        (judged(old_triton=True, new_triton=True), ["torch", "triton"], False),
        (judged(old_triton=None, new_triton=True), ["triton"], False),
        (judged(old_triton=True, new_triton=None), ["torch"], False),
        (judged(old_triton=None, new_triton=None), [], False),
        ([], [], False),
        (judged(**ONLY_TRITON, old_ptxas=False, new_ptxas=True), ["triton", "ptxas"], False),
        (judged(**ONLY_TRITON, old_ptxas=True, new_ptxas=False), ["triton"], False),
        (judged(old_triton=True, new_triton=False, new_cuda=True), ["torch", "cuda"], False),
    ],
)  # fmt: skip
def test_the_parts_that_carry_a_change(cells, parts, interaction):
    found = conclude(cells)
    assert (list(found.parts), found.interaction) == (parts, interaction)


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (judged(old_triton=False, new_triton=True), "the newer triton alone makes the difference"),
        (judged(old_triton=True, new_triton=True), "the newer torch or the newer triton alone"),
        (judged(old_triton=False, new_triton=False), "it takes both of the newer ones"),
        (judged(), "no crossed cell could tell"),
        (judged(new_triton=True, old_ptxas=False), "within triton it is ptxas"),
        (judged(new_triton=True, old_ptxas=True), "within triton it is not ptxas"),
    ],
)
def test_the_sentence_says_it(cells, words):
    assert words in conclude(cells).said


def test_crossed_cells_between_two_stacks():
    bundled = {OLD.id: "12.8.93", NEW.id: "12.9.86"}
    found = {
        ("new" if each.new else "old", each.part): each.cell
        for each in crosses(OLD, NEW, stacks(), lambda cell: bundled[cell.id])
    }
    assert found["old", "triton"].id == "torch2.11.0-triton3.4.0-cu130-py312"
    assert found["new", "triton"].id == "torch2.8.0-triton3.6.0-cu128-py312"
    assert found["old", "cuda"].id == "torch2.11.0-triton3.6.0-cu128-py312"
    assert ("new", "cuda") not in found  # torch 2.8.0 has no cu130 build
    assert found["old", "ptxas"].ptxas.startswith("12.8.")
    assert found["new", "ptxas"].ptxas.startswith("12.9.")


@pytest.mark.parametrize(
    ("guilty", "parts"),
    [
        (lambda cell: version(cell.triton) >= version("3.5.0"), ["triton"]),
        (lambda cell: version(cell.torch) >= version("2.9.0"), ["torch"]),
        (
            lambda cell: version(cell.torch) >= version("2.9.0") and version(cell.triton) >= version("3.5.0"),
            ["torch", "triton"],
        ),
    ],
)
@pytest.mark.parametrize("noise", [step, noisy])
def test_a_release_is_split_into_its_parts(tmp_path, guilty, parts, noise):
    outcome = noise(1, 0.0, 0.5)
    search = Search(tmp_path, outcome)
    search.engine.trial = lambda cell, seed: outcome(int(guilty(cell)), seed)
    line = version_line("release", [OLD, NEW], subject(tmp_path))
    result = search.run(line=line)
    assert result.answer.name(result.answer.first_bad) == "2.9.0"
    assert list(result.split.parts) == parts
    assert to_json(result)["split"]["parts"] == parts
    assert "Of the release's parts" in "\n".join(sentences(result))


# The versions of an axis -----------------------------------------------------------------------------------


def names(line):
    return [candidate.name for candidate in line.candidates]


def test_an_axis_goes_from_the_oldest_to_the_newest_cell(tmp_path):
    line = version_line("release", [OLD, NEW], subject(tmp_path))
    assert names(line) == ["2.8.0", "2.9.0", "2.9.1", "2.10.0", "2.11.0"]
    tritons = [candidate.cell.triton for candidate in line.candidates]
    assert tritons == ["3.4.0", "3.5.0", "3.5.1", "3.6.0", "3.6.0"]
    assert line.candidates[0].cell.id == OLD.id


def test_triton_alone_keeps_the_newest_torch(tmp_path):
    line = version_line("triton", [OLD, NEW], subject(tmp_path), new="3.7.1")
    assert names(line)[0] == "3.4.0"
    assert names(line)[-1] == "3.7.1"
    assert {candidate.cell.torch for candidate in line.candidates} == {"2.11.0"}
    assert [candidate.cell.crossed for candidate in line.candidates if candidate.name == "3.6.0"] == [False]


def test_torch_alone_keeps_the_newest_triton(tmp_path):
    line = version_line("torch", [OLD, NEW], subject(tmp_path))
    assert {candidate.cell.triton for candidate in line.candidates} == {"3.6.0"}
    assert line.candidates[0].cell.cuda == "cu128"


def test_ptxas_alone(tmp_path):
    line = version_line("ptxas", [NEW], subject(tmp_path), old="12.4", new="12.8")
    assert {candidate.cell.torch for candidate in line.candidates} == {"2.11.0"}
    assert names(line)[0].startswith("12.4.")
    assert names(line)[-1].startswith("12.8.")


def test_versions_without_a_wheel_are_left_out_with_the_reason(tmp_path):
    old = Cell(python="3.14", torch="2.10.0", triton="3.6.0", cuda="cu128", pinned_triton="3.6.0")
    line = version_line("triton", [old], subject(tmp_path), old="3.3.0", new="3.7.1")
    assert names(line)[0] == "3.5.0"
    assert any(name == "3.3.0" and "no wheel for Python 3.14" in why for name, why in line.left_out)


@pytest.mark.parametrize(
    ("axis", "ends", "said"),
    [
        ("release", {"old": "2.11.0", "new": "2.8.0"}, "is newer than"),
        ("release", {"old": "2.8.0", "new": "2.8.0"}, "fewer than two"),
        ("triton", {"old": "3.0.7"}, "no version `3.0.7`"),
        ("torch", {"new": "v2"}, "no version `v2`"),
    ],
)
def test_wrong_ends_are_refused(tmp_path, axis, ends, said):
    with pytest.raises(UsageError, match=said) as refused:
        version_line(axis, [OLD, NEW], subject(tmp_path), **ends)
    assert refused.value.next_step


def test_one_version_is_no_axis(tmp_path):
    with pytest.raises(UsageError) as refused:
        version_line("release", [NEW], subject(tmp_path))
    assert "--old" in refused.value.next_step
