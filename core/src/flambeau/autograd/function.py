"""Custom differentiable functions: `Function` and its context."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flambeau import _dispatch
from flambeau._dispatch import new
from flambeau._modes import recording, set_recording
from flambeau._tensor import Tensor
from flambeau._views import edge, make_view, storage_of
from flambeau.autograd.node import Node, Out, at_save, next_seq


class FunctionNode(Node):
    """The recorded call of a `Function`; it is the context that forward and backward receive.

    Attributes:
        needs_input_grad: per argument of forward, whether its gradient is wanted.
    """

    __slots__ = ("__dict__",)

    function: type[Function]
    needs_input_grad: tuple[bool, ...] = ()
    _to_save: tuple[Any, ...] = ()
    _dirty: tuple[Tensor, ...] = ()
    _no_grad_outputs: tuple[Tensor, ...] = ()
    _materialize = True
    _outputs: tuple[Any, ...] = ()

    # What forward may call.

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep inputs or outputs for backward; writes to them are detected there.

        Raises:
            TypeError: something that is neither a tensor nor None.
        """
        for t in tensors:
            if t is not None and not isinstance(t, Tensor):
                raise TypeError(
                    f"save_for_backward can only save variables, but argument is of type "
                    f"{type(t).__name__}"
                )
        self._to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Accepted for compatibility; forward-mode differentiation is not supported."""

    def mark_dirty(self, *args: Tensor) -> None:
        """Declare inputs that forward wrote to; they must be returned."""
        self._dirty = args

    def mark_non_differentiable(self, *args: Tensor) -> None:
        """Declare outputs that have no gradient."""
        self._no_grad_outputs = args

    def set_materialize_grads(self, value: bool) -> None:
        """Whether absent gradients reach backward as zeros (the default) or as None."""
        self._materialize = value

    # What backward may read.

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors of `save_for_backward`.

        Raises:
            RuntimeError: they were freed, or written to since.
        """
        if self.saved is None:
            raise self.freed()
        found = []
        for entry in self.saved:
            if entry is None:
                found.append(None)
                continue
            found.append(entry.get(self))
        return tuple(found)

    saved_variables = saved_tensors

    @property
    def n_out(self) -> int:  # type: ignore[override]
        """The number of tensors that forward returned."""
        return 2 if self._several else 1

    _several = False

    def name(self) -> str:
        return self.function.__name__ + "Backward"

    def apply(self, F: Any, g: Any) -> tuple[Any, ...]:  # noqa: N803
        if self.saved is None:
            raise self.freed()
        grads = self._output_grads(F, g)
        backward = self.function.backward
        if backward is Function.backward:
            vjp = getattr(self.function, "vjp", Function.backward)
            if vjp is Function.backward:
                raise NotImplementedError(
                    f"You must implement either the backward or vjp method for your custom "
                    f"autograd.Function {self.function.__name__} to use it with backward mode AD."
                )
            backward = vjp
        before = recording()
        set_recording(not F.native)
        try:
            found = backward(self, *grads)
        finally:
            set_recording(before)
        return self._input_grads(F, found)

    def _output_grads(self, F: Any, g: Any) -> list[Any]:  # noqa: N803
        from flambeau.autograd.engine import _out
        from flambeau.ops.creation import filled

        parts = g if type(g) is dict else {0: g}
        if not self._several:
            parts = {self._outputs[0][0]: g}
        grads: list[Any] = [None] * self._arity
        for place, shape, dtype, device in self._outputs:
            if place in parts:
                grads[place] = _out(F, parts[place])
            elif self._materialize:
                grads[place] = filled(shape, 0, dtype, device)
        return grads

    def _input_grads(self, F: Any, found: Any) -> tuple[Any, ...]:  # noqa: N803
        given = list(found) if isinstance(found, (tuple, list)) else [found]
        count = len(self.needs_input_grad)
        if len(given) > count and all(x is None for x in given[count:]):
            given = given[:count]
        if len(given) != count:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected {count}, "
                f"got {len(given)})"
            )
        parts: list[Any] = []
        for place, (i, shape, dtype, be) in enumerate(self._inputs):
            part = given[i]
            if part is None or self.edges[place] is None:
                parts.append(None)
                continue
            if not isinstance(part, Tensor):
                raise TypeError(
                    f"function {self.name()} returned {type(part).__name__} as the gradient at index {i}; "
                    "expected a Tensor or None"
                )
            if tuple(part._a.shape) != shape:
                try:
                    part = F_sum_to(part, shape)
                except RuntimeError as error:
                    raise RuntimeError(
                        f"Function {self.name()} returned an invalid gradient at index {i} - got "
                        f"{list(part._a.shape)} but expected shape compatible with {list(shape)}"
                    ) from error
            if part._be is not be:
                raise RuntimeError(
                    f"Function {self.name()} returned an invalid gradient at index {i} - expected device "
                    f"{be.device} but got {part.device}"
                )
            if part.dtype is not dtype:
                part = part.to(dtype)
            parts.append(part._a if F.native else part)
        return tuple(parts)


def F_sum_to(t: Tensor, shape: tuple[int, ...]) -> Tensor:  # noqa: N802
    """`t` summed to a shape that broadcasts to its own.

    Raises:
        RuntimeError: `shape` does not broadcast to that of `t`.
    """
    from flambeau.ops._namespace import TENSORS
    from flambeau.ops._rules import broadcast_shapes

    have = tuple(t._a.shape)
    if broadcast_shapes(have, shape) != have:
        raise RuntimeError(f"{shape} does not broadcast to {have}")
    return TENSORS.sum_to(t, shape)


class _SavedInput:
    __slots__ = ("native", "tensor", "version")

    def __init__(self, t: Tensor) -> None:
        self.tensor, self.native, self.version = t, t._a, t._version

    def get(self, node: Node) -> Tensor:
        found = self.tensor._version
        if found != self.version:
            raise node.stale("input", tuple(self.native.shape), found, self.version)
        return at_save(self.tensor, self.native)


class _SavedOutput:
    # Array, storage and output number, not the tensor: it would keep its own node alive.
    __slots__ = ("differentiable", "dtype", "index", "native", "storage", "version")

    def __init__(self, t: Tensor, index: int, differentiable: bool) -> None:
        self.native, self.dtype, self.index = t._a, t.dtype, index
        self.storage = storage_of(t)
        self.version = self.storage.version
        self.differentiable = differentiable

    def get(self, node: FunctionNode) -> Tensor:
        if self.storage.version != self.version:
            raise node.stale("output", tuple(self.native.shape), self.storage.version, self.version)
        t = new(Tensor)
        t._a, t._be, t.dtype = self.native, self.storage._be, self.dtype
        t._rg = self.differentiable
        if self.differentiable:
            t._fn = Out(node, self.index) if node._several else node
        return t


class Function:
    """An operation with its own backward.

    Subclass it with static methods ``forward(ctx, *args)`` and ``backward(ctx, *grads)`` and call
    ``apply``.  `forward` runs without recording; its arguments may be anything, its tensor results are
    given the history of this call.  ``ctx.save_for_backward`` keeps tensors, ``ctx.needs_input_grad``
    tells which gradients are wanted.  With a separate ``setup_context(ctx, inputs, output)``, forward
    takes no context.

    >>> import flambeau as fb
    >>> class Double(fb.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         return grad * 2
    >>> x = fb.ones(2, requires_grad=True)
    >>> Double.apply(x).sum().backward(); x.grad
    tensor([2., 2.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(
            f"{type(self).__name__} should not be instantiated. Methods on autograd functions are all "
            "static, so you should invoke them on the class itself: "
            f"{type(self).__name__}.apply(...)."
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the result: ``forward(ctx, *args)``, or ``forward(*args)`` with `setup_context`."""
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Fill the context after a forward that takes none."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """The gradient of each argument of forward from the gradients of its results."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function "
            "to use it with backward mode AD."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward on `args` and record the call if a gradient may be needed."""
        tensors = [(i, a) for i, a in enumerate(args) if isinstance(a, Tensor)]
        node = new(FunctionNode)
        node._hooks = None
        node.function = cls
        node.needs_input_grad = tuple(
            isinstance(a, Tensor) and a.dtype.fp and a.requires_grad for a in args
        )
        record = recording() and any(node.needs_input_grad)
        # Edges are taken before forward, which may write to its inputs.
        node.edges = tuple(
            edge(a) if record and a.dtype.fp and a._rg else None for _, a in tensors
        )
        node._inputs = tuple((i, tuple(a._a.shape), a.dtype, a._be) for i, a in tensors)
        before = recording()
        set_recording(False)
        try:
            if cls.setup_context is Function.setup_context:
                result = cls.forward(node, *args, **kwargs)
            else:
                result = cls.forward(*args, **kwargs)
                cls.setup_context(node, args, result)
        finally:
            set_recording(before)
        outputs = result if isinstance(result, tuple) else (result,)
        finished = _finish(node, [a for _, a in tensors], outputs, record)
        if _dispatch.modes and record:
            _dispatch.after_record(node)
        return finished if isinstance(result, tuple) else finished[0]


def _finish(
    node: FunctionNode, inputs: Sequence[Tensor], outputs: tuple[Any, ...], record: bool
) -> tuple[Any, ...]:
    """Give the outputs their history and resolve what was saved."""
    dirty = {id(t) for t in node._dirty}
    no_grad = {id(t) for t in node._no_grad_outputs}
    for t in node._dirty:
        storage_of(t).version += 1
        if record and t.is_leaf and t.requires_grad:
            raise RuntimeError(
                "a leaf Variable that requires grad has been used in an in-place operation."
            )
    final = list(outputs)
    places = [i for i, o in enumerate(outputs) if isinstance(o, Tensor)]
    given = {id(t) for t in inputs}
    for i in places:
        out = outputs[i]
        if id(out) in given and id(out) not in dirty:
            # An input returned as it is becomes a view of itself, with a history of its own.
            final[i] = _alias(out)
    node._several = len([i for i in places if final[i].dtype.fp and id(outputs[i]) not in no_grad]) > 1
    node._arity = len(outputs)
    node._outputs = tuple(
        (i, tuple(final[i]._a.shape), final[i].dtype, final[i].device)
        for i in places
        if final[i].dtype.fp and id(outputs[i]) not in no_grad
    )
    node.saved = ()
    node.seq = next_seq()
    positions = {id(o): i for i, o in enumerate(outputs) if isinstance(o, Tensor)}
    if record:
        entries: list[Any] = []
        for t in node._to_save:
            if t is None:
                entries.append(None)
            elif id(t) in positions and (id(t) not in given or id(t) in dirty):
                i = positions[id(t)]
                entries.append(_SavedOutput(t, i, t.dtype.fp and id(t) not in no_grad))
            else:
                entries.append(_SavedInput(t))
        node.saved = tuple(entries)
        for i, _, _, _ in node._outputs:
            _attach(final[i], node, i, dirty)
    else:
        for i in places:
            if id(outputs[i]) in dirty:
                continue
            final[i]._rg = final[i]._rg if id(outputs[i]) in given else False
    # The context must not keep the outputs alive: they hold the node.
    node._to_save = node._dirty = node._no_grad_outputs = ()
    return tuple(final)


def _attach(t: Tensor, node: FunctionNode, index: int, dirty: set[int]) -> None:
    from flambeau import _inplace

    fn = Out(node, index) if node._several else node
    if t._base is not None and id(t) in dirty:
        _inplace.adopt(t, fn)
        return
    t._base = t._view = None
    t._fn, t._rg = fn, True


def _alias(t: Tensor) -> Tensor:
    items = tuple(slice(0, n, 1) for n in t._a.shape)
    out = make_view(t, "slice", (items,), t._be.slice(t._a, items), "Alias")  # type: ignore[attr-defined]
    out._base = out._view = None
    out._rg = False
    return out


def once_differentiable(fn: Any) -> Any:
    """Decorator of a backward that cannot be differentiated itself; a second backward raises.

    >>> import flambeau as fb
    >>> from flambeau.autograd.function import once_differentiable
    >>> once_differentiable(lambda ctx, g: g).__name__
    '<lambda>'
    """
    import functools

    @functools.wraps(fn)
    def wrapper(ctx: Any, *args: Any) -> Any:
        before = recording()
        set_recording(False)
        try:
            found = fn(ctx, *args)
        finally:
            set_recording(before)
        if not before or not any(isinstance(a, Tensor) and a.requires_grad for a in args):
            return found
        many = found if isinstance(found, tuple) else (found,)
        blocked = tuple(
            _Refuse.apply(t.detach().requires_grad_()) if isinstance(t, Tensor) else t for t in many
        )
        return blocked if isinstance(found, tuple) else blocked[0]

    return wrapper


class _Refuse(Function):
    """The end of a graph that cannot be differentiated further."""

    @staticmethod
    def forward(ctx: Any, t: Tensor) -> Tensor:
        return t.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")
