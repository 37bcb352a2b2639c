"""Frozen modules: constants in the place of parameters, and the results of the module."""

import pytest

import flambeau as fb
from flambeau import nn


def network():
    fb.manual_seed(4)
    net = nn.Sequential(
        *(nn.Conv2d(2, 3, 3, padding=1), nn.BatchNorm2d(3), nn.ReLU(), nn.Dropout()),
        *(nn.ConvTranspose2d(3, 4, 2, bias=False), nn.BatchNorm2d(4), nn.Flatten()),
        *(nn.Linear(36, 5), nn.BatchNorm1d(5)),
    )
    for _ in range(2):
        net(fb.randn(4, 2, 2, 2))
    return net.eval()


@pytest.mark.parametrize("how", ["script", "trace"])
def test_normalisations_and_dropout_are_gone_and_results_stay(how):
    net, x = network(), fb.randn(3, 2, 2, 2)
    scripted = fb.jit.script(net) if how == "script" else fb.jit.trace(net, x)
    for frozen in (fb.jit.freeze(scripted), fb.jit.optimize_for_inference(scripted)):
        kinds = {node.kind for node in frozen.graph.block.all_nodes()}
        assert not kinds & {"aten::batch_norm", "aten::dropout", "prim::GetAttr"}
        assert not list(frozen.parameters()) and not list(frozen.buffers())
        fb.testing.assert_close(frozen(x), net(x), rtol=1e-5, atol=1e-5)
    assert net[0].weight.requires_grad and "aten::batch_norm" in str(scripted.inlined_graph)


def test_without_rounding_results_are_those_of_the_module():
    net, x = network(), fb.randn(3, 2, 2, 2)
    frozen = fb.jit.freeze(fb.jit.script(net), optimize_numerics=False)
    assert fb.equal(frozen(x), net(x))


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", fb.zeros(1))
        self.register_buffer("total", fb.zeros(2, 2))
        self.weight = nn.Parameter(fb.ones(2))
        self.calls = 0

    def forward(self, x):
        self.count.add_(1)
        self.total[0].add_(1)
        self.calls += 1
        return x * self.weight

    @fb.jit.export
    def other(self, x):
        return x + self.weight


def test_what_is_written_stays_an_attribute():
    frozen = fb.jit.freeze(fb.jit.script(Counting().eval()))
    frozen(fb.ones(2))
    frozen(fb.ones(2))
    assert frozen.count.tolist() == [2.0] and frozen.calls == 2
    assert frozen.total.tolist() == [[2.0, 2.0], [0.0, 0.0]]
    assert not hasattr(frozen, "weight") and not hasattr(frozen, "other")


def test_methods_and_attributes_that_are_asked_for_are_kept():
    frozen = fb.jit.freeze(fb.jit.script(Counting().eval()), ["other", "weight"])
    assert frozen.other(fb.ones(2)).tolist() == [2.0, 2.0]
    with fb.no_grad():
        frozen.weight.fill_(3)
    assert frozen(fb.ones(2)).tolist() == [3.0, 3.0]


def test_what_cannot_be_frozen_is_refused():
    with pytest.raises(RuntimeError, match="ScriptModule"):
        fb.jit.freeze(nn.Linear(2, 2))
    with pytest.raises(RuntimeError, match="eval mode"):
        fb.jit.freeze(fb.jit.script(nn.Linear(2, 2)))
    with pytest.raises(RuntimeError, match="'missing'"):
        fb.jit.freeze(fb.jit.script(nn.Linear(2, 2).eval()), ["missing"])


def test_a_normalisation_stays_where_the_layer_before_it_is_read_elsewhere():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm = nn.Conv1d(1, 2, 1), nn.BatchNorm1d(2)

        def forward(self, x):
            y = self.conv(x)
            return self.norm(y) + y

    net = Net().eval()
    frozen = fb.jit.freeze(fb.jit.script(net))
    assert len(frozen.graph.findAllNodes("aten::batch_norm")) == 1
    x = fb.randn(2, 1, 3)
    assert fb.equal(frozen(x), net(x))


def test_a_norm_over_the_places_of_a_sequence_is_not_made_part_of_a_linear_layer():
    program = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(5)).eval()
    x = fb.randn(2, 5, 4)
    assert fb.equal(fb.jit.freeze(fb.jit.script(program))(x), program(x))
