"""Control flow: subgraphs that run once, or again and again."""

from __future__ import annotations

from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.onnx._operators.table import Context, operator


@operator("If")
def _if(c: Context, condition: Tensor, then_branch: object, else_branch: object) -> Any:
    return c.run(then_branch if bool(condition) else else_branch, [])


@operator("Loop")
def _loop(
    c: Context, most: Tensor | None, condition: Tensor | None, *first: object, body: Any
) -> tuple[Any, ...]:
    state = list(first)
    limit = None if most is None else int(most)
    goes = condition is None or bool(condition)
    collected: list[list[Any]] = [[] for _ in range(len(body.output) - 1 - len(state))]
    step = 0
    while goes and (limit is None or step < limit):
        keep, *results = c.run(body, [fb.tensor(step), fb.tensor(True), *state])
        goes = bool(keep)
        state = results[: len(state)]
        for values, value in zip(collected, results[len(state) :], strict=True):
            values.append(value)
        step += 1
    return (*state, *(_stacked(values) for values in collected))


def _stacked(values: list[Tensor], dim: int = 0) -> Tensor:
    return fb.stack(values, dim) if values else fb.zeros(0)


@operator("Scan")
def _scan(
    c: Context,
    *inputs: Any,
    body: object,
    num_scan_inputs: int,
    scan_input_axes: list[int] | None = None,
    scan_output_axes: list[int] | None = None,
    scan_input_directions: list[int] | None = None,
    scan_output_directions: list[int] | None = None,
    directions: list[int] | None = None,
) -> tuple[Any, ...]:
    if c.opset < 9:
        return _batched_scan(c, inputs, body, num_scan_inputs, directions)
    count = len(inputs) - num_scan_inputs
    return _scanned(
        c,
        list(inputs[:count]),
        list(inputs[count:]),
        body,
        scan_input_axes,
        scan_output_axes,
        scan_input_directions,
        scan_output_directions,
    )


def _batched_scan(
    c: Context, inputs: Any, body: object, scanned: int, directions: list[int] | None
) -> tuple[Any, ...]:
    """Version 8: the first input has the lengths, and each of a batch is scanned by itself."""
    lengths, *rest = inputs
    count = len(rest) - scanned
    rows = []
    for i in range(rest[0].shape[0]):
        end = rest[count].shape[1] if lengths is None else int(lengths[i])
        parts = [x[i][:end] for x in rest[count:]]
        rows.append(
            _scanned(c, [x[i] for x in rest[:count]], parts, body, None, None, directions, None)
        )
    return tuple(fb.stack(column) for column in zip(*rows, strict=True))


def _scanned(
    c: Context,
    state: list[Any],
    sequences: list[Tensor],
    body: Any,
    input_axes: list[int] | None,
    output_axes: list[int] | None,
    input_directions: list[int] | None,
    output_directions: list[int] | None,
) -> tuple[Any, ...]:
    axes = input_axes or [0] * len(sequences)
    turned = input_directions or [0] * len(sequences)
    rows = [
        (x.flip(a) if back else x).unbind(a)
        for x, a, back in zip(sequences, axes, turned, strict=True)
    ]
    collected: list[list[Tensor]] = [[] for _ in range(len(body.output) - len(state))]
    for step in zip(*rows, strict=True):
        results = c.run(body, [*state, *step])
        state = list(results[: len(state)])
        for values, value in zip(collected, results[len(state) :], strict=True):
            values.append(value)
    places = output_axes or [0] * len(collected)
    backwards = output_directions or [0] * len(collected)
    made = [
        _stacked(values[::-1] if back else values, place)
        for values, place, back in zip(collected, places, backwards, strict=True)
    ]
    return (*state, *made)
