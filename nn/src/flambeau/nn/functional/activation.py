"""Smooth activation functions and rectifiers, element by element."""

from __future__ import annotations

import flambeau as fb
from flambeau import Tensor
from flambeau.nn._refusals import refused, require_tensors
from flambeau.nn.functional._arguments import in_place, require_float, wide
from flambeau.overrides import takes_as_annotated


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(0, x).

    >>> import flambeau as fb
    >>> fb.nn.functional.relu(fb.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    try:
        return input.relu_() if inplace else input.relu()
    except AttributeError as error:
        raise refused(error, "relu", input=input) from None


def relu_(input: Tensor) -> Tensor:
    """`relu` written into `input`.

    >>> import flambeau as fb
    >>> fb.nn.functional.relu_(fb.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    try:
        return input.relu_()
    except AttributeError as error:
        raise refused(error, "relu_", input=input) from None


def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x)).

    >>> import flambeau as fb
    >>> fb.nn.functional.sigmoid(fb.tensor([0.0]))
    tensor([0.5000])
    """
    try:
        return input.sigmoid()
    except AttributeError as error:
        raise refused(error, "sigmoid", input=input) from None


def tanh(input: Tensor) -> Tensor:
    """(exp(x) - exp(-x)) / (exp(x) + exp(-x)).

    >>> import flambeau as fb
    >>> fb.nn.functional.tanh(fb.tensor([0.0]))
    tensor([0.])
    """
    try:
        return input.tanh()
    except AttributeError as error:
        raise refused(error, "tanh", input=input) from None


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x where x > 0, else `negative_slope`·x.

    >>> import flambeau as fb
    >>> fb.nn.functional.leaky_relu(fb.tensor([-1.0, 2.0]), 0.5)
    tensor([-0.5000,  2.0000])
    """
    if inplace:
        return fb.leaky_relu_(input, negative_slope)
    return fb.leaky_relu(input, negative_slope)


def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """`leaky_relu` written into `input`.

    >>> import flambeau as fb
    >>> fb.nn.functional.leaky_relu_(fb.tensor([-1.0, 2.0]), 0.5)
    tensor([-0.5000,  2.0000])
    """
    return leaky_relu(input, negative_slope, inplace=True)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where x > 0, else `alpha`·(exp(x) - 1).

    >>> import flambeau as fb
    >>> fb.nn.functional.elu(fb.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    return fb.elu_(input, alpha) if inplace else fb.elu(input, alpha)


def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """`elu` written into `input`.

    >>> import flambeau as fb
    >>> fb.nn.functional.elu_(fb.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    return elu(input, alpha, inplace=True)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """scale·elu(x, α) with the constants that keep mean 0 and variance 1 (Klambauer et al., 2017).

    >>> import flambeau as fb
    >>> fb.nn.functional.selu(fb.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """
    return fb.selu_(input) if inplace else fb.selu(input)


def selu_(input: Tensor) -> Tensor:
    """`selu` written into `input`.

    >>> import flambeau as fb
    >>> fb.nn.functional.selu_(fb.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """
    return selu(input, inplace=True)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """max(0, x) + min(0, `alpha`·(exp(x / `alpha`) - 1)).

    Raises:
        RuntimeError: `alpha` is zero.

    >>> import flambeau as fb
    >>> fb.nn.functional.celu(fb.tensor([-1.0, 2.0]), 2.0)
    tensor([-0.7869,  2.0000])
    """
    return fb.celu_(input, alpha) if inplace else fb.celu(input, alpha)


def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """`celu` written into `input`.

    >>> import flambeau as fb
    >>> fb.nn.functional.celu_(fb.tensor([-1.0, 2.0]), 2.0)
    tensor([-0.7869,  2.0000])
    """
    return celu(input, alpha, inplace=True)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """x·Φ(x) with the normal distribution function Φ; ``"tanh"`` approximates it.

    The approximation is x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³))) (Hendrycks & Gimpel, 2016).

    Raises:
        RuntimeError: `approximate` is neither ``"none"`` nor ``"tanh"``.

    >>> import flambeau as fb
    >>> fb.nn.functional.gelu(fb.tensor([-1.0, 1.0]))
    tensor([-0.1587,  0.8413])
    """
    return fb.gelu(input, approximate=approximate)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x·sigmoid(x), also called swish.

    >>> import flambeau as fb
    >>> fb.nn.functional.silu(fb.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7311])
    """
    return fb.silu_(input) if inplace else fb.silu(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x·tanh(softplus(x)).

    >>> import flambeau as fb
    >>> fb.nn.functional.mish(fb.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8651])
    """
    if inplace:
        return in_place(input, mish)
    require_float(input, "mish")
    x = wide(input)
    return (x * fb.softplus(x).tanh()).to(input.dtype)


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(`beta`·x)) / `beta`, and x itself where `beta`·x > `threshold`.

    >>> import flambeau as fb
    >>> fb.nn.functional.softplus(fb.tensor([0.0, 30.0]))
    tensor([ 0.6931, 30.0000])
    """
    return fb.softplus(input, beta, threshold)


def logsigmoid(input: Tensor) -> Tensor:
    """log(sigmoid(x)), computed as min(x, 0) - log(1 + exp(-abs(x))).

    >>> import flambeau as fb
    >>> fb.nn.functional.logsigmoid(fb.tensor([0.0, -200.0]))
    tensor([  -0.6931, -200.0000])
    """
    return fb.log_sigmoid(input)


def softsign(input: Tensor) -> Tensor:
    """x / (1 + abs(x)).

    >>> import flambeau as fb
    >>> fb.nn.functional.softsign(fb.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """
    require_tensors("softsign", input=input)
    return input / (input.abs() + 1)


@takes_as_annotated
def rrelu(
    input: Tensor,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """x where x > 0, else a·x with a drawn from U(`lower`, `upper`) per element.

    Outside training a is the middle of the interval.

    Raises:
        RuntimeError: `lower` is greater than `upper`.

    >>> import flambeau as fb
    >>> fb.nn.functional.rrelu(fb.tensor([-2.0, 2.0]), 0.25, 0.75)
    tensor([-1.,  2.])
    """
    if inplace:
        return in_place(input, rrelu, lower, upper, training)
    return fb.rrelu(input, lower, upper, training)


@takes_as_annotated
def rrelu_(
    input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False
) -> Tensor:
    """`rrelu` written into `input`.

    >>> import flambeau as fb
    >>> fb.nn.functional.rrelu_(fb.tensor([-2.0, 2.0]), 0.25, 0.75)
    tensor([-1.,  2.])
    """
    return in_place(input, rrelu, lower, upper, training)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """a·sigmoid(b), where a and b are the halves of `input` along `dim`.

    Raises:
        RuntimeError: the size along `dim` is odd, or `input` has no dimensions.
        NotImplementedError: the dtype is not floating.

    >>> import flambeau as fb
    >>> fb.nn.functional.glu(fb.tensor([1.0, 2.0, 0.0, 0.0]))
    tensor([0.5000, 1.0000])
    """
    return fb.glu(input, dim)
