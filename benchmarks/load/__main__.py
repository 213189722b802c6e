"""What commands take with a ledger of millions of trials, thousands of cells, thousands of commits.

    python -m benchmarks.load make DIR [--trials 5000000]   # once; block files and the ledger made of them
    python -m benchmarks.load measure DIR [--only NAME]     # the table of docs/load.md; alone on the machine

Exits with 1 where a limit is missed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.load.making import write_history, write_ledger, write_matrix
from benchmarks.load.measuring import COMMITS, CULPRIT, MEASURES, measure, table


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["make", "measure"])
    parser.add_argument("home", type=Path)
    parser.add_argument("--trials", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", help="the measures whose names hold this text")
    given = parser.parse_args()
    if given.what == "make":
        make(given.home, given.trials)
        return 0
    chosen = [each for each in MEASURES if given.only is None or given.only in each.name]
    taken = [measure(each, given.home, given.rounds) for each in chosen]
    print(table(taken))
    return int(any(each.missed for each in taken))


def make(home: Path, trials: int) -> None:
    """All that is measured, below one folder."""
    for name in ("plan", "search"):
        (home / name).mkdir(parents=True, exist_ok=True)
    write_matrix(home / "plan", count=200, triton="pinned", env=834)
    write_matrix(home / "search", count=200, torch=("2.13.0",), triton="pinned")
    ids = write_history(home / "search", COMMITS, CULPRIT)
    (home / "search" / "culprit").write_text(ids[CULPRIT], encoding="utf-8")
    write_ledger(home / "ledger", trials)


if __name__ == "__main__":
    sys.exit(main())
