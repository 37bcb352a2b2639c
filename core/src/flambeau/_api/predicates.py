"""Questions that are no ops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flambeau._dispatch import dispatch as _dispatch
from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import need_tensor
from flambeau._dispatch.dispatch import kernel_error
from flambeau._dispatch.keywords import documented
from flambeau._storages.typed import TypedStorage
from flambeau._storages.untyped import UntypedStorage
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau.ops.declaration.table import OPS

if TYPE_CHECKING:
    from typing_extensions import TypeIs


def is_tensor(obj: object) -> TypeIs[Tensor]:
    """Whether `obj` is a tensor.

    >>> import flambeau as fb
    >>> fb.is_tensor(fb.ones(1)), fb.is_tensor([1])
    (True, False)
    """
    return isinstance(obj, Tensor)


def is_inference(input: Tensor) -> bool:
    """Always False: inference mode makes ordinary tensors.

    >>> import flambeau as fb
    >>> fb.is_inference(fb.ones(1))
    False
    """
    return need_tensor(input, "is_inference", "input").is_inference()


def is_storage(obj: object) -> bool:
    """Whether `obj` is a storage.

    >>> import flambeau as fb
    >>> fb.is_storage(fb.ones(1).storage())
    True
    """
    return isinstance(obj, (TypedStorage, UntypedStorage))


@documented({"tensor": "input"})
def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype of a tensor is floating.

    >>> import flambeau as fb
    >>> fb.is_floating_point(fb.ones(1))
    True
    """
    need_tensor(input, "is_floating_point", "input")
    return input.dtype.is_floating_point


def is_complex(input: Tensor) -> bool:
    """Whether the dtype of a tensor is complex.

    >>> import flambeau as fb
    >>> fb.is_complex(fb.ones(1))
    False
    """
    need_tensor(input, "is_complex", "input")
    return input.dtype.is_complex


def is_signed(input: Tensor) -> bool:
    """Whether the dtype of a tensor has negative numbers.

    >>> import flambeau as fb
    >>> fb.is_signed(fb.ones(1)), fb.is_signed(fb.ones(1, dtype=fb.uint8))
    (True, False)
    """
    need_tensor(input, "is_signed", "input")
    return input.is_signed()


def get_device(input: Tensor) -> int:
    """The index of the device of a tensor, -1 on the CPU.

    >>> import flambeau as fb
    >>> fb.get_device(fb.ones(1))
    -1
    """
    need_tensor(input, "get_device", "input")
    return input.get_device()


def is_nonzero(input: Tensor) -> bool:
    """Whether a one-element tensor is not zero.

    Raises:
        RuntimeError: it has more or fewer elements.

    >>> import flambeau as fb
    >>> fb.is_nonzero(fb.tensor([0.0]))
    False
    """
    need_tensor(input, "is_nonzero", "input")
    return bool(input)


@documented({"tensor1": "input", "tensor2": "other"})
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and elements.

    >>> import flambeau as fb
    >>> fb.equal(fb.tensor([1, 2]), fb.tensor([1, 2]))
    True
    """
    try:
        a, b, be, dtype = input._a, other._a, input._be, other.dtype
    except AttributeError:
        need_tensor(input, "equal", "input")
        need_tensor(other, "equal", "other")
        raise
    if a.shape != b.shape:
        return False
    if input.dtype is not dtype:
        return bool((input == other).all().item())
    if _dispatch.modes or other._be is not be:
        return bool(OPS["equal"].run(input, other).item())
    try:
        return bool(be.backend.item(be.equal(a, b)))
    except be.error as error:
        raise kernel_error("equal", error, (input, other)) from error


@takes_as_annotated
def isclose(
    input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Tensor:
    """Whether abs(input - other) <= atol + rtol * abs(other), elementwise.

    >>> import flambeau as fb
    >>> fb.isclose(fb.tensor([1.0]), fb.tensor([1.0 + 1e-7]))
    tensor([True])
    """
    need_tensor(input, "isclose", "input")
    need_tensor(other, "isclose", "other")
    if input.dtype is not other.dtype:
        raise RuntimeError(f"{input.dtype} did not match {other.dtype}")
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        if isinstance(tolerance, Tensor) and tolerance.requires_grad:
            raise TypeError(f"isclose(): argument {name!r} must be float, not Tensor")
    if rtol < 0 or atol < 0:
        raise RuntimeError(
            f"rtol and atol must be greater than or equal to zero, got {rtol}, {atol}"
        )
    close = input == other
    if input.dtype.fp:
        allowed = other.abs() * rtol + atol
        gap = (input - other).abs()
        near = (gap <= allowed) & gap.isfinite() & input.isfinite() & other.isfinite()
        close = close | near
        if equal_nan:
            close = close | (input.isnan() & other.isnan())
    elif rtol or atol:
        wide = input.to(D.float64), other.to(D.float64)
        close = close | ((wide[0] - wide[1]).abs() <= wide[1].abs() * rtol + atol)
    return close


@takes_as_annotated
def allclose(
    input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    """Whether all elements are close in the sense of `isclose`.

    >>> import flambeau as fb
    >>> fb.allclose(fb.tensor([1.0]), fb.tensor([1.1]))
    False
    """
    need_tensor(input, "allclose", "input")
    need_tensor(other, "allclose", "other")
    return bool(isclose(input, other, rtol, atol, equal_nan).all().item())


def compiled_with_cxx11_abi() -> bool:
    """Whether C++ extensions see the C++11 ABI; flambeau has none, and answers as PyTorch 2 does.

    >>> import flambeau as fb
    >>> fb.compiled_with_cxx11_abi()
    True
    """
    return True


def is_distributed(input: Tensor) -> bool:
    """Whether a tensor is spread over processes: never, tensors live in one.

    >>> import flambeau as fb
    >>> fb.is_distributed(fb.ones(2))
    False
    """
    need_tensor(input, "is_distributed", "input")
    return False
