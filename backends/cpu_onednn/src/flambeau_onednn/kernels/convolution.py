"""Convolution of images and volumes, and its two gradients.

float32 and bfloat16 are computed by oneDNN. What is offered (`asking`), other dtypes, empty arrays,
and what oneDNN has no implementation for on this processor are left to others, and so is what the
NumPy kernel does faster.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from flambeau_numpy.extending import BFLOAT16, asking, parts
from flambeau_numpy.extending import KERNELS as NUMPY
from flambeau_onednn.kernels.linalg import KERNELS as PRODUCTS
from flambeau_onednn.library import onednn
from flambeau_onednn.primitives import BACKWARD_DATA, BACKWARD_WEIGHTS, FORWARD, Convolution
from flambeau_onednn.runs import LIMIT, Array, Plans
from flambeau_onednn.threads import get_num_threads, limited

FLOAT32 = np.dtype(np.float32)

THIN = 4
"""Gradients of images of so few channels are faster in NumPy: oneDNN fills blocks of 16."""

SMALL = 1 << 22
"""Multiplications of a 1×1 convolution below which products are faster than one call."""

TINY = 4
"""Pixels of an image up to which they are so whatever their number."""

_linear, _matmul = (PRODUCTS.get(name, NUMPY[name]) for name in ("linear", "matmul"))
plans = Plans(LIMIT)


def _is_product(image: tuple[int, ...], weight: tuple[int, ...], *geometry: Any) -> bool:
    """Whether a convolution is a few small products of matrices."""
    stride, padding, _, groups = geometry
    if weight[2:] != (1, 1) or groups != 1:
        return False
    if prod(image) * weight[0] > SMALL and prod(image[2:]) > TINY:
        return False
    return tuple(stride) == (1, 1) and tuple(padding) == (0, 0)


def run(
    kind: int,
    arrays: tuple[Array, ...],
    image: tuple[int, ...],
    weight: tuple[int, ...],
    *geometry: Any,
) -> Array | None:
    """The result of a convolution of `kind`, or None if it is not for oneDNN."""
    dtype = arrays[0].dtype
    if dtype != FLOAT32 and dtype != BFLOAT16:
        return None
    if dtype == FLOAT32 and _is_product(image, tuple(weight), *geometry):
        return None
    if not all(array.size and array.dtype == dtype for array in arrays):
        return None
    *window, groups = geometry
    geometry = (*map(tuple, window), groups)
    # A primitive divides its work, and its scratchpad, among the threads it was made for.
    threads, bias = get_num_threads(), len(arrays) == 3
    key = (kind, image, weight, bias, geometry, dtype, threads)
    plan = plans.kept.get(key) if len(plans.kept) < plans.limit else None
    if plan is None:

        def make() -> Convolution:
            library = onednn()
            assert library is not None  # the plugin offers these kernels only where there is one
            return Convolution(library, kind, image, weight, bias, geometry, dtype)

        with limited(threads):
            plan = plans.find(key, make)
    # oneDNN gets addresses: what does not have the plan's shapes is for NumPy to refuse.
    if plan is None or tuple([array.shape for array in arrays]) != plan.takes:
        return None
    return plan(*map(np.ascontiguousarray, arrays))


def _is_of_rows(image: tuple[int, ...], a: Array, weight: Array, *geometry: Any) -> bool:
    """Whether the convolution of an image, or its gradient, is one small product of float32."""
    if not a.dtype == weight.dtype == FLOAT32 or not weight.size:
        return False
    shape = weight.shape
    return parts.is_of_rows(image, shape, *geometry) and _is_product(image, shape, *geometry)


def _forward(name: str) -> Callable[..., Array]:
    otherwise = NUMPY[name]

    def convolution(x: Array, weight: Array, bias: Array | None, *geometry: object) -> Array:
        if _is_of_rows(x.shape, x, weight, *geometry):
            return parts.of_rows(_linear, x, weight.reshape(weight.shape[:2]), bias)
        arrays = (x, weight) if bias is None else (x, weight, bias)
        out = run(FORWARD, arrays, x.shape, weight.shape, *geometry)
        return otherwise(x, weight, bias, *geometry) if out is None else out

    return convolution


def _input_grad(name: str) -> Callable[..., Array]:
    otherwise = NUMPY[name]

    def input_grad(grad: Array, weight: Array, shape: tuple[int, ...], *geometry: object) -> Array:
        if _is_of_rows(tuple(shape), grad, weight, *geometry):
            return parts.of_rows(_matmul, grad, weight.reshape(weight.shape[:2]))
        if len(shape) == 4 and shape[1] <= THIN and geometry[-1] == 1:
            return otherwise(grad, weight, shape, *geometry)
        out = run(BACKWARD_DATA, (grad, weight), tuple(shape), weight.shape, *geometry)
        return otherwise(grad, weight, shape, *geometry) if out is None else out

    return input_grad


def _weight_grad(name: str) -> Callable[..., Array]:
    otherwise = NUMPY[name]

    def weight_grad(grad: Array, x: Array, shape: tuple[int, ...], *geometry: object) -> Array:
        out = run(BACKWARD_WEIGHTS, (x, grad), x.shape, tuple(shape), *geometry)
        return otherwise(grad, x, shape, *geometry) if out is None else out

    return weight_grad


_MAKERS = {"": _forward, "_input_grad": _input_grad, "_weight_grad": _weight_grad}

KERNELS = {f"conv3d{suffix}": make(f"conv3d{suffix}") for suffix, make in _MAKERS.items()}
for suffix, make in _MAKERS.items():
    name = f"conv2d{suffix}"
    KERNELS[name] = asking(name, make(name))
