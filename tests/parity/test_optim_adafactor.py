"""Adafactor agrees with PyTorch: steps, state, checkpoints, refusals."""

from __future__ import annotations

import io
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import flambeau as fb  # noqa: E402

LIBRARIES = (fb, torch)
OPTIONS = [
    {},
    {"lr": 0.5},
    {"beta2_decay": -0.3, "d": 2.0},
    {"eps": (1e-3, 0.1)},
    {"weight_decay": 0.1, "lr": 0.1},
    {"maximize": True},
    {"foreach": True},
]


def parameters(lib: Any) -> list[Any]:
    made = []
    for shape in ((), (3,), (2, 3), (2, 3, 2, 2)):
        count = lib.Size(shape).numel()
        values = lib.arange(count, dtype=lib.float64).add(0.4).mul(1.7).sin()
        made.append(values.reshape(shape).requires_grad_())
    return made


def steps(optimizer: Any, params: list[Any], count: int) -> list[float]:
    losses = []
    for _ in range(count):
        optimizer.zero_grad()
        loss = sum((p - 0.3).pow(2).mul(1.5).sin().sum() for p in params)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return [*losses, *[x for p in params for x in p.detach().flatten().tolist()]]


def facts(state: dict[str, Any]) -> Any:
    entries = {
        key: {n: (tuple(v.shape), str(v.dtype)) for n, v in entry.items()}
        for key, entry in state["state"].items()
    }
    return entries, state["param_groups"]


@pytest.mark.parametrize("options", OPTIONS)
def test_steps_and_state_are_pytorchs(options: dict[str, Any]) -> None:
    found, states = [], []
    for lib in LIBRARIES:
        params = parameters(lib)
        optimizer = lib.optim.Adafactor(params, **options)
        found.append(steps(optimizer, params, 5))
        states.append(optimizer.state_dict())
    assert found[0] == pytest.approx(found[1], rel=1e-9, abs=1e-9)
    assert facts(states[0]) == facts(states[1])


@pytest.mark.parametrize(("first", "second"), [(fb, torch), (torch, fb)])
def test_a_checkpoint_goes_on_in_the_other_library(first: Any, second: Any) -> None:
    params = parameters(first)
    optimizer = first.optim.Adafactor(params)
    steps(optimizer, params, 3)
    file = io.BytesIO()
    first.save({"params": [p.detach() for p in params], "state": optimizer.state_dict()}, file)
    file.seek(0)
    found = second.load(file)
    others = [p.requires_grad_() for p in found["params"]]
    other = second.optim.Adafactor(others)
    other.load_state_dict(found["state"])
    reference = steps(optimizer, params, 3)
    assert steps(other, others, 3) == pytest.approx(reference, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    "options",
    [
        {"lr": -1.0},
        {"eps": (-1.0, 0.1)},
        {"eps": (None, -1.0)},
        {"d": 0.5},
        {"beta2_decay": 0.1},
        {"weight_decay": -1.0},
    ],
)
def test_options_out_of_range_are_refused_as_by_pytorch(options: dict[str, Any]) -> None:
    texts = []
    for lib in LIBRARIES:
        with pytest.raises(ValueError, match="should be") as error:
            lib.optim.Adafactor(parameters(lib), **options)
        texts.append(str(error.value))
    assert texts[0] == texts[1]


def test_a_rate_of_several_elements_and_complex_parameters_are_refused() -> None:
    for lib in LIBRARIES:
        with pytest.raises(ValueError, match="1-element"):
            lib.optim.Adafactor(parameters(lib), lr=lib.ones(2))
        p = lib.ones(2, dtype=lib.complex64, requires_grad=True)
        p.abs().sum().backward()
        with pytest.raises(RuntimeError, match="complex"):
            lib.optim.Adafactor([p]).step()
