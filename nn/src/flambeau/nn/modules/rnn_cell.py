"""Single steps of recurrent layers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau import Tensor
from flambeau.nn import init
from flambeau.nn._refusals import require_tensors
from flambeau.nn.module import Module
from flambeau.nn.parameter import Parameter

if TYPE_CHECKING:
    from collections.abc import Callable


Device = fb.device | str | int | None


class RNNCellBase(Module):
    """What the cells share: ``weight_ih``, ``weight_hh``, ``bias_ih`` and ``bias_hh``.

    All start from U(-k, k) with k = 1 / √hidden_size.
    """

    input_size: int
    hidden_size: int
    bias: bool
    weight_ih: Parameter
    weight_hh: Parameter
    bias_ih: Parameter | None
    bias_hh: Parameter | None

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Device = None,
        dtype: fb.dtype | None = None,
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        place: dict[str, Any] = {"device": device, "dtype": dtype}
        self.weight_ih = Parameter(fb.empty((rows, input_size), **place))
        self.weight_hh = Parameter(fb.empty((rows, hidden_size), **place))
        if bias:
            self.bias_ih = Parameter(fb.empty(rows, **place))
            self.bias_hh = Parameter(fb.empty(rows, **place))
        else:
            self.register_parameter("bias_ih", None)
            self.register_parameter("bias_hh", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new values for all parameters."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    @property
    def _weights(self) -> tuple[Any, ...]:
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def _check(self, what: str, tensor: Tensor) -> None:
        if not isinstance(tensor, Tensor):
            require_tensors(self._get_name(), **{what: tensor})
        if tensor.dim() not in (1, 2):
            raise ValueError(
                f"{self._get_name()}: Expected {what} to be 1D or 2D, got {tensor.dim()}D instead"
            )

    def _initial(self, x: Tensor) -> Tensor:
        return fb.zeros(x.shape[0], self.hidden_size, dtype=x.dtype, device=x.device)

    def _step(self, function: Callable[..., Any], input: Tensor, hx: Tensor | None) -> Tensor:
        self._check("input", input)
        if hx is not None:
            self._check("hidden", hx)
        batched = input.dim() == 2
        x = input if batched else input.unsqueeze(0)
        if hx is None:
            hx = self._initial(x)
        elif not batched:
            hx = hx.unsqueeze(0)
        result = function(x, hx, *self._weights)
        return result if batched else result.squeeze(0)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        nonlinearity = getattr(self, "nonlinearity", "tanh")
        return text if nonlinearity == "tanh" else f"{text}, nonlinearity={nonlinearity}"


class RNNCell(RNNCellBase):
    """h' = tanh(x·W_ihᵀ + b_ih + h·W_hhᵀ + b_hh), or relu as `nonlinearity` says.

    Shapes: input (B, in) or (in), hx and result (B, hidden) or (hidden); hx is zero if left out.

    Raises:
        ValueError: an operand of another rank.
        RuntimeError: sizes that do not fit, or an unknown nonlinearity.

    >>> import flambeau as fb
    >>> fb.nn.RNNCell(10, 20)(fb.randn(3, 10)).shape
    torch.Size([3, 20])
    """

    nonlinearity: str

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Device = None,
        dtype: fb.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The next state."""
        functions = {"tanh": fb.rnn_tanh_cell, "relu": fb.rnn_relu_cell}
        if self.nonlinearity not in functions:
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._step(functions[self.nonlinearity], input, hx)


class GRUCell(RNNCellBase):
    """One step of `GRU`.

    Shapes: input (B, in) or (in), hx and result (B, hidden) or (hidden); hx is zero if left out.

    Raises:
        ValueError: an operand of another rank.
        RuntimeError: sizes that do not fit.

    >>> import flambeau as fb
    >>> fb.nn.GRUCell(10, 20)(fb.randn(3, 10)).shape
    torch.Size([3, 20])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Device = None,
        dtype: fb.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The next state."""
        return self._step(fb.gru_cell, input, hx)


class LSTMCell(RNNCellBase):
    """One step of `LSTM`.

    Shapes: input (B, in) or (in); hx and result pairs (h, c) of (B, hidden) or (hidden), zero if
    left out.

    Raises:
        ValueError: an operand of another rank.
        RuntimeError: sizes that do not fit.

    >>> import flambeau as fb
    >>> h, c = fb.nn.LSTMCell(10, 20)(fb.randn(3, 10))
    >>> h.shape
    torch.Size([3, 20])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Device = None,
        dtype: fb.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """The next h and c."""
        self._check("input", input)
        for place, state in enumerate(hx or ()):
            self._check(f"hx[{place}]", state)
        batched = input.dim() == 2
        x = input if batched else input.unsqueeze(0)
        if hx is None:
            zeros = self._initial(x)
            hx = zeros, zeros
        elif not batched:
            hx = hx[0].unsqueeze(0), hx[1].unsqueeze(0)
        h, c = fb.lstm_cell(x, hx, *self._weights)
        return (h, c) if batched else (h.squeeze(0), c.squeeze(0))
