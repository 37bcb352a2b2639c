"""Norms: of vectors and matrices, of differences, and tensors shrunk to one."""

from __future__ import annotations

import builtins

from flambeau._autograd.modes import recording
from flambeau._autograd.node import Edges, Node, next_seq
from flambeau._dispatch import dispatch as _dispatch
from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import dim_of, dims_of, need_input, need_tensor
from flambeau._dispatch.dispatch import cast, new
from flambeau._dispatch.promotion import python_number
from flambeau._memory.views import edge
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.dtype import dtype as DType
from flambeau._types.hints import Ints
from flambeau._writes.out import deliver
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import composite
from flambeau.ops.pointwise.elementwise import replaced, where
from flambeau.ops.reductions.reduction import _amax, _amin, _sum, spread


@composite(title="LinalgVectorNormBackward0")
def _norm2(self: Tensor, dim: tuple[int, ...], keepdim: bool) -> Tensor:
    return _sum(self * self, dim, keepdim).sqrt()


@_norm2.gradient
def _(F, g, self, result, dim, keepdim):
    # The gradient at zero is the subgradient 0.
    length = spread(F, result, self.shape, dim, keepdim)
    zero = F.scalar(0, length)
    unit = F.div(self, F.where(F.eq(length, zero), F.scalar(1, length), length))
    return F.mul(spread(F, g, self.shape, dim, keepdim), unit)


@public
def norm(
    input: Tensor,
    p: float | str | None = "fro",
    dim: Ints | None = None,
    keepdim: bool = False,
    out: Tensor | None = None,
    dtype: DType | None = None,
) -> Tensor:
    """The vector p-norm of all elements or along dimensions; "fro" is p = 2.

    "nuc" is the sum of the singular values of matrices, which stand in two dimensions.

    Raises:
        RuntimeError: the dtype is not floating, or `p` is another string.

    >>> import flambeau as fb
    >>> fb.norm(fb.tensor([3.0, 4.0]))
    tensor(5.)
    """
    x = need_input(input, "norm", "input")
    if x.dtype.category < 2:
        raise RuntimeError(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got "
            f"{D.type_name(x.dtype)}"
        )
    if dtype is not None:
        if not isinstance(dtype, D.dtype):
            raise TypeError(f"norm(): argument 'dtype' must be a dtype, not {type(dtype).__name__}")
        _need_wider("linalg.vector_norm", x, dtype)
        x = cast(x, dtype)
    dims, p = dims_of(dim, x.dim()), python_number(p)
    if not isinstance(p, (int, float, str, type(None))):
        raise TypeError(f"norm(): argument 'p' must be Number or str, not {type(p).__name__}")
    if p == "fro" or p is None:
        p = 2
    if p == "nuc":
        from flambeau.linalg import matrix_norm

        return deliver(
            matrix_norm(x, "nuc", (0, 1) if dim is None else dim, keepdim),  # type: ignore[arg-type]
            out,
            input,
            exact=True,
            share="anything",
        )
    if isinstance(p, str):
        raise RuntimeError(f"norm: order {p!r} is not supported; use 'fro', 'nuc' or a number")
    if (p < 0 or p == float("inf")) and builtins.any(x.shape[d] == 0 for d in dims):
        raise RuntimeError(
            f"linalg.vector_norm cannot compute the {p} norm of no elements: input has shape "
            f"{list(x.shape)}; the operation has no identity"
        )
    magnitude = x if p == 2 and not x.dtype.is_complex else x.abs()
    own = magnitude.dtype
    if own in (D.float16, D.bfloat16) and p not in (0, 1, 2, float("inf"), -float("inf")):
        magnitude = cast(magnitude, D.float32)  # powers and their sum are rounded once, at the end
    if p == 0:
        result = _sum.run(_counted(x, magnitude), dims, keepdim)
    elif p == float("inf"):
        result = _amax.run(magnitude, dims, keepdim)
    elif p == -float("inf"):
        result = _amin.run(magnitude, dims, keepdim)
    elif p == 1:
        result = _sum.run(magnitude, dims, keepdim)
    elif p == 2:
        result = _norm2.run(magnitude, dims, keepdim)
    elif magnitude.requires_grad:
        result = _smooth_norm(magnitude, p, dims, keepdim)
    else:
        result = _sum.run(magnitude**p, dims, keepdim) ** (1.0 / p)
    if result.dtype is not own:
        result = cast(result, own)
    return deliver(result, out, input, exact=True, share="anything")


class _Count(Node):
    """The history of a count, through which no gradient goes on: PyTorch's is None, not zeros."""

    __slots__ = ()

    title = "LinalgVectorNormBackward0"

    def apply(self, F: object, g: object, edges: Edges = None) -> tuple[None]:
        return (None,)


def _counted(x: Tensor, magnitude: Tensor) -> Tensor:
    """1 where `x` is not 0; it has a history, but none that leads to a gradient."""
    counted = cast(x != 0, magnitude.dtype)
    if not (x._rg and recording() and x.requires_grad):
        return counted
    if _dispatch.modes or hasattr(x._be, "level"):  # transforms make zeros of what is not there
        return counted + replaced(x, x != 0, 0.0).abs()
    node = new(_Count)
    node._hooks, node.saved, node.edges, node.seq = None, (), (edge(x),), next_seq()
    counted._rg, counted._fn = True, node
    return counted


def _smooth_norm(magnitude: Tensor, p: float, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    """The p-norm whose gradient at zero, where powers have none, is the subgradient 0."""
    if p < 1:
        none = magnitude == 0
        powers = replaced(magnitude, none, 1.0) ** p
        powers = replaced(powers, none, 0.0 if p > 0 else float("inf"))
    else:
        powers = magnitude**p
    total = _sum(powers, dims, keepdim)
    if p < 0:
        return total ** (1.0 / p)
    return replaced(replaced(total, total == 0, 1.0) ** (1.0 / p), total == 0, 0.0)


def _need_wider(name: str, x: Tensor, dtype: DType) -> None:
    """Refuse a dtype that does not hold the numbers of `x`, or is of another kind."""
    given, wanted = D.type_name(x.dtype), D.type_name(dtype)
    if not dtype.fp:
        raise RuntimeError(f"{name}: dtype should be floating point or complex, but got {wanted}")
    if dtype.is_complex != x.dtype.is_complex:
        kind = "complex" if x.dtype.is_complex else "real"
        raise RuntimeError(f"{name}: dtype should be {kind} for {kind} inputs, but got {wanted}")
    if D.promote_types(x.dtype, dtype) is not dtype:
        raise RuntimeError(
            f"{name}: the dtype of the input ({given}) should be convertible without narrowing to "
            f"the specified dtype ({wanted})"
        )


@public(method=False)
def frobenius_norm(
    input: Tensor, dim: Ints = (), keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """The root of the sum of squares, of all elements or along dimensions.

    >>> import flambeau as fb
    >>> fb.frobenius_norm(fb.ones(2, 2))
    tensor(2.)
    """
    return norm(input, 2, dim, keepdim, out=out)


@public(method=False)
def nuclear_norm(
    input: Tensor, dim: Ints | None = None, keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """The sum of the singular values of the matrices in two dimensions, by default the last.

    Raises:
        RuntimeError: the input has fewer than two dimensions.

    >>> import flambeau as fb
    >>> fb.nuclear_norm(fb.eye(3))
    tensor(3.)
    """
    if isinstance(dim, bool):  # nuclear_norm(input, keepdim)
        dim, keepdim = None, dim
    if dim is None:
        if need_tensor(input, "nuclear_norm", "input").dim() < 2:
            raise RuntimeError(
                f"nuclear_norm: the input must have at least 2 dimensions, got {input.dim()}"
            )
        dim = (input.dim() - 2, input.dim() - 1)
    return norm(input, "nuc", dim, keepdim, out=out)


@public
@takes_as_annotated
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The p-norm of input - other.

    >>> import flambeau as fb
    >>> fb.dist(fb.tensor([3.0]), fb.tensor([1.0]))
    tensor(2.)
    """
    return norm(need_tensor(input, "dist", "input") - other, p)


@public(inplace="method")
@takes_as_annotated
def renorm(
    input: Tensor, p: float, dim: int, maxnorm: float, *, out: Tensor | None = None
) -> Tensor:
    """Each sub-tensor along `dim` shrunk to the p-norm `maxnorm` where its p-norm is larger.

    Raises:
        RuntimeError: `p` is not positive, `maxnorm` is negative, or the input has one dimension.

    >>> import flambeau as fb
    >>> fb.renorm(fb.tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1)
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])
    """
    x = need_tensor(input, "renorm", "input")
    if not p > 0:
        raise RuntimeError(f"renorm: non-positive-norm not supported, got p = {p}")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    if x.dim() < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {x.dim()} dimensions")
    d = dim_of(dim, x.dim())
    others = tuple(i for i in builtins.range(x.dim()) if i != d)
    half = x.dtype in (D.float16, D.bfloat16)
    length = x.norm(p, others, True, dtype=D.float32 if half else None)
    # PyTorch's margin against the rounding of the quotient.
    factor = where(length > maxnorm, maxnorm / (length + 1e-7), length.new_ones(()))
    return deliver(
        (x * cast(factor, x.dtype) if half else x * factor).contiguous(), out, input, exact=True
    )
