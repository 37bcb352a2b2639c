"""`trace` and what belongs to it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau import nn
from flambeau._dispatch.annotated import all_take_as_annotated
from flambeau.jit._frontend.function import ScriptFunction
from flambeau.jit._graph import Graph
from flambeau.jit._modules import RecursiveScriptModule, ScriptModule
from flambeau.jit._parts import compiler
from flambeau.jit._tracing.graphs import trace_graph
from flambeau.jit._tracing.state import TracerWarning, user_frame, warn_at
from flambeau.jit._types import TENSOR, SeenTensorType

if TYPE_CHECKING:
    from flambeau._tensor.tensor import Tensor
    from flambeau.nn.module import Module


class TracingCheckError(Exception):
    """Two traces of one program that differ.

    >>> import flambeau as fb
    >>> issubclass(fb.jit.TracingCheckError, Exception)
    True
    """

    def __init__(self, graph_diff_error: Any, tensor_compare_error: Any, extra_msg: Any = None):
        text = "Tracing failed sanity checks!\n"
        if extra_msg is not None:
            text += f"{extra_msg}\n"
        for what, found in (
            ("Graphs differed across invocations!\n", graph_diff_error),
            ("Tensor-valued Constant nodes differed in value across invocations.\n",
             tensor_compare_error),
        ):  # fmt: skip
            if found is not None:
                text += f"ERROR: {what}{found}\n"
        self.message = text
        super().__init__(text)


class TopLevelTracedModule(RecursiveScriptModule, recursive=True):
    """What `trace` makes of a module: its parameters, and the graph of what it did.

    >>> import flambeau as fb
    >>> net = fb.jit.trace(fb.nn.Linear(2, 1), fb.ones(3, 2))
    >>> type(net).__name__, net(fb.ones(5, 2)).shape
    ('TopLevelTracedModule', torch.Size([5, 1]))
    """


def trace(
    func: Any,
    example_inputs: Any = None,
    optimize: bool | None = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_kwarg_inputs: Mapping[str, Any] | None = None,
    _store_inputs: bool = True,
) -> Any:
    """Run a function or module once, and make a graph of what it called.

    Sizes are numbers that know where they come from, so that what is computed from them holds for
    other inputs; branches, loops and numbers that are taken out of tensors are as they were in the
    one run, of which a `TracerWarning` with the line of the program tells.

    Args:
        func: a function of tensors, or a module.
        example_inputs: a tensor, or a tuple of tensors and of tuples, lists and dicts of them.
        optimize: accepted and not looked at.
        check_trace: whether to trace a second time and compare graphs and results.
        check_inputs: tuples of further inputs for which traced and original results are compared.
        check_tolerance: how far results may be apart, relatively and absolutely.
        strict: whether lists and dicts as results are refused.
        example_kwarg_inputs: inputs by name, in the place of `example_inputs`.

    Raises:
        RuntimeError: an input, a result or a function that no graph can have.
        TracingCheckError: the second trace is another.

    >>> import flambeau as fb
    >>> def f(x):
    ...     return x.reshape(x.size(0) * 2, -1) + 1
    >>> traced = fb.jit.trace(f, fb.zeros(2, 4))
    >>> traced(fb.zeros(3, 6)).shape
    torch.Size([6, 3])
    """
    if not compiler.script._enabled():
        return func
    if isinstance(func, (ScriptModule, ScriptFunction)):
        frame = user_frame(1)
        if frame is not None:
            warn_at(
                frame,
                "The input to trace is already a ScriptModule, tracing it is a no-op. Returning "
                "the object as is.",
            )
        return func
    named = dict(example_kwarg_inputs or {})
    if example_inputs is None and example_kwarg_inputs is None:
        raise RuntimeError("example_kwarg_inputs should be a dict: there are no example inputs")
    if isinstance(getattr(func, "__self__", None), nn.Module) and not isinstance(func, nn.Module):
        if func.__name__ != "forward":
            raise AttributeError(
                "trace doesn't support compiling individual module's functions.\n"
                "Please use trace_module"
            )
        func = func.__self__
    given = _as_tuple(example_inputs)
    checks = (check_trace, check_inputs, check_tolerance, strict)
    if isinstance(func, nn.Module):
        made = _traced_module(func, {"forward": (given, named)}, checks)
        return made
    return _traced_function(func, given, named, checks)


def _as_tuple(inputs: Any) -> tuple[Any, ...]:
    if inputs is None:
        return ()
    if isinstance(inputs, (fb.Tensor, dict)):
        return (inputs,)
    return tuple(inputs)


def _traced_function(
    func: Callable[..., Any], given: Any, named: Any, checks: Any
) -> ScriptFunction:
    check, more, tolerance, strict = checks
    name = getattr(func, "__name__", "forward")
    name = name if name.isidentifier() else "traced_fn"

    def graph_of(inputs: Any, kwargs: Any) -> Graph:
        return trace_graph(func, inputs, kwargs, strict=strict, name=name)[0]

    graph = graph_of(given, named)
    made = ScriptFunction(name, f"__torch__.{name}", graph=graph)
    made.__dict__["__wrapped__"] = func
    made.__doc__ = getattr(func, "__doc__", None)
    if check:
        _check(made, func, graph, graph_of, given, named, more, tolerance)
    return made


def trace_module(
    mod: object,
    inputs: Mapping[str, Any],
    optimize: bool | None = None,
    check_trace: bool = True,
    check_inputs: object = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: object = None,
    _compilation_unit: object = None,
    example_inputs_is_kwarg: bool = False,
    _store_inputs: bool = True,
) -> Any:
    """Trace methods of a module: `inputs` has the example inputs for each, by name.

    Args and errors are those of `trace`.

    >>> import flambeau as fb
    >>> class Net(fb.nn.Module):
    ...     def forward(self, x): return x + 1
    ...     def twice(self, x): return x * 2
    >>> net = fb.jit.trace_module(Net(), {"forward": fb.ones(2), "twice": fb.ones(2)})
    >>> net.twice(fb.ones(1))
    tensor([2.])
    """
    if not compiler.script._enabled():
        return mod
    if not isinstance(mod, nn.Module):
        raise AttributeError("expected torch.nn.Module as the first argument")
    if not isinstance(inputs, dict):
        raise AttributeError("expected a dictionary of (method_name, input) pairs")
    methods = {
        name: ((), dict(each)) if example_inputs_is_kwarg else (_as_tuple(each), {})
        for name, each in inputs.items()
    }
    first = check_inputs
    if isinstance(check_inputs, list):
        first = [each["forward"] for each in check_inputs if "forward" in each]
    return _traced_module(mod, methods, (check_trace, first, check_tolerance, strict))


def _traced_module(module: Module, methods: Mapping[str, Any], checks: Any) -> TopLevelTracedModule:
    check, more, tolerance, strict = checks
    made = compiler.modules.traced_shell(module, TopLevelTracedModule)
    kind = made._type_of_script
    for name, (given, named) in methods.items():
        call = module if name == "forward" else getattr(module, name)

        def graph_of(
            inputs: tuple[Tensor | tuple[Tensor, ...], ...],
            kwargs: dict[str, Tensor],
            call: Any = call,
            name: str = name,
        ) -> Graph:
            return trace_graph(
                call, inputs, kwargs, module=module, kind=kind, strict=strict, name=name
            )[0]

        graph = graph_of(given, named)
        method = ScriptFunction(name, f"{kind.name}.{name}", graph=graph)
        method.owner = kind
        kind.methods[name] = method
        if check:
            own = made._method(name)
            _check(own, call, graph, graph_of, given, named, more, tolerance)
    return made


def _get_trace_graph(
    f: Callable[..., Any],
    args: object = (),
    kwargs: Mapping[str, Any] | None = None,
    strict: bool = True,
    _force_outplace: bool = False,
    return_inputs: bool = False,
    _return_inputs_states: bool = False,
) -> tuple[Any, ...]:
    """The graph of a call and what it returned; parameters and buffers are further inputs.

    >>> import flambeau as fb
    >>> graph, out = fb.jit._get_trace_graph(fb.nn.Linear(2, 1), fb.ones(3, 2))
    >>> [value.debugName() for value in graph.inputs()], out.shape
    (['input', 'weight', 'bias'], torch.Size([3, 1]))
    """
    graph, result, given = graph_of_call(f, args, kwargs, strict=strict, seen=True)
    return (graph, result, given) if return_inputs or _return_inputs_states else (graph, result)


def graph_of_call(
    f: Callable[..., Any],
    args: object,
    kwargs: Mapping[str, Any] | None,
    *,
    strict: bool = True,
    seen: bool = False,
) -> tuple[Graph, Any, tuple[Any, ...]]:
    """The graph of a call, what it returned, and what it was given; `seen` as in `trace_graph`."""
    given, named = _as_tuple(args), dict(kwargs or {})
    if not isinstance(f, nn.Module):
        graph, result = trace_graph(f, given, named, strict=strict, seen=seen)
    else:
        kind = compiler.modules.traced_shell(f)._type_of_script
        graph, result = trace_graph(f, given, named, module=f, kind=kind, strict=strict, seen=seen)
        _lower(graph, f, seen)
    return graph, result, given


def _lower(graph: Graph, module: nn.Module, seen: bool) -> None:
    """Make inputs of what a graph reads of its module, and take that away."""
    block = graph.block
    paths = {block.inputs_[0]: ""}
    state = {
        name: graph.addInput(
            name, SeenTensorType.of(held) if seen and isinstance(held, fb.Tensor) else TENSOR
        )
        for name, held in module.state_dict(keep_vars=True).items()
    }
    reads = [node for node in block.nodes_ if node.kind == "prim::GetAttr"]
    for node in reads:
        path = f"{paths[node.inputs_[0]]}{node.attributes['name']}"
        if path in state:
            node.output().replaceAllUsesWith(state[path])
        else:
            paths[node.output()] = f"{path}."
    for node in reversed(reads):
        if not node.output().readers:
            node.destroy()
    if not block.inputs_[0].readers:
        del block.inputs_[0]


def _check(
    made: Any,
    func: Callable[..., Any],
    graph: Graph,
    graph_of: Callable[..., Graph],
    given: tuple[Any, ...],
    named: Any,
    more: Any,
    tolerance: float,
) -> None:
    """Trace once more, and compare; compare results for these and further inputs."""
    for inputs in [given, *map(_as_tuple, more or ())]:
        with _same_random_numbers(), fb.no_grad():
            again = graph_of(_cloned(inputs), _cloned(named))
        ours, theirs = (_text(each) for each in (graph, again))
        if ours != theirs and inputs is given:
            raise TracingCheckError(_difference(ours, theirs), None)
        with _same_random_numbers():
            expected = func(*_cloned(inputs), **_cloned(named))
        with _same_random_numbers():
            found = made(*_cloned(inputs), **_cloned(named))
        _compare(expected, found, tolerance, graph)


def _text(graph: Graph) -> str:
    return graph.str(print_source_ranges=False)


def _difference(ours: str, theirs: str) -> str:
    import difflib

    lines = difflib.ndiff(ours.splitlines(True), theirs.splitlines(True))
    return "Graph diff:\n\t" + "\t".join(lines)


@contextlib.contextmanager
def _same_random_numbers() -> Iterator[None]:
    state = fb.get_rng_state()
    try:
        yield
    finally:
        fb.set_rng_state(state)


def _cloned(what: object) -> Any:
    if isinstance(what, fb.Tensor):
        return what.detach().clone().requires_grad_(what.requires_grad)
    if isinstance(what, dict):
        return {key: _cloned(each) for key, each in what.items()}
    if isinstance(what, tuple) and hasattr(what, "_fields"):
        return type(what)(*map(_cloned, what))
    if isinstance(what, (list, tuple)):
        return type(what)(map(_cloned, what))
    return what


def _flat(what: object) -> list[Any]:
    if isinstance(what, fb.Tensor):
        return [what]
    if isinstance(what, dict):
        what = list(what.values())
    if isinstance(what, (list, tuple)):
        return [each for part in what for each in _flat(part)]
    return []


def _compare(
    expected: object,
    found: object,
    tolerance: float,
    graph: Graph,
) -> None:
    pairs = zip(_flat(expected), _flat(found), strict=True)
    for at, (wanted, got) in enumerate(pairs):
        try:
            fb.testing.assert_close(
                got.detach(), wanted.detach(), rtol=tolerance, atol=tolerance, equal_nan=True
            )
        except AssertionError as error:
            frame = user_frame(1)
            if frame is not None:
                warn_at(
                    frame,
                    f"Output nr {at + 1}. of the traced function does not match the corresponding "
                    f"output of the Python function. Detailed error:\n{error}",
                )


__all__ = ["TopLevelTracedModule", "TracerWarning", "TracingCheckError", "trace", "trace_module"]


all_take_as_annotated(globals())
