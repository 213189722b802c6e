"""Blocks of planted subjects, as the plugin's own tests run them."""

from trial.conftest import kit, run_block

__all__ = ["kit", "run_block"]
