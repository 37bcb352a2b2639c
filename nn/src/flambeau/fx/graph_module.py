"""`GraphModule`: a graph as a module that runs."""

from __future__ import annotations

import copy
import itertools
import linecache
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau.fx._codegen import PythonCode
from flambeau.fx._names import OWN_GLOBALS
from flambeau.fx._trees import TreeCodeGen
from flambeau.fx.graph import Graph
from flambeau.nn import Module, Parameter
from flambeau.overrides import all_take_as_annotated

if TYPE_CHECKING:
    from collections.abc import Callable


__all__ = ["GraphModule", "reduce_graph_module"]

_numbers = itertools.count()


class GraphModule(Module):
    """A module whose ``forward`` is made from a graph.

    Args:
        root: a module, or a dictionary by path, with the attributes and submodules that the graph
            names; this module shares them.
        graph: belongs to this module from now on.  Assign it again, or call `recompile`, once it
            has been changed.
        class_name: the name that its class is shown under.

    >>> import flambeau as fb
    >>> traced = fb.fx.symbolic_trace(lambda x: fb.sin(x))
    >>> for node in traced.graph.nodes:
    ...     if node.target == fb.sin:
    ...         node.target = fb.cos
    >>> _ = traced.recompile()
    >>> traced(fb.zeros(1))
    tensor([1.])
    """

    def __new__(cls, *args: object, **kwargs: object) -> GraphModule:
        # Each object has its own `forward`, which Python looks for in the class.
        for base in cls.__mro__:
            if base.__qualname__ != "GraphModuleImpl":
                cls = base
                break

        class GraphModuleImpl(cls):  # type: ignore[misg,valid-type]
            pass

        return super().__new__(GraphModuleImpl)

    def __init__(
        self, root: Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule"
    ) -> None:
        super().__init__()
        self.__class__.__name__ = class_name
        if isinstance(root, Module):
            if hasattr(root, "training"):
                self.training = root.training
            for node in graph.nodes:
                if node.op in ("get_attr", "call_module"):
                    _copy_attr(root, self, str(node.target))
        elif isinstance(root, dict):
            wanted = [str(n.target) for n in graph.nodes if n.op in ("get_attr", "call_module")]
            for path in wanted:
                if path not in root:
                    raise RuntimeError(
                        f"Node in {class_name} referenced target {path} but that target was not "
                        "provided in ``root``!"
                    )
            for path in sorted(wanted, key=lambda path: path.count(".")):
                _assign_attr(root[path], self, path)
        else:
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        self.__dict__.update(_create_node_hooks=[], _erase_node_hooks=[], _tracer_cls=None, meta={})
        tracer = graph._tracer_cls
        if tracer is not None and "<locals>" not in tracer.__qualname__:
            self._tracer_cls = tracer
        self.graph = graph

    @property
    def graph(self) -> Graph:
        """The graph; assigning one makes ``forward`` anew."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self.__dict__["_graph"] = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The text of ``forward``."""
        if "_code" not in self.__dict__:
            raise RuntimeError("Code has not been generated! Please report a bug to PyTorch")
        return self._code

    def recompile(self) -> PythonCode:
        """Make ``forward`` from the graph as it is now."""
        codegen = self._graph._codegen
        if isinstance(codegen, TreeCodeGen):  # what its code reads
            self.__dict__.update(_in_spec=codegen.in_spec, _out_spec=codegen.out_spec)
        made = self._graph.python_code(root_module="self")
        self.__dict__["_code"] = made.src
        type(self).forward = _forward_of(made.src, made.globals)  # type: ignore[method-assign]
        return made

    def add_submodule(self, target: str, m: Module) -> bool:
        """Register a module under a path, with modules on the way to it where there are none.

        Returns:
            False, and nothing is done, if something that is no module is in the way.
        """
        at = self
        *prefix, name = target.split(".")
        for part in prefix:
            below = getattr(at, part, None)
            if below is None:
                below = Module()
                setattr(at, part, below)
            if not isinstance(below, Module):
                return False
            at = below
        at.add_module(name, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Remove the module of a path.

        Returns:
            whether there was one.
        """
        *prefix, name = target.split(".")
        at = self
        for part in prefix:
            at = getattr(at, part, None)
            if not isinstance(at, Module):
                return False
        if not isinstance(getattr(at, name, None), Module):
            return False
        delattr(at, name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Remove the modules that the graph does not name, nor one within them or around them."""
        used: set[str] = set()
        for node in self._graph.nodes:
            if node.op in ("get_attr", "call_module"):
                path = str(node.target).split(".")
                used.update(".".join(path[: i + 1]) for i in range(len(path)))
                if node.op == "call_module":
                    called = self.get_submodule(str(node.target))
                    used.update(f"{node.target}.{name}" for name, _ in called.named_modules())
        unused = [name for name, _ in self.named_modules() if name and name not in used]
        for name in unused:
            self.delete_submodule(name)

    def print_readable(self, print_output: bool = True, **options: object) -> str:
        """The code of this module and of the graph modules in it, as classes.

        Args:
            print_output: also print it.
            options: no effect: strides, devices and colours are not shown.
        """
        made = self._graph.python_code(root_module="self", verbose=True).src.strip("\n")
        lines = [line.rstrip() for line in made.split("\n")]
        lines = [f"class {self._name()}(torch.nn.Module):", *(f"    {line}" for line in lines)]
        for name, child in self.named_children():
            if isinstance(child, GraphModule):
                inner = child.print_readable(print_output=False).rstrip().split("\n")
                inner[0] = inner[0].replace(child._name(), name, 1)
                lines += ["", *(f"    {line}".rstrip() for line in inner)]
        text = "\n".join(line.rstrip() for line in lines)
        if print_output:
            print(text)
        return text

    def to_folder(self, folder: str | os.PathLike[str], module_name: str = "FxModule") -> None:
        """Write the code and the weights as a package of Python that builds the module.

        Args:
            folder: is made if there is none.
            module_name: the name of its class.

        Raises:
            ValueError: no class can have that name.
        """
        if not (isinstance(module_name, str) and module_name.isidentifier()):
            raise ValueError(f"to_folder(): no class can be named {module_name!r}")
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        fb.save(self.state_dict(), place / "state_dict.pt")
        lines = [
            "import flambeau as torch",
            "from flambeau.nn import *",
            "from pathlib import Path",
            _imports(self._graph.python_code(root_module="self").globals),
            "",
            f"class {module_name}(torch.nn.Module):",
            "    def __init__(self):",
            "        super().__init__()",
            "        folder = Path(__file__).parent",
        ]
        for name, child in self.named_children():
            fb.save(child, place / f"{name}.pt")
            lines.append(
                f"        self.add_module({name!r}, torch.load(folder / {f'{name}.pt'!r}, "
                "weights_only=False))"
            )
        for name, p in self._parameters.items():
            if p is not None:
                lines.append(
                    f"        self.register_parameter({name!r}, torch.nn.Parameter("
                    f"torch.empty({list(p.shape)}, dtype={p.dtype}), {p.requires_grad}))"
                )
        for name, b in self._buffers.items():
            if b is not None:
                lines.append(
                    f"        self.register_buffer({name!r}, torch.empty({list(b.shape)}, "
                    f"dtype={b.dtype}))"
                )
        lines.append("        self.load_state_dict(torch.load(folder / 'state_dict.pt'))")
        lines += [f"    {line}".rstrip() for line in self.code.strip("\n").split("\n")]
        (place / "module.py").write_text("\n".join(lines) + "\n")
        (place / "__init__.py").write_text("from .module import *\n")

    def _name(self) -> str:
        return type(self).__name__

    def __reduce__(self) -> tuple[Any, ...]:
        body = self.__dict__.copy()
        graph = body.pop("_graph")
        body.pop("forward", None)  # of `compile`, which holds this module: a plan is not saved
        made = graph.python_code(root_module="self")
        body["_graphmodule_cls_name"] = self._name()
        body["_code"] = made.src
        return reduce_graph_module, (body, _imports(made.globals))

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        new = type(self).__new__(type(self))
        memo[id(self)] = new
        plain = Module()
        plain.__dict__.update(
            copy.deepcopy({k: v for k, v in self.__dict__.items() if k != "_graph"}, memo)
        )
        graph = copy.deepcopy(self._graph, memo)
        new.__dict__.update(plain.__dict__)
        type(new).__name__ = self._name()
        new.graph = graph
        return new

    def __copy__(self) -> GraphModule:
        made = GraphModule(self, copy.deepcopy(self._graph), self._name())
        made.meta = dict(self.meta)
        return made

    def __str__(self) -> str:
        return "\n".join(
            [
                super().__str__(),
                self._code,
                "# To see more debug info, please use `graph_module.print_readable()`",
            ]
        )


def reduce_graph_module(body: dict[str, Any], import_block: str) -> GraphModule:
    """A pickled graph module: its code is run, and traced again.

    Args:
        body: the attributes.
        import_block: the lines that give the code its globals.
    """
    body = dict(body)
    name = body.pop("_graphmodule_cls_name", "GraphModule")
    forward = _forward_of(f"{import_block}\n{body['_code']}", {})

    class Loaded(Module):
        def __init__(self) -> None:
            super().__init__()
            self.__dict__.update(body)

    Loaded.forward = forward  # type: ignore[method-assign]
    from flambeau.fx._symbolic_trace import Tracer

    base: Any = body.get("_tracer_cls") or Tracer

    class Whole(base):
        """Submodules are what they were: none is looked into."""

        def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
            return True

    loaded = Loaded()
    made = GraphModule(loaded, Whole().trace(loaded), name)
    for key, value in body.items():
        if key not in made.__dict__:
            made.__dict__[key] = value
    made.__dict__["_tracer_cls"] = body.get("_tracer_cls")
    made.training = loaded.training
    return made


def _forward_of(text: str, names: dict[str, Any]) -> Callable[..., Any]:
    """The function ``forward`` of generated code; tracebacks show its lines."""
    file = f"<eval_with_key>.{next(_numbers)}"
    namespace = dict(names)
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    try:
        exec(compile(text, file, "exec"), namespace)
    except SyntaxError as error:
        raise RuntimeError(f"the graph's code is no Python: {error}\n{text:.2000}") from error
    return namespace["forward"]


def _imports(names: dict[str, Any]) -> str:
    """Lines that import the globals of generated code."""
    lines = ["import flambeau as torch", "from flambeau import device", "from math import inf, nan"]
    lines.append("NoneType = type(None)")
    for name, value in names.items():
        if name in OWN_GLOBALS:
            continue
        module = getattr(value, "__module__", None) or type(value).__module__
        path = getattr(value, "__qualname__", None)
        if module == "builtins":
            lines.append(f"{name} = {getattr(value, '__name__', repr(value))}")
        elif path is None or "<locals>" in path:
            raise RuntimeError(f"{name}: {value!r} cannot be imported where the module is loaded")
        else:
            top, *rest = path.split(".")
            lines.append(f"from {module} import {top} as {name}")
            if rest:
                lines.append(f"{name} = {name}.{'.'.join(rest)}")
    return "\n".join(lines)


def _copy_attr(from_module: Module, to_module: Module, target: str) -> None:
    """Let a module have what another one has at a path."""
    *prefix, field = target.split(".")
    source = from_module
    for part in prefix:
        below = getattr(source, part)
        inner = getattr(to_module, part, None)
        if below is inner:
            return  # shared already
        if inner is None:
            inner = Module()
            setattr(to_module, part, inner)
        source, to_module = below, inner
    value = getattr(source, field)
    if isinstance(value, fb.Tensor) and not isinstance(value, Parameter):
        to_module.register_buffer(field, value)
    else:
        setattr(to_module, field, value)


def _assign_attr(value: object, to_module: Module, target: str) -> None:
    """Put a value at a path of a module."""
    *prefix, field = target.split(".")
    for part in prefix:
        inner = getattr(to_module, part, None)
        if inner is None:
            inner = Module()
            setattr(to_module, part, inner)
        to_module = inner
    if isinstance(value, fb.Tensor) and not isinstance(value, Parameter):
        to_module.register_buffer(field, value)
    else:
        setattr(to_module, field, value)


all_take_as_annotated(globals())
