"""Type promotion of mixed operands: tensors with dimensions first, then 0-d ones, then numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flambeau._memory.record import is_tensor
from flambeau._types import dtype as D

if TYPE_CHECKING:
    from flambeau._types.dtype import dtype as DType

_ORDER = (bool, int, float, complex)


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
    if type(value) in _ORDER or not hasattr(value, "dtype") or not hasattr(value, "item"):
        return value
    return value.item() if getattr(value, "shape", None) == () else value


def fitting(value: object, dtype: DType) -> Any:
    """A number for elements of `dtype`: cut to a whole number if they are integers.

    Raises:
        RuntimeError: the dtype cannot hold it.
    """
    given, ok = value, True
    if type(value) is complex and not dtype.is_complex:
        if dtype.category == 0:
            return value != 0
        ok, value = not value.imag, value.real
    if dtype.category == 1 and isinstance(value, (int, float)):
        bits = 8 * dtype.itemsize
        low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
        if not dtype.is_signed:
            # A negative whole number stands for its complement, as in C.
            high = (1 << bits) - 1
            low = 0 if isinstance(value, float) else -high
        if ok := ok and low <= value <= high:
            value = int(value)
    if not ok:
        raise RuntimeError(f"value cannot be converted to type {dtype} without overflow: {given}")
    return value


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
    found = _combine(_combine(dims, zeros), numbers)
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
