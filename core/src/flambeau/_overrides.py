"""``__torch_function__``: subclasses of Tensor that see the calls made with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

from flambeau import _dispatch
from flambeau._tensor import Tensor
from flambeau._tensor_methods import TensorMethods

_disabled = 0


def wanted(args: Iterable[Any]) -> bool:
    """Whether an argument's class wants to see the call."""
    if _disabled:
        return False
    return any(
        type(a) not in _dispatch.PLAIN and hasattr(type(a), "__torch_function__") for a in args
    )


def call(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Offer a call to the classes of its arguments, most derived first.

    Raises:
        TypeError: every class declines by returning NotImplemented.
    """
    types: list[type] = []
    for a in [*args, *kwargs.values()]:
        t = type(a)
        if t in _dispatch.PLAIN or t in types or not hasattr(t, "__torch_function__"):
            continue
        place = next((i for i, u in enumerate(types) if issubclass(t, u)), len(types))
        types.insert(place, t)
    for t in types:
        result = t.__torch_function__(func, tuple(types), args, kwargs)
        if result is not NotImplemented:
            return result
    names = ", ".join(t.__name__ for t in types)
    raise TypeError(
        f"no implementation found for {getattr(func, '__name__', func)!r} on types that implement "
        f"__torch_function__: [{names}]"
    )


class DisableTorchFunctionSubclass:
    """Context in which subclasses of Tensor are treated as Tensor."""

    def __enter__(self) -> None:
        global _disabled
        _disabled += 1

    def __exit__(self, *exc: object) -> None:
        global _disabled
        _disabled -= 1


def run_default(
    cls: type, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """What `Tensor.__torch_function__` does: run, and give plain tensor results the subclass."""
    with DisableTorchFunctionSubclass():
        result = func(*args, **kwargs)
        return _converted(result, cls)


def _converted(result: Any, cls: type) -> Any:
    if type(result) in _dispatch.PLAIN and cls is not Tensor:
        result = _retyped(result, cls)
    elif type(result) in (tuple, list):
        return type(result)(_converted(r, cls) for r in result)
    return result


def _retyped(t: Tensor, cls: type) -> Any:
    # The result is fresh: moving its state over loses nothing.
    out = object.__new__(cls)
    out.__dict__.update(t.__dict__)
    return out


def intercept_methods(cls: type) -> None:
    """Give a subclass methods that go through ``__torch_function__``."""
    for name, method in vars(TensorMethods).items():
        if callable(method) and name not in vars(cls) and not name.startswith("__init"):
            if name in ("__getattribute__", "__new__", "__class__", "__module__"):
                continue
            setattr(cls, name, _through(method))
    for name in ("to", "clone", "detach", "contiguous", "type_as", "cpu"):
        if name not in vars(cls):
            setattr(cls, name, _through(getattr(Tensor, name)))


def _through(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def seen(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _disabled:
            return method(self, *args, **kwargs)
        return call(method, (self, *args), kwargs)

    return seen
