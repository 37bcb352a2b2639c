"""Optimiser steps on lists of arrays, in place.

A parameter is processed in blocks that fit the level-2 cache together with their state and the
scratch arrays, so a step reads and writes main memory once instead of once per ufunc.  Operations
follow PyTorch's single-tensor implementations in order, hence in rounding but for the multiply-adds
that PyTorch fuses.  Half-precision parameters are computed in float32 and rounded when stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

BLOCK = 32768  # elements; Adam's six float32 arrays of it take 768 KiB, and calls cost little still


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

    def update(p: Array, g: Array, *state: Array) -> None:
        t = scratch(0, p)
        d = np.negative(g, out=t) if maximize else g
        if weight_decay:
            d = np.add(d, np.multiply(p, weight_decay, out=scratch(1, p)), out=t)
        if momentum:
            (b,) = state
            np.multiply(b, momentum, out=b)
            np.add(b, np.multiply(d, 1 - dampening, out=scratch(1, p)) if dampening else d, out=b)
            d = np.add(d, np.multiply(b, momentum, out=scratch(1, p)), out=t) if nesterov else b
        np.subtract(p, np.multiply(d, lr, out=t), out=p)

    state = [momentum_buffers] if momentum else []
    for i, param in enumerate(params):
        _blockwise(update, param, grads[i], *(buffers[i] for buffers in state))


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
        t, u = scratch(0, p), scratch(1, p)
        if maximize:
            g = np.negative(g, out=u)
        if weight_decay and decoupled:
            np.multiply(p, 1 - lr * weight_decay, out=p)
        elif weight_decay:
            g = np.add(g, np.multiply(p, weight_decay, out=t), out=u)
        np.subtract(g, m, out=t)
        if beta1 > 0.5:  # the two forms of lerp: start from the nearer end
            np.add(m, np.multiply(t, 1 - beta1, out=t), out=m)
        else:
            np.subtract(g, np.multiply(t, beta1, out=t), out=m)
        np.multiply(v, beta2, out=v)
        np.add(v, np.multiply(np.multiply(g, 1 - beta2, out=t), g, out=t), out=v)
        if amsgrad:
            v = np.maximum(maximum[0], v, out=maximum[0])
        np.add(np.divide(np.sqrt(v, out=t), correction2, out=t), eps, out=t)
        np.subtract(p, np.divide(np.multiply(m, step_size, out=u), t, out=u), out=p)

    state = [exp_avgs, exp_avg_sqs, max_exp_avg_sqs] if amsgrad else [exp_avgs, exp_avg_sqs]
    for i, param in enumerate(params):
        steps[i][...] += 1
        step = float(steps[i])
        step_size = lr / (1 - beta1**step)
        correction2 = (1 - beta2**step) ** 0.5
        _blockwise(update, param, grads[i], *(tensors[i] for tensors in state))


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


def _blockwise(update: Callable[..., None], *arrays: Array) -> None:
    """Call `update` on corresponding blocks of arrays of one shape; it only reads the second."""
    if arrays[0].dtype.kind == "c":
        arrays = tuple(_as_real(array) for array in arrays)
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
    if all(array.flags.c_contiguous for array in arrays):
        arrays = tuple(array.reshape(-1) for array in arrays)
        length = BLOCK
    elif all(array.flags.f_contiguous for array in arrays):
        arrays = tuple(array.T.reshape(-1) for array in arrays)
        length = BLOCK
    else:  # layouts differ: whole rows, as many as make a block
        length = max(1, BLOCK * arrays[0].shape[0] // max(size, 1))
    if size <= BLOCK:
        yield arrays
        return
    for start in range(0, arrays[0].shape[0], length):
        yield tuple(array[start : start + length] for array in arrays)


def _as_real(array: Array) -> Array:
    """A view of a complex array with a last axis (real, imaginary)."""
    real = array.real
    return np.lib.stride_tricks.as_strided(
        real, (*real.shape, 2), (*real.strides, real.dtype.itemsize)
    )


KERNELS: dict[str, Callable[..., None]] = {"adam_step_": adam_step_, "sgd_step_": sgd_step_}
