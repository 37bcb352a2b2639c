"""Solutions by factors: what LAPACK follows without looking is looked at before."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau_numpy.kernels.solving import KERNELS


@pytest.mark.parametrize(
    "pivots",
    [(100_000, 2, 3), (0, 2, 3), (1, 2, -3), (-1, 2, 3), (-1, -2, -3), (1, -9, -9)],
)
def test_pivots_that_no_factorisation_gives_are_refused(pivots: tuple[int, ...]) -> None:
    factors = np.eye(3, dtype=np.float32)
    with pytest.raises(RuntimeError, match="ldl_solve: .*pivot"):
        KERNELS["ldl_solve"](factors, np.array(pivots, np.int32), factors, False)


@pytest.mark.parametrize("pivots", [(1, 2, 3), (3, 2, 3), (-2, -2, 3), (1, -3, -3)])
def test_pivots_of_rows_and_of_blocks_of_two_are_taken(pivots: tuple[int, ...]) -> None:
    factors = np.eye(3, dtype=np.float32) * 2 + np.tri(3, dtype=np.float32)
    found = KERNELS["ldl_solve"](factors, np.array(pivots, np.int32), factors, False)
    assert np.isfinite(found).all()
