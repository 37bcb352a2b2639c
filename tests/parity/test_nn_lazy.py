"""Lazy layers agree with PyTorch's: repr, state, weights of a seed, what they become, errors."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import flambeau as fb

torch = pytest.importorskip("torch")

from oracle import assert_same  # noqa: E402

CASES: list[tuple[str, tuple[Any, ...], dict[str, Any], tuple[int, ...]]] = [
    ("LazyLinear", (3,), {}, (5, 4)),
    ("LazyLinear", (3,), {"bias": False}, (4,)),
    ("LazyConv1d", (6, 3), {"stride": 2}, (2, 4, 9)),
    ("LazyConv1d", (6, 3), {"groups": 2}, (4, 9)),
    ("LazyConv2d", (6, (2, 3)), {"padding": 1, "padding_mode": "reflect"}, (2, 4, 5, 5)),
    ("LazyConv2d", (6, 3), {"padding": "same", "bias": False}, (2, 4, 5, 5)),
    ("LazyConv3d", (6, 2), {}, (2, 4, 3, 3, 3)),
    ("LazyConvTranspose1d", (6, 3), {"groups": 2}, (2, 4, 9)),
    ("LazyConvTranspose2d", (6, 3), {"stride": 2, "output_padding": 1}, (2, 4, 5, 5)),
    ("LazyConvTranspose3d", (6, 2), {"bias": False}, (2, 4, 3, 3, 3)),
    ("LazyBatchNorm1d", (), {}, (5, 3)),
    ("LazyBatchNorm1d", (), {"bias": False}, (5, 3, 2)),
    ("LazyBatchNorm2d", (1e-3, None), {}, (2, 3, 4, 4)),
    ("LazyBatchNorm2d", (), {"affine": False, "track_running_stats": False}, (2, 3, 4, 4)),
    ("LazyBatchNorm3d", (), {"affine": False}, (2, 3, 2, 2, 2)),
    ("LazyInstanceNorm1d", (), {}, (2, 3, 4)),
    ("LazyInstanceNorm2d", (), {"track_running_stats": False}, (2, 3, 4, 4)),
    ("LazyInstanceNorm3d", (), {"affine": False}, (2, 3, 2, 2, 2)),
]


def text(layer: Any) -> str:
    return repr({key: repr(value) for key, value in layer.state_dict().items()})


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]} {case[2]}")
def test_a_lazy_layer_becomes_pytorchs_layer(case: Any) -> None:
    name, args, options, shape = case
    there, here = (getattr(t.nn, name)(*args, **options) for t in (torch, fb))
    assert repr(here) == repr(there)
    assert text(here) == text(there)
    outputs = []
    for t, layer in ((torch, there), (fb, here)):
        t.manual_seed(3)
        given = t.arange(float(torch.Size(shape).numel())).sin().reshape(shape)
        outputs.append(layer(given))
        assert type(layer) is getattr(t.nn, name.removeprefix("Lazy"))
        assert not layer._forward_pre_hooks
        assert not layer._load_state_dict_pre_hooks
    assert repr(here) == repr(there)
    assert list(here.state_dict()) == list(there.state_dict())
    for key, value in there.state_dict().items():
        assert_same(here.state_dict()[key], value, 1e-6)
    assert_same(outputs[1].detach(), outputs[0].detach(), 1e-5)


@pytest.mark.parametrize("lazy", [True, False])
@pytest.mark.parametrize("case", CASES[:1] + CASES[4:5] + CASES[10:11], ids=lambda case: case[0])
def test_loading_gives_shapes_and_values(case: Any, lazy: bool) -> None:
    name, args, options, shape = case
    source = getattr(fb.nn, name)(*args, **options)
    if not lazy:
        source(fb.ones(shape))
    layer = getattr(fb.nn, name)(*args, **options)
    assert repr(layer.load_state_dict(source.state_dict())) == "<All keys matched successfully>"
    assert layer.has_uninitialized_params() is lazy
    if not lazy:
        assert layer.weight.tolist() == source.weight.tolist()
        layer(fb.ones(shape))
        assert repr(layer) == repr(source)


def test_an_uninitialised_state_does_not_load_into_a_layer_with_shapes() -> None:
    for t in (torch, fb):
        with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized"):
            t.nn.Linear(2, 3).load_state_dict(t.nn.LazyLinear(3).state_dict())


UNUSABLE = [
    lambda t, p: p + 1,
    lambda t, p: t.add(p, 1),
    lambda t, p: p.numel(),
    lambda t, p: p.shape,
    lambda t, p: p.detach(),
    lambda t, p: p.share_memory_(),
    lambda t, p: p.data_ptr(),
    lambda t, p: t.nn.init.ones_(p),
    lambda t, p: t.nn.utils.parameters_to_vector([p]),
    lambda t, p: p.sum(),
    lambda t, p: t.cat([p, p]),
]


@pytest.mark.parametrize("call", UNUSABLE)
def test_uninitialised_parameters_refuse_use_with_pytorchs_class(call: Any) -> None:
    classes = []
    for t in (torch, fb):
        with pytest.raises(Exception, match="(?i)uninitialized parameter") as error:
            call(t, t.nn.parameter.UninitializedParameter())
        classes.append(error.type)
    assert classes[0] is classes[1]


def test_what_is_known_of_uninitialised_parameters() -> None:
    for t in (torch, fb):
        weight = t.nn.LazyLinear(3, dtype=t.float64).weight
        assert isinstance(weight, t.nn.Parameter)
        assert (weight.dtype, str(weight.device)) == (t.float64, "cpu")
        assert weight.requires_grad
        assert weight.is_leaf
        assert weight.grad is None
        assert weight.half().dtype is t.float16
        assert weight.to("meta").device.type == "meta"


def test_conversion_before_the_first_input_decides_dtype_and_device() -> None:
    for t in (torch, fb):
        layer = t.nn.LazyBatchNorm1d()
        weight = layer.weight
        layer.double()
        assert layer.weight is weight
        layer(t.ones(2, 3).double())
        assert layer.weight is weight
        assert layer.running_mean.dtype is t.float64


def test_an_optimizer_made_before_the_first_input_trains_the_layer() -> None:
    losses = []
    for t in (torch, fb):
        t.manual_seed(1)
        model = t.nn.Sequential(t.nn.LazyLinear(4), t.nn.Tanh(), t.nn.LazyLinear(1))
        optimizer = t.optim.SGD(model.parameters(), 0.1, momentum=0.9)
        seen = []
        for _ in range(4):
            optimizer.zero_grad()
            loss = (model(t.linspace(-1, 1, 6).reshape(3, 2)) - 1).pow(2).mean()
            loss.backward()
            optimizer.step()
            seen.append(loss.item())
        losses.append(seen)
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda layer: pickle.loads(pickle.dumps(layer))]
)
def test_a_copy_is_lazy_on_its_own(duplicate: Any) -> None:
    layer = fb.nn.LazyLinear(3)
    other = duplicate(layer)
    other(fb.ones(1, 2))
    assert type(other) is fb.nn.Linear
    assert not other._forward_pre_hooks
    assert layer.has_uninitialized_params()
    layer(fb.ones(1, 5))
    assert layer.weight.shape == (3, 5)


ERRORS = [
    (lambda t: t.nn.LazyConv2d(4, 3)(t.ones(3)), "to LazyConv2d, but got input of size"),
    (lambda t: t.nn.LazyConv2d(4, 3, groups=2)(t.ones(1, 5, 4, 4)), "must be divisible by groups"),
    (lambda t: t.nn.LazyBatchNorm2d()(t.ones(2, 3)), "expected 4D input"),
]


@pytest.mark.parametrize(("call", "words"), ERRORS)
def test_refusals_have_pytorchs_class_and_facts(call: Any, words: str) -> None:
    classes = []
    for t in (torch, fb):
        with pytest.raises((RuntimeError, ValueError), match=words) as error:
            call(t)
        classes.append(error.type)
    assert classes[0] is classes[1]


def forgetful(t: Any) -> Any:
    """A lazy module of a class that gives no shape to its parameter."""

    class Forgetful(t.nn.modules.lazy.LazyModuleMixin, t.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.factor = t.nn.UninitializedParameter()

    return Forgetful()


def test_a_module_that_leaves_parameters_uninitialised_is_refused() -> None:
    for t in (torch, fb):
        with pytest.raises(NotImplementedError, match="initialize_parameters is not implemented"):
            forgetful(t)(t.ones(1))
        module = forgetful(t)
        type(module).initialize_parameters = lambda self, x: None
        with pytest.raises(RuntimeError, match="module Forgetful has not been fully initialized"):
            module(t.ones(1))


def test_a_layer_moved_before_the_first_input_makes_its_parameters_there() -> None:
    layer = fb.nn.LazyLinear(3).to("meta")
    assert layer(fb.ones(1, 2, device="meta")).shape == (1, 3)
    assert layer.weight.device.type == "meta"
