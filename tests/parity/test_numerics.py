"""Switches of exactness and repeatability answer as PyTorch's."""

from __future__ import annotations

import math
import warnings

import pytest
import torch

import flambeau as fb


@pytest.fixture(autouse=True)
def put_back():
    yield
    for lib in (torch, fb):
        lib.use_deterministic_algorithms(False)
        lib.set_float32_matmul_precision("highest")


@pytest.mark.parametrize("lib", [torch, fb], ids=["torch", "flambeau"])
@pytest.mark.parametrize("mode", [True, False])
@pytest.mark.parametrize("warn_only", [True, False])
def test_determinism_is_what_was_last_asked_for(lib, mode, warn_only):
    lib.use_deterministic_algorithms(mode, warn_only=warn_only)
    assert lib.are_deterministic_algorithms_enabled() is mode
    assert lib.is_deterministic_algorithms_warn_only_enabled() is warn_only


@pytest.mark.parametrize("lib", [torch, fb], ids=["torch", "flambeau"])
@pytest.mark.parametrize("mode", [1, None, "yes"])
def test_determinism_is_switched_by_a_bool(lib, mode):
    with pytest.raises(TypeError, match="must be bool"):
        lib.use_deterministic_algorithms(mode)


@pytest.mark.parametrize("precision", ["highest", "high", "medium"])
def test_the_precision_of_products_is_what_was_set(precision):
    for lib in (torch, fb):
        lib.set_float32_matmul_precision(precision)
        assert lib.get_float32_matmul_precision() == precision


def test_a_precision_that_is_none_changes_nothing():
    for lib in (torch, fb):
        lib.set_float32_matmul_precision("high")
        with warnings.catch_warnings():  # PyTorch warns once in a process
            warnings.simplefilter("ignore")
            lib.set_float32_matmul_precision("lowest")
        assert lib.get_float32_matmul_precision() == "high"
        with pytest.raises(RuntimeError, match="expects a str"):
            lib.set_float32_matmul_precision(3)
    with pytest.warns(UserWarning, match="'lowest' is none of highest, high, medium"):
        fb.set_float32_matmul_precision("lowest")


def test_cudnn_stays_deterministic_where_nothing_else_was_asked():
    for lib in (torch, fb):
        with lib.backends.cudnn.flags(deterministic=True):
            assert not lib.are_deterministic_algorithms_enabled()
            lib.use_deterministic_algorithms(False)
            assert lib.backends.cudnn.deterministic


@pytest.mark.parametrize("device", ["cpu", "ref"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_a_rest_of_zero_has_the_sign_of_the_dividend(dtype, device):
    values = [0.0, -0.0, 1.0, -1.0, 4.0, -4.0, 2.5, math.inf, -math.inf, math.nan, -3.75]
    pairs = [(a, b) for a in values for b in values]
    theirs = [torch.tensor(side, dtype=getattr(torch, dtype)) for side in zip(*pairs, strict=True)]
    ours = [fb.tensor(x.tolist(), dtype=getattr(fb, dtype), device=device) for x in theirs]
    expected = torch.remainder(*theirs)
    written = ours[0].clone()
    written.remainder_(ours[1])
    single = fb.stack([a % b for a, b in zip(*ours, strict=True)])
    for found in (fb.remainder(*ours), written, single):
        shown = [(str(a), str(b)) for a, b in zip(found.tolist(), expected.tolist(), strict=True)]
        assert all(a.strip("-") == b.strip("-") == "nan" or a == b for a, b in shown)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((50, 3, 3), (50, 3, 3)),
        ((2, 2), (17, 2, 1)),
        ((5, 5, 5), (20, 5, 5, 1)),
        ((30, 7, 7), (30, 7, 7)),
        ((30, 4, 6), (6, 2)),
        ((1, 3), (9, 3, 3)),
        ((1, 3, 3), (1, 3, 3)),
    ],
)
def test_products_of_batches_of_few_numbers_have_the_last_bits(left, right, dtype):
    """Where PyTorch has a loop of its own, which rounds every term, and no library."""
    if pytest.importorskip("flambeau_native.extension").native is None:
        pytest.skip("without compiled kernels a library makes these products")
    torch.manual_seed(5)
    theirs = [torch.randn(*shape, dtype=getattr(torch, dtype)) for shape in (left, right)]
    ours = [fb.tensor(x.tolist(), dtype=getattr(fb, dtype)) for x in theirs]
    assert fb.matmul(*ours).tolist() == torch.matmul(*theirs).tolist()
