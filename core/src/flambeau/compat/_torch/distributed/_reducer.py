"""The reducer of DistributedDataParallel as an object, as PyTorch 1.2 had it."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from math import inf
from typing import Any

from flambeau import Tensor
from flambeau.distributed import Future, ProcessGroup, Work


def _buckets() -> Any:
    return importlib.import_module("flambeau.nn.parallel._buckets")  # a distribution of its own


def _compute_bucket_assignment_by_size(
    tensors: Sequence[Tensor], bucket_size: Sequence[int]
) -> list[list[int]]:
    """Which tensors are together in buckets of about so many bytes, one dtype in each.

    The limits are those of the first, second, … bucket of a dtype.
    """
    return sorted(_buckets().divided(tensors, bucket_size, inf))


class Reducer:
    """Averages gradients over the processes of a group, and adds those of replicas up.

    A replica is a list of parameters; a process may have several, of equal shapes, and all
    get the sum of their gradients.  Parameters without a gradient count as zero and get the result.

    Args:
        replicas: parameters of each replica.
        bucket_indices: numbers of the parameters that travel together, in the order of travel.
        process_group: the processes.
        expect_sparse_gradients: not used; a sparse gradient is refused.

    Raises:
        RuntimeError: parameters of several dtypes or devices are in one bucket.
    """

    def __init__(
        self,
        replicas: Sequence[Sequence[Tensor]],
        bucket_indices: Sequence[Sequence[int]],
        process_group: ProcessGroup,
        expect_sparse_gradients: Sequence[Sequence[bool]] | None = None,
    ) -> None:
        self._group = process_group
        self._replicas = [
            self._reducer([[replica[i] for i in part] for part in bucket_indices])
            for replica in replicas
        ]
        self._together: dict[int, list[Any]] = {}
        self._works: dict[int, Work] = {}

    def _reducer(self, parts: list[list[Tensor]]) -> Any:
        for part in parts:
            if len({(parameter.dtype, parameter.device) for parameter in part}) > 1:
                raise RuntimeError("All parameters in a bucket must have the same type and device")
        made = _buckets().Reducer(parts, self._group, find_unused=True, gives_all=True)
        made.hook = self._travel
        return made

    def _travel(self, bucket: Any) -> Future[Tensor]:
        """Begin the exchange of a bucket when all replicas have it."""
        index, vector = bucket.index(), bucket.buffer()
        vector.div_(self._group.size())
        ready = self._together.setdefault(index, [])
        ready.append(vector)
        if len(ready) == len(self._replicas):
            self._works[index] = self._group.allreduce(self._together.pop(index))

        def wait() -> Tensor:
            self._works[index].wait()
            return vector

        return Future(wait)

    def prepare_for_backward(self, output: Tensor | Sequence[Tensor]) -> None:
        """Expect a backward pass from `output`."""
        for replica in self._replicas:
            replica.prepare(output, True)
