"""Recurrent layers: with the usual functions by flambeau's own sequences, else step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau as fb
import flambeau.nn.functional as F
from flambeau import Tensor
from flambeau.onnx._operators.table import Context, UnsupportedError, late, operator

_FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    "affine": lambda x, alpha=1.0, beta=0.0: alpha * x + beta,
    "elu": lambda x, alpha=1.0: F.elu(x, alpha),
    "hardsigmoid": lambda x, alpha=0.2, beta=0.5: (alpha * x + beta).clamp(0, 1),
    "leakyrelu": lambda x, alpha=0.01: F.leaky_relu(x, alpha),
    "relu": late(fb.relu),
    "scaledtanh": lambda x, alpha=1.0, beta=1.0: alpha * fb.tanh(beta * x),
    "sigmoid": late(fb.sigmoid),
    "softplus": F.softplus,
    "softsign": F.softsign,
    "tanh": late(fb.tanh),
    "thresholdedrelu": lambda x, alpha=1.0: fb.where(x > alpha, x, fb.zeros_like(x)),
}
_TAKES = {
    "affine": 2,
    "elu": 1,
    "hardsigmoid": 2,
    "leakyrelu": 1,
    "scaledtanh": 2,
    "thresholdedrelu": 1,
}


def _functions(
    names: list[str], alphas: list[float] | None, betas: list[float] | None
) -> list[Callable[[Tensor], Tensor]]:
    """The activations of a layer, each with its own of the parameters that they all list."""
    left = [list(alphas or []), list(betas or [])]
    made = []
    for name in names:
        key = name.lower()
        if key not in _FUNCTIONS:
            raise UnsupportedError(f"activation {name!r} of a recurrent layer")
        options = {}
        for option, values in zip(("alpha", "beta")[: _TAKES.get(key, 0)], left, strict=False):
            if values:
                options[option] = values.pop(0)
        made.append(_bound(_FUNCTIONS[key], options))
    return made


def _bound(function: Callable[..., Tensor], options: dict[str, float]) -> Callable[..., Tensor]:
    return lambda x: function(x, **options)


Step = Callable[[Tensor, tuple[Tensor, ...]], tuple[Tensor, ...]]


class _Layer:
    """What the three kinds of layers share: directions, lengths, layouts, clipping."""

    gates = 1
    defaults: tuple[str, ...] = ("Tanh",)
    states = 1

    def __init__(self, inputs: tuple[Any, ...], attributes: dict[str, Any]) -> None:
        given: tuple[Any, ...] = (*inputs, *[None] * (8 - len(inputs)))
        x, w, r, b, lengths, *initial = given
        self.layout = attributes.get("layout", 0)
        self.x: Tensor = x.transpose(0, 1) if self.layout else x
        self.w, self.r, self.b, self.lengths = w, r, b, lengths
        self.initial = [
            s if s is None or not self.layout else s.transpose(0, 1) for s in initial[: self.states]
        ]
        self.peepholes = initial[2] if self.states == 2 else None
        self.hidden = int(attributes.get("hidden_size") or r.shape[-1])
        self.clip = attributes.get("clip")
        self.direction = attributes.get("direction", "forward")
        count = 2 if self.direction == "bidirectional" else 1
        names = attributes.get("activations") or list(self.defaults) * count
        made = _functions(
            names, attributes.get("activation_alpha"), attributes.get("activation_beta")
        )
        each = len(made) // count
        self.functions = [made[i * each : (i + 1) * each] for i in range(count)]
        self.attributes = attributes

    def clipped(self, x: Tensor) -> Tensor:
        return x if self.clip is None else x.clamp(-self.clip, self.clip)

    def bias(self, way: int) -> tuple[Tensor, Tensor]:
        """The biases of input and state."""
        size = self.gates * self.hidden
        if self.b is None:
            zero = fb.zeros(size, dtype=self.x.dtype, device=self.x.device)
            return zero, zero
        return self.b[way][:size], self.b[way][size:]

    def step(self, way: int) -> Step:
        """One step of a direction, from the products of the input and the states before."""
        raise NotImplementedError

    def run(self) -> tuple[Tensor, ...]:
        ways = [self.sequence(way) for way in range(len(self.functions))]
        y = fb.stack([way[0] for way in ways], 1)
        states = [fb.stack([way[1][k] for way in ways]) for k in range(self.states)]
        if self.layout:
            y, states = y.permute(2, 0, 1, 3), [s.transpose(0, 1) for s in states]
        return (y, *states)

    def sequence(self, way: int) -> tuple[Tensor, list[Tensor]]:
        x = self.x
        count, batch = x.shape[:2]
        backwards = self.direction == "reverse" or way == 1
        states = tuple(
            fb.zeros(batch, self.hidden, dtype=x.dtype, device=x.device) if s is None else s[way]
            for s in self.initial
        )
        bias, _ = self.bias(way)
        products = x @ self.w[way].t() + bias
        step = self.step(way)
        results: list[Any] = [None] * count
        for t in reversed(range(count)) if backwards else range(count):
            new = step(products[t], states)
            if self.lengths is None:
                states, results[t] = new, new[0]
                continue
            inside = (self.lengths > t).unsqueeze(1)
            states = tuple(fb.where(inside, a, b) for a, b in zip(new, states, strict=True))
            results[t] = fb.where(inside, new[0], fb.zeros_like(new[0]))
        return fb.stack(results), list(states)


class _RNN(_Layer):
    def step(self, way: int) -> Step:
        (f,), (_, bias) = self.functions[way], self.bias(way)
        r = self.r[way]
        return lambda x, s: (f(self.clipped(x + s[0] @ r.t() + bias)),)


class _GRU(_Layer):
    gates = 3
    defaults = ("Sigmoid", "Tanh")

    def step(self, way: int) -> Step:
        f, g = self.functions[way]
        _, bias = self.bias(way)
        r_update, r_reset, r_new = self.r[way].chunk(3)
        b_update, b_reset, b_new = bias.chunk(3)
        before = not self.attributes.get("linear_before_reset")

        def run(x: Tensor, states: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            (h,) = states
            x_update, x_reset, x_new = x.chunk(3, 1)
            update = f(self.clipped(x_update + h @ r_update.t() + b_update))
            reset = f(self.clipped(x_reset + h @ r_reset.t() + b_reset))
            if before:
                rest = (reset * h) @ r_new.t() + b_new
            else:
                rest = reset * (h @ r_new.t() + b_new)
            new = g(self.clipped(x_new + rest))
            return ((1 - update) * new + update * h,)

        return run


class _LSTM(_Layer):
    gates = 4
    defaults = ("Sigmoid", "Tanh", "Tanh")
    states = 2

    def step(self, way: int) -> Step:
        f, g, h = self.functions[way]
        _, bias = self.bias(way)
        r = self.r[way]
        coupled = self.attributes.get("input_forget")
        peeps = (0, 0, 0)
        if self.peepholes is not None:
            peeps = self.peepholes[way].chunk(3)
        peep_in, peep_out, peep_forget = peeps

        def run(x: Tensor, states: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            hidden, cell = states
            enter, leave, keep, new = (x + hidden @ r.t() + bias).chunk(4, 1)
            enter = f(self.clipped(enter + peep_in * cell))
            keep = 1 - enter if coupled else f(self.clipped(keep + peep_forget * cell))
            cell = keep * cell + enter * g(self.clipped(new))
            leave = f(self.clipped(leave + peep_out * cell))
            return leave * h(cell), cell

        return run


@operator("RNN")
def _rnn(c: Context, *inputs: Any, **attributes: Any) -> tuple[Tensor, ...]:
    layer = _RNN(inputs, attributes)
    names = {name.lower() for name in attributes.get("activations") or ["tanh"]}
    for name, function in (("tanh", fb.rnn_tanh), ("relu", fb.rnn_relu)):
        if names == {name} and _usual(layer, "clip", "layout"):
            return _whole(layer, function, (0,))
    return layer.run()


@operator("GRU")
def _gru(c: Context, *inputs: object, **attributes: object) -> tuple[Tensor, ...]:
    layer = _GRU(inputs, attributes)
    if attributes.get("linear_before_reset") and _usual(layer, "activations", "clip", "layout"):
        return _whole(layer, fb.gru, (1, 0, 2))
    return layer.run()


@operator("LSTM")
def _lstm(c: Context, *inputs: object, **attributes: object) -> tuple[Tensor, ...]:
    layer = _LSTM(inputs, attributes)
    if _usual(layer, "activations", "clip", "input_forget", "layout"):
        return _whole(layer, fb.lstm, (0, 2, 3, 1))
    return layer.run()


def _usual(layer: _Layer, *unusual: str) -> bool:
    """Whether a layer is one that flambeau has as a whole."""
    return (
        not any(layer.attributes.get(name) for name in unusual)
        and layer.peepholes is None
        and layer.lengths is None
        and layer.direction != "reverse"
    )


def _whole(
    layer: _Layer, function: Callable[..., tuple[Tensor, ...]], order: tuple[int, ...]
) -> tuple[Tensor, ...]:
    """The same by one call; `order` says where its gates are among those of ONNX."""

    def reordered(a: Tensor) -> Tensor:
        gates = a.chunk(layer.gates)
        return a if layer.gates == 1 else fb.cat([gates[at] for at in order])

    weights = []
    for way in range(len(layer.functions)):
        weights += [reordered(layer.w[way]), reordered(layer.r[way])]
        if layer.b is not None:
            weights += [reordered(b) for b in layer.bias(way)]
    x = layer.x
    ways = len(layer.functions)
    zero = fb.zeros((ways, x.shape[1], layer.hidden), dtype=x.dtype, device=x.device)
    first = tuple(zero if s is None else s for s in layer.initial)
    state = first if layer.states == 2 else first[0]
    y, *last = function(x, state, weights, layer.b is not None, 1, 0.0, False, ways == 2, False)
    return (y.reshape(*y.shape[:2], ways, layer.hidden).transpose(1, 2), *last)
