"""Argument forms that several families share: sizes per dimension, reductions, in-place results."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import TYPE_CHECKING

import flambeau as fb
from flambeau import Tensor
from flambeau.nn._refusals import require_tensors
from flambeau.overrides import warn

if TYPE_CHECKING:
    from typing_extensions import TypeIs

Size = int | Sequence[int]


def sizes(value: Size, count: int, name: str, where: str) -> tuple[int, ...]:
    """`count` ints from one int, a sequence of one, or a sequence of `count`.

    Raises:
        RuntimeError: any other length.
    """
    if is_whole(value):
        return (operator.index(value),) * count
    values = tuple(operator.index(v) for v in value)
    if len(values) == 1:
        return values * count
    if len(values) != count:
        raise RuntimeError(
            f"{where}: {name} must either be a single int or a sequence of {count} ints, "
            f"got {list(values)}"
        )
    return values


def wide(input: Tensor) -> Tensor:
    """`input` as formulas of several steps compute it: in float32 for 16-bit floats.

    What they find is cast to the dtype of `input`: rounded once.
    """
    return input.float() if input.dtype in (fb.float16, fb.bfloat16) else input


def is_whole(value: object) -> TypeIs[int]:
    """Whether `value` is a whole number, be it NumPy's."""
    return isinstance(value, Integral)


def whole_number(value: object, where: str, name: str) -> int:
    """`value` as an int of Python's own, which does not wrap around.

    Raises:
        TypeError: it is none.
    """
    try:
        return operator.index(value)  # type: ignore[arg-type] - it says so itself
    except TypeError:
        kind = type(value).__name__
        raise TypeError(f"{where}(): argument {name!r} must be int, not {kind}") from None


def check_reduction(reduction: str) -> None:
    """Raise ValueError unless `reduction` is ``"none"``, ``"mean"`` or ``"sum"``."""
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")


def choose_reduction(reduction: str, size_average: bool | None, reduce: bool | None) -> str:
    """The reduction to use, given also the two older arguments, which win and warn."""
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    if reduction == "elementwise_mean":
        warn(
            "reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.",
        )
        reduction = "mean"
    check_reduction(reduction)
    return reduction


def legacy_reduction(size_average: bool | None, reduce: bool | None) -> str:
    """What the arguments `size_average` and `reduce` of older programs mean; warns."""
    if reduce is False:
        reduction = "none"
    else:
        reduction = "sum" if size_average is False else "mean"
    warn(
        "size_average and reduce args will be deprecated, "
        f"please use reduction='{reduction}' instead.",
    )
    return reduction


def require_float(input: Tensor, where: str) -> None:
    """Refuse a tensor of integers, bools or complex numbers, and what is no tensor.

    Raises:
        NotImplementedError: `input` is not floating.
        TypeError: `input` is no tensor.
    """
    if not isinstance(input, Tensor):
        require_tensors(where, input=input)
    if not input.dtype.is_floating_point:
        raise NotImplementedError(f'"{where}" not implemented for {input.dtype}: convert the input')


def readable(tensor: Tensor) -> bool:
    """Whether values can be looked at for a check: they exist, and without waiting for a queue."""
    return tensor.device.type not in ("cuda", "meta")


def reduced(loss: Tensor, reduction: str) -> Tensor:
    """`loss` itself, its mean or its sum."""
    if reduction == "none":
        return loss
    return loss.mean() if reduction == "mean" else loss.sum()


def in_place(input: Tensor, function: Callable[..., Tensor], *args: object) -> Tensor:
    """Write ``function(input, *args)`` into `input`.

    A recorded call works on a copy: what the gradient saves must not be overwritten.
    """
    require_tensors(getattr(function, "__name__", "in_place"), input=input)
    source = input.clone() if input.requires_grad and fb.is_grad_enabled() else input
    return input.copy_(function(source, *args))
