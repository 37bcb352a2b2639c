"""Losses of yes-or-no answers: binary cross entropy of scores."""

from __future__ import annotations

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import need_tensor
from flambeau._tensor.tensor import Tensor
from flambeau.ops.declaration.public import public
from flambeau.ops.losses.loss_reduction import reduced
from flambeau.ops.pointwise.elementwise import minimum


@public(method=False)
@takes_as_annotated
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """w·((1 - t)·x - (1 + (p - 1)·t)·log(sigmoid(x))) with the `pos_weight` p of positive targets.

    Shapes: target as input, weight and pos_weight broadcastable to it; result () or, for
    ``"none"``, as input.

    Raises:
        ValueError: the shapes of `input` and `target` differ, or an unknown `reduction`.

    >>> import flambeau as fb
    >>> fb.binary_cross_entropy_with_logits(fb.tensor([0.0]), fb.tensor([1.0]))
    tensor(0.6931)
    """
    x = need_tensor(input, "binary_cross_entropy_with_logits", "input")
    t = need_tensor(target, "binary_cross_entropy_with_logits", "target")
    if t.shape != x.shape:
        raise ValueError(f"Target size ({t.shape}) must be the same as input size ({x.shape})")
    # `minimum` halves its gradient at 0, which is what log(sigmoid(x)) needs there.
    log_yes = minimum(x, x.new_zeros(())) - x.abs().neg().exp().log1p()
    if pos_weight is not None:
        log_yes = log_yes * ((pos_weight - 1) * t + 1)
    loss = (1 - t) * x - log_yes
    if weight is not None:
        loss = loss * weight
    return reduced(loss, reduction)
