"""One run of the test under the probe: every operation seen, done once more in float64, and described."""

from __future__ import annotations

import contextlib
import importlib
from typing import Any, Callable, ContextManager, Dict, Iterator, List, Optional, Tuple

from ..dispatching import dispatching, name_of
from . import hooks
from .calls import Call, Enough, Leaves, Nudge
from .file import ProbeFile
from .numbers import cancelled, describe, largest, rounding
from .perturbing import Perturbation
from .shadows import Gradient, Shadows
from .wide import UNWRITTEN, Wide, written

_SUMS = frozenset(("add", "sub", "rsub", "add_", "sub_"))
_COPIES = frozenset(("clone", "_to_copy", "copy_"))


class Session:
    """What one run of the test did.

    Args:
        torch: the module.
        silent: tells whether operations belong to a measurement and not to the test.
        file: takes the steps; None where the run is for its value alone.
        nudge: changes one element of one input, or None.
        perturbation: moves the float64 copies of inputs, or None.
    """

    def __init__(
        self,
        torch: Any,
        silent: Callable[[], bool],
        file: Optional[ProbeFile] = None,
        nudge: Optional[Nudge] = None,
        perturbation: Optional[Perturbation] = None,
    ) -> None:
        self.torch = torch
        self.shadows = Shadows(torch, perturbation)
        self.leaves = Leaves(self.shadows, nudge)
        self.calls: List[Call] = []
        self.trouble = ""
        self._wide = Wide(torch, self.shadows)
        self._silent = silent
        self._file = file
        self._nudge = nudge
        self._pauses = self._depth = 0
        self._tree = importlib.import_module("torch.utils._pytree")
        self._task = getattr(torch._C, "_current_graph_task_id", lambda: -1)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """See every operation of the body."""
        with hooks.watched_by(self), self._mode():
            yield

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Let operations of the body pass unseen."""
        self._pauses += 1
        try:
            with self.torch.no_grad():
                yield
        finally:
            self._pauses -= 1

    @property
    def asleep(self) -> bool:
        """Whether operations pass unseen now."""
        return self._pauses > 0 or self._silent()

    # Operations ------------------------------------------------------------------------------------------

    def _mode(self) -> ContextManager[Any]:
        def seen(func: Any, args: Any, kwargs: Dict[str, Any]) -> Any:
            return func(*args, **kwargs) if self.asleep else self._operation(func, args, kwargs)

        return dispatching(seen)

    def _operation(self, func: Any, args: Any, kwargs: Any) -> Any:
        tensors = self.tensors((args, kwargs))
        if not all(self.shadows.plain(tensor) for tensor in tensors):
            return func(*args, **kwargs)
        changed = [tensor for tensor, _ in written(self._tree, func, args, kwargs)]
        before: Dict[str, Any] = {}
        with self.guarded():
            self.meet(tensors)
            before = self._before(func, args, tensors, changed)
        result = func(*args, **kwargs)
        with self.guarded():
            self._after(func, args, kwargs, changed, result, before)
        return result

    def meet(self, tensors: List[Any]) -> None:
        """Tensors are about to be used: number new inputs, and note what was written without torch."""
        self.leaves.meet(tensors)
        for tensor in tensors:
            if self.shadows.fits(tensor):
                self.notice(tensor)

    def notice(self, tensor: Any, by: str = "", before: Optional[Dict[str, Any]] = None) -> None:
        """Note it where a tensor was written by no operation of torch.

        Args:
            tensor: that may have been.
            by: what is known to have written it, or "".
            before: what was known of that one's inputs.
        """
        shadow, changed = self.shadows.look(tensor, by and f"{by} is no operation of torch")
        if changed and self._file is not None:
            self._step(by or "written outside of torch", 0, tensor, before or {}, note=shadow.opaque)

    def before(self, tensors: List[Any]) -> Dict[str, Any]:
        """What has to be known of inputs before they may be overwritten."""
        if self._file is None:
            return {}
        return {"largest": largest(self.torch, [tensor for tensor in tensors if self.shadows.fits(tensor)])}

    def _before(self, func: Any, args: Any, tensors: List[Any], changed: List[Any]) -> Dict[str, Any]:
        before = self.before(tensors)
        if before and name_of(func) in _SUMS:
            terms = [self._term(one, bool(changed)) for one in args[:2]]
            before["inputs"] = [one for one in terms if one is not None]
        return before

    def _term(self, value: Any, overwritten: bool) -> Optional[Any]:
        """What is added or subtracted, as a tensor; a number of Python's is one, too."""
        if isinstance(value, (int, float)):
            return self.torch.tensor(float(value), dtype=self.torch.float64)
        if not (isinstance(value, self.torch.Tensor) and self.shadows.fits(value)):
            return None
        return value.detach().clone() if overwritten else value

    def _after(
        self, func: Any, args: Any, kwargs: Any, changed: List[Any], result: Any, before: Dict[str, Any]
    ) -> None:
        inputs = {self._storage(tensor) for tensor in self.tensors((args, kwargs))}
        outputs = self.tensors(result)
        new = [tensor for tensor in outputs if self._storage(tensor) not in inputs]
        opaque = self._wide.repeat(func, args, kwargs, result, new)
        self._follow(func, args, result)
        if self._file is None or name_of(func) in UNWRITTEN:
            return
        steps = [tensor for tensor in outputs if any(tensor is one for one in new)]
        steps += [tensor for tensor in changed if not any(tensor is one for one in steps)]
        for number, tensor in enumerate(steps):
            if self.shadows.plain(tensor):
                self._step(str(func), number, tensor, before, note=opaque)

    def _follow(self, func: Any, args: Any, result: Any) -> None:
        """A copy of a gradient is that gradient, too."""
        if name_of(func) not in _COPIES:
            return
        source = args[1] if name_of(func) == "copy_" else args[0]
        if not (self.shadows.fits(source) and self.shadows.fits(result)):
            return
        mine, theirs = self.shadows.known(source), self.shadows.known(result)
        if mine is theirs:  # such as `grad[0] += 1`, which copies an element to where it is
            return
        if mine is not None and theirs is not None and mine.gradient is not None:
            whole = source.numel() == self.leaves.tensors[mine.gradient.leaf].numel()
            theirs.gradient = Gradient(mine.gradient.leaf, list(mine.gradient.calls), whole)

    def _step(self, op: str, number: int, tensor: Any, before: Dict[str, Any], note: str) -> None:
        assert self._file is not None
        fields = describe(self.torch, tensor)
        phase = "forward" if self._task() == -1 else "backward"
        size, had = largest(self.torch, [tensor]), before.get("largest")
        fits = self.shadows.fits(tensor)
        inputs = before.get("inputs")
        self._file.step(
            op=op,
            phase=phase,
            out=number,
            **fields,
            growth=size / had if had and size is not None else None,
            error=rounding(self.torch, tensor, self.shadows.view(tensor)) if fits and not note else None,
            cancellation=cancelled(self.torch, inputs, tensor) if inputs and len(inputs) > 1 else None,
            **({"note": note} if note else {}),
        )

    # Differentiation -------------------------------------------------------------------------------------

    def differentiate(self, engine: Callable[..., Any], outputs: Any, args: Any, kwargs: Any) -> Any:
        """A call of `backward` or `grad`: its function's value is kept, and whose gradients it gave.

        Raises:
            Enough: it is the last one that the nudge is about.
        """
        if self.asleep or self._depth:
            return engine(outputs, *args, **kwargs)
        with self.guarded():
            self.calls.append(Call.of(self, self.tensors(outputs), args[0] if args else ()))
        if self._nudge is not None and len(self.calls) > self._nudge.last:
            raise Enough
        self._depth += 1
        try:
            result = engine(outputs, *args, **kwargs)
        finally:
            self._depth -= 1
        with self.guarded():
            inputs = args[3] if len(args) > 3 else ()
            self._tag(len(self.calls) - 1, inputs, result, bool(kwargs.get("accumulate_grad")))
        return result

    def _tag(self, call: int, inputs: Any, result: Any, accumulated: bool) -> None:
        pairs: List[Tuple[Any, Any]] = list(zip(inputs or (), result or ()))  # noqa: B905
        if accumulated:
            pairs = [(leaf, leaf.grad) for leaf in self.leaves.tensors]
        for leaf, gradient in pairs:
            number = self.leaves.number(leaf)
            if number is None or gradient is None or not self.shadows.fits(gradient):
                continue
            shadow = self.shadows.look(gradient)[0]
            if shadow.gradient is None or not accumulated:
                shadow.gradient = Gradient(number)
            if shadow.gradient.version != gradient._version:
                shadow.gradient.version = gradient._version
                shadow.gradient.calls.append(call)

    # ---------------------------------------------------------------------------------------------------

    def tensors(self, tree: Any) -> List[Any]:
        """The tensors in nested arguments."""
        return [one for one in self._tree.tree_leaves(tree) if isinstance(one, self.torch.Tensor)]

    @contextlib.contextmanager
    def guarded(self) -> Iterator[None]:
        """What goes wrong in the probe itself must not become the test's outcome."""
        with self.paused():
            try:
                yield
            except Exception as error:
                self.trouble = self.trouble or f"{type(error).__name__}: {error}"[:300]

    @staticmethod
    def _storage(tensor: Any) -> int:
        return int(tensor.untyped_storage()._cdata)
