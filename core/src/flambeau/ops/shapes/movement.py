"""Movement: views and rearrangements, and `cat` and `stack`, which join.

The view ops are canonical too: `slice permute view expand diagonal as_strided`.  On tensors they
share memory; formulas use them through ``F``.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from flambeau._dispatch import dispatch as _dispatch
from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import (
    dim_of,
    dims_of,
    infer_size,
    need_input,
    need_list,
    need_number,
    need_tensor,
    sizes,
)
from flambeau._dispatch.dispatch import cast, kernel_error, wrap
from flambeau._dispatch.keywords import documented, many
from flambeau._memory.views import (
    edge,
    geometry,
    geometry_of,
    make_view,
    positions,
    replay,
    storage_of,
    view_strides,
    windows,
)
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.hints import Ints
from flambeau._types.memory_format import contiguous_format
from flambeau._types.spec import Spec
from flambeau._types.strides import contiguous_strides
from flambeau._writes.out import deliver
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import OPS, Op, composite, primitive

if TYPE_CHECKING:
    from collections.abc import Callable

    from flambeau._dispatch.bound import BoundBackend


class ViewOp(Op):
    """A canonical op whose result shares the memory of its first argument."""

    def _run(self, *args: Any) -> Tensor:
        return apply_view(args[0], self.name, args[1:], self.name.capitalize())

    def decomposed(self, be: BoundBackend) -> Any:
        raise NotImplementedError(self.name)

    @property
    def gradient_state(self) -> str:
        """Always given: `_memory.views.edge` builds a view's node when its history is asked for."""
        return "given"


def _view_primitive(body: Callable[..., Any]) -> ViewOp:
    return ViewOp(body, "primitive")


@_view_primitive
def _slice(self: Tensor, items: tuple[Any, ...]) -> Spec:
    return Spec(geometry("slice", _row_major(self), (items,))[0], self.dtype)


@_view_primitive
def _permute(self: Tensor, dims: tuple[int, ...]) -> Spec:
    return Spec(tuple(self.shape[d] for d in dims), self.dtype)


@_view_primitive
def _view(self: Tensor, shape: tuple[int, ...]) -> Spec:
    return Spec(tuple(shape), self.dtype)


@_view_primitive
def _expand(self: Tensor, shape: tuple[int, ...]) -> Spec:
    lead = len(shape) - len(self.shape)
    for have, want in zip(self.shape, shape[lead:], strict=True):
        if have not in (1, want):
            raise RuntimeError(
                f"The expanded size of the tensor ({want}) must match the existing size ({have}). "
                f"Target sizes: {list(shape)}.  Tensor sizes: {list(self.shape)}"
            )
    return Spec(tuple(shape), self.dtype)


@_view_primitive
def _diagonal(self: Tensor, offset: int, dim1: int, dim2: int) -> Spec:
    return Spec(geometry("diagonal", _row_major(self), (offset, dim1, dim2))[0], self.dtype)


def _row_major(s: Any) -> tuple[Any, ...]:
    return tuple(s.shape), contiguous_strides(s.shape), 0


def apply_view(x: Tensor, op: str, args: tuple[Any, ...], name: str) -> Tensor:
    """The view of `x` that the canonical view op `op` makes."""
    be = x._be
    try:
        if op == "view" and not be.strided:
            g = geometry_of(x)
            if view_strides(g[0], g[1], args[0]) is None:
                raise ValueError("not expressible")
        native = getattr(be, op)(x._a, *args)
    except be.error as error:
        if op == "view":
            raise RuntimeError(
                "view size is not compatible with input tensor's size and stride (at least one "
                "dimension spans across two contiguous subspaces). Use .reshape(...) instead."
            ) from None
        raise kernel_error(op, error, (x, *args)) from error
    return make_view(x, op, args, native, name)


def _positions(like: Tensor, shape: Sequence[int]) -> Tensor:
    be = like._be
    flat = wrap(be, be.places(math.prod(shape)), D.int64)
    return flat.reshape(tuple(shape))


def _placed(g: Tensor, shape: tuple[int, ...], where: Tensor, spare: int = 0) -> Tensor:
    """Zeros of `shape` with `g` added at positions `where`; `spare` places after them are lost.

    The gradient of a view on any backend, since every one can scatter.
    """
    count = math.prod(shape)
    zeros = wrap(g._be, g._be.full((count + spare,), 0, g.dtype), g.dtype)
    flat = OPS["scatter_add"](zeros, 0, where.reshape((-1,)), g.reshape((-1,)))
    return (flat[:count] if spare else flat).reshape(shape)


@composite(title="SliceBackward0Backward0")
def _slice_backward(grad: Tensor, shape: tuple[int, ...], items: tuple[Any, ...]) -> Tensor:
    return _placed(grad, shape, _slice(_positions(grad, shape), items))


@_slice_backward.gradient
def _(F, g, items):
    return F.slice(g, items)


@composite
def _diagonal_backward(
    grad: Tensor, shape: tuple[int, ...], offset: int, dim1: int, dim2: int
) -> Tensor:
    return _placed(grad, shape, _diagonal(_positions(grad, shape), offset, dim1, dim2))


@_diagonal_backward.gradient
def _(F, g, offset, dim1, dim2):
    return F.diagonal(g, offset, dim1, dim2)


def _storage_positions(
    like: Tensor, shape: Sequence[int], stride: Sequence[int], offset: int
) -> Tensor:
    be = like._be
    total = wrap(be, be.places(1), D.int64).reshape((1,) * len(shape)) + offset
    for d, (n, s) in enumerate(zip(shape, stride, strict=True)):
        steps = wrap(be, be.places(n, s), D.int64)
        total = total + steps.reshape(tuple(n if i == d else 1 for i in range(len(shape))))
    return total


def _within(
    base: tuple[int, ...],
    shape: Sequence[int],
    stride: Sequence[int],
    offset: int,
    base_stride: Sequence[int],
    base_offset: int,
) -> bool:
    """Whether an as_strided view surely selects elements of a row-major base only."""
    last = offset + sum_products(shape, stride)
    end = base_offset + math.prod(base)
    return tuple(base_stride) == contiguous_strides(base) and base_offset <= offset and last < end


def _logical_positions(
    like: Tensor,
    base: tuple[int, ...],
    shape: Sequence[int],
    stride: Sequence[int],
    offset: int,
    base_stride: Sequence[int],
    base_offset: int,
) -> Tensor:
    """Row-major positions in a base of the elements that an as_strided view selects.

    Where the view reaches beyond the base (not `_within`), the position is that after the last.
    """
    wanted = _storage_positions(like, shape, stride, offset).expand(tuple(shape)).reshape((-1,))
    if _within(base, shape, stride, offset, base_stride, base_offset):
        return wanted - base_offset
    held = _storage_positions(like, base, base_stride, base_offset).expand(base).reshape((-1,))
    ends = base_offset + sum_products(base, base_stride), offset + sum_products(shape, stride)
    count = math.prod(base)
    be = like._be
    table = wrap(be, be.full((1 + builtins.max(ends),), count, D.int64), D.int64)
    table = OPS["scatter"](table, 0, held, _positions(like, (count,)))
    return OPS["gather"](table, 0, wanted)


def _with_spare(flat: Tensor, value: int) -> Tensor:
    """A vector with one more element."""
    be = flat._be
    return _cat([flat, wrap(be, be.full((1,), value, flat.dtype), flat.dtype)], 0)


def sum_products(shape: Sequence[int], stride: Sequence[int]) -> int:
    """The largest offset that strides reach from the first element."""
    reach = 0
    for n, s in zip(shape, stride, strict=True):
        if n > 0:
            reach += (n - 1) * s
    return reach


@composite
def _as_strided_region(
    self: Tensor,
    base: tuple[int, ...],
    shape: tuple[int, ...],
    stride: tuple[int, ...],
    offset: int,
    base_stride: tuple[int, ...],
    base_offset: int,
) -> Tensor:
    where = _logical_positions(self, base, shape, stride, offset, base_stride, base_offset)
    flat = self.reshape((-1,))
    if not _within(base, shape, stride, offset, base_stride, base_offset):
        flat = _with_spare(flat, 0)
    return OPS["gather"](flat, 0, where).reshape(shape)


@_as_strided_region.gradient
def _(F, g, base, shape, stride, offset, base_stride, base_offset):
    return F.as_strided_backward(g, base, shape, stride, offset, base_stride, base_offset)


@composite
def _as_strided_backward(
    grad: Tensor,
    base: tuple[int, ...],
    shape: tuple[int, ...],
    stride: tuple[int, ...],
    offset: int,
    base_stride: tuple[int, ...],
    base_offset: int,
) -> Tensor:
    where = _logical_positions(grad, base, shape, stride, offset, base_stride, base_offset)
    outside = not _within(base, shape, stride, offset, base_stride, base_offset)
    return _placed(grad, base, where, spare=int(outside))


@_as_strided_backward.gradient
def _(F, g, base, shape, stride, offset, base_stride, base_offset):
    return F.as_strided_region(g, base, shape, stride, offset, base_stride, base_offset)


@composite
def _view_put(self: Tensor, value: Tensor, steps: tuple[Any, ...]) -> Tensor:
    """`self` with the region that view steps select replaced by `value`."""
    if (put := _put_at_once(self, value, steps)) is not None:
        return put
    where = replayed_positions(self, steps).reshape((-1,))
    flat, count = self.reshape((-1,)), math.prod(self.shape)
    outside = not builtins.all(
        _within(shape, *args) for op, args, shape, _ in steps if op == "as_strided"
    )  # windows never reach beyond their base
    if outside:
        flat = _with_spare(flat, 0)
    flat = OPS["scatter"](flat, 0, where, value.reshape((-1,)))
    return (flat[:count] if outside else flat).reshape(self.shape)


def _put_at_once(x: Tensor, value: Tensor, steps: tuple[Any, ...]) -> Tensor | None:
    """A copy written to through the same views, where arrays have memory; None if it is not so."""
    be = x._be
    if not be.strided or _dispatch.modes or not steps:
        return None
    plain = True
    for op, *_ in steps:
        plain = plain and op == "view"  # what follows another step may have gaps
        if not plain and op not in ("slice", "permute", "diagonal"):
            return None
    native = region = be.contiguous(x._a)
    for op, args, *_ in steps:
        region = getattr(be, op)(region, *args)
    be.assign(region, value._a)
    return wrap(be, native, x.dtype)


def replayed_positions(base: Tensor, steps: Sequence[Any]) -> Tensor:
    """Row-major positions in `base` of the elements that view steps select."""
    found = _positions(base, base._a.shape)
    for op, args, shape, _ in steps:
        if op == "view":
            found = found.reshape(args[0])
        elif (place := positions(op, shape, args)) is not None:
            flat = found.reshape((-1,))
            if not _within(shape, *place):
                flat = _with_spare(flat, math.prod(base._a.shape))
            where = _logical_positions(base, shape, *place)
            found = OPS["gather"](flat, 0, where).reshape(place[0])
        else:
            found = OPS[op](found, *args)
    return found


@_view_put.gradient("self")
def _(F, g, steps, value_shape, value_dtype):
    return F.view_put(g, F.zeros(value_shape, g), steps)


@_view_put.gradient("value")
def _(F, g, steps):
    return replay(F, g, steps)


@primitive
def _cat(tensors: list[Tensor], dim: int) -> Spec:
    first = tensors[0]
    total = 0
    for i, t in enumerate(tensors):
        if len(t.shape) != len(first.shape):
            raise RuntimeError(
                f"Tensors must have same number of dimensions: got {len(first.shape)} and "
                f"{len(t.shape)}"
            )
        for d, (n, m) in enumerate(zip(first.shape, t.shape, strict=True)):
            if d != dim and n != m:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {dim}. Expected size {n} but "
                    f"got size {m} for tensor number {i} in the list."
                )
        total += t.shape[dim]
    return Spec(tuple(total if d == dim else n for d, n in enumerate(first.shape)), first.dtype)


@_cat.gradient
def _(F, g, tensors_shape, dim):
    parts, start = [], 0
    rank = len(g.shape)
    for shape in tensors_shape:
        stop = start + shape[dim]
        items = tuple(
            builtins.slice(start, stop, 1) if d == dim else builtins.slice(0, g.shape[d], 1)
            for d in range(rank)
        )
        parts.append(F.slice(g, items))
        start = stop
    return parts


@composite
def _stack(tensors: list[Tensor], dim: int) -> Tensor:
    return _cat([unsqueeze(t, dim) for t in tensors], dim)


@_stack.gradient
def _(F, g, tensors_shape, dim):
    lead = tuple(builtins.slice(0, n, 1) for n in g.shape[:dim])
    return [F.slice(g, (*lead, i)) for i in range(len(tensors_shape))]


@primitive
def _flip(self: Tensor, dims: tuple[int, ...]) -> Tensor:
    return self


@_flip.gradient
def _(F, g, dims):
    return F.flip(g, dims)


@composite
def _roll(self: Tensor, shifts: tuple[int, ...], dims: tuple[int, ...]) -> Tensor:
    """Moved along dimensions that have elements; what is pushed out enters at the other end."""
    x = self
    for shift, d in zip(shifts, dims, strict=True):
        n = x._a.shape[d]
        if shift % n:
            cut = n - shift % n
            x = _cat.run([_narrow(x, d, cut, n - cut), _narrow(x, d, 0, cut)], d)
    return x.clone(memory_format=contiguous_format) if x is self else x


@_roll.gradient
def _(F, g, shifts, dims):
    return F.roll(g, tuple([-shift for shift in shifts]), dims)


@_roll.samples
def _(S):
    return [
        S.Sample((S.Arr((2, 5)), (2,), (1,)), "right", True),
        S.Sample((S.Arr((2, 3, 4)), (-1, 5), (0, 2)), "two dimensions", True),
        S.Sample((S.Arr((2, 3, 2, 2)), (1, 2, 1, -1), (0, 1, 1, 3)), "one of them twice", True),
        S.Sample((S.Arr((3,)), (3,), (0,)), "once around", True),
        S.Sample((S.Arr((2,)), (), ()), "not at all", True),
    ]


_range = builtins.slice


def _full(n: int) -> builtins.slice:
    return _range(0, n, 1)


def _titled(x: Tensor, op: str, args: tuple[Any, ...], title: str) -> Tensor:
    return apply_view(x, op, args, title)


@public
def permute(input: Tensor, dims: Sequence[int]) -> Tensor:
    """A view with the dimensions in the order of `dims`.

    >>> import flambeau as fb
    >>> fb.permute(fb.zeros(2, 3, 5), (2, 0, 1)).shape
    torch.Size([5, 2, 3])
    """
    x = input if type(input) is Tensor else need_tensor(input, "permute", "input")
    return Tensor.permute(x, need_list(dims, "permute", "dims"))


def permuted(x: Tensor, dims: object) -> Tensor:
    """`permute` of what the method does not take at once."""
    need_input(x, "permute", "input")
    order = sizes((need_list(dims, "permute", "dims"),), "dims")
    if len(order) != x.dim():
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the "
            f"length of the desired ordering of dimensions i.e. input.dim() = {x.dim()} is not "
            f"equal to len(dims) = {len(order)}"
        )
    found = tuple(dim_of(d, x.dim(), scalar_as_vector=False) for d in order)
    if len(set(found)) != len(found):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return Tensor.permute(x, found)


@public(inplace="view")
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """A view with two dimensions swapped.

    >>> import flambeau as fb
    >>> fb.transpose(fb.zeros(2, 3), 0, 1).shape
    torch.Size([3, 2])
    """
    x = input if type(input) is Tensor else need_tensor(input, "transpose", "input")
    return Tensor.transpose(x, dim0, dim1)


def transposed(x: Tensor, dim0: int, dim1: int) -> Tensor:
    """`transpose` of what the method does not take at once."""
    need_input(x, "transpose", "input")
    n = len(x._a.shape)
    d0, d1 = dim_of(dim0, n), dim_of(dim1, n)
    return Tensor.transpose(x, d0, d1) if n else _titled(x, "permute", ((),), "Transpose")


swapaxes = swapdims = transpose


@public(inplace="view")
def t(input: Tensor) -> Tensor:
    """The transpose of a matrix; vectors and scalars as they are.

    Raises:
        RuntimeError: more than two dimensions.

    >>> import flambeau as fb
    >>> fb.t(fb.zeros(2, 3)).shape
    torch.Size([3, 2])
    """
    x = need_input(input, "t", "input")
    n = len(x._a.shape)
    if n > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {n}D")
    return Tensor.t(x) if n == 2 else _titled(x, "permute", (tuple(range(n)),), "T")


@public
def movedim(input: Tensor, source: Ints, destination: Ints) -> Tensor:
    """A view with the dimensions `source` moved to the places `destination`.

    >>> import flambeau as fb
    >>> fb.movedim(fb.zeros(2, 3, 5), 0, -1).shape
    torch.Size([3, 5, 2])
    """
    x = need_input(input, "movedim", "input")
    n = len(x._a.shape)
    if type(source) is int is type(destination) and n:
        dims = list(range(n))
        dims.insert(dim_of(destination, n), dims.pop(dim_of(source, n)))
        return Tensor.permute(x, tuple(dims))
    sources = source if isinstance(source, (list, tuple)) else (source,)
    targets = destination if isinstance(destination, (list, tuple)) else (destination,)
    if len(sources) != len(targets):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(sources)}) and "
            f"destination ({list(targets)}) should have the same number of elements"
        )
    froms = [dim_of(d, x.dim()) for d in sources]
    tos = [dim_of(d, x.dim()) for d in targets]
    if len(set(froms)) != len(froms) or len(set(tos)) != len(tos):
        raise RuntimeError(f"movedim: repeated dim in {list(sources)} or {list(targets)}")
    if not x.dim():
        return Tensor.permute(x, ())
    order = [-1] * x.dim()
    for s, d in zip(froms, tos, strict=True):
        order[d] = s
    rest = iter(d for d in range(x.dim()) if d not in froms)
    order = [next(rest) if d == -1 else d for d in order]
    return Tensor.permute(x, tuple(order))


moveaxis = movedim


@public
def view(
    input: Tensor,
    *shape: Ints | D.dtype,
    size: Sequence[int] | None = None,
    dtype: D.dtype | None = None,
) -> Tensor:
    """The same memory in another shape, or read as another dtype.

    With a dtype the bytes are reinterpreted, without history; where element sizes differ, the last
    dimension grows or shrinks.  On devices without strides that is a copy.

    Raises:
        RuntimeError: the shape does not fit, or strides cannot express it.

    >>> import flambeau as fb
    >>> fb.arange(6).view(2, -1).shape
    torch.Size([2, 3])
    >>> fb.ones(1).view(fb.int32)
    tensor([1065353216], dtype=torch.int32)
    """
    need_tensor(input, "view", "input")
    if size is not None or (not shape and dtype is None):
        shape = tuple(many("view", "size", shape, size))
    if dtype is not None:
        shape = (dtype, *shape)
    other = next((n for n in shape if isinstance(n, D.dtype)), None)
    if other is not None:
        if len(shape) > 1:
            raise TypeError(
                "view() received an invalid combination of arguments: a dtype and a size; give one"
            )
        from flambeau._storages.of_tensors import reinterpreted

        return reinterpreted(input, other)
    target = infer_size(sizes(shape, "size"), input.numel())
    return _titled(input, "view", (target,), "View")


def alias(input: Tensor) -> Tensor:
    """A view of all of `input`.

    >>> import flambeau as fb
    >>> x = fb.zeros(2); y = x.view_as(x); y.fill_(1); x
    tensor([1., 1.])
    tensor([1., 1.])
    """
    need_tensor(input, "alias", "input")
    return _titled(input, "slice", (tuple(_full(n) for n in input._a.shape),), "Alias")


@public
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """``input.view(other.shape)``.

    >>> import flambeau as fb
    >>> fb.arange(4).view_as(fb.zeros(2, 2)).shape
    torch.Size([2, 2])
    """
    need_tensor(other, "view_as", "other")
    return Tensor.view(need_tensor(input, "view_as", "input"), tuple(other._a.shape))


@public
def reshape(input: Tensor, shape: Sequence[int]) -> Tensor:
    """The elements in another shape: a view where strides allow it, else a copy.

    Raises:
        RuntimeError: the number of elements differs.

    >>> import flambeau as fb
    >>> fb.reshape(fb.arange(6), (2, 3)).shape
    torch.Size([2, 3])
    """
    x = input if type(input) is Tensor else need_tensor(input, "reshape", "input")
    if type(shape) is not tuple:
        need_list(shape, "reshape", "shape")
    return Tensor.reshape(x, shape)


def reshaped(x: Tensor, shape: object) -> Tensor:
    """`reshape` of what the method does not take at once."""
    need_input(x, "reshape", "input")
    target = infer_size(sizes((need_list(shape, "reshape", "shape"),), "shape"), x.numel())
    if _expressible(x, target):
        return _titled(x, "view", (target,), "View")
    copy = reordered(x, target)
    assert copy is not None  # there are as many
    return copy


def reordered(x: Tensor, shape: tuple[int, ...]) -> Tensor | None:
    """A copy in a shape in which `x` cannot be viewed; None if it has not as many elements."""
    be = x._be
    if math.prod(shape) != math.prod(x._a.shape):
        return None
    copy = x.contiguous()
    if copy._rg is False:
        return wrap(be, be.view(copy._a, shape), copy.dtype)
    return as_root(_titled(copy, "view", (shape,), "UnsafeView"))


def as_root(view: Tensor) -> Tensor:
    """A view as a tensor of its own: what it is a view of is temporary, nobody else has seen it."""
    t = wrap(view._be, view._a, view.dtype)
    if (e := edge(view)) is not None:
        t._fn, t._rg = e, True
    return t


def _expressible(x: Tensor, shape: tuple[int, ...]) -> bool:
    g = geometry_of(x)
    return view_strides(g[0], g[1], shape) is not None


@public
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """``input.reshape(other.shape)``.

    >>> import flambeau as fb
    >>> fb.arange(4).reshape_as(fb.zeros(2, 2)).shape
    torch.Size([2, 2])
    """
    need_tensor(other, "reshape_as", "other")
    return Tensor.reshape(need_tensor(input, "reshape_as", "input"), tuple(other._a.shape))


@public
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """The dimensions from `start_dim` to `end_dim` as one.

    >>> import flambeau as fb
    >>> fb.flatten(fb.zeros(2, 3, 5), 1).shape
    torch.Size([2, 15])
    """
    x = input if type(input) is Tensor else need_tensor(input, "flatten", "input")
    return Tensor.flatten(x, start_dim, end_dim)


def flattened(x: Tensor, start_dim: int, end_dim: int) -> Tensor:
    """`flatten` of what the method does not take at once."""
    first, last = dim_of(start_dim, x.dim()), dim_of(end_dim, x.dim())
    if first > last:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if x.dim() == 0:
        return Tensor.reshape(x, 1)
    return x if first == last else Tensor.flatten(x, first, last)


@public
def ravel(input: Tensor) -> Tensor:
    """All elements in one dimension.

    >>> import flambeau as fb
    >>> fb.ravel(fb.zeros(2, 3)).shape
    torch.Size([6])
    """
    return reshape(need_input(input, "ravel", "input").contiguous(), (-1,))


_sizes_of = sizes  # of which `unflatten` has an argument of that name


@public
def unflatten(input: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """Dimension `dim` split into `sizes`, of which one may be -1.

    >>> import flambeau as fb
    >>> fb.unflatten(fb.zeros(6, 2), 0, (2, 3)).shape
    torch.Size([2, 3, 2])
    """
    x = need_input(input, "unflatten", "input")
    d = dim_of(dim, x.dim())
    shape = tuple(x._a.shape)
    part = infer_size(_sizes_of((need_list(sizes, "unflatten", "sizes"),), "sizes"), shape[d])
    return Tensor.view(x, *shape[:d], *part, *shape[d + 1 :])


@public
def expand(input: Tensor, size: Ints, *more: int) -> Tensor:
    """A view in which dimensions of size 1 are repeated without copying; -1 keeps a size.

    Raises:
        RuntimeError: a size other than 1 would change, or the rank would fall.

    >>> import flambeau as fb
    >>> fb.zeros(3, 1).expand(-1, 4).shape
    torch.Size([3, 4])
    """
    x = need_tensor(input, "expand", "input")
    given: Any = (size, *more) if more else need_list(size, "expand", "size")
    return Tensor.expand(x, given)


def expanded(x: Tensor, size: object) -> Tensor:
    """`expand` of what the method does not take at once."""
    target = list(sizes((need_list(size, "expand", "size"),), "size"))
    have = tuple(x._a.shape)
    lead = len(target) - len(have)
    if lead < 0:
        raise RuntimeError(
            f"expand(torch.{D.TENSOR_TYPE_NAMES[x.dtype]}{{{list(have)}}}, size={target}): the "
            f"number of sizes provided ({len(target)}) must be greater or equal to the number of "
            f"dimensions in the tensor ({len(have)})"
        )
    for i, n in enumerate(target):
        if n == -1:
            if i < lead:
                raise RuntimeError(
                    f"The expanded size of the tensor ({n}) isn't allowed in a leading, "
                    f"non-existing dimension {i}"
                )
            target[i] = have[i - lead]
        elif i >= lead and have[i - lead] not in (1, n):
            raise RuntimeError(
                f"The expanded size of the tensor ({n}) must match the existing size "
                f"({have[i - lead]}) at non-singleton dimension {i}.  Target sizes: "
                f"{target}.  Tensor sizes: {list(have)}"
            )
        elif n < 0:
            raise RuntimeError(f"expand: invalid size {n} in {target}")
    return _titled(x, "expand", (tuple(target),), "Expand")


@public(inplace="view")
def squeeze(input: Tensor, dim: Ints | None = None, *, out: Tensor | None = None) -> Tensor:
    """A view without the dimensions of size 1, or without those among `dim`.

    >>> import flambeau as fb
    >>> fb.squeeze(fb.zeros(2, 1, 3)).shape
    torch.Size([2, 3])
    """
    x = input if type(input) is Tensor else need_tensor(input, "squeeze", "input")
    made = Tensor.squeeze(x, dim)
    return made if out is None else deliver(made, out, input)


def squeezed(x: Tensor, dim: object) -> Tensor:
    """`squeeze` of what the method does not take at once."""
    need_input(x, "squeeze", "input")
    shape = x._a.shape
    dims = dims_of(dim, len(shape), empty_is_all=False)
    items = tuple(0 if d in dims and n == 1 else _full(n) for d, n in enumerate(shape))
    return _titled(x, "slice", (items,), "Squeeze")


@public(inplace="view")
def unsqueeze(input: Tensor, dim: int, *, out: Tensor | None = None) -> Tensor:
    """A view with a new dimension of size 1 at `dim`.

    >>> import flambeau as fb
    >>> fb.unsqueeze(fb.zeros(3), -1).shape
    torch.Size([3, 1])
    """
    x = need_input(input, "unsqueeze", "input")
    made = Tensor.unsqueeze(x, dim_of(dim, len(x._a.shape) + 1))
    return made if out is None else deliver(made, out, input)


@public(names={"dimension": "dim"})
@documented({"dimension": "dim"})
def narrow(input: Tensor, dim: int, start: int | Tensor, length: int) -> Tensor:
    """The view of `length` entries of dimension `dim` from `start`.

    Raises:
        RuntimeError: the range leaves the tensor, or a tensor `start` is no scalar of integers.

    >>> import flambeau as fb
    >>> fb.narrow(fb.arange(5), 0, 1, 2)
    tensor([1, 2])
    """
    x = need_input(input, "narrow", "input")
    shape = tuple(x._a.shape)
    if not shape:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    d = dim_of(dim, len(shape))
    if isinstance(start, Tensor) and (start.dim() or start.dtype.category != 1):
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    first = operator.index(start)
    n = shape[d]
    try:
        length = operator.index(length)  # as Python's own: those of NumPy wrap around in sums
    except TypeError:
        need_number(length, "narrow", "length")
        raise
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if not -n <= first <= n:
        raise IndexError(
            f"start out of range (expected to be in range of [{-n}, {n}], but got {first})"
        )
    first += n if first < 0 else 0
    if first + length > n:
        raise RuntimeError(f"start ({first}) + length ({length}) exceeds dimension size ({n}).")
    return _narrow(x, d, first, length)


def _narrow(x: Tensor, d: int, start: int, length: int) -> Tensor:
    items = (*[_full(n) for n in x._a.shape[:d]], builtins.slice(start, start + length, 1))
    return make_view(x, "slice", (items,), x._be.part(x._a, items), "Slice")


@public
def select(input: Tensor, dim: int, index: int) -> Tensor:
    """The view at one index of dimension `dim`, without that dimension.

    Raises:
        IndexError: the index is out of range.

    >>> import flambeau as fb
    >>> fb.select(fb.arange(6).view(2, 3), 0, 1)
    tensor([3, 4, 5])
    """
    x = need_input(input, "select", "input")
    shape = x._a.shape
    if not shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    d = dim_of(dim, len(shape))
    i = int(operator.index(index))
    if not -shape[d] <= i < shape[d]:
        raise IndexError(
            f"select(): index {i} out of range for tensor of size {list(shape)} at dimension {d}"
        )
    return Tensor.select(x, d, i)


@public
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The view of a diagonal of two dimensions, placed last.

    >>> import flambeau as fb
    >>> fb.diagonal(fb.arange(4).view(2, 2))
    tensor([0, 3])
    """
    x = need_input(input, "diagonal", "input")
    d1, d2 = dim_of(dim1, x.dim()), dim_of(dim2, x.dim())
    if d1 == d2:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    # Beyond the corners all diagonals are empty, and NumPy computes with 32 bits.
    offset = max(-x._a.shape[d1], min(operator.index(offset), x._a.shape[d2]))
    return _titled(x, "diagonal", (offset, d1, d2), "Diagonal")


@public(inplace="view")
@takes_as_annotated
def as_strided(
    input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """A view of the storage with any shape, stride and offset (in elements).

    Raises:
        RuntimeError: a stride is negative, or an element would lie outside of the storage.

    >>> import flambeau as fb
    >>> fb.as_strided(fb.arange(4), (2, 2), (1, 2))
    tensor([[0, 2],
            [1, 3]])
    """
    x = need_input(input, "as_strided", "input")
    shape, strides = sizes((tuple(size),)), sizes((tuple(stride),), "stride")
    if len(shape) != len(strides):
        raise RuntimeError("mismatch in length of strides and shape")
    if strides and builtins.min(strides) < 0:
        raise RuntimeError(
            f"as_strided: Negative strides are not supported at the moment, got strides: "
            f"{list(strides)}"
        )
    g = geometry_of(x)
    offset = g[2] if storage_offset is None else storage_offset
    st = storage_of(x)
    held = st.nbytes() // x.dtype.itemsize
    if offset < 0 or (math.prod(shape) and offset + sum_products(shape, strides) >= held):
        raise RuntimeError(
            f"setStorage: sizes {list(shape)}, strides {list(strides)}, storage offset {offset} "
            f"are out of bounds for storage of {held} elements"
        )
    args = (shape, strides, offset, *g[1:])
    be, steps = x._be, None
    try:
        if be.strided:
            native = be.backend.as_strided(st.root(x.dtype), shape, strides, offset)
        else:
            root = st.buffer
            from_root = (shape, strides, offset, contiguous_strides(root.shape), 0)
            native = be.as_strided_region(root, root.shape, *from_root)
            steps = (("as_strided", from_root),)
    except be.error as error:
        raise kernel_error("as_strided", error, (x, shape, strides, offset)) from error
    made = make_view(x, "as_strided", args, native, "AsStrided")
    if steps is not None:
        made._msteps = steps
    if made._rg:
        edge(made)  # until the next write its gradient passes through `x`, not the whole storage
    return made


@public(names={"dim": "dimension"})
@takes_as_annotated
def unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """The view of all windows of `size` entries, `step` apart, of a dimension; windows come last.

    >>> import flambeau as fb
    >>> fb.arange(5).unfold(0, 3, 2)
    tensor([[0, 1, 2],
            [2, 3, 4]])
    """
    x = need_input(input, "unfold", "input")
    d = dim_of(dimension, x.dim())
    shape, stride, offset = geometry_of(x)
    n = shape[d] if shape else 1
    if size > n:
        raise RuntimeError(f"maximum size for tensor at dimension {d} is {n} but size is {size}")
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    if shape and step * stride[d] * x.dtype.itemsize >= 1 << 63:
        raise RuntimeError(f"step is {step}: the stride of the windows does not fit into 64 bits")
    if not shape:
        return as_strided(x, (size,), (1,), offset)
    args, be = (d, size, step), x._be
    if be.strided:
        root = storage_of(x).root(x.dtype)
        native = be.backend.as_strided(root, *geometry("unfold", (shape, stride, offset), args))
    else:
        native = be.as_strided_region(x._a, shape, *windows(shape, args))
    return make_view(x, "unfold", args, native, "Unfold")


@public(method=False)
def cat(tensors: Sequence[Tensor], dim: int = 0, *, out: Tensor | None = None) -> Tensor:
    """The tensors joined along an existing dimension; dtypes promote.

    Raises:
        RuntimeError: no tensor is given, or other dimensions differ.

    >>> import flambeau as fb
    >>> fb.cat([fb.tensor([1]), fb.tensor([2.5])])
    tensor([1.0000, 2.5000])
    """
    if (rank := _rank_of_plain(tensors)) > 0:
        result = _cat.run(tensors, dim if dim == 0 and type(dim) is int else dim_of(dim, rank))
        return result if out is None else _joined(result, out, tensors)
    parts = _parts("cat", tensors)
    if not parts:
        raise ValueError("expected a non-empty list of Tensors")
    dtype = parts[0].dtype
    for p in parts:
        dtype = D.promote_types(dtype, p.dtype)
        if p.dim() == 0:
            raise RuntimeError("zero-dimensional tensor (at position 0) cannot be concatenated")
    # 1-d empty tensors are skipped whatever the shape of the others.
    full = [p for p in parts if tuple(p._a.shape) != (0,)]
    d = dim_of(dim, full[0].dim()) if full else 0
    if full and len(full) < len(parts):  # their history is kept
        none = [0 if i == d else n for i, n in enumerate(full[0].shape)]
        full += [p.reshape(none) for p in parts if tuple(p._a.shape) == (0,) and p.requires_grad]
    return _joined(_cat.run([cast(p, dtype) for p in full or parts], d), out, tensors)


def _joined(result: Tensor, out: Tensor | None, tensors: Sequence[Tensor]) -> Tensor:
    if out is None:
        return result
    if isinstance(out, Tensor) and result.dtype.category > out.dtype.category:
        raise TypeError(f"cat(): input types can't be cast to the desired output type {out.dtype}")
    return deliver(result, out, *tensors, share="nothing")


concat = concatenate = cat


def _rank_of_plain(tensors: Sequence[Tensor], are_alike: bool = False) -> int:
    """The rank of plain tensors of one dtype and rank, which need no closer look; of others -1.

    Those without elements in their one dimension are others, and, where all must be alike, those of
    several shapes.
    """
    if (type(tensors) is not list and type(tensors) is not tuple) or not tensors:
        return -1
    if type(first := tensors[0]) is not Tensor or (shape := first._a.shape) == (0,):
        return -1
    dtype, rank = first.dtype, len(shape)
    for t in tensors:
        if type(t) is not Tensor or t.dtype is not dtype or t._made is not None:
            return -1
        if t is not first and (own := t._a.shape) != shape:
            if are_alike or len(own) != rank or own == (0,):
                return -1
    return rank


def _parts(name: str, tensors: Sequence[Tensor]) -> list[Tensor]:
    if isinstance(tensors, Tensor):
        raise TypeError(f"{name}(): argument 'tensors' must be tuple of Tensors, not Tensor")
    found = list(tensors)
    for i, x in enumerate(found):
        if x is None:
            raise TypeError(
                f"{name}(): expected Tensor as element {i} of argument 'tensors', but got NoneType"
            )
    return [need_input(x, name, "tensors") for x in found]


@public(method=False)
@documented({"seq": "tensors"})
def stack(tensors: Sequence[Tensor], dim: int = 0, *, out: Tensor | None = None) -> Tensor:
    """The tensors joined along a new dimension.

    Raises:
        RuntimeError: shapes differ or no tensor is given.

    >>> import flambeau as fb
    >>> fb.stack([fb.tensor([1, 2]), fb.tensor([3, 4])], 1)
    tensor([[1, 3],
            [2, 4]])
    """
    if (rank := _rank_of_plain(tensors, are_alike=True)) >= 0:
        found = _stack.run(tensors, dim if dim == 0 and type(dim) is int else dim_of(dim, rank + 1))
        return found if out is None else _joined(found, out, tensors)
    parts = _parts("stack", tensors)
    if not parts:
        raise RuntimeError("stack expects a non-empty TensorList")
    first = parts[0]._a.shape
    for i, p in enumerate(parts):
        if p._a.shape != first:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(first)} at entry 0 and "
                f"{list(p._a.shape)} at entry {i}"
            )
    d, dtype = dim_of(dim, len(first) + 1), parts[0].dtype
    for p in parts:
        dtype = D.promote_types(dtype, p.dtype)
    parts = [cast(p, dtype) for p in parts]
    return _joined(_stack.run(parts, d), out, tensors)


@public(variadic="dims")
def flip(input: Tensor, dims: Ints) -> Tensor:
    """A copy with the order of some dimensions reversed.

    >>> import flambeau as fb
    >>> fb.flip(fb.tensor([1, 2, 3]), (0,))
    tensor([3, 2, 1])
    """
    x = need_input(input, "flip", "input")
    found = dims_of(tuple(need_list(dims, "flip", "dims")), x.dim(), empty_is_all=False)
    return _flip.run(x, found) if found and x.dim() else x.clone()


@public
@takes_as_annotated
def roll(input: Tensor, shifts: Ints, dims: Ints | None = None) -> Tensor:
    """The elements moved along dimensions, those pushed out entering on the other side.

    >>> import flambeau as fb
    >>> fb.roll(fb.tensor([1, 2, 3]), 1)
    tensor([3, 1, 2])
    """
    x = need_input(input, "roll", "input")
    if isinstance(shifts, (list, tuple)) and not shifts:
        raise RuntimeError("`shifts` required")
    if dims is None or dims == ():
        if isinstance(shifts, (list, tuple)):
            (shifts,) = shifts
        if len(x._a.shape) != 1:
            return reshape(roll(reshape(x, (-1,)), shifts, 0), tuple(x._a.shape))
        dims = 0
    moves: list[Any] = [*shifts] if isinstance(shifts, (list, tuple)) else [shifts]
    along = dims if isinstance(dims, (list, tuple)) else (dims,)
    if len(moves) != len(along):
        raise RuntimeError(
            f"shifts and dimensions must align. shifts: {len(moves)}, dims:{len(along)}"
        )
    rank = len(x._a.shape)
    found = tuple([dim_of(dim, rank) for dim in along])
    if not x.numel():
        return x.clone(memory_format=contiguous_format)
    return _roll.run(x, tuple(map(operator.index, moves)), found)
