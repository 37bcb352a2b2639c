"""Padding agrees with PyTorch in values, both derivatives, text and errors."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as fb

torch = pytest.importorskip("torch")

from oracle import DEVICES, assert_same, check, check_error, ours_of  # noqa: E402

SHAPES = {1: (2, 3, 4), 2: (1, 2, 4, 3), 3: (1, 2, 3, 4, 3)}
PADS = {1: (1, 2), 2: (1, 2, 0, -1), 3: (1, 0, 2, 1, -1, 2)}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("batched", [True, False])
def test_every_mode_agrees_in_both_derivatives(
    dims: int, mode: str, batched: bool, device: str
) -> None:
    shape = SHAPES[dims] if batched else SHAPES[dims][1:]
    check(lambda t, x: t.nn.functional.pad(x, PADS[dims], mode).pow(3), (shape,), device)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("shape", "pad", "value"),
    [
        ((2, 3), (1, 0), 5),
        ((2, 3), (-1, 2, 1, -2), -0.5),
        ((2, 3), (), 1),
        ((), (), 1),
        ((0, 3), (0, 0, 2, 1), 3),
        ((2, 3), (-3, 0), 0),
    ],
)
def test_constant_padding_agrees(shape: Any, pad: Any, value: Any, device: str) -> None:
    check(lambda t, x: t.constant_pad_nd(x, pad, value), (shape,), device)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "complex64"])
def test_constant_padding_keeps_the_dtype(dtype: str) -> None:
    given = torch.tensor([[1, 0, 1]]).to(getattr(torch, dtype))
    assert_same(
        fb.constant_pad_nd(ours_of(given), (1, -1), 1), torch.constant_pad_nd(given, (1, -1), 1)
    )


def test_the_result_is_a_copy_even_of_nothing_to_pad() -> None:
    given = fb.zeros(2)
    fb.nn.functional.pad(given, (0, 0)).add_(1)
    assert given.tolist() == [0.0, 0.0]


KINDS = ["Zero", "Constant", "Reflection", "Replication", "Circular"]


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("whole", [True, False])
def test_a_layer_has_pytorchs_text_and_results(kind: str, dims: int, whole: bool) -> None:
    args = (1 if whole else PADS[dims], *((2.5,) if kind == "Constant" else ()))
    ours, theirs = (getattr(t.nn, f"{kind}Pad{dims}d")(*args) for t in (fb, torch))
    assert repr(ours) == repr(theirs)
    given = torch.arange(torch.Size(SHAPES[dims]).numel()).float().reshape(SHAPES[dims])
    for x in (given, given[0]):
        assert_same(ours(ours_of(x)), theirs(x))


@pytest.mark.parametrize(
    "call",
    [
        lambda t, x: t.constant_pad_nd(x, (1,)),
        lambda t, x: t.constant_pad_nd(x, (1,) * 8),
        lambda t, x: t.constant_pad_nd(x, (-3, -2)),
        lambda t, x: t.nn.functional.pad(x, (1,)),
        lambda t, x: t.nn.functional.pad(x, (4, 0), "reflect"),
        lambda t, x: t.nn.functional.pad(x, (5, 0), "circular"),
        lambda t, x: t.nn.functional.pad(x, (1, 1), "other"),
        lambda t, x: t.nn.functional.pad(x, (1, 1), "reflect", 2),
        lambda t, x: t.nn.functional.pad(x, (1,) * 6, "reflect"),
        lambda t, x: t.nn.functional.pad(x[0, 0], (1, 1), "replicate"),
        lambda t, x: t.nn.ReflectionPad2d(1)(x[0]),
        lambda t, x: t.nn.CircularPad2d(1)(x[0]),
        lambda t, x: t.nn.ReplicationPad1d(1)(x[:, :, :0]),
    ],
)
def test_refusals_are_of_one_class(call: Any) -> None:
    check_error(call, ((2, 3, 4),))
