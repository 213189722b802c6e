"""matrix.yaml: what to test, how often, and in which versions.

`load` reads the file into a `Matrix`, or names every mistake in it at once.
"""

from repro.config.loading import load
from repro.config.model import Limits, Matrix, Profile, Rule, Signature, SubjectSpec, Trials
from repro.config.problems import ConfigError, Problem

__all__ = [
    "ConfigError",
    "Limits",
    "Matrix",
    "Problem",
    "Profile",
    "Rule",
    "Signature",
    "SubjectSpec",
    "Trials",
    "load",
]
