"""Transforms that apply others to the parts of a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.distributions import constraints
from flambeau.distributions.transforms._base import Transform
from flambeau.distributions.utils import _sum_rightmost, _whole, lazy_property
from flambeau.overrides import takes_as_annotated


def _transforms(parts: Sequence[Any], cache_size: int) -> list[Transform]:
    if not all(isinstance(part, Transform) for part in parts):
        raise AssertionError("All elements of tseq must be Transform instances")
    return [part.with_cache(cache_size) for part in parts] if cache_size else list(parts)


@takes_as_annotated
def _check_dim(dim: int, name: str, value: Tensor) -> None:
    if not -value.dim() <= dim < value.dim():
        raise AssertionError(f"dim {dim} out of range for {name} with {value.dim()} dimensions")


class CatTransform(Transform):
    """Applies one transform after another to the pieces along `dim`, of the sizes in `lengths`.

    >>> from flambeau.distributions import CatTransform, ExpTransform, identity_transform
    >>> import flambeau as fb
    >>> CatTransform([ExpTransform(), identity_transform], lengths=[1, 2])(fb.zeros(3))
    tensor([1., 0., 0.])

    Raises:
        TypeError: a length is no whole number.
        AssertionError: there are not as many lengths as transforms.
    """

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:
        self.transforms = _transforms(tseq, cache_size)
        super().__init__(cache_size=cache_size)
        if lengths is None:
            lengths = [1] * len(self.transforms)
        self.lengths = [_whole(length, "CatTransform", "lengths") for length in lengths]
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(
                f"lengths ({len(self.lengths)}) must match transforms ({len(self.transforms)})"
            )
        self.dim = dim

    @lazy_property
    def event_dim(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return max(t.event_dim for t in self.transforms)

    @lazy_property
    def length(self) -> int:
        """The size along `dim` of what is transformed."""
        return sum(self.lengths)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _pieces(self, name: str, value: Tensor) -> list[Tensor]:
        _check_dim(self.dim, name, value)
        if value.size(self.dim) != self.length:
            size = value.size(self.dim)
            raise AssertionError(
                f"{name}.size({self.dim}) = {size} must equal length {self.length}"
            )
        pieces, start = [], 0
        for length in self.lengths:
            pieces.append(value.narrow(self.dim, start, length))
            start += length
        return pieces

    def _call(self, x: Tensor) -> Tensor:
        pairs = zip(self.transforms, self._pieces("x", x), strict=True)
        return fb.cat([t(piece) for t, piece in pairs], dim=self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        pairs = zip(self.transforms, self._pieces("y", y), strict=True)
        return fb.cat([t.inv(piece) for t, piece in pairs], dim=self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor | int:
        terms = []
        pieces = zip(self.transforms, self._pieces("x", x), self._pieces("y", y), strict=True)
        for t, before, after in pieces:
            term = t.log_abs_det_jacobian(before, after)
            terms.append(_sum_rightmost(term, max(self.event_dim - t.event_dim, 0)))
        dim = self.dim - x.dim() if self.dim >= 0 else self.dim
        dim += self.event_dim
        return fb.cat(terms, dim=dim) if dim < 0 else sum(terms)

    @property
    def bijective(self) -> bool:
        return all(t.bijective for t in self.transforms)

    @constraints.dependent_property
    def domain(self) -> constraints.Constraint:
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> constraints.Constraint:
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(Transform):
    """Applies one transform after another to the slices along `dim`.

    >>> from flambeau.distributions import ExpTransform, StackTransform, identity_transform
    >>> import flambeau as fb
    >>> StackTransform([identity_transform, ExpTransform()], dim=1)(fb.zeros(2, 2))
    tensor([[0., 1.],
            [0., 1.]])
    """

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        self.transforms = _transforms(tseq, cache_size)
        super().__init__(cache_size=cache_size)
        self.dim = dim

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return StackTransform(self.transforms, self.dim, cache_size)

    def _slices(self, name: str, value: Tensor) -> list[Tensor]:
        _check_dim(self.dim, name, value)
        size, count = value.size(self.dim), len(self.transforms)
        if size != count:
            raise AssertionError(
                f"{name}.size({self.dim}) = {size} must equal len(transforms) {count}"
            )
        return [value.select(self.dim, i) for i in range(size)]

    def _call(self, x: Tensor) -> Tensor:
        pairs = zip(self.transforms, self._slices("x", x), strict=True)
        return fb.stack([t(part) for t, part in pairs], dim=self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        pairs = zip(self.transforms, self._slices("y", y), strict=True)
        return fb.stack([t.inv(part) for t, part in pairs], dim=self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        parts = zip(self.transforms, self._slices("x", x), self._slices("y", y), strict=True)
        terms = [t.log_abs_det_jacobian(before, after) for t, before, after in parts]
        return fb.stack(terms, dim=self.dim)

    @property
    def bijective(self) -> bool:
        return all(t.bijective for t in self.transforms)

    @constraints.dependent_property
    def domain(self) -> constraints.Constraint:
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> constraints.Constraint:
        return constraints.stack([t.codomain for t in self.transforms], self.dim)
