"""Arguments cut up for several devices, and results joined on one."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.nn.parallel._places import Device, device_type, placed
from flambeau.overrides import all_take_as_annotated

__all__ = ["gather", "scatter", "scatter_kwargs"]


def _is_named(value: object) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def scatter(inputs: object, target_gpus: Sequence[Device], dim: int = 0) -> Any:
    """For each device its part of `inputs`.

    Tensors are cut along `dim` as `flambeau.chunk` does; tuples, lists and dictionaries are cut
    part by part; anything else is the same object for each.  Gradients flow back.

    >>> import flambeau as fb
    >>> fb.nn.parallel.scatter((fb.tensor([1, 2, 3]), "x"), ["cpu", "cpu"])
    [(tensor([1, 2]), 'x'), (tensor([3]), 'x')]
    """
    kind = device_type(inputs)

    def cut(value: Any) -> list[Any]:
        if isinstance(value, Tensor):
            pieces = zip(value.chunk(len(target_gpus), dim), target_gpus, strict=False)
            return [piece.to(placed(device, kind)) for piece, device in pieces]
        if _is_named(value):
            return [type(value)(*parts) for parts in zip(*map(cut, value), strict=False)]
        if isinstance(value, tuple) and value:
            return list(zip(*map(cut, value), strict=False))
        if isinstance(value, list) and value:
            return [list(parts) for parts in zip(*map(cut, value), strict=False)]
        if isinstance(value, dict) and value:
            rows = zip(*map(cut, value.items()), strict=False)
            return [type(value)(parts) for parts in rows]
        return [value for _ in target_gpus]

    return cut(inputs)


def scatter_kwargs(
    inputs: tuple[Any, ...],
    kwargs: dict[str, Any] | None,
    target_gpus: Sequence[Device],
    dim: int = 0,
) -> tuple[tuple[Any, ...], tuple[dict[str, Any], ...]]:
    """Positional and keyword arguments of each device; empty ones where the other has more.

    >>> import flambeau as fb
    >>> args, kwargs = fb.nn.parallel.scatter_kwargs((fb.ones(2),), {"p": 1}, ["cpu", "cpu"])
    >>> args[1], kwargs[1]
    ((tensor([1.]),), {'p': 1})
    """
    parts = scatter(inputs, target_gpus, dim) if inputs else []
    named = scatter(kwargs, target_gpus, dim) if kwargs else []
    count = max(len(parts), len(named))
    parts += [()] * (count - len(parts))
    named += [{} for _ in range(count - len(named))]
    return tuple(parts), tuple(named)


def gather(outputs: Any, target_device: Device, dim: int = 0) -> Any:
    """The results of several devices joined along `dim` on one; scalars become a vector.

    Tuples, lists and dictionaries of tensors are joined part by part.  Gradients flow back.

    Raises:
        ValueError: dictionaries have different lengths.
        TypeError: there is something else among the results.

    >>> import flambeau as fb
    >>> fb.nn.parallel.gather([fb.tensor([1, 2]), fb.tensor([3])], "cpu")
    tensor([1, 2, 3])
    """
    place = placed(target_device, device_type(outputs))

    def join(results: Sequence[Any]) -> Any:
        first = results[0]
        if isinstance(first, Tensor):
            if all(result.dim() == 0 for result in results) and dim == 0:
                warnings.warn(
                    "Was asked to gather along dimension 0, but all input tensors were scalars; "
                    "will instead unsqueeze and return a vector.",
                    stacklevel=3,
                )
                results = [result.unsqueeze(0) for result in results]
            return fb.cat([result.to(place) for result in results], dim)
        if first is None:
            return None
        if isinstance(first, dict):
            if any(len(result) != len(first) for result in results):
                raise ValueError("All dicts must have the same number of keys")
            return type(first)((key, join([result[key] for result in results])) for key in first)
        if not isinstance(first, (tuple, list)):
            raise TypeError(
                "gather: results must be tensors, None, or tuples, lists and dictionaries of "
                f"them, got {type(first).__name__}"
            )
        parts = map(join, zip(*results, strict=True))
        return type(first)(*parts) if _is_named(first) else type(first)(parts)

    return join(outputs)


all_take_as_annotated(globals())
