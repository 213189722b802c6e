"""A second copy of each tensor's memory in float64, on which a trial's operations are done once more.

Copies are kept by storage, so that views and operations in place need no care of their own. What changed
in a storage without an operation of torch (a kernel launched by hand) is taken over as it is, and the copy
says from then on that not all of it was computed in float64.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Tuple

from .perturbing import Perturbation

_SWEEP = 16
_ELSEWHERE = "written by something that is no operation of torch"


@dataclass
class Gradient:
    """Whose gradient a storage holds.

    Args:
        leaf: number of the input that was differentiated by.
        calls: numbers of the calls that added to it.
        whole: whether the storage holds all of it, in order.
        version: of the tensor when it was last looked at.
    """

    leaf: int
    calls: List[int] = field(default_factory=list)
    whole: bool = True
    version: int = -1


@dataclass
class Shadow:
    """The copy of one storage.

    Args:
        wide: all its elements in float64 or complex128.
        seen: its elements as they were when last looked at.
        held: keeps the storage's identity from being used again.
        opaque: why it was not all computed in float64, or "".
        direct: whether that is so because of what wrote it last, and not of something before.
        gradient: whose gradient it is, or None.
        unwritten: whether no operation of torch has written it yet: a kernel may have, and even left the bits
            as they were, since memory that is used again often holds what the run before put there.
    """

    wide: Any
    seen: Any
    held: Any
    opaque: str = ""
    direct: bool = False
    gradient: Optional[Gradient] = None
    unwritten: bool = False


class Shadows:
    """The copies of one run of a test.

    Args:
        torch: the module.
        perturbation: moves the copies of inputs, or None.
    """

    def __init__(self, torch: Any, perturbation: Optional[Perturbation] = None) -> None:
        self._torch = torch
        self._perturbation = perturbation
        self._weak = importlib.import_module("torch.multiprocessing.reductions").StorageWeakRef
        self._found: Dict[Tuple[int, Any], Shadow] = {}
        self._adopted = 0
        self._wide = {torch.complex64: torch.complex128, torch.complex128: torch.complex128}

    def fits(self, tensor: Any) -> bool:
        """Whether a tensor can have a copy: plain memory of floating-point numbers."""
        return self.plain(tensor) and bool(tensor.is_floating_point() or tensor.is_complex())

    def plain(self, tensor: Any) -> bool:
        """Whether a tensor is memory with strides, and nothing cleverer."""
        torch = self._torch
        known = type(tensor) in (torch.Tensor, torch.nn.Parameter)
        return known and tensor.layout is torch.strided and tensor.device.type != "meta" and not _lazy(tensor)

    def wide_type(self, dtype: Any) -> Any:
        """The widest type of the same kind."""
        return self._wide.get(dtype, self._torch.float64)

    def known(self, tensor: Any) -> Optional[Shadow]:
        """The copy of a tensor's storage, unlooked at."""
        shadow = self._found.get(self._key(tensor))
        return shadow if shadow is not None and shadow.seen.numel() == self._length(tensor) else None

    def look(self, tensor: Any, cause: str = "") -> Tuple[Shadow, bool]:
        """The copy, brought up to date, and whether something had changed that no operation of torch wrote.

        Args:
            cause: what is known to have changed it.
        """
        shadow = self.known(tensor)
        if shadow is None:
            shadow = self.adopt(tensor)
            if tensor.numel() > 1:  # one number alone is more often a constant than an input
                self._perturb(tensor)
            return shadow, False
        flat = self.flat(tensor)
        now, before = _bits(self._torch, flat), _bits(self._torch, shadow.seen)
        if shadow.unwritten:
            shadow.opaque, shadow.direct = cause or _ELSEWHERE, True
        if self._torch.equal(now, before):
            return shadow, False
        changed = (now != before).reshape(flat.numel(), -1).any(1)
        shadow.wide[changed] = flat[changed].to(shadow.wide.dtype)
        shadow.seen.copy_(flat)
        shadow.opaque = cause or _ELSEWHERE
        shadow.direct, shadow.unwritten = True, False
        return shadow, True

    def adopt(self, tensor: Any) -> Shadow:
        """Take a tensor's storage as it is: exact from here on."""
        flat = self.flat(tensor)
        held = self._weak(tensor.untyped_storage())
        shadow = Shadow(flat.to(self.wide_type(tensor.dtype), copy=True), flat.clone(), held)
        self._found[self._key(tensor)] = shadow
        self._adopted += 1
        if self._adopted % _SWEEP == 0:
            self._sweep()
        return shadow

    def view(self, tensor: Any) -> Any:
        """A tensor's copy in its own shape; call `look` first."""
        shadow = self._found[self._key(tensor)]
        return shadow.wide.as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())

    def settle(self, tensor: Any, wide: Optional[Any], opaque: str, direct: bool) -> None:
        """An operation made a tensor: what it is in float64 (None: as it is), and why not, or ""."""
        shadow = self.adopt(tensor)
        shadow.opaque, shadow.direct = opaque, direct
        view = self.view(tensor)
        if wide is not None and wide.shape == view.shape:
            view.copy_(wide)

    def wrote(self, tensor: Any, opaque: str) -> None:
        """An operation wrote into a tensor, and its copy was treated alike, unless `opaque` says why not."""
        shadow = self.known(tensor) or self.adopt(tensor)
        shadow.seen.copy_(self.flat(tensor))
        if shadow.unwritten:
            shadow.opaque, shadow.direct, shadow.unwritten = "", False, False
        if opaque:
            shadow.opaque, shadow.direct = opaque, True
            self.view(tensor).copy_(tensor.detach())

    def filled(self, tensor: Any) -> None:
        """An operation wrote numbers into a tensor that depend on no other tensor: inputs, as they are."""
        if tensor.numel() == self._length(tensor):
            self.adopt(tensor)
        else:
            self.wrote(tensor, "")
            self.view(tensor).copy_(tensor.detach())
        self._perturb(tensor)

    def exact(self, tensor: Any) -> None:
        """Take a tensor as it is: it is where a function of interest begins."""
        gradient = self.look(tensor)[0].gradient
        self.adopt(tensor).gradient = gradient
        self._perturb(tensor)

    def flat(self, tensor: Any) -> Any:
        """All elements of a tensor's storage, in the order of memory."""
        return tensor.detach().as_strided((self._length(tensor),), (1,), 0)

    @staticmethod
    def _length(tensor: Any) -> int:
        return int(tensor.untyped_storage().nbytes() // tensor.element_size())

    @staticmethod
    def _key(tensor: Any) -> Tuple[int, Any]:
        return int(tensor.untyped_storage()._cdata), tensor.dtype

    def _perturb(self, tensor: Any) -> None:
        if self._perturbation is not None:
            self._perturbation.move(self.view(tensor), tensor.dtype)

    def _sweep(self) -> None:
        gone = [key for key, shadow in self._found.items() if shadow.held.expired()]
        for key in gone:
            del self._found[key]


def _lazy(tensor: Any) -> bool:
    return bool(tensor.is_conj() or tensor.is_neg())


def _bits(torch: Any, flat: Any) -> Any:
    """The elements as integers: NaN is not even equal to itself."""
    if flat.is_complex():
        flat = torch.view_as_real(flat)
    return flat.view({1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[flat.element_size()])
