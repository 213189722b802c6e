"""The examples of docs/operator.md run as they are printed."""

import re
import sys
import types
from pathlib import Path

import pytest
import torch

PAGE = Path(__file__).parent.parent.parent / "docs" / "operator.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


class TheirOperator(torch.nn.Module):
    """Stands in for transformers' class of that name, which tests/gpu meets in person."""


@pytest.fixture
def detr(monkeypatch):
    names = ("transformers", "transformers.models", "transformers.models.deformable_detr")
    for name in names:
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    module = types.ModuleType("modeling_deformable_detr")
    module.MultiScaleDeformableAttention = TheirOperator
    monkeypatch.setattr(sys.modules[names[-1]], module.__name__, module, raising=False)
    return module


@pytest.mark.slow
def test_examples_run(detr):
    names = {}
    for block in BLOCKS:
        exec(compile(block, str(PAGE), "exec"), names)
    tensors = (names["img"], names["img_shapes"], names["sampling_points"], names["attention_weights"])
    wanted = names["multiscale_deformable_attention"](*tensors, "zeros", False)
    torch.testing.assert_close(names["compiled"](tensors[0], *tensors[2:]), wanted)
    torch.testing.assert_close(names["ms_deform_attn"](*tensors[:2], None, *tensors[2:]), wanted.flatten(-2))
    img, shapes, points, weights = tensors
    found = detr.MultiScaleDeformableAttention()(img, torch.tensor(shapes), shapes, None, points, weights, 64)
    torch.testing.assert_close(found, wanted.flatten(-2))
