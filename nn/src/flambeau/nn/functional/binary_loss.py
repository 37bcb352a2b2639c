"""Cross entropy of yes-or-no targets, from probabilities and from scores."""

from __future__ import annotations

from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.autograd import Function
from flambeau.nn.functional._arguments import choose_reduction, readable, reduced
from flambeau.overrides import takes_as_annotated


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
    if target.shape != input.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size "
            f"({input.shape}) is deprecated. Please ensure they have the same size."
        )
    if target.dtype is not input.dtype:
        raise RuntimeError(
            f"binary_cross_entropy: target must have the input's dtype {input.dtype}, "
            f"got {target.dtype}"
        )
    if readable(input):
        inside = ((input >= 0) & (input <= 1)).all()
        fb._assert_async(inside, "all elements of input should be between 0 and 1")
    loss = _BinaryCrossEntropy.apply(input, target)
    if weight is not None:
        loss = loss * weight
    return reduced(loss, reduction)


class _BinaryCrossEntropy(Function):
    """The unreduced loss; its gradient stays finite where a probability is exactly 0 or 1."""

    generate_vmap_rule = True

    @staticmethod
    def forward(input: Tensor, target: Tensor) -> Tensor:
        log_no = input.neg().log1p().clamp(min=-100)
        return (target - 1) * log_no - target * input.log().clamp(min=-100)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: object) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None]:
        (grad,) = grads
        input, target = ctx.saved_tensors
        to_input = to_target = None
        if ctx.needs_input_grad[0]:
            to_input = grad * (input - target) / (input * (1 - input)).clamp(min=1e-12)
        if ctx.needs_input_grad[1]:
            to_target = grad * (input.neg().log1p() - input.log())
        return to_input, to_target


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
