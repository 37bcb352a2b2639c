"""Gated linear units of rows whose halves lie side by side."""

from __future__ import annotations

from math import prod

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

_GLU, _BACKWARD = compiled("glu"), compiled("glu_backward")


def _prepare(a: Array, dim: int) -> object:
    run, size = _GLU.get(a.dtype), a.shape[dim]
    if run is None or size % 2:
        return None
    shape = (*a.shape[:dim], size // 2, *a.shape[dim + 1 :])
    return run, (form(shape, a.dtype),), (prod(a.shape[:dim]), prod(shape[dim:]))


def _prepare_backward(grad: Array, a: Array, dim: int) -> object:
    run, size = _BACKWARD.get(a.dtype), a.shape[dim]
    shape = (*a.shape[:dim], size // 2, *a.shape[dim + 1 :])
    if run is None or grad.dtype != a.dtype or size % 2 or grad.shape != shape:
        return None
    return run, (form(a.shape, a.dtype),), (prod(a.shape[:dim]), prod(shape[dim:]))


def _make_backward() -> Kernel:
    general = halves_by(lambda: kernel, otherwise("glu_backward"))
    kernel = prepared("glu_backward", "aas", _prepare_backward, general, packs=True)
    return kernel


KERNELS: dict[str, Kernel] = {}

if native is not None:
    KERNELS["glu"] = prepared("glu", "as", _prepare, otherwise("glu"))
    KERNELS["glu_backward"] = _make_backward()
