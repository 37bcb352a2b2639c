"""Modules whose parameters have become constants of their graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau import nn
from flambeau._dispatch.annotated import all_take_as_annotated
from flambeau.jit import _types as T
from flambeau.jit import passes
from flambeau.jit._frontend.function import ScriptFunction
from flambeau.jit._graph import Graph, Node, Value
from flambeau.jit._modules import RecursiveScriptModule, ScriptModule, mangled, unmangled
from flambeau.jit._types import ClassType
from flambeau.jit.passes import _frozen

if TYPE_CHECKING:
    from flambeau.jit._trace import TopLevelTracedModule
    from flambeau.nn.module import Module


_SIMPLE = {bool: T.BOOL, int: T.INT, float: T.FLOAT, str: T.STR}


def freeze(
    mod: ScriptModule, preserved_attrs: Sequence[str] | None = None, optimize_numerics: bool = True
) -> RecursiveScriptModule:
    """A scripted module in which parameters and attributes are constants, for inference.

    Kept as attributes are those that are asked for and those that the program writes.

    Args:
        mod: a scripted or traced module in evaluation mode.
        preserved_attrs: attributes and methods to keep; of methods only `forward` is, otherwise.
        optimize_numerics: whether batch normalisations become part of the weights before them,
            which changes results by rounding.

    Raises:
        RuntimeError: `mod` is not scripted or traced, in training mode, or has no such attribute.

    >>> import flambeau as fb
    >>> net = fb.nn.Sequential(fb.nn.Conv2d(1, 2, 1), fb.nn.BatchNorm2d(2)).eval()
    >>> frozen = fb.jit.freeze(fb.jit.script(net))
    >>> len(frozen.graph.findAllNodes("aten::batch_norm")), len(list(frozen.parameters()))
    (0, 0)
    """
    if not isinstance(mod, ScriptModule):
        raise RuntimeError(
            "Freezing expects a ScriptModule as input. Please use torch.jit.script or "
            "torch.jit.trace to script your 'nn.Module'."
        )
    if any(each.training for each in mod.modules()):
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() "
            "on your module before freezing."
        )
    kind: ClassType = mod._type_of_script
    asked = list(preserved_attrs or ())
    for name in asked:
        if name not in kind.attributes and kind.method(name) is None:
            raise RuntimeError(f"Module does not have a method or an attribute '{name}'")
    methods = [name for name in dict.fromkeys(("forward", *asked)) if kind.method(name) is not None]
    graphs = {}
    for name in methods:
        method = kind.method(name)
        assert method is not None
        graphs[name] = method.inlined_graph.copy()
    kept = {(id(mod), name) for name in asked if name in kind.attributes}
    for graph in graphs.values():
        kept |= _assigned(graph, mod)
    for graph in graphs.values():
        _fold_numbers(graph, mod, kept)
        passes.optimize(graph)
    held = _written_tensors(graphs.values(), mod)
    for graph in graphs.values():
        _fold_tensors(graph, mod, kept, held)
        _simplify(graph, optimize_numerics)
    return _module(mod, kind, graphs, {name for at, name in kept if at == id(mod)})


def optimize_for_inference(
    mod: RecursiveScriptModule | TopLevelTracedModule, other_methods: Sequence[str] | None = None
) -> RecursiveScriptModule:
    """`freeze` a scripted module, if it is not, and simplify what is left.

    Args:
        other_methods: methods to keep beside `forward`.

    >>> import flambeau as fb
    >>> net = fb.jit.script(fb.nn.Sequential(fb.nn.Linear(2, 2), fb.nn.Dropout()).eval())
    >>> [n.kind for n in fb.jit.optimize_for_inference(net).graph.findAllNodes("aten::dropout")]
    []
    """
    if not isinstance(mod, ScriptModule):
        raise RuntimeError(
            "optimize_for_inference expects ScriptModule as input. Please use torch.jit.script or "
            "torch.jit.trace to script your 'nn.Module'."
        )
    if "!frozen" in mod._type_of_script.values:
        return mod
    return freeze(mod.eval(), other_methods)


def run_frozen_optimizations(
    mod: ScriptModule,
    optimize_numerics: bool = True,
    preserved_methods: Sequence[str] | None = None,
) -> None:
    """Simplify the methods of a frozen module, as `freeze` has done already.

    >>> import flambeau as fb
    >>> frozen = fb.jit.freeze(fb.jit.script(fb.nn.Linear(2, 1).eval()))
    >>> fb.jit.run_frozen_optimizations(frozen)
    """
    kind: ClassType | None = getattr(mod, "_type_of_script", None)
    if kind is None:
        raise TypeError(
            "run_frozen_optimizations(): argument 'mod' must be a scripted module, not "
            f"{type(mod).__name__}"
        )
    for name in dict.fromkeys(("forward", *(preserved_methods or ()))):
        method = kind.method(name)
        if method is not None:
            graph = method.inlined_graph.copy()
            _simplify(graph, optimize_numerics)
            _set_method(kind, name, graph)
    mod.__dict__.pop("_bound_methods", None)


def _simplify(graph: Graph, numerics: bool) -> None:
    passes.optimize(graph)
    _frozen.remove_dropout(graph)
    if numerics:
        _frozen.fold_batch_norm(graph)
    passes.optimize(graph)
    passes.clean(graph)


def _objects(graph: Graph, module: Module) -> dict[Value, Any]:
    """The modules that values of a graph are."""
    found: dict[Value, Any] = {graph.block.inputs_[0]: module}
    for node in graph.block.all_nodes():
        if node.kind == "prim::GetAttr" and node.inputs_[0] in found:
            held = getattr(found[node.inputs_[0]], node.attributes["name"])
            if isinstance(held, nn.Module):
                found[node.output()] = held
    return found


def _assigned(graph: Graph, module: Module) -> set[tuple[int, str]]:
    """The attributes that a graph assigns to."""
    objects = _objects(graph, module)
    return {
        (id(objects[node.inputs_[0]]), node.attributes["name"])
        for node in graph.findAllNodes("prim::SetAttr")
        if node.inputs_[0] in objects
    }


def _reads(graph: Graph, module: Module) -> list[tuple[Node, Any, Any]]:
    """The nodes that read attributes of modules, with the module and what is read."""
    objects = _objects(graph, module)
    found = []
    for node in graph.findAllNodes("prim::GetAttr"):
        of = objects.get(node.inputs_[0])
        if of is not None:
            found.append((node, of, getattr(of, node.attributes["name"])))
    return found


def _constant(node: Node, value: object, kind: T.Type) -> None:
    attributes = {} if value is None else {"value": value}
    made = Node("prim::Constant", (), (kind,), attributes, node.place)
    made.insert_before(node)
    node.output().replaceAllUsesWith(made.output())
    node.destroy()


def _fold_numbers(graph: Graph, module: Module, kept: set[tuple[int, str]]) -> None:
    for node, of, value in _reads(graph, module):
        if (id(of), node.attributes["name"]) in kept:
            continue
        if value is None:
            _constant(node, None, T.NONE)
        elif type(value) in _SIMPLE:
            _constant(node, value, _SIMPLE[type(value)])


def _written_tensors(graphs: Any, module: Module) -> set[int]:
    """The tensors among the attributes that the graphs write to."""
    found = set()
    for graph in graphs:
        written = _frozen.written(graph)
        for node, _, value in _reads(graph, module):
            if node.output() in written:
                found.add(id(value))
    return found


def _fold_tensors(graph: Graph, module: Module, kept: set[tuple[int, str]], held: set[int]) -> None:
    plain: dict[int, Any] = {}
    for node, of, value in _reads(graph, module):
        if not isinstance(value, fb.Tensor) or id(value) in held:
            continue
        if (id(of), node.attributes["name"]) not in kept:
            _constant(node, plain.setdefault(id(value), value.detach()), T.TENSOR)


def _set_method(kind: ClassType, name: str, graph: Graph) -> None:
    graph.block.inputs_[0].setType(kind)
    made = ScriptFunction(name, f"{kind.name}.{name}", graph=graph)
    made.owner = kind
    old = kind.methods.get(name)
    if old is not None:
        made._schema = old.schema
    kind.methods[name] = made


def _module(
    module: Module, kind: ClassType, graphs: dict[str, Graph], asked: set[str]
) -> RecursiveScriptModule:
    """A module with these graphs and the attributes that they still read."""
    names = set(asked)
    for graph in graphs.values():
        of = graph.block.inputs_[0]
        for reader, _ in of.readers:
            if isinstance(reader, Node) and "name" in reader.attributes:
                names.add(reader.attributes["name"])
    made = RecursiveScriptModule.__new__(RecursiveScriptModule)
    nn.Module.__init__(made)
    made.__dict__.update({"_attribute_types": {}, "_stubs": {}, "training": False})
    frozen = ClassType(mangled(unmangled(kind.name)), module=True, maker=kind.maker)
    for name, each in kind.attributes.items():
        if name in names:
            frozen.attributes[name] = each
            _hold(made, module, name)
    frozen.parameters.update(made._parameters)
    frozen.buffers.update(made._buffers)
    frozen.values["!modules"] = tuple(made._modules)
    frozen.values["!compiled"] = frozen.values["!frozen"] = True
    made.__dict__["_type_of_script"] = frozen
    for name, graph in graphs.items():
        method = kind.method(name)
        assert method is not None
        _set_method(frozen, name, graph)
        schema = method.schema
        frozen.methods[name]._schema = type(schema)(
            schema.name,
            schema.overload,
            (type(schema.arguments[0])(schema.arguments[0].name, frozen), *schema.arguments[1:]),
            schema.returns,
        )
    return made


def _hold(made: RecursiveScriptModule, module: Module, name: str) -> None:
    """Give a module an attribute of another, in the same place."""
    for place in ("_parameters", "_buffers", "_modules"):
        if name in getattr(module, place):
            getattr(made, place)[name] = getattr(module, place)[name]
            return
    made.__dict__[name] = getattr(module, name)


all_take_as_annotated(globals())
