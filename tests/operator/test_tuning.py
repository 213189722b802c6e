"""Tiles are measured on request, kept in a file, and change the speed alone."""

import json

import pytest
import torch
from test_kernels import LEVELS, agree, draw, gradients

from msda_triton import triton_multiscale_deformable_attention

NAME = "interpreter, forward, 3 channels, 4 bytes, few rows"


@pytest.fixture(autouse=True)
def nothing_measured():
    yield
    from msda_triton import table, tiles

    table.measured.clear()
    table._kept.cache_clear()
    tiles.forward_tile.cache_clear()
    tiles.backward_tile.cache_clear()


@pytest.fixture
def inputs():
    img, points, weights = draw(1, 1, 3, 9, 2, LEVELS, torch.float32, 0)
    return img, points.float(), weights


def test_the_fastest_is_used_and_kept(inputs, tmp_path, monkeypatch):
    from msda_triton import tiles, tuning

    img, points, weights = inputs
    found = gradients(triton_multiscale_deformable_attention, *inputs, LEVELS, "zeros", False)
    clock = iter([6.0, 5.0, 1.0, 2.0, 9.0, 8.0, 7.0, 4.0, 3.0, 6.0, 5.0])
    monkeypatch.setattr(tuning, "_call", lambda leaves, _: leaves[0].sum()[None])
    chosen = tuning.tune(
        img, LEVELS, points, weights, path=tmp_path / "tiles.json", timer=lambda _: next(clock)
    )
    assert chosen[NAME] == (16, 2)  # the second in the list
    assert tiles.forward_tile(3, 4, False) == tiles.Tile(16, 4, 2)
    assert tiles.backward_tile(3) == tiles.Tile(8, 4, 1)
    assert json.loads((tmp_path / "tiles.json").read_text())[NAME] == {"queries": 16, "warps": 2}
    again = gradients(triton_multiscale_deformable_attention, *inputs, LEVELS, "zeros", False)
    agree(again, [tensor.double() for tensor in found], torch.float32)


def test_a_later_process_reads_the_file(tmp_path, monkeypatch):
    from msda_triton import table, tiles

    path = tmp_path / "folder" / "tiles.json"
    table.write(path, {"another": (4, 1)})
    table.write(path, {NAME: (64, 2)})
    assert tiles.forward_tile(3, 4, False).queries == 128
    tiles.forward_tile.cache_clear()
    monkeypatch.setenv("MSDA_TRITON_TILES", str(path))
    assert tiles.forward_tile(3, 4, False) == tiles.Tile(64, 4, 2)
    assert tiles.forward_tile(4, 4, False).queries == 128
    assert set(table.read(path)) == {"another", NAME}


@pytest.mark.parametrize("text", ["", "[]", '{"a": 1}', '{"a": {"queries": 1}}'])
def test_a_broken_file_is_named(tmp_path, monkeypatch, text):
    from msda_triton import tiles

    path = tmp_path / "tiles.json"
    path.write_text(text)
    monkeypatch.setenv("MSDA_TRITON_TILES", str(path))
    with pytest.raises(
        ValueError, match=r"tiles\.json holds no tiles .* run msda_triton\.tuning\.tune again"
    ):
        tiles.forward_tile(3, 4, False)
