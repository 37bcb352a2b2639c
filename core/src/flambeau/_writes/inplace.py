"""Writing into tensors: checks, the write itself, and the history that follows it.

A recorded write computes its result out of place, writes it, and gives the tensor the result's
history.  If the tensor is a view, the history of its *base* becomes `CopySlices`: the base's old
gradient outside of the region, the result's inside.  Every other view of the base is then stale and
rebuilds its node.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from flambeau._autograd.modes import recording, set_recording
from flambeau._autograd.node import Edges, Node, next_seq
from flambeau._dispatch import dispatch as _dispatch
from flambeau._dispatch.arguments import broadcast_shapes, dim_of
from flambeau._dispatch.dispatch import cast, new, scalar_native, wrap, written
from flambeau._dispatch.promotion import alone, fitting, python_number
from flambeau._memory import views as _views
from flambeau._memory.record import is_tensor, state_of
from flambeau._memory.states import LEAF_VIEW, VIEW
from flambeau._memory.views import (
    edge,
    geometry_of,
    replay,
    replay_gradient,
    steps,
    storage_of,
    without_region,
)
from flambeau._types import dtype as D
from flambeau._writes.in_one import is_written_in_one, kernel_in_place

if TYPE_CHECKING:
    from flambeau._dispatch.bound import BoundBackend
    from flambeau._tensor.tensor import Tensor
    from flambeau._types.dtype import dtype as DType
    from flambeau.ops.declaration.namespace import TensorNamespace
    from flambeau.ops.declaration.table import Op

Own = TypeVar("Own", bound="Tensor")


_OVERLAP = (
    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a "
    "single memory location. Please clone() the tensor before performing the operation."
)


class CopySlices(Node):
    """The history of a base after a write through one of its views; the steps to it are `saved`."""

    __slots__ = ("region",)

    title = "CopySlices"

    def apply(
        self, F: BoundBackend | TensorNamespace, g: Any, edges: Edges = None
    ) -> tuple[Any, ...]:
        if self.saved is None:
            raise self.freed()
        base, value = self.edges if edges is None else edges
        part = replay_gradient(F, g, self.saved) if value is not None else None
        if base is None:
            return None, part
        return without_region(F, g, self.saved, self.region), part


def inplace(function: Callable[..., Any], self: Own, *args: Any, **kwargs: Any) -> Own:
    """Replace the values of `self` by ``function(self, *args, **kwargs)``."""
    saves = scatters = checked = None
    if kwargs:
        saves = kwargs.pop("_saves_self", None)
        scatters = kwargs.pop("_scatters", None)
        checked = kwargs.pop("_checked", None)
    given = (*args, kwargs["value"]) if len(kwargs) == 1 and "value" in kwargs else args
    st = self._st
    alone = st is None or not st.shared  # nothing else has its memory
    if not (self._rg and recording() and self.requires_grad):
        name = function.__name__
        if is_written_in_one(name) and (given is not args or not kwargs):
            if alone or _is_written_alone(self, given):
                if (one := kernel_in_place(self, name, given)) is not None:
                    one[0](self._a, *one[1])
                    storage_of(self).version += 1
                    return self
    elif alone and self._rg is True and self._fn is not None and not scatters:
        result = function(self._same_history(self._a), *args, **kwargs)
        check_result(self, result)
        assign(self, result, True)
        return self
    tensors = [a for a in args if is_tensor(a)]
    tensors += [a for a in kwargs.values() if is_tensor(a)]
    record = (
        recording()
        and self.dtype.fp
        and (self.requires_grad or any(t._rg and t.requires_grad for t in tensors))
    )
    if record:
        check_recorded_write(self)
    check_write(self, tensors if checked is not False else [], scatters=bool(scatters))
    source = self
    if record and saves is not False and self._st is not None and self._st.shared:
        # A formula that saves its input must keep the values from before the write.
        source = self._same_history(self._be.clone(self._a))
    elif record:
        source = self._same_history(self._a)
    if record or not self._be.strided:
        result = function(source, *args, **kwargs)
    elif (is_written_in_one(function.__name__) and (given is not args or not kwargs)) and (
        one := kernel_in_place(self, function.__name__, given)
    ) is not None:
        one[0](self._a, *one[1])
        storage_of(self).version += 1
        return self
    else:
        before, _target.tensor = _target.tensor, self
        try:
            result = function(source, *args, **kwargs)
        finally:
            _target.tensor = before
        if result is self:
            storage_of(self).version += 1
            return self
    check_result(self, result)
    assign(self, result, record)
    return self


class _Target(threading.local):
    tensor: Tensor | None = None


_target = _Target()
"""The tensor of each thread that is being written to, while nothing is recorded."""


def put_into(op: Op, x: Tensor, *args: Any) -> Tensor:
    """``op(x, *args)``, without a copy of `x` where that is what is being written to in place.

    Only for ops that a function ends with, which have a kernel that writes into its first argument.
    """
    be = x._be
    if _target.tensor is not x or (kernel := getattr(be, f"{op.name}_", None)) is None:
        return op.run(x, *args)
    given: list[Any] = []
    for a in args:
        parts = a if type(a) is tuple else (a,)
        tensors = [t for t in parts if is_tensor(t)]
        if any(t._be is not be or t is x or t._st is x._st is not None for t in tensors):
            return op(x, *args)
        native = [t._a if is_tensor(t) else t for t in parts]
        given.append(tuple(native) if type(a) is tuple else native[0])
    if _dispatch.modes:
        return op(x, *args)
    try:
        kernel(x._a, *given)
    except be.error as error:
        raise _dispatch.kernel_error(op.name, error, (x, *args)) from error
    return x


def written_by(name: str, x: Tensor, *args: Any) -> Tensor | None:
    """What the kernel ``name_`` of a function that is no op makes of `x`, in place or in a copy.

    None if the device has no such kernel, or a gradient is asked for.
    """
    be = x._be
    if not be.strided or _dispatch.modes or (kernel := getattr(be, f"{name}_", None)) is None:
        return None
    tensors = [t for t in args if is_tensor(t)]
    if any(t._be is not be for t in tensors):
        return None
    if recording() and any(t._rg and t.requires_grad for t in (x, *tensors)):
        return None
    alone = not any(t is x or t._st is x._st is not None for t in tensors)
    is_target = _target.tensor is x and alone
    native = x._a if is_target else be.clone(x._a)
    kernel(native, *(t._a if is_tensor(t) else t for t in args))
    return x if is_target else wrap(be, native, x.dtype)


def check_result(self: Tensor, result: Tensor) -> None:
    """Refuse results that `self` cannot hold.

    Raises:
        RuntimeError: the shape differs, or the dtype's category is higher.
    """
    _check_shape(self, result._a.shape)
    if result.dtype is self.dtype:
        return
    if self.dtype.is_complex and result.dtype.category == 2:
        raise RuntimeError("In-place abs is not supported for complex tensors.")
    if result.dtype.category > self.dtype.category:
        raise RuntimeError(
            f"result type {D.type_name(result.dtype)} can't be cast to the desired output type "
            f"{D.type_name(self.dtype)}"
        )


def check_same_dtype(self: Tensor, dim: object, dtype: DType) -> None:
    """Refuse the ``dtype=`` of an in-place operation along `dim` if `self` has another one.

    Raises:
        IndexError: there is no such dimension.
        RuntimeError: the dtypes differ.
    """
    if dtype is not None and dtype is not self.dtype:
        dim_of(dim, self.dim())
        raise RuntimeError(
            f"Bad in-place call: input tensor dtype {self.dtype} and output tensor dtype {dtype} "
            "should match"
        )


def _check_shape(self: Tensor, shape: tuple[int, ...]) -> None:
    if shape != self._a.shape:
        raise RuntimeError(
            f"output with shape {list(self._a.shape)} doesn't match the broadcast shape "
            f"{list(shape)}"
        )


def check_recorded_write(self: Tensor) -> None:
    """Refuse recorded writes that have no meaning.

    Raises:
        RuntimeError: to a leaf that requires grad, to a view of one, or to a view made under
        no_grad.
    """
    if self._base is not None:
        if self._made:
            raise _views.ambiguous(self, "is being")
        if self._base.is_leaf and self.requires_grad:
            raise RuntimeError(
                "a view of a leaf Variable that requires grad is being used in an in-place "
                "operation. Write under torch.no_grad(), or to a clone()."
            )
    if self.requires_grad and self.is_leaf:
        raise RuntimeError(
            "a leaf Variable that requires grad is being used in an in-place operation. Write "
            "under torch.no_grad(), or to a clone()."
        )


def check_write(self: Tensor, sources: list[Any], *, scatters: bool = False) -> None:
    """Refuse writes whose outcome would depend on the order of elements.

    Raises:
        RuntimeError: several elements of `self` share memory, or a source overlaps it partially.  A
            write that `scatters` by index allows the first and refuses any overlap.
    """
    if scatters and any(other is self for other in sources):
        raise RuntimeError(_OVERLAP)
    st = self._st
    if st is None or not st.shared or (repeats_nothing(self) and _all_elsewhere(sources, self)):
        return
    shape, stride, _ = geometry_of(self)
    repeats = any(s == 0 and n > 1 for n, s in zip(shape, stride, strict=True))
    if repeats and not scatters and 0 not in shape:
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a "
            "single memory location. Please clone() the tensor before performing the operation."
        )
    for other in sources:
        if other is self or other._st is not st:
            continue
        mine, its = _views.logical_geometry(self), _views.logical_geometry(other)
        if scatters and _overlaps_fully(mine, its):
            raise RuntimeError(_OVERLAP)
        if _overlaps_partially(mine, its) and not (
            _same_elements(mine, its) and _unknown(self, other)
        ):
            raise RuntimeError(_OVERLAP)


def repeats_nothing(self: Tensor) -> bool:
    """Whether no two elements share memory, as strides show at a glance."""
    backend, native = self._be.backend, self._a
    return self._be.strided and (backend.is_contiguous(native) or 0 not in backend.strides(native))


def _is_written_alone(self: Tensor, given: Sequence[Any]) -> bool:
    """Whether a view may be written without a closer look, while operands are read."""
    st = self._st
    return repeats_nothing(self) and all(
        x is self or not is_tensor(x) or x._st is not st for x in given
    )


def _all_elsewhere(sources: list[Any], self: Tensor) -> bool:
    return all(other is self or other._st is not self._st for other in sources)


def check_out(out: Tensor, inputs: list[Tensor], share: str) -> None:
    """Refuse an ``out=`` that repeats elements, or shares memory with inputs; see `out.deliver`.

    Raises:
        RuntimeError: it does.
    """
    check_write(out, inputs if share == "itself" else [])
    if share == "nothing" and out.numel():
        mine = _views.logical_geometry(out)
        for x in inputs:
            if x is out:
                raise RuntimeError(_OVERLAP)
            if x._st is out._st is not None:
                its = _views.logical_geometry(x)
                if _overlaps_partially(mine, its) or _overlaps_fully(mine, its):
                    raise RuntimeError(_OVERLAP)


def take_over(self: Tensor, result: Tensor, *, restride: bool) -> bool:
    """Give `self` the memory of a fresh `result`, if nobody else sees its own; whether that was so.

    `restride` says that `self` may take the strides of the result, too.
    """
    be, st = self._be, self._st
    if not be.strided or (st is not None and st.shared) or result.dtype is not self.dtype:
        return False
    if not restride and not _have_the_same_strides(be, result._a, self._a):
        return False
    st = storage_of(self)
    self._a = st.buffer = result._a
    st.version += 1
    return True


def _span(g: _views.Geometry) -> tuple[int, int, bool]:
    shape, stride, offset = g
    count, reach = 1, 0
    for n, s in zip(shape, stride, strict=True):
        count *= n
        reach += (n - 1) * s
    return offset, offset + reach, count == reach + 1


def _overlaps_partially(a: _views.Geometry, b: _views.Geometry) -> bool:
    if 0 in a[0] or 0 in b[0]:
        return False
    first_a, last_a, dense_a = _span(a)
    first_b, last_b, dense_b = _span(b)
    if not (dense_a and dense_b):
        # PyTorch judges dense operands only; others it takes element by element.
        return False
    if (first_a, last_a) == (first_b, last_b):
        return a[1] != b[1]
    return not (last_a < first_b or last_b < first_a)


def _same_elements(a: _views.Geometry, b: _views.Geometry) -> bool:
    # Strides of dimensions of size 1 lead nowhere.
    return (
        len(a[0]) == len(b[0])
        and a[2] == b[2]
        and [(n, s) for n, s in zip(*a[:2], strict=True) if n > 1]
        == [(n, s) for n, s in zip(*b[:2], strict=True) if n > 1]
    )


def _unknown(*tensors: Tensor) -> bool:
    """Whether PyTorch's strides of sizes 1 are unknown: of aliases that are no views."""
    return any(t._view is None and t._st is not None and t._a is not t._st.buffer for t in tensors)


def _same_memory(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors are the same elements in the same order."""
    if a._st is not b._st or a._st is None or a.dtype is not b.dtype:
        return False
    return _views.logical_geometry(a) == _views.logical_geometry(b)


def _overlaps_fully(a: _views.Geometry, b: _views.Geometry) -> bool:
    return _span(a) == _span(b) and _span(a)[2] and 0 not in a[0]


def assign(self: Tensor, result: Tensor, record: bool) -> None:
    """Write `result` into `self` and, if recorded, give it the history of `result`."""
    if result._be is not self._be:
        result = written(self, result)
    if result.dtype is not self.dtype:
        result = cast(result, self.dtype)
    st = self._st
    if record and self._be.strided and (st is None or not st.shared):
        # Nobody else sees the old memory, and formulas may have saved it: leave it to them.
        exchange(self, result)
    else:
        write(self, result._a)
    if record:
        value = edge(result) if result._rg else None
        if isinstance(value, Node):
            value.adopt(self._st)
        adopt(self, value)


def exchange(self: Tensor, result: Tensor) -> None:
    """Let unshared `self` take the array of a fresh `result` for its own, and count the write."""
    be = self._be
    native = result._a
    owned = result._st is None or not result._st.shared
    if not owned or not _have_the_same_strides(be, native, self._a):
        native = be.clone(self._a)
        be.assign(native, result._a)
    st = storage_of(self)
    self._a = st.buffer = native
    st.version += 1


def _have_the_same_strides(be: BoundBackend, a: Any, b: Any) -> bool:
    """Whether two arrays of one shape have, which of contiguous ones is seen at a glance."""
    shape, is_contiguous = a.shape, be.backend.is_contiguous
    if is_contiguous(a) and is_contiguous(b) and 1 not in shape and 0 not in shape:
        return True
    return be.backend.strides(a) == be.backend.strides(b)


def write(self: Tensor, native: Any) -> None:
    """Put the values of a native array into the memory of `self`, and count the write."""
    be = self._be
    st = storage_of(self)
    if be.strided:
        be.assign(self._a, native)
        st.version += 1
        return
    if native.shape != self._a.shape:
        native = be.expand(native, self._a.shape)
    st.version += 1
    if not st.shared:
        self._a = st.buffer = native
        return
    before = recording()
    try:
        set_recording(before and hasattr(be, "level"))  # whose arrays may have a history
        chain = memory_steps(self)
        st.buffer = be.view_put(st.buffer, native, chain) if chain else native
        for ref in st.aliases:
            if (t := ref()) is not None:
                t._a = replay(be, st.buffer, memory_steps(t))
    finally:
        set_recording(before)


def memory_steps(t: Tensor) -> list[Any]:
    """The view steps that lead from the root of a storage without strides to `t`."""
    st = t._st
    assert st is not None
    shape = tuple(st.buffer.shape)
    found = []
    g = (shape, _views.contiguous_strides(shape), 0)
    for op, args in t._msteps:
        found.append((op, args, g[0], op))
        g = _views.geometry(op, g, args)
    return found


def adopt(self: Tensor, value: object, *, replaces: bool = False) -> None:
    """Give `self` (or its base) the history of what was just written into it, an edge or None.

    `replaces` says that the result does not depend on the old values; a tensor with a history then
    keeps it, at gradient zero.
    """
    if self._retains:
        # The gradient that is kept is that of the new values.
        self._retains = False
        if isinstance(self._fn, Node) and self._fn._hooks is not None:
            self._fn._hooks.retain = None
        adopt(self, value, replaces=replaces)
        self.retain_grad()
        return
    base = self._base
    if base is None:
        old = edge(self) if replaces or value is None else None
        self._fn = (
            _own(value, copied=replaces) if old is None is not value else _overwrite(old, value)
        )
        self._rg = True
        return
    old = edge(base)
    node = new(CopySlices)
    node._hooks = None
    node.saved = steps(self)
    node.region = tuple(self._a.shape)
    node.edges = (old, value)
    node.seq = next_seq()
    base._fn = node
    base._rg = True
    self._rg = LEAF_VIEW if self._rg == LEAF_VIEW else VIEW
    self._seen = None  # to be renewed


def _own(value: object, copied: bool = False) -> Any:
    if isinstance(value, Node) and not copied:
        return value
    # It is the history of another tensor (``x.copy_(y)`` without promotion), whose gradient and
    # hooks are not those of this one: an identity stands between.
    node = new(_Identity)
    node._hooks = None
    node.edges = (value,)
    node.saved = ()
    node.seq = next_seq()
    return node


class Overwrite(Node):
    """The history of a tensor whose old values were replaced by others."""

    __slots__ = ()

    title = "CopyBackwards"

    def apply(
        self, F: BoundBackend | TensorNamespace, g: Any, edges: Edges = None
    ) -> tuple[Any, ...]:
        old, value = self.edges if edges is None else edges
        return None if old is None else F.zeros(g.shape, g), None if value is None else g


def _overwrite(old: object, value: object) -> Node:
    node = new(Overwrite)
    node._hooks = None
    node.edges = (old, value)
    node.saved = ()
    node.seq = next_seq()
    return node


class Retyped(Node):
    """The history of a result that was given data of another shape or dtype since.

    Gradients come in that of the data and go on in that of the result.
    """

    __slots__ = ("dtype", "shape")

    def __init__(self, made: Node, shape: tuple[int, ...], dtype: DType) -> None:
        """Stand for the node that `made` a result of a shape and a dtype."""
        super().__init__()
        self.edges, self.saved, self.seq = (made,), (), next_seq()
        self.shape, self.dtype = shape, dtype

    def name(self) -> str:
        return self.edges[0].name()

    def apply(
        self, F: BoundBackend | TensorNamespace, g: Any, edges: Edges = None
    ) -> tuple[Any, ...]:
        shape, now = self.shape, tuple(g.shape)
        try:
            grown = broadcast_shapes(shape, now) == now
        except RuntimeError:
            grown = False
        if not grown:
            raise RuntimeError(
                f"{self.name()} got an invalid gradient of shape {list(now)}: its result had the "
                f"shape {list(shape)} before it was given other data"
            )
        return (F.cast(F.sum_to(g, shape), self.dtype),)


class _Identity(Node):
    __slots__ = ()

    title = "CopyBackwards"

    def apply(self, F: object, g: object, edges: Edges = None) -> tuple[Any, ...]:
        return (g,)


def copy_(
    self: Tensor, src: Any, *, may_overlap: bool = False, non_blocking: bool = False
) -> Tensor:
    """Write the values of `src`, broadcast and cast, into `self`."""
    be = self._be
    if (
        src._be is be
        and be.strided
        and src.dtype is self.dtype
        and ((st := self._st) is None or not st.shared)  # nothing else has its memory
        and type(src._a) is be.array
        and src._a.shape == self._a.shape
        and not (self._rg or src._rg)
        and src is not self
    ):
        be.assign(self._a, src._a)
        storage_of(self).version += 1
        return self
    record = (
        recording()
        and self.dtype.fp
        and (self.requires_grad or (src._rg and src.requires_grad and src.dtype.fp))
    )
    if record:
        check_recorded_write(self)
    if src is self:
        storage_of(self).version += 1
        return self
    if src._be is not self._be and src.is_sparse:
        raise RuntimeError("copy_() between dense and sparse tensors is not implemented")
    if not _same_memory(self, src):
        check_write(self, [] if may_overlap else [src])
    if src._be is not self._be:
        late = non_blocking and self.device.type == "cpu"
        if late and not record:
            from flambeau._writes.device_copy import downloaded_to

            if downloaded_to(self, src):
                storage_of(self).version += 1
                return self
        src = src.to(self.device, non_blocking=non_blocking and not late)
        if src._be is not self._be:
            src = written(self, src)
    before = recording()
    try:
        # A stale view may be read, though not followed; below a level there may be history.
        set_recording(record or (before and hasattr(self._be, "level")))
        value = src if src._a.shape == self._a.shape else src.expand(tuple(self._a.shape))
        if record or not (be.strided and src.dtype.is_floating_point and self.dtype.fp):
            value = cast(value, self.dtype)
    except RuntimeError:
        _check_shape(self, broadcast_shapes(tuple(self._a.shape), tuple(src._a.shape)))
        raise
    finally:
        set_recording(before)
    source = edge(value) if record and value._rg else None  # a view of `self` is stale afterwards
    write(self, value._a)
    if record:
        adopt(self, source, replaces=True)
    return self


def fill_(self: Tensor, value: object) -> Tensor:
    """Write one number (or 0-d tensor) everywhere."""
    be = self._be
    if be.strided and type(value) in self.dtype.takes and not (self._rg and recording()):
        if type(value) is int and not value:
            if (native := be.zero.get(self.dtype)) is None:
                native = be.zero[self.dtype] = scalar_for(self, 0)
        elif (native := be.consts[self.dtype].get(value)) is None:
            native = scalar_for(self, value, math.prod(self._a.shape) == 1)
        be.assign(self._a, native)
        storage_of(self).version += 1
        return self
    if is_tensor(value):
        if value.dim() > 0:
            raise RuntimeError(
                "fill_ only supports 0-dimension value tensor but got tensor with "
                f"{value.dim()} dimensions."
            )
        return copy_(self, value, may_overlap=True)
    record = recording() and self.dtype.fp and self.requires_grad
    if record:
        check_recorded_write(self)
    # Equal values in one place: the order of elements does not matter, so no check of overlap.
    native = scalar_for(self, value, math.prod(self._a.shape) == 1)
    write(self, native)
    if record:
        adopt(self, None, replaces=True)
    return self


def scalar_for(self: Tensor, value: object, single: bool = True) -> Any:
    """A Python number as a native 0-d array in the dtype of `self`, for one or several elements.

    Raises:
        TypeError: `value` is no number.
        RuntimeError: the dtype cannot hold it.
    """
    value = python_number(value)
    if not isinstance(value, (int, float, complex)):
        raise TypeError(f"fill_(): argument 'value' must be Number, not {type(value).__name__}")
    value = fitting(value, alone(self.dtype) if single else self.dtype)
    return scalar_native(self._be, value, self.dtype)


def become_view(self: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
    """Make `self` what a view of it is (``x.t_()``): the same memory, another geometry."""
    if recording() and self.requires_grad:
        check_recorded_write(self)
    former = new(_dispatch.Tensor_)
    state_of(former).update(state_of(self))
    view = function(former)
    was_view = self._base is not None
    state = {k: v for k, v in state_of(view).items() if k not in ("_grad", "_hooks", "_retains")}
    for name in ("_fn", "_base", "_view", "_seen", "_made"):
        state_of(self).pop(name, None)
    state_of(self).update(state)
    if not was_view:
        # The base of `view` is what this tensor was: its history stays, as one step.
        e = edge(view) if view.requires_grad else None
        for name in ("_base", "_view", "_seen", "_made"):
            state_of(self).pop(name, None)
        self._rg = e is not None
        if e is not None:
            self._fn = e
    if not self._be.strided:
        _views.register_alias(storage_of(self), self)
    storage_of(self).version += 1
    return self
