"""The standard's Fourier transforms.

>>> import flambeau as fb
>>> fb.array_api.fft.fft(fb.ones(2))
tensor([2.+0.j, 0.+0.j])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau import Tensor
from flambeau._dispatch.annotated import all_take_as_annotated

if TYPE_CHECKING:
    from collections.abc import Callable

    from flambeau._types.dtype import dtype as DType
    from flambeau._types.hints import DeviceLike


_ALONG_ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
_ALONG_MANY = ("fftn", "ifftn", "rfftn", "irfftn")

__all__ = ["fftfreq", "fftshift", "ifftshift", "rfftfreq", *_ALONG_MANY, *_ALONG_ONE]


def _along_one(name: str) -> Callable[..., Any]:
    function = getattr(fb.fft, name)

    def transform(
        x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward"
    ) -> Tensor:
        return function(x, n, axis, norm)

    return _named(transform, name)


def _along_many(name: str) -> Callable[..., Any]:
    function = getattr(fb.fft, name)

    def transform(
        x: Tensor, /, *, s: object = None, axes: object = None, norm: str = "backward"
    ) -> Tensor:
        return function(x, s, axes, norm)

    return _named(transform, name)


def _named(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"``flambeau.fft.{name}``, by the standard's argument names."
    return function


globals().update({name: _along_one(name) for name in _ALONG_ONE})
globals().update({name: _along_many(name) for name in _ALONG_MANY})


def fftfreq(
    n: int, /, *, d: float = 1.0, dtype: DType | None = None, device: DeviceLike | None = None
) -> Tensor:
    """The frequencies of a transform's elements."""
    return fb.fft.fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(
    n: int, /, *, d: float = 1.0, dtype: DType | None = None, device: DeviceLike | None = None
) -> Tensor:
    """The frequencies of the elements of a transform of real numbers."""
    return fb.fft.rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x: Tensor, /, *, axes: Any = None) -> Tensor:
    """With frequency zero in the middle."""
    return fb.fft.fftshift(x, axes)


def ifftshift(x: Tensor, /, *, axes: Any = None) -> Tensor:
    """With frequency zero at the start again."""
    return fb.fft.ifftshift(x, axes)


all_take_as_annotated(globals())
