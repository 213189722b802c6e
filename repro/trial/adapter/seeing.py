"""Seeing the calls of functions whose names are known, however a test came by them."""

from __future__ import annotations

import contextlib
import functools
import gc
import inspect
import sys
import types
from typing import Any, Callable, Dict, Iterator, List, Sequence, Tuple

Begin = Callable[[Dict[str, Any]], Any]
"""Takes a call's arguments by name; gives what stands for the call."""
End = Callable[[Any, Any], None]
"""Takes what stands for a call, and its result."""


@contextlib.contextmanager
def seen(names: Sequence[str], parameters: Sequence[str], begin: Begin, end: End) -> Iterator[None]:
    """Hear of calls in the body, of functions with these names and at least these parameters.

    Functions that exist are wrapped wherever somebody holds them: in modules, classes, lists, closures, a
    test's parameters. Only where none exists yet does Python's profiler look for them, which slows down all
    that is written in Python.
    """
    functions = _functions(names, parameters)
    with contextlib.ExitStack() as stack:
        for function in functions:
            stack.enter_context(_wrapped(function, begin, end))
        if not functions:
            stack.enter_context(_profiled(names, parameters, begin, end))
        yield


def _functions(names: Sequence[str], parameters: Sequence[str]) -> Tuple[Any, ...]:
    gc.unfreeze()  # what a block froze before its first trial is not listed otherwise
    return tuple(
        one
        for one in gc.get_objects()
        if type(one) is types.FunctionType and one.__name__ in names and _takes(one.__code__, parameters)
    )


def _takes(code: Any, parameters: Sequence[str]) -> bool:
    return set(parameters) <= set(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])


@contextlib.contextmanager
def _wrapped(function: Any, begin: Begin, end: End) -> Iterator[None]:
    holders = [one for one in gc.get_referrers(function) if isinstance(one, (dict, list, types.CellType))]
    signature, original = inspect.signature(function), _copy(function)  # whose closure is no holder

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        call = begin(_arguments(signature, args, kwargs))
        result = original(*args, **kwargs)
        end(call, result)
        return result

    _replace(holders, function, wrapper)
    try:
        yield
    finally:
        _replace(holders, wrapper, function)


def _copy(function: Any) -> Any:
    copy = types.FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    return functools.update_wrapper(copy, function)


def _arguments(signature: inspect.Signature, args: Any, kwargs: Any) -> Dict[str, Any]:
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:  # the function itself says what is wrong about its arguments
        return {}
    bound.apply_defaults()
    return dict(bound.arguments)


def _replace(holders: List[Any], old: Any, new: Any) -> None:
    for holder in holders:
        if isinstance(holder, types.CellType):
            if holder.cell_contents is old:
                holder.cell_contents = new
            continue
        places = holder.items() if isinstance(holder, dict) else enumerate(holder)
        for place in [place for place, value in places if value is old]:
            holder[place] = new


@contextlib.contextmanager
def _profiled(names: Sequence[str], parameters: Sequence[str], begin: Begin, end: End) -> Iterator[None]:
    before, running = sys.getprofile(), []

    def event(frame: Any, kind: str, value: Any) -> None:
        code = frame.f_code
        if kind == "call" and code.co_name in names and _takes(code, parameters):
            running.append((frame, begin(dict(inspect.getargvalues(frame).locals))))
        elif kind == "return" and running and running[-1][0] is frame:
            end(running.pop()[1], value)

    sys.setprofile(event)
    try:
        yield
    finally:
        sys.setprofile(before)
