"""Resampling along one dimension: lines of images as sums of others."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from flambeau_native.extension import native
from flambeau_native.kernels._common import (
    Array,
    Kernel,
    compiled,
    halves_by,
    made,
    memory_of,
    otherwise,
    pixels_of,
)

Places = tuple[tuple[int, ...], ...]
Weights = tuple[tuple[float, ...], ...] | None
Terms = tuple[Array, Array, Array]

_find = compiled("resample").get


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


def _lines(a: Array, dim: int) -> tuple[Array, int, bool]:
    """`a` without gaps, where `dim` is in it, and whether its channels were moved to the end."""
    if not a.flags.c_contiguous and (pixels := pixels_of(a)) is not None:
        return pixels, a.ndim - 1 if dim == 1 else dim - (dim > 1), True
    return np.ascontiguousarray(a), dim, False


def _back(out: Array, is_moved: bool) -> Array:
    return np.moveaxis(out, -1, 1) if is_moved else out


def _applied(run: Any, a: Array, dim: int, count: int, terms: Terms) -> Array:
    """`count` lines along `dim`, each a sum of some of those of `a`."""
    a, dim, is_moved = _lines(a, dim)
    lead, inner = a.shape[:dim], a.shape[dim + 1 :]
    out = made((*lead, count, *inner), a.dtype)
    run(out, a, *terms, prod(lead), a.shape[dim], count, prod(inner), terms[1].size)
    return _back(out, is_moved)


def _taken(a: Array, dim: int, places: Places) -> Array:
    """The lines at some places."""
    a, dim, is_moved = _lines(a, dim)
    lead, inner = a.shape[:dim], a.shape[dim + 1 :]
    where = _places(places[0])
    out = made((*lead, where.size, *inner), a.dtype)
    sizes = prod(lead), a.shape[dim], where.size, prod(inner) * a.itemsize
    native.take_lines(memory_of(out), memory_of(a), where, *sizes)
    return _back(out, is_moved)


@lru_cache(maxsize=64)
def _places(places: tuple[int, ...]) -> Array:
    return np.array(places, np.int64)


def _make_resample() -> Kernel:
    def resample(a: Array, dim: int, places: Places, weights: Weights) -> Any:
        if weights is None:
            return _taken(a, dim, places)
        if (run := _find(a.dtype)) is None:
            return halves(a, dim, places, weights)
        return _applied(run, a, dim, len(places[0]), _terms(places, weights, a.dtype))

    halves = halves_by(lambda: resample, otherwise("resample"))
    return resample


def _make_resample_backward() -> Kernel:
    def resample_backward(
        grad: Array, dim: int, size: int, places: Places, weights: Weights
    ) -> Any:
        if (run := _find(grad.dtype)) is None:
            return halves(grad, dim, size, places, weights)
        return _applied(run, grad, dim, size, _adjoint(size, places, weights, grad.dtype))

    halves = halves_by(lambda: resample_backward, otherwise("resample_backward"))
    return resample_backward


KERNELS: dict[str, Kernel] = {}

if native is not None:
    KERNELS["resample"] = _make_resample()
    KERNELS["resample_backward"] = _make_resample_backward()
