"""What gradients of layers demand: kernels walk through all operands by the shape of one."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flambeau._tensor.tensor import Tensor


def check_shape(name: str, what: str, operand: Any, wanted: tuple[int, ...]) -> None:
    """Refuse an operand of another shape; one that is None fits."""
    if operand is not None and tuple(operand.shape) != wanted:
        raise RuntimeError(f"{name}: expected {what} of shape {wanted}, got {tuple(operand.shape)}")


def softmax_backward(grad: object, result: Any, dim: int) -> None:
    """What the gradients of `softmax` and `log_softmax` demand."""
    check_shape("softmax_backward", "grad", grad, tuple(result.shape))


def layer_norm_backward(
    grad: object,
    input: Tensor,
    weight: object,
    mean: object,
    invstd: object,
    normalized_shape: tuple[int, ...],
) -> None:
    """What `layer_norm_backward` demands."""
    name, shape, inner = "layer_norm_backward", tuple(input.shape), tuple(normalized_shape)
    check_shape(name, "input", input, (*shape[: len(shape) - len(inner)], *inner))
    check_shape(name, "grad", grad, shape)
    check_shape(name, "weight", weight, inner)
    rows = (*shape[: len(shape) - len(inner)], *(1,) * len(inner))
    check_shape(name, "mean", mean, rows)
    check_shape(name, "invstd", invstd, rows)


def batch_norm_backward(
    grad: object, input: Tensor, weight: object, mean: object, invstd: object
) -> None:
    """What `batch_norm_backward` demands."""
    name, shape = "batch_norm_backward", tuple(input.shape)
    if len(shape) < 2:
        raise RuntimeError(f"{name}: expected input of two dimensions or more, got {shape}")
    check_shape(name, "grad", grad, shape)
    for what, operand in (("weight", weight), ("mean", mean), ("invstd", invstd)):
        check_shape(name, what, operand, shape[1:2])


def group_norm_backward(
    grad: object, input: Tensor, weight: object, mean: object, invstd: object, groups: int
) -> None:
    """What `group_norm_backward` demands."""
    name, shape = "group_norm_backward", tuple(input.shape)
    if len(shape) < 2 or groups < 1 or shape[1] % groups:
        raise RuntimeError(f"{name}: expected {groups} groups of channels, got shape {shape}")
    check_shape(name, "grad", grad, shape)
    check_shape(name, "weight", weight, shape[1:2])
    check_shape(name, "mean", mean, (shape[0], groups))
    check_shape(name, "invstd", invstd, (shape[0], groups))


def max_pool2d_backward(grad: object, indices: Tensor, input_shape: tuple[int, ...]) -> None:
    """What `max_pool2d_backward` demands; it serves max-pooled rows and volumes, too."""
    name, shape = "max_pool2d_backward", tuple(indices.shape)
    check_shape(name, "grad", grad, shape)
    if len(shape) != len(input_shape) or prod(shape[:-2]) != prod(input_shape[:-2]):
        raise RuntimeError(
            f"{name}: expected as many planes as an input of shape {tuple(input_shape)} has, got "
            f"{shape}"
        )


def nll_loss_backward(
    grad: object,
    log_probs_shape: tuple[int, ...],
    target: object,
    weight: object,
    reduction: str,
    ignore_index: int,
    total_weight: object,
) -> None:
    """What `nll_loss_backward` demands."""
    name, rows = "nll_loss_backward", tuple(log_probs_shape[:-1])
    check_shape(name, "target", target, rows)
    check_shape(name, "weight", weight, tuple(log_probs_shape[-1:]))
    check_shape(name, "grad", grad, rows if reduction == "none" else ())
    check_shape(name, "total_weight", total_weight, ())


def cross_entropy_backward(
    grad: object, log_probs: Any, target: object, ignore_index: int, count: object
) -> None:
    """What `cross_entropy_backward` demands."""
    name = "cross_entropy_backward"
    check_shape(name, "target", target, tuple(log_probs.shape[:-1]))
    check_shape(name, "grad", grad, ())
    check_shape(name, "count", count, ())
