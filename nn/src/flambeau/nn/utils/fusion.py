"""A batch normalisation in evaluation mode merged into the layer before it."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

import flambeau as fb
from flambeau import Tensor
from flambeau.nn._refusals import require_tensors
from flambeau.nn.module import Module
from flambeau.nn.parameter import Parameter
from flambeau.overrides import takes_as_annotated

__all__ = [
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
]

M = TypeVar("M", bound=Module)


def _fused(layer: M, bn: Any, transposed: bool) -> M:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("Fusion needs the running statistics: track_running_stats=True")
    fused = copy.deepcopy(layer)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        *(fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias),
        transposed,
    )
    return fused


@takes_as_annotated
def fuse_conv_bn_eval(conv: M, bn: Module, transpose: bool = False) -> M:
    """A copy of `conv` that does what `conv` and then `bn` do in evaluation mode.

    `transpose` says that it is a transposed convolution.

    Raises:
        AssertionError: a module is in training mode, or `bn` has no running statistics.

    >>> import flambeau as fb
    >>> conv, bn = fb.nn.Conv2d(1, 2, 3).eval(), fb.nn.BatchNorm2d(2).eval()
    >>> fb.nn.utils.fuse_conv_bn_eval(conv, bn)
    Conv2d(1, 2, kernel_size=(3, 3), stride=(1, 1))
    """
    return _fused(conv, bn, transpose)


@takes_as_annotated
def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Weight w·s and bias (b - mean)·s + shift of the merged layer, s = scale / √(var + eps).

    >>> import flambeau as fb
    >>> one = fb.ones(1)
    >>> w, b = fb.nn.utils.fuse_conv_bn_weights(
    ...     fb.ones(1, 1, 1), one, 0 * one, one, 0.0, 2 * one, one
    ... )
    >>> w.item(), b.item()
    (2.0, 3.0)
    """
    for name, value in (("conv_b", conv_b), ("bn_w", bn_w), ("bn_b", bn_b)):
        if value is not None:
            require_tensors("fuse_conv_bn_weights", **{name: value})
    require_tensors("fuse_conv_bn_weights", conv_w=conv_w, bn_rm=bn_rm, bn_rv=bn_rv)
    scale = fb.add(bn_rv, bn_eps).rsqrt()
    if bn_w is not None:
        scale = scale * bn_w
    bias = -bn_rm if conv_b is None else conv_b - bn_rm
    bias = bias * scale
    if bn_b is not None:
        bias = bias + bn_b
    shape = [1] * conv_w.dim()
    shape[1 if transpose else 0] = -1
    weight = conv_w * scale.reshape(shape)
    wants = conv_w.requires_grad
    return (
        Parameter(weight.detach().to(conv_w.dtype), wants),
        Parameter(bias.detach().to(conv_w.dtype), wants),
    )


@takes_as_annotated
def fuse_linear_bn_eval(linear: M, bn: Module) -> M:
    """A copy of `linear` that does what `linear` and then `bn` do in evaluation mode.

    Raises:
        AssertionError: a module is in training mode, or the features do not match.

    >>> import flambeau as fb
    >>> linear, bn = fb.nn.Linear(3, 2).eval(), fb.nn.BatchNorm1d(2).eval()
    >>> fb.nn.utils.fuse_linear_bn_eval(linear, bn)
    Linear(in_features=3, out_features=2, bias=True)
    """
    features = linear
    norm = bn
    if features.out_features != norm.num_features and norm.num_features != 1:
        raise AssertionError("To fuse, linear.out_features == bn.num_features or 1")
    return _fused(linear, bn, False)


@takes_as_annotated
def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor,
    bn_b: Tensor,
) -> tuple[Parameter, Parameter]:
    """`fuse_conv_bn_weights` for a `Linear`.

    >>> import flambeau as fb
    >>> one = fb.ones(1)
    >>> w, b = fb.nn.utils.fuse_linear_bn_weights(fb.ones(1, 1), one, 0 * one, one, 0.0, one, one)
    >>> w.item(), b.item()
    (1.0, 2.0)
    """
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)
