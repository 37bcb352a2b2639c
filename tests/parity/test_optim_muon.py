"""Muon agrees with PyTorch: steps, state, checkpoints, refusals."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import flambeau  # noqa: E402 - the helpers need torch
from test_optim import converted, plain  # noqa: E402
from test_optim_elementwise import to_torch  # noqa: E402

SHAPES = [(4, 6), (7, 3), (5, 5), (1, 3), (0, 2)]
OPTIONS = [
    {"lr": 0.1, "nesterov": n, "momentum": m, "weight_decay": w, "adjust_lr_fn": a}
    for n, m, w, a in itertools.product(
        (False, True), (0.0, 0.9), (0, 0.2), (None, "original", "match_rms_adamw")
    )
]
OPTIONS += [{}, {"ns_steps": 0}, {"ns_steps": 2, "ns_coefficients": (1.5, -0.5, 0.0)}, {"eps": 1.0}]
# An orthogonal matrix is found in bfloat16: its elements agree to one rounding.
ROUNDING = 2**-8


def parameters(lib: Any, dtype: str) -> list[Any]:
    rng = np.random.default_rng(0)
    return [
        lib.tensor(rng.normal(size=shape).tolist(), dtype=getattr(lib, dtype))
        .reshape(shape)
        .requires_grad_()
        for shape in SHAPES
    ]


def walk(lib: Any, optimizer: Any, params: list[Any], steps: range) -> None:
    for step in steps:
        rng = np.random.default_rng(step + 1)
        for param, shape in zip(params, SHAPES, strict=True):
            gradient = lib.tensor(rng.normal(size=shape).tolist(), dtype=param.dtype)
            param.grad = gradient.reshape(shape)
        optimizer.step()


def trained(lib: Any, options: dict[str, Any], dtype: str = "float64", steps: int = 20) -> Any:
    params = parameters(lib, dtype)
    optimizer = lib.optim.Muon(params, **options)
    walk(lib, optimizer, params, range(steps))
    return params, optimizer


def assert_same_walk(ours: list[Any], theirs: list[Any], options: dict[str, Any]) -> None:
    """Equal up to the rounding of one update, whose elements are of size lr."""
    for a, b in zip(ours, theirs, strict=True):
        scale = options.get("lr", 1e-3) * ROUNDING
        np.testing.assert_allclose(a.tolist(), b.tolist(), rtol=1e-6, atol=scale)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_twenty_steps_end_at_the_same_numbers(options, dtype):
    assert_same_walk(
        trained(flambeau, options, dtype)[0], trained(torch, options, dtype)[0], options
    )


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_state_dicts_have_the_same_keys_dtypes_and_numbers(options):
    theirs = plain(trained(torch, options)[1].state_dict())
    ours = plain(trained(flambeau, options)[1].state_dict())
    assert ours["param_groups"] == theirs["param_groups"]
    assert list(ours["state"]) == list(theirs["state"])
    for position, expected in theirs["state"].items():
        assert list(ours["state"][position]) == ["momentum_buffer"] == list(expected)
        found, wanted = ours["state"][position]["momentum_buffer"], expected["momentum_buffer"]
        assert found[0] == wanted[0]
        np.testing.assert_allclose(found[1], wanted[1], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("ours_first", [False, True])
def test_training_continues_from_a_state_dict_of_the_other_library(ours_first):
    first, second = (flambeau, torch) if ours_first else (torch, flambeau)
    params, optimizer = trained(first, {"lr": 0.1}, steps=7)
    saved = copy.deepcopy(optimizer.state_dict())
    others = [
        second.tensor(p.tolist(), dtype=second.float64).reshape(shape).requires_grad_()
        for p, shape in zip(params, SHAPES, strict=True)
    ]
    other = second.optim.Muon(others)
    other.load_state_dict(to_torch(saved) if ours_first else converted(saved))
    walk(first, optimizer, params, range(7, 14))
    walk(second, other, others, range(7, 14))
    assert_same_walk(params, others, {"lr": 0.1})


def test_a_tensor_learning_rate_steps_like_the_number():
    ours = trained(flambeau, {"lr": flambeau.tensor([0.1], dtype=flambeau.float64)})[0]
    for a, b in zip(ours, trained(flambeau, {"lr": 0.1})[0], strict=True):
        assert a.tolist() == b.tolist()


@pytest.mark.parametrize("shape", [(4, 6), (6, 4)], ids=str)
def test_an_update_is_about_orthogonal_whatever_the_scale_of_the_gradient(shape):
    param = flambeau.zeros(shape, requires_grad=True)
    param.grad = flambeau.tensor(np.random.default_rng(3).normal(size=shape).tolist()) * 1e4
    flambeau.optim.Muon([param], lr=1.0, adjust_lr_fn="original").step()
    singular = np.linalg.svd(np.array(param.tolist()), compute_uv=False)
    ratio = max(1, shape[0] / shape[1]) ** 0.5
    assert (0.5 * ratio < singular).all()
    assert (singular < 1.5 * ratio).all()


def test_repr_is_the_same_text():
    def text(lib: Any) -> str:
        first, *rest = parameters(lib, "float32")
        return repr(lib.optim.Muon([{"params": [first]}, {"params": rest, "lr": 0.5}]))

    assert text(flambeau) == text(torch)


def test_a_closure_is_called_once_and_its_loss_returned():
    param = flambeau.ones(2, 2, requires_grad=True)
    optimizer = flambeau.optim.Muon([param])

    def closure():
        loss = (param * param).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 4.0


def _complex(lib: Any) -> None:
    param = lib.zeros(2, 2, dtype=lib.complex64)
    param.grad = lib.ones(2, 2, dtype=lib.complex64)
    lib.optim.Muon([param]).step()


def _sparse(lib: Any) -> None:
    param = lib.zeros(2, 2, requires_grad=True)
    param.grad = lib.ones(2, 2).to_sparse()
    lib.optim.Muon([param]).step()


REFUSED = {
    "a vector": lambda lib: lib.optim.Muon([lib.ones(3, requires_grad=True)]),
    "rate": lambda lib: lib.optim.Muon(parameters(lib, "float32"), lr=-1.0),
    "momentum": lambda lib: lib.optim.Muon(parameters(lib, "float32"), momentum=-1.0),
    "decay": lambda lib: lib.optim.Muon(parameters(lib, "float32"), weight_decay=-1.0),
    "two rates": lambda lib: lib.optim.Muon(parameters(lib, "float32"), lr=lib.ones(2)),
    "adjustment": lambda lib: lib.optim.Muon(parameters(lib, "float32"), adjust_lr_fn="none"),
    "steps": lambda lib: trained(lib, {"ns_steps": 100}),
    "coefficients": lambda lib: trained(lib, {"ns_coefficients": (1.0, 2.0)}),
    "complex": _complex,
    "sparse": _sparse,
}


@pytest.mark.parametrize("train", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_optimised_raises_the_same_error(train):
    with pytest.raises(Exception) as theirs:  # noqa: PT011 - it is what we compare with
        train(torch)
    with pytest.raises(Exception) as ours:  # noqa: PT011
        train(flambeau)
    assert type(ours.value) is type(theirs.value)
    assert str(ours.value) == str(theirs.value)
