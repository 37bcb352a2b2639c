"""Archives: a zip file of the code of programs, and of the values that their modules hold.

The code is source in the language of this package.  Reading compiles it and never runs it as
Python; values are read by the interpreter of checkpoints, which calls nothing that a file names.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Mapping
from io import BytesIO
from typing import Any

import flambeau as fb
from flambeau._dispatch.annotated import takes_as_annotated
from flambeau.jit import _types as T
from flambeau.jit._code import Constants, function_code
from flambeau.jit._frontend.function import ScriptFunction
from flambeau.jit._graph import escaped
from flambeau.jit._op_versions import version_of
from flambeau.jit._parts import compiler
from flambeau.jit._types import ClassType, EnumType, NamedTupleType, Type
from flambeau.serialization import _pickler, _save
from flambeau.serialization._archive import ArchiveWriter

_LISTS = {
    T.INT: "build_intlist",
    T.FLOAT: "build_doublelist",
    T.BOOL: "build_boollist",
    T.TENSOR: "build_tensorlist",
}


class _Named:
    """A global that a pickle names: PyTorch's, and no object here."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name


class _Made:
    """An object whose class is in the code of the archive."""

    def __init__(self, kind: ClassType | EnumType, state: Any) -> None:
        self.kind, self.state = kind, state


class _Call:
    """What a pickle calls to make a value."""

    def __init__(self, function: _Named, args: tuple[Any, ...]) -> None:
        self.function, self.args = function, args


class _Pickler(_pickler.TorchPickler):
    """Writes values as PyTorch's archives of programs have them."""

    def save(self, obj: object, save_persistent_id: bool = True) -> None:
        if isinstance(obj, _Named):
            self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())
        elif isinstance(obj, _Call):
            self.save(obj.function)
            super().save(obj.args)
            self.write(pickle.REDUCE)
        elif isinstance(obj, _Made):
            known = self.memo.get(id(obj))
            if known is not None:
                self.write(self.get(known[0]))
                return
            module, _, name = obj.kind.name.rpartition(".")
            self.save(_Named(module, name))
            self.write(pickle.EMPTY_TUPLE + pickle.NEWOBJ)
            self.memoize(obj)
            super().save(obj.state)
            self.write(pickle.BUILD)
        else:
            super().save(obj, save_persistent_id)


class _Writer:
    """What one archive is made of."""

    def __init__(self) -> None:
        self.constants = Constants()
        self.objects: dict[int, _Made] = {}
        self.keep: list[Any] = []
        self.names: dict[str, list[str]] = {}
        self.written: set[str] = set()

    def value(self, value: Any, kind: Type) -> Any:
        """A value of a type as what is pickled."""
        if value is None:
            return None
        if isinstance(value, fb.Tensor):
            plain = value.detach()
            plain.requires_grad_(value.requires_grad)
            return plain
        if kind.kind == "Optional":
            return self.value(value, kind.args[0])
        if isinstance(kind, ClassType):
            return self.object(value)
        if isinstance(kind, EnumType):
            self.constants.needs(kind)
            raise RuntimeError("attributes that are members of an enum cannot be saved yet")
        if kind.kind == "List":
            made = [self.value(each, kind.args[0]) for each in value]
            builder = _LISTS.get(kind.args[0])
            if builder is not None:
                return _Call(_Named("torch.jit._pickle", builder), (made,))
            return self._tagged(made, kind)
        if kind.kind == "Dict":
            key, item = kind.args
            pairs = {k: self.value(v, item) for k, v in value.items()}
            del key
            return self._tagged(pairs, kind)
        if kind.kind == "Tuple":
            return tuple(self.value(v, k) for v, k in zip(value, kind.args, strict=True))
        if isinstance(value, fb.device):
            return _Call(_Named("torch", "device"), (str(value),))
        return value

    def _tagged(self, made: object, kind: Type) -> _Call:
        name = _Named("torch.jit._pickle", "restore_type_tag")
        return _Call(name, (made, kind.annotation))

    def object(self, value: object) -> _Made:
        """A module or an object of a scripted class."""
        found = self.objects.get(id(value))
        if found is None:
            kind: ClassType = compiler.classes.type_of_object(value)
            self.constants.needs(kind)
            state: dict[str, Any] = {}
            found = self.objects[id(value)] = _Made(kind, state)
            self.keep.append(value)
            for name, each in kind.attributes.items():
                held = getattr(value, name)
                state[name] = self.value(held, each)
        return found

    def code(self) -> dict[str, str]:
        """The sources by path, of all types and functions that are needed."""
        files: dict[str, list[str]] = {}
        done: set[str] = set()
        while True:
            types = [(n, t) for n, t in self.constants.types.items() if n not in done]
            functions = [(n, f) for n, f in self.constants.functions.items() if n not in done]
            if not types and not functions:
                break
            for name, kind in types:
                done.add(name)
                files.setdefault(name.rpartition(".")[0], []).append(self.type_code(kind))
            for name, function in functions:
                done.add(name)
                space, _, short = name.rpartition(".")
                text = function_code(function, self.constants, short)
                files.setdefault(space, []).append(text)
        return {f"code/{space.replace('.', '/')}.py": "".join(t) for space, t in files.items()}

    def type_code(self, kind: Type) -> str:
        """The definition of a class."""
        short = kind.annotation.rpartition(".")[2]
        if isinstance(kind, EnumType):
            members = "".join(f"  {each.name} = {_literal(each.value)}\n" for each in kind.maker)
            return f"class {short}(Enum):\n{members}"
        if isinstance(kind, NamedTupleType):
            fields = zip(kind.fields, kind.args, strict=True)
            return f"class {short}(NamedTuple):\n" + "".join(
                f"  {name} : {each.annotation}\n" for name, each in fields
            )
        assert isinstance(kind, ClassType)
        if kind.is_interface:
            return self.interface_code(kind, short)
        lines = []
        if kind.is_module:
            lines.append(f"class {short}(Module):\n")
            for word, names in (("parameters", kind.parameters), ("buffers", kind.buffers)):
                listed = [n for n in kind.attributes if n in names]
                shown = "".join(f'"{n}", ' for n in listed)
                lines.append(f"  __{word}__ = [{shown}]\n")
        else:
            lines.append(f"class {short}:\n")
        for name, each in kind.attributes.items():
            self.constants.needs(each)
            if name.isidentifier():
                lines.append(f"  {name} : {each.annotation}\n")
            else:
                lines.append(f'  __annotations__["{name}"] = {each.annotation}\n')
        for name, value in kind.constants.items():
            if (shown := _final(value)) is not None and name.isidentifier():
                lines.append(f"  {name} : Final[{shown}] = {_literal(value)}\n")
        for name, method in list(kind.methods.items()):
            method.compile()
            lines.append(function_code(method, self.constants, name, "  "))
        if len(lines) == 1:
            lines.append("  pass\n")
        return "".join(lines)

    def interface_code(self, kind: ClassType, short: str) -> str:
        """The definition of an interface."""
        lines = [f"class {short}({'Module' if kind.is_module else ''}Interface):\n"]
        for name, method in kind.methods.items():
            given = ["self"]
            for argument in method.schema.arguments[1:]:
                self.constants.needs(argument.type)
                given.append(f"{argument.name}: {argument.type.annotation}")
            back = method.returned.annotation
            lines.append(f"  def {name}({', '.join(given)}) -> {back}:\n    pass\n")
        return "".join(lines)


def _literal(value: object) -> str:
    if isinstance(value, str):
        return f'"{escaped(value)}"'
    if isinstance(value, tuple):
        return f"({', '.join(map(_literal, value))}{',' if len(value) == 1 else ''})"
    return repr(value)


def _final(value: object) -> str | None:
    """The type of a constant in source, of those that can be written there."""
    if isinstance(value, (bool, int, float, str)):
        return type(value).__name__
    if isinstance(value, tuple) and value:
        parts = [_final(each) for each in value]
        known = [each for each in parts if each is not None]
        return f"Tuple[{', '.join(known)}]" if len(known) == len(parts) else None
    return None


@takes_as_annotated
def save(m: object, f: object, _extra_files: Mapping[str, Any] | None = None) -> None:
    """Write a scripted module or function to an archive, which `load` and PyTorch's read.

    The archive has the code of all that is called and the parameters, buffers and attributes. A
    file given by its path is replaced when all data are on the disk.

    Args:
        m: what `script` returned.
        f: a path, or a binary file object with ``write``.
        _extra_files: texts or bytes that are kept beside, by name.

    Raises:
        RuntimeError: something that is called has no code, as ignored methods have not.

    >>> import flambeau as fb, io
    >>> net = fb.jit.script(fb.nn.Linear(2, 1))
    >>> file = io.BytesIO(); fb.jit.save(net, file); _ = file.seek(0)
    >>> x = fb.ones(3, 2)
    >>> bool((fb.jit.load(file)(x) == net(x)).all())
    True
    """
    writer = _Writer()
    if isinstance(m, ScriptFunction):
        root = _Made(_placeholder(m), {"training": True})
        writer.constants.needs(root.kind)
    elif isinstance(getattr(m, "_type_of_script", None), ClassType):
        root = writer.object(m)
    elif (modules := sys.modules.get("flambeau.jit._modules")) and isinstance(
        m, modules.ScriptModule
    ):  # one of no program: what it holds
        root = writer.object(modules.traced_shell(m))
    else:
        raise RuntimeError(
            f"a {type(m).__name__} cannot be saved as a program: torch.jit.script makes one of it"
        )
    sources = writer.code()
    table = _pickler.StorageTable()
    data = BytesIO()
    _Pickler(data, 2, table, False).dump(root)
    held = _pickler.StorageTable()
    constants = BytesIO()
    plain = tuple(writer.value(each, T.TENSOR) for each in writer.constants.values)
    _Pickler(constants, 2, held, False).dump(plain)
    with _save._opened(f) as (file, name):
        archive = ArchiveWriter(file.write, name)
        archive.record("data.pkl", data.getvalue())
        for path, text in sources.items():
            archive.record(path, text.encode())
        for key, storage in table.found.items():
            archive.record(f"data/{key}", _pickler.host_bytes(storage))
        archive.record("constants.pkl", constants.getvalue())
        for key, storage in held.found.items():
            archive.record(f"constants/{key}", _pickler.host_bytes(storage))
        for key, extra in (_extra_files or {}).items():
            raw = extra.encode() if isinstance(extra, str) else bytes(extra)
            archive.record(f"extra/{key}", raw)
        archive.record("version", b"%d\n" % version_of(writer.constants.ops))
        archive.record("byteorder", b"little")
        archive.close()


def _placeholder(function: ScriptFunction) -> ClassType:
    """A module whose `forward` is a function: archives hold modules."""
    kind = ClassType("__torch__.PlaceholderModule", module=True)
    kind.attributes["training"] = T.BOOL
    graph = function.graph.copy()
    given = compiler.graph.Value(None, kind, "self")
    given.block = graph.block
    graph.block.inputs_.insert(0, given)
    method = ScriptFunction("forward", f"{kind.name}.forward", graph=graph)
    argument = compiler.schemas.Argument("self", kind)
    schema = function.schema
    method._schema = compiler.schemas.Schema(
        "forward", "", (argument, *schema.arguments), schema.returns
    )
    method.owner = kind
    kind.methods["forward"] = method
    return kind


@takes_as_annotated
def load(
    f: object,
    map_location: object = None,
    _extra_files: dict[str, Any] | None = None,
    _restore_shapes: bool = False,
) -> Any:
    """Read an archive that `save`, or PyTorch 1.0 and newer, wrote: a `RecursiveScriptModule`.

    Its code is compiled as `script` compiles, and nothing of it runs before a method is called.

    Args:
        f: a path, or a binary file object with ``read``.
        map_location: where storages go, as in `flambeau.load`.
        _extra_files: filled with the texts that are kept beside, for the names that it has.

    Raises:
        CheckpointError: the file is damaged, or no such archive.
        CompilationError: its code is no TorchScript.
    """
    return compiler.reader.read(f, map_location, _extra_files)
