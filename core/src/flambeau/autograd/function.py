"""Custom differentiable functions: `Function` and its context."""

from __future__ import annotations

import functools
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from flambeau._autograd import engine
from flambeau._autograd.engine import _in, _out
from flambeau._autograd.modes import recording, set_recording
from flambeau._autograd.node import Edges, Node, Out, at_save, next_seq
from flambeau._dispatch import dispatch as _dispatch
from flambeau._dispatch.arguments import broadcast_shapes
from flambeau._dispatch.dispatch import new
from flambeau._dispatch.warning import warn
from flambeau._memory.states import VIEW
from flambeau._memory.views import edge, make_view, storage_of
from flambeau._tensor.tensor import Tensor
from flambeau._writes import inplace as _inplace
from flambeau.ops.creation.creation import filled
from flambeau.ops.declaration.namespace import TENSORS

if TYPE_CHECKING:
    from flambeau._dispatch.bound import BoundBackend
    from flambeau._types.device import device as Device
    from flambeau._types.dtype import dtype as DType
    from flambeau.ops.declaration.formulas import Formulas


class _Result(NamedTuple):
    """Facts of one tensor that forward returned; not the tensor, which holds the node."""

    place: int
    shape: tuple[int, ...]
    dtype: DType
    device: Device


class FunctionCtx(Node):
    """The recorded call of a `Function`; it is the context that forward and backward receive.

    Programs keep attributes of their own in it, private ones too: ours begin with ``_call_``.

    Every `Function` has a subclass of its own, named ``<function>Backward``.

    Attributes:
        needs_input_grad: per argument of forward, whether its gradient is wanted.
    """

    __slots__ = ("__dict__",)

    title = "FunctionCtx"
    _call_function: type[Function]
    needs_input_grad: tuple[bool, ...] = ()
    _call_to_save: tuple[Any, ...] = ()
    _call_to_show: tuple[Any, ...] = ()
    _call_dirty: tuple[Tensor, ...] = ()
    _call_no_grad_outputs: tuple[Tensor, ...] = ()
    _call_materialize = True
    _call_results: tuple[_Result, ...] = ()  # all tensors
    _call_sources: tuple[int, ...] = ()  # places of those that have a gradient
    _call_arity = 0  # of what forward returned
    _call_inputs: tuple[Any, ...] = ()
    _call_several = False  # more than one source: gradients arrive as {place: gradient}
    _call_context: FunctionCtx | None = None  # what backward receives, where that is another object
    _call_recorded: Callable[[], FunctionCtx | None] | None = (
        None  # and from there the node, weakly
    )

    def __getattr__(self, name: str) -> Any:
        if self._call_context is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._call_context, name)

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep inputs or outputs for backward; writes to them are detected there.

        Raises:
            TypeError: something that is neither a tensor nor None.
        """
        for i, t in enumerate(tensors):
            if t is not None and not isinstance(t, Tensor):
                raise TypeError(
                    f"save_for_backward can only save variables, but argument {i} is of type "
                    f"{type(t).__name__}; keep other values as attributes of ctx"
                )
        self._call_to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep inputs or outputs for `Function.jvp`, which finds them in `saved_tensors`."""
        self._call_to_show = tensors

    def mark_dirty(self, *args: Tensor) -> None:
        """Declare inputs that forward wrote to; they must be returned.

        Raises:
            RuntimeError: something that is no tensor.
        """
        for i, t in enumerate(args):
            if not isinstance(t, Tensor):
                raise RuntimeError(
                    f"mark_dirty can only accept variables, but argument {i} is of type "
                    f"{type(t).__name__}"
                )
        self._call_dirty = args

    def mark_non_differentiable(self, *args: Tensor) -> None:
        """Declare outputs that have no gradient."""
        self._call_no_grad_outputs = args

    def set_materialize_grads(self, value: bool) -> None:
        """Whether absent gradients reach backward as zeros (the default) or as None."""
        self._call_materialize = value

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors of `save_for_backward`.

        Raises:
            RuntimeError: they were freed, or written to since.
        """
        node = self if self._call_recorded is None else self._call_recorded()
        if node is None or node.saved is None:
            raise (node or new(FunctionCtx)).freed()
        found = []
        for entry in node.saved:
            if entry is None:
                found.append(None)
                continue
            found.append(entry.get(node))
        return tuple(found)

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """Old name of `saved_tensors`."""
        warnings.warn(
            "'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2
        )
        return self.saved_tensors

    def apply(self, F: Any, g: Any, edges: Edges = None) -> tuple[Any, ...]:
        if self.saved is None:
            raise self.freed()
        grads = self._call_output_grads(F, g)
        backward = self._call_function.backward
        if backward is Function.backward:
            vjp = getattr(self._call_function, "vjp", Function.backward)
            if vjp is Function.backward:
                raise NotImplementedError(
                    "You must implement either the backward or vjp method for your custom autograd."
                    f"Function {self._call_function.__name__} to use it with backward mode AD."
                )
            backward = vjp
        before = recording()
        try:
            set_recording(not F.native)
            found = backward(self._call_context or self, *grads)
        finally:
            set_recording(before)
        return self._call_input_grads(F, found)

    def homes(self) -> tuple[Any, ...]:
        return tuple([be for _, _, _, be in self._call_inputs])

    def _call_output_grads(self, F: Formulas, g: Any) -> list[Any]:
        parts = g if self._call_several else {self._call_sources[0]: g}
        grads: list[Any] = [None] * self._call_arity
        for place, shape, dtype, device in self._call_results:
            if place in parts:
                grads[place] = _out(F, parts[place])
            elif self._call_materialize:
                grads[place] = filled(shape, 0, dtype, device)
        return grads

    def _call_input_grads(self, F: Any, found: object | None) -> tuple[Any, ...]:
        given = list(found) if isinstance(found, tuple) else [found]
        count = len(self.needs_input_grad)
        if len(given) > count and all(x is None for x in given[count:]):
            given = given[:count]
        if len(given) != count:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected "
                f"{count}, got {len(given)})"
            )
        tensors = {i for i, _, _, _ in self._call_inputs}
        for i, part in enumerate(given):
            if part is not None and i not in tensors:
                raise RuntimeError(
                    f"function {self.name()} returned a gradient different than None at position "
                    f"{i + 1}, but the corresponding forward input was not a Variable"
                )
        parts: list[Any] = []
        for place, (i, shape, dtype, be) in enumerate(self._call_inputs):
            part = given[i]
            if part is not None and not isinstance(part, Tensor):
                raise RuntimeError(
                    f"function {self.name()} returned an invalid gradient at index {i}: expected "
                    f"Variable or None (got {type(part).__name__})"
                )
            if part is None or self.edges[place] is None:
                parts.append(None)
                continue
            if part.is_sparse:
                part = self._of_sparse(F, part, shape, dtype, be, self.edges[place])
                if not isinstance(part, Tensor):
                    parts.append(part)
                    continue
            if tuple(part._a.shape) != shape:
                try:
                    part = _sum_to(part, shape)
                except RuntimeError as error:
                    raise RuntimeError(
                        f"Function {self.name()} returned an invalid gradient at index {i} - got "
                        f"{list(part._a.shape)} but expected shape compatible with {list(shape)}"
                    ) from error
            if part._be is not be and F.native and hasattr(be, "level"):
                part = be.level.lift(part)
            if part._be is not be and part.device != be.device and not part.is_sparse:
                raise RuntimeError(
                    f"Function {self.name()} returned an invalid gradient at index {i} - expected "
                    f"device {be.device} but got {part.device}"
                )
            if part.dtype is not dtype:
                part = part.to(dtype)
            parts.append(_in(F, part))
        return tuple(parts)

    def _of_sparse(
        self, F: Formulas, part: Any, shape: Any, dtype: DType, be: BoundBackend, target: object
    ) -> Any:
        """A sparse gradient as the pass sends it on: sparse to a leaf, dense to another op."""
        # Sparse tensors are built on this module's tensors, and few gradients are sparse.
        from flambeau.sparse._gradient import SparseGradient

        if part.device != be.device or tuple(part.shape) != shape or isinstance(target, Node):
            return part.to_dense()
        part = part if part.dtype is dtype else part.to(dtype)
        if not F.native:
            return part
        return SparseGradient(part._where._a, part._stored._a, shape)


def _sum_to(t: Tensor, shape: tuple[int, ...]) -> Tensor:
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

    def get(self, node: FunctionCtx) -> Tensor:
        if self.storage.version != self.version:
            raise node.stale("output", tuple(self.native.shape), self.storage.version, self.version)
        t = new(Tensor)
        t._a, t._be, t.dtype, t._rg = self.native, self.storage._be, self.dtype, False
        return self.with_history(node, t)

    def with_history(self, node: FunctionCtx, t: Tensor) -> Tensor:
        """A fresh tensor of these values as the output of the node."""
        t._rg = self.differentiable
        if self.differentiable:
            t._fn = Out(node, self.index) if node._call_several else node
        return t


class Function:
    """An operation with its own backward.

    Subclass it with static methods ``forward(ctx, *args)`` and ``backward(ctx, *grads)`` and call
    ``apply``.  `forward` runs without recording; its arguments may be anything, its tensor results
    are given the history of this call.  ``ctx.save_for_backward`` keeps tensors,
    ``ctx.needs_input_grad`` tells which gradients are wanted.  With a separate
    ``setup_context(ctx, inputs, output)``, forward takes no context.

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

    _node: ClassVar[type[FunctionCtx]]
    generate_vmap_rule: ClassVar[bool] = False
    _of_ops: ClassVar[bool] = False  # a trace takes in what forward calls; its gradient is right

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        title = cls.__name__ + "Backward"
        space = {"_call_function": cls, "title": title, "__slots__": ()}
        cls._node = type(title, (FunctionCtx,), space)

    def __init__(self, *args: object, **kwargs: object) -> None:
        warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all "
            "static, so you should invoke them on the class itself. Instantiating an autograd "
            "function will raise an error in a future version of PyTorch.",
            DeprecationWarning,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse the call of an object, which was the form before static methods.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use "
            "new-style autograd function with static forward method. (Example: "
            "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the result; with `setup_context` there is no context among the arguments."""
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
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD."
        )

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """The tangents of the results from those of the arguments, in forward mode.

        Without it, forward mode takes the derivative of `backward`.
        """
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with "
            "forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *args: Any) -> Any:
        """The results for a batch of arguments, and where the batch is in them.

        `info` has ``batch_size`` and ``randomness``; `in_dims` says where the batch is in each
        argument, None for nowhere.  With ``generate_vmap_rule = True`` there is no need for it.
        """
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap static method "
            "or set generate_vmap_rule=True"
        )

    @classmethod
    def apply(cls, *args: object, **kwargs: object) -> Any:
        """Run forward on `args` and record the call if a gradient may be needed."""
        if noted is not None and not kwargs and (found := noted(cls, args)) is not NotImplemented:
            return found
        if applied is not None and (found := applied(cls, args)) is not NotImplemented:
            return found
        node, edges, given, record = _node_of(cls, args)
        before = recording()
        try:
            set_recording(False)
            if cls.setup_context is Function.setup_context:
                result = cls.forward(node, *args, **kwargs)
            else:
                result = cls.forward(*args, **kwargs)
                cls.setup_context(node, args, result)
        finally:
            set_recording(before)
        node = _without_names_of_others(node, edges)
        outputs = result if isinstance(result, tuple) else (result,)
        finished = _finish(node, given, outputs, record)
        if _dispatch.modes and record:
            _dispatch.after_record(node, finished)
        return finished if isinstance(result, tuple) else finished[0]


# `apply` with tensors of transforms among the arguments, or NotImplemented if there are none;
# `flambeau._transforms` sets it.
applied: Callable[[type[Function], tuple[Any, ...]], Any] | None = None
# The same of a trace that keeps the call as a whole; set while any thread traces.  Programs keep
# `apply` under names of their own, so replacing the method would not be enough.
noted: Callable[[type[Function], tuple[Any, ...]], Any] | None = None


def recorded(cls: type[Function], args: tuple[Any, ...], result: object) -> Any:
    """The results of a call on `args`, computed already, with the history of this call."""
    node, edges, given, record = _node_of(cls, args)
    before = recording()
    try:
        set_recording(False)
        cls.setup_context(node, args, result)
    finally:
        set_recording(before)
    node = _without_names_of_others(node, edges)
    outputs = result if isinstance(result, tuple) else (result,)
    finished = _finish(node, given, outputs, record)
    return finished if isinstance(result, tuple) else finished[0]


def _node_of(
    cls: type[Function], args: tuple[Any, ...]
) -> tuple[FunctionCtx, tuple[Any, ...], set[int], bool]:
    """The node of a call on `args`, its edges, the ids of the tensors, and if it is recorded.

    Edges are taken before forward, which may write to its inputs.
    """
    node = new(cls._node)
    node._hooks = None
    node.saved, node.seq = (), 0
    tensors: list[Tensor] = []
    inputs: list[Any] = []
    needs: list[bool] = []
    for i, a in enumerate(args):
        needed = False
        if isinstance(a, Tensor):
            tensors.append(a)
            inputs.append((i, tuple(a._a.shape), a.dtype, a._be))
            needed = a.dtype.fp and a.requires_grad
        needs.append(needed)
    node.needs_input_grad = tuple(needs)
    record = recording() and True in needs
    node.edges = edges = tuple(
        [edge(a) if record and a.dtype.fp and a._rg else None for a in tensors]
    )
    node._call_inputs = tuple(inputs)
    return node, edges, {id(a) for a in tensors}, record


_OWN = frozenset(name for name in dir(FunctionCtx) if not name.startswith("_")) - {
    "needs_input_grad"
}


def _without_names_of_others(node: FunctionCtx, edges: tuple[Any, ...]) -> FunctionCtx:
    """The node to record: `node`, or one beside it if the program uses its names in the context.

    ``ctx.name``, ``ctx.seq`` and ``ctx.saved`` are the program's; the graph has those names too.
    """
    own = node.saved == () and node.edges is edges and node.seq == 0 and node._hooks is None
    if own and _OWN.isdisjoint(vars(node)):
        return node
    beside = new(type(node))
    beside._hooks = None
    beside.saved, beside.edges = (), edges
    for name in (
        "needs_input_grad",
        "_call_inputs",
        "_call_to_save",
        "_call_dirty",
        "_call_no_grad_outputs",
    ):
        setattr(beside, name, getattr(node, name))
    beside._call_materialize = node._call_materialize
    # The context must not keep the outputs alive, nor the node that keeps it.
    node._call_to_save = node._call_dirty = node._call_no_grad_outputs = ()
    node._call_recorded, beside._call_context = weakref.ref(beside), node
    return beside


def _finish(
    node: FunctionCtx, given: set[int], outputs: tuple[Any, ...], record: bool
) -> tuple[Any, ...]:
    """Give the outputs their history and resolve what was saved; `given` has the inputs' ids."""
    dirty = {id(t) for t in node._call_dirty}
    no_grad = {id(t) for t in node._call_no_grad_outputs}
    _check_dirty(node._call_dirty, outputs, record)
    final = list(outputs)
    places: dict[int, int] = {}
    tensors: list[int] = []
    results: list[_Result] = []
    sources: list[int] = []
    for i, o in enumerate(outputs):
        if not isinstance(o, Tensor):
            continue
        tensors.append(i)
        own = id(o)
        places[own] = i
        if own in given and own not in dirty:
            # An input returned as it is becomes a view of itself, with a history of its own.
            final[i] = _alias(o)
        results.append(_Result(i, tuple(o._a.shape), o.dtype, o.device))
        if o.dtype.fp and own not in no_grad:
            sources.append(i)
    node._call_arity = len(outputs)
    node._call_results, node._call_sources = tuple(results), tuple(sources)
    node._call_several = len(node._call_sources) > 1
    if node._call_several:
        vars(node)["n_out"] = 2  # gradients arrive by their place
    node.seq = next_seq()
    if record:
        entries: list[Any] = []
        for t in node._call_to_save:
            if t is None:
                entries.append(None)
            elif id(t) in places and (id(t) not in given or id(t) in dirty):
                i = places[id(t)]
                entries.append(_SavedOutput(t, i, i in node._call_sources))
            else:
                entries.append(_SavedInput(t))
        node.saved = tuple(entries)
        if not engine.several_devices:
            homes = *node.homes(), *[final[i]._be for i in tensors]
            if homes.count(homes[0]) < len(homes):
                engine.several_devices = True
    for i in tensors:
        if record and i in node._call_sources:
            _attach(final[i], node, i, id(outputs[i]) in dirty)
        elif id(outputs[i]) not in dirty and final[i].requires_grad:
            # Recorded inside forward by enable_grad(): the history is the function's own affair.
            final[i]._fn, final[i]._rg = None, False
    # The context must not keep the outputs alive: they hold the node.
    node._call_to_save = node._call_dirty = node._call_no_grad_outputs = ()
    return tuple(final)


def _check_dirty(dirty: Sequence[Tensor], outputs: Sequence[Any], record: bool) -> None:
    for t in dirty:
        storage_of(t).version += 1
        if not record:
            continue
        if not any(o is t for o in outputs):
            raise RuntimeError(
                "Some elements marked as dirty during the forward method were not returned as "
                "output. The inputs that are modified inplace must all be outputs of the Function."
            )
        if t._base is None and t.is_leaf and t.requires_grad:
            raise RuntimeError(
                "a leaf Variable that requires grad has been used in an in-place operation."
            )
        _inplace.check_recorded_write(t)


def _attach(t: Tensor, node: FunctionCtx, place: int, dirty: bool) -> None:
    fn = Out(node, place) if node._call_several else node
    if t._base is not None and dirty:
        _inplace.adopt(t, fn)
        return
    t._fn, t._rg = fn, True
    if t._base is not None:
        # A view of an input: writes through it would bypass the function's own backward.
        t._rg, t._seen, t._made = VIEW, t._version, node.name()


def _alias(t: Tensor) -> Tensor:
    items = tuple(slice(0, n, 1) for n in t._a.shape)
    return make_view(t, "slice", (items,), t._be.slice(t._a, items), "Alias")


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of a backward that cannot be differentiated itself; a second backward raises.

    >>> import flambeau as fb
    >>> from flambeau.autograd.function import once_differentiable
    >>> once_differentiable(lambda ctx, g: g).__name__
    '<lambda>'
    """

    @functools.wraps(fn)
    def wrapper(ctx: object, *args: object) -> object:
        before = recording()
        try:
            set_recording(False)
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
    def forward(ctx: object, t: Tensor) -> Tensor:
        return t.clone()

    @staticmethod
    def backward(ctx: object, *grads: object) -> Any:
        raise RuntimeError(
            "trying to differentiate twice a function that was marked with @once_differentiable"
        )
