"""The tensors of a program that is being drawn, and the choice of operands among them.

Most choices are legal and the illegal ones are the interesting ones.  Stale views, whose base has
changed since they were made, are preferred as operands, bases and views as targets of in-place
steps.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch

from agreement_programs import Ref, Step, execute, results

# Operands of arithmetic stay below this, so that no chain overflows or loses all its digits.
LARGEST = 40.0
MOST_ELEMENTS = 200

Accept = Callable[[torch.Tensor], bool]


class State:
    """The random numbers of a seed, the live tensors and the steps that made them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.tensors: dict[int, torch.Tensor] = {}
        self.born: dict[int, int] = {}  # version of each tensor when it was made
        self.steps: list[Step] = []
        self.no_grad_left = 0

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def is_stale(self, number: int) -> bool:
        tensor = self.tensors[number]
        return tensor._base is not None and tensor._version != self.born[number]

    def pick(self, accept: Accept = lambda tensor: True) -> Ref | None:
        """An operand: stale views first, then what was made lately."""
        numbers = [number for number in self.tensors if accept(self.tensors[number])]
        if not numbers:
            return None
        newest = max(self.tensors)
        weights = [6.0 if self.is_stale(n) else 2.0 if n > newest - 3 else 1.0 for n in numbers]
        for position, number in enumerate(numbers):
            if flag(self.tensors[number], "requires_grad") is None:  # every use of it raises
                weights[position] = 0.2
        return Ref(self.random.choices(numbers, weights)[0])

    def pick_target(self, accept: Accept = lambda tensor: True) -> Ref | None:
        """A tensor to change in place: bases and views first, leaves that require grad seldom."""
        numbers = [n for n, t in self.tensors.items() if accept(t) and not overlaps_itself(t)]
        if not numbers:
            return None
        bases = {id(tensor._base) for tensor in self.tensors.values() if tensor._base is not None}
        weights = []
        for number in numbers:
            tensor = self.tensors[number]
            weight = 5.0 if id(tensor) in bases else 3.0 if tensor._base is not None else 1.0
            if flag(tensor, "is_leaf") and flag(tensor, "requires_grad") and not self.no_grad_left:
                weight *= 0.08
            elif flag(tensor, "requires_grad") is None:
                weight *= 0.1
            weights.append(weight)
        return Ref(self.random.choices(numbers, weights)[0])

    def pick_partner(self, shape: tuple[int, ...]) -> Ref | None:
        """A bounded tensor that broadcasts with `shape`; now and then another one."""
        if self.chance(0.04):
            return self.pick(bounded)
        return self.pick(lambda tensor: bounded(tensor) and broadcasts(tensor.shape, shape, False))

    def pick_source(self, target: torch.Tensor) -> Ref | None:
        """A bounded tensor to be written into `target` or combined with it in place."""
        fits = self.chance(0.96)
        return self.pick(
            lambda tensor: (
                bounded(tensor)
                and (not fits or broadcasts(tensor.shape, target.shape, True))
                and not undefined(target, tensor)
            )
        )

    def scalar(self) -> float | int | bool:
        return self.random.choice((2, -1, 1, 0.5, -1.5, 0.1, 3.0, True, -0.0, 0))

    def dim(self, tensor: torch.Tensor) -> int:
        if self.chance(0.02):
            return tensor.dim() + 1
        return self.random.randrange(-tensor.dim(), tensor.dim()) if tensor.dim() else 0

    def basic_index(self, tensor: torch.Tensor) -> Any:
        """An index of ints, slices with steps, None and Ellipsis."""
        items: list[Any] = []
        for size in tensor.shape[: self.random.randint(min(1, tensor.dim()), tensor.dim())]:
            kind = self.random.random()
            if kind < 0.3 and size:
                high = size if self.chance(0.97) else size + 1
                items.append(self.random.randrange(-size, high))
            elif kind < 0.75:
                start, stop = self.random.choices((None, None, 0, 1, 2, -1), k=2)
                items.append(slice(start, stop, self.random.choice((None, None, 1, 2))))
            else:
                items.append(slice(None))
        if self.chance(0.15):
            items.insert(self.random.randint(0, len(items)), None)
        if self.chance(0.15):
            at = 0 if len(items) == tensor.dim() else self.random.choice((0, len(items)))
            items.insert(at, Ellipsis)
        return items[0] if len(items) == 1 and self.chance(0.7) else tuple(items)

    def emit(self, op: str, *args: Any, **kwargs: Any) -> None:
        """Append a step and execute it; one that raises stays in the program, making nothing."""
        step = Step(op, args, kwargs, no_grad=self.no_grad_left > 0)
        try:
            made = results(step, execute(step, self.tensors, torch))
        except Exception:  # whatever a step raises is part of the program
            made = []
        first = max(self.tensors, default=-1) + 1
        numbers = tuple(range(first, first + len(made)))
        for number, tensor in zip(numbers, made, strict=True):
            self.tensors[number] = tensor
            self.born[number] = tensor._version
        self.steps.append(Step(op, args, kwargs, numbers, step.no_grad))


def _finite_below(limit: float) -> Accept:
    def accept(tensor: torch.Tensor) -> bool:
        if not 0 < tensor.numel() <= MOST_ELEMENTS or tensor.dtype is torch.bool:
            return tensor.numel() == 0
        return bool((tensor.detach().abs() <= limit).all())  # false for NaN

    return accept


bounded = _finite_below(LARGEST)
small = _finite_below(4.0)


def overlaps_itself(tensor: torch.Tensor) -> bool:
    """Whether elements share memory other than by stride zero, which PyTorch does not notice."""
    sizes = [(size, stride) for size, stride in zip(tensor.shape, tensor.stride(), strict=True)]
    if 0 in tensor.shape or any(stride == 0 and size > 1 for size, stride in sizes):
        return False
    places = {0}
    for size, stride in sizes:
        places = {place + i * stride for place in places for i in range(size)}
    return len(places) < tensor.numel()


def share_memory(first: torch.Tensor, second: torch.Tensor) -> bool:
    return first.untyped_storage().data_ptr() == second.untyped_storage().data_ptr()


def undefined(target: torch.Tensor, source: torch.Tensor) -> bool:
    """Whether PyTorch neither refuses nor defines a write into `target` that reads `source`.

    It refuses partial overlap of dense tensors; what strided ones give depends on its loop order.
    """
    if not share_memory(target, source):
        return False
    if target.shape == source.shape and target.stride() == source.stride():
        return target.storage_offset() != source.storage_offset() and not _dense(target)
    return not (_dense(target) and _dense(source))


def _dense(tensor: torch.Tensor) -> bool:
    return torch._prims_common.is_non_overlapping_and_dense_or_false(tensor)


def flag(tensor: torch.Tensor, name: str) -> bool | None:
    """`requires_grad` or `is_leaf`; None for a view that may not even be asked."""
    try:
        return getattr(tensor, name)
    except RuntimeError:
        return None


def positive(tensor: torch.Tensor) -> bool:
    return bounded(tensor) and bool((tensor.detach() > 0.01).all())


def broadcasts(shape: Any, other: Any, into: bool) -> bool:
    try:
        joint = torch.broadcast_shapes(shape, other)
    except RuntimeError:
        return False
    return tuple(joint) == tuple(other) if into else True


def nested(shape: tuple[int, ...], value: Callable[[], float]) -> Any:
    return [nested(shape[1:], value) for _ in range(shape[0])] if shape else value()
