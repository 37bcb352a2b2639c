"""Names of ``torch.nn.functional`` that only programs for PyTorch want.

The private ones are what layers of libraries that are made after PyTorch's take from it.
"""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Sequence

import flambeau as fb
from flambeau import Tensor
from flambeau.compat._grouped import grouped_mm
from flambeau.compat._torch.nn import _reduction as _Reduction
from flambeau.nn import functional as F
from flambeau.nn.functional.attention import check_ranks as _mha_shape_check
from flambeau.nn.functional.unpooling import unpooled_size
from flambeau.overrides import handle_torch_function, has_torch_function

__all__ = [
    "_Reduction",
    "_canonical_mask",
    "_get_softmax_dim",
    "_in_projection",
    "_in_projection_packed",
    "_is_integer",
    "_mha_shape_check",
    "_no_grad_embedding_renorm_",
    "_none_or_dtype",
    "_threshold",
    "_unpool_output_size",
    "_verify_batch_size",
    "_verify_spatial_size",
    "assert_int_or_pair",
    "grouped_mm",
    "handle_torch_function",
    "has_torch_function",
]


def _get_softmax_dim(name: str, ndim: int, stacklevel: int) -> int:
    """The dimension of a softmax that was given none, with a warning."""
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. "
        "Change the call to include dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if ndim in (0, 1, 3) else 1


def _none_or_dtype(input: Tensor | None) -> fb.dtype | None:
    """The dtype of a tensor that may be absent."""
    if input is None or isinstance(input, Tensor):
        return None if input is None else input.dtype
    raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")


def _canonical_mask(
    mask: Tensor | None,
    mask_name: str,
    other_type: fb.dtype | None,
    other_name: str,
    target_type: fb.dtype,
    check_other: bool = True,
) -> Tensor | None:
    """A mask of attention as numbers to add: true becomes -∞.

    Raises:
        AssertionError: it is neither of booleans nor of floating numbers.
    """
    if mask is None:
        return None
    if mask.dtype is not fb.bool and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype is not other_type:
        warnings.warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for "
            "both instead.",
            stacklevel=2,
        )
    if mask.is_floating_point():
        return mask
    return fb.zeros_like(mask, dtype=target_type).masked_fill_(mask, -math.inf)


def _in_projection(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    w_q: Tensor,
    w_k: Tensor,
    w_v: Tensor,
    b_q: Tensor | None = None,
    b_k: Tensor | None = None,
    b_v: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values, each by a weight of its own.

    Raises:
        AssertionError: a weight or bias has another shape than these sizes ask for.
    """
    width = q.shape[-1]
    for name, x, weight, bias in (
        ("query", q, w_q, b_q),
        ("key", k, w_k, b_k),
        ("value", v, w_v, b_v),
    ):
        wanted = width, x.shape[-1]
        if tuple(weight.shape) != wanted:
            raise AssertionError(
                f"expecting {name} weights shape of {wanted}, but got {weight.shape}"
            )
        if bias is not None and tuple(bias.shape) != (width,):
            raise AssertionError(f"expecting {name} bias shape of {(width,)}, but got {bias.shape}")
    return F.linear(q, w_q, b_q), F.linear(k, w_k, b_k), F.linear(v, w_v, b_v)


def _in_projection_packed(
    q: Tensor, k: Tensor, v: Tensor, w: Tensor, b: Tensor | None = None
) -> tuple[Tensor, ...]:
    """Queries, keys and values by one weight (3E, E), in as few products as inputs are the same."""
    width = q.shape[-1]
    if k is v and q is k:
        joined = F.linear(q, w, b).unflatten(-1, (3, width))
        return tuple(part.contiguous() for part in joined.unbind(-2))
    if k is v:
        first, rest = w.split([width, 2 * width])
        biases = (None, None) if b is None else b.split([width, 2 * width])
        joined = F.linear(k, rest, biases[1]).unflatten(-1, (2, width))
        return F.linear(q, first, biases[0]), *(part.contiguous() for part in joined.unbind(-2))
    weights = w.chunk(3)
    biases = (None, None, None) if b is None else b.chunk(3)
    triples = zip((q, k, v), weights, biases, strict=True)
    return tuple(F.linear(x, weight, bias) for x, weight, bias in triples)


def _is_integer(x: object) -> bool:
    """Whether something is an integer, or a tensor of some."""
    if isinstance(x, Tensor):
        return not x.is_floating_point()
    return isinstance(x, numbers.Integral)


def _verify_batch_size(size: Sequence[int]) -> None:
    """Refuse batches with one value per channel, which have no variance.

    Raises:
        ValueError: it is such a batch.
    """
    if size[0] * math.prod(size[2:]) == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {size}"
        )


def _verify_spatial_size(size: Sequence[int]) -> None:
    """Refuse images of one pixel, which have no variance.

    Raises:
        ValueError: they are such images.
    """
    if math.prod(size[2:]) == 1:
        raise ValueError(
            f"Expected more than 1 spatial element when training, got input size {size}"
        )


def _unpool_output_size(
    input: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    output_size: Sequence[int] | None,
) -> list[int]:
    """The spatial sizes that were pooled, as `max_unpool2d` finds them."""
    return list(unpooled_size(input, kernel_size, stride, padding, output_size))


def assert_int_or_pair(arg: int | Sequence[int], arg_name: str, message: str) -> None:
    """Refuse what is neither one number nor two.

    Raises:
        AssertionError: by `message`, which has a place for the name.
    """
    if not isinstance(arg, int) and len(arg) != 2:
        raise AssertionError(message.format(arg_name))


def _no_grad_embedding_renorm_(
    weight: Tensor, input: Tensor, max_norm: float, norm_type: float
) -> None:
    """Scale the rows of `weight` that `input` names and that are longer than `max_norm`."""
    fb.embedding_renorm_(weight.detach(), input, max_norm, norm_type)


def _threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """`threshold` under its private name."""
    return F.threshold(input, threshold, value, inplace)
