"""Symbolic functions by family, as the operators of the import are."""

from flambeau.onnx._export.symbolic import (
    attention,
    convolution,
    creation,
    elementwise,
    indexing,
    losses,
    normalization,
    numbers,
    packing,
    pooling,
    recurrent,
    reductions,
    resampling,
    shapes,
)

__all__ = [
    "attention",
    "convolution",
    "creation",
    "elementwise",
    "indexing",
    "losses",
    "normalization",
    "numbers",
    "packing",
    "pooling",
    "recurrent",
    "reductions",
    "resampling",
    "shapes",
]
