"""Fractional max pooling: windows of one size at pseudo-random places (Graham, arXiv:1412.6071)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flambeau._dispatch.arguments import need_tensor
from flambeau._dispatch.dispatch import cast
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.hints import Ints
from flambeau.ops.creation.creation import full
from flambeau.ops.creation.ranges import arange
from flambeau.ops.declaration.public import public
from flambeau.ops.shapes.movement import cat
from flambeau.ops.spatial.image_windows import Sizes
from flambeau.ops.spatial.pooling import position_of_largest
from flambeau.ops.spatial.pooling_arguments import per_dimension


@public(method=False)
def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    output_size: int | Sequence[int | None] | None,
    random_samples: Tensor,
) -> tuple[Tensor, Tensor]:
    """The maxima of `output_size` windows per plane of an image, and where they stand in H·W.

    With α = (H - K) / (O - 1) and the plane's sample u, window i starts at ⌊α(i + u)⌋ - ⌊αu⌋, the
    last one at H - K.  The samples of a plane are those of W and of H.

    Shapes: input (N, C, H, W) or (C, H, W), random_samples (N, C, 2); results (…, C, OH, OW).

    Raises:
        RuntimeError: shapes or sizes do not fit; says which.

    >>> import flambeau as fb
    >>> fb.fractional_max_pool2d(fb.arange(9.0).reshape(1, 3, 3), 2, 2, fb.zeros(1, 1, 2))[1]
    tensor([[[4, 5],
             [7, 8]]])
    """
    return _pooled("fractional_max_pool2d", 2, input, kernel_size, output_size, random_samples)


@public(method=False)
def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    output_size: int | Sequence[int | None] | None,
    random_samples: Tensor,
) -> tuple[Tensor, Tensor]:
    """`fractional_max_pool2d` of volumes; the samples of a plane are those of D, H and W.

    Shapes: input (N, C, D, H, W) or (C, D, H, W), random_samples (N, C, 3).

    Raises:
        RuntimeError: shapes or sizes do not fit; says which.

    >>> import flambeau as fb
    >>> x = fb.arange(8.0).reshape(1, 2, 2, 2)
    >>> fb.fractional_max_pool3d(x, (1, 2, 2), (2, 1, 1), fb.zeros(1, 1, 3))[1].flatten()
    tensor([3, 7])
    """
    return _pooled("fractional_max_pool3d", 3, input, kernel_size, output_size, random_samples)


def _pooled(
    where: str, rank: int, input: Tensor, kernel_size: object, output_size: object, samples: Tensor
) -> tuple[Tensor, Tensor]:
    x = need_tensor(input, where, "input")
    u = need_tensor(samples, where, "random_samples")
    kernel = per_dimension(where, rank, kernel_size, "kernel_size")
    wanted = per_dimension(where, rank, output_size, "output_size")
    _check(where, rank, x, kernel, wanted)
    unbatched = x.dim() == rank + 1
    batch = x.unsqueeze(0) if unbatched else x
    n, c, *size = batch.shape
    if u.dtype is not x.dtype:
        raise RuntimeError(f"{where}: expected samples of {x.dtype}, but got {u.dtype}")
    if u.dim() != 3 or u.shape[0] < n or u.shape[1] != c or u.shape[2] != rank:
        raise RuntimeError(
            f"{where}: expected _random_samples of size {[n, c, rank]} or with more in the first "
            f"dimension, but got {list(u.shape)}"
        )
    u = u.detach().narrow(0, 0, n)
    order = (1, 0) if rank == 2 else (0, 1, 2)
    flat: Any = 0
    for d in range(rank):
        starts = _starts(u.select(2, order[d]), size[d], kernel[d], wanted[d])
        taps = starts.unsqueeze(-1) + arange(kernel[d], device=x.device)
        shape = [n, c, *[1] * (2 * rank)]
        shape[2 + d], shape[2 + rank + d] = wanted[d], kernel[d]
        flat = flat * size[d] + taps.reshape(shape)
    places = flat.flatten(2 + rank)
    planes = batch.flatten(2)
    elements = planes.detach().gather(2, places.flatten(2)).reshape(places.shape)
    indices = places.gather(2 + rank, position_of_largest(elements)).squeeze(2 + rank)
    values = planes.gather(2, indices.flatten(2)).reshape(indices.shape)
    return (values.squeeze(0), indices.squeeze(0)) if unbatched else (values, indices)


def _starts(u: Tensor, size: int, kernel: int, count: int) -> Tensor:
    """The first position of each window, (N, C, count)."""
    last = full((*u.shape, 1), size - kernel, dtype=D.int64, device=u.device)
    if count == 1:
        return last
    sample = u.unsqueeze(-1)
    # Rounded to the samples' dtype, as the positions depend on it.
    alpha = full((1,), size - kernel, dtype=u.dtype, device=u.device) / (count - 1)
    steps = arange(count - 1, dtype=u.dtype, device=u.device)
    first = cast((sample + steps) * alpha, D.int64) - cast(sample * alpha, D.int64)
    return cat([first, last], -1)


def _check(where: str, rank: int, x: Tensor, kernel: Sizes, wanted: Sizes) -> None:
    if x.dim() not in (rank + 1, rank + 2) or 0 in x.shape[-rank - 1 :]:
        raise RuntimeError(
            f"{where}(): Expected non-empty {rank + 1}D or {rank + 2}D tensor, but got: "
            f"{list(x.shape)}"
        )
    if not x.dtype.is_floating_point:
        raise NotImplementedError(f"{where}(): not implemented for {x.dtype}")
    if min(wanted) <= 0:
        raise RuntimeError(f"{where}: output_size must be positive, got {list(wanted)}")
    for n, k, o in zip(x.shape[-rank:], kernel, wanted, strict=True):
        if k <= 0 or o + k - 1 > n:
            raise RuntimeError(
                f"{where}(): {o} windows of {k} elements are too many or too large for a "
                f"dimension of size {n} (kernel_size={kernel}, output_size={wanted})"
            )
