"""Sums with a product: `addcmul`, `addcdiv` and `lerp`, which round as seldom as PyTorch does."""

from __future__ import annotations

from flambeau._dispatch.arguments import need_number, need_tensor
from flambeau._dispatch.dispatch import cast, common, result_type
from flambeau._dispatch.halves import is_half
from flambeau._dispatch.keywords import documented
from flambeau._dispatch.promotion import fitting
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.dtype import dtype as DType
from flambeau._types.hints import Number
from flambeau._writes.in_one import in_one
from flambeau._writes.out import deliver
from flambeau.ops.declaration.public import public
from flambeau.ops.pointwise.elementwise import multiply_add, times, where


@public(inplace="method")
@documented({"start": "input"})
def lerp(
    input: Tensor, end: Tensor, weight: Tensor | Number, *, out: Tensor | None = None
) -> Tensor:
    """input + weight * (end - input), computed from the nearer end.

    Raises:
        RuntimeError: `end`, or a `weight` with dimensions, is of another dtype than `input`.
        NotImplementedError: the dtype is not floating.

    >>> import flambeau as fb
    >>> fb.lerp(fb.tensor([0.0]), fb.tensor([10.0]), 0.5)
    tensor([5.])
    """
    if (found := in_one("lerp", input, end, weight)) is not None:
        return deliver(found, out, input, end)
    x, dtype = need_tensor(input, "lerp", "input"), input.dtype
    for name, other in (("end", need_tensor(end, "lerp", "end")), ("weight", weight)):
        if isinstance(other, Tensor) and other.dtype is not dtype:
            if name == "end" or other.dim():
                raise RuntimeError(
                    f"expected dtype {dtype} for `{name}` but got dtype {other.dtype}"
                )
    if not dtype.fp:
        raise NotImplementedError(f'"lerp" not implemented for {dtype}: needs a floating dtype')
    if not isinstance(weight, Tensor):
        if not isinstance(weight, complex):
            need_number(weight, "lerp", "weight")
        weight = fitting(weight, _computed(dtype))
    wide = _computed(dtype)
    x, y = cast(x, wide), cast(end, wide)
    way = y - x
    if isinstance(weight, Tensor):
        w = cast(weight, wide)
        near = w.abs() < 0.5
        found = multiply_add("lerp", where(near, x, y), way, where(near, w, w - 1), wide)
        exact = weight.dim() > 0
    elif abs(weight) < 0.5:
        found, exact = multiply_add("lerp", x, way, weight, wide), False
    else:
        # In the dtype, where the difference is exact.
        rest = common("lerp", (x, weight), wide)[1] - 1
        found, exact = multiply_add("lerp", y, way, rest, wide), False
    operands = (weight,) if isinstance(weight, Tensor) else ()
    return deliver(cast(found, dtype), out, input, end, *operands, exact=exact)


@public(inplace="method")
def addcmul(
    input: Tensor,
    tensor1: Tensor | Number,
    tensor2: Tensor | Number,
    *legacy: Tensor | Number,
    value: Number = 1,
    out: Tensor | None = None,
) -> Tensor:
    """input + value * tensor1 * tensor2.

    >>> import flambeau as fb
    >>> fb.addcmul(fb.ones(2), fb.ones(2), fb.ones(2), value=0.1)
    tensor([1.1000, 1.1000])
    """
    if legacy:
        value, tensor1, tensor2 = tensor1, tensor2, legacy[0]  # type: ignore[assignment]
    if (found := in_one("addcmul", input, tensor1, tensor2, value)) is not None:
        return deliver(found, out, input, tensor1, tensor2)
    need_tensor(input, "addcmul", "input")
    dtype = result_type(input, tensor1, tensor2)
    wide = _computed(dtype)
    x, y, z = common("addcmul", (input, tensor1, tensor2), wide)
    found = cast(multiply_add("addcmul", x, times(y, value), z, wide), dtype)
    return deliver(found, out, input, tensor1, tensor2)


@public(inplace="method")
def addcdiv(
    input: Tensor,
    tensor1: Tensor | Number,
    tensor2: Tensor | Number,
    *legacy: Tensor | Number,
    value: Number = 1,
    out: Tensor | None = None,
) -> Tensor:
    """input + value * tensor1 / tensor2.

    Raises:
        RuntimeError: both quotients are integers.

    >>> import flambeau as fb
    >>> fb.addcdiv(fb.ones(2), fb.ones(2), 2 * fb.ones(2))
    tensor([1.5000, 1.5000])
    """
    if legacy:
        value, tensor1, tensor2 = tensor1, tensor2, legacy[0]  # type: ignore[assignment]
    if (found := in_one("addcdiv", input, tensor1, tensor2, value)) is not None:
        return deliver(found, out, input, tensor1, tensor2)
    need_tensor(input, "addcdiv", "input")
    if result_type(tensor1, tensor2).category < 2:
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported. Cast the tensors to a floating "
            "dtype, or use input + value * torch.div(tensor1, tensor2, rounding_mode='trunc')."
        )
    dtype = result_type(input, tensor1, tensor2)
    wide = _computed(dtype)
    x, y, z = common("addcdiv", (input, tensor1, tensor2), wide)
    return deliver(cast(x + times(y, value) / z, dtype), out, input, tensor1, tensor2)


def _computed(dtype: DType) -> DType:
    """The dtype that values of `dtype` are computed in, to be rounded once."""
    return D.float32 if is_half(dtype) else dtype
