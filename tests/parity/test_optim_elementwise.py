"""Optimisers that treat every element by itself take PyTorch's steps."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import flambeau  # noqa: E402 - the helpers need torch
from flambeau_numpy.kernels import KERNELS as NUMPY  # noqa: E402
from flambeau_numpy.kernels.optimizer import BLOCK  # noqa: E402
from test_optim import (  # noqa: E402
    LAYOUTS,
    assert_close,
    converted,
    parameters,
    plain,
    trained,
    walk,
)


def every(**choices: tuple[Any, ...]) -> list[dict[str, Any]]:
    return [
        dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values())
    ]


COMMON = {"lr": (0.05,), "weight_decay": (0, 0.1), "maximize": (False, True)}
BETAS = ((0.9, 0.999), (0.3, 0.5), (0.0, 0.0))
OPTIONS = {
    "Adadelta": every(**COMMON, rho=(0.9, 0.0, 1.0), eps=(1e-6, 0.1)),
    "Adagrad": every(**COMMON, lr_decay=(0, 0.2), initial_accumulator_value=(0, 0.3)),
    "Adamax": every(**COMMON, betas=BETAS, eps=(1e-8, 0.1)),
    "ASGD": every(**COMMON, lambd=(1e-4, 0.3), alpha=(0.75, 0.1), t0=(1e6, 4)),
    "RMSprop": every(**COMMON, alpha=(0.99, 0.5), momentum=(0, 0.9), centered=(False, True)),
    "Rprop": every(
        lr=(0.05,),
        etas=((0.5, 1.2), (0.2, 3.0)),
        step_sizes=((1e-6, 50), (0.01, 0.2)),
        maximize=(False, True),
    ),
    "NAdam": every(
        **COMMON, betas=BETAS, momentum_decay=(4e-3, 0.5), decoupled_weight_decay=(False, True)
    ),
    "RAdam": every(**COMMON, betas=(*BETAS, (0.9, 0.9)), decoupled_weight_decay=(False, True)),
}
NAMES = list(OPTIONS)
CASES = [
    *[(name, options) for name, choices in OPTIONS.items() for options in choices],
    *[(name, {}) for name in NAMES],
    # PyTorch's own two forms of ASGD differ in the last digits: one rounds products to float32.
    *[(name, {"foreach": True}) for name in NAMES if name != "ASGD"],
    ("Adagrad", {"fused": True}),
]
COMPLEX = [
    *[(name, choices[1]) for name, choices in OPTIONS.items()],
    *[(name, choices[-1]) for name, choices in OPTIONS.items()],
    *[(name, {"weight_decay": 0.1, "amsgrad": True}) for name in ("Adam", "AdamW")],
]


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_twenty_steps_end_at_the_same_float64_numbers(name, options):
    theirs, _ = trained(torch, name, options)
    ours, _ = trained(flambeau, name, options)
    assert_close(ours, theirs, 1e-12)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_twenty_steps_end_at_the_same_numbers_in_smaller_dtypes(name, dtype):
    theirs, _ = trained(torch, name, {"lr": 0.05}, dtype)
    ours, _ = trained(flambeau, name, {"lr": 0.05}, dtype)
    assert_close(ours, theirs, 2e-5 if dtype == "float32" else 0.1)


@pytest.mark.parametrize("name", NAMES)
def test_a_tensor_learning_rate_steps_like_the_number(name):
    theirs, _ = trained(torch, name, {"lr": 0.1})
    ours, _ = trained(flambeau, name, {"lr": flambeau.tensor([0.1], dtype=flambeau.float64)})
    assert_close(ours, theirs, 1e-12)


@pytest.mark.parametrize(("name", "options"), CASES[::3], ids=str)
def test_state_dicts_have_the_same_keys_dtypes_and_numbers(name, options):
    theirs = plain(trained(torch, name, options)[1].state_dict())
    ours = plain(trained(flambeau, name, options)[1].state_dict())
    assert ours["param_groups"] == theirs["param_groups"]
    assert list(ours["state"]) == list(theirs["state"])
    for position, expected in theirs["state"].items():
        assert list(ours["state"][position]) == list(expected)
        for key, (dtype, values) in expected.items():
            assert ours["state"][position][key][0] == dtype
            np.testing.assert_allclose(
                ours["state"][position][key][1], values, rtol=1e-12, atol=1e-12
            )


@pytest.mark.parametrize("name", NAMES)
def test_a_step_is_one_call_of_the_kernel_for_all_parameters_of_a_group(name, monkeypatch):
    sizes = []
    kernels = flambeau.zeros(())._be.kernels
    op = f"{name.lower()}_step_"
    kernel = kernels[op]

    def counting(params: list[Any], *args: Any) -> None:
        sizes.append(len(params))
        kernel(params, *args)

    monkeypatch.setitem(kernels, op, counting)
    theirs, _ = trained(torch, name, {}, steps=2)
    ours, _ = trained(flambeau, name, {}, steps=2)
    assert_close(ours, theirs, 1e-12)
    assert sizes == [3, 3]


@pytest.mark.parametrize("shape", [(), (0,), (7,), (BLOCK + 1,), (3, BLOCK), (300, 250)], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", NAMES)
def test_numpy_kernels_take_pytorchs_step_across_blocks_and_layouts(
    name, layout, shape, monkeypatch
):
    op = f"{name.lower()}_step_"
    monkeypatch.setitem(flambeau.zeros(())._be.kernels, op, NUMPY[op])
    arrange = LAYOUTS[layout if shape else "contiguous"]
    found = []
    for lib in (flambeau, torch):
        rng = np.random.default_rng(0)
        p, g = (arrange(shape, rng.normal(size=int(np.prod(shape)))) for _ in range(2))
        g = np.array(g, order="C")  # the layout of a gradient need not be its parameter's
        param = lib.from_numpy(p).requires_grad_()
        optimizer = getattr(lib.optim, name)([param], **OPTIONS[name][-1])
        for step in range(3):
            param.grad = lib.from_numpy(np.asarray(g * (-0.7) ** step))
            optimizer.step()
        found.append(param.detach().numpy())
    np.testing.assert_allclose(found[0], found[1], rtol=1e-11, atol=1e-12)


def to_torch(value: Any) -> Any:
    """`value` with flambeau's tensors as PyTorch's."""
    if isinstance(value, flambeau.Tensor):
        dtype = getattr(torch, str(value.dtype).split(".")[-1])
        return torch.tensor(value.tolist(), dtype=dtype).reshape(tuple(value.shape))
    if isinstance(value, dict):
        return {key: to_torch(item) for key, item in value.items()}
    return [to_torch(item) for item in value] if isinstance(value, list) else value


RESUMED = {
    "RMSprop": {"momentum": 0.9, "centered": True},
    "ASGD": {"t0": 3, "lambd": 0.3},
    "Adagrad": {"initial_accumulator_value": 0.3},
}


@pytest.mark.parametrize("name", NAMES)
def test_training_continues_from_a_state_dict_of_pytorch(name):
    theirs, optimizer = trained(torch, name, RESUMED.get(name, {}), steps=7)
    saved = converted(copy.deepcopy(optimizer.state_dict()))
    ours = [flambeau.tensor(p.tolist(), dtype=flambeau.float64, requires_grad=True) for p in theirs]
    resumed = getattr(flambeau.optim, name)(ours)
    resumed.load_state_dict(saved)
    # Loading casts what PyTorch keeps in float32: both sides have to load.
    optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    walk(torch, optimizer, theirs, range(7, 14), "float64")
    walk(flambeau, resumed, ours, range(7, 14), "float64")
    assert_close(ours, theirs, 1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_pytorch_continues_from_our_state_dict(name):
    ours, optimizer = trained(flambeau, name, RESUMED.get(name, {}), steps=7)
    theirs = [torch.tensor(p.tolist(), dtype=torch.float64, requires_grad=True) for p in ours]
    resumed = getattr(torch.optim, name)(theirs)
    resumed.load_state_dict(to_torch(optimizer.state_dict()))
    optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    walk(torch, resumed, theirs, range(7, 14), "float64")
    walk(flambeau, optimizer, ours, range(7, 14), "float64")
    assert_close(ours, theirs, 1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_state_of_old_versions_with_float_counts_is_taken(name):
    def old(lib: Any) -> list[Any]:
        params, optimizer = trained(lib, name, {}, steps=3)
        saved = optimizer.state_dict()
        for entry in saved["state"].values():
            for key in ("step", "eta", "mu", "mu_product"):
                if key in entry:
                    entry[key] = entry[key].item()
        for group in saved["param_groups"]:
            for key in ("foreach", "maximize", "differentiable", "capturable", "fused"):
                group.pop(key, None)
        optimizer.load_state_dict(saved)
        walk(lib, optimizer, params, range(3, 6), "float64")
        return params

    assert_close(old(flambeau), old(torch), 1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_repr_is_the_same_text(name):
    def text(lib: Any) -> str:
        first, *rest = parameters(lib)
        groups = [{"params": [first]}, {"params": rest, "lr": 0.5}]
        return repr(getattr(lib.optim, name)(groups))

    assert text(flambeau) == text(torch)


BAD_OPTIONS = [
    *[(name, {"lr": lr}) for name in NAMES for lr in (-1.0, float("nan"))],
    *[(name, {"weight_decay": -0.5}) for name in NAMES if name != "Rprop"],
    *[(name, {"eps": -0.5}) for name in NAMES if name not in ("Rprop", "ASGD")],
    *[
        (name, {"betas": betas})
        for name in ("Adamax", "NAdam", "RAdam")
        for betas in ((1.0, 0.5), (0.5, -0.1))
    ],
    ("Adadelta", {"rho": 1.5}),
    ("Adagrad", {"lr_decay": -1.0}),
    ("Adagrad", {"initial_accumulator_value": -1.0}),
    ("Adagrad", {"fused": True, "foreach": True}),
    ("Adagrad", {"fused": True, "differentiable": True}),
    ("RMSprop", {"momentum": -1.0}),
    ("RMSprop", {"alpha": -1.0}),
    ("Rprop", {"etas": (0.5, 0.9)}),
    ("NAdam", {"momentum_decay": -1.0}),
]


@pytest.mark.parametrize(("name", "options"), BAD_OPTIONS, ids=str)
def test_options_out_of_range_raise_the_same_error(name, options):
    with pytest.raises(Exception) as theirs:  # noqa: PT011 - it is what we compare with
        getattr(torch.optim, name)(parameters(torch), **options)
    with pytest.raises(Exception) as ours:  # noqa: PT011
        getattr(flambeau.optim, name)(parameters(flambeau), **options)
    assert type(ours.value) is type(theirs.value)
    assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize("name", NAMES)
def test_a_learning_rate_of_two_elements_is_refused(name):
    with pytest.raises(ValueError, match="Tensor lr must be 1-element"):
        getattr(flambeau.optim, name)(parameters(flambeau), lr=flambeau.ones(2))


@pytest.mark.parametrize(("name", "options"), COMPLEX, ids=str)
def test_complex_parameters_take_the_same_steps_and_keep_the_same_state(name, options):
    theirs, optimizer = trained(torch, name, options, "complex128")
    expected = plain(optimizer.state_dict()["state"])
    ours, optimizer = trained(flambeau, name, options, "complex128")
    assert_close(ours, theirs, 1e-12)
    found = plain(optimizer.state_dict()["state"])
    for position, entry in expected.items():
        for key, (dtype, values) in entry.items():
            assert found[position][key][0] == dtype
            np.testing.assert_allclose(found[position][key][1], values, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_a_closure_is_called_once_with_gradients_on_and_its_loss_returned(name):
    param = flambeau.tensor([1.0], requires_grad=True)
    optimizer = getattr(flambeau.optim, name)([param], lr=0.1)
    losses = []

    def closure():
        optimizer.zero_grad()
        loss = (param * param).sum()
        loss.backward()
        losses.append(loss)
        return loss

    with flambeau.no_grad():
        assert optimizer.step(closure) is losses[0]
    assert len(losses) == 1
    assert param.item() < 1.0


@pytest.mark.parametrize("name", NAMES)
def test_non_contiguous_parameters_take_the_same_steps(name):
    def run(lib: Any) -> list[Any]:
        param = lib.tensor([[1.0, 3.0], [3.0, 4.0]], dtype=lib.float64).t().requires_grad_()
        optimizer = getattr(lib.optim, name)([param])
        for _ in range(3):
            param.grad = lib.tensor([[0.1, -0.2], [0.3, 0.4]], dtype=lib.float64)
            optimizer.step()
        return [param]

    assert_close(run(flambeau), run(torch), 1e-12)


# Those of ASGD and Rprop are state, which a step reads as numbers.
@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("ASGD", "Rprop")])
def test_a_learning_rate_that_requires_a_gradient_gets_that_of_a_difference_quotient(name):
    def end(lr: Any) -> Any:
        param = flambeau.tensor([1.0, 3.0], dtype=flambeau.float64, requires_grad=True).clone()
        optimizer = getattr(flambeau.optim, name)([param], lr=lr, differentiable=True)
        for _ in range(2):
            param.grad = flambeau.tensor([0.3, -0.2], dtype=flambeau.float64)
            optimizer.step()
        return (param * param).sum()

    lr = flambeau.tensor(0.1, dtype=flambeau.float64, requires_grad=True)
    end(lr).backward()
    quotient = (end(0.1 + 1e-6) - end(0.1 - 1e-6)).item() / 2e-6
    assert lr.grad.item() == pytest.approx(quotient, rel=1e-6)


def _gradient_through_steps(lib: Any, name: str, steps: int) -> list[float]:
    gradient = lib.tensor([0.3, -0.2], dtype=lib.float64, requires_grad=True)
    param = lib.tensor([1.0, 3.0], dtype=lib.float64, requires_grad=True).clone()
    decay = {} if name == "Rprop" else {"weight_decay": 0.1}
    optimizer = getattr(lib.optim, name)([param], lr=0.1, differentiable=True, **decay)
    for step in range(steps):
        param.grad = gradient * (step + 1) ** 2
        optimizer.step()
    (param * param).sum().backward()
    return gradient.grad.tolist()


@pytest.mark.parametrize("name", NAMES)
def test_gradients_flow_through_a_differentiable_step(name):
    ours, theirs = (_gradient_through_steps(lib, name, 1) for lib in (flambeau, torch))
    # PyTorch keeps the step count and products of NAdam in float32 there.
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_gradients_through_three_steps_are_difference_quotients(name):
    def end(values: list[float]) -> float:
        param = flambeau.tensor([1.0, 3.0], dtype=flambeau.float64, requires_grad=True)
        decay = {} if name == "Rprop" else {"weight_decay": 0.1}
        optimizer = getattr(flambeau.optim, name)([param], lr=0.1, **decay)
        for step in range(3):
            param.grad = flambeau.tensor(values, dtype=flambeau.float64) * (step + 1) ** 2
            optimizer.step()
        return (param * param).sum().item()

    start, h = [0.3, -0.2], 1e-6
    quotients = [
        (
            end([start[0] + h * (i == 0), start[1] + h * (i == 1)])
            - end([start[0] - h * (i == 0), start[1] - h * (i == 1)])
        )
        / (2 * h)
        for i in range(2)
    ]
    np.testing.assert_allclose(
        _gradient_through_steps(flambeau, name, 3), quotients, rtol=1e-5, atol=1e-7
    )
