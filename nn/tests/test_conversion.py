"""Changing the element type and the device of a module."""

from __future__ import annotations

import pytest

import flambeau as fb
from flambeau import nn


def model() -> nn.Sequential:
    return nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))


@pytest.mark.parametrize(
    ("convert", "dtype"),
    [
        (lambda m: m.double(), "float64"),
        (lambda m: m.half(), "float16"),
        (lambda m: m.bfloat16(), "bfloat16"),
        (lambda m: m.double().float(), "float32"),
        (lambda m: m.to(fb.float64), "float64"),
        (lambda m: m.to("cpu", fb.float64), "float64"),
        (lambda m: m.to(device="cpu", dtype=fb.float64, non_blocking=True), "float64"),
        (lambda m: m.to(fb.ones(1, dtype=fb.float64)), "float64"),
        (lambda m: m.to(tensor=fb.ones(1, dtype=fb.float64)), "float64"),
        (lambda m: m.to(fb.float64, True), "float64"),
    ],
)
def test_floating_tensors_change_and_integers_stay(convert, dtype):
    net = model()
    assert convert(net) is net
    assert {p.dtype for p in net.parameters()} == {getattr(fb, dtype)}
    assert net[1].running_mean.dtype is getattr(fb, dtype)
    assert net[1].num_batches_tracked.dtype is fb.int64


def test_type_changes_integers_too():
    net = model().type(fb.float64)
    assert net[1].num_batches_tracked.dtype is fb.float64


def test_parameters_stay_the_same_objects_with_their_gradients():
    net = nn.Linear(2, 1)
    weight = net.weight
    net(fb.ones(1, 2)).backward()
    net.double()
    assert net.weight is weight and weight.requires_grad and weight.is_leaf
    assert weight.dtype is weight.grad.dtype is fb.float64
    assert weight.grad.tolist() == [[1.0, 1.0]]


def test_converted_modules_compute_in_the_new_type():
    net = nn.Linear(2, 1).double()
    out = net(fb.ones(1, 2, dtype=fb.float64))
    assert out.dtype is fb.float64
    out.sum().backward()
    assert net.weight.grad.dtype is fb.float64


def test_integer_types_are_refused_by_to():
    with pytest.raises(TypeError, match="only accepts floating point or complex dtypes"):
        model().to(fb.int64)
    with pytest.raises(TypeError):
        model().to(colour="red")
    with pytest.raises(TypeError):
        model().to("cpu", "float64")


def test_memory_format_is_accepted():
    net = nn.Conv2d(1, 1, 3).to(memory_format=fb.channels_last)
    assert net.weight.shape == (1, 1, 3, 3)


def test_meta_modules_have_shapes_and_become_real_by_to_empty():
    net = nn.Linear(2, 3, device="meta")
    assert net.weight.device.type == "meta" and net(fb.ones(4, 2, device="meta")).shape == (4, 3)
    with pytest.raises(NotImplementedError, match="to_empty"):
        net.to("cpu")
    net.to_empty(device="cpu")
    net.reset_parameters()
    assert net.weight.device.type == "cpu" and net.weight.requires_grad
    assert isinstance(net.weight, nn.Parameter)
    assert net(fb.ones(4, 2)).shape == (4, 3)


def test_a_module_moves_to_meta():
    net = model().to("meta")
    assert {t.device.type for t in net.state_dict().values()} == {"meta"}


@pytest.mark.parametrize(
    "make",
    [
        lambda **kw: nn.Linear(2, 3, **kw),
        lambda **kw: nn.Bilinear(2, 3, 4, **kw),
        lambda **kw: nn.Conv2d(2, 3, 3, **kw),
        lambda **kw: nn.BatchNorm2d(2, **kw),
        lambda **kw: nn.PReLU(**kw),
    ],
)
def test_layers_are_made_with_a_device_and_a_dtype(make):
    layer = make(device="cpu", dtype=fb.float64)
    assert {p.dtype for p in layer.parameters()} == {fb.float64}


def test_cpu_keeps_a_cpu_module():
    net = model()
    data = net[0].weight.data_ptr()
    assert net.cpu() is net and net[0].weight.data_ptr() == data
