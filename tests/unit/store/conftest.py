from __future__ import annotations

import pytest

from repro.store import Ledger


@pytest.fixture
def home(tmp_path):
    return tmp_path / ".repro"


@pytest.fixture
def ledger(home):
    with Ledger.open(home / "ledger.sqlite") as opened:
        yield opened
