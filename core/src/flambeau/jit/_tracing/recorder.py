"""The recorder: sees the calls of one thread, runs them, and notes each as a node."""

from __future__ import annotations

import weakref
from contextlib import contextmanager
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau._tensor import function_modes
from flambeau._tensor.overrides import Overridable
from flambeau.jit import _types as T
from flambeau.jit._frontend import choices
from flambeau.jit._frontend import values as V
from flambeau.jit._frontend.annotations import AnnotationError
from flambeau.jit._frontend.match import Mismatch, call_op, match
from flambeau.jit._frontend.resolve import Resolver
from flambeau.jit._frontend.source import CompilationError, Place, Source
from flambeau.jit._frontend.state import Compilation
from flambeau.jit._graph import Node, Value
from flambeau.jit._parts import compiler
from flambeau.jit._schemas import schemas
from flambeau.jit._tracing import indexing
from flambeau.jit._tracing.classes import Applied
from flambeau.jit._tracing.numbers import NUMBERS, plain, traced
from flambeau.jit._tracing.state import for_export, user_frame, warn_at
from flambeau.jit._tracing.unseen import Arrays, line
from flambeau.jit._types import ClassType, Type
from flambeau.jit.passes._inline import called

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from flambeau._tensor.tensor import Tensor
    from flambeau.jit._frontend.function import ScriptFunction
    from flambeau.jit._tracing.numbers import TracedInt
    from flambeau.nn.module import Module
    from flambeau.utils._named_ops import CustomOp

_CLASSES = {float: 6, int: 4, bool: 11}
"""The numbers of dtypes that are named by classes of Python."""
_UNSEEN = frozenset({"requires_grad", "generator", "names"})
"""Arguments that a graph has not: what they ask for is of the run that was seen."""
_SPACES = {
    "flambeau.linalg": "linalg_",
    "flambeau.fft": "fft_",
    "flambeau.special": "special_",
}
_OPERATORS = {
    "truediv": "div",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "abs": "abs",
    "invert": "bitwise_not",
    "and": "__and__",
    "or": "__or__",
    "xor": "__xor__",
    "lshift": "__lshift__",
    "rshift": "__rshift__",
}
_CASTS = {
    "float": 6,
    "double": 7,
    "half": 5,
    "bfloat16": 15,
    "long": 4,
    "int": 3,
    "short": 2,
    "char": 1,
    "byte": 0,
    "bool": 11,
    "cfloat": 9,
    "cdouble": 10,
}
_STRIDE = 2
"""Where the stride of a pooling stands; None is that of the window."""
_CONSTANTS = frozenset(
    {"tensor", "as_tensor", "from_numpy", "frombuffer", "from_dlpack", "new_tensor"}
)
"""Functions whose results are constants of a trace."""

_UNTRACEABLE = ("apply_", "map_", "map2_")
"""Methods that call a function of Python with the elements."""


def _has_traced(data: object) -> bool:
    """Whether a number, or one within a list, depends on the inputs."""
    if isinstance(data, list | tuple):
        return any(map(_has_traced, data))
    return type(data) in NUMBERS


class Recorder(Compilation):
    """A trace while it is made: the graph so far, and which tensor is which value of it."""

    is_recorder = True

    def __init__(self, name: str) -> None:
        super().__init__(name, Source(()), Resolver())
        self.known: dict[int, Value] = {}
        self.owned: dict[int, tuple[str, ...]] = {}
        self.held: dict[int, Any] = {}
        self.modules: dict[int, tuple[str, ...]] = {}
        self.paths: dict[tuple[str, ...], Value] = {}
        self.runners: dict[Node, Any] = {}
        self.reals: dict[Value, Any] = {}
        self.namespaces: Any = None
        self.here: Place | None = None
        self.arrays = Arrays()
        self.constants: dict[Value, int] = {}
        self.made: dict[int, Any] = {}
        self.scopes: list[str] = []

    def push_scope(self, name: str) -> None:
        """Mark the nodes that follow with a name, below those that they are marked with."""
        self.scopes.append(name)

    def pop_scope(self) -> None:
        """Mark no more with the last name.

        Raises:
            RuntimeError: there is none.
        """
        if not self.scopes:
            raise RuntimeError("pop_scope() without a push_scope(): no name is left to take away")
        self.scopes.pop()

    def node(self, *args: Any, **kwargs: Any) -> Node:
        made = super().node(*args, **kwargs)
        made.scope = "/".join(self.scopes)
        return made

    def place(self, node: ast.AST | None = None) -> Place | None:
        return self.here

    def look(self) -> None:
        """Note which line of the program is running."""
        frame = user_frame(3)
        self.here = None
        if frame is not None:
            source = Source((), frame.f_code.co_filename, frame.f_lineno)
            self.here = Place(source, 1, 0, 1, 0)

    def own(self, module: Module, kind: ClassType, name: str = "self") -> None:
        """Take a module for the first input: its parameters, buffers and parts are attributes."""
        self.paths[()] = self.graph.addInput(name, kind)
        for path, each in module.named_modules():
            steps = tuple(path.split(".")) if path else ()
            self.modules.setdefault(id(each), steps)
            for held in (each._parameters, each._buffers):
                for own_name, tensor in held.items():
                    if tensor is not None:
                        self.arrays.add(tensor._a)
                        self.held.setdefault(id(tensor._a), tensor)
                        self.owned.setdefault(id(tensor), (*steps, own_name))

    def attribute(self, path: tuple[str, ...]) -> Value:
        """What is held by a module, or is a part of one."""
        found = self.paths.get(path)
        if found is None:
            of = self.attribute(path[:-1])
            kind = of.type()
            assert isinstance(kind, ClassType)
            found = self.emit("prim::GetAttr", [of], kind.attributes[path[-1]], name=path[-1])
            found.name = path[-1] if path[-1].isidentifier() else f"_{path[-1]}"
            self.paths[path] = found
        return found

    def bind(self, tensor: Tensor, value: Value) -> None:
        """Let a tensor be a value of the graph from now on."""
        if not value.is_constant():
            self.arrays.add(tensor._a)
        self.known[id(tensor)] = value
        self.note(value, tensor)

    def note(self, value: Value, real: object) -> None:
        """Keep what a value is in this run."""
        self.reals[value] = real

    def real(self, value: Value) -> Any:
        """What a value is in this run."""
        return self.reals[value]

    def tensor(self, tensor: Tensor) -> Value:
        """The value that a tensor is: a constant, if no node made it."""
        found = self.known.get(id(tensor))
        if found is not None:
            return found
        path = self.owned.get(id(tensor))
        if path is not None:
            found = self.attribute(path)
            self.note(found, tensor)
            return found
        holder = self.held.get(id(tensor._a))
        if holder is not None and holder._a is tensor._a and not tensor.requires_grad:
            found = self.emit("aten::detach", [self.tensor(holder)], T.TENSOR)
            self.bind(tensor, found)
            return found
        if tensor.requires_grad:
            raise RuntimeError(
                "Cannot insert a Tensor that requires grad as a constant. Consider making it a "
                "parameter or input, or detaching the gradient\nTensor:\n" + str(tensor)
            )
        origin = self.arrays.origin(tensor._a)
        if origin is not None:
            raise RuntimeError(
                "Cannot insert a Tensor as a constant that was computed from the inputs in a way "
                f"which a trace does not see ({origin or f'used{line()}'})"
            )
        with self.aside():
            found = self.constant(tensor.detach().clone(), T.TENSOR)
        assert found.node is not None
        found.node.attributes["_captured"] = weakref.ref(tensor)
        self.constants[found] = tensor._version
        self.bind(tensor, found)
        return found

    @contextmanager
    def aside(self) -> Iterator[None]:
        """A block of which nothing is noted."""
        before = function_modes.stack.modes
        function_modes.stack.modes = tuple(m for m in before if m is not self)
        try:
            yield
        finally:
            function_modes.stack.modes = before

    def _keep_written(self) -> None:
        """Give what the program writes to what it had: its own tensor, or in each run a new one."""
        if for_export.get():  # nothing runs the graph, and a reader wants what there was first
            return
        for value, version in self.constants.items():
            tensor, node = self.reals[value], value.node
            if tensor._version == version or node is None or node.owner is None:
                continue
            if id(tensor) not in self.made:  # the program has it from before, and sees the writes
                node.attributes["value"] = tensor
                continue
            copied = call_op(self, "aten::clone", [value])
            assert copied.node is not None
            value.replaceAllUsesWith(copied)
            copied.node.set_input(0, value)
            nodes = node.owner.nodes_
            nodes.remove(copied.node)
            nodes.insert(nodes.index(node) + 1, copied.node)

    def finish(self) -> None:
        """See to the writes of the program.

        Raises:
            RuntimeError: there is one to a tensor of the trace that no node does.
        """
        self._keep_written()
        if self.arrays.fault is not None:
            raise RuntimeError(
                "A tensor of the trace was written to in a way which a trace does not see "
                f"({self.arrays.fault})"
            )

    def is_traced(self, tensor: Tensor) -> bool:
        """Whether a tensor comes from the inputs."""
        found = self.known.get(id(tensor))
        return found is not None and not found.is_constant()

    def value(self, what: Any) -> Value:
        """A value of the program as one of the graph.

        Raises:
            TypeError: it can be none.
        """
        if isinstance(what, fb.Tensor):
            return self.tensor(what)
        if type(what) in NUMBERS:
            return what.value if what.recorder is self else self.constant(plain(what))
        if isinstance(what, (list, tuple)):
            return self._sequence(what)
        if isinstance(what, type) and what in _CLASSES:
            return self.constant(_CLASSES[what], T.INT)
        if isinstance(what, dict):
            parts = [self.value(each) for pair in what.items() for each in pair]
            kinds = parts[0].type() if parts else T.STR, parts[1].type() if parts else T.TENSOR
            return self.emit("prim::DictConstruct", parts, T.dict_of(*kinds))
        if isinstance(what, V.Sugar | slice) or what is Ellipsis or isinstance(what, fb.Generator):
            raise TypeError(f"a {type(what).__name__} cannot be traced")
        if type(what).__module__ == "numpy" and hasattr(what, "item") and not what.ndim:
            what = what.item()
        try:
            return V.constant_of(self, None, what)
        except (RuntimeError, AttributeError, AnnotationError) as error:
            raise TypeError(f"a {type(what).__name__} cannot be traced: {error}") from None

    def _sequence(
        self,
        what: Sequence[Any],
    ) -> Value:
        parts = [self.value(each) for each in what]
        kinds = [each.type() for each in parts]
        if isinstance(what, tuple):
            kind: Type = T.tuple_of(*kinds)
            if hasattr(what, "_fields"):
                kind = compiler.annotations.of_named_tuple(type(what))
            return self.emit("prim::TupleConstruct", parts, kind)
        joined: Type | None = kinds[0] if kinds else T.TENSOR
        for each in kinds[1:]:
            joined = T.unify(joined, each) if joined is not None else None
        if joined is None:
            raise TypeError("a list of values of several types cannot be traced")
        return self.emit("prim::ListConstruct", parts, T.list_of(joined), _open=True)

    def _of_one_kind(self, what: Any, dtype: fb.dtype) -> Value:
        """Lists of numbers of several kinds, as those of the tensor that is made of them."""
        if isinstance(what, (list, tuple)):
            parts = [self._of_one_kind(each, dtype) for each in what]
            kind = T.list_of(parts[0].type() if parts else T.FLOAT)
            return self.emit("prim::ListConstruct", parts, kind, _open=True)
        op, kind = ("aten::Float", T.FLOAT) if dtype.is_floating_point else ("aten::Int", T.INT)
        value = self.value(what)
        return value if value.type() is kind else call_op(self, op, [value])

    def number(self, op: str, given: Sequence[Any], result: object) -> Any:
        """Note arithmetic of numbers, and give the result its place in the graph."""
        if isinstance(result, bool) or not isinstance(result, (int, float)):
            return result
        self.look()
        try:
            value = call_op(self, f"aten::{op}", [self.value(each) for each in given])
        except (CompilationError, TypeError):
            return result
        if isinstance(result, int) and value.type() is not T.INT:
            value = call_op(self, "aten::Int", [value])
        return traced(self, result, value)

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run a call, and note it."""
        kwargs = kwargs or {}
        self.look()
        name = getattr(func, "__name__", "")
        if isinstance(func, Overridable):
            space = func.__module__
            if space.startswith("flambeau.nn."):
                return self._functional(func, name, args, kwargs)
            if name in _CONSTANTS:
                return self._constant(func, name, args, kwargs)
            name = _SPACES.get(space, "") + name
        elif name in _UNTRACEABLE:
            raise RuntimeError(f"{name}() calls Python for each element and cannot be traced")
        elif name == "where":  # the method has the condition in the second place
            return self._noted(
                func, args, kwargs, lambda: self.op(name, _condition_first(*args, **kwargs), {})
            )
        elif name == "__getitem__":
            return self._noted(func, args, kwargs, lambda: indexing.read(self, *args))
        elif name == "__setitem__":
            func(plain(args[0]), plain(args[1]), plain(args[2]))
            return indexing.write(self, *args)
        elif name in _CONSTANTS:
            return self._constant(func, name, args, kwargs)
        return self._op(func, name, args, kwargs)

    def method(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Tensor:
        """Run a method that modes do not see, and note it.

        Raises:
            RuntimeError: a tensor takes over the memory of what is none.
        """
        self.look()
        with self.aside():
            name = func.__name__
            if name == "type":
                return self._typed(func, args, kwargs)
            if name == "set_" and not all(isinstance(each, fb.Tensor) for each in args[1:2]):
                raise RuntimeError("set_() of a storage cannot be traced")
            return self._op(func, name, args, kwargs)

    def _typed(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Tensor:
        """``x.type(dtype)``, which is a conversion."""
        result = func(*args, **kwargs)
        if isinstance(result, fb.Tensor):
            given = [self.value(args[0]), self.value(result.dtype)]
            self.bind(result, call_op(self, "aten::to", given))
        return result

    def _constant(
        self,
        func: Callable[..., Any],
        name: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Tensor:
        if args and isinstance(args[0], fb.Tensor) and name == "as_tensor":
            where = dict(zip(("dtype", "device"), args[1:], strict=False)) | kwargs
            result = args[0].to(**{key: value for key, value in where.items() if value is not None})
            if result is not args[0]:
                given = [self.value(args[0]), self.value(result.dtype)]
                self.bind(result, call_op(self, "aten::to", given))
            return result
        if name in ("tensor", "as_tensor") and args and _has_traced(args[0]):
            made = func(*plain(args), **{k: plain(v) for k, v in kwargs.items()})
            given = {"dtype": self.value(made.dtype), "device": self.value(made.device)}
            try:
                numbers = self.value(args[0])
            except TypeError:
                numbers = self._of_one_kind(args[0], made.dtype)
            self.bind(made, call_op(self, "aten::tensor", [numbers], given))
            return made
        frame = user_frame(3)
        if frame is not None:
            warn_at(
                frame,
                f"torch.{name} results are registered as constants in the trace. You can safely "
                "ignore this warning if you use this function to create tensors out of constant "
                "variables that would be the same every time you call this function. In any other "
                "case, this might cause the trace to be incorrect.",
            )
        made = func(*plain(args), **{k: plain(v) for k, v in kwargs.items()})
        self.made[id(made)] = made
        return made

    def _op(
        self, func: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        def emit() -> Value:
            given = {k: v for k, v in kwargs.items() if k not in _UNSEEN}
            try:
                return self.op(name, args, given)
            except (CompilationError, TypeError, Mismatch):
                if not any(map(_counts, (*args, *given.values()))):
                    raise
            counted = [self._as_numbers(each) for each in args]
            return self.op(name, counted, {k: self._as_numbers(v) for k, v in given.items()})

        return self._noted(func, args, kwargs, emit)

    def _as_numbers(self, what: Any) -> Any:
        """A list of sizes with the tensors in it as the numbers that they hold."""
        if not _counts(what):
            return what
        return [
            traced(self, int(each), call_op(self, "aten::Int", [self.tensor(each)]))
            if isinstance(each, fb.Tensor)
            else each
            for each in what
        ]

    def _noted(
        self,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        emit: Callable[..., Any],
    ) -> Any:
        """Run a call after its node was made; without a node its parts are noted."""
        before = len(self.block.nodes_)
        try:
            value = emit()
        except (CompilationError, TypeError, Mismatch) as error:
            self._forget(before)
            return self._by_parts(func, args, kwargs, error)
        result = func(*plain(args), **{k: plain(v) for k, v in kwargs.items()})
        if func.__name__ == "numel":
            return traced(self, result, value)
        if not _has_tensor(result):
            self._forget(before)
            return result
        return self.give(result, value)

    def _forget(self, before: int) -> None:
        for node in reversed(self.block.nodes_[before:]):
            for path, value in list(self.paths.items()):
                if value.node is node:
                    del self.paths[path]
            for each in node.outputs_:
                self._unbind(each)
            node.destroy()

    def _unbind(self, value: Value) -> None:
        for key in [key for key, each in self.known.items() if each is value]:
            del self.known[key]

    def _by_parts(
        self,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        error: Exception,
    ) -> Any:
        """Run a function that is no op, and see the calls that it makes."""
        inner = getattr(func, "_plain", None) or getattr(func, "__wrapped__", func)
        self.namespaces.of(inner)
        before = function_modes.stack.modes
        function_modes.stack.modes = (*before, self)
        try:
            result = inner(*args, **kwargs)
        finally:
            function_modes.stack.modes = before
        name = getattr(func, "__name__", str(func))
        if any(map(self.is_traced, _tensors((args, kwargs)))):
            for each in _tensors(result):
                if id(each) not in self.known and id(each) not in self.owned:
                    raise RuntimeError(f"{name} cannot be traced: {error}") from None
        return result

    def op(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Value:
        """Note an op by the name of its function or method."""
        args = list(args)
        inplace = False
        if name[:2] == "__" == name[-2:]:
            bare = name[2:-2]
            if bare not in ("eq", "ne", "lt", "le", "gt", "ge"):
                if bare[0] == "i" and bare != "invert":
                    bare, inplace = bare[1:], True
                elif bare[0] == "r" and bare not in ("rshift",):
                    return self._reflected(bare[1:], args)
            if bare == "pos":
                return self.tensor(args[0])
            name = _OPERATORS.get(bare, bare)
            if inplace:
                name = f"__i{bare}__" if name.startswith("__") else f"{name}_"
        elif name in _CASTS and len(args) == 1:
            given = [self.value(args[0]), self.constant(_CASTS[name], T.INT)]
            return call_op(self, "aten::to", given)
        if name == "view" and any(
            isinstance(each, fb.dtype) for each in (*args[1:], *kwargs.values())
        ):
            dtype = next(each for each in (*args[1:], *kwargs.values()))
            return call_op(self, "aten::view", [self.value(args[0])], {"dtype": self.value(dtype)})
        if name == "nonzero" and kwargs.get("as_tuple"):
            name = "nonzero_numpy"
        kwargs = {key: each for key, each in kwargs.items() if key != "as_tuple"}
        if len(args) > 1 and kwargs.get("size", 0) is None:  # a method's, with its sizes one by one
            del kwargs["size"]
        if "_pool" in name:
            args = [[] if each is None and at == _STRIDE else each for at, each in enumerate(args)]
        op = f"aten::{name}"
        if not schemas(op):
            op = V._renamed().get(name, op)
        if not _SPELLED.keys().isdisjoint(kwargs):
            own = {argument.name for schema in schemas(op) for argument in schema.arguments}
            kwargs = {k if k in own else _SPELLED.get(k, k): each for k, each in kwargs.items()}
        given = [self.value(each) for each in args]
        named = {k: self.value(v) for k, v in kwargs.items()}
        if name in choices.CHOICES:
            return choices.choose(self, name, given, named)
        try:
            return call_op(self, op, given, named)
        except CompilationError:
            if isinstance(args[0], fb.Tensor) and any(isinstance(each, bool) for each in args[1:]):
                flags = [self.operand(args[0], x) if isinstance(x, bool) else x for x in args[1:]]
                return call_op(self, op, [given[0], *map(self.value, flags)], named)
            whole = {k: self.value(v) for k, v in _as_floats(op, dict(enumerate(args))).items()}
            words = {k: self.value(v) for k, v in _as_floats(op, kwargs).items()}
            if not whole and not words:
                raise
            given = [whole.get(at, each) for at, each in enumerate(given)]
            return call_op(self, op, given, named | words)

    def _reflected(self, bare: str, args: list[Any]) -> Value:
        tensor, other = args
        if bare == "sub":
            return call_op(self, "aten::rsub", [self.value(tensor), self.value(other)])
        given = [self.value(other), self.value(tensor)]
        op = f"aten::{_OPERATORS.get(bare, bare)}"
        if not isinstance(other, fb.Tensor) and bare not in ("pow", "mod"):
            if bare in ("and", "or", "xor"):
                given.reverse()
            if isinstance(other, bool) or bare not in ("and", "or", "xor"):
                given = [
                    self.value(self.operand(tensor, other)) if each.type() is not T.TENSOR else each
                    for each in given
                ]
        return call_op(self, op, given)

    def operand(self, tensor: Tensor, number: complex) -> Tensor:
        """A number as a tensor that promotes with another one as the number does."""
        number = plain(number)
        kind = fb.result_type(tensor, number)
        if tensor.dim():  # a tensor without dimensions has no say beside it
            kind = {bool: fb.bool, int: fb.int64}.get(type(number), kind)
            if isinstance(number, float) and tensor.is_floating_point():
                kind = fb.float64
        return fb.tensor(number, dtype=kind, device=tensor.device)

    def give(self, result: object, value: Value) -> Any:
        """Pair what a call returned with what its node makes."""
        kind = value.type()
        if isinstance(result, fb.Tensor):
            if kind is T.TENSOR or kind.kind == "Optional":
                self.bind(result, value)
        elif isinstance(result, (tuple, list)):
            parts: Sequence[Value] = ()
            if kind.kind == "Tuple":
                parts = compiler.match.unpack(self, value)
            elif kind.kind == "List" and kind.args[0] is T.TENSOR:
                types = [T.TENSOR] * len(result)
                parts = self.node("prim::ListUnpack", [value], types).outputs_
            elif kind is T.TENSOR and len(result) == 1:
                parts = [value]
            for each, part in zip(result, parts, strict=False):
                self.give(each, part)
        elif isinstance(result, dict):
            for key, each in result.items():
                self.give(each, call_op(self, "aten::__getitem__", [value, self.value(key)]))
        return result

    def _functional(
        self,
        func: Callable[..., Any],
        name: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Run a function of `nn.functional` as the language has it, and note its ops."""
        functional = compiler.functional
        if name not in functional._functions() and name not in functional._CHOICES:
            return self._op(func, name, args, kwargs)
        before = len(self.block.nodes_)
        try:
            kinds = functional.types_of_arguments(name)
            by_place = zip_longest(args, list(kinds.values())[: len(args)])
            given = [self.value(_declared(each, kind)) for each, kind in by_place]
            named = {k: self.value(_declared(v, kinds.get(k))) for k, v in kwargs.items()}
            call = functional.choice(name).call(self, None, given, named)
        except (CompilationError, TypeError) as error:
            self._forget(before)
            return self._by_parts(func, args, kwargs, error)
        node = call.node
        function = called(node)
        inputs = list(node.inputs_[1:])
        node.destroy()
        return compiler.interpret.run(self, function, inputs)

    def script_call(
        self, function: ScriptFunction, args: tuple[Tensor | float, ...], kwargs: dict[str, Any]
    ) -> Tensor:
        """Note a call of a scripted function, and run it."""
        self.look()
        function.compile()
        inputs = self._matched(function, args, kwargs)
        made = V.function_constant(self, None, function)
        value = self.emit("prim::CallFunction", [made, *inputs], function.returned)
        return self._called(lambda: function(*plain(args), **kwargs), value)

    def method_call(
        self, method: Any, args: tuple[Any, ...], kwargs: dict[str, Any], run: Callable[..., Any]
    ) -> Any:
        """Note a call of a method of a scripted module, and run it."""
        self.look()
        of, function = method.of, method.function
        function.compile()
        path = self.modules.get(id(of))
        kind = of._type_of_script
        if path is not None and self.attribute(path).type() is kind:
            module = self.attribute(path)
        else:
            module = self.emit("prim::Constant", (), kind, _object=of, name=kind.name)
        inputs = self._matched(function, (module, *args), kwargs)
        value = self.emit("prim::CallMethod", inputs, function.returned, name=function.name)
        return self._called(lambda: run(method, *plain(args), **kwargs), value)

    def python_call(self, function: Any, args: Any) -> Any:
        """Note a call of a function of autograd as a whole, and run it."""
        self.look()
        inputs = [self.value(each) for each in args]
        with self.aside():
            result = function.apply(*plain(args))
        several = isinstance(result, tuple)
        kind = T.tuple_of(*[T.TENSOR] * len(result)) if several else T.TENSOR
        value = self.emit("prim::PythonOp", inputs, kind, _function=function)
        return self.give(result, value)

    def named_call(self, op: CustomOp, args: Any, kwargs: Any) -> Any:
        """Note an op of the program as a whole, and run it.

        What is within it is not looked into: it reads elements and sizes, and writes through
        pointers, and nobody would see it.
        """
        self.look()
        with self.aside():
            schema = V.parse(op.schema) if "->" in op.schema else None
            if schema is None and kwargs:
                raise TypeError(
                    f"'{op._name}' has no schema, which says where its named arguments stand: "
                    "define it with one, or with annotations"
                )
            kinds = {} if schema is None else {each.name: each.type for each in schema.arguments}
            inputs = [
                self.value(_declared(each, kind))
                for each, kind in zip_longest(args, list(kinds.values())[: len(args)])
            ]
            named = {k: self.value(_declared(v, kinds.get(k))) for k, v in kwargs.items()}
            result = self._run_whole(op, plain(args), {k: plain(v) for k, v in kwargs.items()})
            if schema is None:
                kind = _type_of(result)
                value = self.emit("prim::PythonOp", inputs, kind, name=op.__name__, _function=op)
            else:
                value = V.NamedOp(op).call(self, None, inputs, named)
        if isinstance(result, tuple) and not hasattr(result, "_fields"):
            parts = compiler.match.unpack(self, value)
            return tuple(map(self._given, result, parts))
        return self._given(result, value)

    def _given(self, result: object, value: Value) -> Any:
        """What an op gave: a number is one of the trace."""
        if type(result) in (int, float):
            return traced(self, result, value)
        return self.give(result, value)

    def _run_whole(self, op: CustomOp, args: Any, kwargs: Any) -> Any:
        """What an op gives.

        For an export it sees tensors without gradients, as its kernel does in PyTorch; what it
        gives has some, which show what of it nobody sees.
        """
        if not for_export.get():
            return op(*args, **kwargs)
        with fb.no_grad():
            result = op(
                *_each_tensor(args, fb.Tensor.detach), **_each_tensor(kwargs, fb.Tensor.detach)
            )
        return _each_tensor(result, _with_gradient)

    def gradient_call(self, cls: Any, args: tuple[Any, ...]) -> Any:
        """Note a call of a class of autograd, which Python runs in each run, and run it."""
        self.look()
        call = Applied(cls, args)
        inputs = [self.value(args[place]) for place in call.places]
        with self.aside():
            result = cls.apply(*plain(args))
        several = isinstance(result, tuple)
        tensors = [
            part for part in (result if several else [result]) if isinstance(part, fb.Tensor)
        ]
        kind = T.tuple_of(*[T.TENSOR] * len(tensors)) if several else T.TENSOR
        value = self.emit("prim::PythonOp", inputs, kind, name=call.__name__, _function=call)
        self.give(tuple(tensors) if several else result, value)
        return result

    def _matched(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Value]:
        given = [each if isinstance(each, Value) else self.value(each) for each in args]
        named = {k: self.value(v) for k, v in kwargs.items()}
        try:
            return match(self, function.schema, given, named, allow=True)[0]
        except Mismatch as why:
            raise RuntimeError(str(why)) from None

    def _called(self, call: Callable[..., Any], value: Value) -> Any:
        with self.aside():
            result = call()
        return self._given(result, value)


_SPELLED = {"axis": "dim", "keepdims": "keepdim", "x1": "input", "x2": "other"}
"""NumPy's names of arguments, and those that signatures have."""


def _tensors(what: object) -> list[Any]:
    """The tensors in a nest of containers."""
    if isinstance(what, fb.Tensor):
        return [what]
    if isinstance(what, (tuple, list)):
        return [each for part in what for each in _tensors(part)]
    if isinstance(what, dict):
        return _tensors(list(what.values()))
    return []


def _each_tensor(what: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """A nest of containers with each tensor changed."""
    if isinstance(what, fb.Tensor):
        return change(what)
    if isinstance(what, (tuple, list)):
        made = [_each_tensor(each, change) for each in what]
        if isinstance(what, list):
            return made
        return type(what)(*made) if hasattr(what, "_fields") else tuple(made)
    if isinstance(what, dict):
        return {key: _each_tensor(each, change) for key, each in what.items()}
    return what


def _with_gradient(tensor: Tensor) -> Tensor:
    if tensor.is_floating_point() or tensor.is_complex():
        return tensor.detach().requires_grad_().clone()
    return tensor


def _type_of(what: object) -> Type:
    """The type of what an op without a schema gave."""
    for kind, found in ((bool, T.BOOL), (int, T.INT), (float, T.FLOAT), (str, T.STR)):
        if isinstance(what, kind):
            return found
    if isinstance(what, tuple):
        return T.tuple_of(*map(_type_of, what))
    if isinstance(what, list):
        return T.list_of(_type_of(what[0]) if what else T.TENSOR)
    return T.NONE if what is None else T.TENSOR


def _as_floats(op: str, given: Mapping[Any, Any]) -> dict[Any, float]:
    """The whole numbers that stand, by position or by name, where a signature wants others."""
    wanted = {
        key
        for schema in schemas(op)
        for at, each in enumerate(schema.arguments)
        if each.type in (T.FLOAT, T.optional(T.FLOAT))
        for key in (at, each.name)
    }
    return {key: float(each) for key, each in given.items() if type(each) is int and key in wanted}


def _declared(what: object, kind: Type | None) -> Any:
    """A number or numbers in the form that the language has for an argument.

    An integer is a float where no integer is taken (``scale_factor=2``), a tuple is a list where
    a list is (``size=x.shape[2:]``).
    """
    if kind is None:
        return what
    if type(what) is int and T.is_subtype(T.FLOAT, kind) and not T.is_subtype(T.INT, kind):
        return float(what)
    if isinstance(what, (tuple, list)) and what and all(map(_is_number, what)):
        if isinstance(what, tuple) and T.is_subtype(T.list_of(T.INT), kind):
            return list(what)
        if T.is_subtype(T.list_of(T.FLOAT), kind):
            return [float(each) if type(each) is int else each for each in what]
    return what


def _is_number(what: TracedInt | float) -> bool:
    return isinstance(what, (int, float)) and not isinstance(what, bool)


def _condition_first(input: Tensor, condition: Tensor, other: object) -> tuple[Any, ...]:
    """The arguments of the method `where` as the function has them."""
    return condition, input, other


def _counts(what: object) -> bool:
    """Whether something is a list of whole numbers, some of which tensors hold."""
    return (
        isinstance(what, (list, tuple))
        and any(isinstance(each, fb.Tensor) for each in what)
        and all(
            isinstance(plain(each), int)
            or (isinstance(each, fb.Tensor) and each.numel() == 1 and not each.is_floating_point())
            for each in what
        )
    )


def _has_tensor(what: object) -> bool:
    return bool(_tensors(what))
