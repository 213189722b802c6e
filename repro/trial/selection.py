"""Finds the one test that a user's id means among those that pytest collected."""

from __future__ import annotations

import difflib
import re
from typing import List, Sequence

_NEAREST = 8


def short_id(node_id: str) -> str:
    """What stands after the file in a pytest id, such as `TestB::test_c[d]`."""
    match = re.match(r"[^\[]*?\.py::", node_id)
    return node_id[match.end() :] if match else node_id


def matching(name: str, ids: Sequence[str]) -> List[str]:
    """The ids that `name` means: the id itself, or all parametrizations of a name without brackets.

    A name without its class matches where only one class has it; letters beyond ASCII may stand as they are,
    or escaped, as pytest writes them.
    """
    given = short_id(name)
    return _matching(given, ids) or _matching(_escaped(given), ids)


def _escaped(name: str) -> str:
    return "".join(one if one.isascii() else one.encode("unicode_escape").decode("ascii") for one in name)


def _matching(name: str, ids: Sequence[str]) -> List[str]:
    for key in (_itself, _without_parameters):
        found = [one for one in ids if key(one) == name]
        found = found or [one for one in ids if key(one).split("::")[-1] == name]
        if found:
            return found
    return []


def matching_glob(pattern: str, ids: Sequence[str]) -> List[str]:
    """The ids that a name or a glob means; only `*` and `?` are special, brackets stand for themselves."""
    pattern = short_id(pattern)
    if "*" not in pattern and "?" not in pattern:
        return matching(pattern, ids)
    parts = (re.escape(part) for part in re.split(r"([*?])", pattern))
    regex = re.compile("".join({r"\*": ".*", r"\?": "."}.get(part, part) for part in parts), re.DOTALL)
    return [one for one in ids if regex.fullmatch(one)]


def nearest(name: str, ids: Sequence[str]) -> List[str]:
    """The ids that look most like `name`, best first; its own parametrizations come before all others."""
    name = short_id(name)
    bare = _without_parameters(name)
    siblings = [one for one in ids if _without_parameters(one).split("::")[-1] == bare.split("::")[-1]]
    siblings.sort(key=lambda one: -difflib.SequenceMatcher(None, name, one).ratio())
    similar = difflib.get_close_matches(name, ids, n=_NEAREST, cutoff=0.4)
    bare_similar = [
        one
        for close in difflib.get_close_matches(bare, {_without_parameters(one): 0 for one in ids}, n=3)
        for one in ids
        if _without_parameters(one) == close
    ]
    return list(dict.fromkeys(siblings + similar + bare_similar))[:_NEAREST]


def _itself(one: str) -> str:
    return one


def _without_parameters(one: str) -> str:
    return one.split("[", 1)[0]
