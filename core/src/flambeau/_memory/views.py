"""Views: tensors that share a storage, and how their history follows their base's.

As a rule no node is recorded when a view is made.  It notes the history that its base has at that
moment; `edge` builds the chain when a recorded op first needs it, and again, from the base, when
their memory has been written to since.  Six ops make views: slice, permute, view, expand, diagonal
and as_strided; all others are spelt with them.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from flambeau._autograd.modes import recording
from flambeau._autograd.node import Edges, Node, next_seq
from flambeau._memory.record import Storage
from flambeau._memory.states import LEAF_VIEW, UNBUILT_VIEW, VIEW
from flambeau._types.strides import contiguous_strides

if TYPE_CHECKING:
    from flambeau._dispatch.bound import BoundBackend
    from flambeau._tensor.tensor import Tensor
    from flambeau._types.native import Array
    from flambeau.ops.declaration.formulas import Formulas
    from flambeau.ops.declaration.namespace import TensorNamespace

Step = tuple[
    str, tuple[Any, ...], tuple[int, ...], str
]  # op, its arguments, input shape, node name
VIEW_OPS = ("slice", "permute", "view", "expand", "diagonal", "as_strided", "unfold")
RETYPES = ("view_as_real", "view_as_complex")  # also views, on strided backends

NO_GRAD = "no_grad"  # `Tensor._made` of a view made while nothing was recorded

_new = object.__new__
_Tensor: Any = None  # set by `flambeau._tensor.tensor`


class ViewBackward(Node):
    """The gradient of one view step."""

    __slots__ = ("step",)
    __init__ = object.__init__  # see `Binary`

    step: Step

    def apply(
        self, F: BoundBackend | TensorNamespace, g: Any, edges: Edges = None
    ) -> tuple[Any, ...]:
        op, args, shape, _ = self.step
        return (_GRADIENTS[op](F, g, shape, args),)

    def name(self) -> str:
        return self.step[3] + "Backward0"


def _permute_gradient(
    F: Formulas, g: Array, shape: tuple[int, ...], args: tuple[Any, ...]
) -> Array:
    inverse = [0] * len(args[0])
    for i, d in enumerate(args[0]):
        inverse[d] = i
    return F.permute(g, tuple(inverse))


def _as_strided_gradient(
    F: Formulas, g: Array, shape: tuple[int, ...], args: tuple[Any, ...]
) -> Array:
    found = F.as_strided_backward(g, shape, *args)
    repeated = tuple(d for d, n in enumerate(shape) if n > 1 and args[3][d] == 0)
    if repeated:  # a leaf whose places share memory: each has an equal part of its gradient
        found = F.expand(F.mean(found, repeated, True), shape)
    return found


def _unfold_gradient(F: Formulas, g: Array, shape: tuple[int, ...], args: tuple[Any, ...]) -> Array:
    """Windows are added where they were: as those of images of height 1."""
    d, size, step = args
    if size == 0 or 0 in shape:
        return F.as_strided_backward(g, shape, *windows(shape, args))
    before, (count, *after), n = shape[:d], g.shape[d:-1], shape[d]
    lead, inner = prod(before), prod(after)
    g = F.permute(F.reshape(g, (lead, count, inner, size)), (0, 2, 3, 1))
    columns = F.reshape(g, (lead * inner, size, count))
    found = F.col2im(columns, (1, n), (1, size), (1, 1), (0, 0), (1, step))
    return F.reshape(F.permute(F.reshape(found, (lead, inner, n)), (0, 2, 1)), shape)


def positions(op: str, shape: tuple[int, ...], args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The arguments of ``as_strided_region`` for a step from `shape`, if it is one of that kind."""
    if op == "as_strided":
        return args
    return windows(shape, args) if op == "unfold" else None


def windows(shape: tuple[int, ...], args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of ``as_strided_region`` for the windows in an array of `shape`."""
    whole = contiguous_strides(shape)
    return *geometry("unfold", (shape, whole, 0), args), whole, 0


_GRADIENTS = {
    "slice": lambda F, g, shape, args: F.slice_backward(g, shape, *args),
    "permute": _permute_gradient,
    "view": lambda F, g, shape, args: F.reshape(g, shape),
    "expand": lambda F, g, shape, args: F.sum_to(g, shape),
    "diagonal": lambda F, g, shape, args: F.diagonal_backward(g, shape, *args),
    "as_strided": _as_strided_gradient,
    "unfold": _unfold_gradient,
    "view_as_real": lambda F, g, shape, args: F.conj(F.view_as_complex(g)),
    "view_as_complex": lambda F, g, shape, args: F.view_as_real(F.conj(g)),
}


def storage_of(t: Tensor) -> Storage:
    """The storage of `t`, made now if nobody asked before."""
    if (st := t._st) is None:
        st = t._st = Storage(t._a, t._be, t.dtype)
        if not t._be.strided:
            st.aliases = [weakref.ref(t)]
        fn = t._fn
        if fn is not None and fn.keeps == 2:
            fn.adopt(st)
    return st


def make_view(parent: Tensor, op: str, args: tuple[Any, ...], native: object, name: str) -> Tensor:
    """A tensor over `native`, which op `op` with `args` made from the memory of `parent`.

    The view methods spell this out for a floating `parent` that is no view, on strided backends.
    """
    st = parent._st
    if st is None:
        st = storage_of(parent)
    st.shared = True
    be = parent._be
    t = _new(_Tensor)
    t._a = native if type(native) is be.array else be.to_array(native)
    t._be = be
    t.dtype = dtype = parent.dtype
    t._st = st
    t._view = (parent, op, args, name)
    g = parent._rg
    if not dtype.fp:
        t._base = parent if parent._base is None else parent._base
        t._rg = False
    elif g is False or g is True:  # no view itself
        t._base = parent
        t._seen = st.version
        if not recording():
            t._rg = VIEW
            t._made = NO_GRAD
        elif g:
            t._rg = UNBUILT_VIEW
            t._fn = parent._fn
        else:
            t._rg = VIEW
    else:
        _follow(t, parent, st)
    if not be.strided:
        t._msteps = (*parent._msteps, (op, args))
        register_alias(st, t)
    return t


def make_slices(parent: Tensor, regions: Sequence[tuple[Any, ...]], name: str) -> tuple[Any, ...]:
    """Views of `regions` made together, each as `make_view` makes one.

    They cannot be written to while recording: PyTorch refuses, and programs rely on it.
    """
    be, dtype, g, a = parent._be, parent.dtype, parent._rg, parent._a
    shape, records, views = a.shape, recording(), []
    kernel = be.part if len(shape) > 1 or (regions and type(regions[0][0]) is slice) else be.slice
    if not (dtype.fp and (g is False or g is True) and be.strided):
        for items in regions:
            t = make_view(parent, "slice", (items,), kernel(a, items), name)
            if t._rg and records:
                edge(t)
                t._made = name
            views.append(t)
        return tuple(views)
    st = storage_of(parent)
    st.shared = True
    array, made = be.array, name if records else NO_GRAD
    source = (parent._fn or parent) if g and records else None
    for items in regions:
        r = kernel(a, items)
        t = _new(_Tensor)
        t._a = r if type(r) is array else be.to_array(r)
        t._be = be
        t.dtype = dtype
        t._st = st
        t._base = parent
        t._view = (parent, "slice", (items,), name)
        t._seen = st.version
        t._rg = VIEW
        t._made = made
        if source is not None:
            t._fn = _step_node(source, ("slice", (items,), shape, name))
        views.append(t)
    return tuple(views)


def _follow(t: Tensor, parent: Tensor, st: Storage) -> None:
    """Give `t`, a view of the view `parent`, its place among the views of their base."""
    t._base = base = parent._base
    t._seen = st.version
    if not recording():
        t._rg = VIEW
        t._made = NO_GRAD
    elif parent._made is not None:
        _record_at_once(t)
    elif base._rg:
        if parent._seen != st.version:
            edge(parent)
        t._rg = UNBUILT_VIEW
        t._fn = base._fn
    elif parent._fn is not None or parent._rg > VIEW:
        _record_at_once(t)
    else:
        t._rg = VIEW


def _record_at_once(t: Tensor) -> None:
    """Give a view its node now: the history of its parent is not simply that of the base."""
    parent = t._view[0]
    t._rg = VIEW
    t._made = parent._made
    e = edge(parent)  # a stale parent is refused here
    if e is not None or parent.requires_grad:
        t._fn = _step_node(e, _step(t))


def register_alias(st: Storage, t: Tensor) -> None:
    """Remember, on a backend without strides, that `t` must be refreshed after a write."""
    st.aliases = [*(r for r in st.aliases if r() is not None), weakref.ref(t)]


def steps(t: Tensor) -> list[Step]:
    """The view steps from the base of `t` to `t`, first one first."""
    found: list[Step] = []
    base = t._base
    while t is not base:
        parent, op, args, name = t._view
        if op == "as_strided" and parent is not base:
            # It sees the whole storage, not only what its parent sees of it.
            shape, stride, offset = geometry_of(base)
            found.append((op, (*args[:3], stride, offset), shape, name))
            break
        found.append(_step(t))
        t = parent
    found.reverse()
    return found


def _step(t: Tensor) -> Step:
    parent, op, args, name = t._view
    return op, args, parent._a.shape, name


def edge(t: Tensor) -> Any:
    """Where the gradient of `t` goes: a node, the leaf `t` itself, or None.

    Raises:
        RuntimeError: `t` is a view whose history a write to its base has made ambiguous.
    """
    g = t._rg
    if g is True:
        return t._fn or t
    if not g:
        return None
    if g == UNBUILT_VIEW:
        _settle(t)
    elif t._seen != t._st.version and (t._fn is not None or t._base._rg):  # type: ignore[union-attr]
        _renew(t)
    return t._fn or (t if g == LEAF_VIEW else None)


def _settle(t: Tensor) -> None:
    """Build the history of a view that was not needed so far."""
    if t._seen != _version(t):
        t._rg = VIEW
        _renew(t)
        return
    chain = [t]
    base, parent = t._base, t._view[0]
    while parent is not base and parent._rg == UNBUILT_VIEW:
        chain.append(parent)
        parent = parent._view[0]
    fn = (chain[-1]._fn or base) if parent is base else edge(parent)
    for view in reversed(chain):
        view._fn = fn = _step_node(fn, _step(view))
        view._rg = VIEW


def _renew(t: Tensor) -> None:
    """Follow the base after a write to the memory that both share."""
    if t._made is not None:
        raise ambiguous(t, "its base or another view of its base has been")
    fn = edge(t._base)
    for step in steps(t):
        fn = _step_node(fn, step)
    t._fn = fn
    t._seen = _version(t)


def _version(view: Tensor) -> int:
    assert view._st is not None  # a view always has one
    return view._st.version


def ambiguous(t: Tensor, what: str) -> RuntimeError:
    """The error of a recorded write that a special view `t` cannot follow; `what` was written."""
    if t._made == NO_GRAD:
        return RuntimeError(
            f"A view was created in no_grad mode and {what} modified inplace with grad mode "
            "enabled. Given that this use case is ambiguous and error-prone, it is forbidden. Make "
            "the view and the in-place write either both inside the no_grad block (then the write "
            "is not recorded) or both outside of it (then it is)."
        )
    return RuntimeError(
        f"Output of {t._made} is a view and {what} modified inplace. This view is the output of a "
        "function that returns multiple views. Such functions do not allow the output views to be "
        "modified inplace. You should replace the inplace operation by an out-of-place one."
    )


def _step_node(fn: object, step: Step) -> ViewBackward:
    node = ViewBackward()
    node._hooks = None
    node.edges = (fn,)
    node.saved = ()
    node.step = step
    node.seq = next_seq()
    return node


def replay(F: Any, a: Array, chain: Sequence[Step]) -> Array:
    """The region of `a` that a chain of view steps selects."""
    for op, args, shape, _ in chain:
        if op == "view":
            a = F.reshape(a, *args)
        elif (where := positions(op, shape, args)) is not None:
            a = F.as_strided_region(a, shape, *where)
        else:
            a = getattr(F, op)(a, *args)
    return a


def replay_gradient(F: Any, g: Array, chain: Sequence[Step]) -> Array:
    """The gradient of the region that `chain` selects from what has the gradient `g`."""
    if not (place := _retyped(chain)):
        return replay(F, g, chain)
    g = _region(F, replay(F, g, chain[: place - 1]), chain[place - 1][0])
    return replay_gradient(F, g, chain[place:])


def without_region(F: Any, g: Array, chain: Sequence[Step], region: tuple[int, ...]) -> Array:
    """The gradient `g` with zeros in the region, of shape `region`, that `chain` selects."""
    if not (place := _retyped(chain)):
        return F.view_put(g, F.zeros(region, g), chain)
    head, op = chain[: place - 1], chain[place - 1][0]
    part = _region(F, replay(F, g, head), op)
    part = _GRADIENTS[op](F, without_region(F, part, chain[place:], region), (), ())
    return F.view_put(g, part, head) if head else part


def _retyped(chain: Sequence[Step]) -> int:
    """How many steps it takes to another dtype; 0 if the dtype stays."""
    return next((i for i, step in enumerate(chain, 1) if step[0] in RETYPES), 0)


def _region(F: Formulas, g: Array, op: str) -> Array:
    # The transpose of the gradient of the step: conjugates, since dL = Re(w dz).
    return F.view_as_real(F.conj(g)) if op == "view_as_real" else F.conj(F.view_as_complex(g))


Geometry = tuple[tuple[int, ...], tuple[int, ...], int]  # shape, stride, offset


def geometry(op: str, g: Geometry, args: tuple[Any, ...]) -> Geometry:
    """Shape, stride and offset after one view step.

    Raises:
        ValueError: a `view` that strides cannot express.
    """
    shape, stride, offset = g
    if op == "slice":
        out_shape, out_stride, d = [], [], 0
        for item in args[0]:
            if item is None:
                out_shape.append(1)
                # PyTorch's unsqueeze: the stride that a contiguous tensor would have there.
                out_stride.append(shape[d] * stride[d] if d < len(shape) else 1)
            elif isinstance(item, slice):
                start, stop, step = item.start, item.stop, item.step
                offset += start * stride[d]
                out_shape.append(max(0, (stop - start + step - 1) // step))
                out_stride.append(stride[d] * step)
                d += 1
            else:
                offset += item * stride[d]
                d += 1
        return (*out_shape, *shape[d:]), (*out_stride, *stride[d:]), offset
    if op == "permute":
        dims = args[0]
        return tuple(shape[d] for d in dims), tuple(stride[d] for d in dims), offset
    if op == "view":
        new = view_strides(shape, stride, args[0])
        if new is None:
            raise ValueError(f"cannot view shape {shape} with strides {stride} as {args[0]}")
        return tuple(args[0]), new, offset
    if op == "expand":
        lead = len(args[0]) - len(shape)
        new = [0] * lead + [
            0 if n == 1 != m else s for n, m, s in zip(shape, args[0][lead:], stride, strict=True)
        ]
        if lead and shape:
            # As for unsqueeze: new dimensions of size 1 fit in with the next one.
            step = args[0][lead] * new[lead]
            for i in range(lead - 1, -1, -1):
                new[i] = step = step if args[0][i] == 1 else 0
        return tuple(args[0]), tuple(new), offset
    if op == "diagonal":
        off, d1, d2 = args
        length = max(0, min(shape[d1] + min(off, 0), shape[d2] - max(off, 0)))
        if length:
            offset += off * stride[d2] if off >= 0 else -off * stride[d1]
        rest = [d for d in range(len(shape)) if d not in (d1, d2)]
        return (
            (*(shape[d] for d in rest), length),
            (*(stride[d] for d in rest), stride[d1] + stride[d2]),
            offset,
        )
    if op == "view_as_real":
        return (*shape, 2), (*(2 * s for s in stride), 1), 2 * offset
    if op == "view_as_complex":
        return shape[:-1], tuple(s // 2 for s in stride[:-1]), offset // 2
    if op == "unfold":
        d, size, step = args
        count = (shape[d] - size) // step + 1
        return (
            (*shape[:d], count, *shape[d + 1 :], size),
            (*stride[:d], stride[d] * step, *stride[d + 1 :], stride[d]),
            offset,
        )
    assert op == "as_strided"
    return args[0], args[1], args[2]


def view_strides(
    shape: Sequence[int], stride: Sequence[int], new: Sequence[int]
) -> tuple[int, ...] | None:
    """Strides that let memory of `shape` and `stride` be seen as `new`, or None."""
    if prod(shape) == 0:
        return tuple(stride) if tuple(shape) == tuple(new) else contiguous_strides(new)
    # Runs of dimensions that memory joins without a gap can be split anew; others cannot.
    out = [0] * len(new)
    d = len(new) - 1
    run = 1
    base = stride[-1] if stride else 1
    for i in range(len(shape) - 1, -1, -1):
        run *= shape[i]
        if i == 0 or (shape[i - 1] != 1 and stride[i - 1] != run * base):
            have = 1
            while d >= 0 and (have < run or new[d] == 1):
                out[d] = have * base
                have *= new[d]
                d -= 1
            if have != run:
                return None
            if i > 0:
                base, run = stride[i - 1], 1
    if d >= 0 and not shape:
        return tuple(1 for _ in new)
    return None if d >= 0 else tuple(out)


def logical_geometry(t: Tensor) -> Geometry:
    """As `geometry_of`, with PyTorch's strides for dimensions of size 1 too."""
    if t._view is None:
        return geometry_of(t)
    parent, op, args, _ = t._view
    return geometry(op, logical_geometry(parent), args)


def geometry_of(t: Tensor) -> Geometry:
    """Shape, stride (in elements) and storage offset of a tensor."""
    be = t._be
    if be.strided:
        a = t._a
        root = a if t._st is None else t._st.buffer
        return tuple(a.shape), be.backend.strides(a), be.backend.offset(a, root)
    root = t._a if t._st is None else t._st.buffer
    g: Geometry = (root.shape, contiguous_strides(root.shape), 0)
    for op, args in t._msteps:
        g = geometry(op, g, args)
    return g
