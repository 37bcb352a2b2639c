"""Reading of archives: values first, then the types that their code defines."""

from __future__ import annotations

import ast
import enum
import inspect
import keyword
import math
import textwrap
from collections import Counter
from itertools import islice
from types import FunctionType
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau import nn
from flambeau._storages.memory import swapped
from flambeau.jit import _modules, _op_versions
from flambeau.jit import _types as T
from flambeau.jit._frontend import annotations as _annotations
from flambeau.jit._frontend import classes as _classes
from flambeau.jit._frontend import values as V
from flambeau.jit._frontend.function import Declaration, ScriptFunction, literal_defaults, parse
from flambeau.jit._frontend.resolve import Resolver
from flambeau.jit._frontend.source import CompilationError, Source
from flambeau.jit._parts import compiler
from flambeau.jit._types import ClassType, EnumType, NamedTupleType, Type
from flambeau.serialization import _load, _names
from flambeau.serialization._archive import ArchiveReader
from flambeau.serialization._budget import LARGEST, Budget, current, shown
from flambeau.serialization._errors import CheckpointError
from flambeau.serialization._interpreter import Interpreter
from flambeau.serialization._source import Source as Bytes
from flambeau.utils._named_ops import CustomOp

if TYPE_CHECKING:
    from collections.abc import Callable

    from flambeau._tensor.tensor import Tensor
    from flambeau.jit._frontend.state import Compilation
    from flambeau.jit._modules import RecursiveScriptModule, ScriptModule


_MOST_CODE = 1 << 26  # bytes of one source
_LEAST_CODE = 1 << 22  # bytes of all sources that any file may have; further ones for its size
_CODE_PER_BYTE = 20
_MOST_PARTS = 1024  # of a constant, those that are there several times counted as often
_MOST_ALIKE = 64  # values of an enumeration that share a hash, each compared with all


class _Object:
    """An object of a class of the archive: the name of the class, and what it holds."""

    name = ""
    state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Number(_Object):
    """The number of a tensor, in archives of PyTorch 1.1."""


class _Numbers(_Object):
    """A list of integers there."""


def _build(values: object) -> list[Any]:
    """A list of one type."""
    if not isinstance(values, list):
        raise ValueError("the elements of a list are no list")
    return values


def _tagged(value: object, tag: object) -> object:
    """A value whose type is known from the code as well."""
    return value


_FUNCTIONS = {
    ("torch.jit._pickle", "build_intlist"): _build,
    ("torch.jit._pickle", "build_doublelist"): _build,
    ("torch.jit._pickle", "build_boollist"): _build,
    ("torch.jit._pickle", "build_tensorlist"): _build,
    ("torch.jit._pickle", "restore_type_tag"): _tagged,
}


class _Values(_load._Reader):
    """The pickles of one archive."""

    prefix = "data"

    def __init__(self, source: Bytes, map_location: Any) -> None:
        super().__init__(source, map_location, None, True, None, True, {})
        self.made: dict[str, type] = {}
        self.table: Any = None

    def _numbered(self, at: object) -> Tensor:
        """A tensor of an older archive, by its number."""
        return self.table.tensor(at)

    def open(self) -> ArchiveReader:
        """The archive; says so if it is none of programs."""
        head = bytes(self.source.view(0, min(4, self.source.size)))
        if head != b"PK\3\4":
            raise CheckpointError("this is no archive of a program", self.path, 0)
        self.archive = ArchiveReader(self.source, inflates=_MOST_CODE)
        records = self.archive.records
        if "model.json" in records:
            return self.archive
        if "constants.pkl" not in records or "data.pkl" not in records:
            raise CheckpointError("this is a checkpoint and no program: use load", self.path)
        order = bytes(self.archive.read("byteorder")) if "byteorder" in records else b"little"
        if order not in (b"little", b"big"):
            raise CheckpointError(f"unknown order of bytes {shown(order)}", self.path)
        self._swap = order == b"big"
        return self.archive

    def pickle(self, name: str, prefix: str) -> Any:
        """The object of a pickle, whose storages are in a folder."""
        self.prefix = prefix
        self._storages = {}
        token = current.set(self.budget)
        try:
            body = Bytes(self.archive.read(name), self.path)
            return self.unpickled(body, 0, self._stored)[0]
        finally:
            current.reset(token)

    def unpickled(
        self, source: Bytes, start: int, persistent: Callable[..., Any]
    ) -> tuple[Any, int]:
        machine = Interpreter(
            source,
            find=self._find,
            may_call=self._may_call,
            may_build=lambda kind: issubclass(kind, _Object),
            persistent=persistent,
            budget=self.budget,
        )
        return machine.run(start)

    def _find(self, module: str, name: str) -> Callable[..., Any]:
        if self.table is not None:
            if name == "build_tensor_from_id" and module == "torch.jit._pickle":
                return self._numbered
            if module == "__main__" and name in ("TensorID", "IntList"):
                return _Number if name == "TensorID" else _Numbers
        if module.startswith("__torch__"):
            full = f"{module}.{name}"
            if full not in self.made:
                self.made[full] = type("_Object", (_Object,), {"name": full})
            return self.made[full]
        found = _FUNCTIONS.get((module, name))
        return _names.find_safe(module, name) if found is None else found

    def _may_call(self, func: Callable[..., Any]) -> bool:
        if func == self._numbered:
            return True
        if isinstance(func, type):
            return issubclass(func, _Object) or _names.may_call(func)
        if type(func) is FunctionType and func in (_build, _tagged):
            return True
        return _names.may_call(func)

    def _stored(self, pid: object) -> Any:
        kind, key, location, count = self.checked_id(pid, 5)
        known = self._storages.get(key)
        if known is None:
            name = f"{self.prefix}/{key}"
            size = count * (kind.itemsize if kind else 1)
            if self.archive.size(name) != size or size >= LARGEST:
                raise CheckpointError(
                    f"storage {shown(key)} should have {shown(size)} bytes, its record has not",
                    self.path,
                )
            data = self.archive.read(name)
            if self._swap and kind is not None and kind.itemsize > 1:
                data = swapped(bytes(data), kind.to_real().itemsize)
            dtype = kind or fb.uint8
            known = self._storages[key] = kind, count, self.placed(data, dtype, location)
        return self.typed(known, kind, count, key)


class _Path(V.Sugar):
    """``__torch__.a.b``: the beginning of the name of something in the code."""

    what = "module"

    def __init__(self, code: Code, path: str) -> None:
        self.code, self.path = code, path

    def attribute(self, c: Compilation, node: ast.AST | None, name: str) -> Any:
        full = f"{self.path}.{name}"
        found = self.code.find(full)
        if found is None:
            return _Path(self.code, full)
        if isinstance(found, ScriptFunction):
            return V.FunctionRef(found)
        if isinstance(found, ClassType):
            return V.ClassRef(found)
        return V.NamedTupleRef(found) if isinstance(found, NamedTupleType) else V.EnumRef(found)


class _Constants(V.Sugar):
    """``CONSTANTS``: the values that code names by number."""

    what = "constants"

    def __init__(self, values: tuple[Any, ...]) -> None:
        self.held = values
        self.types: dict[str, Type] = {}

    def attribute(self, c: Compilation, node: ast.AST | None, name: str) -> Any:
        number = name[1:]
        known = name[:1] == "c" and number.isdecimal() and len(number) < 10
        if not known or int(number) >= len(self.held):
            c.fail(node, f"the archive has no constant {name!r:.80}")
        value = self.held[int(number)]
        if isinstance(value, _Object):
            c.fail(node, "objects as constants of code are not supported")
        if name not in self.types:
            if not _has_few_parts(value):
                c.fail(node, f"the constant {name} has more than {_MOST_PARTS} parts")
            self.types[name] = _annotations.of_value(value)
        return c.constant(value, self.types[name], node)


def _has_few_parts(value: object) -> bool:
    """Whether walking through a value ends soon: tuples of twice the same grow with each level."""
    left, count = [value], 0
    while left:
        each = left.pop()
        count += 1
        if count > _MOST_PARTS:
            return False
        if isinstance(each, (tuple, list)):
            left.extend(each[: _MOST_PARTS + 1])
        elif isinstance(each, dict):
            left.extend(list(each.values())[: _MOST_PARTS + 1])
    return True


class _CodeResolver(Resolver):
    """Names in the code of an archive."""

    def __init__(self, code: Code) -> None:
        words: dict[str, Any] = {
            **V.language(),
            "torch": _op_versions.Namespace(code.version),
            "__torch__": _Path(code, "__torch__"),
            "CONSTANTS": _Constants(code.constants),
            "inf": math.inf,
            "nan": math.nan,
        }
        super().__init__(words, known=False)
        self.code = code

    def evaluate(self, node: ast.expr) -> Any:
        """As of other sources, without what leads into the interpreter."""
        if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
            raise AttributeError(f"an archive names no {node.attr}")
        return super().evaluate(node)

    def type_of_name(self, written: str) -> Type | None:
        if not written.startswith("__torch__."):
            return None
        found = self.code.find(written)
        return found if isinstance(found, Type) else None


class Code:
    """The sources of an archive, of which each is parsed when something in it is named."""

    def __init__(
        self,
        archive: ArchiveReader,
        constants: tuple[Any, ...],
        version: int,
        folder: str = "code",
    ) -> None:
        self.archive, self.constants, self.folder = archive, constants, folder
        self.version = version
        self.room = _LEAST_CODE + _CODE_PER_BYTE * archive.size_of_file
        self.files: dict[str, tuple[Source, dict[str, ast.stmt]]] = {}
        self.known: dict[str, Any] = {}
        self.resolver = _CodeResolver(self)

    def find(self, name: str) -> Any:
        """The type or function of a name, or None."""
        if name in self.known:
            return self.known[name]
        space, _, short = name.rpartition(".")
        path = f"{self.folder}/{space.replace('.', '/')}.py"
        if path not in self.archive.records:
            return None
        if path not in self.files:
            source, body = self.source(path)
            found: dict[str, ast.stmt] = {}
            for node in body:
                if not isinstance(node, (ast.ClassDef, ast.FunctionDef)) or node.decorator_list:
                    raise CompilationError(f"{path} has something that is no class or function")
                found[node.name] = node
            self.files[path] = source, found
        source, definitions = self.files[path]
        node = definitions.get(short)
        if isinstance(node, ast.FunctionDef):
            return self._function(name, node, source)
        return self._class(name, node, source) if isinstance(node, ast.ClassDef) else None

    def source(self, path: str) -> tuple[Source, list[ast.stmt]]:
        """The source of a record, and its statements without the head that older files have."""
        raw = bytes(self.archive.read(path))
        self.room -= len(raw)
        if self.room < 0:
            raise CheckpointError("the archive has more code than a file of its size may have")
        text = textwrap.dedent(raw.decode("utf-8"))
        source = Source(tuple(text.splitlines()), path)
        tree = parse(text, source)
        if self.version < _op_versions.DIVIDES_TRULY:
            tree = _op_versions.Divisions().visit(tree)
        return source, [each for each in tree.body if not _is_head(each)]

    def compile(self) -> None:
        """Compile all that is known, and what becomes known by that.

        Raises:
            CheckpointError: it would write or read files, or run functions of Python.
        """
        done = 0  # of what is known, which only grows
        while names := list(islice(self.known, done, None)):
            done += len(names)
            for name in names:
                made = self.known[name]
                methods = made.methods.values() if isinstance(made, ClassType) else (made,)
                for method in methods:
                    if isinstance(method, ScriptFunction) and not getattr(
                        made, "is_interface", False
                    ):
                        method.compile()
                        _check_ops(method)

    def _function(self, name: str, node: ast.FunctionDef, source: Source) -> ScriptFunction:
        defaults = literal_defaults(node, self.resolver)
        declaration = Declaration(node, source, self.resolver, defaults, name)
        made = ScriptFunction(node.name, name, lambda: declaration)
        self.known[name] = made
        return made

    def _class(self, name: str, node: ast.ClassDef, source: Source) -> Type:
        base = ast.unparse(node.bases[0]) if node.bases else ""
        if base == "NamedTuple":
            fields = [each for each in node.body if isinstance(each, ast.AnnAssign)]
            names = [ast.unparse(each.target) for each in fields]
            types = [_annotations.of_syntax(each.annotation, self.resolver) for each in fields]
            made: Type = NamedTupleType(name, names, types)
            self.known[name] = made
            return made
        if base == "Enum":
            return self._enum(name, node)
        kind = ClassType(name, module=base.startswith("Module"))
        kind.is_interface, kind.is_foreign = base.endswith("Interface"), True
        self.known[name] = kind
        for each in node.body:
            self._member(kind, each)
        _classes.fill(kind, node, source, self.resolver)
        check_names(kind)
        for fixed in kind.constants:
            kind.attributes.pop(fixed, None)
        items = [n for n, t in kind.attributes.items() if isinstance(t, ClassType) and t.is_module]
        kind.values["!modules"] = tuple(items)
        return kind

    def _member(self, kind: ClassType, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign):
            target = ast.unparse(node.targets[0])
            if target in ("__parameters__", "__buffers__"):
                names = kind.parameters if target == "__parameters__" else kind.buffers
                names.update(_texts(node.value))
            elif isinstance(node.targets[0], ast.Subscript):
                (name,) = _texts(ast.List([node.targets[0].slice]))
                kind.attributes[name] = _annotations.of_syntax(node.value, self.resolver)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            name = ast.unparse(node.target)
            kind.constants[name] = _literal(node.value)

    def _enum(self, name: str, node: ast.ClassDef) -> EnumType:
        try:
            members = {
                ast.unparse(each.targets[0]): _literal(each.value)
                for each in node.body
                if isinstance(each, ast.Assign)
            }
            alike = Counter(map(hash, members.values()))
            if max(alike.values(), default=0) > _MOST_ALIKE:
                raise ValueError("too many of its values share a hash")
            known = all(value is not None for value in members.values())
            if not members or not known or not all(map(_is_name, (node.name, *members))):
                raise ValueError("it has no members, or odd ones")
            maker = enum.Enum(node.name, members)
        except (TypeError, ValueError) as error:
            raise CompilationError(f"the enumeration {name!r:.80}: {error}") from None
        value_type = _annotations.of_value(next(iter(members.values())))
        made = EnumType(name, maker, value_type)
        self.known[name] = made
        return made


_OF_PYTHON = frozenset(vars(nn.Module())) | {"_attribute_types", "_stubs", "_type_of_script"}
"""What every module of Python holds beside its attributes."""
_OF_MODULES = frozenset({"training", "_is_full_backward_hook"})
_REACHING_OUT = ("aten::save", "aten::from_file", "prim::PythonOp")


def _check_ops(function: ScriptFunction) -> None:
    for node in function.graph.block.all_nodes():
        if node.kind in _REACHING_OUT and not isinstance(
            node.attributes.get("_function"), CustomOp
        ):
            raise CheckpointError(f"{shown(function.name)} of an archive cannot call {node.kind}")


def _is_name(name: str) -> bool:
    """Whether a name means nothing to the interpreter."""
    return name.isidentifier() and not keyword.iskeyword(name) and not name.startswith("__")


def check_names(kind: ClassType) -> None:
    """Refuse attributes whose names are those of something else in objects of Python.

    Raises:
        CheckpointError: there is such a name.
    """
    for name in kind.attributes:
        own = name in kind.methods
        if kind.is_module:
            own = own or (name in _OF_PYTHON - _OF_MODULES)
            own = own or inspect.isdatadescriptor(
                getattr(_modules.RecursiveScriptModule, name, None)
            )
        if own or name.startswith("__"):
            raise CheckpointError(f"{shown(kind.name)} cannot have an attribute {shown(name)}")


def _literal(node: ast.expr) -> Any:
    """A number, a text or tuples of them that the code writes; None if it is something else.

    Sets and dictionaries are not made: keys that share a hash take quadratic time.
    """
    if any(isinstance(each, (ast.Set, ast.Dict)) for each in ast.walk(node)):
        return None
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError):
        return None


def _is_head(node: ast.stmt) -> bool:
    """Whether a statement is ``op_version_set = 1`` or ``import __torch__.a``."""
    if isinstance(node, ast.Import):
        return all(each.name.startswith("__torch__") for each in node.names)
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "op_version_set"


def _texts(node: ast.expr) -> list[str]:
    """The texts of a list or tuple in the code."""
    parts = node.elts if isinstance(node, (ast.List, ast.Tuple)) else [node]
    names = [part.value for part in parts if isinstance(part, ast.Constant)]
    found = [name for name in names if isinstance(name, str)]
    if len(found) != len(parts):
        raise CompilationError(f"{ast.unparse(node):.80} should be names")
    return found


def read(f: object, map_location: object, extra: dict[str, Any] | None) -> ScriptModule:
    """The module of an archive."""
    with _load._opened(f, False) as (source, _, finish):
        values = _Values(source, map_location)
        values.budget = Budget(source.size)
        archive = values.open()
        old = "model.json" in archive.records
        code = _old_code(values) if old else _code(values)
        try:
            if old:
                attributes = compiler.old_reader.attributes_of(values, values.table)
                root = compiler.old_reader.root_of(
                    values.table, code, _Object, attributes, check_names
                )
            else:
                root = values.pickle("data.pkl", "data")
            made = _Builder(code, values.table).value(root)
            if not isinstance(made, _modules.ScriptModule):
                raise CheckpointError("the archive holds no module", values.path)
            code.compile()
        except _annotations.AnnotationError as error:
            raise CompilationError(str(error)) from None
        except (SyntaxError, UnicodeDecodeError, RecursionError) as error:
            raise CheckpointError(f"the code cannot be read: {error}", values.path) from None
        for name in extra or {}:
            if extra is not None and f"extra/{name}" in archive.records:
                extra[name] = bytes(archive.read(f"extra/{name}"))
        finish(values.consumed)
    return made


def _code(values: _Values) -> Code:
    """The code of an archive, with the constants that it names."""
    constants = values.pickle("constants.pkl", "constants")
    if not isinstance(constants, tuple):
        raise CheckpointError("the constants of an archive are no tuple", values.path)
    return Code(values.archive, constants, _version(values))


def _version(values: _Values) -> int:
    """The version of an archive, which says what its ops mean."""
    records = values.archive.records
    name = next((each for each in ("version", ".data/version") if each in records), None)
    text = bytes(values.archive.read(name))[:80].strip() if name is not None else b""
    if not text.isdigit():
        raise CheckpointError(f"the archive has no version, but {shown(text)}", values.path)
    if int(text) > _op_versions.NEWEST:
        raise CheckpointError(
            f"the archive has version {int(text)}, and {_op_versions.NEWEST} is the newest known",
            values.path,
        )
    return int(text)


def _old_code(values: _Values) -> Code:
    """The code of an archive whose constants are in the table of all tensors."""
    table = values.table = compiler.old_reader.Table(values, values.path)
    return Code(values.archive, tuple(table.tensors), 1, "libs")


class _Builder:
    """Makes modules and objects of what the pickle holds."""

    def __init__(self, code: Code, table: Any = None) -> None:
        self.code, self.table = code, table
        self.made: dict[int, Any] = {}

    def value(self, value: Any) -> Any:
        """A value with the objects in it made; what is there several times stays one."""
        if isinstance(value, _Number):
            return self.table.tensor(value.state)
        if isinstance(value, _Numbers):
            return self.value(value.state)
        if isinstance(value, _Object):
            return self._object(value)
        if not isinstance(value, (list, tuple, dict)):
            return value
        found = self.made.get(id(value))
        if found is not None:
            return found
        if isinstance(value, list):
            found = self.made[id(value)] = []
            found.extend(self.value(each) for each in value)
        elif isinstance(value, dict):
            found = self.made[id(value)] = {}
            found.update((key, self.value(each)) for key, each in value.items())
        else:
            found = self.made[id(value)] = tuple(self.value(each) for each in value)
        return found

    def _object(self, given: _Object) -> RecursiveScriptModule:
        found = self.made.get(id(given))
        if found is not None:
            return found
        kind = self.code.find(given.name)
        state = given.state
        if not isinstance(kind, ClassType) or not isinstance(state, dict):
            raise CheckpointError(f"the archive has no code of {shown(given.name)}")
        if not kind.is_module:
            made = object.__new__(_classes.python_class(kind))
            self.made[id(given)] = made
            for name, each in kind.attributes.items():
                if name not in state:
                    raise CheckpointError(f"{shown(given.name)} has no value of {shown(name)}")
                made.__dict__[name] = self._of(each, name, self.value(state[name]))
            return made
        module = _modules.RecursiveScriptModule.__new__(_modules.RecursiveScriptModule)
        nn.Module.__init__(module)
        self.made[id(given)] = module
        module.__dict__["_attribute_types"], module.__dict__["_stubs"] = {}, {}
        module.__dict__["_type_of_script"] = kind
        for name, each in kind.attributes.items():
            if name not in state:
                raise CheckpointError(f"{shown(given.name)} has no value of {shown(name)}")
            self._attribute(module, kind, name, self._of(each, name, self.value(state[name])))
        return module

    def _of(self, kind: Type, name: str, value: object) -> Any:
        """The value of an attribute, if it can be of its type."""
        if isinstance(kind, ClassType):
            try:
                return _classes.object_of(value, kind)
            except RuntimeError as error:
                raise CheckpointError(f"{shown(name)}: {error}") from None
        if kind is T.TENSOR and not isinstance(value, fb.Tensor):
            raise CheckpointError(f"{shown(name)} should be a tensor")
        return value

    def _attribute(self, module: Any, kind: ClassType, name: str, value: Any) -> None:
        held = name in kind.parameters or name in kind.buffers
        if held and not (value is None or isinstance(value, fb.Tensor)):
            raise CheckpointError(f"{shown(name)} should be a tensor")
        if name in kind.parameters:
            module._parameters[name] = value  # a tensor, as in PyTorch: archives know no classes
        elif name in kind.buffers:
            module._buffers[name] = value
        elif isinstance(value, nn.Module):
            module._modules[name] = value
        else:
            module.__dict__[name] = value
