"""What ops that libraries plan have in common: the library is loaded when it is first needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np

from flambeau.plugin import numerics
from flambeau_cupy.device.array_module import Array
from flambeau_cupy.layer import Layer

Sizes = tuple[int, ...]
Side = tuple[Sizes, Sizes]
"""A tensor of a plan: its shape, and its strides in elements."""
ALIGNMENT = 16
ELEMENTS = {"float16": "HALF", "bfloat16": "BFLOAT16", "float32": "FLOAT", "float64": "DOUBLE"}
"""What the frontend of cuDNN calls the dtypes."""

R = TypeVar("R")


class Runtime(Protocol):
    """What plans of cuDNN are made for and executed on.

    Attributes:
        cudnn: the module of the frontend.
    """

    cudnn: Any

    def where(self) -> dict[str, Any]:
        """The arguments that say to a graph of the frontend which device it is for."""
        ...

    def handle(self) -> Any:
        """The handle of the current device, set to the current stream."""
        ...

    def milliseconds(self, run: Callable[[], None]) -> float:
        """How long the device needs for what `run` asks of it."""
        ...

    def device(self) -> int:
        """The current device."""
        ...


class Library(Generic[R]):
    """Ops by a library that may be missing.

    Args:
        layer: the array module.
        load: makes the runtime, or raises ImportError or OSError where the library is missing.

    Attributes:
        ops: the methods of ops; they return None where an op must decompose.
        missing: why there is no library, once that is known.
    """

    ops: ClassVar[Mapping[str, str]] = {}

    def __init__(self, layer: Layer, load: Callable[[], R]) -> None:
        self.layer, self._load = layer, load
        self.missing = ""
        self._runtime: R | None = None

    def runtime(self) -> R | None:
        """The runtime; None where the library is missing."""
        if self._runtime is None and not self.missing:
            try:
                self._runtime = self._load()
            except (ImportError, OSError) as error:
                self.missing = str(error)
        return self._runtime

    def compiled(self, op: str, decomposition: Callable[..., Any]) -> Callable[..., Any] | None:
        """An op by the library, and by its decomposition where that has none; None for others."""
        method = self.ops.get(op)
        if method is None:
            return None
        planned = getattr(self, method)

        def kernel(*args: object) -> Any:
            found = planned(*args)
            return decomposition(*args) if found is None else found

        if method == "forward" and hasattr(self, "takes"):
            kernel.takes = self.takes  # type: ignore[attr-defined] - `Op.taken` asks for it
        return kernel

    def room(self, size: int) -> tuple[Array | None, int]:
        """Memory for one call, and its address; none and 0 for no bytes.

        The pool orders memory by streams: it may be taken again once the call is asked for.
        """
        if not size:
            return None, 0
        made = self.layer.xp.empty((size,), np.uint8)
        return made, self.layer.address(made)


class CudnnLibrary(Library[Runtime]):
    """Ops by plans of cuDNN's frontend."""

    def runtime(self) -> Runtime | None:
        """The runtime; None where cuDNN is missing or switched off."""
        return super().runtime() if numerics.enabled else None


def strides_of(a: Array) -> Sizes:
    """The strides of an array in elements."""
    size = a.itemsize
    return tuple([s // size for s in a.strides])
