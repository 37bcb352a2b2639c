"""A linear layer and its activation in one call, where a device says that it has one."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as fb
from flambeau._dispatch.bound import bind
from flambeau.nn import functional as F
from flambeau.nn.modules.module import register_module_forward_hook
from flambeau.plugin import KernelSet, hookimpl
from flambeau.plugin.host import host

OP = fb.ops.linear_activation


class Together:
    """A plugin of ``ref`` with one kernel for both, which notes what it ran on."""

    def __init__(self) -> None:
        self.answer, self.ran = True, []

    @hookimpl(tryfirst=True)
    def flambeau_kernels(self, device_type, backend):
        def kernel(*args):
            self.ran.append(args)
            return OP.decomposed(bind("ref"))(*args)

        kernel.takes = lambda *args: self.answer  # type: ignore[attr-defined] - `Op.taken` asks
        return KernelSet("together", {OP.name: kernel})


@pytest.fixture
def together():
    plugin = Together()
    host.register(plugin, name="together", device_types=["ref"])
    yield plugin
    host.unregister("together")


class Seen(fb.Tensor):
    calls: list[str] = []  # noqa: RUF012 - meant to be shared

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.calls.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {})


class Unhashable:
    __hash__ = None  # type: ignore[assignment]

    def __call__(self, x: fb.Tensor) -> fb.Tensor:
        return x.relu()


def encoder(activation: Any = F.relu, **options: Any) -> fb.nn.TransformerEncoderLayer:
    fb.manual_seed(0)
    place = {"device": "ref", "dtype": fb.float64, **options}
    return fb.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, activation=activation, **place)


def sources() -> fb.Tensor:
    made = fb.linspace(-1, 1, 24, dtype=fb.float64).sin().reshape(3, 2, 4).to("ref")
    return made.requires_grad_()


def passes(layer: Any, *inputs: fb.Tensor) -> list[fb.Tensor]:
    """The result and the gradients of all that requires one."""
    found = layer(*inputs)
    wanted = [t for t in (*inputs, *layer.parameters()) if t.requires_grad]
    weights = fb.linspace(0, 2, found.numel(), dtype=fb.float64).cos().reshape(found.shape)
    return [found, *fb.autograd.grad((found * weights.to("ref")).sum(), wanted)]


def agree(layer: Any, plugin: Together, runs: int, inputs: Any = None) -> None:
    """The kernel for both is used as often as said, and gives what the two layers give."""
    inputs = (sources(),) if inputs is None else inputs
    plugin.answer, plugin.ran = True, []
    first = passes(layer, *inputs)
    assert len(plugin.ran) == runs
    plugin.answer = False
    for a, b in zip(first, passes(layer, *inputs), strict=True):
        assert a.tolist() == b.tolist()
    assert len(plugin.ran) == runs


@pytest.mark.parametrize(
    ("activation", "name"),
    [
        ("relu", "relu"),
        (F.relu, "relu"),
        (fb.relu, "relu"),
        (fb.nn.ReLU(inplace=True), "relu"),
        (fb.nn.GELU("tanh"), "gelu_tanh"),
    ],
    ids=["by name", "of functional", "of flambeau", "layer", "gelu with tanh"],
)
def test_feed_forward_parts_take_the_kernel_for_both(activation, name, together):
    agree(encoder(activation), together, 1)
    assert together.ran[0][3:] == (name, True)


@pytest.mark.parametrize("options", [{"bias": False}, {"norm_first": True}], ids=str)
def test_layers_of_every_form_take_it(options, together):
    agree(encoder(**options), together, 1)
    decoder = fb.nn.TransformerDecoderLayer(4, 2, 8, 0.0, device="ref", dtype=fb.float64, **options)
    agree(decoder, together, 1, (sources(), sources()))
    stack = fb.nn.TransformerEncoder(encoder(**options), 2)
    agree(stack, together, 2)
    agree(encoder(), together, 1, (sources()[:, 0],))  # without a batch


def sequence(*modules: Any) -> Any:
    fb.manual_seed(0)
    return fb.nn.Sequential(*modules).to("ref", fb.float64)


def test_sequences_take_it_for_each_pair(together):
    linear, relu, gelu = fb.nn.Linear(4, 4), fb.nn.ReLU(), fb.nn.GELU("tanh")
    for modules, runs in (
        ((linear, relu), 1),
        ((linear, relu, fb.nn.Linear(4, 2), gelu), 2),
        ((linear, fb.nn.Linear(4, 4), relu, relu, linear), 1),
        ((fb.nn.Sequential(linear), relu), 0),
        ((linear, fb.nn.GELU(), linear, fb.nn.Tanh()), 0),
        ((relu, linear, fb.nn.Dropout(0.0), relu), 0),
        ((linear,), 0),
    ):
        agree(sequence(*modules), together, runs)
    assert fb.nn.Sequential()(7) == 7
    seen: list[str] = []
    model = sequence(linear, relu)
    linear.register_forward_hook(lambda *a: seen.append("linear"))
    relu.register_forward_hook(lambda *a: seen.append("relu"))
    agree(model, together, 0)
    assert seen == ["linear", "relu"] * 2


def test_a_replaced_call_of_modules_sees_both(together, monkeypatch):
    model, seen, call = sequence(fb.nn.Linear(4, 4), fb.nn.ReLU()), [], fb.nn.Module.__call__

    def watched(self: Any, *args: Any) -> Any:
        seen.append(type(self).__name__)
        return call(self, *args)

    monkeypatch.setattr(fb.nn.Module, "__call__", watched)
    agree(model, together, 0)
    assert seen == ["Sequential", "Linear", "ReLU"] * 2


@pytest.mark.parametrize(
    "activation",
    ["gelu", fb.nn.GELU(), F.silu, lambda x: x.relu(), Unhashable()],
    ids=["exact gelu", "exact gelu as a layer", "silu", "lambda", "not hashable"],
)
def test_other_activations_are_called(activation, together):
    agree(encoder(activation), together, 0)


def test_whoever_watches_the_layers_sees_both_calls(together):
    layer, seen = encoder(fb.nn.ReLU()), []
    hook = lambda module, *rest: seen.append(type(module).__name__)  # noqa: E731
    for part in (layer.linear1, layer.activation):
        for register in (
            part.register_forward_hook,
            part.register_forward_pre_hook,
            part.register_full_backward_hook,
            part.register_full_backward_pre_hook,
        ):
            handle = register(hook)
            seen.clear()
            agree(layer, together, 0)
            assert seen == [type(part).__name__] * 2
            handle.remove()
    everywhere = register_module_forward_hook(hook)
    agree(layer, together, 0)
    everywhere.remove()
    agree(layer, together, 1)


def test_replaced_parts_are_called(together, monkeypatch):
    class Doubled(fb.nn.Linear):
        def forward(self, input):
            return super().forward(input) * 2

    layer = encoder()
    layer.linear1 = Doubled(4, 8, device="ref", dtype=fb.float64)
    agree(layer, together, 0)
    layer = encoder()
    layer.activation = fb.tanh
    agree(layer, together, 0)
    layer = encoder()
    forward = layer.linear1.forward
    layer.linear1.forward = lambda x: forward(x) * 2
    agree(layer, together, 0)
    layer = fb.nn.utils.parametrizations.weight_norm(encoder().linear1)
    whole = encoder()
    whole.linear1 = layer
    agree(whole, together, 0)
    layer = encoder()
    plain = fb.nn.Linear.forward
    monkeypatch.setattr(fb.nn.Linear, "forward", lambda self, x: plain(self, x) + 1)
    agree(layer, together, 0)


def test_classes_of_tensors_see_both_calls(together):
    layer, Seen.calls = encoder(), []
    result = layer._fed_forward(sources().detach().as_subclass(Seen))
    assert type(result) is Seen and not together.ran
    assert Seen.calls[:2] == ["linear", "relu"]


def test_the_kernel_is_told_whether_a_gradient_may_come(together):
    layer = encoder()
    layer(sources())
    with fb.no_grad():
        layer(sources())
    layer.eval()
    for p in layer.parameters():
        p.requires_grad_(False)
    layer(sources().detach())
    assert [args[-1] for args in together.ran] == [True, False, False]


def test_a_frozen_weight_keeps_no_input(together):
    layer = encoder()
    layer.linear1.weight.requires_grad_(False)
    agree(layer, together, 0)


def test_without_such_a_kernel_the_two_are_called():
    result = encoder()._fed_forward(sources())
    assert not hasattr(bind("ref").linear_activation, "takes")
    names, nodes = [], [result.grad_fn]
    while nodes:
        node = nodes.pop()
        if node is not None:
            names.append(node.name())
            nodes += [n for n, _ in node.next_functions]
    assert "ReluBackward0" in names and "LinearActivationBackward0" not in names


def test_second_derivatives_are_those_of_the_two_layers(together):
    for activation in (F.relu, fb.nn.GELU("tanh")):
        layer, x, found = encoder(activation), sources(), []
        for together.answer in (True, False):
            first = fb.autograd.grad(layer(x).square().sum(), [x], create_graph=True)[0]
            wanted = [x, layer.linear1.weight, layer.linear1.bias]
            found.append(fb.autograd.grad(first.square().sum(), wanted))
        for a, b in zip(*found, strict=True):
            fb.testing.assert_close(a, b, rtol=1e-10, atol=1e-12)
        assert len(together.ran) == 1
        together.ran.clear()


def test_errors_are_those_of_the_two_layers(together):
    layer = encoder()
    together.answer = False  # as a kernel says of sizes that do not fit
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        layer._fed_forward(fb.zeros(2, 5, dtype=fb.float64, device="ref"))
