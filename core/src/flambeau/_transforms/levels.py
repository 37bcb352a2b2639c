"""Levels: what a transform is to the tensors inside of the function that it transforms.

A level is a backend whose arrays hold tensors of the levels below: an op on its tensors comes down
to ops on those, which are recorded, batched or made dual there in their turn.  So one engine, one
set of gradients and one set of composites serve every nesting; ``docs/design/transforms.md`` argues
for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

from flambeau._autograd.modes import recording, set_recording
from flambeau._dispatch import bound as _bound
from flambeau._dispatch import dispatch as _dispatch
from flambeau._dispatch.arguments import check_values, checked
from flambeau._dispatch.bound import BoundBackend
from flambeau._dispatch.dispatch import OPS, kernel_error, wrap
from flambeau._types import dtype as D
from flambeau.ops.declaration.parameters import PLAIN, TENSOR
from flambeau.ops.randomness.sampling import RandomOp

if TYPE_CHECKING:
    from flambeau._tensor.tensor import Tensor
    from flambeau._transforms.batches import BatchedArray
    from flambeau._types.dtype import dtype as DType
    from flambeau.ops.declaration.table import Op

_new = object.__new__


class LevelArray:
    """An array of a level: a tensor of the levels below, and the shape that the level shows."""

    __slots__ = ("shape", "value")

    shape: tuple[int, ...]
    value: Tensor

    def __init__(self, value: Tensor) -> None:
        self.value = value
        self.shape = tuple(value._a.shape)

    def constant(self, value: Tensor) -> LevelArray:
        """An array of this kind over other values, which depend on nothing."""
        return type(self)(value)


class _Now(threading.local):
    """Where this thread is.

    Attributes:
        stack: the levels it is inside of, outermost first.
        depth: of the level whose ops it is running; smaller than the last one's while a kernel
            works on the levels below.
    """

    def __init__(self) -> None:
        self.stack: list[Level] = []
        self.depth = 0


now = _Now()


class Level:
    """One call of a transform, from its beginning to its end.

    Attributes:
        depth: how many levels it is inside of, and 1; the mixture of tensors of several levels is
            one of the deepest.
        records: whether the levels below record what this one asks of them.
        name: of its tensors, in `repr`.
    """

    name = "LevelTensor"
    captured = (
        "the function given to a transform (grad, vjp, jvp ...) attempted an in-place operation "
        "that would mutate a captured Tensor, one from outside of it; pass the tensor as an "
        "argument of the function"
    )
    array: type = LevelArray
    makes = True  # whether new tensors in the function are of the level
    records: bool | None = None  # as it is in the function, unless a level says otherwise

    def __init__(self) -> None:
        self.depth = 0
        self._outside = 0
        self._backends: dict[int, LevelBackend] = {}
        self._known: dict[int, Tensor] = {}
        self._arguments: list[tuple[Tensor, Tensor]] = []  # own ones, and those outside

    def __enter__(self) -> Self:
        self._outside = now.depth
        self.depth = now.depth = now.depth + 1
        now.stack.append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        now.stack.remove(self)
        now.depth = self._outside
        arguments, self._arguments, self._known = self._arguments, [], {}
        if exc[0] is None:
            for own, given in arguments:
                if own._version:
                    given.copy_(self.restored(own, given))

    def over(self, be: BoundBackend) -> LevelBackend:
        """The backend of this level, for tensors over that of a device or of another level."""
        device = getattr(be, "below", be)
        found = self._backends.get(id(device))
        if found is None:
            found = self._backends[id(device)] = LevelBackend(self, device)
        return found

    def lift(self, t: Tensor) -> Tensor:
        """A tensor of the levels below as one of this level, which has no history in it."""
        return wrap(self.over(t._be), self.array(t), t.dtype)

    def argument(self, t: Tensor) -> Tensor:
        """An argument of the function as a tensor of this level.

        What the function writes into it is written into the argument at the end.
        """
        if (own := self._known.get(id(t))) is None:
            own = self._known[id(t)] = self.lift(t)
            self._arguments.append((own, t))
        return own

    def restored(self, own: Tensor, given: Tensor) -> Tensor:
        """The values of an argument at the end, as a tensor below."""
        return self.lower(own)

    def lower(self, t: Tensor) -> Tensor:
        """The tensor below; what is not of this level is so already."""
        return t._a.value if getattr(t._be, "level", None) is self else t

    def kernel(self, be: LevelBackend, name: str) -> Callable[..., Any]:
        """What the attribute `name` of its backends is: a kernel for its arrays."""
        op = OPS.get(name)
        if op is None:
            raise AttributeError(f"no canonical op {name!r}")
        if not op.inputs_at:
            return lambda *args: be.array(self._made(be.below, op, args))

        def run(*args: object) -> Any:
            before, depth = recording(), now.depth
            try:
                if self.records is not None:
                    set_recording(self.records)
                now.depth = min(depth, self.depth - 1)
                return self.run(be, op, args)
            finally:
                now.depth = depth
                set_recording(before)

        return run

    def run(self, be: LevelBackend, op: object, args: tuple[Any, ...]) -> Any:
        """An op on arrays of this level: the op on what they hold."""
        return packed(apply(op, values(op, args)), self.array)

    def _made(self, be: BoundBackend, op: Op, args: tuple[Any, ...]) -> Tensor:
        """The result of an op without tensors among its arguments, on the levels below."""
        if isinstance(op, RandomOp):
            be = drawing(be, self.depth)
        try:
            native = be.fresh(getattr(be, op.name)(*args))
        except be.error as error:
            raise kernel_error(op.name, error, args) from error
        return wrap(be, native, be.dtype_of(native))

    def drawing(self, be: BoundBackend) -> LevelBackend | None:
        """Where this level wants random numbers for `be` to be drawn; None if it does not care."""
        return None

    def item(self, array: Any) -> Any:
        """The number that an array of one element holds."""
        return array.value.item()

    def tolist(self, array: Any) -> Any:
        """The numbers that an array holds, as nested lists."""
        return array.value.tolist()

    def detached(self, array: Any) -> Any:
        """The array without history on any level."""
        return packed_like(array, array.value.detach())

    def describe(self, t: Tensor) -> str:
        """The text of ``repr(t)``."""
        value = repr(t._a.value).replace("\n", "\n    ")
        return f"{self.name}(lvl={self.depth}, value=\n    {value}\n)"


class LevelBackend(BoundBackend):
    """The backend of a level: kernels that act on the tensors below.

    They are made when they are first asked for, which `BoundBackend` must not do: this class is
    off the hot path.
    """

    def __init__(self, level: Level, below: BoundBackend) -> None:
        self.level = level
        self.below = below
        self.native = True
        self.backend = Runtime(level, below)
        self.device = below.device
        self.array = level.array
        self.error = ()  # the tensors below raise what users see
        self.strided = False
        self.to_array = _itself
        self.dtype_of = _dtype_of
        self.consts = {d: {} for d in D.ALL}
        self.zero = {}
        self.kernels = {}
        self.home = self.formulas = self
        self.settle = tuple

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[..., Any]:
            if name == "part":
                return self.slice
            if name.startswith("__"):
                raise AttributeError(name)
            found = self.level.kernel(self, name)
            self.__dict__[name] = found
            return found

    def scalar_const(self, value: object, dtype: DType) -> BatchedArray:
        return self.array(wrap(self.below, self.below.scalar_const(value, dtype), dtype))

    def host_array(self, values: list[Any], shape: Sequence[int], dtype: DType) -> Any:
        return self.array(wrap(self.below, self.below.host_array(values, shape, dtype), dtype))

    def reshape(self, a: object, shape: tuple[int, ...]) -> LevelArray:
        return self.view(a, tuple(shape))

    def moved(self, t: Tensor, be: BoundBackend) -> Tensor:
        """A tensor of this level on the device of another backend."""
        native = packed_like(t._a, t._a.value.to(be.device))
        return wrap(self.level.over(be), native, t.dtype)


class Runtime:
    """The runtime of a level: what `flambeau.plugin.Backend` is to a device."""

    strided = False
    error = ()

    def __init__(self, level: Level, below: BoundBackend) -> None:
        self.level = level
        self.below = below
        self.array = level.array
        self.device_type = below.device.type
        self.indexed = below.backend.indexed

    def to_array(self, value: object) -> Any:
        return value

    def dtype_of(self, array: LevelArray) -> DType:
        return array.value.dtype

    def device_count(self) -> int:
        return self.below.backend.device_count()

    def current_device(self) -> int:
        return self.below.backend.current_device()

    def index_of(self, array: object) -> int:
        return self.below.device.index or 0

    def compile(self, op: str, decomposition: object) -> None:
        return None

    def generator(self, index: int) -> Any:
        return self.below.backend.generator(index)

    def from_host(self, data: object, shape: tuple[int, ...], dtype: DType, index: int) -> Any:
        native = self.below.backend.from_host(data, shape, dtype, index)
        return self.array(wrap(self.below, native, dtype))

    def scalar(self, value: object, dtype: DType) -> Any:
        return self.array(wrap(self.below, self.below.backend.scalar(value, dtype), dtype))

    def to_host(self, array: Any) -> Any:
        return self.below.backend.to_host(array.value._a)

    def viewed(self, array: Any, dtype: DType) -> Any:
        """The bytes of an array as another dtype, without history."""
        return array.constant(array.value.detach().view(dtype))

    def item(self, array: object) -> Any:
        return self.level.item(array)

    def tolist(self, array: object) -> Any:
        return self.level.tolist(array)

    def check_values(
        self, array: LevelArray, low: float, high: float, error: object, text: str
    ) -> bool:
        check_values(array.value, low, high, text)
        return True

    def checked_index(
        self,
        array: BatchedArray,
        size: int,
        wraps: bool,
        allowed: int | None,
        error: type,
        text: str,
    ) -> BatchedArray:
        value = array.value
        found = checked(value, size, error, text, (), wrap=wraps, allowed=allowed)
        return array if found is value else packed_like(array, found)


def packed_like(array: Any, value: Tensor) -> Any:
    """An array of the kind of another one, over a tensor of the same shape."""
    made = _new(type(array))
    for cls in type(array).__mro__:
        for name in getattr(cls, "__slots__", ()):
            setattr(made, name, getattr(array, name))
    made.value = value
    return made


def values(op: Any, args: tuple[Any, ...]) -> list[Any]:
    """The arguments of an op with the tensors below in place of a level's arrays."""
    found = []
    for a, kind in zip(args, op.kinds, strict=True):
        if kind is PLAIN or a is None:
            found.append(a)
        elif kind is TENSOR:
            found.append(a.value)
        else:
            found.append(tuple([None if x is None else x.value for x in a]))
    return found


def apply(op: Any, given: list[Any]) -> Any:
    """An op on the tensors below, whose strides the level does not show: any shape is a view."""
    return given[0].reshape(given[1]) if op.name == "view" else op(*given)


def packed(result: Any, array: Callable[[Tensor], Any]) -> Any:
    """A tensor, or several, as arrays of a level."""
    return tuple([array(r) for r in result]) if type(result) is tuple else array(result)


def _itself(value: object) -> object:
    return value


def _dtype_of(array: LevelArray) -> DType:
    return array.value.dtype


def level_of(t: Tensor) -> Level | None:
    """The level of a tensor; None for one that is under no transform."""
    return getattr(t._be, "level", None)


def deepest(tensors: Sequence[Tensor]) -> Level | None:
    """The deepest level among tensors."""
    levels = [level for t in tensors if (level := level_of(t)) is not None]
    return max(levels, key=lambda level: level.depth) if levels else None


def lifted(tensors: Sequence[Tensor]) -> list[Tensor] | None:
    """The tensors as tensors of the deepest level among them; None if none is of a level."""
    level = deepest(tensors)
    if level is None:
        return None
    return [t if level_of(t) is level else level.lift(t) for t in tensors]


def drawing(be: BoundBackend, below: int | None = None) -> BoundBackend:
    """Where random numbers for tensors of `be` are drawn: see `Level.drawing`.

    Args:
        be: of a device or a level, above which the levels are asked.
        below: the depth of the level for which it is asked, if it is one.
    """
    own = getattr(be, "level", None)
    for level in reversed(now.stack):
        if level.depth > now.depth or (below is not None and level.depth >= below):
            continue
        if own is not None and level.depth <= own.depth:
            break
        if (found := level.drawing(be)) is not None:
            return found
    return be


def making(be: BoundBackend) -> BoundBackend:
    """Where new tensors are made: on the innermost level but those of batches, as in PyTorch.

    A function may then write to them; new tensors do not differ along a batch.
    """
    if not now.depth or hasattr(be, "level"):
        return be
    for level in reversed(now.stack):
        if level.makes and level.depth <= now.depth:
            return level.over(be)
    return be


def held(body: Callable[..., Any], args: list[Any]) -> Any:
    """What the decomposition of an op makes of tensors that are of no level: none is made there."""
    before = now.depth
    try:
        now.depth = 0
        return body(*args)
    finally:
        now.depth = before


_bound.making = making
_bound.held = held
_dispatch.lifted = lifted
_dispatch.drawing = drawing
