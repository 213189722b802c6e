"""Coverage-guided fuzzing of every parser that meets a stranger's bytes.

    pip install atheris
    python tests/fuzz/fuzz.py                          # all contracts, two minutes each
    python tests/fuzz/fuzz.py block --seconds 600      # one of them

The contracts are those of tests/unit/store/fuzz_contracts.py, which property tests check as well. What breaks
one is written to `--found`, to be given again: `python tests/fuzz/fuzz.py block --again FILE`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "unit" / "store")]
LONGEST = 60_000
NAMES = ("matrix", "block", "records", "request", "ledger", "left")


def main() -> int:
    asked = _arguments()
    if asked.again is not None:
        _once(asked.contracts[0], asked.again)
        return 0
    if asked.child:
        return _child(asked.contracts[0], asked.seconds, asked.found)
    status = 0
    for name in asked.contracts or NAMES:  # a process each: libFuzzer ends its own
        command = [sys.executable, __file__, name, "--child", "--seconds", str(asked.seconds)]
        done = subprocess.run([*command, "--found", str(asked.found)], capture_output=True, text=True)
        status = max(status, int(done.returncode != 0))
        print(f"{name}: {'held' if done.returncode == 0 else 'BROKEN'}; {_summary(done.stderr)}", flush=True)
        if done.returncode:
            print(_traceback(done.stdout + done.stderr), flush=True)
    return status


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("contracts", nargs="*", metavar="CONTRACT", help=", ".join(NAMES))
    parser.add_argument("--seconds", type=int, default=120, help="for each contract")
    parser.add_argument("--found", type=Path, default=Path("fuzz-found"), help="folder for what breaks one")
    parser.add_argument("--again", type=Path, help="check one input instead, without coverage")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def _child(name: str, seconds: int, found: Path) -> int:
    import atheris

    with atheris.instrument_imports(include=["repro", "packaging"]):
        import fuzz_contracts

    found.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_fast()) as made:
        folder, corpus = Path(made) / "work", Path(made) / "corpus"
        folder.mkdir()
        corpus.mkdir()
        for number, example in enumerate(fuzz_contracts.examples(name, folder)):
            (corpus / f"example{number}").write_bytes(example)
        (Path(made) / "words").write_text("\n".join(map(_word, fuzz_contracts.TOKENS)) + "\n")
        contract = fuzz_contracts.CONTRACTS[name]
        options = [f"-max_total_time={seconds}", f"-max_len={LONGEST}", "-timeout=30", "-rss_limit_mb=4096"]
        options += [f"-dict={made}/words", f"-artifact_prefix={found}/{name}-", "-print_final_stats=1"]
        atheris.Setup([sys.argv[0], *options, str(corpus)], lambda data: contract(data, folder))
        atheris.Fuzz()
    return 0


def _word(token: bytes) -> str:
    """As libFuzzer's dictionaries have it."""
    return '"' + "".join(f"\\x{byte:02x}" for byte in token) + '"'


def _fast() -> str | None:
    """A folder in memory, where there is one: a contract makes and removes files at every input."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def _once(name: str, path: Path) -> None:
    import fuzz_contracts

    with tempfile.TemporaryDirectory() as made:
        fuzz_contracts.CONTRACTS[name](path.read_bytes(), Path(made))
    print(f"{name}: held")


def _summary(said: str) -> str:
    """Inputs tried, and branches seen, from libFuzzer's last lines."""
    lines = said.splitlines()
    runs = next((line.split()[-1] for line in lines if "number_of_executed_units" in line), "?")
    seen = [line.split("cov: ")[1].split()[0] for line in lines if "cov: " in line]
    return (
        f"{runs} inputs, branches seen: {seen[0]} to begin with, {seen[-1]} in the end"
        if seen
        else said[-500:]
    )


def _traceback(said: str) -> str:
    start = said.find("=== Uncaught")
    return said[start : start + 3000] if start >= 0 else said[-2000:]


if __name__ == "__main__":
    sys.exit(main())
