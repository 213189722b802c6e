"""Counts of the instructions that change a result, or its order, or what it costs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

_FLOAT = r"(?:\.\w+)*\.(?:f16|f32|f64|bf16|f16x2|bf16x2|tf32)\w*"
_PTX = (
    ("fma", re.compile(rf"fma{_FLOAT}$")),
    ("multiply", re.compile(rf"mul{_FLOAT}$")),
    ("add", re.compile(rf"(?:add|sub){_FLOAT}$")),
    ("approximate", re.compile(r"(?:ex2|lg2|sin|cos|rcp|rsqrt|sqrt|div|tanh)\.(?:approx|full)[.\w]*$")),
    ("divide, root", re.compile(rf"(?:div|sqrt|rcp){_FLOAT}$")),
    ("convert", re.compile(r"cvt\.[.\w]+$")),
    ("atomic", re.compile(r"(?:atom|red)\.[.\w:]+$")),
    ("fence", re.compile(r"(?:membar|fence)\.[.\w:]+$")),
    ("barrier", re.compile(r"(?:bar|barrier)(?:\.cta)?\.[.\w]+$")),
    ("matrix", re.compile(r"(?:mma|wgmma|wmma|tcgen05)\.[.\w]+$")),
    ("global", re.compile(r"(?:ld|st)\.(?:volatile\.|weak\.|relaxed\.\w+\.)?global[.\w:]*$")),
    ("shared", re.compile(r"(?:ld|st|ldmatrix|stmatrix)\.[.\w]*shared[.\w:]*$")),
    ("spill", re.compile(r"(?:ld|st)\.local[.\w]*$")),
)
_SASS = (
    ("fma", re.compile(r"[FDH]FMA2?\b")),
    ("multiply", re.compile(r"[FDH]MUL2?\b")),
    ("add", re.compile(r"[FDH]ADD2?\b")),
    ("approximate", re.compile(r"MUFU\b")),
    ("convert", re.compile(r"(?:F2F|F2I|I2F|F2FP|FRND)\b")),
    ("atomic", re.compile(r"(?:ATOM|ATOMG|ATOMS|RED|REDG)\b")),
    ("fence", re.compile(r"(?:MEMBAR|CCTL|ERRBAR)\b")),
    ("barrier", re.compile(r"BAR\b")),
    ("matrix", re.compile(r"(?:HMMA|IMMA|DMMA|WGMMA|HGMMA|UTCHMMA)\b")),
    ("global", re.compile(r"(?:LDG|STG)\b")),
    ("shared", re.compile(r"(?:LDS|STS|LDSM|STSM)\b")),
    ("spill", re.compile(r"(?:LDL|STL)\b")),
)
_PREDICATE = re.compile(r"^@!?%?[A-Z]*\w+\s+")
_MOVE = re.compile(r"HFMA2(?:\.MMA)? R\d+, -RZ, RZ,")
"""A constant put into a register by way of an unused unit: no arithmetic of the kernel."""
_REGISTERS = re.compile(r"SHI_REGISTERS=(\d+)")

Counts = dict[str, Counter[str]]
"""By kind (fma, atomic, barrier, ...), how often each instruction stands in the code."""


def count_ptx(lines: Iterable[str]) -> Counts:
    """Counts in normalised PTX; an instruction is named with rounding, ordering and width."""
    return _count(lines, _PTX)


def count_sass(lines: Iterable[str]) -> Counts:
    """Counts in normalised SASS; an instruction is named with its modifiers."""
    return _count(lines, _SASS)


def registers(sass: str) -> int | None:
    """Registers a thread, as the machine code's header says; None where it does not."""
    found = _REGISTERS.search(sass)
    return int(found.group(1)) if found else None


def _count(lines: Iterable[str], kinds: Iterable[tuple[str, re.Pattern[str]]]) -> Counts:
    counts: Counts = {}
    for line in lines:
        words = [] if _MOVE.search(line) else _PREDICATE.sub("", line).split()
        opcode = words[0].rstrip(";") if words else ""
        for kind, pattern in kinds:
            if pattern.match(opcode):
                counts.setdefault(kind, Counter())[opcode] += 1
                break
    return counts


def differing(ours: Counts, theirs: Counts) -> list[tuple[str, str, int, int]]:
    """Kind, instruction and both counts, of those that are not equal."""
    rows = []
    for kind in dict.fromkeys((*ours, *theirs)):
        a, b = ours.get(kind, Counter()), theirs.get(kind, Counter())
        rows += [(kind, one, a[one], b[one]) for one in sorted({*a, *b}) if a[one] != b[one]]
    return rows
