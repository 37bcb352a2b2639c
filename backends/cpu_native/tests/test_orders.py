"""Activations and their gradients of operands in any order in memory: of dense ones' bits.

Gradients of sums repeat one number or one row; those of images may have channels last.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flambeau_native.extension import native
from flambeau_native.kernels import KERNELS
from flambeau_native.kernels._common import turned

pytestmark = pytest.mark.skipif(native is None, reason="needs the compiled code")

UNARY = {"gelu": ("none",), "silu": (), "hardshrink": (0.3,), "elu": (1.0, 1.0, 1.0)}
BINARY = {
    "elu_backward": (1.0, 1.0, 1.0),
    "gelu_backward": ("tanh",),
    "hardshrink_backward": (0.3,),
    "silu_backward": (),
    "tanh_backward": (),
    "threshold_backward": (0.0,),
}


@st.composite
def arrays(draw, shape):
    """An array of a shape: dense, turned, with gaps, or repeating along some dimensions."""
    rank = len(shape)
    order = draw(st.permutations(range(rank)))
    repeats = draw(st.lists(st.booleans(), min_size=rank, max_size=rank))
    gap = draw(st.sampled_from([1, 1, 2, -1]))
    sizes = [1 if repeats[d] else shape[d] for d in order]
    noise = np.random.default_rng(draw(st.integers(0, 9)))
    kept = noise.standard_normal((*sizes, abs(gap))).astype(np.float32)[..., 0]
    if gap < 0 and rank:
        kept = kept[::-1]
    return np.broadcast_to(kept.transpose(np.argsort(order)), shape)


def agree(found, expected, compiled):
    """The same bits from the same function; NumPy's formula for other orders has others."""
    assert found.shape == expected.shape
    if compiled is not None:
        np.testing.assert_array_equal(found, expected)
    else:
        np.testing.assert_allclose(found, expected, rtol=3e-6, atol=1e-7)


shapes = st.lists(st.integers(0, 4), max_size=4).map(tuple)


@given(st.data(), shapes, st.sampled_from(sorted(BINARY)))
@settings(max_examples=300, deadline=None)
def test_gradients_do_not_depend_on_the_order_of_operands(data, shape, name):
    grad, a = data.draw(arrays(shape)), data.draw(arrays(shape))
    dense = [np.array(x, order="C") for x in (grad, a)]
    numbers = BINARY[name]
    agree(KERNELS[name](grad, a, *numbers), KERNELS[name](*dense, *numbers), turned(grad, a))


@given(st.data(), shapes, st.sampled_from(sorted(UNARY)))
@settings(max_examples=200, deadline=None)
def test_functions_do_not_depend_on_the_order_of_their_operand(data, shape, name):
    a = data.draw(arrays(shape))
    found, expected = (KERNELS[name](x, *UNARY[name]) for x in (a, np.array(a, order="C")))
    agree(found, expected, turned(a))


@given(st.data(), st.lists(st.integers(2, 4), max_size=4).map(tuple))
@settings(max_examples=300, deadline=None)
def test_results_have_the_order_that_numpy_gives_them(data, shape):
    operands = [data.draw(arrays(shape)), data.draw(arrays(shape))]
    found = turned(*operands)
    if found is None:
        return
    dense, back = found
    assert all(x.flags.c_contiguous for x in dense)
    result = np.add(*dense)
    if back is not None:
        result = result.transpose(back)
    expected = np.add(*operands)
    np.testing.assert_array_equal(result, expected)
    assert result.strides == expected.strides


def test_a_repeated_gradient_and_channels_last_take_the_compiled_function():
    """Else they would take NumPy's formula of a dozen passes."""
    x = np.zeros((2, 3, 4, 5), np.float32)
    last = np.zeros((2, 4, 5, 3), np.float32).transpose(0, 3, 1, 2)
    one = np.broadcast_to(np.float32(1), x.shape)
    row = np.broadcast_to(np.ones((2, 3, 4, 1), np.float32), x.shape)
    for operands in ((one, x), (row, x), (last, last), (one, last), (x[:, :, ::2],), (last,)):
        assert turned(*operands) is not None
    assert turned(x, last) is None


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("name", ["neg", "abs", "exp", "sqrt", "relu", "silu"])
def test_functions_of_repeated_elements_are_those_of_each(name, dtype):
    x = np.linspace(0.1, 9, 400 * 300).astype(dtype)
    column, row, number = x[:400, None], x[None, :300], x[:1, None]
    wide = x.reshape(400, 300)[:, None].transpose(2, 1, 0)
    for a, shape in (
        *((each, (400, 300)) for each in (column, row, number)),
        *((wide, (300, 3, 400)), (wide[::-2, :, ::3], (150, 5, 134)), (x[:0], (7, 0))),
    ):
        repeated = np.broadcast_to(a, shape)
        found, each = KERNELS[name](repeated), KERNELS[name](np.array(a, order="C"))
        np.testing.assert_allclose(found, np.broadcast_to(each, shape), rtol=1e-6)
        assert found.dtype == dtype
        assert found.flags.writeable
        if found.size:
            assert found.strides == np.negative(repeated).strides


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int64, np.complex64])
@pytest.mark.parametrize("shape", [(8, 64, 28, 28), (2, 100, 30, 28), (1, 70, 3, 400, 2)])
def test_a_number_for_each_channel_of_images_in_any_order(name, dtype, shape):
    rank, few = len(shape), (1, shape[1], *(1,) * (len(shape) - 2))
    noise = np.random.default_rng(0)
    last = noise.standard_normal((shape[0], *shape[2:], shape[1])).astype(dtype)
    image = np.moveaxis(last, -1, 1)
    channels = (noise.standard_normal(few) * 3 + 5).astype(dtype)
    plain = np.ascontiguousarray(image)
    for a, b in ((image, channels), (channels, image), (image, image), (image, plain[:1])):
        found = KERNELS[name](a, b)
        expected = KERNELS[name](np.ascontiguousarray(a), np.ascontiguousarray(b))
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        assert found.shape == shape == np.broadcast_shapes(a.shape, b.shape)
    assert np.moveaxis(KERNELS[name](image, channels), 1, rank - 1).flags.c_contiguous
