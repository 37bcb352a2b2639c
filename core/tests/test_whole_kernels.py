"""Attention and stacks of recurrent layers by one kernel, where a device says that it has one."""

from __future__ import annotations

import pytest

import flambeau as fb
from flambeau._dispatch.bound import bind
from flambeau.ops import OPS
from flambeau.plugin import KernelSet, hookimpl
from flambeau.plugin.host import host

NAMES = "fused_attention", "recurrent_layers"


class Whole:
    """A plugin of ``ref`` with kernels for the whole, which note what they are asked."""

    def __init__(self) -> None:
        self.answer, self.asked, self.ran = True, [], []

    @hookimpl(tryfirst=True)
    def flambeau_kernels(self, device_type, backend):
        return KernelSet("whole", {name: self._kernel(name) for name in NAMES})

    def _kernel(self, name):
        def kernel(*args):
            self.ran.append(args)
            return OPS[name].decomposed(bind("ref"))(*args)

        def takes(*args):
            self.asked.append(args)
            return self.answer

        kernel.takes = takes
        return kernel


@pytest.fixture
def whole():
    plugin = Whole()
    host.register(plugin, name="whole", device_types=["ref"])
    yield plugin
    host.unregister("whole")


def numbers(*shape, seed=0):
    made = fb.rand(
        shape, dtype=fb.float64, generator=fb.Generator("ref").manual_seed(seed), device="ref"
    )
    return (made - 0.5).requires_grad_()


def results(function, inputs):
    """Results of a function, and the gradients of a weighted sum of them."""
    found = function(*inputs)
    found = found if isinstance(found, tuple) else (found,)
    total = sum((t * numbers(*t.shape, seed=50 + i).detach()).sum() for i, t in enumerate(found))
    return [*found, *fb.autograd.grad(total, inputs)]


def agree(function, inputs, plugin, runs):
    """The kernel for the whole is used as often as said, and gives what the parts give."""
    plugin.answer, plugin.ran = True, []
    first = results(function, inputs)
    assert len(plugin.ran) == runs
    plugin.answer = False
    for a, b in zip(first, results(function, inputs), strict=True):
        fb.testing.assert_close(a, b, rtol=1e-10, atol=1e-12)
    assert len(plugin.ran) == runs


QKV = numbers(2, 4, 3, 2), numbers(2, 4, 5, 2, seed=1), numbers(2, 4, 5, 3, seed=2)


def attend(**options):
    return lambda *args: fb.scaled_dot_product_attention(*args, **options)


def test_attention_of_every_form_by_one_kernel(whole):
    mask = fb.tensor([[True] * 5, [False] * 5, [True, False] * 2 + [True]], device="ref")
    agree(attend(), QKV, whole, 1)
    agree(attend(is_causal=True, scale=0.3), QKV, whole, 1)
    agree(attend(), (*QKV, numbers(3, 5, seed=3)), whole, 1)
    agree(attend(attn_mask=mask), QKV, whole, 1)
    few = QKV[0], numbers(2, 2, 5, 2, seed=1), numbers(2, 2, 5, 3, seed=2)
    agree(attend(enable_gqa=True), few, whole, 1)


def test_attention_that_broadcasts_or_drops_weights_goes_by_parts(whole):
    agree(attend(), (QKV[0], *[t[:, :1] for t in QKV[1:]]), whole, 0)
    attend(dropout_p=0.5)(*QKV)
    assert not whole.ran and not whole.asked


def test_operands_of_two_devices_are_refused_as_elsewhere(whole):
    with pytest.raises(RuntimeError, match="same device"):
        attend()(QKV[0], QKV[1].detach().to("meta"), QKV[2])
    assert not whole.asked


def stack(mode, layers=2, both=True, biased=True, projected=False, sizes=(2, 2, 1), **options):
    """The public function, and its operands."""
    gates, directions = {"lstm": 4, "gru": 3, "tanh": 1}[mode], 2 if both else 1
    out = 2 if projected else 3
    states = layers * directions, sizes[0]
    shapes = [(sum(sizes), 3), (*states, out), *([(*states, 3)] if mode == "lstm" else [])]
    for i in range(layers * directions):
        width = 3 if i < directions else out * directions
        shapes += [(gates * 3, width), (gates * 3, out)] + [(gates * 3,)] * (2 * biased)
        shapes += [(out, 3)] * projected
    function = {"lstm": fb.lstm, "gru": fb.gru, "tanh": fb.rnn_tanh}[mode]

    def run(x, h, *rest):
        state = (h, rest[0]) if mode == "lstm" else h
        settings = biased, layers, options.get("dropout", 0.0), options.get("train", False), both
        return function(x, fb.tensor(sizes), state, list(rest[mode == "lstm" :]), *settings)

    return run, tuple(numbers(*shape, seed=i) for i, shape in enumerate(shapes))


@pytest.mark.parametrize("mode", ["lstm", "gru", "tanh"])
def test_a_stack_of_layers_by_one_kernel(mode, whole):
    agree(*stack(mode), whole, 1)
    agree(*stack(mode, biased=False, both=False, sizes=(2, 2)), whole, 1)


@pytest.mark.parametrize("biased", [False, True])
def test_projected_layers_by_one_kernel(biased, whole):
    agree(*stack("lstm", biased=biased, projected=True), whole, 1)


def test_between_layers_that_drop_numbers_there_is_a_kernel_per_layer(whole):
    run, inputs = stack("gru", layers=3, dropout=0.5, train=True)
    _, h = run(*inputs)
    assert [args[5] for args in whole.ran] == [1, 1, 1]
    assert h.shape == (6, 2, 3)
    whole.ran.clear()
    agree(*stack("gru", layers=3, dropout=0.5, train=False), whole, 1)


def test_the_kernel_is_told_whether_a_gradient_may_come(whole):
    run, inputs = stack("gru")
    run(*inputs)
    with fb.no_grad():
        run(*inputs)
    run(*[t.detach() for t in inputs])
    assert [args[-1] for args in whole.ran] == [True, False, False]


def test_without_such_a_kernel_the_parts_serve():
    for function, inputs in ((attend(), QKV), stack("lstm")):
        results(function, inputs)  # nothing to ask, nothing asked
    assert not hasattr(bind("ref").fused_attention, "takes")
