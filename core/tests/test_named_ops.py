"""Ops under names of their own: overloads, namespaces and schemas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import flambeau as fb
from flambeau.utils import _named_ops
from flambeau.utils.cpp_extension import _runtime

SPACE = "flambeau_named_ops_tests"


@pytest.fixture(autouse=True)
def space() -> Iterator[None]:
    yield
    _named_ops.DEFINED.pop(SPACE, None)


def op(name: str) -> _named_ops.CustomOp:
    return _named_ops.DEFINED[SPACE][name]


def tells(what: str) -> Callable[..., str]:
    return lambda *args: what


def add_overloads() -> None:
    for name, kind in (("int", "int n"), ("other", "Tensor n"), ("list", "int[]? n=None")):
        _runtime.define_op(SPACE, f"add.{name}(Tensor x, {kind}) -> Tensor")
        _runtime.implement_op(SPACE, f"add.{name}", "CPU", tells(name))


def test_each_overload_keeps_its_kernel_and_arguments_choose_it() -> None:
    add_overloads()
    x = fb.ones(1)
    assert op("add")(x, 3) == "int"
    assert op("add")(x, x) == "other"
    assert op("add")(x, n=[1, 2]) == "list"
    assert op("add")(x) == "list"
    for name in ("int", "other", "list"):
        assert getattr(op("add"), name).schema.startswith(f"add.{name}(")
    assert op("add").other(x, 3) == "other"


def test_arguments_that_no_overload_takes_are_refused_with_all_schemas() -> None:
    add_overloads()
    with pytest.raises(TypeError, match=r"(?s)add.int\(.*add.other\(.*add.list\("):
        op("add")(fb.ones(1), "text")
    with pytest.raises(TypeError, match="no overload"):
        op("add")(fb.ones(1), 3, unknown=1)


def test_a_kernel_for_a_name_with_several_overloads_has_to_say_which() -> None:
    add_overloads()
    with pytest.raises(RuntimeError, match="say which"):
        _runtime.implement_op(SPACE, "add", "CPU", tells("any"))
    with pytest.raises(RuntimeError, match="say which"):
        op("add").register_kernel("cpu", tells("any"))
    with pytest.raises(AttributeError, match="nothing"):
        op("add").nothing  # noqa: B018 - it raises
    with pytest.raises(AttributeError):
        op("add").default  # noqa: B018 - it raises


def test_an_op_with_one_overload_is_found_with_its_name_and_without() -> None:
    _runtime.define_op(SPACE, "only.Tensor(Tensor x) -> Tensor")
    _runtime.implement_op(SPACE, "only", "CPU", tells("only"))
    x = fb.ones(1)
    assert op("only")(x) == op("only").Tensor(x) == op("only").default(x) == "only"
    assert not hasattr(op("only"), "other")


def test_the_overload_without_a_name_is_the_default() -> None:
    _runtime.define_op(SPACE, "f(Tensor x) -> Tensor")
    _runtime.define_op(SPACE, "f.two(Tensor x, Tensor y) -> Tensor")
    _runtime.implement_op(SPACE, "f", "CPU", tells("one"))
    _runtime.implement_op(SPACE, "f.two", "CPU", tells("two"))
    x = fb.ones(1)
    assert (op("f")(x), op("f").default(x), op("f")(x, x)) == ("one", "one", "two")


def test_a_namespace_may_be_said_again_and_no_other() -> None:
    _runtime.define_op(SPACE, f"{SPACE}::f(Tensor x) -> Tensor")
    _runtime.implement_op(SPACE, f"{SPACE}::f", "CPU", tells("f"))
    assert op("f")(fb.ones(1)) == "f"
    assert list(_named_ops.DEFINED[SPACE]) == ["f"]
    with pytest.raises(RuntimeError, match="namespace"):
        _runtime.define_op(SPACE, "elsewhere::g(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="namespace"):
        _runtime.implement_op(SPACE, "elsewhere::f", "CPU", tells("g"))
    assert "elsewhere" not in _named_ops.DEFINED


@pytest.mark.parametrize("text", ["a,b", "a)", "([", "->", "it's", 'say "so"', "=", "\\", ""])
def test_texts_in_schemas_may_hold_any_letters(text: str) -> None:
    schema = f"f(Tensor(a!) x, str m={text!r}, int[2] n=[1, 2], *, bool last = True) -> Tensor"
    found = {p.name: p.default for p in _named_ops.parameters_of(schema)}
    assert list(found) == ["x", "m", "n", "last"]
    assert (found["m"], found["n"], found["last"]) == (text, [1, 2], True)


def test_one_number_stands_for_a_list_of_known_size() -> None:
    schema = "op(Tensor x, int[2] a=1, float[3]? b=None, int[] c=[5]) -> Tensor"
    _runtime.define_op(SPACE, schema)
    _runtime.implement_op(SPACE, "op", "CPU", lambda x, *rest: rest)
    x = fb.ones(1)
    assert op("op")(x) == ([1, 1], None, [5])
    assert op("op")(x, 4, 0.5) == ([4, 4], [0.5, 0.5, 0.5], [5])
    assert op("op")(x, a=[2, 3], b=[1.0, 2.0, 3.0], c=[]) == ([2, 3], [1.0, 2.0, 3.0], [])


def test_tensors_in_lists_choose_the_kernel_too() -> None:
    _runtime.define_op(SPACE, "op(Tensor x, Tensor[] many) -> Tensor")
    _runtime.implement_op(SPACE, "op", "CPU", tells("cpu"))
    op("op").register_kernel("meta", tells("meta"))
    here, there = fb.ones(1), fb.ones(1, device="meta")
    assert op("op")(here, [here]) == "cpu"
    assert op("op")(here, [here, there]) == "meta"
    assert op("op")(there, ()) == "meta"
    assert op("op")([[there]], []) == "meta"


@pytest.mark.parametrize(
    ("arguments", "given", "inputs", "named"),
    [
        ("Tensor x, str how=Mean", {}, [], {}),
        ("Tensor x, int n=2, *, str how='a, b'", {}, [2], {"how": "a, b"}),
        ("Tensor x, int n, *, int m=3", {"n": 5}, [5], {"m": 3}),
        ("Tensor x, int[2] n=[1, 2]", {}, [[1, 2]], {}),
    ],
)
def test_the_gradient_of_an_op_is_given_arguments_and_literal_defaults(
    arguments: str, given: dict[str, Any], inputs: list[Any], named: dict[str, Any]
) -> None:
    _runtime.define_op(SPACE, f"f({arguments}) -> Tensor")
    x, told = fb.ones(1, requires_grad=True), []

    def function(x: fb.Tensor, *args: object, **kwargs: object) -> fb.Tensor:
        told.append(([*args], kwargs))
        return x * 2

    op("f").register_kernel("cpu", function)
    op("f").register_autograd(lambda ctx, grad: (grad * 3, *[None] * len(inputs)))
    op("f")(x, **given).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [3.0]
    assert told == [(inputs, named)]


def test_an_op_without_arguments_may_have_a_gradient() -> None:
    _runtime.define_op(SPACE, "f() -> Tensor")
    op("f").register_kernel(None, lambda: fb.ones(1))
    op("f").register_autograd(lambda ctx, grad: ())
    assert op("f")().tolist() == [1.0]
