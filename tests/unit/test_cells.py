"""From a profile to cells: products, rules, order, ids, selection."""

import time
from pathlib import Path

import pytest

from repro.cells import Cell, Expansion, expand, select
from repro.config import load
from repro.errors import UsageError

SUBJECT = "subject: {path: ., test_file: t.py, test: test_a}\n"


def expanded(folder: Path, profile: str) -> Expansion:
    path = folder / "matrix.yaml"
    path.write_text(f"{SUBJECT}profiles:\n  a: {profile}\n", encoding="utf-8")
    return expand(load(path), "a")


def ids(expansion: Expansion) -> list[str]:
    return [cell.id for cell in expansion.cells]


def test_a_product_oldest_stack_first(tmp_path: Path):
    found = expanded(tmp_path, '{python: ["3.12", "3.11"], torch: ["2.10.0", "2.9.1"], cuda: [default, cpu]}')
    assert ids(found) == [
        "torch2.9.1-triton3.5.1-cpu-py311",
        "torch2.9.1-triton3.5.1-cpu-py312",
        "torch2.9.1-triton3.5.1-cu128-py311",
        "torch2.9.1-triton3.5.1-cu128-py312",
        "torch2.10.0-triton3.6.0-cpu-py311",
        "torch2.10.0-triton3.6.0-cpu-py312",
        "torch2.10.0-triton3.6.0-cu128-py311",
        "torch2.10.0-triton3.6.0-cu128-py312",
    ]


def test_a_cell_brings_what_its_versions_need(tmp_path: Path):
    (cell,) = expanded(tmp_path, '{python: "3.11", torch: "2.6.0", cuda: cpu}').cells
    assert cell.packages == ("numpy<2.4", "setuptools")
    assert not cell.crossed
    assert not cell.on_gpu


def test_crossed_cells(tmp_path: Path):
    found = expanded(
        tmp_path, '{python: "3.12", torch: "2.8.0", triton: [pinned, "3.5.1"], ptxas: [bundled, "12.8"]}'
    )
    assert [(cell.triton, cell.ptxas, cell.crossed) for cell in found.cells] == [
        ("3.4.0", None, False),
        ("3.4.0", "12.8.93", True),
        ("3.5.1", None, True),
        ("3.5.1", "12.8.93", True),
    ]
    assert ids(found)[1] == "torch2.8.0-triton3.4.0-cu128-py312-ptxas12.8.93"


def test_a_line_of_ptxas_is_its_newest_release_and_can_be_excluded_as_such(tmp_path: Path):
    axes = 'python: "3.12", torch: "2.8.0", ptxas: ["12.4", "12.4.99", "12.9"]'
    found = expanded(tmp_path, f'{{{axes}, exclude: [{{ptxas: "12.9", reason: known}}]}}')
    assert [cell.ptxas for cell in found.cells] == ["12.4.99", "12.4.131"]
    assert [each.cell.ptxas for each in found.excluded] == ["12.9.86"]


def test_ranges_are_sets_and_may_overlap_what_is_pinned(tmp_path: Path):
    found = expanded(tmp_path, '{python: "3.12", torch: ">=2.12,<2.14", triton: [pinned, ">=3.7,<3.8"]}')
    assert [(cell.torch, cell.triton) for cell in found.cells] == [
        ("2.12.0", "3.7.0"),
        ("2.12.0", "3.7.1"),
        ("2.12.1", "3.7.0"),
        ("2.12.1", "3.7.1"),
        ("2.13.0", "3.7.0"),
        ("2.13.0", "3.7.1"),
    ]


@pytest.mark.parametrize(
    ("rule", "left"),
    [
        ('{torch: "<2.9"}', ["2.9.1/3.4.0", "2.9.1/3.5.1"]),
        ("{triton: pinned}", ["2.8.0/3.5.1", "2.9.1/3.4.0"]),
        ('{torch: "2.8.0", triton: ">3.4.0"}', ["2.8.0/3.4.0", "2.9.1/3.4.0", "2.9.1/3.5.1"]),
        ('{torch: ["<2.8", "2.9.1"]}', ["2.8.0/3.4.0", "2.8.0/3.5.1"]),
        ("{cuda: cpu}", ["2.8.0/3.4.0", "2.8.0/3.5.1", "2.9.1/3.4.0", "2.9.1/3.5.1"]),
        ("{env: {A: 1}}", ["2.8.0/3.4.0", "2.8.0/3.5.1", "2.9.1/3.4.0", "2.9.1/3.5.1"]),
    ],
)
def test_exclude(tmp_path: Path, rule: str, left: list[str]):
    rule = (
        rule.replace("}", ", reason: because}", 1) if "env" not in rule else "{env: {A: 1}, reason: because}"
    )
    found = expanded(
        tmp_path,
        f'{{python: "3.12", torch: ["2.8.0", "2.9.1"], triton: ["3.4.0", "3.5.1"], exclude: [{rule}]}}',
    )
    assert [f"{cell.torch}/{cell.triton}" for cell in found.cells] == left
    assert {each.reason for each in found.excluded} <= {"because"}
    assert len(found.cells) + len(found.excluded) == 4


def test_include_adds_and_takes_the_rest_from_the_profile(tmp_path: Path):
    found = expanded(
        tmp_path,
        '{python: "3.12", torch: "2.8.0", include: [{torch: "2.9.1", triton: "3.4.0", reason: around}]}',
    )
    assert ids(found) == ["torch2.8.0-triton3.4.0-cu128-py312", "torch2.9.1-triton3.4.0-cu128-py312"]
    assert found.reasons == {"torch2.9.1-triton3.4.0-cu128-py312": "around"}


def test_include_brings_back_what_exclude_leaves_out(tmp_path: Path):
    found = expanded(
        tmp_path,
        '{python: "3.12", torch: ["2.8.0", "2.9.1"], exclude: [{torch: ">=2", reason: none}], '
        'include: [{torch: "2.8.0", reason: this one}]}',
    )
    assert ids(found) == ["torch2.8.0-triton3.4.0-cu128-py312"]
    assert [(each.cell.torch, each.reason) for each in found.excluded] == [("2.9.1", "none")]


def test_what_cannot_exist_is_excluded_with_the_reason(tmp_path: Path):
    found = expanded(tmp_path, '{python: ["3.12", "3.13"], torch: "2.4.1"}')
    assert ids(found) == ["torch2.4.1-triton3.0.0-cu121-py312"]
    assert [each.reason for each in found.excluded] == [
        "torch 2.4.1 has no wheel for Python 3.13; it has them for 3.8 to 3.12"
    ]


def test_ids_differ_where_their_readable_parts_do_not(tmp_path: Path):
    found = expanded(
        tmp_path,
        '{python: "3.12", torch: "2.8.0", env: [{A: a/b}, {A: a_b}, {A: a-b}, {A: ' + "x" * 300 + "}, {}]}",
    )
    assert len(set(ids(found))) == 5
    assert max(map(len, ids(found))) < 120
    assert "torch2.8.0-triton3.4.0-cu128-py312-A=a_b" in ids(found)


def test_ten_thousand_cells_within_two_seconds(tmp_path: Path):
    env = ", ".join(f"{{A: {number}}}" for number in range(500))
    text = f'{{python: ["3.11", "3.12"], torch: ">=2.13", triton: [pinned, "3.6.0", "3.5.1"], env: [{env}]}}'
    path = tmp_path / "matrix.yaml"
    path.write_text(f"{SUBJECT}profiles:\n  a: {text}\n", encoding="utf-8")
    matrix = load(path)
    began = time.perf_counter()
    found = expand(matrix, "a")
    took = time.perf_counter() - began
    assert len(found.cells) == 12_000
    assert len({cell.id for cell in found.cells}) == 12_000
    assert took < 2.0


def test_an_unknown_profile(tmp_path: Path):
    path = tmp_path / "matrix.yaml"
    path.write_text(f'{SUBJECT}profiles: {{a: {{python: "3.12", torch: "2.8.0"}}}}\n', encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        expand(load(path), "b")
    assert caught.value.what == f"there is no profile `b` in {path}"
    assert caught.value.next_step == "take one of `a`"


CELLS = tuple(
    Cell(python="3.12", torch=torch, triton=triton, cuda="cu130", pinned_triton=triton)
    for torch, triton in (("2.8.0", "3.4.0"), ("2.9.1", "3.5.1"), ("2.10.0", "3.6.0"))
)


@pytest.mark.parametrize(
    ("globs", "expected"),
    [
        ([], ["2.8.0", "2.9.1", "2.10.0"]),
        (["torch2.8*"], ["2.8.0"]),
        (["*triton3.6*", "torch2.8*"], ["2.8.0", "2.10.0"]),
        (["*", "torch2.8*"], ["2.8.0", "2.9.1", "2.10.0"]),
    ],
)
def test_select(globs: list[str], expected: list[str]):
    assert [cell.torch for cell in select(CELLS, globs)] == expected


def test_a_glob_that_matches_nothing_names_the_nearest():
    with pytest.raises(UsageError) as caught:
        select(CELLS, ["torch2.8*", "torch2.11.0-triton3.6.0-cu130-py312"])
    error = caught.value
    assert error.what == "no cell matches `torch2.11.0-triton3.6.0-cu130-py312`"
    assert error.why == (
        "a glob has to match a cell's whole id; the nearest are `torch2.10.0-triton3.6.0-cu130-py312`, "
        "`torch2.8.0-triton3.4.0-cu130-py312`, `torch2.9.1-triton3.5.1-cu130-py312`"
    )
    assert (
        error.next_step == "`repro plan --only '*'` lists every cell; put a `*` at the end to match a prefix"
    )


def test_select_without_any_cell():
    with pytest.raises(UsageError, match="no cell matches `x`") as caught:
        select([], ["x"])
    assert caught.value.why == "there are no cells at all"
