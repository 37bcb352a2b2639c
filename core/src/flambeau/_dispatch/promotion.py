"""Type promotion of mixed operands: tensors with dimensions first, then 0-d ones, then numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from flambeau._memory.record import is_tensor
from flambeau._types import dtype as D

if TYPE_CHECKING:
    from flambeau._types.dtype import dtype as DType

NUMBERS = frozenset((bool, int, float, complex))
"""Python's types of numbers."""


def scalar_dtype(value: object) -> DType:
    """The dtype that a Python number stands for when nothing else decides.

    Raises:
        TypeError: `value` is no number.
    """
    if isinstance(value, bool):
        return D.bool_
    if isinstance(value, int):
        return D.int64
    if isinstance(value, float):
        return D.get_default_dtype()
    if isinstance(value, complex):
        return D.get_default_dtype().to_complex()
    if (number := python_number(value)) is not value:
        return scalar_dtype(number)
    raise TypeError(f"expected a number or a Tensor, got {type(value).__name__}")


def is_number(value: object) -> bool:
    """Whether `value` is a Python number."""
    return isinstance(value, (int, float, complex))


def python_number(value: Any) -> Any:
    """A number object of another library (NumPy scalars) as a Python number, else `value`."""
    if type(value) in NUMBERS or not hasattr(value, "dtype") or not hasattr(value, "item"):
        return value
    return value.item() if getattr(value, "shape", None) == () else value


def fits(value: Any, dtype: DType) -> bool:
    """Whether elements of `dtype` can be near to a number, by the rules of PyTorch's scalars.

    Infinities and NaN fit floating dtypes, and every number of 64 bits fits bools.
    """
    if isinstance(value, complex):
        if dtype.is_complex:
            return fits(value.real, dtype) and fits(value.imag, dtype)
        return dtype.category == 0 or (not value.imag and fits(value.real, dtype))
    largest = dtype.largest
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
        return False
    if dtype.category >= 2:
        return -largest <= value <= largest or not math.isfinite(value)
    if dtype.category == 0:
        return True
    if dtype.is_signed:
        return -largest - 1 <= value <= largest
    # A negative whole number stands for its complement, as in C.
    return (0 if isinstance(value, float) else -largest) <= value <= largest


def alone(dtype: DType) -> DType:
    """The dtype whose numbers fit where one element of `dtype` is written: halves take infinity.

    PyTorch rounds a single number to 16 bits without a question, and refuses it for several.
    """
    return D.float64 if dtype in (D.float16, D.bfloat16) else dtype


_OWN = {float: 2, int: 1}  # the category of dtypes whose elements such numbers are


def fitting(value: Any, dtype: DType) -> Any:
    """A number for elements of `dtype`: cut to a whole number if they are integers.

    Raises:
        RuntimeError: the dtype cannot hold it; of whole numbers beyond 64 bits a NumberError.
    """
    if _OWN.get(type(value)) == dtype.category and -dtype.largest <= value <= dtype.largest:
        return value
    if is_number(value) and not fits(value, dtype):
        raise D.beyond(value, dtype)
    if isinstance(value, complex) and not dtype.is_complex:
        value = value.real if dtype.category else value != 0
    return int(value) if dtype.category == 1 and isinstance(value, (int, float)) else value


def result_type(*operands: object) -> DType:
    """The dtype of an arithmetic op on tensors and numbers.

    A category (bool, integer, floating, complex) that occurs only among 0-d tensors or numbers
    raises the result to that category, at the width of the tensors with dimensions where they have
    one.

    >>> import flambeau as fb
    >>> fb.result_type(fb.ones(2, dtype=fb.int32), 1.5)
    torch.float32
    """
    dims = zeros = numbers = None
    for x in operands:
        if is_tensor(x):
            if len(x._a.shape) > 0:
                dims = x.dtype if dims is None else D.promote_types(dims, x.dtype)
            else:
                zeros = x.dtype if zeros is None else D.promote_types(zeros, x.dtype)
        else:
            d = scalar_dtype(x)
            numbers = d if numbers is None else D.promote_types(numbers, d)
    tensors = _combine(dims, zeros)
    found = _combine(tensors, numbers)
    if tensors is D.bool_ and found is D.int64:
        for x in operands:
            if isinstance(x, int) and 1 << 63 <= x < 1 << 64:
                raise RuntimeError(f"bools and {x}, which is beyond int64, have no common dtype")
    if found is None:
        raise TypeError("result_type() takes tensors and numbers, got none")
    return found


def _combine(higher: DType | None, lower: DType | None) -> DType | None:
    if higher is None or lower is None:
        return higher or lower
    if higher.category >= lower.category:
        return higher
    if lower.is_complex and higher.is_floating_point:
        return higher.to_complex() if higher in (D.float32, D.float64) else D.complex64
    return D.promote_types(higher, lower)
