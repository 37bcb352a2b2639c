"""Activations that turn the scores along a dimension into (log-)probabilities.

Their ops are in `flambeau.ops.layers.activation`.
"""

from __future__ import annotations

import flambeau as fb
from flambeau import Tensor
from flambeau.nn._refusals import require_tensors
from flambeau.overrides import takes_as_annotated, warn


def softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: fb.dtype | None = None
) -> Tensor:
    """exp(x) / sum of exp(x) along `dim`; computed in `dtype` if that is given.

    Without `dim` it is chosen from the number of dimensions, with a warning.

    >>> import flambeau as fb
    >>> fb.nn.functional.softmax(fb.tensor([0.0, 0.0]), dim=0)
    tensor([0.5000, 0.5000])
    """
    if not isinstance(input, Tensor):
        require_tensors("softmax", input=input)
    if dim is None:
        dim = implicit_dim("softmax", input.dim())
    return input.softmax(dim) if dtype is None else input.softmax(dim, dtype=dtype)


@takes_as_annotated
def softmin(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: fb.dtype | None = None
) -> Tensor:
    """`softmax` of -x.

    >>> import flambeau as fb
    >>> fb.nn.functional.softmin(fb.tensor([0.0, 1.0]), dim=0)
    tensor([0.7311, 0.2689])
    """
    if dim is None:
        dim = implicit_dim("softmin", input.dim())
    return softmax(-input, dim, dtype=dtype)


def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: fb.dtype | None = None
) -> Tensor:
    """log(softmax(x)) along `dim`, computed without overflow or loss of small probabilities.

    >>> import flambeau as fb
    >>> fb.nn.functional.log_softmax(fb.tensor([0.0, 0.0]), dim=0)
    tensor([-0.6931, -0.6931])
    """
    if not isinstance(input, Tensor):
        require_tensors("log_softmax", input=input)
    if dim is None:
        dim = implicit_dim("log_softmax", input.dim())
    return input.log_softmax(dim) if dtype is None else input.log_softmax(dim, dtype=dtype)


def implicit_dim(name: str, ndim: int) -> int:
    """The dimension that `softmax` and relatives take where none is given; warns."""
    warn(
        f"Implicit dimension choice for {name} has been deprecated. "
        "Change the call to include dim=X as an argument.",
    )
    return 0 if ndim in (0, 1, 3) else 1


@takes_as_annotated
def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """A sample from the Gumbel-softmax distribution (Jang et al., 2017): softmax((x + g) / `tau`).

    g is Gumbel noise, one value per element.  With `hard` the sample is one-hot, with the gradient
    of the soft one.  `eps` has no effect.

    >>> import flambeau as fb
    >>> float(fb.nn.functional.gumbel_softmax(fb.zeros(3), hard=True).sum())
    1.0
    """
    if eps != 1e-10:
        warn("`eps` parameter is deprecated and has no effect.")
    noise = fb.empty_like(logits).exponential_().log().neg()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.argmax(dim, keepdim=True)
    one_hot = fb.zeros_like(logits).scatter_(dim, index, 1.0)
    return one_hot - soft.detach() + soft
