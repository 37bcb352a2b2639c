"""Losses of yes-or-no answers: binary cross entropy of probabilities and of scores."""

from __future__ import annotations

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import need_tensor
from flambeau._dispatch.dispatch import cast
from flambeau._tensor.tensor import Tensor
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import composite
from flambeau.ops.layers.activation import log_sigmoid, need_floating, wide
from flambeau.ops.losses.loss_reduction import check_reduction, reduced


@composite
def _binary_cross_entropy(input: Tensor, target: Tensor) -> Tensor:
    """The loss of each probability, with logarithms not below -100."""
    x, t = wide(input), wide(target)
    log_no, log_yes = (y.clamp(min=-100.0) for y in (x.neg().log1p(), x.log()))
    return cast((t - 1) * log_no - t * log_yes, input.dtype)


@_binary_cross_entropy.gradient("input")
def _(F, g, input, target):
    # Finite where a probability is 0 or 1.
    spread = F.mul(input, F.sub(F.scalar(1.0, g), input))
    return F.div(F.mul(g, F.sub(input, target)), F.maximum(spread, F.scalar(1e-12, g)))


@_binary_cross_entropy.gradient("target")
def _(F, g, input):
    return F.mul(g, F.sub(F.log1p(F.neg(input)), F.log(input)))


@public(method=False)
@takes_as_annotated
def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """-w·(t·log(x) + (1 - t)·log(1 - x)) for probabilities x, with logarithms not below -100.

    Shapes: target as input, weight broadcastable to it; result () or, for ``"none"``, as input.

    Raises:
        ValueError: the shapes of `input` and `target` differ, or an unknown `reduction`.
        RuntimeError: their dtypes do.
        NotImplementedError: the dtype is not floating.

    >>> import flambeau as fb
    >>> fb.binary_cross_entropy(fb.tensor([0.5]), fb.tensor([1.0]))
    tensor(0.6931)
    """
    check_reduction(reduction)
    x = need_tensor(input, "binary_cross_entropy", "input")
    t = need_tensor(target, "binary_cross_entropy", "target")
    if t._a.shape != x._a.shape:
        raise ValueError(
            f"Using a target size ({t.shape}) that is different to the input size ({x.shape}) is "
            "deprecated. Please ensure they have the same size."
        )
    if t.dtype is not x.dtype:
        raise RuntimeError(
            f"binary_cross_entropy: target must have the input's dtype {x.dtype}, got {t.dtype}"
        )
    loss = _binary_cross_entropy.run(need_floating(x, "binary_cross_entropy", "input"), t)
    return reduced(loss if weight is None else loss * weight, reduction)


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
    log_yes = log_sigmoid(x)
    if pos_weight is not None:
        log_yes = log_yes * ((pos_weight - 1) * t + 1)
    loss = (1 - t) * x - log_yes
    if weight is not None:
        loss = loss * weight
    return reduced(loss, reduction)
