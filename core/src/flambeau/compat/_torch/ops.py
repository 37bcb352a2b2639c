"""``torch.ops``: functions that a program defined by `torch.library`, and those of ``aten``."""

from __future__ import annotations

import ctypes
import os

from flambeau.autograd.profiler import record_function
from flambeau.compat._absent import AbsentFunction
from flambeau.utils import _aten
from flambeau.utils._named_ops import DEFINED, OpsNamespace, loading

__all__ = ["load_library"]


_ABSENT = {
    space: frozenset(names.split())
    for space, names in {
        "aten": """_assert_scalar _assert_tensor_metadata _convert_weight_to_int4pack
            _convert_weight_to_int4pack_for_cpu _fft_c2c _grouped_mm _scaled_mm _scaled_mm_v2
            _scaled_dot_product_cudnn_attention _scaled_dot_product_cudnn_attention_backward
            _scaled_dot_product_efficient_attention _scaled_dot_product_flash_attention
            _scaled_dot_product_flash_attention_backward
            _scaled_dot_product_flash_attention_for_cpu _sparse_addmm _sparse_mm_reduce_impl
            _weight_int4pack_mm _weight_int4pack_mm_for_cpu sym_constrain_range_for_size""",
        "prims": "convert_element_type",
        "c10d": """allgather_ allreduce_ alltoall_ barrier broadcast_ gather_ recv_
            recv_any_source_ reduce_ reduce_scatter_ scatter_ send""",
        "c10d_functional": """all_gather_into_tensor all_gather_into_tensor_coalesced all_reduce
            all_reduce_coalesced all_to_all_single broadcast reduce_scatter_tensor
            reduce_scatter_tensor_coalesced wait_tensor""",
        "_c10d_functional": """_wrap_tensor_autograd all_gather_into_tensor
            all_gather_into_tensor_coalesced all_gather_into_tensor_out all_reduce all_reduce_
            all_reduce_coalesced all_reduce_coalesced_ all_to_all_single broadcast broadcast_
            reduce_scatter_tensor reduce_scatter_tensor_coalesced wait_tensor""",
        "higher_order": "associative_scan cond flex_attention map_impl scan while_loop",
    }.items()
}
"""What libraries name, to ask for it or to register something for it, and do not call."""


def _record_function_enter(name: str, args: str | None = None) -> record_function:
    return record_function(name).__enter__()


def _record_function_exit(handle: record_function) -> None:
    handle.__exit__()


_OF_PROFILES = {
    "_record_function_enter": _record_function_enter,
    "_record_function_enter_new": _record_function_enter,
    "_record_function_exit": _record_function_exit,
}


class _Namespace(OpsNamespace):
    """The ops of one namespace."""

    def __getattr__(self, op: str) -> object:
        if op in DEFINED.get(self._name, {}):
            return DEFINED[self._name][op]
        if self._name == "aten" and (packet := _aten.find(op)) is not None:
            self.__dict__[op] = packet
            return packet
        if self._name == "profiler" and op in _OF_PROFILES:
            packet = self.__dict__[op] = _aten.Packet(_OF_PROFILES[op], self._name, op)
            return packet
        if op in _ABSENT.get(self._name, ()):
            absent = AbsentFunction(f"torch.ops.{self._name}.{op}")
            packet = self.__dict__[op] = _aten.Packet(absent, self._name, op)
            return packet
        raise AttributeError(f"'_OpNamespace' {self._name!r} object has no attribute {op!r}")

    def __dir__(self) -> list[str]:
        return sorted(DEFINED.get(self._name, {}))


def load_library(path: str | os.PathLike[str]) -> None:
    """Load a library, which registers its ops under a namespace of this module.

    Raises:
        OSError: it is not there, or was compiled for something else.
        RuntimeError: an op cannot be registered, and why; or another error that registers one.
    """
    with loading():
        ctypes.CDLL(os.fspath(path))


def __getattr__(name: str) -> object:
    if name.startswith("__"):
        raise AttributeError(name)
    found = globals()[name] = _Namespace(name)
    return found
