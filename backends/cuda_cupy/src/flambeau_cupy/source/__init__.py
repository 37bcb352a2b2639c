"""Kernels in CUDA C, as text: compiled by NVRTC for a device, by a C++ compiler in tests.

Rules that keep both possible: no inline assembly, no dynamic shared memory, shuffles only by whole
warps, and blocks of whole warps.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

FAMILIES = {
    "philox": ("philox_words", "dropout_forward"),
    "softmax": (
        "softmax_forward",
        "log_softmax_forward",
        "softmax_backward",
        "log_softmax_backward",
    ),
    "activation": ("activation_forward", "activation_backward"),
    "layer_norm": ("layer_norm_forward", "layer_norm_backward_input"),
    "loss": ("nll_forward", "nll_backward"),
    "optimizer": ("sgd_step", "adam_step"),
}
"""The kernels of each file, all of them ``extern "C"`` for one element type T."""

TYPES = {"float32": "float", "float64": "double"}
"""Element types, and what T is for them."""


@cache
def text(family: str, dtype: str = "float32") -> str:
    """The source of a family's kernels for one element type.

    >>> from flambeau_cupy.source import text
    >>> text("softmax").startswith("#define T float")
    True
    """
    folder = files(__name__)
    parts = [folder.joinpath(name).read_text() for name in ("common.cuh", f"{family}.cu")]
    return f"#define T {TYPES[dtype]}\n" + "\n".join(parts)
