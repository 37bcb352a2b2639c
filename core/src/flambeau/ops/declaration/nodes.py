"""Nodes of ops that have no form of their own, and what they save."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flambeau._autograd.modes import recording
from flambeau._autograd.node import Edges, Node, at_save, next_seq
from flambeau._dispatch.dispatch import new
from flambeau._memory.views import storage_of

if TYPE_CHECKING:
    from flambeau._dispatch.bound import BoundBackend
    from flambeau._tensor.tensor import Tensor
    from flambeau.ops.declaration.table import Op


class GenericNode(Node):
    """A node whose formulas and saved values follow the op's declaration.

    ``args`` is (edges of each input, None without lists of tensors; values kept); the values move
    to ``saved``, from where they are freed after a backward, if tensors are among them.  Ops
    without lists of tensors have an `apply` of their own, see `written.applying`.
    """

    __slots__ = ()
    __init__ = object.__init__  # see `Binary`

    op: Op

    def save(self, args: tuple[Any, ...], result: object) -> None:
        """Keep what the formulas of the wanted inputs need."""
        op = self.op
        slots = op.slots(args)
        values = []
        for rule in op.rules:
            wanted = any(_wanted(self.edges, slots[name]) for name in rule.inputs)
            values.append(rule.keep(args, result) if wanted else None)
        if op.keeps_tensors:
            self.args = slots, None
            self.saved = tuple(values)
        else:
            self.args = slots, tuple(values)
            self.saved = ()

    def apply(self, F: object, g: object, edges: Edges = None) -> tuple[Any, ...]:
        op = self.op
        slots, kept = self.args
        if kept is None and (kept := self.saved) is None:
            raise self.freed()
        if op.missing_reason:
            raise NotImplementedError(
                f"the gradient of {op.name!r} is missing: {op.missing_reason}"
            )
        if type(g) is dict:
            g = tuple([g.get(i) for i in range(op.results)])
        if edges is None:
            edges = self.edges
        else:
            kept = narrowed(self, F, kept, edges)
        parts: list[Any] = [None] * len(self.edges)
        for rule, values in zip(op.rules, kept, strict=True):
            if values is None:
                continue
            targets = [slots[name] for name in rule.inputs]
            needs = tuple([_wanted(edges, t) for t in targets]) if rule.asks else None
            grads = rule.run(self, F, g, values, needs)
            if len(targets) == 1:
                grads = (grads,)
            for target, grad in zip(targets, grads, strict=True):
                if type(target) is int:
                    parts[target] = grad
                else:
                    for i, part in zip(target, grad, strict=True):
                        parts[i] = part
        return tuple(parts)

    def _call_saved(self, F: Any) -> dict[str, Any]:
        return _kept(self, F, self.args[1])

    def adopt(self, storage: Any, index: int = 0) -> None:
        for values in self.saved or ():
            for value in values or ():
                if type(value) is SavedResult and value.index == index:
                    value.storage, value.version = storage, storage.version


class SingleNode(GenericNode):
    """The node of an op of one tensor with one formula, which needs no search for its place.

    ``args`` is what is kept, or None if tensors are among it.
    """

    __slots__ = ()

    def _call_saved(self, F: Any) -> dict[str, Any]:
        return _kept(self, F, self.args)


class JointNode(Node):
    """Where a gradient comes from which PyTorch computes by one function of several tensors.

    The gradient depends on none of those that require a gradient: they get none, or zeros.
    ``args`` is (name, shape of the zeros or None).
    """

    __slots__ = ()
    __init__ = object.__init__  # see `Binary`

    def name(self) -> str:
        return self.args[0]

    def apply(self, F: Any, g: Any, edges: Edges = None) -> tuple[Any, ...]:
        shape = self.args[1]
        return tuple(
            [
                None if e is None or shape is None else F.zeros(shape, g)
                for e in (self.edges if edges is None else edges)
            ]
        )


def _wanted(edges: tuple[Any, ...], slot: Any) -> bool:
    if type(slot) is int:
        return edges[slot] is not None
    return any(edges[i] is not None for i in slot)


def narrowed(node: GenericNode, F: Any, kept: Any, edges: tuple[Any, ...]) -> list[Any]:
    """What is kept for the formulas that serve some of these edges, None for the others.

    A write to what was kept for those is found all the same, as in PyTorch.
    """
    found = []
    for rule, values in zip(node.op.rules, kept, strict=True):
        slots = rule.at
        if slots is None:
            slots = [node.args[0][name] for name in rule.inputs]
        if values is not None and not any(_wanted(edges, slot) for slot in slots):
            for want, value in zip(rule.wants, values, strict=True):
                if value is not None and rule.keeps_tensor(want):
                    value.get(node, F, want)
            values = None
        found.append(values)
    return found


def joined(node: GenericNode, found: Any) -> Any:
    """What a formula found under ``create_graph``, with the history that PyTorch gives it.

    Args:
        node: of an op that declares `Op.jointly`.
        found: a gradient that no one else has, or a tuple of such.
    """
    op = node.op
    edges = tuple([e for i in op.joint if (e := node.edges[i]) is not None])
    if edges and recording():
        title = op.title
        if "BackwardBackward" not in title:
            title = title.replace("Backward", "BackwardBackward")
        for grad in found if type(found) is tuple else (found,):
            if grad is not None and not grad.requires_grad:
                n = JointNode()
                n._hooks = None
                n.edges = edges
                n.saved = ()
                n.args = title, tuple(grad._a.shape) if op.joint_zeros else None
                n.seq = next_seq()
                grad._fn, grad._rg = n, True
    return found


def _kept(node: GenericNode, F: Any, kept: Any) -> dict[str, Any]:
    if kept is None and (kept := node.saved) is None:
        raise node.freed()
    found: dict[str, Any] = {}
    for rule, values in zip(node.op.rules, kept, strict=True):
        for want, value in zip(rule.wants, values or (), strict=False):
            if value is not None and want in (*node.op.params, "result"):
                found[want] = value.get(node, F, want) if rule.keeps_tensor(want) else value
    return found


class Saved:
    """A tensor kept for backward, with the version it had when it was kept."""

    __slots__ = ("native", "tensor", "version")

    def __init__(self, t: Tensor) -> None:
        self.tensor = t
        self.native = t._a
        self.version = 0 if t._st is None else t._st.version

    def get(self, node: Node, F: Any, name: str) -> Any:
        """The kept value, if nobody wrote to it since."""
        t = self.tensor
        found = 0 if t._st is None else t._st.version
        if found != self.version:
            raise node.stale(name, t._a.shape, found, self.version)
        return self.native if F.native else at_save(t, self.native)


class SavedResult:
    """A result kept by its own node: array and storage, not the tensor, hence no cycle.

    The storage is None as long as the result has none, which means that nobody wrote to it:
    `storage_of` tells the node when it makes one.  Integers do not know the node.
    """

    __slots__ = ("be", "index", "native", "storage", "version")

    def __init__(self, t: Tensor, index: int) -> None:
        self.native, self.be, self.index = t._a, t._be, index
        self.storage = storage = t._st if t.dtype.fp else storage_of(t)
        self.version = 0 if storage is None else storage.version

    def get(self, node: Node, F: Any, name: str) -> Any:
        """The kept value, if nobody wrote to it since."""
        if (storage := self.storage) is not None and storage.version != self.version:
            raise node.stale(name, self.native.shape, storage.version, self.version)
        if F.native:
            return self.native
        return F.result(node, self.native, self.be, self.index)


def saved_result(be: BoundBackend, native: Any, index: int) -> SavedResult:
    """What a node keeps of a result that only it has."""
    saved = new(SavedResult)
    saved.native = native if type(native) is be.array else be.to_array(native)
    saved.be, saved.index, saved.storage, saved.version = be, index, None, 0
    return saved


class SavedList:
    """Several tensors kept for backward."""

    __slots__ = ("entries",)

    def __init__(self, entries: list[Saved | None]) -> None:
        self.entries = entries

    def get(self, node: Node, F: object, name: str) -> list[Any]:
        """The kept values, if nobody wrote to them since."""
        return [None if e is None else e.get(node, F, name) for e in self.entries]
