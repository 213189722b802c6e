"""What was found, as the text of a matrix.yaml with comments."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence

from repro.starting.machine import Stack
from repro.starting.surveying import Survey

_PLAIN = re.compile(r"[A-Za-z_./][\w./-]*(?:::\w+)*(?:\[[\w./-]+\])?")
_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})

_HEAD = """\
# What is tested, how often, and in which versions. `repro plan` shows what this file means, `repro doctor`
# what this machine lacks for it, `repro matrix` runs it. Written by `repro init`; it is yours to change.
#
# Versions are text: write "3.10", in quotes, because 3.10 without them is the number 3.1.
"""
_TRIALS = """\
trials:
  count: 200          # a cell, at most
  confidence: 0.95    # of the intervals
  half_width: 0.05    # a cell is done early once its rate is known to plus or minus this
  block: 50           # trials that share one process

limits:               # on each trial process, and on each build
  memory: 8g
  trial_timeout: 2m
  startup_timeout: 5m
  build_timeout: 30m
"""
_PROFILES = """\
# A profile is every combination of its axes, less what `exclude` names, and then what `include` adds. Axes:
#   python, torch   versions, or ranges such as ">=2.8,<2.11"
#   triton          `pinned` (what that torch was released with), or versions: those make crossed cells
#   cuda            `default` (what PyPI carries), `cpu`, or a build such as cu126
#   ptxas           `bundled` (inside triton's wheel), or versions
#   env             a list of environments, such as [{}, {TRITON_DEFAULT_FP_FUSION: 0}]
# What cannot exist (no wheel, no such build) is left out by itself, with the reason.
#
# Without --profile, the first one that this machine can run is taken.
profiles:
"""
_CPU_NOTE = "One torch without CUDA, kernels under Triton's interpreter: rates say nothing about a GPU."
_GPU_NOTE = "Release lines of torch, each with the Triton and the CUDA that it was released with."


def render(found: Survey, profiles: Mapping[str, Stack], path: str = ".") -> str:
    """The text of the file.

    Args:
        found: the repository.
        profiles: by name.
        path: from the file's folder to the repository.
    """
    parts = [_HEAD, _subject(found, path), _TRIALS, _PROFILES + _profiles(profiles)]
    return "\n".join(parts)


def _subject(found: Survey, path: str) -> str:
    layout = found.layout
    folders = f"[{', '.join(map(_scalar, layout.python_path))}]"
    lines = [
        "subject:",
        f"  path: {_scalar(path)}",
        "  # The parts that are the subject: code, tests, build files. A change in them is a new revision.",
        "  # Leave `files` out to take the whole folder.",
        f"  files: [{', '.join(map(_scalar, layout.parts))}]",
        f"  python_path: {folders}   # where packages are imported from"
        if not layout.is_found
        else f"  # python_path: {folders}   # found by itself",
        f"  test_file: {_scalar(found.target.file)}",
        f"  test: {_scalar(found.test)}",
        *_case_note(found),
        *_requirements(layout.requirements),
        "  signature:",
        "    exception: AssertionError   # any other failure counts as another failure",
        "  # adapter: FILE.py            # knows where the operator's derivative jumps",
    ]
    return "\n".join(lines) + "\n"


def _case_note(found: Survey) -> list[str]:
    if "[" in found.test:
        return ["  # one case of a parametrised test; `pytest --collect-only -q` lists the others"]
    if found.target.case is None:
        return [
            "  # if the test has parameters, name one case in brackets, such as test_backward[float32-True];",
            "  # `pytest --collect-only -q` lists them",
        ]
    return []


def _requirements(wanted: Sequence[str]) -> list[str]:
    if wanted:
        texts = ", ".join(json.dumps(text) for text in wanted)
        return [f"  requirements: [{texts}]   # declared by the repository; beside torch, triton and pytest"]
    return ['  # requirements: ["einops>=0.8"]   # beside torch, triton and pytest']


def _profiles(profiles: Mapping[str, Stack]) -> str:
    return "\n".join(_profile(name, stack) for name, stack in profiles.items())


def _profile(name: str, stack: Stack) -> str:
    on_gpu = stack.cuda != "cpu"
    lines = [
        "",
        f"  # {_GPU_NOTE if on_gpu else _CPU_NOTE}",
        f"  {name}:",
        f'    python: "{stack.python}"',
        f"    torch: [{_versions(stack.torch)}]",
        f"    triton: {_axis(stack.triton)}",
        f"    cuda: {stack.cuda}",
    ]
    if on_gpu:
        lines += [
            "    trials:",
            "      block: 200      # a trial takes milliseconds on a GPU, a new process seconds",
            "    # include:        # with another Triton: tells a change in Triton from one in torch",
            f'    #   - torch: "{stack.torch[-1]}"',
            '    #     triton: ["3.6.0"]',
            "    #     reason: the same torch, another Triton",
        ]
    return "\n".join(lines) + "\n"


def _axis(values: Sequence[str]) -> str:
    return values[0] if tuple(values) == ("pinned",) else f"[{_versions(values)}]"


def _versions(values: Iterable[str]) -> str:
    return ", ".join(value if value == "pinned" else f'"{value}"' for value in values)


def _scalar(text: str) -> str:
    """A text as YAML reads it back: plain where that is sure, else quoted."""
    plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS and not text.endswith(":")
    return text if plain else json.dumps(text, ensure_ascii=False)
