"""Recurrent layers over sequences."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.nn import init
from flambeau.nn._refusals import need_room, refused
from flambeau.nn.module import Module
from flambeau.nn.modules.rnn_cell import GRUCell as GRUCell
from flambeau.nn.modules.rnn_cell import LSTMCell as LSTMCell
from flambeau.nn.modules.rnn_cell import RNNCell as RNNCell
from flambeau.nn.modules.rnn_cell import RNNCellBase as RNNCellBase
from flambeau.nn.parameter import Parameter
from flambeau.nn.utils.rnn import PackedSequence
from flambeau.overrides import warn

Device = fb.device | str | int | None

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def _no_tensor(name: str, value: object) -> TypeError:
    return TypeError(f"{name} must be Tensor, not {type(value).__name__}")


def _batch_of(x: Tensor, batch_sizes: Tensor) -> int:
    """How many sequences are packed; while a trace runs, a number that it follows."""
    if not isinstance(batch_sizes, Tensor):
        raise _no_tensor("batch_sizes", batch_sizes)
    if type(batch_sizes.shape[0]) is int:
        return int(batch_sizes[0])
    return fb._pad_packed_sequence(x, batch_sizes, False, 0.0, 0)[1].shape[0]


class RNNBase(Module):
    """What `RNN`, `LSTM` and `GRU` share: the weights of all layers and directions.

    Layer k has ``weight_ih_lk`` (gates·hidden, in), ``weight_hh_lk`` (gates·hidden, out), with
    `bias` ``bias_ih_lk`` and ``bias_hh_lk`` (gates·hidden), with `proj_size` ``weight_hr_lk``
    (proj, hidden); the names of the reverse direction end in ``_reverse``.  All start from
    U(-k, k) with k = 1 / √hidden_size.
    """

    mode: str
    input_size: int
    hidden_size: int
    num_layers: int
    bias: bool
    batch_first: bool
    dropout: float
    bidirectional: bool
    proj_size: int

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Device = None,
        dtype: fb.dtype | None = None,
    ) -> None:
        super().__init__()
        if mode not in _GATES:
            raise ValueError(f"Unrecognized RNN mode: {mode}")
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout) if isinstance(dropout, numbers.Number) else dropout  # pyright: ignore[reportArgumentType]
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._check_settings(dropout)
        rows = _GATES[mode] * hidden_size
        out = proj_size or hidden_size
        self._flat_weights_names: list[str] = []
        self._all_weights: list[list[str]] = []
        need_room(num_layers, 4 * rows * out)
        for layer in range(num_layers):
            width = input_size if layer == 0 else out * self._directions
            for suffix in (f"_l{layer}", f"_l{layer}_reverse")[: self._directions]:
                shapes: dict[str, tuple[int, ...]] = {
                    "weight_ih": (rows, width),
                    "weight_hh": (rows, out),
                }
                if bias:
                    shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                for name, shape in shapes.items():
                    values = fb.empty(shape, device=device, dtype=dtype)
                    self.register_parameter(name + suffix, Parameter(values))
                names = [name + suffix for name in shapes]
                self._all_weights.append(names)
                self._flat_weights_names += names
        self.reset_parameters()

    def _check_settings(self, dropout: float) -> None:
        if (
            not isinstance(dropout, numbers.Real)
            or not 0 <= float(dropout) <= 1
            or isinstance(dropout, bool)
        ):
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an "
                "element being zeroed"
            )
        if float(dropout) > 0 and self.num_layers == 1:
            warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero "
                f"dropout expects num_layers greater than 1, but got dropout={dropout} and "
                f"num_layers={self.num_layers}",
            )
        if not isinstance(self.hidden_size, int):
            raise TypeError(
                f"hidden_size should be of type int, got: {type(self.hidden_size).__name__}"
            )
        if self.hidden_size <= 0:
            raise ValueError("hidden_size must be greater than zero")
        if self.num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if self.proj_size < 0:
            raise ValueError(
                "proj_size should be a positive integer or zero to disable projections"
            )
        if self.proj_size >= self.hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")

    @property
    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    @property
    def _flat_weights(self) -> list[Any]:
        return [getattr(self, name) for name in self._flat_weights_names]

    @_flat_weights.setter
    def _flat_weights(self, weights: list[Any]) -> None:
        for name, weight in zip(self._flat_weights_names, weights, strict=True):
            if weight is self._parameters.get(name):
                continue
            if isinstance(weight, Parameter) or name not in self._parameters:
                setattr(self, name, weight)
            else:  # a tensor in the place of a parameter, as programs that compute weights want
                del self._parameters[name]
                object.__setattr__(self, name, weight)

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters by layer and direction.

        >>> import flambeau as fb
        >>> [len(weights) for weights in fb.nn.GRU(2, 3, num_layers=2).all_weights]
        [4, 4]
        """
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self) -> None:
        """Does nothing: backends take the weights as they are."""

    def reset_parameters(self) -> None:
        """Draw new values for all parameters."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Refuse an input whose dtype, rank or last size does not fit.

        Raises:
            ValueError: the dtype is not that of the weights.
            RuntimeError: rank or size.
        """
        if not isinstance(input, Tensor):
            raise _no_tensor("input", input)
        weight = self.weight_ih_l0
        if input.dtype != weight.dtype:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}). "
                f"Convert input: input.to({weight.dtype}), or convert model: "
                f"model.to({input.dtype})"
            )
        rank = 3 if batch_sizes is None else 2
        if input.dim() != rank:
            raise RuntimeError(f"input must have {rank} dimensions, got {input.dim()}")
        if input.shape[-1] != self.input_size:
            raise RuntimeError(
                "input.size(-1) must be equal to input_size. "
                f"Expected {self.input_size}, got {input.shape[-1]}"
            )

    def get_expected_hidden_size(
        self, input: Tensor, batch_sizes: Tensor | None
    ) -> tuple[int, int, int]:
        """The shape of the hidden state for `input`."""
        return self._state_shape(input, batch_sizes, self.proj_size or self.hidden_size)

    def _state_shape(
        self, input: Tensor, batch_sizes: Tensor | None, size: int
    ) -> tuple[int, int, int]:
        if not isinstance(input, Tensor):
            raise _no_tensor("input", input)
        if batch_sizes is not None:
            batch = _batch_of(input, batch_sizes)
        else:
            batch = input.shape[0 if self.batch_first else 1]
        return self.num_layers * self._directions, batch, size

    def check_hidden_size(
        self,
        hx: Tensor,
        expected_hidden_size: tuple[int, int, int],
        msg: str = "Expected hidden size {}, got {}",
    ) -> None:
        """Refuse a state of another shape.

        Raises:
            RuntimeError: the shape is not `expected_hidden_size`.
        """
        if not isinstance(hx, Tensor):
            raise _no_tensor("the hidden state", hx)
        if tuple(hx.shape) != tuple(expected_hidden_size):
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.shape)))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """`check_input` and `check_hidden_size`."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: object, permutation: Tensor | None) -> Any:
        """The state with its sequences reordered."""
        if permutation is None:
            return hx
        if not isinstance(hx, Tensor):
            raise _no_tensor("hx", hx)
        return hx.index_select(1, permutation)

    def forward(self, input: Any, hx: Any = None) -> Any:
        """The outputs of the last layer for every step, and the final states of all layers."""
        packed = isinstance(input, PackedSequence)
        x, batch_sizes, order, back = input if packed else (input, None, None, None)
        try:
            batched = packed or self._is_batched(x)
            if not batched:
                x = x.unsqueeze(0 if self.batch_first else 1)
            state = self._initial(x, hx, batch_sizes, order, batched, packed)
            self.check_forward_args(x, state, batch_sizes)
        except AttributeError as error:
            states = hx if isinstance(hx, tuple | list) else (hx,)
            given = {f"hx[{i}]": state for i, state in enumerate(states) if hx is not None}
            raise refused(error, self._get_name(), input=x, **given) from None
        settings = (
            *(self._flat_weights, self.bias, self.num_layers, self.dropout, self.training),
            self.bidirectional,
        )
        function: Callable[..., Any] = getattr(fb, self.mode.lower())  # where calls may be watched
        output: Any
        last: Any
        if packed:
            output, *final = function(x, batch_sizes, state, *settings)
            output = PackedSequence(output, batch_sizes, order, back)
        else:
            output, *final = function(x, state, *settings, self.batch_first)
        last = tuple(final) if self.mode == "LSTM" else final[0]
        if not batched:
            output = output.squeeze(0 if self.batch_first else 1)
            last = tuple(t.squeeze(1) for t in last) if self.mode == "LSTM" else last.squeeze(1)
        return output, self.permute_hidden(last, back)

    def _is_batched(self, x: Tensor) -> bool:
        if x.dim() not in (2, 3):
            tail = " tensor instead" if self.mode.startswith("RNN") else " instead"
            raise ValueError(
                f"{self._get_name()}: Expected input to be 2D or 3D, got {x.dim()}D{tail}"
            )
        return x.dim() == 3

    def _initial(
        self,
        x: Tensor,
        hx: Any,
        batch_sizes: Tensor | None,
        order: Tensor | None,
        batched: bool,
        packed: bool,
    ) -> Tensor:
        """The initial state, sorted as the packed sequences are; zeros where none is given."""
        if hx is None:
            place = {"dtype": x.dtype, "device": x.device}
            return fb.zeros(self.get_expected_hidden_size(x, batch_sizes), **place)
        if not packed and hx.dim() != (3 if batched else 2):
            form = "batched 3-D" if batched else "unbatched 2-D"
            raise RuntimeError(
                f"For {form} input, hx should also be {3 if batched else 2}-D but got "
                f"{hx.dim()}-D tensor"
            )
        return self.permute_hidden(hx if batched else hx.unsqueeze(1), order)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        defaults = {
            "proj_size": 0,
            "num_layers": 1,
            "bias": True,
            "batch_first": False,
            "dropout": 0.0,
            "bidirectional": False,
        }
        for name, default in defaults.items():
            if (value := getattr(self, name)) != default:
                text += f", {name}={value}"
        return text


class RNN(RNNBase):
    """Layers of h' = tanh(x·W_ihᵀ + b_ih + h·W_hhᵀ + b_hh), or relu as `nonlinearity` says.

    Further arguments: `num_layers` (the next layer's input is the output of the one before, with
    `dropout` between them in training), `bias`, `batch_first`, `bidirectional`.

    Shapes: input (T, B, in), (B, T, in) if `batch_first`, (T, in) for one sequence, or a
    `PackedSequence`; `hx` and the final state (layers·directions, B, hidden); output (T, B,
    directions·hidden).

    Raises:
        ValueError: an unknown nonlinearity, or settings out of range.
        RuntimeError: an input or a state that does not fit.

    >>> import flambeau as fb
    >>> output, final = fb.nn.RNN(10, 20, 2)(fb.randn(5, 3, 10))
    >>> output.shape, final.shape
    (torch.Size([5, 3, 20]), torch.Size([2, 3, 20]))
    """

    nonlinearity: str

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse_projection(kwargs)
        if len(args) > 3:
            nonlinearity, args = args[3], args[:3] + args[4:]
        else:
            nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'."
            )
        super().__init__(f"RNN_{nonlinearity.upper()}", *args, **kwargs)
        self.nonlinearity = nonlinearity


class GRU(RNNBase):
    """Layers of gated recurrent units (Cho et al., 2014).

    r, z = σ(...), n = tanh(x·W_inᵀ + b_in + r·(h·W_hnᵀ + b_hn)), h' = (1 - z)·n + z·h; the rows of
    the weights are those of r, z and n.  Arguments and shapes are those of `RNN`.

    Raises:
        ValueError: settings out of range.
        RuntimeError: an input or a state that does not fit.

    >>> import flambeau as fb
    >>> output, final = fb.nn.GRU(10, 20, bidirectional=True)(fb.randn(5, 3, 10))
    >>> output.shape, final.shape
    (torch.Size([5, 3, 40]), torch.Size([2, 3, 20]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse_projection(kwargs)
        super().__init__("GRU", *args, **kwargs)


class LSTM(RNNBase):
    """Layers of long short-term memory (Hochreiter & Schmidhuber, 1997; Gers et al., 2000).

    i, f, o = σ(...), g = tanh(...), c' = f·c + i·g, h' = o·tanh(c'), projected to `proj_size`
    numbers if that is not 0; the rows of the weights are those of i, f, g and o.  Arguments and
    shapes are those of `RNN`, the state is a pair (h, c).

    Raises:
        ValueError: settings out of range.
        RuntimeError: an input or a state that does not fit.

    >>> import flambeau as fb
    >>> output, (h, c) = fb.nn.LSTM(10, 20, proj_size=5)(fb.randn(7, 3, 10))
    >>> output.shape, h.shape, c.shape
    (torch.Size([7, 3, 5]), torch.Size([1, 3, 5]), torch.Size([1, 3, 20]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(
        self, input: Tensor, batch_sizes: Tensor | None
    ) -> tuple[int, int, int]:
        """The shape of the cell state for `input`."""
        return self._state_shape(input, batch_sizes, self.hidden_size)

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """`check_input` and `check_hidden_size` of both states."""
        self.check_input(input, batch_sizes)
        try:
            state, cell = hidden[0], hidden[1]
        except (KeyError, TypeError):
            kind = type(hidden).__name__
            raise TypeError(f"hidden must be a pair of tensors, got {kind}") from None
        self.check_hidden_size(
            state,
            self.get_expected_hidden_size(input, batch_sizes),
            "Expected hidden[0] size {}, got {}",
        )
        self.check_hidden_size(
            cell,
            self.get_expected_cell_size(input, batch_sizes),
            "Expected hidden[1] size {}, got {}",
        )

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """Both states with their sequences reordered."""
        if permutation is None:
            return hx
        hidden, cell = hx
        return super().permute_hidden(hidden, permutation), super().permute_hidden(
            cell, permutation
        )

    def _initial(
        self,
        x: Tensor,
        hx: Any,
        batch_sizes: Tensor | None,
        order: Tensor | None,
        batched: bool,
        packed: bool,
    ) -> Any:
        if hx is None:
            place = {"dtype": x.dtype, "device": x.device}
            hidden = fb.zeros(self.get_expected_hidden_size(x, batch_sizes), **place)
            return hidden, fb.zeros(self.get_expected_cell_size(x, batch_sizes), **place)
        if not isinstance(hx, (tuple, list, Tensor)):
            raise TypeError(f"LSTM: expected hx to be (h_0, c_0), got {type(hx).__name__}")
        rank = 3 if batched else 2
        if not packed and (hx[0].dim() != rank or hx[1].dim() != rank):
            form = "batched 3-D" if batched else "unbatched 2-D"
            raise RuntimeError(
                f"For {form} input, hx and cx should also be {rank}-D but got "
                f"({hx[0].dim()}-D, {hx[1].dim()}-D) tensors"
            )
        if not batched:
            hx = hx[0].unsqueeze(1), hx[1].unsqueeze(1)
        return self.permute_hidden(hx, order)


def _refuse_projection(kwargs: dict[str, Any]) -> None:
    if "proj_size" in kwargs:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
