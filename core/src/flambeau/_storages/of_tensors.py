"""What tensors do with storages: showing theirs, and taking another one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flambeau._autograd.modes import recording
from flambeau._dispatch.arguments import sizes
from flambeau._dispatch.dispatch import wrap
from flambeau._memory.record import is_tensor
from flambeau._memory.views import geometry_of, storage_of
from flambeau._storages.memory import tensor_in
from flambeau._storages.typed import CUDA_LEGACY, LEGACY, TypedStorage
from flambeau._storages.untyped import UntypedStorage
from flambeau._types.strides import contiguous_strides
from flambeau._writes.inplace import check_recorded_write

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flambeau._tensor.tensor import Tensor
    from flambeau._types.dtype import dtype as DType


def untyped_storage(t: Tensor) -> UntypedStorage:
    """The bytes of the allocation that `t` and its views share."""
    st = storage_of(t)
    st.shared = True  # writes must happen in this memory from now on
    return UntypedStorage._of(st)


def typed_storage(t: Tensor) -> TypedStorage:
    """The allocation that `t` and its views share, read as the dtype of `t`."""
    # The outer object is made first, since it is freed last: so a second call has it at the same
    # place, and `id(x.storage()) == id(y.storage())`, which programs ask, is true of one memory.
    made = object.__new__(TypedStorage)
    made._untyped_storage = untyped_storage(t)
    made.dtype = t.dtype
    return made


def storage_type(t: Tensor) -> Any:
    """The class of the storages of `t`, such as ``FloatStorage``."""
    return (CUDA_LEGACY if t.is_cuda else LEGACY)[t.dtype]


def reset(
    t: Tensor,
    source: object,
    storage_offset: int,
    size: Sequence[int] | None,
    stride: Sequence[int] | None,
) -> Tensor:
    """`Tensor.set_`."""
    if recording() and t.requires_grad:
        check_recorded_write(t)
    if source is None:
        t._take_over(t.new_empty((0,)))
        return t
    if is_tensor(source):
        if source.dtype is not t.dtype:
            raise RuntimeError(
                f"Could not set tensor of type {source.dtype} to a tensor of type {t.dtype}"
            )
        if size is None:
            t._take_over(source)
            return t
        st = storage_of(source)
    elif isinstance(source, (UntypedStorage, TypedStorage)):
        if isinstance(source, TypedStorage) and source.dtype is not t.dtype:
            raise RuntimeError(
                f"Expected a Storage of type {t.dtype} or an UntypedStorage, but got type "
                f"{source.dtype} for argument 1 'storage'"
            )
        st = source._st
    else:
        raise TypeError(
            "set_() received an invalid combination of arguments: source must be a Tensor or a "
            f"Storage, not {type(source).__name__}"
        )
    (storage_offset,) = sizes((storage_offset,), "storage_offset")
    size = None if size is None else sizes(tuple(size))
    stride = None if stride is None else sizes(tuple(stride), "stride")
    if storage_offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {storage_offset}")
    itemsize = t.dtype.itemsize
    shape = (st.nbytes() // itemsize - storage_offset,) if size is None else size
    strides = contiguous_strides(shape) if stride is None else stride
    if len(strides) != len(shape):
        raise RuntimeError(
            f"set_(): sizes {list(shape)} and strides {list(strides)} differ in length"
        )
    if any(s < 0 for s in strides):
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(shape)} and "
            f"strides={list(strides)}: negative strides are not supported"
        )
    reach = storage_offset + sum(s * (n - 1) for n, s in zip(shape, strides, strict=True)) + 1
    if 0 not in shape and reach * itemsize > st.nbytes():
        UntypedStorage._of(st).resize_(reach * itemsize)
    t._take_over(tensor_in(st, t.dtype, storage_offset, shape, strides))
    return t


def reinterpreted(t: Tensor, dtype: DType) -> Tensor:
    """The memory of `t` read as another dtype, without history.

    On strided devices the result is an alias; elsewhere (``ref``) it is a copy.

    Raises:
        RuntimeError: element sizes differ, and the last dimension cannot be split or joined.
    """
    be = t._be
    shape, stride, offset = geometry_of(t)
    old, new = t.dtype.itemsize, dtype.itemsize
    if old != new:
        shape, stride, offset = _resized(t, dtype, shape, stride, offset)
    if not be.strided:
        return _copied(t, dtype, shape)
    st = storage_of(t)
    st.shared = True
    native = be.backend.as_strided(st.root(dtype), shape, stride, offset)
    made = wrap(be, native, dtype)
    made._st = st
    return made


def _resized(
    t: Tensor, dtype: DType, shape: tuple[int, ...], stride: tuple[int, ...], offset: int
) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    old, new = t.dtype.itemsize, dtype.itemsize
    change = f"to view {t.dtype} as {dtype} (different element sizes)"
    if not shape:
        raise RuntimeError(f"self.dim() cannot be 0 {change}")
    if old > new:
        ratio = old // new
        if stride[-1] != 1 and shape[-1] != 1:
            raise RuntimeError(f"self.stride(-1) must be 1 {change}, but got {stride[-1]}")
        return (
            (*shape[:-1], shape[-1] * ratio),
            (*(s * ratio for s in stride[:-1]), 1),
            offset * ratio,
        )
    ratio = new // old
    if shape[-1] % ratio:
        raise RuntimeError(
            f"self.size(-1) must be divisible by {ratio} {change}, but got {shape[-1]}"
        )
    if stride[-1] != 1:
        raise RuntimeError(f"self.stride(-1) must be 1 {change}, but got {stride[-1]}")
    if offset % ratio:
        raise RuntimeError(
            f"self.storage_offset() must be divisible by {ratio} {change}, but got {offset}"
        )
    for d, s in enumerate(stride[:-1]):
        if s % ratio and shape[d] != 1:
            raise RuntimeError(
                f"self.stride({d}) must be divisible by {ratio} {change}, but got {s}"
            )
    return (
        (*shape[:-1], shape[-1] // ratio),
        (*(s // ratio for s in stride[:-1]), 1),
        offset // ratio,
    )


def _copied(t: Tensor, dtype: DType, shape: tuple[int, ...]) -> Tensor:
    be = t._be
    if t.is_meta:
        return wrap(be, be.full(shape, 0, dtype), dtype)
    if (viewed := getattr(be.backend, "viewed", None)) is not None:
        return wrap(be, viewed(t._a, dtype), dtype)  # a level, whose arrays are tensors
    data = be.backend.to_host(t._a)
    return wrap(be, be.backend.from_host(data, shape, dtype, be.device.index or 0), dtype)
