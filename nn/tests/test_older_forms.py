"""What programs written for older PyTorch do with modules and optimisers."""

from __future__ import annotations

import pytest

import flambeau as fb
from flambeau import nn
from flambeau.nn import functional as F

pytest.importorskip("flambeau_numpy")


def test_an_optimiser_that_sets_itself_up_can_step():
    class Alone(fb.optim.Optimizer):
        def __init__(self, params):
            self.param_groups = [{"params": list(params), "lr": 0.1}]
            self.state = {}

        def step(self, closure=None):
            return "stepped"

    optimizer = Alone([fb.ones(1, requires_grad=True)])
    assert optimizer.step() == "stepped"
    seen = []
    optimizer.register_step_post_hook(lambda *args: seen.append(args))
    optimizer.step()
    assert len(seen) == 1
    with pytest.raises(AttributeError, match="'Alone' object has no attribute 'nosuch'"):
        optimizer.nosuch  # noqa: B018


def test_weights_of_a_recurrent_layer_can_be_replaced_by_tensors():
    layer, x = nn.LSTM(2, 3), fb.ones(1, 1, 2)
    weights = [w.detach() * 2 for w in layer._flat_weights]
    expected = nn.LSTM(2, 3)
    expected._flat_weights = [nn.Parameter(w) for w in weights]
    layer._flat_weights = weights
    assert layer(x)[0].tolist() == expected(x)[0].tolist()
    assert len(list(layer.parameters())) == 0 and len(list(expected.parameters())) == 4


def test_schedulers_are_instances_of_their_older_name():
    optimizer = fb.optim.SGD([fb.ones(1, requires_grad=True)], lr=1.0)
    scheduler = fb.optim.lr_scheduler.StepLR(optimizer, 1)
    assert isinstance(scheduler, fb.optim.lr_scheduler._LRScheduler)


def test_sizes_are_parsed_by_count():
    assert nn.modules.utils._ntuple(3)(2) == (2, 2, 2)
    assert nn.modules.utils._ntuple(2)([4, 5]) == (4, 5)


def test_modules_are_converted_by_types_of_python():
    assert nn.Linear(1, 1).to(float).weight.dtype is fb.float64
    assert nn.Linear(1, 1, dtype=float).weight.dtype is fb.float64
    with pytest.raises(TypeError, match="only accepts floating point"):
        nn.Linear(1, 1).to(int)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_gradients_of_convolutions_are_functions(dims):
    fb.manual_seed(0)
    convolution = getattr(fb, f"conv{dims}d")
    x = fb.randn(2, 4, *[5] * dims, dtype=fb.float64, requires_grad=True)
    weight = fb.randn(6, 2, *[3] * dims, dtype=fb.float64, requires_grad=True)
    settings = {"stride": 2, "padding": 1, "dilation": 1, "groups": 2}
    result = convolution(x, weight, **settings)
    g = fb.randn(result.shape, dtype=fb.float64)
    wanted = fb.autograd.grad(result, (x, weight), g)
    by_input = getattr(F.grad, f"conv{dims}d_input")(x.shape, weight, g, **settings)
    by_weight = getattr(nn.grad, f"conv{dims}d_weight")(x, weight.shape, g, **settings)
    fb.testing.assert_close((by_input, by_weight), wanted)
    assert by_input.requires_grad and by_weight.requires_grad
    with fb.no_grad():
        assert not getattr(nn.grad, f"conv{dims}d_input")(
            x.shape, weight, g, **settings
        ).requires_grad
