"""Plans on the stand-in, whose gradient formulas are computed late."""

from __future__ import annotations

from typing import Any

import pytest
import standin

import flambeau as fb
from flambeau import nn
from flambeau._random.generator import default_generators
from flambeau.plugin.host import host

pytestmark = pytest.mark.skipif(
    standin.launcher is None, reason="needs g++ or clang++ on Linux: nothing would be launched"
)


@pytest.fixture(autouse=True)
def device(monkeypatch):
    host.register(standin, name="standin", device_types=[standin.DEVICE])
    monkeypatch.setattr(default_generators, "_others", {})  # not those of a former stand-in
    yield standin.DEVICE
    host.unregister("standin")


def pictures():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3),
        nn.BatchNorm2d(4),
        nn.SiLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(36, 5),
    ), fb.randn(3, 1, 8, 8)


def sentences():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.lstm = nn.Embedding(7, 4), nn.LSTM(4, 6)
            self.output = nn.Linear(6, 5)

        def forward(self, words):
            return self.output(self.lstm(self.embedding(words))[0][-1])

    return Model(), fb.randint(0, 7, (4, 3))


def attention():
    layer = nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", batch_first=True)
    return nn.Sequential(layer, nn.LayerNorm(8), nn.Flatten(), nn.Linear(32, 5)), fb.randn(3, 4, 8)


def formulas():
    """Chains of many elementwise formulas, which are one kernel each where they are put off."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 5)

        def forward(self, x):
            y = self.layer(x)
            y = nn.functional.softplus(y) * nn.functional.mish(y) + nn.functional.elu(y)
            return (y.sigmoid() * y.tanh() / (1 + y * y)).exp().log1p() - fb.where(
                y > 0, y, y.sin()
            )

    return Model(), fb.randn(3, 4)


def trained(make, optimizer, compiled, device):
    """Losses of six steps, what the model holds afterwards and its gradients."""
    fb.manual_seed(3)
    model, inputs = make()
    model.to(device)
    inputs, targets = inputs.to(device), fb.tensor([0, 4, 2], device=device)
    steps = optimizer(model.parameters())

    def step(x):
        steps.zero_grad()
        loss = nn.functional.cross_entropy(model(x), targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        steps.step()
        return loss.detach()

    run: Any = fb.compile(step, fullgraph=True) if compiled else step
    losses = [run(inputs).cpu() for _ in range(6)]
    if compiled:
        assert run.explain().replays == 4
    held = [t.cpu() for t in model.state_dict().values()]
    return losses, held, [p.grad.cpu() for p in model.parameters()]


OPTIMIZERS = {
    "Adam": lambda parameters: fb.optim.Adam(parameters, 0.01),
    "AdamW": lambda parameters: fb.optim.AdamW(parameters, 0.01, capturable=True),
    "SGD": lambda parameters: fb.optim.SGD(parameters, 0.1, momentum=0.9, nesterov=True),
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("make", [pictures, sentences, attention, formulas])
def test_a_compiled_step_trains_as_the_step_does(device, make, optimizer):
    plain, plan = (trained(make, OPTIMIZERS[optimizer], on, device) for on in (False, True))
    if optimizer == "Adam":  # rates that the host computes are arrays of the plan: other roundings
        fb.testing.assert_close(plan[0], plain[0], rtol=1e-6, atol=0)
        return
    for ours, theirs in zip(plan, plain, strict=True):
        assert all(map(fb.equal, ours, theirs))


def test_formulas_that_are_put_off_are_put_off_in_the_plan(device):
    x = fb.randn(3, 4, device=device).requires_grad_()

    @fb.compile
    def step():
        x.grad = None
        (nn.functional.mish(x) * x.sigmoid()).sum().backward()

    for _ in range(5):
        step()
    assert step.explain().replays == 3
    assert "settle" in step.explain().text


def test_functions_with_a_history_have_a_backward_pass_of_late_formulas(device):
    def function(x, w):
        return nn.functional.softplus(x @ w) * nn.functional.silu(x).sum(1, keepdim=True)

    compiled = fb.compile(function)
    for _ in range(4):
        found = []
        for call in (function, compiled):
            fb.manual_seed(1)
            x, w = (fb.randn(3, 3, device=device).requires_grad_() for _ in range(2))
            y = call(x, w)
            first = fb.autograd.grad((y * y).sum(), (x, w), create_graph=True)
            squares: Any = sum((g * g).sum() for g in first)
            second = fb.autograd.grad(squares, (x, w))
            found.append([t.detach().cpu() for t in (y, *first, *second)])
        assert all(map(fb.equal, found[0][:3], found[1][:3]))
        fb.testing.assert_close(found[0], found[1])  # the second are sums in another order
    assert compiled.explain().replays == 2


def test_a_plan_draws_from_the_generator_as_the_step_does(device):
    def noisy(x):
        return nn.functional.dropout(x, 0.5) + fb.rand(3, 4, device=device)

    x, found = fb.ones(3, 4, device=device), []
    for call in (noisy, fb.compile(noisy)):
        fb.manual_seed(5)
        found.append([call(x).cpu() for _ in range(5)])
    assert all(map(fb.equal, *found))


def test_a_sparse_gradient_refuses_the_plan(device):
    table = nn.Embedding(5, 3, sparse=True).to(device)
    words = fb.tensor([1, 3], device=device)

    @fb.compile
    def step():
        table.weight.grad = None
        table(words).exp().sum().backward()
        assert table.weight.grad is not None
        return table.weight.grad.to_dense().cpu()

    assert all(fb.equal(step(), step()) for _ in range(3))
    assert step.explain().replays == 0


def test_a_backend_that_does_not_say_what_stands_for_arrays_has_no_plans(device, monkeypatch):
    monkeypatch.setattr(standin.Standin, "stand_in", None)
    step = fb.compile(lambda x: x.exp())
    for _ in range(3):
        step(fb.ones(2, device=device))
    assert "computes gradients late" in str(step.explain())
