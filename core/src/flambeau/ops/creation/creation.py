"""Creation: tensors from data and constants."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from flambeau._dispatch.arguments import checked_sizes, need_list, need_tensor, sizes
from flambeau._dispatch.bound import bind, home
from flambeau._dispatch.dispatch import out_of_memory, said_on_purpose, wrap
from flambeau._dispatch.keywords import many
from flambeau._dispatch.promotion import (
    alone,
    fits,
    fitting,
    is_number,
    python_number,
    scalar_dtype,
)
from flambeau._dispatch.warning import warn
from flambeau._memory.views import storage_of
from flambeau._storages.foreign import from_dlpack, frombuffer
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types import memory_format as _formats
from flambeau._types.device import device as Device
from flambeau._types.dtype import dtype as DType
from flambeau._types.dtype import get_default_dtype
from flambeau._types.hints import DeviceLike, Ints, Number
from flambeau._types.layout import layout as Layout
from flambeau._types.layout import sparse_coo, strided
from flambeau._types.memory_format import (
    contiguous_format,
    order_of_memory,
    preserve_format,
    preserved_order,
)
from flambeau._types.memory_format import memory_format as MemoryFormat
from flambeau._types.spec import Spec
from flambeau._types.strides import contiguous_strides
from flambeau._writes.out import deliver
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import primitive

if TYPE_CHECKING:
    from flambeau._dispatch.bound import BoundBackend

FULL_OF_DEFAULT_DTYPE = False
"""Whether `full` takes the default dtype instead of that of its value, as PyTorch 1.2 did."""


@primitive(differentiable=False)
def _full(shape: tuple[int, ...], value: object, dtype: DType) -> Spec:
    return Spec(shape, dtype)


def finished(
    t: Tensor, requires_grad: bool, out: Tensor | None, names: Sequence[str] = ()
) -> Tensor:
    """A new tensor after ``out=`` and ``requires_grad=``.

    Raises:
        RuntimeError: `out` has another dtype than was asked for.
    """
    if out is not None:
        if need_out(out).dtype is not t.dtype:
            raise RuntimeError(
                f"dtype {D.type_name(t.dtype)} does not match dtype of out parameter "
                f"({D.type_name(out.dtype)})"
            )
        if out.shape != t.shape:
            out.resize_(t.shape)  # an explicit size: no warning
        t = deliver(t, out)
    return t.requires_grad_() if requires_grad else t


def cannot_create(what: str, error: Exception, shape: Sequence[int], dtype: DType) -> RuntimeError:
    """What to raise where a device refuses to make a tensor."""
    if isinstance(error, MemoryError):
        return out_of_memory(f"a tensor of {what}", error, (list(shape), dtype))
    if (absent := D.absent(f"a tensor of {what}", error, "the device")) is not None:
        return absent
    why = error if said_on_purpose(error) else "the device's arrays cannot have it"
    return RuntimeError(f"cannot create a tensor of {what}: {why}")


def filled(shape: tuple[int, ...], value: object, dtype: DType, device: object) -> Tensor:
    """A tensor of one value and checked sizes, without any of the public functions' options."""
    if type(value) is not int and not isinstance(value, (float, complex)):
        if not hasattr(value, "__float__"):
            raise TypeError(f"expected a number, got {type(value).__name__}")
    return _of_number(home(device), shape, value, D.as_dtype(dtype))


def _of_number(be: BoundBackend, shape: tuple[int, ...], value: Any, dtype: DType) -> Tensor:
    try:
        return wrap(be, be.full(shape, value, dtype), dtype)
    except be.error as error:
        raise cannot_create(f"shape {list(shape)}", error, shape, dtype) from error


def _repeated(
    function: str,
    value: int,
    shape: tuple[Ints, ...],
    size: Ints | None,
    out: Tensor | None,
    dtype: DType | None,
    device: DeviceLike | None,
    requires_grad: bool,
) -> Tensor:
    """A new tensor of one integer, by the options of a public function."""
    found = size_of(function, shape, size)
    if out is not None:
        t = filled(found, value, dtype_or(dtype, out), device_or(device, out))
        return finished(t, requires_grad, out)
    kind = get_default_dtype() if dtype is None else D.as_dtype(dtype)
    t = _of_number(home(device), found, value, kind)
    return t.requires_grad_() if requires_grad else t


@public(method=False)
def zeros(
    *shape: Ints,
    size: Ints | None = None,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor of zeros.

    >>> import flambeau as fb
    >>> fb.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    if layout is not None and is_sparse("zeros", layout, out):
        found = size_of("zeros", shape, size)
        return _no_elements(found, dtype_or(dtype, out), device_or(device, out), requires_grad)
    return _repeated("zeros", 0, shape, size, out, dtype, device, requires_grad)


@public(method=False)
def ones(
    *shape: Ints,
    size: Ints | None = None,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor of ones.

    >>> import flambeau as fb
    >>> fb.ones(2, dtype=fb.int64)
    tensor([1, 1])
    """
    if layout is not None and is_sparse("ones", layout, out):
        raise RuntimeError("ones(...) is not implemented for sparse layout")
    return _repeated("ones", 1, shape, size, out, dtype, device, requires_grad)


@public(method=False)
def empty(
    *shape: Ints,
    size: Ints | None = None,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: MemoryFormat | None = None,
) -> Tensor:
    """A tensor with unspecified contents.

    Raises:
        RuntimeError: no tensor of so many dimensions has the memory format, or the layout is not
            that of `out`.

    >>> import flambeau as fb
    >>> fb.empty(2, 3).shape
    torch.Size([2, 3])
    """
    if out is None and layout is None and memory_format is None:
        kind = D.get_default_dtype() if dtype is None else D.as_dtype(dtype)
        t = unfilled(home(device), size_of("empty", shape, size), kind)
        return t.requires_grad_() if requires_grad else t
    dtype = dtype_or(dtype, out)
    be = home(device_or(device, out))
    found = size_of("empty", shape, size)
    if memory_format is not None and memory_format is not contiguous_format:
        order = order_of_memory(memory_format, len(found))
        t = in_order(found, order, lambda shape: unfilled(be, shape, dtype))
        return finished(t, requires_grad, out)
    if layout is not None and is_sparse("empty", layout, out):
        return _no_elements(found, dtype, be, requires_grad)
    if out is not None and out.dtype is dtype and out._be is be and not out.requires_grad:
        return finished(out.resize_(found), requires_grad, None)  # and no write
    return finished(unfilled(be, found, dtype), requires_grad, out)


def unfilled(be: BoundBackend, shape: tuple[int, ...], dtype: DType) -> Tensor:
    """A tensor with unspecified contents, without any of the public functions' options."""
    make = getattr(be.full, "empty", None)
    try:
        native = make(shape, dtype) if make is not None else be.full(shape, 0, dtype)
    except be.error as error:
        raise cannot_create(f"shape {list(shape)}", error, shape, dtype) from error
    return wrap(be, native, dtype)


@public(method=False)
def full(
    size: Sequence[int],
    fill_value: Number,
    *,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor of one value, whose type decides the dtype.

    >>> import flambeau as fb
    >>> fb.full((2,), 7)
    tensor([7, 7])
    """
    if layout is not None and is_sparse("full", layout):
        raise RuntimeError("full(...) is not implemented for sparse layout")
    if type(fill_value) is not float and type(fill_value) is not int:
        if isinstance(fill_value, Tensor):
            dtype, fill_value = dtype or fill_value.dtype, fill_value.item()
        fill_value = python_number(fill_value)
    if dtype is None and not FULL_OF_DEFAULT_DTYPE:
        dtype = scalar_dtype(fill_value) if out is None else need_out(out).dtype
    if type(size) is tuple and size and type(size[0]) is int:
        shape = size_of("full", size, None)
    else:
        shape = checked_sizes(sizes((need_list(size, "full", "size"),)))
    if type(dtype) is not DType:
        dtype = dtype_or(dtype, out)
    fill_value = _filling(fill_value, dtype, shape)
    be = home(device if out is None else device_or(device, out))
    made = _of_number(be, shape, fill_value, dtype)
    return made if out is None and not requires_grad else finished(made, requires_grad, out)


def _filling(value: object, dtype: DType, shape: Sequence[int]) -> Number:
    is_half = dtype.itemsize == 2
    return fitting(value, alone(dtype) if is_half and math.prod(shape) == 1 else dtype)


def is_sparse(function: str, layout: object, out: Tensor | None = None) -> bool:
    """Whether a new tensor of this layout is sparse.

    Raises:
        TypeError: it is no layout.
        RuntimeError: it is not that of `out`.
    """
    if layout is None:
        return False
    if layout is not strided and layout is not sparse_coo:
        raise TypeError(
            f"{function}(): argument 'layout' must be torch.layout, not {type(layout).__name__}"
        )
    if out is not None and layout is not need_out(out).layout:
        raise RuntimeError(f"layout {layout} does not match layout of out parameter ({out.layout})")
    return layout is sparse_coo


def _no_elements(shape: Sequence[int], dtype: DType, device: Any, requires_grad: bool) -> Tensor:
    """A sparse tensor of zeros."""
    from flambeau.ops.creation.sparse import sparse_coo_tensor  # which needs this module

    where = device if device is None or not hasattr(device, "device") else device.device
    return sparse_coo_tensor(
        size=checked_sizes(shape), dtype=dtype, device=where, requires_grad=requires_grad
    )


def size_of(function: str, shape: tuple[Any, ...], size: object) -> tuple[int, ...]:
    """The sizes in ``f(2, 3)``, ``f((2, 3))`` or ``f(size=(2, 3))``.

    Raises:
        RuntimeError: as `checked_sizes`.
    """
    if size is None and shape:
        if type(shape[0]) is int and len(shape) == 1 and 0 <= shape[0] < 1 << 63:
            return shape
        given = (
            tuple(shape[0]) if isinstance(shape[0], (tuple, list)) and len(shape) == 1 else shape
        )
        for n in given:
            if type(n) is not int:
                break
        else:
            return checked_sizes(given)
    return checked_sizes(sizes((many(function, "size", shape, size),)))


def dtype_or(dtype: DType | None, out: Tensor | None) -> DType:
    """The dtype of a new tensor: the one asked for, that of ``out=``, or the default.

    Raises:
        TypeError: it is no dtype, or `out` no tensor.
    """
    if dtype is None:
        return D.get_default_dtype() if out is None else need_out(out).dtype
    return D.as_dtype(dtype)


def device_or(device: object, out: Tensor | None) -> Any:
    """The device of a new tensor: the one asked for, or that of ``out=``."""
    where = None if out is None else need_out(out).device
    return where if device is None else device


def need_out(out: object) -> Tensor:
    """`out` if it is a tensor.

    Raises:
        TypeError: it is not.
    """
    if not isinstance(out, Tensor):
        raise TypeError(f"argument 'out' must be Tensor, not {type(out).__name__}")
    return out


def order_like(x: Tensor, memory_format: MemoryFormat | None) -> Sequence[int] | None:
    """The dimensions of a new tensor like `x` from the slowest to the fastest; None: row-major."""
    if memory_format is not None and memory_format is not preserve_format:
        return order_of_memory(memory_format, x.dim())
    if len(x._a.shape) < 2 or not x._be.strided:
        return None
    if memory_format is None and not _formats.KEEPS_ORDERS:
        return None
    shape, backend = x._a.shape, x._be.backend
    if backend.is_contiguous(x._a) and 1 not in shape and 0 not in shape:
        return None
    return preserved_order(shape, backend.strides(x._a))


def arranged(
    x: Tensor, memory_format: MemoryFormat | None, make: Callable[[tuple[int, ...]], Tensor]
) -> Tensor:
    """``make(shape of x)`` with the order of dimensions in memory that `x` has, or another."""
    return in_order(tuple(x._a.shape), order_like(x, memory_format), make)


def in_order(
    shape: tuple[int, ...],
    order: Sequence[int] | None,
    make: Callable[[tuple[int, ...]], Tensor],
) -> Tensor:
    """``make(shape)`` whose dimensions from the slowest to the fastest in memory are `order`."""
    if order is None:
        return make(shape)
    t = make(tuple(shape[d] for d in order))
    return wrap(t._be, t._be.permute(t._a, tuple(map(order.index, range(len(order))))), t.dtype)


def _like(
    name: str,
    input: Tensor,
    value: object,
    dtype: DType | None,
    device: object,
    requires_grad: bool,
    memory_format: MemoryFormat | None,
) -> Tensor:
    x = input if type(input) is Tensor else need_tensor(input, name, "input")
    kind, where = dtype_or(dtype, x), x._be if device is None else device
    if order_like(x, memory_format) is None:
        t = filled(tuple(x._a.shape), value, kind, where)
    else:
        t = arranged(x, memory_format, lambda shape: filled(shape, value, kind, where))
    return t.requires_grad_() if requires_grad else t


@public(method=False)
def zeros_like(
    input: Tensor,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    memory_format: MemoryFormat | None = None,
    pin_memory: bool = False,
) -> Tensor:
    """Zeros with the shape, dtype and device of `input`.

    >>> import flambeau as fb
    >>> fb.zeros_like(fb.tensor([1, 2]))
    tensor([0, 0])
    """
    if layout is not None and is_sparse("zeros_like", layout):
        return new_zeros(
            input,
            size=input.shape,
            dtype=dtype,
            device=device,
            layout=layout,
            requires_grad=requires_grad,
        )
    return _like("zeros_like", input, 0, dtype, device, requires_grad, memory_format)


@public(method=False)
def ones_like(
    input: Tensor,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    memory_format: MemoryFormat | None = None,
    pin_memory: bool = False,
) -> Tensor:
    """Ones with the shape, dtype and device of `input`.

    >>> import flambeau as fb
    >>> fb.ones_like(fb.tensor([1, 2]))
    tensor([1, 1])
    """
    return _like("ones_like", input, 1, dtype, device, requires_grad, memory_format)


@public(method=False)
def full_like(
    input: Tensor,
    fill_value: Number,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    memory_format: MemoryFormat | None = None,
    out: Tensor | None = None,
    pin_memory: bool = False,
) -> Tensor:
    """One value with the shape, dtype and device of `input`.

    >>> import flambeau as fb
    >>> fb.full_like(fb.tensor([1, 2]), 5)
    tensor([5, 5])
    """
    if isinstance(fill_value, Tensor):
        fill_value = fill_value.item()
    x = need_tensor(input, "full_like", "input")
    fill_value = _filling(fill_value, dtype_or(dtype, x), x._a.shape)
    t = _like("full_like", x, fill_value, dtype, device, requires_grad, memory_format)
    return deliver(t, out, input, share="anything")


@public(method=False)
def empty_like(
    input: Tensor,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    memory_format: MemoryFormat | None = None,
    pin_memory: bool = False,
) -> Tensor:
    """Unspecified contents with the shape, dtype and device of `input`.

    >>> import flambeau as fb
    >>> fb.empty_like(fb.tensor([1, 2])).dtype
    torch.int64
    """
    x = need_tensor(input, "empty_like", "input")
    kind, where = dtype_or(dtype, x), x._be if device is None else device
    if layout is not None and is_sparse("empty_like", layout):
        return _no_elements(tuple(x._a.shape), kind, where, requires_grad)
    if order_like(x, memory_format) is None:
        t = unfilled(home(where), tuple(x._a.shape), kind)
    else:
        t = arranged(x, memory_format, lambda shape: unfilled(home(where), shape, kind))
    return t.requires_grad_() if requires_grad else t


@public(function=False)
def new_zeros(
    input: Tensor,
    *shape: Ints,
    size: Ints | None = None,
    dtype: DType | None = None,
    device: DeviceLike | None = None,
    layout: Layout | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Zeros of another shape with the dtype and device of `input`.

    >>> import flambeau as fb
    >>> fb.tensor([1, 2]).new_zeros(3)
    tensor([0, 0, 0])
    """
    where = input._be if device is None else device
    if layout is not None and is_sparse("new_zeros", layout):
        found = size_of("new_zeros", shape, size)
        return _no_elements(found, dtype_or(dtype, input), where, requires_grad)
    return finished(
        filled(size_of("new_zeros", shape, size), 0, dtype_or(dtype, input), where),
        requires_grad,
        None,
    )


@public(function=False)
def new_ones(
    input: Tensor,
    *shape: Ints,
    size: Ints | None = None,
    dtype: DType | None = None,
    device: DeviceLike | None = None,
    layout: Layout | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Ones of another shape with the dtype and device of `input`.

    >>> import flambeau as fb
    >>> fb.tensor([1, 2]).new_ones(3)
    tensor([1, 1, 1])
    """
    where = input._be if device is None else device
    return finished(
        filled(size_of("new_ones", shape, size), 1, dtype_or(dtype, input), where),
        requires_grad,
        None,
    )


@public(function=False)
def new_full(
    input: Tensor,
    size: Sequence[int],
    fill_value: Number,
    *,
    dtype: DType | None = None,
    device: DeviceLike | None = None,
    layout: Layout | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """One value in another shape with the dtype and device of `input`.

    >>> import flambeau as fb
    >>> fb.tensor([1, 2]).new_full((3,), 7)
    tensor([7, 7, 7])
    """
    where = input._be if device is None else device
    if isinstance(fill_value, Tensor):
        fill_value = fill_value.item()
    size = checked_sizes(tuple(size))
    fill_value = _filling(fill_value, dtype_or(dtype, input), size)
    return finished(filled(size, fill_value, dtype_or(dtype, input), where), requires_grad, None)


@public(function=False)
def new_empty(
    input: Tensor,
    *shape: Ints,
    size: Ints | None = None,
    dtype: DType | None = None,
    device: DeviceLike | None = None,
    layout: Layout | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Unspecified contents of another shape with the dtype and device of `input`.

    >>> import flambeau as fb
    >>> fb.tensor([1, 2]).new_empty(3).dtype
    torch.int64
    """
    return empty(
        *shape,
        size=size,
        dtype=dtype_or(dtype, input),
        layout=layout,
        device=input._be if device is None else device,  # type: ignore[arg-type]
        requires_grad=requires_grad,
    )


@public(function=False)
def new_empty_strided(
    input: Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """`empty_strided` with the dtype and device of `input`.

    >>> import flambeau as fb
    >>> fb.tensor([1]).new_empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    return empty_strided(
        size,
        stride,
        dtype=dtype_or(dtype, input),
        layout=layout,
        device=input._be if device is None else device,  # type: ignore[arg-type]
        requires_grad=requires_grad,
    )


@public(function=False)
def new_tensor(
    input: Tensor,
    data: object,
    *,
    dtype: DType | None = None,
    device: DeviceLike | None = None,
    layout: Layout | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A copy of `data` with the dtype and device of `input`.

    >>> import flambeau as fb
    >>> fb.tensor([1.0]).new_tensor([1, 2])
    tensor([1., 2.])
    """
    where = input.device if device is None else device
    return finished(from_data(data, dtype_or(dtype, input), where, copy=True), requires_grad, None)


@public(method=False)
def tensor(
    data: object,
    *,
    dtype: DType | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A leaf tensor holding a copy of nested sequences, numbers or an array.

    The dtype is inferred: bool, int64, the default float or complex.

    Raises:
        ValueError: the nesting is ragged.
        TypeError: an element is no number.

    >>> import flambeau as fb
    >>> fb.tensor([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]])
    """

    if isinstance(data, Tensor):
        warn(
            "To copy construct from a tensor, it is recommended to use "
            "sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than "
            "torch.tensor(sourceTensor)."
        )
    return finished(from_data(data, dtype, device, copy=True), requires_grad, None)


@public(method=False)
def as_tensor(data: object, dtype: DType | None = None, device: DeviceLike | None = None) -> Tensor:
    """`data` as a tensor, sharing memory (and history) where no copy is needed.

    >>> import flambeau as fb
    >>> x = fb.ones(2); fb.as_tensor(x) is x
    True
    """
    return from_data(data, dtype, device, copy=False)


@public(method=False)
def asarray(
    obj: object,
    *,
    dtype: DType | None = None,
    device: DeviceLike | None = None,
    copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """`obj` as a tensor, which shares its memory if it has some, and a tensor's history.

    The memory of an object with Python's buffer protocol is read as `dtype` (default: the default
    float); an array, a DLPack capsule and a tensor have a dtype, and are converted to another.

    Args:
        copy: True to share nothing; False to raise where memory cannot be shared; None to copy
            where it cannot.
        requires_grad: None to leave it as it is; False for a tensor without history.

    Raises:
        ValueError: `copy` is False, and dtype, device or kind of `obj` want a copy.
        RuntimeError: it is, and `obj` is a NumPy scalar.
        ValueError: a buffer that is no multiple of the element size.

    >>> import flambeau as fb
    >>> fb.asarray([1, 2])
    tensor([1, 2])
    >>> fb.asarray(bytearray(4), dtype=fb.int16)
    tensor([0, 0], dtype=torch.int16)
    """
    dtype = None if dtype is None else D.as_dtype(dtype)
    t = _over(obj, dtype)
    if t is None:
        if copy is False:
            if hasattr(obj, "__array_interface__"):
                raise RuntimeError("can't alias NumPy scalars: remove copy=False, or pass an array")
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        t = from_data(obj, dtype, device, copy=True)
    else:
        where, kind = t.device if device is None else Device(device), dtype or t.dtype
        if copy is False and kind is not t.dtype:
            raise ValueError(
                f"can't alias tensor with dtype '{D.type_name(t.dtype)}' into dtype "
                f"'{D.type_name(kind)}'."
            )
        if copy is False and home(where) is not t._be:
            raise ValueError(f"can't alias tensor from device '{t.device}' to '{where}'.")
        t = t.to(where, kind, copy=bool(copy))
    if requires_grad is False and t.requires_grad:
        return t.detach()
    return t.requires_grad_() if requires_grad else t


def _over(obj: Any, dtype: DType | None) -> Tensor | None:
    """A tensor over the memory of `obj`; None if there is none to share."""
    if isinstance(obj, Tensor):
        return obj
    if isinstance(obj, (list, tuple)):
        return None
    if hasattr(obj, "__cuda_array_interface__"):
        return _from_cuda_array(obj)
    if hasattr(obj, "__array_interface__") or hasattr(obj, "__array__"):
        return _from_array(obj, False) if hasattr(type(obj), "__len__") else None
    if type(obj).__name__ == "PyCapsule":
        return from_dlpack(obj)
    try:
        memoryview(obj)
    except TypeError:
        return None
    return frombuffer(obj, dtype=D.get_default_dtype() if dtype is None else dtype)


def from_data(data: Any, dtype: DType | None, device: Any, *, copy: bool) -> Tensor:
    """Data of any accepted kind as a tensor."""
    if dtype is not None and type(dtype) is not DType:
        dtype = D.as_dtype(dtype)
    if isinstance(data, Tensor):
        t = data.detach() if copy else data
        where = t.device if device is None else Device(device)
        return t.to(where, dtype or t.dtype, copy=copy)
    if hasattr(data, "__cuda_array_interface__"):
        t = _from_cuda_array(data)
        return t.to(t.device if device is None else Device(device), dtype or t.dtype, copy=copy)
    be = home(device)
    if (hasattr(data, "__array_interface__") or hasattr(data, "__array__")) and not (
        isinstance(data, (list, tuple)) or (is_number(data) and not hasattr(data, "dtype"))
    ):
        t = _from_array(data, copy)
        return t.to(be.device, dtype or t.dtype)
    if isinstance(data, (bytearray, memoryview)) or (
        type(data).__name__ == "array" and hasattr(data, "typecode")
    ):
        data = list(data)
    nested = getattr(be.backend, "from_nested", None)
    if nested is not None and isinstance(data, (list, tuple)):
        leaf = _first_leaf(data)
        floats = dtype is None and type(leaf) is float
        if (not floats or _is_plain(data)) and (
            found := nested(data, D.get_default_dtype() if floats else dtype)
        ):
            return wrap(be, *found)
    shape = _shape_of(data)
    flat: list[Any] = []
    kinds: set[Any] = set()
    _flatten(data, shape, 0, flat, kinds, dtype)
    dtype = dtype or _inferred(flat, kinds)
    if dtype.category == 1 and any(type(v) is not int or not fits(v, dtype) for v in flat):
        flat = [v if isinstance(v, complex) else fitting(v, dtype) for v in flat]
    return wrap(be, be.host_array(flat, shape, dtype), dtype)


def _shape_of(data: Any) -> list[int]:
    """The shape of nested sequences and arrays, as the first of each level has it."""
    shape: list[int] = []
    while _is_sequence(data):
        _check_depth(len(shape), data)
        try:
            shape.append(len(data))
        except OverflowError as error:
            raise ValueError(f"too many elements in {type(data).__name__!r}") from error
        if not data:
            return shape
        try:
            data = data[0]
        except Exception as error:  # a sequence of the program's own may raise anything
            raise ValueError(
                f"could not determine the shape of object type {type(data).__name__!r}"
            ) from error
    return [*shape, *data.shape] if _is_array(data) else shape


def _check_depth(depth: int, data: object) -> None:
    if depth >= _DEPTH:
        raise ValueError(f"too many dimensions {type(data).__name__!r}")


def _check_self(data: object) -> None:
    if isinstance(data, (list, tuple)) and any(item is data for item in data):
        raise TypeError("new(): self-referential lists are incompatible")


_DEPTH = 64  # of nesting: more than any backend has dimensions; a list may contain itself


def _from_cuda_array(data: object) -> Tensor:
    """A tensor over the memory of another library's array on a CUDA device.

    Raises:
        TypeError: the backend of ``cuda`` does not take it.
    """
    backend = bind("cuda").backend
    give = getattr(backend, "from_cuda_array", None)
    if give is None:
        raise TypeError("the backend of 'cuda' takes no memory of other libraries")
    native = give(data)
    be = bind(Device("cuda", backend.index_of(native)))
    t = wrap(be, native, be.dtype_of(native))
    storage_of(t).shared = True  # somebody outside sees the writes
    return t


def _from_array(data: Any, copy: bool) -> Tensor:
    cpu = bind("cpu")
    array = data if hasattr(data, "__array_interface__") else data.__array__()
    native = cpu.backend.from_numpy(array, copy=copy)
    return wrap(cpu, native, cpu.dtype_of(native))


def _first_leaf(data: object) -> Any:
    depth = 0
    while isinstance(data, (list, tuple)) and data:
        _check_depth(depth, data)
        data, depth = data[0], depth + 1
    return data


def _is_plain(data: Any) -> bool:
    """Whether nested lists hold Python's numbers and nothing that has a dtype of its own."""
    kinds = set(map(type, data))
    return kinds <= _NUMBERS or (kinds <= _NESTED and all(map(_is_plain, data)))


_NUMBERS, _NESTED = {bool, int, float, complex}, {list, tuple}


def _is_array(x: object) -> bool:
    """Whether `x` is an array, or a scalar, of another library."""
    found = hasattr(x, "__array__") and hasattr(x, "dtype")
    return found and not isinstance(x, (Tensor, type))  # a class has what its objects have


def _is_sequence(x: object) -> bool:
    if isinstance(x, (list, tuple, range)):
        return True
    return (
        not isinstance(x, (Tensor, str, bytes, dict))
        and hasattr(x, "__len__")
        and hasattr(x, "__getitem__")
        and not hasattr(x, "__array__")
    )


def _flatten(
    data: Any,
    shape: list[int],
    depth: int,
    flat: list[Any],
    kinds: set[Any],
    dtype: DType | None,
) -> None:
    """Add the numbers of nested sequences to `flat`, and what decides the dtype to `kinds`."""
    if depth < len(shape):
        if not _is_sequence(data) and not (_is_array(data) and data.shape):
            raise TypeError(f"not a sequence at dim {depth}: {type(data).__name__}")
        if len(data) != shape[depth]:
            _check_self(data)
            raise ValueError(
                f"expected sequence of length {shape[depth]} at dim {depth} (got {len(data)})"
            )
        if _is_array(data) and list(data.shape) == shape[depth:]:
            kinds.add(_dtype_of(data))
            flat += data.reshape(-1).tolist()
            return
        for item in data:
            _flatten(item, shape, depth + 1, flat, kinds, dtype)
        return
    typed = isinstance(data, Tensor) or _is_array(data)
    if isinstance(data, Tensor):
        if data.numel() != 1:
            raise ValueError(
                "only one element tensors can be converted to Python scalars; use torch.stack to "
                "join tensors"
            )
        kinds.add(data.dtype)
        data = data.item()
    elif _is_array(data):
        try:
            kinds.add(_dtype_of(data))
        except TypeError:  # no dtype here is like it: a number like any other
            typed = False
        data = data.item()
    if type(data) not in _NUMBERS:
        data = _number(data, not flat and len(shape) > 0, dtype)
    if not typed:
        kinds.add(type(data))
    flat.append(data)


def _number(data: Any, first: bool, dtype: DType | None) -> Any:
    """One of Python's numbers for what is like one.

    Raises:
        TypeError, ValueError, RuntimeError: it is not.
    """
    if not isinstance(data, type):
        if hasattr(data, "__index__"):
            return operator.index(data)
        if hasattr(data, "__float__"):
            return float(data)
    if _is_sequence(data):
        _check_self(data)
        raise TypeError(f"must be real number, not {type(data).__name__}: ragged nesting")
    if isinstance(data, str) and first:
        raise ValueError("too many dimensions 'str'")
    kind = type(data).__name__
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type {kind!r}")
    if dtype is None:
        raise RuntimeError(f"Could not infer dtype of {kind}")
    if dtype.category < 2:
        raise TypeError(f"{kind!r} object cannot be interpreted as an integer")
    raise TypeError(f"must be real number, not {kind}")


def _dtype_of(array: Any) -> DType:
    """The dtype for the elements of another library's array or scalar."""
    return _from_array(array.reshape(-1)[:0], copy=True).dtype


def _inferred(flat: list[Any], kinds: set[Any]) -> DType:
    """The dtype of numbers: that of Python's own is bool, int64, or the default."""
    given = [kind for kind in kinds if isinstance(kind, DType)]
    if len(given) < len(kinds) or not kinds:
        given.append(_dtype_of_numbers(kinds.difference(given)))
    found = functools.reduce(D.promote_types, given)
    if found is D.int64:
        for v in flat:
            if not -(1 << 63) <= v < 1 << 63:
                raise RuntimeError(f"Overflow when unpacking long long: {v} does not fit in int64")
    return found


def _dtype_of_numbers(kinds: set[Any]) -> DType:
    if complex in kinds:
        return D.get_default_dtype().to_complex()
    if float in kinds or not kinds:
        return D.get_default_dtype()
    return D.bool_ if kinds == {bool} else D.int64


@public(method=False)
def from_numpy(ndarray: object) -> Tensor:
    """A tensor that shares the memory of a NumPy array.

    Raises:
        TypeError: it is no NumPy array, or its dtype has no counterpart.
        ValueError: it has negative strides.

    >>> import flambeau as fb, numpy as np
    >>> a = np.zeros(2); t = fb.from_numpy(a); a[0] = 1; t
    tensor([1., 0.], dtype=torch.float64)
    """
    cpu = bind("cpu")
    native = cpu.backend.from_numpy(ndarray, copy=False)
    t = wrap(cpu, native, cpu.dtype_of(native))

    storage_of(t).shared = True  # somebody outside sees the writes
    return t


@public(method=False)
def empty_strided(
    size: Sequence[int],
    stride: Sequence[int],
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """An unspecified tensor of shape `size` whose neighbours are `stride` elements apart.

    On devices without strides the result is row-major.

    Raises:
        RuntimeError: lengths differ, or a size or stride is negative.

    >>> import flambeau as fb
    >>> fb.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    shape = sizes((need_list(size, "empty_strided", "size"),))
    strides = sizes((need_list(stride, "empty_strided", "stride"),), "stride")
    if len(shape) != len(strides):
        raise RuntimeError(
            f"dimensionality of sizes ({len(shape)}) must match dimensionality of strides "
            f"({len(strides)})"
        )
    if any(n < 0 for n in (*shape, *strides)):
        raise RuntimeError(
            f"empty_strided: sizes {list(shape)} and strides {list(strides)} must not be negative"
        )
    reach = 0
    if 0 in shape:
        empty(shape, dtype=dtype, layout=layout, device=device)  # refuses what no array can have
    else:
        reach = 1 + sum(s * (n - 1) for n, s in zip(shape, strides, strict=True))
    memory = empty((reach,), dtype=dtype, layout=layout, device=device)
    be = memory._be
    if be.strided:
        made = wrap(be, be.backend.as_strided(memory._a, shape, strides, 0), memory.dtype)
    else:
        made = empty(shape, dtype=dtype, device=device)
    return made.requires_grad_(requires_grad)


@public(method=False)
def scalar_tensor(
    s: Number,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A 0-d tensor holding the number `s`, of the default dtype unless another is given.

    >>> import flambeau as fb
    >>> fb.scalar_tensor(2)
    tensor(2.)
    """
    dtype = get_default_dtype() if dtype is None else dtype
    return full((), s, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


@public(method=False)
def fill(input: Tensor, value: Tensor | Number) -> Tensor:
    """`value`, a number or a 0-d tensor, everywhere in a tensor of the shape and dtype of `input`.

    >>> import flambeau as fb
    >>> fb.fill(fb.zeros(2), 3)
    tensor([3., 3.])
    """
    return need_tensor(input, "fill", "input").clone().fill_(value)


@public(method=False)
def empty_permuted(
    size: Sequence[int],
    physical_layout: Sequence[int],
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """An unspecified, dense tensor of shape `size` whose dimensions lie in memory in some order.

    `physical_layout` names the dimensions from the outermost to the innermost.  On devices without
    strides the result is row-major.

    Raises:
        RuntimeError: `physical_layout` does not name each dimension once.

    >>> import flambeau as fb
    >>> fb.empty_permuted((2, 3, 5, 7), (0, 2, 3, 1)).stride()
    (105, 1, 21, 3)
    """
    shape = sizes((need_list(size, "empty_permuted", "size"),))
    order = sizes((need_list(physical_layout, "empty_permuted", "physical_layout"),), "layout")
    if len(order) != len(shape):
        raise RuntimeError(
            f"Number of dimensions in size does not match the length of the physical_layout; i.e. "
            f"len(size) = {len(shape)} is not equal to len(physical_layout) = {len(order)}"
        )
    if sorted(order) != list(range(len(shape))):
        raise RuntimeError(
            f"empty_permuted: physical_layout has to name each of the {len(shape)} dimensions "
            f"once, from 0 on, got {list(order)}"
        )
    strides = [0] * len(shape)
    dense = contiguous_strides([shape[d] for d in order])
    for d, stride in zip(order, dense, strict=True):
        strides[d] = stride
    return empty_strided(
        shape, strides, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )
