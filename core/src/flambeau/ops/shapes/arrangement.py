"""Arrangements of elements: grids, repetitions, stacks, rotations, sequences."""

from __future__ import annotations

import itertools
import math
from typing import Any

from flambeau._dispatch.arguments import dim_of, need_list, need_tensor
from flambeau._dispatch.dispatch import cast
from flambeau._dispatch.keywords import documented
from flambeau._dispatch.warning import warn
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.dtype import dtype as DType
from flambeau._types.memory_format import contiguous_format
from flambeau.ops.creation.creation import arange, finished, linspace, ones, tensor
from flambeau.ops.declaration.public import public
from flambeau.ops.reductions.counting import searchsorted
from flambeau.ops.shapes.movement import cat, flip, stack


def _several(tensors: tuple[Any, ...], name: str) -> list[Tensor]:
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    return [need_tensor(x, name, "tensors") for x in tensors]


@public(method=False)
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Coordinates on a grid: the i-th result varies along dimension i as the i-th vector does.

    With ``indexing="xy"`` the first two dimensions are exchanged. The results are expanded views.

    Raises:
        RuntimeError: an input is no vector, or dtypes differ, or `indexing` is neither "ij" nor
            "xy".

    >>> import flambeau as fb
    >>> fb.meshgrid(fb.tensor([1, 2]), fb.tensor([3, 4]), indexing="ij")[0]
    tensor([[1, 1],
            [2, 2]])
    """
    parts = _several(tensors, "meshgrid")
    if not parts:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    if indexing not in (None, "ij", "xy"):
        raise RuntimeError(
            f"meshgrid: indexing must be one of 'xy' or 'ij', but received: {indexing!r}"
        )
    for x in parts:
        if x.dim() > 1:
            raise RuntimeError(
                f"meshgrid: Expected 0D or 1D tensor in the tensor list but got: {x.dim()}D"
            )
        if x.dtype is not parts[0].dtype:
            raise RuntimeError(
                "meshgrid expects all tensors to have the same dtype, got "
                f"{parts[0].dtype} and {x.dtype}"
            )
    exchanged = indexing == "xy" and len(parts) > 1
    if exchanged:
        parts[:2] = parts[1::-1]
    shape = tuple(x.numel() for x in parts)
    grids = [
        x.reshape(tuple(n if j == i else 1 for j, n in enumerate(shape))).expand(shape)
        for i, x in enumerate(parts)
    ]
    if exchanged:
        grids[:2] = grids[1::-1]
    return tuple(grids)


@public(method=False)
def cartesian_prod(*tensors: Any) -> Tensor:
    """All tuples with one element of each vector, as rows in lexicographic order.

    >>> import flambeau as fb
    >>> fb.cartesian_prod(fb.tensor([1, 2]), fb.tensor([3, 4]))
    tensor([[1, 3],
            [1, 4],
            [2, 3],
            [2, 4]])
    """
    parts = _several(tensors, "cartesian_prod")
    for x in parts:
        if x.dim() != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(x.shape)}")
    if len(parts) == 1:
        return parts[0]
    return stack([g.reshape(-1) for g in meshgrid(*parts, indexing="ij")], 1)


@public(method=False)
@documented({"tensor": "input"})
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of `r` elements of a vector, as rows in lexicographic order of their places.

    >>> import flambeau as fb
    >>> fb.combinations(fb.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    x = need_tensor(input, "combinations", "input")
    if x.dim() != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(x.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return x.new_empty((0,))
    if r > 64:
        raise RuntimeError(f"combinations of {r} elements need more than 64 dimensions")
    places = arange(x.numel(), device=x.device)
    grids = meshgrid(*[places] * r, indexing="ij")
    chosen = ones((x.numel(),) * r, dtype=D.bool_, device=x.device)
    for before, after in itertools.pairwise(grids):
        chosen = chosen & (before <= after if with_replacement else before < after)
    return stack([g.masked_select(chosen) for g in meshgrid(*[x] * r, indexing="ij")], 1)


@public
def tile(input: Tensor, dims: Any) -> Tensor:
    """Copies of the tensor side by side; missing leading counts are 1.

    >>> import flambeau as fb
    >>> fb.tile(fb.tensor([1, 2]), (2,))
    tensor([1, 2, 1, 2])
    """
    x = need_tensor(input, "tile", "input")
    dims = need_list(dims, "tile", "dims")
    return x.repeat((*(1,) * (x.dim() - len(dims)), *dims))


@public
def repeat_interleave(
    input: Tensor, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Each element (or entry of `dim`) repeated in place, a number of times or `repeats[i]` times.

    With one argument, `input` is the counts, and the result holds the index of each, so repeated.

    Raises:
        RuntimeError: counts are negative or not as many as entries.
        NotImplementedError: counts are no int32 or int64.

    >>> import flambeau as fb
    >>> fb.repeat_interleave(fb.tensor([1, 2]), fb.tensor([2, 1]))
    tensor([1, 1, 2])
    """
    x = need_tensor(input, "repeat_interleave", "input")
    if repeats is None:
        return _interleaved(x, output_size)
    if dim is None:
        x, dim = x.reshape(-1), 0
    d = dim_of(dim, x.dim())
    x = x.reshape(1) if x.dim() == 0 else x
    n = x.shape[d]
    if isinstance(repeats, (list, tuple)):
        repeats = tensor(list(repeats), dtype=D.int64, device=x.device)
    if not isinstance(repeats, Tensor):
        if repeats < 0:
            raise RuntimeError(f"Repeats must be non-negative, got {repeats}")
        shape = (*x.shape[: d + 1], repeats, *x.shape[d + 1 :])
        merged = (*x.shape[:d], n * repeats, *x.shape[d + 1 :])
        return x.unsqueeze(d + 1).expand(shape).reshape(merged)
    if repeats.dim() > 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    if repeats.numel() != n and repeats.numel() != 1:
        raise RuntimeError(
            f"repeats must have the same size as input along dim, but got repeats.size(0) = "
            f"{repeats.numel()} and input.size({d}) = {n}"
        )
    counts = repeats.reshape(-1).expand(n)
    return x.index_select(d, _interleaved(counts, output_size))


def _interleaved(counts: Tensor, output_size: int | None) -> Tensor:
    if counts.dim() != 1:
        raise RuntimeError(
            f"repeat_interleave only accepts 1D vector as repeat, got {counts.dim()} dimensions"
        )
    if counts.dtype not in (D.int32, D.int64):
        raise NotImplementedError(
            f"repeat_interleave: counts of dtype {counts.dtype} are not implemented; use int64 or "
            "int32"
        )
    if counts.numel() == 0:
        return cast(counts, counts.dtype)
    if int(counts.amin().item()) < 0:
        raise RuntimeError("repeats can not be negative")
    ends = counts.cumsum(0)
    total = int(ends[-1].item())
    if output_size is not None and output_size != total:
        raise RuntimeError(f"allocated size does not match required size: {output_size} != {total}")
    places = arange(total, device=counts.device)
    return cast(searchsorted(ends, places, right=True), counts.dtype)


def _at_least(x: Tensor, rank: int) -> Tensor:
    n = x.dim()
    if n >= rank:
        return x
    if n == 0:
        return x.reshape((1,) * rank)
    if rank == 2:
        return x.unsqueeze(0)
    return x.unsqueeze(0).unsqueeze(2) if n == 1 else x.unsqueeze(2)


def _all_at_least(tensors: tuple[Any, ...], rank: int) -> Any:
    if len(tensors) == 1 and isinstance(tensors[0], Tensor):
        return _at_least(tensors[0], rank)
    return tuple(_at_least(x, rank) for x in _several(tensors, f"atleast_{rank}d"))


@public(method=False)
def atleast_1d(*tensors: Any) -> Any:
    """Scalars as vectors of one element; other tensors as they are.

    >>> import flambeau as fb
    >>> fb.atleast_1d(fb.tensor(2))
    tensor([2])
    """
    return _all_at_least(tensors, 1)


@public(method=False)
def atleast_2d(*tensors: Any) -> Any:
    """Scalars and vectors as matrices of one row; other tensors as they are.

    >>> import flambeau as fb
    >>> fb.atleast_2d(fb.tensor([1, 2]))
    tensor([[1, 2]])
    """
    return _all_at_least(tensors, 2)


@public(method=False)
def atleast_3d(*tensors: Any) -> Any:
    """Scalars, vectors (n,) and matrices (m, n) in shapes (1, 1, 1), (1, n, 1) and (m, n, 1).

    >>> import flambeau as fb
    >>> fb.atleast_3d(fb.ones(2, 3)).shape
    torch.Size([2, 3, 1])
    """
    return _all_at_least(tensors, 3)


@public(method=False)
def hstack(tensors: Any, *, out: Tensor | None = None) -> Tensor:
    """The tensors side by side: along dimension 1, vectors along their only one.

    >>> import flambeau as fb
    >>> fb.hstack([fb.tensor([1]), fb.tensor([2, 3])])
    tensor([1, 2, 3])
    """
    parts = [_at_least(x, 1) for x in _several((tensors,), "hstack")]
    return cat(parts, 0 if parts and parts[0].dim() == 1 else 1, out=out)


@public(method=False)
def vstack(tensors: Any, *, out: Tensor | None = None) -> Tensor:
    """The tensors one above the other, vectors as rows.

    >>> import flambeau as fb
    >>> fb.vstack([fb.tensor([1, 2]), fb.tensor([3, 4])])
    tensor([[1, 2],
            [3, 4]])
    """
    return cat([_at_least(x, 2) for x in _several((tensors,), "vstack")], 0, out=out)


row_stack = vstack


@public(method=False)
def dstack(tensors: Any, *, out: Tensor | None = None) -> Tensor:
    """The tensors one behind the other: along dimension 2.

    >>> import flambeau as fb
    >>> fb.dstack([fb.tensor([1, 2]), fb.tensor([3, 4])]).shape
    torch.Size([1, 2, 2])
    """
    return cat([_at_least(x, 3) for x in _several((tensors,), "dstack")], 2, out=out)


@public(method=False)
def column_stack(tensors: Any, *, out: Tensor | None = None) -> Tensor:
    """The tensors side by side, vectors as columns.

    >>> import flambeau as fb
    >>> fb.column_stack([fb.tensor([1, 2]), fb.tensor([3, 4])])
    tensor([[1, 3],
            [2, 4]])
    """
    parts = [x if x.dim() > 1 else x.reshape(-1, 1) for x in _several((tensors,), "column_stack")]
    return cat(parts, 1, out=out)


@public
def fliplr(input: Tensor) -> Tensor:
    """The columns in reverse order.

    >>> import flambeau as fb
    >>> fb.fliplr(fb.tensor([[1, 2]]))
    tensor([[2, 1]])
    """
    if need_tensor(input, "fliplr", "input").dim() < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return flip(input, (1,))


@public
def flipud(input: Tensor) -> Tensor:
    """The rows in reverse order.

    >>> import flambeau as fb
    >>> fb.flipud(fb.tensor([1, 2]))
    tensor([2, 1])
    """
    if need_tensor(input, "flipud", "input").dim() < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return flip(input, (0,))


@public
def rot90(input: Tensor, k: int = 1, dims: Any = (0, 1)) -> Tensor:
    """The tensor turned by `k` quarter turns, from the first of two dimensions to the second.

    Raises:
        RuntimeError: `dims` are not two different dimensions.
        IndexError: a dimension is out of range.

    >>> import flambeau as fb
    >>> fb.rot90(fb.tensor([[1, 2], [3, 4]]))
    tensor([[2, 4],
            [1, 3]])
    """
    x = need_tensor(input, "rot90", "input")
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if x.dim() < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {x.dim()}")
    a, b = (dim_of(d, x.dim()) for d in dims)
    if a == b:
        raise RuntimeError(
            f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}"
        )
    quarter = k % 4
    if quarter == 0:
        return x.clone(memory_format=contiguous_format)
    if quarter == 2:
        return flip(x, (a, b))
    return flip(x, (b if quarter == 1 else a,)).transpose(a, b)


@public(method=False)
def logspace(
    start: Any,
    end: Any,
    steps: int,
    base: float = 10.0,
    *,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """`steps` powers of `base` with exponents evenly spaced from `start` to `end`.

    >>> import flambeau as fb
    >>> fb.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    if dtype is None:
        dtype = D.get_default_dtype() if out is None else out.dtype
    exponents = linspace(start, end, steps, dtype=D.float64, device=device)
    return finished(cast(base**exponents, dtype), requires_grad, out)


@public(method=False)
def range(
    start: Any,
    end: Any = None,
    step: Any = 1,
    *,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """start, start + step, ... up to `end`, which is included; deprecated, use `arange`.

    Raises:
        RuntimeError: step is 0, or its sign leads away from `end`.

    >>> import flambeau as fb
    >>> import warnings; warnings.simplefilter("ignore")
    >>> fb.range(1, 3)
    tensor([1., 2., 3.])
    """
    warn(
        "range is deprecated because its end is included, unlike in Python; use arange, whose "
        "values are in [start, end)"
    )
    if end is None:
        start, end = 0, start
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if (end - start) * step < 0:
        raise RuntimeError(
            "upper bound and lower bound inconsistent with step sign: "
            f"start={start}, end={end}, step={step}"
        )
    if dtype is None:
        dtype = D.get_default_dtype() if out is None else out.dtype
    count = int((end - start) / step) + 1
    places = arange(count, dtype=D.int64 if dtype.category < 2 else D.float64, device=device)
    return finished(cast(places * step + start, dtype), requires_grad, out)
