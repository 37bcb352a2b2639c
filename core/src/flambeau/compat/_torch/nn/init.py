"""Names of ``torch.nn.init`` that only programs for PyTorch want: initialisers of older versions
and of others that are built on it."""

from __future__ import annotations

import flambeau as fb
from flambeau import Generator, Tensor
from flambeau.nn import init

__all__ = [
    "_make_deprecate",
    "_no_grad_fill_",
    "_no_grad_normal_",
    "_no_grad_trunc_normal_",
    "_no_grad_uniform_",
    "_no_grad_zero_",
]

_make_deprecate = init._deprecated


def _no_grad_uniform_(
    tensor: Tensor, a: float, b: float, generator: Generator | None = None
) -> Tensor:
    with fb.no_grad():
        return tensor.uniform_(a, b, generator=generator)


def _no_grad_normal_(
    tensor: Tensor, mean: float, std: float, generator: Generator | None = None
) -> Tensor:
    with fb.no_grad():
        return tensor.normal_(mean, std, generator=generator)


def _no_grad_trunc_normal_(
    tensor: Tensor,
    mean: float,
    std: float,
    a: float,
    b: float,
    generator: Generator | None = None,
) -> Tensor:
    return init.trunc_normal_(tensor, mean, std, a, b, generator)


def _no_grad_fill_(tensor: Tensor, val: float) -> Tensor:
    with fb.no_grad():
        return tensor.fill_(val)


def _no_grad_zero_(tensor: Tensor) -> Tensor:
    with fb.no_grad():
        return tensor.zero_()
