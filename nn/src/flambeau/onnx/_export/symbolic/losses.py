"""Losses."""

from __future__ import annotations

from typing import Any

import flambeau as fb
from flambeau.onnx._export.errors import UnsupportedOperatorError
from flambeau.onnx._export.graph import Graph, Value
from flambeau.onnx._export.symbolic.elementwise import along, pair
from flambeau.onnx._export.table import symbolic

REDUCTIONS = ("none", "mean", "sum")


def reduced(g: Graph, loss: Value, reduction: int) -> Value:
    """A loss by its reduction: 0 for none, 1 for the mean, 2 for the sum."""
    if reduction == 0:
        return loss
    return g.reduce("ReduceMean" if reduction == 1 else "ReduceSum", loss)


@symbolic("mse_loss")
def mse_loss(g: Graph, self: Value, target: Value, reduction: int = 1) -> Value:
    self, target = pair(g, self, target)
    apart = g.op("Sub", self, target)
    return reduced(g, g.op("Mul", apart, apart), reduction)


@symbolic("l1_loss")
def l1_loss(g: Graph, self: Value, target: Value, reduction: int = 1) -> Value:
    return reduced(g, g.op("Abs", g.op("Sub", *pair(g, self, target))), reduction)


def _bent(g: Graph, self: Value, target: Value, edge: float) -> tuple[Value, Value, Value]:
    self, target = pair(g, self, target)
    size = g.op("Abs", g.op("Sub", self, target))
    limit = g.constant(edge, g.dtype)
    near = g.op("Less", size, limit)
    return size, limit, near


@symbolic("smooth_l1_loss")
def smooth_l1_loss(
    g: Graph, self: Value, target: Value, reduction: int = 1, beta: float = 1.0
) -> Value:
    if beta == 0:
        return l1_loss(g, self, target, reduction)
    size, limit, near = _bent(g, self, target, beta)
    half = g.constant(0.5, g.dtype)
    square = g.op("Div", g.op("Mul", half, g.op("Mul", size, size)), limit)
    line = g.op("Sub", size, g.op("Mul", half, limit))
    return reduced(g, g.op("Where", near, square, line), reduction)


@symbolic("huber_loss")
def huber_loss(
    g: Graph, self: Value, target: Value, reduction: int = 1, delta: float = 1.0
) -> Value:
    size, limit, near = _bent(g, self, target, delta)
    half = g.constant(0.5, g.dtype)
    square = g.op("Mul", half, g.op("Mul", size, size))
    line = g.op("Mul", limit, g.op("Sub", size, g.op("Mul", half, limit)))
    return reduced(g, g.op("Where", near, square, line), reduction)


@symbolic("binary_cross_entropy")
def binary_cross_entropy(
    g: Graph, self: Value, target: Value, weight: object = None, reduction: int = 1
) -> Value:
    self, target = pair(g, self, target)
    one = g.constant(1, self.dtype)
    yes = g.clip(g.op("Log", self), -100, None)
    no = g.clip(g.op("Log", g.op("Sub", one, self)), -100, None)
    loss = g.op("Add", g.op("Mul", target, yes), g.op("Mul", g.op("Sub", one, target), no))
    loss = g.op("Neg", loss)
    loss = loss if weight is None else g.op("Mul", loss, g.value(weight, g.dtype))
    return reduced(g, loss, reduction)


@symbolic("binary_cross_entropy_with_logits")
def with_logits(
    g: Graph,
    self: Value,
    target: Value,
    weight: object = None,
    pos_weight: object = None,
    reduction: int = 1,
) -> Value:
    self, target = pair(g, self, target)
    one = g.constant(1, self.dtype)
    yes = g.op("Softplus", g.op("Neg", self))
    no = g.op("Softplus", self)
    part = g.op("Mul", target, yes)
    part = part if pos_weight is None else g.op("Mul", part, g.value(pos_weight, g.dtype))
    loss = g.op("Add", part, g.op("Mul", g.op("Sub", one, target), no))
    loss = loss if weight is None else g.op("Mul", loss, g.value(weight, g.dtype))
    return reduced(g, loss, reduction)


@symbolic("xlogy", "special_xlogy")
def xlogy(g: Graph, self: object, other: object) -> Value:
    x, y = pair(g, self, other)
    # A number is a truth value unless it is zero; NaN is one.
    zero = g.constant(0, x.dtype)
    nothing = zero if self is other else g.op("Where", g.op("IsNaN", y), y, zero)
    return g.op("Where", g.cast(x, fb.bool), g.op("Mul", x, g.op("Log", y)), nothing)


@symbolic("kl_div")
def kl_div(
    g: Graph, self: Value, target: Value, reduction: int = 1, log_target: bool = False
) -> Value:
    if log_target:
        loss = g.op("Mul", g.op("Exp", target), g.op("Sub", target, self))
    else:
        entropy = xlogy(g, target, target)
        loss = g.op("Sub", entropy, g.op("Mul", target, self))
    return reduced(g, loss, reduction)


@symbolic("nll_loss", "nll_loss_nd", "nll_loss2d")
def nll_loss(
    g: Graph,
    self: Value,
    target: Value,
    weight: object = None,
    reduction: int = 1,
    ignore_index: int = -100,
) -> Value:
    if g.opset < 12:
        return _picked(g, self, target, weight, reduction, ignore_index)
    single = self.rank == 1
    scores = g.unsqueeze(self, [0]) if single else self
    classes = g.unsqueeze(target, [0]) if single else target
    made = g.op(
        "NegativeLogLikelihoodLoss",
        scores,
        classes,
        weight,
        reduction_s=REDUCTIONS[reduction],
        ignore_index_i=ignore_index,
    )
    return g.squeeze(made, [0]) if single and reduction == 0 else made


def _picked(
    g: Graph, scores: Value, target: Value, weight: object, reduction: int, ignore_index: int
) -> Value:
    """The loss by one-hot vectors, for opsets that have no operator."""
    if scores.rank != 2 or weight is not None:
        g.needs(12, "this loss")
    depth = g.constant(fb.tensor([scores.static(1)]))
    ends = g.constant(fb.tensor([0, 1], dtype=scores.dtype))
    if 0 <= ignore_index < scores.static(1):
        g.needs(12, "a loss that ignores a class")
    chosen = g.op("OneHot", target, depth, ends, axis_i=1)
    chosen.dtype, chosen.shape = scores.dtype, scores.shape
    loss = g.op("Neg", g.reduce("ReduceSum", g.op("Mul", scores, chosen), [1]))
    return reduced(g, loss, reduction)


@symbolic("cross_entropy_loss")
def cross_entropy(
    g: Graph,
    self: Value,
    target: Value,
    weight: Value | None = None,
    reduction: int = 1,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Value:
    if label_smoothing:
        raise UnsupportedOperatorError("cross entropy with smoothed labels")
    axis = 0 if self.rank == 1 else 1
    scores = along(g, "LogSoftmax", self, axis)
    scores.shape, scores.dtype = self.shape, self.dtype
    if target.dtype is not None and target.dtype.is_floating_point:
        made = g.op("Mul", target, scores)
        if weight is not None:
            sizes = [-1] + [1] * (self.rank - 2) if self.rank > 1 else [-1]
            made = g.op("Mul", made, g.reshape(weight, sizes))
        made.shape = self.shape
        loss = g.op("Neg", g.reduce("ReduceSum", made, [axis]))
        if reduction == 1 and self.rank > 1:
            total = g.reduce("ReduceSum", loss)
            assert self.dtype is not None
            return g.op("Div", total, g.cast(g.value(_count(g, self), fb.int64), self.dtype))
        return reduced(g, loss, reduction)
    return nll_loss(g, scores, target, weight, reduction, ignore_index)


def _count(g: Graph, x: Value) -> Any:
    count = 1
    for d in range(x.rank):
        if d != 1:
            size = g.size(x, d)
            both = isinstance(size, int) and isinstance(count, int)
            count = count * size if both else g.op("Mul", g.value(count), g.value(size))
    return count


@symbolic("margin_ranking_loss")
def margin_ranking_loss(
    g: Graph, input1: Value, input2: Value, target: Value, margin: float = 0.0, reduction: int = 1
) -> Value:
    apart = g.op("Mul", g.op("Neg", target), g.op("Sub", input1, input2))
    loss = g.op("Add", apart, g.constant(margin, input1.dtype))
    return reduced(g, g.clip(loss, 0, None), reduction)


@symbolic("hinge_embedding_loss")
def hinge_embedding_loss(
    g: Graph, self: Value, target: Value, margin: float = 1.0, reduction: int = 1
) -> Value:
    zero, one = g.constant(0, self.dtype), g.constant(1, target.dtype)
    below = g.clip(g.op("Sub", g.constant(margin, self.dtype), self), 0, None)
    minus = g.op("Where", g.op("Equal", target, g.constant(-1, target.dtype)), below, zero)
    plus = g.op("Where", g.op("Equal", target, one), self, zero)
    return reduced(g, g.op("Add", minus, plus), reduction)


@symbolic("soft_margin_loss")
def soft_margin_loss(g: Graph, self: Value, target: Value, reduction: int = 1) -> Value:
    return reduced(g, g.op("Softplus", g.op("Neg", g.op("Mul", target, self))), reduction)


@symbolic("poisson_nll_loss")
def poisson_nll_loss(
    g: Graph,
    input: Value,
    target: Value,
    log_input: bool,
    full: bool,
    eps: float,
    reduction: int,
) -> Value:
    if full:
        raise UnsupportedOperatorError("the full Poisson loss")
    if log_input:
        loss = g.op("Sub", g.op("Exp", input), g.op("Mul", target, input))
    else:
        shifted = g.op("Log", g.op("Add", input, g.constant(eps, input.dtype)))
        loss = g.op("Sub", input, g.op("Mul", target, shifted))
    return reduced(g, loss, reduction)
