"""Nodes of the recorded graph: what to apply to a gradient, and where the results go.

A node takes its sequence number after every node it points to.  The engine relies on it: walking by
descending number is a topological order, so no dependency count is kept.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

if TYPE_CHECKING:
    from flambeau._dispatch.bound import BoundBackend
    from flambeau._tensor.tensor import Tensor
    from flambeau._transforms.levels import LevelBackend
    from flambeau.ops.declaration.namespace import TensorNamespace

Edges = tuple[Any, ...] | None

next_seq = itertools.count(1).__next__
tensors: TensorNamespace = None  # type: ignore[assignment]  # bound by `link` of the engine


class Hooks:
    """The hooks of one node, by the moment at which they run."""

    __slots__ = ("post", "pre", "retain", "tensor")

    def __init__(self) -> None:
        self.tensor: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self.pre: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self.post: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self.retain: Any = None  # weak reference to the tensor whose gradient is kept


class RemovableHandle:
    """Removes a hook from the dictionary that holds it.

    >>> import flambeau as fb
    >>> x = fb.ones(1, requires_grad=True)
    >>> handle = x.register_hook(lambda grad: grad * 2)
    >>> handle.remove()
    """

    _next_id = itertools.count()

    def __init__(self, hooks: OrderedDict[int, Any]) -> None:
        self.id = next(RemovableHandle._next_id)
        self._hooks = hooks

    def remove(self) -> None:
        """Take the hook out; a second call does nothing."""
        self._hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


class Node:
    """One recorded operation.

    Attributes:
        edges: per tensor input the node, output or leaf tensor that receives its gradient, or None.
        saved: what the formula needs; None once freed.
        seq: its number; larger than that of every node it points to.
        n_out: more than 1 if gradients arrive as ``{output index: gradient}``.
    """

    __slots__ = ("__weakref__", "_hooks", "_metadata", "args", "edges", "saved", "seq")

    title: ClassVar[str] = "Node"
    n_out: ClassVar[int] = 1

    edges: tuple[Any, ...]
    saved: Any
    seq: int
    keeps: ClassVar[int] = 0

    def __init__(self) -> None:
        self._hooks: Hooks | None = None

    def apply(self, F: Any, g: Any, edges: Edges = None) -> tuple[Any, ...]:
        """Gradients of the inputs, one per edge, from the gradient of the output.

        Args:
            F: what formulas are written in.
            g: the gradient of the output.
            edges: those to compute gradients for, None in the places of others; all if left out.
                What is found for others all the same goes nowhere.
        """
        raise NotImplementedError

    def adopt(self, storage: object, index: int = 0) -> None:
        """Note that the memory of a result is `storage`, whose later writes make it stale."""

    def _call_saved(self, F: Any) -> dict[str, Any]:
        """What was saved for the formulas, by the names of the op's arguments and ``result``.

        Raises:
            RuntimeError: it was freed, or written to since.
        """
        return {}

    def __getattr__(self, name: str) -> Any:
        # Programs look at saved values by PyTorch's names, in which the first argument is `self`.
        if name.startswith("_saved_"):
            found = self._call_saved(tensors)
            place = name[7:]
            if place not in found:
                place = {"self": "input", "exponent": "other"}.get(place, place)
            if place in found:
                return found[place]
        raise AttributeError(f"{self.name()!r} object has no attribute {name!r}")

    def empty(self) -> None:
        """Let go of what the pass needs, until it is `fill`ed with that of another run."""
        self.saved = None

    def fill(self, twin: Any) -> None:
        """Take what the pass needs from the node that another run recorded in this one's place."""
        self.saved = twin.saved

    def homes(self) -> tuple[Any, ...] | None:
        """The backend of each input, where they need not be that of the output."""
        return None

    def name(self) -> str:
        """The name shown in ``grad_fn=<...>``."""
        return self.title

    def __repr__(self) -> str:
        return f"<{self.name()} object at {id(self):#x}>"

    @property
    def metadata(self) -> dict[str, Any]:
        """A dictionary for the user's notes about this node."""
        try:
            return self._metadata
        except AttributeError:
            self._metadata: dict[str, Any] = {}
            return self._metadata

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """(node, output index) per input; leaf tensors appear as `AccumulateGrad`."""
        found = []
        for e in self.edges:
            if e is None:
                found.append((None, 0))
            elif isinstance(e, Out):
                found.append((e.node, e.index))
            elif isinstance(e, Node):
                found.append((e, 0))
            else:
                found.append((AccumulateGrad(e), 0))
        return tuple(found)

    def hooks(self) -> Hooks:
        """The hooks of this node, made when first asked for."""
        if self._hooks is None:
            self._hooks = Hooks()
        return self._hooks

    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call ``fn(grad_inputs, grad_outputs)`` after this node; it may return new grad_inputs."""
        return _add(self.hooks().post, fn)

    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call ``fn(grad_outputs)`` before this node; it may return new grad_outputs."""
        return _add(self.hooks().pre, fn)

    def freed(self) -> RuntimeError:
        """The error of a second backward through this node."""
        return RuntimeError(
            f"{self.name()}: Trying to backward through the graph a second time (or directly "
            "access saved tensors after they have already been freed). Saved intermediate values "
            "of the graph are freed when you call .backward() or autograd.grad(). Specify "
            "retain_graph=True if you need to backward through the graph a second time or if you "
            "need to access saved tensors after calling backward."
        )

    def stale(self, what: str, shape: tuple[int, ...], found: int, expected: int) -> RuntimeError:
        """The error of a saved tensor that was written to before backward."""
        return RuntimeError(
            f"{self.name()}: one of the variables needed for gradient computation has been "
            f"modified by an inplace operation: saved tensor {what!r} of shape {list(shape)} is at "
            f"version {found}; expected version {expected} instead. Use an out-of-place operation, "
            "or clone() the tensor before writing to it; set_detect_anomaly(True) shows the "
            "forward call."
        )


class Out(Node):
    """One output of a node that has several."""

    __slots__ = ("index", "node")
    keeps = 2  # perhaps: its node says

    def __init__(self, node: Node, index: int) -> None:
        self._hooks = None
        self.node = node
        self.index = index
        self.edges = (node,)
        self.saved = ()
        self.seq = next_seq()

    def apply(
        self, F: BoundBackend | TensorNamespace, g: Any, edges: Edges = None
    ) -> tuple[Any, ...]:
        return ({self.index: g},)

    def adopt(self, storage: object, index: int = 0) -> None:
        self.node.adopt(storage, self.index)

    def name(self) -> str:
        return self.node.name()


class AccumulateGrad:
    """A leaf tensor seen as the end of a graph; made on demand by `Node.next_functions`."""

    next_functions = ()

    def __init__(self, variable: Tensor) -> None:
        self.variable = variable

    def name(self) -> str:
        """The name shown in graph printers."""
        return "torch::autograd::AccumulateGrad"

    def __repr__(self) -> str:
        return f"<AccumulateGrad object at {id(self):#x}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AccumulateGrad) and other.variable is self.variable

    def __hash__(self) -> int:
        return id(self.variable)


class GradientEdge(NamedTuple):
    """The place in the graph to which the gradient of a tensor goes; `get_gradient_edge` makes it.

    `autograd.backward` and `autograd.grad` take it instead of the tensor, which need not be kept.

    Attributes:
        node: the node that computed the tensor, or the end of the graph that a leaf is.
        output_nr: which of its results the tensor is.
        ownership_token: keeps alive what the edge leads to.
    """

    node: Any
    output_nr: int
    ownership_token: Any = None


def _add(hooks: OrderedDict[int, Any], fn: Callable[..., Any]) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = fn
    return handle


class Unary(Node):
    """A node with one input that saves nothing but plain arguments, its input or its result."""

    __slots__ = ()
    __init__ = object.__init__  # see `Binary`

    formula: ClassVar[Callable[..., Any]]
    keeps: ClassVar[int]  # 0 nothing, 1 the input, 2 the result


class SavesNothing(Unary):
    """The formula takes the gradient alone."""

    __slots__ = ()

    keeps = 0

    def apply(
        self, F: BoundBackend | LevelBackend | TensorNamespace, g: Any, edges: Edges = None
    ) -> tuple[Any, ...]:
        return (self.formula(F, g),)


class SavesInput(Unary):
    """The formula takes the gradient and the input.

    ``saved`` is (tensor, array, version of its memory).
    """

    __slots__ = ()

    keeps = 1

    def apply(
        self, F: BoundBackend | TensorNamespace, g: Any, edges: Edges = None
    ) -> tuple[Any, ...]:
        if self.saved is None:
            raise self.freed()
        x, native, version = self.saved
        found = 0 if (st := x._st) is None else st.version
        if found != version:
            raise self.stale("self", x.shape, found, version)
        return (self.formula(F, g, native if F.native else at_save(x, native)),)

    def _call_saved(self, F: Any) -> dict[str, Any]:
        if self.saved is None:
            raise self.freed()
        x, native, version = self.saved
        if x._st is not None and x._st.version != version:
            raise self.stale("self", x.shape, x._st.version, version)
        return {"self": at_save(x, native)}


class SavesResult(Unary):
    """The formula takes the gradient and the result.

    ``saved`` is (array, storage, version); the storage is None as long as the result has none,
    which means that nobody wrote to it.
    """

    __slots__ = ()

    keeps = 2

    def apply(self, F: Any, g: Any, edges: Edges = None) -> tuple[Any, ...]:
        if self.saved is None:
            raise self.freed()
        native, st, version = self.saved
        if st is not None and st.version != version:
            raise self.stale("result", native.shape, st.version, version)
        return (self.formula(F, g, native if F.native else F.result(self, native, g._be)),)

    def _call_saved(self, F: Any) -> dict[str, Any]:
        if self.saved is None:
            raise self.freed()
        native, st, version = self.saved
        if st is not None and st.version != version:
            raise self.stale("result", native.shape, st.version, version)
        return {"result": F.result(self, native, _home_of(self) if st is None else st._be)}

    def adopt(self, storage: Any, index: int = 0) -> None:
        if self.saved is not None:
            self.saved = (self.saved[0], storage, storage.version)


class Binary(Node):
    """A broadcasting node with two inputs; ``f0`` and ``f1`` are the formulas of its sides.

    ``keep[i]`` has a bit per operand to save when the gradients wanted are those of the bits of
    ``i``.

    ``saved`` is empty, or has three places for each operand: the tensor, its array, and the version
    of its memory; None, None and 0 for one that no formula needs.  A native scalar stands as None,
    number, 0.  `operands` reads it, and `record_binary` of `flambeau._dispatch.dispatch` writes it:
    a plain tuple, since a named one takes eight times as long to make.
    """

    __slots__ = ("shapes",)
    # Without one in Python, calling the class takes half the time; who calls it sets `_hooks`.
    __init__ = object.__init__

    f0: ClassVar[Callable[..., Any]]
    f1: ClassVar[Callable[..., Any]]
    keep: ClassVar[tuple[int, ...]]

    def apply(
        self, F: BoundBackend | LevelBackend | TensorNamespace, g: Any, edges: Edges = None
    ) -> tuple[Any, ...]:
        a, b = self.operands(F, g)
        e0, e1 = self.edges if edges is None else edges
        g0 = self.f0(F, g, a, b) if e0 is not None else None
        g1 = self.f1(F, g, a, b) if e1 is not None else None
        if (shapes := self.shapes) is not None:
            if g0 is not None:
                g0 = F.sum_to(g0, shapes[0])
            if g1 is not None:
                g1 = F.sum_to(g1, shapes[1])
        return g0, g1

    def _call_saved(self, F: Any) -> dict[str, Any]:
        if self.saved is None:
            raise self.freed()
        if not self.saved:
            return {}
        x, a, vx, y, b, vy = self.saved
        found: dict[str, Any] = {}
        for name, t, native, version in (("self", x, a, vx), ("other", y, b, vy)):
            if t is not None:
                if t._st is not None and t._st.version != version:
                    raise self.stale(name, t.shape, t._st.version, version)
                found[name] = at_save(t, native)
            elif native is not None:
                found[name] = _home_of(self).backend.item(native)
        return found

    def operands(self, F: Any, g: Any) -> tuple[Any, Any]:
        """The saved operands, None for those that no formula needs."""
        if not (saved := self.saved):
            if saved is None:
                raise self.freed()
            return None, None
        x, a, vx, y, b, vy = saved
        if x is not None:
            found = 0 if (st := x._st) is None else st.version
            if found != vx:
                raise self.stale("self", x.shape, found, vx)
            if not F.native:
                a = at_save(x, a)
        if y is not None:
            found = 0 if (st := y._st) is None else st.version
            if found != vy:
                raise self.stale("other", y.shape, found, vy)
            if not F.native:
                b = at_save(y, b)
        elif b is not None and not F.native:
            b = F.constant(b, g)
        return a, b


def _home_of(node: Node) -> Any:
    """The backend that a node's one input has, and its result with it."""
    while isinstance(node, Node):
        if (homes := node.homes()) is not None:
            return homes[0]
        node = next(e for e in node.edges if e is not None)
    return node._be


def at_save(x: Tensor, native: object) -> Tensor:
    """The tensor `x` as it was saved: itself, unless ``x.data = ...`` replaced its values."""
    if x._a is native:
        return x
    return x._same_history(native)
