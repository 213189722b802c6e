"""How far rounding of the inputs alone moves what is compared: an error that no formula could avoid.

The random part of Parker's Monte Carlo arithmetic (IEEE Comput. Sci. Eng. 2 (2000) 58), for the inputs alone:
their copies in float64 are moved, so the trial itself runs as it did.
"""

from __future__ import annotations

from typing import Any

from .numbers import EPSILON, name_of


class Perturbation:
    """Moves inputs' copies in float64 by up to half a unit in the last place of their own type, at random.

    Args:
        torch: the module.
        seed: of a generator of its own.
    """

    def __init__(self, torch: Any, seed: int) -> None:
        self._torch = torch
        self._generator = torch.Generator("cpu")
        self._generator.manual_seed(seed)

    def move(self, wide: Any, dtype: Any) -> None:
        """Move each element of a copy by a share of itself.

        Args:
            wide: any shape, float64 or complex128; changed in place.
            dtype: type of the tensor that it is a copy of.
        """
        epsilon = EPSILON.get(name_of(dtype))
        if epsilon is not None:
            drawn = {"dtype": self._torch.float64, "device": "cpu", "generator": self._generator}
            shares = 2 * self._torch.rand(wide.shape, **drawn) - 1
            wide *= 1 + (shares * (epsilon / 2)).to(wide.device)
