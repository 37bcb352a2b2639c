"""LBFGS takes PyTorch's iterations."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import flambeau  # noqa: E402 - the helpers need torch
from test_optim import assert_close, converted  # noqa: E402
from test_optim_elementwise import to_torch  # noqa: E402


def rosenbrock(lib: Any, x: Any, y: Any) -> Any:
    return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2 + (y - x.sum()) ** 2


def quadratic(lib: Any, x: Any, y: Any) -> Any:
    return (x * x * 3).sum() + (y - 2) ** 2 * 0.1


def quartic(lib: Any, x: Any, y: Any) -> Any:
    return (x**4).sum() + (x[0] * x[1] - 1) ** 2 + (y**2 + 1).sqrt()


def wavy(lib: Any, x: Any, y: Any) -> Any:
    return (3 * x).sin().sum() + 0.1 * (x * x).sum() + (y + x[0]).cos() + 0.05 * y * y


OBJECTIVES = (rosenbrock, quadratic, quartic, wavy)
OPTIONS = [
    {"lr": 0.01},
    {"lr": 0.05, "max_iter": 7},
    {"lr": 0.1, "history_size": 2},
    {"line_search_fn": "strong_wolfe"},
    {"line_search_fn": "strong_wolfe", "lr": 0.3, "max_iter": 4},
    {"line_search_fn": "strong_wolfe", "lr": 5.0, "max_eval": 3},
    {"line_search_fn": "strong_wolfe", "max_eval": 1},
    {"line_search_fn": "strong_wolfe", "history_size": 1, "max_iter": 3},
    {"line_search_fn": "strong_wolfe", "tolerance_grad": 0.1},
    {"line_search_fn": "strong_wolfe", "tolerance_change": 0.1},
]


def start(lib: Any, values: Any = ((-1.2, 1.0), 0.5), dtype: str = "float64") -> list[Any]:
    return [lib.tensor(v, dtype=getattr(lib, dtype), requires_grad=True) for v in values]


def walk(lib: Any, optimizer: Any, params: list[Any], objective: Any, steps: int) -> list[float]:
    calls = []

    def closure() -> Any:
        optimizer.zero_grad()
        loss = objective(lib, *params)
        loss.backward()
        calls.append(loss.item())
        return loss

    losses = [optimizer.step(closure).item() for _ in range(steps)]
    return [*losses, *calls]


def minimised(lib: Any, objective: Any, options: dict[str, Any], steps: int) -> tuple[Any, ...]:
    params = start(lib)
    optimizer = lib.optim.LBFGS(params, **options)
    return walk(lib, optimizer, params, objective, steps), params, optimizer


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_evaluation_is_at_the_same_place(objective, options):
    theirs, their_params, _ = minimised(torch, objective, options, 3)
    ours, our_params, _ = minimised(flambeau, objective, options, 3)
    assert len(ours) == len(theirs)
    # Iterations amplify the last digit in which sums differ.
    np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-10)
    assert_close(our_params, their_params, 1e-7)


@pytest.mark.parametrize("options", [OPTIONS[0], OPTIONS[3]], ids=str)
def test_a_first_step_ends_at_the_same_float64_numbers(options):
    options = {**options, "max_iter": 3}
    _, theirs, _ = minimised(torch, quartic, options, 1)
    _, ours, _ = minimised(flambeau, quartic, options, 1)
    assert_close(ours, theirs, 1e-12)


def test_the_line_search_reaches_the_minimum_of_rosenbrock():
    ends = []
    for lib in (flambeau, torch):
        _, (x, y), _ = minimised(lib, rosenbrock, {"line_search_fn": "strong_wolfe"}, 5)
        ends.append([*x.tolist(), y.item()])
    # Both stop where a step would change the objective by less than 1e-9: 1e-5 of the way.
    np.testing.assert_allclose(ends[0], [1.0, 1.0, 2.0], atol=1e-5)
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-10)


def test_an_objective_that_falls_in_a_straight_line_is_followed_like_pytorch():
    def slope(lib: Any, x: Any, y: Any) -> Any:
        return x.sum() * 2 - y

    options = {"line_search_fn": "strong_wolfe", "max_iter": 2}
    theirs, ours = (minimised(lib, slope, options, 1)[0] for lib in (torch, flambeau))
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_a_parameter_without_gradient_stays():
    x, unused = start(flambeau, ([3.0], [7.0]))
    optimizer = flambeau.optim.LBFGS([unused, x])

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (x * x).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    assert unused.tolist() == [7.0]
    assert abs(x.item()) < 1e-6


def test_parameters_at_the_optimum_stay():
    x = flambeau.zeros(2, dtype=flambeau.float64, requires_grad=True)
    optimizer = flambeau.optim.LBFGS([x])
    walk(flambeau, optimizer, [x], lambda lib, x: (x * x).sum(), 1)
    assert x.tolist() == [0.0, 0.0]
    assert optimizer.state[x] == {"func_evals": 1, "n_iter": 0}


@pytest.mark.parametrize("line_search", [None, "strong_wolfe"])
def test_state_dicts_have_the_same_keys_and_numbers(line_search):
    def numbers(value: Any) -> Any:
        if isinstance(value, (torch.Tensor, flambeau.Tensor)):
            return value.tolist()
        return [numbers(v) for v in value if v is not None] if isinstance(value, list) else value

    options = {"lr": 0.1, "line_search_fn": line_search, "max_iter": 4}
    theirs = minimised(torch, quartic, options, 2)[2].state_dict()
    ours = minimised(flambeau, quartic, options, 2)[2].state_dict()
    assert ours["param_groups"] == theirs["param_groups"]
    assert list(ours["state"]) == [0]
    assert set(ours["state"][0]) == set(theirs["state"][0])
    for key, value in theirs["state"][0].items():
        np.testing.assert_allclose(
            numbers(ours["state"][0][key]), numbers(value), rtol=1e-9, atol=1e-12, err_msg=key
        )


@pytest.mark.parametrize("options", [OPTIONS[1], OPTIONS[4]], ids=str)
def test_state_dicts_are_interchangeable_in_both_directions(options):
    _, theirs, their_optimizer = minimised(torch, quartic, options, 1)
    _, ours, our_optimizer = minimised(flambeau, quartic, options, 1)
    resumed_theirs = [torch.tensor(p.tolist(), dtype=torch.float64) for p in ours]
    resumed_ours = [flambeau.tensor(p.tolist(), dtype=flambeau.float64) for p in theirs]
    for p in (*resumed_theirs, *resumed_ours):
        p.requires_grad_()
    in_torch = torch.optim.LBFGS(resumed_theirs)
    in_torch.load_state_dict(to_torch(our_optimizer.state_dict()))
    in_ours = flambeau.optim.LBFGS(resumed_ours)
    saved = copy.deepcopy(their_optimizer.state_dict())
    state = saved["state"][0]
    for key in ("old_dirs", "old_stps", "ro", "al"):
        state[key] = [converted(value) for value in state[key]]
    in_ours.load_state_dict(converted(saved))

    runs = [
        walk(torch, their_optimizer, theirs, quartic, 2),
        walk(torch, in_torch, resumed_theirs, quartic, 2),
        walk(flambeau, in_ours, resumed_ours, quartic, 2),
        walk(flambeau, our_optimizer, ours, quartic, 2),
    ]
    for run in runs[1:]:
        np.testing.assert_allclose(run, runs[0], rtol=1e-9)


def test_repr_is_the_same_text():
    assert repr(flambeau.optim.LBFGS(start(flambeau))) == repr(torch.optim.LBFGS(start(torch)))


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda lib: lib.optim.LBFGS(start(lib), lr=-1.0), ValueError),
        (lambda lib: lib.optim.LBFGS(start(lib), lr=lib.ones(2)), ValueError),
        (lambda lib: lib.optim.LBFGS([{"params": [p]} for p in start(lib)]), ValueError),
        (lambda lib: minimised(lib, quartic, {"line_search_fn": "golden"}, 1), RuntimeError),
    ],
)
def test_what_cannot_be_optimised_raises_the_same_error(make, error):
    with pytest.raises(error) as theirs:
        make(torch)
    with pytest.raises(error) as ours:
        make(flambeau)
    assert str(ours.value) == str(theirs.value)


def test_complex_parameters_are_refused_with_the_remedy():
    with pytest.raises(NotImplementedError, match="real and imaginary parts as two parameters"):
        flambeau.optim.LBFGS([flambeau.zeros(2, dtype=flambeau.complex64)])


def test_single_precision_follows_pytorch():
    def run(lib: Any) -> list[Any]:
        params = start(lib, dtype="float32")
        options = {"line_search_fn": "strong_wolfe", "max_iter": 5}
        walk(lib, lib.optim.LBFGS(params, **options), params, quartic, 1)
        return params

    assert_close(run(flambeau), run(torch), 1e-3)
