"""Activation functions made of straight pieces, and the shrinkage functions.

Those with an op of their own have it in `flambeau.ops.layers.activation`.
"""

from __future__ import annotations

import flambeau as fb
from flambeau import Tensor
from flambeau.nn._refusals import require_tensors
from flambeau.nn.functional._arguments import in_place, require_float, wide
from flambeau.overrides import takes_as_annotated


@takes_as_annotated
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x where x > `threshold`, else `value`.

    >>> import flambeau as fb
    >>> fb.nn.functional.threshold(fb.tensor([0.5, 2.0]), 1.0, -3.0)
    tensor([-3.,  2.])
    """
    if inplace:
        return fb.threshold_(input, threshold, value)
    return fb.threshold(input, threshold, value)


@takes_as_annotated
def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """`threshold` written into `input`.

    >>> import flambeau as fb
    >>> fb.nn.functional.threshold_(fb.tensor([0.5, 2.0]), 1.0, -3.0)
    tensor([-3.,  2.])
    """
    return fb.threshold_(input, threshold, value)


@takes_as_annotated
def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """x limited to [`min_val`, `max_val`]; the gradient is zero at and beyond the limits.

    Raises:
        ValueError: `min_val` is greater than `max_val`.
        RuntimeError: `input` is bool.
        NotImplementedError: it is complex.

    >>> import flambeau as fb
    >>> fb.nn.functional.hardtanh(fb.tensor([-2.0, 0.5, 3.0]))
    tensor([-1.0000,  0.5000,  1.0000])
    """
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    if inplace:
        return in_place(input, hardtanh, min_val, max_val)
    require_tensors("hardtanh", input=input)
    if not input.is_floating_point():
        if input.dtype is fb.bool:
            raise RuntimeError("Bool inputs not supported for hardtanh")
        if input.is_complex():
            raise NotImplementedError("hardtanh is not supported for complex types")
        return input.masked_fill(input <= min_val, min_val).masked_fill(input >= max_val, max_val)
    x = wide(input)
    above = fb.where(x <= min_val, min_val, x)  # keeps the order of dimensions in memory
    return fb.where(x >= max_val, max_val, above).to(input.dtype)


@takes_as_annotated
def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """`hardtanh` written into `input`.

    >>> import flambeau as fb
    >>> fb.nn.functional.hardtanh_(fb.tensor([-2.0, 3.0]))
    tensor([-1.,  1.])
    """
    return hardtanh(input, min_val, max_val, inplace=True)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(0, x), 6).

    >>> import flambeau as fb
    >>> fb.nn.functional.relu6(fb.tensor([-1.0, 3.0, 8.0]))
    tensor([0., 3., 6.])
    """
    return hardtanh(input, 0.0, 6.0, inplace)


@takes_as_annotated
def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x where abs(x) > `lambd`, else 0.

    >>> import flambeau as fb
    >>> fb.nn.functional.hardshrink(fb.tensor([-1.0, 0.2]))
    tensor([-1.,  0.])
    """
    return fb.hardshrink(input, lambd)


@takes_as_annotated
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x moved towards 0 by `lambd`, and 0 where abs(x) <= `lambd`.

    Raises:
        RuntimeError: `lambd` is negative.

    >>> import flambeau as fb
    >>> fb.nn.functional.softshrink(fb.tensor([-2.0, 0.2]))
    tensor([-1.5000,  0.0000])
    """
    require_float(input, "softshrink")
    if lambd < 0:
        raise RuntimeError(f"softshrink: lambda must not be negative, but found {lambd}")
    x = wide(input)
    return (x - x.clamp(-lambd, lambd)).to(input.dtype)


@takes_as_annotated
def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x).

    >>> import flambeau as fb
    >>> fb.nn.functional.tanhshrink(fb.tensor([1.0]))
    tensor([0.2384])
    """
    return input - input.tanh()


@takes_as_annotated
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """relu6(x + 3) / 6.

    >>> import flambeau as fb
    >>> fb.nn.functional.hardsigmoid(fb.tensor([-4.0, 0.0, 4.0]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    if inplace:
        return in_place(input, hardsigmoid)
    require_float(input, "hardsigmoid")
    return (hardtanh(wide(input) + 3, 0.0, 6.0) / 6).to(input.dtype)


@takes_as_annotated
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x·relu6(x + 3) / 6.

    >>> import flambeau as fb
    >>> fb.nn.functional.hardswish(fb.tensor([1.0, 4.0]))
    tensor([0.6667, 4.0000])
    """
    if inplace:
        return in_place(input, hardswish)
    require_float(input, "hardswish")
    x = wide(input)
    return (x * hardtanh(x + 3, 0.0, 6.0) / 6).to(input.dtype)
