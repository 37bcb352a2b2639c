"""Checkpoints: parts of a model that are computed again in backward instead of being kept.

>>> import flambeau as fb
>>> from flambeau.utils.checkpoint import checkpoint
>>> x = fb.tensor([1.0, 2.0], requires_grad=True)
>>> checkpoint(lambda t: (t * t).exp().sum(), x, use_reentrant=False).backward()
>>> x.grad
tensor([  5.4366, 218.3926])
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

import flambeau as fb
from flambeau._autograd.engine import adds_to_all_leaves
from flambeau._autograd.journal import Journal
from flambeau._autograd.modes import enable_grad, recording
from flambeau._autograd.node import Node, next_seq
from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._random.generator import default_generators
from flambeau._tensor.tensor import Tensor
from flambeau.autograd import Function, backward
from flambeau.random import fork_rng
from flambeau.utils._selective_checkpoint import (
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
)

__all__ = [
    "CheckpointError",
    "CheckpointPolicy",
    "SelectiveCheckpointContext",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]

ContextPair = tuple[AbstractContextManager[Any], AbstractContextManager[Any]]


class CheckpointError(RuntimeError):
    """The second run of a checkpointed function did other things than the first."""


def checkpoint(
    function: Callable[..., Any],
    *args: object,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], ContextPair] | None = None,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    preserve_rng_state: bool = True,
    **kwargs: object,
) -> Any:
    """The result of ``function(*args, **kwargs)``, whose intermediate values are not kept.

    Backward calls `function` again and takes the values from this second run: less memory for more
    time.  The function must do the same both times.

    The re-entrant form records nothing in the first run and calls backward within backward.  It
    takes no keyword arguments, gives a result with a gradient only if an argument has one, and is
    for ``.backward()`` alone, without ``inputs``.  The other form has none of these limits; its
    values live until the first run ends.

    Args:
        function: what to compute.
        *args: its arguments.
        use_reentrant: which form; True, with a warning, if not given.
        context_fn: gives two context managers, around the first and the second run; not for the
            re-entrant form.
        determinism_check: "default" compares shapes, dtypes and devices of both results, "none"
            does not.
        debug: accepted; errors name the operation in any case.
        early_stop: accepted; the second run goes to its end.
        preserve_rng_state: let the second run draw the random numbers of the first.
        **kwargs: keyword arguments of `function`; not for the re-entrant form.

    Raises:
        ValueError: an unknown keyword argument or `determinism_check`, or `context_fn` or `debug`
            with the re-entrant form.
        RuntimeError: in backward by the re-entrant form, which is for chosen inputs.
        CheckpointError: in backward, where the second run did not repeat the first.

    >>> import flambeau as fb
    >>> layer = fb.nn.Linear(2, 2)
    >>> x = fb.ones(1, 2)
    >>> fb.utils.checkpoint.checkpoint(layer, x, use_reentrant=False).sum().backward()
    >>> layer.weight.grad
    tensor([[1., 1.],
            [1., 1.]])
    """
    if use_reentrant is None:
        use_reentrant = _warn_of_form("checkpoint")
    if determinism_check not in ("default", "none"):
        raise ValueError(
            f"determinism_check should be one of ['default', 'none'] but got {determinism_check}"
        )
    if not use_reentrant:
        compare = determinism_check == "default"
        run = _Run(function, args, kwargs, preserve_rng_state, compare)
        return run.first(*(context_fn or noop_context_fn)())
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if context_fn is not None or debug:
        raise ValueError(
            "Passing `context_fn` or `debug` is only supported when use_reentrant=False."
        )
    return _Reentrant.apply(function, preserve_rng_state, *args)


@takes_as_annotated
def checkpoint_sequential(
    functions: Any,
    segments: int,
    input: object,
    use_reentrant: bool | None = None,
    *,
    preserve_rng_state: bool = True,
    **kwargs: object,
) -> Any:
    """The result of calling `functions` one after the other, in segments that are checkpointed.

    Only the inputs of the segments are kept.  The last segment is computed as usual, since backward
    begins there.

    Args:
        functions: modules or functions of one argument: a list, or a `Sequential`.
        segments: how many parts to make.
        input: the argument of the first function.
        use_reentrant: as in `checkpoint`.
        preserve_rng_state: as in `checkpoint`.

    Raises:
        ValueError: fewer functions than segments, no segment, or an unknown keyword argument.

    >>> import flambeau as fb
    >>> x = fb.tensor([2.0], requires_grad=True)
    >>> squares = [lambda t: t * t] * 3
    >>> y = fb.utils.checkpoint.checkpoint_sequential(squares, 3, x, use_reentrant=False)
    >>> y.backward()
    >>> x.grad
    tensor([1024.])
    """
    if use_reentrant is None:
        use_reentrant = _warn_of_form("checkpoint_sequential")
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    parts = list(functions.children() if hasattr(functions, "children") else functions)
    if not 1 <= segments <= len(parts):
        raise ValueError(
            f"checkpoint_sequential: cannot make {segments} segments of {len(parts)} functions; "
            "`segments` is between 1 and their number"
        )
    size = len(parts) // segments
    last = size * (segments - 1)
    for start in range(0, last, size):
        input = checkpoint(
            _in_sequence(parts[start : start + size]),
            input,
            use_reentrant=use_reentrant,
            preserve_rng_state=preserve_rng_state,
        )
    return _in_sequence(parts[last:])(input)


def _warn_of_form(name: str) -> bool:
    warnings.warn(
        f"{name}: the use_reentrant parameter should be passed explicitly; it is True where it is "
        "not given. use_reentrant=False is recommended: it has fewer limits.",
        UserWarning,
        stacklevel=3,
    )
    return True


def _in_sequence(functions: list[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    def run(value: object) -> object:
        for function in functions:
            value = function(value)
        return value

    return run


def noop_context_fn() -> ContextPair:
    """Two context managers that do nothing: the `context_fn` of `checkpoint` without one."""
    return nullcontext(), nullcontext()


@contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Accepted as `early_stop` of `checkpoint` is: the second run goes to its end in any case."""
    yield


@contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Accepted as `debug` of `checkpoint` is: errors name the operation in any case."""
    yield


def get_device_states(*args: object) -> tuple[list[int], list[Tensor]]:
    """The accelerators that arguments live on, and the states of their generators.

    >>> import flambeau as fb
    >>> fb.utils.checkpoint.get_device_states(fb.ones(2), 3)
    ([], [])
    """
    places = {t.device: None for t in _tensors(args) if t.device.type not in ("cpu", "meta", "ref")}
    found = [(d.index or 0, getattr(fb, d.type).get_rng_state(d)) for d in places]
    return [index for index, _ in found], [state for _, state in found]


@takes_as_annotated
def set_device_states(
    devices: Sequence[int], states: Sequence[Tensor], *, device_type: str | None = None
) -> None:
    """Put the generators of accelerators into states of `get_device_states`.

    Args:
        devices: their indices.
        states: one for each.
        device_type: of the devices; the accelerator's if None.
    """
    accelerator = fb.accelerator.current_accelerator()
    kind = device_type or (accelerator.type if accelerator is not None else None)
    for index, state in zip(devices, states, strict=True):
        if kind is None:
            raise RuntimeError("set_device_states(): there is no accelerator; name a device_type")
        getattr(fb, kind).set_rng_state(state, index)


class _Run:
    """The first run of a function, and what repeats it.

    The first run is recorded as usual.  Then the nodes of its graph lose the values they saved; a
    hook before each of them runs the function again and gives every node what its twin in the new
    graph saved.  A node and its twin have the same place in the order of recording.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        preserve_rng_state: bool,
        compare: bool,
    ) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.compare = compare
        self.random = default_generators.snapshot() if preserve_rng_state else None
        self.versions = [t._version for t in _tensors((args, kwargs))]
        # Nodes hold this object by their hooks: it holds them weakly, or neither would be freed.
        self.emptied: list[tuple[int, weakref.ref[Node], int]] = []  # place, node, number of hook
        self.names: list[str] = []  # of all nodes
        self.facts: list[tuple[Any, ...]] = []
        self.again: AbstractContextManager[Any] = nullcontext()
        self.precision = _precision((args, kwargs))
        self.journal = Journal()

    def first(
        self, context: AbstractContextManager[Any], again: AbstractContextManager[Any]
    ) -> Any:
        """The result of the function; its graph, if there is one, keeps no values."""
        self.again = again
        start = next_seq()
        with context, self.journal.open():
            result = self.function(*self.args, **self.kwargs)
        if not recording():
            return result
        results = list(_tensors(result))
        self.facts = [_facts(t) for t in results]
        nodes = _nodes_since(start, results)
        self.names = [node.name() for node in nodes]
        for place, node in enumerate(nodes):
            if node.saved:
                node.empty()
                handle = node.register_prehook(self._before)
                self.emptied.append((place, weakref.ref(node), handle.id))
        return result

    def _before(self, grads: object) -> None:
        """Fill the nodes, before the first of them is needed."""
        if not self.emptied:
            return
        twins = self._second()
        for place, reference, hook in self.emptied:
            if (node := reference()) is not None:
                node.fill(twins[place])
                node.hooks().pre.pop(hook, None)
        self.emptied = []
        self.args, self.kwargs, self.random = (), {}, None  # the graph must not keep them alive

    def _second(self) -> list[Node]:
        """The nodes of a second run."""
        for t, version in zip(_tensors((self.args, self.kwargs)), self.versions, strict=True):
            if t._version != version:
                raise RuntimeError(
                    "checkpoint: an argument of the checkpointed function, of shape "
                    f"{list(t.shape)}, has been modified by an inplace operation since: it is at "
                    f"version {t._version}; expected version {version} instead. Pass a clone()"
                )
        with (
            fork_rng(enabled=self.random is not None),
            enable_grad(),
            _in(self.precision),
            self.again,
            self.journal.open(follows=True),
        ):
            if self.random is not None:
                default_generators.restore(self.random)
            start = next_seq()
            results = list(_tensors(self.function(*self.args, **self.kwargs)))
        facts = [_facts(t) for t in results]
        if self.compare and facts != self.facts:
            raise CheckpointError(
                "checkpoint: the second run of the function gave tensors of other (shape, dtype, "
                f"device) than the first: {facts}, not {self.facts}. The function must do the same "
                "both times; pass what it depends on as arguments"
            )
        twins = _nodes_since(start, results)
        names = [node.name() for node in twins]
        if names != self.names:
            raise CheckpointError(
                "checkpoint: the second run of the function recorded other operations than the "
                f"first: {_first_difference(names, self.names)}. The function must do the same "
                "both times; pass what it depends on as arguments"
            )
        return twins


class _Reentrant(Function):
    """A function that runs without recording, and with it in a backward within backward."""

    _of_ops = True  # of the function

    @staticmethod
    def forward(ctx: Any, function: Callable[..., Any], preserve: bool, *args: Any) -> Any:
        if not any(isinstance(t, Tensor) and t.requires_grad for t in args):
            warnings.warn(
                "None of the inputs have requires_grad=True. Gradients will be None",
                UserWarning,
                stacklevel=4,
            )
        ctx.run = function
        ctx.random_state = default_generators.snapshot() if preserve else None
        ctx.precision = _precision(args)
        ctx.plain_args = [None if isinstance(a, Tensor) else a for a in args]
        ctx.places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        ctx.save_for_backward(*(args[i] for i in ctx.places))
        return function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        if not adds_to_all_leaves():
            raise RuntimeError(
                "Checkpointing is not compatible with autograd.grad() and inputs= of backward() "
                "where use_reentrant is True: say use_reentrant=False, or call backward() alone"
            )
        args = list(ctx.plain_args)
        for i, saved in zip(ctx.places, ctx.saved_tensors, strict=True):
            args[i] = saved.detach().requires_grad_(saved.requires_grad)
        with (
            fork_rng(enabled=ctx.random_state is not None),
            enable_grad(),
            _in(ctx.precision),
        ):
            if ctx.random_state is not None:
                default_generators.restore(ctx.random_state)
            results = ctx.run(*args)
        results = results if isinstance(results, tuple) else (results,)
        pairs = [
            (result, grad)
            for result, grad in zip(results, grads, strict=True)
            if isinstance(result, Tensor) and result.requires_grad
        ]
        if not pairs:
            raise RuntimeError(
                "none of output has requires_grad=True, this checkpoint() is not necessary"
            )
        backward([result for result, _ in pairs], [grad for _, grad in pairs])
        return None, None, *(a.grad if isinstance(a, Tensor) else None for a in args)


def _tensors(value: object) -> Iterator[Tensor]:
    """The tensors in nested tuples, lists and dicts."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))


_Precision = tuple[str, Any, bool, bool]


def _precision(args: object) -> list[_Precision]:
    """What of mixed precision holds here, for the CPU and for the devices of arguments."""
    types = {"cpu": None, **{t.device.type: None for t in _tensors(args)}}
    return [_precision_of(each) for each in types if fb.amp.is_autocast_available(each)]


def _precision_of(device: str) -> _Precision:
    on, caching = fb.is_autocast_enabled(device), fb.is_autocast_cache_enabled()
    return device, fb.get_autocast_dtype(device), on, caching


@contextmanager
def _in(precision: list[_Precision]) -> Iterator[None]:
    """A block in which that holds."""
    with ExitStack() as blocks:
        for each in precision:
            if each != _precision_of(each[0]):
                blocks.enter_context(fb.autocast(*each))
        yield


def _facts(t: Tensor) -> tuple[Any, ...]:
    return tuple(t.shape), t.dtype, t.device


def _nodes_since(start: int, results: Iterable[Tensor]) -> list[Node]:
    """The nodes behind `results` that are younger than `start`, in the order of recording."""
    found: dict[int, Node] = {}
    waiting: list[Any] = [t.grad_fn for t in results]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Node) and node.seq > start and node.seq not in found:
            found[node.seq] = node
            waiting.extend(node.edges)
    return [found[seq] for seq in sorted(found)]


def _first_difference(names: list[str], expected: list[str]) -> str:
    for i, (name, wanted) in enumerate(zip(names, expected, strict=False)):
        if name != wanted:
            return f"operation {i} is {name}, not {wanted}"
    return f"{len(names)} operations, not {len(expected)}"
