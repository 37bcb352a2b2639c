"""Folding, resampling, grids and shuffles agree with PyTorch; so do their layers and errors."""

from __future__ import annotations

import math
import warnings

import pytest

torch = pytest.importorskip("torch")

import flambeau as fb  # noqa: E402
from nn_cases import assert_same_layer, functional, parameters  # noqa: E402
from oracle import (  # noqa: E402
    DEVICES,
    assert_same,
    check,
    check_error,
    derivatives,
    ours_of,
    theirs_of,
)

pytestmark = pytest.mark.filterwarnings(
    "ignore:Default grid_sample", "ignore:.*deprecated", "ignore:.*unit-size"
)

IMAGE = ((1, 2, 4, 5),)
LINE = ((2, 2, 5),)
VOLUME = ((1, 1, 3, 4, 2),)
FOLDING = [
    functional("unfold", 2, shapes=((2, 3, 4, 5),)),
    functional("unfold", (3, 2), (1, 2), (1, 0), (2, 1), shapes=((1, 2, 5, 4),)),
    functional("unfold", 2, shapes=((3, 4, 5),)),
    functional("unfold", 2, shapes=((0, 3, 4, 5),)),
    functional("fold", (4, 5), 2, shapes=((2, 12, 12),)),
    functional("fold", (5, 4), (3, 2), (1, 2), (1, 0), (2, 1), shapes=((1, 12, 6),)),
    functional("fold", (4, 5), 2, shapes=((8, 12),)),
    functional("fold", (4, 5), 2, shapes=((0, 8, 12),)),
]
RESAMPLING = [
    *[
        functional("interpolate", size, mode=mode, shapes=shapes)
        for mode in ("nearest", "nearest-exact", "area")
        for size, shapes in ((7, LINE), ((3, 9), IMAGE), ((2, 8, 2), VOLUME), (1, IMAGE))
    ],
    *[
        functional("interpolate", size, mode=mode, align_corners=align, shapes=shapes)
        for align in (False, True)
        for mode, size, shapes in (
            ("linear", 8, LINE),
            ("linear", 3, LINE),
            ("bilinear", (7, 3), IMAGE),
            ("bilinear", (1, 5), IMAGE),
            ("bicubic", (7, 3), IMAGE),
            ("bicubic", (1, 9), IMAGE),
            ("trilinear", (5, 2, 3), VOLUME),
        )
    ],
    *[
        functional("interpolate", size, mode=mode, align_corners=align, antialias=True, shapes=S)
        for align in (False, True)
        for mode in ("bilinear", "bicubic")
        for size, S in (((2, 3), ((1, 2, 7, 8),)), ((9, 2), IMAGE), ((1, 1), IMAGE))
    ],
    *[
        functional("interpolate", scale_factor=f, mode=m, recompute_scale_factor=r, shapes=IMAGE)
        for f in (1.7, (0.6, 2.3), 2)
        for m in ("nearest", "nearest-exact", "bilinear", "bicubic", "area")
        for r in (None, True)
    ],
    functional("interpolate", 3, shapes=((0, 2, 4, 5),)),
    functional("upsample", (6, 6), shapes=IMAGE),
    functional("upsample_nearest", scale_factor=2, shapes=IMAGE),
    functional("upsample_bilinear", (6, 7), shapes=IMAGE),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("call", "operands"), parameters([*FOLDING, *RESAMPLING]))
def test_folding_and_resampling_agree_in_values_and_both_derivatives(call, operands, device):
    check(call, operands, device)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
@pytest.mark.parametrize("scale", [None, 0.7, 1.1, 1.3, 2.9, 3.3])
def test_the_nearest_of_many_elements_is_pytorch_s_in_float32(mode, scale):
    for size in (7, 32, 49, 100, 113):
        x = torch.arange(float(size)).reshape(1, 1, size)
        for target in (1, 5, 27, 60, 99) if scale is None else (None,):
            how = {"size": target, "scale_factor": scale, "mode": mode}
            ours = fb.nn.functional.interpolate(ours_of(x), **how)
            assert_same(ours, torch.nn.functional.interpolate(x, **how))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "nearest"])
def test_resampling_keeps_the_dtype_and_rounds_once(mode, dtype):
    x = torch.randn(1, 2, 5, 6).to(dtype)
    ours = fb.nn.functional.interpolate(ours_of(x), (8, 3), mode=mode)
    theirs = torch.nn.functional.interpolate(x, (8, 3), mode=mode)
    assert_same(ours, theirs, {torch.float32: 2e-6}.get(dtype, torch.finfo(dtype).eps * 2))


def test_the_nearest_modes_take_bytes():
    x = torch.arange(12, dtype=torch.uint8).reshape(1, 1, 3, 4)
    call = torch.nn.functional.interpolate
    assert_same(fb.nn.functional.interpolate(ours_of(x), (5, 2)), call(x, (5, 2)))


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_images_of_bytes_are_resized_in_the_same_fixed_point(mode, antialias, align_corners):
    options = {"mode": mode, "antialias": antialias, "align_corners": align_corners}
    for shape, seed in [
        ((2, 3, 7, 9), 0),
        ((1, 1, 8, 8), 1),
        ((1, 4, 9, 4), 2),
        ((1, 2, 40, 3), 3),
    ]:
        x = torch.randint(
            0, 256, shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(seed)
        )
        for size in [(13, 5), (4, 4), (9, 33), (7, 9)]:
            theirs = torch.nn.functional.interpolate(x, size=size, **options)
            ours = fb.nn.functional.interpolate(
                fb.tensor(x.tolist(), dtype=fb.uint8), size, **options
            )
            assert ours.dtype is fb.uint8
            assert ours.tolist() == theirs.tolist(), (shape, size)


@pytest.mark.parametrize(("mode", "shape"), [("linear", (1, 2, 7)), ("trilinear", (1, 2, 3, 3, 3))])
def test_signals_and_volumes_of_bytes_have_no_linear_modes(mode, shape):
    for lib in (torch, fb):
        with pytest.raises(NotImplementedError):
            lib.nn.functional.interpolate(
                lib.zeros(shape, dtype=lib.uint8), scale_factor=2, mode=mode
            )


POINTS = torch.linspace(-1.7, 1.9, 2 * 3 * 4, dtype=torch.float64).sin() * 1.8
GRID = POINTS.reshape(1, 3, 4, 2).clone().requires_grad_()
SPACE = (POINTS * 1.1).reshape(1, 2, 2, 2, 3).clone().requires_grad_()
GRIDS = [
    *[
        functional("grid_sample", mode, pad, align, shapes=(*IMAGE, GRID), label=f"{mode} {pad}")
        for mode in ("bilinear", "nearest", "bicubic")
        for pad in ("zeros", "border", "reflection")
        for align in (False, True)
    ],
    *[
        functional("grid_sample", mode, pad, align, shapes=(*VOLUME, SPACE), label=f"{mode} {pad}")
        for mode in ("bilinear", "nearest")
        for pad in ("zeros", "border", "reflection")
        for align in (False, True)
    ],
    functional("grid_sample", shapes=((1, 2, 1, 1), GRID), padding_mode="reflection"),
    functional(
        "grid_sample", shapes=((0, 2, 3, 3), torch.zeros(0, 4, 5, 2).double()), label="empty"
    ),
    functional("affine_grid", (2, 1, 3, 4), False, shapes=((2, 2, 3),)),
    functional("affine_grid", (2, 1, 3, 1), True, shapes=((2, 2, 3),)),
    functional("affine_grid", (1, 3, 2, 3, 4), False, shapes=((1, 3, 4),)),
    functional("affine_grid", (1, 3, 2, 3, 4), True, shapes=((1, 3, 4),)),
    functional("affine_grid", (1, 3, 2, 3), shapes=((1, 2, 3),)),
]


def check_first(call, operands, device):
    """As `check` without second derivatives, which PyTorch's grid_sample does not have."""
    theirs = [theirs_of(operand, place) for place, operand in enumerate(operands)]
    ours = [ours_of(x, device) for x in theirs]
    expected, found = call(torch, *theirs), call(fb, *ours)
    assert_same(found, expected)
    wanted = derivatives(torch, [expected], theirs, False)
    assert_same(derivatives(fb, [found], ours, False), wanted)
    assert_same(derivatives(fb, [found], ours, True), wanted)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("call", "operands"),
    [
        pytest.param(call, operands, id=f"{i} {name[:11]} {name[-20:]}")
        for i, (name, call, operands) in enumerate(GRIDS)
    ],
)
def test_grids_agree_in_values_and_derivatives(call, operands, device):
    check_first(call, operands, device)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_points_that_are_no_numbers_give_what_pytorch_gives(mode, padding):
    points = [[math.nan, 0.0], [0.0, math.nan]]
    grid = torch.tensor(points, dtype=torch.float64).reshape(1, 1, 2, 2)
    x = torch.ones(1, 1, 2, 2, dtype=torch.float64)
    how = (mode, padding, False)
    ours = fb.nn.functional.grid_sample(ours_of(x), ours_of(grid), *how)
    assert_same(ours, torch.nn.functional.grid_sample(x, grid, *how))


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_grid_sample_has_second_derivatives(mode, padding):
    x = fb.randn(1, 2, 3, 4, dtype=fb.float64).requires_grad_()
    grid = ours_of(GRID)[:, :2, :2].detach().requires_grad_()

    def call(image, points):
        return fb.nn.functional.grid_sample(image, points, mode, padding, False)

    assert fb.autograd.gradcheck(call, (x, grid), fast_mode=True)
    assert fb.autograd.gradgradcheck(call, (x, grid), fast_mode=True)


@pytest.mark.parametrize("device", DEVICES)
def test_what_is_infinite_does_not_leak_to_points_elsewhere(device):
    x = torch.tensor([[[[math.inf, 1.0], [2.0, math.nan]]]])
    grid = torch.tensor([[[[-3.0, -3.0], [9.0, 0.0], [-0.5, -0.5], [0.5, -0.5]]]])
    for mode in ("nearest", "bilinear"):
        ours = fb.nn.functional.grid_sample(
            ours_of(x, device), ours_of(grid, device), mode, align_corners=False
        )
        theirs = torch.nn.functional.grid_sample(x, grid, mode, align_corners=False)
        assert_same(ours, theirs)


SHUFFLES = [
    functional("pixel_shuffle", 2, shapes=((2, 8, 3, 2),)),
    functional("pixel_shuffle", 2, shapes=((2, 1, 4, 1, 2),)),
    functional("pixel_shuffle", 3, shapes=(torch.zeros(0, 9, 2, 2),)),
    functional("pixel_unshuffle", 2, shapes=((2, 3, 4, 2),)),
    functional("pixel_unshuffle", 2, shapes=((3, 4, 2),)),
    functional("channel_shuffle", 3, shapes=((2, 6, 3, 2),)),
    functional("channel_shuffle", 2, shapes=((2, 6, 3),)),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("call", "operands"), parameters(SHUFFLES))
def test_shuffles_agree_in_values_and_both_derivatives(call, operands, device):
    check(call, operands, device)


INTEGERS = torch.zeros(1, 1, 2, 2, dtype=torch.int32)
FEW = torch.zeros(1, 4, 5, 2)
ERRORS = [
    functional("unfold", 9, shapes=IMAGE),
    functional("unfold", 2, stride=0, shapes=IMAGE),
    functional("unfold", (2, 2, 2), shapes=IMAGE),
    functional("unfold", 2, shapes=((2, 0, 4, 5),)),
    functional("unfold", 1, shapes=(INTEGERS,)),
    functional("fold", (6, 6), 2, shapes=((2, 12, 30),)),
    functional("fold", (6, 7), 2, shapes=((2, 11, 30),)),
    functional("fold", (6, 7), 2, shapes=((2, 3, 6, 7),)),
    functional("fold", (1, 1), 2, shapes=((2, 12, 30),)),
    functional("interpolate", shapes=IMAGE),
    functional("interpolate", 3, 2, shapes=IMAGE),
    functional("interpolate", (3,), shapes=IMAGE),
    functional("interpolate", scale_factor=(2.0,), shapes=IMAGE),
    functional("interpolate", 3, mode="none", shapes=IMAGE),
    functional("interpolate", 3, mode="linear", shapes=IMAGE),
    functional("interpolate", 3, mode="bilinear", shapes=LINE),
    functional("interpolate", 3, shapes=((4, 5),)),
    functional("interpolate", 3, align_corners=True, shapes=IMAGE),
    functional("interpolate", 0, shapes=IMAGE),
    functional("interpolate", 3, shapes=((2, 0, 4, 5),)),
    functional("interpolate", 3, shapes=((2, 2, 0, 5),)),
    functional("interpolate", 3, mode="area", antialias=True, shapes=IMAGE),
    functional("interpolate", 3, recompute_scale_factor=True, shapes=IMAGE),
    functional("interpolate", 3.5, shapes=IMAGE),
    functional("interpolate", scale_factor="a", shapes=IMAGE),
    functional("interpolate", 3, shapes=(INTEGERS,)),
    functional("interpolate", 3, mode="bilinear", shapes=(INTEGERS,)),
    functional("grid_sample", shapes=((2, 3, 4, 4), FEW.double()), label="batch"),
    functional("grid_sample", shapes=((1, 3, 4, 4), FEW.double()[..., :1]), label="last"),
    functional("grid_sample", shapes=((1, 3, 4, 4), FEW), label="dtype"),
    functional("grid_sample", "cubic", shapes=((1, 3, 4, 4), FEW.double()), label="mode"),
    functional("grid_sample", padding_mode="one", shapes=((1, 3, 4, 4), FEW.double()), label="pad"),
    functional("grid_sample", "bicubic", shapes=(*VOLUME, SPACE), label="bicubic volume"),
    functional("grid_sample", shapes=((1, 3, 0, 4), FEW.double()), label="empty"),
    functional("affine_grid", (2, 1, 4), shapes=((2, 2, 3),)),
    functional("affine_grid", (2, 1, 4, 5, 6), shapes=((2, 2, 3),)),
    functional("affine_grid", (3, 1, 4, 5), shapes=((2, 2, 3),)),
    functional("affine_grid", (2, 1, 0, 5), shapes=((2, 2, 3),)),
    functional("affine_grid", (1, 1, 2, 2), shapes=(torch.zeros(1, 2, 3, dtype=torch.int64),)),
    functional("pixel_shuffle", 5, shapes=((12, 3, 4),)),
    functional("pixel_shuffle", 0, shapes=((12, 3, 4),)),
    functional("pixel_shuffle", 1, shapes=((3, 4),)),
    functional("pixel_unshuffle", 2, shapes=((2, 3, 4),)),
    functional("channel_shuffle", 5, shapes=((2, 12, 3),)),
    functional("channel_shuffle", 0, shapes=((2, 12, 3),)),
    functional("channel_shuffle", 1, shapes=((2, 12),)),
]


@pytest.mark.parametrize(("call", "operands"), parameters(ERRORS))
def test_what_pytorch_refuses_is_refused_with_its_error(call, operands):
    check_error(call, operands)


@pytest.mark.parametrize(
    ("name", "args", "options", "shape"),
    [
        ("Unfold", ((2, 3),), {"padding": 1}, (2, 3, 4, 5)),
        ("Fold", ((4, 5), 2), {"stride": (2, 1)}, (2, 12, 8)),
        ("Upsample", (), {"scale_factor": 2}, (1, 2, 3, 4)),
        ("Upsample", (), {"scale_factor": (2, 1.5), "recompute_scale_factor": True}, (1, 2, 3, 4)),
        ("Upsample", ((3, 7),), {"mode": "bilinear", "align_corners": True}, (1, 2, 3, 4)),
        ("UpsamplingNearest2d", (5,), {}, (1, 2, 3, 4)),
        ("UpsamplingBilinear2d", (), {"scale_factor": 2}, (1, 2, 3, 4)),
        ("PixelShuffle", (2,), {}, (1, 8, 3, 4)),
        ("PixelUnshuffle", (2,), {}, (1, 2, 6, 4)),
        ("ChannelShuffle", (2,), {}, (1, 8, 3, 4)),
    ],
)
def test_layers_agree_in_repr_output_and_gradients(name, args, options, shape):
    assert_same_layer(name, args, options, shape)


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.nn.functional.upsample(t.ones(1, 1, 2), 3),
        lambda t: t.nn.functional.grid_sample(t.ones(1, 1, 2, 2), t.zeros(1, 1, 1, 2)),
        lambda t: t.nn.functional.affine_grid(t.zeros(1, 2, 3), (1, 1, 2, 2)),
        lambda t: t.nn.functional.affine_grid(t.zeros(1, 2, 3), (1, 1, 1, 2), True),
        lambda t: t.nn.functional.interpolate(t.ones(1, 1, 2), 3),
    ],
    ids=["upsample", "grid_sample", "affine_grid", "unit grid", "interpolate"],
)
def test_warnings_are_those_of_pytorch(call):
    found = []
    for library in (fb, torch):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call(library)
        found.append([(w.category, str(w.message)) for w in caught])
    assert found[0] == found[1]


@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("padding", [0, 1, 2])
def test_samplers_and_grids_are_there_at_the_top_level_too(mode, padding):
    x = torch.randn(1, 2, 4, 5, dtype=torch.float64)
    for name in ("grid_sampler", "grid_sampler_2d"):
        given = mode, padding, True
        ours = getattr(fb, name)(ours_of(x), ours_of(GRID.detach()), *given)
        assert_same(ours, getattr(torch, name)(x, GRID.detach(), *given))
