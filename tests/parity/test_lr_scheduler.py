"""Schedulers give PyTorch's rates, state dictionaries, warnings and errors."""

from __future__ import annotations

import copy
import pickle
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import flambeau  # noqa: E402 - imported beside its oracle

Make = Callable[..., Any]


class Power:
    """A callable object, whose attributes a state dictionary keeps."""

    def __init__(self, base: float) -> None:
        self.base = base

    def __call__(self, epoch: float) -> float:
        return self.base**epoch


def scheduler(name: str, *args: Any, **kwargs: Any) -> Make:
    def make(lib: Any, optimizer: Any, **more: Any) -> Any:
        return getattr(lib.optim.lr_scheduler, name)(optimizer, *args, **kwargs, **more)

    make.__name__ = f"{name}{args}{kwargs}"
    return make


def chained(*parts: Make) -> Make:
    def make(lib: Any, optimizer: Any) -> Any:
        made = [part(lib, optimizer) for part in parts]
        return lib.optim.lr_scheduler.ChainedScheduler(made)

    make.__name__ = "Chained" + "+".join(part.__name__ for part in parts)
    return make


def sequential(milestones: list[int], *parts: Make) -> Make:
    def make(lib: Any, optimizer: Any) -> Any:
        made = [part(lib, optimizer) for part in parts]
        return lib.optim.lr_scheduler.SequentialLR(optimizer, made, milestones)

    make.__name__ = "Sequential" + "+".join(part.__name__ for part in parts)
    return make


def quiet(make: Make) -> Make:
    """`make` for what takes two steps before the optimiser does, by its construction."""

    def made(lib: Any, optimizer: Any) -> Any:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Detected call of")
            return make(lib, optimizer)

    made.__name__ = make.__name__
    return made


SIMPLE = [
    scheduler("LambdaLR", lambda epoch: 0.95**epoch),
    scheduler("LambdaLR", [lambda epoch: epoch // 3, Power(0.9)]),
    scheduler("MultiplicativeLR", lambda epoch: 0.95 + epoch / 100),
    scheduler("MultiplicativeLR", [Power(0.9), Power(1.01)]),
    scheduler("StepLR", 4),
    scheduler("StepLR", step_size=3, gamma=0.5),
    scheduler("MultiStepLR", [10, 3, 3, 20], gamma=0.3),
    scheduler("ConstantLR"),
    scheduler("ConstantLR", factor=0.7, total_iters=0),
    scheduler("LinearLR"),
    scheduler("LinearLR", start_factor=0.1, end_factor=0.5, total_iters=9),
    scheduler("LinearLR", start_factor=1.0, end_factor=0.0, total_iters=25),
    scheduler("ExponentialLR", 0.9),
    scheduler("PolynomialLR"),
    scheduler("PolynomialLR", total_iters=11, power=2.5),
    scheduler("CosineAnnealingLR", 7),
    scheduler("CosineAnnealingLR", 4, eta_min=0.01),
    scheduler("CosineAnnealingWarmRestarts", 5),
    scheduler("CosineAnnealingWarmRestarts", 3, T_mult=2, eta_min=0.02),
]
CYCLES = [
    scheduler("CyclicLR", 0.01, 0.3, step_size_up=4),
    scheduler("CyclicLR", [0.01, 0.1], [0.3, 0.5], step_size_up=3, step_size_down=5),
    scheduler("CyclicLR", 0.01, 0.3, step_size_up=2, mode="triangular2"),
    scheduler("CyclicLR", 0.01, 0.3, step_size_up=2, mode="exp_range", gamma=0.9),
    scheduler("CyclicLR", 0.01, 0.3, step_size_up=2, scale_fn=Power(0.8)),
    scheduler("CyclicLR", 0.01, 0.3, 2, scale_fn=lambda x: 1 / (1 + x), scale_mode="iterations"),
    scheduler("CyclicLR", 0.01, 0.3, step_size_up=4, cycle_momentum=False),
    scheduler("CyclicLR", 0.01, 0.3, 3, base_momentum=[0.1, 0.2], max_momentum=0.99),
    scheduler("OneCycleLR", 0.5, total_steps=30),
    scheduler("OneCycleLR", [0.5, 1.0], epochs=6, steps_per_epoch=5, anneal_strategy="linear"),
    scheduler("OneCycleLR", 0.5, total_steps=30, three_phase=True, pct_start=0.4),
    scheduler("OneCycleLR", 0.5, 30, cycle_momentum=False, div_factor=3.0, final_div_factor=7.0),
    scheduler("OneCycleLR", 0.5, 30, base_momentum=[0.5, 0.6], max_momentum=[0.7, 0.8]),
]
COMBINED = [
    chained(SIMPLE[7], SIMPLE[12]),
    chained(SIMPLE[16], SIMPLE[5], SIMPLE[2]),
    sequential([4], SIMPLE[9], SIMPLE[12]),
    sequential([3, 9], SIMPLE[7], SIMPLE[16], SIMPLE[5]),
    sequential([0], SIMPLE[9], SIMPLE[12]),
    quiet(sequential([5], chained(SIMPLE[7], SIMPLE[12]), SIMPLE[16])),
    sequential([4], SIMPLE[12], SIMPLE[18]),
    chained(sequential([3], SIMPLE[7], SIMPLE[12]), SIMPLE[5]),
]
SCHEDULERS = [*SIMPLE, *CYCLES, *COMBINED]


def name_of(value: Any) -> str:
    # Addresses differ between the workers of one run, which must collect the same names.
    name = getattr(value, "__name__", str(value))
    return re.sub(r" at 0x[0-9a-f]+", "", name).replace("<function <lambda>", "<lambda")[:70]


def optimizer_of(lib: Any, name: str = "SGD", tensor_rate: bool = False) -> Any:
    """Two groups with different rates."""
    first, second = (lib.ones(2, requires_grad=True) for _ in range(2))
    rates = (0.1, 0.3)
    if tensor_rate:
        rates = tuple(lib.tensor(rate, dtype=lib.float64) for rate in rates)
    options = {"momentum": 0.9} if name == "SGD" else {}
    groups = [{"params": [p], "lr": rate} for p, rate in zip((first, second), rates, strict=True)]
    return getattr(lib.optim, name)(groups, **options)


def numbers(value: Any) -> Any:
    """`value` with tensors as numbers."""
    if isinstance(value, (torch.Tensor, flambeau.Tensor)):
        return value.tolist()
    if isinstance(value, dict):
        return {key: numbers(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [numbers(item) for item in value]
    return value


def options_of(optimizer: Any) -> list[Any]:
    return [
        {key: numbers(value) for key, value in group.items() if key not in ("params", "fused")}
        for group in optimizer.param_groups
    ]


def walk(optimizer: Any, made: Any, steps: int) -> list[Any]:
    seen = [(numbers(made.get_last_lr()), options_of(optimizer))]
    for _ in range(steps):
        optimizer.step()
        made.step()
        seen.append((numbers(made.get_last_lr()), options_of(optimizer)))
    return seen


def run(lib: Any, make: Make, steps: int = 25, **kwargs: Any) -> tuple[Any, Any, Any]:
    optimizer = optimizer_of(lib, **kwargs)
    made = make(lib, optimizer)
    return walk(optimizer, made, steps), optimizer, made


def assert_same(ours: Any, theirs: Any) -> None:
    """Equal structures, equal numbers to the last digits."""
    assert type(ours) is type(theirs)
    if isinstance(theirs, dict):
        assert set(ours) == set(theirs)
        for key, value in theirs.items():
            assert_same(ours[key], value)
    elif isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            assert_same(a, b)
    elif isinstance(theirs, float):
        np.testing.assert_allclose(ours, theirs, rtol=1e-13, atol=1e-16)
    else:
        assert ours == theirs


@pytest.mark.parametrize("make", SCHEDULERS, ids=name_of)
def test_rates_and_momenta_are_the_same_in_every_epoch(make):
    assert_same(run(flambeau, make)[0], run(torch, make)[0])


@pytest.mark.parametrize("make", CYCLES, ids=name_of)
def test_beta1_is_cycled_where_it_is_the_momentum(make):
    assert_same(run(flambeau, make, name="Adam")[0], run(torch, make, name="Adam")[0])


@pytest.mark.parametrize("make", SCHEDULERS, ids=name_of)
def test_a_tensor_rate_is_filled_with_the_same_numbers(make):
    theirs, _, _ = run(torch, make, tensor_rate=True)
    ours, optimizer, _ = run(flambeau, make, tensor_rate=True)
    assert_same(ours, theirs)
    assert all(isinstance(group["lr"], flambeau.Tensor) for group in optimizer.param_groups)


@pytest.mark.parametrize("make", SCHEDULERS, ids=name_of)
def test_state_dicts_have_the_same_keys_and_numbers(make):
    ours, theirs = (numbers(run(lib, make, 6)[2].state_dict()) for lib in (flambeau, torch))
    assert_same(ours, theirs)


@pytest.mark.parametrize("make", SCHEDULERS, ids=name_of)
@pytest.mark.parametrize(("source", "target"), [(torch, flambeau), (flambeau, torch)])
def test_state_dicts_are_interchangeable_in_both_directions(source, target, make):
    _, optimizer, made = run(source, make, 6)
    resumed_optimizer = optimizer_of(target)
    resumed = make(target, resumed_optimizer)
    options = {key: group for key, group in optimizer.state_dict().items() if key != "state"}
    resumed_optimizer.load_state_dict({"state": {}, **copy.deepcopy(options)})
    saved = copy.deepcopy(made.state_dict())
    resumed.load_state_dict(saved)
    assert_same(walk(resumed_optimizer, resumed, 12), walk(optimizer, made, 12))


@pytest.mark.parametrize("make", SCHEDULERS, ids=name_of)
def test_loading_leaves_the_state_dict_as_it_is(make):
    _, _, made = run(flambeau, make, 2)
    saved = made.state_dict()
    before = copy.deepcopy(saved)
    made.load_state_dict(saved)
    assert_same(saved, before)


@pytest.mark.parametrize("make", SCHEDULERS, ids=name_of)
def test_state_dicts_can_be_pickled(make):
    _, _, made = run(flambeau, make, 2)
    saved = made.state_dict()
    assert_same(pickle.loads(pickle.dumps(saved)), saved)


CLOSED = [make for make in SIMPLE if "Multiplicative" not in make.__name__]


@pytest.mark.parametrize("make", CLOSED, ids=name_of)
def test_an_epoch_gives_the_closed_form_and_a_warning(make):
    def jumps(lib: Any) -> list[Any]:
        optimizer = optimizer_of(lib)
        made = make(lib, optimizer)
        seen = []
        for epoch in (3, 0, 11, 4, 24):
            optimizer.step()
            made.step(epoch)
            seen.append(made.get_last_lr())
        return seen

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = jumps(torch)
    if "Restarts" in make.__name__:
        assert_same(jumps(flambeau), theirs)  # fractions of epochs are its ordinary use
        return
    with pytest.warns(UserWarning, match="The epoch parameter in `scheduler.step"):
        assert_same(jumps(flambeau), theirs)


def test_warm_restarts_follow_fractions_of_epochs():
    def fractions(lib: Any) -> list[Any]:
        optimizer = optimizer_of(lib)
        made = lib.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 2, T_mult=3)
        seen = []
        for i in range(40):
            made.step(i / 4)
            seen.append((made.get_last_lr(), made.last_epoch, made.T_cur, made.T_i))
        return seen

    assert_same(fractions(flambeau), fractions(torch))


@pytest.mark.parametrize("make", [*SIMPLE, *CYCLES], ids=name_of)
def test_resuming_at_an_epoch_continues_like_pytorch(make):
    def resumed(lib: Any) -> list[Any]:
        _, optimizer, _ = run(lib, make, 5)
        return walk(optimizer, make(lib, optimizer, last_epoch=5), 6)

    assert_same(resumed(flambeau), resumed(torch))


def test_names_are_those_of_pytorch():
    ours, theirs = (set(lib.optim.lr_scheduler.__all__) for lib in (flambeau, torch))
    assert ours == theirs
    assert issubclass(
        flambeau.optim.lr_scheduler._LRScheduler, flambeau.optim.lr_scheduler.LRScheduler
    )
