"""The backward pass: one loop over a heap of nodes, newest first.

Every consumer of a value has a higher sequence number than the value's own node, so popping by
descending number visits each node after all its consumers, without counting dependencies.
Gradients are native arrays of the backend, or tensors where the pass itself is recorded
(``create_graph``).  Complex ones travel as the conjugates of what users give and get, so that no
formula conjugates what it saved: see ``docs/design/core.md``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any

from flambeau._autograd import node as _node
from flambeau._autograd.modes import recording, set_recording
from flambeau._autograd.node import Binary, Edges, Node, Unary
from flambeau.plugin.forks import make_lock

if TYPE_CHECKING:
    from flambeau._autograd.node import Hooks
    from flambeau._dispatch.bound import BoundBackend
    from flambeau._dispatch.dispatch import out_of_memory, wrap
    from flambeau._memory.views import edge
    from flambeau._tensor.tensor import Tensor
    from flambeau._transforms.levels import LevelBackend
    from flambeau._types.dtype import dtype as DType
    from flambeau.ops.declaration.formulas import Formulas
    from flambeau.ops.declaration.namespace import TENSORS, TensorNamespace

    FORMULAS: tuple[type[Node], ...]


def link() -> None:
    """Bind the names of modules that themselves need this one."""
    global FORMULAS, TENSORS, Tensor, edge, wrap
    from flambeau._dispatch.dispatch import wrap
    from flambeau._memory.views import edge
    from flambeau._tensor.tensor import Tensor
    from flambeau.ops.declaration.namespace import TENSORS
    from flambeau.ops.declaration.table import GenericNode

    _node.tensors = TENSORS
    # Nodes that do nothing with `F` but hand it to the formulas of an op.
    FORMULAS = (Unary, Binary, GenericNode)


_accumulating = make_lock()


def delivered(grad: object) -> Any:
    """A gradient as a program gets it; `flambeau.utils._wrapped` sets another one."""
    return grad


# Anomaly mode and profilers: each is called as ``watch(node, apply, F, g)`` instead of
# ``apply(F, g)``.
watchers: list[Callable[[Node, Callable[[Any, Any], Any], Any, Any], Any]] = []
several_devices = False  # whether this process ever recorded what has operands on several


class _Pass(threading.local):
    """What this thread's present backward pass, if there is one, calls when it has ended."""

    callbacks: list[Callable[[], Any]] | None = None
    to_leaves = True  # whether it adds to ``.grad`` of all leaves


_pass = _Pass()


def adds_to_all_leaves() -> bool:
    """Whether this thread's present backward pass is for all leaves, not for chosen tensors."""
    return _pass.to_leaves


def queue_callback(callback: Callable[[], Any]) -> None:
    """Call a function when the present backward pass of this thread has ended without an error.

    Raises:
        RuntimeError: there is none.
    """
    if _pass.callbacks is None:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    _pass.callbacks.append(callback)


class DeviceMove(Node):
    """A node whose gradient lives on another device than its output; ``args`` is that backend."""

    __slots__ = ()

    def homes(self) -> tuple[Any, ...]:
        return (self.args,)


def run(
    roots: Sequence[Tensor],
    grads: Sequence[Any],
    *,
    retain_graph: bool,
    create_graph: bool,
    inputs: Sequence[Tensor] | None = None,
    accumulate: bool = True,
    ends: bool = False,
) -> list[Any]:
    """Push gradients from `roots` through the graph.

    Args:
        roots: tensors with a history (or leaves that require a gradient).
        grads: gradient of each root: a tensor of its shape.
        retain_graph: keep saved values for another pass.
        create_graph: record the pass itself.
        inputs: only nodes on a path to these are visited.
        accumulate: add into ``.grad`` of leaves (of `inputs` only, if given).
        ends: the pass ends at each of `inputs`: what one gets by the history of another, and
            their hooks, are left to a pass that goes on from there.

    Returns:
        One tensor or None per element of `inputs`, in order; an empty list without `inputs`, or
        where it accumulates.
    """

    # Of gradients of a transform's level the formulas are ops on tensors, recorded or not.
    on_tensors = create_graph or any(g._be is not r._be for r, g in zip(roots, grads, strict=True))
    walk = _Walk(TENSORS if on_tensors else roots[0]._be, retain_graph)
    if inputs is not None:
        walk.capture([edge(t) for t in inputs], ends)
    before = recording()
    outer, _pass.callbacks = _pass.callbacks, []
    outer_to, _pass.to_leaves = _pass.to_leaves, accumulate and inputs is None
    try:
        set_recording(create_graph)
        for root, grad in zip(roots, grads, strict=True):
            if root._be is not roots[0]._be:
                walk.where_default(root)
            if grad.dtype.is_complex:
                grad = _conjugate(grad)
            walk.push(edge(root), grad if on_tensors else grad._a, owned=False)
        if inputs is not None:
            walk.restrict()
        walk.loop()
        if accumulate:
            walk.finish_leaves(inputs)
        found = [] if inputs is None or accumulate else walk.captured(inputs)
        for callback in _pass.callbacks:
            callback()
        return found
    except MemoryError as error:
        if isinstance(error, RuntimeError):
            raise  # has been said by an op
        raise out_of_memory("backward", error, grads) from error
    finally:
        _pass.callbacks = outer
        _pass.to_leaves = outer_to
        set_recording(before)


class _Walk:
    """The state of one backward pass."""

    def __init__(self, F: BoundBackend | LevelBackend | TensorNamespace, retain: bool) -> None:
        self.F = F
        self.retain = retain
        self.heap: list[int] = []
        self.todo: dict[int, Node] = {}
        self.sums: dict[int, Any] = {}
        self.leaves: dict[int, list[Any]] = {}  # id -> [leaf, sum, whether the sum is ours]
        self.where: dict[int, Any] = {}  # node number -> F, where it differs from self.F
        self.wanted: dict[int, Any] | None = None  # place (see `_place`) -> captured gradient
        # Places on a path to the inputs -> the edges on it, None for others.
        self.needed: dict[int, tuple[Any, ...]] | None = None
        self.ends = False  # whether the pass goes on behind none of the inputs

    def where_default(self, root: Tensor) -> None:
        """Note that this root's gradient lives on another device than the first root's."""
        if self.F.native and root._be is not self.F and isinstance(e := edge(root), Node):
            self.where[e.seq] = root._be

    def capture(self, edges: list[Any], ends: bool) -> None:
        """Keep the gradients that arrive at these edges."""
        self.wanted, self.ends = {}, ends
        for e in edges:
            if e is not None:
                self.wanted[_place(e)] = None

    def restrict(self) -> None:
        """With captured inputs: find the nodes on a path to them, oldest first, and their edges.

        A node of which all edges are on a path keeps its own tuple: `visit` knows it by that.
        """
        assert self.wanted is not None
        found: dict[int, Node] = dict(self.todo)
        stack = list(self.todo.values())
        while stack:
            node = stack.pop()
            if self.ends and node.seq in self.wanted:
                continue
            for e in node.edges:
                if isinstance(e, Node) and e.seq not in found:
                    found[e.seq] = e
                    stack.append(e)
        needed: dict[int, tuple[Any, ...]] = {leaf: () for leaf in self.wanted if leaf < 0}
        for seq in sorted(found):
            edges = found[seq].edges
            reached = missed = False
            for e in edges:
                if e is not None:
                    if (e.seq or -id(e)) in needed:
                        reached = True
                    else:
                        missed = True
            if missed and (reached or seq in self.wanted):
                needed[seq] = tuple(
                    [None if e is None or _place(e) not in needed else e for e in edges]
                )
            elif reached or seq in self.wanted:
                needed[seq] = edges
        # Predecessors of a wanted node matter only if another wanted one lies behind it: `visit`
        # asks.
        self.needed = needed

    def push(self, e: Any, g: Any, owned: bool) -> None:
        """Add gradient `g` to what is waiting at edge `e`."""
        if not isinstance(e, Node):
            self.push_leaf(e, g, owned)
        elif (s := e.seq) in self.sums:
            self.sums[s] = (
                self.F.add(self.sums[s], g) if e.n_out == 1 else _merge(self.F.add, self.sums[s], g)
            )
        else:
            self.sums[s] = g
            self.todo[s] = e
            heappush(self.heap, -s)

    def push_leaf(self, leaf: Tensor, g: object, owned: bool) -> None:
        if (held := self.leaves.get(id(leaf))) is not None:
            F = self.F if not self.F.native else leaf._be
            try:
                total = F.add(held[1], g)
            except Exception as error:
                total = _sparse_sum(F, held[1], g, error)
            self.leaves[id(leaf)] = [leaf, total, True]
        else:
            self.leaves[id(leaf)] = [leaf, g, owned]

    def loop(self) -> None:
        """Visit the waiting nodes, newest first, until none is left.

        A graph is mostly chains: a node that is alone in waiting stays in `alone` and goes neither
        through the heap nor through the dictionaries.
        """
        heap, todo, sums, leaves = self.heap, self.todo, self.sums, self.leaves
        F, retain, native = self.F, self.retain, self.F.native
        array, add = F.array, F.add
        special = bool(self.where or several_devices or watchers or self.wanted is not None)
        special = special or (native and F.formulas is not F)
        heapify(heap)
        alone: Any = None
        waiting: Any = None
        while alone is not None or heap:
            if alone is not None:
                node, g, alone = alone, waiting, None
            else:
                s = -heappop(heap)
                node = todo.pop(s)
                g = sums.pop(s)
            if special:
                if (visited := self.visit(node, g)) is None:
                    continue
                parts, g, edges = visited
            else:
                edges = node.edges
                if type(g) is not array and native and type(g) is not dict:
                    g = F.to_array(g)
                if node._hooks is None:
                    parts = node.apply(F, g)
                else:
                    g = _run_pre_hooks(node, F, g)
                    parts = _run_post_hooks(node, F, node.apply(F, g), g, node.edges)
            if not retain and node.saved:
                node.saved = None
            for e, p in zip(edges, parts):  # noqa: B905 - `strict` costs 10 % of the loop
                if p is None or e is None:
                    continue
                if s := e.seq:
                    if special:
                        add = self.where.get(s, F).add
                    if alone is None and not heap:
                        alone, waiting = e, p
                    elif alone is e:
                        waiting = add(waiting, p) if e.n_out == 1 else _merge(add, waiting, p)
                    elif s in sums:
                        have = sums[s]
                        sums[s] = add(have, p) if e.n_out == 1 else _merge(add, have, p)
                    else:
                        sums[s] = p
                        todo[s] = e
                        heappush(heap, -s)
                        if alone is not None:
                            s = alone.seq
                            sums[s], todo[s], alone = waiting, alone, None
                            heappush(heap, -s)
                elif special:
                    self.push_leaf(e, p, p is not g)
                elif (held := leaves.get(id(e))) is not None:  # the same, without a call
                    try:
                        held[1] = add(held[1], p)
                    except Exception as error:
                        held[1] = _sparse_sum(F, held[1], p, error)
                    held[2] = True
                else:
                    leaves[id(e)] = [e, p, p is not g]

    def visit(self, node: Node, g: object) -> tuple[Any, Any, tuple[Any, ...]] | None:
        """Apply a node in a pass with captured inputs, several devices or watchers.

        Returns:
            The gradients of its inputs, that of its output after hooks, and where those of the
            inputs go; None if no gradient is wanted behind this node.
        """
        needed, wanted = self.needed, self.wanted
        s = node.seq
        F = self.where.pop(s, self.F)
        edges = node.edges if needed is None else needed.get(s)
        if edges is None:
            return None
        if F.native and type(g) is not F.array and type(g) is not dict:
            g = F.to_array(g)
        if wanted is not None and s in wanted:
            if self.ends:
                wanted[s] = (F, g)
                return None
            if (hooks := node._hooks) is not None and (hooks.tensor or hooks.retain is not None):
                g = _run_tensor_hooks(node, F, g)
            wanted[s] = (F, g)
            if all(e is None for e in edges):
                return None  # the hooks of the node itself are for passes that go through it
            if node._hooks is not None:
                g = _run_node_hooks(node, F, g)
        elif node._hooks is not None:
            g = _run_pre_hooks(node, F, g)
        apply = _watched_apply if watchers else _apply
        some = None if edges is node.edges else edges
        if F.native and F.formulas is not F and isinstance(node, FORMULAS):
            parts = F.settle(apply(node, F.formulas, g, some))
        else:
            parts = apply(node, F, g, some)
        if node._hooks is not None:
            shown = edges if isinstance(node, FORMULAS) else node.edges
            parts = _run_post_hooks(node, F, parts, g, shown)
        homes = node.homes() if F.native else None
        if homes is not None or F is not self.F:
            for i, e in enumerate(edges):
                home = F if homes is None else homes[i]
                if home is not self.F and isinstance(e, Node):
                    self.where[e.seq] = home
        return parts, g, edges

    def finish_leaves(self, inputs: Sequence[Tensor] | None) -> None:
        """Run the leaves' hooks and add the sums into their ``.grad``."""
        allowed = None if inputs is None else {id(t) for t in inputs}
        native = self.F.native
        given: set[int] = set()
        for key, (leaf, g, owned) in self.leaves.items():
            if allowed is not None and key not in allowed:
                continue
            if leaf._fn is not None or leaf._base is not None:
                if isinstance(edge(leaf), Node):
                    raise RuntimeError("leaf variable has been moved into the graph interior")
            if leaf._rg is not True and not leaf.requires_grad:
                continue  # switched off between forward and backward
            dtype = leaf.dtype
            grad = _as_tensor(leaf._be, g, dtype) if native else delivered(g)
            if dtype.is_complex:
                grad, owned = _conjugate(grad), True
            if (hooks := leaf._hooks) is not None:
                grad, replaced = _run_leaf_hooks(leaf, grad)
                owned = owned and not replaced
            # One array may be the gradient of several leaves (both sides of a sum).
            place = id(grad._a)
            owned = owned and place not in given and _owns(grad)
            given.add(place)
            with _accumulating:
                _accumulate(leaf, grad, owned, not native)
            if hooks is not None:
                for hook in tuple(hooks.post.values()):
                    hook(leaf)

    def captured(self, inputs: Sequence[Tensor]) -> list[Any]:
        """The gradients of `inputs`, after the leaves' own hooks."""
        assert self.wanted is not None
        out: list[Any] = []
        places: dict[int, int] = {}
        for i, t in enumerate(inputs):
            e = edge(t)
            if (first := places.setdefault(0 if e is None else _place(e), i)) != i:
                out.append(out[first])  # hooks have run
                continue
            if isinstance(e, Node):
                found = self.wanted[e.seq]
                grad = None if found is None else found[1]
            else:
                held = self.leaves.get(id(e))
                grad = None if held is None else held[1]
            if grad is not None and self.F.native:
                grad = _as_tensor(t._be, grad, t.dtype)
            elif grad is not None:
                grad = delivered(grad)
            if grad is not None and t.dtype.is_complex:
                grad = _conjugate(grad)
            hooked = not (self.ends or isinstance(e, Node) or t._hooks is None)
            if grad is not None and hooked:
                grad, _ = _run_leaf_hooks(t, grad)
            out.append(grad)
        return out


def _place(e: Any) -> int:
    """A number for where an edge leads: that of the node, a negative one for a leaf."""
    return e.seq or -id(e)


def _apply(node: Node, F: Formulas, g: object, edges: Edges) -> Any:
    return node.apply(F, g, edges)


def _watched_apply(node: Node, F: Formulas, g: object, edges: Edges) -> Any:
    def of_edges(F: Any, g: Any) -> Any:
        return node.apply(F, g, edges)

    apply: Callable[[Any, Any], Any] = of_edges
    for watch in tuple(watchers):
        apply = partial(watch, node, apply)
    return apply(F, g)


def _merge(
    add: Callable[[Any, Any], Any], have: dict[int, Any], new: dict[int, Any]
) -> dict[int, Any]:
    # The gradients of a node with several outputs travel as {output index: gradient}.
    merged = dict(have)
    for i, g in new.items():
        merged[i] = add(merged[i], g) if i in merged else g
    return merged


def _sparse_sum(F: Any, have: Any, new: Any, error: Exception) -> Any:
    # A `try` costs nothing until it fails; a check for sparse gradients would cost every sum.
    from flambeau.sparse._gradient import sparse_sum

    for one, other in ((have, new), (new, have)):
        if hasattr(one, "added"):
            return one.added(other)
    total = sparse_sum(F, have, new)
    if total is NotImplemented:
        raise error
    return total


def _as_tensor(be: BoundBackend, native: Any, dtype: DType) -> Tensor:
    if type(native) is not be.array:
        if hasattr(native, "as_tensor"):
            return native.as_tensor(be)
        native = be.to_array(native)
    if be.dtype_of(native) is not dtype:
        native = be.cast(native, dtype)
    return wrap(be, native, dtype)


def _owns(grad: Tensor) -> bool:
    if grad.is_sparse:
        return False
    return not grad._be.strided or grad._be.backend.owns(grad._a)


def _accumulate(leaf: Tensor, grad: Tensor, owned: bool, create_graph: bool) -> None:
    held = leaf._grad
    if held is None:
        if create_graph or owned:
            leaf._grad = grad
        else:
            plain = type(grad) is Tensor and not grad.is_sparse
            leaf._grad = grad._fresh_copy() if plain else grad.clone()
    elif held.is_sparse and not grad.is_sparse:
        leaf._grad = grad + held
    elif create_graph or held._rg or not (held._be.strided or held.is_sparse):
        leaf._grad = held + grad
    else:
        held += grad


def _run_pre_hooks(node: Node, F: Any, g: Any) -> Any:
    return _run_node_hooks(node, F, _run_tensor_hooks(node, F, g))


def _run_tensor_hooks(node: Node, F: Any, g: Any) -> Any:
    hooks = node._hooks
    assert hooks is not None
    # Of several outputs the tensors' hooks sit on the `Out`s.
    return g if isinstance(g, dict) else _tensor_hooks(hooks, F, g)


def _run_node_hooks(node: Node, F: Any, g: Any) -> Any:
    hooks = node._hooks
    assert hooks is not None
    if isinstance(g, dict):  # of several outputs pre-hooks see the tuple of all
        if not hooks.pre:
            return g
        seen = tuple(None if i not in g else _out(F, g[i]) for i in range(max(g) + 1))
        for hook in tuple(hooks.pre.values()):
            if (new := hook(seen)) is not None:
                seen = new if isinstance(new, tuple) else (new,)
        return {i: _in(F, t) for i, t in enumerate(seen) if t is not None}
    for hook in tuple(hooks.pre.values()):
        if (new := hook((_out(F, g),))) is not None:
            g = _in(F, new[0] if isinstance(new, tuple) else new)
    return g


def _tensor_hooks(hooks: Hooks, F: BoundBackend, g: object) -> Any:
    if hooks.tensor:
        grad = _out(F, g)
        for hook in tuple(hooks.tensor.values()):
            grad = _checked_hook(hook, grad)
        g = _in(F, grad)
    if hooks.retain is not None and (tensor := hooks.retain()) is not None:
        grad = _out(F, g)
        held = tensor._grad
        tensor._grad = grad if held is None else held + grad
    return g


def _checked_hook(hook: Callable[[Any], Any], grad: Tensor) -> Tensor:
    try:
        new = hook(grad)
    except Exception as error:
        error.add_note(f"raised by the gradient hook {getattr(hook, '__qualname__', hook)!r}")
        raise
    if new is None:
        return grad
    if not isinstance(new, Tensor):
        raise TypeError(
            f"gradient hook {getattr(hook, '__qualname__', hook)!r} must return a Tensor or None, "
            f"got {type(new).__name__}"
        )
    if new.shape != grad.shape:
        raise RuntimeError(
            f"hook {getattr(hook, '__qualname__', hook)!r} has changed the size of value: "
            f"expected {list(grad.shape)}, got {list(new.shape)}"
        )
    if new.dtype is not grad.dtype:
        raise RuntimeError(
            f"hook {getattr(hook, '__qualname__', hook)!r} has changed the type of value (was "
            f"{grad.type()} got {new.type()})"
        )
    return new


def _run_leaf_hooks(leaf: Tensor, grad: Tensor) -> tuple[Tensor, bool]:
    before = grad
    for hook in tuple(leaf._hooks.tensor.values()):
        grad = _checked_hook(hook, grad)
    # A hook may have kept the gradient that it saw.
    return grad, bool(leaf._hooks.tensor) or grad is not before


def _run_post_hooks(node: Node, F: Any, parts: Any, g: Any, edges: tuple[Any, ...]) -> Any:
    # What a formula finds beside the gradients of `edges` hooks do not see.
    assert node._hooks is not None
    if not node._hooks.post:
        return parts
    outputs: tuple[Any, ...]
    if isinstance(g, dict):
        outputs = tuple(None if i not in g else _out(F, g[i]) for i in range(max(g) + 1))
    else:
        outputs = (_out(F, g),)
    ins = tuple(
        None if p is None or e is None else _out(F, p) for e, p in zip(edges, parts, strict=True)
    )
    for hook in tuple(node._hooks.post.values()):
        if (new := hook(ins, outputs)) is not None:
            new = new if isinstance(new, tuple) else (new,)
            if len(new) != len(ins):
                raise RuntimeError(
                    f"hook {getattr(hook, '__qualname__', hook)!r} has returned an incorrect "
                    f"number of values (got {len(new)}, but expected {len(ins)})"
                )
            if any(n is not None and had is None for n, had in zip(new, ins, strict=True)):
                raise RuntimeError(
                    f"hook {getattr(hook, '__qualname__', hook)!r} can't replace a None gradient "
                    "with a non-None value"
                )
            ins = new
    return tuple(None if t is None else _in(F, t) for t in ins)


def _conjugate(grad: Tensor) -> Tensor:
    """The gradient that users see for one that travels in the graph, and the reverse."""
    from flambeau.ops.pointwise.complexes import conj

    return conj(grad)


def _out(F: Any, g: Any) -> Tensor:
    if F.native:
        g = F.fresh(g)
        if type(g) is not F.array:
            return g.as_tensor(F)
        g = wrap(F, g, F.dtype_of(g))
    return _conjugate(g) if g.dtype.is_complex else g


def _in(F: BoundBackend | TensorNamespace, t: Tensor) -> Any:
    if t.dtype.is_complex:
        t = _conjugate(t)
    return t._a if F.native else t
