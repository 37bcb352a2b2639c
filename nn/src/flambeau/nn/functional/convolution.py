"""Convolutions: a batch of images or signals with a stack of learned filters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from flambeau import Tensor, ops
from flambeau.nn.functional._arguments import Size, sizes
from flambeau.nn.functional.padding import pad


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: str | Size = 0,
    dilation: Size = 1,
    groups: int = 1,
) -> Tensor:
    """y[n, o, i, j] = b[o] + Σ_{c, u, v} w[o, c, u, v] · x[n, c, s·i + d·u - p, s·j + d·v - p].

    (Cross-correlation.)  The channels fall into `groups` blocks that are convolved apart.
    `padding` is a number of zeros per side, ``"valid"`` (none), or ``"same"`` (the output has the
    input's size; stride 1 only).

    Shapes: input (N, C, H, W) or (C, H, W), weight (O, C / groups, KH, KW), bias (O);
    result (N, O, H', W') or (O, H', W') with H' = ⌊(H + 2p - d·(KH - 1) - 1) / s⌋ + 1.

    Raises:
        RuntimeError: the shapes or the settings do not fit; says which.

    >>> import flambeau as fb
    >>> fb.nn.functional.conv2d(fb.ones(1, 1, 3, 3), fb.ones(1, 1, 2, 2))
    tensor([[[[4., 4.],
              [4., 4.]]]])
    """
    stride, dilation = (
        sizes(stride, 2, "stride", "conv2d"),
        sizes(dilation, 2, "dilation", "conv2d"),
    )
    unbatched = input.dim() == 3
    if unbatched:
        input = input.unsqueeze(0)
    input, edge = _padded(input, weight, stride, padding, dilation, 2)
    _check(input, weight, bias, stride, edge, dilation, groups, 2)
    result = ops.conv2d(input, weight, bias, stride, edge, dilation, groups)
    return result.squeeze(0) if unbatched else result


def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: str | Size = 0,
    dilation: Size = 1,
    groups: int = 1,
) -> Tensor:
    """`conv2d` of signals: y[n, o, i] = b[o] + Σ_{c, u} w[o, c, u] · x[n, c, s·i + d·u - p].

    Shapes: input (N, C, L) or (C, L), weight (O, C / groups, K), bias (O); result (N, O, L') or
    (O, L') with L' = ⌊(L + 2p - d·(K - 1) - 1) / s⌋ + 1.

    Raises:
        RuntimeError: the shapes or the settings do not fit; says which.

    >>> import flambeau as fb
    >>> fb.nn.functional.conv1d(fb.ones(1, 1, 4), fb.ones(1, 1, 2), stride=2)
    tensor([[[2., 2.]]])
    """
    stride, dilation = (
        sizes(stride, 1, "stride", "conv1d"),
        sizes(dilation, 1, "dilation", "conv1d"),
    )
    unbatched = input.dim() == 2
    if unbatched:
        input = input.unsqueeze(0)
    input, edge = _padded(input, weight, stride, padding, dilation, 1)
    _check(input, weight, bias, stride, edge, dilation, groups, 1)
    # A signal is an image of height 1.
    result = ops.conv2d(
        input.unsqueeze(2),
        weight.unsqueeze(2),
        bias,
        (1, *stride),
        (0, *edge),
        (1, *dilation),
        groups,
    ).squeeze(2)
    return result.squeeze(0) if unbatched else result


def _padded(
    input: Tensor,
    weight: Tensor,
    stride: Sequence[int],
    padding: str | Size,
    dilation: Sequence[int],
    count: int,
) -> tuple[Tensor, tuple[int, ...]]:
    """The input and the symmetric padding; what is not symmetric is already in the input."""
    if not isinstance(padding, str):
        return input, sizes(padding, count, "padding", f"conv{count}d")
    if padding == "valid":
        return input, (0,) * count
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: {padding!r}, expected 'same' or 'valid'")
    if any(s != 1 for s in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    totals = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:], strict=True)]
    if any(total % 2 for total in totals):  # one more after than before
        extra: list[int] = []
        for total in reversed(totals):
            extra += [0, total % 2]
        input = pad(input, extra)
    return input, tuple(total // 2 for total in totals)


def _check(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    count: int,
) -> None:
    where, given, filters = f"conv{count}d", input.shape, weight.shape
    if len(given) != count + 2:
        raise RuntimeError(
            f"Expected {count + 1}D (unbatched) or {count + 2}D (batched) input to {where}, "
            f"but got input of size: {list(given)}"
        )
    if len(filters) != count + 2:
        raise RuntimeError(
            f"{where}: expected a weight of {count + 2} dimensions, got size {list(filters)}"
        )
    dtypes = [t.dtype for t in (input, weight, bias) if t is not None]
    if any(dtype is not dtypes[0] for dtype in dtypes):
        raise RuntimeError(
            f"{where}: input, weight and bias should have the same dtype, "
            f"got {' and '.join(map(str, dtypes))}"
        )
    if min(padding) < 0:
        raise RuntimeError(f"negative padding is not supported, got {list(padding)}")
    if min(stride) <= 0:
        raise RuntimeError(f"non-positive stride is not supported, got {list(stride)}")
    if min(dilation) <= 0:
        raise RuntimeError(f"dilation should be greater than zero, but got {list(dilation)}")
    if groups <= 0:
        raise RuntimeError(f"non-positive groups is not supported, got {groups}")
    if filters[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, "
            f"but got weight of size {list(filters)} instead"
        )
    if given[1] != filters[1] * groups:
        raise RuntimeError(
            f"Given groups={groups}, weight of size {list(filters)}, expected "
            f"input{list(given)} to have {filters[1] * groups} channels, "
            f"but got {given[1]} channels instead"
        )
    if bias is not None and tuple(bias.shape) != (filters[0],):
        raise RuntimeError(
            f"Given weight of size {list(filters)}, expected bias to be 1-dimensional with "
            f"{filters[0]} elements, but got bias of size {list(bias.shape)} instead"
        )
    for size, kernel, p, d in zip(given[2:], filters[2:], padding, dilation, strict=True):
        if size + 2 * p < d * (kernel - 1) + 1:
            have = [s + 2 * q for s, q in zip(given[2:], padding, strict=True)]
            need = [e * (k - 1) + 1 for e, k in zip(dilation, filters[2:], strict=True)]
            raise RuntimeError(
                f"Calculated padded input size per channel: ({_times(have)}). "
                f"Kernel size: ({_times(need)}). "
                "Kernel size can't be greater than actual input size"
            )


def _times(numbers: Iterable[int]) -> str:
    return " x ".join(str(n) for n in numbers)
