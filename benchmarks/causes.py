"""`repro diagnose` over every planted cause, with decoys and without: which cause it names first.

    python -m benchmarks.causes run       # adds to docs/diagnose/results.json
    python -m benchmarks.causes report    # docs/diagnose.md's table

Needs torch and triton in the interpreter that runs it; no GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "integration"))
import planting  # noqa: E402

RESULTS = ROOT / "docs" / "diagnose" / "results.json"
PAGE = ROOT / "docs" / "diagnose.md"
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"
REPRO = (sys.executable, "-c", "from repro.cli import main; main()")


def run(args: argparse.Namespace) -> None:
    """Diagnose each subject that has no result yet."""
    for name in planting.names():
        for decoys in (False, True):
            if key(name, decoys=decoys) not in load():
                with tempfile.TemporaryDirectory(prefix="causes-") as home:
                    planting.plant(Path(home), name, decoys=decoys)
                    keep(key(name, decoys=decoys), one(Path(home)))
                print(key(name, decoys=decoys), load()[key(name, decoys=decoys)], flush=True)


def one(home: Path) -> dict[str, Any]:
    """What is said of the subject in a folder."""
    began = time.monotonic()
    done = subprocess.run(
        [*REPRO, "diagnose", "--engine", "host", "--state", "state", "--json"],
        cwd=home,
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    told = json.loads(done.stdout) if done.stdout else {"causes": [], "failed": 0, "trials": 100}
    named = [
        [each["name"], round(each["share"], 2)] for each in told["causes"] if each["verdict"] == "supported"
    ]
    rate = [told["failed"], told["trials"]]
    return {
        "supported": named,
        "rate": rate,
        "status": done.returncode,
        "seconds": round(time.monotonic() - began),
    }


def key(name: str, *, decoys: bool) -> str:
    """A subject's name in the results."""
    return name + (" with decoys" if decoys else "")


def load() -> dict[str, dict[str, Any]]:
    """All results so far."""
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def keep(name: str, result: dict[str, Any]) -> None:
    """Add one result."""
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    rows = {**load(), name: result}
    RESULTS.write_text(
        "{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(rows[k])}" for k in sorted(rows)) + "\n}\n"
    )


def report(_: argparse.Namespace) -> None:
    """Write the table."""
    head, _, rest = PAGE.read_text().partition(BEGIN)
    tail = rest.partition(END)[2]
    PAGE.write_text(head + BEGIN + "\n" + "\n".join(table()) + "\n" + END + tail)


def table() -> Iterator[str]:
    """A row a subject: what is planted, what is named first and what else, without decoys and with them."""
    yield "| subject | planted | failed | named, alone | named, among decoys |"
    yield "| --- | --- | --: | --- | --- |"
    for name in planting.names():
        alone, among = (load().get(key(name, decoys=decoys)) for decoys in (False, True))
        failed = "{} of {}".format(*(alone or among or {"rate": ("?", "?")})["rate"])
        planted = planting.cause(name) or "nothing"
        yield f"| {name.replace('_', ' ')} | {planted} | {failed} | {said(alone)} | {said(among)} |"


def said(result: dict[str, Any] | None) -> str:
    """The causes that were supported, the first in bold; nothing where it never failed."""
    if result is None:
        return "not run"
    named = [f"{name} {100 * share:.0f} %" for name, share in result["supported"]]
    if not named:
        return "none: not reproduced" if result["status"] == 6 else "none"
    return ", ".join([f"**{named[0]}**", *named[1:]])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    commands.add_parser("run").set_defaults(call=run)
    commands.add_parser("report").set_defaults(call=report)
    args = parser.parse_args()
    args.call(args)


if __name__ == "__main__":
    main()
