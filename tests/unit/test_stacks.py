"""stacks.yaml agrees with itself, and decides what cannot exist."""

import pytest
from packaging.version import Version

from repro.stacks import Stacks, stacks


@pytest.fixture(scope="module")
def known() -> Stacks:
    return stacks()


def test_it_agrees_with_itself(known: Stacks):
    for release, torch in known.torch.items():
        assert torch.triton in known.triton, release
        assert torch.default not in torch.others
        assert set(torch.python) <= set(known.first_numpy)
    for axis in ("torch", "triton", "python", "ptxas"):
        values = known.known(axis)
        assert list(values) == sorted(values, key=Version)


def test_every_torch_has_a_python_that_its_triton_has_too(known: Stacks):
    for release, torch in known.torch.items():
        possible = [
            python
            for python in known.known("python")
            for build in torch.builds
            if not known.impossible(
                python=python, torch=release, triton=torch.triton, build=build, ptxas=None
            )
        ]
        assert "3.12" in possible, release


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ({}, None),
        ({"python": "3.8"}, "the kit's pytest plugin needs Python 3.9 or later"),
        ({"build": "cu118"}, "torch 2.8.0 has no cu118 build; it has cpu, cu128, cu126, cu129"),
        ({"python": "3.14"}, "torch 2.8.0 has no wheel for Python 3.14; it has them for 3.9 to 3.13"),
        (
            {"torch": "2.5.1", "triton": "3.1.0", "build": "cu124", "python": "3.13"},
            "triton 3.1.0 has no wheel for Python 3.13; it has them for 3.8 to 3.12",
        ),
        ({"build": "cpu", "ptxas": "12.8"}, "ptxas compiles for a GPU, and a cpu cell has none"),
        ({"build": "cpu", "triton": "3.1.0"}, None),
    ],
)
def test_impossible(known: Stacks, cell: dict[str, str], reason: str | None):
    good = {"python": "3.12", "torch": "2.8.0", "triton": "3.4.0", "build": "cu128", "ptxas": None}
    assert known.impossible(**{**good, **cell}) == reason


def test_a_python_without_an_old_enough_numpy():
    from repro.stacks import FILE, parse

    text = FILE.read_text(encoding="utf-8").replace(
        '"3.12": {first_numpy: "1.26.0"}', '"3.12": {first_numpy: "2.0.0"}'
    )
    altered = parse(text)
    cell = {"python": "3.12", "torch": "2.4.1", "triton": "3.0.0", "ptxas": None}
    assert altered.impossible(**cell, build="cpu") == (
        "triton 3.0.0 under its interpreter needs numpy<2 (with numpy 2 this interpreter writes no outputs, "
        "and says nothing), and Python 3.12 has wheels from numpy 2.0.0 on"
    )
    assert altered.impossible(**cell, build="cu121") is None


@pytest.mark.parametrize(
    ("triton", "build", "expected"),
    [
        ("3.0.0", "cpu", ("numpy<2", "setuptools")),
        ("3.2.0", "cpu", ("numpy<2.4", "setuptools")),
        ("3.2.0", "cu124", ("numpy", "setuptools")),
        ("3.6.0", "cpu", ("numpy<2.4",)),
        ("3.7.1", "cpu", ("numpy",)),
    ],
)
def test_packages(known: Stacks, triton: str, build: str, expected: tuple[str, ...]):
    assert known.requirements(triton, build) == expected


def test_where_a_build_comes_from(known: Stacks):
    assert known.wheel_index("2.8.0", "cu128") is None
    assert known.wheel_index("2.8.0", "cu126") == "https://download.pytorch.org/whl/cu126"
    assert known.wheel_index("2.13.0", "cpu") == "https://download.pytorch.org/whl/cpu"
