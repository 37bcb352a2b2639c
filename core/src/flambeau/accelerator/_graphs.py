"""Graphs: a sequence of kernels that is recorded once and then launched by one call.

What is recorded are launches with the addresses they read and write.  A replay runs them again on
whatever these addresses hold by then: new inputs are copied into the tensors that the recording
read, and results are found in the tensors that it made.  Python is not run again.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from typing import Any, ClassVar

import flambeau as fb
from flambeau.accelerator._namespace import namespace as _namespace
from flambeau.accelerator._runtime import Runtime

__all__ = [
    "CUDAGraph",
    "graph",
    "graph_pool_handle",
    "is_current_stream_capturing",
    "make_graphed_callables",
    "make_graphed_step",
]

_MODES = ("global", "thread_local", "relaxed")
_runtime: Runtime = _namespace("cuda")._runtime


def is_current_stream_capturing() -> bool:
    """Whether what is asked of the current stream is recorded and not run; False without a device.

    >>> import flambeau as fb
    >>> fb.cuda.is_current_stream_capturing()
    False
    """
    backend = _runtime.found()
    return backend is not None and backend.capturing(backend.current_device())


def graph_pool_handle() -> Any:
    """A new pool of memory, for graphs that are to share one.

    Graphs may share it if they are replayed in the order in which they were recorded, and none
    while another runs.

    Raises:
        RuntimeError: there is no device.
    """
    return _runtime.needed().graph_pool()


class CUDAGraph:
    """A recording of work on a device.

    Memory that tensors took during the recording belongs to the graph until `reset`, also if the
    tensors are gone: replays write there.

    >>> import flambeau as fb
    >>> fb.cuda.CUDAGraph()
    <torch.cuda.CUDAGraph: nothing recorded>
    """

    __module__ = "torch.cuda"

    def __init__(self, keep_graph: bool = False) -> None:
        self._native: Any = None
        self._capture: Any = None
        self._pool: Any = None

    def __repr__(self) -> str:
        state = "recording" if self._capture else "recorded" if self._native else "nothing recorded"
        return f"<torch.cuda.CUDAGraph: {state}>"

    def capture_begin(self, pool: object = None, capture_error_mode: str = "global") -> None:
        """Record what is asked of the current stream from now on.

        Args:
            pool: where memory comes from: `graph_pool_handle()`, or `pool()` of another graph; one
                of its own by default.
            capture_error_mode: ``"global"``, ``"thread_local"`` or ``"relaxed"``. Recordings are
                relaxed: other threads and streams may allocate meanwhile.

        Raises:
            RuntimeError: it is recording or recorded already, the current stream is the default
                one, or there is no device.
            ValueError: an unknown mode.
        """
        if capture_error_mode not in _MODES:
            raise ValueError(
                f"Unknown capture error mode. Expected one of {', '.join(_MODES)}, got "
                f"{capture_error_mode!r}"
            )
        if self._capture is not None or self._native is not None:
            raise RuntimeError(
                "This CUDAGraph instance already owns a captured graph. To capture a new graph, "
                "create a new instance."
            )
        backend = _runtime.needed()
        index = backend.current_device()
        current, default = backend.current_stream(index), backend.default_stream(index)
        if backend.stream_handle(current) == backend.stream_handle(default):
            raise RuntimeError(
                "CUDA graphs must be captured on a non-default stream. (However, after capture, "
                "it's ok to replay them on the default stream.)"
            )
        self._pool = backend.graph_pool() if pool is None else pool
        self._capture = backend.capture_begin(index, self._pool)

    def capture_end(self) -> None:
        """End the recording.

        Raises:
            RuntimeError: it is not recording, or something that was asked cannot be recorded.
        """
        if self._capture is None:
            raise RuntimeError("capture_end(): this graph is not being captured")
        capture, self._capture = self._capture, None
        self._native = _runtime.needed().capture_end(capture)

    def replay(self) -> None:
        """Ask the current stream for all that was recorded.

        Raises:
            RuntimeError: nothing is recorded.
        """
        if self._native is None:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        _runtime.needed().graph_launch(self._native)

    def reset(self) -> None:
        """Forget what was recorded, and give its memory back."""
        self._native = self._pool = None

    def pool(self) -> Any:
        """The memory pool, for another graph that is to share it.

        Raises:
            RuntimeError: nothing was recorded.
        """
        if self._pool is None:
            raise RuntimeError("Called CUDAGraph::pool() without a preceding successful capture.")
        return self._pool


class graph:  # noqa: N801 (the documented name)
    """A block whose work on a device is recorded in a graph.

    Args:
        cuda_graph: what records it.
        pool: the memory of another graph (`CUDAGraph.pool`) or of none yet (`graph_pool_handle`).
        stream: the stream that is current in the block; by default one made for recordings.
        capture_error_mode: see `CUDAGraph.capture_begin`.

    ::

        static = fb.randn(8, device="cuda")
        recorded = fb.cuda.CUDAGraph()
        with fb.cuda.graph(recorded):
            result = static.exp()
        static.copy_(new)
        recorded.replay()       # result is exp(new)
    """

    __module__ = "torch.cuda"
    _streams: ClassVar[dict[tuple[str, int], Any]] = {}

    def __init__(
        self,
        cuda_graph: CUDAGraph,
        pool: object = None,
        stream: Any = None,
        capture_error_mode: str = "global",
    ) -> None:
        self.cuda_graph = cuda_graph
        self._options = pool, capture_error_mode
        self._stream = stream

    def __enter__(self) -> None:
        if is_current_stream_capturing():
            raise RuntimeError("graph(): the current stream is being recorded already")
        devices = _namespace(_runtime.device_type)
        if self._stream is None:
            key = _runtime.device_type, _runtime.index()
            if key not in self._streams:
                self._streams[key] = devices.Stream()
            self._stream = self._streams[key]
        devices.synchronize()
        gc.collect()  # nothing of a former recording may be freed in this one
        _runtime.needed().empty_cache()
        self._selected = devices.stream(self._stream)
        self._selected.__enter__()
        try:
            self.cuda_graph.capture_begin(*self._options)
        except BaseException:
            self._selected.__exit__()
            raise

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            self.cuda_graph.capture_end()
        except Exception as failure:
            if error is None:
                raise
            # The first failure is the cause: what could not be recorded ended the recording.
            error.add_note(f"and the recording ended with: {failure}")
        finally:
            self._selected.__exit__(kind, error, trace)


def make_graphed_callables(
    callables: object,
    sample_args: Any,
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: object = None,
) -> Any:
    """Functions or modules whose forward and backward passes are replays of recordings.

    Args:
        callables: one, or a tuple of them in the order in which they will be called.
        sample_args: arguments of it, a tuple; of several, a tuple of such tuples. They are tensors,
            or tuples, lists and dictionaries of them. Real arguments have the same form, and their
            tensors have the same shapes, dtypes, devices and `requires_grad`.
        num_warmup_iters: how often each is run before it is recorded.
        allow_unused_input: whether inputs may be left without a gradient.
        pool: the memory of other graphs, to share it.

    A module is returned itself, with another `forward`; it must not change between training and
    evaluation, or the plain forward runs.  No hooks, and no arguments but tensors.  Results are
    tensors, or tuples, lists and dictionaries of them; they and the gradients of arguments lie
    where the recording writes, so the next call overwrites them.  Gradients of parameters add up.

    Raises:
        RuntimeError: a module has hooks or buffers that require gradients, there is no device, or
            an input has no gradient and `allow_unused_input` is False.  Of what is returned: an
            argument has another shape or dtype.
        TypeError: an argument or a result is no tensor, or the form is another.
    """
    several = isinstance(callables, tuple)
    functions: tuple[Any, ...] = callables if several else (callables,)
    samples: tuple[Any, ...] = tuple(sample_args) if several else (sample_args,)
    if len(functions) != len(samples):
        raise RuntimeError(
            f"make_graphed_callables: {len(functions)} callables and {len(samples)} tuples of "
            "arguments"
        )
    pool = graph_pool_handle() if pool is None else pool
    graphed = [
        _Graphed(f, tuple(args), allow_unused_input)
        for f, args in zip(functions, samples, strict=True)
    ]
    devices = _namespace(_runtime.device_type)
    devices.synchronize()
    with devices.stream(devices.Stream()):
        for one in graphed:
            for _ in range(num_warmup_iters):
                one.warm_up()
    devices.synchronize()
    for one in graphed:
        one.record_forward(pool)
    for one in reversed(graphed):
        one.record_backward(pool)
    made = tuple([one.replacement() for one in graphed])
    return made if several else made[0]


def make_graphed_step(
    step: Callable[..., Any],
    sample_args: Sequence[Any],
    num_warmup_iters: int = 3,
    pool: object = None,
) -> Callable[..., Any]:
    """A whole training step as one recording: forward and backward passes and the optimiser.

    Args:
        step: what is recorded: it takes tensors, sets the gradients to None or zero, computes
            them, calls ``optimizer.step()`` of an optimiser made with ``capturable=True``, and
            returns tensors or None.
        sample_args: arguments of it. Real ones have their shapes, dtypes and device, or are in
            host memory.
        num_warmup_iters: how many steps are made before the recording: real ones, on
            `sample_args`. The first makes the optimiser's state, which must not be recorded.
        pool: the memory of other graphs, to share it; by default the recording has its own.

    Returns:
        A function of as many tensors.  It copies them to where the recording reads them, makes
        the step, and returns the tensors that `step` returned, which every call overwrites.  Its
        attribute ``graph`` is the `CUDAGraph`.  Random numbers go on from call to call.

    Raises:
        RuntimeError: there is no device, or something in the step cannot be recorded.  Of the
            function returned: an argument has another shape or dtype.
        TypeError: an argument is no tensor.

    ::

        def step(x, target):
            optimizer.zero_grad()
            loss = fb.nn.functional.cross_entropy(model(x), target)
            loss.backward()
            optimizer.step()
            return loss.detach()

        train = fb.cuda.make_graphed_step(step, (x, target))
        for x, target in batches:
            loss = train(x, target)

    No counterpart in PyTorch.
    """
    for a in sample_args:
        if not isinstance(a, fb.Tensor):
            raise TypeError(
                f"make_graphed_step: each argument must be a Tensor, got {type(a).__name__}"
            )
    devices = _namespace(_runtime.device_type)
    inputs = tuple([a.detach().clone() for a in sample_args])
    side = devices.Stream()
    side.wait_stream(devices.current_stream())
    with devices.stream(side):
        for _ in range(num_warmup_iters):
            step(*inputs)
    devices.current_stream().wait_stream(side)
    recorded = CUDAGraph()
    with graph(recorded, pool):
        results = step(*inputs)

    def run(*args: object) -> Any:
        if len(args) != len(inputs):
            raise TypeError(f"the recorded step takes {len(inputs)} tensors, got {len(args)}")
        _check_same("step", inputs, args)
        for held, a in zip(inputs, args, strict=True):
            held.copy_(a, non_blocking=True)
        recorded.replay()
        return results

    run.graph = recorded  # type: ignore[attr-defined]
    return run


class _Graphed:
    """One callable with its recordings and the tensors they read and write."""

    def __init__(self, function: Any, sample: tuple[Any, ...], allow_unused: bool) -> None:
        self.function, self.sample, self.allow_unused = function, sample, allow_unused
        self.module = function if hasattr(function, "parameters") else None
        parameters: tuple[Any, ...] = ()
        if self.module is not None:
            if self.module._forward_hooks or self.module._forward_pre_hooks:
                raise RuntimeError(
                    "Modules must not have hooks registered at the time they are passed. However, "
                    "registering hooks on modules after passing them through "
                    "make_graphed_callables is allowed."
                )
            if any(b.requires_grad for b in self.module.buffers()):
                raise RuntimeError(
                    "In any module passed to make_graphed_callables, only parameters may be "
                    "trainable. All buffers must have ``requires_grad=False``."
                )
            parameters = tuple(self.module.parameters())
        args = tuple(_leaves(sample, "argument"))
        self.args, self.form = args, _form(sample)
        self.inputs = (*args, *parameters)
        self.trained = [x for x in self.inputs if x.requires_grad]
        self.forward, self.backward = CUDAGraph(), CUDAGraph()

    def _results(self) -> tuple[tuple[Any, ...], Any]:
        """The tensors among the results, and what they are in."""
        found = self.function(*self.sample)
        return tuple(_leaves(found, "result")), found

    def _gradients(self, results: Sequence[Any], grads: Sequence[Any]) -> Sequence[Any]:
        followed = [r for r in results if r.requires_grad]
        return fb.autograd.grad(
            followed, self.trained, grads, allow_unused=self.allow_unused, retain_graph=False
        )

    def warm_up(self) -> None:
        results, _ = self._results()
        followed = [r for r in results if r.requires_grad]
        if self.trained and followed:
            self._gradients(results, [fb.ones_like(r) for r in followed])

    def record_forward(self, pool: object) -> None:
        with graph(self.forward, pool):
            self.results, self.found_in = self._results()

    def record_backward(self, pool: object) -> None:
        self.wanted = [r.requires_grad for r in self.results]
        followed = [r for r in self.results if r.requires_grad]
        self.grads = [fb.empty_like(r) for r in followed]
        self.found: Sequence[Any] = []
        if self.trained and followed:
            with graph(self.backward, pool):
                self.found = self._gradients(self.results, self.grads)
        self.results = tuple([r.detach() for r in self.results])

    def function_class(self) -> Any:
        """An `autograd.Function` of arguments and parameters whose passes are the replays."""
        one = self

        class Graphed(fb.autograd.Function):
            @staticmethod
            def forward(ctx: object, *inputs: object) -> tuple[Any, ...]:
                _fill(one.inputs[: len(one.args)], inputs)
                one.forward.replay()
                return tuple([r.detach() for r in one.results])

            @staticmethod
            def backward(ctx: object, *grads: object) -> tuple[Any, ...]:
                given = [g for g, wanted in zip(grads, one.wanted, strict=True) if wanted]
                _fill(one.grads, given)
                if one.found:
                    one.keep_gradients()
                    one.backward.replay()
                rest = iter(one.found)
                return tuple(
                    [_detached(next(rest, None)) if x.requires_grad else None for x in one.inputs]
                )

        return Graphed

    def keep_gradients(self) -> None:
        """Move gradients of former replays that stand in ``grad`` from where the next one writes.

        The first gradient that a tensor gets becomes its ``grad``, and later ones are added to it.
        """
        for x, g in zip(self.trained, self.found, strict=True):
            held = x.grad
            if g is not None and held is not None and held.data_ptr() == g.data_ptr():
                x.grad = held.clone()

    def replacement(self) -> Any:
        """The module with a new forward, or a new function."""
        call = self.function_class().apply
        parameters = self.inputs[len(self.args) :]
        form = _emptied(self.found_in)
        self.found_in = None  # with it the history of the recording goes

        def run(*args: object) -> Any:
            given = tuple(_leaves(args, "argument"))
            if _form(args) != self.form:
                raise TypeError(
                    f"the arguments of the recorded callable were {self.form}, and now are "
                    f"{_form(args)}"
                )
            _check_same("callable", self.args, given)
            return _filled(form, iter(call(*given, *parameters)))

        if self.module is None:
            return run
        module = self.module
        plain, training = module.forward, module.training

        def forward(*args: object) -> Any:
            return run(*args) if module.training == training else plain(*args)

        module.forward = forward
        return module


@fb.no_grad()
def _fill(places: Sequence[Any], values: Sequence[Any]) -> None:
    """Copy values into the tensors that a recording reads, unless they are these."""
    for place, value in zip(places, values, strict=False):
        if value is not None and place.data_ptr() != value.data_ptr():
            place.copy_(value)


def _check_same(what: str, held: Sequence[Any], given: Sequence[Any]) -> None:
    """Arguments must be like those that were recorded: a copy would broadcast and cast them."""
    for i, (then, now) in enumerate(zip(held, given, strict=True)):
        if now.shape != then.shape or now.dtype is not then.dtype:
            raise RuntimeError(
                f"argument {i} of the recorded {what} was {then.dtype} {tuple(then.shape)}, and "
                f"now is {now.dtype} {tuple(now.shape)}; make another recording for it"
            )


def _leaves(value: object, what: str) -> Iterator[Any]:
    """The tensors in tuples, lists and dictionaries."""
    if isinstance(value, fb.Tensor):
        yield value
    elif isinstance(value, (tuple, list, dict)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _leaves(part, what)
    else:
        raise TypeError(
            f"make_graphed_callables: each {what} must be a Tensor, or a tuple, list or dictionary "
            f"of them, got {type(value).__name__}"
        )


def _form(value: object) -> str:
    """Which tuples, lists and dictionaries there are, with a point for each tensor."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k!r}: {_form(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (tuple, list)):
        inside = ", ".join(map(_form, value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    return "."


def _emptied(value: object) -> Any:
    """The same containers with None for tensors."""
    return _filled(value, repeat(None))


def _filled(form: Any, tensors: Iterator[Any]) -> Any:
    """Containers like those of `form`, with the next tensors in the places of others."""
    if isinstance(form, dict):
        return type(form)((key, _filled(part, tensors)) for key, part in form.items())
    if isinstance(form, (tuple, list)):
        parts = [_filled(part, tensors) for part in form]
        return type(form)(*parts) if hasattr(form, "_fields") else type(form)(parts)
    return next(tensors)


def _detached(t: Any) -> Any:
    return None if t is None else t.detach()
