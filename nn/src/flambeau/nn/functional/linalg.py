"""Linear and bilinear maps."""

from __future__ import annotations

from flambeau import Tensor, ops


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x·Wᵀ + b.

    Shapes: input (*, in), weight (out, in) or (in), bias (out) or (); result (*, out) or (*).

    Raises:
        RuntimeError: the sizes do not fit.

    >>> import flambeau as fb
    >>> fb.nn.functional.linear(fb.ones(1, 2), fb.tensor([[1.0, 2.0]]), fb.tensor([0.5]))
    tensor([[3.5000]])
    """
    if input.dtype is not weight.dtype or (bias is not None and bias.dtype is not weight.dtype):
        given = f"{input.dtype} and {weight.dtype}" + ("" if bias is None else f" and {bias.dtype}")
        raise RuntimeError(f"linear: input, weight and bias must have the same dtype, got {given}")
    if weight.dim() != 2:
        return _linear_without_matrix(input, weight, bias)
    try:
        return ops.linear(input, weight, bias)
    except RuntimeError as error:
        raise _explained(error, input, weight) from None


def _explained(error: RuntimeError, input: Tensor, weight: Tensor) -> RuntimeError:
    """What is wrong with the sizes, if it is the sizes; looked at only after a failure."""
    if input.dim() == 0:
        return RuntimeError(
            f"both arguments to linear need to be at least 1D, but they are 0D and {weight.dim()}D"
        )
    size, (rows, columns) = input.shape[-1], weight.shape
    if size == columns:
        return error
    return RuntimeError(
        "mat1 and mat2 shapes cannot be multiplied "
        f"({input.numel() // max(size, 1)}x{size} and {columns}x{rows})"
    )


def _linear_without_matrix(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    if weight.dim() != 1:
        raise RuntimeError(
            "linear: weight must have one or two dimensions, got shape "
            f"{list(weight.shape)} with input {list(input.shape)}"
        )
    result = input.matmul(weight)
    return result if bias is None else result + bias


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
