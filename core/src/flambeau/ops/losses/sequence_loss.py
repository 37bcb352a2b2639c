"""Connectionist temporal classification: the loss of a sequence of unknown alignment.

Labels l are extended by blanks to s = (b, l1, b, l2, ..., b).  With log_probs y the forward
variables are α_t(s) = y_t(s) + log Σ exp α_{t-1}(s'), over s' = s, s - 1 and, unless it would
skip a needed blank, s - 2; β runs the same way from the end.  The loss is -log of the sum of the
last two α, and its gradient, for y that log_softmax has normalised,

    exp y_t(k) - Σ_{s: label k} exp(α_t(s) + β_t(s) - y_t(k) + loss).

Source: Graves, Fernández, Gomez & Schmidhuber (2006).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import checked, is_within, need_tensor
from flambeau._dispatch.dispatch import cast
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.hints import Ints
from flambeau.autograd.function import Function
from flambeau.ops.creation.creation import full, tensor, zeros
from flambeau.ops.creation.ranges import arange
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import composite
from flambeau.ops.indices.indexing import _gather, _index
from flambeau.ops.losses.loss_reduction import reduced, reduction_name
from flambeau.ops.pointwise.elementwise import where
from flambeau.ops.reductions.reduction import logsumexp
from flambeau.ops.shapes.movement import cat, stack

_NEVER = float("-inf")


def _states(targets: Tensor, blank: int) -> tuple[Tensor, Tensor]:
    """The labels with blanks around them (N, 2·S + 1), and where s - 2 may come before s."""
    count, length = targets.shape
    blanks = full((count, length, 1), blank, dtype=D.int64, device=targets.device)
    pairs = cat([blanks, targets.unsqueeze(2)], 2).reshape((count, 2 * length))
    states = cat([pairs, full((count, 1), blank, dtype=D.int64, device=targets.device)], 1)
    if states.shape[1] < 3:
        return states, states != states
    skips = (states[:, 2:] != blank) & (states[:, 2:] != states[:, :-2])
    never = zeros((count, 2), dtype=D.bool_, device=targets.device)
    return states, cat([never, skips], 1)


def _shifted(a: Tensor, by: int) -> Tensor:
    """``a[:, s - by]`` at s, and -inf before the first."""
    by = min(by, a.shape[1])
    start = full((a.shape[0], by), _NEVER, dtype=a.dtype, device=a.device)
    return cat([start, a[:, : a.shape[1] - by]], 1)


def _lengths(lengths: tuple[int, ...], like: Tensor) -> Tensor:
    return tensor(list(lengths), dtype=D.int64, device=like.device)


def _forward(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: tuple[int, ...],
    target_lengths: tuple[int, ...],
    blank: int,
) -> tuple[Tensor, Tensor]:
    """The losses (N) and α (T, N, 2·S + 1)."""
    states, skips = _states(targets, blank)
    emitted = _gather(log_probs, 2, states.unsqueeze(0).expand((log_probs.shape[0], *states.shape)))
    place = arange(states.shape[1], device=targets.device)
    # The label of an empty target is not there to begin with.
    lengths = _lengths(target_lengths, targets).unsqueeze(1)
    alpha = emitted[0].masked_fill((place > 1) | ((place > 0) & (lengths == 0)), _NEVER)
    rows = [alpha]
    for t in range(1, log_probs.shape[0]):
        skipped = _shifted(alpha, 2).masked_fill(~skips, _NEVER)
        alpha = logsumexp(stack([alpha, _shifted(alpha, 1), skipped]), 0) + emitted[t]
        rows.append(alpha)
    alphas = stack(rows)
    inputs = _lengths(input_lengths, targets)
    steps = (inputs - 1).clamp(min=0).reshape((1, -1, 1))
    last = _gather(alphas, 0, steps.expand((1, *states.shape))).squeeze(0)
    # Nothing was heard: certain if nothing was said, else impossible.
    last = last.masked_fill((inputs == 0).unsqueeze(1), _NEVER)
    last = last.masked_fill((inputs == 0).unsqueeze(1) & (lengths == 0), 0)
    ends = _gather(last, 1, 2 * lengths)
    labels = _gather(last, 1, (2 * lengths - 1).clamp(min=0)).masked_fill(lengths == 0, _NEVER)
    return -logsumexp(cat([ends, labels], 1), 1), alphas


@composite(differentiable=False)
def _ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: tuple[int, ...],
    target_lengths: tuple[int, ...],
    blank: int,
    zero_infinity: bool,
) -> Tensor:
    """The loss of each element (N); targets (N, S), padded with any class.

    `zero_infinity` concerns the gradient of infinite losses, which then is 0.
    """
    return _forward(log_probs, targets, input_lengths, target_lengths, blank)[0]


@composite(differentiable=False)
def _ctc_loss_backward(
    grad: Tensor,
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: tuple[int, ...],
    target_lengths: tuple[int, ...],
    blank: int,
    zero_infinity: bool,
) -> Tensor:
    """The gradient of `ctc_loss` in normalised log-probabilities; 0 behind the end of an input."""
    losses, alphas = _forward(log_probs, targets, input_lengths, target_lengths, blank)
    states, skips = _states(targets, blank)
    time, count, width = alphas.shape
    index = states.unsqueeze(0).expand((time, count, width))
    emitted = _gather(log_probs, 2, index)
    place = arange(width, device=targets.device)
    ends = 2 * _lengths(target_lengths, targets).unsqueeze(1)
    final = (place == ends) | (place == ends - 1)
    inputs = _lengths(input_lengths, targets).unsqueeze(1)
    # A skip to s + 2 is possible from s if one from there back is.
    ahead = _shifted(cast(skips, log_probs.dtype).flip(1), 2).flip(1) > 0
    beta = full((count, width), _NEVER, dtype=log_probs.dtype, device=log_probs.device)
    rows = []
    for t in range(time - 1, -1, -1):
        back = beta.flip(1)
        skipped = _shifted(back, 2).flip(1).masked_fill(~ahead, _NEVER)
        onward = logsumexp(stack([beta, _shifted(back, 1).flip(1), skipped]), 0) + emitted[t]
        beta = where(inputs == t + 1, emitted[t].masked_fill(~final, _NEVER), onward)
        rows.append(beta)
    share = (alphas + stack(rows[::-1]) - emitted + losses.reshape((1, count, 1))).exp()
    visited = zeros(tuple(log_probs.shape), dtype=log_probs.dtype, device=log_probs.device)
    # An infinite loss has no gradient: inf - inf is NaN everywhere.
    visited = visited.scatter_add(2, index, share) + (losses - losses).reshape((1, count, 1))
    result = (log_probs.exp() - visited) * grad.reshape((1, count, 1))
    steps = arange(time, device=targets.device).reshape((time, 1, 1))
    outside = steps >= inputs.reshape((1, count, 1))
    if zero_infinity:
        outside = outside | (losses == float("inf")).reshape((1, count, 1))
    return result.masked_fill(outside, 0)


class _CTCLoss(Function):
    """Joins the two ops, whose gradients are no derivatives unless probabilities sum to 1."""

    generate_vmap_rule = True

    @staticmethod
    def forward(log_probs: Tensor, targets: Tensor, *rest: Any) -> Tensor:
        return _ctc_loss(log_probs, targets, *rest)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: object) -> None:
        ctx.save_for_backward(*inputs[:2])
        ctx.rest = inputs[2:]

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        grad = _CTCLossBackward.apply(grads[0], *ctx.saved_tensors, *ctx.rest)
        return grad, *(None,) * (1 + len(ctx.rest))


class _CTCLossBackward(Function):
    """The gradient, which has none itself, as in PyTorch."""

    generate_vmap_rule = True

    @staticmethod
    def forward(grad: Tensor, log_probs: Tensor, targets: Tensor, *rest: object) -> Tensor:
        return _ctc_loss_backward(grad, log_probs, targets, *rest)

    @staticmethod
    def setup_context(ctx: object, inputs: object, output: object) -> None:
        pass

    @staticmethod
    def backward(ctx: object, *grads: object) -> tuple[Any, ...]:
        raise RuntimeError("derivative for ctc_loss_backward is not implemented")


@public(method=False)
@takes_as_annotated
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Ints,
    target_lengths: Tensor | Ints,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """-log of the probability of the targets in any alignment (Graves et al., 2006).

    `log_probs` must be logarithms of probabilities that sum to 1 over the classes, as from
    `log_softmax`: the gradient is taken as if they did.  ``"mean"`` divides each loss by the
    length of its target (at least 1) and averages.  With `zero_infinity` infinite losses, of
    targets that do not fit into their input, count as 0 and have no gradient.

    Shapes: log_probs (T, N, C) or (T, C), targets (N, S) or all of them one after the other,
    input_lengths and target_lengths (N) or numbers; result () or, for ``"none"``, (N) or ().

    Raises:
        RuntimeError: shapes, dtypes or lengths do not fit, or a target is no class.
        ValueError: an unknown `reduction`.

    >>> import flambeau as fb
    >>> y = fb.zeros(3, 1, 2).log_softmax(2)
    >>> fb.ctc_loss(y, fb.tensor([[1]]), fb.tensor([3]), fb.tensor([1]))
    tensor(0.2877)
    """
    y = need_tensor(log_probs, "ctc_loss", "log_probs")
    t = need_tensor(targets, "ctc_loss", "targets")
    name = reduction_name(reduction)
    if y.dtype not in (D.float32, D.float64):
        raise NotImplementedError(f"ctc_loss: not implemented for log_probs of {y.dtype}")
    if y.dim() not in (2, 3):
        raise RuntimeError(f"ctc_loss: expected log_probs (T, N, C) or (T, C), got {list(y.shape)}")
    if t.dtype not in (D.int32, D.int64):
        raise RuntimeError(f"ctc_loss: expected targets of int32 or int64, got {t.dtype}")
    single = y.dim() == 2
    y = y.unsqueeze(1) if single else y
    if not 0 <= blank < y.shape[2]:
        raise RuntimeError(f"blank must be in label range: {blank} of {y.shape[2]} classes")
    steps = _given_lengths("input_lengths", input_lengths, y.shape[1])
    counts = _given_lengths("target_lengths", target_lengths, y.shape[1])
    if not y.numel():
        raise RuntimeError(f"log_probs tensor must not be empty, got shape {list(y.shape)}")
    for i, n in enumerate(steps):
        if n > y.shape[0]:
            raise RuntimeError(
                f"Expected input_lengths to have value at most {y.shape[0]}, but got value {n} "
                f"(while checking batch element {i})"
            )
    classes = y.shape[2]
    padded = _padded(cast(t, D.int64), counts, classes)
    losses = _CTCLoss.apply(y, padded, steps, counts, blank, zero_infinity)
    if zero_infinity:
        losses = losses.masked_fill(losses.detach() == float("inf"), 0)
    if name == "mean":
        sizes = [max(n, 1) for n in counts]
        one = len(set(sizes)) == 1
        losses = losses / (sizes[0] if one else tensor(sizes, dtype=y.dtype, device=y.device))
    return losses.squeeze(0) if single and name == "none" else reduced(losses, name)


def _given_lengths(name: str, lengths: Any, count: int) -> tuple[int, ...]:
    if isinstance(lengths, Tensor):
        if lengths.dtype.is_floating_point or lengths.dtype.is_complex:
            raise RuntimeError(f"{name} must be integral, got {lengths.dtype}")
        lengths = lengths.reshape(-1).tolist()
    found = tuple(lengths) if isinstance(lengths, Sequence) else (int(lengths),)
    if len(found) != count:
        raise RuntimeError(
            f"{name} must be of size batch_size: expected {count} lengths, got {len(found)}"
        )
    if found and min(found) < 0:
        raise RuntimeError(f"Expected {name} to be non-negative, got {min(found)}")
    return found


def _padded(targets: Tensor, counts: tuple[int, ...], classes: int) -> Tensor:
    """One row of classes per target, as long as the longest."""
    longest = max(counts, default=0)
    if targets.shape == (len(counts), longest) and is_within(targets, classes):
        return targets
    rows = _rows(targets, counts, longest)
    text = "ctc_loss: a target is not in [0, {})"
    return checked(rows, classes, RuntimeError, text, (classes,))


def _rows(targets: Tensor, counts: tuple[int, ...], longest: int) -> Tensor:
    """The same, not looked at; what lies behind a target is class 0."""
    lengths = _lengths(counts, targets).unsqueeze(1)
    place = arange(longest, device=targets.device)
    if targets.dim() == 1:
        if targets.shape[0] != sum(counts):
            raise RuntimeError(
                f"Expected targets to have size {sum(counts)} as the sum of target_lengths, but "
                f"got size {targets.shape[0]}"
            )
        if not targets.numel():
            return zeros((len(counts), longest), dtype=D.int64, device=targets.device)
        starts = _lengths(tuple(accumulate(counts, initial=0))[:-1], targets).unsqueeze(1)
        places = (starts + place).clamp(max=targets.shape[0] - 1)
        rows = _index(targets, (places,))
    elif targets.dim() == 2 and targets.shape[0] == len(counts):
        if targets.shape[1] < longest:
            raise RuntimeError(
                f"Expected targets to have size at least {longest} at dimension 1, but got size "
                f"{list(targets.shape)}"
            )
        rows = targets[:, :longest]
    else:
        raise RuntimeError(
            f"ctc_loss: expected targets ({len(counts)}, S) or one after the other, got shape "
            f"{list(targets.shape)}"
        )
    return rows.masked_fill(place >= lengths, 0)
