"""Gamma, Dirichlet and binomial numbers equal PyTorch's, and so does the generator afterwards."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import flambeau as fb

torch = pytest.importorskip("torch")

DEVICES = ("cpu", "ref")
DTYPES = ("float32", "float64")


@pytest.fixture(params=DEVICES)
def device(request: Any) -> str:
    return request.param


@pytest.fixture(params=DTYPES)
def dtype(request: Any) -> str:
    return request.param


def both(values: Any, dtype: str, device: str) -> tuple[Any, Any]:
    theirs = torch.tensor(np.asarray(values), dtype=getattr(torch, dtype))
    ours = fb.tensor(theirs.tolist(), dtype=getattr(fb, dtype), device=device)
    return ours.reshape(tuple(theirs.shape)), theirs


def assert_equal(ours: Any, theirs: Any) -> None:
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert str(ours.dtype) == str(theirs.dtype)
    found, wanted = ours.tolist(), theirs.tolist()
    assert repr(found) == repr(wanted)


def compare(name: str, device: str, *pairs: tuple[Any, Any], seed: int = 0) -> None:
    """Draws once, then once more from the generator that the first draw left."""
    theirs = torch.Generator().manual_seed(seed)
    ours = fb.Generator(device=device).manual_seed(seed)
    for _ in range(2):
        wanted = getattr(torch, name)(*[t for _, t in pairs], generator=theirs)
        found = getattr(fb, name)(*[t for t, _ in pairs], generator=ours)
        assert_equal(found, wanted)
        assert bytes(ours.get_state().tolist()) == theirs.get_state().numpy().tobytes()


def spread(count: int, low: float, high: float, seed: int = 0) -> Any:
    return 10 ** np.random.default_rng(seed).uniform(low, high, count)


@pytest.mark.parametrize("seed", [0, 7])
def test_gamma_numbers_of_all_sizes(device: str, dtype: str, seed: int) -> None:
    compare("_standard_gamma", device, both(spread(2000, -3, 6), dtype, device), seed=seed)


@pytest.mark.parametrize("columns", [1, 2, 3, 5, 8, 9, 37, 300])
def test_dirichlet_rows_of_all_widths(device: str, dtype: str, columns: int) -> None:
    rows = max(120 // columns, 1)
    alpha = spread(rows * columns, -3, 3, columns).reshape(rows, columns)
    compare("_sample_dirichlet", device, both(alpha, dtype, device))


def test_a_long_dirichlet_row_is_added_in_levels(dtype: str) -> None:
    compare("_sample_dirichlet", "cpu", both(spread(20000, -3, 3), dtype, "cpu"))


def test_binomial_numbers_of_all_means(device: str, dtype: str) -> None:
    rng = np.random.default_rng(1)
    counts = np.floor(spread(1500, -0.5, 7))
    probs = rng.choice([0.0, 1.0, 0.5, 0.1, 0.01, 1e-4, 0.99, 0.9999], 1500)
    probs = probs * rng.choice([1.0, 0.7, 0.9999], 1500)
    compare("binomial", device, both(counts, dtype, device), both(probs, dtype, device))


def test_numbers_that_are_no_parameters(device: str, dtype: str) -> None:
    alpha = [-1.0, 0.0, math.nan, 1e-38, 1e-45, 1e30, math.inf]
    compare("_standard_gamma", device, both(alpha, dtype, device))
    counts = [math.inf, math.inf, -1.0, 5.0, 5.0, 1e30, 2.0**24, 2.0**25, 1e15, 10.5, 100.5]
    probs = [0.5, 0.3, 0.5, -1.0, math.nan, 0.3, 0.5, 0.25, 0.7, 0.3, 0.5]
    compare("binomial", device, both(counts, dtype, device), both(probs, dtype, device))


def test_a_count_of_nan_gives_nan_where_pytorch_does_not_return(device: str) -> None:
    assert math.isnan(
        fb.binomial(fb.tensor(math.nan, device=device), fb.tensor(0.5, device=device))
    )


@pytest.mark.parametrize("shape", [(), (0,), (2, 0), (0, 3), (1, 1)])
def test_shapes_with_few_elements(device: str, dtype: str, shape: tuple[int, ...]) -> None:
    alpha = both(np.full(shape, 0.7), dtype, device)
    compare("_standard_gamma", device, alpha)
    compare("_sample_dirichlet", device, alpha)
    compare("binomial", device, both(np.full(shape, 9.0), dtype, device), alpha)


def test_tensors_that_are_not_contiguous_are_drawn_in_row_major_order(device: str) -> None:
    ours, theirs = both(spread(60, -2, 3).reshape(3, 4, 5), "float32", device)
    turned = ours.permute(2, 0, 1)[::2], theirs.permute(2, 0, 1)[::2]
    compare("_standard_gamma", device, turned)
    compare("_sample_dirichlet", device, turned)
    compare("_sample_dirichlet", device, (ours[0, 0].expand(3, 5), theirs[0, 0].expand(3, 5)))
    compare("binomial", device, (turned[0] * 9, turned[1] * 9), both([0.5], "float32", device))


@pytest.mark.parametrize("name", ["_standard_gamma", "_sample_dirichlet"])
@pytest.mark.parametrize("kind", ["float16", "bfloat16", "int64", "bool", "complex64"])
def test_other_dtypes_are_refused(name: str, kind: str) -> None:
    for lib in (fb, torch):
        with pytest.raises(NotImplementedError, match="not implemented for"):
            getattr(lib, name)(lib.ones(2, dtype=getattr(lib, kind)))


def test_what_binomial_refuses() -> None:
    for lib in (fb, torch):
        ones = lib.ones(2)
        for wrong in ((lib.tensor([1, 1]), ones), (ones, lib.tensor([1, 1]))):
            with pytest.raises(ValueError, match="only supports floating-point dtypes"):
                lib.binomial(*wrong)
        with pytest.raises(RuntimeError, match="dtype"):
            lib.binomial(ones, ones.double())
        with pytest.raises(NotImplementedError, match="binomial_cpu"):
            lib.binomial(ones.half(), ones.half())


def test_how_a_gamma_number_follows_its_shape(device: str, dtype: str) -> None:
    alpha, x = spread(400, -2, 3), spread(400, -2, 3, 1)
    (a, a_), (x, x_) = both(alpha, dtype, device), both(x, dtype, device)
    found = np.array(fb._standard_gamma_grad(a, x).tolist())
    wanted = torch._standard_gamma_grad(a_, x_).numpy()
    np.testing.assert_allclose(found, wanted, 1e-6 if dtype == "float32" else 1e-11)


def test_how_a_beta_number_follows_its_concentration(device: str) -> None:
    a, b = spread(800, -1.5, 2.5), spread(800, -1.5, 2.5, 1)
    pairs = torch.tensor(np.stack([a, b], -1))
    x = torch._sample_dirichlet(pairs, generator=torch.Generator().manual_seed(0))[:, 0]
    arguments = [both(v, "float64", device) for v in (x.numpy(), a, a + b)]
    found = np.array(fb._dirichlet_grad(*[v for v, _ in arguments]).tolist())
    wanted = torch._dirichlet_grad(*[v for _, v in arguments]).numpy()
    np.testing.assert_allclose(found, wanted, 1e-9)


def test_the_gradient_of_gamma_numbers(device: str) -> None:
    ours, theirs = both(spread(50, -1, 2), "float64", device)
    ours.requires_grad_(), theirs.requires_grad_()
    torch.manual_seed(3)
    torch._standard_gamma(theirs).sum().backward()
    fb.manual_seed(3)
    fb._standard_gamma(ours).sum().backward()
    np.testing.assert_allclose(ours.grad.tolist(), theirs.grad.numpy(), 1e-11)


@pytest.mark.parametrize("name", ["_sample_dirichlet", "_standard_gamma_grad", "binomial"])
def test_what_has_no_gradient_says_so(name: str) -> None:
    for lib in (fb, torch):
        x = lib.ones(3, requires_grad=True)
        arguments = (x,) if name == "_sample_dirichlet" else (x, lib.ones(3))
        with pytest.raises(Exception, match="is not implemented"):
            getattr(lib, name)(*arguments).sum().backward()
