"""Activation functions made of straight pieces, and the shrinkage functions.

Those with an op of their own have it in `flambeau.ops.layers.activation`.
"""

from __future__ import annotations

import flambeau as fb
from flambeau import Tensor
from flambeau.nn._refusals import require_tensors
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
    require_tensors("hardtanh", input=input)
    if inplace:
        return fb.hardtanh_(input, min_val, max_val)
    return fb.hardtanh(input, min_val, max_val)


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
    return fb.softshrink(input, lambd)


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
    return fb.hardsigmoid_(input) if inplace else fb.hardsigmoid(input)


@takes_as_annotated
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x·relu6(x + 3) / 6.

    >>> import flambeau as fb
    >>> fb.nn.functional.hardswish(fb.tensor([1.0, 4.0]))
    tensor([0.6667, 4.0000])
    """
    return fb.hardswish_(input) if inplace else fb.hardswish(input)
