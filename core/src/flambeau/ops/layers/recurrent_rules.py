"""What the ops over sequences demand of their operands: kernels walk through rows unasked.

The shapes are those of `recurrent`, and every operand has the dtype of the weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flambeau._tensor.tensor import Tensor


_GATES = {"lstm": 4, "gru": 3, "tanh": 1, "relu": 1}
Sizes = tuple[int, ...]


def check_sizes(name: str, sizes: Sizes, rows: int) -> None:
    """Refuse batch sizes that grow, are negative, or do not make up `rows` rows.

    Raises:
        RuntimeError: what is wrong with them.
    """
    if not sizes:
        raise RuntimeError(f"{name}: Expected sequence length to be larger than 0 in RNN")
    if sizes[-1] < 0 or (len(sizes) > 1 and sorted(sizes, reverse=True) != list(sizes)):
        raise RuntimeError(
            f"{name}: batch sizes must be positive and must not grow from step to step, got "
            f"{_listed(sizes)}"
        )
    if sum(sizes) != rows:
        raise RuntimeError(
            f"{name}: batch sizes {_listed(sizes)} make {sum(sizes)} rows, got {rows}"
        )


def check_counts(mode: str, states: Sequence[Any], params: Sequence[Any], stacked: int) -> None:
    """Refuse parameters and states that are not those of `stacked` layers and directions.

    Raises:
        RuntimeError: how many there are.
    """
    if stacked <= 0:
        raise RuntimeError(f"{mode}: num_layers must be larger than 0")
    each, rest = divmod(len(params), stacked)
    if rest or each not in (2, 3, 4, 5) or (each % 2 and mode != "lstm"):
        raise RuntimeError(f"{mode}: got an incorrect number of RNN parameters: {len(params)}")
    for state in states:
        if len(state.shape) != 3 or state.shape[0] != stacked:
            raise RuntimeError(
                f"{mode}: expected hidden states of shape ({stacked}, batch, size), got "
                f"{tuple(state.shape)}"
            )


def lstm_sequence(
    input: object,
    hx: object,
    cx: object,
    weight: object,
    projection: object,
    batch_sizes: Sizes,
    reverse: bool,
) -> None:
    """What `lstm_sequence` demands."""
    rows, batch, size, out = _extents("lstm_sequence", 4, input, weight, projection, batch_sizes)
    _check(
        "lstm_sequence",
        weight,
        ("input", input, (rows, 4 * size)),
        ("hx", hx, (batch, out)),
        ("cx", cx, (batch, size)),
    )


def lstm_sequence_backward(
    grad_output: object,
    grad_hidden: object,
    grad_cell: object,
    grad_cells: object,
    grad_gates: object,
    hx: object,
    cx: object,
    weight: object,
    projection: object,
    output: object,
    cells: object,
    gates: object,
    batch_sizes: Sizes,
    reverse: bool,
) -> None:
    """What `lstm_sequence_backward` demands."""
    name = "lstm_sequence_backward"
    rows, batch, size, out = _extents(name, 4, output, weight, projection, batch_sizes)
    _check(
        name,
        weight,
        ("grad_output", grad_output, (rows, out)),
        ("grad_hidden", grad_hidden, (batch, out)),
        ("grad_cell", grad_cell, (batch, size)),
        ("grad_cells", grad_cells, (rows, size)),
        ("grad_gates", grad_gates, (rows, 4 * size)),
        ("hx", hx, (batch, out)),
        ("cx", cx, (batch, size)),
        ("output", output, (rows, out)),
        ("cells", cells, (rows, size)),
        ("gates", gates, (rows, 4 * size)),
    )


def gru_sequence(
    input: object, hx: object, weight: object, bias: object, batch_sizes: Sizes, reverse: bool
) -> None:
    """What `gru_sequence` demands."""
    rows, batch, size, _ = _extents("gru_sequence", 3, input, weight, None, batch_sizes)
    _check(
        "gru_sequence",
        weight,
        ("input", input, (rows, 3 * size)),
        ("hx", hx, (batch, size)),
        ("bias", bias, (3 * size,)),
    )


def gru_sequence_backward(
    grad_output: object,
    grad_hidden: object,
    grad_gates: object,
    hx: object,
    weight: object,
    output: object,
    gates: object,
    batch_sizes: Sizes,
    reverse: bool,
) -> None:
    """What `gru_sequence_backward` demands."""
    name = "gru_sequence_backward"
    rows, batch, size, _ = _extents(name, 3, output, weight, None, batch_sizes)
    _check(
        name,
        weight,
        ("grad_output", grad_output, (rows, size)),
        ("grad_hidden", grad_hidden, (batch, size)),
        ("grad_gates", grad_gates, (rows, 4 * size)),
        ("hx", hx, (batch, size)),
        ("output", output, (rows, size)),
        ("gates", gates, (rows, 4 * size)),
    )


def rnn_sequence(
    input: object, hx: object, weight: object, nonlinearity: str, batch_sizes: Sizes, reverse: bool
) -> None:
    """What `rnn_sequence` demands."""
    rows, batch, size, _ = _extents("rnn_sequence", 1, input, weight, None, batch_sizes)
    _check("rnn_sequence", weight, ("input", input, (rows, size)), ("hx", hx, (batch, size)))


def rnn_sequence_backward(
    grad_output: object,
    grad_hidden: object,
    hx: object,
    weight: object,
    output: object,
    nonlinearity: str,
    batch_sizes: Sizes,
    reverse: bool,
) -> None:
    """What `rnn_sequence_backward` demands."""
    name = "rnn_sequence_backward"
    rows, batch, size, _ = _extents(name, 1, output, weight, None, batch_sizes)
    _check(
        name,
        weight,
        ("grad_output", grad_output, (rows, size)),
        ("grad_hidden", grad_hidden, (batch, size)),
        ("hx", hx, (batch, size)),
        ("output", output, (rows, size)),
    )


def recurrent_layers(
    input: Tensor,
    hx: Tensor,
    cx: object,
    params: Sequence[Any],
    mode: str,
    num_layers: int,
    bidirectional: bool,
    batch_sizes: Sizes,
    saves: bool,
) -> None:
    """What `recurrent_layers` demands."""
    _check_layers("recurrent_layers", input, hx, cx, params, mode, num_layers, bidirectional)
    check_sizes("recurrent_layers", batch_sizes, input.shape[0])
    _check("recurrent_layers", input, ("hx", hx, (hx.shape[0], batch_sizes[0], hx.shape[2])))


def recurrent_layers_backward(
    grad_output: object,
    grad_hidden: object,
    grad_cell: object,
    input: Tensor,
    hx: Tensor,
    cx: Tensor | None,
    params: Sequence[Any],
    output: object,
    reserve: object,
    mode: str,
    num_layers: int,
    bidirectional: bool,
    batch_sizes: Sizes,
) -> None:
    """What `recurrent_layers_backward` demands."""
    name = "recurrent_layers_backward"
    _check_layers(name, input, hx, cx, params, mode, num_layers, bidirectional)
    rows = input.shape[0]
    check_sizes(name, batch_sizes, rows)
    shape = rows, hx.shape[2] * (2 if bidirectional else 1)
    _check(
        name,
        input,
        ("hx", hx, (hx.shape[0], batch_sizes[0], hx.shape[2])),
        ("grad_output", grad_output, shape),
        ("grad_hidden", grad_hidden, hx.shape),
        ("grad_cell", grad_cell, (0,) if cx is None else cx.shape),
        ("output", output, shape),
    )


def _check_layers(
    name: str,
    input: Tensor,
    hx: Tensor,
    cx: object,
    params: Sequence[Any],
    mode: str,
    num_layers: int,
    bidirectional: bool,
) -> None:
    """The states and parameters of a stack, as far as they do not depend on batch sizes."""
    directions = 2 if bidirectional else 1
    stacked = num_layers * directions
    check_counts(mode, (hx,) if cx is None else (hx, cx), params, stacked)
    each = len(params) // stacked
    if len(input.shape) != 2 or len(hx.shape) != 3:
        raise RuntimeError(
            f"{name}: expected packed rows and states of 3 dimensions, got "
            f"{tuple(input.shape)} and {tuple(hx.shape)}"
        )
    out = hx.shape[2]
    size = params[each - 1].shape[-1] if each % 2 else out
    gates = _GATES[mode] * size
    _check(name, input, ("hx", hx, (stacked, hx.shape[1], out)))
    if cx is not None:
        _check(name, input, ("cx", cx, (stacked, hx.shape[1], size)))
    for i in range(stacked):
        width = input.shape[1] if i < directions else out * directions
        shapes: list[tuple[int, ...]] = [(gates, width), (gates, out)]
        shapes += [(gates,)] * 2 if each >= 4 else []
        shapes += [(out, size)] if each % 2 else []
        own = zip(params[i * each : (i + 1) * each], shapes, strict=True)
        _check(name, input, *(("a parameter", p, shape) for p, shape in own))


def _extents(
    name: str, gates: int, packed: Any, weight: Any, projection: Any, sizes: Sizes
) -> tuple[int, int, int, int]:
    """Rows, as `packed` has them, the batch, H, and the numbers of an output."""
    found, shape = packed._a.shape, weight._a.shape
    rows = found[0] if found else 0
    check_sizes(name, sizes, rows)
    size = shape[0] // gates if len(shape) == 2 else 0
    out = size if projection is None else projection.shape[0]
    if len(shape) != 2 or shape[0] != gates * size or shape[1] != out:
        _check(name, weight, ("weight", weight, (gates * size, out)))
    if projection is not None:
        _check(name, weight, ("projection", projection, (out, size)))
    return rows, sizes[0], size, out


def _check(name: str, like: Any, *operands: tuple[str, Any, tuple[int, ...]]) -> None:
    """Each operand, if it is there, has its shape and the dtype of `like`."""
    dtype = like.dtype
    for what, operand, shape in operands:
        if operand is None:
            continue
        if operand._a.shape != shape and operand.shape != shape:
            raise RuntimeError(
                f"{name}: expected {what} of shape {shape}, got {tuple(operand.shape)}"
            )
        if operand.dtype is not dtype:
            raise RuntimeError(f"{name}: expected {what} of dtype {dtype}, got {operand.dtype}")


def _listed(sizes: Sizes) -> str:
    return str(list(sizes)) if len(sizes) <= 8 else f"{str(list(sizes[:8]))[:-1]}, ...]"
