"""Products beyond `matmul`: inner, cross and Kronecker ones, sums with products, chains, powers."""

from __future__ import annotations

import operator
from functools import reduce
from itertools import pairwise
from typing import Any

from flambeau._dispatch.arguments import broadcast_shapes, dim_of, need_input, need_tensor
from flambeau._dispatch.dispatch import cast
from flambeau._dispatch.halves import is_half
from flambeau._dispatch.promotion import fitting
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.hints import Number
from flambeau._types.memory_format import contiguous_format
from flambeau._writes.out import deliver
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import OPS
from flambeau.ops.layers.activation import wide_dtype
from flambeau.ops.matrices.linalg import addends
from flambeau.ops.matrices.matrix_algebra import eye_like, squares
from flambeau.ops.pointwise.elementwise import times
from flambeau.ops.shapes.movement import stack


def _sum(
    name: str,
    added: Tensor,
    product: Tensor,
    beta: Any,
    alpha: Any,
    out: Tensor | None,
    *factors: Tensor,
) -> Tensor:
    """beta * added + alpha * product; the sum has the shape of the product."""
    shape = tuple(product.shape)
    if added.dtype is not product.dtype:
        raise RuntimeError(
            f"{name}: expected input and the factors to have the same dtype, but got: "
            f"{added.dtype} != {product.dtype}"
        )
    try:
        fits = broadcast_shapes(tuple(added.shape), shape) == shape
    except RuntimeError:
        fits = False
    if not fits:
        raise RuntimeError(
            f"{name}: The expanded size of the tensor {list(shape)} must match the existing size "
            f"{list(added.shape)}"
        )
    if not product.dtype.fp and (isinstance(beta, float) or isinstance(alpha, float)):
        if name == "addr":
            raise RuntimeError(
                "addr: For integral input tensors, argument beta and alpha must not be floating "
                f"point numbers, got {beta!r} and {alpha!r}"
            )
        # As `addmm` does.
        beta, alpha = fitting(beta, product.dtype), fitting(alpha, product.dtype)
    if name == "addr" and product.dtype is not D.bool_:
        for factor, given in (("beta", beta), ("alpha", alpha)):
            if isinstance(given, bool):
                raise RuntimeError(f"Boolean {factor} only supported for Boolean results.")
    limit = wide_dtype(product.dtype) if name == "addbmm" else None
    found = times(product, alpha, limit)
    if beta != 0:  # else NaN in `added` does not count
        found = found + times(added, beta, limit)
    if name == "addr":
        return deliver(found, out, added, *factors)
    if name == "addbmm" and isinstance(out, Tensor) and not out.requires_grad:
        out.resize_(shape)  # without the warning
    return deliver(found, out, added, *factors, exact=True, share="anything")


def _batches(name: str, a: object, b: object) -> tuple[Tensor, Tensor]:
    x, y = need_tensor(a, name, "batch1"), need_tensor(b, name, "batch2")
    if x.dim() != 3 or y.dim() != 3:
        raise RuntimeError(
            f"{name}: batch1 and batch2 must be 3D tensors, got {x.dim()}D and {y.dim()}D"
        )
    if x.shape[0] != y.shape[0] or x.shape[2] != y.shape[1]:
        raise RuntimeError(
            f"{name}: Expected size for first two dimensions of batch2 tensor to be: "
            f"[{x.shape[0]}, {x.shape[2]}] but got: {list(y.shape[:2])}."
        )
    return x, y


@public(inplace="method")
def addbmm(
    input: Tensor,
    batch1: Tensor | Number,
    batch2: Tensor | Number,
    *legacy: Tensor | Number,
    beta: Number = 1,
    alpha: Number = 1,
    out: Tensor | None = None,
) -> Tensor:
    """beta * input + alpha * the sum over the batch of batch1[i] @ batch2[i].

    Shapes: batch1 (b, n, m), batch2 (b, m, p); input broadcasts to the result (n, p).  With
    beta = 0, `input` is ignored, nan included.

    Raises:
        RuntimeError: shapes or dtypes do not fit.

    >>> import flambeau as fb
    >>> fb.addbmm(fb.ones(1, 1), fb.ones(2, 1, 3), fb.ones(2, 3, 1))
    tensor([[7.]])
    """
    added, (a, b), beta, alpha = addends("addbmm", (input, batch1, batch2, *legacy), beta, alpha)
    x, y = _batches("addbmm", a, b)
    # One product of all columns by all rows: no batch of results that would then be summed.
    columns = x.permute(1, 0, 2).reshape(x.shape[1], x.shape[0] * x.shape[2])
    product = columns @ y.reshape(y.shape[0] * y.shape[1], y.shape[2])
    return _sum("addbmm", added, product, beta, alpha, out, x, y)


@public(inplace="method")
def baddbmm(
    input: Tensor,
    batch1: Tensor | Number,
    batch2: Tensor | Number,
    *legacy: Tensor | Number,
    beta: Number = 1,
    alpha: Number = 1,
    out: Tensor | None = None,
) -> Tensor:
    """beta * input + alpha * (batch1 @ batch2), matrix by matrix.

    Shapes: batch1 (b, n, m), batch2 (b, m, p); input broadcasts to the result (b, n, p).  With
    beta = 0, `input` is ignored, nan included.

    Raises:
        RuntimeError: shapes or dtypes do not fit.

    >>> import flambeau as fb
    >>> fb.baddbmm(fb.ones(2, 1, 1), fb.ones(2, 1, 3), fb.ones(2, 3, 1), alpha=2).flatten()
    tensor([7., 7.])
    """
    added, (a, b), beta, alpha = addends("baddbmm", (input, batch1, batch2, *legacy), beta, alpha)
    x, y = _batches("baddbmm", a, b)
    if is_half(x.dtype) and added.dtype is y.dtype is x.dtype and x.is_cpu:
        # Rounded once.  Other devices' own products of halves are many times as fast as of float32.
        wide = [cast(t, D.float32) for t in (added, x, y)]
        found = _sum("baddbmm", wide[0], wide[1] @ wide[2], beta, alpha, None)
        return deliver(cast(found, x.dtype), out, added, x, y, exact=True, share="anything")
    return _sum("baddbmm", added, x @ y, beta, alpha, out, x, y)


@public(inplace="both")
def addmv(
    input: Tensor,
    mat: Tensor | Number,
    vec: Tensor | Number,
    *legacy: Tensor | Number,
    beta: Number = 1,
    alpha: Number = 1,
    out: Tensor | None = None,
) -> Tensor:
    """beta * input + alpha * (mat @ vec).

    Shapes: mat (n, m), vec (m,); input broadcasts to the result (n,).  With beta = 0, `input` is
    ignored, nan included.

    Raises:
        RuntimeError: shapes or dtypes do not fit.

    >>> import flambeau as fb
    >>> fb.addmv(fb.ones(2), fb.ones(2, 3), fb.ones(3))
    tensor([4., 4.])
    """
    added, (a, b), beta, alpha = addends("addmv", (input, mat, vec, *legacy), beta, alpha)
    if (a.dim(), b.dim()) != (2, 1) or added.dim() > 1:
        raise RuntimeError(
            f"vector + matrix @ vector expected, got {added.dim()}, {a.dim()}, {b.dim()}"
        )
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(
            f"size mismatch, got input ({a.shape[0]}), mat ({a.shape[0]}x{a.shape[1]}), vec "
            f"({b.shape[0]})"
        )
    return _sum("addmv", added, a @ b, beta, alpha, out, a, b)


@public(inplace="method")
def addr(
    input: Tensor,
    vec1: Tensor | Number,
    vec2: Tensor | Number,
    *legacy: Tensor | Number,
    beta: Number = 1,
    alpha: Number = 1,
    out: Tensor | None = None,
) -> Tensor:
    """beta * input + alpha * the outer product of two vectors.

    Shapes: vec1 (n,), vec2 (m,); input broadcasts to the result (n, m).  With beta = 0, `input` is
    ignored, nan included.

    Raises:
        RuntimeError: shapes or dtypes do not fit.

    >>> import flambeau as fb
    >>> fb.addr(fb.zeros(2, 2), fb.tensor([1.0, 2.0]), fb.tensor([3.0, 4.0]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    added, (a, b), beta, alpha = addends("addr", (input, vec1, vec2, *legacy), beta, alpha)
    for argument, v in (("vec1", a), ("vec2", b)):
        if v.dim() != 1:
            raise RuntimeError(f"addr: Expected 1-D argument {argument}, but got {v.dim()}-D")
    if out is None and added.shape == (a.shape[0], b.shape[0]) and not added.is_contiguous():
        if added.mT.is_contiguous():  # whose order in memory the result keeps
            return _sum("addr", added.mT, b.unsqueeze(1) * a, beta, alpha, None).mT
    return _sum("addr", added, a.unsqueeze(1) * b, beta, alpha, out, a, b)


def multi_dot(tensors: Any, *, out: Tensor | None = None) -> Tensor:
    """The product of several matrices, in the order of the fewest multiplications.

    The first and the last may be vectors: a row and a column.

    Raises:
        RuntimeError: fewer than two tensors, or shapes do not fit.

    >>> import flambeau as fb
    >>> fb.linalg.multi_dot([fb.ones(2), fb.ones(2, 3), fb.ones(3)])
    tensor(6.)
    """
    factors = [need_input(t, "multi_dot", "tensors") for t in tensors]
    if len(factors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(factors)}")
    lead = tail = False
    for i, t in enumerate(factors):
        vector = t.dim() == 1 and i in (0, len(factors) - 1)
        if t.dim() != 2 and not vector:
            wanted = "1D or 2D" if i in (0, len(factors) - 1) else "2D"
            raise RuntimeError(f"multi_dot(): tensor {i} must be {wanted} but got {t.dim()}D")
    if factors[0].dim() == 1:
        factors[0], lead = factors[0].unsqueeze(0), True
    if factors[-1].dim() == 1:
        factors[-1], tail = factors[-1].unsqueeze(-1), True
    for i, (a, b) in enumerate(pairwise(factors)):
        if a.shape[1] != b.shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {i} and {i + 1} with shapes {list(a.shape)} and "
                f"{list(b.shape)} cannot be multiplied"
            )
    result = _chained(factors)
    result = result.squeeze(-1) if tail else result
    return deliver(
        result.squeeze(0) if lead else result, out, *tensors, exact=True, share="anything"
    )


def _chained(factors: list[Tensor]) -> Tensor:
    """The product in the best order: Cormen et al., "Introduction to Algorithms", section 15.2."""
    n = len(factors)
    lengths = [int(factors[0].shape[0]), *(int(t.shape[1]) for t in factors)]
    cost = [[0] * n for _ in range(n)]
    split = [[0] * n for _ in range(n)]
    for span in range(1, n):
        for i in range(n - span):
            j = i + span
            cost[i][j], split[i][j] = min(
                (
                    cost[i][k] + cost[k + 1][j] + lengths[i] * lengths[k + 1] * lengths[j + 1],
                    k,
                )
                for k in range(i, j)
            )

    def product(i: int, j: int) -> Tensor:
        if i == j:
            return factors[i]
        k = split[i][j]
        return product(i, k) @ product(k + 1, j)

    return product(0, n - 1)


@public(method=False)
def chain_matmul(*matrices: Tensor | Number, out: Tensor | None = None) -> Tensor:
    """The product of several matrices, in the order of the fewest multiplications.

    Raises:
        RuntimeError: no matrices, something that is no matrix, or shapes do not fit.

    >>> import flambeau as fb
    >>> fb.chain_matmul(fb.ones(1, 2), fb.ones(2, 3), fb.ones(3, 1))
    tensor([[6.]])
    """
    factors: list[Any] = (
        list(matrices[0])
        if len(matrices) == 1 and isinstance(matrices[0], (list, tuple))
        else list(matrices)
    )
    if not factors:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    for t in factors:
        if need_tensor(t, "chain_matmul", "matrices").dim() != 2:
            raise RuntimeError(
                f"chain_matmul(): Tensor dimension is {t.dim()}, expected 2 instead."
            )
    if len(factors) == 1:
        return deliver(factors[0].clone(), out, exact=True, share="anything")
    return multi_dot(factors, out=out)


@public
def matrix_power(input: Tensor, n: int, *, out: Tensor | None = None) -> Tensor:
    """The n-th power of square matrices; a negative one is a power of the inverse.

    Raises:
        RuntimeError: the matrices are not square.
        LinAlgError: `n` is negative and a matrix is singular.

    >>> import flambeau as fb
    >>> fb.matrix_power(fb.tensor([[1, 1], [0, 1]]), 5)
    tensor([[1, 5],
            [0, 1]])
    """
    x = need_input(input, "linalg.matrix_power", "input")
    try:
        count = operator.index(n)
    except TypeError:
        raise TypeError(
            f"linalg_matrix_power(): argument 'n' (position 2) must be int, not {type(n).__name__}"
        ) from None
    if x.dim() < 2 or x.shape[-1] != x.shape[-2]:
        raise RuntimeError(
            "linalg.matrix_power: A must be batches of square matrices, but it has shape "
            f"{list(x.shape)}"
        )
    if count < 0:
        from flambeau.linalg import inv

        x, count = inv(x), -count
    if count == 0:
        ones = eye_like(x, x.shape[-1]).expand(*x.shape)
        # The copy into a clone has a history, which leads to a gradient of zeros.
        power = (
            x.clone(memory_format=contiguous_format).copy_(ones)
            if x.requires_grad
            else ones.clone()
        )
        return deliver(power, out, input, exact=True, share="anything")
    result: list[Tensor] = []
    while count:
        if count & 1:
            result.append(x)
        count >>= 1
        x = x @ x if count else x
    power = reduce(operator.matmul, result)
    return deliver(
        power.clone(memory_format=contiguous_format) if power is input else power,
        out,
        input,
        exact=True,
        share="anything",
    )


@public
def matrix_exp(input: Tensor) -> Tensor:
    """The exponential of square matrices: the sum of A**k / k!.

    Raises:
        RuntimeError: they are not square, or the dtype is neither floating nor complex.

    >>> import flambeau as fb
    >>> fb.matrix_exp(fb.tensor([[0.0, 1.0], [0.0, 0.0]]))
    tensor([[1., 1.],
            [0., 1.]])
    """
    return OPS["matrix_exponential"](squares("linalg.matrix_exp", input))


@public
def kron(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Kronecker product: `other` scaled by each element of `input`, as blocks.

    >>> import flambeau as fb
    >>> fb.kron(fb.tensor([1, 10]), fb.tensor([1, 2]))
    tensor([ 1,  2, 10, 20])
    """
    x, y = need_tensor(input, "kron", "input"), need_tensor(other, "kron", "other")
    rank = max(x.dim(), y.dim())
    a = (*[1] * (rank - x.dim()), *x.shape)
    b = (*[1] * (rank - y.dim()), *y.shape)
    left = x.reshape(tuple(n for size in a for n in (size, 1)))
    right = y.reshape(tuple(n for size in b for n in (1, size)))
    shape = tuple(n * m for n, m in zip(a, b, strict=True))
    return deliver((left * right).reshape(shape), out, input, other, share="nothing")


@public
def inner(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Sums of products over the last dimension of both; a scaled tensor if one is 0-d.

    Raises:
        RuntimeError: the last dimensions differ.

    >>> import flambeau as fb
    >>> fb.inner(fb.tensor([1, 2]), fb.tensor([[3, 4], [5, 6]]))
    tensor([11, 17])
    """
    x, y = need_tensor(input, "inner", "input"), need_tensor(other, "inner", "other")
    if not x.dim() or not y.dim():
        return deliver(x * y, out, input, other, exact=True, share="anything")
    if x.shape[-1] != y.shape[-1]:
        raise RuntimeError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{list(x.shape)} and {list(y.shape)}"
        )
    n = x.shape[-1]
    product = x.reshape((-1, n)) @ y.reshape((-1, n)).t() if n else None
    shape = (*x.shape[:-1], *y.shape[:-1])
    made = x.new_zeros(shape) if product is None else product.reshape(shape)
    return deliver(made, out, input, other, exact=True, share="anything")


@public
def cross(
    input: Tensor, other: Tensor, dim: int | None = None, *, out: Tensor | None = None
) -> Tensor:
    """The cross products of vectors along `dim` (default: the first dimension of size 3).

    Raises:
        RuntimeError: the dimension has another size than 3, or none has it.

    >>> import flambeau as fb
    >>> fb.cross(fb.tensor([1, 0, 0]), fb.tensor([0, 1, 0]))
    tensor([0, 0, 1])
    """
    x, y = need_tensor(input, "cross", "input"), need_tensor(other, "cross", "other")
    if x.dim() != y.dim():
        raise RuntimeError(
            "linalg.cross: inputs must have the same number of dimensions, got "
            f"{x.dim()} and {y.dim()}"
        )
    shape = broadcast_shapes(tuple(x.shape), tuple(y.shape))
    if dim is None:
        if 3 not in x.shape:
            raise RuntimeError(f"no dimension of size 3 in input of shape {list(x.shape)}")
        dim = tuple(x.shape).index(3)
    d = dim_of(dim, x.dim())
    if x.shape[d] != 3 or y.shape[d] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {x.shape[d]} and "
            f"{y.shape[d]}"
        )
    if x.dtype is D.bool_:
        raise NotImplementedError("\"cross\" not implemented for 'Bool'")
    a, b = x.expand(shape).unbind(d), y.expand(shape).unbind(d)
    parts = [a[i] * b[j] - a[j] * b[i] for i, j in ((1, 2), (2, 0), (0, 1))]
    return deliver(stack(parts, d), out, input, other, exact=True, share="nothing")
