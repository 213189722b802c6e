"""Each generator gets the trial's seed, and no device that is not there costs a trial anything."""

import pytest
import torch

from repro.trial.seeding import Seeding


@pytest.fixture(autouse=True)
def _restored():
    state = torch.get_rng_state()
    yield
    torch.set_rng_state(state)


@pytest.mark.parametrize("present", [(), ("cuda",), ("xpu",), ("cuda", "xpu")])
def test_devices_that_are_there_are_seeded_and_no_others(monkeypatch, present):
    seeded = []
    for name in ("cuda", "xpu"):
        module = getattr(torch, name)
        monkeypatch.setattr(module, "is_available", lambda there=name in present: there)
        monkeypatch.setattr(module, "manual_seed_all", lambda seed, name=name: seeded.append((name, seed)))
    # What torch.manual_seed asks of absent devices is a stack trace each: a third of a millisecond.
    monkeypatch.setattr(torch, "manual_seed", lambda seed: pytest.fail("asks every device"))
    seeding = Seeding()
    seeding.seed(7)
    first = torch.rand(3)
    seeding.seed(8)
    assert not torch.equal(torch.rand(3), first)
    seeding.seed(7)
    assert torch.equal(torch.rand(3), first)
    assert seeded == [(name, seed) for seed in (7, 8, 7) for name in present]


def test_a_seed_draws_what_torchs_own_seeding_draws():
    torch.manual_seed(41)
    wanted = torch.rand(3)
    Seeding().seed(41)
    assert torch.equal(torch.rand(3), wanted)
