"""Functions that sort, search, and count what differs."""

from __future__ import annotations

import builtins
from typing import NamedTuple

import flambeau as fb
from flambeau import Tensor
from flambeau._dispatch.annotated import all_take_as_annotated
from flambeau.array_api._elementwise import pair

__all__ = [
    "argsort",
    "isin",
    "nonzero",
    "searchsorted",
    "sort",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
]


class UniqueAll(NamedTuple):
    """What `unique_all` finds."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """What `unique_counts` finds."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """What `unique_inverse` finds."""

    values: Tensor
    inverse_indices: Tensor


def argsort(
    x: Tensor, /, *, axis: int = -1, descending: builtins.bool = False, stable: builtins.bool = True
) -> Tensor:
    """The indices that sort along a dimension."""
    return fb.argsort(x, dim=axis, descending=descending, stable=stable)


def sort(
    x: Tensor, /, *, axis: int = -1, descending: builtins.bool = False, stable: builtins.bool = True
) -> Tensor:
    """The elements in order along a dimension."""
    return fb.sort(x, dim=axis, descending=descending, stable=stable)[0]


def isin(x1: object, x2: object, /, *, invert: builtins.bool = False) -> Tensor:
    """Whether each element is among those of another."""
    return fb.isin(*pair(x1, x2), invert=invert)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The indices of the elements that are not zero, by dimension.

    Raises:
        ValueError: the tensor has no dimension.
    """
    if x.ndim == 0:
        raise ValueError("nonzero(): of a tensor without dimensions")
    return tuple(fb.nonzero(x, as_tuple=True))


def searchsorted(
    x1: Tensor, x2: Tensor, /, *, side: str = "left", sorter: Tensor | None = None
) -> Tensor:
    """Where elements go in a sorted tensor for that it stays so."""
    values, wanted = pair(x1, x2)
    if sorter is not None:
        values = values[sorter.to(fb.int64)]
    return fb.searchsorted(values, wanted, side=side)


def unique_all(x: Tensor, /) -> UniqueAll:
    """The values that occur, where each does first, which each element is, and how often."""
    values, inverse, counts = _unique(x)
    places = fb.arange(inverse.numel(), device=x.device).flip(0)
    first = fb.zeros_like(counts).scatter_(0, inverse.flatten().flip(0), places)
    # Of several writes to one place any may be the last one.
    first = first.scatter_reduce(0, inverse.flatten().flip(0), places, "amin", include_self=True)
    return UniqueAll(values, first, inverse, counts)


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """The values that occur, and how often."""
    values, _, counts = _unique(x)
    return UniqueCounts(values, counts)


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The values that occur, and which of them each element is."""
    values, inverse, _ = _unique(x)
    return UniqueInverse(values, inverse)


def unique_values(x: Tensor, /) -> Tensor:
    """The values that occur."""
    return _unique(x)[0]


def _unique(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return fb.unique(x, return_inverse=True, return_counts=True)


all_take_as_annotated(globals())
