"""Generated code without what differs between two compilations of the same program.

Taken out are paths, source locations, comments, debug sections, hashes and declared versions; numbered names
(registers, SSA values, labels, metadata) are numbered anew in the order in which they appear.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

_PARENTHESIS = re.compile(r"\"[^\"]*\"|[()]")
_SSA = re.compile(r"%[A-Za-z_0-9$.]+(?:#\d+|:\d+)?")
_LLVM_METADATA = re.compile(r",?\s*![A-Za-z_.]*\s*!\d+|\s#\d+\b|\s*captures\(none\)|\s*nocapture")
_PTX_LABEL = re.compile(r"\$L__?[A-Za-z]*[_\d]+")
_PTX_REGISTER = re.compile(r"%(?:rd|rs|rq|fd|r|f|p|h|b)\d+\b")
_PTX_SKIPPED = (".loc", ".file", ".version", ".reg", ".section", "// ", ".b8", ".b16", ".b32", ".b64")
_SASS_CODE = re.compile(r"/\*[0-9a-f]{4,}\*/\s*(.*?)\s*;")
_SASS_REGISTER = re.compile(r"\b(?:UR|UP|R|P|B)\d+\b")
_SASS_LABEL = re.compile(r"\.L_x?_?\d+")


def normal(stage: str, text: str) -> list[str]:
    """The lines of one stage that are worth a comparison."""
    return list(_NORMAL[stage](text))


def _renumbered(pattern: re.Pattern[str], lines: Iterator[str], kind: Callable[[str], str]) -> Iterator[str]:
    """Lines with every numbered name counted from 0, each kind by itself, in order of appearance."""
    known: dict[str, str] = {}
    counts: dict[str, int] = {}

    def name(match: re.Match[str]) -> str:
        found = match.group(0)
        if found not in known:
            prefix = kind(found)
            known[found] = f"{prefix}{counts.setdefault(prefix, 0)}"
            counts[prefix] += 1
        return known[found]

    for line in lines:
        yield pattern.sub(name, line)


def _without_locations(line: str) -> str:
    """A line without `loc(...)`, however deep its parentheses are nested."""
    while (start := line.find(" loc(")) >= 0:
        depth = 0
        for found in _PARENTHESIS.finditer(line, start):
            depth += {"(": 1, ")": -1}.get(found.group(0), 0)
            if depth == 0 and found.group(0) == ")":
                line = line[:start] + line[found.end() :]
                break
        else:
            return line[:start]
    return line


def _mlir(text: str) -> Iterator[str]:
    lines = (_without_locations(line).rstrip() for line in text.splitlines() if not line.startswith("#loc"))
    return _renumbered(_SSA, (line for line in lines if line.strip()), lambda name: "%")


def _llir(text: str) -> Iterator[str]:
    body = (
        _LLVM_METADATA.sub("", line).split(" ; preds")[0].rstrip()
        for line in text.splitlines()
        if not line.startswith((";", "!", "source_filename", "attributes", "target "))
    )
    code = (line for line in body if line.strip() and "@llvm.dbg." not in line)
    return _renumbered(re.compile(r"%[A-Za-z_.0-9]+|^\d+(?=:)"), code, lambda name: "%")


def _ptx(text: str) -> Iterator[str]:
    code = _renumbered(_PTX_LABEL, _ptx_code(text), lambda name: "$L")
    return _renumbered(_PTX_REGISTER, code, lambda name: name.rstrip("0123456789"))


def _ptx_code(text: str) -> Iterator[str]:
    """Instructions and what declares the entry, without comments and debug sections."""
    for raw in text.split("\t.section")[0].splitlines():
        line = raw.split("//")[0].strip()
        debug = line.startswith(("$L__tmp", "$L__func", "$L__info"))
        if line and not debug and not line.startswith(_PTX_SKIPPED):
            yield " ".join(line.split())


def _sass(text: str) -> Iterator[str]:
    code = _renumbered(_SASS_LABEL, _sass_code(text), lambda name: ".L")
    return _renumbered(_SASS_REGISTER, code, lambda name: name.rstrip("0123456789"))


def _sass_code(text: str) -> Iterator[str]:
    for line in text.splitlines():
        found = _SASS_CODE.search(line)
        if found:
            yield " ".join(found.group(1).split())
        elif line.startswith(".L"):
            yield line.strip()


_NORMAL: dict[str, Callable[[str], Iterator[str]]] = {
    "ttir": _mlir,
    "ttgir": _mlir,
    "llir": _llir,
    "ptx": _ptx,
    "sass": _sass,
}
