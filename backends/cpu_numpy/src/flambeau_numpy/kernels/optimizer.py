"""Optimiser steps on lists of arrays, in place.

A parameter is processed in blocks that fit the level-2 cache together with their state and the
scratch arrays, so a step reads and writes main memory once instead of once per operation.  The
order of operations, hence the rounding, is that of PyTorch's single-tensor implementations;
multiply-adds round once where BLAS does them.  Half-precision parameters are computed in float32
and rounded when stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy.linalg import get_blas_funcs

from flambeau_numpy.silence import quiet

Array = np.ndarray[Any, Any]

BLOCK = 32768  # elements; Adam's six float32 arrays of it take 768 KiB, and calls cost little still

_AXPY: dict[np.dtype[Any], Any] = {
    np.dtype(kind): get_blas_funcs("axpy", dtype=kind) for kind in (np.float32, np.float64)
}
_AXPY_LENGTH = 10000  # OpenBLAS spreads longer ones over threads, and waits longer than it adds


@quiet
def sgd_step_(
    params: Sequence[Array],
    grads: Sequence[Array],
    momentum_buffers: Sequence[Array],
    lr: float,
    momentum: float,
    dampening: float,
    weight_decay: float,
    nesterov: bool,
    maximize: bool,
) -> None:
    scratch = _Scratch()

    def update(p: Array, d: Array, *state: Array) -> None:
        if weight_decay:
            decay = np.multiply(p, weight_decay, out=scratch(0, p))
            d = (np.subtract if maximize else np.add)(decay, d, out=decay)
        elif maximize:
            d = np.negative(d, out=scratch(0, p))
        if momentum:
            (b,) = state
            np.multiply(b, momentum, out=b)
            _add_scaled(b, d, 1 - dampening, scratch)
            if nesterov:
                ahead = np.multiply(b, momentum, out=scratch(1, p))
                d = np.add(d, ahead, out=ahead)
            else:
                d = b
        _add_scaled(p, d, -lr, scratch)

    state = [momentum_buffers] if momentum else []
    for i, param in enumerate(params):
        _blockwise(update, param, grads[i], *[buffers[i] for buffers in state])


@quiet
def adam_step_(
    params: Sequence[Array],
    grads: Sequence[Array],
    exp_avgs: Sequence[Array],
    exp_avg_sqs: Sequence[Array],
    max_exp_avg_sqs: Sequence[Array],
    steps: Sequence[Array],
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    decoupled: bool,
    amsgrad: bool,
    maximize: bool,
) -> None:
    scratch = _Scratch()

    def update(p: Array, g: Array, m: Array, v: Array, *maximum: Array) -> None:
        t = scratch(0, p)
        if weight_decay and decoupled:
            np.multiply(p, 1 - lr * weight_decay, out=p)
        elif weight_decay:
            decay = np.multiply(p, weight_decay, out=scratch(1, p))
            g = (np.subtract if maximize else np.add)(decay, g, out=decay)
        if maximize and (decoupled or not weight_decay):
            g = np.negative(g, out=scratch(1, p))
        np.subtract(g, m, out=t)
        if beta1 > 0.5:  # the two forms of lerp: start from the nearer end
            _add_scaled(m, t, 1 - beta1, scratch)
        else:
            np.subtract(g, np.multiply(t, beta1, out=t), out=m)
        np.multiply(v, beta2, out=v)
        _add_scaled(v, np.multiply(g, g, out=t), 1 - beta2, scratch)
        if amsgrad:
            v = np.maximum(maximum[0], v, out=maximum[0])
        np.add(np.divide(np.sqrt(v, out=t), correction2, out=t), eps, out=t)
        _add_scaled(p, np.divide(m, t, out=t), -step_size, scratch)

    state = [exp_avgs, exp_avg_sqs, max_exp_avg_sqs] if amsgrad else [exp_avgs, exp_avg_sqs]
    for i, param in enumerate(params):
        steps[i][...] += 1
        step = float(steps[i])
        step_size = lr / (1 - beta1**step)
        correction2 = (1 - beta2**step) ** 0.5
        _blockwise(update, param, grads[i], *[tensors[i] for tensors in state])


class _Scratch:
    """Temporary arrays, reused for all blocks of a step: `scratch(k, p)` is the k-th, like `p`."""

    def __init__(self) -> None:
        self._buffers: dict[tuple[int, np.dtype[Any]], Array] = {}

    def __call__(self, k: int, like: Array) -> Array:
        key = k, like.dtype
        buffer = self._buffers.get(key)
        if buffer is None or buffer.size < like.size:
            buffer = self._buffers[key] = np.empty(max(like.size, BLOCK), like.dtype)
        return buffer[: like.size].reshape(like.shape)


def _add_scaled(y: Array, x: Array, factor: float, scratch: _Scratch) -> None:
    """``y += factor * x``, by BLAS where it can."""
    axpy = _AXPY.get(y.dtype)
    # BLAS skips a factor of 0, which must turn an infinite or NaN x into NaN.
    if axpy is None or not factor or y.ndim != 1 or not (y.flags.forc and x.flags.forc):
        np.add(y, np.multiply(x, factor, out=scratch(2, y)), out=y)
        return
    for start in range(0, y.size, _AXPY_LENGTH):
        axpy(x, y, min(_AXPY_LENGTH, y.size - start), factor, start, 1, start, 1)


def _blockwise(update: Callable[..., None], *arrays: Array) -> None:
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


KERNELS: dict[str, Callable[..., None]] = {"adam_step_": adam_step_, "sgd_step_": sgd_step_}
