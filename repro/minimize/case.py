"""A case: the values of what a test's size comes from, as far as they differ from the test file's own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

_DTYPES = re.compile(r"(torch\.)?(float(16|32|64)|bfloat16|half|double|fp(16|32|64)|bf16)")


class Kind(StrEnum):
    """What a parameter holds, and so how it gets smaller."""

    INT = "int"
    FLOAT = "float"
    BOOL = "bool"
    SIZES = "sizes"
    """A (nested) list of whole numbers."""
    CHOICE = "choice"
    """One of the values that a parametrization lists, by its index."""
    DTYPE = "dtype"
    """A floating-point type, by name, or by index where it is one of a parametrization's texts."""


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """What a test's size comes from.

    Args:
        key: name of the argument, or address of the constant.
        name: as a person would say it.
        kind: what it holds.
        value: as the test file has it.
        argument: whether it is an argument of the test; a constant otherwise.
        fixed: whether a list keeps its length.
        choices: what a parametrization lists, as text.
        statement: what constants of one statement at module level have in common, or "".
    """

    key: str
    name: str
    kind: Kind
    value: Any
    argument: bool
    fixed: bool = False
    choices: tuple[str, ...] = ()
    statement: str = ""

    @property
    def label(self) -> str:
        """The name, with file and line of a constant."""
        return self.name if self.argument else f"{self.name} ({self.key.rsplit(':', 1)[0]})"

    def shown(self, value: Any) -> str:
        """A value as text."""
        if self.choices and isinstance(value, int):
            return self.choices[value]
        return str(value)


def parameters_of(described: Mapping[str, Any]) -> list[Parameter]:
    """The parameters in a `case` event; see docs/minimize.md for what is one."""
    arguments = [_argument(one) for one in described["arguments"]]
    constants = [_constant(one) for one in described["constants"]]
    return [*arguments, *constants]


def _argument(one: Mapping[str, Any]) -> Parameter:
    choices = tuple(map(str, one.get("choices", ())))
    kind = Kind(one["kind"])
    if kind is Kind.CHOICE and choices and all(_DTYPES.fullmatch(choice) for choice in choices):
        kind = Kind.DTYPE
    return Parameter(
        key=str(one["name"]),
        name=str(one["name"]),
        kind=kind,
        value=one["value"],
        argument=True,
        fixed=bool(one.get("fixed")),
        choices=choices,
    )


def _constant(one: Mapping[str, Any]) -> Parameter:
    file = str(one["address"]).rsplit(":", 2)[0]
    return Parameter(
        key=str(one["address"]),
        name=str(one["name"]),
        kind=Kind.SIZES if isinstance(one["value"], list) else Kind.INT,
        value=one["value"],
        argument=False,
        statement=f"{file}:{one['statement']}" if one.get("statement") else "",
    )


@dataclass(frozen=True, kw_only=True)
class Case:
    """Other values than the test file's own.

    Args:
        values: by key of the parameter.
    """

    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def identity(self) -> str:
        """Equal for equal cases."""
        return json.dumps(self.values, sort_keys=True)

    def having(self, key: str, value: Any) -> Case:
        """The same case with another value."""
        return Case(values={**self.values, key: value})

    def request(self, parameters: Iterable[Parameter]) -> dict[str, object]:
        """The fields of a request that stand for it."""
        arguments: dict[str, Any] = {}
        constants: dict[str, Any] = {}
        for one in parameters:
            if one.key in self.values:
                value = self.values[one.key]
                chosen = {"choice": value} if one.choices else value
                (arguments if one.argument else constants)[one.key] = chosen
        return {"arguments": arguments, "constants": constants}


def changed(parameters: Sequence[Parameter], case: Case) -> list[tuple[Parameter, Any]]:
    """The parameters whose value differs from the test file's own, with the new value."""
    return [
        (one, case.values[one.key])
        for one in parameters
        if one.key in case.values and case.values[one.key] != one.value
    ]
