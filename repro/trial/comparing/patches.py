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
from .measure_torch import measure_close, measure_tensors

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


def patch_torch(comparisons: Comparisons, torch: Any) -> None:
    """Measure torch's comparisons."""
    testing = importlib.import_module("torch.testing")
    close = functools.partial(measure_close, torch, known=comparisons.known)
    for name, parameters, equal_nan in (
        ("assert_close", ("actual", "expected"), False),
        ("assert_allclose", ("actual", "expected", "rtol", "atol", "equal_nan"), True),
    ):
        compared = Compared(f"torch.testing.{name}", parameters, close, {"equal_nan": equal_nan})
        if hasattr(testing, name):
            setattr(testing, name, comparisons.wrap(getattr(testing, name), compared))

    _patch_verdict(comparisons, torch, testing)
    _patch_allclose(comparisons, torch)


def _patch_verdict(comparisons: Comparisons, torch: Any, testing: Any) -> None:
    """Let `assert_close` take tensors for close that are measured to be."""
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

    compared = Compared(
        name="torch.allclose",
        parameters=("input", "other", "rtol", "atol", "equal_nan"),
        defaults={"rtol": 1e-5, "atol": 1e-8, "equal_nan": False},
        measure=measure,
        predicate=True,
    )

    def measured_first(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def allclose(*args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            bound = compared.bind(args, kwargs)
            sides = (bound.get("input"), bound.get("other"))
            close = comparisons.agree(torch, *sides, bound["atol"], bound["rtol"])
            return close or original(*args, **kwargs)

        return allclose

    for owner in (torch, torch.Tensor):
        owner.allclose = comparisons.wrap(measured_first(owner.allclose), compared)


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
