"""Numbers that a dtype cannot hold are refused where PyTorch refuses them, and nowhere else."""

from __future__ import annotations

import warnings

import pytest
import torch

import flambeau as fb

KINDS = "bool uint8 int8 int32 int64 float16 bfloat16 float32 float64 complex64".split()
NUMBERS = {
    **{str(v): v for v in (1e300, -1e39, 7e4, 300, -200, -1, 1.5, 2**31, 2**63 - 1, 2**64, True)},
    **{str(v): v for v in (-(2**63) - 1, float("inf"), float("nan"), 1j, 1e300j, 300 + 0j)},
}


def mask(t):
    return t.tensor([True, False])


def first(t):
    return t.tensor([0])


def put(x, key, value):
    x[key] = value
    return x


# Each of a library, two ones of a dtype, a matrix of them, and a number.
CALLS = {
    "full": lambda t, x, m, v: t.full((2,), v, dtype=x.dtype),
    "full of one": lambda t, x, m, v: t.full((1,), v, dtype=x.dtype),
    "full of none": lambda t, x, m, v: t.full((0,), v, dtype=x.dtype),
    "full_like": lambda t, x, m, v: t.full_like(x, v),
    "new_full": lambda t, x, m, v: x.new_full((3,), v),
    "fill_": lambda t, x, m, v: x.fill_(v),
    "fill_ of one": lambda t, x, m, v: x[0].fill_(v),
    "fill_ of none": lambda t, x, m, v: x[:0].fill_(v),
    "fill": lambda t, x, m, v: t.fill(x, v),
    "fill_diagonal_": lambda t, x, m, v: m.fill_diagonal_(v),
    "constant_": lambda t, x, m, v: t.nn.init.constant_(x, v),
    "masked_fill": lambda t, x, m, v: x.masked_fill(mask(t), v),
    "masked_fill_": lambda t, x, m, v: x.masked_fill_(mask(t), v),
    "masked_fill of a scalar": lambda t, x, m, v: x[0].masked_fill(t.tensor(True), v),
    "index_fill": lambda t, x, m, v: x.index_fill(0, first(t), v),
    "index_fill_": lambda t, x, m, v: x.index_fill_(0, first(t), v),
    "scatter": lambda t, x, m, v: x.scatter(0, first(t), v),
    "scatter_": lambda t, x, m, v: x.scatter_(0, first(t), v),
    "x[0]": lambda t, x, m, v: put(x, 0, v),
    "x[:2]": lambda t, x, m, v: put(x, slice(0, 2), v),
    "x[mask]": lambda t, x, m, v: put(x, mask(t), v),
    "x[index]": lambda t, x, m, v: put(x, first(t), v),
    "where": lambda t, x, m, v: t.where(mask(t), x, v),
    "where, first": lambda t, x, m, v: t.where(mask(t), v, x),
    "tensor": lambda t, x, m, v: t.tensor([v, v], dtype=x.dtype),
    "add": lambda t, x, m, v: t.add(x, x, alpha=v),
    "addcmul": lambda t, x, m, v: t.addcmul(x, x, x, value=v),
    "addcdiv": lambda t, x, m, v: t.addcdiv(x, x, x, value=v),
    "lerp": lambda t, x, m, v: t.lerp(x, x, v),
    "addmm's alpha": lambda t, x, m, v: t.addmm(m, m, m, alpha=v),
    "addmm's beta": lambda t, x, m, v: t.addmm(m, m, m, beta=v),
    "addmv": lambda t, x, m, v: t.addmv(x, m, x, alpha=v),
    "baddbmm": lambda t, x, m, v: t.baddbmm(m[None], m[None], m[None], beta=v),
    "index_add": lambda t, x, m, v: x.index_add(0, first(t), x[:1], alpha=v),
    "x + v": lambda t, x, m, v: x + v,
    "v * x": lambda t, x, m, v: v * x,
    "x == v": lambda t, x, m, v: x == v,
    "threshold": lambda t, x, m, v: t.nn.functional.threshold(x, v, 0),
    "threshold's value": lambda t, x, m, v: t.nn.functional.threshold(x, 0, v),
}
REAL = {
    "x < v": lambda t, x, m, v: t.view_as_real(x) < v if x.is_complex() else x < v,
    "clamp": lambda t, x, m, v: x.clamp(max=v),
    "clamp_": lambda t, x, m, v: x.clamp_(min=v),
    "pad": lambda t, x, m, v: t.nn.functional.pad(x, (1, 1), value=v),
    "leaky_relu": lambda t, x, m, v: t.nn.functional.leaky_relu(x, v),
    "elu": lambda t, x, m, v: t.nn.functional.elu(x, v),
    "softplus": lambda t, x, m, v: t.nn.functional.softplus(x, v),
    "hardshrink": lambda t, x, m, v: t.nn.functional.hardshrink(x, v),
    "softshrink": lambda t, x, m, v: t.nn.functional.softshrink(x, v),
    "hardtanh": lambda t, x, m, v: t.nn.functional.hardtanh(x, -1e3, v),
}
"""Those that take no complex numbers."""
NO_BOOLS = {"addcmul", "addmm's alpha", "addmm's beta", "addmv", "baddbmm", "clamp", "clamp_"}
"""Those that PyTorch has not for bools, and flambeau has."""
ROUNDED = {("pad", "int64")}
"""Those that make a double of a number of 64 bits first, in PyTorch."""


def refuses(t, call, kind, number):
    dtype = getattr(t, kind)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call(t, t.ones(2, dtype=dtype), t.ones(2, 2, dtype=dtype), number)
    except (RuntimeError, TypeError, ValueError, OverflowError):
        return True
    return False


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [*CALLS, *REAL])
def test_numbers_are_refused_where_pytorch_refuses_them(name, kind):
    if name in NO_BOOLS and kind == "bool":
        kind = "int64"
    call = (CALLS | REAL)[name]
    numbers = {n: v for n, v in NUMBERS.items() if name in CALLS or not isinstance(v, complex)}
    if (name, kind) in ROUNDED:
        numbers = {n: v for n, v in numbers.items() if not abs(v) >= 2**62}
    expected = {n for n, v in numbers.items() if refuses(torch, call, kind, v)}
    assert {n for n, v in numbers.items() if refuses(fb, call, kind, v)} == expected


@pytest.mark.parametrize("number", [1e300, -(2**63) - 1, 10**400, 1e300j])
def test_what_was_refused_leaves_the_tensor_and_later_numbers_as_they_were(number):
    x = fb.ones(3)
    x + (number if isinstance(number, float) else 1.0)  # what arithmetic keeps of it
    for call in (x.fill_, lambda v: x.masked_fill_(x == 1, v), lambda v: put(x, slice(2), v)):
        with pytest.raises(RuntimeError, match="without overflow"):
            call(number)
    assert x.tolist() == [1.0, 1.0, 1.0] and x._version == 0


UNREADABLE = (2**63, 2**64, -(2**63) - 1, 2**70, 10**400, 10**5000)
READERS = {
    **CALLS,
    **REAL,
    "x ** v": lambda t, x, m, v: x**v,
    "v ** x": lambda t, x, m, v: v**x,
    "pow_": lambda t, x, m, v: x.pow_(v),
    "addr": lambda t, x, m, v: t.addr(m, x, x, alpha=v),
    "addbmm": lambda t, x, m, v: t.addbmm(m, m[None], m[None], beta=v),
    "x[()]": lambda t, x, m, v: put(x[0], (), v),
    "x[...] of none": lambda t, x, m, v: put(x[:0], ..., v),
    "x[:] of what requires gradients": lambda t, x, m, v: put(x * 1, slice(None), v),
}


@pytest.mark.parametrize("kind", ["float32", "int64"])
@pytest.mark.parametrize("name", READERS)
def test_whole_numbers_beyond_64_bits_raise_what_pytorch_raises(name, kind):
    call = READERS[name]
    if kind == "int64" and error(torch, call, kind, 1):
        kind = "float64"
    numbers = [v for v in UNREADABLE if name != "pad" or abs(v) > 2**400]  # that reads a double
    for number in numbers:
        expected, found = error(torch, call, kind, number), error(fb, call, kind, number)
        assert (found is None) == (expected is None), number
        if expected is not None:
            assert isinstance(found, (type(expected), NotImplementedError)), (number, expected)


def error(t, call, kind, number):
    dtype = getattr(t, kind)
    try:
        call(t, t.ones(2, dtype=dtype), t.ones(2, 2, dtype=dtype), number)
    except Exception as found:
        return found
    return None


@pytest.mark.parametrize("call", [lambda x, v: x + v, lambda x, v: x == v, lambda x, v: v**x])
def test_bools_have_no_dtype_in_common_with_what_is_beyond_int64(call):
    for t in (torch, fb):
        with pytest.raises(RuntimeError):
            call(t.ones(2, dtype=t.bool), 2**63)
        assert call(t.ones(2, dtype=t.uint8), 2**63).shape == (2,)


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@pytest.mark.parametrize("number", [65504.0, -65504, 65505.0, 7e4, -1e5, 3e38, 1e39, 1e300, 2**63])
def test_exponents_beyond_a_half_are_refused_as_in_pytorch(number, kind):
    for call in (
        lambda t, x: x**number,
        lambda t, x: t.pow(x, number),
        lambda t, x: x.pow_(number),
    ):
        for size in (2, 0):
            results = []
            for t in (torch, fb):
                try:
                    results.append(call(t, t.full((size,), 0.5, dtype=getattr(t, kind))).tolist())
                except RuntimeError:
                    results.append(None)
            assert results[0] == results[1]


@pytest.mark.parametrize("number", [65504.0, 65520.0, -7e4, 2**63, 1e39, float("inf")])
@pytest.mark.parametrize("factor", ["alpha", "beta"])
def test_factors_of_addbmm_may_be_beyond_halves_as_in_pytorch(number, factor):
    results = []
    for t in (torch, fb):
        x = t.ones(2, 3, 3, dtype=t.float16)
        try:
            results.append(t.addbmm(x[0], x, x, **{factor: number}).tolist())
        except RuntimeError:
            results.append(None)
    assert results[0] == results[1]


@pytest.mark.parametrize("factor", ["alpha", "beta"])
def test_bools_are_no_factors_of_numbers_in_addr(factor):
    for t in (torch, fb):
        with pytest.raises(RuntimeError, match="only supported for Boolean results"):
            t.addr(t.ones(2, 2), t.ones(2), t.ones(2), **{factor: True})
        bools = t.ones(2, dtype=t.bool)
        assert t.addr(bools.expand(2, 2), bools, bools, **{factor: True}).all()


@pytest.mark.parametrize("exponent", [0, 2, 2**62, 2**63, -(2**63)])
@pytest.mark.parametrize("base", [[True, False], [2, 3], [0.5, 2.0]])
def test_whole_exponents_of_float_powers_are_numbers_of_float64(
    base: list[float], exponent: int
) -> None:
    expected = torch.float_power(torch.tensor(base), exponent)
    assert fb.float_power(fb.tensor(base), exponent).tolist() == expected.tolist()
