"""Subclasses and modes are told of operators by the methods and operands that PyTorch names."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import flambeau as fb  # noqa: E402 - imported beside its oracle

LIBRARIES = (torch, fb)
ARITHMETIC = "add sub mul truediv floordiv mod pow lt le gt ge eq ne".split()
BITS = "and_ or_ xor lshift rshift".split()
WRITES = "iadd isub imul itruediv ifloordiv imod ipow".split()


def told(lib: Any, act: Callable[[Any, Any], Any], by_mode: bool, dtype: str) -> list[Any]:
    """Names and operands of the calls that a class or a mode sees, and the result."""
    seen: list[Any] = []

    def note(func: Any, args: Any) -> None:
        name = func.__name__
        # PyTorch's own `pow` is a wrapper that hands on the one below it.
        same = "pow" in name or func == getattr(lib.Tensor, name)
        seen.append((name, same, [type(a).__name__ for a in args]))

    class Told(lib.Tensor):  # type: ignore[misc, name-defined] - a class of either library
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None):
            note(func, args)
            return super().__torch_function__(func, types, args, kwargs or {})

    class Mode(lib.overrides.TorchFunctionMode):  # type: ignore[misc, name-defined]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None):
            note(func, args)
            return func(*args, **(kwargs or {}))

    x = lib.tensor([3, 2], dtype=getattr(lib, dtype))
    y = lib.tensor([2, 2], dtype=getattr(lib, dtype))
    if by_mode:
        with Mode():
            result = act(x, y)
    else:
        result = act(x.as_subclass(Told), y)
    return [*seen, type(result).__name__, result.tolist()]


@pytest.mark.parametrize("by_mode", [False, True], ids=["class", "mode"])
@pytest.mark.parametrize("form", ["number", "left number", "tensor", "left tensor", "itself"])
@pytest.mark.parametrize("name", ARITHMETIC + BITS)
def test_binary_operators(name: str, form: str, by_mode: bool) -> None:
    function = getattr(operator, name)
    act = {
        "number": lambda x, y: function(x, 2),
        "left number": lambda x, y: function(2, x),
        "tensor": lambda x, y: function(x, y),
        "left tensor": lambda x, y: function(y, x),
        "itself": lambda x, y: function(x, x),
    }[form]
    dtype = "int64" if name in BITS else "float64"
    expected, found = (told(lib, act, by_mode, dtype) for lib in LIBRARIES)
    assert found == expected


@pytest.mark.parametrize("by_mode", [False, True], ids=["class", "mode"])
@pytest.mark.parametrize("form", ["number", "tensor"])
@pytest.mark.parametrize("name", WRITES)
def test_writing_operators(name: str, form: str, by_mode: bool) -> None:
    def act(x: Any, y: Any) -> Any:
        return getattr(operator, name)(x, 2 if form == "number" else y)

    expected, found = (told(lib, act, by_mode, "float64") for lib in LIBRARIES)
    assert found == expected


@pytest.mark.parametrize("by_mode", [False, True], ids=["class", "mode"])
@pytest.mark.parametrize("name", ["neg", "pos", "abs"])
def test_unary_operators(name: str, by_mode: bool) -> None:
    def act(x: Any, y: Any) -> Any:
        return getattr(operator, name)(x)

    expected, found = (told(lib, act, by_mode, "float64") for lib in LIBRARIES)
    assert found == expected


@pytest.mark.parametrize("lib", LIBRARIES, ids=["torch", "flambeau"])
def test_a_class_that_declines_leaves_the_operator_to_the_right_operand(lib: Any) -> None:
    class Shy(lib.Tensor):  # type: ignore[misc, name-defined]
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None):
            return NotImplemented

    class Right:
        def __radd__(self, other: object) -> str:
            return "right"

    x = lib.ones(2).as_subclass(Shy)
    assert x + Right() == "right"
    with pytest.raises(TypeError):
        operator.add(x, 1)


@pytest.mark.parametrize("lib", LIBRARIES, ids=["torch", "flambeau"])
def test_methods_of_a_subclass_are_those_of_its_subclasses(lib: Any) -> None:
    class Loud(lib.Tensor):  # type: ignore[misc, name-defined]
        def exp(self) -> str:
            return "loud"

        def __add__(self, other: object) -> str:
            return "added"

    class Louder(Loud):
        pass

    x = lib.ones(2).as_subclass(Louder)
    assert x.exp() == "loud" and x + 1 == "added"
    assert type(x.sin()) is Louder


@pytest.mark.parametrize("lib", LIBRARIES, ids=["torch", "flambeau"])
def test_what_is_made_of_subclasses_of_parameters_is_plain(lib: Any) -> None:
    class Weight(lib.nn.Parameter):  # type: ignore[misc, name-defined]
        pass

    class Heavy(Weight):
        seen: list[str] = []  # noqa: RUF012 - shared by all of the class

        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None):
            cls.seen.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    for cls in (Weight, Heavy):
        w = cls(lib.ones(2))
        assert isinstance(w, cls)
        for made in (w + 1, w.exp(), lib.exp(w), w[0], 2 - w):
            assert type(made) is lib.Tensor
    assert Heavy.seen[:3] == ["add", "exp", "exp"]
