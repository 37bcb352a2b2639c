"""Lists of tensors, and values that may be absent."""

from __future__ import annotations

from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.onnx._operators.table import Context, integers, number, operator


@operator("SequenceEmpty")
def _sequence_empty(c: Context, dtype: int = 1) -> list[Any]:
    return []


@operator("SequenceConstruct")
def _sequence_construct(c: Context, *inputs: Tensor) -> list[Tensor]:
    return list(inputs)


@operator("SequenceLength")
def _sequence_length(c: Context, x: list[Any]) -> Tensor:
    return fb.tensor(len(x), dtype=fb.int64)


@operator("SequenceAt")
def _sequence_at(c: Context, x: list[Any], position: Tensor) -> Tensor:
    return x[int(position)]


@operator("SequenceInsert")
def _sequence_insert(
    c: Context, x: list[Any], item: object, position: Tensor | None = None
) -> list[Any]:
    place = len(x) if position is None else int(position)
    place = place + len(x) if place < 0 else place
    return [*x[:place], item, *x[place:]]


@operator("SequenceErase")
def _sequence_erase(c: Context, x: list[Any], position: Tensor | None = None) -> list[Any]:
    place = -1 if position is None else int(position)
    place = place + len(x) if place < 0 else place
    return [*x[:place], *x[place + 1 :]]


@operator("SplitToSequence")
def _split_to_sequence(
    c: Context, x: Tensor, split: Tensor | None = None, axis: int = 0, keepdims: int = 1
) -> list[Tensor]:
    if split is None:
        parts = x.split(1, axis)
        return list(parts) if keepdims else [p.squeeze(axis) for p in parts]
    return list(x.split(integers(split) if split.dim() else int(number(split)), axis))


@operator("ConcatFromSequence")
def _concat_from_sequence(c: Context, x: list[Tensor], axis: int = 0, new_axis: int = 0) -> Tensor:
    return fb.stack(x, axis) if new_axis else fb.cat(x, axis)


@operator("SequenceMap")
def _sequence_map(c: Context, *inputs: Any, body: Any) -> Any:
    count = len(inputs[0])
    results = [
        c.run(body, [x[i] if isinstance(x, list) else x for x in inputs]) for i in range(count)
    ]
    columns = [[row[k] for row in results] for k in range(len(body.output))]
    return tuple(columns) if len(columns) > 1 else columns[0]


@operator("Optional")
def _optional(c: Context, x: object = None, type: object = None) -> Any:
    return x


@operator("OptionalHasElement")
def _optional_has_element(c: Context, x: object = None) -> Tensor:
    return fb.tensor(x is not None)


@operator("OptionalGetElement")
def _optional_get_element(c: Context, x: object) -> Any:
    if x is None:
        raise ValueError("OptionalGetElement: there is no element")
    return x
