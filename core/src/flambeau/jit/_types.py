"""The types of TorchScript: interned, so that equal types are the same object.

`str` of a type is its form in source (``List[int]``), `shown` its form in printed graphs
(``int[]``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flambeau._types.dtype import type_name
from flambeau.jit._type_names import Asked

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from flambeau._tensor.tensor import Tensor
    from flambeau._types.device import device as Device
    from flambeau._types.dtype import dtype as DType
    from flambeau.jit._frontend.function import ScriptedFunction

_made: dict[tuple[Any, ...], Type] = {}


class Kind(str):
    """What a type is: ``"List"``; called, the name of PyTorch's class of such types."""

    __slots__ = ()

    def __call__(self) -> str:
        return _CLASSES.get(self, f"{self}Type")


MOST_PARTS = 100_000


class Type(Asked):
    """A type: its kind (``"List"``) and the types it is made of.

    Raises:
        RuntimeError: it has more than `MOST_PARTS` parts, each counted as often as it is written:
            tuples of twice the same double with each level.
    """

    __slots__ = ("args", "kind", "parts")
    parts: int
    kind: Kind
    args: tuple[Type, ...]

    def __new__(cls, kind: str, *args: Type) -> Type:
        key = (kind, *args)
        found = _made.get(key)
        if found is None:
            parts = 1 + sum([getattr(each, "parts", 1) for each in args])
            if parts > MOST_PARTS:
                raise RuntimeError(f"a {kind} of more than {MOST_PARTS} parts is too large a type")
            found = object.__new__(cls)
            found.kind, found.args, found.parts = Kind(kind), args, parts
            _made[key] = found
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return Type, (self.kind, *self.args)

    @property
    def shown(self) -> str:
        """The type as graphs have it."""
        parts = [each.shown for each in self.args]
        if self.kind == "List":
            return f"{parts[0]}[]"
        if self.kind == "Optional":
            return f"{parts[0]}?"
        if self.kind == "Tuple":
            return f"({', '.join(parts)})"
        if parts:
            return f"{self.kind}({', '.join(parts)})"
        return _IN_GRAPHS.get(self.kind, self.kind)

    def __str__(self) -> str:
        return self.annotation

    __repr__ = __str__

    @property
    def annotation(self) -> str:
        """The type as source has it."""
        if self.kind == "Tuple" and not self.args:
            return "Tuple[()]"
        if self.args:
            return f"{self.kind}[{', '.join(each.annotation for each in self.args)}]"
        return self.kind

    def is_optional(self) -> bool:
        """Whether None is a value of it beside others."""
        return self.kind == "Optional" or (self.kind == "Union" and NONE in self.args)


class SeenTensorType(Type):
    """A tensor as one run had it: the dtype, shape, strides, device and whether it has a history.

    >>> import flambeau as fb
    >>> graph, _ = fb.jit._get_trace_graph(fb.relu, fb.ones(2, 3))
    >>> next(graph.inputs()).type().sizes()
    [2, 3]
    """

    __slots__ = ("seen",)
    seen: tuple[Any, ...]

    def __new__(cls, *seen: Any) -> SeenTensorType:
        made = object.__new__(cls)
        made.kind, made.args, made.parts = Kind("Tensor"), (), 1
        made.seen = seen
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return SeenTensorType, self.seen

    @classmethod
    def of(cls, tensor: Tensor) -> SeenTensorType:
        """The type of a tensor."""
        strides = None if tensor.is_sparse else tensor.stride()
        return cls(tensor.dtype, tuple(tensor.shape), strides, tensor.device, tensor.requires_grad)

    def dtype(self) -> DType:
        """The dtype."""
        return self.seen[0]

    def scalarType(self) -> str:
        """The dtype by the name of PyTorch's class of numbers: ``"Float"``."""
        return type_name(self.seen[0])

    def sizes(self) -> list[int]:
        """The shape."""
        return list(self.seen[1])

    def dim(self) -> int:
        """How many dimensions there are."""
        return len(self.seen[1])

    def strides(self) -> list[int] | None:
        """The strides; None of a sparse tensor."""
        return None if self.seen[2] is None else list(self.seen[2])

    def device(self) -> Device:
        """The device."""
        return self.seen[3]

    def requires_grad(self) -> bool:
        """Whether it has a history."""
        return self.seen[4]

    @property
    def shown(self) -> str:
        """The type as graphs have it."""
        parts = [str(size) for size in self.seen[1]]
        if parts and self.seen[2] is not None:
            parts.append(f"strides={self.strides()}")
        parts += [f"requires_grad={int(self.seen[4])}", f"device={self.seen[3]}"]
        return f"{self.scalarType()}({', '.join(parts)})"


class NamedTupleType(Type):
    """A tuple whose members have names; `maker` is the class of its values, if there is one."""

    __slots__ = ("defaults", "fields", "maker", "name")
    name: str
    fields: tuple[str, ...]
    defaults: dict[str, Any]
    maker: Any

    def __new__(
        cls, name: str, fields: Sequence[str], args: Sequence[Type], maker: type | None = None
    ) -> NamedTupleType:
        made = object.__new__(cls)
        made.kind, made.args = Kind("Tuple"), tuple(args)
        made.name, made.fields, made.maker = name, tuple(fields), maker
        made.defaults = dict(getattr(maker, "_field_defaults", {}))
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return NamedTupleType, (self.name, self.fields, self.args, self.maker)

    @property
    def shown(self) -> str:
        """The type as graphs have it."""
        if self.name.startswith("__torch__"):
            return self.name
        members = ", ".join(f"{n} : {t.shown}" for n, t in zip(self.fields, self.args, strict=True))
        return f"NamedTuple({members})"

    @property
    def annotation(self) -> str:
        if self.name.startswith("__torch__"):
            return self.name
        return f"Tuple[{', '.join(each.annotation for each in self.args)}]"


class EnumType(Type):
    """The type of the members of an `enum.Enum`."""

    __slots__ = ("maker", "name", "value_type")
    name: str
    maker: Any
    value_type: Type

    def __new__(cls, name: str, maker: Any, value_type: Type) -> EnumType:
        made = object.__new__(cls)
        made.kind, made.args = Kind("Enum"), ()
        made.name, made.maker, made.value_type = name, maker, value_type
        return made

    @property
    def shown(self) -> str:
        """The type as graphs have it."""
        return f"Enum<{self.name}>"

    @property
    def annotation(self) -> str:
        return self.name


class ClassType(Type):
    """A class: a scripted one, a module, or an interface.

    Attributes:
        attributes: the types of its attributes, in their order.
        parameters, buffers: which of these are that.
        constants: values that are fixed, by name.
        methods: what is compiled of it, by name.
        compiler: compiles the method of a name, or answers None.
        is_foreign: whether it came from an archive, where nobody vouches that a value which the
            code takes for an object of the class is one.
    """

    __slots__ = (
        "attributes",
        "buffers",
        "compiler",
        "constants",
        "is_foreign",
        "is_interface",
        "is_module",
        "maker",
        "methods",
        "name",
        "parameters",
        "properties",
        "statics",
        "values",
    )
    name: str
    attributes: dict[str, Type]
    parameters: set[str]
    buffers: set[str]
    constants: dict[str, Any]
    methods: dict[str, ScriptedFunction]
    compiler: Callable[[str], ScriptedFunction | None] | None
    maker: Any
    is_module: bool
    is_interface: bool
    is_foreign: bool
    values: dict[str, Any]
    properties: dict[str, Any]
    statics: set[str]

    def __new__(
        cls, name: str, *, module: bool = False, interface: bool = False, maker: type | None = None
    ) -> ClassType:
        made = object.__new__(cls)
        made.kind, made.args, made.name = Kind("Class"), (), name
        made.attributes, made.methods, made.constants = {}, {}, {}
        made.parameters, made.buffers = set(), set()
        made.is_module, made.is_interface, made.maker = module, interface, maker
        made.is_foreign = False
        made.compiler, made.values, made.properties, made.statics = None, {}, {}, set()
        return made

    def method(self, name: str) -> ScriptedFunction | None:
        """A method, compiled if it was not yet."""
        found = self.methods.get(name)
        if found is None and self.compiler is not None:
            found = self.compiler(name)
        return found

    @property
    def shown(self) -> str:
        """The type as graphs have it."""
        return self.name

    @property
    def annotation(self) -> str:
        return self.name


_IN_GRAPHS = {"number": "Scalar"}
_CLASSES = {
    "int": "IntType",
    "float": "FloatType",
    "bool": "BoolType",
    "str": "StringType",
    "number": "NumberType",
    "complex": "ComplexType",
    "Device": "DeviceObjType",
    "NoneType": "NoneType",
}

TENSOR = Type("Tensor")
INT = Type("int")
FLOAT = Type("float")
BOOL = Type("bool")
STR = Type("str")
COMPLEX = Type("complex")
NUMBER = Type("number")
NONE = Type("NoneType")
DEVICE = Type("Device")
ANY = Type("Any")
GENERATOR = Type("Generator")
STREAM = Type("Stream")
FUNCTION = Type("Function")
ANY_ENUM = Type("AnyEnumType")
ANY_LIST = Type("list")
ANY_TUPLE = Type("tuple")
UNKNOWN = Type("Unknown")
"""The type of what is returned before the first `return` has been seen."""


def list_of(element: Type) -> Type:
    """List[element]."""
    return Type("List", element)


def optional(inner: Type) -> Type:
    """Optional[inner]; what may be None already stays as it is."""
    if inner is NONE or inner is ANY or inner.is_optional():
        return inner
    return union(*inner.args, NONE) if inner.kind == "Union" else Type("Optional", inner)


def tuple_of(*members: Type) -> Type:
    """Tuple[members]."""
    return Type("Tuple", *members)


def dict_of(key: Type, value: Type) -> Type:
    """Dict[key, value]."""
    return Type("Dict", key, value)


def union(*members: Type) -> Type:
    """Union[members], without repetition, of what is no subtype of another member."""
    flat: list[Type] = []
    for member in members:
        parts = member.args if member.kind == "Union" else (member,)
        if member.kind == "Optional":
            parts = (*member.args, NONE)
        for part in parts:
            if not any(is_subtype(part, other) for other in flat):
                flat = [other for other in flat if not is_subtype(other, part)] + [part]
    if len(flat) == 1:
        return flat[0]
    if len(flat) == 2 and NONE in flat:
        return Type("Optional", next(each for each in flat if each is not NONE))
    return Type("Union", *sorted(flat, key=str))


def is_subtype(have: Type, want: Type) -> bool:
    """Whether each value of `have` is one of `want`."""
    if have is want or want is ANY:
        return True
    if isinstance(have, SeenTensorType):
        have = TENSOR
        if want is TENSOR:
            return True
    if want.kind == "Optional":
        if have is NONE:
            return True
        inner = have.args[0] if have.kind == "Optional" else have
        return is_subtype(inner, want.args[0])
    if have.kind == "Optional":
        return want.kind == "Union" and NONE in want.args and is_subtype(have.args[0], want)
    if have.kind == "Union":
        return all(is_subtype(each, want) for each in have.args)
    if want.kind == "Union":
        return any(is_subtype(have, each) for each in want.args)
    if want is NUMBER:
        return have in (INT, FLOAT, COMPLEX)
    if have.kind == want.kind == "Tuple":
        if isinstance(want, NamedTupleType) and not (
            isinstance(have, NamedTupleType) and have.fields == want.fields
        ):
            return False
        return len(have.args) == len(want.args) and all(
            is_subtype(h, w) for h, w in zip(have.args, want.args, strict=True)
        )
    if have.kind == want.kind and have.args and len(have.args) == len(want.args):
        return all(same(h, w) for h, w in zip(have.args, want.args, strict=True))
    if isinstance(have, ClassType) and isinstance(want, ClassType) and want.is_interface:
        return all(_fulfils(have, name, wanted) for name, wanted in want.methods.items())
    if want is ANY_ENUM:
        return have.kind == "Enum"
    if want is ANY_LIST:
        return have.kind == "List"
    if want is ANY_TUPLE:
        return have.kind == "Tuple"
    return False


def _fulfils(have: ClassType, name: str, wanted: ScriptedFunction) -> bool:
    own = have.method(name)
    if own is None:
        return False
    ours, theirs = own.schema, wanted.schema
    return len(ours.arguments) == len(theirs.arguments) and all(
        is_subtype(t.type, o.type)
        for o, t in zip(ours.arguments[1:], theirs.arguments[1:], strict=True)
    )


def same(left: Type, right: Type) -> bool:
    """Whether two types have the same values."""
    return left is right or (is_subtype(left, right) and is_subtype(right, left))


def unify(left: Type, right: Type, unions: bool = False) -> Type | None:
    """The type that has the values of both, or None: it is not made up as a union unless asked."""
    if left is UNKNOWN or is_subtype(left, right):
        return right
    if right is UNKNOWN or is_subtype(right, left):
        return left
    if left is NONE or right is NONE:
        return optional(right if left is NONE else left)
    if left.kind == "Optional" or right.kind == "Optional":
        inner = [each.args[0] if each.kind == "Optional" else each for each in (left, right)]
        found = unify(inner[0], inner[1])
        return None if found is None else optional(found)
    if left.kind == right.kind == "Tuple" and len(left.args) == len(right.args):
        members = [unify(a, b) for a, b in zip(left.args, right.args, strict=True)]
        known = [each for each in members if each is not None]
        return tuple_of(*known) if len(known) == len(members) else None
    return union(left, right) if unions else None


def contains(whole: Type, kind: str) -> bool:
    """Whether a type is, or is made of, one of a kind."""
    return whole.kind == kind or any(contains(each, kind) for each in whole.args)
