"""Normalisation agrees with PyTorch: values, both derivatives, running state, text and errors."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as fb

torch = pytest.importorskip("torch")

from oracle import DEVICES, assert_same, check, check_error, ours_of  # noqa: E402

CASES = {
    "layer_norm": (
        lambda t, x, w, b: t.nn.functional.layer_norm(x, (3, 2), w, b),
        ((2, 3, 2), (3, 2), (3, 2)),
    ),
    "rms_norm": (lambda t, x, w: t.nn.functional.rms_norm(x, (4,), w, 0.1), ((3, 4), (4,))),
    "rms_norm default eps": (lambda t, x: t.rms_norm(x, (3, 4)), ((3, 4),)),
    "group_norm": (
        lambda t, x, w, b: t.nn.functional.group_norm(x, 2, w, b),
        ((2, 4, 3), (4,), (4,)),
    ),
    "group_norm plain": (lambda t, x: t.group_norm(x, 3, eps=0.01), ((2, 6),)),
    "group_norm empty": (lambda t, x: t.group_norm(x, 1), ((0, 2, 3),)),
    "instance_norm": (
        lambda t, x, w, b: t.nn.functional.instance_norm(x, weight=w, bias=b),
        ((2, 3, 4), (3,), (3,)),
    ),
    "instance_norm plain": (
        lambda t, x: t.nn.functional.instance_norm(x, eps=0.1),
        ((2, 1, 2, 2),),
    ),
    "local_response_norm odd": (
        lambda t, x: t.nn.functional.local_response_norm(x, 3, 0.5, 0.6, 1.5),
        ((2, 5, 2),),
    ),
    "local_response_norm even": (
        lambda t, x: t.nn.functional.local_response_norm(x, 4, 0.5),
        ((1, 5, 2, 1),),
    ),
    "local_response_norm wide": (
        lambda t, x: t.nn.functional.local_response_norm(x, 7),
        ((1, 2, 3),),
    ),
    "normalize": (lambda t, x: t.nn.functional.normalize(x), ((3, 4),)),
    "normalize p=1": (lambda t, x: t.nn.functional.normalize(x, 1, -1), ((2, 3, 4),)),
    "normalize p=3": (lambda t, x: t.nn.functional.normalize(x, 3.0, 0), ((4,),)),
    "normalize short": (lambda t, x: t.nn.functional.normalize(x, eps=100.0), ((2, 3),)),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives_agree(name: str, device: str) -> None:
    call, operands = CASES[name]
    check(call, operands, device, 1e-8)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("name", ["group_norm", "rms_norm", "layer_norm"])
def test_narrow_dtypes_keep_their_dtype_and_its_precision(name: str, dtype: str) -> None:
    call, shapes = CASES[name]
    given = [
        torch.linspace(-2, 2, torch.Size(s).numel()).reshape(s).to(getattr(torch, dtype))
        for s in shapes
    ]
    step = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 1e-5}[dtype]
    assert_same(call(fb, *[ours_of(x) for x in given]), call(torch, *given), step)


@pytest.mark.parametrize(
    "call",
    [
        lambda t, x: t.nn.functional.group_norm(x, 3),
        lambda t, x: t.group_norm(x, 0),
        lambda t, x: t.nn.functional.group_norm(x[0, 0], 1),
        lambda t, x: t.nn.functional.group_norm(x[:1, :1, :1], 1),
        lambda t, x: t.group_norm(x, 2, x[0, 0]),
        lambda t, x: t.nn.functional.instance_norm(x[:, :, :1]),
        lambda t, x: t.nn.functional.instance_norm(x, use_input_stats=False),
        lambda t, x: t.nn.functional.local_response_norm(x[0], 2),
        lambda t, x: t.nn.functional.rms_norm(x, (2,)),
        lambda t, x: t.nn.functional.rms_norm(x, ()),
        lambda t, x: t.nn.functional.rms_norm(x, (3,), x[0]),
        lambda t, x: t.nn.functional.normalize(x, dim=3),
        lambda t, x: t.nn.GroupNorm(3, 4),
        lambda t, x: t.nn.InstanceNorm2d(2)(x[0]),
        lambda t, x: t.nn.InstanceNorm1d(5, affine=True)(x.float()),
        lambda t, x: t.nn.CrossMapLRN2d(3)(x),
        lambda t, x: t.nn.SyncBatchNorm(3)(x.float()[0, 0]),
    ],
)
def test_refusals_are_of_one_class(call: Any) -> None:
    check_error(call, ((2, 4, 3),))


LAYERS = {
    "LayerNorm": (lambda t: t.nn.LayerNorm((4, 3)), (2, 4, 3)),
    "LayerNorm without bias": (lambda t: t.nn.LayerNorm(3, bias=False), (2, 4, 3)),
    "RMSNorm": (lambda t: t.nn.RMSNorm([3]), (2, 4, 3)),
    "RMSNorm plain": (lambda t: t.nn.RMSNorm(3, 0.1, False), (2, 4, 3)),
    "GroupNorm": (lambda t: t.nn.GroupNorm(2, 4), (2, 4, 3)),
    "GroupNorm plain": (lambda t: t.nn.GroupNorm(4, 4, affine=False), (2, 4, 3)),
    "InstanceNorm1d": (lambda t: t.nn.InstanceNorm1d(4), (2, 4, 3)),
    "InstanceNorm1d unbatched": (lambda t: t.nn.InstanceNorm1d(4, affine=True), (4, 3)),
    "InstanceNorm2d tracking": (
        lambda t: t.nn.InstanceNorm2d(2, momentum=0.3, affine=True, track_running_stats=True),
        (3, 2, 2, 2),
    ),
    "InstanceNorm3d": (lambda t: t.nn.InstanceNorm3d(2, affine=True, bias=False), (2, 2, 2, 1, 2)),
    "LocalResponseNorm": (lambda t: t.nn.LocalResponseNorm(2, 0.3), (2, 4, 3)),
    "CrossMapLRN2d odd": (lambda t: t.nn.CrossMapLRN2d(3, 0.3, 0.6, 2), (2, 6, 3, 1)),
    "CrossMapLRN2d even": (lambda t: t.nn.CrossMapLRN2d(4, 0.3), (1, 6, 2, 1)),
    "SyncBatchNorm": (lambda t: t.nn.SyncBatchNorm(4), (2, 4, 3)),
    "SyncBatchNorm rows": (lambda t: t.nn.SyncBatchNorm(4, momentum=None), (5, 4)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_has_pytorchs_text_state_and_results_in_training_and_after(name: str) -> None:
    make, shape = LAYERS[name]
    ours, theirs = make(fb), make(torch)
    assert repr(ours) == repr(theirs)
    given = torch.linspace(-3, 2, torch.Size(shape).numel()).sin().reshape(shape).requires_grad_()
    mine = ours_of(given)
    assert_same(ours(mine), theirs(given), 1e-5)
    assert_same(ours(mine), theirs(given), 1e-5)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    for key, value in theirs.state_dict().items():
        assert_same(ours.state_dict()[key], value, 1e-5)
    ours.eval(), theirs.eval()
    assert_same(ours(mine), theirs(given), 1e-5)


def test_converting_to_sync_batch_norm_keeps_state_and_structure() -> None:
    def build(t: Any) -> Any:
        inner = t.nn.Sequential(t.nn.BatchNorm1d(2), t.nn.ReLU())
        return t.nn.Sequential(inner, t.nn.BatchNorm2d(3, affine=False)).eval()

    ours, theirs = (t.nn.SyncBatchNorm.convert_sync_batchnorm(build(t)) for t in (fb, torch))
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert not ours[0][0].training


def test_normalize_writes_its_result_where_it_is_told() -> None:
    out = fb.empty(2, 2)
    result = fb.nn.functional.normalize(fb.tensor([[3.0, 4.0], [0.0, 2.0]]), out=out)
    assert result is out
    assert_same(out, torch.tensor([[0.6, 0.8], [0.0, 1.0]]), 1e-6)


def test_instance_statistics_of_an_input_with_another_number_of_channels_only_warn() -> None:
    with pytest.warns(UserWarning, match="does not match num_features"):
        result = fb.nn.InstanceNorm1d(5)(fb.ones(1, 2, 3))
    assert result.tolist() == [[[0.0] * 3] * 2]
