"""flambeau under the interface that the package onnx has for backends."""

from __future__ import annotations

from typing import Any

import flambeau as fb
import onnx
from flambeau.onnx._model import ONNXModule
from flambeau.onnx._operators.table import UnsupportedError
from onnx.backend.base import Backend, BackendRep

__all__ = ["FlambeauBackend", "is_compatible", "prepare", "run_model", "supports_device"]


class _Prepared(BackendRep):
    def __init__(self, model: ONNXModule) -> None:
        self.model = model

    def run(self, inputs: Any, **kwargs: object) -> tuple[Any, ...]:
        """The outputs for a sequence of arrays."""
        try:
            with fb.no_grad():
                results = self.model(*map(_tensors, inputs))
        except UnsupportedError as error:
            raise _not_supposed(error) from error
        if len(self.model.output_names) == 1:
            results = (results,)
        return tuple(map(_arrays, results))


class FlambeauBackend(Backend):
    """Runs models on flambeau's CPU; what it lacks raises `BackendIsNotSupposedToImplementIt`."""

    @classmethod
    def prepare(cls, model: object, device: str = "CPU", **kwargs: object) -> BackendRep:
        """A model that can be run."""
        try:
            return _Prepared(ONNXModule(model))
        except UnsupportedError as error:
            raise _not_supposed(error) from error

    @classmethod
    def run_model(cls, model: object, inputs: object, device: str = "CPU", **kwargs: object) -> Any:
        """The outputs of a model for a sequence of arrays."""
        return cls.prepare(model, device).run(inputs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether models run there: on the CPU."""
        return device.split(":")[0] == "CPU"


def _not_supposed(error: UnsupportedError) -> Exception:
    from onnx.backend.test.runner import BackendIsNotSupposedToImplementIt

    return BackendIsNotSupposedToImplementIt(str(error))


def _tensors(value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, list | tuple):
        return [_tensors(v) for v in value]
    code = onnx.helper.np_dtype_to_tensor_dtype(value.dtype)
    return tensor_of_bytes(value.tobytes(), code, value.shape)


def tensor_of_bytes(data: bytes, code: int, shape: Any) -> fb.Tensor:
    """A tensor of ONNX's dtype from its bytes."""
    from flambeau.onnx._operators.table import dtype_of

    dtype = dtype_of(code)
    if not data:
        return fb.empty(tuple(shape), dtype=dtype)
    return fb.frombuffer(bytearray(data), dtype=dtype).reshape(tuple(shape))


def _arrays(value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, list | tuple):
        return [_arrays(v) for v in value]
    return value.detach().numpy()


is_compatible = FlambeauBackend.is_compatible
prepare = FlambeauBackend.prepare
run_model = FlambeauBackend.run_model
supports_device = FlambeauBackend.supports_device
