"""Names of ``torch.distributed`` that only programs for PyTorch want."""

from __future__ import annotations

from collections.abc import Sequence

import flambeau as fb
from flambeau import Tensor
from flambeau.compat._torch.distributed._reducer import Reducer, _compute_bucket_assignment_by_size
from flambeau.distributed import (
    GroupMember,
    ProcessGroup,
    all_gather_into_tensor,
    get_global_rank,
    reduce_scatter_tensor,
)

__all__ = [
    "Reducer",
    "_all_gather_base",
    "_broadcast_coalesced",
    "_compute_bucket_assignment_by_size",
    "_get_global_rank",
    "_rank_not_in_group",
    "_reduce_scatter_base",
]

_all_gather_base = all_gather_into_tensor
_reduce_scatter_base = reduce_scatter_tensor
_get_global_rank = get_global_rank


def _rank_not_in_group(group: ProcessGroup | None) -> bool:
    """Whether a group is what `new_group` gives to processes that are not in it."""
    return group is GroupMember.NON_GROUP_MEMBER


def _broadcast_coalesced(
    process_group: ProcessGroup, tensors: Sequence[Tensor], buffer_size: int, src: int = 0
) -> None:
    """Give all processes the tensors of process `src`, in messages of about `buffer_size` bytes."""
    kinds: dict[object, list[list[Tensor]]] = {}
    for tensor in tensors:
        messages = kinds.setdefault((tensor.dtype, tensor.device), [[]])
        if sum(t.numel() * t.element_size() for t in messages[-1]) >= buffer_size:
            messages.append([])
        messages[-1].append(tensor.detach())
    for together in [message for messages in kinds.values() for message in messages]:
        flat = fb.cat([tensor.reshape(-1) for tensor in together])
        process_group.broadcast(flat, root=src).wait()
        parts = flat.split([tensor.numel() for tensor in together])
        for tensor, part in zip(together, parts, strict=True):
            tensor.copy_(part.view(tensor.shape))
