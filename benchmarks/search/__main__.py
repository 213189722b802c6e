"""Command line of the benchmark."""

from __future__ import annotations

import argparse
import os

import benchmarks.search
from benchmarks.search.measure import run
from benchmarks.search.report import report


def main() -> None:
    parser = argparse.ArgumentParser(
        description=benchmarks.search.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    runner = commands.add_parser("run")
    runner.add_argument("--runs", type=int, default=200)
    runner.add_argument("--points", default=".", help="regular expression on 'N128 step 0->0.3 | method'")
    runner.add_argument("--processes", type=int, default=os.cpu_count())
    runner.add_argument("--fresh", action="store_true", help="measure again what results.json has")
    runner.set_defaults(call=run)
    commands.add_parser("report").set_defaults(call=report)
    args = parser.parse_args()
    args.call(args)


if __name__ == "__main__":
    main()
