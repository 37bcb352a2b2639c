"""Gamma, Dirichlet, binomial and Poisson numbers drawn in compiled code: the core's streams."""

from __future__ import annotations

import math
from array import array
from typing import Any

import numpy as np

from flambeau_native.kernels._common import FLOAT32, Array, Kernel, compiled, made
from flambeau_native.kernels.random import KERNELS as RANDOM


def _drawn(draw: Kernel, like: Array, generator: Any, *given: object) -> Array:
    """What `draw` gives for each of `like`; the normal number that waits goes there and back."""
    out = made(like.shape, like.dtype)
    if not out.size:
        return out
    with generator.lock:
        waiting = generator.next_normal
        spare = array("d", (0.0, 0.0) if waiting is None else (waiting, 1.0))
        draw(out, generator.engine.memory(), spare, *given)
        generator.next_normal = spare[0] if spare[1] else None
    return out


def standard_gamma(a: Array, exact: bool, generator: object) -> Array:
    return _drawn(_GAMMA[a.dtype], a, generator, np.ascontiguousarray(a), a.size)


def sample_dirichlet(a: Array, generator: object) -> Array:
    columns = a.shape[-1] if a.ndim else 1
    if not a.size:
        return made(a.shape, a.dtype)
    row = np.empty(columns)
    rows = math.prod(a.shape[:-1])
    return _drawn(_DIRICHLET[a.dtype], a, generator, np.ascontiguousarray(a), row, rows, columns)


def binomial(count: Array, prob: Array, generator: Any) -> Array:
    out, size = made(count.shape, count.dtype), count.size
    if size:
        run = _BINOMIAL[count.dtype]
        given = np.ascontiguousarray(count), np.ascontiguousarray(prob)
        with generator.lock:
            run(out, generator.engine.memory(), _NO_NORMAL, *given, size)
    return out


def poisson(rates: Array, generator: Any) -> Array:
    """RuntimeError where a rate is negative or nan."""
    run, size = _POISSON.get(rates.dtype), rates.size
    if run is None:  # a half precision: counts that it can hold are exact in float32
        return poisson(rates.astype(FLOAT32), generator).astype(rates.dtype)
    out = made(rates.shape, rates.dtype)
    if size:
        given = np.ascontiguousarray(rates)
        with generator.lock:
            run(out, generator.engine.memory(), _NO_NORMAL, given, size)
    return out


poisson.checks_rates = True  # pyright: ignore[reportFunctionMemberAccess]
_NO_NORMAL = np.zeros(2)  # of what is made without them

KERNELS: dict[str, Kernel] = {}

if RANDOM:  # the compiled code reads the state of NumPy's generator
    KERNELS = {k.__name__: k for k in (standard_gamma, sample_dirichlet, binomial, poisson)}
    _GAMMA, _DIRICHLET, _BINOMIAL, _POISSON = map(compiled, KERNELS)
