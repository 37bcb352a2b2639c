"""Nodes of ops that have no form of their own, and what they save."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flambeau._autograd.modes import recording
from flambeau._autograd.node import Node, at_save, next_seq
from flambeau._memory.views import storage_of

if TYPE_CHECKING:
    from flambeau._tensor.tensor import Tensor
    from flambeau.ops.declaration.table import Op


class GenericNode(Node):
    """A node whose formulas and saved values follow the op's declaration.

    ``args`` is (edges of each input, None without lists of tensors; values kept); the values move
    to ``saved``, from where they are freed after a backward, if tensors are among them.
    """

    __slots__ = ()
    __init__ = object.__init__  # see `Binary`

    op: Op

    def save(self, args: tuple[Any, ...], result: object) -> None:
        """Keep what the formulas of the wanted inputs need."""
        op = self.op
        slots: Any = None
        if op.places:
            kept = op.keep(self.edges, args, result)
        else:
            slots = op.slots(args)
            values = []
            for rule in op.rules:
                for name in rule.inputs:
                    if self._wanted(slots[name]):
                        values.append(rule.keep(args, result))
                        break
                else:
                    values.append(None)
            kept = tuple(values)
        if op.keeps_tensors:
            self.args = slots, None
            self.saved = kept
        else:
            self.args = slots, kept
            self.saved = ()

    def _wanted(self, slot: Any) -> bool:
        if type(slot) is int:
            return self.edges[slot] is not None
        return len([i for i in slot if self.edges[i] is not None]) > 0

    def apply(self, F: object, g: object) -> tuple[Any, ...]:
        op = self.op
        slots, kept = self.args
        if kept is None and (kept := self.saved) is None:
            raise self.freed()
        if op.missing_reason:
            raise NotImplementedError(
                f"the gradient of {op.name!r} is missing: {op.missing_reason}"
            )
        if type(g) is dict:
            g = tuple(g.get(i) for i in range(8))
        parts: list[Any] = [None] * len(self.edges)
        for rule, values in zip(op.rules, kept, strict=True):
            if values is None:
                continue
            targets = rule.at or [slots[name] for name in rule.inputs]
            needs = tuple([self._wanted(t) for t in targets]) if rule.asks else None
            grads = rule.run(self, F, g, values, needs)
            if len(targets) == 1:
                if rule.at:
                    parts[targets[0]] = grads
                    continue
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

    def adopt(self, storage: Any) -> None:
        for values in self.saved or ():
            for value in values or ():
                if type(value) is SavedResult:
                    value.storage, value.version = storage, storage.version


class SingleNode(GenericNode):
    """The node of an op of one tensor with one formula, which needs no search for its place."""

    __slots__ = ()

    def _call_saved(self, F: Any) -> dict[str, Any]:
        return _kept(self, F, self.args)

    def apply(self, F: object, g: object) -> tuple[Any, ...]:
        kept = self.args
        if kept is None and (kept := self.saved) is None:
            raise self.freed()
        return (self.op.rules[0].run(self, F, g, kept[0], None),)


class JointNode(Node):
    """Where a gradient comes from which PyTorch computes by one function of several tensors.

    The gradient depends on none of those that require a gradient: they get none, or zeros.
    ``args`` is (name, shape of the zeros or None).
    """

    __slots__ = ()
    __init__ = object.__init__  # see `Binary`

    def name(self) -> str:
        return self.args[0]

    def apply(self, F: Any, g: Any) -> tuple[Any, ...]:
        shape = self.args[1]
        return tuple([None if shape is None else F.zeros(shape, g) for _ in self.edges])


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
    """A result kept by its own node: array and storage, not the tensor, hence no cycle."""

    __slots__ = ("dtype", "index", "native", "storage", "version")

    def __init__(self, t: Tensor, index: int) -> None:
        self.native = t._a
        self.storage = storage_of(t)
        self.version = self.storage.version
        self.dtype = t.dtype
        self.index = index

    def get(self, node: Node, F: Any, name: str) -> Any:
        """The kept value, if nobody wrote to it since."""
        if self.storage.version != self.version:
            raise node.stale(name, self.native.shape, self.storage.version, self.version)
        if F.native:
            return self.native
        return F.result(node, self.native, self.storage._be, self.index)


class SavedList:
    """Several tensors kept for backward."""

    __slots__ = ("entries",)

    def __init__(self, entries: list[Saved | None]) -> None:
        self.entries = entries

    def get(self, node: Node, F: object, name: str) -> list[Any]:
        """The kept values, if nobody wrote to them since."""
        return [None if e is None else e.get(node, F, name) for e in self.entries]
