"""Hands compared gradients to `torch.autograd.gradcheck`, over the function that the test differentiates.

gradcheck calls a function of tensors, and a test is none. So the values that it will ask for are measured
first, by running the trial with one input element moved to either side; it then looks them up, and gets as
the derivative what the test compared.
"""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, List, Sequence, Tuple

from .compared import Element, Side
from .derivative import OUT_OF_TIME, Derivatives, scale
from .file import ProbeFile
from .numbers import EPSILON, name_of
from .slopes import step_sizes

RTOL, ATOL, EPS = 1e-3, 1e-5, 1e-6
"""gradcheck's own, for float64."""

_KEPT, _TOLD = 600, 16

Key = Tuple[int, str, int, Tuple[int, ...]]


class GradientCheck:
    """Runs gradcheck for each side of each comparison of gradients.

    Args:
        derivatives: moves elements of inputs.
        file: takes what is found.
        torch: the module.
    """

    def __init__(self, derivatives: Derivatives, file: ProbeFile, torch: Any) -> None:
        self._derivatives = derivatives
        self._file = file
        self._torch = torch

    def check(self, elements: List[Element], leaves: List[Any]) -> None:
        """Check all elements of one input together.

        Args:
            elements: as compared.
            leaves: the trial's inputs, by number.
        """
        groups: Dict[Key, List[Tuple[Side, float]]] = {}
        for one in elements:
            for side in one.sides:
                key = (one.comparison, side.name, side.leaf, side.calls)
                value = one.actual if side.name == "actual" else one.expected
                groups.setdefault(key, []).append((side, value))
        for (comparison, name, leaf, _), found in groups.items():
            told = self._group(found, leaves[leaf])
            self._file.write(
                "gradcheck",
                comparison=comparison,
                side=name,
                leaf=leaf,
                elements=len(found),
                of=leaves[leaf].numel(),
                **told,
            )

    def _group(self, found: List[Tuple[Side, float]], leaf: Any) -> Dict[str, Any]:
        epsilon = EPSILON[name_of(leaf.dtype)]
        size = scale(leaf, found[0][0].element)
        h = step_sizes(size, max(epsilon, EPS**2))[2]
        values: List[Tuple[float, float]] = []
        noise = 0.0
        for side, _ in found:
            if self._derivatives.late:
                self._file.truncated = True
                return {"why": OUT_OF_TIME}
            both = [self._derivatives.quotient(side, by) for by in (h, -h)]
            known = [value for value, _ in both if value is not None]
            if len(known) < len(both):
                return {"why": f"the function has no finite value beside element {list(side.element)}"}
            values.append((known[0] * h, -known[1] * h))
            noise = max(noise, *(error for _, error in both))
        rtol, atol = max(RTOL, 16 * epsilon), max(ATOL, 3 * noise)
        gradients = [gradient for _, gradient in found]
        message = gradcheck(self._torch, values, gradients, eps=h, rtol=rtol, atol=atol)
        numerical = [(right - left) / (2 * h) for right, left in values]
        apart = [
            {"element": list(side.element), "numerical": number, "analytical": gradient}
            for (side, gradient), number in zip(found, numerical)  # noqa: B905
            if not abs(number - gradient) <= atol + rtol * abs(gradient)
        ]
        told = {"eps": h, "rtol": rtol, "atol": atol, "apart": apart[:_TOLD]}
        return {"passed": not message, "message": message, **told}


def gradcheck(
    torch: Any, values: Sequence[Tuple[float, float]], gradients: Sequence[float], **options: float
) -> str:
    """What torch's gradcheck objects to, or "".

    Args:
        torch: the module.
        values: of the function, with each element moved by `eps` to the right and to the left.
        gradients: that are to be its derivative.
        options: `eps`, `rtol` and `atol`.
    """
    if not all(math.isfinite(value) for value in gradients):
        return "a gradient that was compared is not finite"
    at = torch.zeros(len(values), dtype=torch.float64, requires_grad=True)
    function = _tabulated(torch, values, gradients)
    try:
        with torch.enable_grad():
            torch.autograd.gradcheck(function, (at,), check_undefined_grad=False, **options)
    except RuntimeError as error:  # GradcheckError is one
        return " ".join(str(error).split())[:_KEPT]
    return ""


def _tabulated(
    torch: Any, values: Sequence[Tuple[float, float]], gradients: Sequence[float]
) -> Callable[[Any], Any]:
    """A function whose values beside 0 were measured, and whose derivative is what was compared."""
    right, left = torch.tensor(values, dtype=torch.float64).unbind(1)
    slopes = torch.tensor(gradients, dtype=torch.float64)

    class Tabulated(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            zero = torch.zeros_like(x)
            return torch.where(x > 0, right, torch.where(x < 0, left, zero)).sum()

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return gradient * slopes

    return Tabulated.apply  # type: ignore[no-any-return]
