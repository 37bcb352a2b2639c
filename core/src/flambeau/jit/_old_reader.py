"""Archives of PyTorch 1.0 to 1.2: modules and tensors in a table, attributes in a pickle.

``model.json`` has the modules with the names of their parameters and of their code, and the shapes
of all tensors.  The code of a module is a list of methods, which is compiled as that of a class is.
"""

from __future__ import annotations

import ast
import collections
import json
import re
from typing import TYPE_CHECKING, Any

from flambeau._types import dtype as D
from flambeau.jit import _types as T
from flambeau.jit._frontend import annotations as _annotations
from flambeau.jit._frontend import classes as _classes
from flambeau.jit._frontend.source import CompilationError
from flambeau.jit._types import ClassType
from flambeau.serialization._budget import LARGEST, shown
from flambeau.serialization._errors import CheckpointError
from flambeau.serialization._rebuild import rebuild_tensor_v2

if TYPE_CHECKING:
    from collections.abc import Callable

    from flambeau.jit._reader import Code

_DTYPES = {
    "BOOL": D.bool_,
    "DOUBLE": D.float64,
    "FLOAT": D.float32,
    "FLOAT16": D.float16,
    "INT16": D.int16,
    "INT32": D.int32,
    "INT64": D.int64,
    "INT8": D.int8,
    "UINT8": D.uint8,
}
_WHOLE = re.compile("-?[0-9]{1,18}")
_NEWEST = 5
_DEEPEST = 200


class Table:
    """What ``model.json`` says, checked where it is read; errors name what is wrong in it."""

    def __init__(self, values: Any, path: str) -> None:
        self.values, self.path = values, path
        text = bytes(values.archive.read("model.json"))
        try:
            self.model = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise CheckpointError(f"model.json cannot be read: {shown(str(error))}", path) from None
        self.version = self.number(self.entry(self.model, "protoVersion", "1"))
        if not 1 <= self.version <= _NEWEST:
            raise CheckpointError(f"model.json has the unknown version {self.version}", path)
        self.storages: dict[str, Any] = {}
        self.tensors = [self._tensor(each) for each in self.listed(self.model, "tensors")]

    def wrong(self, what: object, wanted: str) -> CheckpointError:
        """The error that something in the file is none of what it should be."""
        return CheckpointError(f"model.json has {shown(what)} where {wanted} should be", self.path)

    def entry(self, of: object, name: str, default: object) -> Any:
        """A field; files of other programs have its name with underscores."""
        if not isinstance(of, dict):
            raise self.wrong(of, "an object")
        plain = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
        return of.get(name, of.get(plain, default))

    def number(self, value: object) -> int:
        """A whole number, which the file has as a text."""
        if isinstance(value, str) and _WHOLE.fullmatch(value):
            return int(value)
        if type(value) is not int or abs(value) >= LARGEST:
            raise self.wrong(value, "a number")
        return value

    def text(self, of: object, name: str) -> str:
        """A text."""
        value = self.entry(of, name, "")
        if not isinstance(value, str):
            raise self.wrong(value, "a text")
        return value

    def listed(self, of: object, name: str) -> list[Any]:
        """A list."""
        value = self.entry(of, name, [])
        if not isinstance(value, list):
            raise self.wrong(value, "a list")
        return value

    def tensor(self, at: object) -> Any:
        """A tensor of the table."""
        at = self.number(at)
        if not 0 <= at < len(self.tensors):
            raise self.wrong(at, "the number of a tensor")
        return self.tensors[at]

    def _tensor(self, given: Any) -> Any:
        if self.entry(given, "isQuantized", False):
            raise CheckpointError("tensors of quantized numbers cannot be read", self.path)
        name = self.text(given, "dataType")
        dtype = _DTYPES.get(name)
        if dtype is None:
            raise self.wrong(name, "a dtype")
        key = self.text(self.entry(given, "data", {}), "key")
        if key not in self.values.archive.records:
            raise self.wrong(key, "the name of a record")
        size = self.values.archive.size(key)
        if size % dtype.itemsize or size >= LARGEST:
            raise CheckpointError(f"record {shown(key)} is no storage of {dtype}", self.path)
        known = self.storages.get(key)
        if known is None:
            placed = self.values.placed(
                self.values.archive.read(key), dtype, self.text(given, "device") or "cpu"
            )
            known = self.storages[key] = dtype, size // dtype.itemsize, placed
        storage = self.values.typed(known, dtype, size // dtype.itemsize, key)
        dims, strides = (
            tuple(map(self.number, self.listed(given, each))) for each in ("dims", "strides")
        )
        offset = self.number(self.entry(given, "offset", 0))
        grad = self.entry(given, "requiresGrad", False) is True
        hooks: collections.OrderedDict[Any, Any] = collections.OrderedDict()
        try:
            return rebuild_tensor_v2(storage, offset, dims, strides, grad, hooks)
        except ValueError as error:
            raise CheckpointError(str(error), self.path) from None


class _Modules:
    """Types of the modules, and what they hold, as the newer format has it."""

    def __init__(
        self,
        table: Table,
        code: Code,
        objects: type,
        attributes: Any,
        check_names: Callable[[ClassType], None],
    ) -> None:
        self.table, self.code, self.objects, self.attributes = table, code, objects, attributes
        self.check_names = check_names
        self.count = 0

    def module(self, given: object, path: str, depth: int = 0) -> Any:
        """A module of the file as an object of a class."""
        if depth > _DEEPEST:
            raise CheckpointError("the modules of the archive are too deep", self.table.path)
        table = self.table
        name = f"__torch__.{self._called(path)}"
        kind = ClassType(name, module=True)
        kind.is_foreign = True
        self.code.known[name] = kind
        state: dict[str, Any] = {}
        for each in table.listed(given, "submodules"):
            own = table.text(each, "name")
            state[own] = self.module(each, f"{path}.{own}", depth + 1)
            found = self.code.known[state[own].name]
            kind.attributes[own] = found
        for each in table.listed(given, "parameters"):
            self._parameter(kind, state, each)
        for each in table.listed(given, "attributes"):
            self._attribute(kind, state, each)
        kind.attributes.setdefault("training", T.BOOL)
        state.setdefault("training", True)
        self._methods(kind, given)
        if table.number(table.entry(given, "getStateAttributeId", -1)) >= 0:
            raise CheckpointError(
                f"module {shown(path)} restores itself by __setstate__, which is not supported",
                table.path,
            )
        kind.values["!modules"] = tuple(
            n for n, t in kind.attributes.items() if isinstance(t, ClassType) and t.is_module
        )
        self.check_names(kind)
        made = self.objects()
        made.name, made.state = name, state
        return made

    def _called(self, path: str) -> str:
        self.count += 1
        parts = path.split(".")
        fit = all(part.isidentifier() for part in parts)
        return ".".join(parts) if fit and self.count == 1 else f"module_{self.count - 1}.Module"

    def _parameter(self, kind: ClassType, state: dict[str, Any], given: object) -> None:
        table = self.table
        name = table.text(given, "name")
        buffer = table.entry(given, "isBuffer", False) is True
        (kind.buffers if buffer else kind.parameters).add(name)
        kind.attributes[name] = T.TENSOR
        state[name] = table.tensor(table.entry(given, "tensorId", 0))

    def _attribute(self, kind: ClassType, state: dict[str, Any], given: Any) -> None:
        table = self.table
        name, written = table.text(given, "name"), table.text(given, "type")
        if name in state:
            return
        try:
            parsed = _annotations.parsed(written)
        except _annotations.AnnotationError:
            raise table.wrong(written, "a type") from None
        kind.attributes[name] = _annotations.of_syntax(parsed, self.code.resolver)
        at = table.number(table.entry(given, "id", 0))
        if not 0 <= at < len(self.attributes):
            raise table.wrong(at, "the number of an attribute")
        state[name] = self.attributes[at]
        if kind.attributes[name] is T.TENSOR:
            kind.buffers.add(name)

    def _methods(self, kind: ClassType, given: object) -> None:
        table = self.table
        key = table.text(table.entry(given, "torchscriptArena", {}), "key")
        if not key:
            return
        if key not in self.code.archive.records:
            raise table.wrong(key, "the name of a record")
        source, body = self.code.source(key)
        for node in body:
            if not isinstance(node, ast.FunctionDef):
                raise CompilationError(f"{key} has something that is no method")
        whole = ast.ClassDef(name="Module", bases=[], keywords=[], body=body, decorator_list=[])
        _classes.fill(kind, whole, source, self.code.resolver)


def attributes_of(values: Any, table: Table) -> list[Any]:
    """The values of attributes, with the tensors of the table in their places."""
    if table.version < 2:
        return []
    if "attributes.pkl" not in values.archive.records:
        raise CheckpointError("the archive has no attributes.pkl", values.path)
    values.table = table
    found = values.pickle("attributes.pkl", "tensors")
    if not isinstance(found, (list, tuple)):
        raise CheckpointError("the attributes of an archive are no list", values.path)
    return list(found)


def root_of(
    table: Table,
    code: Code,
    objects: type,
    attributes: list[Any],
    check_names: Callable[[ClassType], None],
) -> Any:
    """The main module, as an object of a class of the code."""
    main = table.entry(table.model, "mainModule", {})
    return _Modules(table, code, objects, attributes, check_names).module(main, "Archive")
