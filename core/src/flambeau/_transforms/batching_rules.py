"""Batching rules: an op on tensors with a hidden first dimension as an op on whole tensors.

Each takes the level, the op and its arguments, `BatchedArray` for tensors, of which one at least
is batched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from flambeau._dispatch.arguments import broadcast_shapes
from flambeau._dispatch.dispatch import wrap
from flambeau._tensor.tensor import Tensor
from flambeau._transforms import batches
from flambeau._transforms.batches import BatchedArray, BatchLevel, ValueNeededError
from flambeau._types import dtype as D

if TYPE_CHECKING:
    from flambeau.ops.declaration.table import Op


RULES: dict[str, Callable[..., Any]] = {}


def register() -> None:
    """Let batches go through these rules."""
    batches.rules = RULES


def _rule(*names: str) -> Callable[[Any], Any]:
    def note(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            RULES[name] = function
        return function

    return note


def aligned(a: BatchedArray, rank: int) -> Tensor:
    """The tensor with sizes 1 after the batch, so that its shape has `rank` dimensions."""
    value = a.value
    if a.batched and (missing := rank - len(a.shape)) > 0:
        shape = value._a.shape
        return value.reshape((shape[0], *[1] * missing, *shape[1:]))
    return value


def full(level: BatchLevel, a: BatchedArray) -> Tensor:
    """The tensor with the batch in front, whether it differs along it or not."""
    return a.value if a.batched else a.value.unsqueeze(0).expand(level.size, *a.shape)


def packed(result: Any) -> tuple[BatchedArray, ...] | BatchedArray:
    """Results with the batch in front as arrays of the level."""
    if type(result) is tuple:
        return tuple([BatchedArray(r, True) for r in result])
    return BatchedArray(result, True)


@_rule(
    *"cast clone contiguous neg abs sign exp expm1 log log1p sin cos tan asin acos atan sinh cosh "
    "tanh sqrt rsqrt reciprocal erf floor ceil trunc round bitwise_not isfinite log2 log10 square "
    "clamp relu threshold leaky_relu elu sigmoid silu log_sigmoid softplus gelu hardtanh "
    "hardsigmoid hardswish hardshrink softshrink conj sgn angle real imag "
    "bessel_j0 bessel_j1 bessel_y0 bessel_y1 i0 i1 i0e i1e modified_bessel_k0 modified_bessel_k1 "
    "scaled_modified_bessel_k0 scaled_modified_bessel_k1 airy_ai erfc erfinv lgamma digamma "
    "erfcx ndtri log_ndtr polygamma asinh acosh atanh view_as_real view_as_complex".split()
)
def _unary(
    level: BatchLevel, op: Op, a: BatchedArray, *rest: object
) -> BatchedArray | tuple[BatchedArray, ...]:
    return BatchedArray(op(a.value, *rest), True)


@_rule(
    *"add sub mul div pow remainder fmod floor_divide atan2 maximum minimum eq ne lt le gt ge "
    "bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift where "
    "igamma igammac zeta".split()
)
def _pointwise(level: BatchLevel, op: Any, *args: Any) -> BatchedArray:
    at = op.places
    rank = max([len(args[i].shape) for i in at])
    given = [aligned(a, rank) if i in at else a for i, a in enumerate(args)]
    return BatchedArray(op(*given), True)


@_rule(
    *"threshold_backward leaky_relu_backward sigmoid_backward tanh_backward silu_backward "
    "log_sigmoid_backward softplus_backward "
    "gelu_backward elu_backward hardtanh_backward hardsigmoid_backward hardswish_backward "
    "hardshrink_backward complex".split()
)
def _of_one_shape(
    level: BatchLevel, op: Op, g: BatchedArray, a: BatchedArray, *rest: object
) -> BatchedArray | tuple[BatchedArray, ...]:
    return packed(op(full(level, g), full(level, a), *rest))


def _of_dims(
    level: BatchLevel, op: Op, a: BatchedArray, dims: Any, *rest: object
) -> BatchedArray | tuple[BatchedArray, ...]:
    """Reductions and the like, over one dimension or several."""
    if dims is None:
        raise ValueNeededError("a reduction of unknown dimensions")
    if isinstance(dims, int):
        if not a.shape:  # a dimension for the op to work on
            result = op(a.value.unsqueeze(1), 1, *rest)
            keeps = op.name in ("argmax", "argmin") and not (rest and rest[0])
            shape = a.value.shape if not keeps else None
            return _each(result, lambda r: r if shape is None else r.reshape(shape))
        return packed(op(a.value, dims + 1, *rest))
    return packed(op(a.value, tuple([d + 1 for d in dims]), *rest))


def _each(
    result: Any, function: Callable[[Tensor], Tensor]
) -> BatchedArray | tuple[BatchedArray, ...]:
    if type(result) is tuple:
        return packed(tuple([function(r) for r in result]))
    return packed(function(result))


_rule(*"sum prod amax amin argmax argmin all any mean var logsumexp norm2 cumsum cumprod".split())(
    _of_dims
)
_rule("count_nonzero", "nansum")(_of_dims)
_rule(*"softmax log_softmax prod_of_others flip sort fft_c2c fft_r2c fft_c2r".split())(_of_dims)


@_rule("softmax_backward", "log_softmax_backward")
def _softmax_backward(
    level: BatchLevel, op: Op, g: BatchedArray, r: BatchedArray, dim: int
) -> BatchedArray | tuple[BatchedArray, ...]:
    if not g.shape:
        return packed(op(full(level, g).unsqueeze(1), full(level, r).unsqueeze(1), 1).squeeze(1))
    return packed(op(full(level, g), full(level, r), dim + 1))


@_rule("extremum")
def _extremum(
    level: BatchLevel, op: Op, a: BatchedArray, dim: int, keepdim: bool, largest: bool
) -> BatchedArray | tuple[BatchedArray, ...]:
    if not a.shape:
        return packed(op(a.value.unsqueeze(1), 1, False, largest))
    return packed(op(a.value, dim + 1, keepdim, largest))


@_rule("topk")
def _topk(
    level: BatchLevel, op: Op, a: BatchedArray, k: int, dim: int, largest: bool
) -> BatchedArray | tuple[BatchedArray, ...]:
    if not a.shape:
        found = op(a.value.unsqueeze(1), k, 1, largest)
        return packed(tuple([r.reshape((level.size,)) for r in found]) if k else found)
    return packed(op(a.value, k, dim + 1, largest))


@_rule("tril", "triu")
def _triangle(
    level: BatchLevel, op: Op, a: BatchedArray, diagonal: int
) -> BatchedArray | tuple[BatchedArray, ...]:
    return packed(op(a.value, diagonal))


@_rule("slice")
def _slice(
    level: BatchLevel, op: Op, a: BatchedArray, items: tuple[Any, ...]
) -> BatchedArray | tuple[BatchedArray, ...]:
    return packed(op(a.value, (slice(0, level.size, 1), *items)))


@_rule("permute")
def _permute(
    level: BatchLevel, op: Op, a: BatchedArray, dims: tuple[int, ...]
) -> BatchedArray | tuple[BatchedArray, ...]:
    return packed(op(a.value, (0, *[d + 1 for d in dims])))


@_rule("view")
def _view(
    level: BatchLevel, op: object, a: BatchedArray, shape: tuple[int, ...]
) -> BatchedArray | tuple[BatchedArray, ...]:
    return packed(a.value.reshape((level.size, *shape)))


@_rule("expand")
def _expand(
    level: BatchLevel, op: Op, a: BatchedArray, shape: tuple[int, ...]
) -> BatchedArray | tuple[BatchedArray, ...]:
    return packed(op(aligned(a, len(shape)), (level.size, *shape)))


@_rule("diagonal")
def _diagonal(
    level: BatchLevel, op: Op, a: BatchedArray, offset: int, dim1: int, dim2: int
) -> BatchedArray | tuple[BatchedArray, ...]:
    return packed(op(a.value, offset, dim1 + 1, dim2 + 1))


@_rule("slice_backward")
def _slice_backward(
    level: BatchLevel, op: Op, g: BatchedArray, shape: tuple[int, ...], items: tuple[Any, ...]
) -> BatchedArray | tuple[BatchedArray, ...]:
    return packed(op(g.value, (level.size, *shape), (slice(0, level.size, 1), *items)))


@_rule("diagonal_backward")
def _diagonal_backward(
    level: BatchLevel, op: Op, g: BatchedArray, shape: tuple[int, ...], o: int, d1: int, d2: int
) -> BatchedArray | tuple[BatchedArray, ...]:
    return packed(op(g.value, (level.size, *shape), o, d1 + 1, d2 + 1))


@_rule("constant_pad_nd")
def _constant_pad_nd(
    level: BatchLevel, op: Op, a: BatchedArray, pad: Any, value: object
) -> BatchedArray | tuple[BatchedArray, ...]:
    return packed(op(a.value, ((0, 0), *pad), value))


@_rule("glu")
def _glu(
    level: BatchLevel, op: Op, a: BatchedArray, dim: int
) -> BatchedArray | tuple[BatchedArray, ...]:
    return packed(op(a.value, dim + 1))


@_rule("glu_backward")
def _glu_backward(
    level: BatchLevel, op: Op, grad: BatchedArray, a: BatchedArray, dim: int
) -> BatchedArray | tuple[BatchedArray, ...]:
    return packed(op(full(level, grad), full(level, a), dim + 1))


@_rule("roll")
def _roll(
    level: BatchLevel, op: Op, a: BatchedArray, shifts: Any, dims: tuple[int, ...]
) -> BatchedArray | tuple[BatchedArray, ...]:
    return packed(op(a.value, shifts, tuple([d + 1 for d in dims])))


@_rule("boundary_pad_nd", "boundary_pad_nd_backward")
def _boundary_pad_nd(
    level: BatchLevel, op: Op, a: BatchedArray, pad: Any, mode: str
) -> BatchedArray | tuple[BatchedArray, ...]:
    return packed(op(a.value, ((0, 0), *pad), mode))


@_rule("cat", "stack")
def _cat(
    level: BatchLevel, op: Op, arrays: Sequence[BatchedArray], dim: int
) -> BatchedArray | tuple[BatchedArray, ...]:
    return packed(op(tuple([full(level, a) for a in arrays]), dim + 1))


@_rule("matmul")
def _matmul(
    level: BatchLevel, op: Op, a: BatchedArray, b: BatchedArray
) -> BatchedArray | tuple[BatchedArray, ...]:
    m, n = len(a.shape), len(b.shape)
    if not m or not n:
        return level.loop(op, (a, b))  # an error, which it words
    if not b.batched and (n == 2 or (m > 1 and n == 1)):
        return packed(op(a.value, b.value))
    x = a.value.unsqueeze(-2) if m == 1 else a.value
    y = b.value.unsqueeze(-1) if n == 1 else b.value
    rank = max(m, n, 2)
    x = aligned(BatchedArray(x, a.batched), rank)
    y = aligned(BatchedArray(y, b.batched), rank)
    found = op(x, y)
    if m == 1:
        found = found.squeeze(-2)
    return packed(found.squeeze(-1) if n == 1 else found)


@_rule("linear")
def _linear(
    level: BatchLevel, op: Op, a: BatchedArray, weight: BatchedArray, bias: BatchedArray | None
) -> BatchedArray | tuple[BatchedArray, ...]:
    if not weight.batched and (bias is None or not bias.batched) and a.shape:
        return packed(op(a.value, weight.value, None if bias is None else bias.value))
    be = level.over(a.value._be)
    return level.decomposed(be, op, (a, weight, bias))


def _positions(level: BatchLevel, like: Tensor, rank: int) -> Tensor:
    """The number of each entry of the batch, with `rank` dimensions after it."""
    be = like._be
    numbers = wrap(be, be.places(level.size), D.int64)
    return numbers.reshape((level.size, *[1] * rank))


def _places(
    level: BatchLevel, like: Tensor, indices: Sequence[BatchedArray | None]
) -> tuple[list[Any], int, int]:
    """Indices that address the batch too; and where the indexed dimensions went without it.

    Returns:
        The indices, the rank to which they broadcast, and how many dimensions stand before them in
        the result.
    """
    given = [i for i, k in enumerate(indices) if k is not None]
    rank = max([len(indices[i].shape) for i in given])  # type: ignore[union-attr]
    joined = given == list(range(given[0], given[-1] + 1))
    whole = [None if k is None else aligned(k, rank) for k in indices]
    return [_positions(level, like, rank), *whole], rank, given[0] if joined else 0


@_rule("index")
def _index(
    level: BatchLevel, op: Op, a: BatchedArray, indices: Sequence[BatchedArray | None]
) -> BatchedArray | tuple[BatchedArray, ...]:
    given = [i for i, k in enumerate(indices) if k is not None]
    if not given:
        return BatchedArray(a.value.clone(), True)
    batched = any(indices[i].batched for i in given)  # type: ignore[union-attr]
    if not batched:
        joined = given == list(range(given[0], given[-1] + 1))
        found = op(a.value, (None, *[None if k is None else k.value for k in indices]))
        if joined:
            return packed(found)
        rank = max([len(indices[i].shape) for i in given])  # type: ignore[union-attr]
        return packed(found.movedim(rank, 0))
    where, rank, before = _places(level, a.value, indices)
    found = op(full(level, a), tuple(where))
    if any(k is None for k in where) or before == 0:
        # Batch and indexed dimensions come first; those before them belong between.
        return packed(_moved_behind(found, rank, before))
    return packed(found)


def _moved_behind(t: Tensor, rank: int, before: int) -> Tensor:
    """(batch, *indexed, *before, *after) as (batch, *before, *indexed, *after)."""
    if not before or not rank:
        return t
    n = t.dim()
    order = [0, *range(1 + rank, 1 + rank + before), *range(1, 1 + rank)]
    return t.permute((*order, *range(1 + rank + before, n)))


@_rule("index_put")
def _index_put(
    level: BatchLevel,
    op: Op,
    a: BatchedArray,
    indices: Sequence[BatchedArray | None],
    values: BatchedArray,
    accumulate: bool,
) -> BatchedArray | tuple[BatchedArray, ...]:
    if all(k is None for k in indices):
        return level.loop(op, (a, indices, values, accumulate))
    where, rank, before = _places(level, a.value, indices)
    shapes = [
        tuple(k._a.shape)[1:] if i.batched else tuple(k._a.shape)
        for k, i in _given(where[1:], indices)
    ]
    indexed = tuple(broadcast_shapes(*shapes)) if len(shapes) > 1 else shapes[0]
    rest = [n for d, n in enumerate(a.shape) if d >= len(indices) or indices[d] is None]
    shape = (*rest[:before], *indexed, *rest[before:])
    spread = (
        aligned(values, len(shape)).expand(level.size, *shape)
        if values.batched
        else (values.value.expand(level.size, *shape))
    )
    # As the result of the reading op: batch and indexed dimensions first.
    if before and rank:
        n = spread.dim()
        order = [0, *range(1 + before, 1 + before + rank), *range(1, 1 + before)]
        spread = spread.permute((*order, *range(1 + before + rank, n)))
    return packed(op(full(level, a), tuple(where), spread, accumulate))


def _given(where: Sequence[Any], indices: Sequence[Any]) -> list[tuple[Tensor, BatchedArray]]:
    return [(k, i) for k, i in zip(where, indices, strict=True) if i is not None]


@_rule("gather", "scatter", "scatter_add", "scatter_extremum")
def _gather(
    level: BatchLevel, op: Op, a: BatchedArray, dim: int, *rest: object
) -> BatchedArray | tuple[BatchedArray, ...]:
    arrays = [a, *[r for r in rest if isinstance(r, BatchedArray)]]
    plain = [r for r in rest if not isinstance(r, BatchedArray)]
    if all(x.shape for x in arrays):
        whole = [full(level, x) for x in arrays]
        return packed(op(whole[0], dim + 1, *whole[1:], *plain))
    vectors = [full(level, x) if x.shape else full(level, x).unsqueeze(1) for x in arrays]
    found = op(vectors[0], 1, *vectors[1:], *plain)
    shape = arrays[1].shape if op.name == "gather" else a.shape
    return packed(found.reshape((level.size, *shape)))


@_rule("nonzero")
def _nonzero(
    level: BatchLevel, op: object, a: BatchedArray
) -> BatchedArray | tuple[BatchedArray, ...]:
    raise ValueNeededError(
        "vmap: It looks like you're attempting to use an operation (nonzero, or an index by a "
        "mask) whose result has a dynamic shape, which depends on values. Rewrite it with "
        "torch.where or other operations of a fixed shape."
    )


@_rule("embedding")
def _embedding(
    level: BatchLevel, op: Op, weight: BatchedArray, indices: BatchedArray, *rest: object
) -> BatchedArray | tuple[BatchedArray, ...]:
    if not weight.batched and not rest[1]:
        return packed(op(weight.value, indices.value, *rest))
    return level.decomposed(level.over(weight.value._be), op, (weight, indices, *rest))


def _folded(level: BatchLevel, t: Tensor) -> Tensor:
    """The batch as a part of the first dimension after it."""
    shape = t._a.shape
    return t.reshape((shape[0] * shape[1], *shape[2:]))


def _unfolded(level: BatchLevel, t: Tensor) -> Tensor:
    shape = t._a.shape
    return t.reshape((level.size, shape[0] // level.size, *shape[1:]))


@_rule("max_pool2d", "max_pool3d", "adaptive_max_pool2d", "adaptive_max_pool3d")
@_rule("avg_pool2d", "avg_pool3d", "im2col", "col2im")
def _pool(
    level: BatchLevel, op: Op, a: BatchedArray, *rest: object
) -> BatchedArray | tuple[BatchedArray, ...]:
    if not level.size:
        return level.decomposed(level.over(a.value._be), op, (a, *rest))
    return _each(op(_folded(level, a.value), *rest), lambda r: _unfolded(level, r))


@_rule("avg_pool2d_backward", "avg_pool3d_backward")
def _avg_pool_backward(
    level: BatchLevel, op: Op, g: BatchedArray, shape: tuple[int, ...], *rest: object
) -> BatchedArray | tuple[BatchedArray, ...]:
    whole = (level.size * shape[0], *shape[1:])
    return packed(_unfolded(level, op(_folded(level, g.value), whole, *rest)))


@_rule("max_pool2d_backward")
def _max_pool_backward(
    level: BatchLevel, op: Op, g: BatchedArray, indices: BatchedArray, shape: tuple[int, ...]
) -> BatchedArray | tuple[BatchedArray, ...]:
    whole = (level.size * shape[0], *shape[1:])
    both = _folded(level, full(level, g)), _folded(level, full(level, indices))
    return packed(_unfolded(level, op(*both, whole)))


def _channels(level: BatchLevel, a: BatchedArray) -> Tensor:
    """(batch, n, c, …) as (n, batch·c, …): the groups of one convolution."""
    value = full(level, a).movedim(0, 1)
    shape = value._a.shape
    return value.reshape((shape[0], shape[1] * shape[2], *shape[3:]))


def _filters(level: BatchLevel, a: BatchedArray) -> Tensor:
    return _folded(level, full(level, a))


def _from_channels(level: BatchLevel, t: Tensor) -> Tensor:
    shape = t._a.shape
    return t.reshape((shape[0], level.size, shape[1] // level.size, *shape[2:])).movedim(1, 0)


@_rule("conv2d", "conv3d")
def _convolution(
    level: BatchLevel,
    op: Op,
    a: BatchedArray,
    weight: BatchedArray,
    bias: BatchedArray | None,
    stride: object,
    padding: object,
    dilation: object,
    groups: int,
) -> BatchedArray | tuple[BatchedArray, ...]:
    how = (stride, padding, dilation)
    if bias is not None and bias.batched:
        if a.batched or weight.batched:
            found = _convolution(level, op, a, weight, None, *how, groups)
        else:
            found = BatchedArray(op(a.value, weight.value, None, *how, groups))
        spatial = [1] * (len(a.shape) - 2)
        channels = bias.value.reshape((level.size, 1, bias.shape[0], *spatial))
        return packed(found.value + channels)
    if not weight.batched:
        b = None if bias is None else bias.value
        if not level.size:
            return level.decomposed(level.over(a.value._be), op, (a, weight, bias, *how, groups))
        found = op(_folded(level, a.value), weight.value, b, *how, groups)
        return packed(_unfolded(level, found))
    if bias is not None:
        bias_value = full(level, bias).reshape((-1,))
    else:
        bias_value = None
    joined = _channels(level, a), _filters(level, weight), bias_value
    return packed(_from_channels(level, op(*joined, *how, groups * level.size)))


@_rule("conv2d_input_grad", "conv3d_input_grad")
def _convolution_input_grad(
    level: BatchLevel,
    op: Op,
    g: BatchedArray,
    weight: BatchedArray,
    shape: tuple[int, ...],
    *how: Any,
) -> BatchedArray | tuple[BatchedArray, ...]:
    n, channels, *spatial = shape
    if not weight.batched:
        found = op(_folded(level, g.value), weight.value, (level.size * n, *shape[1:]), *how)
        return packed(_unfolded(level, found))
    whole = (n, level.size * channels, *spatial)
    groups = how[-1] * level.size
    found = op(_channels(level, g), _filters(level, weight), whole, *how[:-1], groups)
    return packed(_from_channels(level, found))


@_rule("conv2d_weight_grad", "conv3d_weight_grad")
def _convolution_weight_grad(
    level: BatchLevel,
    op: Op,
    g: BatchedArray,
    a: BatchedArray,
    shape: tuple[int, ...],
    *how: Any,
) -> BatchedArray | tuple[BatchedArray, ...]:
    whole = (level.size * shape[0], *shape[1:])
    groups = how[-1] * level.size
    found = op(_channels(level, g), _channels(level, a), whole, *how[:-1], groups)
    return packed(_unfolded(level, found))


@_rule("layer_norm")
def _layer_norm(
    level: BatchLevel,
    op: Op,
    a: BatchedArray,
    weight: BatchedArray,
    bias: BatchedArray,
    *rest: object,
) -> BatchedArray | tuple[BatchedArray, ...]:
    if any(x is not None and x.batched for x in (weight, bias)):
        return level.decomposed(level.over(a.value._be), op, (a, weight, bias, *rest))
    plain = [None if x is None else x.value for x in (weight, bias)]
    return packed(op(a.value, *plain, *rest))


@_rule("group_norm")
def _group_norm(
    level: BatchLevel,
    op: Op,
    a: BatchedArray,
    weight: BatchedArray,
    bias: BatchedArray,
    groups: int,
    eps: float,
) -> BatchedArray | tuple[BatchedArray, ...]:
    """The batch as a part of the elements."""
    if not level.size or any(x is not None and x.batched for x in (weight, bias)):
        return level.decomposed(level.over(a.value._be), op, (a, weight, bias, groups, eps))
    plain = [None if x is None else x.value for x in (weight, bias)]
    found = op(_folded(level, a.value), *plain, groups, eps)
    return packed(tuple([_unfolded(level, x) for x in found]))


@_rule("batch_norm")
def _batch_norm(
    level: BatchLevel, op: Op, a: BatchedArray, *channel: Any
) -> BatchedArray | tuple[BatchedArray, ...]:
    """The batch as a part of the channels."""
    if not level.size:
        return level.decomposed(level.over(a.value._be), op, (a, *channel))
    given = [None if x is None else full(level, x).reshape((-1,)) for x in channel]
    return packed(_from_channels(level, op(_channels(level, a), *given)))


@_rule("batch_norm_train")
def _batch_norm_train(
    level: BatchLevel, op: Op, a: BatchedArray, weight: BatchedArray, bias: BatchedArray, eps: float
) -> BatchedArray | tuple[BatchedArray, ...]:
    if not level.size:
        return level.decomposed(level.over(a.value._be), op, (a, weight, bias, eps))
    given = [None if x is None else full(level, x).reshape((-1,)) for x in (weight, bias)]
    out, *moments = op(_channels(level, a), *given, eps)
    per = tuple([m.reshape((level.size, -1)) for m in moments])
    return packed((_from_channels(level, out), *per))


def _matrices(level: BatchLevel, op: Op, *args: object) -> BatchedArray | tuple[BatchedArray, ...]:
    """Ops on the last dimensions of arrays of any rank, whose leading ones broadcast."""
    given = [full(level, a) if isinstance(a, BatchedArray) else a for a in args]
    return packed(op(*given))


_rule(
    *"svd svdvals eigh eigvalsh eig cholesky_ex lu_factor_ex lu_permutation ldl_factor_ex geqrf "
    "qr inv_ex determinant cofactor slogdet matrix_exponential".split()
)(_matrices)
