"""Steps of optimisers as functions, by PyTorch's signatures, beside PyTorch's bit by bit."""

from __future__ import annotations

import importlib
import inspect

import numpy as np
import pytest
import torch

from flambeau.compat import torch_alias

_ADAM = {"lr": 0.01, "beta1": 0.9, "beta2": 0.99, "weight_decay": 0.1, "eps": 1e-8}
_STATE = {"exp_avgs": 0, "exp_avg_sqs": 0, "state_steps": None}
# Function, the names of its lists with their first value (None for a count), options.
_CASES = [
    ("adam", {**_STATE, "max_exp_avg_sqs": 0}, {**_ADAM, "amsgrad": True, "maximize": False}),
    ("adam", {**_STATE, "max_exp_avg_sqs": 0}, {**_ADAM, "amsgrad": False, "maximize": True}),
    ("adamw", {**_STATE, "max_exp_avg_sqs": 0}, {**_ADAM, "amsgrad": False, "maximize": False}),
    (
        "rmsprop",
        {"square_avgs": 0, "grad_avgs": 0, "momentum_buffer_list": 0, "state_steps": None},
        {
            "lr": 0.01,
            "alpha": 0.9,
            "eps": 1e-8,
            "weight_decay": 0.1,
            "momentum": 0.5,
            "centered": True,
        },
    ),
    (
        "adagrad",
        {"state_sums": 0.5, "state_steps": None},
        {"lr": 0.1, "weight_decay": 0.1, "lr_decay": 0.2, "eps": 1e-10, "maximize": False},
    ),
    (
        "adadelta",
        {"square_avgs": 0, "acc_deltas": 0, "state_steps": None},
        {"lr": 1.0, "rho": 0.9, "eps": 1e-6, "weight_decay": 0.1, "maximize": True},
    ),
    ("adamax", {"exp_avgs": 0, "exp_infs": 0, "state_steps": None}, _ADAM),
    (
        "asgd",
        {"axs": 0, "mus": 1.0, "etas": 0.01, "state_steps": None},
        {"lambd": 1e-4, "lr": 0.01, "t0": 1.0, "alpha": 0.75, "weight_decay": 0.1},
    ),
    ("nadam", {**_STATE, "mu_products": 1.0}, {**_ADAM, "momentum_decay": 4e-3}),
    ("radam", _STATE, {**_ADAM, "decoupled_weight_decay": True}),
    (
        "rprop",
        {"prevs": 0, "step_sizes": 0.01, "state_steps": None},
        {"step_size_min": 1e-6, "step_size_max": 50.0, "etaminus": 0.5, "etaplus": 1.2},
    ),
]
_SCALARS = ("mus", "etas", "mu_products", "state_steps")
_SHAPES = ((5,), (3, 4))
# One kernel for the whole step rounds elsewhere than the ops that PyTorch's step is made of.
_ROUNDED_ELSEWHERE = ("adadelta", "adagrad", "radam", "rmsprop")


def _drawn(library, seed):
    drawn = np.random.default_rng(seed)
    return [library.tensor(drawn.standard_normal(s).astype(np.float32)) for s in _SHAPES]


def _first(library, name, value):
    if name in _SCALARS:
        return [library.tensor(float(value or 0)) for _ in _SHAPES]
    return [library.full(shape, float(value)) for shape in _SHAPES]


def _after_steps(library, name, lists, options):
    function = getattr(importlib.import_module(f"torch.optim.{name}"), name)
    params = _drawn(library, 0)
    state = {key: _first(library, key, value) for key, value in lists.items()}
    with library.no_grad():
        for seed in range(1, 8):
            function(params, _drawn(library, seed), **state, **options)
    return [x.numpy() for values in (params, *state.values()) for x in values]


@pytest.mark.parametrize(("name", "lists", "options"), _CASES)
def test_steps_are_those_of_pytorch(name, lists, options):
    expected = _after_steps(torch, name, lists, options)
    with torch_alias() as alias:
        found = _after_steps(alias, name, lists, options)
    for ours, theirs in zip(found, expected, strict=True):
        if name in _ROUNDED_ELSEWHERE:
            np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-7)
        else:
            np.testing.assert_array_equal(ours, theirs)


_SGD = {"weight_decay": 0.1, "momentum": 0.9, "lr": 0.1, "dampening": 0.5, "maximize": False}


@pytest.mark.parametrize(
    "options",
    [
        {**_SGD, "nesterov": False},
        {**_SGD, "dampening": 0.0, "nesterov": True, "maximize": True},
        {**_SGD, "momentum": 0.0, "nesterov": False},
    ],
    ids=str,
)
def test_gradient_descent_begins_buffers_where_there_are_none(options):
    def run(library):
        sgd = importlib.import_module("torch.optim._functional").sgd
        params, buffers = _drawn(library, 0), [None] * len(_SHAPES)
        with library.no_grad():
            for seed in range(1, 6):
                sgd(params, _drawn(library, seed), buffers, **options)
        return [None if x is None else x.numpy() for x in (*params, *buffers)]

    expected = run(torch)
    with torch_alias() as alias:
        found = run(alias)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning")
def test_sparse_gradients_step_only_the_rows_that_they_have():
    def run(library):
        steps = importlib.import_module("torch.optim._functional")
        results = []
        for name in ("sgd", "adagrad", "sparse_adam"):
            table, first, second = library.ones(4, 2), library.zeros(4, 2), library.zeros(4, 2)
            count = library.tensor(0.0)
            with library.no_grad():
                for row in (1, 3, 1):
                    grad = library.sparse_coo_tensor([[row]], [[0.5, float(row)]], (4, 2))
                    plain = {"lr": 0.1, "maximize": False}
                    if name == "sgd":
                        more = {"weight_decay": 0, "dampening": 0, "nesterov": False}
                        steps.sgd([table], [grad], [None], True, momentum=0, **more, **plain)
                    elif name == "adagrad":
                        more = {"weight_decay": 0, "lr_decay": 0.1, "eps": 1e-10}
                        steps.adagrad(
                            [table], [grad], [first], [count], has_sparse_grad=True, **more, **plain
                        )
                    else:
                        more = {"beta1": 0.9, "beta2": 0.99, "eps": 1e-8}
                        count += 1
                        steps.sparse_adam(
                            [table], [grad], [first], [second], [int(count)], **more, **plain
                        )
            results += [table.numpy(), first.numpy(), second.numpy()]
        return results

    expected = run(torch)
    with torch_alias() as alias:
        found = run(alias)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_signatures_are_those_of_pytorch():
    names = sorted({case[0] for case in _CASES} | {"sgd"})

    def parameters():
        steps = importlib.import_module("torch.optim._functional")
        return {
            name: [
                (p.name, p.kind, p.default)
                for p in inspect.signature(getattr(steps, name)).parameters.values()
            ]
            for name in (*names, "sparse_adam")
        }

    expected = parameters()
    with torch_alias():
        assert parameters() == expected


def test_line_searches_find_the_points_that_pytorch_finds():
    def run(library):
        search = importlib.import_module("torch.optim.lbfgs")

        def objective(x, t, d):
            place = x + t * d
            value = (1 - place[0]) ** 2 + 100 * (place[1] - place[0] ** 2) ** 2
            slope0 = -2 * (1 - place[0]) - 400 * place[0] * (place[1] - place[0] ** 2)
            slope1 = 200 * (place[1] - place[0] ** 2)
            return float(value), library.stack([slope0, slope1])

        x = library.tensor([-1.0, 2.0], dtype=library.float64)
        loss, grad = objective(x, 0.0, x)
        direction = -grad
        results = []
        for first in (1e-4, 1e-2, 1.0):
            slope = grad.dot(direction)
            found = search._strong_wolfe(objective, x, first, direction, loss, grad, slope)
            value, new, t, used = found
            results += [float(value), *new.tolist(), float(t), used]
        slopes = library.tensor([-2.0, 1.0], dtype=library.float64)
        ends = (0.0, 1.0, slopes[0], 1.0, 0.5, slopes[1])
        results.append(float(search._cubic_interpolate(*ends)))
        results.append(float(search._cubic_interpolate(*ends, bounds=(0.0, 0.3))))
        return results

    expected = run(torch)
    with torch_alias() as alias:
        assert run(alias) == pytest.approx(expected, rel=1e-9)


def test_fused_steps_take_gradients_of_a_scaled_loss():
    lists = {**_STATE, "max_exp_avg_sqs": 0}
    options = {**_ADAM, "amsgrad": True, "maximize": False}

    def run(library, overflow):
        adam = importlib.import_module("torch.optim.adam").adam
        params, grads = _drawn(library, 0), _drawn(library, 1)
        state = {key: _first(library, key, value) for key, value in lists.items()}
        scale, found = library.tensor(4.0), library.tensor(float(overflow))
        with library.no_grad():
            adam(params, grads, **state, **options, fused=True, grad_scale=scale, found_inf=found)
        return [x.numpy() for x in (*params, *state["state_steps"])]

    for overflow in (False, True):
        expected = run(torch, overflow)
        with torch_alias() as alias:
            found = run(alias, overflow)
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_only_fused_steps_take_a_scale():
    with torch_alias() as alias:
        sgd = importlib.import_module("torch.optim.sgd").sgd
        drawn, scale = _drawn(alias, 0), alias.tensor(2.0)
        with pytest.raises(AssertionError, match="to be None"):
            sgd(drawn, drawn, [None, None], grad_scale=scale, **_SGD, nesterov=False)
