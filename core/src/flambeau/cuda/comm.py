"""Copies of tensors to several CUDA devices, and back to one."""

from __future__ import annotations

from flambeau.accelerator._namespace import namespace as _namespace

_comm = _namespace("cuda").comm

broadcast = _comm.broadcast
broadcast_coalesced = _comm.broadcast_coalesced
gather = _comm.gather
reduce_add = _comm.reduce_add
scatter = _comm.scatter

__all__ = ["broadcast", "broadcast_coalesced", "gather", "reduce_add", "scatter"]
