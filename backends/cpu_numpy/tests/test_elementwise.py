"""Elementwise kernels against PyTorch: every op, dtype and layout, and their corners."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from torch_oracle import (
    COMPLEX,
    DTYPES,
    FLOATS,
    INTEGERS,
    agree,
    draw,
    dtype_of,
    layouts,
    special,
    tensor,
    torch,
)

from flambeau import plugin
from flambeau_numpy.dtypes import FROM_NUMPY
from flambeau_numpy.kernels.creation import full
from flambeau_numpy.kernels.elementwise import KERNELS
from flambeau_numpy.kernels.ranges import arange

FLOAT_UNARY = (
    *("exp", "expm1", "log", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh"),
    *("tanh", "sqrt", "rsqrt", "reciprocal", "log2", "log10", "square"),
)
ROUNDING = ("floor", "ceil", "trunc", "round")
COMPARISON = ("eq", "ne", "lt", "le", "gt", "ge")


def unary_cases() -> list[tuple[str, str]]:
    cases = [(op, d) for op in FLOAT_UNARY for d in FLOATS + COMPLEX]
    cases += [("erf", d) for d in FLOATS]
    cases += [(op, d) for op in ROUNDING for d in FLOATS + INTEGERS]
    cases += [(op, d) for op in ("neg", "abs") for d in FLOATS + INTEGERS + COMPLEX]
    cases += [("sign", d) for d in (*FLOATS, *INTEGERS, "bool")]
    cases += [("isfinite", d) for d in DTYPES]
    cases += [("bitwise_not", d) for d in (*INTEGERS, "bool")]
    return cases


@pytest.mark.parametrize(("op", "dtype"), unary_cases())
def test_unary_kernel_agrees_in_every_layout(op: str, dtype: str) -> None:
    for _, a in layouts(draw((4, 6), dtype)):
        agree(KERNELS[op](a), getattr(torch, op)(tensor(a)))


@pytest.mark.parametrize(("op", "dtype"), [c for c in unary_cases() if c[1] not in COMPLEX])
def test_unary_kernel_agrees_at_the_corners(op: str, dtype: str) -> None:
    a = special(dtype)
    if dtype in FLOATS and op in ("sin", "cos", "tan"):
        a = a[np.abs(a.astype(float)) < 100]
    agree(KERNELS[op](a), getattr(torch, op)(tensor(a)))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("op", ["exp", "erf", "sqrt", "rsqrt", "neg", "abs"])
def test_large_arrays_take_another_path_to_the_same_values(op: str, dtype: str) -> None:
    a = np.abs(draw((300, 301), dtype)) if op in ("sqrt", "rsqrt") else draw((300, 301), dtype)
    agree(KERNELS[op](a), getattr(torch, op)(tensor(a)))
    agree(KERNELS[op](a.T), getattr(torch, op)(tensor(a).T))


def test_erf_is_within_three_units_in_the_last_place() -> None:
    from scipy import special as reference

    x = np.concatenate([np.linspace(-5, 5, 50001), np.logspace(-30, 0, 2000)]).astype(np.float32)
    exact = reference.erf(x.astype(np.float64))
    units = np.abs(KERNELS["erf"](x) - exact) / np.spacing(np.abs(exact).astype(np.float32))
    assert units[exact != 0].max() <= 3


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, *COMPLEX, "bool"])
@pytest.mark.parametrize("op", ["add", "sub", "mul", "div"])
def test_arithmetic_agrees_in_every_layout_and_broadcasts(op: str, dtype: str) -> None:
    if op == "div" and dtype in (*INTEGERS, "bool"):
        pytest.skip("integers are cast before")
    if op == "sub" and dtype == "bool":
        pytest.skip("PyTorch refuses it")
    function = getattr(torch, op)
    b = draw((4, 6), dtype, seed=1)
    for name, a in layouts(draw((4, 6), dtype)):
        other = b if name not in ("empty",) else b[:0]
        agree(KERNELS[op](a, other), function(tensor(a), tensor(other)))
    agree(KERNELS[op](b, b[0]), function(tensor(b), tensor(b[0])))
    agree(KERNELS[op](b[:, :1], b[:1]), function(tensor(b[:, :1]), tensor(b[:1])))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "op",
    [
        "add",
        "sub",
        "mul",
        "div",
        "remainder",
        "fmod",
        "floor_divide",
        "maximum",
        "minimum",
        "atan2",
    ],
)
def test_binary_corners_agree(op: str, dtype: str) -> None:
    a = special(dtype)[:, None]
    a, b = np.broadcast_arrays(a, a.T)
    if op in ("remainder", "fmod", "floor_divide"):
        small = np.abs(a.astype(float)) < 1e3  # huge quotients round differently
        a, b = a[small | ~np.isfinite(a.astype(float))], b[small | ~np.isfinite(a.astype(float))]
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    agree(KERNELS[op](a, b), getattr(torch, op)(tensor(a), tensor(b)))


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("op", ["remainder", "fmod", "floor_divide"])
def test_integer_division_agrees_and_refuses_zero(op: str, dtype: str) -> None:
    a, b = (np.ascontiguousarray(x) for x in np.meshgrid(special(dtype), special(dtype)))
    with pytest.raises(ZeroDivisionError):
        KERNELS[op](a, b)
    with pytest.raises(ZeroDivisionError):
        KERNELS[op + "_"](a.copy(), b)
    a, b = a[b != 0], b[b != 0]
    agree(KERNELS[op](a, b), getattr(torch, op)(tensor(a), tensor(b)))


def test_dividing_the_smallest_integer_by_minus_one_wraps() -> None:
    low = np.array([-128], np.int8)
    assert KERNELS["floor_divide"](low, np.array([-1], np.int8)) == -128


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX])
@pytest.mark.parametrize("exponent", [2, 0.5, -1, 3, -2.5, 0])
def test_power_with_a_scalar_exponent_agrees(exponent: float, dtype: str) -> None:
    a = np.abs(draw((3, 5), dtype)).astype(DTYPES[dtype]) + DTYPES[dtype].type(0.5)
    found = KERNELS["pow"](a, np.array(exponent).astype(a.dtype))
    agree(found, torch.pow(tensor(a), exponent), scale=4)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_power_wraps_and_negative_exponents_round_to_zero(dtype: str) -> None:
    base = np.array([0, 1, 2, 3, 7, 1, 5], DTYPES[dtype])
    exponent = np.array([0, 3, 4, 5, 9, 0, 1], DTYPES[dtype])
    if dtype != "uint8":
        base = np.concatenate([base, np.array([1, -1, -1, 2, 0, -3], base.dtype)])
        exponent = np.concatenate([exponent, np.array([-1, -3, -2, -1, -2, 3], base.dtype)])
    expected = torch.pow(tensor(base), tensor(exponent))
    agree(KERNELS["pow"](base, exponent), expected)
    KERNELS["pow_"](base, exponent)
    agree(base, expected)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, "bool"])
@pytest.mark.parametrize("op", COMPARISON)
def test_comparison_agrees_with_nan_too(op: str, dtype: str) -> None:
    a, b = (np.ascontiguousarray(x) for x in np.meshgrid(special(dtype), special(dtype)))
    agree(KERNELS[op](a, b), getattr(torch, op)(tensor(a), tensor(b)))


@pytest.mark.parametrize("dtype", [*INTEGERS, "bool"])
@pytest.mark.parametrize("op", ["bitwise_and", "bitwise_or", "bitwise_xor"])
def test_bitwise_agrees(op: str, dtype: str) -> None:
    a, b = (np.ascontiguousarray(x) for x in np.meshgrid(special(dtype), special(dtype)))
    agree(KERNELS[op](a, b), getattr(torch, op)(tensor(a), tensor(b)))


@pytest.mark.parametrize("shape", [(3, 5), (300, 301)])
@pytest.mark.parametrize("dtype", list(DTYPES))
def test_where_picks_bits_exactly(dtype: str, shape: tuple[int, int]) -> None:
    a, b, condition = draw(shape, dtype), draw(shape, dtype, 1), draw(shape, "bool", 2)
    if dtype in FLOATS:
        a[0, 0], b[0, 1] = np.nan, np.inf
    number = np.array(b[0, 2])
    for x, y in ((a, b), (a, number), (number, b), (a[:1], b)):
        agree(KERNELS["where"](condition, x, y), torch.where(*map(tensor, (condition, x, y))))


@pytest.mark.filterwarnings("ignore:Casting complex values:UserWarning")  # PyTorch's
@pytest.mark.parametrize("target", list(DTYPES))
@pytest.mark.parametrize("source", list(DTYPES))
def test_cast_agrees_for_every_pair(source: str, target: str) -> None:
    a = draw((4, 6), source, scale=30)
    expected = tensor(a).to(dtype_of(target))
    found = KERNELS["cast"](a, FROM_NUMPY[DTYPES[target]])
    agree(found, expected)
    assert not np.shares_memory(found, a)


@pytest.mark.parametrize("target", [*INTEGERS, "bool"])
def test_cast_of_infinities_and_nan_agrees(target: str) -> None:
    a = np.array([np.nan, np.inf, -np.inf, 3e10, -1.5, 300, 1e20] * 3, np.float32)
    expected = tensor(a).to(dtype_of(target))
    agree(KERNELS["cast"](a, FROM_NUMPY[DTYPES[target]]), expected)


@pytest.mark.parametrize("op", ["neg", "exp", "sqrt", "reciprocal", "abs", "tanh"])
def test_in_place_unary_writes_into_its_argument(op: str) -> None:
    for _, a in layouts(np.abs(draw((4, 6), "float32")) + 0.1):
        if a.strides and 0 in a.strides and a.size:
            continue  # expanded memory is refused by the core
        expected = KERNELS[op](a)
        assert KERNELS[op + "_"](a) is None
        np.testing.assert_array_equal(a, expected)


@pytest.mark.parametrize("op", ["add", "sub", "mul", "div", "remainder", "maximum", "atan2", "pow"])
def test_in_place_binary_writes_into_its_first_argument(op: str) -> None:
    a, b = np.abs(draw((4, 6), "float64")), np.abs(draw((6,), "float64", 1))
    expected = KERNELS[op](a, np.broadcast_to(b, a.shape))
    assert KERNELS[op + "_"](a, b) is None
    np.testing.assert_array_equal(a, expected)


def test_assign_broadcasts_and_casts_into_a_view() -> None:
    a = np.zeros((2, 3), np.int32)
    KERNELS["assign"](a[:, 1:], np.array([1.9, -2.9]))
    assert a.tolist() == [[0, 1, -2], [0, 1, -2]]
    KERNELS["assign"](a, np.array(3 + 4j))
    assert (a == 3).all()


def test_clone_keeps_the_order_of_dimensions_and_contiguous_does_not() -> None:
    for size in (3, 300):
        a = np.arange(size * size, dtype=np.float32).reshape(size, size).T
        for kernel, strides in (("clone", a.strides), ("contiguous", a.T.strides)):
            copy = KERNELS[kernel](a)
            assert copy.strides == strides
            assert not np.shares_memory(copy, a)
            np.testing.assert_array_equal(copy, a)


@pytest.mark.parametrize("dtype", list(DTYPES))
@pytest.mark.parametrize("value", [0, 1, -1, 2.75, True, -0.0])
def test_full_and_fill_convert_the_number(dtype: str, value: Any) -> None:
    expected = tensor(np.zeros((2, 3), DTYPES[dtype]))
    expected.fill_(value)
    agree(full((2, 3), value, FROM_NUMPY[DTYPES[dtype]]), expected)
    a = np.ones((2, 3), DTYPES[dtype])
    KERNELS["fill_"](a[:, 1:], value)
    agree(a[:, 1:], expected[:, 1:])
    assert (a[:, 0] == 1).all()


def test_full_of_negative_zero_keeps_the_sign() -> None:
    assert np.signbit(full((2,), -0.0, plugin.float32)).all()


def test_full_zeros_are_zeros_in_recycled_memory() -> None:
    for _ in range(3):
        made = full((300, 300), 0, plugin.float32)
        assert not made.any()
        made.fill(7)
        del made


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_arange_is_start_plus_steps(dtype: str) -> None:
    expected = torch.arange(1, 100, 7, dtype=dtype_of(dtype))
    agree(arange(1, 7, 15, FROM_NUMPY[DTYPES[dtype]]), expected)
    if dtype in FLOATS:
        expected = torch.arange(0.5, -2, -0.25, dtype=expected.dtype)
        agree(arange(0.5, -0.25, 10, FROM_NUMPY[DTYPES[dtype]]), expected)
