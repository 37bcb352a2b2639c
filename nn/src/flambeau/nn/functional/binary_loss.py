"""Cross entropy of yes-or-no targets, from probabilities and from scores."""

from __future__ import annotations

import flambeau as fb
from flambeau import Tensor
from flambeau.nn.functional._arguments import choose_reduction, readable
from flambeau.overrides import check_values, takes_as_annotated


@takes_as_annotated
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """-w·(t·log(x) + (1 - t)·log(1 - x)) for probabilities x, with logarithms not below -100.

    Shapes: target as input, weight broadcastable to it; result () or, for ``"none"``, as input.

    Raises:
        ValueError: the shapes differ, or an unknown `reduction`.
        RuntimeError: an element of `input` is not in [0, 1].

    >>> import flambeau as fb
    >>> fb.nn.functional.binary_cross_entropy(fb.tensor([0.5]), fb.tensor([1.0]))
    tensor(0.6931)
    """
    reduction = choose_reduction(reduction, size_average, reduce)
    if readable(input) and input.is_floating_point():
        check_values(input, 0, 1, "all elements of input should be between 0 and 1")
    return fb.binary_cross_entropy(input, target, weight, reduction)


@takes_as_annotated
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """`binary_cross_entropy` of sigmoid(x), computed from the scores x without overflow.

    `pos_weight` p multiplies the loss of positive targets:
    w·((1 - t)·x - (1 + (p - 1)·t)·log(sigmoid(x))).

    Shapes: target as input, weight and pos_weight broadcastable to it; result () or, for
    ``"none"``, as input.

    Raises:
        ValueError: the shapes differ, or an unknown `reduction`.

    >>> import flambeau as fb
    >>> fb.nn.functional.binary_cross_entropy_with_logits(fb.tensor([0.0]), fb.tensor([1.0]))
    tensor(0.6931)
    """
    reduction = choose_reduction(reduction, size_average, reduce)
    return fb.binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction)
