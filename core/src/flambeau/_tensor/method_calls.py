"""What classes and modes are told of calls of methods, and of operators as of methods."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, update_wrapper, wraps
from numbers import Number
from typing import Any

from flambeau._dispatch.dispatch import PLAIN
from flambeau._tensor import overrides
from flambeau._tensor.methods import TensorMethods
from flambeau._tensor.tensor import Tensor


class Method:
    """A method as ``__torch_function__`` is told of it where results are to be `delivered`.

    Equal to the method, also as a key of a dictionary.
    """

    def __init__(self, method: Callable[..., Any]) -> None:
        update_wrapper(self, method)
        self._method = method

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return overrides.run_plain(self._method, args, kwargs)

    def __eq__(self, other: object) -> bool:
        return self is other or other == self._method

    def __hash__(self) -> int:
        return hash(self._method)

    def __repr__(self) -> str:
        return repr(self._method)


def intercept_methods(cls: type) -> None:
    """Give a subclass methods that go through ``__torch_function__``; functions do from now on."""
    overrides.intercept_functions()
    own = cls.__module__.partition(".")[0] == "flambeau"
    for name, method in interceptable():
        # Not what it inherits from another subclass: that one's own method, or one that goes there.
        if getattr(cls, name) in (method, vars(Tensor).get(name)):
            setattr(cls, name, _through(method, own))


def interceptable() -> Iterator[tuple[str, Callable[..., Any]]]:
    """The methods of tensors whose calls classes and modes see."""
    for name, method in vars(TensorMethods).items():
        if callable(method) and not name.startswith("__init"):
            if name not in ("__getattribute__", "__new__", "__class__", "__module__"):
                yield name, method
    for name in "to clone detach contiguous type_as cpu copy_ fill_ zero_ module_load".split():
        yield name, getattr(Tensor, name)


def _through(method: Callable[..., Any], by_operator: bool) -> Callable[..., Any]:
    """A method that offers its calls; operators by their own names, or by those of `named`."""
    renamed = not by_operator and method.__name__ in _OPERATORS
    offer = overrides.operate if method.__name__ in _MAY_DECLINE else overrides.call

    @wraps(method)
    def seen(self: object, *args: object, **kwargs: object) -> object:
        given = (self, *args)
        if overrides.in_modes is not None:
            found = overrides.in_modes(seen, given, kwargs)
            if found is not NotImplemented:
                return found
        if overrides._disabled or type(self) in PLAIN:
            return overrides.run_plain(method, given, kwargs)
        func, given = named(method, given) if renamed else (method, given)
        if overrides.delivered is not None:
            func = _told(func)
        return offer(func, given, kwargs)

    return seen


@cache
def _told(method: Callable[..., Any]) -> Method:
    return Method(getattr(method, "__wrapped__", method))  # below what modes of any thread see


_UNARY = {"__neg__": "neg", "__pos__": "positive", "__abs__": "abs"}

_BINARY = {
    "__add__": "add",
    "__sub__": "sub",
    "__mul__": "mul",
    "__truediv__": "div",
    "__mod__": "remainder",
    "__pow__": "pow",
    "__matmul__": "matmul",
    "__lt__": "lt",
    "__le__": "le",
    "__gt__": "gt",
    "__ge__": "ge",
    "__ne__": "ne",
    "__iadd__": "add_",
    "__isub__": "sub_",
    "__imul__": "mul_",
    "__itruediv__": "div_",
    "__ifloordiv__": "floor_divide_",
    "__imod__": "remainder_",
    "__ipow__": "pow_",
}

_REFLECTED = {
    "__radd__": ("add", "add"),
    "__rsub__": ("__rsub__", "sub"),
    "__rmul__": ("mul", "mul"),
    "__rtruediv__": ("__rdiv__", "div"),
    "__rfloordiv__": ("__rfloordiv__", "__floordiv__"),
    "__rmod__": ("__rmod__", "remainder"),
    "__rpow__": ("__rpow__", "pow"),
    "__rmatmul__": ("__rmatmul__", "matmul"),
    "__rand__": ("bitwise_and", "__and__"),
    "__ror__": ("bitwise_or", "__or__"),
    "__rxor__": ("bitwise_xor", "__xor__"),
    "__rlshift__": ("__rlshift__", "__lshift__"),
    "__rrshift__": ("__rrshift__", "__rshift__"),
}
"""With a number on the left, and with a tensor, which then stays there."""


_OPERATORS = {*_UNARY, *_BINARY, *_REFLECTED}
_OTHERS = "__eq__ __floordiv__ __and__ __or__ __xor__ __lshift__ __rshift__".split()
_MAY_DECLINE = {*_BINARY, *_REFLECTED, *_OTHERS}


def named(
    method: Callable[..., Any], args: tuple[Any, ...]
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The method and the arguments that a call of one is told as.

    Operators with what is neither a tensor nor a number are told by their own names, for they may
    have to return NotImplemented.
    """
    name = method.__name__
    if len(args) == 1:
        found = _UNARY.get(name, name)
    elif len(args) != 2 or not isinstance(args[1], (Tensor, Number)):
        return method, args
    elif name in _REFLECTED:
        beside_number, beside_tensor = _REFLECTED[name]
        if isinstance(args[1], Tensor):
            found, args = beside_tensor, (args[1], args[0])
        else:
            found = beside_number
    else:
        found = _BINARY.get(name, name)
    return (method if found == name else getattr(Tensor, found)), args


def may_decline(method: Callable[..., Any], args: tuple[Any, ...]) -> bool:
    """Whether a call is of an operator with what is neither a tensor nor a number."""
    binary = len(args) == 2 and getattr(method, "__name__", "") in _MAY_DECLINE
    return binary and not isinstance(args[1], (Tensor, Number))
