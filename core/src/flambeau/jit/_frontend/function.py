"""Scripted functions: compiled when they are first needed, and called as Python's."""

from __future__ import annotations

import ast
import functools
import inspect
import re
import textwrap
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau._dispatch.annotated import takes_as_annotated
from flambeau.jit import _decorators, _settings, passes
from flambeau.jit import _types as T
from flambeau.jit._frontend import annotations as _annotations
from flambeau.jit._frontend.resolve import Resolver, of_function
from flambeau.jit._frontend.source import CompilationError, Place, Source
from flambeau.jit._frontend.state import RETURNED, Compilation
from flambeau.jit._frontend.values import FunctionRef, Overloads, Sugar, constant_of
from flambeau.jit._parts import compiler
from flambeau.jit._schemas import NO_DEFAULT, Argument, Schema
from flambeau.jit._types import ClassType, Type
from flambeau.jit.passes._groups import Settings
from flambeau.plugin.forks import make_lock

if TYPE_CHECKING:
    from flambeau.jit._graph import Graph

_lock = (
    make_lock()
)  # a function that is being compiled and asked for by the same thread is recursive


class Declaration:
    """A function that can be compiled: its syntax tree, the source of it, what its names mean."""

    def __init__(
        self,
        node: ast.FunctionDef,
        source: Source,
        resolver: Resolver,
        defaults: Mapping[str, Any],
        qualified_name: str,
    ) -> None:
        self.node, self.source, self.resolver = node, source, resolver
        self.defaults, self.qualified_name = defaults, qualified_name
        self.self_type: Type | None = None
        self.owner: type | None = None
        self.setup: Callable[[Compilation], None] | None = None


def _records(value: object) -> bool:
    """Whether an argument of a call records a history."""
    if isinstance(value, (list, tuple)):
        return any(map(_records, value))
    return isinstance(value, fb.Tensor) and value.requires_grad


class ScriptFunction:
    """A function that was compiled.

    >>> import flambeau as fb
    >>> @fb.jit.script
    ... def double(x):
    ...     return x * 2
    >>> double(fb.ones(2))
    tensor([2., 2.])
    >>> print(double.graph.str(print_source_ranges=False))
    graph(%x : Tensor):
      %1 : int = prim::Constant[value=2]()
      %2 : Tensor = aten::mul(%x, %1)
      return (%2)
    <BLANKLINE>
    """

    @takes_as_annotated
    def __init__(
        self,
        name: str,
        qualified_name: str,
        declaration: Callable[[], Declaration] | None = None,
        graph: Graph | None = None,
    ) -> None:
        self.name, self.qualified_name = name, qualified_name
        self.__name__ = self.__qualname__ = name
        self._declare = declaration
        self._declaration: Declaration | None = None
        self._graph = graph
        self._schema: Schema | None = None
        self._run: Callable[..., Any] | None = None
        self._raw: Callable[..., Any] | None = None
        self._compiling = False
        self._inlined: Graph | None = None
        self.owner: ClassType | None = None
        self.original: Any = None
        if graph is not None:
            self._schema = self._schema_of_graph(graph)

    def _schema_of_graph(self, graph: Graph) -> Schema:
        given = [Argument(graph.name_of(v).partition(".")[0], v.type()) for v in graph.inputs()]
        back = [Argument("", v.type()) for v in graph.outputs()]
        return Schema(self.name, "", tuple(given), tuple(back))

    @property
    def declaration(self) -> Declaration:
        """What is compiled."""
        if self._declaration is None:
            if self._declare is None:
                raise RuntimeError(f"function {self.name} has neither a declaration nor a graph")
            declaration = self._declare()
            if not isinstance(declaration, Declaration):
                raise TypeError(
                    f"function {self.name}: what gives its declaration gave a "
                    f"{type(declaration).__name__}"
                )
            self._declaration = declaration
        return self._declaration

    @property
    def schema(self) -> Schema:
        """The signature: known from the annotations, the result after compilation."""
        if self._schema is None:
            declaration = self.declaration
            arguments, back = arguments_of(declaration)
            returns = (Argument("", back),) if back is not None else ()
            self._schema = Schema(self.name, "", tuple(arguments), returns)
        return self._schema

    @property
    def returned(self) -> Type:
        """The type of the result."""
        self.compile()
        assert self._graph is not None
        outputs = list(self._graph.outputs())
        return outputs[0].type() if outputs else T.NONE

    def compile(self) -> None:
        """Compile the function, if that was not done yet.

        Raises:
            CompilationError: it is no TorchScript, or calls itself.
        """
        if self._graph is None:
            with _lock:
                self._compiled()

    def _compiled(self) -> None:
        if self._graph is not None:
            return
        declaration = self.declaration
        if self._compiling:
            raise CompilationError(
                f"function '{self.name}' is called recursively. Recursive calls are not supported",
                Place.of(declaration.source, declaration.node),
            )
        self._compiling = True
        try:
            arguments = self.schema.arguments
            graph, returned = compile_declaration(self.name, declaration, arguments)
            if _settings.INLINES:
                passes.inline(graph)
        except RecursionError:
            raise _too_deep(self.name) from None
        finally:
            self._compiling = False
        self._graph = graph
        self._schema = Schema(self.name, "", arguments, (Argument("", returned),))

    def compile_for(self, c: Compilation, node: ast.AST | None) -> None:
        """Compile the function for a call of it; errors say where that is."""
        if self._graph is None:
            with _lock:
                self._compiled_for(c, node)

    def _compiled_for(self, c: Compilation, node: ast.AST | None) -> None:
        if self._graph is not None:
            return
        declared = self._declared_return()
        if self._compiling and declared is None:
            c.fail(
                node,
                f"function '{self.name}' is called recursively. Recursive calls are not supported",
            )
        if self._compiling:
            c.fail(
                node,
                f"function '{self.name}' is called recursively. Recursive calls are not supported",
            )
        try:
            self.compile()
        except CompilationError as error:
            place = c.place(node)
            if place is not None:
                error.called_from(self.name, c.name, place)
            raise

    def _declared_return(self) -> Type | None:
        return self.schema.returns[0].type if self.schema.returns else None

    @property
    def graph(self) -> Graph:
        """The graph, with calls of other functions as calls."""
        self.compile()
        assert self._graph is not None
        return self._graph

    @property
    def inlined_graph(self) -> Graph:
        """The graph, with other functions in the place of their calls."""
        if self._inlined is None:
            self._inlined = self.graph.copy()
            passes.inline(self._inlined)
        return self._inlined

    def graph_for(self, *args: object, **kwargs: object) -> Graph:
        """The graph that runs for such arguments: inlined, simplified, and with its groups.

        Where an argument records a history, nodes with gradients are in
        ``prim::DifferentiableGraph``; what one loop computes is a ``prim::FusionGroup`` if programs
        asked for fusion on the CPU.
        """
        graph = self.inlined_graph.copy()
        passes.optimize(graph)
        if fb.is_grad_enabled() and any(map(_records, (*args, *kwargs.values()))):
            passes.group_differentiable(graph)
        if Settings.fuses:
            passes.group_loops(graph)
        return graph

    @property
    def code(self) -> str:
        """The graph as source, which can be compiled again."""
        return self.code_with_constants[0]

    @property
    def code_with_constants(self) -> tuple[str, Any]:
        """The source, and the tensors that it names ``CONSTANTS.c0`` and so on."""
        Constants = compiler.code.Constants
        function_code = compiler.code.function_code

        constants = Constants()
        text = function_code(self, constants)
        return text, constants.mapping

    def pretty_print_schema(self) -> str:
        """The signature as text."""
        schema = self.schema
        given = ", ".join(
            f"{a.type.annotation} {a.name}" + ("" if a.default is NO_DEFAULT else f"={a.default!r}")
            for a in schema.arguments
        )
        return f"({given}) -> {self.returned.annotation}"

    def save(self, f: object, _extra_files: Mapping[str, Any] | None = None) -> None:
        """Write an archive that `load` and PyTorch read: see `flambeau.jit.save`."""
        save = compiler.archive.save

        save(self, f, _extra_files)

    def save_to_buffer(self, _extra_files: Mapping[str, Any] | None = None) -> bytes:
        """The bytes of the archive."""
        import io

        buffer = io.BytesIO()
        self.save(buffer, _extra_files)
        return buffer.getvalue()

    @property
    def raw(self) -> Callable[..., Any]:
        """The compiled Python function, which checks and completes no arguments."""
        if self._raw is None:
            with _lock:
                self._made_raw()
        assert self._raw is not None
        return self._raw

    def _made_raw(self) -> None:
        python_function = compiler.execute.python_function

        if self._raw is not None:
            return
        self.compile()
        if self._compiling:
            raise CompilationError(f"function '{self.name}' is a value in itself")
        self._compiling = True
        try:
            self._raw = python_function(self)
        except RecursionError:
            raise _too_deep(self.name) from None
        finally:
            self._compiling = False

    def __call__(self, *args: object, **kwargs: object) -> Any:
        run = self._run
        if run is None:
            checked = compiler.execute.checked

            run = self._run = checked(self)
        try:
            return run(*args, **kwargs)
        except TypeError:
            compiler.execute.refuse(self, args, kwargs)
            raise
        except compiler.execute.OverriddenError as overridden:
            return overridden.call(self, args, kwargs)

    def __repr__(self) -> str:
        return f"<ScriptFunction {self.qualified_name}>"

    def __get__(self, instance: object, owner: type) -> Any:
        return self if instance is None else functools.partial(self, instance)


ScriptedFunction = ScriptFunction


def compile_declaration(
    name: str, declaration: Declaration, arguments: tuple[Argument, ...]
) -> tuple[Graph, Type]:
    """The graph of a function, and the type of its result."""
    EXITS = compiler.statements.EXITS
    FALLS = compiler.statements.FALLS
    RAISES = compiler.statements.RAISES
    _branches = compiler.statements._branches
    statements = compiler.statements.statements

    c = Compilation(name, declaration.source, declaration.resolver)
    c.__dict__["owner"] = declaration.owner
    c.declared_return = _return_type(declaration) if _has_return(declaration) else None
    c.self_type = declaration.self_type
    for argument in arguments:
        made = c.graph.addInput(argument.name, argument.type)
        made.inferred = argument.inferred
        c.frame.variables[argument.name] = made
    if declaration.setup is not None:
        declaration.setup(c)
    node = declaration.node
    try:
        status = statements(c, node.body)

        def falls() -> object:
            if c.declared_return not in (None, T.NONE, T.ANY):
                c.fail(
                    node,
                    "Function was not annotated as having type None, but does not return along "
                    "all paths",
                )
            if c.returned not in (T.UNKNOWN, T.NONE):
                c.returned = T.optional(c.returned)
            c.frame.variables[RETURNED] = c.constant(None, T.NONE)
            return EXITS

        c.at = None
        if status is FALLS:
            falls()
        elif status is not EXITS and status is not RAISES:
            Truth = compiler.conditions.Truth

            _branches(c, node, Truth(status), lambda: EXITS, falls)
    except RecursionError:
        c.fail(node, "the function is nested too deeply")
    back = c.frame.find(RETURNED)
    if back is None:
        back = (
            c.constant(None, T.NONE)
            if status is not RAISES
            else c.uninitialized(c.declared_return or T.NONE)
        )
    if back.type() is T.UNKNOWN:
        back.setType(T.NONE if c.returned is T.UNKNOWN else c.returned)
    for value in c.open_types:
        if value.type() is T.UNKNOWN:
            value.setType(c.declared_return or back.type())
    if c.declared_return is not None and back.type() is not c.declared_return:
        convert = compiler.match.convert

        converted = convert(c, back, c.declared_return, allow=False)
        if converted is not None:
            back = converted
    c.graph.registerOutput(back)
    passes.clean(c.graph)
    returned = c.declared_return if c.declared_return is not None else back.type()
    return c.graph, returned


def _comment_types(
    declaration: Declaration,
) -> tuple[list[ast.expr] | None, ast.expr | None] | None:
    """The types of ``# type: (int, Tensor) -> Tensor``; None for the arguments of ``(...)``.

    Without an arrow the type of the result is not said.  Another comment may follow.
    """
    comment = declaration.node.type_comment
    if not comment:
        return None
    comment = comment.partition("#")[0]
    head, arrow, back = comment.rpartition("->")
    head = (head if arrow else back).strip()
    if not (head.startswith("(") and head.endswith(")")):
        raise CompilationError(
            f"Expected a type comment of the form (...) -> ..., got {comment!r}",
            Place.of(declaration.source, declaration.node),
        )
    inside = head[1:-1].strip()
    returned = _parsed(declaration, back) if arrow else None
    if inside == "...":
        return None, returned
    tree = _parsed(declaration, f"({inside},)" if inside else "()")
    if not isinstance(tree, ast.Tuple):
        place = Place.of(declaration.source, declaration.node)
        raise CompilationError(f"Expected types in a type comment, got {inside!r:.80}", place)
    parts = [e.value if isinstance(e, ast.Starred) else e for e in tree.elts]
    return parts, returned


def _parsed(declaration: Declaration, text: str) -> ast.expr:
    try:
        return _annotations.parsed(text)
    except _annotations.AnnotationError as error:
        place = Place.of(declaration.source, declaration.node)
        raise CompilationError(str(error), place) from None


def _has_return(declaration: Declaration) -> bool:
    return declaration.node.returns is not None or bool(declaration.node.type_comment)


def _return_type(declaration: Declaration) -> Type | None:
    comment = _comment_types(declaration)
    node = comment[1] if comment else declaration.node.returns
    return _type(declaration, node) if node is not None else None


def _type(declaration: Declaration, node: ast.expr) -> Type:
    try:
        return _annotations.of_syntax(node, declaration.resolver)
    except _annotations.AnnotationError as error:
        at = node if hasattr(node, "lineno") else declaration.node
        raise CompilationError(str(error), Place.of(declaration.source, at)) from None


def arguments_of(declaration: Declaration) -> tuple[list[Argument], Type | None]:
    """The arguments of a function, and the type that its result is annotated with."""
    given = declaration.node.args
    place = Place.of(declaration.source, declaration.node)
    if given.vararg or given.kwarg:
        raise CompilationError(
            "Compiled functions can't take variable number of arguments or use keyword-only "
            "arguments with defaults",
            place,
        )
    comment = _comment_types(declaration)
    types = comment[0] if comment else None
    named = [*given.posonlyargs, *given.args]
    own = 1 if declaration.self_type is not None else 0
    if types is not None and len(types) not in (len(named), len(named) - own):
        raise CompilationError(
            f"Number of type annotations for function parameters ({len(types)}) does not match "
            f"the number of parameters on the function ({len(named) - own})!",
            place,
        )
    skipped = len(named) - len(types) if types is not None else 0
    _check_comments(named[own:], comment, place)
    found: list[Argument] = []
    for at, argument in enumerate([*named, *given.kwonlyargs]):
        keyword_only = at >= len(named)
        if at == 0 and declaration.self_type is not None:
            found.append(Argument(argument.arg, declaration.self_type))
            continue
        noted = argument.annotation
        if noted is None and argument.type_comment:
            noted = _parsed(declaration, argument.type_comment)
        if types is not None and not keyword_only:
            noted = types[at - skipped]
        kind = _type(declaration, noted) if noted is not None else T.TENSOR
        size = _broadcast_size(noted)
        default = declaration.defaults.get(argument.arg, NO_DEFAULT)
        if default is not NO_DEFAULT:
            default = _checked_default(declaration, argument.arg, default, kind, place)
        found.append(
            Argument(argument.arg, kind, default, keyword_only, size=size, inferred=noted is None)
        )
    return found, _return_type(declaration)


def _check_comments(
    parameters: Sequence[ast.arg], comment: tuple[Any, ...] | None, place: Place
) -> None:
    """Refuse types in comments beside parameters, unless all have one and ``(...)`` follows."""
    noted = [each for each in parameters if each.type_comment]
    if not noted:
        return
    if comment is None or comment[0] is not None:
        raise CompilationError(
            "Return type line '# type: (...) -> ...' not found on multiline type annotation", place
        )
    known = sum(each.annotation is not None or bool(each.type_comment) for each in parameters)
    if known != len(parameters):
        raise CompilationError(
            f"Number of type annotations ({known}) did not match the number of function "
            f"parameters ({len(parameters)})",
            place,
        )


def _broadcast_size(node: ast.expr | None) -> int | None:
    if isinstance(node, ast.Subscript):
        name = ast.unparse(node.value).rpartition(".")[2]
        if name.startswith("BroadcastingList"):
            return int(name[len("BroadcastingList") :] or 1)
        if name == "Optional":
            return _broadcast_size(node.slice)
    return None


def _checked_default(
    declaration: Declaration, name: str, value: Any, kind: Type, place: Place
) -> Any:
    try:
        have = _annotations.of_value(value)
    except (_annotations.AnnotationError, CompilationError):
        have = None
    inner = kind.args[0] if kind.kind == "Optional" else kind
    if have is T.INT and inner in (T.FLOAT,):
        try:
            return float(value)
        except OverflowError as error:
            raise CompilationError(f'Default of parameter "{name}": {error}', place) from None
    empty = isinstance(value, (list, dict)) and not value
    tuples = have is not None and have.kind == "Tuple" and inner.kind == "List"
    if have is None or not (T.is_subtype(have, kind) or empty or tuples or inner.kind == "List"):
        raise CompilationError(
            f'Expected a default value of type {kind.annotation} on parameter "{name}", '
            f"found {value!r}",
            place,
        )
    return value


_PARSED: weakref.WeakKeyDictionary[Any, Declaration] = weakref.WeakKeyDictionary()


def declaration_of(fn: Callable[..., Any], name: str | None = None) -> Declaration:
    """The declaration of a function of Python, from its file.

    Raises:
        OSError: its source cannot be found.
        CompilationError: it has none, as functions written in C have not.
    """
    fn = inspect.unwrap(getattr(fn, "__func__", fn))
    if not hasattr(fn, "__code__"):
        raise CompilationError(f"{fn!r} has no source that could be compiled")
    try:
        lines, first = inspect.getsourcelines(fn)
        filename = inspect.getsourcefile(fn) or "<string>"
    except OSError as error:
        raise OSError(
            f"Can't get source for {fn}. TorchScript requires source access in order to carry out "
            "compilation, make sure original .py files are available."
        ) from error
    text = "".join(lines)
    dedented = textwrap.dedent(text)
    if not dedented.lstrip().startswith(("def", "@", "async", "class")):
        dedented = _as_statement(dedented)
    indent = len(text) - len(text.lstrip()) - (len(dedented) - len(dedented.lstrip()))
    source = Source(tuple(dedented.splitlines()), filename, max(first, 1), max(indent, 0))
    _check_prefixes(source)
    tree = parse(dedented, source, exact=True)
    node = _find(tree, fn)
    parameters = inspect.signature(fn).parameters.values()
    defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
    return Declaration(
        node, source, of_function(fn), defaults, name or _annotations.qualified_name(fn)
    )


def _check_prefixes(source: Source) -> None:
    """Refuse comments that are types but for their first letters, where there are no others."""
    if any("# type:" in line for line in source.lines):
        return
    for number, line in enumerate(source.lines, 1):
        found = re.search(r"#[\t ]*type[\t ]*:(?! ignore(\[.*\])?$)", line)
        if found is not None:
            raise CompilationError(
                f"The annotation prefix in line {number - 1} is probably invalid.\nIt must be "
                "'# type:'",
                Place(source, number, found.start(), number, found.end()),
            )


def _as_statement(text: str) -> str:
    return text


def _find(tree: ast.Module, fn: Callable[..., Any]) -> ast.FunctionDef:
    """The definition of a function in what `inspect` found, or its lambda as one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == fn.__name__:
            return node
    lambdas = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda)]
    names = fn.__code__.co_varnames[: fn.__code__.co_argcount]
    for node in lambdas:
        if tuple(a.arg for a in node.args.args) == names:
            body = ast.copy_location(ast.Return(node.body), node)
            made = ast.FunctionDef("__lambda__", node.args, [body], [], None, None)
            made.type_comment = None
            return ast.copy_location(made, node)
    raise CompilationError(f"the source of {fn.__name__!r} has no definition of it")


class _Dots(ast.NodeTransformer):
    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id != "Ellipsis" or not isinstance(node.ctx, ast.Load):
            return node
        return ast.copy_location(ast.Constant(...), node)


def _dotted(tree: ast.Module, text: str) -> ast.Module:
    """A tree with ``...`` for ``Ellipsis``, which generated sources write."""
    return _Dots().visit(tree) if "Ellipsis" in text else tree


def parse(text: str, source: Source, exact: bool = False) -> ast.Module:
    """The syntax tree of a source, with comments that are types.

    Where such a comment stands in a place that has none, all of them are left out.

    Args:
        text: the source.
        source: where it is from.
        exact: refuse comments that would be left out.

    Raises:
        CompilationError: it is no Python; says where.
    """
    # Only a comment of exactly this form is one of types.
    noted = re.sub(r"#(?! type:)(\s*)type:", r"#\1tipe:", text)
    try:
        try:
            return _dotted(ast.parse(noted, type_comments=True), text)
        except SyntaxError:
            tree = _dotted(ast.parse(text), text)
            if exact:
                raise CompilationError(
                    "Return type line '# type: (...) -> ...' not found on multiline type "
                    "annotation: there is another comment '# type:' where none can be"
                ) from None
            return tree
    except SyntaxError as error:
        line, column = error.lineno or 1, max(0, (error.offset or 1) - 1)
        place = Place(source, line, column, line, column + 1)
        raise CompilationError(f"expected Python: {error.msg}", place) from None
    except ValueError as error:  # characters that no source has
        raise CompilationError(f"expected Python: {error}") from None
    except (RecursionError, MemoryError):  # as Python's parser says it
        raise CompilationError("the source is nested too deeply") from None


def _too_deep(name: str) -> CompilationError:
    return CompilationError(f"function '{name}' is nested too deeply")


def declarations(
    text: str, resolver: Resolver, filename: str = "<string>", prefix: str = "__torch__."
) -> dict[str, Declaration]:
    """The functions that a text defines."""
    dedented = textwrap.dedent(text)
    source = Source(tuple(dedented.splitlines()), filename)
    found = {}
    for node in parse(dedented, source).body:
        if isinstance(node, ast.FunctionDef):
            if node.name in found:
                raise CompilationError(
                    f"method '{node.name}' already defined.", Place.of(source, node)
                )
            found[node.name] = Declaration(
                node, source, resolver, literal_defaults(node, resolver), prefix + node.name
            )
    return found


def literal_defaults(node: ast.FunctionDef, resolver: Resolver) -> dict[str, Any]:
    """The defaults that a source writes."""
    arguments = [*node.args.posonlyargs, *node.args.args]
    pairs = list(
        zip(arguments[len(arguments) - len(node.args.defaults) :], node.args.defaults, strict=True)
    )
    pairs += [(a, d) for a, d in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True) if d]
    found: dict[str, Any] = {}
    for argument, written in pairs:
        try:
            if any(isinstance(each, ast.Set) for each in ast.walk(written)):
                raise ValueError  # no default is one
            found[argument.arg] = ast.literal_eval(written)
        except ValueError:
            try:
                found[argument.arg] = resolver.evaluate(written)
            except (AttributeError, KeyError) as error:
                raise CompilationError(f"the default of {argument.arg!r}: {error}") from None
    return found


_SCRIPTED: weakref.WeakKeyDictionary[Any, ScriptFunction] = weakref.WeakKeyDictionary()


def scripted(fn: Callable[..., Any]) -> ScriptFunction:
    """The scripted form of a function of Python, which is made once."""
    found = _SCRIPTED.get(fn)
    if found is None:
        name = "__lambda__" if fn.__name__ == "<lambda>" else fn.__name__
        found = ScriptFunction(name, _annotations.qualified_name(fn), lambda: declaration_of(fn))
        found.original = fn
        found.__doc__ = fn.__doc__
        _SCRIPTED[fn] = found
    return found


def recursive(fn: Callable[..., Any]) -> Sugar:
    """A function of Python that a source calls: compiled with it."""
    fn = fn.__dict__.get("__original_fn", fn)
    fn = inspect.unwrap(fn) if not hasattr(fn, "__code__") else fn
    variants = _decorators.overloads_of(fn)
    if variants:
        return Overloads([FunctionRef(_overload(fn, each)) for each in variants])
    return FunctionRef(scripted(fn))


def _overload(fn: Callable[..., Any], variant: Any) -> ScriptFunction:
    """The function with the signature of one of its overloads."""

    def declare() -> Declaration:
        body, head = declaration_of(fn), declaration_of(variant)
        node = ast.FunctionDef(
            body.node.name, head.node.args, body.node.body, [], head.node.returns, None
        )
        node.type_comment = head.node.type_comment
        ast.copy_location(node, body.node)
        defaults = {**body.defaults, **head.defaults}
        return Declaration(node, body.source, body.resolver, defaults, body.qualified_name)

    found = _SCRIPTED.get(variant)
    if found is None:
        found = ScriptFunction(fn.__name__, _annotations.qualified_name(fn), declare)
        _SCRIPTED[variant] = found
    return found


def inner_function(c: Compilation, node: ast.FunctionDef) -> Sugar:
    """A function that is defined in another: it sees the variables that are there."""
    outer = {
        name: value
        for frame in _frames(c)
        for name, value in {**frame.variables, **frame.refined}.items()
        if not name.startswith("$")
    }
    return Closure(node, outer, c)


def _frames(c: Compilation) -> list[Any]:
    found, frame = [], c.frame
    while frame is not None:
        found.append(frame)
        frame = frame.parent
    return found[::-1]


class Closure(Sugar):
    """A function within a function, which is compiled into each of its calls."""

    what = "closure"

    def __init__(self, node: ast.FunctionDef, variables: Mapping[str, Any], c: Compilation) -> None:
        self.node, self.variables, self.c = node, variables, c

    def call(self, c: Compilation, node: Any, args: Any, kwargs: Any) -> Any:
        Mismatch = compiler.match.Mismatch
        match = compiler.match.match
        Frame = compiler.state.Frame
        EXITS = compiler.statements.EXITS
        FALLS = compiler.statements.FALLS
        statements = compiler.statements.statements

        declaration = Declaration(
            self.node, c.source, c.resolver, literal_defaults(self.node, c.resolver), self.node.name
        )
        arguments, back = arguments_of(declaration)
        schema = Schema(self.node.name, "", tuple(arguments), ())
        try:
            given, _ = match(c, schema, args, kwargs, allow=True, at=node)
        except Mismatch as why:
            c.fail(node, f"\n{schema}:\n{why}")
        before = c.declared_return, c.returned, c.loops
        c.declared_return, c.returned, c.loops = back, T.UNKNOWN, 0
        frame = Frame(None)
        frame.variables.update(self.variables)
        frame.variables.update(zip((a.name for a in arguments), given, strict=True))
        try:
            with c.inside(c.block, frame):
                status = statements(c, self.node.body)
                found = frame.find(RETURNED)
        finally:
            c.declared_return, c.returned, c.loops = before
        if status is not EXITS and status is not FALLS:
            c.fail(node, "a function within a function has to return in one place")
        return found if found is not None else c.constant(None, T.NONE, node)


def bound_method(kind: ClassType, fn: Any, name: str, owner: type | None = None) -> ScriptFunction:
    """A method of a class or module, with `self` of its type."""

    def declare() -> Declaration:
        declaration = declaration_of(fn)
        declaration.self_type = kind
        declaration.owner = owner or kind.maker
        if kind.is_module and kind.maker is not None:
            declaration.resolver.types = {kind.maker.__name__: kind}
        return declaration

    made = ScriptFunction(name, f"{kind.name}.{name}", declare)
    made.owner = kind
    return made


__all__ = [
    "Declaration",
    "ScriptFunction",
    "arguments_of",
    "bound_method",
    "constant_of",
    "declaration_of",
    "declarations",
    "recursive",
    "scripted",
]
