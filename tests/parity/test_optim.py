"""Optimisers take PyTorch's steps: numbers, state dictionaries, texts and errors."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch

import flambeau
from flambeau_numpy.kernels import optimizer as kernels

GRADIENT = [[0.5, -1.0, 2.0], [1e-4, 0.0, -3.0]]
START = [[1.0, -2.0, 0.5], [0.0, 4.0, -1e-3]]

SGD_OPTIONS = [
    {"lr": 0.1, "momentum": m, "dampening": d, "weight_decay": w, "nesterov": n, "maximize": x}
    for m, d, w, n, x in itertools.product(
        (0, 0.9), (0, 0.3), (0, 0.1), (False, True), (False, True)
    )
    if not n or (m and not d)
]
ADAM_OPTIONS = [
    {"lr": 0.05, "betas": b, "weight_decay": w, "amsgrad": a, "maximize": x}
    for b, w, a, x in itertools.product(
        ((0.9, 0.999), (0.3, 0.5), (0.0, 0.0)), (0, 0.1), (False, True), (False, True)
    )
]
EXECUTION = [{"foreach": True}, {"fused": True}, {"differentiable": False}]
CASES = [
    *[("SGD", options) for options in SGD_OPTIONS],
    *[(name, options) for name in ("Adam", "AdamW") for options in ADAM_OPTIONS],
    *[("Adam", {"decoupled_weight_decay": True, "weight_decay": 0.1})],
    *[(name, options) for name in ("SGD", "Adam", "AdamW") for options in EXECUTION],
]


def parameters(lib: Any, dtype: str = "float64") -> list[Any]:
    """A matrix, a 0-d and an empty parameter."""
    kind = getattr(lib, dtype)
    return [
        lib.tensor(data, dtype=kind, requires_grad=not kind.is_complex) for data in (START, 2.0, [])
    ]


def gradients(lib: Any, step: int, dtype: str) -> list[Any]:
    """Gradients that change from step to step; the second parameter has none in step 3."""
    kind = getattr(lib, dtype)
    unit = 1j if kind.is_complex else 0.0
    factor = (1.0 + 0.5 * unit) * (-0.8) ** step
    return [
        lib.tensor(GRADIENT, dtype=kind) * factor,
        None if step == 3 else lib.tensor(0.7 * factor, dtype=kind),
        lib.tensor([], dtype=kind),
    ]


def walk(lib: Any, optimizer: Any, params: list[Any], steps: range, dtype: str) -> None:
    for step in steps:
        for param, gradient in zip(params, gradients(lib, step, dtype), strict=True):
            param.grad = gradient
        optimizer.step()


def trained(lib: Any, name: str, options: dict[str, Any], dtype: str = "float64", steps: int = 20):
    params = parameters(lib, dtype)
    optimizer = getattr(lib.optim, name)(params, **options)
    walk(lib, optimizer, params, range(steps), dtype)
    return params, optimizer


def plain(value: Any) -> Any:
    """`value` with tensors of either library as (dtype, nested lists)."""
    if isinstance(value, (torch.Tensor, flambeau.Tensor)):
        return str(value.dtype), value.detach().tolist()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(plain(item) for item in value)
    return value


def converted(value: Any) -> Any:
    """`value` with PyTorch's tensors as flambeau's."""
    if isinstance(value, torch.Tensor):
        dtype = getattr(flambeau, str(value.dtype).removeprefix("torch."))
        return flambeau.tensor(value.tolist(), dtype=dtype).reshape(tuple(value.shape))
    if isinstance(value, dict):
        return {key: converted(item) for key, item in value.items()}
    return value


def assert_close(ours: list[Any], theirs: list[Any], rtol: float) -> None:
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a.tolist(), b.tolist(), rtol=rtol, atol=rtol)


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_twenty_steps_end_at_the_same_float64_numbers(name, options):
    theirs, _ = trained(torch, name, options)
    ours, _ = trained(flambeau, name, options)
    assert_close(ours, theirs, 1e-12)


@pytest.mark.parametrize(("name", "options"), CASES[:: len(CASES) // 12], ids=str)
def test_twenty_steps_end_at_the_same_float32_numbers(name, options):
    theirs, _ = trained(torch, name, options, "float32")
    ours, _ = trained(flambeau, name, options, "float32")
    assert_close(ours, theirs, 2e-5)


@pytest.mark.parametrize("options", SGD_OPTIONS[::3], ids=str)
def test_sgd_takes_the_same_steps_on_complex_parameters(options):
    theirs, _ = trained(torch, "SGD", options, "complex128")
    ours, _ = trained(flambeau, "SGD", options, "complex128")
    assert_close(ours, theirs, 1e-12)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_a_tensor_learning_rate_steps_like_the_number(name):
    theirs, _ = trained(torch, name, {"lr": torch.tensor([0.1], dtype=torch.float64)})
    ours, _ = trained(flambeau, name, {"lr": flambeau.tensor([0.1], dtype=flambeau.float64)})
    assert_close(ours, theirs, 1e-12)


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
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


@pytest.mark.parametrize(
    ("name", "options"),
    [("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.5}), ("Adam", {"amsgrad": True})],
    ids=str,
)
def test_training_continues_from_a_state_dict_of_pytorch(name, options):
    theirs, optimizer = trained(torch, name, options, steps=7)
    saved = converted(optimizer.state_dict())
    ours = [flambeau.tensor(p.tolist(), dtype=flambeau.float64, requires_grad=True) for p in theirs]
    resumed = getattr(flambeau.optim, name)(ours)
    resumed.load_state_dict(saved)
    walk(torch, optimizer, theirs, range(7, 14), "float64")
    walk(flambeau, resumed, ours, range(7, 14), "float64")
    assert_close(ours, theirs, 1e-12)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_repr_is_the_same_text(name):
    def text(lib: Any) -> str:
        first, *rest = parameters(lib)
        groups = [{"params": [first]}, {"params": rest, "lr": 0.5}]
        return repr(getattr(lib.optim, name)(groups))

    assert text(flambeau) == text(torch)


def _step_with_two_gradients(lib: Any, name: str, options: dict[str, Any]) -> list[float]:
    """d(parameter after two steps)/d(option) and d/d(gradient), through the steps."""
    kind = lib.float64
    option = {key: lib.tensor(x, dtype=kind, requires_grad=True) for key, x in options.items()}
    gradient = lib.tensor([0.3, -0.2], dtype=kind, requires_grad=True)
    param = lib.tensor([1.0, 2.0], dtype=kind, requires_grad=True).clone()
    optimizer = getattr(lib.optim, name)([param], differentiable=True, **option)
    for _ in range(2):
        param.grad = gradient * 2
        optimizer.step()
    (param * param).sum().backward()
    return [x.grad.tolist() for x in (gradient, *option.values())]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("SGD", {"lr": 0.1}),
        ("SGD", {"lr": 0.1, "weight_decay": 0.2}),
        ("Adam", {"lr": 0.1}),
        ("AdamW", {"lr": 0.1}),
    ],
    ids=str,
)
def test_gradients_flow_through_a_differentiable_step(name, options):
    defaults = torch.get_default_dtype(), flambeau.get_default_dtype()
    # PyTorch keeps the step count in the default dtype, and a differentiable step computes with it.
    torch.set_default_dtype(torch.float64)
    flambeau.set_default_dtype(flambeau.float64)
    try:
        ours = _step_with_two_gradients(flambeau, name, options)
        theirs = _step_with_two_gradients(torch, name, options)
    finally:
        torch.set_default_dtype(defaults[0])
        flambeau.set_default_dtype(defaults[1])
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


BAD_OPTIONS = [
    ("SGD", {"lr": -1.0}),
    ("SGD", {"momentum": -0.5}),
    ("SGD", {"weight_decay": -0.5}),
    ("SGD", {"nesterov": True}),
    ("SGD", {"nesterov": True, "momentum": 0.9, "dampening": 0.1}),
    ("SGD", {"fused": True, "foreach": True}),
    ("SGD", {"fused": True, "differentiable": True}),
    ("Adam", {"lr": -1.0}),
    ("Adam", {"lr": float("nan")}),
    ("Adam", {"eps": -1.0}),
    ("Adam", {"betas": (1.0, 0.999)}),
    ("Adam", {"betas": (0.9, -0.1)}),
    ("Adam", {"betas": (0, 0.999)}),
    ("Adam", {"weight_decay": -0.5}),
    ("Adam", {"fused": True, "foreach": True}),
    ("AdamW", {"fused": True, "differentiable": True}),
]


@pytest.mark.parametrize(("name", "options"), BAD_OPTIONS, ids=str)
def test_options_out_of_range_raise_the_same_error(name, options):
    with pytest.raises(Exception) as theirs:  # noqa: PT011 - it is what we compare with
        getattr(torch.optim, name)(parameters(torch), **options)
    with pytest.raises(Exception) as ours:  # noqa: PT011
        getattr(flambeau.optim, name)(parameters(flambeau), **options)
    assert type(ours.value) is type(theirs.value)
    assert str(ours.value) == str(theirs.value)


BAD_PARAMETERS = {
    "a tensor": lambda lib: lib.ones(2, requires_grad=True),
    "nothing": lambda lib: [],
    "a number": lambda lib: [3.0],
    "not a leaf": lambda lib: [lib.ones(2, requires_grad=True) * 2],
    "a set": lambda lib: [{"params": {lib.ones(2, requires_grad=True)}}],
    "the second group no dict": lambda lib: [{"params": [lib.ones(2)]}, lib.ones(2)],
    "one of two named": lambda lib: [("a", lib.ones(2)), lib.ones(2)],
    "one of two groups named": lambda lib: [
        {"params": [("a", lib.ones(2))]},
        {"params": [lib.ones(2)]},
    ],
    "one in two groups": lambda lib: (lambda p: [{"params": [p]}, {"params": [p]}])(lib.ones(2)),
}


@pytest.mark.parametrize("params", BAD_PARAMETERS.values(), ids=BAD_PARAMETERS)
def test_parameters_that_cannot_be_optimised_raise_the_same_error(params):
    with pytest.raises(Exception) as theirs:  # noqa: PT011
        torch.optim.SGD(params(torch))
    with pytest.raises(Exception) as ours:  # noqa: PT011
        flambeau.optim.SGD(params(flambeau))
    assert type(ours.value) is type(theirs.value)
    expected = str(theirs.value).replace("<class 'torch.Tensor'>", str(flambeau.Tensor))
    assert str(ours.value) == expected


LAYOUTS = {
    "contiguous": lambda shape, values: values.reshape(shape),
    "transposed": lambda shape, values: values.reshape(shape[::-1]).T,
    "every second": lambda shape, values: np.repeat(values, 2).reshape(*shape[:-1], -1)[..., ::2],
}
SHAPES = [(), (0,), (7,), (kernels.BLOCK + 1,), (3, kernels.BLOCK), (300, 250)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_numpy_kernels_take_pytorchs_step_across_blocks_and_layouts(name, layout, shape):
    if not shape:
        layout = "contiguous"
    rng = np.random.default_rng(0)
    size = int(np.prod(shape))
    p, g = (LAYOUTS[layout](shape, rng.normal(size=size)) for _ in range(2))
    g = np.ascontiguousarray(g)  # the layout of a gradient need not be its parameter's
    theirs = torch.tensor(p.tolist(), dtype=torch.float64, requires_grad=True)
    theirs.grad = torch.from_numpy(g.copy()).reshape(theirs.shape)
    state = [np.zeros_like(p) for _ in range(3)]
    if name == "SGD":
        optimizer = torch.optim.SGD([theirs], lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1)
    else:
        optimizer = torch.optim.Adam([theirs], lr=0.1, amsgrad=True, weight_decay=0.1)
    step = np.zeros((), np.float32)
    for _ in range(3):
        optimizer.step()
        if name == "SGD":
            kernels.sgd_step_([p], [g], state[:1], 0.1, 0.9, 0.0, 0.1, True, False)
        else:
            m, v, largest = ([array] for array in state)
            hyper = (0.1, 0.9, 0.999, 1e-8, 0.1, False, True, False)
            kernels.adam_step_([p], [g], m, v, largest, [step], *hyper)
    np.testing.assert_allclose(p, theirs.detach().numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_numpy_kernels_round_half_precision_once_per_step(dtype):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    kind = np.dtype(getattr(np, dtype, None) or getattr(ml_dtypes, dtype))
    p, g = (np.linspace(a, 2.0, 50, dtype=np.float32).astype(kind) for a in (-2.0, 0.3))
    exact = p.astype(np.float32) - np.float32(0.1) * g.astype(np.float32)
    kernels.sgd_step_([p], [g], [], 0.1, 0.0, 0.0, 0.0, False, False)
    assert p.dtype == kind
    assert (p == exact.astype(kind)).all()
