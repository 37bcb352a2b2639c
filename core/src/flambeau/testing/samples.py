"""Samples of arguments for every canonical op, for examples, gradients, backends and parity alike.

Those of an op stand beside its declaration (`Op.samples`) or in the modules named after families.

`SAMPLES` has ordinary arguments inside each op's domain, `SPECIAL` the corners (NaN, infinities,
signed zeros, extremes), `DTYPES` the dtypes that make sense for an op.  `realise` turns a sample
into the arguments of a call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flambeau._types.dtype import (
    ALL,
    COMPLEX,
    FLOATING,
    INTEGER,
    bool_,
    float32,
    float64,
    int32,
    int64,
)
from flambeau._types.dtype import dtype as DType
from flambeau.ops import OPS
from flambeau.testing import sample_arrays, sample_corners
from flambeau.testing.layouts import LAYOUTS, Make, arranged, lay_out
from flambeau.testing.sample_arrays import DTYPE, GENERATOR, Arr, Marker, Sample, special_values
from flambeau.testing.sample_complexes import COMPLEXES, SPECTRAL
from flambeau.testing.sample_composites import COMPOSITES
from flambeau.testing.sample_corners import BITWISE, DIVISIONS, FLOAT_UNARY, ORDERINGS, REAL_UNARY
from flambeau.testing.sample_embedding import EMBEDDING
from flambeau.testing.sample_linalg import DECOMPOSED_DTYPES, DECOMPOSITIONS
from flambeau.testing.sample_primitives import ELEMENTWISE, PRIMITIVES

if TYPE_CHECKING:
    from flambeau._random.generator import Generator


__all__ = [
    "ANY_SHAPE",
    "DTYPE",
    "DTYPES",
    "GENERATOR",
    "LAYOUTS",
    "SAMPLES",
    "SPECIAL",
    "Arr",
    "Marker",
    "Sample",
    "arrange",
    "arranged",
    "lay_out",
    "realise",
    "special_values",
]


def realise(
    args: tuple[Any, ...],
    make: Make,
    dtype: DType,
    *,
    layout: str = "contiguous",
    generator: Generator | None = None,
) -> tuple[Any, ...]:
    """The arguments of a sample with every description replaced by a tensor from `make`.

    To compute the expected result of a layout, realise ``arrange(args, layout)`` contiguously.

    >>> import flambeau as fb
    >>> from flambeau.testing.samples import SAMPLES, realise
    >>> make = lambda values, shape, dtype: (shape, dtype)
    >>> realise(SAMPLES["add"][0].args, make, fb.int64)
    (((2, 3), torch.int64), ((2, 3), torch.int64))
    """

    def one(value: object) -> Any:
        if isinstance(value, Arr):
            return lay_out(value, layout, make, dtype)
        return {DTYPE: dtype, GENERATOR: generator}[value] if isinstance(value, Marker) else value

    return _mapped(args, one)


def arrange(args: tuple[Any, ...], layout: str) -> tuple[Any, ...]:
    """The arguments of a sample after what `layout` does to values and shapes (see `arranged`)."""
    return _mapped(args, lambda v: arranged(v, layout) if isinstance(v, Arr) else v)


def _mapped(value: object | None, function: Callable[[Any], Any]) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)([_mapped(item, function) for item in value])
    return function(value)


_BESIDE = {name: op.samplers for name, op in OPS.items() if op.samplers}

SAMPLES: dict[str, list[Sample]] = {
    **{name: give(sample_arrays) for name, (give, _) in _BESIDE.items()},
    **PRIMITIVES,
    **COMPOSITES,
    **COMPLEXES,
    **SPECTRAL,
    **EMBEDDING,
    **DECOMPOSITIONS,
}

_REGIONS = ["as_strided_region", "view_put"]  # how arrays without strides are written to

ANY_SHAPE: frozenset[str] = frozenset(
    [
        *(*ELEMENTWISE, "relu", "sigmoid", "silu", "softplus", "leaky_relu", "elu", "gelu"),
        *("gelu_backward", "leaky_relu_backward", "threshold", "threshold_backward"),
        *("sigmoid_backward", "tanh_backward", "silu_backward", "elu_backward"),
        *("hardtanh", "hardtanh_backward", "hardsigmoid", "hardsigmoid_backward", "hardswish"),
        *("hardswish_backward", "hardshrink", "hardshrink_backward", "softshrink"),
        *("log_sigmoid", "log_sigmoid_backward", "softplus_backward"),
        *("mse_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy"),
        *("contiguous", "log2", "log10", "square"),
        *("erfc", "erfinv", "lgamma", "digamma", "polygamma"),
        *("real", "imag", "conj", "complex", "view_as_real", "sgn", "angle"),
    ]
)
"""Ops that take arrays of every shape, so that the layouts ``empty`` and ``scalar`` apply."""

_REAL = (*INTEGER, *FLOATING)


def _dtypes() -> dict[str, tuple[DType, ...]]:
    groups: list[tuple[list[str], tuple[DType, ...]]] = [
        ([*COMPOSITES, *EMBEDDING, "erf", "atan2"], FLOATING),
        ([*FLOAT_UNARY, "div", "mean", "linear", "addmm", "mse_loss"], (*FLOATING, *COMPLEX)),
        (["neg", "abs", "sub", "pow", "matmul", "square"], (*_REAL, *COMPLEX)),
        (["contiguous", "stack", "tril", "triu", *_REGIONS], ALL),
        ([*REAL_UNARY, *DIVISIONS, "sign", "argmax", "argmin"], _REAL),
        (["median", "extremum", "topk"], _REAL),
        ([*DECOMPOSITIONS], DECOMPOSED_DTYPES),
        (["lu_permutation"], (int32,)),
        ([*COMPLEXES, *SPECTRAL], (float32, float64, *COMPLEX)),
        (["complex", "view_as_complex", "fft_r2c"], (float32, float64)),
        ([*ORDERINGS, "maximum", "minimum", "amax", "amin", "sort"], (bool_, *_REAL)),
        (["bitwise_not", *BITWISE], (bool_, *INTEGER)),
        (["all", "any"], (bool_,)),
        (["uniform", "normal", "normal_serial"], (*FLOATING, *COMPLEX)),
        (["exponential", "cauchy", "log_normal"], FLOATING),
        (["randint", "bernoulli_scalar", "geometric", "random_full"], _REAL),
        (["randperm"], (int64,)),
        (["arange"], _REAL),
        (["ctc_loss", "ctc_loss_backward"], (float32, float64)),
        (["standard_gamma", "sample_dirichlet", "binomial"], (float32, float64)),
    ]
    found: dict[str, tuple[DType, ...]] = dict.fromkeys(SAMPLES, ALL)
    found |= {name: dtypes for name, (_, dtypes) in _BESIDE.items()}
    for names, dtypes in groups:
        found.update(dict.fromkeys(names, dtypes))
    return found


DTYPES: dict[str, tuple[DType, ...]] = _dtypes()
"""The dtypes for which a canonical op is called; core has promoted or refused the others."""

SPECIAL: dict[str, list[Sample]] = {
    **sample_corners.PRIMITIVES,
    **sample_corners.of_composites(
        {name: found for name, found in SAMPLES.items() if OPS[name].tier == "composite"},
        frozenset([*DECOMPOSITIONS, "fft_c2c", "fft_r2c"]),
        ANY_SHAPE,
    ),
}
"""Samples at the corners of each dtype, and of promises; no gradients.

Those of primitives are compared exactly or as NaN.
"""
