"""Schedulers on plateaus, and the warnings and errors of all schedulers."""

from __future__ import annotations

import copy
import gc
import weakref
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import flambeau  # noqa: E402 - imported beside its oracle
from test_lr_scheduler import (  # noqa: E402
    CYCLES,
    SIMPLE,
    assert_same,
    chained,
    name_of,
    numbers,
    optimizer_of,
    run,
    scheduler,
    sequential,
)

PLATEAUS = [
    {"factor": 0.5, "patience": 1},
    {"factor": 0.5, "patience": 0, "cooldown": 2},
    {"mode": "max", "factor": 0.3, "patience": 2, "threshold": 0.1},
    {"factor": 0.3, "patience": 0, "threshold_mode": "abs", "threshold": 0.3},
    {"mode": "max", "patience": 0, "threshold_mode": "abs", "threshold": 0.3},
    {"patience": 0, "min_lr": [0.02, 0.25], "eps": 1e-3},
    {"patience": 0, "min_lr": 0.05},
]
MEASUREMENTS = [3.0, 2.9, 3.1, 2.5, 2.6, 2.4999, 2.2, 2.2, float("nan"), 1.0, 1.0, 5.0, 6.0, 0.5]


@pytest.mark.parametrize("options", PLATEAUS, ids=str)
@pytest.mark.parametrize("tensor_rate", [False, True])
def test_plateaus_reduce_the_rates_in_the_same_epochs(options, tensor_rate):
    def watched(lib: Any) -> list[Any]:
        optimizer = optimizer_of(lib, tensor_rate=tensor_rate)
        made = lib.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **options)
        seen = [(made.get_last_lr(), numbers(made.state_dict()))]
        for value in MEASUREMENTS:
            made.step(lib.tensor(value, dtype=lib.float64))
            seen.append((numbers(made.get_last_lr()), numbers(made.state_dict()), made.in_cooldown))
        return [numbers(item) for item in seen]

    assert_same(watched(flambeau), watched(torch))


@pytest.mark.parametrize(("source", "target"), [(torch, flambeau), (flambeau, torch)])
def test_plateaus_continue_from_a_state_dict_of_the_other(source, target):
    def make(lib: Any) -> tuple[Any, Any]:
        optimizer = optimizer_of(lib)
        options = PLATEAUS[1]
        return optimizer, lib.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **options)

    _, made = make(source)
    for value in MEASUREMENTS[:3]:
        made.step(value)
    resumed_optimizer, resumed = make(target)
    resumed.load_state_dict(made.state_dict())
    for group, rate in zip(resumed_optimizer.param_groups, made.get_last_lr(), strict=True):
        group["lr"] = rate
    for value in MEASUREMENTS[3:]:
        made.step(value)
        resumed.step(value)
        assert_same(resumed.get_last_lr(), made.get_last_lr())


def test_a_new_group_gets_the_smallest_rate_of_a_plateau():
    def grown(lib: Any, min_lr: Any) -> Any:
        optimizer = optimizer_of(lib)
        made = lib.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, min_lr=min_lr)
        optimizer.add_param_group({"params": [lib.ones(1, requires_grad=True)], "lr": 0.5})
        for _ in range(2):
            made.step(1.0)
        return made.get_last_lr(), made.min_lrs

    assert_same(grown(flambeau, 0.02), grown(torch, 0.02))
    with pytest.raises(RuntimeError, match="number of param groups") as theirs:
        grown(torch, [0.1, 0.1])
    with pytest.raises(RuntimeError, match="number of param groups") as ours:
        grown(flambeau, [0.1, 0.1])
    assert str(ours.value) == str(theirs.value)


BAD = [
    scheduler("LambdaLR", [lambda epoch: 1.0]),
    scheduler("MultiplicativeLR", [lambda epoch: 1.0]),
    scheduler("MultiplicativeLR", 0.5),
    scheduler("ConstantLR", factor=1.5),
    scheduler("ConstantLR", factor=-0.5),
    scheduler("LinearLR", start_factor=0.0),
    scheduler("LinearLR", start_factor=1.5),
    scheduler("LinearLR", end_factor=-1.0),
    scheduler("CosineAnnealingWarmRestarts", 0),
    scheduler("CosineAnnealingWarmRestarts", 1.5),
    scheduler("CosineAnnealingWarmRestarts", 2, T_mult=0),
    scheduler("CosineAnnealingWarmRestarts", 2, eta_min="0"),
    scheduler("CyclicLR", [0.1], 0.2),
    scheduler("CyclicLR", 0.1, [0.2, 0.3, 0.4]),
    scheduler("CyclicLR", 0.1, 0.2, mode="square"),
    scheduler("OneCycleLR", 0.1),
    scheduler("OneCycleLR", 0.1, total_steps=0),
    scheduler("OneCycleLR", 0.1, total_steps=1.5),
    scheduler("OneCycleLR", 0.1, epochs=3),
    scheduler("OneCycleLR", 0.1, epochs=0, steps_per_epoch=1),
    scheduler("OneCycleLR", 0.1, epochs=2, steps_per_epoch=-1),
    scheduler("OneCycleLR", 0.1, 10, pct_start=1.5),
    scheduler("OneCycleLR", 0.1, 10, pct_start=1),
    scheduler("OneCycleLR", 0.1, 10, anneal_strategy="sine"),
    scheduler("OneCycleLR", [0.1], 10),
    scheduler("ReduceLROnPlateau", mode="less"),
    scheduler("ReduceLROnPlateau", threshold_mode="some"),
    scheduler("ReduceLROnPlateau", factor=1.0),
    scheduler("ReduceLROnPlateau", min_lr=[0.1]),
    lambda lib, optimizer: lib.optim.lr_scheduler.ChainedScheduler([]),
    lambda lib, optimizer: lib.optim.lr_scheduler.ChainedScheduler([7], optimizer),
    lambda lib, optimizer: lib.optim.lr_scheduler.SequentialLR(optimizer, [], []),
    lambda lib, optimizer: lib.optim.lr_scheduler.SequentialLR(optimizer, [7], []),
    sequential([], SIMPLE[7], SIMPLE[9]),
    sequential([2], SIMPLE[7], scheduler("ReduceLROnPlateau")),
    chained(SIMPLE[7], scheduler("ReduceLROnPlateau")),
    lambda lib, optimizer: chained(SIMPLE[4])(lib, optimizer).__class__(
        [SIMPLE[4](lib, optimizer), SIMPLE[4](lib, optimizer_of(lib))]
    ),
    *[
        lambda lib, optimizer, name=name: getattr(lib.optim.lr_scheduler, name)(7, 0.1, 0.2)
        for name in ("CyclicLR", "StepLR")
    ],
    lambda lib, optimizer: lib.optim.lr_scheduler.OneCycleLR(7, 0.1, 10),
    lambda lib, optimizer: lib.optim.lr_scheduler.ReduceLROnPlateau(7),
    *[
        lambda lib, optimizer, make=make: make(lib, optimizer_of(lib, "Adagrad"))
        for make in (CYCLES[0], CYCLES[8])
    ],
    lambda lib, optimizer: lib.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 2).step(
        -1
    ),
]


@pytest.mark.parametrize("make", BAD, ids=name_of)
def test_what_cannot_be_scheduled_raises_the_same_error(make):
    with pytest.raises(Exception) as theirs:  # noqa: PT011 - it is what we compare with
        make(torch, optimizer_of(torch))
    with pytest.raises(Exception) as ours:  # noqa: PT011
        make(flambeau, optimizer_of(flambeau))
    assert type(ours.value) is type(theirs.value)
    assert str(ours.value) == str(theirs.value)


def test_one_cycle_refuses_a_step_after_the_last():
    made = [run(lib, scheduler("OneCycleLR", 0.5, 4), 4)[2] for lib in (flambeau, torch)]
    messages = []
    for one in made:
        with pytest.raises(ValueError, match="Tried to step") as error:
            one.step()
        messages.append(str(error.value))
    assert messages[0] == messages[1]


def test_resuming_an_optimiser_without_initial_rates_names_the_group():
    with pytest.raises(KeyError, match=r"'initial_lr' is not specified in param_groups\[0\]"):
        flambeau.optim.lr_scheduler.StepLR(optimizer_of(flambeau), 3, last_epoch=2)


def test_a_first_step_before_the_optimiser_warns():
    made = SIMPLE[4](flambeau, optimizer_of(flambeau))
    with pytest.warns(UserWarning, match=r"Detected call of `lr_scheduler.step\(\)` before"):
        made.step()
    made.step()  # warned once


def test_steps_in_the_right_order_do_not_warn():
    _, optimizer, made = run(flambeau, SIMPLE[4], 3)
    again = SIMPLE[12](flambeau, optimizer)  # a second scheduler sees the earlier steps
    again.step()
    made.step()


def test_replacing_the_step_of_the_optimiser_warns():
    optimizer = optimizer_of(flambeau)
    made = SIMPLE[4](flambeau, optimizer)
    optimizer.step = lambda closure=None: None
    with pytest.warns(UserWarning, match=r"`optimizer.step\(\)` has been overridden"):
        made.step()


def test_asking_for_the_next_rates_warns():
    made = SIMPLE[12](flambeau, optimizer_of(flambeau))
    with pytest.warns(UserWarning, match=r"please use `get_last_lr\(\)`"):
        made.get_lr()


def test_verbose_prints_every_rate_and_warns_that_it_is_deprecated(capsys):
    with pytest.warns(UserWarning, match="verbose parameter is deprecated"):
        made = flambeau.optim.lr_scheduler.ExponentialLR(optimizer_of(flambeau), 0.5, verbose=True)
    made.optimizer.step()
    made.step()
    assert capsys.readouterr().out == (
        "Adjusting learning rate of group 0 to 1.0000e-01.\n"
        "Adjusting learning rate of group 1 to 3.0000e-01.\n"
        "Adjusting learning rate of group 0 to 5.0000e-02.\n"
        "Adjusting learning rate of group 1 to 1.5000e-01.\n"
    )
    assert "_verbose" not in made.state_dict()


def test_a_verbose_plateau_prints_its_reductions(capsys):
    with pytest.warns(UserWarning, match="verbose parameter is deprecated"):
        made = flambeau.optim.lr_scheduler.ReduceLROnPlateau(
            optimizer_of(flambeau), patience=0, verbose=True
        )
    made.step(1.0)
    made.step(1.0)
    assert capsys.readouterr().out == (
        "Epoch     2: reducing learning rate of group 0 to 1.0000e-02.\n"
        "Epoch     2: reducing learning rate of group 1 to 3.0000e-02.\n"
    )


def test_step_hooks_and_closures_work_on_a_scheduled_optimiser():
    optimizer = optimizer_of(flambeau)
    SIMPLE[4](flambeau, optimizer)
    calls = []
    optimizer.register_step_pre_hook(lambda *_: calls.append("before"))
    optimizer.register_step_post_hook(lambda *_: calls.append("after"))
    assert optimizer.step(lambda: calls.append("closure") or 7.0) == 7.0
    assert calls == ["before", "closure", "after"]


def test_a_scheduled_optimiser_can_be_copied():
    _, optimizer, _ = run(flambeau, SIMPLE[4], 2)
    twin = copy.deepcopy(optimizer)
    twin.param_groups[0]["params"][0].grad = flambeau.ones(2)
    twin.step()
    assert optimizer.param_groups[0]["params"][0].tolist() == [1.0, 1.0]
    assert twin.param_groups[0]["params"][0].tolist() != [1.0, 1.0]


def test_a_scheduled_optimiser_is_freed_without_the_collector():
    gc.disable()
    try:
        optimizer = optimizer_of(flambeau)
        made = SIMPLE[4](flambeau, optimizer)
        watcher = weakref.ref(optimizer)
        del optimizer, made
        assert watcher() is None
    finally:
        gc.enable()
