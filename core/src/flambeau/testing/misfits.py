"""Calls that nobody should make: samples with one operand of another shape than it should have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from flambeau.testing.sample_arrays import Arr
from flambeau.testing.samples import SAMPLES


class Misfit(NamedTuple):
    """Arguments with one operand changed, and which one how."""

    text: str
    args: tuple[Any, ...]


def misfits(name: str, samples: int | None = None) -> Iterator[Misfit]:
    """Each operand of the samples of an op too small, too large, broadcastable, turned or empty.

    Some are right all the same, such as a larger operand of a function of one array.

    Args:
        name: the op.
        samples: how many of its samples; all by default.

    >>> from flambeau.testing.misfits import misfits
    >>> next(misfits("matmul")).text, next(misfits("matmul")).args[0].shape
    ('matrices: operand 0 is (1, 3), not (2, 3)', (1, 3))
    """
    for sample in SAMPLES[name][:samples]:
        for place, operand in _operands(sample.args, ()):
            for shape in _others(operand.shape):
                which = ".".join(map(str, place))
                text = f"{sample.name}: operand {which} is {shape}, not {operand.shape}"
                changed = replace(operand, shape=shape)
                yield Misfit(text, _with(sample.args, place, changed))


def _operands(value: object, place: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], Arr]]:
    if isinstance(value, Arr):
        yield place, value
    elif isinstance(value, (tuple, list)):
        for i, item in enumerate(value):
            yield from _operands(item, (*place, i))


def _with(value: Any, place: tuple[int, ...], operand: Arr) -> Any:
    if not place:
        return operand
    items = list(value)
    items[place[0]] = _with(items[place[0]], place[1:], operand)
    return type(value)(items)


def _others(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    found: dict[tuple[int, ...], None] = {}
    for d, n in enumerate(shape):
        for size in (max(n - 1, 0), n + 1, 1, 0):
            found[*shape[:d], size, *shape[d + 1 :]] = None
    if len(shape) > 1:
        found[*shape[:-2], shape[-1], shape[-2]] = None
        found[shape[1:]] = found[shape[:-1]] = None
    for other in ((), (2, *shape), (1, *shape), (*shape, 1)):
        found[other] = None
    found.pop(shape, None)
    yield from found
