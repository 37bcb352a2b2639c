"""Resampling along one dimension: lines of images as sums of others."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import prod

import numpy as np

from flambeau_native.extension import native
from flambeau_native.kernels._common import (
    Array,
    Kernel,
    compiled,
    form,
    halves_by,
    otherwise,
    prepared,
)

Places = tuple[tuple[int, ...], ...]
Weights = tuple[tuple[float, ...], ...] | None
Terms = tuple[Array, Array, Array]

_RUNS = compiled("resample")


@lru_cache(maxsize=64)
def _terms(places: Places, weights: Weights, dtype: np.dtype) -> Terms:
    """Where the terms of each line of the result end, their places and their weights."""
    where = np.array(places, np.int64).T
    factors = np.ones(where.shape, dtype) if weights is None else np.array(weights, dtype).T
    ends = np.arange(1, len(where) + 1) * len(places)
    return ends, np.ascontiguousarray(where), np.ascontiguousarray(factors)


@lru_cache(maxsize=64)
def _adjoint(size: int, places: Places, weights: Weights, dtype: np.dtype) -> Terms:
    """The same of the adjoint: what was read from each of `size` elements, in order."""
    _, where, factors = _terms(places, weights, dtype)
    order = np.argsort(where, None, "stable")
    ends = np.cumsum(np.bincount(where.reshape(-1), minlength=size))
    return ends, order // len(places), factors.reshape(-1)[order]


@lru_cache(maxsize=64)
def _rows(places: tuple[int, ...]) -> Array:
    return np.array(places, np.int64)


def _applied(a: Array, dim: int, count: int, terms: Terms) -> object:
    """How `count` lines along `dim` are made, each a sum of some of those of `a`."""
    lead, inner = a.shape[:dim], a.shape[dim + 1 :]
    sizes = prod(lead), a.shape[dim], count, prod(inner), terms[1].size
    return _RUNS[a.dtype], (form((*lead, count, *inner), a.dtype),), (*terms, *sizes)


def _prepare(a: Array, dim: int, places: Places, weights: Weights) -> object:
    if weights is not None:
        if a.dtype not in _RUNS:
            return None
        return _applied(a, dim, len(places[0]), _terms(places, weights, a.dtype))
    if a.dtype.kind == "V":
        return None
    lead, inner, rows = a.shape[:dim], a.shape[dim + 1 :], _rows(places[0])
    sizes = prod(lead), a.shape[dim], rows.size, prod(inner) * a.itemsize
    return native.take_lines, (form((*lead, rows.size, *inner), a.dtype),), (rows, *sizes)


def _prepare_backward(grad: Array, dim: int, size: int, places: Places, weights: Weights) -> object:
    if grad.dtype not in _RUNS:
        return None
    return _applied(grad, dim, size, _adjoint(size, places, weights, grad.dtype))


def _of_pixels(prepare: Callable[..., object]) -> Callable[..., object]:
    """`prepare` of an array whose second dimension was moved to the end."""

    def prepare_pixels(a: Array, dim: int, *rest: object) -> object:
        return prepare(a, a.ndim - 1 if dim == 1 else dim - (dim > 1), *rest)

    return prepare_pixels


def _make(name: str, arrays: str, prepare: Callable[..., object]) -> Kernel:
    general = halves_by(lambda: kernel, otherwise(name))
    kernel = prepared(name, arrays, prepare, general, packs=True, pixels=_of_pixels(prepare))
    return kernel


KERNELS: dict[str, Kernel] = {
    "resample": _make("resample", "asss", _prepare),
    "resample_backward": _make("resample_backward", "assss", _prepare_backward),
}
