"""Argument names of tensor methods that PyTorch 1.0 documents and today's PyTorch has renamed.

The generated methods take both.  The documented names are keyword-only and come last, so that a
call by position, or by today's names, is not slower for them.
"""

from __future__ import annotations

# Method: {documented name: today's}.  In-place variants follow.
ALIASES: dict[str, dict[str, str]] = {
    "bernoulli_": {"p_tensor": "p"},
    "bmm": {"batch2": "mat2"},
    "cholesky_solve": {"input2": "L"},
    "div": {"value": "other"},
    "dot": {"tensor2": "tensor"},
    "fmod": {"divisor": "other"},
    "index_add": {"tensor": "source"},
    "index_copy": {"tensor": "source"},
    "index_fill": {"val": "value"},
    "index_put": {"value": "values"},
    "masked_scatter": {"tensor": "source"},
    "matmul": {"tensor2": "other"},
    "mul": {"value": "other"},
    "narrow": {"dimension": "dim"},
    "orgqr": {"input2": "tau"},
    "ormqr": {"input2": "tau", "input3": "other"},
    "pow": {"exponent": "other"},
    "put": {"indices": "index", "tensor": "source"},
    "remainder": {"divisor": "other"},
    "scatter": {"source": "src"},
    "scatter_add": {"source": "src", "other": "src"},
    "smm": {"mat2": "mat"},
    "split": {"split_size": "split_size_or_sections"},
    "take": {"indices": "index"},
    "to_sparse": {"sparseDims": "sparse_dim"},
    "tril": {"k": "diagonal"},
    "triu": {"k": "diagonal"},
    "unfold": {"dim": "dimension"},
}

# Arguments of a function that its method has not, where these are others than ``out``.
FUNCTION_ONLY: dict[str, tuple[str, ...]] = {
    "all": (),
    "any": (),
    "clamp_min": (),
    "median": ("out", "values", "indices"),
    "mode": ("out", "values", "indices"),
}

# Methods that take the numbers of a tuple by place, too: ``x.tile(2, 3)``, ``x.tile(dims=(2, 3))``.
VARIADIC: dict[str, str] = {
    "broadcast_to": "size",
    "flip": "dims",
    "repeat": "repeats",
    "sum_to_size": "size",
    "tile": "dims",
}
