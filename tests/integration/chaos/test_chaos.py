"""A moment of each harm, the same one every time; chaos.py beside this file provokes many more."""

from __future__ import annotations

import random

import chaos
import pytest
from troubles import TROUBLES, able

pytestmark = pytest.mark.slow
QUICK = ("plan", "build", "matrix", "report")
PAIRS = [
    (trouble, stage)
    for trouble in TROUBLES
    if trouble.engine == "host"
    for stage in dict.fromkeys(trouble.stages)
    if stage in QUICK
]


@pytest.mark.parametrize(
    ("trouble", "stage"),
    PAIRS,
    ids=[f"{each.name}: {stage}".replace(" ", "-") for each, stage in PAIRS],
)
def test_the_same_command_goes_on_where_it_was_stopped(trouble, stage):
    lacking = set(trouble.needs) - able()
    if lacking:
        pytest.skip(f"needs {' and '.join(sorted(lacking))}")
    chaos.moment(trouble, stage, random.Random(f"{trouble.name} {stage}"))
