"""Optimiser steps on lists of arrays, in place; `optimizer_adaptive` has more of them.

A parameter is processed in blocks that fit the level-2 cache together with their state and the
scratch arrays, so a step reads and writes main memory once instead of once per operation.  The
order of operations, hence the rounding, is that of PyTorch's single-tensor implementations;
multiply-adds round once where BLAS does them.  Half-precision parameters are computed in float32
and rounded when stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.linalg import get_blas_funcs

from flambeau.plugin.steps import AdamStep, AsgdStep, NadamStep, RadamStep, SgdStep, takes
from flambeau_numpy.silence import quiet

Array = np.ndarray[Any, Any]

BLOCK = 32768  # elements; Adam's six float32 arrays of it take 768 KiB, and calls cost little still

_AXPY: dict[np.dtype[Any], Any] = {
    np.dtype(kind): get_blas_funcs("axpy", dtype=kind) for kind in (np.float32, np.float64)
}
_AXPY_LENGTH = 10000  # OpenBLAS spreads longer ones over threads, and waits longer than it adds


@takes(SgdStep)
@quiet
def sgd_step_(s: SgdStep) -> None:
    scratch = Scratch()

    def update(p: Array, d: Array, *state: Array) -> None:
        d = decayed(p, d, s.weight_decay, s.maximize, scratch)
        if s.momentum:
            (b,) = state
            np.multiply(b, s.momentum, out=b)
            add_scaled(b, d, 1 - s.dampening, scratch)
            if s.nesterov:
                ahead = np.multiply(b, s.momentum, out=scratch(0, p))
                d = np.add(d, ahead, out=ahead)
            else:
                d = b
        add_scaled(p, d, -s.lr, scratch)

    state = [s.momentum_buffers] if s.momentum else []
    for i, param in enumerate(s.params):
        blockwise(update, param, s.grads[i], *[buffers[i] for buffers in state])


@takes(AsgdStep)
@quiet
def asgd_step_(s: AsgdStep) -> None:
    scratch = Scratch()

    def update(p: Array, g: Array, a: Array) -> None:
        g = decayed(p, g, s.weight_decay, s.maximize, scratch)
        np.multiply(p, 1 - s.lambd * eta, out=p)
        add_scaled(p, g, -eta, scratch)
        if mu == 1:
            a[...] = p
        else:
            add_scaled(a, np.subtract(p, a, out=scratch(0, p)), mu, scratch)

    for i, param in enumerate(s.params):
        eta, mu = next_rates(s.etas[i], s.mus[i], s.steps[i], s.lr, s.lambd, s.alpha, s.t0)
        blockwise(update, param, s.grads[i], s.averages[i])


def next_rates(
    eta: Array, mu: Array, step: Array, lr: float, lambd: float, alpha: float, t0: float
) -> tuple[float, float]:
    """The rates of the step of ASGD that begins; the arrays then hold those of the next."""
    rates = eta.item(), mu.item()
    t = advanced(step)
    # Rounded to the dtype of the count: rates that were loaded have that of the parameter.
    kind = step.dtype.type
    eta.fill(kind(lr / (1 + lambd * lr * t) ** alpha))
    mu.fill(kind(1 / max(1, t - t0)))
    return rates


@takes(AdamStep)
@quiet
def adam_step_(s: AdamStep) -> None:
    scratch = Scratch()

    def update(p: Array, g: Array, m: Array, v: Array, *maximum: Array) -> None:
        moments_moved(p, g, m, v, s, scratch)
        t = scratch(0, p)
        if s.amsgrad:
            v = np.maximum(maximum[0], v, out=maximum[0])
        np.add(np.divide(np.sqrt(v, out=t), correction2, out=t), s.eps, out=t)
        add_scaled(p, np.divide(m, t, out=t), -step_size, scratch)

    state = (
        [s.exp_avgs, s.exp_avg_sqs, s.max_exp_avg_sqs] if s.amsgrad else [s.exp_avgs, s.exp_avg_sqs]
    )
    for i, param in enumerate(s.params):
        step = advanced(s.steps[i])
        step_size = s.lr / (1 - s.beta1**step)
        correction2 = (1 - s.beta2**step) ** 0.5
        blockwise(update, param, s.grads[i], *[tensors[i] for tensors in state])


def advanced(step: Array) -> float:
    """The number of the step that begins, counted in place."""
    step.fill(step.item() + 1)  # a seventh of the time of an in-place sum
    return step.item()


def split_decay(lr: float, weight_decay: float, decoupled: bool) -> tuple[float, float]:
    """The decay that enters the gradient, and the factor that shrinks the parameter."""
    return (0.0, 1 - lr * weight_decay) if decoupled else (weight_decay, 1.0)


class Scratch:
    """Temporary arrays, reused for all blocks of a step: `scratch(k, p)` is the k-th, like `p`."""

    def __init__(self) -> None:
        self._buffers: dict[tuple[int, np.dtype[Any]], Array] = {}

    def __call__(self, k: int, like: Array) -> Array:
        key = k, like.dtype
        buffer = self._buffers.get(key)
        if buffer is None or buffer.size < like.size:
            buffer = self._buffers[key] = np.empty(max(like.size, BLOCK), like.dtype)
        return buffer[: like.size].reshape(like.shape)


def decayed(p: Array, g: Array, weight_decay: float, maximize: bool, scratch: Scratch) -> Array:
    """``±g + weight_decay * p``: `g` itself, or the scratch array 1."""
    if weight_decay:
        decay = np.multiply(p, weight_decay, out=scratch(1, p))
        return (np.subtract if maximize else np.add)(decay, g, out=decay)
    return np.negative(g, out=scratch(1, p)) if maximize else g


def moments_moved(
    p: Array, g: Array, m: Array, v: Array, s: AdamStep | NadamStep | RadamStep, scratch: Scratch
) -> Array:
    """Let the means of gradients and of their squares follow ±`g`, which is returned, decayed."""
    coupled, shrink = split_decay(s.lr, s.weight_decay, s.decoupled)
    if shrink != 1:
        np.multiply(p, shrink, out=p)
    g = decayed(p, g, coupled, s.maximize, scratch)
    blend(m, g, s.beta1, scratch)
    blend_square(v, g, s.beta2, scratch)
    return g


def blend(m: Array, g: Array, keep: float, scratch: Scratch) -> None:
    """``m ← keep * m + (1 - keep) * g``, as lerp: from the nearer end."""
    t = np.subtract(g, m, out=scratch(0, m))
    if keep > 0.5:
        add_scaled(m, t, 1 - keep, scratch)
    else:
        np.subtract(g, np.multiply(t, keep, out=t), out=m)


def blend_square(v: Array, g: Array, keep: float, scratch: Scratch) -> None:
    """``v ← keep * v + (1 - keep) * g²``."""
    np.multiply(v, keep, out=v)
    add_scaled(v, np.multiply(g, g, out=scratch(0, v)), 1 - keep, scratch)


def add_scaled(y: Array, x: Array, factor: float, scratch: Scratch) -> None:
    """``y += factor * x``, by BLAS where it can."""
    axpy = _AXPY.get(y.dtype)
    # BLAS skips a factor of 0, which must turn an infinite or NaN x into NaN.
    if axpy is None or not factor or y.ndim != 1 or not (y.flags.forc and x.flags.forc):
        np.add(y, np.multiply(x, factor, out=scratch(2, y)), out=y)
        return
    for start in range(0, y.size, _AXPY_LENGTH):
        axpy(x, y, min(_AXPY_LENGTH, y.size - start), factor, start, 1, start, 1)


def blockwise(update: Callable[..., None], *arrays: Array) -> None:
    """Call `update` on corresponding blocks of arrays of one shape; it only reads the second."""
    narrow = arrays[0].dtype.itemsize == 2
    for blocks in _blocks(arrays):
        if not narrow:
            update(*blocks)
            continue
        wide = [block.astype(np.float32) for block in blocks]
        update(*wide)
        for k, block in enumerate(blocks):
            if k != 1:
                block[...] = wide[k]


def _blocks(arrays: tuple[Array, ...]) -> Iterator[tuple[Array, ...]]:
    size = arrays[0].size
    length = BLOCK
    if all(array.flags.c_contiguous for array in arrays):
        arrays = tuple([array.reshape(-1) for array in arrays])
    elif all(array.flags.f_contiguous for array in arrays):
        arrays = tuple([array.T.reshape(-1) for array in arrays])
    else:  # layouts differ: whole rows, as many as make a block
        length = max(1, BLOCK * arrays[0].shape[0] // max(size, 1))
    if size <= BLOCK:
        yield arrays
        return
    for start in range(0, arrays[0].shape[0], length):
        yield tuple([array[start : start + length] for array in arrays])


KERNELS: dict[str, Callable[..., None]] = {
    "adam_step_": adam_step_,
    "asgd_step_": asgd_step_,
    "sgd_step_": sgd_step_,
}
