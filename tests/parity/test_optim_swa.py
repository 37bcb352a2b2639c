"""Averaged models and their learning rates agree with PyTorch."""

from __future__ import annotations

import io
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch.optim.swa_utils")

import flambeau as fb  # noqa: E402

LIBRARIES = (fb, torch)
AVERAGES = {
    "the mean": lambda u: {},
    "the mean, named": lambda u: {"avg_fn": u.get_swa_avg_fn()},
    "the mean of lists": lambda u: {"multi_avg_fn": u.get_swa_multi_avg_fn()},
    "moving": lambda u: {"avg_fn": u.get_ema_avg_fn(0.9)},
    "moving lists": lambda u: {"multi_avg_fn": u.get_ema_multi_avg_fn(0.9)},
    "own": lambda u: {"avg_fn": lambda old, new, n: old + (new - old) * 2 / (n + 2)},
}


def model_of(lib: Any) -> Any:
    lib.manual_seed(2)
    nn = lib.nn
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 1)).double()


def batch(lib: Any, i: int) -> Any:
    return lib.arange(12, dtype=lib.float64).add(i).mul(1.7).sin().reshape(4, 3)


def averaged(lib: Any, average: str, use_buffers: bool) -> Any:
    utils = lib.optim.swa_utils
    model = model_of(lib)
    optimizer = lib.optim.SGD(model.parameters(), lr=0.1)
    result = utils.AveragedModel(model, use_buffers=use_buffers, **AVERAGES[average](utils))
    for i in range(4):
        optimizer.zero_grad()
        model(batch(lib, i)).pow(2).sum().backward()
        optimizer.step()
        result.update_parameters(model)
    return result


def values(module: Any) -> dict[str, Any]:
    return {k: (tuple(v.shape), v.flatten().tolist()) for k, v in module.state_dict().items()}


def assert_same_state(ours: Any, theirs: Any) -> None:
    mine, reference = values(ours), values(theirs)
    assert list(mine) == list(reference)
    for key, (shape, numbers) in reference.items():
        assert mine[key][0] == shape
        assert mine[key][1] == pytest.approx(numbers, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("use_buffers", [False, True])
@pytest.mark.parametrize("average", AVERAGES)
def test_averages_are_pytorchs(average: str, use_buffers: bool) -> None:
    if average == "the mean of lists" and use_buffers:
        pytest.skip("PyTorch cannot average the integer counters of batch norm so")
    ours, theirs = (averaged(lib, average, use_buffers) for lib in LIBRARIES)
    assert_same_state(ours, theirs)
    assert repr(ours) == repr(theirs)
    ours.eval()
    theirs.eval()
    mine, reference = ours(batch(fb, 9)), theirs(batch(torch, 9))
    assert mine.flatten().tolist() == pytest.approx(reference.flatten().tolist(), rel=1e-9)


@pytest.mark.parametrize("paired", [False, True])
def test_update_bn_computes_pytorchs_statistics(paired: bool) -> None:
    found = []
    for lib in LIBRARIES:
        result = averaged(lib, "the mean", False)
        data = [batch(lib, i) for i in range(3)]
        lib.optim.swa_utils.update_bn([(x, 0) for x in data] if paired else data, result)
        assert result.training
        assert result.module[1].momentum == 0.1
        found.append(result)
    assert_same_state(*found)


def test_update_bn_leaves_models_without_batch_norm_alone() -> None:
    model = fb.nn.Linear(3, 1).eval()
    fb.optim.swa_utils.update_bn(iter(()), model)
    assert not model.training


def test_an_averaged_model_goes_through_a_checkpoint() -> None:
    file = io.BytesIO()
    theirs = averaged(torch, "moving", False)
    torch.save(theirs.state_dict(), file)
    file.seek(0)
    ours = fb.optim.swa_utils.AveragedModel(model_of(fb))
    ours.load_state_dict(fb.load(file))
    assert_same_state(ours, theirs)


@pytest.mark.parametrize("strategy", ["cos", "linear"])
@pytest.mark.parametrize("epochs", [0, 1, 4])
@pytest.mark.parametrize("goal", [0.05, [0.05, 0.5]], ids=["one goal", "two goals"])
@pytest.mark.parametrize("beside", [False, True])
def test_rates_are_pytorchs(strategy: str, epochs: int, goal: Any, beside: bool) -> None:
    found = []
    for lib in LIBRARIES:
        a, b = (lib.ones(1, requires_grad=True) for _ in range(2))
        groups = [{"params": [a], "lr": 0.2}, {"params": [b], "lr": 1.0}]
        optimizer = lib.optim.SGD(groups, lr=0.1)
        other = lib.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        scheduler = lib.optim.swa_utils.SWALR(optimizer, goal, epochs, strategy)
        rates = [group["lr"] for group in optimizer.param_groups]
        for i in range(7):
            optimizer.step()
            if beside and i < 3:
                other.step()
            scheduler.step()
            rates += [group["lr"] for group in optimizer.param_groups]
            assert scheduler.get_last_lr() == rates[-2:]
        found.append((rates, [group["swa_lr"] for group in optimizer.param_groups]))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-12)
    assert found[0][1] == found[1][1]


def scheduler_of(lib: Any, **options: Any) -> Any:
    optimizer = lib.optim.SGD([lib.ones(1, requires_grad=True)], lr=1.0)
    return lib.optim.swa_utils.SWALR(optimizer, **{"swa_lr": 0.1, **options})


@pytest.mark.parametrize(
    "call",
    [
        lambda lib: scheduler_of(lib, anneal_strategy="x"),
        lambda lib: scheduler_of(lib, anneal_epochs=-1),
        lambda lib: scheduler_of(lib, anneal_epochs=1.5),
        lambda lib: scheduler_of(lib, swa_lr=[0.1, 0.2]),
        lambda lib: lib.optim.swa_utils.get_ema_avg_fn(2.0),
        lambda lib: lib.optim.swa_utils.get_ema_multi_avg_fn(-1.0),
        lambda lib: lib.optim.swa_utils.AveragedModel(model_of(lib), avg_fn=max, multi_avg_fn=max),
    ],
)
def test_refusals_are_pytorchs(call: Any) -> None:
    errors = []
    for lib in LIBRARIES:
        with pytest.raises((ValueError, AssertionError)) as error:
            call(lib)
        errors.append((error.type, str(error.value)))
    assert errors[0] == errors[1]
