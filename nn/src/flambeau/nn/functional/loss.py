"""Losses of classification: negative log-likelihood and cross entropy."""

from __future__ import annotations

import flambeau as fb
from flambeau import Tensor, ops
from flambeau.nn.functional._arguments import (
    choose_reduction,
    readable,
    reduced,
    require_float,
)

_CLASS_DTYPES = (fb.int64, fb.uint8)


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
    target = _checked_classes(input, target, weight, ignore_index)
    if input.dim() <= 2:
        return ops.nll_loss(input, target, weight, reduction, ignore_index)[0]
    flat = ops.nll_loss(_rows(input), target.reshape(-1), weight, reduction, ignore_index)[0]
    return flat.reshape(target.shape) if reduction == "none" else flat


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
    if size_average is not None or reduce is not None or reduction != "mean":
        reduction = choose_reduction(reduction, size_average, reduce)
    if input.shape == target.shape:
        return _probability_loss(input, target, weight, ignore_index, reduction, label_smoothing)
    _check_smoothing(label_smoothing)
    if reduction == "mean" and weight is None and label_smoothing == 0.0:
        target = _checked_classes(input, target, None, ignore_index)
        if len(input.shape) != 2:
            input = input.unsqueeze(0) if len(input.shape) == 1 else _rows(input)
            target = target.reshape(-1)
        return ops.cross_entropy(input, target, ignore_index)[0]
    log_probs = input.log_softmax(min(1, input.dim() - 1))
    loss = nll_loss(log_probs, target, weight, ignore_index=ignore_index, reduction=reduction)
    if label_smoothing == 0.0:
        return loss
    smooth = _uniform_loss(log_probs, target, weight, ignore_index, reduction)
    classes = input.shape[min(1, input.dim() - 1)]
    return (1 - label_smoothing) * loss + (label_smoothing / classes) * smooth


def _uniform_loss(
    log_probs: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str
) -> Tensor:
    """The loss of a target that gives 1 to every class, at the places that count."""
    dim = min(1, log_probs.dim() - 1)
    if weight is not None:
        log_probs = log_probs * _along(weight, dim, log_probs.dim())
    ignored = target == ignore_index
    loss = log_probs.sum(dim).neg().masked_fill(ignored, 0.0)
    if reduction != "mean":
        return reduced(loss, reduction)
    if weight is None:
        return loss.sum() / (~ignored).sum()
    classes = target.masked_fill(ignored, 0).to(fb.int64)
    counted = weight[classes].masked_fill(ignored, 0.0)
    return loss.sum() / counted.sum()


def _probability_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
    label_smoothing: float,
) -> Tensor:
    """Cross entropy of a target that gives a probability to every class."""
    if not target.dtype.is_floating_point:
        raise RuntimeError(
            "Expected floating point type for target with class probabilities, "
            f"got {target.dtype}: for class indices leave out the class dimension"
        )
    if ignore_index >= 0:
        raise RuntimeError(
            "ignore_index is not supported for floating point target, "
            f"got ignore_index={ignore_index}"
        )
    _check_smoothing(label_smoothing)
    dim = min(1, input.dim() - 1)
    classes = input.shape[dim]
    if weight is not None and tuple(weight.shape) != (classes,):
        raise RuntimeError(f"cross_entropy: {_wrong_weight(weight, classes)}")
    if label_smoothing > 0.0:
        target = target * (1 - label_smoothing) + label_smoothing / classes
    terms = input.log_softmax(dim) * target
    if weight is not None:
        terms = terms * _along(weight, dim, input.dim())
    if reduction == "none":
        return terms.sum(dim).neg()
    total = terms.sum().neg()
    return total if reduction == "sum" else total / (input.numel() / classes)


def _rows(input: Tensor) -> Tensor:
    """(N, C, d1, ...) as (N·d1·..., C), in the order of the target's elements."""
    return input.movedim(1, -1).reshape(-1, input.shape[1])


def _along(weight: Tensor, dim: int, ndim: int) -> Tensor:
    return weight.reshape((-1,) + (1,) * (ndim - dim - 1))


def _checked_classes(
    input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int
) -> Tensor:
    """The target as int64, if shapes, dtype and, where it can be read, range are right."""
    require_float(input, "nll_loss")
    scores, classes = tuple(input.shape), tuple(target.shape)
    if not scores:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    if target.dtype not in _CLASS_DTYPES:
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {target.dtype}")
    if len(scores) == 1:
        if len(classes) > 1 or target.numel() != 1:
            raise ValueError(
                f"Expected one target for an input without a batch {scores}, got shape {classes}"
            )
    elif len(scores) == 2 and len(classes) > 1:
        raise RuntimeError(
            f"0D or 1D target tensor expected, multi-target not supported, got shape {classes}"
        )
    elif classes != (scores[0], *scores[2:]):
        if scores[0] != (classes[0] if classes else 1):
            raise ValueError(
                f"Expected input batch_size ({scores[0]}) to match target batch_size "
                f"({classes[0] if classes else 1})."
            )
        if scores[2:] or classes[1:]:
            raise RuntimeError(
                f"Expected target size {[scores[0], *scores[2:]]}, got {list(classes)}"
            )
    if weight is not None:
        count = scores[min(1, len(scores) - 1)]
        if weight.numel() != count or weight.dim() != 1:
            raise RuntimeError(_wrong_weight(weight, count))
        if weight.dtype is not input.dtype:
            raise RuntimeError(
                f"weight must have the dtype of the input, got {weight.dtype} and {input.dtype}"
            )
    if target.dtype is not fb.int64:
        target = target.to(fb.int64)
    if readable(target) and target.numel():
        count = scores[min(1, len(scores) - 1)]
        if int(target.amin()) < 0 or int(target.amax()) >= count:
            wrong = ((target < 0) | (target >= count)) & (target != ignore_index)
            if bool(wrong.any()):
                raise IndexError(
                    f"Target {int(target[wrong][0])} is out of bounds. "
                    f"The input has {count} classes and ignore_index is {ignore_index}"
                )
    return target


def _wrong_weight(weight: Tensor, classes: int) -> str:
    return (
        f"weight tensor should be defined either for all {classes} classes or no classes "
        f"but got weight tensor of shape: {list(weight.shape)}"
    )


def _check_smoothing(label_smoothing: float) -> None:
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
