"""Methods of tensors that are ops.

The template of ``_tensor/methods.py``; `flambeau._tools.expansion` says how it is read.
"""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportReturnType=false
# pyright: reportIncompatibleMethodOverride=false, reportOptionalMemberAccess=false
# pyright: reportOperatorIssue=false, reportCallIssue=false, reportAssignmentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, overload

from flambeau._autograd.node import next_seq
from flambeau._dispatch import dispatch as _dispatch
from flambeau._dispatch.arguments import need_self
from flambeau._dispatch.dispatch import (
    PLAIN,
    cast,
    kernel_error,
    new,
    record_binary,
    record_scalar,
    record_unary,
    recording,
    said_on_purpose,
    scalar_native,
    slow_binary,
    slow_unary,
)
from flambeau._dispatch.dispatch import as_operands as operands
from flambeau._dispatch.keywords import many, only_one
from flambeau._dispatch.promotion import NUMBERS
from flambeau._memory.states import UNBUILT_VIEW, VIEW
from flambeau._memory.views import NO_GRAD, make_view, storage_of
from flambeau._tools.templates.placeholders import (
    DTYPE,
    FIRST,
    FITTING,
    FLOATING,
    FORMS,
    GENERAL,
    LISTED,
    PASSED,
    RECORDS,
    RETURNS,
    SAVED,
    SAVES,
    SUMMABLE,
    UNFIT,
)
from flambeau._types import dtype as D
from flambeau._writes.inplace import become_view, check_same_dtype, inplace

if TYPE_CHECKING:
    from builtins import bool as _bool
    from builtins import float as _float
    from builtins import int as _int
    from collections.abc import Sequence
    from types import EllipsisType
    from typing import SupportsIndex, TypeAlias

    from flambeau._api import functions as _ops
    from flambeau._api import predicates as _predicates
    from flambeau._autograd.node import Node
    from flambeau._tensor.tensor import Tensor
    from flambeau._types.hints import Ints, Number
    from flambeau._types.memory_format import memory_format as MemoryFormat
    from flambeau.ops.declaration.table import Op
    from flambeau.ops.layers.activation import probabilities
    from flambeau.ops.reductions.reduction import averaged, extreme, summed
    from flambeau.ops.shapes.movement import (
        expanded,
        flattened,
        permuted,
        reordered,
        reshaped,
        squeezed,
        transposed,
    )

    Subscript: TypeAlias = SupportsIndex | slice | EllipsisType | Tensor | list[Any] | range | None
    Index: TypeAlias = Subscript | tuple[Subscript, ...]

modes = 0
bool_, int64, float32, float64 = D.bool_, D.int64, D.float32, D.float64
# These are bound by `link`.
node_OP: type[Node] = None
node_matmul: type[Node] = None
op_OP: Op = None
ALL_DIMS = tuple(tuple(range(n)) for n in range(65))


def _shift(count: int) -> None:
    global modes
    modes = count


_dispatch.on_shift.append(_shift)


def lone(t: Tensor, other: object) -> bool:
    """Whether a write to shared memory needs no closer look: no element repeats, or is read."""
    backend, a = t._be.backend, t._a
    its = getattr(other, "_st", None)
    if its is not None and other is not t and its.buffer is t._st.buffer:
        return False
    return backend.is_contiguous(a) or 0 not in backend.strides(a)


def added_to(self: Tensor, other: Tensor, factor: Number) -> bool:
    """Whether ``self += factor * other`` was done, without a closer look: nothing is recorded."""
    if type(factor) is not float or not -1e30 < factor < 1e30 or type(other) not in PLAIN or modes:
        return False
    be, dtype, st = self._be, self.dtype, self._st
    if not (
        be.strided
        and be is other._be
        and dtype is other.dtype
        and (dtype is float32 or dtype is float64)
        and self._a.shape == other._a.shape
        and (
            not (self._rg or other._rg)
            or not recording()
            or not (self.requires_grad or other.requires_grad)
        )
        and (st is None or not st.shared or lone(self, other))
    ):
        return False
    if (v := be.consts[dtype].get(factor)) is None:
        v = scalar_native(be, factor, dtype)
    if (kernel := getattr(be, "multiply_add_", None)) is not None:
        kernel(self._a, other._a, v)
    else:
        be.assign(self._a, be.multiply_add(self._a, other._a, v))
    count_write(self)
    return True


def count_write(t: Tensor) -> None:
    """Note one write to memory."""
    st = t._st
    if st is None:
        st = storage_of(t)
    st.version += 1


def expanded_sizes(sizes: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """The sizes that `expand` is given, -1 worked out; None where they need a closer look."""
    if len(sizes) == 1 and isinstance(sizes[0], tuple):
        sizes = tuple(sizes[0])
    unknown = False
    for n in sizes:
        if type(n) is not int or n < -1:
            return None
        if n < 0:
            unknown = True
    if not unknown:
        return sizes
    lead = len(sizes) - len(shape)
    if lead < 0 or -1 in sizes[:lead]:
        return None
    return (*sizes[:lead], *[m if n < 0 else n for n, m in zip(sizes[lead:], shape, strict=True)])


def plain_sizes(sizes: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """The sizes that `view` is given, -1 worked out; None where they need a closer look."""
    if len(sizes) == 1 and isinstance(sizes[0], tuple):
        sizes = tuple(sizes[0])
    unknown = -1
    known = 1
    for i, n in enumerate(sizes):
        if type(n) is not int:
            return None
        if n < 0:
            if n < -1 or unknown >= 0:
                return None
            unknown = i
        else:
            known *= n
    if unknown < 0:
        return sizes
    count = 1
    for n in shape:
        count *= n
    if not known or count % known:
        return None
    return (*sizes[:unknown], count // known, *sizes[unknown + 1 :])


def link() -> None:
    """Bind the names of modules that themselves need `Tensor`."""
    global _predicates, _ops, Tensor, getitem, setitem
    global expanded, flattened, permuted, reordered, reshaped, squeezed, transposed
    global averaged, extreme, probabilities, summed
    from flambeau._api import functions as _ops
    from flambeau._api import predicates as _predicates
    from flambeau._tensor.tensor import Tensor  # the class that has these methods
    from flambeau.ops.indices.subscripts import getitem, setitem
    from flambeau.ops.layers.activation import probabilities
    from flambeau.ops.reductions.reduction import averaged, extreme, summed
    from flambeau.ops.shapes.movement import (
        expanded,
        flattened,
        permuted,
        reordered,
        reshaped,
        squeezed,
        transposed,
    )

    found = globals()
    for name in _CALLED:
        found[f"op_{name}"] = _dispatch.OPS[name]
    for name in _RECORDED:
        found[f"node_{name}"] = _dispatch.OPS[name].node


# Written out where they are called: a call would be a good part of the time of such a method.
def end_of_view(self: Tensor, be: Any, r: Any, OP: str, ARGS: tuple[Any, ...], NODE: str) -> Tensor:
    """The result of every view method.

    `make_view` for its commonest case, a floating tensor that is no view itself.
    """
    dtype = self.dtype
    g = self._rg
    if dtype.fp and (g is False or g is True) and be.strided:
        st = self._st
        if st is None:
            st = storage_of(self)
        st.shared = True
        t = new(Tensor)
        t._a = r
        t._be = be
        t.dtype = dtype
        t._st = st
        t._base = self
        t._view = (self, OP, ARGS, NODE)
        t._seen = st.version
        if not recording():
            t._rg = VIEW
            t._made = NO_GRAD
        elif g:
            t._rg = UNBUILT_VIEW
            t._fn = self._fn
        else:
            t._rg = VIEW
        return t
    return make_view(self, OP, ARGS, r, NODE)


def end_of_call(self: Tensor, be: Any, a: Any, *ARGS: Any) -> Tensor:
    """The result of an op of one tensor and plain arguments: `Op.__call__` spelt out."""
    kernel = be.OP
    r = kernel(a, *ARGS)
    if type(r) is not be.array:
        r = be.to_array(r)
    t = new(Tensor)
    t._a = r
    t._be = be
    t.dtype = self.dtype
    t._rg = False
    if self._rg and recording():
        op_OP.record((self, *ARGS), t)
    return t


class TensorMethods:
    """Everything a tensor can do that is an op; `Tensor` adds what is not."""

    _a: Any
    _be: Any
    _fn: Any
    _rg: Any
    _st: Any
    dtype: D.dtype

    def BINARY(self, other: Tensor | Number) -> Tensor:
        k = type(other)
        if k is Tensor or k in PLAIN:
            be = self._be
            if be is other._be and self.dtype is other.dtype and FLOATING and not modes:
                a = self._a
                b = other._a
                kernel = be.OP
                try:
                    r = kernel(a, b)
                except be.error as error:
                    raise kernel_error("OP", error, (self, other)) from error
                if type(r) is not be.array:
                    r = be.to_array(r)
                t = new(Tensor)
                t._a = r
                t._be = be
                t.dtype = DTYPE
                if RECORDS:
                    if self._rg is True is other._rg and recording():
                        n = node_OP()
                        n._hooks = None
                        n.edges = (self._fn or self, other._fn or other)
                        n.shapes = None if a.shape == b.shape else (a.shape, b.shape)
                        n.saved = SAVED
                        n.seq = next_seq()
                        t._fn = n
                        t._rg = True
                        return t
                t._rg = False
                if RECORDS:
                    if (self._rg or other._rg) and recording():
                        record_binary(t, self, other, node_OP)
                return t
        elif k in self.dtype.takes and not modes and FITTING:
            be = self._be
            if (v := be.consts[self.dtype].get(other)) is None:
                v = scalar_native(be, other, self.dtype)
            kernel = be.OP
            try:
                r = kernel(self._a, v)
            except be.error as error:
                raise kernel_error("OP", error, (self, other)) from error
            if type(r) is not be.array:
                r = be.to_array(r)
            t = new(Tensor)
            t._a = r
            t._be = be
            t.dtype = DTYPE
            t._rg = False
            if RECORDS:
                if self._rg and recording():
                    record_scalar(t, self, v, node_OP)
            return t
        return slow_binary("OP", self, other)

    def SLOW_BINARY(self, other: Tensor | Number) -> Tensor:
        return slow_binary("OP", self, other)

    def REFLECTED(self, other: Tensor | Number) -> Tensor:
        return slow_binary("OP", other, self)

    def INPLACE(self, other: Tensor | Number) -> Self:
        k = type(other)
        be = self._be
        st = self._st
        alone = st is None or not st.shared
        if be.strided and not modes and FLOATING and (alone or lone(self, other)):
            if k is Tensor or k in PLAIN:
                if (
                    be is other._be
                    and self.dtype is other.dtype
                    and (
                        not (self._rg or other._rg)
                        or not recording()
                        or not (self.requires_grad or other.requires_grad)
                    )
                ):
                    kernel = be.OP_
                    try:
                        kernel(self._a, other._a)
                    except be.error:
                        return inplace(TensorMethods.ITS_BINARY, self, other, _saves_self=SAVES)
                    count_write(self)
                    return self
            elif k in self.dtype.takes and (
                not self._rg or not recording() or not self.requires_grad
            ):
                if (v := be.consts[self.dtype].get(other)) is None:
                    v = scalar_native(be, other, self.dtype)
                kernel = be.OP_
                try:
                    kernel(self._a, v)
                except be.error as error:
                    raise kernel_error("OP", error, (self, other)) from error
                count_write(self)
                return self
        if operands("OP", self, other) is None:
            return NotImplemented
        return inplace(TensorMethods.ITS_BINARY, self, other, _saves_self=SAVES)

    def SLOW_INPLACE(self, other: Tensor | Number) -> Self:
        return self.OP_(other)  # pyright: ignore[reportReturnType]

    def __getitem__(self, key: Index) -> Tensor:
        k = type(key)
        if k is int:
            a = self._a
            shape = a.shape
            if shape and -(n := shape[0]) <= key < n:
                be = self._be
                items = (key if key >= 0 else key + n,)
                kernel = be.part if len(shape) > 1 else be.slice
                r = kernel(a, items)
                return end_of_view(self, be, r, "slice", (items,), "Select")
        elif k is slice and key.step is None:
            a = self._a
            shape = a.shape
            if shape:
                start, stop = key.start, key.stop
                n = shape[0]
                if start is None:
                    start = 0
                if stop is None:
                    stop = n
                if type(start) is int and type(stop) is int:
                    if start < 0:
                        start = max(start + n, 0)
                    elif start > n:
                        start = n
                    if stop < 0:
                        stop += n
                    elif stop > n:
                        stop = n
                    if stop < start:
                        stop = start
                    be = self._be
                    items = (slice(start, stop, 1),)
                    kernel = be.part
                    r = kernel(a, items)
                    return end_of_view(self, be, r, "slice", (items,), "Slice")
        return getitem(self, key)

    def __setitem__(self, key: Index, value: Tensor | Number) -> None:
        setitem(self, key, value)

    def t(self) -> Tensor:
        """The transpose of a matrix; vectors and scalars as they are."""
        a = self._a
        if len(a.shape) == 2:
            be = self._be
            kernel = be.permute
            r = kernel(a, (1, 0))
            return end_of_view(self, be, r, "permute", ((1, 0),), "T")
        return _ops.t(self)

    def transpose(self, dim0: _int, dim1: _int) -> Tensor:
        """A view with two dimensions swapped."""
        a = self._a
        n = len(a.shape)
        if type(dim0) is int and type(dim1) is int and -n <= dim0 < n and -n <= dim1 < n:
            if n == 2:
                dims = (1, 0) if dim0 % 2 != dim1 % 2 else (0, 1)
            else:
                order = list(range(n))
                order[dim0], order[dim1] = order[dim1], order[dim0]
                dims = tuple(order)
            be = self._be
            kernel = be.permute
            r = kernel(a, dims)
            return end_of_view(self, be, r, "permute", (dims,), "Transpose")
        return transposed(self, dim0, dim1)

    @property
    def T(self) -> Tensor:
        """The tensor with its dimensions reversed."""
        a = self._a
        n = len(a.shape)
        if n == 2 and type(self) in PLAIN:
            be = self._be
            kernel = be.permute
            r = kernel(a, (1, 0))
            return end_of_view(self, be, r, "permute", ((1, 0),), "Permute")
        return self.permute(tuple(range(n - 1, -1, -1)))

    def permute(self, *order: Ints, dims: Sequence[_int] | None = None) -> Tensor:
        """A view with the dimensions in the order of `dims`."""
        if len(order) == 1 and dims is None and type(order[0]) is tuple:
            order = order[0]
        elif len(order) < 2 or dims is not None:
            order = tuple(many("permute", "dims", order, dims))
        a = self._a
        n = len(a.shape)
        if len(order) == n:
            left = (1 << n) - 1
            for d in order:
                if type(d) is not int or not 0 <= d < n:
                    break
                left ^= 1 << d
            if not left:
                be = self._be
                kernel = be.permute
                r = kernel(a, order)
                return end_of_view(self, be, r, "permute", (order,), "Permute")
        return permuted(self, order)

    def view(
        self,
        *shape: Ints | D.dtype,
        size: Sequence[_int] | None = None,
        dtype: D.dtype | None = None,
    ) -> Tensor:
        """The same memory in another shape, or read as another dtype."""
        be = self._be
        if be.strided and size is None and dtype is None:
            a = self._a
            sizes = shape[0] if len(shape) == 1 and type(shape[0]) is tuple else shape or None
            for n in sizes or ():
                if type(n) is not int or n < 0:
                    sizes = plain_sizes(sizes, a.shape)
                    break
            if sizes is not None:
                try:
                    kernel = be.view
                    r = kernel(a, sizes)
                except be.error:
                    pass  # worded or copied below
                else:
                    return end_of_view(self, be, r, "view", (sizes,), "View")
        return _ops.view(self, *shape, size=size, dtype=dtype)

    def reshape(self, *given: Ints, shape: Sequence[_int] | None = None) -> Tensor:
        """The elements in another shape: a view where strides allow it, else a copy."""
        be = self._be
        if be.strided and shape is None:
            a = self._a
            sizes = given[0] if len(given) == 1 and type(given[0]) is tuple else given or None
            for n in sizes or ():
                if type(n) is not int or n < 0:
                    sizes = plain_sizes(sizes, a.shape)
                    break
            if sizes is not None:
                try:
                    kernel = be.view
                    r = kernel(a, sizes)
                except be.error:
                    if (copied := reordered(self, sizes)) is not None:
                        return copied  # else worded below
                else:
                    return end_of_view(self, be, r, "view", (sizes,), "View")
        return reshaped(self, many("reshape", "shape", given, shape))

    def flatten(self, start_dim: _int = 0, end_dim: _int = -1) -> Tensor:
        """The dimensions from `start_dim` to `end_dim` as one."""
        a = self._a
        shape = a.shape
        n = len(shape)
        if type(start_dim) is int and type(end_dim) is int and -n <= start_dim < n:
            first = start_dim if start_dim >= 0 else start_dim + n
            last = end_dim if end_dim >= 0 else end_dim + n
            if first < last < n:
                count = 1
                if last - first == n - 1:
                    for m in shape:
                        count *= m
                    sizes = (count,)
                else:
                    for m in shape[first : last + 1]:
                        count *= m
                    sizes = (*shape[:first], count, *shape[last + 1 :])
                be = self._be
                if be.strided:
                    try:
                        kernel = be.view
                        r = kernel(a, sizes)
                    except be.error:
                        if (copied := reordered(self, sizes)) is not None:
                            return copied
                    else:
                        return end_of_view(self, be, r, "view", (sizes,), "View")
                return reshaped(self, sizes)
        return flattened(self, start_dim, end_dim)

    def unsqueeze(self, dim: _int) -> Tensor:
        """A view with a new dimension of size 1 at `dim`."""
        a = self._a
        shape = a.shape
        n = len(shape)
        if type(dim) is int and -n - 1 <= dim <= n:
            be = self._be
            d = dim if dim >= 0 else dim + n + 1
            items = (*[slice(0, m, 1) for m in shape[:d]], None) if d else (None,)
            kernel = be.part
            r = kernel(a, items)
            return end_of_view(self, be, r, "slice", (items,), "Unsqueeze")
        return _ops.unsqueeze(self, dim)

    def squeeze(self, dim: Ints | None = None) -> Tensor:
        """A view without the dimensions of size 1, or without those among `dim`."""
        a = self._a
        shape = a.shape
        n = len(shape)
        if type(dim) is int and -n <= dim < n:
            be = self._be
            d = dim if dim >= 0 else dim + n
            items = ()
            if shape[d] == 1:
                items = (*[slice(0, m, 1) for m in shape[:d]], 0) if d else (0,)
            kernel = be.part if n > 1 else be.slice
            r = kernel(a, items)
            return end_of_view(self, be, r, "slice", (items,), "Squeeze")
        if dim is None:
            be = self._be
            ones = shape.count(1)
            head = shape[: n - shape[::-1].index(1)] if ones else ()
            if len(head) == ones:
                items = (0,) * ones
            else:
                items = tuple([0 if m == 1 else slice(0, m, 1) for m in head])
            kernel = be.part if ones < n else be.slice
            r = kernel(a, items)
            return end_of_view(self, be, r, "slice", (items,), "Squeeze")
        return squeezed(self, dim)

    def select(self, dim: _int, index: _int) -> Tensor:
        """The view at one index of dimension `dim`, without that dimension."""
        a = self._a
        shape = a.shape
        n = len(shape)
        if type(dim) is int and type(index) is int and -n <= dim < n:
            d = dim if dim >= 0 else dim + n
            m = shape[d]
            if -m <= index < m:
                be = self._be
                i = index if index >= 0 else index + m
                items = (*[slice(0, k, 1) for k in shape[:d]], i) if d else (i,)
                kernel = be.part if n > 1 else be.slice
                r = kernel(a, items)
                return end_of_view(self, be, r, "slice", (items,), "Select")
        return _ops.select(self, dim, index)

    def narrow(
        self,
        dim: _int | None = None,
        start: _int | Tensor | None = None,
        length: _int | None = None,
        *,
        dimension: _int | None = None,
    ) -> Tensor:
        """The view of `length` entries of dimension `dim` from `start`."""
        if dim is None or dimension is not None:
            dim = only_one("narrow", dim=dim, dimension=dimension)
        a = self._a
        shape = a.shape
        n = len(shape)
        if type(dim) is int and type(start) is int and type(length) is int and -n <= dim < n:
            d = dim if dim >= 0 else dim + n
            if 0 <= start <= start + length <= shape[d]:
                be = self._be
                piece = slice(start, start + length, 1)
                items = (*[slice(0, k, 1) for k in shape[:d]], piece) if d else (piece,)
                kernel = be.part
                r = kernel(a, items)
                return end_of_view(self, be, r, "slice", (items,), "Slice")
        return _ops.narrow(self, dim, start, length)

    def expand(
        self, *given: Ints, size: Sequence[_int] | None = None, implicit: _bool = False
    ) -> Tensor:
        """A view in which dimensions of size 1 are repeated without copying"""
        be = self._be
        if be.strided and size is None:
            a = self._a
            sizes = given[0] if len(given) == 1 and type(given[0]) is tuple else given or None
            for n in sizes or ():
                if type(n) is not int or n < 0:
                    sizes = expanded_sizes(sizes, a.shape)
                    break
            if sizes is not None:
                try:
                    kernel = be.expand
                    r = kernel(a, sizes)
                except be.error:
                    pass  # worded or copied below
                else:
                    return end_of_view(self, be, r, "expand", (sizes,), "Expand")
        return expanded(self, many("expand", "size", given, size))

    def REDUCTION(
        self, dim: Ints | None = None, keepdim: _bool = False, *, dtype: D.dtype | None = None
    ) -> Tensor:
        """DOC"""
        if dtype is None and SUMMABLE and not modes:
            a = self._a
            n = len(a.shape)
            if dim is None:
                dims = ALL_DIMS[n]
            elif type(dim) is int and -n <= dim < n:
                dims = (dim if dim >= 0 else dim + n,)
            else:
                return GENERAL(self, dim, keepdim)
            be = self._be
            return end_of_call(self, be, a, dims, keepdim)
        return GENERAL(self, dim, keepdim, dtype)

    def SOFTMAX(self, dim: _int, dtype: D.dtype | None = None) -> Tensor:
        """DOC"""
        if dtype is None and type(dim) is int and self.dtype.is_floating_point and not modes:
            a = self._a
            n = len(a.shape)
            if -n <= dim < n:
                be = self._be
                d = dim if dim >= 0 else dim + n
                return end_of_call(self, be, a, d)
        return probabilities("OP", self, dim, dtype)

    @FORMS()
    def EXTREME(self, *args: Any, **kwargs: Any) -> Any:
        """DOC"""
        if not args and not kwargs and not self.dtype.is_complex and not modes:
            a = self._a
            shape = a.shape
            if 0 not in shape:
                be = self._be
                dims = ALL_DIMS[len(shape)]
                return end_of_call(self, be, a, dims, False)
        return extreme("NAME", self, args, kwargs)

    def __matmul__(self, other: Tensor) -> Tensor:
        k = type(other)
        if k is Tensor or k in PLAIN:
            be = self._be
            if be is other._be and self.dtype is other.dtype and not modes:
                kernel = be.matmul
                try:
                    r = kernel(self._a, other._a)
                except be.error as error:
                    raise kernel_error("matmul", error, (self, other)) from error
                if type(r) is not be.array:
                    r = be.to_array(r)
                t = new(Tensor)
                t._a = r
                t._be = be
                t.dtype = self.dtype
                t._rg = False
                if (self._rg or other._rg) and recording():
                    record_binary(t, self, other, node_matmul)
                return t
        elif not isinstance(other, Tensor):
            return NotImplemented
        return slow_matmul(self, other)

    def __radd__(self, other: Tensor | Number) -> Tensor:
        # A number comes second, where the short way and the kernels for large arrays expect it.
        if type(self) in PLAIN and type(other) in self.dtype.takes and not modes:
            return Tensor.__add__(self, other)
        result = slow_binary("add", other, self)
        if result is NotImplemented and hasattr(other, "__array_ufunc__"):
            # Python would ask an array of objects to concatenate, and NumPy says that it cannot.
            kinds = f"{type(other).__name__!r} and {type(self).__name__!r}"
            raise TypeError(f"unsupported operand type(s) for +: {kinds}")
        return result

    def __rmul__(self, other: Tensor | Number) -> Tensor:
        if type(self) in PLAIN and type(other) in self.dtype.takes and not modes:
            return Tensor.__mul__(self, other)
        return slow_binary("mul", other, self)

    def __rtruediv__(self, other: Tensor | Number) -> Tensor:
        # As in PyTorch, which saves the reciprocal: the tensor may be written to before backward.
        try:
            return self.reciprocal() * other
        except (TypeError, ValueError) as error:
            if isinstance(other, (Tensor, int, float, complex)) or said_on_purpose(error):
                raise
            raise TypeError(
                f"unsupported operand type(s) for /: '{type(other).__name__}' and 'Tensor'"
            ) from error

    def __rmatmul__(self, other: Tensor) -> Tensor:
        # Subclasses are asked first, also for the right operand.
        return slow_matmul(other, self) if isinstance(other, Tensor) else NotImplemented

    def __neg__(self) -> Tensor:
        return self.neg()

    def __pos__(self) -> Tensor:
        return self

    def __abs__(self) -> Tensor:
        return self.abs()

    def __invert__(self) -> Tensor:
        try:
            return self.bitwise_not()
        except NotImplementedError:
            if self.dtype.category < 2:
                raise
            raise TypeError(
                "~ (operator.invert) is only implemented on integer and Boolean-type tensors"
            ) from None

    def UNARY(self, *TAKEN: Any) -> Tensor:
        """DOC"""
        be = self._be
        if modes or UNFIT:
            return slow_unary("OP", self)
        kernel = be.OP
        try:
            r = kernel(self._a)
        except be.error as error:
            raise kernel_error("OP", error, (self,)) from error
        if type(r) is not be.array:
            r = be.to_array(r)
        t = new(Tensor)
        t._a = r
        t._be = be
        t.dtype = DTYPE
        t._rg = False
        if RECORDS:
            if self._rg and recording():
                record_unary(t, self, node_OP)
        return t

    @FORMS()
    def FORWARDED(self, *TAKEN: Any) -> RETURNS:
        """DOC"""
        FIRST()
        return _ops.NAME(self, *PASSED)

    def where(self, condition: Tensor, other: Tensor | Number) -> Tensor:
        """Elements of this tensor where `condition` holds, else of `other`."""
        return _ops.where(condition, self, other)

    def polygamma(self, n: _int) -> Tensor:
        """The n-th derivative of digamma."""
        return _ops.polygamma(n, self)

    def polygamma_(self, n: _int) -> Tensor:
        """`polygamma` in place."""
        return inplace(lambda x: _ops.polygamma(n, x), self)

    def isclose(
        self, other: Tensor, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False
    ) -> Tensor:
        """Whether abs(self - other) <= atol + rtol * abs(other), elementwise."""
        return _predicates.isclose(self, other, rtol, atol, equal_nan)

    def allclose(
        self, other: Tensor, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False
    ) -> _bool:
        """Whether all elements are close in the sense of `isclose`."""
        return _predicates.allclose(self, other, rtol, atol, equal_nan)

    def equal(self, other: Tensor) -> _bool:
        """Whether two tensors have the same shape and elements."""
        return _predicates.equal(self, other)

    def is_nonzero(self) -> _bool:
        """Whether a one-element tensor is not zero."""
        return _predicates.is_nonzero(self)

    def FORWARDED_(self, *TAKEN: Any) -> Tensor:
        """`NAME` in place."""
        FIRST()
        return inplace(_ops.NAME, self, *PASSED)

    def VIEW_(self, *TAKEN: Any) -> Tensor:
        """`NAME` of this very tensor."""
        return become_view(self, lambda x: _ops.NAME(x, *PASSED))

    def CAST(self, memory_format: MemoryFormat | None = None) -> Tensor:
        """The tensor as KIND."""
        if memory_format is None and type(self) is Tensor:
            return cast(self, D.DTYPE)
        return self.to(D.DTYPE, memory_format=memory_format)


_RECORDED = LISTED
_CALLED = LISTED


def slow_matmul(self: Any, other: Any) -> Any:
    """`matmul` of operands that the fast path does not take."""
    if type(self) not in PLAIN or type(other) not in PLAIN:
        from flambeau._tensor import overrides as _overrides

        if _overrides.wanted((self, other)):
            return _overrides.call(_ops.matmul, (self, other), {})
    if self.dtype is not other.dtype:
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {self.dtype} != {other.dtype}"
        )
    return _dispatch.op("matmul")(self, other)
