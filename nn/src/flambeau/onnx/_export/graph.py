"""The graph that is written: values, nodes, and the forms that differ between opsets."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.onnx._export.errors import OnnxExporterError, UnsupportedOperatorError
from flambeau.onnx._export.inference import infer

Size = int | str | None
Number = int | float | bool | complex
NUMBERS = (bool, int, float, complex)

_BOOLEAN = frozenset(
    "Equal Greater GreaterOrEqual Less LessOrEqual And Or Not Xor IsNaN IsInf".split()
)
_ALIKE = frozenset(
    "Add Sub Mul Div Mod Min Max Sum PRelu Equal Greater GreaterOrEqual Less LessOrEqual".split()
)
"""Operators whose inputs are of one dtype: that of a number is the other inputs'."""
_NARROW = (fb.uint8, fb.int8, fb.int16)
_WIDE = {"Add": 14, "Sub": 14, "Mul": 14, "Div": 14, "Equal": 11, "MatMul": 99}
"""From which opset on operators take narrow integers, which are computed in int32 before."""
_INDICES = frozenset("Shape Size ArgMax ArgMin NonZero".split())


class ValueType:
    """The type of a value, as symbolic functions ask for it."""

    def __init__(self, value: Value) -> None:
        self._value = value

    def sizes(self) -> list[Size] | None:
        """The sizes, None for those that depend on the input; None if nothing is known."""
        infer(self._value)
        shape = self._value.shape
        return None if shape is None else [n if isinstance(n, int) else None for n in shape]

    def dim(self) -> int | None:
        """How many dimensions there are."""
        sizes = self.sizes()
        return None if sizes is None else len(sizes)

    def dtype(self) -> fb.dtype | None:
        """The dtype of the elements."""
        infer(self._value)
        return self._value.dtype

    def scalarType(self) -> str | None:
        """The dtype's name in PyTorch's graphs: ``"Float"``."""
        dtype = self.dtype()
        return None if dtype is None else SCALAR_TYPES.get(dtype)

    def with_sizes(self, sizes: Sequence[Size]) -> ValueType:
        """The type with other sizes."""
        return ValueType(Value("", self.dtype(), tuple(sizes)))

    def with_dtype(self, dtype: fb.dtype) -> ValueType:
        """The type with another dtype."""
        sizes = self.sizes()
        return ValueType(Value("", dtype, None if sizes is None else tuple(sizes)))

    def kind(self) -> str:
        """The kind of type."""
        return "TensorType"

    def __str__(self) -> str:
        return self._value.shown_type()


SCALAR_TYPES = {
    fb.float32: "Float",
    fb.float64: "Double",
    fb.float16: "Half",
    fb.bfloat16: "BFloat16",
    fb.int64: "Long",
    fb.int32: "Int",
    fb.int16: "Short",
    fb.int8: "Char",
    fb.uint8: "Byte",
    fb.bool: "Bool",
    fb.complex64: "ComplexFloat",
    fb.complex128: "ComplexDouble",
}


class TensorProtoDataType(enum.IntEnum):
    """ONNX's numbers of dtypes, under its names."""

    UNDEFINED = 0
    FLOAT = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    STRING = 8
    BOOL = 9
    FLOAT16 = 10
    DOUBLE = 11
    UINT32 = 12
    UINT64 = 13
    COMPLEX64 = 14
    COMPLEX128 = 15
    BFLOAT16 = 16


@dataclass(eq=False)
class Value:
    """A tensor of the written graph.

    Attributes:
        name: unique in the model.
        dtype, shape: what is known of it; sizes are numbers, names of dynamic axes, or None.
        tensor: the elements, of weights and constants.
        packed: what a packed sequence was packed from: steps first, and lengths.
    """

    name: str
    dtype: fb.dtype | None = None
    shape: tuple[Size, ...] | None = None
    tensor: Tensor | None = None
    maker: Node | None = None
    packed: Any = None
    renamed: bool = False

    def type(self) -> ValueType:
        """The type."""
        return ValueType(self)

    def node(self) -> Node:
        """The node that makes it; of inputs and weights one of the kind ``prim::Param``."""
        return self.maker or Node("prim", "Param", [], [self], {})

    def debugName(self) -> str:
        """Its name."""
        return self.name

    def isCompleteTensor(self) -> bool:
        """Whether dtype and all sizes are known."""
        sizes = self.type().sizes()
        return self.dtype is not None and sizes is not None and None not in sizes

    def setType(self, like: ValueType | Value) -> Value:
        """Give it the type of another value."""
        other = like._value if isinstance(like, ValueType) else like
        self.dtype, self.shape = other.dtype, other.shape
        return self

    @property
    def rank(self) -> int:
        """How many dimensions there are.

        Raises:
            OnnxExporterError: this is not known.
        """
        infer(self)
        if self.shape is None:
            raise OnnxExporterError(f"the number of dimensions of %{self.name} is not known")
        return len(self.shape)

    def static(self, dim: int) -> int:
        """A size that does not depend on the input.

        Raises:
            OnnxExporterError: it does, or is not known.
        """
        size = None if self.shape is None else self.shape[dim]
        if not isinstance(size, int):
            raise OnnxExporterError(
                f"the size of dimension {dim} of %{self.name} has to be the same for all inputs "
                "here, and is dynamic"
            )
        return size

    def shown_type(self) -> str:
        """The type as printed graphs have it."""
        if self.dtype is None or self.shape is None:
            return "Tensor" if self.dtype is None else f"{SCALAR_TYPES.get(self.dtype, 'Tensor')}"
        sizes = ", ".join("*" if n is None else str(n) for n in self.shape)
        return f"{SCALAR_TYPES.get(self.dtype, str(self.dtype))}({sizes})"


@dataclass(eq=False)
class Node:
    """An operator of ONNX with its inputs and attributes.

    Attributes:
        domain: empty for ONNX's own.
        scope: the modules that it was made in.
        source: the line of the program that made it.
        opset: the version of ONNX's own operators.
    """

    domain: str
    name: str
    inputs: list[Value | None]
    outputs: list[Value]
    attributes: dict[str, Any]
    scope: str = ""
    source: str = ""
    opset: int = 0

    def kind(self) -> str:
        """Domain and name, as ``"onnx::Conv"``."""
        return f"{self.domain or 'onnx'}::{self.name}"

    def __getitem__(self, name: str) -> Any:
        """An attribute."""
        return self.attributes[name][1]

    t = i = f = s = __getitem__

    def mustBeNone(self) -> bool:
        """False: an argument that is None is None, and no value."""
        return False


@dataclass
class Shared:
    """What a graph and the graphs within its nodes have in common.

    Attributes:
        reserved: names that are given to no value which has none.
        stale: tensors that a write to another one may have changed.
        probing: what is written now is written again, so that nothing is refused yet.
    """

    opset: int
    reserved: frozenset[str] = frozenset()
    domains: dict[str, int] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    count: int = 0
    constants: dict[Any, Value] = field(default_factory=dict)
    scope: str = ""
    source: str = ""
    results: list[Any] = field(default_factory=list)
    kept: list[Any] = field(default_factory=list)
    stale: set[Any] = field(default_factory=set)
    probing: bool = False


class Graph:
    """Nodes in order.  Symbolic functions write to it by `op`.

    Attributes:
        opset: the version of ONNX's own operators.
    """

    def __init__(self, shared: Shared, root: Graph | None = None) -> None:
        self.shared = shared
        self.root = root or self
        self.nodes: list[Node] = []
        self.inputs: list[Value] = []
        self.outputs: list[Value] = []
        self.weights: list[Value] = []

    @property
    def opset(self) -> int:
        """The version of ONNX's own operators."""
        return self.shared.opset

    @property
    def result(self) -> Any:
        """What the op that is written made of the example."""
        return self.shared.results[0] if self.shared.results else None

    @property
    def dtype(self) -> fb.dtype:
        """The dtype of what the op that is written makes."""
        return dtype_of_example(self.result)

    def inner(self) -> Graph:
        """An empty graph for a branch or the body of a loop."""
        return Graph(self.shared, self.root)

    def name(self, wanted: str = "") -> str:
        """A name that no value has."""
        shared = self.shared
        if wanted and wanted not in shared.names:
            shared.names.add(wanted)
            return wanted
        stem = f"{wanted}." if wanted else ""
        while True:
            shared.count += 1
            name = f"{stem}{shared.count}"
            if name not in shared.names and name not in shared.reserved:
                shared.names.add(name)
                return name

    def needs(self, opset: int, what: str) -> None:
        """Refuse what older opsets cannot say."""
        if self.opset < opset:
            raise UnsupportedOperatorError(
                f"{what} needs opset {opset} or newer; the model is exported with {self.opset}"
            )

    def op(self, opname: str, *args: object, outputs: int = 1, **attrs: object) -> Any:
        """Add a node; its output, or a tuple of them.

        Args:
            opname: an operator of ONNX, or ``"domain::Name"``.
            args: values; None for an input that is left out; numbers and tensors become constants.
            outputs: how many outputs there are.
            attrs: attributes, whose names end in ``_i``, ``_f``, ``_s``, ``_t`` or ``_g`` for
                integers, floats, text, tensors and graphs, or lists of them.
        """
        domain, _, name = opname.rpartition("::")
        domain = "" if domain in ("onnx", "aten_onnx") else domain
        if domain and domain not in self.shared.domains:
            self.shared.domains[domain] = 1
        alike = None
        if not domain and (name in _ALIKE or name in _WIDE):
            alike = next((a.dtype for a in args if isinstance(a, Value) and a.dtype), None)
            if alike in _NARROW and self.opset < _WIDE.get(name, 0):
                wide = [self.value(a, fb.int32) for a in args]
                return self.cast(self.op(name, *wide), self._result_dtype(name, alike))
        inputs = [
            a if a is None or isinstance(a, Value) else self.constant(a, _number_dtype(a, alike))
            for a in args
        ]
        while inputs and inputs[-1] is None:
            inputs.pop()
        made = [Value(self.name()) for _ in range(outputs)]
        shared = self.shared
        node = Node(
            domain, name, inputs, made, _attributes(attrs), shared.scope, shared.source, self.opset
        )
        dtype = self._dtype(node)
        for value in made:
            value.maker, value.dtype = node, dtype
        self.nodes.append(node)
        if node.name == "Constant" and not domain and "value" in node.attributes:
            tensor = node["value"]
            made[0].tensor, made[0].dtype, made[0].shape = tensor, tensor.dtype, tuple(tensor.shape)
        return made[0] if outputs == 1 else tuple(made)

    def _result_dtype(self, name: str, dtype: fb.dtype) -> fb.dtype:
        return fb.bool if name in _BOOLEAN else dtype

    def _dtype(self, node: Node) -> fb.dtype | None:
        if node.domain:
            return None
        if node.name in _BOOLEAN:
            return fb.bool
        if node.name in _INDICES:
            return fb.int64
        if node.name == "Cast":
            from flambeau.onnx._operators.table import DTYPES

            return DTYPES[node.attributes["to"][1]]
        at = 1 if node.name in ("Where", "OneHot") else 0
        given = node.inputs[at] if len(node.inputs) > at else None
        return given.dtype if given is not None else None

    def constant(self, value: object, dtype: fb.dtype | None = None) -> Value:
        """A constant of numbers or of a tensor; equal ones are one."""
        if isinstance(value, Value):
            return value
        if isinstance(value, Tensor):
            tensor = value.detach()
            if dtype is not None and tensor.dtype is not dtype:
                tensor = tensor.to(dtype)
        else:
            value = tensor = fb.tensor(value, dtype=dtype or _default_dtype(value))
        # Detached and converted it is another object each time.
        key = (id(value), value._version, tensor.dtype)
        if tensor.numel() <= 64:
            key = (tensor.dtype, tuple(tensor.shape), repr(tensor.reshape(-1).tolist()))
        found = self.shared.constants.get(key)
        if found is None:
            self.shared.kept.append(value)
            tensor = tensor.cpu().clone()
            found = Value(self.root.name(), tensor.dtype, tuple(tensor.shape), tensor)
            node = Node("", "Constant", [], [found], {"value": ("t", tensor)})
            node.scope, node.source = self.shared.scope, self.shared.source
            found.maker = node
            self.root.nodes.append(node)
            self.shared.constants[key] = found
        return found

    def ints(self, values: Iterable[Any]) -> Value:
        """Integers, some of which may be values, as a value of one dimension."""
        values = list(values)
        if all(isinstance(v, int) for v in values):
            return self.constant(fb.tensor(values, dtype=fb.int64))
        parts: list[Value] = []
        run: list[int] = []
        for value in values:
            if isinstance(value, int):
                run.append(value)
                continue
            if run:
                parts.append(self.constant(fb.tensor(run, dtype=fb.int64)))
                run = []
            parts.append(self.reshape(self.cast(value, fb.int64), [1]))
        if run:
            parts.append(self.constant(fb.tensor(run, dtype=fb.int64)))
        made = parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis_i=0)
        made.dtype, made.shape = fb.int64, (len(values),)
        return made

    def value(self, value: object, dtype: fb.dtype | None = None) -> Value:
        """A value of a dtype, from a value, a tensor or a number."""
        if isinstance(value, Value):
            return value if dtype is None else self.cast(value, dtype)
        return self.constant(value, dtype)

    def cast(self, value: Value, dtype: fb.dtype | None) -> Value:
        """A value as another dtype, if one is given."""
        if not isinstance(value, Value):
            raise OnnxExporterError(f"a tensor is needed, not {type(value).__name__}")
        if dtype is None or value.dtype is dtype:
            return value
        if value.tensor is not None and value.maker is not None:
            return self.constant(value.tensor, dtype)
        # Too large for eight bits: infinity or none, and in one dtype the largest, as ONNX has it.
        narrow = dtype.itemsize == 1 and dtype.is_floating_point
        ends = {"saturate_i": 0} if narrow and dtype is not fb.float8_e4m3fn else {}
        made = self.op("Cast", value, to_i=number_of(dtype), **ends)
        made.dtype, made.shape = dtype, value.shape
        return made

    def _with_axes(
        self, name: str, x: Value, axes: Sequence[int] | None, since: int, **attrs: Any
    ) -> Value:
        if axes is None:
            return self.op(name, x, **attrs)
        if self.opset >= since:
            return self.op(name, x, self.ints(axes), **attrs)
        return self.op(name, x, axes_i=list(axes), **attrs)

    def unsqueeze(self, x: Value, axes: Sequence[int]) -> Value:
        """Dimensions of size one, at places of the result counted from the front."""
        made = self._with_axes("Unsqueeze", x, axes, 13)
        if x.shape is not None:
            sizes = list(x.shape)
            for axis in sorted(axes):
                sizes.insert(axis, 1)
            made.shape = tuple(sizes)
        return made

    def squeeze(self, x: Value, axes: Sequence[int]) -> Value:
        """Without dimensions of size one."""
        made = self._with_axes("Squeeze", x, axes, 13)
        if x.shape is not None:
            gone = {a % len(x.shape) for a in axes}
            made.shape = tuple(n for d, n in enumerate(x.shape) if d not in gone)
        return made

    def reduce(
        self, name: str, x: Value, axes: Sequence[int] | None = None, keepdim: bool = False
    ) -> Value:
        """``ReduceSum`` and its like."""
        if name == "ReduceMean" and self._of_nothing(x, axes):
            # The operator leaves it open, and runtimes say 0.
            total = self.reduce("ReduceSum", x, axes, keepdim)
            made = self.op("Div", total, self.constant(0, total.dtype))
            made.shape = total.shape
            return made
        since = 13 if name == "ReduceSum" else 18
        made = self._with_axes(name, x, axes, since, keepdims_i=int(keepdim))
        if x.shape is not None and axes is not None:
            gone = {a % max(1, len(x.shape)) for a in axes}
            kept = enumerate(x.shape)
            made.shape = tuple(1 if d in gone else n for d, n in kept if keepdim or d not in gone)
        elif axes is None and not keepdim:
            made.shape = ()
        return made

    def _of_nothing(self, x: Value, axes: Sequence[int] | None) -> bool:
        """Whether a reduction is over no elements at all."""
        infer(x)
        shape = x.shape or ()
        return any(shape[d] == 0 for d in (range(len(shape)) if axes is None else axes))

    def reshape(self, x: Value, sizes: Iterable[Any] | Value) -> Value:
        """Other sizes of the same elements."""
        if isinstance(sizes, Value):
            return self.op("Reshape", x, sizes)
        sizes = list(sizes)
        # Zero means to ONNX that the size stays, and to PyTorch that there are no elements.
        zero = {"allowzero_i": 1} if any(s == 0 for s in sizes if isinstance(s, int)) else {}
        if zero:
            self.needs(14, "a tensor without elements")
        made = self.op("Reshape", x, self.ints(sizes), **zero)
        if all(isinstance(s, int) and s >= 0 for s in sizes):
            made.shape = tuple(sizes)
        else:
            made.shape = (None,) * len(sizes)
        return made

    def slice(
        self,
        x: Value,
        starts: Sequence[Any],
        ends: Sequence[Any],
        axes: Sequence[int],
        steps: Sequence[int] | None = None,
    ) -> Value:
        """``x[start:end:step]`` along axes."""
        plain = all(isinstance(v, int) for v in (*starts, *ends))
        if self.opset < 10:
            if not plain or (steps is not None and any(s != 1 for s in steps)):
                self.needs(10, "a slice with steps, or with bounds that depend on the input")
            made = self.op("Slice", x, starts_i=list(starts), ends_i=list(ends), axes_i=list(axes))
        else:
            stride = [] if steps is None else [self.ints(steps)]
            made = self.op("Slice", x, self.ints(starts), self.ints(ends), self.ints(axes), *stride)
        if x.shape is not None:
            made.shape = (None,) * len(x.shape)
        return made

    def transpose(self, x: Value, order: Sequence[int], layer: bool = False) -> Value:
        """The dimensions in another order: of the weight of a linear layer, or of anything else.

        A matrix that is no such weight is transposed without ``perm``, which tells them apart.
        """
        if list(order) == list(range(len(order))):
            return x
        if list(order) == [1, 0] and not layer:
            made = self.op("Transpose", x)
        else:
            made = self.op("Transpose", x, perm_i=list(order))
        made.shape = None if x.shape is None else tuple(x.shape[d] for d in order)
        return made

    def swap(self, x: Value, one: int, other: int) -> Value:
        """Two dimensions exchanged."""
        order = list(range(x.rank))
        order[one], order[other] = order[other], order[one]
        return self.transpose(x, order)

    def shape_of(self, x: Value) -> Value:
        """The sizes: a constant if they are known."""
        if x.shape is not None and all(isinstance(n, int) for n in x.shape):
            return self.ints(x.shape)
        made = self.op("Shape", x)
        made.shape = None if x.shape is None else (len(x.shape),)
        return made

    def size(self, x: Value, dim: int) -> Any:
        """One size: a number if it is known, else a value without dimensions."""
        known = None if x.shape is None else x.shape[dim]
        if isinstance(known, int):
            return known
        place = dim % len(x.shape) if x.shape is not None else dim
        made = self.op("Gather", self.op("Shape", x), self.constant(place), axis_i=0)
        made.dtype, made.shape = fb.int64, ()
        return made

    def numel(self, x: Value) -> Any:
        """How many elements there are."""
        if x.shape is not None and all(isinstance(n, int) for n in x.shape):
            count = 1
            for size in x.shape:
                count *= size if isinstance(size, int) else 1
            return count
        made = self.op("Size", x)
        made.shape = ()
        return made

    def expand(self, x: Value, sizes: Iterable[Any] | Value) -> Value:
        """Broadcast to sizes."""
        shape = sizes if isinstance(sizes, Value) else self.ints(sizes)
        if x.dtype is fb.bool and self.opset < 13:  # runtimes had no such kernel
            return self.cast(self.op("Expand", self.cast(x, fb.int64), shape), fb.bool)
        return self.op("Expand", x, shape)

    def filled(self, sizes: Iterable[Any] | Value, value: Any, dtype: fb.dtype) -> Value:
        """A tensor of one number."""
        if not isinstance(sizes, Value):
            sizes = list(sizes)
            if all(isinstance(s, int) for s in sizes) and not isinstance(value, Value):
                return self.constant(fb.full(sizes, value, dtype=dtype))
            sizes = self.ints(sizes)
        if isinstance(value, Value):
            return self.op("Expand", self.cast(value, dtype), sizes)
        made = self.op("ConstantOfShape", sizes, value_t=fb.tensor([value], dtype=dtype))
        made.dtype = dtype
        return made

    def clip(self, x: Value, low: Any, high: Any) -> Value:
        """Values between bounds."""
        dtype = x.dtype
        numbers = all(b is None or isinstance(b, NUMBERS) for b in (low, high))
        integral = dtype is not None and not dtype.is_floating_point
        if numbers and not integral:  # a bound that is left out is the largest finite number
            low, high = (-math.inf if low is None else low), (math.inf if high is None else high)
        if self.opset >= 12 or (self.opset == 11 and not integral):
            bounds = [None if b is None else self.value(b, dtype) for b in (low, high)]
            return self.op("Clip", x, *bounds)
        if numbers and not integral and self.opset < 11:
            return self.op("Clip", x, min_f=float(low), max_f=float(high))
        for bound, test in ((low, "Less"), (high, "Greater")):
            if bound is not None:
                edge = self.value(bound, dtype)
                x = self.op("Where", self.op(test, x, edge), edge, x)
        return x

    def split(self, x: Value, sizes: Sequence[int], axis: int) -> tuple[Value, ...]:
        """Parts of given sizes along an axis."""
        count = len(sizes)
        if count == 1:
            return (x,)
        if self.opset >= 13:
            made = self.op("Split", x, self.ints(sizes), axis_i=axis, outputs=count)
        else:
            made = self.op("Split", x, split_i=list(sizes), axis_i=axis, outputs=count)
        if x.shape is not None:
            for part, size in zip(made, sizes, strict=True):
                known = list(x.shape)
                known[axis] = size
                part.shape = tuple(known)
        return made

    def matmul(self, a: Value, b: Value) -> Value:
        """A product of matrices."""
        return self.op("MatMul", a, b)


def _number_dtype(value: object, alike: fb.dtype | None) -> fb.dtype | None:
    """The dtype of a constant beside values of another; None if the value has its own."""
    if alike is None or not isinstance(value, int | float) or isinstance(value, bool):
        return None
    whole = isinstance(value, int) and alike is not fb.bool
    return alike if alike.is_floating_point or whole else None


def _default_dtype(value: object) -> fb.dtype | None:
    while isinstance(value, list | tuple):
        if not value:
            return fb.int64
        value = value[0]
    return fb.int64 if isinstance(value, int) and not isinstance(value, bool) else None


def dtype_of_example(value: object) -> fb.dtype:
    """The dtype that a tensor or a number has in the graph."""
    if isinstance(value, Tensor):
        return value.dtype
    if isinstance(value, bool):
        return fb.bool
    return fb.int64 if isinstance(value, int) else fb.float64


def number_of(dtype: fb.dtype) -> int:
    """ONNX's number of a dtype.

    Raises:
        OnnxExporterError: ONNX has none.
    """
    from flambeau.onnx._operators.table import DTYPES

    for number, known in DTYPES.items():
        if known is dtype:
            return number
    raise OnnxExporterError(f"ONNX has no tensors of {dtype}")


def _attributes(given: dict[str, Any]) -> dict[str, Any]:
    """Attributes by name, each with the letter of its kind."""
    made = {}
    for name, value in given.items():
        stem, mark, letter = name.rpartition("_")
        if not mark or letter not in ("i", "f", "s", "t", "g", "z"):
            raise OnnxExporterError(
                f"the attribute {name!r} has no kind: its name ends in _i, _f, _s, _t or _g"
            )
        if value is not None:
            made[stem] = (letter, value)
    return made
