"""Whole numbers of NumPy mean what Python's do, however narrow their type is."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as fb

CALLS = """
fb.arange({4})
fb.arange({2}, {120}, {7})
fb.full((2,), {3})
fb.clamp(fb.tensor([-2, 0, 300]), {1}, {100})
fb.clamp(fb.tensor([-2.0, 0.5]), max={0})
fb.ones(2, 3).norm({1})
fb.linalg.vector_norm(fb.ones(2, 3), {1})
fb.renorm(fb.ones(2, 3), {2}, {0}, {1})
fb.array_api.eye({3})
fb.repeat_interleave(fb.ones(3), {100})
fb.ones(240).narrow({0}, {120}, {120})
fb.ones(100).repeat({100})
fb.pixel_shuffle(fb.ones(1, 256, 1, 1), {16})
fb.pixel_unshuffle(fb.ones(1, 1, 16, 16), {16})
fb.frombuffer(bytearray(256), dtype=fb.int16, count={100}, offset={56})
fb.ShortStorage.from_buffer(bytes(256), "big", count={100}, offset={56}).tolist()
fb.nn.functional.conv2d(fb.ones(1, 1, 4, 4), fb.ones(1, 1, 2, 2), stride={100}, padding={100})
fb.nn.functional.conv1d(fb.ones(1, 1, 400), fb.ones(1, 1, 3), dilation={120})
fb.nn.functional.conv_transpose1d(fb.ones(1, 1, 3), fb.ones(1, 1, 3), stride={100})
fb.nn.functional.avg_pool2d(fb.ones(1, 1, 4, 4), {100}, {100}, {50})
fb.nn.functional.max_pool1d(fb.ones(1, 1, 300), {120}, {1}, {60})
fb.nn.functional.lp_pool1d(fb.ones(1, 4, 9), {2}, {3})
fb.nn.functional.max_unpool1d(fb.ones(1, 1, 3), fb.tensor([[[0, 1, 2]]]), {100}, {100})
fb.nn.functional.fold(fb.ones(1, 4, 1), {120}, {2}, dilation={119})
fb.nn.functional.embedding(fb.tensor([1, 0]), fb.ones(200, 2), {1})
fb.nn.LayerNorm({2})(fb.tensor([[1.0, 3.0]]))
fb.nn.RMSNorm({2})(fb.tensor([[1.0, 7.0]]))
fb.nn.CircularPad3d({1})(fb.ones(1, 2, 2, 2))
fb.nn.Sequential(fb.nn.ReLU()).insert({0}, fb.nn.Tanh())
fb.quasirandom.SobolEngine(2).draw({4})
""".strip().splitlines()


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int64])
@pytest.mark.parametrize("call", CALLS)
def test_whole_numbers_of_numpy_mean_what_those_of_python_do(call, kind):
    plain = eval(call.replace("{", "(").replace("}", ")"))
    given = eval(call.replace("{", "kind(").replace("}", ")"), {"fb": fb, "kind": kind})
    assert repr(given) == repr(plain)
    assert not isinstance(plain, fb.Tensor) or given.dtype is plain.dtype


@pytest.mark.parametrize("kind", [np.int8, np.uint8])
@pytest.mark.parametrize(
    "call",
    [
        "fb.frombuffer(bytearray(8), dtype=fb.int32, count=kind(64))",
        "fb.frombuffer(bytearray(8), dtype=fb.int32, count=kind(64), offset=kind(4))",
        'fb.ShortStorage.from_buffer(bytes(8), "big", count=kind(127), offset=kind(4))',
        "fb.ones(127).narrow(0, kind(100), kind(100))",
    ],
)
def test_sums_of_narrow_numbers_do_not_hide_that_memory_ends(call, kind):
    with pytest.raises((RuntimeError, ValueError), match=r"100|64|127"):
        eval(call, {"fb": fb, "kind": kind})
