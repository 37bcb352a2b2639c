"""Device ``meta``: shapes and dtypes without data; its kernels are the shape rules."""

from __future__ import annotations

from typing import NoReturn

from flambeau._dispatch.dispatch import OPS
from flambeau._types.dtype import dtype as DType
from flambeau._types.spec import Spec
from flambeau.plugin import API_VERSION, Backend, KernelSet, hookimpl

api_version = API_VERSION


class MetaBackend(Backend):
    """Arrays are `Spec`s."""

    device_type = "meta"
    array = Spec
    indexed = False

    def from_host(self, data: object, shape: tuple[int, ...], dtype: DType, index: int) -> Spec:
        return Spec(tuple(shape), dtype)

    def to_host(self, array: Spec) -> NoReturn:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")

    def dtype_of(self, array: Spec) -> DType:
        return array.dtype

    def scalar(self, value: object, dtype: DType) -> Spec:
        return Spec((), dtype)

    def item(self, array: Spec) -> NoReturn:
        raise RuntimeError("Tensor.item() cannot be called on meta tensors")

    def tolist(self, array: Spec) -> NoReturn:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")


@hookimpl
def flambeau_backend(device_type: str) -> Backend | None:
    return MetaBackend() if device_type == "meta" else None


@hookimpl
def flambeau_kernels(device_type: str, backend: Backend) -> KernelSet | None:
    if device_type != "meta":
        return None
    from flambeau import __version__

    rules = {name: op.body for name, op in OPS.items() if op.tier == "primitive"}
    return KernelSet(f"flambeau-core {__version__}", rules)
