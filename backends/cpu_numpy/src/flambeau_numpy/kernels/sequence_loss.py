"""The loss of sequences of unknown alignment, and its gradient; the op explains it."""

from __future__ import annotations

import numpy as np

from flambeau_numpy.pointwise import Array
from flambeau_numpy.silence import quiet

_NEVER = -np.inf


def _states(log_probs: Array, targets: Array, blank: int) -> tuple[Array, Array, Array]:
    """The labels with blanks around them, what each emits at each time, and 0 where s - 2 may
    come before s, else -inf."""
    count, length = targets.shape
    states = np.full((count, 2 * length + 1), blank)
    states[:, 1::2] = targets
    skips = np.full(states.shape, _NEVER, log_probs.dtype)
    allowed = (states[:, 2:] != blank) & (states[:, 2:] != states[:, :-2])
    skips[:, 2:][allowed] = 0
    emitted = log_probs[:, np.arange(count)[:, None], states]
    return states, emitted, skips


def _walk(start: Array, emitted: Array, skips: Array, restarts: dict[int, Array]) -> Array:
    """α of all times: from `start`, or anew at the times in `restarts` where they are not NaN."""
    time, count, width = emitted.shape
    # Two states that are never reached stand before the first, so that shifts are slices.
    rows = np.full((time, count, width + 2), _NEVER, emitted.dtype)
    rows[0, :, 2:] = start
    for t in range(1, time):
        before = rows[t - 1]
        step = np.logaddexp(before[:, 2:], before[:, 1:-1])
        np.logaddexp(step, before[:, :-2] + skips, out=step)
        step += emitted[t]
        if t in restarts:
            anew = restarts[t]
            np.copyto(step, anew, where=~np.isnan(anew))
        rows[t, :, 2:] = step
    return rows[:, :, 2:]


def _forward(
    log_probs: Array,
    targets: Array,
    input_lengths: tuple[int, ...],
    target_lengths: tuple[int, ...],
    blank: int,
) -> tuple[Array, Array]:
    _, emitted, skips = _states(log_probs, targets, blank)
    lengths, inputs = np.array(target_lengths), np.array(input_lengths)
    place = np.arange(emitted.shape[2])
    begins = (place == 0) | ((place == 1) & (lengths[:, None] > 0))
    alphas = _walk(np.where(begins, emitted[0], _NEVER), emitted, skips, {})
    each = np.arange(len(lengths))
    last = alphas[np.maximum(inputs - 1, 0), each]
    last[inputs == 0] = _NEVER
    last[(inputs == 0) & (lengths == 0)] = 0
    labels = np.where(lengths > 0, last[each, np.maximum(2 * lengths - 1, 0)], _NEVER)
    losses = -np.logaddexp(last[each, 2 * lengths], labels)
    return losses.astype(log_probs.dtype, copy=False), alphas


@quiet
def ctc_loss(
    log_probs: Array,
    targets: Array,
    input_lengths: tuple[int, ...],
    target_lengths: tuple[int, ...],
    blank: int,
    zero_infinity: bool,
) -> Array:
    """The loss of each element."""
    return _forward(log_probs, targets, input_lengths, target_lengths, blank)[0]


@quiet
def ctc_loss_backward(
    grad: Array,
    log_probs: Array,
    targets: Array,
    input_lengths: tuple[int, ...],
    target_lengths: tuple[int, ...],
    blank: int,
    zero_infinity: bool,
) -> Array:
    """exp(log_probs) minus the posterior of each class, times `grad`; 0 behind an input's end."""
    losses, alphas = _forward(log_probs, targets, input_lengths, target_lengths, blank)
    states, emitted, skips = _states(log_probs, targets, blank)
    time, count, width = emitted.shape
    # Backwards in time and from the last state to the first, β walks as α does.
    turned = np.full_like(skips, _NEVER)
    turned[:, 2:] = skips[:, :1:-1]
    mirrored = emitted[::-1, :, ::-1]
    ends, place = 2 * np.array(target_lengths)[:, None], np.arange(width)
    final = (place == ends) | (place == ends - 1)
    restarts: dict[int, Array] = {}
    for i, length in enumerate(input_lengths):
        if length:
            t = time - length
            anew = restarts.setdefault(t, np.full((count, width), np.nan, log_probs.dtype))
            anew[i] = np.where(final[i], emitted[length - 1, i], _NEVER)[::-1]
    start = restarts.pop(0, np.full((count, width), _NEVER, log_probs.dtype))
    betas = _walk(np.where(np.isnan(start), _NEVER, start), mirrored, turned, restarts)
    share = np.exp(alphas + betas[::-1, :, ::-1] - emitted + losses[:, None])
    visited = np.zeros(log_probs.shape, log_probs.dtype)
    each = np.arange(count)
    for s in range(width):  # one state at a time: two of them may be the same class
        visited[:, each, states[:, s]] += share[:, :, s]
    visited += (losses - losses)[:, None]  # an infinite loss has no gradient
    result = (np.exp(log_probs) - visited) * grad[:, None]
    outside = np.arange(time)[:, None] >= np.array(input_lengths)
    if zero_infinity:
        outside |= losses == np.inf
    result[outside] = 0
    return result.astype(log_probs.dtype, copy=False)


KERNELS = {"ctc_loss": ctc_loss, "ctc_loss_backward": ctc_loss_backward}
