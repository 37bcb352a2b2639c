"""Decisions of plans, computed by one call, are those that their ops make."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import flambeau as fb
from flambeau_native.extension import native

CALLS = 12  # so many that a scripted function has a plan


def by_sum(x, y):
    return x if bool(x.sum() > y.sum()) else y


def by_equal_sums(x, y):
    return x if bool(x.sum() == y.sum()) else y


def by_mean(x, y):
    return x if bool(x.mean() <= y.mean()) else y


def by_extremes(x, y):
    return x if bool(x.max() > y.min()) else y


def by_spread(x, y):
    return x if bool((x.amax() - x.amin()).abs() >= y.amax() / 2) else y


def by_both(x, y):
    return x if bool((x.amax() < 3) & (y.amin() > -3)) else y


def by_either(x, y):
    return x if bool((x.amax() != 3) | (y.amin() == -3)) else y


def by_norm(x, y):
    return x if bool(x.norm() < y.norm()) else y


def by_any(x, y):
    return x if bool((x > y).any()) else y


def by_all(x, y):
    return x if bool((x == x).all()) else y


def by_element(x, y):
    return x if bool(x.flatten()[0] > y.flatten()[0]) else y


def by_truth(x, y):
    return x if bool(x.sum()) else y


def by_reciprocal(x, y):
    return x if bool(1 / x.amax() > y.amax() * 3 - 1) else y


FLOATING = [by_sum, by_equal_sums, by_mean, by_extremes, by_spread, by_both, by_either, by_norm]
FLOATING += [by_any, by_all, by_element, by_truth, by_reciprocal]
WHOLE = [by_sum, by_extremes, by_both, by_either, by_any, by_all, by_element, by_truth]
BOOLS = [by_any, by_all, by_element]
SHAPES: list[tuple[int, ...]] = [(), (1,), (2, 5), (3, 1, 700)]
EDGES = {
    "floating": [
        0.0,
        -0.0,
        1.0,
        3.0,
        -3.0,
        math.inf,
        -math.inf,
        math.nan,
        1e-45,
        3e38,
        2.0**24 + 1,
    ],
    "whole": [0, 1, -1, 3, -3, 2**53 + 1, 2**53, 2**63 - 1, -(2**63)],
    "bools": [False, True],
}


def arrays(shape: tuple[int, ...], dtype: fb.dtype) -> list[fb.Tensor]:
    """Some of a shape: of noise, of one edge all over, and of noise with an edge at the end."""
    if dtype is fb.bool:
        return [fb.full(shape, value) for value in (False, True)] + [fb.rand(shape) > 0.5]
    if dtype is fb.int64:
        made = [fb.randint(-9, 9, shape), *[fb.full(shape, v) for v in EDGES["whole"]]]
    else:
        made = [(fb.randn(shape) * 3).to(dtype) for _ in range(2)]
        made += [fb.full(shape, v).to(dtype) for v in EDGES["floating"]]
    for value in EDGES["floating" if dtype.is_floating_point else "whole"]:
        some = made[0].clone()
        some.view(-1)[-1:] = fb.tensor([value]).to(dtype)
        made.append(some)
    return made


CASES = [(f, d) for d in (fb.float32, fb.float64, fb.float16) for f in FLOATING]
CASES += [(f, fb.int64) for f in WHOLE] + [(f, fb.bool) for f in BOOLS]


@pytest.mark.parametrize(
    ("decide", "dtype"), CASES, ids=lambda value: getattr(value, "__name__", str(value))
)
def test_decisions_by_one_call_are_those_of_their_ops(decide, dtype, monkeypatch) -> None:
    monkeypatch.setattr("flambeau.jit._planned._WRONG", 0)  # however often they are made otherwise
    scripted = fb.jit.script(decide)
    for shape in SHAPES:
        found = arrays(shape, dtype)
        pairs = [(x, y) for x in found for y in (found[0], found[-1])]
        for x, y in [*pairs[:1] * CALLS, *pairs, *[(y, x) for x, y in pairs]]:
            assert scripted(x, y) is decide(x, y)


@pytest.mark.parametrize("dtype", [fb.float32, fb.float64])
@pytest.mark.parametrize("size", [1, 7, 16, 255, 256, 2048, 2049, 8192, 8193])
def test_sums_in_decisions_have_the_bits_of_sums(size, dtype) -> None:
    def as_told(x: fb.Tensor, y: fb.Tensor, z: fb.Tensor, n: fb.Tensor) -> fb.Tensor:
        same = bool(x.sum() == y) and bool(x.mean() == z) and bool(x.norm() == n)
        return x if same else y

    scripted = fb.jit.script(as_told)
    for _ in range(3 * CALLS):
        x = fb.randn(size, dtype=dtype) * 10
        assert scripted(x, x.sum(), x.mean(), x.norm()) is x


def test_what_only_a_decision_asks_for_is_one_call(programs: list[Any]) -> None:
    def larger(x: fb.Tensor, y: fb.Tensor) -> fb.Tensor:
        return x if bool(x.max() > y.max()) else y

    def known(x: fb.Tensor) -> fb.Tensor:
        total = x.sum()
        return x * total if bool(total > 0) else x

    def steps_of(function: Any, *args: fb.Tensor) -> list[str]:
        programs.clear()
        scripted = fb.jit.script(function)
        for _ in range(CALLS):
            scripted(*args)
        return [step.op for step in programs]

    assert steps_of(larger, fb.ones(3), fb.zeros(3)) == ["decide"]
    assert steps_of(known, fb.ones(3)) == ["sum", "decide", "mul"]
    assert steps_of(larger, fb.ones(3, 2).t(), fb.zeros(3)) == ["amax", "decide"]


def test_a_decision_sees_what_was_written_before_it_and_not_after() -> None:
    def written(x: fb.Tensor) -> fb.Tensor:
        y = x + 1
        before = y.sum() > 0
        y.mul_(-1)
        if bool(before):
            y = y + 10
        if bool(y.max() > 9):
            y.add_(100)
        return y

    scripted = fb.jit.script(written)
    for step in range(6 * CALLS):
        x = fb.full((3,), (1.0, -5.0)[step // CALLS % 2])
        assert fb.equal(scripted(x), written(x))


LEAF = (("f", "sum", 3),)


@pytest.mark.parametrize(
    "text",
    [
        ((), (), ()),
        (LEAF * 9, (), ()),
        (LEAF, (1.0,) * 9, (("gt", "f", 0, 1),)),
        (LEAF, (1.0,), ()),
        (LEAF, (), (("gt", "f", 0, 0),) * 33),
        (LEAF, (), (("gt", "f", 0, 1),)),
        (LEAF, (), (("gt", "f", 0, -1),)),
        (LEAF, (), (("gt", "b", 0, 0),)),
        (LEAF, (), (("none", "f", 0, 0),)),
        (LEAF, (), (("gt", "", 0, 0),)),
        (LEAF, (), ("gt",)),
        (LEAF, (2**64,), (("gt", "f", 0, 1),)),
        (LEAF, ("x",), (("gt", "f", 0, 1),)),
        ((("f", "sum", 0),), (), ()),
        ((("f", "sum", -1),), (), ()),
        ((("f", "sum", 8193),), (), ()),
        ((("f", "sum", 2**62),), (), ()),
        ((("f", "first", 2),), (), ()),
        ((("f", "any", 2),), (), ()),
        ((("q", "sum", 2),), (), ()),
        ((("q", "first", 1),), (), ()),
        ((("x", "first", 1),), (), ()),
        ((("ff", "first", 1),), (), ()),
        ((("", "first", 1),), (), ()),
        ((3,), (), ()),
        ((("f", "first"),), (), ()),
        ([("f", "first", 1)], (), ()),
    ],
    ids=repr,
)
def test_what_is_no_decision_is_refused(text: tuple[Any, ...]) -> None:
    with pytest.raises((ValueError, TypeError, OverflowError)):
        native.decision(*text)


def test_a_decision_takes_only_the_arrays_that_it_was_made_for() -> None:
    run = native.decision((("f", "amax", 4), ("d", "first", 1)), (), (("gt", "d", 0, 1),))
    x, y = np.arange(4, dtype=np.float32), np.array(2.0)
    assert run(x, y) is True
    assert run(x.reshape(2, 2), y) is True
    odd = np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(np.float32)
    assert run(odd, y) is True
    wrong = [np.arange(8, dtype=np.float32)[::2], x[:3], x.astype(np.float64), None, 3]
    for other in wrong:
        with pytest.raises((RuntimeError, TypeError, ValueError, BufferError)):
            run(other, y)
        with pytest.raises((RuntimeError, TypeError, ValueError, BufferError)):
            run(x, other)
    for given in ((), (x,), (x, y, y)):
        with pytest.raises(TypeError):
            run(*given)
