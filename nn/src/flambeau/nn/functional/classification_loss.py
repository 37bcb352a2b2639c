"""Losses of classification: negative log-likelihood and cross entropy."""

from __future__ import annotations

import flambeau as fb
from flambeau import Tensor
from flambeau.nn.functional._arguments import choose_reduction


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """-w[t]·x[t] for log-probabilities x and classes t; ``"mean"`` divides by the sum of w[t].

    Targets equal to `ignore_index` count neither in the sum nor in the divisor.

    Shapes: input (C), (N, C) or (N, C, d1, ...), target without C, weight (C); result () or, for
    ``"none"``, as target.

    Raises:
        ValueError: the batch sizes differ, or an unknown `reduction`.
        RuntimeError: other shapes or the dtype of the target do not fit.
        IndexError: a target is no class.

    >>> import flambeau as fb
    >>> fb.nn.functional.nll_loss(fb.tensor([[-0.5, -1.0]]), fb.tensor([0]))
    tensor(0.5000)
    """
    reduction = choose_reduction(reduction, size_average, reduce)
    return fb.nll_loss(input, target, weight, reduction, ignore_index)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """-w[t]·log(softmax(x)[t]) for scores x and classes t, or -Σ w·t·log(softmax(x)).

    The second form is for a floating t, the probabilities of the classes.  `label_smoothing` ε
    mixes the target with the uniform distribution, (1 - ε)·t + ε / C.  With classes, ``"mean"``
    divides by the sum of w[t] over the targets that are not `ignore_index`; with probabilities, by
    the number of targets.

    Shapes: input (C), (N, C) or (N, C, d1, ...), target without C or as input, weight (C);
    result () or, for ``"none"``, without C.

    Raises:
        ValueError: the batch sizes differ, or an unknown `reduction`.
        RuntimeError: other shapes or the dtype of the target do not fit, or ε is not in [0, 1].
        IndexError: a target is no class.

    >>> import flambeau as fb
    >>> fb.nn.functional.cross_entropy(fb.tensor([[2.0, 0.0]]), fb.tensor([0]))
    tensor(0.1269)
    """
    reduction = choose_reduction(reduction, size_average, reduce)
    return fb.cross_entropy(input, target, weight, reduction, ignore_index, label_smoothing)
