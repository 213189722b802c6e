"""Failing inputs, kept as bits, that other candidates are tried with."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from repro.run import Order
from repro.store import KeptInputs, Ledger, Series
from repro.trial.records import Mode


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """The random inputs of one failing trial.

    Args:
        seed: of that trial.
        identity: stands for the inputs where trials are recorded: the seed itself where that alone gives
            the inputs (no torch is involved), else a part of the file's hash.
        file: what was drawn, or None where the seed alone gives the inputs.
    """

    seed: int
    identity: int
    file: Path | None = None


def take(kept: Iterable[KeptInputs], state: Path, most: int) -> list[Inputs]:
    """Put kept inputs below `inputs/`, where no trial can change them; those that fail the check are left.

    Args:
        kept: as the ledger has them.
        state: the run's folder.
        most: how many are wanted.
    """
    found: dict[int, Inputs] = {}
    for each in kept:
        if len(found) < most and each.failed_again is not False and each.seed not in found:
            inputs = _take(each, state)
            if inputs is not None:
                found[each.seed] = inputs
    return list(found.values())


def replay(ledger: Ledger, series: Series, inputs: Sequence[Inputs], times: int, *, gpu: int | None) -> Order:
    """Each input in turn, `times` times, in one process; numbered on from the replays that the ledger holds.

    Args:
        series: of the replays.
        gpu: index of the GPU to use, or None.
    """
    identities = [each.identity for each in inputs]
    done = [number for each in set(identities) for number in ledger.done_repetitions(series, each)]
    return Order(
        seeds=identities * times,
        mode=Mode.REPLAY,
        gpu=gpu,
        first_trial=max(done, default=-1) + 1,
        keep_inputs=0,
        replay={each.identity: each.file for each in inputs if each.file is not None},
    )


def _take(kept: KeptInputs, state: Path) -> Inputs | None:
    if not kept.path:
        return Inputs(seed=kept.seed, identity=kept.seed)
    home = state / "inputs" / f"{kept.sha256}.pt"
    if not home.exists() and not _copy(state / "blocks" / kept.block, kept, home):
        return None
    return Inputs(seed=kept.seed, identity=int(kept.sha256[:15], 16), file=home)


def _copy(block: Path, kept: KeptInputs, home: Path) -> bool:
    """Copy a file that a trial wrote, if it is what was recorded; a trial's link is not followed."""
    source = block / kept.path
    if not source.resolve().is_relative_to(block.resolve()) or not source.is_file():
        return False
    content = source.read_bytes()
    if hashlib.sha256(content).hexdigest() != kept.sha256:
        return False
    home.parent.mkdir(parents=True, exist_ok=True)
    draft = home.with_name(f".{home.name}.{os.getpid()}")
    draft.write_bytes(content)
    draft.chmod(0o444)
    draft.replace(home)
    return True
