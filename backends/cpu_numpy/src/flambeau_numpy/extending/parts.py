"""Parts of NumPy kernels that faster kernels of the same ops share with them.

They change with the kernels: a package that takes some requires the version it was written for.
"""

from __future__ import annotations

from flambeau_numpy.kernels.boundary_padding import boundary_middle, boundary_places
from flambeau_numpy.kernels.convolution import is_of_rows, of_rows
from flambeau_numpy.kernels.elementwise import BINARY, ROUNDING, UNARY
from flambeau_numpy.kernels.linalg import (
    SMALL,
    any_addmm,
    any_linear,
    is_left,
    large_matmul,
    make_addmm,
    make_linear,
    make_matmul,
)
from flambeau_numpy.kernels.movement import large_cat, large_stack, make_cat, make_stack
from flambeau_numpy.kernels.optimizer import advanced, next_rates, split_decay
from flambeau_numpy.kernels.optimizer_adaptive import nadam_rates, rectification
from flambeau_numpy.kernels.pooling import out_size
from flambeau_numpy.kernels.recurrent import states_before, steps_of

__all__ = [
    "BINARY",
    "ROUNDING",
    "SMALL",
    "UNARY",
    "advanced",
    "any_addmm",
    "any_linear",
    "boundary_middle",
    "boundary_places",
    "is_left",
    "is_of_rows",
    "large_cat",
    "large_matmul",
    "large_stack",
    "make_addmm",
    "make_cat",
    "make_linear",
    "make_matmul",
    "make_stack",
    "nadam_rates",
    "next_rates",
    "of_rows",
    "out_size",
    "rectification",
    "split_decay",
    "states_before",
    "steps_of",
]
