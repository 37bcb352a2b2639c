"""Rectifiers with slopes, beside NumPy's kernels: the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from flambeau_native.extension import native
from flambeau_native.kernels.activation import KERNELS as COMPILED
from flambeau_numpy.extending import KERNELS as NUMPY

SHAPES = [(), (1,), (700,), (5, 1), (3, 17), (2, 3, 1), (2, 3, 50), (1, 33, 2, 3), (2, 5, 21, 13)]
SHAPES += [(3, 4, 0), (0, 4, 2), (2, 600), (2, 2, 3, 3, 3)]
ODD = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-45]


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(SHAPES),
    st.sampled_from(["rows", "turned", "gaps", "expanded"]),
    st.sampled_from([np.float32, np.float64, np.float16]),
    st.sampled_from(["one", "channels", "each"]),
    st.integers(0, 999),
)
def test_rectifiers_with_slopes_and_their_gradients_have_the_bits_of_numpy(
    shape: tuple[int, ...], order: str, dtype: Any, slopes: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)

    def drawn(*sizes: int) -> Any:
        a = np.array(rng.normal(size=sizes), dtype)
        for odd in ODD[: rng.integers(len(ODD) + 1)]:
            if a.size:
                a[tuple(rng.integers(n) for n in sizes)] = odd
        return a

    x, g = drawn(*shape), drawn(*shape)
    if order == "turned":
        x, g = np.asfortranarray(x), np.asfortranarray(g)
    elif order == "gaps" and shape:
        x, g = (np.repeat(a, 2, -1)[..., ::2] for a in (x, g))
    elif order == "expanded":
        g = np.broadcast_to(drawn(), shape)
    channels = shape[1:2] if len(shape) > 1 else (1,)
    weight = {
        "one": drawn(),
        "channels": drawn(*channels, *[1] * (len(shape) - 2)),
        "each": drawn(*shape),
    }[slopes]
    with np.errstate(all="ignore"):
        for name, operands in (
            ("prelu", (x, weight)),
            ("prelu_backward", (g, x, weight)),
            ("prelu_weight_grad", (g, x, weight)),
        ):
            found, wanted = COMPILED[name](*operands), NUMPY[name](*operands)
            assert found.dtype == wanted.dtype and found.shape == wanted.shape
            np.testing.assert_array_equal(found, wanted)
            numbers = ~np.isnan(wanted)
            np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(wanted)[numbers])


def test_nothing_beside_the_planes_is_written() -> None:
    for sizes in ((3, 5, 7), (1, 1, 33), (4, 18, 1)):
        memory = np.full(int(np.prod(sizes)) + 64, 7, "f4")
        out = memory[32:-32].reshape(sizes)
        x, weight = np.full(sizes, -1, "f4"), np.full(sizes[1], 2, "f4")
        native.prelu_f32(out, x, weight, *sizes)
        assert (out == -2).all() and (memory[:32] == 7).all() and (memory[-32:] == 7).all()
