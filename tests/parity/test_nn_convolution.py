"""Convolutions and transposed convolutions agree with PyTorch; so do their layers and errors."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import flambeau as fb  # noqa: E402
from nn_cases import assert_same_layer, functional, parameters  # noqa: E402
from oracle import DEVICES, check, check_error  # noqa: E402

TRANSPOSED: dict[str, Any] = {"stride": 2, "padding": 1, "output_padding": 1, "groups": 2}
CASES = [
    functional("conv3d", shapes=((2, 2, 3, 4, 3), (3, 2, 2, 3, 2), (3,))),
    functional(
        "conv3d",
        shapes=((1, 2, 5, 4, 4), (2, 1, 2, 2, 3)),
        stride=(2, 1, 3),
        padding=(1, 0, 2),
        dilation=(2, 1, 1),
        groups=2,
    ),
    functional("conv3d", shapes=((2, 3, 3, 3), (2, 2, 1, 2, 3)), label="unbatched"),
    functional("conv3d", shapes=((1, 1, 3, 4, 3), (2, 1, 3, 2, 2)), padding="same"),
    functional("conv3d", shapes=((1, 1, 3, 4, 3), (2, 1, 3, 2, 2)), padding="valid"),
    functional("conv3d", shapes=((0, 2, 3, 3, 3), (2, 2, 2, 2, 2), (2,)), label="no volumes"),
    functional("conv_transpose1d", shapes=((2, 4, 3), (4, 3, 2), (3,))),
    functional("conv_transpose1d", shapes=((4, 3), (4, 2, 3), (4,)), **TRANSPOSED),
    functional("conv_transpose1d", shapes=((2, 2, 4), (2, 1, 3)), dilation=3, stride=2),
    functional("conv_transpose2d", shapes=((1, 4, 2, 3), (4, 1, 3, 2), (2,)), **TRANSPOSED),
    functional("conv_transpose3d", shapes=((1, 2, 2, 3, 2), (2, 2, 2, 1, 3), (2,))),
    functional("conv_transpose3d", shapes=((2, 2, 2, 3), (2, 1, 3, 2, 2), (2,)), **TRANSPOSED),
    (
        "convolution",
        lambda t, x, w, b: t.convolution(x, w, b, [2], [1], [1], False, [0], 1),
        ((2, 4, 5), (3, 4, 2), (3,)),
    ),
    (
        "convolution transposed",
        lambda t, x, w, b: t.convolution(x, w, b, [2, 1], [1, 0], [1, 1], True, [1, 0], 1),
        ((2, 2, 3, 3), (2, 3, 2, 2), (3,)),
    ),
    ("conv_tbc", lambda t, x, w, b: t.conv_tbc(x, w, b, 1), ((4, 2, 3), (3, 3, 2), (2,))),
    ("conv_tbc cropped", lambda t, x, w, b: t.conv_tbc(x, w, b, -1), ((5, 2, 3), (2, 3, 2), (2,))),
]


@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("call", "operands"), parameters(CASES))
def test_convolutions_agree_in_values_and_both_derivatives(call, operands, device):
    check(call, operands, device)


ERRORS = [
    functional("conv3d", shapes=((2, 3, 4), (2, 2, 2, 2, 2)), label="rank"),
    functional("conv3d", shapes=((1, 3, 4, 4, 4), (2, 2, 2, 2, 2)), label="channels"),
    functional("conv3d", shapes=((1, 2, 2, 2, 2), (2, 2, 3, 3, 3)), label="small"),
    functional("conv3d", shapes=((1, 2, 4, 4, 4), (2, 2, 2, 2, 2), (3,)), label="bias"),
    functional("conv3d", shapes=((1, 2, 4, 4, 4), (2, 2, 2, 2, 2)), stride=(1, 2)),
    functional("conv3d", shapes=((1, 2, 4, 4, 4), (2, 2, 2, 2, 2)), padding="same", stride=2),
    functional("conv3d", shapes=((1, 2, 4, 4, 4), (2, 2, 2, 2, 2)), padding=-1),
    functional("conv_transpose1d", shapes=((2, 3, 4), (4, 3, 2)), label="channels"),
    functional("conv_transpose1d", shapes=((2, 3, 0), (3, 3, 2)), label="empty"),
    functional("conv_transpose3d", shapes=((1, 2, 2, 2, 2), (2, 1, 2, 2, 2)), output_padding=1),
    functional("conv_transpose3d", shapes=((1, 2, 1, 1, 1), (2, 1, 1, 1, 1)), padding=1),
    ("conv_tbc rank", lambda t, x, w, b: t.conv_tbc(x, w, b), ((4, 3), (3, 3, 2), (2,))),
    ("conv_tbc channels", lambda t, x, w, b: t.conv_tbc(x, w, b), ((4, 1, 2), (3, 3, 2), (2,))),
    ("conv_tbc bias", lambda t, x, w, b: t.conv_tbc(x, w, b), ((4, 1, 3), (3, 3, 2), (3,))),
    ("padding mode", lambda t: t.nn.ConvTranspose2d(4, 6, 3, padding_mode="reflect"), ()),
    ("groups", lambda t: t.nn.ConvTranspose2d(4, 6, 3, groups=3), ()),
    ("output size", lambda t, x: t.nn.ConvTranspose2d(4, 6, 3, 2)(x, [20, 11]), ((1, 4, 5, 5),)),
    ("output sizes", lambda t, x: t.nn.ConvTranspose2d(4, 6, 3, 2)(x, [11]), ((1, 4, 5, 5),)),
]


@pytest.mark.parametrize(("call", "operands"), parameters(ERRORS))
def test_what_pytorch_refuses_is_refused_with_its_error(call, operands):
    check_error(call, operands)


@pytest.mark.parametrize(
    ("name", "args", "options", "shape"),
    [
        ("Conv3d", (2, 4, (2, 3, 1)), {"stride": (1, 2, 1), "padding": 1}, (2, 2, 3, 5, 4)),
        ("Conv3d", (2, 4, 3), {"groups": 2, "bias": False, "padding": "same"}, (2, 3, 5, 4)),
        ("Conv3d", (1, 2, 2), {"padding": 1, "padding_mode": "circular"}, (1, 1, 3, 3, 3)),
        ("Conv3d", (1, 2, 2), {"padding": (1, 0, 2), "padding_mode": "reflect"}, (1, 1, 3, 3, 4)),
        ("Conv3d", (1, 2, 2), {"padding": 2, "padding_mode": "replicate"}, (1, 1, 3, 3, 4)),
        ("ConvTranspose1d", (4, 6, 3), {"stride": 2, "output_padding": 1}, (2, 4, 5)),
        ("ConvTranspose2d", (4, 6, 3), {"stride": 2, "padding": 1, "groups": 2}, (4, 5, 6)),
        ("ConvTranspose2d", (4, 6, (2, 3)), {"dilation": 2, "bias": False}, (2, 4, 5, 6)),
        ("ConvTranspose3d", (2, 2, 2), {"stride": (1, 2, 3), "padding": 1}, (1, 2, 3, 3, 2)),
    ],
)
def test_layers_agree_in_weights_repr_output_and_gradients(name, args, options, shape):
    assert_same_layer(name, args, options, shape)


@pytest.mark.parametrize("size", [[9, 10], [1, 6, 10, 9], [10, 10]])
def test_the_output_size_of_a_transposed_layer_chooses_among_the_possible(size):
    made = []
    for library in (fb, torch):
        library.manual_seed(0)
        layer = library.nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1)
        made.append(layer(library.ones(1, 4, 5, 5), output_size=size))
    assert tuple(made[0].shape) == tuple(made[1].shape)
    values = torch.tensor(made[0].tolist())
    torch.testing.assert_close(values, made[1].detach(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("recorded", ["", "input", "weight", "grad_output"])
def test_gradients_as_functions_have_the_history_of_what_they_are_given(recorded):
    shapes = {"input": (1, 2, 5, 5), "weight": (3, 2, 3, 3), "grad_output": (1, 3, 3, 3)}
    histories = []
    for library in (torch, fb):
        x, w, g = [library.ones(s, requires_grad=name == recorded) for name, s in shapes.items()]
        found = library.nn.grad.conv2d_input(x.shape, w, g)
        histories.append(
            (found.requires_grad, library.nn.grad.conv2d_weight(x, w.shape, g).requires_grad)
        )
    assert histories[0] == histories[1]
