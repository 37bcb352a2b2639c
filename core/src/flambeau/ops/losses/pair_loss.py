"""Losses of pairs and triplets: which of them should be alike, or first."""

from __future__ import annotations

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import need_tensor
from flambeau._tensor.tensor import Tensor
from flambeau.ops.declaration.public import public
from flambeau.ops.losses.loss_reduction import reduced
from flambeau.ops.matrices.distance import pairwise_distance
from flambeau.ops.pointwise.elementwise import minimum

_TINY = 1e-12  # added to squared lengths, as PyTorch does


@public(method=False)
@takes_as_annotated
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """1 - cos(x1, x2) where the target is 1, max(0, cos(x1, x2) - `margin`) where it is -1.

    `reduction` is a name, or 0, 1 or 2 for none, mean and sum.

    Shapes: inputs (N, D) and target (N), or (D) and (); result () or, for ``"none"``, as target.

    Raises:
        RuntimeError: the shapes do not fit.

    >>> import flambeau as fb
    >>> x, y = fb.tensor([[1.0, 0.0]]), fb.tensor([[3.0, 4.0]])
    >>> fb.cosine_embedding_loss(x, y, fb.tensor([1]))
    tensor(0.4000)
    """
    x = need_tensor(input1, "cosine_embedding_loss", "input1")
    y = need_tensor(input2, "cosine_embedding_loss", "input2")
    t = need_tensor(target, "cosine_embedding_loss", "target")
    rank = t.dim() + 1
    if t.dim() > 1:
        raise RuntimeError(
            "0D or 1D target tensor expected, multi-target not supported, got shape "
            f"{list(t.shape)}"
        )
    if x.dim() != rank or y.dim() != rank:
        raise RuntimeError(
            f"{t.dim()}D target tensor expects {rank}D input tensors, but found inputs with sizes "
            f"{list(x.shape)} and {list(y.shape)}."
        )
    squares = ((x * x).sum(-1) + _TINY) * ((y * y).sum(-1) + _TINY)
    cosine = (x * y).sum(-1) / squares.sqrt()
    alike = (1 - cosine).masked_fill(t != 1, 0)
    unlike = (cosine - margin).clamp_min(0).masked_fill(t != -1, 0)
    return reduced(alike + unlike, reduction)


@public(method=False)
@takes_as_annotated
def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, reduction: str = "mean"
) -> Tensor:
    """x where the target is 1, max(0, `margin` - x) where it is -1.

    Shapes: target as input, or broadcastable; result () or, for ``"none"``, as input.

    >>> import flambeau as fb
    >>> fb.hinge_embedding_loss(fb.tensor([2.0, 0.25]), fb.tensor([1, -1]), reduction="none")
    tensor([2.0000, 0.7500])
    """
    x = need_tensor(input, "hinge_embedding_loss", "input")
    t = need_tensor(target, "hinge_embedding_loss", "target")
    apart = (margin - x).clamp_min(0).masked_fill(t == 1, 0)
    return reduced(apart + x.masked_fill(t == -1, 0), reduction)


@public(method=False)
@takes_as_annotated
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """max(0, -t·(x1 - x2) + `margin`): t = 1 wants x1 larger, t = -1 wants x2 larger.

    Shapes: all broadcastable; result () or, for ``"none"``, the common shape.

    >>> import flambeau as fb
    >>> fb.margin_ranking_loss(fb.tensor([1.0]), fb.tensor([3.0]), fb.tensor([1]))
    tensor(2.)
    """
    x, *_ = (
        need_tensor(t, "margin_ranking_loss", argument)
        for t, argument in ((input1, "input1"), (input2, "input2"), (target, "target"))
    )
    return reduced((-target * (x - input2) + float(margin)).clamp_min(0), reduction)


@public(method=False)
@takes_as_annotated
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """max(0, d(anchor, positive) - d(anchor, negative) + `margin`), d as `pairwise_distance`.

    With `swap` the second distance is the smaller of those from the anchor and from the positive
    example (Balntas et al., 2016).

    Shapes: all (N, D) or (D); result () or, for ``"none"``, (N).

    Raises:
        RuntimeError: the numbers of dimensions differ.

    >>> import flambeau as fb
    >>> a, p, n = fb.zeros(1, 1), fb.ones(1, 1), fb.tensor([[1.5]])
    >>> fb.triplet_margin_loss(a, p, n)
    tensor(0.5000)
    """
    dims = [
        need_tensor(t, "triplet_margin_loss", name).dim()
        for t, name in ((anchor, "anchor"), (positive, "positive"), (negative, "negative"))
    ]
    if len(set(dims)) > 1:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {dims[0]}D, positive {dims[1]}D, and negative {dims[2]}D "
            "inputs"
        )
    near = pairwise_distance(anchor, positive, p, eps)
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = minimum(far, pairwise_distance(positive, negative, p, eps))
    return reduced((margin + near - far).clamp_min(0), reduction)
