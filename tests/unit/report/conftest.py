from __future__ import annotations

import pytest
from report_ledgers import open_ledger

from repro.report import gather


@pytest.fixture
def home(tmp_path):
    return tmp_path / ".repro"


@pytest.fixture
def told(home):
    """The report of what lies in `home`."""

    def tell(**wanted):
        from repro.report import Wanted

        with open_ledger(home) as ledger:
            return gather(ledger, home, Wanted(**wanted))

    return tell
