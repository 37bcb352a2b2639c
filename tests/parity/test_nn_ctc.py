"""The loss of unaligned sequences agrees with PyTorch in values, gradients and errors."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as fb

torch = pytest.importorskip("torch")

from oracle import DEVICES, assert_same, check_error, ours_of  # noqa: E402

TIME, BATCH, CLASSES = 7, 4, 5
SCORES = torch.arange(TIME * BATCH * CLASSES, dtype=torch.float64).mul(1.7).sin()
SCORES = SCORES.reshape(TIME, BATCH, CLASSES) * 3
TARGETS = torch.tensor([[1, 1, 2], [3, 2, 4], [2, 2, 2], [1, 0, 0]])
INPUTS, LENGTHS = [7, 5, 4, 6], [3, 2, 3, 0]  # the third target does not fit
JOINED = torch.cat([TARGETS[i, :n] for i, n in enumerate(LENGTHS)])


def both(scores: Any, targets: Any, device: str, *args: Any, **how: Any) -> None:
    """Assert that losses, and gradients behind and before the normalisation, agree."""
    found = []
    for t in (torch, fb):
        x = scores.clone() if t is torch else ours_of(scores, device)
        y = targets if t is torch else ours_of(targets, device)
        x.requires_grad_()
        normal = x.log_softmax(-1)
        loss = t.nn.functional.ctc_loss(normal, y, *args, **how)
        grads = t.autograd.grad(loss.sum(), [x, normal])
        found.append([loss, *grads])
    assert_same(found[1], found[0])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("zero_infinity", [True, False])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("targets", [TARGETS, JOINED, JOINED.int()])
def test_batches_agree(targets: Any, reduction: str, zero_infinity: bool, device: str) -> None:
    how = {"reduction": reduction, "zero_infinity": zero_infinity}
    both(SCORES, targets, device, INPUTS, LENGTHS, **how)


@pytest.mark.parametrize("blank", [0, 2, 4])
def test_every_class_may_be_the_blank(blank: int) -> None:
    targets = TARGETS.masked_fill(blank == TARGETS, (blank + 1) % CLASSES)
    both(SCORES, targets, "cpu", [7, 7, 7, 7], [3, 2, 3, 1], blank=blank)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_one_sequence_without_a_batch_agrees(reduction: str) -> None:
    lengths = torch.tensor(7), torch.tensor(2)
    found = []
    for t, x, y, n, m in (
        (torch, SCORES[:, 0], TARGETS[1, :2], *lengths),
        (fb, ours_of(SCORES[:, 0].clone()), ours_of(TARGETS[1, :2]), *map(ours_of, lengths)),
    ):
        found.append(t.nn.functional.ctc_loss(x.log_softmax(-1), y, n, m, reduction=reduction))
    assert_same(found[1], found[0])


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_lengths_may_be_tensors_of_either_dtype(dtype: str) -> None:
    given = [torch.tensor(n, dtype=getattr(torch, dtype)) for n in (INPUTS, LENGTHS)]
    normal = SCORES.log_softmax(-1)
    expected = torch.nn.CTCLoss(zero_infinity=True)(normal, TARGETS, *given)
    ours = fb.nn.CTCLoss(zero_infinity=True)
    assert_same(ours(ours_of(normal), ours_of(TARGETS), *map(ours_of, given)), expected)


def test_targets_that_are_all_empty_agree() -> None:
    both(SCORES, TARGETS[:, :0], "cpu", INPUTS, [0, 0, 0, 0], reduction="none")
    both(SCORES, JOINED[:0], "cpu", INPUTS, [0, 0, 0, 0], reduction="none")


def test_the_gradient_is_that_of_differences() -> None:
    x = ours_of(SCORES[:4, :2, :3].clone()).requires_grad_()
    targets = fb.tensor([[1, 2], [2, 2]])
    assert fb.autograd.gradcheck(
        lambda v: fb.ctc_loss(v.log_softmax(2), targets, (4, 3), (2, 1), reduction=0), (x,)
    )


def test_a_second_derivative_is_refused_as_in_pytorch() -> None:
    def second(t: Any, x: Any) -> Any:
        y = t.tensor([[1, 2], [2, 2]])
        loss = t.nn.functional.ctc_loss(x.log_softmax(2), y, [4, 3], [2, 1])
        (g,) = t.autograd.grad(loss, x, create_graph=True)
        g.sum().backward()

    x = ours_of(SCORES[:4, :2, :3].clone()).requires_grad_()
    with pytest.raises((RuntimeError, NotImplementedError), match="not implemented"):
        second(fb, x)


@pytest.mark.parametrize(
    "call",
    [
        lambda t, x, y: t.nn.functional.ctc_loss(x, y, [4, 4], [2, 2], blank=3),
        lambda t, x, y: t.nn.functional.ctc_loss(x, y, [5, 4], [2, 2]),
        lambda t, x, y: t.nn.functional.ctc_loss(x, y, [4], [2, 2]),
        lambda t, x, y: t.nn.functional.ctc_loss(x, y, [4, 4], [2]),
        lambda t, x, y: t.nn.functional.ctc_loss(x, y, [4, 4], [2, 3]),
        lambda t, x, y: t.nn.functional.ctc_loss(x, y[0], [4, 4], [2, 2]),
        lambda t, x, y: t.nn.functional.ctc_loss(x, y, [4, 4], [2, 2], reduction="other"),
        lambda t, x, y: t.nn.functional.ctc_loss(x[:0], y, [0, 0], [2, 2]),
        lambda t, x, y: t.nn.functional.ctc_loss(x, y, t.ones(2), t.ones(2)),
    ],
)
def test_refusals_are_of_one_class(call: Any) -> None:
    check_error(call, ((4, 2, 3), torch.tensor([[1, 2], [2, 2]])))
