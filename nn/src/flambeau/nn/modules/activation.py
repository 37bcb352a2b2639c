"""Smooth activation functions and rectifiers as layers."""

from __future__ import annotations

import flambeau as fb
from flambeau import Tensor
from flambeau.nn import functional as F
from flambeau.nn.module import Module
from flambeau.nn.modules.attention import MultiheadAttention as MultiheadAttention
from flambeau.nn.modules.piecewise_activation import Hardshrink as Hardshrink
from flambeau.nn.modules.piecewise_activation import Hardsigmoid as Hardsigmoid
from flambeau.nn.modules.piecewise_activation import Hardswish as Hardswish
from flambeau.nn.modules.piecewise_activation import Hardtanh as Hardtanh
from flambeau.nn.modules.piecewise_activation import ReLU6 as ReLU6
from flambeau.nn.modules.piecewise_activation import Softshrink as Softshrink
from flambeau.nn.modules.piecewise_activation import Tanhshrink as Tanhshrink
from flambeau.nn.modules.piecewise_activation import Threshold as Threshold
from flambeau.nn.modules.probability import LogSoftmax as LogSoftmax
from flambeau.nn.modules.probability import Softmax as Softmax
from flambeau.nn.modules.probability import Softmax2d as Softmax2d
from flambeau.nn.modules.probability import Softmin as Softmin
from flambeau.nn.parameter import Parameter


class _InPlace(Module):
    """A layer whose only setting is whether it writes into its input."""

    inplace: bool

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class ReLU(_InPlace):
    """max(0, x).

    >>> import flambeau as fb
    >>> fb.nn.ReLU()(fb.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    def forward(self, input: Tensor) -> Tensor:
        """`functional.relu`."""
        return F.relu(input, self.inplace)


class SELU(_InPlace):
    """Scaled ELU, which keeps mean 0 and variance 1; see `functional.selu`.

    >>> import flambeau as fb
    >>> fb.nn.SELU()(fb.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """

    def forward(self, input: Tensor) -> Tensor:
        """`functional.selu`."""
        return F.selu(input, self.inplace)


class SiLU(_InPlace):
    """x·sigmoid(x), also called swish.

    >>> import flambeau as fb
    >>> fb.nn.SiLU()(fb.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7311])
    """

    def forward(self, input: Tensor) -> Tensor:
        """`functional.silu`."""
        return F.silu(input, self.inplace)


class Mish(_InPlace):
    """x·tanh(softplus(x)).

    >>> import flambeau as fb
    >>> fb.nn.Mish()(fb.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8651])
    """

    def forward(self, input: Tensor) -> Tensor:
        """`functional.mish`."""
        return F.mish(input, self.inplace)


class LeakyReLU(Module):
    """x where x > 0, else `negative_slope`·x.

    >>> import flambeau as fb
    >>> fb.nn.LeakyReLU(0.5)(fb.tensor([-1.0, 2.0]))
    tensor([-0.5000,  2.0000])
    """

    negative_slope: float
    inplace: bool

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """`functional.leaky_relu`."""
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}" + (", inplace=True" if self.inplace else "")


class PReLU(Module):
    """x where x > 0, else w·x with a learned `weight` of `num_parameters` elements.

    One parameter serves all channels; otherwise there is one per channel (dimension 1).  Weight
    decay would pull the slopes to zero, so leave it out for this layer.

    >>> import flambeau as fb
    >>> fb.nn.PReLU()(fb.tensor([-2.0, 2.0])).detach()
    tensor([-0.5000,  2.0000])
    """

    num_parameters: int
    weight: Parameter

    def __init__(
        self,
        num_parameters: int = 1,
        init: float = 0.25,
        device: fb.device | str | int | None = None,
        dtype: fb.dtype | None = None,
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(fb.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    @fb.no_grad()
    def reset_parameters(self) -> None:
        """Set the slopes to the initial value again."""
        self.weight.fill_(self.init)

    def forward(self, input: Tensor) -> Tensor:
        """`functional.prelu` with this weight."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class RReLU(Module):
    """x where x > 0, else a·x with a random slope a from U(`lower`, `upper`).

    In evaluation mode a is the middle of the interval.

    >>> import flambeau as fb
    >>> fb.nn.RReLU(0.25, 0.75).eval()(fb.tensor([-2.0, 2.0]))
    tensor([-1.,  2.])
    """

    lower: float
    upper: float
    inplace: bool

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """`functional.rrelu`."""
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}" + (
            ", inplace=True" if self.inplace else ""
        )


class _Alpha(Module):
    """A layer with a scale `alpha` for negative inputs."""

    alpha: float
    inplace: bool

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class ELU(_Alpha):
    """x where x > 0, else `alpha`·(exp(x) - 1).

    >>> import flambeau as fb
    >>> fb.nn.ELU()(fb.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        """`functional.elu`."""
        return F.elu(input, self.alpha, self.inplace)


class CELU(_Alpha):
    """max(0, x) + min(0, `alpha`·(exp(x / `alpha`) - 1)).

    >>> import flambeau as fb
    >>> fb.nn.CELU(2.0)(fb.tensor([-1.0, 2.0]))
    tensor([-0.7869,  2.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        """`functional.celu`."""
        return F.celu(input, self.alpha, self.inplace)


class GELU(Module):
    """x·Φ(x) with the normal distribution function Φ; see `functional.gelu`.

    >>> import flambeau as fb
    >>> fb.nn.GELU()(fb.tensor([-1.0, 1.0]))
    tensor([-0.1587,  0.8413])
    """

    approximate: str

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        """`functional.gelu`."""
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Sigmoid(Module):
    """1 / (1 + exp(-x)).

    >>> import flambeau as fb
    >>> fb.nn.Sigmoid()(fb.tensor([0.0]))
    tensor([0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        """`functional.sigmoid`."""
        return F.sigmoid(input)


class LogSigmoid(Module):
    """log(sigmoid(x)).

    >>> import flambeau as fb
    >>> fb.nn.LogSigmoid()(fb.tensor([0.0]))
    tensor([-0.6931])
    """

    def forward(self, input: Tensor) -> Tensor:
        """`functional.logsigmoid`."""
        return F.logsigmoid(input)


class Tanh(Module):
    """(exp(x) - exp(-x)) / (exp(x) + exp(-x)).

    >>> import flambeau as fb
    >>> fb.nn.Tanh()(fb.tensor([0.0]))
    tensor([0.])
    """

    def forward(self, input: Tensor) -> Tensor:
        """`functional.tanh`."""
        return F.tanh(input)


class Softplus(Module):
    """log(1 + exp(`beta`·x)) / `beta`, and x itself where `beta`·x > `threshold`.

    >>> import flambeau as fb
    >>> fb.nn.Softplus()(fb.tensor([0.0, 30.0]))
    tensor([ 0.6931, 30.0000])
    """

    beta: float
    threshold: float

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        """`functional.softplus`."""
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class Softsign(Module):
    """x / (1 + abs(x)).

    >>> import flambeau as fb
    >>> fb.nn.Softsign()(fb.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """

    def forward(self, input: Tensor) -> Tensor:
        """`functional.softsign`."""
        return F.softsign(input)


class GLU(Module):
    """a·sigmoid(b), where a and b are the halves of the input along `dim`.

    >>> import flambeau as fb
    >>> fb.nn.GLU()(fb.tensor([1.0, 2.0, 0.0, 0.0]))
    tensor([0.5000, 1.0000])
    """

    dim: int

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """`functional.glu`."""
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"
