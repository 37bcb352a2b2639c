"""Operations on vectors that several functions are made of."""

from __future__ import annotations

from typing import Any

from flambeau import Tensor
from flambeau.distributed._exchange.vectors import target, vector
from flambeau.distributed._group import ProcessGroup
from flambeau.distributed._work import Work
from flambeau.plugin import Request


def facts_of(tensor: Tensor, *more: str) -> str:
    """What has to be the same in all processes: dtype, size, and what else is given."""
    kind = str(tensor.dtype).rpartition(".")[2]
    return ", ".join([f"{kind}[{tensor.numel()}]", *more])


def pieces(whole: Tensor, part: int, count: int, name: str) -> list[tuple[int, int]]:
    """The bounds of `count` parts of `part` elements each.

    Raises:
        ValueError: `whole` has another number of elements.
    """
    if whole.numel() != part * count:
        raise ValueError(
            f"{name} size must be equal to world_size times the size of one process's tensor: "
            f"{whole.numel()} is not {count} times {part}"
        )
    return [(part * i, part * (i + 1)) for i in range(count)]


def all_gather_flat(output: Tensor, input: Tensor, group: ProcessGroup) -> Work:
    """Begin to bring the tensors of all into one, one after the other.

    Raises:
        ValueError: `output` has not as many times the elements as there are processes.
    """
    bounds = pieces(output, input.numel(), group.size(), "output tensor")
    array, finish = target(output)
    mine = vector(input)

    def begin(c: Any) -> Request:
        return c.all_gather([c.part(array, *bound) for bound in bounds], mine)

    return group.collective("all_gather", input, facts_of(input), begin, finish)
