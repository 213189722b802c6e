"""Does an operation of torch once more in float64, on the copies of its arguments."""

from __future__ import annotations

import importlib
from typing import Any, Iterator, List, Tuple

from ..dispatching import name_of
from .shadows import Shadows

UNWRITTEN = frozenset(
    ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted")
)
"""Operations whose result holds whatever was in its memory before."""

_KNOWN = ("aten", "prims")
_FILLS = frozenset(("uniform_", "normal_", "random_", "exponential_", "log_normal_", "cauchy_", "geometric_"))
"""Random operations that write over a tensor whatever was in it; so do those whose names end in `_like`."""


def written(tree: Any, func: Any, args: Any, kwargs: Any) -> List[Tuple[Any, str]]:
    """The tensors that an operation writes into, by its schema, with the parameters' names."""
    schema = getattr(func, "_schema", None)
    if schema is None or not schema.is_mutable:
        return []
    return list(_written(tree, schema, args, kwargs))


def _written(tree: Any, schema: Any, args: Any, kwargs: Any) -> Iterator[Tuple[Any, str]]:
    for place, parameter in enumerate(schema.arguments):
        if parameter.alias_info is None or not parameter.alias_info.is_write:
            continue
        value = args[place] if place < len(args) else kwargs.get(parameter.name)
        for one in tree.tree_leaves(value):
            if hasattr(one, "untyped_storage"):
                yield one, parameter.name


class Wide:
    """Float64 versions of operations.

    Args:
        torch: the module.
        shadows: the copies to work on.
    """

    def __init__(self, torch: Any, shadows: Shadows) -> None:
        self._torch = torch
        self._shadows = shadows
        self._tree = importlib.import_module("torch.utils._pytree")

    def repeat(self, func: Any, args: Any, kwargs: Any, result: Any, new: List[Any]) -> str:
        """Bring the copies to where an operation has brought the tensors themselves.

        Args:
            func: the operation, which has run.
            args: its arguments.
            kwargs: its arguments by name.
            result: what it gave.
            new: those tensors of the result that are no views of its arguments.

        Returns:
            Why the operation itself was not done in float64, or "".
        """
        shadows, tree = self._shadows, self._tree
        if name_of(func) in UNWRITTEN:
            for tensor in new:
                if shadows.fits(tensor):
                    shadows.adopt(tensor).unwritten = True
            return ""
        changed = [tensor for tensor, _ in written(tree, func, args, kwargs)]
        numbers = [one for one in tree.tree_leaves((args, kwargs)) if self._is_number(one)]
        if not [one for one in (*changed, *new) if shadows.fits(one)]:
            return ""
        if self._draws(func, numbers):
            for tensor in (*changed, *new):
                if shadows.fits(tensor):
                    shadows.filled(tensor)
            return ""
        inherited = self._inherited(numbers, changed)
        opaque, wide = self._do(func, args, kwargs, numbers, changed)
        for tensor in changed:
            if shadows.fits(tensor):
                shadows.wrote(tensor, opaque)
                self._inherit(tensor, inherited)
        found = tree.tree_leaves(result)
        same = tree.tree_leaves(wide) if wide is not None else []
        for place, tensor in enumerate(found):
            if any(tensor is one for one in new) and shadows.fits(tensor):
                value = same[place] if len(same) == len(found) else None
                shadows.settle(
                    tensor, self._narrowed(func, args, tensor, value), opaque or inherited, bool(opaque)
                )
        return opaque

    def _draws(self, func: Any, numbers: List[Any]) -> bool:
        """Whether an operation draws numbers that depend on no other number."""
        if self._torch.Tag.nondeterministic_seeded not in func.tags:
            return False
        name = name_of(func)
        return not numbers or name.endswith("_like") or (name in _FILLS and len(numbers) == 1)

    def _do(
        self, func: Any, args: Any, kwargs: Any, numbers: List[Any], changed: List[Any]
    ) -> Tuple[str, Any]:
        """Why it was not done, or "", and what it gave; without numbers, there is nothing to do."""
        if self._torch.Tag.nondeterministic_seeded in func.tags:
            return "it is random", None
        if not numbers:
            return "", None
        if func.namespace not in _KNOWN:
            return f"{func} is known in no float64 version", None
        if not all(self._shadows.fits(tensor) for tensor in changed):
            return "", None  # it would write into the test's own tensors
        try:
            return "", func(*self._widened(func, args), **self._widened(func, kwargs))
        except Exception as error:
            return f"{func} cannot be done in float64: {type(error).__name__}"[:200], None

    def _widened(self, func: Any, tree: Any) -> Any:
        torch, narrow = self._torch, name_of(func) == "copy_"
        target = tree[0].dtype if narrow and isinstance(tree, tuple) else None

        def widen(one: Any) -> Any:
            if isinstance(one, torch.dtype):
                return self._shadows.wide_type(one) if one.is_floating_point or one.is_complex else one
            if not self._is_number(one):
                return one
            wide = self._shadows.view(one)
            return wide.to(target).to(wide.dtype) if target and self._narrower(target, one.dtype) else wide

        return self._tree.tree_map(widen, tree)

    def _narrowed(self, func: Any, args: Any, tensor: Any, wide: Any) -> Any:
        """A cast to a narrower type is part of the computation: it rounds in float64, too."""
        if wide is None or name_of(func) != "_to_copy" or not self._narrower(tensor.dtype, args[0].dtype):
            return wide
        return wide.to(tensor.dtype).to(wide.dtype)

    def _narrower(self, target: Any, source: Any) -> bool:
        both = target.is_floating_point and source.is_floating_point
        return both and bool(self._torch.finfo(target).eps > self._torch.finfo(source).eps)

    def _inherited(self, numbers: List[Any], changed: List[Any]) -> str:
        """Why an operation's arguments were not all computed in float64, or ""."""
        for one in numbers:
            shadow = self._shadows.known(one)
            first = shadow is not None and shadow.unwritten and any(one is each for each in changed)
            if shadow is not None and shadow.opaque and not first:
                return shadow.opaque
        return ""

    def _inherit(self, tensor: Any, inherited: str) -> None:
        shadow = self._shadows.known(tensor)
        if shadow is not None:
            shadow.opaque = shadow.opaque or inherited

    def _is_number(self, value: Any) -> bool:
        return isinstance(value, self._torch.Tensor) and self._shadows.fits(value)
