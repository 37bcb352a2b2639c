"""Orders of memory agree with PyTorch: strides, values, gradients, refusals."""

from __future__ import annotations

import random
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import flambeau as fb  # noqa: E402
from oracle import assert_same, ours_of  # noqa: E402

LIBRARIES = (fb, torch)
RANKS = {"channels_last": 4, "channels_last_3d": 5, "contiguous_format": 5}
WAYS = {
    "contiguous": lambda x, order: x.contiguous(memory_format=order),
    "clone": lambda x, order: x.clone(memory_format=order),
    "to": lambda x, order: x.to(memory_format=order),
    "to with a dtype": lambda x, order: x.to(x.dtype, memory_format=order),
}
# `to` leaves PyTorch's tensors as they are for `contiguous_format`, unless channels are last.
CASES = [
    pytest.param(
        name, way, transposed, id=f"{name}-{way}-{'transposed' if transposed else 'plain'}"
    )
    for name in RANKS
    for way in WAYS
    for transposed in (False, True)
    if not (name == "contiguous_format" and way.startswith("to") and transposed)
]
SHAPES = [(2, 3, 4, 5, 6), (1, 1, 1, 1, 1), (2, 1, 3, 1, 2), (2, 3, 0, 2, 2)]


def ramp(lib: Any, shape: tuple[int, ...]) -> Any:
    return lib.arange(float(lib.Size(shape).numel())).reshape(shape)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("name", "way", "transposed"), CASES)
def test_strides_and_values_are_pytorchs(
    name: str, way: str, transposed: bool, shape: tuple[int, ...]
) -> None:
    found = []
    for lib in LIBRARIES:
        x = ramp(lib, shape[: RANKS[name]])
        if transposed:
            x = x.transpose(1, -1)
        y = WAYS[way](x, getattr(lib, name))
        assert y.is_contiguous(memory_format=getattr(lib, name))
        # Strides along sizes of one, and of empty tensors, address nothing.
        strides = [s for n, s in zip(y.shape, y.stride(), strict=True) if n > 1 and y.numel()]
        found.append((strides, y.tolist(), y.is_contiguous()))
    assert found[0] == found[1]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("name", "rank"), [("channels_last", 5), ("channels_last_3d", 4)])
def test_a_format_of_another_rank_is_refused(way: str, name: str, rank: int) -> None:
    for lib in LIBRARIES:
        with pytest.raises(RuntimeError, match="required rank"):
            WAYS[way](ramp(lib, SHAPES[0][:rank]), getattr(lib, name))
        assert not ramp(lib, SHAPES[0][:rank]).is_contiguous(memory_format=getattr(lib, name))


def test_what_is_in_order_is_not_copied_but_cloned() -> None:
    for lib in LIBRARIES:
        x = ramp(lib, (2, 3, 2, 2, 2)).contiguous(memory_format=lib.channels_last_3d)
        assert x.contiguous(memory_format=lib.channels_last_3d) is x
        y = x.clone(memory_format=lib.channels_last_3d)
        y.zero_()
        assert x.sum().item() > 0


@pytest.mark.parametrize("device", ["cpu", "ref"])
def test_gradients_pass_through_a_change_of_order(device: str) -> None:
    x = ramp(fb, (2, 3, 2, 2, 2)).to(device).requires_grad_()
    y = x.contiguous(memory_format=fb.channels_last_3d)
    y.mul(ramp(fb, (2, 3, 2, 2, 2)).to(device)).sum().backward()
    assert x.grad.tolist() == x.tolist()


@pytest.mark.parametrize("kind", ["Conv3d", "ConvTranspose3d"])
def test_weights_of_convolutions_take_the_order(kind: str) -> None:
    found = []
    for lib in LIBRARIES:
        lib.manual_seed(0)
        net = lib.nn.Sequential(getattr(lib.nn, kind)(2, 3, 2), lib.nn.Conv2d(3, 2, 2))
        weight = net[0].weight
        back = lib.nn.utils.convert_conv3d_weight_memory_format(net, lib.channels_last_3d)
        assert back is net
        assert net[0].weight is weight
        found.append((weight.stride(), net[1].weight.stride(), weight.tolist()))
        assert net[0](ramp(lib, (1, 2, 3, 3, 3))).shape[1] == 3
    assert found[0] == found[1]


LIKE = ("zeros_like", "ones_like", "empty_like", "rand_like", "randn_like")
LAYOUTS = {
    "permuted": lambda t: t.ones(2, 3, 4).permute(2, 0, 1),
    "sliced": lambda t: t.ones(4, 6)[:, ::2].t(),
    "expanded": lambda t: t.ones(1, 3).expand(4, 3),
    "expanded and transposed": lambda t: t.ones(2, 1, 3).expand(2, 4, 3).permute(2, 1, 0),
    "turned and repeated": lambda t: t.ones(4, 1, 2).permute(2, 1, 0).expand(2, 3, 4),
    "repeated and turned": lambda t: t.ones(1, 3, 4, 5).transpose(1, 2).expand(2, 4, 3, 5),
    "channels last": lambda t: t.ones(2, 3, 4, 5).contiguous(memory_format=t.channels_last),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", LIKE)
def test_a_tensor_like_another_has_its_order_in_memory(name: str, layout: str) -> None:
    made = [getattr(t, name)(LAYOUTS[layout](t)) for t in (torch, fb)]
    assert tuple(made[1].stride()) == tuple(made[0].stride())
    assert made[1]._base is None


@pytest.mark.parametrize("order", ["contiguous_format", "preserve_format", "channels_last"])
@pytest.mark.parametrize("name", LIKE)
def test_a_tensor_like_another_has_the_order_that_is_asked_for(name: str, order: str) -> None:
    made = [
        getattr(t, name)(t.ones(2, 3, 4, 5).permute(0, 2, 1, 3), memory_format=getattr(t, order))
        for t in (torch, fb)
    ]
    assert tuple(made[1].stride()) == tuple(made[0].stride())


def _order(x: Any) -> list[int]:
    """The strides along which there is more than one element."""
    return [step for n, step in zip(x.shape, x.stride(), strict=True) if n > 1]


@pytest.mark.parametrize("rank", [2, 3, 4])
def test_copies_of_what_is_turned_or_repeated_keep_its_order_in_memory(rank: int) -> None:
    chosen = random.Random(rank)
    for _ in range(100):
        made = [chosen.randint(1, 4) for _ in range(rank)]
        turned = chosen.sample(range(rank), rank)
        repeated = [chosen.choice((n, 5)) if n == 1 else n for n in (made[d] for d in turned)]
        pair = [ramp(t, tuple(made)).permute(turned).expand(repeated) for t in (torch, fb)]
        for kind in ("float32", "float64", "float16", "int64", "bool", "complex64"):
            theirs, ours = (
                x.to(getattr(t, kind), copy=True) for t, x in zip((torch, fb), pair, strict=True)
            )
            assert (_order(ours), ours.tolist()) == (_order(theirs), theirs.tolist())
        theirs, ours = (x.clone() for x in pair)
        assert (_order(ours), ours.tolist()) == (_order(theirs), theirs.tolist())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_random_numbers_like_another_tensor_fill_its_order_in_memory(layout: str) -> None:
    for name, arguments in (("rand_like", ()), ("randn_like", ()), ("randint_like", (9,))):
        made = []
        for t in (torch, fb):
            t.manual_seed(3)
            made.append(getattr(t, name)(LAYOUTS[layout](t), *arguments))
        assert tuple(made[1].stride()) == tuple(made[0].stride())
        torch.testing.assert_close(torch.tensor(made[1].tolist()), made[0])


@pytest.mark.parametrize("layout", ["permuted", "sliced", "expanded", "channels last"])
def test_elementwise_functions_keep_the_order_in_memory(layout: str) -> None:
    calls = (
        lambda t, x: t.erf(x),
        lambda t, x: t.digamma(x),
        lambda t, x: t.sigmoid(x),
        lambda t, x: t.floor(x.long()),
        lambda t, x: t.sign(x.bool()),
        lambda t, x: t.nextafter(x, x),
        lambda t, x: t.nn.functional.hardshrink(x),
        lambda t, x: t.threshold(x, 0.5, 2.0),
        lambda t, x: t.lerp(x, x, 0.5),
        lambda t, x: t.addcmul(x, x, x),
        lambda t, x: x.masked_fill(x > 0, 2.0),
        lambda t, x: 2**x,
    )
    for call in calls:
        theirs, ours = (call(t, LAYOUTS[layout](t)) for t in (torch, fb))
        assert tuple(ours.stride()) == tuple(theirs.stride())


IMAGES = {
    "channels last": lambda t: ramp(t, (2, 8, 6, 5)).contiguous(memory_format=t.channels_last),
    "every second": lambda t: ramp(t, (4, 8, 6, 5)).contiguous(memory_format=t.channels_last)[::2],
    "attended": lambda t: ramp(t, (2, 30, 8)).permute(0, 2, 1).view(2, 8, 6, 5),
    "two of its channels": lambda t: ramp(t, (2, 10, 6, 5)).contiguous(
        memory_format=t.channels_last
    )[:, 1:9],
    "rows swapped": lambda t: ramp(t, (2, 8, 5, 6)).transpose(2, 3),
    "one channel": lambda t: ramp(t, (2, 1, 6, 5)).contiguous(memory_format=t.channels_last),
    "plain": lambda t: ramp(t, (2, 8, 6, 5)),
}
LAYERS = {
    "conv2d": lambda f, x: f.conv2d(x, x[:, :, :3, :3].contiguous()),
    "depthwise": lambda f, x: (
        f.conv2d(x, x[:1, :, :3, :3].mT.mT.reshape(-1, 1, 3, 3), groups=8) if x.shape[1] == 8 else x
    ),
    "1x1": lambda f, x: f.conv2d(x, x[:, :, :1, :1].contiguous()),
    "conv_transpose2d": lambda f, x: f.conv_transpose2d(
        x, x.mT[:1].repeat(x.shape[1], 1, 1, 1)[:, :2]
    ),
    "batch_norm": lambda f, x: f.batch_norm(x, None, None, training=True),
    "batch_norm in use": lambda f, x: f.batch_norm(
        x, x.detach()[0, :, 0, 0], x.detach()[0, :, 1, 1] + 2
    ),
    "group_norm": lambda f, x: f.group_norm(x, 1),
    "instance_norm": lambda f, x: f.instance_norm(x),
    "max_pool2d": lambda f, x: f.max_pool2d(x, 2),
    "max_pool2d with indices": lambda f, x: f.max_pool2d(x, 2, return_indices=True)[1],
    "avg_pool2d": lambda f, x: f.avg_pool2d(x, 2),
    "adaptive_avg_pool2d": lambda f, x: f.adaptive_avg_pool2d(x, 3),
    "adaptive_max_pool2d": lambda f, x: f.adaptive_max_pool2d(x, 3),
    "means of few": lambda f, x: f.adaptive_avg_pool2d(x, (4, 2)),
    "means of rows": lambda f, x: f.adaptive_avg_pool2d(x, (6, 2)),
    "a number for each channel": lambda f, x: x * x.detach()[:1, :, :1, :1].contiguous(),
    "less each channel": lambda f, x: x.detach()[0, :, 0, 0].reshape(1, -1, 1, 1) - x,
    "means of tiles": lambda f, x: f.adaptive_avg_pool2d(x, (3, 1)),
    "pad": lambda f, x: f.pad(x, (1, 2, 0, 1)),
    "reflected": lambda f, x: f.pad(x, (1, 2, 0, 1), "reflect"),
    "replicated": lambda f, x: f.pad(x, (1, 2, 0, 1), "replicate"),
    "nearest": lambda f, x: f.interpolate(x, scale_factor=2),
    "bilinear": lambda f, x: f.interpolate(x, scale_factor=2, mode="bilinear"),
    "bicubic": lambda f, x: f.interpolate(x, scale_factor=2, mode="bicubic"),
    "channel_shuffle": lambda f, x: f.channel_shuffle(x, x.shape[1]),
    "relu6": lambda f, x: f.relu6(x),
    "hardswish": lambda f, x: f.hardswish(x),
    "dropout": lambda f, x: f.dropout(x),
    "softmax": lambda f, x: f.softmax(x, 1),
}


def places(t: Any) -> list[int]:
    """The strides that address something."""
    return [s for n, s in zip(t.shape, t.stride(), strict=True) if n > 1]


@pytest.mark.parametrize("image", IMAGES)
@pytest.mark.parametrize("layer", LAYERS)
def test_layers_of_images_keep_their_channels_last(layer: str, image: str) -> None:
    theirs, ours = (LAYERS[layer](t.nn.functional, IMAGES[image](t)) for t in (torch, fb))
    assert ours.shape == theirs.shape
    assert places(ours) == places(theirs)


GRADIENTS = {
    "of channels last": lambda t, y: y.detach().contiguous(memory_format=t.channels_last),
    "plain": lambda t, y: y.detach().contiguous(),
    "of a sum": lambda t, y: t.ones(()).expand(y.shape),
}


@pytest.mark.parametrize("image", ["channels last", "plain"])
@pytest.mark.parametrize("gradient", GRADIENTS)
@pytest.mark.parametrize("layer", ["batch_norm", "max_pool2d", "adaptive_max_pool2d"])
def test_gradients_have_the_order_of_images(layer: str, gradient: str, image: str) -> None:
    found = []
    for t in (torch, fb):
        x = (IMAGES[image](t) / 100).requires_grad_()
        y = LAYERS[layer](t.nn.functional, x)
        found.append(t.autograd.grad(y, x, GRADIENTS[gradient](t, y))[0])
    theirs, ours = found
    assert places(ours) == places(theirs)
    torch.testing.assert_close(torch.tensor(ours.tolist()), theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("image", ["channels last", "every second", "two of its channels"])
@pytest.mark.parametrize("layer", sorted({*LAYERS} - {"dropout", "max_pool2d with indices"}))
def test_layers_of_images_have_pytorchs_numbers(layer: str, image: str) -> None:
    found = []
    for t in (torch, fb):
        x = (IMAGES[image](t) / 31).sin().requires_grad_()
        y = LAYERS[layer](t.nn.functional, x)
        (grad,) = t.autograd.grad(y, x, ramp(t, tuple(y.shape)).cos())
        found.append((torch.tensor(y.tolist()), torch.tensor(grad.tolist())))
    for theirs, ours in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("image", IMAGES)
def test_masks_after_layers_hide_the_elements_that_pytorchs_hide(image: str) -> None:
    hidden = []
    for t in (torch, fb):
        t.manual_seed(0)
        f, x = t.nn.functional, IMAGES[image](t)
        y = f.group_norm(f.conv2d(x, t.ones(4, x.shape[1], 3, 3), padding=1) + 1, 2) + 1
        hidden.append((f.dropout(f.dropout(y)) == 0).tolist())
    assert hidden[0] == hidden[1]


VOLUMES = {
    "conv3d": lambda f, x: f.conv3d(x, x[:, :, :2, :2, :2].contiguous()),
    "batch_norm": lambda f, x: f.batch_norm(x, None, None, training=True),
    "group_norm": lambda f, x: f.group_norm(x, 2),
    "max_pool3d": lambda f, x: f.max_pool3d(x, 2),
    "avg_pool3d": lambda f, x: f.avg_pool3d(x, 2),
    "adaptive_avg_pool3d": lambda f, x: f.adaptive_avg_pool3d(x, 2),
    "pad": lambda f, x: f.pad(x, (1, 2, 0, 1)),
    "replicated": lambda f, x: f.pad(x, (1, 2, 0, 1, 1, 1), "replicate"),
    "nearest": lambda f, x: f.interpolate(x, scale_factor=2),
    "trilinear": lambda f, x: f.interpolate(x, scale_factor=2, mode="trilinear"),
}


@pytest.mark.parametrize("layer", VOLUMES)
def test_layers_of_volumes_keep_their_channels_last(layer: str) -> None:
    theirs, ours = (
        VOLUMES[layer](
            t.nn.functional,
            ramp(t, (2, 4, 3, 4, 5)).contiguous(memory_format=t.channels_last_3d),
        )
        for t in (torch, fb)
    )
    assert places(ours) == places(theirs)


def test_a_network_in_channels_last_answers_in_channels_last() -> None:
    found = []
    for t in (torch, fb):
        t.manual_seed(0)
        nn = t.nn
        net = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU6(), nn.MaxPool2d(2),
            nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.SiLU(), nn.Conv2d(8, 4, 1), nn.Dropout(0.5),
        ).to(memory_format=t.channels_last)  # fmt: skip
        x = t.randn(2, 3, 8, 8).contiguous(memory_format=t.channels_last)
        y = net(x)
        assert y.is_contiguous(memory_format=t.channels_last)
        y.square().mean().backward()
        found.append((y.tolist(), net[0].weight.grad.tolist()))
    for theirs, ours in zip(*found, strict=True):
        torch.testing.assert_close(torch.tensor(ours), torch.tensor(theirs), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize("rank", [2, 3])
def test_padding_has_the_order_of_pytorchs(mode: str, rank: int) -> None:
    x = torch.randn((2, 3, 4, 5, 6)[: rank + 2], dtype=torch.float64)
    x = x.contiguous(memory_format=torch.channels_last if rank == 2 else torch.channels_last_3d)
    last = fb.channels_last if rank == 2 else fb.channels_last_3d
    ours = ours_of(x).contiguous(memory_format=last).requires_grad_()
    theirs = x.requires_grad_()
    sides = (2, 1, 0, 3, 1, 1)[: 2 * rank]
    expected = torch.nn.functional.pad(theirs, sides, mode)
    found = fb.nn.functional.pad(ours, sides, mode)
    assert_same(found, expected)
    assert found.stride() == expected.stride()
    expected.backward(expected.detach())
    found.backward(found.detach())
    assert_same(ours.grad, theirs.grad)
    if mode == "circular":
        assert ours.grad.is_contiguous()  # recorded: as the result is; PyTorch's was written to
    else:
        assert ours.grad.stride() == theirs.grad.stride()
