"""Errors after which arguments are compared with what the signature tells."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeVar

import pytest

import flambeau as fb
from flambeau import Tensor
from flambeau._dispatch.annotated import (
    all_take_as_annotated,
    methods_take_as_annotated,
    takes_as_annotated,
)

T = TypeVar("T", bound=Tensor)


class Odd:
    def __float__(self) -> float:
        raise ValueError("no number")


@takes_as_annotated
def taken(
    x: Tensor,
    scale: float = 1.0,
    sizes: Sequence[int] | None = None,
    kind: int | str = 0,
    anything: Any = None,
) -> Any:
    x.dim()
    if kind == "missing":
        return x.nothing  # type: ignore[attr-defined]
    return float(scale), sizes.index(0) if sizes else 0, anything


def called(**given: Any) -> Any:
    return taken(**{"x": fb.ones(2), **given})


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"x": 3}, "taken(): argument 'x' must be Tensor, not int"),
        ({"x": None}, "taken(): argument 'x' must be Tensor, not NoneType"),
        ({"sizes": {1: 2}}, "taken(): argument 'sizes' must be Sequence, not dict"),
        ({"kind": "missing", "scale": Odd()}, "taken(): argument 'scale' must be float, not Odd"),
        ({"x": (), "kind": fb.ones(2, 2)}, "taken(): argument 'x' must be Tensor, not tuple"),
    ],
)
def test_the_first_argument_that_is_not_what_is_annotated_is_named(given, told):
    with pytest.raises(TypeError) as caught:
        called(**given)
    assert str(caught.value) == told


@pytest.mark.parametrize(
    ("anything", "told"),
    [
        (3, "be int"),
        (
            [fb.ones(1), "x"],
            "contain str",
        ),
        (
            {"a": (1.5,)},
            "contain float",
        ),
        (int, "be type int"),
    ],
)
def test_an_argument_of_any_type_that_lacks_an_attribute_is_named(anything, told, monkeypatch):
    @takes_as_annotated
    def lacking(x: Tensor, *, anything: Any) -> Any:
        first = anything
        while isinstance(first, list | dict):
            first = first[-1] if isinstance(first, list) else first["a"][0]
        return first.shape

    # Errors that arise in programs go on; this is to be one of flambeau's functions.
    monkeypatch.setitem(globals(), "__name__", "flambeau.here")
    with pytest.raises(TypeError) as caught:
        lacking(fb.ones(1), anything=anything)
    said = f"lacking(): argument 'anything' cannot {told}, which has no 'shape'"
    assert str(caught.value) == said


def test_a_module_is_guarded_whole_but_for_what_is_private_or_of_others():
    class Kept:
        def __init__(self, size: int) -> None:
            self.size = size.nothing  # type: ignore[attr-defined]

        def method(self, x: Tensor) -> Any:
            return x.nothing  # type: ignore[attr-defined]

    def _private(x: Tensor) -> None: ...

    names = {"__name__": __name__, "Kept": Kept, "_private": _private, "fb": fb, "Odd": int}
    all_take_as_annotated(names)
    assert names["_private"] is _private and names["Odd"] is int and names["fb"] is fb
    with pytest.raises(TypeError, match=r"Kept\(\): argument 'size' must be int, not str"):
        Kept("x")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"method\(\): argument 'x' must be Tensor, not int"):
        Kept.method(object.__new__(Kept), 3)  # type: ignore[arg-type]


def test_a_number_beyond_floats_overflows():
    with pytest.raises(RuntimeError, match=r"'scale': value cannot be converted to type double"):
        called(scale=10**400)


@pytest.mark.parametrize("given", [{}, {"scale": True}, {"scale": 2}, {"sizes": [1, 0]}])
def test_what_fits_is_passed_on(given):
    assert called(anything=3, **given)[2] == 3


def test_errors_of_good_arguments_go_on_as_they_are():
    with pytest.raises(AttributeError, match="nothing"):
        called(kind="missing", anything=object())


def test_errors_of_functions_that_are_given_go_on_as_they_are():
    @takes_as_annotated
    def applied(f: Any) -> Any:
        return f()

    with pytest.raises(ZeroDivisionError):
        applied(lambda: 1 / 0)


def test_arithmetic_of_flambeau_that_fails_is_a_value_error():
    with pytest.raises(ValueError, match=r"^gaussian\(\): no result for these numbers"):
        fb.signal.windows.gaussian(3, std=1e-300)


def test_what_is_bound_by_a_type_variable_is_known():
    @takes_as_annotated
    def same(x: T) -> T:
        x.dim()
        return x

    with pytest.raises(TypeError, match="argument 'x' must be Tensor"):
        same("x")  # type: ignore[type-var]


def test_names_for_type_checkers_alone_are_not_held_against_anybody():
    @takes_as_annotated
    def unknown(x: Unknown) -> Any:  # type: ignore[name-defined]  # noqa: F821
        return x.nothing

    with pytest.raises(AttributeError, match="nothing"):
        unknown(3)


def test_only_constructors_of_flambeau_are_compared():
    class Base:
        def __init_subclass__(cls) -> None:
            cls.__module__ = module
            methods_take_as_annotated(cls, "doubled")

    def made() -> Any:
        class Made(Base):
            def __init__(self, x: Tensor) -> None:
                self.rank = x.dim()

            def doubled(self, y: Tensor) -> Tensor:
                return y.mul(2)

        return Made

    module = "flambeau.somewhere"
    ours = made()
    with pytest.raises(TypeError, match=r"^Made\(\): argument 'x' must be Tensor, not int$"):
        ours(3)
    with pytest.raises(TypeError, match=r"^doubled\(\): argument 'y' must be Tensor, not int$"):
        ours(fb.ones(2)).doubled(3)
    module = "somebody.else"
    with pytest.raises(AttributeError, match="dim"):
        made()(3)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: x.random_("a"), "random_(): argument 'to' must be int, not str"),
        (lambda x: x.random_(1j, 3), "random_(): argument 'from' must be int, not complex"),
        (lambda x: x.log_normal_("a"), "log_normal_(): argument 'mean' must be float, not str"),
        (lambda x: x.geometric_("a"), "geometric_(): argument 'p' must be float, not str"),
        (lambda x: x.logit("a"), "logit(): argument 'eps' must be float, not str"),
    ],
)
def test_parameters_of_draws_that_are_no_numbers_are_named(call: Any, words: str) -> None:
    with pytest.raises(TypeError, match=re.escape(words)):
        call(fb.zeros(2))
