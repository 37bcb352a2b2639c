"""What packages that build on this one are given, and what they may replace."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau_numpy import extending, products
from flambeau_numpy.extending import KERNELS, offer_products, offered, parts

X, WEIGHT = np.ones((2, 3), np.float32), np.ones((4, 3), np.float32)


@pytest.fixture(autouse=True)
def nobody(monkeypatch):
    """No package has offered anything, and what tests offer is forgotten."""
    for name in offered.__slots__:
        monkeypatch.setattr(offered, name, None)
    monkeypatch.setattr(products, "_offers", {})


@pytest.mark.parametrize("module", [extending, parts], ids=lambda m: m.__name__)
def test_every_name_that_is_promised_is_there(module):
    assert [name for name in module.__all__ if not hasattr(module, name)] == []


def test_layers_ask_first_who_offers_them_and_compute_what_is_declined():
    asked = []

    def linear(x, weight, bias):
        asked.append(x.shape)
        return np.full((2, 4), 7, np.float32) if bias is None else None

    offer_products("mine", linear=linear)
    assert (KERNELS["linear"](X, WEIGHT, None) == 7).all()
    assert (KERNELS["linear"](X, WEIGHT, np.ones(4, np.float32)) == 4).all()
    assert asked == [(2, 3), (2, 3)]
    offer_products("mine")
    assert (KERNELS["linear"](X, WEIGHT, None) == 3).all()
    assert len(asked) == 2


def test_products_of_matrices_ask_first_who_offers_them():
    asked = []

    def matrices(a, b, out):
        asked.append((a.shape, b.shape))
        if a.shape == b.shape:
            return False
        out[...] = 7
        return True

    large, small, batch = (np.ones(shape, np.float32) for shape in ((80, 80), (80, 3), (2, 80, 80)))
    offer_products("mine", matrices=matrices)
    assert offered.matrices is matrices
    assert (KERNELS["matmul"](large, small) == 7).all()
    assert (KERNELS["matmul"](batch, small) == 7).all()  # as rows of one matrix
    assert (KERNELS["matmul"](large, large) == 80).all()  # declined
    assert (KERNELS["matmul"](batch, batch) == 80).all()
    assert asked == [((80, 80), (80, 3)), ((160, 80), (80, 3)), ((80, 80), (80, 80))]
    offer_products("mine")
    assert offered.matrices is None
    assert (KERNELS["matmul"](large, small) == 80).all()


def test_the_package_that_was_asked_first_counts_for_each_function():
    first, second, sgemm, run = (lambda *args: None for _ in range(4))
    offer_products("first", linear=first)
    offer_products("second", linear=second, sgemm=sgemm)
    assert (offered.linear, offered.sgemm) == (first, sgemm)
    assert offered.primitives is None
    offer_products("third", primitives=run)
    assert (offered.linear, offered.sgemm, offered.primitives) == (first, sgemm, run)
    offer_products("third")
    assert offered.primitives is None
    offer_products("first", linear=first)  # all are asked anew, in another order
    assert offered.linear is second
    offer_products("second")
    assert (offered.linear, offered.sgemm) == (first, None)
