"""What functions do with sparse tensors, by the name of the function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau._dispatch.arguments import broadcast_shapes, need_tensor
from flambeau._dispatch.keywords import documented
from flambeau.sparse._coo import SparseTensor, empty, sorted_groups

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flambeau._tensor.tensor import Tensor
    from flambeau._types.dtype import dtype as DType
    from flambeau._types.hints import DeviceLike
    from flambeau._types.layout import layout as Layout


Handler = Callable[..., Any]
HANDLERS: dict[str, Handler] = {}


def run(func: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a function that met a sparse tensor.

    Raises:
        NotImplementedError: it is not defined for sparse tensors.
    """
    name = getattr(func, "__name__", str(func))
    handler = HANDLERS.get(name)
    if handler is None:
        raise NotImplementedError(
            f"{name}: not implemented for sparse tensors; convert with to_dense() first"
        )
    out = kwargs.pop("out", None)
    if isinstance(out, SparseTensor) and name in ("zeros", "empty"):
        kwargs["dtype"] = kwargs.get("dtype") or out.dtype
    try:
        result = handler(*args, **kwargs)
    except AttributeError as error:
        if any(error.obj is x for x in (*args, *kwargs.values())):
            raise TypeError(
                f"{name}: not defined for sparse tensors and {type(error.obj).__name__}"
            ) from error
        raise
    if out is None or result is NotImplemented:
        return result
    if isinstance(out, SparseTensor):
        return out.become(result)
    return need_tensor(out, name, "out").copy_(result)


def handles(*names: str) -> Callable[[Handler], Handler]:
    """Register what the functions of these names do."""

    def register(handler: Handler) -> Handler:
        for name in names:
            HANDLERS[name] = handler
        return handler

    return register


def _is_number(x: object) -> bool:
    return isinstance(x, (int, float, complex)) or (
        isinstance(x, fb.Tensor) and not x.is_sparse and x.dim() == 0
    )


def _scaled(x: Tensor, alpha: Any) -> Any:
    return x if alpha == 1 else x * alpha


@handles("add", "__add__", "spadd")
def add(input: Any, other: Any, *legacy: object, alpha: object = 1) -> Tensor:
    """input + alpha * other: sparse for two sparse tensors, dense for dense + sparse."""
    if legacy:
        other, alpha = legacy[0], other
    if not isinstance(other, SparseTensor):
        raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
    if not input.is_sparse:
        if other.shape != input.shape:
            raise RuntimeError(
                f"add: expected 'self' and 'other' to have same size, but self has size "
                f"{list(input.shape)} while other has size {list(other.shape)}"
            )
        where = tuple(other._where.unbind(0))
        values = _scaled(other._stored, alpha)
        dtype = fb.promote_types(input.dtype, values.dtype)
        if not where:
            return input + values.sum(0)
        return input.to(dtype).index_put(where, values.to(dtype), accumulate=True)
    if input.shape != other.shape:
        raise RuntimeError(
            "add: expected sizes of 'self' and 'other' to match, but "
            f"{list(input.shape)} != {list(other.shape)}"
        )
    if input.sparse_dim() != other.sparse_dim():
        if not (input._nnz() and other._nnz()):
            dtype = fb.promote_types(input.dtype, other.dtype)
            return (input if input._nnz() else _scaled(other, alpha)).to(dtype, copy=True)
        raise RuntimeError(
            "add: expected 'self' and 'other' to have same number of sparse dimensions, got "
            f"{input.sparse_dim()} and {other.sparse_dim()}"
        )
    if input._where is other._where:
        return input.like(input._stored + _scaled(other._stored, alpha))
    dtype = fb.promote_types(input.dtype, other.dtype)
    values = fb.cat([input._stored.to(dtype), _scaled(other._stored, alpha).to(dtype)])
    where = fb.cat([input._where, other._where], 1)
    total = SparseTensor.make(where, values, input._a.shape, coalesced=False)
    return total.coalesce() if input._sorted and other._sorted else total


@handles("sub", "subtract", "__sub__")
def sub(input: object, other: object, *legacy: object, alpha: Any = 1) -> Tensor:
    """input - alpha * other."""
    if legacy:
        other, alpha = legacy[0], other
    return add(input, other, alpha=-alpha)


@handles("__radd__")
def _radd(self: object, other: object) -> Tensor:
    return add(other, self)


@handles("__rsub__", "rsub")
def _rsub(self: object, other: object) -> Tensor:
    return sub(other, self)


@handles("mul", "multiply", "__mul__", "__rmul__")
def mul(input: Any, other: Any) -> Any:
    """The elementwise product; an element is stored where both operands store one."""
    if not isinstance(input, SparseTensor):
        input, other = other, input
    if _is_number(other):
        return input.like(input._stored * other)
    if not isinstance(other, SparseTensor):
        return _by_dense(input, other)
    if input.shape != other.shape:
        raise RuntimeError(
            "mul: expected sizes of 'self' and 'other' to match, but "
            f"{list(input.shape)} != {list(other.shape)}"
        )
    if input._where is other._where and input._sorted:
        return input.like(input._stored * other._stored)
    a, b = input.coalesce(), other.coalesce()
    # Both sorted: a position that appears twice in the concatenation is stored by both.
    order, group, first = sorted_groups(fb.cat([a._where, b._where], 1))
    count = fb.zeros(first.shape[0], dtype=fb.int64, device=first.device)
    both = count.index_add(0, group, fb.ones_like(group)) == 2
    at = first[both]
    mine, theirs = order[at], order[at + 1] - a._nnz()
    values = a._stored.index_select(0, mine) * b._stored.index_select(0, theirs)
    where = a._where.index_select(1, mine)
    return SparseTensor.make(where, values, a._a.shape, coalesced=True)


def _by_dense(s: SparseTensor, dense: Any) -> SparseTensor:
    need_tensor(dense, "mul", "other")
    shape = broadcast_shapes(tuple(s._a.shape), tuple(dense.shape))
    if tuple(shape) != tuple(s._a.shape):
        raise RuntimeError(
            f"mul(sparse, dense): the dense operand of size {list(dense.shape)} must broadcast to "
            f"the size of the sparse one, {list(s._a.shape)}"
        )
    factor = dense.expand(shape)
    return s.like(s._stored * (factor[tuple(s._where.unbind(0))] if s.sparse_dim() else factor))


@handles("div", "divide", "true_divide", "__truediv__")
def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """Division by a number."""
    if not _is_number(other):
        raise RuntimeError(
            "Sparse division requires a scalar or zero-dim dense tensor divisor (got shape "
            f"{list(other.shape)} for divisor)"
        )
    if rounding_mode is None:
        return input.like(input._stored / other)
    once = input.coalesce()
    return once.like(fb.div(once._stored, other, rounding_mode=rounding_mode))


@handles("floor_divide", "__floordiv__")
def floor_divide(input: object, other: object) -> Tensor:
    """Floor division by a number."""
    return div(input, other, rounding_mode="floor")


@handles("pow", "__pow__")
def power(input: Any, exponent: Any) -> Tensor:
    """A positive power of the elements.

    Raises:
        RuntimeError: the exponent is not positive, which would make zeros nonzero.
    """
    if not _is_number(exponent) or not exponent > 0:
        raise RuntimeError(
            f"pow: an exponent of a sparse tensor must be a positive number, got {exponent}"
        )
    once = input.coalesce()
    return once.like(once._stored**exponent)


_LINEAR = {"neg": "neg", "negative": "neg", "__neg__": "neg"}
_NONLINEAR = {
    name: name
    for name in (
        "abs absolute sign sgn sqrt square floor ceil round trunc sin sinh tan tanh asin arcsin "
        "asinh arcsinh atan arctan atanh arctanh expm1 log1p erf erfinv relu deg2rad rad2deg isnan "
        "isinf isposinf isneginf signbit frac"
    ).split()
} | {"__abs__": "abs"}


def _elementwise(name: str, coalesces: bool) -> Handler:
    def apply(input: SparseTensor) -> SparseTensor:
        s = input.coalesce() if coalesces else input
        return s.like(getattr(fb, name)(s._stored))

    return apply


for _spelt, _name in _LINEAR.items():
    HANDLERS[_spelt] = _elementwise(_name, False)
for _spelt, _name in _NONLINEAR.items():
    HANDLERS[_spelt] = _elementwise(_name, True)


@handles("nan_to_num")
def nan_to_num(input: SparseTensor, *args: Any, **kwargs: Any) -> SparseTensor:
    """The elements with NaN and infinities replaced."""
    once = input.coalesce()
    return once.like(once._stored.nan_to_num(*args, **kwargs))


def _cast(dtype: DType) -> Handler:
    return lambda input, memory_format=None: input.to(dtype)


for _spelt, _dtype in {
    "bool": fb.bool,
    "byte": fb.uint8,
    "char": fb.int8,
    "short": fb.int16,
    "int": fb.int32,
    "long": fb.int64,
    "half": fb.float16,
    "bfloat16": fb.bfloat16,
    "float": fb.float32,
    "double": fb.float64,
    "cfloat": fb.complex64,
    "cdouble": fb.complex128,
}.items():
    HANDLERS[_spelt] = _cast(_dtype)


def _need_matrices(name: str, a: Tensor, b: Tensor) -> None:
    for operand in (a, b):
        if not isinstance(operand, fb.Tensor):
            raise TypeError(f"{name}: operands must be Tensor, not {type(operand).__name__}")
    if a.dim() != 2 or b.dim() != 2:
        raise RuntimeError(
            f"{name}: both operands must be matrices, got {a.dim()}-D and {b.dim()}-D tensors"
        )
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(
            f"{name}: mat1 and mat2 shapes cannot be multiplied ({a.shape[0]}x{a.shape[1]} and "
            f"{b.shape[0]}x{b.shape[1]})"
        )
    for x in (a, b):
        if x.is_sparse and x.sparse_dim() != 2:
            raise RuntimeError(
                f"{name}: a sparse operand must have 2 sparse dimensions, got {x.sparse_dim()}"
            )
    if a.dtype is not b.dtype:
        raise RuntimeError(
            f"{name}: expected both operands to have the same dtype, got {a.dtype} and {b.dtype}"
        )


@handles("mm", "spmm", "dsmm")
def mm(input: Any, mat2: Any) -> Tensor:
    """The matrix product: dense if one operand is dense, sparse if both are sparse."""
    _need_matrices("mm", input, mat2)
    if not input.is_sparse:
        if not mat2.is_sparse:  # the sparse tensor is another argument: `out`, or what is added
            return fb.mm(input, mat2)
        return mm(mat2.t(), input.t()).t()
    rows, columns = input._where.unbind(0)
    if mat2.is_sparse:
        return _both_sparse(input, mat2)
    parts = input._stored.unsqueeze(1) * mat2.index_select(0, columns)
    zeros = parts.new_zeros((input.shape[0], mat2.shape[1]))
    return zeros.index_add(0, rows, parts)


def _both_sparse(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    b = b.coalesce()
    rows, inner = a._where.unbind(0)
    keys, columns = b._where.unbind(0)
    keys = keys.contiguous()
    begin = fb.searchsorted(keys, inner.contiguous())
    count = fb.searchsorted(keys, inner.contiguous(), right=True) - begin
    # Element i of `a` meets the `count[i]` elements of `b` in the row that its column names.
    mine = fb.repeat_interleave(fb.arange(a._nnz(), device=a.device), count)
    start = count.cumsum(0) - count
    theirs = begin[mine] + fb.arange(mine.shape[0], device=a.device) - start[mine]
    values = a._stored.index_select(0, mine) * b._stored.index_select(0, theirs)
    where = fb.stack([rows[mine], columns[theirs]])
    size = (a.shape[0], b.shape[1])
    return SparseTensor.make(where, values, size, coalesced=False).coalesce()


@handles("mv")
def mv(input: object, vec: Any) -> Tensor:
    """The product of a sparse matrix and a dense vector."""
    return mm(input, vec.unsqueeze(1)).squeeze(1)


@handles("matmul", "__matmul__")
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """`mm` or `mv`, by the number of dimensions."""
    if other.dim() == 1:
        return mv(input, other)
    if input.dim() == 1:
        return mv(other.t(), input)
    return mm(input, other)


@handles("__rmatmul__")
def rmatmul(input: object, other: object) -> Tensor:
    """``other @ input``: the class of the right operand is asked first."""
    return matmul(other, input)


@handles("bmm")
def bmm(input: Any, mat2: Any) -> Tensor:
    """The products of a batch of sparse matrices with dense ones."""
    if mat2.is_sparse:
        raise RuntimeError("bmm_sparse: Tensor 'mat2' must be dense")
    if input.dim() != 3 or mat2.dim() != 3 or input.shape[0] != mat2.shape[0]:
        raise RuntimeError(
            f"bmm: batch1 and batch2 must be 3-D tensors of the same number of batches, got sizes "
            f"{list(input.shape)} and {list(mat2.shape)}"
        )
    if input.shape[2] != mat2.shape[1]:
        raise RuntimeError(
            f"bmm: sizes {list(input.shape)} and {list(mat2.shape)} cannot be multiplied"
        )
    batch, rows, columns = input._where.unbind(0)
    parts = input._stored.unsqueeze(1) * mat2[batch, columns]
    zeros = parts.new_zeros((input.shape[0], input.shape[1], mat2.shape[2]))
    return zeros.index_put((batch, rows), parts, accumulate=True)


@handles("addmm", "spaddmm")
def addmm(input: Tensor, *args: Any, beta: object = 1, alpha: object = 1) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2)."""
    if len(args) == 4:  # addmm(beta, input, alpha, mat1, mat2), as the 1.0 documents write it
        beta, input, alpha, mat1, mat2 = input, *args
    elif len(args) == 3:
        beta, input, mat1, mat2 = input, *args
    else:
        mat1, mat2 = args
    input = need_tensor(input, "addmm", "input")
    product = _scaled(mm(mat1, mat2), alpha)
    if input.is_sparse:
        if not product.is_sparse:
            raise RuntimeError("addmm: expected 'self' to be dense where the product is dense")
        return add(_scaled(input, beta), product)
    return _scaled(input.expand(tuple(product.shape)), beta) + product


@handles("hspmm", "hsmm")
def hspmm(mat1: Any, mat2: Any) -> Tensor:
    """Sparse @ dense as a tensor with one sparse and one dense dimension."""
    _need_matrices("hspmm", mat1, mat2)
    if not isinstance(mat1, SparseTensor):
        raise RuntimeError(f"hspmm: expected mat1 to be sparse, got a tensor of {mat1.layout}")
    rows, columns = mat1._where.unbind(0)
    order, group, first = sorted_groups(rows.unsqueeze(0))
    parts = (mat1._stored.unsqueeze(1) * mat2.index_select(0, columns)).index_select(0, order)
    values = parts.new_zeros((first.shape[0], mat2.shape[1])).index_add(0, group, parts)
    where = rows.index_select(0, order).index_select(0, first).unsqueeze(0)
    size = (mat1.shape[0], mat2.shape[1])
    return SparseTensor.make(where, values, size, coalesced=False)


@handles("smm", "sspmm")
@documented({"mat2": "mat"})
def smm(input: object, mat: Tensor) -> SparseTensor:
    """Sparse @ dense as a sparse matrix."""
    rows = hspmm(input, mat)
    n = mat.shape[1]
    columns = fb.arange(n, device=mat.device).repeat(rows._nnz())
    where = fb.stack([fb.repeat_interleave(rows._where[0], n), columns])
    return SparseTensor.make(where, rows._stored.reshape((-1,)), rows._a.shape, coalesced=False)


@handles("sspaddmm", "saddmm")
def sspaddmm(input: Tensor, *args: Any, beta: object = 1, alpha: object = 1) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2) with a sparse input and mat1, as a sparse matrix."""
    if len(args) == 4:
        beta, input, alpha, mat1, mat2 = input, *args
    elif len(args) == 3:
        beta, input, mat1, mat2 = input, *args
    else:
        mat1, mat2 = args
    return add(_scaled(input, beta), _scaled(smm(mat1, mat2), alpha))


def _dim(s: Tensor, dim: int) -> int:
    if not -s.dim() <= dim < s.dim():
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-s.dim()}, {s.dim() - 1}], but "
            f"got {dim})"
        )
    return dim % s.dim()


@handles("permute")
def permute(input: SparseTensor, *dims: Any) -> SparseTensor:
    """The dimensions in another order; sparse ones stay before dense ones."""
    order = dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims
    order = [_dim(input, d) for d in order]
    if sorted(order) != list(range(input.dim())):
        raise RuntimeError(f"permute: {list(order)} is no order of {input.dim()} dimensions")
    n = input.sparse_dim()
    if sorted(order[:n]) != list(range(n)):
        raise RuntimeError("transpose: a sparse and a dense dimension cannot change places")
    rows = fb.tensor(order[:n], device=input.device, dtype=fb.int64)
    values = input._stored.permute(0, *(d - n + 1 for d in order[n:]))
    size = [input._a.shape[d] for d in order]
    same = order[:n] == list(range(n)) or not input._nnz()
    return SparseTensor.make(
        input._where.index_select(0, rows), values, size, coalesced=input._sorted and same
    )


@handles("transpose", "swapaxes", "swapdims")
def transpose(input: SparseTensor, dim0: int, dim1: int) -> SparseTensor:
    """Two dimensions change places."""
    order = list(range(input.dim()))
    a, b = _dim(input, dim0), _dim(input, dim1)
    order[a], order[b] = order[b], order[a]
    return permute(input, order)


@handles("t")
def t(input: SparseTensor) -> SparseTensor:
    """The transpose of a matrix."""
    if input.dim() > 2:
        raise RuntimeError(
            "t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got "
            f"{input.sparse_dim()} sparse and {input.dense_dim()} dense dimensions"
        )
    return input if input.dim() < 2 else transpose(input, 0, 1)


@handles("unsqueeze")
def unsqueeze(input: SparseTensor, dim: int) -> SparseTensor:
    """A new dimension of size 1."""
    if not -input.dim() - 1 <= dim <= input.dim():
        raise IndexError(f"Dimension out of range for unsqueeze of {input.dim()}-D tensor: {dim}")
    dim %= input.dim() + 1
    size = [*input._a.shape[:dim], 1, *input._a.shape[dim:]]
    if dim > input.sparse_dim():
        values = input._stored.unsqueeze(dim - input.sparse_dim() + 1)
        return SparseTensor.make(input._where, values, size, coalesced=input._sorted)
    row = input._where.new_zeros((1, input._nnz()))
    where = fb.cat([input._where[:dim], row, input._where[dim:]])
    return SparseTensor.make(where, input._stored, size, coalesced=False)


def _all_sparse(tensors: Sequence[Tensor]) -> None:
    for i, x in enumerate(tensors):
        if not isinstance(x, SparseTensor):
            raise RuntimeError(
                f"Concatenating sparse tensors, but a dense tensor was found at position {i}. "
                "Use to_dense() on the sparse ones"
            )


@handles("cat", "concat", "concatenate")
def cat(tensors: Any, dim: int = 0) -> SparseTensor:
    """Sparse tensors side by side."""
    _all_sparse(tensors)
    head = tensors[0]
    dim = _dim(head, dim)
    n = head.sparse_dim()
    for i, x in enumerate(tensors):
        if (x.sparse_dim(), x.dense_dim()) != (n, head.dense_dim()):
            raise RuntimeError(
                "All tensors must have the same sparse and dense dims: those at position 0 are "
                f"{n}, {head.dense_dim()}, but tensor at position {i} has {x.sparse_dim()}, "
                f"{x.dense_dim()}."
            )
        sizes = [m for d, m in enumerate(x.shape) if d != dim]
        if sizes != [m for d, m in enumerate(head.shape) if d != dim]:
            raise RuntimeError(
                f"All tensors must have the same shape: {list(head.shape)} (except in the "
                f"concatenating dimension {dim}), but found shape {list(x.shape)} at position {i}"
            )
    total = sum(x.shape[dim] for x in tensors)
    size = [*head._a.shape[:dim], total, *head._a.shape[dim + 1 :]]
    where, values, offset = [], [], 0
    for x in tensors:
        at, value = x._where, x._stored
        if dim < n:
            shift = at.new_zeros((n, 1))
            shift[dim] = offset
            at = at + shift
        else:
            value = _padded(value, dim - n + 1, offset, total)
        offset += x.shape[dim]
        where.append(at)
        values.append(value)
    return SparseTensor.make(fb.cat(where, 1), fb.cat(values), size, coalesced=False)


def _padded(x: Tensor, dim: int, before: int, total: int) -> Tensor:
    left, right = list(x.shape), list(x.shape)
    left[dim], right[dim] = before, total - before - x.shape[dim]
    return fb.cat([x.new_zeros(left), x, x.new_zeros(right)], dim)


@handles("stack")
def stack(tensors: Sequence[Tensor], dim: int = 0) -> SparseTensor:
    """Sparse tensors along a new dimension."""
    _all_sparse(tensors)
    return cat([unsqueeze(x, dim) for x in tensors], dim)


@handles("narrow_copy")
def narrow_copy(input: SparseTensor, dim: int, start: int, length: int) -> SparseTensor:
    """A copy of a part along one dimension."""
    if not 0 <= dim < input.dim():
        raise RuntimeError(f"narrow_copy: dimension {dim} is not in [0, {input.dim() - 1}]")
    if start < 0 or length < 0 or start + length > input.shape[dim]:
        raise RuntimeError(
            f"start ({start}) + length ({length}) exceeds dimension size ({input.shape[dim]})."
        )
    size = [*input._a.shape]
    size[dim] = length
    n = input.sparse_dim()
    if dim >= n:
        values = input._stored.narrow(dim - n + 1, start, length).clone()
        return SparseTensor.make(input._where.clone(), values, size, coalesced=input._sorted)
    row = input._where[dim]
    kept = ((row >= start) & (row < start + length)).nonzero().reshape((-1,))
    where = input._where.index_select(1, kept)
    where[dim] -= start
    values = input._stored.index_select(0, kept)
    return SparseTensor.make(where, values, size, coalesced=input._sorted)


@handles("index_select")
def index_select(input: SparseTensor, dim: int, index: Tensor) -> SparseTensor:
    """The given places along one dimension."""
    dim = _dim(input, dim)
    size = [*input._a.shape]
    if index.numel() and (index.min() < -size[dim] or index.max() >= size[dim]):
        raise IndexError(f"index_select(): index out of range for dimension of size {size[dim]}")
    n = input.sparse_dim()
    index = fb.where(index < 0, index + size[dim], index).reshape((-1,)).to(fb.int64)
    size[dim] = index.shape[0]
    if dim >= n:
        values = input._stored.index_select(dim - n + 1, index)
        return SparseTensor.make(input._where, values, size, coalesced=input._sorted)
    keys, order = index.sort(stable=True)
    row = input._where[dim].contiguous()
    begin = fb.searchsorted(keys, row)
    count = fb.searchsorted(keys, row, right=True) - begin
    mine = fb.repeat_interleave(fb.arange(input._nnz(), device=input.device), count)
    start = count.cumsum(0) - count
    at = begin[mine] + fb.arange(mine.shape[0], device=input.device) - start[mine]
    where = input._where.index_select(1, mine)
    where[dim] = order[at]
    return SparseTensor.make(where, input._stored.index_select(0, mine), size, coalesced=False)


@handles("select")
def select(input: SparseTensor, dim: int, index: int) -> Tensor:
    """One place along a dimension; dense once no sparse dimension is left."""
    dim = _dim(input, dim)
    if not -input.shape[dim] <= index < input.shape[dim]:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(input.shape)} at "
            f"dimension {dim}"
        )
    index %= input.shape[dim]
    n = input.sparse_dim()
    size = [m for d, m in enumerate(input._a.shape) if d != dim]
    if dim >= n:
        values = input._stored.select(dim - n + 1, index)
        return SparseTensor.make(input._where, values, size, coalesced=input._sorted)
    kept = (input._where[dim] == index).nonzero().reshape((-1,))
    values = input._stored.index_select(0, kept)
    if n == 1:
        return values.sum(0)
    rest = fb.tensor([d for d in range(n) if d != dim], device=input.device, dtype=fb.int64)
    where = input._where.index_select(0, rest).index_select(1, kept)
    return SparseTensor.make(where, values, size, coalesced=False)


@handles("__getitem__")
def getitem(input: Any, key: object) -> Tensor:
    """Integers only: ``s[i]``, ``s[i, j]``."""
    keys = key if isinstance(key, tuple) else (key,)
    if any(isinstance(k, bool) or not isinstance(k, int) for k in keys):
        raise NotImplementedError(
            "sparse tensors are indexed by integers only; use index_select or to_dense()"
        )
    if len(keys) > input.dim():
        raise IndexError(f"too many indices for tensor of dimension {input.dim()}")
    for k in keys:
        input = input.select(0, k)
    return input


@handles("sum")
def total(
    input: SparseTensor, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Any:
    """The sum of all elements (dense), or along dimensions (sparse while a sparse one is left)."""
    if dtype is None and input.dtype.category <= 1:
        dtype = fb.int64
    values = input._stored if dtype is None else input._stored.to(dtype)
    if dim is None:
        return values.sum()
    named = [_dim(input, d) for d in ([dim] if isinstance(dim, int) else dim)]
    dims = set(named)
    if len(dims) < len(named):
        raise RuntimeError(f"sum: a dimension appears multiple times in the list of dims {named}")
    n = input.sparse_dim()
    inner = [d - n + 1 for d in dims if d >= n]
    if inner:
        values = values.sum(inner)
    size = [m for d, m in enumerate(input._a.shape) if d not in dims]
    left = [d for d in range(n) if d not in dims]
    if not left:
        result = values.sum(0)
    else:
        where = input._where.index_select(0, fb.tensor(left, device=input.device, dtype=fb.int64))
        sums = SparseTensor.make(where, values, size, coalesced=input._sorted and len(left) == n)
        result = sums.coalesce()
    if keepdim:
        for d in sorted(dims):
            result = result.unsqueeze(d)
    return result


@handles("norm")
def norm(input: SparseTensor, p: Any = "fro", *args: object, **kwargs: object) -> Tensor:
    """The norm of all elements."""
    if args or kwargs:
        raise RuntimeError("norm: only the norm of all elements is defined for sparse tensors")
    return input.coalesce()._stored.norm(2 if p == "fro" else p)


@handles("any")
def any_nonzero(input: SparseTensor) -> Tensor:
    """Whether a stored element is nonzero."""
    return input.coalesce()._stored.any()


def grouped(input: SparseTensor, dim: int) -> tuple[SparseTensor, Any, int]:
    """The coalesced tensor, and the group of each element that differs only in `dim`."""
    once = input.coalesce()
    others = [d for d in range(once.sparse_dim()) if d != dim]
    keys = once._where.index_select(0, fb.tensor(others, device=once.device, dtype=fb.int64))
    order, group, first = sorted_groups(keys)
    places = fb.empty_like(group)
    places[order] = group
    return once, places, first.shape[0]


@handles("sparse_mask")
def sparse_mask(input: Tensor, mask: SparseTensor) -> SparseTensor:
    """The elements of `input` at the positions that `mask` stores."""
    if input.shape != mask.shape:
        raise RuntimeError(
            f"sparse_mask(): operands have incompatible sizes; self has size {list(input.shape)} "
            f"but mask has size {list(mask.shape)}"
        )
    dense = input.to_dense() if input.is_sparse else input
    if not mask.sparse_dim():
        return mask.like(dense.unsqueeze(0).expand(tuple(mask._stored.shape)))
    return mask.like(dense[tuple(mask._where.unbind(0))])


@handles("zeros_like", "empty_like")
def zeros_like(
    input: SparseTensor,
    *,
    dtype: DType | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    **_: object,
) -> Tensor:
    """A sparse tensor of the same size without elements."""
    like = input._stored.new_empty((0,), dtype=dtype, device=device)
    return empty(input._a.shape, like, input.sparse_dim()).requires_grad_(requires_grad)


@handles("zeros", "empty")
def zeros(*shape: Any, size: Any = None, layout: Layout | None = None, **options: Any) -> Any:
    """A sparse tensor without elements, for a sparse ``out=``."""
    within = shape[0] if shape and isinstance(shape[0], (tuple, list)) else ()
    given = (*shape, *within, size, *options.values())
    if any(isinstance(x, SparseTensor) for x in given):
        raise TypeError("zeros(): a sparse tensor is neither a size nor an option")
    return fb.zeros(*shape, size=size, layout=fb.sparse_coo, **options)


@handles("is_nonzero")
def is_nonzero(input: SparseTensor) -> bool:
    """Whether the one element is nonzero."""
    return bool(input.to_dense())


@handles("new_zeros", "new_empty", "new")
def new_zeros(input: SparseTensor, *size: Any, **options: Any) -> Tensor:
    """A sparse tensor of another size without elements."""
    shape = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
    wanted, _ = options.pop("requires_grad", False), options.pop("layout", None)
    made = empty(tuple(shape), input._stored.new_empty((0,), **options))
    return made.requires_grad_(wanted)


@handles("is_same_size")
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether the sizes are equal."""
    return input.shape == other.shape


for _name in (
    "clone detach coalesce is_coalesced to_dense to_sparse indices values sparse_dim dense_dim "
    "_nnz _indices _values is_floating_point is_complex is_signed get_device requires_grad_ numel "
    "nelement size dim ndimension contiguous element_size type_as cpu to"
).split():
    HANDLERS[_name] = lambda input, *args, _method=_name, **kwargs: getattr(SparseTensor, _method)(
        input, *args, **kwargs
    )


def _writes(compute: Handler) -> Handler:
    def write(self: Any, *args: object, **kwargs: object) -> object:
        result = compute(self, *args, **kwargs)
        if isinstance(self, SparseTensor):
            if result.dtype is not self.dtype:
                raise RuntimeError(
                    f"result type {result.dtype} can't be cast to the desired output type "
                    f"{self.dtype}"
                )
            return self.become(result)
        return NotImplemented if result.is_sparse else self.copy_(result)

    return write


for _name in ("add", "sub", "mul", "div", "floor_divide", "pow", "neg", "t"):
    HANDLERS[_name + "_"] = _writes(HANDLERS[_name])
for _name in ("transpose", "unsqueeze", "addmm", "square"):
    HANDLERS[_name + "_"] = _writes(HANDLERS[_name])


def _writes_elements(name: str) -> Handler:
    write = _writes(HANDLERS[name])

    def checked(self: SparseTensor) -> Tensor:
        if not self.is_coalesced():
            raise RuntimeError(
                f"{name}_ requires coalesced input; in-place on uncoalesced tensors is not "
                "supported yet"
            )
        return write(self)

    return checked


for _name in (
    "abs asin atan ceil erf expm1 floor log1p relu round sign sin sinh sqrt tan tanh trunc"
).split():
    HANDLERS[_name + "_"] = _writes_elements(_name)
for _spelt, _name in {
    "__iadd__": "add",
    "__isub__": "sub",
    "__imul__": "mul",
    "__itruediv__": "div",
}.items():
    HANDLERS[_spelt] = _writes(HANDLERS[_name])


@handles("zero_")
def zero_(self: SparseTensor) -> SparseTensor:
    """Remove all elements."""
    return self.become(empty(self._a.shape, self._stored, self.sparse_dim()))


@handles("copy_")
def copy_(self: Any, src: Any, non_blocking: bool = False) -> Tensor:
    """Take the contents of another sparse tensor, cast and moved as needed."""
    if not isinstance(self, SparseTensor):
        return self.copy_(src.to_dense())
    if not isinstance(src, SparseTensor):
        raise RuntimeError("copy_() between dense and sparse Tensors is not implemented!")
    if self.shape != src.shape:
        raise RuntimeError(f"copy_: sizes do not match, {list(self.shape)} and {list(src.shape)}")
    return self.become(src.to(self.device, self.dtype).clone())
