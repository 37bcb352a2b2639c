"""What `saved_tensors_hooks` do with a node: its saved tensors are packed until backward.

The class of a packed node is one derived from its own that puts the tensors in place, as the node
would have saved them, for as long as its formula runs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from flambeau._autograd.modes import recording, set_recording
from flambeau._autograd.node import Binary, Edges, Node, Unary
from flambeau._dispatch.dispatch import wrap
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.function import FunctionCtx
from flambeau.ops.declaration.nodes import GenericNode, Saved, SavedList, SavedResult


class Hooks(NamedTuple):
    """A pair of functions."""

    pack: Callable[[Tensor], Any]
    unpack: Callable[[Any], Tensor]


class _ThreadHooks(threading.local):
    """The hooks of a thread's blocks, innermost last, and why there may be none."""

    stack: tuple[Hooks, ...] = ()
    refusal: str | None = None


hooks = _ThreadHooks()


class _Parcel:
    """A saved tensor as its pack hook left it.

    Attributes:
        shadow: an empty tensor with the history of the saved one; None for a result, whose history
            is the node that saves it.
    """

    __slots__ = ("packed", "shadow", "unpack")

    def __init__(self, t: Tensor, pair: Hooks, is_result: bool = False) -> None:
        before, version = recording(), t._version
        set_recording(False)
        try:
            self.packed = pair.pack(t)
        finally:
            set_recording(before)
        if t._version != version:
            raise RuntimeError(
                "A saved tensor pack hook is modifying its input in place. Tensors provided as "
                "input to pack hook can not be modified by in-place operations as this can lead to "
                "unexpected side-effects."
            )
        self.unpack = pair.unpack
        self.shadow = None if is_result else t._same_history(t._be.full((0,), 0, t.dtype))

    def open(self) -> Tensor:
        """The values, with the history of what was saved."""
        t = self.unpack(self.packed)
        if not isinstance(t, Tensor):
            raise TypeError(
                "Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
                f"{type(t).__name__}"
            )
        t = wrap(t._be, t._a, t.dtype)
        return t if self.shadow is None else self.shadow._same_history(t._a)


class _Packed:
    """What a node keeps instead of its saved values: how to make them."""

    __slots__ = ("make",)

    def __init__(self, make: Callable[[], tuple[Any, ...]]) -> None:
        self.make = make


class _Entry:
    """A tensor that a custom function saved, packed; see `FunctionCtx.saved_tensors`."""

    __slots__ = ("of_result", "parcel")

    def __init__(self, parcel: _Parcel, of_result: Callable[[Node, Tensor], Tensor] | None) -> None:
        self.parcel = parcel
        self.of_result = of_result

    def get(self, node: Node) -> Tensor:
        t = self.parcel.open()
        return t if self.of_result is None else self.of_result(node, t)


@cache
def _unpacking(base: type[Node]) -> type[Node]:
    """The class of the packed nodes of a class."""

    def apply(self: Any, F: Any, g: Any, edges: Edges = None) -> object:
        kept = self.saved
        if type(kept) is not _Packed:
            return base.apply(self, F, g, edges)
        self.saved = kept.make()
        try:
            return base.apply(self, F, g, edges)
        finally:
            self.saved = kept

    def saved_values(self: Any, F: Any) -> dict[str, Any]:
        packed = self.saved
        if type(packed) is not _Packed:
            return base._call_saved(self, F)
        self.saved = packed.make()
        try:
            return base._call_saved(self, F)
        finally:
            self.saved = packed

    def adopt(self: object, storage: object, index: int = 0) -> None:
        """Nothing: writes to packed results are not noticed."""

    space = {
        "__slots__": (),
        "apply": apply,
        "_call_saved": saved_values,
        "adopt": adopt,
        "__doc__": base.__doc__,
    }
    return type(base.__name__, (base,), space)


def pack_node(node: Node, result: Any) -> None:
    """Pack what a new node has saved, if this thread has hooks."""
    if not hooks.stack or not node.saved:
        return
    pair = hooks.stack[-1]
    if isinstance(node, FunctionCtx):
        node.saved = tuple([e and _packed_entry(e, pair, result) for e in node.saved])
        return
    if isinstance(node, Unary):
        make = _of_unary(node, pair, result)
    elif isinstance(node, Binary):
        make = _of_binary(node.saved, pair)
    elif isinstance(node, GenericNode):
        make = _of_values(node, pair, result)
    else:
        return
    node.saved = _Packed(make)
    node.__class__ = _unpacking(type(node))  # type: ignore[assignment]


def _of_unary(node: Unary, pair: Hooks, result: Tensor) -> Callable[[], tuple[Any, ...]]:
    if node.keeps == 1:
        parcel = _Parcel(node.saved[0], pair)
        return lambda: _place(parcel.open())
    parcel = _Parcel(result, pair, is_result=True)
    return lambda: (parcel.open()._a, None, 0)


def _place(t: Tensor) -> tuple[Any, ...]:
    return t, t._a, 0 if t._st is None else t._st.version


def _of_binary(saved: tuple[Any, ...], pair: Hooks) -> Callable[[], tuple[Any, ...]]:
    """Of both operands, the second first: PyTorch's order is that of the names other and self."""
    sides = [
        _Parcel(saved[at], pair) if saved[at] is not None else saved[at : at + 3] for at in (3, 0)
    ]

    def make() -> tuple[Any, ...]:
        other, own = (_place(s.open()) if isinstance(s, _Parcel) else s for s in sides)
        return (*own, *other)

    return make


def _of_values(node: GenericNode, pair: Hooks, result: object) -> Callable[[], tuple[Any, ...]]:
    """Of what the rules of an op keep: for each, values and tensors.

    PyTorch packs what an op saves by the names of its arguments, in the order of the alphabet, and
    results after them.
    """
    rules = [
        None if values is None else dict(zip(rule.wants, values, strict=True))
        for rule, values in zip(node.op.rules, node.saved, strict=True)
    ]
    kept = {want: value for values in rules for want, value in (values or {}).items()}
    theirs = {want: "self" if want == "input" else want for want in kept}
    order = sorted(kept, key=lambda want: (type(kept[want]) is SavedResult, theirs[want]))
    packed = {want: _packed_value(kept[want], pair, result) for want in order}

    def make() -> tuple[Any, ...]:
        opened = {want: _opened(value) for want, value in packed.items()}
        return tuple(
            None if values is None else tuple([opened[want] for want in values]) for values in rules
        )

    return make


class _Kept(NamedTuple):
    """A packed value of an op, and which result it is, None for an input."""

    parcel: _Parcel
    place: int | None


class _KeptList(tuple[Any, ...]):
    """The packed values of a list of tensors."""


def _packed_value(value: object, pair: Hooks, result: Any) -> Any:
    if type(value) is Saved:
        return _Kept(_Parcel(value.tensor, pair), None)
    if type(value) is SavedResult:
        t = result[value.index] if type(result) is tuple else result
        return _Kept(_Parcel(t, pair, is_result=True), value.index)
    if type(value) is SavedList:
        return _KeptList(e and _packed_value(e, pair, result) for e in value.entries)
    return value


def _opened(value: object) -> Any:
    if type(value) is _Kept:
        t = value.parcel.open()
        return Saved(t) if value.place is None else SavedResult(t, value.place)
    if type(value) is _KeptList:
        return SavedList([e and _opened(e) for e in value])
    return value


def _packed_entry(entry: Any, pair: Hooks, result: tuple[Any, ...]) -> _Entry:
    if hasattr(entry, "tensor"):
        return _Entry(_Parcel(entry.tensor, pair), None)
    parcel = _Parcel(result[entry.index], pair, is_result=True)
    return _Entry(parcel, entry.with_history)
