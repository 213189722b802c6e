"""The cells of the host engine: one interpreter, with each environment that the matrix names."""

from dataclasses import replace

from fake_engine import cell

from repro.cells import Expansion
from repro.cli import workspace
from repro.engines import host


def test_each_environment_of_the_matrix_is_a_cell_of_this_interpreter(monkeypatch):
    here, other = cell("3.7.1"), cell("3.6.0")
    monkeypatch.setattr(host, "host_cell", lambda: here)
    torch_only, both = ((("BACKENDS", "torch"),), (("BACKENDS", "torch"), ("FAST", "1")))
    asked = [replace(each, env=env) for each in (other, here) for env in (torch_only, both)]
    found = workspace._here(Expansion(cells=tuple(asked), excluded=()))
    assert [each.id for each in found.cells] == [
        f"{here.id}-BACKENDS=torch",
        f"{here.id}-BACKENDS=torch-FAST=1",
    ]
    assert [each.cell.id for each in found.excluded] == [each.id for each in asked[:2]]


def test_without_an_environment_there_is_one_cell(monkeypatch):
    here = cell("3.7.1")
    monkeypatch.setattr(host, "host_cell", lambda: here)
    for cells in ((), (cell("3.6.0"), cell("3.8.0"))):
        assert workspace._here(Expansion(cells=cells, excluded=())).cells == (here,)
