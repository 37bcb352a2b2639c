"""What the operators of ONNX compute, by family; `OPERATORS` has all of them."""

from flambeau.onnx._operators import (
    attention,
    control,
    convolution,
    elementwise,
    indexing,
    losses,
    normalization,
    pooling,
    quantization,
    recurrent,
    reductions,
    resampling,
    sequences,
    shapes,
    signal,
)
from flambeau.onnx._operators.table import OPERATORS, Context

__all__ = [
    "OPERATORS",
    "Context",
    "attention",
    "control",
    "convolution",
    "elementwise",
    "indexing",
    "losses",
    "normalization",
    "pooling",
    "quantization",
    "recurrent",
    "reductions",
    "resampling",
    "sequences",
    "shapes",
    "signal",
]
