"""(cell, subject) pairs to trials: the one place where engines, plugin and ledger meet.

runner = Runner(engine=engine, ledger=ledger, state=state, limits=limits)
target = Target(cell=cell, subject=subject)
ran = runner.run(target, runner.prepare(target), Order(seeds=range(100)))
"""

from repro.run.order import KEPT_INPUTS, Interrupted, Order, Ran, Target
from repro.run.plugin import install_plugin
from repro.run.runner import Runner
from repro.run.threads import build_threads, run_threads

__all__ = [
    "KEPT_INPUTS",
    "Interrupted",
    "Order",
    "Ran",
    "Runner",
    "Target",
    "build_threads",
    "install_plugin",
    "run_threads",
]
