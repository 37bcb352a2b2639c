"""Batch normalisation, losses and their gradients against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
from torch_oracle import FLOATS, agree, draw, tensor, torch

from flambeau_numpy.kernels.classification_loss import KERNELS as LOSS
from flambeau_numpy.kernels.normalization import KERNELS as NORM
from flambeau_numpy.kernels.regression_loss import mse_loss

F = torch.nn.functional
aten = torch.ops.aten

SHAPES = [(6, 5), (700, 40), (4, 5, 3), (2, 3, 8, 9), (3, 70, 20, 50), (2, 3, 2, 2, 4)]


@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES)
def test_batch_norm_and_its_gradients_agree(
    shape: tuple[int, ...], dtype: str, affine: bool
) -> None:
    channels = shape[1]
    weight, bias = (draw((channels,), dtype, s) if affine else None for s in (1, 2))
    base = draw(shape, dtype)
    for x in (base, np.ascontiguousarray(base.T).T):
        out, mean, invstd = NORM["batch_norm_train"](x, weight, bias, 1e-5)
        t = (tensor(x), tensor(weight), tensor(bias))
        expected = aten.native_batch_norm(*t, None, None, True, 0.1, 1e-5)
        for found, wanted in zip((out, mean, invstd), expected, strict=True):
            agree(found, wanted, scale=20)
        grad = draw(shape, dtype, 3)
        wanted = aten.native_batch_norm_backward(
            tensor(grad), t[0], t[1], None, None, *expected[1:], True, 1e-5, (True, True, True)
        )
        found = NORM["batch_norm_backward"](grad, x, weight, mean, invstd)
        for ours, theirs in zip(found, wanted, strict=True):
            agree(ours, theirs, scale=100)
        again = NORM["batch_norm"](x, weight, bias, mean, invstd)
        agree(again, expected[0], scale=40)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_batch_norm_of_half_precision_is_computed_in_float32(dtype: str) -> None:
    x, weight, bias = draw((4, 3, 8, 8), dtype), draw((3,), dtype, 1), draw((3,), dtype, 2)
    out, mean, invstd = NORM["batch_norm_train"](x, weight, bias, 1e-5)
    assert mean.dtype == invstd.dtype == x.dtype
    wide = [a.astype(np.float32) for a in (x, weight, bias)]
    agree(out, tensor(NORM["batch_norm_train"](*wide, 1e-5)[0].astype(x.dtype)))
    dx, dw, db = NORM["batch_norm_backward"](x, x, weight, mean, invstd)
    assert dx.dtype == dw.dtype == db.dtype == x.dtype


def test_batch_norm_survives_a_large_mean() -> None:
    x = draw((8, 3, 32, 32), "float32", scale=1) + np.float32(3000)
    _, _, invstd = NORM["batch_norm_train"](x, None, None, 0.0)
    exact = 1 / x.astype(np.float64).std((0, 2, 3))
    np.testing.assert_allclose(invstd, exact, rtol=1e-5)


def test_batch_norm_of_no_images_has_empty_output() -> None:
    x = np.zeros((0, 3, 4, 4), np.float32)
    out, mean, _ = NORM["batch_norm_train"](x, None, None, 1e-5)
    assert out.shape == x.shape
    assert mean.shape == (3,)


@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("lead", "last"), [((4,), (6,)), ((3, 5), (4, 7)), ((700,), (300,)), ((0,), (3,))]
)
def test_layer_norm_and_its_gradients_agree(
    lead: tuple[int, ...], last: tuple[int, ...], dtype: str, affine: bool
) -> None:
    x = draw((*lead, *last), dtype)
    weight, bias = (draw(last, dtype, s) if affine else None for s in (1, 2))
    t = [tensor(a).requires_grad_() if a is not None else None for a in (x, weight, bias)]
    expected = F.layer_norm(t[0], last, t[1], t[2], 1e-5)
    out, mean, invstd = NORM["layer_norm"](x, weight, bias, last, 1e-5)
    agree(out, expected.detach(), scale=4)
    assert mean.shape == invstd.shape == (*lead, *(1 for _ in last))
    if dtype in ("float16", "bfloat16"):
        return  # statistics rounded to the dtype of the input, as the decomposition has them
    grad = draw(x.shape, dtype, 3)
    expected.backward(tensor(grad))
    found = NORM["layer_norm_backward"](grad, x, weight, mean, invstd, last)
    for ours, source in zip(found, t, strict=True):
        if source is not None:
            agree(ours, source.grad, scale=100)


TARGET = np.array([1, 0, 3, 2, 3, 1])
SOME_IGNORED = np.array([1, -7, 3, 2, -7, 1])


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", FLOATS)
def test_nll_loss_and_its_gradient_agree(dtype: str, weighted: bool, reduction: str) -> None:
    log_probs = draw((6, 4), dtype)
    weight = np.abs(draw((4,), dtype, 1)) if weighted else None
    code = {"none": 0, "mean": 1, "sum": 2}[reduction]
    for target in (TARGET, SOME_IGNORED):
        t = (tensor(log_probs), tensor(target), tensor(weight))
        loss, total = LOSS["nll_loss"](log_probs, target, weight, reduction, -7)
        expected, expected_total = aten.nll_loss_forward(*t, code, -7)
        agree(loss, expected, scale=4)
        if reduction != "none":
            agree(total, expected_total, scale=4)
        grad = draw(loss.shape, dtype, 5)
        found = LOSS["nll_loss_backward"](
            grad, log_probs.shape, target, weight, reduction, -7, total
        )
        wanted = aten.nll_loss_backward(tensor(grad), *t, code, -7, expected_total)
        agree(found, wanted, scale=4)


def test_nll_loss_of_one_row_without_batch() -> None:
    log_probs, target = draw((4,), "float64"), np.array(2)
    for reduction in ("none", "mean", "sum"):
        loss, total = LOSS["nll_loss"](log_probs, target, None, reduction, -100)
        agree(loss, F.nll_loss(tensor(log_probs), tensor(target), reduction=reduction))
        grad = LOSS["nll_loss_backward"](np.array(1.0), (4,), target, None, reduction, -100, total)
        assert grad.tolist() == [0, 0, -1, 0]


def test_nll_loss_with_nothing_to_count_is_nan() -> None:
    loss, total = LOSS["nll_loss"](draw((2, 4), "float32"), np.array([-1, -1]), None, "mean", -1)
    assert np.isnan(loss)
    assert total == 0


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("target", [TARGET, SOME_IGNORED])
def test_cross_entropy_and_its_gradient_agree(target: np.ndarray, dtype: str) -> None:
    x = draw((6, 4), dtype)
    t = tensor(x).requires_grad_()
    expected = F.cross_entropy(t, tensor(target), ignore_index=-7)
    expected.backward()
    loss, log_probs, count = LOSS["cross_entropy"](x, target, -7)
    agree(loss, expected.detach(), scale=2)
    assert count == (target != -7).sum()
    grad = np.ones((), x.dtype)
    agree(LOSS["cross_entropy_backward"](grad, log_probs, target, -7, count), t.grad, scale=2)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_mse_loss_agrees(reduction: str, dtype: str) -> None:
    a, b = draw((3, 5), dtype), draw((3, 5), dtype, 1)
    agree(
        mse_loss(a, b, reduction),
        F.mse_loss(tensor(a), tensor(b), reduction=reduction),
        scale=2,
    )
