"""Mixed precision in training: losses that are scaled, and the functions of `nn.functional`."""

from __future__ import annotations

import pickle

import pytest

import flambeau as fb
from flambeau.amp import _lists, _switch

DEVICE = "ref"


def _trained(**settings):
    weight = fb.ones(2, device=DEVICE, requires_grad=True)
    scaler = fb.amp.GradScaler(DEVICE, init_scale=8.0, **settings)
    return weight, fb.optim.SGD([weight], lr=0.5), scaler


def test_a_step_uses_unscaled_gradients():
    weight, optimizer, scaler = _trained()
    scaler.scale(weight.sum()).backward()
    assert weight.grad.tolist() == [8.0, 8.0]
    scaler.step(optimizer)
    scaler.update()
    assert weight.tolist() == [0.5, 0.5] and scaler.get_scale() == 8.0


def test_a_step_with_gradients_that_are_not_finite_is_skipped():
    weight, optimizer, scaler = _trained()
    scaler.scale(weight.sum() * float("inf")).backward()
    assert scaler.step(optimizer) is None
    scaler.update()
    assert weight.tolist() == [1.0, 1.0] and scaler.get_scale() == 4.0


def test_the_scale_grows_after_steps_in_a_row():
    weight, optimizer, scaler = _trained(growth_interval=2, growth_factor=4.0)
    for expected in (8.0, 32.0, 32.0, 128.0):
        scaler.scale(weight.sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        assert scaler.get_scale() == expected


def test_each_optimizer_skips_on_its_own():
    one, opt_one, scaler = _trained()
    two = fb.ones(2, device=DEVICE, requires_grad=True)
    opt_two = fb.optim.SGD([two], lr=0.5)
    scaler.scale(one.sum() + two.sum() * float("nan")).backward()
    scaler.step(opt_one)
    scaler.step(opt_two)
    scaler.update()
    assert one.tolist() == [0.5, 0.5] and two.tolist() == [1.0, 1.0]
    assert scaler.get_scale() == 4.0


def test_the_order_of_calls_is_checked():
    weight, optimizer, scaler = _trained()
    with pytest.raises(AssertionError, match="_scale is None"):
        scaler.step(optimizer)
    scaler.scale(weight.sum()).backward()
    with pytest.raises(AssertionError, match="No inf checks"):
        scaler.update()
    scaler.unscale_(optimizer)
    with pytest.raises(AssertionError, match="pickled"):
        pickle.dumps(scaler)
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="after step"):
        scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already been called since"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="Closure"):
        scaler.step(optimizer, closure=lambda: None)
    with pytest.raises(ValueError, match="iterable of Tensors"):
        scaler.scale(3)


def test_gradients_in_float16_are_refused():
    weight = fb.ones(2, device=DEVICE, dtype=fb.float16, requires_grad=True)
    scaler = fb.amp.GradScaler(DEVICE)
    scaler.scale(weight.sum().float()).backward()
    with pytest.raises(ValueError, match="FP16"):
        scaler.step(fb.optim.SGD([weight], lr=0.5))


def test_sparse_gradients_are_unscaled():
    weight = fb.ones(4, 1, requires_grad=True)
    optimizer = fb.optim.SGD([weight], lr=1.0)
    scaler = fb.amp.GradScaler("cpu", init_scale=4.0)
    rows = fb.nn.functional.embedding(fb.tensor([1, 1, 3]), weight, sparse=True)
    scaler.scale(rows.sum()).backward()
    scaler.unscale_(optimizer)
    assert weight.grad.is_sparse
    assert weight.grad.to_dense().flatten().tolist() == [0.0, 2.0, 0.0, 1.0]
    scaler.step(optimizer)
    assert weight.flatten().tolist() == [1.0, -1.0, 1.0, 0.0]


def test_optimizers_that_unscale_themselves_are_told():
    class Own(fb.optim.SGD):
        _step_supports_amp_scaling = True

        def step(self, closure=None):
            self.told = float(self.grad_scale), float(self.found_inf)

    weight = fb.ones(2, device=DEVICE, requires_grad=True)
    optimizer, scaler = Own([weight], lr=1.0), fb.amp.GradScaler(DEVICE, init_scale=8.0)
    scaler.scale(weight.sum()).backward()
    scaler.step(optimizer)
    assert optimizer.told == (8.0, 0.0) and not hasattr(optimizer, "grad_scale")
    scaler.update()


def test_the_state_of_a_scaler_travels():
    weight, optimizer, scaler = _trained()
    scaler.scale(weight.sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    state = scaler.state_dict()
    assert state == {
        "scale": 8.0,
        "growth_factor": 2.0,
        "backoff_factor": 0.5,
        "growth_interval": 2000,
        "_growth_tracker": 1,
    }
    other = fb.amp.GradScaler(DEVICE)
    other.load_state_dict(state)
    assert other.state_dict() == pickle.loads(pickle.dumps(scaler)).state_dict() == state
    with pytest.raises(RuntimeError, match="empty"):
        other.load_state_dict({})


def test_the_scale_can_be_set():
    weight, _, scaler = _trained()
    scaler.scale([weight.sum(), (weight.sum(),)])
    scaler.update(2.0)
    assert scaler.get_scale() == 2.0
    scaler.update(fb.tensor([4.0], device=DEVICE))
    assert scaler.get_scale() == 4.0
    with pytest.raises(AssertionError, match="1-element"):
        scaler.update(fb.ones(2, device=DEVICE))
    with pytest.raises(AssertionError, match="growth factor"):
        fb.amp.GradScaler(DEVICE, growth_factor=1.0)
    with pytest.raises(AssertionError, match="backoff factor"):
        fb.amp.GradScaler(DEVICE, backoff_factor=1.0)


def test_a_disabled_scaler_does_nothing():
    weight = fb.ones(2, device=DEVICE, requires_grad=True)
    optimizer, scaler = fb.optim.SGD([weight], lr=0.5), fb.amp.GradScaler(DEVICE, enabled=False)
    loss = weight.sum()
    assert scaler.scale(loss) is loss and scaler.get_scale() == 1.0
    loss.backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert weight.tolist() == [0.5, 0.5] and scaler.state_dict() == {}


def test_what_overflows_in_narrow_dtypes_is_refused_on_accelerators(monkeypatch):
    monkeypatch.setattr("flambeau.amp._casts.lists_of", lambda _: _lists.ON_ACCELERATORS)
    monkeypatch.setattr(_switch, "_switches", {})
    monkeypatch.setattr(_switch, "_libraries", -1)
    half = fb.ones(2, 2, device=DEVICE)
    with (
        fb.autocast(DEVICE, dtype=fb.float16),
        pytest.raises(RuntimeError, match="unsafe to autocast"),
    ):
        fb.nn.functional.binary_cross_entropy(half, half)


def test_the_former_name_of_the_scaler_warns():
    with pytest.warns(FutureWarning, match="torch.amp.GradScaler"):
        assert fb.cpu.amp.GradScaler(4.0).get_scale() == 4.0


def test_every_listed_name_is_a_function_or_method():
    with fb.autocast(DEVICE):
        found = {name for name, _ in _switch._listed()}
    # Two names may be one function, of which one is enough.
    namespaces = (fb, fb.nn.functional, fb.Tensor)
    for name in {*_lists.ON_CPU, *_lists.ON_ACCELERATORS} - found - {_lists.IN_PLACE}:
        assert any(hasattr(space, name) for space in namespaces), name
