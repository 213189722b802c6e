"""A test in float64: the same inputs, every float32 that it asks for twice as wide.

What is random is drawn in float32 and then widened, so that the numbers stay the same. A kernel that sums in
float32 whatever it is given stays as it is: the test alone is widened.
"""

from __future__ import annotations

import contextlib
import importlib
from typing import Any, Callable, Dict, Iterator

_DRAWS = frozenset(
    ("rand", "randn", "rand_like", "randn_like", "normal", "new_rand", "new_randn", "bernoulli", "poisson")
)
_DRAWS_IN_PLACE = frozenset(
    ("uniform_", "normal_", "exponential_", "cauchy_", "geometric_", "log_normal_", "bernoulli_", "random_")
)
_NARROWING = frozenset(("float",))
_FROM_OUTSIDE = frozenset(("from_numpy", "as_tensor", "frombuffer", "from_dlpack", "asarray", "load"))


@contextlib.contextmanager
def widened(torch: Any, touched: Callable[[], None]) -> Iterator[None]:
    """A context in which float32 means float64.

    Args:
        torch: the module.
        touched: called for each draw and each conversion that was widened.
    """
    base: Any = importlib.import_module("torch.overrides").TorchFunctionMode

    class Widening(base):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return _call(torch, touched, func, args, dict(kwargs or {}))

    default = torch.get_default_dtype()
    if default == torch.float32:
        torch.set_default_dtype(torch.float64)
    try:
        with Widening():
            yield
    finally:
        torch.set_default_dtype(default)


def _call(torch: Any, touched: Callable[[], None], func: Any, args: Any, kwargs: Dict[str, Any]) -> Any:
    name = getattr(func, "__name__", "")
    if name in _DRAWS_IN_PLACE:
        return _drawn_in_place(torch, touched, func, args, kwargs)
    if name in _DRAWS:
        return _drawn(torch, touched, func, args, kwargs)
    if name in _NARROWING and args:
        touched()
        return func(*args, **kwargs).to(torch.float64)
    args = tuple(_wide(torch, each) for each in args)
    kwargs = {key: _wide(torch, each) for key, each in kwargs.items()}
    result = func(*args, **kwargs)
    return _to_wide(torch, result) if name in _FROM_OUTSIDE else result


def _wide(torch: Any, value: Any) -> Any:
    return torch.float64 if value is torch.float32 else value


def _to_wide(torch: Any, value: Any) -> Any:
    return value.to(torch.float64) if getattr(value, "dtype", None) is torch.float32 else value


def _drawn(torch: Any, touched: Callable[[], None], func: Any, args: Any, kwargs: Dict[str, Any]) -> Any:
    """Draw in float32 where float32 was meant, and widen what came."""
    asked = kwargs.get("dtype")
    like = next((each for each in args if isinstance(each, torch.Tensor)), None)
    meant = asked or (like.dtype if like is not None else torch.get_default_dtype())
    if asked is torch.float64 or meant not in (torch.float32, torch.float64):
        return func(*args, **kwargs)
    gradient = kwargs.pop("requires_grad", False)
    takes_dtype = like is None or getattr(func, "__name__", "").endswith("_like")
    if takes_dtype and kwargs.get("out") is None:
        kwargs["dtype"] = torch.float32
    elif like is not None:
        args = tuple(each.float() if each is like else each for each in args)
    touched()
    result = func(*args, **kwargs).to(torch.float64)
    return result.requires_grad_() if gradient else result


def _drawn_in_place(
    torch: Any, touched: Callable[[], None], func: Any, args: Any, kwargs: Dict[str, Any]
) -> Any:
    tensor = args[0]
    if tensor.dtype != torch.float64:
        return func(*args, **kwargs)
    touched()
    narrow = tensor.detach().to(torch.float32)
    func(narrow, *args[1:], **kwargs)
    return tensor.copy_(narrow)
