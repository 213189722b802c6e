"""Puts measured comparisons in the place of a library's own, the moment the library is imported.

Whatever a test file imports, in whatever form, it gets the measured one; a library that no test imports is
never loaded.
"""

from __future__ import annotations

import functools
import importlib.util
import sys
import unittest
from importlib.abc import Loader, MetaPathFinder
from types import ModuleType
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

from .comparisons import Compared, Comparisons
from .measure_numbers import measure_arrays, measure_numbers
from .measure_torch import measure_close, measure_tensors, tolerances_of

OnLoad = Callable[[ModuleType], None]


class Watcher(MetaPathFinder):
    """An import finder that calls back when a module has been loaded."""

    def __init__(self, callbacks: Mapping[str, OnLoad]) -> None:
        self._callbacks = callbacks
        self._busy: List[str] = []

    def install(self) -> None:
        """Watch imports from now on; modules that are loaded already are handed over at once."""
        for name, callback in self._callbacks.items():
            if name in sys.modules:
                callback(sys.modules[name])
        sys.meta_path.insert(0, self)

    def find_spec(
        self, fullname: str, path: Optional[Sequence[str]], target: Optional[ModuleType] = None
    ) -> Any:
        """Find a watched module as Python does, with a loader that calls back."""
        if fullname not in self._callbacks or fullname in self._busy:
            return None
        self._busy.append(fullname)
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._busy.remove(fullname)
        if spec is not None and spec.loader is not None:
            _call_after(spec.loader, self._callbacks[fullname])
        return spec


def _call_after(loader: Loader, callback: OnLoad) -> None:
    execute = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        execute(module)
        callback(module)

    loader.exec_module = exec_module  # type: ignore[method-assign]


def patch_unittest(comparisons: Comparisons) -> None:
    """Measure `assertAlmostEqual`."""
    compared = Compared(
        name="assertAlmostEqual",
        parameters=("self", "first", "second", "places", "msg", "delta"),
        defaults={"places": None, "delta": None},
        measure=_almost,
    )
    case: Any = unittest.TestCase
    case.assertAlmostEqual = comparisons.wrap(case.assertAlmostEqual, compared)


def _almost(bound: Mapping[str, Any], passed: bool) -> List[Dict[str, Any]]:
    places = 7 if bound["places"] is None else bound["places"]
    atol = 0.5 * 10.0**-places if bound["delta"] is None else float(bound["delta"])
    return [measure_numbers(bound["first"], bound["second"], atol, 0.0)]


_OF_NO_MATTER = {
    *("actual", "expected", "rtol", "atol", "equal_nan", "msg"),
    *("check_device", "check_dtype", "check_layout"),
}
"""Arguments of `assert_close` that cannot fail tensors which differ in nothing but finite values."""


def patch_torch(comparisons: Comparisons, torch: Any) -> None:
    """Measure torch's comparisons."""
    testing = importlib.import_module("torch.testing")
    _patch_assert_close(comparisons, torch, testing)
    _patch_verdict(comparisons, torch, testing)
    _patch_allclose(comparisons, torch)


def _patch_assert_close(comparisons: Comparisons, torch: Any, testing: Any) -> None:
    """Measure `assert_close`, and `assert_allclose` where torch still has it."""
    close = functools.partial(measure_close, torch, known=comparisons.known)

    def agrees(bound: Mapping[str, Any]) -> bool:
        sides = bound.get("actual"), bound.get("expected")
        if not (_OF_NO_MATTER.issuperset(bound) and all(isinstance(side, torch.Tensor) for side in sides)):
            return False
        atol, rtol = bound.get("atol"), bound.get("rtol")
        if atol is None and rtol is None:  # one of them alone is an error, which torch raises
            atol, rtol = tolerances_of(torch, bound, *sides)
        return comparisons.agree(torch, *sides, atol, rtol)

    compared = Compared("torch.testing.assert_close", ("actual", "expected"), close, {"equal_nan": False})
    testing.assert_close = comparisons.wrap(_agreeing_first(testing.assert_close, compared, agrees), compared)
    if hasattr(testing, "assert_allclose"):
        parameters = ("actual", "expected", "rtol", "atol", "equal_nan")
        compared = Compared("torch.testing.assert_allclose", parameters, close, {"equal_nan": True})
        testing.assert_allclose = comparisons.wrap(testing.assert_allclose, compared)


def _agreeing_first(
    original: Callable[..., Any], compared: Compared, agrees: Callable[[Mapping[str, Any]], bool]
) -> Callable[..., Any]:
    """The function, which only runs where its arguments are not measured to agree."""

    @functools.wraps(original)
    def compare(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        if len(args) <= len(compared.parameters) and agrees(compared.bind(args, kwargs)):
            return compared.predicate or None
        return original(*args, **kwargs)

    return compare


def _patch_verdict(comparisons: Comparisons, torch: Any, testing: Any) -> None:
    """Let `assert_close` take tensors in nested data for close that are measured to be."""
    pair: Any = getattr(getattr(testing, "_comparison", None), "TensorLikePair", None)
    original = getattr(pair, "_compare_regular_values_close", None)
    if original is None:
        return

    @functools.wraps(original)
    def compare(self: Any, actual: Any, expected: Any, *args: Any, **options: Any) -> Any:
        __tracebackhide__ = True
        given = actual is getattr(self, "actual", None) and expected is getattr(self, "expected", None)
        if given and comparisons.agree(torch, actual, expected, options.get("atol"), options.get("rtol")):
            return None
        return original(self, actual, expected, *args, **options)

    pair._compare_regular_values_close = compare


def _patch_allclose(comparisons: Comparisons, torch: Any) -> None:
    """Measure `torch.allclose` and the method of the same name."""

    def measure(bound: Mapping[str, Any], passed: bool) -> List[Dict[str, Any]]:
        ours, theirs = torch.broadcast_tensors(bound["input"], bound["other"])
        known = comparisons.known.get((id(bound["input"]), id(bound["other"])))
        options = (bound["atol"], bound["rtol"], bound["equal_nan"], passed)
        return [measure_tensors(torch, ours, theirs, *options, known)]

    def agrees(bound: Mapping[str, Any]) -> bool:
        sides = bound.get("input"), bound.get("other")
        return comparisons.agree(torch, *sides, bound["atol"], bound["rtol"])

    compared = Compared(
        name="torch.allclose",
        parameters=("input", "other", "rtol", "atol", "equal_nan"),
        defaults={"rtol": 1e-5, "atol": 1e-8, "equal_nan": False},
        measure=measure,
        predicate=True,
    )
    for owner in (torch, torch.Tensor):
        owner.allclose = comparisons.wrap(_agreeing_first(owner.allclose, compared, agrees), compared)


def patch_numpy(comparisons: Comparisons, numpy: Any) -> None:
    """Measure `numpy.allclose`."""

    def measure(bound: Mapping[str, Any], passed: bool) -> List[Dict[str, Any]]:
        return _arrays(bound, passed, bound["a"], bound["b"])

    compared = Compared(
        name="numpy.allclose",
        parameters=("a", "b", "rtol", "atol", "equal_nan"),
        defaults={"rtol": 1e-5, "atol": 1e-8, "equal_nan": False},
        measure=measure,
        predicate=True,
    )
    numpy.allclose = comparisons.wrap(numpy.allclose, compared)


def patch_numpy_testing(comparisons: Comparisons, testing: Any) -> None:
    """Measure the assertions of `numpy.testing`."""
    for name, parameters, defaults in (
        ("assert_allclose", ("actual", "desired", "rtol", "atol", "equal_nan"), {"rtol": 1e-7}),
        ("assert_array_almost_equal", ("actual", "desired", "decimal"), {"decimal": 6}),
        ("assert_almost_equal", ("actual", "desired", "decimal"), {"decimal": 7}),
        ("assert_array_equal", ("actual", "desired"), {}),
        ("assert_equal", ("actual", "desired"), {}),
    ):
        measure = _equal if name == "assert_equal" else _desired
        compared = Compared(f"numpy.testing.{name}", parameters, measure, defaults)
        setattr(testing, name, comparisons.wrap(getattr(testing, name), compared))


def _equal(bound: Mapping[str, Any], passed: bool) -> List[Dict[str, Any]]:
    """`assert_equal` takes anything at all; only arrays and numpy's scalars are measured."""
    numpy: Any = sys.modules["numpy"]
    arrays = (numpy.ndarray, numpy.generic)
    if isinstance(bound["actual"], arrays) or isinstance(bound["desired"], arrays):
        return _desired(bound, passed)
    return [{}]


def _desired(bound: Mapping[str, Any], passed: bool) -> List[Dict[str, Any]]:
    # numpy < 2 calls the first two parameters of some of these x and y.
    return _arrays(bound, passed, bound.get("x", bound.get("actual")), bound.get("y", bound.get("desired")))


def _arrays(bound: Mapping[str, Any], passed: bool, actual: Any, expected: Any) -> List[Dict[str, Any]]:
    numpy: Any = sys.modules["numpy"]
    atol, rtol = float(bound.get("atol", 0.0)), float(bound.get("rtol", 0.0))
    if "decimal" in bound:
        atol = 1.5 * 10.0 ** -bound["decimal"]
    return [measure_arrays(numpy, actual, expected, atol, rtol, bool(bound.get("equal_nan", True)), passed)]


def install(comparisons: Comparisons, loaded: Callable[[str], None]) -> None:
    """Measure the comparisons of every library, present or yet to come; `loaded` hears of each one."""

    def on_torch(module: ModuleType) -> None:
        patch_torch(comparisons, module)
        loaded("torch")

    def on_numpy(module: ModuleType) -> None:
        patch_numpy(comparisons, module)
        loaded("numpy")

    patch_unittest(comparisons)
    testing = functools.partial(patch_numpy_testing, comparisons)
    Watcher({"torch": on_torch, "numpy": on_numpy, "numpy.testing": testing}).install()
