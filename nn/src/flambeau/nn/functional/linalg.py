"""Bilinear maps; `linear` is the core's."""

from __future__ import annotations

from flambeau import Tensor


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """y_k = x1ᵀ·W_k·x2 + b_k.

    Shapes: input1 (*, in1), input2 (*, in2), weight (out, in1, in2), bias (out); result (*, out).

    Raises:
        RuntimeError: the leading shapes differ or the sizes do not fit the weight.

    >>> import flambeau as fb
    >>> fb.nn.functional.bilinear(fb.ones(1, 2), fb.ones(1, 3), fb.ones(1, 2, 3))
    tensor([[6.]])
    """
    if input1.shape[:-1] != input2.shape[:-1]:
        raise RuntimeError(
            "bilinear(): input batch dimensions do not match: got "
            f"{list(input1.shape)} and {list(input2.shape)}"
        )
    for name, given, place in (("input1", input1, 1), ("input2", input2, 2)):
        if given.shape[-1] != weight.shape[place]:
            raise RuntimeError(
                f"bilinear(): {name} size does not match weight size: "
                f"got {given.shape[-1]} but expected {weight.shape[place]}"
            )
    rows1 = input1.reshape(-1, 1, 1, input1.shape[-1])
    rows2 = input2.reshape(-1, 1, input2.shape[-1], 1)
    result = rows1.matmul(weight).matmul(rows2).reshape((*input1.shape[:-1], weight.shape[0]))
    return result if bias is None else result + bias
