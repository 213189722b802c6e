"""Searches with planted outcomes."""

import pytest
from planted import Search


@pytest.fixture
def plant(tmp_path):
    """Plant outcomes: a function of a candidate's number and a trial's seed."""
    return lambda outcome, **more: Search(tmp_path, outcome, **more)
