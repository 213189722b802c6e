"""A first matrix.yaml: what a repository holds and what this machine can run, written down with comments.

    found = survey(Path("."), Asked())
    text = render(found, look())

Nothing of the repository is imported or executed.
"""

from repro.starting.candidates import Candidate
from repro.starting.machine import Machine, Stack, look, stacks_for
from repro.starting.rendering import render
from repro.starting.surveying import Asked, Survey, survey, top_of

__all__ = [
    "Asked",
    "Candidate",
    "Machine",
    "Stack",
    "Survey",
    "look",
    "render",
    "stacks_for",
    "survey",
    "top_of",
]
