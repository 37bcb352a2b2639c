"""The common part of the functions of `flambeau.fft`: arguments, sizes and scales."""

from __future__ import annotations

import math
from collections.abc import Sequence

from flambeau._dispatch.arguments import (
    dim_of,
    need_number,
    need_tensor,
)
from flambeau._dispatch.dispatch import cast
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau.ops import OPS
from flambeau.ops.pointwise.complexes import conj
from flambeau.ops.shapes.movement import cat

Sizes = Sequence[int] | None
Dims = Sequence[int] | int | None

_c2c, _r2c, _c2r = OPS["fft_c2c"], OPS["fft_r2c"], OPS["fft_c2r"]


def one(n: int | None) -> Sizes:
    """The size of one dimension as those of several.

    Raises:
        RuntimeError: it is below 1.
    """
    if n is not None and need_number(n, "fft", "n") < 1:
        raise _too_small(n)
    return None if n is None else (n,)


def complex_to_complex(
    name: str, input: Tensor, s: Sizes, dim: Dims, norm: str | None, forward: bool
) -> Tensor:
    """The transform of complex numbers, or its inverse."""
    x = _promoted(name, input)
    dims, sizes = _dims_and_sizes(x, s, dim)
    if name not in ("fft", "ifft"):
        x = cast(x, x.dtype.to_complex())
    x = _resized(x, dims, sizes)
    if not dims:
        return x.clone()
    return _c2c(x, tuple(dims), forward, _scale(norm, forward, math.prod(sizes)))


def real_to_complex(
    name: str, input: Tensor, s: Sizes, dim: Dims, norm: str | None, forward: bool
) -> Tensor:
    """Half of the transform of real numbers; conjugated and inverse if not `forward`."""
    x = _real_input(name, input)
    dims, sizes = _dims_and_sizes(x, s, dim)
    _need_dims(name, dims)
    x = _resized(x, dims, sizes)
    found = _r2c(x, dims[-1], _scale(norm, forward, math.prod(sizes)))
    found = found if forward else conj(found)
    if not dims[:-1]:
        return found
    found = _c2c(found, tuple(dims[:-1]), forward, 1.0)
    return found.contiguous() if forward else found


def complex_to_real(
    name: str, input: Tensor, s: Sizes, dim: Dims, norm: str | None, forward: bool
) -> Tensor:
    """Real numbers from half of their transform; `forward` is the reverse of `real_to_complex`."""
    x = _promoted(name, input)
    dims, sizes = _dims_and_sizes(x, s, dim)
    _need_dims(name, dims)
    if s is None or list(s)[-1] == -1:
        sizes[-1] = 2 * (sizes[-1] - 1)
    half = [*sizes[:-1], sizes[-1] // 2 + 1]
    x = _resized(cast(x, x.dtype.to_complex()), dims, half, given=sizes)
    if dims[:-1]:
        x = _c2c(x, tuple(dims[:-1]), forward, 1.0)
    scale = _scale(norm, forward, math.prod(sizes))
    return _c2r(conj(x) if forward else x, dims[-1], sizes[-1], scale)


def _promoted(name: str, input: Tensor) -> Tensor:
    x = need_tensor(input, f"fft_{name}", "input")
    if x.dtype in (D.float16, D.bfloat16):
        raise RuntimeError(f"Unsupported dtype {x.dtype}: {name} takes float32 and float64")
    return x if x.dtype.fp else cast(x, D.get_default_dtype())


def _real_input(name: str, input: Tensor) -> Tensor:
    x = _promoted(name, input)
    if x.dtype.is_complex:
        raise RuntimeError(f"{name} expects a real input tensor, but got {x.dtype}")
    return x


def _need_dims(name: str, dims: list[int]) -> None:
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")


def _dims_and_sizes(x: Tensor, s: Sizes, dim: Dims) -> tuple[list[int], list[int]]:
    rank = x.dim()
    if dim is not None:
        given = [dim] if isinstance(dim, int) else list(dim)
        dims = [dim_of(d, rank, scalar_as_vector=False) for d in given]
        if len(set(dims)) < len(dims):
            raise RuntimeError(f"FFT dims must be unique, got dim={tuple(given)}")
    elif s is None:
        dims = list(range(rank))
    else:
        if len(s) > rank:
            raise RuntimeError(
                f"Got shape with {len(s)} values but input tensor only has {rank} dimensions."
            )
        dims = list(range(rank - len(s), rank))
    if s is not None and len(s) != len(dims):
        raise RuntimeError(
            "When given, dim and shape arguments must have the same length, got "
            f"{len(dims)} and {len(s)}"
        )
    have = [x._a.shape[d] for d in dims]
    return dims, have if s is None else [h if n == -1 else n for h, n in zip(have, s, strict=True)]


def _resized(
    x: Tensor, dims: list[int], sizes: list[int], given: list[int] | None = None
) -> Tensor:
    """`x` cut or followed by zeros to `sizes` along `dims`; `given` is what the user asked for."""
    for n in given or sizes:
        if n < 1:
            raise _too_small(n)
    for d, n in zip(dims, sizes, strict=True):
        have = x._a.shape[d]
        if have > n:
            x = x.narrow(d, 0, n)
        elif have < n:
            shape = (*x._a.shape[:d], n - have, *x._a.shape[d + 1 :])
            x = cat([x, x.new_zeros(shape)], d)
    return x


def _scale(norm: str | None, forward: bool, n: int) -> float:
    if norm not in (None, "backward", "forward", "ortho"):
        raise RuntimeError(f'Invalid normalization mode: "{norm}"')
    if norm == "ortho":
        return n**-0.5
    return 1 / n if forward is (norm == "forward") else 1.0


def _too_small(n: int) -> RuntimeError:
    return RuntimeError(f"Invalid number of data points ({n}) specified")
