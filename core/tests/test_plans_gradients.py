"""Whether gradients are, after each run of a plan, what the function leaves."""

from __future__ import annotations

import random

import pytest
from plans_agree import memory

import flambeau as fb

EVENTS = (
    "pass",
    "pass",
    "pass of both",
    "check",
    "check",
    "drop",
    "drop",
    "zero",
    "write",
    "step",
    "step by grad",
    "exchange",
    "keep",
)


def program(events):
    """A step of these events, and the tensors that it changes."""
    tensors = [fb.tensor([[0.5], [-1.0], [2.0]], requires_grad=True) for _ in range(2)]
    kept = [fb.zeros(3, 1)]

    def step(x, places):
        loss = x.sum()
        for event, i in events:
            t = tensors[i]
            if event == "pass":
                loss = (t * t * x).sum()
                loss.backward()
            elif event == "pass of both":
                loss = (tensors[0].sin() * tensors[1] * x).sum()
                loss.backward()
            elif event == "check":
                loss = loss.detach() + t[places].sum()
            elif event == "drop":
                t.grad = None
            elif event == "exchange":
                t.grad = x.clone()
            elif t.grad is None:
                continue
            elif event == "zero":
                t.grad.zero_()
            elif event == "write":
                t.grad.mul_(0.5)
            elif event == "keep":
                kept[0].copy_(t.grad)
            else:
                with fb.no_grad():
                    t.sub_(t.grad, alpha=0.1) if event == "step" else t.copy_(t - t.grad * 0.1)
        return loss.detach()

    return step, tensors, kept


@pytest.mark.parametrize("seed", range(60))
def test_a_plan_leaves_the_gradients_that_its_function_leaves(seed):
    draw = random.Random(seed)
    events = [(draw.choice(EVENTS), draw.randrange(2)) for _ in range(draw.randint(3, 9))]
    calls = [
        (draw.random(), draw.choice([0, 0, 0, 0, 1, 5]), draw.random() < 0.2) for _ in "1234567"
    ]

    def run(compiled):
        step, tensors, kept = program(events)
        if compiled:
            step = fb.compile(step)
        found = []
        for scale, at, dropped in calls:
            before = [t.grad for t in tensors]
            if dropped:
                tensors[0].grad = None
            try:
                found.append(memory(step(fb.ones(3, 1) * scale, fb.tensor([at, 0]))))
            except IndexError as error:
                found.append(str(error))
            after = [t.grad for t in tensors]
            found += [None if t is None else memory(t) for t in (*before, *after)]
            found += [memory(t.detach()) for t in (*tensors, *kept)]
            found += [t is other for t, other in zip(before, after, strict=True)]
        return found

    assert run(True) == run(False), events
