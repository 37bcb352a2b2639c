"""Dropout: random masks of elements or of whole channels.

The masks consume the generator as PyTorch's CPU kernels do: one float64 uniform draw per entry of
the mask, kept where it is below 1 - p.
"""

from __future__ import annotations

import flambeau as fb
from flambeau import Tensor
from flambeau.nn._refusals import require_tensors
from flambeau.overrides import takes_as_annotated, warn


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """`input` with each element zeroed with probability `p`, and the others divided by 1 - `p`.

    Without `training` it is `input` itself (Hinton et al., 2012).

    Raises:
        ValueError: `p` is not in [0, 1].

    >>> import flambeau as fb
    >>> fb.nn.functional.dropout(fb.ones(2), 0.5, training=False)
    tensor([1., 1.])
    """
    _check_probability(p)
    if training and inplace:
        require_tensors("dropout", input=input)
        return _masked(input, p, tuple(input.shape), inplace)
    return fb.dropout(input, p, training)


@takes_as_annotated
def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """`dropout` of whole channels of an input (N, C, L) or (C, L).

    Raises:
        ValueError: `p` is not in [0, 1].
        RuntimeError: `input` does not have two or three dimensions.

    >>> import flambeau as fb
    >>> fb.nn.functional.dropout1d(fb.ones(1, 2, 3), 0.5, training=False).shape
    torch.Size([1, 2, 3])
    """
    _check_probability(p)
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input: "
            "the shapes are (N, C, L) and (C, L)"
        )
    unbatched = input.dim() == 2
    if not training:
        return input
    return _channels(input, p, inplace, unbatched)


@takes_as_annotated
def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """`dropout` of whole channels of an input (N, C, H, W).

    An input of three dimensions is taken as (N, C, L), as PyTorch does.

    Raises:
        ValueError: `p` is not in [0, 1].

    >>> import flambeau as fb
    >>> fb.nn.functional.dropout2d(fb.ones(1, 2, 3, 3), 0.5, training=False).shape
    torch.Size([1, 2, 3, 3])
    """
    _check_probability(p)
    _warn_dimensions("dropout2d", input.dim(), (3, 4))
    if input.dim() == 3:
        warn(
            "dropout2d: a 3D input is taken as (N, C, L), not as (C, H, W) without a batch; "
            "use dropout1d to say so.",
        )
    return _channels(input, p, inplace, unbatched=False) if training else input


@takes_as_annotated
def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """`dropout` of whole channels of an input (N, C, D, H, W) or (C, D, H, W).

    Raises:
        ValueError: `p` is not in [0, 1].

    >>> import flambeau as fb
    >>> fb.nn.functional.dropout3d(fb.ones(1, 2, 3, 3, 3), 0.5, training=False).shape
    torch.Size([1, 2, 3, 3, 3])
    """
    _check_probability(p)
    _warn_dimensions("dropout3d", input.dim(), (4, 5))
    return _channels(input, p, inplace, unbatched=input.dim() != 5) if training else input


@takes_as_annotated
def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Dropout to the negative saturation value of SELU, which keeps mean 0 and variance 1.

    Source: Klambauer et al., 2017, section "New dropout technique".

    Raises:
        ValueError: `p` is not in [0, 1].

    >>> import flambeau as fb
    >>> fb.nn.functional.alpha_dropout(fb.ones(2), 0.5)
    tensor([1., 1.])
    """
    _check_probability(p)
    if inplace:
        return fb.alpha_dropout_(input, p, training)
    return fb.alpha_dropout(input, p, training)


@takes_as_annotated
def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """`alpha_dropout` of whole channels (dimension 1).

    Raises:
        ValueError: `p` is not in [0, 1].

    >>> import flambeau as fb
    >>> fb.nn.functional.feature_alpha_dropout(fb.ones(1, 2), 0.5)
    tensor([[1., 1.]])
    """
    _check_probability(p)
    if inplace:
        return fb.feature_alpha_dropout_(input, p, training)
    return fb.feature_alpha_dropout(input, p, training)


def _masked(input: Tensor, p: float, shape: tuple[int, ...], inplace: bool) -> Tensor:
    require_tensors("dropout", input=input)
    if p == 0 or input.numel() == 0:
        return input
    if p == 1:
        return input.mul_(0.0) if inplace else input * 0.0
    mask = _bernoulli(input, shape, 1 - p).div_(1 - p)
    return input.mul_(mask) if inplace else input * mask


def _bernoulli(like: Tensor, shape: tuple[int, ...], p: float) -> Tensor:
    if shape == tuple(like.shape):
        # A copy keeps the strides, and the draws follow the order of memory.
        return like.detach().clone().bernoulli_(p)
    return fb.bernoulli(like.new_empty(shape), p)


def _channels(input: Tensor, p: float, inplace: bool, unbatched: bool) -> Tensor:
    if not unbatched:
        return _masked(input, p, _channel_shape(input), inplace)
    batch = input.unsqueeze_(0) if inplace else input.unsqueeze(0)
    result = _masked(batch, p, _channel_shape(batch), inplace)
    return result.squeeze_(0) if inplace else result.squeeze(0)


def _channel_shape(input: Tensor) -> tuple[int, ...]:
    if input.dim() < 2:
        raise RuntimeError(
            "Feature dropout requires at least 2 dimensions in the input, "
            f"got shape {list(input.shape)}"
        )
    return (*input.shape[:2], *(1,) * (input.dim() - 2))


@takes_as_annotated
def _check_probability(p: float) -> None:
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def _warn_dimensions(name: str, ndim: int, expected: tuple[int, int]) -> None:
    if ndim not in expected:
        warn(
            f"{name}: Received a {ndim}-D input to {name}, which is deprecated: the input should "
            f"have {expected[0]} or {expected[1]} dimensions.",
        )
