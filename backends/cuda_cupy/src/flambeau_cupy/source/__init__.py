"""Kernels in CUDA C, as text: compiled by NVRTC for a device, by a C++ compiler in tests.

Rules that keep both possible: no header, no inline assembly but for the conversions of halves, no
dynamic shared memory, shuffles only by whole warps, and blocks of whole warps, a power of two.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

FAMILIES = {
    "checks": ("checked_index", "checked_divisor", "check_values"),
    "ctc": ("ctc_forward", "ctc_backward"),
    "indexing": (
        "take_rows",
        "add_rows",
        "gather_along",
        "scatter_add_along",
        "scatter_add_along_at_once",
        "scatter_extremum_along",
    ),
    "loss": ("nll_rows", "nll_total", "nll_backward", "cross_entropy_backward"),
    "normalization": (
        "layer_norm_forward",
        "layer_norm_backward_input",
        "layer_norm_backward_weight",
        "batch_norm_statistics",
        "batch_norm_column_statistics",
        "batch_norm_transform",
        "batch_norm_sums",
        "batch_norm_column_sums",
        "batch_norm_backward_input",
    ),
    "optimizer": (
        "count_steps",
        "nadam_count",
        "asgd_count",
        "sgd_step",
        "asgd_step",
        "adam_step",
        "rmsprop_step",
        "adagrad_step",
        "adadelta_step",
        "adamax_step",
        "nadam_step",
        "radam_step",
        "rprop_step",
    ),
    "philox": (
        "philox_place",
        "philox_words",
        "philox_uniform",
        "philox_normal",
        "philox_bernoulli",
        "philox_bernoulli_each",
        "philox_poisson",
        "philox_gamma",
        "philox_gamma_wide",
        "philox_binomial",
        "philox_scores",
        "weight_sums",
        "philox_search",
        "philox_dropout",
    ),
    "pooling": (
        "max_pool",
        "max_pool_backward",
        "max_pool_backward_in_order",
        "avg_pool",
        "avg_pool_backward",
    ),
    "selection": ("select_few", "select_many", "count_digits", "collect_first", "order_first"),
    "softmax": (
        "softmax_forward",
        "log_softmax_forward",
        "softmax_backward",
        "log_softmax_backward",
    ),
}
"""The kernels of each file, all of them ``extern "C"`` for one element type T."""

FAMILY_OF = {name: family for family, names in FAMILIES.items() for name in names}
"""The file of each kernel."""

TYPES = {
    "float16": ("float16", "float"),
    "bfloat16": ("bfloat16", "float"),
    "float32": ("float", "float"),
    "float64": ("double", "double"),
    "int64": ("int64", "int64"),
    "int32": ("int", "int"),
    "int16": ("short", "int"),
    "int8": ("signed char", "int"),
    "uint8": ("unsigned char", "int"),
}
"""Element types: what T is for them, and what A is, in which is computed."""

OF_INTEGERS = {
    "int64": ("checks", "indexing", "pooling", "selection"),
    **dict.fromkeys(("int32", "int16", "int8", "uint8"), ("selection",)),
}
"""The families that exist for integers too; for the others, what is narrower is widened."""


def families(dtype: str) -> list[str]:
    """The families that exist for an element type.

    >>> from flambeau_cupy.source import families
    >>> families("int64")
    ['checks', 'indexing', 'pooling', 'selection']
    """
    return list(OF_INTEGERS.get(dtype, FAMILIES))


@cache
def text(family: str, dtype: str = "float32") -> str:
    """The source of a family's kernels for one element type.

    >>> from flambeau_cupy.source import text
    >>> text("softmax").startswith("#define T float")
    True
    """
    folder = files(__name__)
    parts = [folder.joinpath(name).read_text() for name in ("common.cuh", f"{family}.cu")]
    stored, computed = TYPES[dtype]
    return "\n".join([f"#define T {stored}", f"#define A {computed}", *parts])


def whole(dtype: str) -> str:
    """The source of all families for one element type.

    >>> from flambeau_cupy.source import whole
    >>> whole("float32").count("#define T float")
    1
    """
    folder = files(__name__)
    first, *others = families(dtype)
    rest = [folder.joinpath(f"{family}.cu").read_text() for family in others]
    return "\n".join([text(first, dtype), *rest])
