"""Reductions and scans against PyTorch."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from torch_oracle import COMPLEX, DTYPES, FLOATS, INTEGERS, agree, draw, layouts, tensor, torch

from flambeau_numpy.kernels import KERNELS

DIMS = [dims for n in (1, 2, 3) for dims in combinations(range(3), n)]


def expected_of(op: str, a: np.ndarray, dims: tuple[int, ...], keepdim: bool):
    t = tensor(a)
    if op == "prod":
        for d in sorted(dims, reverse=True):
            t = torch.prod(t, d, keepdim, dtype=t.dtype)
        return t
    if op == "sum":
        return torch.sum(t, dims, keepdim, dtype=t.dtype)
    return getattr(torch, op)(t, dims, keepdim)


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dtype", list(DTYPES))
@pytest.mark.parametrize("op", ["sum", "prod", "amax", "amin", "all", "any"])
def test_reduction_agrees_over_all_dims(op: str, dtype: str, keepdim: bool) -> None:
    if op in ("amax", "amin") and dtype in COMPLEX:
        pytest.skip("complex numbers have no order")
    if op in ("sum", "prod") and dtype == "bool":
        pytest.skip("bool is cast before")
    if op in ("all", "any") and dtype == "uint8":
        pytest.skip("uint8 in PyTorch, bool here: the core casts")
    a = draw((3, 4, 5), dtype, scale=1)
    for dims in DIMS:
        agree(KERNELS[op](a, dims, keepdim), expected_of(op, a, dims, keepdim), scale=4)


@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float32", "float64", "int64", "complex64"]
)
@pytest.mark.parametrize(
    "shape", [(40, 50, 60), (7, 1030, 3), (2, 3, 5000), (3000, 2, 4), (1, 1, 9001)]
)
def test_large_sums_agree_over_all_dims(shape: tuple[int, ...], dtype: str) -> None:
    a = draw(shape, dtype, scale=1)
    wide = {"complex64": np.complex128, "int64": np.int64}.get(dtype, np.float64)
    for dims in DIMS:
        for x in (a, np.ascontiguousarray(a.T).T):
            found = KERNELS["sum"](x, dims, False)
            exact = x.astype(wide).sum(dims)
            unit = {"float16": 1e-3, "bfloat16": 8e-3, "float64": 1e-14}.get(dtype, 1e-6)
            bound = unit * (np.abs(exact) + np.abs(a.astype(wide)).sum(dims) ** 0.5 + 1)
            assert np.asarray(found).dtype == a.dtype
            assert (np.abs(np.asarray(found).astype(wide) - exact) <= bound).all()


def test_long_sums_do_not_drift() -> None:
    a = np.full((1 << 22, 2), 0.1, np.float32)
    for dims, count in (((0,), 1 << 22), ((0, 1), 1 << 23)):
        found = np.asarray(KERNELS["sum"](a, dims, False), np.float64)
        np.testing.assert_allclose(found, count * float(np.float32(0.1)), rtol=2e-6)


def test_half_sums_are_accumulated_in_float32() -> None:
    for dtype in ("float16", "bfloat16"):
        ones = np.ones(5000, DTYPES[dtype])
        expected = np.array(5000).astype(DTYPES[dtype])
        assert KERNELS["sum"](ones, (0,), False) == expected
        assert KERNELS["cumsum"](ones, 0)[-1] == expected


def test_sums_of_nothing_and_of_scalars() -> None:
    assert KERNELS["sum"](np.zeros((0, 3), np.float32), (0,), False).tolist() == [0, 0, 0]
    assert KERNELS["prod"](np.zeros((0, 3), np.float32), (0,), False).tolist() == [1, 1, 1]
    assert KERNELS["all"](np.zeros((0,), bool), (0,), False)
    assert not KERNELS["any"](np.zeros((0,), bool), (0,), False)
    assert KERNELS["sum"](np.array(2.0), (), False) == 2


@pytest.mark.parametrize("op", ["amax", "amin"])
def test_extrema_propagate_nan(op: str) -> None:
    a = np.array([[1, np.nan, 3], [1, 2, 3]], np.float32)
    agree(KERNELS[op](a, (1,), False), getattr(torch, op)(tensor(a), 1))


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("op", ["argmax", "argmin"])
def test_positions_of_extrema_are_the_first(op: str, dtype: str) -> None:
    a = draw((4, 6), dtype).round() if dtype in FLOATS else draw((4, 6), dtype) // 3
    for _, x in layouts(a):
        if x.ndim and x.size:
            for dim in (0, 1):
                found = KERNELS[op](x, dim, True)
                first = (x == np.take_along_axis(x, found, dim)).argmax(dim)
                agree(found.squeeze(dim), torch.from_numpy(np.ascontiguousarray(first)))
    assert KERNELS[op](np.array(a[0, 0]), 0, False) == 0


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", ["argmax", "argmin"])
def test_nan_counts_as_the_extremum(op: str, dtype: str) -> None:
    a = np.array([[1, np.nan, np.nan], [np.inf, -np.inf, 0]]).astype(DTYPES[dtype])
    agree(KERNELS[op](a, 1, False), getattr(torch, op)(tensor(a), 1))


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, *COMPLEX])
@pytest.mark.parametrize("op", ["cumsum", "cumprod"])
def test_scans_agree_in_every_layout(op: str, dtype: str) -> None:
    for _, a in layouts(draw((4, 6), dtype, scale=1)):
        for dim in range(max(a.ndim, 1)):
            expected = getattr(torch, op)(tensor(a), dim, dtype=tensor(a).dtype)
            agree(KERNELS[op](a, dim), expected, scale=4)


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX])
@pytest.mark.parametrize("op", ["mean", "var", "logsumexp"])
def test_statistics_agree_over_all_dims(op: str, dtype: str, keepdim: bool) -> None:
    if op == "logsumexp" and dtype in COMPLEX:
        pytest.skip("no order to shift by")
    a = draw((3, 4, 5), dtype)
    for dims in DIMS:
        for x in (a, np.ascontiguousarray(a.T).T):
            t = tensor(x)
            if op == "var":
                found = KERNELS[op](x, dims, 1, keepdim)
                expected = torch.var(t, dims, correction=1, keepdim=keepdim)
            else:
                found, expected = (
                    KERNELS[op](x, dims, keepdim),
                    getattr(torch, op)(t, dims, keepdim),
                )
            agree(found, expected, scale=4)


@pytest.mark.filterwarnings("ignore:var")
def test_statistics_of_too_little() -> None:
    one, none = np.ones((1, 3)), np.ones((0, 3))
    agree(KERNELS["var"](one, (0,), 1, False), torch.var(tensor(one), 0))
    agree(KERNELS["var"](none, (0,), 1, False), torch.var(tensor(none), 0))
    agree(KERNELS["mean"](none, (0,), False), torch.mean(tensor(none), 0))
    agree(KERNELS["logsumexp"](none, (0,), False), torch.logsumexp(tensor(none), 0))


def test_variance_survives_a_large_mean() -> None:
    a = (draw((4, 9000), "float32", scale=1) + 4096).astype(np.float32)
    exact = a.astype(np.float64).var(1, ddof=1)
    np.testing.assert_allclose(KERNELS["var"](a, (1,), 1, False), exact, rtol=1e-5)


def test_logsumexp_of_infinities() -> None:
    a = np.array([[-np.inf, -np.inf], [np.inf, 1], [np.nan, 1], [1000, 1000], [-np.inf, 2]])
    agree(KERNELS["logsumexp"](a, (1,), False), torch.logsumexp(tensor(a), 1))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("dims", DIMS)
def test_logsumexp_of_halves_is_rounded_at_each_step(dtype: str, dims: tuple[int, ...]) -> None:
    a = draw((6, 5, 7), dtype)
    found = KERNELS["logsumexp"](a, dims, False)
    assert found.dtype == a.dtype
    assert found.tolist() == torch.logsumexp(tensor(a), dims).tolist()
