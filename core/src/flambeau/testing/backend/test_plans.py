"""Plans of a backend: captured calls repeated give, and write, what the ops give and write."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import flambeau as fb
from flambeau.ops import OPS
from flambeau.plans import Compiled
from flambeau.testing.backend import _support as kit
from flambeau.testing.samples import DTYPES, SAMPLES, realise

if TYPE_CHECKING:
    from flambeau._tensor.tensor import Tensor
    from flambeau._types.dtype import dtype as DType


LEVEL = "training"


def captured(device: str) -> Iterator[Any]:
    """Every op that is a function of tensors, in its first floating dtype, or the first of all."""
    for name in OPS:
        if name in SAMPLES and not name.endswith("_"):
            dtypes = [d for d in DTYPES[name] if d.is_floating_point] or DTYPES[name]
            yield kit.case(device, dtypes[0], name, dtypes[0], id=name)


def outcome(call: Any, args: Any) -> Any:
    """The bytes of the results of a call, or the class of what it raises."""
    try:
        found = call(*args)
    except Exception as error:
        return type(error).__name__
    results = kit.tensors(found)
    return [(t.dtype, tuple(t.shape), t.requires_grad, kit.memory(t.detach())) for t in results]


@kit.cases("name dtype", captured)
def test_plans_agree_with_the_op(device: str, name: str, dtype: DType) -> None:
    wrong = []
    for sample in SAMPLES[name][:2]:
        compiled = Compiled(OPS[name], 8, False)
        for wants in (False, True):
            found = []
            for call in (OPS[name], compiled, compiled, compiled):
                args = realise(sample.args, kit.maker(device), dtype)
                for t in kit.tensors(args):
                    t.requires_grad_(wants and t.is_floating_point())
                fb.manual_seed(7)
                found.append(outcome(call, args))
            for run, result in zip(("before", "captured", "replayed"), found[1:], strict=True):
                if result != found[0]:
                    how = f"{name} ({sample.name}), {run}{', with a history' if wants else ''}"
                    wrong.append(f"{how}: {result} instead of {found[0]}")
    kit.fail_with(wrong)


def step(device: str, compiled: bool) -> list[Any]:
    """What a few steps with views, writes in place, draws and an optimiser leave behind."""
    fb.manual_seed(0)
    make = kit.maker(device)
    weight: Any = make([0.5, -0.25, 1.0, 0.125], (2, 2), fb.float32).requires_grad_()
    mean = make([0.0, 0.0], (2,), fb.float32)

    def once(x: object) -> Tensor:
        weight.grad = None
        h = (x @ weight).relu()
        mean.mul_(0.5).add_(h.detach().mean(0))
        h = h * (fb.rand(2, 2, device=device) < 0.7)
        h[0] = h[0] * 2
        loss = (h * h).sum() + weight.t()[1:].abs().sum()
        loss.backward()
        with fb.no_grad():
            weight[:, 0].sub_(cast(Any, weight.grad)[:, 0], alpha=0.125)
        return loss.detach()

    run = fb.compile(once) if compiled else once
    found = []
    for i in range(5):
        x = make([1.0, float(i), 0.5, -1.0], (2, 2), fb.float32)
        found.append(kit.numbers(run(x)))
    return [found, *map(kit.numbers, (weight.detach(), mean, weight.grad)), weight._version]


def test_a_step_repeated_leaves_what_the_step_leaves(device: str) -> None:
    assert step(device, True) == step(device, False)


def test_a_plan_looks_at_indices_in_every_run(device: str) -> None:
    x = kit.maker(device)([1.0, 2.0, 3.0], (3,), fb.float32)
    chosen = Compiled(lambda x, i: x[i] * 2, 8, False)
    for at in (0, 1, 2, -1, 3, 0):
        i = kit.maker(device)([at], (1,), fb.int64)
        try:
            found = kit.numbers(chosen(x, i))
        except IndexError:
            found = None
        assert found == (None if at == 3 else [2.0 * (at % 3 + 1)])
    assert chosen.explain().replays == 4
