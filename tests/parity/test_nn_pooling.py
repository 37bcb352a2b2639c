"""Pooling of signals, images and volumes agrees with PyTorch; so do its layers and errors."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")

import flambeau as fb  # noqa: E402
from nn_cases import assert_same_layer, functional, parameters  # noqa: E402
from oracle import DEVICES, assert_same, check, check_error, ours_of  # noqa: E402

VOLUME = ((1, 2, 4, 5, 6),)
CASES = [
    functional("max_pool1d", 2, None, 1, return_indices=True, shapes=((2, 3, 7),)),
    functional("max_pool3d", 2, shapes=VOLUME),
    functional("max_pool3d", 3, 2, 1, return_indices=True, shapes=VOLUME),
    functional("max_pool3d", (2, 1, 3), (1, 2, 1), 0, 2, True, shapes=((2, 4, 3, 7),)),
    functional("max_pool3d", (3, 2, 2), 2, (1, 0, 1), 1, True, True, shapes=VOLUME),
    functional("max_pool3d", 2, shapes=((0, 2, 4, 5, 6),)),
    functional("avg_pool3d", 2, shapes=VOLUME),
    functional("avg_pool3d", 3, 2, 1, False, False, shapes=VOLUME),
    functional("avg_pool3d", (2, 3, 2), (2, 3, 1), (1, 1, 0), True, False, shapes=VOLUME),
    functional("avg_pool3d", 2, divisor_override=3, shapes=((2, 4, 5, 6),)),
    functional("avg_pool1d", 3, 2, 1, True, False, shapes=((2, 3, 8),)),
    functional("adaptive_avg_pool3d", (3, None, 1), shapes=VOLUME),
    functional("adaptive_avg_pool3d", 7, shapes=((2, 4, 5, 6),)),
    functional("adaptive_max_pool1d", 3, True, shapes=((2, 3, 7),)),
    functional("adaptive_max_pool1d", 9, True, shapes=((3, 7),)),
    functional("adaptive_max_pool2d", (2, 3), True, shapes=((2, 2, 4, 6),)),
    functional("adaptive_max_pool2d", (3, None), True, shapes=((2, 5, 4),)),
    functional("adaptive_max_pool2d", 4, shapes=((1, 1, 3, 7),)),
    functional("adaptive_max_pool3d", (2, 3, 4), True, shapes=VOLUME),
    functional("adaptive_max_pool3d", (2, 5, 3), True, shapes=VOLUME),
    functional("lp_pool1d", 3, 2, shapes=((2, 3, 7),)),
    functional("lp_pool2d", 2, (2, 3), 1, True, shapes=((2, 2, 5, 6),)),
    functional("lp_pool3d", 2.0, 2, shapes=VOLUME),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("call", "operands"), parameters(CASES))
def test_pooling_agrees_in_values_and_both_derivatives(call, operands, device):
    check(call, operands, device)


TIES = [[[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]], [[1.0, 0.0, 1.0], [math.nan, 1.0, math.nan]]]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "call",
    [
        lambda t, x: t.nn.functional.max_pool3d(x, (2, 1, 2), 1, return_indices=True),
        lambda t, x: t.nn.functional.max_pool3d(x, (2, 2, 3), 1, (1, 1, 0), return_indices=True),
        lambda t, x: t.nn.functional.adaptive_max_pool3d(x, (1, 2, 2), True),
        lambda t, x: t.nn.functional.adaptive_max_pool2d(x[0], (1, 2), True),
    ],
    ids=["max", "max padded", "adaptive volume", "adaptive image"],
)
def test_the_same_of_equal_maxima_and_of_nans_counts(call, device):
    x = torch.tensor([TIES], dtype=torch.float64)
    assert_same(call(fb, ours_of(x, device)), call(torch, x))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(
    ("rank", "shape", "kernel", "size"),
    [
        (2, (2, 3, 9, 11), (2, 3), (4, 5)),
        (2, (3, 9, 11), 2, (8, 1)),
        (3, (2, 2, 5, 6, 7), (2, 1, 3), (3, 4, 2)),
    ],
)
def test_fractional_pooling_of_given_samples_agrees(rank, shape, kernel, size, dtype, device):
    samples = torch.rand(2, shape[-rank - 1], rank, dtype=dtype)

    def call(t, x, u):
        function = getattr(t.nn.functional, f"fractional_max_pool{rank}d")
        return function(x, kernel, size, return_indices=True, _random_samples=u)

    check(call, (torch.randn(shape, dtype=dtype, requires_grad=True), samples), device)


@pytest.mark.parametrize(("name", "shape"), [("2d", (2, 3, 9, 8)), ("3d", (2, 7, 6, 9))])
def test_fractional_layers_draw_the_samples_of_a_seed(name, shape):
    options = {"output_ratio": 0.6}
    assert_same_layer(f"FractionalMaxPool{name}", (2,), options, shape)


UNPOOLED = [
    (1, (2, 3, 8), (2,), {}),
    (1, (3, 9), (3, 2), {"output_size": (9,)}),
    (2, (2, 2, 6, 7), (2,), {"output_size": (2, 2, 6, 7)}),
    (2, (2, 6, 7), ((2, 3),), {"output_size": (6, 7)}),
    (2, (1, 1, 5, 7), (3, 2, 1), {}),
    (3, (1, 2, 4, 5, 6), (2,), {"output_size": (4, 5, 6)}),
    (3, (2, 4, 4, 6), ((2, 1, 3), 2), {"output_size": (4, 4, 6)}),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("rank", "shape", "settings", "options"), UNPOOLED, ids=str)
def test_unpooling_agrees(rank, shape, settings, options, device):
    def call(t, x):
        functions = t.nn.functional
        both = getattr(functions, f"max_pool{rank}d")(x, *settings, return_indices=True)
        return getattr(functions, f"max_unpool{rank}d")(*both, *settings, **options)

    check(call, (shape,), device)


PLACES = torch.tensor([[[[0, 3], [8, 11]]]])
ERRORS = [
    functional("max_pool3d", 2, padding=2, shapes=VOLUME),
    functional("max_pool3d", (2, 2), shapes=VOLUME),
    functional("max_pool3d", 9, shapes=VOLUME),
    functional("max_pool3d", 2, shapes=((4, 5, 6),)),
    functional("max_pool3d", 2, shapes=((2, 0, 4, 5, 6),)),
    functional("max_pool3d", 2, dilation=0, shapes=VOLUME),
    functional("max_pool3d", 1, shapes=(torch.zeros(1, 2, 2, 2, dtype=torch.bool),)),
    functional("avg_pool3d", 2, divisor_override=0, shapes=VOLUME),
    functional("avg_pool3d", 1, shapes=(torch.zeros(1, 2, 2, 2, dtype=torch.int32),)),
    functional("avg_pool1d", 2, shapes=((2, 3, 4, 5),)),
    functional("adaptive_max_pool1d", 2, shapes=((2, 3, 4, 5),)),
    functional("adaptive_max_pool2d", (-1, 2), shapes=((2, 3, 4),)),
    functional("adaptive_max_pool2d", 2, shapes=((2, 0, 4),)),
    functional("adaptive_max_pool2d", 1, shapes=(torch.zeros(1, 2, 2, dtype=torch.int64),)),
    functional("adaptive_avg_pool3d", (1, 2, -3), shapes=VOLUME),
    functional("fractional_max_pool2d", 2, shapes=((2, 5, 5),)),
    functional("fractional_max_pool2d", 2, output_size=5, shapes=((2, 5, 5),)),
    functional("fractional_max_pool3d", 2, output_size=5, shapes=VOLUME),
    functional("max_unpool2d", 2, output_size=(17, 8), shapes=((1, 1, 2, 2), PLACES)),
    functional("max_unpool2d", 2, output_size=(7,), shapes=((1, 1, 2, 2), PLACES)),
    functional("max_unpool2d", 2, shapes=((1, 1, 2, 2), PLACES.float())),
    functional("max_unpool2d", 2, shapes=((2, 1, 2, 2), PLACES)),
    functional("max_unpool2d", 2, shapes=((1, 1, 2, 2), PLACES + 10)),
    functional("max_unpool3d", 2, 0, shapes=((1, 1, 2, 2), PLACES)),
    ("no size", lambda t: t.nn.FractionalMaxPool2d(2), ()),
    ("both", lambda t: t.nn.FractionalMaxPool2d(2, 2, 0.5), ()),
    ("ratio", lambda t: t.nn.FractionalMaxPool3d(2, output_ratio=1.5), ()),
]


@pytest.mark.parametrize(("call", "operands"), parameters(ERRORS))
def test_what_pytorch_refuses_is_refused_with_its_error(call, operands):
    check_error(call, operands)


@pytest.mark.parametrize(
    ("name", "args", "options", "shape"),
    [
        ("MaxPool3d", (2,), {"padding": 1}, (2, 3, 4, 5, 6)),
        ("AvgPool3d", (2,), {"ceil_mode": True, "count_include_pad": False}, (3, 4, 5, 6)),
        ("AdaptiveAvgPool3d", ((2, None, 3),), {}, (3, 4, 5, 6)),
        ("AdaptiveMaxPool1d", (3,), {}, (2, 3, 7)),
        ("AdaptiveMaxPool2d", ((3, None),), {}, (3, 7, 4)),
        ("AdaptiveMaxPool3d", (2,), {}, (2, 3, 5, 4, 6)),
        ("LPPool1d", (2, 3), {"ceil_mode": True}, (2, 3, 7)),
        ("LPPool2d", (2, (3, 2)), {"stride": 1}, (2, 3, 7, 4)),
        ("LPPool3d", (2, 2), {}, (2, 3, 4, 4, 5)),
    ],
)
def test_layers_agree_in_repr_output_and_gradients(name, args, options, shape):
    assert_same_layer(name, args, options, shape)


def test_an_unpooling_layer_undoes_its_pooling_layer_and_prints_as_pytorch_s():
    x = torch.arange(24.0).reshape(1, 1, 4, 6)
    results = []
    for library, given in ((fb, ours_of(x)), (torch, x)):
        pooled, indices = library.nn.MaxPool2d(2, return_indices=True)(given)
        layer = library.nn.MaxUnpool2d(2)
        results.append((repr(layer), layer(pooled, indices, output_size=(4, 7))))
    assert_same(results[0], results[1])


@pytest.mark.parametrize("divisor", [None, 3, -2])
def test_means_of_integers_are_cut_off_towards_zero(divisor):
    x = torch.arange(-9, 9).reshape(1, 2, 3, 3)

    def call(t, given):
        return t.nn.functional.avg_pool3d(given, 2, divisor_override=divisor)

    for device in DEVICES:
        assert_same(call(fb, ours_of(x, device)), call(torch, x))


@pytest.mark.parametrize("name", ["max_pool1d", "avg_pool1d", "max_pool1d_with_indices"])
def test_pooling_is_there_at_the_top_level_too(name):
    x = torch.tensor([[1.0, 3.0, 2.0, 0.0, 5.0]], dtype=torch.float64)
    assert_same(getattr(fb, name)(ours_of(x), 2), getattr(torch, name)(x, 2))
