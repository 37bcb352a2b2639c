"""Functions of elements that one kernel writes in place have the bits of their formulas."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import flambeau as fb
from flambeau._writes import in_one

SPECIAL = [0.0, -0.0, np.nan, np.inf, -np.inf, 1e-45, -1e-40, -1e30, 0.5, -0.5, 3.4e38, 7.5, 1e308]
PAIRS = "nextafter copysign hypot atan2 fmod remainder floor_divide pow eq ne lt le gt ge".split()
CALLS = {
    **{name: lambda w, y, z, name=name: getattr(w, f"{name}_")(y) for name in PAIRS},
    **{
        f"{name} number": lambda w, y, z, name=name: getattr(w, f"{name}_")(2)
        for name in "atan2 fmod remainder floor_divide pow copysign eq lt".split()
    },
    "pow 3": lambda w, y, z: w.pow_(3.0),
    "pow root": lambda w, y, z: w.pow_(0.5),
    "frac": lambda w, y, z: w.frac_(),
    "exp2": lambda w, y, z: w.exp2_(),
    "logical_not": lambda w, y, z: w.logical_not_(),
    "nan_to_num": lambda w, y, z: w.nan_to_num_(),
    "nan_to_num given": lambda w, y, z: w.nan_to_num_(0.5, np.inf, -3),
    "threshold": lambda w, y, z: fb.threshold_(w, 0.1, -2.0),
    "leaky_relu": lambda w, y, z: fb.nn.functional.leaky_relu_(w, 0.3),
    "elu": lambda w, y, z: fb.nn.functional.elu_(w, 0.7),
    "selu": lambda w, y, z: fb.nn.functional.selu_(w),
    "silu": lambda w, y, z: fb.nn.functional.silu(w, inplace=True),
    "hardtanh": lambda w, y, z: fb.nn.functional.hardtanh_(w, -0.3, 2),
    "hardsigmoid": lambda w, y, z: fb.nn.functional.hardsigmoid(w, inplace=True),
    "hardswish": lambda w, y, z: fb.nn.functional.hardswish(w, inplace=True),
    "lerp": lambda w, y, z: w.lerp_(y, 0.3),
    "lerp from the end": lambda w, y, z: w.lerp_(y, 0.7),
    "addcmul": lambda w, y, z: w.addcmul_(y, z, value=0.3),
    "addcdiv": lambda w, y, z: w.addcdiv_(y, z, value=0.3),
    "addcdiv 1": lambda w, y, z: w.addcdiv_(z, y),
    "masked_fill": lambda w, y, z: w.masked_fill_(y > 0, -fb.inf),
    "masked_fill rows": lambda w, y, z: w.masked_fill_(y[:1] > 0, 2),
    "masked_fill columns": lambda w, y, z: w.masked_fill_(y[:, :1].gt(0), 0.3),
    "clamp": lambda w, y, z: w.clamp_(y, z),
    "clamp both": lambda w, y, z: w.clamp_(y, 0.5),
    "clamp_min": lambda w, y, z: w.clamp_min_(0.5),
    "clamp_max": lambda w, y, z: w.clamp_max_(y),
    "itself": lambda w, y, z: w.hypot_(w),
    "itself as a bound": lambda w, y, z: w.clamp_(y, w),
    "one element": lambda w, y, z: w.nextafter_(y.flatten()[0]),
    "rows": lambda w, y, z: w.hypot_(y[:1]),
    "another dtype": lambda w, y, z: w.hypot_(y.to(fb.float16)),
    "not in place": lambda w, y, z: fb.hypot(w, y) + fb.nextafter(w, y),
    "copysign apart": lambda w, y, z: fb.copysign(w, y),
    "clamp apart": lambda w, y, z: fb.clamp(w, y, z) + fb.clamp(w, max=y, out=z),
    "into another": lambda w, y, z: fb.lerp(w, y, 0.3, out=z),
}
LAYOUTS = {
    "row-major": lambda t: t.clone(),
    "a view": lambda t: fb.cat([t, t])[: t.shape[0]],
    "transposed": lambda t: t.t().contiguous().t(),
    "every second": lambda t: fb.stack([t, t], -1)[..., 0],
}


def operands(dtype, layout):
    pairs = np.array(list(itertools.product(SPECIAL, SPECIAL)))
    noise = np.random.default_rng(0).normal(0, 3, (3 * 1021 - len(pairs), 2))
    with np.errstate(over="ignore"):
        x, y = np.concatenate([pairs, noise]).astype(dtype).T.reshape(2, 3, 1021)
    return [LAYOUTS[layout](fb.from_numpy(a.copy())) for a in (x, y, np.roll(y, 3))]


def same(a, b):
    a, b = (t.contiguous().numpy() for t in (a, b))
    return (
        a.dtype == b.dtype
        and np.array_equal(a, b, equal_nan=True)
        and (np.array_equal(np.signbit(a) | np.isnan(a), np.signbit(b) | np.isnan(b)))
    )


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("call", CALLS)
def test_what_is_written_by_one_kernel_has_the_bits_of_the_formula(
    call, dtype, layout, monkeypatch
):
    given, others = operands(dtype, layout), operands(dtype, layout)
    before = given[0]._version
    found = CALLS[call](*given)
    monkeypatch.setattr(in_one, "_KINDS", {})
    expected = CALLS[call](*others)
    assert same(found, expected)
    assert all(map(same, given, others))
    assert found.stride() == expected.stride()
    assert given[0]._version - before == others[0]._version


def test_a_plan_writes_what_its_function_wrote():
    x, y = fb.randn(2000), fb.randn(2000)

    def step(a, b):
        a.hypot_(b)
        a.clamp_(b, 2 * b)
        return a.frac_() + 1

    ours, plans = x.clone(), x.clone()
    compiled = fb.compile(step)
    for _ in range(3):
        assert fb.equal(step(ours, y), compiled(plans, y))
        assert fb.equal(ours, plans)


def test_what_a_gradient_needs_is_not_written_over():
    x, y = fb.randn(30, requires_grad=True), fb.randn(30, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        x.hypot_(y)
    w = x * 1
    w.hypot_(y)
    w.sum().backward()
    expected = (x.detach() ** 2 + y.detach() ** 2).sqrt()
    assert fb.allclose(x.grad, x.detach() / expected) and fb.allclose(y.grad, y.detach() / expected)


@pytest.mark.parametrize("value", [np.nan, 1e300, -1e39, True, -np.inf])
def test_numbers_that_no_kernel_takes_go_by_the_formula(value, monkeypatch):
    given = [1.0, np.nan, np.inf]
    found = fb.tensor(given).nan_to_num_(posinf=value), fb.tensor(given).eq_(value)
    monkeypatch.setattr(in_one, "_KINDS", {})
    assert same(found[0], fb.tensor(given).nan_to_num_(posinf=value))
    assert same(found[1], fb.tensor(given).eq_(value))


def test_products_and_masked_elements_are_written_as_they_are_recorded():
    x, y = fb.randn(40, 30), fb.randn(40, 30)
    index, mask = fb.randint(0, 40, (40, 30)), x > 0.2
    for call in (
        lambda w, s: w.scatter_reduce_(0, index, s, "prod"),
        lambda w, s: w.scatter_reduce_(1, index % 30, s, "prod", include_self=False),
        lambda w, s: w.masked_scatter_(mask, s),
        lambda w, s: w.masked_scatter_(mask[:1], s),
        lambda w, s: w.t().masked_scatter_(mask.t(), s),
        lambda w, s: w.t().scatter_reduce_(0, index.t() % 30, s.t(), "prod"),
    ):
        plain, recorded = x.clone(), x.clone().requires_grad_() * 1
        assert fb.equal(call(plain, y), call(recorded, y).detach())
        assert fb.equal(plain, recorded.detach())
    w = x.clone()
    assert fb.equal(w.masked_scatter_(mask, w), x.masked_scatter(mask, x.clone()))
    with pytest.raises(RuntimeError, match="number of ones in mask"):
        w.masked_scatter_(mask, y[0, :3])
