"""Sums of sparse tensors over the processes of a group."""

from __future__ import annotations

import flambeau as fb
from flambeau import Tensor
from flambeau.distributed._exchange.flat import all_gather_flat
from flambeau.distributed._group import ProcessGroup
from flambeau.distributed._reduce_op import ReduceOp
from flambeau.distributed._work import Work


def all_reduce_sparse(tensor: Tensor, op: ReduceOp, group: ProcessGroup) -> Work:
    """Begin the sum of the sparse tensors of all, in all of them, coalesced.

    The processes tell each other how many elements they have, and where; the values travel last.
    All add them up in the order of the ranks, so all have the same bits.

    Raises:
        ValueError: `op` is neither SUM nor AVG.
        TypeError: the layout is not `sparse_coo`.
    """
    if tensor.layout is not fb.sparse_coo:
        raise TypeError(f"all_reduce of sparse tensors takes sparse_coo, not {tensor.layout}")
    if op not in (ReduceOp.SUM, ReduceOp.AVG):
        raise ValueError(
            f"all_reduce: unsupported reduction operation {op.name}: sparse tensors can only be "
            "added up"
        )
    mine = tensor.detach().coalesce()
    place, size = mine.device, group.size()
    shape = fb.tensor([mine.sparse_dim(), *mine.shape], device=place)
    _need_one_shape(shape, group)
    counts = fb.empty(size, dtype=fb.int64, device=place)
    count = fb.tensor([len(mine.values())], device=place)
    all_gather_flat(counts, count, group).wait()
    held = counts.tolist()
    most = max(held)
    indices = _gathered(mine.indices().t(), most, group)
    values = fb.empty(size * most, *mine.values().shape[1:], dtype=mine.dtype, device=place)
    travelling = _padded(mine.values(), most)
    work = all_gather_flat(values, travelling, group)

    def add_up() -> None:
        with fb.no_grad():
            kept = [slice(most * rank, most * rank + n) for rank, n in enumerate(held)]
            where = fb.cat([indices[part] for part in kept]).t()
            what = fb.cat([values[part] for part in kept])
            total = fb.sparse_coo_tensor(where, what, mine.shape).coalesce()
            tensor.copy_(total / size if op is ReduceOp.AVG else total)

    work.after(add_up, [tensor])
    return work


def _need_one_shape(shape: Tensor, group: ProcessGroup) -> None:
    """Refuse tensors of different shapes, in all processes.

    The elements that a process names are checked against its own shape alone otherwise.

    Raises:
        DistBackendError: the shapes differ.
    """
    facts = f"sparse {shape.tolist()}"
    group.collective("all_reduce", shape, facts, lambda c: c.compare(0)).wait()


def _padded(rows: Tensor, count: int) -> Tensor:
    padding = rows.new_zeros(count - len(rows), *rows.shape[1:])
    return fb.cat([rows, padding])


def _gathered(rows: Tensor, most: int, group: ProcessGroup) -> Tensor:
    """The rows of all processes, `most` of each."""
    together = rows.new_empty(group.size() * most, *rows.shape[1:])
    all_gather_flat(together, _padded(rows, most), group).wait()
    return together
