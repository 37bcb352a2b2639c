"""Launches of every kernel for a process in which AddressSanitizer watches the memory."""

from __future__ import annotations

import ctypes as C
from pathlib import Path

import numpy as np
from on_host import Library

I64, DOUBLE, INT = C.c_longlong, C.c_double, C.c_int
SHAPES = [(1, 1), (3, 7), (2, 129), (5, 32)]


def run(family: str, folder: Path) -> None:
    """Launch the kernels of a family on arrays that end where their elements end."""
    launch = Library(family, "float32", folder, options=["-fsanitize=address", "-g"])
    for rows, columns in SHAPES:
        n = rows * columns

        def fresh(*shape: int) -> np.ndarray:
            return np.random.default_rng(0).random(shape, np.float32)

        x, y, z = fresh(n), fresh(n), fresh(n)
        per_row, per_column, sizes = fresh(rows), fresh(columns), (I64(rows), I64(columns))
        state, target = np.array([1, 4], np.uint64), np.zeros(rows, np.int64)
        if family == "philox":
            launch("philox_words", 2, 32, np.empty(n, np.uint32), state, I64(n))
            launch(
                "dropout_forward", 2, 32, z, np.empty(n, np.bool_), x, state, DOUBLE(0.5), I64(n)
            )
        elif family == "softmax":
            for name in ("softmax", "log_softmax"):
                launch(f"{name}_forward", 2, 64, z, x, *sizes)
                launch(f"{name}_backward", 2, 64, z, x, y, *sizes)
        elif family == "activation":
            launch("activation_forward", 2, 64, z, x, INT(3), I64(n))
            launch("activation_backward", 2, 64, z, x, y, INT(3), I64(n))
        elif family == "layer_norm":
            other = fresh(rows)
            weights = (per_column, fresh(columns))
            launch(
                "layer_norm_forward", 2, 64, z, per_row, other, x, *weights, *sizes, DOUBLE(1e-5)
            )
            back = (x, y, per_column, per_row, other)
            launch("layer_norm_backward_input", 2, 64, z, *back, *sizes)
        elif family == "loss":
            rest = (target, per_column, I64(-1), *sizes)
            launch("nll_forward", 2, 32, per_row, fresh(rows), x, *rest)
            launch("nll_backward", 2, 32, z, per_row, *rest)
        else:
            arrays = [x, y, z, fresh(n)]
            options = [DOUBLE(0.1)] * 4
            three = np.array([a.ctypes.data for a in arrays[:3]], np.uintp)
            four = np.array([a.ctypes.data for a in arrays], np.uintp)
            length = np.array([n], np.int64)
            launch("sgd_step", 2, 32, three, length, *options, INT(0), INT(0))
            more = (DOUBLE(0.1), INT(1), DOUBLE(0.5), DOUBLE(0.5))
            launch("adam_step", 2, 32, four, length, *options, *more)
