"""Norms of vectors and matrices, condition numbers and ranks."""

from __future__ import annotations

import math
from typing import Any

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import dim_of, need_input
from flambeau._dispatch.dispatch import cast
from flambeau._dispatch.promotion import python_number
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.dtype import dtype as DType
from flambeau._writes.out import deliver
from flambeau.linalg._eigenvalues import eigvalsh, svdvals
from flambeau.linalg._solutions import tolerances
from flambeau.ops.declaration.table import OPS
from flambeau.ops.matrices.matrix_algebra import matrices, squares
from flambeau.ops.pointwise.elementwise import maximum, where
from flambeau.ops.reductions.norms import norm as _norm

Order = float | int | str


def _dims(dim: object) -> Any:
    return (dim,) if isinstance(dim, int) else dim


def _floating(name: str, x: Tensor, dtype: DType | None) -> Tensor:
    x = x if dtype is None else cast(x, dtype)
    if not x.dtype.fp:
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got {x.dtype}"
        )
    return x


def vector_norm(
    x: Tensor,
    ord: float = 2,
    dim: object = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """(sum |x|**ord)**(1/ord) of all elements or along dimensions.

    `ord` 0 counts what is not zero, inf and -inf take the largest and the smallest magnitude.

    Raises:
        RuntimeError: the dtype is not floating, or `ord` is no number.

    >>> import flambeau as fb
    >>> fb.linalg.vector_norm(fb.tensor([3.0, -4.0]), 1)
    tensor(7.)
    """
    name = "linalg.vector_norm"
    v = _floating(name, need_input(x, name, "x"), dtype)
    ord = python_number(ord)
    if not isinstance(ord, (int, float)):
        raise TypeError(f"linalg_vector_norm(): argument 'ord' must be Number, not {ord!r}")
    return deliver(_norm(v, ord, _dims(dim), keepdim), out, x, exact=True, share="anything")


@takes_as_annotated
def matrix_norm(
    A: Tensor,
    ord: Order = "fro",
    dim: tuple[int, int] = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The norm of matrices that stand in two dimensions.

    `ord`: "fro" the root of the sum of squares, "nuc" the sum of singular values, 2 and -2 the
    largest and the smallest of them, 1 and -1 the largest and smallest sum of magnitudes of a
    column, inf and -inf of a row.

    Raises:
        RuntimeError: another `ord`, the two dimensions are the same, or the dtype is not floating.
        IndexError: the smallest of no values; the largest is 0.

    >>> import flambeau as fb
    >>> fb.linalg.matrix_norm(fb.tensor([[3.0, 0.0], [0.0, 4.0]]), "nuc")
    tensor(7.)
    """
    name = "linalg.matrix_norm"
    x = need_input(A, name, "A")
    if x.dim() < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    x = _floating(name, x, dtype)
    if len(dim) != 2:
        raise RuntimeError(f"{name}: dim must be a 2-tuple. Got {dim}")
    first, second = (dim_of(d, x.dim()) for d in dim)
    if first == second:
        raise RuntimeError(f"{name}: dims must be different. Got ({first}, {second})")
    if ord == "fro":
        return deliver(_norm(x, 2, (first, second), keepdim), out, A, exact=True, share="anything")
    if ord == "nuc" or (not isinstance(ord, str) and abs(ord) == 2):
        values = svdvals(x.movedim((first, second), (-2, -1)))
        if ord == "nuc":
            result = values.sum(-1)
        else:
            result = _largest(values, -1) if float(ord) > 0 else values.amin(-1)
        if keepdim:
            for d in sorted((first, second)):
                result = result.unsqueeze(d)
        return deliver(result, out, A, exact=True, share="anything")
    if isinstance(ord, str) or (abs(ord) != 1 and not math.isinf(ord)):
        raise RuntimeError(f"{name}: Order {ord} not supported.")
    across, along = (first, second) if abs(ord) == 1 else (second, first)
    sums = x.abs().sum(across, True)
    result = _largest(sums, along, True) if ord > 0 else sums.amin(along, True)
    if not keepdim:
        for d in sorted((first, second), reverse=True):
            result = result.squeeze(d)
    return deliver(result, out, A, exact=True, share="anything")


def _largest(x: Tensor, d: int, keepdim: bool = False) -> Tensor:
    """The largest of numbers that are not negative, 0 where there are none."""
    return x.amax(d, keepdim) if x.shape[d] else x.sum(d, keepdim)


def norm(
    input: Tensor,
    ord: Order | None = None,
    dim: object = None,
    keepdim: bool = False,
    *,
    out: Tensor | None = None,
    dtype: DType | None = None,
) -> Tensor:
    """`vector_norm`, or `matrix_norm` for two dimensions and an `ord`.

    Without `ord` it is the 2-norm of all elements, or along the dimensions.

    Raises:
        RuntimeError: neither fits.

    >>> import flambeau as fb
    >>> fb.linalg.norm(fb.tensor([[3.0, 0.0], [0.0, 4.0]]))
    tensor(5.)
    """
    x = need_input(input, "linalg.norm", "input")
    if ord is None:
        return vector_norm(x, 2, dim, keepdim, dtype=dtype, out=out)
    dims = _dims(dim)
    if dims is None:
        if x.dim() not in (1, 2):
            raise RuntimeError(
                "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got "
                f"{x.dim()}D."
            )
        dims = tuple(range(x.dim()))
    elif len(dims) not in (1, 2):
        raise RuntimeError(
            f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {dim}"
        )
    if len(dims) == 2:
        return matrix_norm(x, ord, (dims[0], dims[1]), keepdim, dtype=dtype, out=out)
    if isinstance(ord, str):
        raise RuntimeError(f"linalg.norm: Order {ord} not supported for vectors.")
    return vector_norm(x, ord, dims, keepdim, dtype=dtype, out=out)


@takes_as_annotated
def cond(A: Tensor, p: Order | None = None, *, out: Tensor | None = None) -> Tensor:
    """The condition number: the norm of A times that of its inverse; inf for singular matrices.

    With `p` None or 2 it is the ratio of the largest and the smallest singular value, with -2 the
    reverse; A may then be rectangular.

    Raises:
        RuntimeError: `p` is no order of `matrix_norm`.

    >>> import flambeau as fb
    >>> fb.linalg.cond(fb.tensor([[1.0, 0.0], [0.0, 4.0]]))
    tensor(4.)
    """
    a = matrices("linalg.cond", A)
    if p is None or p in (2, -2):
        values = svdvals(a)
        if not values.shape[-1]:
            return deliver(values.new_zeros(tuple(values.shape[:-1])), out, A, share="anything")
        ratio = values[..., -1] / values[..., 0] if p == -2 else values[..., 0] / values[..., -1]
        return deliver(
            where(ratio.isnan(), ratio.new_full((), math.inf), ratio), out, A, share="anything"
        )
    if isinstance(p, str) and p not in ("fro", "nuc"):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    a = squares("linalg.cond", a)
    inverse, info = OPS["inv_ex"](a)
    singular = info != 0
    one = inverse.new_ones(())
    finite = where(singular.unsqueeze(-1).unsqueeze(-1), one, inverse)
    product = matrix_norm(a, p) * matrix_norm(finite, p)
    return deliver(
        where(singular, product.new_full((), math.inf), product), out, A, share="anything"
    )


@takes_as_annotated
def matrix_rank(
    A: Tensor,
    tol: object = None,
    hermitian: bool = False,
    *,
    atol: object = None,
    rtol: object = None,
    out: Tensor | None = None,
) -> Tensor:
    """How many singular values are larger than max(atol, rtol * the largest), as int64.

    By default rtol is max(m, n) * eps, and zero if there is a positive `atol`; `tol` is `atol` with
    a relative tolerance of zero.

    >>> import flambeau as fb
    >>> fb.linalg.matrix_rank(fb.tensor([[1.0, 1.0], [1.0, 1.0]]))
    tensor(1)
    """
    a = matrices("linalg.matrix_rank", A).detach()
    if tol is not None:
        atol, rtol = tol, 0.0
    low, high = tolerances(a, atol, rtol, *a.shape[-2:])
    if 0 in a.shape:
        return deliver(a.new_zeros(tuple(a.shape[:-2]), dtype=D.int64), out, A, share="anything")
    values = eigvalsh(a).abs() if hermitian else svdvals(a)
    bound = maximum(low, high * values.amax(-1)).unsqueeze(-1)
    return deliver((values > bound).sum(-1), out, A, share="anything")


__all__ = ["cond", "matrix_norm", "matrix_rank", "norm", "vector_norm"]
