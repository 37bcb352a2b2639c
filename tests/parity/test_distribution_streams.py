"""Samples of every distribution are PyTorch's in every dtype and shape, and leave its state.

What is made of random bits by sums, products, quotients and roots is equal to the last bit, and so
is what rejection draws.  Families that put numbers through exponentials, logarithms or powers agree
to the last digits: PyTorch's own are other ones there with other instruction sets.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.distributions as theirs  # noqa: E402

import flambeau as fb  # noqa: E402
import flambeau.distributions as ours  # noqa: E402
import flambeau.distributions.relaxed_bernoulli  # noqa: E402
import flambeau.distributions.relaxed_categorical  # noqa: E402
from distribution_cases import CASES  # noqa: E402
from flambeau.distributions.transforms._events import _running_product  # noqa: E402

WHOLE = os.environ.get("FLAMBEAU_TEST_WHOLE") == "1"
DTYPES = ["float32", "float64", "float16", "bfloat16"]
SHAPES = [(), (17,), (0,), (3,), (4, 1, 5), (2, 3), (1,), (1000,)] if WHOLE else [(), (17,), (0,)]
# What goes through exp, log, log1p, pow, cos, a matrix product or a triangular solve.
LAST_DIGITS = """ContinuousBernoulli GeneralizedPareto Gumbel InverseGamma Kumaraswamy LKJCholesky
    Laplace LogNormal LogisticNormal LowRankMultivariateNormal MultivariateNormal Pareto
    RelaxedBernoulli LogitRelaxedBernoulli RelaxedOneHotCategorical ExpRelaxedCategorical StudentT
    TransformedDistribution VonMises Weibull Wishart""".split()
# Products of matrices of few numbers are the same; roots and triangular solves need not be.
WHOLLY = ["MultivariateNormal tril"]


def drawn(lib: Any, families: Any, name: str, dtype: str) -> Any:
    """For each shape and method: the numbers, what they are, and the state that is left."""
    try:
        d = CASES[name](families, lambda v: lib.tensor(v, dtype=getattr(lib, dtype)))
    except (NotImplementedError, RuntimeError) as error:
        return type(error)
    found = {}
    for shape in SHAPES:
        for method in ("sample", "rsample"):
            lib.manual_seed(11)
            try:
                x = getattr(d, method)(shape).detach()
            except (NotImplementedError, RuntimeError) as error:
                found[shape, method] = type(error)
                continue
            kind = str(x.dtype).split(".")[-1]
            state = lib.get_rng_state().tolist()
            found[shape, method] = x.double().flatten().tolist(), kind, tuple(x.shape), state
    return found


@pytest.mark.filterwarnings("ignore:Singular sample", "ignore:Low df")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CASES)
def test_samples_and_the_state_after_them(name: str, dtype: str) -> None:
    mine, reference = (
        drawn(lib, families, name, dtype) for lib, families in ((fb, ours), (torch, theirs))
    )
    if not isinstance(reference, dict):
        assert mine.__name__ == reference.__name__
        return
    family = name.split()[0]
    for key, wanted in reference.items():
        found = mine[key]
        if family == "VonMises" and key[1] == "rsample":
            assert wanted is NotImplementedError and found == mine[key[0], "sample"]
            continue
        if not isinstance(wanted, tuple):
            assert found.__name__ == wanted.__name__, key
            continue
        assert found[1:] == wanted[1:], key
        if family not in LAST_DIGITS or name in WHOLLY:
            assert list(map(repr, found[0])) == list(map(repr, wanted[0])), key
            continue
        one, other = (torch.tensor(v[0], dtype=torch.float64) for v in (found, wanted))
        if family == "LKJCholesky":  # the last of a row is the root of what the others leave of 1
            one, other = one.square(), other.square()
        digits = torch.finfo(getattr(torch, wanted[1])).eps
        size = other[other.isfinite()].abs().max().clamp(min=1.0) if len(other) else 1.0
        close = 32 * digits * (size if "Normal" in family or family == "Wishart" else 1.0)
        torch.testing.assert_close(one, other, rtol=32 * digits, atol=float(close), equal_nan=True)


@pytest.mark.parametrize("dtype", DTYPES)
def test_pieces_of_a_stick_are_rounded_once(dtype: str) -> None:
    pieces = torch.rand(300, 9, generator=torch.Generator().manual_seed(1)).to(
        getattr(torch, dtype)
    )
    given = fb.tensor(pieces.tolist(), dtype=getattr(fb, dtype))
    assert _running_product(given).tolist() == pieces.cumprod(-1).tolist()
