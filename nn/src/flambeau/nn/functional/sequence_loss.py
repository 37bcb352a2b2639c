"""Losses of sequences."""

from __future__ import annotations

from collections.abc import Sequence

import flambeau as fb
from flambeau import Tensor
from flambeau.nn.functional._arguments import check_reduction


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int] | int,
    target_lengths: Tensor | Sequence[int] | int,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """-log of the probability of the targets in any alignment (Graves et al., 2006).

    `log_probs` are those of `log_softmax`.  ``"mean"`` divides each loss by the length of its
    target and averages.  With `zero_infinity` targets that do not fit into their input count as 0
    and have no gradient.

    Shapes: log_probs (T, N, C) or (T, C), targets (N, S) or all of them one after the other,
    input_lengths and target_lengths (N) or numbers; result () or, for ``"none"``, (N) or ().

    Raises:
        ValueError: an unknown `reduction`.
        RuntimeError: shapes, dtypes or lengths do not fit, or a target is no class.

    >>> import flambeau as fb
    >>> y = fb.zeros(3, 1, 2).log_softmax(2)
    >>> fb.nn.functional.ctc_loss(y, fb.tensor([[1]]), fb.tensor([3]), fb.tensor([1]))
    tensor(0.2877)
    """
    check_reduction(reduction)
    return fb.ctc_loss(
        log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity
    )
