"""What the ops of linear algebra share: adjoints, checks of their arguments, and their error."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from flambeau._dispatch.arguments import broadcast_shapes, need_input, need_tensor
from flambeau._dispatch.dispatch import all_values, cast
from flambeau._types import dtype as D
from flambeau.ops.declaration.table import OPS
from flambeau.ops.pointwise.elementwise import where

if TYPE_CHECKING:
    from flambeau._tensor.tensor import Tensor
    from flambeau._types.native import Array
    from flambeau.ops.declaration.formulas import Formulas


class LinAlgError(RuntimeError):
    """A matrix has no decomposition, inverse or solution of the kind asked for.

    >>> import flambeau as fb
    >>> try:
    ...     fb.linalg.inv(fb.zeros(1, 1))
    ... except fb.linalg.LinAlgError:
    ...     print("singular")
    singular
    """


def with_adjoints(formula: Callable[..., Any]) -> Callable[..., Any]:
    """A formula for gradients w with dL = Re(tr(wᴴ dA)), in a backward pass that has conj(w).

    In the literature, and here, gradients of functions of complex matrices are written with
    conjugate transposes; `pointwise.complexes` says what the backward pass has instead.
    """

    @functools.wraps(formula)
    def transposed(F: Formulas, g: object, *saved: object) -> Any:
        return _conj_all(F, formula(F, _conj_all(F, g), *saved))

    return transposed


def _conj_all(F: Formulas, value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_conj_all(F, v) for v in value)
    return None if value is None else conj(F, value)


def conj(F: Formulas, a: Array) -> Array:
    """The complex conjugate in a formula; a real operand itself."""
    return F.conj(a) if F.is_complex(a) else a


def adjoint(F: Formulas, a: Array) -> Array:
    """The conjugate transpose of matrices in a formula."""
    return F.mT(conj(F, a))


def identity(F: Formulas, size: int, like: Array) -> Array:
    """The identity matrix in a formula."""
    ones = F.add(F.zeros((size,), like), F.scalar(1, like))
    return F.diagonal_backward(ones, (size, size), 0, 0, 1)


def embedded(F: Formulas, d: Array) -> Array:
    """Vectors as diagonal matrices in a formula."""
    shape = tuple(d.shape)
    n = len(shape)
    return F.diagonal_backward(d, (*shape, shape[-1]), 0, n - 1, n)


def diagonal(F: Formulas, a: Array) -> Array:
    """The diagonals of matrices in a formula."""
    n = len(a.shape)
    return F.diagonal(a, 0, n - 2, n - 1)


def rows(F: Formulas, a: Array, start: int, stop: int) -> Array:
    """Some rows of matrices in a formula."""
    return F.slice(a, (*_whole(a.shape[:-2]), slice(start, stop, 1)))


def columns(F: Formulas, a: Array, start: int, stop: int) -> Array:
    """Some columns of matrices in a formula."""
    return F.slice(a, (*_whole(a.shape[:-1]), slice(start, stop, 1)))


def _whole(lengths: Sequence[int]) -> list[slice]:
    return [slice(0, n, 1) for n in lengths]


def across(F: Formulas, d: Array) -> Array:
    """Vectors as rows in a formula: a factor for each column of a matrix."""
    return F.reshape(d, (*d.shape[:-1], 1, d.shape[-1]))


def down(F: Formulas, d: Array) -> Array:
    """Vectors as columns in a formula: a factor for each row of a matrix."""
    return F.reshape(d, (*d.shape, 1))


def hermitian_gradient(F: Formulas, g: Array, upper: bool) -> Array:
    """The gradient of the one triangle that was read of a Hermitian matrix with gradient `g`."""
    both = F.add(g, adjoint(F, g))
    half = embedded(F, F.div(diagonal(F, both), F.scalar(2, both)))
    return F.sub(F.triu(both, 0) if upper else F.tril(both, 0), half)


def real_part(x: Tensor) -> Tensor:
    """The real part of a complex tensor in its real dtype; a real tensor itself."""
    return cast(x, x.dtype.to_real())


def conjugate(x: Tensor) -> Tensor:
    """The complex conjugate; a real tensor itself."""
    return OPS["conj"](x) if x.dtype.is_complex else x


def adjoint_of(x: Tensor) -> Tensor:
    """The conjugate transpose."""
    return conjugate(x).mT


def eye_like(x: Tensor, size: int) -> Tensor:
    """The identity matrix in the dtype of `x`, where it lives."""
    return OPS["diagonal_backward"](x.new_ones((size,)), (size, size), 0, 0, 1)


def magnitude(x: Tensor) -> Tensor:
    """The largest magnitude in each matrix, or 1: a scale at which squares do not overflow."""
    if not x.numel():
        return x.new_ones(())
    largest = x.detach().abs().amax((-2, -1), True)
    return cast(where(largest > 0, largest, largest.new_ones(())), x.dtype)


def on_meta(x: Tensor) -> bool:
    """Whether a tensor has a shape and no numbers."""
    return x.device.type == "meta"


# Which functions PyTorch lets its kernels refuse dtypes in.
_KERNELS = {
    "cholesky": "cholesky_cpu",
    "cholesky_solve": "cholesky_solve_cpu",
    "torch.geqrf": "geqrf_cpu",
}
_KERNELS_OF_HALVES = {
    "cholesky_inverse": "cholesky_inverse_out_cpu",
    "linalg.cholesky": "cholesky_cpu",
    "linalg.cholesky_ex": "cholesky_cpu",
    "linalg.cond": "linalg_svd_cpu",
    "linalg.det": "lu_cpu",
    "linalg.eig": "linalg_eig_out_cpu",
    "linalg.eigh": "linalg_eigh_cpu",
    "linalg.eigvals": "linalg_eig_out_cpu",
    "linalg.eigvalsh": "linalg_eigh_cpu",
    "linalg.lu": "lu_cpu",
    "linalg.lu_solve": "linalg.lu_solve_cpu",
    "linalg.qr": "geqrf_cpu",
    "linalg.solve": "lu_cpu",
    "linalg.solve_ex": "lu_cpu",
    "linalg.solve_triangular": "triangular_solve_cpu",
    "linalg.svd": "linalg_svd_cpu",
    "torch.linalg.householder_product": "orgqr_cpu",
    "torch.linalg.lu_factor": "lu_cpu",
    "torch.linalg.lu_factor_ex": "lu_cpu",
    "torch.ormqr": "ormqr_cpu",
    "triangular_solve": "triangular_solve_cpu",
    "torch.linalg.ldl_factor_ex": "ldl_factor_kernel_cpu",
}


def floating(name: str, x: Tensor) -> Tensor:
    """`x` if it is of a dtype that decompositions know: float32, float64 or complex.

    Raises:
        RuntimeError: it is not, or NotImplementedError from functions that leave it to a kernel.
    """
    low = x.dtype in (D.float16, D.bfloat16)
    kernel = _KERNELS.get(name) or (_KERNELS_OF_HALVES.get(name) if low else None)
    if kernel and (low or not x.dtype.fp):
        raise NotImplementedError(
            f"\"{kernel}\" not implemented for '{D.type_name(x.dtype)}'; use float32 or float64"
        )
    if not x.dtype.fp:
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got "
            f"{D.type_name(x.dtype)}"
        )
    if low:
        raise RuntimeError(
            f"{name}: Low precision dtypes not supported. Got {D.type_name(x.dtype)}; "
            "convert with .float()"
        )
    return x


def matrices(name: str, value: object, argument: str = "A") -> Tensor:
    """`value` if it is a matrix or a batch of matrices of a dtype that decompositions know.

    Raises:
        TypeError: it is no tensor.
        RuntimeError: it has fewer than two dimensions, or another dtype.
    """
    return floating(name, planes(name, value, argument))


def planes(name: str, value: object, argument: str = "A") -> Tensor:
    """`value` if it is a matrix or a batch of matrices.

    Raises:
        TypeError: it is no tensor.
        RuntimeError: it has fewer than two dimensions.
    """
    x = need_input(value, name, argument)
    if x.dim() < 2:
        raise RuntimeError(f"{name}: The input tensor {argument} must have at least 2 dimensions.")
    return x


def squares(name: str, value: object, argument: str = "A") -> Tensor:
    """`value` if it is a square matrix or a batch of them.

    Raises:
        TypeError, RuntimeError: as `matrices`, or they are not square.
    """
    x = planes(name, value, argument)
    if x.shape[-1] != x.shape[-2]:
        raise RuntimeError(
            f"{name}: {argument} must be batches of square matrices, but they are "
            f"{x.shape[-2]} by {x.shape[-1]} matrices"
        )
    return floating(name, x)


def one_dtype(name: str, a: Tensor, b: Tensor) -> None:
    """Refuse two operands of different dtypes.

    Raises:
        RuntimeError: they differ.
    """
    if a.dtype is not need_tensor(b, name, "B").dtype:
        raise RuntimeError(
            f"{name}: Expected A and B to have the same dtype, but found A of type "
            f"{D.type_name(a.dtype)} and B of type {D.type_name(b.dtype)} instead"
        )


def batched(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Two batches of matrices with their leading dimensions broadcast.

    Raises:
        RuntimeError: the leading dimensions do not fit.
    """
    if a.shape[:-2] == b.shape[:-2]:
        return a, b
    lead = broadcast_shapes(tuple(a.shape[:-2]), tuple(b.shape[:-2]))
    return a.expand(*lead, *a.shape[-2:]), b.expand(*lead, *b.shape[-2:])


def check_info(name: str, info: Tensor, text: str) -> None:
    """Raise for the first matrix whose `info` is not 0; ``{}`` in `text` is that number.

    Raises:
        LinAlgError: there is one; its place in the batch is named.
    """
    if on_meta(info):
        return
    info = all_values(info)
    if info.dim() == 0:
        if number := int(info.item()):
            raise LinAlgError(f"{name}: {text.format(number)}")
        return
    failed = first_nonzero(info)
    if failed is not None:
        raise LinAlgError(f"{name}: (Batch element {failed[0]}): {text.format(failed[1])}")


def first_nonzero(info: Tensor) -> tuple[int, int] | None:
    """Flat place and value of the first element that is not 0."""
    info = all_values(info)
    if info.numel() == 0 or not info.any().item():
        return None
    return next(
        (i, int(n)) for i, n in zip(itertools.count(), info.reshape(-1).tolist(), strict=False) if n
    )
