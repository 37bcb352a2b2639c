"""Dropout of channels and to SELU's saturation value, as plain functions with a `train` argument.

One draw of the default generator per entry of the mask, kept where it is below 1 - p.
"""

from __future__ import annotations

from flambeau._dispatch.arguments import need_number, need_tensor
from flambeau._dispatch.dispatch import drawable
from flambeau._tensor.tensor import Tensor
from flambeau.ops.declaration.public import public

SELU_SATURATION = 1.7580993408473766  # scale·α of SELU: minus its limit for x → -∞


@public(method=False, inplace="function")
def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """`input` with each channel (dimension 1) zeroed with probability `p`, others over 1 - `p`.

    Without `train` it is `input` itself.

    Raises:
        RuntimeError: `p` is not in [0, 1], or `input` has fewer than two dimensions.

    >>> import flambeau as fb
    >>> fb.feature_dropout(fb.ones(1, 2), 0.5, train=False)
    tensor([[1., 1.]])
    """
    x = _checked("feature_dropout", input, p)
    if not train or p == 0 or x.numel() == 0:
        return x
    if p == 1:
        return x * 0.0
    return x * drawable(x.new_empty(_channels(x))).bernoulli_(1 - p).div_(1 - p)


@public(method=False, inplace="function")
def alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Dropout to the negative saturation value of SELU, which keeps mean 0 and variance 1.

    Source: Klambauer et al., 2017, section "New dropout technique".

    Raises:
        RuntimeError: `p` is not in [0, 1].

    >>> import flambeau as fb
    >>> fb.alpha_dropout(fb.ones(2), 0.5, train=False)
    tensor([1., 1.])
    """
    x = _checked("alpha_dropout", input, p)
    return _alpha(x, p, tuple(x.shape)) if train else x


@public(method=False, inplace="function")
def feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """`alpha_dropout` of whole channels (dimension 1).

    Raises:
        RuntimeError: `p` is not in [0, 1], or `input` has fewer than two dimensions.

    >>> import flambeau as fb
    >>> fb.feature_alpha_dropout(fb.ones(1, 2), 0.5, train=False)
    tensor([[1., 1.]])
    """
    x = _checked("feature_alpha_dropout", input, p)
    return _alpha(x, p, _channels(x)) if train else x


def _checked(name: str, input: Tensor, p: float) -> Tensor:
    x = need_tensor(input, name, "input")
    if not 0 <= need_number(p, name, "p") <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p}")
    return x


def _channels(x: Tensor) -> tuple[int, ...]:
    if x.dim() < 2:
        raise RuntimeError(
            f"Feature dropout requires at least 2 dimensions in the input, got {x.dim()}"
        )
    return (*x.shape[:2], *[1] * (x.dim() - 2))


def _alpha(x: Tensor, p: float, shape: tuple[int, ...]) -> Tensor:
    if p == 0 or x.numel() == 0:
        return x
    if p == 1:
        return x * 0.0
    if shape == tuple(x.shape):  # a copy keeps the strides: draws follow the order of memory
        kept = drawable(x.detach().clone()).bernoulli_(1 - p)
    else:
        kept = drawable(x.new_empty(shape)).bernoulli_(1 - p)
    a = 1 / ((SELU_SATURATION**2 * p + 1) * (1 - p)) ** 0.5
    return x * (kept * a) + ((kept - 1) * (SELU_SATURATION * a) + SELU_SATURATION * a * p)
