"""Discrete Fourier transforms along chosen dimensions.

Args, where they apply:
    n, s: the sizes of the signal along `dim`: longer input is cut, shorter is followed by zeros.
    dim: the dimensions of the signal.
    norm: where the result is divided by the number n of elements: ``"backward"`` (default) in the
        inverse, ``"forward"`` in the forward transform, ``"ortho"`` by its square root in both.
    out: a tensor to write the result into.

Integers become the default float; half precisions are refused, as in PyTorch.  The module itself is
the function ``fft(input, signal_ndim, normalized=False)`` of PyTorch 1.0, on pairs of real numbers.

>>> import flambeau as fb
>>> fb.fft.fft(fb.tensor([1.0, 2.0]))
tensor([ 3.+0.j, -1.+0.j])
>>> fb.fft(fb.tensor([[1.0, 0.0], [2.0, 0.0]]), 1)
tensor([[ 3.,  0.],
        [-1.,  0.]])
"""

from __future__ import annotations

import builtins
import math
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import dim_of, need_tensor
from flambeau._tensor.overrides import offer_calls
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.hints import DeviceLike
from flambeau._writes.out import deliver
from flambeau.fft._arguments import (
    Dims,
    Sizes,
    complex_to_complex,
    complex_to_real,
    one,
    real_to_complex,
)
from flambeau.ops.creation.ranges import arange
from flambeau.ops.shapes.movement import roll
from flambeau.ops.spectra.spectral import fft as on_pairs

if TYPE_CHECKING:
    from flambeau._types.layout import layout as Layout


__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "hfft2",
    "hfftn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]


def _given(result: Tensor, out: Tensor | None, input: Tensor, *, exact: bool = False) -> Tensor:
    return deliver(result, out, input, exact=exact, share="anything")


def _real(result: Tensor, out: Tensor | None, input: Tensor) -> Tensor:
    # A real result goes into any real `out`, but not into a complex one.
    return _given(result, out, input, exact=isinstance(out, Tensor) and out.dtype.is_complex)


def fft(
    input: Tensor,
    n: int | None = None,
    dim: int = -1,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The transform along one dimension: X_k = Σ_j x_j exp(-2πi jk/n).

    Raises:
        RuntimeError: the dtype is a half precision, `n` is below 1, or `norm` is unknown.

    >>> import flambeau as fb
    >>> fb.fft.fft(fb.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j])
    """
    return _given(complex_to_complex("fft", input, one(n), dim, norm, True), out, input)


def ifft(
    input: Tensor,
    n: int | None = None,
    dim: int = -1,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse of `fft`: x_j = 1/n Σ_k X_k exp(2πi jk/n).

    >>> import flambeau as fb
    >>> fb.fft.ifft(fb.tensor([3.0, -1.0]))
    tensor([1.+0.j, 2.+0.j])
    """
    return _given(
        complex_to_complex("ifft", input, one(n), dim, norm, False), out, input, exact=True
    )


def rfft(
    input: Tensor,
    n: int | None = None,
    dim: int = -1,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The first n // 2 + 1 numbers of the transform of real numbers, which determine the others.

    Raises:
        RuntimeError: the input is complex.

    >>> import flambeau as fb
    >>> fb.fft.rfft(fb.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor([10.+0.j, -2.+2.j, -2.+0.j])
    """
    return _given(real_to_complex("rfft", input, one(n), dim, norm, True), out, input)


def irfft(
    input: Tensor,
    n: int | None = None,
    dim: int = -1,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse of `rfft`; the default of `n` is the even one, 2 (size - 1).

    >>> import flambeau as fb
    >>> fb.fft.irfft(fb.fft.rfft(fb.tensor([1.0, 2.0, 3.0])), 3)
    tensor([1., 2., 3.])
    """
    return _real(complex_to_real("irfft", input, one(n), dim, norm, False), out, input)


def hfft(
    input: Tensor,
    n: int | None = None,
    dim: int = -1,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The real transform of a signal whose second half mirrors the first, conjugated.

    >>> import flambeau as fb
    >>> fb.fft.hfft(fb.tensor([1.0, 2.0, 3.0]))
    tensor([ 8., -2.,  0., -2.])
    """
    return _real(complex_to_real("hfft", input, one(n), dim, norm, True), out, input)


def ihfft(
    input: Tensor,
    n: int | None = None,
    dim: int = -1,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse of `hfft`.

    >>> import flambeau as fb
    >>> fb.fft.ihfft(fb.tensor([8.0, -2.0, 0.0, -2.0])).real
    tensor([1., 2., 3.])
    """
    return _given(real_to_complex("ihfft", input, one(n), dim, norm, False), out, input, exact=True)


def fftn(
    input: Tensor,
    s: Sizes = None,
    dim: Dims = None,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The transform along several dimensions, by default all (or the last ``len(s)``).

    Raises:
        RuntimeError: a dimension appears twice, or `s` and `dim` differ in length.

    >>> import flambeau as fb
    >>> fb.fft.fftn(fb.ones(2, 2))
    tensor([[4.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]])
    """
    return _given(complex_to_complex("fftn", input, s, dim, norm, True), out, input)


def ifftn(
    input: Tensor,
    s: Sizes = None,
    dim: Dims = None,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse of `fftn`.

    >>> import flambeau as fb
    >>> fb.fft.ifftn(fb.fft.fftn(fb.ones(2, 2))).real
    tensor([[1., 1.],
            [1., 1.]])
    """
    return _given(complex_to_complex("ifftn", input, s, dim, norm, False), out, input)


def rfftn(
    input: Tensor,
    s: Sizes = None,
    dim: Dims = None,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The transform of real numbers along several dimensions, half of it along the last.

    >>> import flambeau as fb
    >>> fb.fft.rfftn(fb.ones(2, 4)).shape
    torch.Size([2, 3])
    """
    return _given(real_to_complex("rfftn", input, s, dim, norm, True), out, input)


def irfftn(
    input: Tensor,
    s: Sizes = None,
    dim: Dims = None,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse of `rfftn`; by default the last size is taken to be even.

    >>> import flambeau as fb
    >>> fb.fft.irfftn(fb.fft.rfftn(fb.ones(2, 2)))
    tensor([[1., 1.],
            [1., 1.]])
    """
    return _real(complex_to_real("irfftn", input, s, dim, norm, False), out, input)


def hfftn(
    input: Tensor,
    s: Sizes = None,
    dim: Dims = None,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The real transform of a signal that equals its conjugate mirrored in all dimensions.

    >>> import flambeau as fb
    >>> fb.fft.hfftn(fb.ones(2, 2))
    tensor([[4., 0.],
            [0., 0.]])
    """
    return _real(complex_to_real("hfftn", input, s, dim, norm, True), out, input)


def ihfftn(
    input: Tensor,
    s: Sizes = None,
    dim: Dims = None,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse of `hfftn`.

    >>> import flambeau as fb
    >>> fb.fft.ihfftn(fb.ones(2, 2)).real
    tensor([[1., 0.],
            [0., 0.]])
    """
    return _given(real_to_complex("ihfftn", input, s, dim, norm, False), out, input)


def fft2(
    input: Tensor,
    s: Sizes = None,
    dim: Dims = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """`fftn` along two dimensions.

    >>> import flambeau as fb
    >>> fb.fft.fft2(fb.ones(3, 1, 2)).shape
    torch.Size([3, 1, 2])
    """
    return fftn(input, s, dim, norm, out=out)


def ifft2(
    input: Tensor,
    s: Sizes = None,
    dim: Dims = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """`ifftn` along two dimensions.

    >>> import flambeau as fb
    >>> fb.fft.ifft2(fb.ones(3, 1, 2)).shape
    torch.Size([3, 1, 2])
    """
    return ifftn(input, s, dim, norm, out=out)


def rfft2(
    input: Tensor,
    s: Sizes = None,
    dim: Dims = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """`rfftn` along two dimensions.

    >>> import flambeau as fb
    >>> fb.fft.rfft2(fb.ones(3, 4, 4)).shape
    torch.Size([3, 4, 3])
    """
    return rfftn(input, s, dim, norm, out=out)


def irfft2(
    input: Tensor,
    s: Sizes = None,
    dim: Dims = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """`irfftn` along two dimensions.

    >>> import flambeau as fb
    >>> fb.fft.irfft2(fb.ones(3, 4, 3)).shape
    torch.Size([3, 4, 4])
    """
    return irfftn(input, s, dim, norm, out=out)


def hfft2(
    input: Tensor,
    s: Sizes = None,
    dim: Dims = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """`hfftn` along two dimensions.

    >>> import flambeau as fb
    >>> fb.fft.hfft2(fb.ones(3, 4, 3)).shape
    torch.Size([3, 4, 4])
    """
    return hfftn(input, s, dim, norm, out=out)


def ihfft2(
    input: Tensor,
    s: Sizes = None,
    dim: Dims = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """`ihfftn` along two dimensions.

    >>> import flambeau as fb
    >>> fb.fft.ihfft2(fb.ones(3, 4, 4)).shape
    torch.Size([3, 4, 3])
    """
    return ihfftn(input, s, dim, norm, out=out)


@takes_as_annotated
def fftfreq(
    n: int,
    d: float = 1.0,
    *,
    out: Tensor | None = None,
    dtype: D.dtype | None = None,
    layout: Layout | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """The frequencies of `fft` of `n` values `d` apart: 0, 1, ..., then the negative ones, / (n d).

    >>> import flambeau as fb
    >>> fb.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    places = arange(n, dtype=_floating("fftfreq", dtype), device=device)
    places[(n + 1) // 2 :] -= n
    return _finished(places * _step(n, d), out, requires_grad)


@takes_as_annotated
def rfftfreq(
    n: int,
    d: float = 1.0,
    *,
    out: Tensor | None = None,
    dtype: D.dtype | None = None,
    layout: Layout | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """The frequencies of `rfft` of `n` values `d` apart: 0, 1, ..., n // 2, divided by (n d).

    >>> import flambeau as fb
    >>> fb.fft.rfftfreq(4)
    tensor([0.0000, 0.2500, 0.5000])
    """
    places = arange(n // 2 + 1, dtype=_floating("rfftfreq", dtype), device=device)
    return _finished(places * _step(n, d), out, requires_grad)


def _step(n: int, d: float) -> float:
    return 1.0 / (n * d) if n * d else math.inf


def _floating(name: str, dtype: D.dtype | None) -> D.dtype:
    found = D.get_default_dtype() if dtype is None else dtype
    if not isinstance(found, D.dtype):
        raise TypeError(f"argument 'dtype' must be torch.dtype, not {type(found).__name__}")
    if not found.fp:
        raise RuntimeError(f"{name} requires a floating point or complex dtype, got {found}")
    return found


def _finished(values: Tensor, out: Tensor | None, requires_grad: bool) -> Tensor:
    if isinstance(out, Tensor) and out.numel() == values.numel():
        values = values.reshape(tuple(out.shape))
    found = deliver(values, out)
    return found.requires_grad_() if requires_grad else found


def fftshift(input: Tensor, dim: Dims = None) -> Tensor:
    """The frequencies of a transform in ascending order, zero in the middle.

    >>> import flambeau as fb
    >>> fb.fft.fftshift(fb.fft.fftfreq(4))
    tensor([-0.5000, -0.2500,  0.0000,  0.2500])
    """
    return _shifted("fftshift", input, dim, 0)


def ifftshift(input: Tensor, dim: Dims = None) -> Tensor:
    """The inverse of `fftshift`.

    >>> import flambeau as fb
    >>> fb.fft.ifftshift(fb.tensor([-1, 0, 1]))
    tensor([ 0,  1, -1])
    """
    return _shifted("ifftshift", input, dim, 1)


def _shifted(name: str, input: Tensor, dim: Dims, extra: int) -> Tensor:
    x = need_tensor(input, f"fft_{name}", "input")
    given = builtins.range(x.dim()) if dim is None else [dim] if isinstance(dim, int) else dim
    dims = [dim_of(d, x.dim(), scalar_as_vector=False) for d in given]
    return roll(x, [(x._a.shape[d] + extra) // 2 for d in dims], dims)


class _CallableModule(ModuleType):
    """This module, which is also the function of PyTorch 1.0."""

    def __call__(self, input: Tensor, signal_ndim: int, normalized: bool = False) -> Tensor:
        return on_pairs(input, signal_ndim, normalized)


sys.modules[__name__].__class__ = _CallableModule


offer_calls(globals())
