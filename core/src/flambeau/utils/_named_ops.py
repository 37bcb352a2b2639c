"""Ops that programs and libraries define under names of their own: what ``torch.ops`` finds."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, NamedTuple

import flambeau as fb

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "ALL",
    "COMPOSITE",
    "DEFINED",
    "FAILED",
    "FAKES",
    "KEYS",
    "CustomOp",
    "FakeContext",
    "OpsNamespace",
    "Overloads",
    "arguments_of",
    "declared",
    "define",
    "device_of",
    "device_of_all",
    "fake_context",
    "find_or_define",
    "loading",
    "parameters_of",
    "parts_of",
]

DEFINED: dict[str, dict[str, CustomOp]] = {}
"""What programs and libraries defined, by namespace and name."""


FAILED: list[BaseException] = []
"""Errors of ops that a library could not register while it was loaded."""

FAKES: dict[str, Callable[..., Any]] = {}
"""What says the shapes of the results of an op, by its full name: the op need not be there."""

ALL = "all devices"
KEYS = {"CPU": "cpu", "CUDA": "cuda", "XPU": "xpu", "MPS": "mps"}
COMPOSITE = ("", "default", "CompositeImplicitAutograd", "CompositeExplicitAutograd")


class OpsNamespace:
    """Where a program finds the ops of a namespace: scripts know it by its class."""

    def __init__(self, name: str) -> None:
        self._name = name


class CustomOp:
    """A function that can be given a gradient; `custom_op` and `define` make it.

    It has one function for all devices, or one for each type of devices, or both.
    """

    def __init__(self, name: str, function: Callable[..., Any] | None = None) -> None:
        self._name = name
        self.schema = ""
        self.overload = ""
        self._kernels: dict[str, Callable[..., Any]] = {}
        self._apply: Callable[..., Any] = self._function
        self.__name__ = name.partition("::")[2]
        if function is not None:
            self._kernels[ALL] = function
            self.__doc__ = function.__doc__

    def _function(self, *args: object, **kwargs: object) -> Callable[..., Any]:
        device = device_of_all((*args, *kwargs.values()))
        fake = FAKES.get(self._name) if device == "meta" else None
        kernel = self._kernels.get(device) or fake or self._kernels.get(ALL)
        if kernel is None:
            raise NotImplementedError(
                f"Could not run '{self._name}' with arguments from the {device.upper()!r} backend: "
                f"it has kernels for {sorted(self._kernels) or 'no device'}"
            )
        return kernel(*args, **kwargs)

    def __call__(self, *args: object, **kwargs: object) -> Any:
        return self._apply(*args, **kwargs)

    def by_place(self, *args: object) -> Any:
        """Call with all arguments in the order of the schema, also those that have to be named."""
        by_place, named = _placed(self.schema, args)
        return self(*by_place, **named)

    def sizes_told(self, args: Sequence[object], at: int) -> Any:
        """What the fake implementation gives; None if there is none.

        Args:
            args: all arguments in the order of the schema.
            at: the size that it gets where it asks for one which depends on elements.
        """
        fake = FAKES.get(self._name)
        if fake is None:
            return None
        by_place, named = _placed(self.schema, args)
        before = _FAKED.set(FakeContext(at))
        try:
            return fake(*by_place, **named)
        finally:
            _FAKED.reset(before)

    def __getattr__(self, name: str) -> CustomOp:
        if name.startswith("_") or name != self.overload:
            raise AttributeError(f"the op '{self._name}' has no overload {name!r}")
        return self

    @property
    def default(self) -> CustomOp:
        """The only overload, with a name or without one."""
        return self

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._name})>"

    def register_fake(self, fn: Callable[..., Any] | None = None, /) -> Callable[..., Any]:
        """Say which shape and dtype the result has: on the device meta, and in exports.

        The function gets what the op gets, and reads no elements.
        """

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            FAKES[self._name] = function
            return function

        return register if fn is None else register(fn)

    def register_kernel(
        self, device_types: str | Sequence[str] | None, fn: Callable[..., Any] | None = None, /
    ) -> Callable[..., Any]:
        """Give another function for a type of devices, or for several; all if None."""
        types = [device_types] if isinstance(device_types, str) else device_types or [ALL]

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            for device in types:
                self._kernels[device] = function
            return function

        return register if fn is None else register(fn)

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """Give the gradient, as ``backward(ctx, *grads)`` of an `autograd.Function`.

        Args:
            backward: gives the gradients of the arguments that are given by place.
            setup_context: keeps what that needs, as ``setup_context(ctx, inputs, output)``; of an
                op with arguments by name only ``(ctx, inputs, keyword_only_inputs, output)``.
        """
        function, setup, parameters = self._function, setup_context, _parameters(self)
        by_name = any(p.kind is Parameter.KEYWORD_ONLY for p in parameters)

        class Recorded(fb.autograd.Function):
            @staticmethod
            def forward(ctx: object, *args: Any) -> Any:
                *inputs, named = args
                result = function(*inputs, **named)
                if setup is not None and by_name:
                    setup(ctx, tuple(inputs), named, result)
                elif setup is not None:
                    setup(ctx, tuple(inputs), result)
                return result

            @staticmethod
            def backward(ctx: object, *grads: Any) -> Any:
                found = backward(ctx, *grads)
                return (*found, None) if isinstance(found, (tuple, list)) else (found, None)

        Recorded.__name__ = self.__name__

        def recorded(*args: object, **kwargs: object) -> Any:
            inputs, named = _by_place(parameters, args, kwargs)
            return Recorded.apply(*inputs, named)

        self._apply = recorded


class Overloads(CustomOp):
    """Several ops of one name: of those that take the arguments it calls the first.

    Each is an attribute by its own name, and `default` is the one without a name.
    """

    def __init__(self, name: str, first: CustomOp) -> None:
        super().__init__(name)
        self.schema = first.schema
        self._ops = {first.overload: first}

    def __call__(self, *args: object, **kwargs: object) -> Any:
        for op in self._ops.values():
            if _takes(op.schema, args, kwargs):
                return op(*args, **kwargs)
        told = "".join(f"\n  {op.schema or op!r}" for op in self._ops.values())
        raise TypeError(f"no overload of '{self._name}' takes these arguments; there are{told}")

    def __getattr__(self, name: str) -> CustomOp:
        if name and not name.startswith("_") and name in self._ops:
            return self._ops[name]
        raise AttributeError(f"the op '{self._name}' has no overload {name!r}")

    @property
    def default(self) -> CustomOp:
        """The overload without a name."""
        if "" not in self._ops:
            raise AttributeError(f"the op '{self._name}' has no overload without a name")
        return self._ops[""]

    def register_kernel(
        self, device_types: str | Sequence[str] | None, fn: Callable[..., Any] | None = None, /
    ) -> Callable[..., Any]:
        """Refuse: each overload has functions of its own."""
        raise self._ambiguous()

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """Refuse: each overload has a gradient of its own."""
        raise self._ambiguous()

    def _ambiguous(self) -> RuntimeError:
        names = ", ".join(f"'{op._name}'" for op in self._ops.values())
        return RuntimeError(f"'{self._name}' has several overloads: say which of {names}")


class FakeContext:
    """What a fake implementation is told: `torch.library.get_ctx` gives it.

    Args:
        at: what sizes that depend on elements are now.
    """

    def __init__(self, at: int) -> None:
        self._at = at

    def new_dynamic_size(self, *, min: int = 0, max: int | None = None) -> int:
        """A size that depends on elements, between bounds that are known.

        Raises:
            ValueError: no size is between them.
        """
        if min < 0 or (max is not None and max < min):
            raise ValueError(f"new_dynamic_size wants 0 <= min <= max, got min={min}, max={max}")
        found = self._at if self._at >= min else self._at + min
        return found if max is None or found <= max else max - (max > min and self._at % 2)

    create_unbacked_symint = new_dynamic_size


_FAKED: ContextVar[FakeContext | None] = ContextVar("flambeau.utils.fakes", default=None)


def fake_context() -> FakeContext:
    """The context of the fake implementation that is running.

    Raises:
        RuntimeError: none is, or it runs for a tensor without elements.
    """
    found = _FAKED.get()
    if found is None:
        raise RuntimeError(
            "get_ctx() is called inside of a fake implementation; on the device meta there are no "
            "sizes that depend on elements"
        )
    return found


def _placed(schema: str, args: Sequence[object]) -> tuple[tuple[object, ...], dict[str, object]]:
    """Arguments in the order of a schema, by place and by name as it wants them."""
    arguments = declared(schema)
    at = sum(not one.by_name for one in arguments) if arguments else len(args)
    names = [one.name for one in arguments if one.by_name]
    return tuple(args[:at]), dict(zip(names, args[at:], strict=False))


def _parameters(op: CustomOp) -> list[Parameter]:
    """Those of an op, by its schema or else by its function; none if it has neither."""
    if op.schema:
        return parameters_of(op.schema)
    function = op._kernels.get(ALL)
    return [] if function is None else [*signature(function).parameters.values()]


def parameters_of(schema: str) -> list[Parameter]:
    """The arguments of a schema; those with a default that is a word (a dtype, Mean) have none."""
    found = []
    for one in declared(schema):
        kind = Parameter.KEYWORD_ONLY if one.by_name else Parameter.POSITIONAL_OR_KEYWORD
        try:
            default = ast.literal_eval(one.default) if one.default else Parameter.empty
        except (ValueError, SyntaxError):
            default = Parameter.empty
        found.append(Parameter(one.name, kind, default=default))
    return found


def _by_place(
    parameters: Sequence[Parameter], args: Sequence[object], kwargs: Mapping[str, object]
) -> tuple[list[object], dict[str, object]]:
    """Arguments by place as far as there are places, with defaults, and the rest by name."""
    inputs, named = list(args), dict(kwargs)
    for p in parameters[len(inputs) :]:
        if p.kind is Parameter.KEYWORD_ONLY:
            if p.default is not Parameter.empty:
                named.setdefault(p.name, p.default)
        elif p.name in named:
            inputs.append(named.pop(p.name))
        elif p.default is not Parameter.empty:
            inputs.append(p.default)
        else:
            break  # the function says what is missing
    return inputs, named


def define(space: str, schema: str) -> CustomOp:
    """An op of a namespace from a schema or a name; the one that is there, if there is one.

    Raises:
        RuntimeError: it is said to be of another namespace.
    """
    name = schema.partition("(")[0].strip()
    said, colons, short = name.rpartition("::")
    if colons and said != space:
        raise RuntimeError(f"'{name}' is not of the namespace {space!r} in which it is registered")
    short, _, overload = short.partition(".")
    ops = DEFINED.setdefault(space, {})
    known = ops.get(short)
    if isinstance(known, Overloads):
        if overload in known._ops:
            return known._ops[overload]
    elif known is not None and known.overload == overload:
        return known
    op = CustomOp(f"{space}::{short}")
    if "->" in schema:
        op.schema = f"{space}::{schema.strip().removeprefix(f'{space}::')}"
    op.overload = overload
    if overload:
        op._name += f".{overload}"
    if known is None:
        ops[short] = op
        return op
    if not isinstance(known, Overloads):
        known = ops[short] = Overloads(f"{space}::{short}", known)
    known._ops[overload] = op
    return op


def find_or_define(space: str, name: str) -> CustomOp:
    """The op that a function is given for: without an overload's name, the only one.

    Raises:
        RuntimeError: there are several and none without a name, or as of `define`.
    """
    short = name.strip().removeprefix(f"{space}::")
    known = DEFINED.get(space, {}).get(short)
    if isinstance(known, Overloads) and "" not in known._ops:
        raise known._ambiguous()
    if known is not None and not isinstance(known, Overloads):
        return known
    return define(space, name)


@contextmanager
def loading() -> Iterator[None]:
    """A block that loads a library: the error of an op that it registers is raised as what it is.

    The loader of libraries lets no error through; the interpreter finds it afterwards, and says
    with a `SystemError` that there was one.
    """
    known = len(FAILED)
    try:
        yield
    except SystemError:
        if len(FAILED) == known:
            raise
        raise FAILED.pop() from None


def device_of_all(arguments: Iterable[Any]) -> str:
    """The type of devices whose kernel takes these arguments: another than ``cpu`` if one has it.

    Tensors in lists count as those beside them do.
    """
    for value in arguments:
        if isinstance(value, fb.Tensor):
            found = value.device.type
        elif isinstance(value, list | tuple):
            found = device_of_all(value)
        else:
            continue
        if found != "cpu":
            return found
    return "cpu"


def arguments_of(schema: str) -> str:
    """What is between the parentheses of a schema."""
    return schema.partition("(")[2].rpartition("->")[0].rpartition(")")[0]


def parts_of(arguments: str) -> list[str]:
    """The arguments of a schema, one by one: commas in brackets and in texts part nothing."""
    parts, depth, quote, escaped = [""], 0, "", False
    for letter in arguments:
        if quote:
            quote = quote if escaped or letter != quote else ""
            escaped = letter == "\\" and not escaped
        elif letter in "\"'":
            quote = letter
        else:
            depth += (letter in "([") - (letter in ")]")
            if letter == "," and not depth:
                parts.append("")
                continue
        parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


class Argument(NamedTuple):
    """An argument of a schema; `default` is a text, empty if there is none."""

    kind: str
    name: str
    default: str
    by_name: bool


def declared(schema: str) -> list[Argument]:
    """The arguments of a schema as they are written."""
    found, by_name = [], False
    for part in parts_of(arguments_of(schema)):
        if part == "*":
            by_name = True
            continue
        told, _, default = part.partition("=")
        kind, _, name = told.strip().rpartition(" ")
        found.append(Argument(kind.strip(), name, default.strip(), by_name))
    return found


def _takes(schema: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Whether arguments fit a schema; all do where there is none."""
    if "->" not in schema:
        return True
    by_place, left = list(args), dict(kwargs)
    for one in declared(schema):
        if by_place and not one.by_name:
            value = by_place.pop(0)
        elif one.name in left:
            value = left.pop(one.name)
        elif one.default:
            continue
        else:
            return False
        if not _is(value, one.kind):
            return False
    return not by_place and not left


def _is(value: object, kind: str) -> bool:
    """Whether a value is of a schema's type; those that are not known here let in everything."""
    if kind.endswith("?"):
        return value is None or _is(value, kind[:-1])
    if kind.endswith("]"):
        each, _, size = kind[:-1].rpartition("[")
        if isinstance(value, list | tuple):
            return all(_is(item, each) for item in value)
        return bool(size) and _is(value, each)
    types = _TYPES.get(kind.partition("(")[0])
    return types is None or isinstance(value, types)


_TYPES: dict[str, tuple[type, ...]] = {
    "Tensor": (fb.Tensor,),
    "Scalar": (int, float, complex),
    "SymInt": (int,),
    "bool": (bool,),
    "complex": (int, float, complex),
    "float": (int, float),
    "int": (int,),
    "str": (str,),
}


def device_of(key: str) -> str | None:
    """The type of devices that a dispatch key is for; None for keys that are not used.

    Those are the keys of compilers, gradients and mixed precision.
    """
    return ALL if key in COMPOSITE else KEYS.get(key)
