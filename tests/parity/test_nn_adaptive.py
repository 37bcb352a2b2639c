"""The adaptive softmax agrees with PyTorch: text, initial weights, results, gradients, errors."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as fb

torch = pytest.importorskip("torch")

from oracle import assert_same, check_error, ours_of  # noqa: E402

TARGETS = [[0, 3, 9, 1, 4], [0, 1, 1, 0, 0], [9, 8, 7, 6, 5]]


def layers(**how: Any) -> tuple[Any, Any]:
    made = []
    for t in (fb, torch):
        t.manual_seed(5)
        made.append(t.nn.AdaptiveLogSoftmaxWithLoss(8, 10, [2, 5], 2.0, **how))
    return made[0], made[1]


@pytest.mark.parametrize("head_bias", [True, False])
def test_text_and_initial_weights_agree(head_bias: bool) -> None:
    ours, theirs = layers(head_bias=head_bias)
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    for key, value in theirs.state_dict().items():
        assert_same(ours.state_dict()[key], value, 1e-6)


@pytest.mark.parametrize("target", [*TARGETS, 7, 1])
def test_outputs_losses_and_gradients_agree(target: Any) -> None:
    ours, theirs = layers()
    y = torch.tensor(target)
    x = torch.arange(8.0 * max(y.numel(), 1)).sin().reshape((*y.shape, 8)).requires_grad_()
    mine = ours_of(x)
    found, expected = ours(mine, ours_of(y)), theirs(x, y)
    assert_same((found.output, found.loss), (expected.output, expected.loss), 1e-5)
    found.loss.backward(), expected.loss.backward()
    assert_same(mine.grad, x.grad, 1e-5)
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert (a.grad is None) == (b.grad is None)
        if b.grad is not None:
            assert_same(a.grad, b.grad, 1e-5)


def test_all_log_probabilities_and_predictions_agree() -> None:
    ours, theirs = layers(head_bias=True)
    x = torch.arange(96.0).mul(1.3).sin().mul(4).reshape(12, 8)
    assert_same(ours.log_prob(ours_of(x)), theirs.log_prob(x), 1e-5)
    assert_same(ours.predict(ours_of(x)), theirs.predict(x))
    assert len(set(theirs.predict(x).tolist())) > 2


@pytest.mark.parametrize("cutoffs", [[], [5, 2], [2, 2], [0, 3], [3, 10], [2.5]])
def test_cutoffs_that_do_not_divide_the_classes_are_refused(cutoffs: Any) -> None:
    check_error(lambda t, x: t.nn.AdaptiveLogSoftmaxWithLoss(8, 10, cutoffs), ((1,),))


@pytest.mark.parametrize("target", [[10, 0], [-1, 0], [1], [[1, 0]]])
def test_targets_that_do_not_fit_are_refused(target: Any) -> None:
    check_error(
        lambda t, x: t.nn.AdaptiveLogSoftmaxWithLoss(3, 10, [2])(x.float(), t.tensor(target)),
        ((2, 3),),
    )
