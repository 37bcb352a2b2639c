"""Products of matrices, and attention."""

from __future__ import annotations

import math

import flambeau as fb
from flambeau.onnx._export.errors import UnsupportedOperatorError
from flambeau.onnx._export.graph import Graph, Value
from flambeau.onnx._export.symbolic.elementwise import pair
from flambeau.onnx._export.table import symbolic


@symbolic("det", "linalg_det", since=11)
def det(g: Graph, self: Value | None = None, A: Value | None = None) -> Value:
    return g.op("Det", self if A is None else A)


@symbolic("logdet", since=11)
def logdet(g: Graph, self: Value) -> Value:
    return g.op("Log", g.op("Det", self))


@symbolic("matmul", "mm", "bmm", "mv", "dot", "linalg_matmul")
def matmul(
    g: Graph,
    self: Value | None = None,
    other: Value | None = None,
    mat2: Value | None = None,
    vec: Value | None = None,
    tensor: Value | None = None,
    input: Value | None = None,
) -> Value:
    one, two = (v for v in (self, input, other, mat2, vec, tensor) if v is not None)
    return g.matmul(one, two)


@symbolic("linear")
def linear(g: Graph, input: Value, weight: Value, bias: Value | None = None) -> Value:
    if weight.rank == 2 and input.rank == 2 and _gemm(input):
        if bias is None:
            return g.matmul(input, g.transpose(weight, [1, 0], layer=True))
        return g.op("Gemm", input, weight, bias, alpha_f=1.0, beta_f=1.0, transB_i=1)
    turned = g.transpose(weight, [1, 0], layer=True) if weight.rank == 2 else weight
    made = g.matmul(input, turned)
    return made if bias is None else g.op("Add", made, bias)


def _gemm(x: Value) -> bool:
    return x.dtype in (fb.float32, fb.float64, fb.float16)


@symbolic("addmm")
def addmm(
    g: Graph, self: Value, mat1: Value, mat2: Value, beta: float = 1, alpha: float = 1
) -> Value:
    if _gemm(mat1):
        return g.op("Gemm", mat1, mat2, self, alpha_f=float(alpha), beta_f=float(beta))
    return _added(g, self, g.matmul(mat1, mat2), beta, alpha)


def _added(g: Graph, x: Value, product: Value, beta: object, alpha: object) -> Value:
    if alpha != 1:
        product = g.op("Mul", product, g.value(alpha, x.dtype))
    if beta == 0:
        return product
    if beta != 1:
        x = g.op("Mul", x, g.value(beta, x.dtype))
    return g.op("Add", x, product)


@symbolic("baddbmm")
def baddbmm(
    g: Graph, self: Value, batch1: Value, batch2: Value, beta: object = 1, alpha: object = 1
) -> Value:
    return _added(g, self, g.matmul(batch1, batch2), beta, alpha)


@symbolic("addmv")
def addmv(
    g: Graph, self: Value, mat: Value, vec: Value, beta: object = 1, alpha: object = 1
) -> Value:
    return _added(g, self, g.matmul(mat, vec), beta, alpha)


@symbolic("outer", "ger")
def outer(g: Graph, self: Value, vec2: Value) -> Value:
    column, row = pair(g, self, vec2)
    return g.op("Mul", g.unsqueeze(column, [1]), row)


@symbolic("einsum")
def einsum(g: Graph, equation: str, tensors: list[Value]) -> Value:
    g.needs(12, "einsum")
    return g.op("Einsum", *tensors, equation_s=equation.replace(" ", ""))


@symbolic("tensordot")
def tensordot(
    g: Graph, self: Value, other: Value, dims_self: list[int], dims_other: list[int]
) -> Value:
    g.needs(12, "tensordot")
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    one = [next(letters) for _ in range(self.rank)]
    two = [next(letters) for _ in range(other.rank)]
    for a, b in zip(dims_self, dims_other, strict=True):
        two[b] = one[a]
    summed = {one[a] for a in dims_self}
    out = [c for c in (*one, *two) if c not in summed]
    text = f"{''.join(one)},{''.join(two)}->{''.join(out)}"
    return g.op("Einsum", self, other, equation_s=text)


@symbolic("bilinear")
def bilinear(g: Graph, input1: Value, input2: Value, weight: Value, bias: object = None) -> Value:
    g.needs(12, "bilinear")
    made = g.op("Einsum", input1, weight, input2, equation_s="...i,kij,...j->...k")
    return made if bias is None else g.op("Add", made, bias)


@symbolic("scaled_dot_product_attention")
def attention(
    g: Graph,
    query: Value,
    key: Value,
    value: Value,
    attn_mask: Value | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Value:
    if enable_gqa:
        raise UnsupportedOperatorError("attention with fewer heads of keys than of queries")
    dtype = query.dtype
    factor = 1 / math.sqrt(query.static(-1)) if scale is None else scale
    # As the program rounds, so that what is imported has its bits.
    scores = g.matmul(g.op("Mul", query, g.constant(factor, dtype)), g.swap(key, -1, -2))
    if is_causal:
        rows, columns = g.size(query, -2), g.size(key, -2)
        ones = g.filled([rows, columns], 1, fb.float32)
        if ones.tensor is not None:
            attn_mask = g.constant(ones.tensor.bool().tril())
        else:
            g.needs(14, "a causal mask of dynamic size")
            attn_mask = g.cast(g.op("Trilu", ones, upper_i=0), fb.bool)
    zero = g.constant(0, dtype)
    if attn_mask is not None:
        if attn_mask.dtype is fb.bool:
            bias = g.op("Where", attn_mask, zero, g.constant(-math.inf, dtype))
        else:
            bias = g.cast(attn_mask, dtype)
        scores = g.op("Add", scores, bias)
    weights = g.op("Softmax", scores, axis_i=scores.rank - 1)
    if attn_mask is not None and not is_causal:
        # A query that sees no key has weights of 0. Causal ones see the first.
        largest = g.reduce("ReduceMax", scores, [scores.rank - 1], keepdim=True)
        blind = g.op("Less", largest, g.constant(fb.finfo(dtype).min, dtype))
        weights = g.op("Where", blind, zero, weights)
    if dropout_p:
        raise UnsupportedOperatorError("dropout in attention; export with TrainingMode.EVAL")
    return g.matmul(weights, value)
