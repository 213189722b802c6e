"""Python source of a stranger, parsed and never run."""

from __future__ import annotations

import ast


def parse(source: str | bytes) -> ast.Module:
    """The syntax tree of a source.

    Raises:
        SyntaxError: it is no Python, or not that of the interpreter that runs the kit.
        ValueError: it holds a null byte, or is nested more deeply than the parser can go.
    """
    try:
        return ast.parse(source)
    except (MemoryError, RecursionError) as error:
        raise ValueError("nested too deeply") from error
