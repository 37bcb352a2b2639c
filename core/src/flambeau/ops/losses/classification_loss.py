"""Losses of classification: negative log-likelihood and cross entropy."""

from __future__ import annotations

import operator

from flambeau._dispatch.arguments import checked, is_within, need_number, need_tensor
from flambeau._dispatch.dispatch import cast
from flambeau._dispatch.halves import is_half
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau.ops.creation.creation import zeros
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import composite
from flambeau.ops.indices.indexing import _gather, _index, _scatter
from flambeau.ops.layers import gradient_rules as _rules
from flambeau.ops.layers.activation import _log_softmax, log_softmax, need_floating, wide
from flambeau.ops.losses.loss_reduction import check_reduction

_CLASS_WEIGHT = (
    "the derivative for 'weight', the rescaling of classes, is not implemented: the weights of "
    "nll_loss must not require a gradient"
)


def _counted(
    like: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int
) -> tuple[Tensor, Tensor]:
    """Classes as a vector, 0 where they are ignored, and the weights of the rows, 0 there too."""
    target = target.reshape((-1,))
    counts = target != ignore_index
    classes = target.masked_fill(~counts, 0)
    factors = cast(counts, like.dtype)
    if weight is not None:
        factors = factors * _index(wide(weight), (classes,))
    return classes, factors


@composite(results=2)
def _nll_loss(
    log_probs: Tensor, target: Tensor, weight: Tensor | None, reduction: str, ignore_index: int
) -> tuple[Tensor, Tensor]:
    """-weight[t]·log_probs[i, t] of each row, its weighted mean or its sum; and the sum of weights.

    Rows whose target is `ignore_index` give 0 and have no weight.  For ``"none"`` the sum is 0.
    """
    rows = wide(log_probs).reshape((-1, log_probs.shape[-1]))
    classes, factors = _counted(rows, target, weight, ignore_index)
    chosen = _gather(rows, 1, classes.unsqueeze(1)).squeeze(1)
    # Not the product alone: an ignored row may be infinite.
    ignored = target.reshape((-1,)) == ignore_index
    loss, total = (chosen * -factors).masked_fill(ignored, 0), factors.sum()
    if reduction == "none":
        loss, total = loss.reshape(target.shape), total * 0
    else:
        loss = loss.sum() / total if reduction == "mean" else loss.sum()
    return cast(loss, log_probs.dtype), cast(total, log_probs.dtype)


@_nll_loss.gradient("log_probs")
def _(F, g, log_probs_shape, target, weight, reduction, ignore_index, result1):
    if g[0] is None:
        return None  # the sum of weights does not depend on them
    return F.nll_loss_backward(
        g[0], log_probs_shape, target, weight, reduction, ignore_index, result1
    )


@_nll_loss.gradient("target")
def _(F, g):
    return None


@_nll_loss.gradient("weight")
def _(F, g):
    raise NotImplementedError(_CLASS_WEIGHT)


@composite
def _nll_loss_backward(
    grad: Tensor,
    log_probs_shape: tuple[int, ...],
    target: Tensor,
    weight: Tensor | None,
    reduction: str,
    ignore_index: int,
    total_weight: Tensor,
) -> Tensor:
    """-grad·weight[t] at the place of each target, divided by the sum of weights for ``"mean"``."""
    g = wide(grad)
    classes, factors = _counted(g, target, weight, ignore_index)
    share = g.reshape((-1,)) if reduction == "none" else g
    if reduction == "mean":
        share = share / wide(total_weight)
    ignored = target.reshape((-1,)) == ignore_index
    values = cast((share * -factors).masked_fill(ignored, 0), grad.dtype)
    empty = zeros((*classes.shape, log_probs_shape[-1]), dtype=grad.dtype, device=grad.device)
    return _scatter(empty, 1, classes.unsqueeze(1), values.unsqueeze(1)).reshape(log_probs_shape)


_nll_loss_backward.demand(_rules.nll_loss_backward)


@_nll_loss_backward.gradient("grad")
def _(F, g, target, weight, reduction, ignore_index):
    # Linear in `grad`, with the coefficients of the loss itself.
    return F.nll_loss(g, target, weight, reduction, ignore_index)[0]


@_nll_loss_backward.gradient("target", "total_weight")
def _(F, g):
    return None, None  # the sum of weights is a function of target and weight


@_nll_loss_backward.gradient("weight")
def _(F, g):
    raise NotImplementedError(_CLASS_WEIGHT)


@composite(results=3, title="NllLossBackward0")
def _cross_entropy(
    input: Tensor, target: Tensor, ignore_index: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The mean of -log softmax(x)[t] over rows that count; all log-probabilities; their number."""
    log_probs = _log_softmax(input, input.dim() - 1)
    loss, count = _nll_loss(log_probs, target, None, "mean", ignore_index)
    return loss, log_probs, count


@_cross_entropy.gradient("input")
def _(F, g, target, ignore_index, result1, result2):
    grad = None
    if g[0] is not None:
        grad = F.cross_entropy_backward(g[0], result1, target, ignore_index, result2)
    if g[1] is not None:
        more = F.log_softmax_backward(g[1], result1, len(result1.shape) - 1)
        grad = more if grad is None else F.add(grad, more)
    return grad


@_cross_entropy.gradient("target")
def _(F, g):
    return None


@composite(title="NllLossBackwardBackward0")
def _cross_entropy_backward(
    grad: Tensor, log_probs: Tensor, target: Tensor, ignore_index: int, count: Tensor
) -> Tensor:
    """grad / count · (softmax - one-hot of the target), 0 in ignored rows."""
    rows = wide(log_probs).reshape((-1, log_probs.shape[-1]))
    classes = target.masked_fill(target == ignore_index, 0).reshape((-1, 1))
    probs = rows.exp()
    chosen = _gather(probs, 1, classes) - 1
    spread = _scatter(probs, 1, classes, chosen) * (wide(grad) / wide(count))
    spread = spread.masked_fill((target == ignore_index).reshape((-1, 1)), 0)
    return cast(spread, log_probs.dtype).reshape(log_probs.shape)


_cross_entropy_backward.demand(_rules.cross_entropy_backward)


@_cross_entropy_backward.gradient("grad")
def _(F, g, grad, log_probs, target, ignore_index, count):
    # Linear in `grad`: its gradient is the result for 1, weighted.
    unit = F.cross_entropy_backward(F.scalar(1, grad), log_probs, target, ignore_index, count)
    return F.sum(F.mul(g, unit), tuple(range(len(g.shape))), False)


@_cross_entropy_backward.gradient("log_probs")
def _(F, g, grad, log_probs, target, ignore_index, count):
    counts = F.ne(target, F.scalar(ignore_index, target))
    share = F.where(counts, F.div(grad, count), F.scalar(0, grad))
    return F.mul(F.mul(g, F.exp(log_probs)), F.reshape(share, (*target.shape, 1)))


@_cross_entropy_backward.gradient("target", "count")
def _(F, g):
    return None, None


@public(method=False)
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int = -100,
) -> Tensor:
    """-w[t]·x[t] for log-probabilities x and classes t; ``"mean"`` divides by the sum of w[t].

    Targets equal to `ignore_index` count neither in the sum nor in the divisor.

    Shapes: input (C), (N, C) or (N, C, d1, ...), target without C, weight (C); result () or, for
    ``"none"``, as target.

    Raises:
        ValueError: the batch sizes differ, or an unknown `reduction`.
        RuntimeError: other shapes or dtypes do not fit, or `weight` requires a gradient.
        IndexError: a target is no class.

    >>> import flambeau as fb
    >>> fb.nll_loss(fb.tensor([[-0.5, -1.0]]), fb.tensor([0]))
    tensor(0.5000)
    """
    check_reduction(reduction)
    x, rows, classes = _rows_and_classes(input, target, weight, ignore_index)
    loss = _nll_loss.head(rows, classes, weight, reduction, ignore_index)
    return loss.reshape(target.shape) if reduction == "none" and len(x._a.shape) == 2 else loss


def _rows_and_classes(
    input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Log-probabilities as they are, with classes last, and the classes of the rows."""
    x = need_floating(input, "nll_loss", "input")
    if weight is not None and need_tensor(weight, "nll_loss", "weight").requires_grad:
        raise RuntimeError(_CLASS_WEIGHT)
    classes = class_targets("nll_loss", x, target, weight, ignore_index)
    rank = len(x._a.shape)
    if rank == 1:
        classes = classes.reshape(())
    elif rank == 2 and len(classes._a.shape) != 1:
        classes = classes.reshape((-1,))
    return x, x if rank <= 2 else _classes_last(x), classes


@public(method=False)
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Tensor:
    """-w[t]·log(softmax(x)[t]) for scores x and classes t; -Σ w·t·log(softmax(x)) for a floating t.

    `label_smoothing` ε mixes the target with the uniform distribution, (1 - ε)·t + ε / C.  With
    classes, ``"mean"`` divides by the sum of w[t] over the targets that are not `ignore_index`;
    with probabilities, by the batch size.

    Shapes: input (C), (N, C) or (N, C, d1, ...), target without C or as input, weight (C);
    result () or, for ``"none"``, without C.

    Raises:
        ValueError: the batch sizes differ, or an unknown `reduction`.
        RuntimeError: other shapes or dtypes do not fit, or ε is not in [0, 1].
        IndexError: a target is no class.

    >>> import flambeau as fb
    >>> fb.cross_entropy(fb.tensor([[2.0, 0.0]]), fb.tensor([0]))
    tensor(0.1269)
    """
    check_reduction(reduction)
    x = need_floating(input, "cross_entropy", "input")
    t = need_tensor(target, "cross_entropy", "target")
    if not 0 <= need_number(label_smoothing, "cross_entropy", "label_smoothing") <= 1:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    if x._a.shape == t._a.shape:
        return _probability_loss(x, t, weight, reduction, ignore_index, label_smoothing)
    if reduction == "mean" and weight is None and not label_smoothing:
        t = class_targets("cross_entropy", x, t, None, ignore_index)
        rank = len(x._a.shape)
        rows = x if rank == 2 else x.unsqueeze(0) if rank == 1 else _classes_last(x)
        flat = t if rank > 2 or len(t._a.shape) == 1 else t.reshape((-1,))
        return _cross_entropy.head(rows, flat, ignore_index)
    log_probs = log_softmax(x, min(1, x.dim() - 1)) if x.dim() else x
    if not label_smoothing:
        return nll_loss(log_probs, t, weight, reduction, ignore_index)
    if reduction == "mean":
        _, rows, classes = _rows_and_classes(log_probs, t, weight, ignore_index)
        loss, total = _nll_loss.run(rows, classes, weight, reduction, ignore_index)
        if weight is None and is_half(total.dtype):
            total = (classes != ignore_index).sum()  # which a half may not hold
        uniform = _uniform_loss(log_probs, t, weight, ignore_index).sum() / total.detach()
    else:
        loss = nll_loss(log_probs, t, weight, reduction, ignore_index)
        uniform = _uniform_loss(log_probs, t, weight, ignore_index)
        uniform = uniform.sum() if reduction == "sum" else uniform
    count = x.shape[min(1, x.dim() - 1)]
    return loss * (1 - label_smoothing) + uniform * (label_smoothing / count)


def class_targets(
    name: str, x: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int
) -> Tensor:
    """The classes as int64, after the checks of a loss of `x` over classes.

    Raises:
        ValueError: the batch sizes differ.
        RuntimeError: other shapes or dtypes do not fit, or `weight` requires a gradient.
        IndexError: a target is no class.
    """
    scores, given = tuple(x._a.shape), tuple(need_tensor(target, name, "target")._a.shape)
    if not scores:
        raise ValueError(f"{name}: Expected 1 or more dimensions (got 0)")
    if target.dtype not in (D.int64, D.uint8):
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {target.dtype}")
    _check_target_shape(scores, given)
    if type(ignore_index) is not int:
        try:
            operator.index(ignore_index)
        except Exception as error:
            raise TypeError(
                f"{name}(): argument 'ignore_index' must be int, not {type(ignore_index).__name__}"
            ) from error
    classes = scores[min(1, len(scores) - 1)]
    if weight is not None:
        _check_class_weight(x, weight, classes)
    if target.dtype is D.int64 and is_within(target, classes):
        return target
    text = "Target {index} is out of bounds."
    return checked(cast(target, D.int64), classes, IndexError, text, (), allowed=ignore_index)


def _check_target_shape(scores: tuple[int, ...], given: tuple[int, ...]) -> None:
    batch = given[0] if given else 1
    if len(scores) == 1:
        if len(given) > 1 or batch != 1:
            raise ValueError(
                f"Expected one target for an input without a batch {scores}, got shape {given}"
            )
        return
    if len(scores) == 2 and len(given) > 1:
        raise RuntimeError(
            f"0D or 1D target tensor expected, multi-target not supported, got shape {given}"
        )
    if scores[0] != batch:
        raise ValueError(
            f"Expected input batch_size ({scores[0]}) to match target batch_size ({batch})."
        )
    if len(scores) > 2 and given != (batch, *scores[2:]):
        raise RuntimeError(f"Expected target size {[batch, *scores[2:]]}, got {list(given)}")


def _check_class_weight(x: Tensor, weight: Tensor, classes: int) -> None:
    if tuple(need_tensor(weight, "cross_entropy", "weight").shape) != (classes,):
        raise RuntimeError(
            f"weight tensor should be defined either for all {classes} classes or no classes but "
            f"got weight tensor of shape: {list(weight.shape)}"
        )
    if weight.dtype is not x.dtype:
        raise RuntimeError(
            f"expected weight to have the input's dtype {x.dtype}, but found {weight.dtype}"
        )


def _classes_last(x: Tensor) -> Tensor:
    return x.permute((0, *range(2, x.dim()), 1))


def _along_classes(weight: Tensor, x: Tensor) -> Tensor:
    return weight.reshape((-1, *(1,) * max(x.dim() - 2, 0)))


def _uniform_loss(
    log_probs: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int
) -> Tensor:
    """The losses of a target that gives 1 to every class, at the places that count."""
    if weight is not None:
        log_probs = log_probs * _along_classes(weight, log_probs)
    loss = log_probs.sum(min(1, log_probs.dim() - 1)).neg()
    return loss.masked_fill(target == ignore_index, 0)


def _probability_loss(
    x: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: str,
    ignore_index: int,
    label_smoothing: float,
) -> Tensor:
    """Cross entropy with a target that gives a probability to every class."""
    if not target.dtype.is_floating_point:
        raise RuntimeError(
            f"Expected floating point type for target with class probabilities, got {target.dtype}"
        )
    if ignore_index >= 0:
        raise RuntimeError(
            f"ignore_index is not supported for floating point target, got {ignore_index}"
        )
    dim = min(1, x.dim() - 1)
    classes = x.shape[dim]
    if weight is not None:
        _check_class_weight(x, weight, classes)
    if label_smoothing:
        target = target * (1 - label_smoothing) + label_smoothing / classes
    terms = log_softmax(x, dim) * target
    if weight is not None:
        terms = terms * _along_classes(weight, x)
    if reduction == "none":
        return terms.sum(dim).neg()
    total = terms.sum().neg()
    if reduction == "sum":
        return total
    return total / (x.numel() // classes if classes else 0)  # of no classes: nan, as in PyTorch
