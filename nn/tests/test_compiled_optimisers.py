"""Optimisers written by hand beside scalers and schedules of the library, in compiled steps."""

from __future__ import annotations

import pytest

import flambeau as fb
from flambeau import nn, optim


class Signed(optim.Optimizer):
    """A step by an average of gradients, computed as `way` says."""

    def __init__(self, params, way):
        super().__init__(params, {"lr": 0.1})
        self.way = way

    @fb.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["mean"] = fb.zeros_like(p)
                self.way(p, state["mean"], p.grad, group["lr"])


def in_place(p, mean, g, lr):
    mean.mul_(0.9).add_(g)
    p.add_(mean.sign(), alpha=-lr)


def by_copies(p, mean, g, lr):
    mean.copy_(0.9 * mean + g)
    p.copy_(p - lr * mean)


def by_data(p, mean, g, lr):
    p.data = p.data - lr * g


def steps(compiled, prepare):
    """Losses, weights and rates of some calls of a step, and the step."""
    fb.manual_seed(0)
    model = nn.Linear(3, 2)
    step, facts = prepare(model)
    run, found = fb.compile(step) if compiled else step, []
    for i in range(12):
        loss = run(fb.tensor([0.05, -0.2, i / 10]), fb.tensor(float("inf") if i == 8 else 1.0))
        weights = [p.tolist() for p in model.parameters()]
        versions = [p._version for p in model.parameters()]
        found.append((repr(loss.item()), weights, versions, facts()))
    return run, found


@pytest.mark.parametrize(("way", "has_plan"), [(in_place, 1), (by_copies, 1), (by_data, 0)])
def test_a_scaler_leaves_out_steps_that_are_written_by_hand(way, has_plan):
    def prepare(model):
        optimizer = Signed(model.parameters(), way)
        scaler = fb.amp.GradScaler("cpu", init_scale=4.0, growth_interval=3)

        def step(x, factor):
            optimizer.zero_grad()
            loss = (model(x) ** 2).sum() * factor
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            return loss.detach()

        return step, scaler.get_scale

    run, found = steps(True, prepare)
    assert found == steps(False, prepare)[1]
    assert run.explain().plans == has_plan


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("kind", ["each", "fifth"])
def test_a_schedule_steps_beside_an_optimiser_that_is_written_by_hand(kind, first):
    def prepare(model):
        optimizer = Signed(model.parameters(), in_place)
        optimizer.step_count = 0
        if kind == "each":
            schedule = optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        else:
            schedule = optim.lr_scheduler.StepLR(optimizer, 5)
        model(fb.ones(3)).sum().backward()
        optimizer.step()  # before the first of the schedule, which warns else

        def step(x, factor):
            optimizer.step_count += 1
            optimizer.zero_grad()
            loss = (model(x) ** 2).sum() / optimizer.step_count
            loss.backward()
            if first:
                schedule.step()
            optimizer.step()
            if not first:
                schedule.step()
            return loss.detach()

        return step, lambda: (schedule.get_last_lr(), optimizer.param_groups[0]["lr"])

    assert steps(True, prepare)[1] == steps(False, prepare)[1]
