"""Numbers of a traced program that know where in the graph they come from."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flambeau.jit._tracing.state import current, warn_user

if TYPE_CHECKING:
    from flambeau.jit._graph import Value
    from flambeau.jit._tracing.recorder import Recorder


class TracedInt(int):
    """An integer, such as a size, and its value in the graph of a trace."""

    recorder: Recorder | None = None
    value: Value

    def __bool__(self) -> bool:
        _baked(self, "boolean")
        return int.__bool__(self)

    def __int__(self) -> int:
        _baked(self, "integer")
        return int.__int__(self)

    def __float__(self) -> float:
        _baked(self, "float")
        return int.__float__(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return int, (int.__int__(self),)


class TracedFloat(float):
    """A number computed from sizes, and its value in the graph of a trace."""

    recorder: Recorder | None = None
    value: Value

    def __float__(self) -> float:
        _baked(self, "float")
        return float.__float__(self)

    def __bool__(self) -> bool:
        _baked(self, "boolean")
        return float.__bool__(self)

    def __trunc__(self) -> int:
        _baked(self, "integer")
        return float.__trunc__(self)

    def __int__(self) -> int:
        _baked(self, "integer")
        return float.__int__(self)

    def __floor__(self) -> int:
        _baked(self, "integer")
        return float.__floor__(self)

    def __ceil__(self) -> int:
        _baked(self, "integer")
        return float.__ceil__(self)

    def __round__(self, ndigits: Any = None) -> int:
        _baked(self, "integer" if ndigits is None else "float")
        return float.__round__(self, ndigits)

    def __reduce__(self) -> tuple[Any, ...]:
        return float, (float.__float__(self),)


NUMBERS = (TracedInt, TracedFloat)


def plain(value: Any) -> Any:
    """A value with ordinary numbers in the place of traced ones."""
    kind = type(value)
    if kind is TracedInt:
        return int.__int__(value)
    if kind is TracedFloat:
        return float.__float__(value)
    if isinstance(value, (tuple, list)):
        if any(type(each) in NUMBERS or isinstance(each, (tuple, list, slice)) for each in value):
            parts = [plain(each) for each in value]
            return kind(*parts) if hasattr(value, "_fields") else kind(parts)
        return value
    if kind is slice:
        return slice(plain(value.start), plain(value.stop), plain(value.step))
    return value


def traced(recorder: Recorder, number: object, value: Value) -> Any:
    """A number that is a value of the graph."""
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        return number
    made = TracedInt(number) if isinstance(number, int) else TracedFloat(number)
    made.recorder, made.value = recorder, value
    recorder.note(value, plain(made))
    return made


def _baked(number: TracedFloat | TracedInt, kind: str) -> None:
    recorder = current()
    if recorder is not None and recorder is number.recorder:
        warn_user(f"Converting a tensor to a Python {kind}")


def _arithmetic(base: type, name: str, op: str, swapped: bool) -> Callable[..., Any]:
    plain_method = getattr(base, name)

    def method(self: Any, *others: object) -> object:
        result = plain_method(self, *others)
        if result is NotImplemented and base is int and isinstance(others[0], float):
            result = getattr(float, name)(float(plain(self)), *others)
        recorder = current()
        if recorder is None or recorder is not self.recorder or result is NotImplemented:
            return result
        given = [*others, self] if swapped else [self, *others]
        return recorder.number(op, given, result)

    method.__name__ = name
    return method


def _comparison(base: type, name: str) -> Callable[..., Any]:
    plain_method = getattr(base, name)

    def method(self: Any, other: TracedInt | int | None) -> object:
        result = plain_method(self, other)
        if result is not NotImplemented:
            _baked(self, "boolean")
        return result

    method.__name__ = name
    return method


_OPS = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "truediv": "div",
    "floordiv": "floordiv",
    "mod": "remainder",
    "pow": "pow",
}
for _class, _base in ((TracedInt, int), (TracedFloat, float)):
    for _name, _op in _OPS.items():
        setattr(_class, f"__{_name}__", _arithmetic(_base, f"__{_name}__", _op, False))
        setattr(_class, f"__r{_name}__", _arithmetic(_base, f"__r{_name}__", _op, True))
    _class.__neg__ = _arithmetic(_base, "__neg__", "neg", False)
    for _name in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"):
        setattr(_class, _name, _comparison(_base, _name))
    setattr(_class, "__hash__", _base.__hash__)  # noqa: B010 - comparisons have taken it away
