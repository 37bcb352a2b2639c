"""The compiled steps of the optimisers other than SGD and Adam against the NumPy kernels."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from flambeau_native.kernels import KERNELS as COMPILED
from flambeau_native.kernels import optimizer
from flambeau_numpy.kernels import KERNELS as NUMPY

DTYPES = [np.float32, np.float64]


def numbers(shape, dtype, seed):
    return np.random.default_rng(seed).normal(0, 2, shape).astype(dtype)


def vary(**choices):
    return [
        dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values())
    ]


DECAY, MAXIMIZE, DECOUPLED = (0.0, 0.1), (False, True), (False, True)
# Of each op: its arrays of state, its 0-d state with the first values, its plain arguments.
STEPS = {
    "rmsprop_step_": (
        3,
        [0.0],
        vary(
            lr=(0.1,),
            alpha=(0.9, 0.3),
            eps=(1e-8,),
            weight_decay=DECAY,
            momentum=(0.0, 0.9),
            centered=(False, True),
            maximize=MAXIMIZE,
        ),
    ),
    "adagrad_step_": (
        1,
        [0.0],
        vary(lr=(0.1,), lr_decay=(0.0, 0.2), eps=(1e-8,), weight_decay=DECAY, maximize=MAXIMIZE),
    ),
    "adadelta_step_": (
        2,
        [0.0],
        vary(lr=(0.1,), rho=(0.9, 0.0), eps=(1e-3,), weight_decay=DECAY, maximize=MAXIMIZE),
    ),
    "adamax_step_": (
        2,
        [0.0],
        vary(
            lr=(0.1,),
            beta1=(0.9, 0.3),
            beta2=(0.99,),
            eps=(1e-8,),
            weight_decay=DECAY,
            maximize=MAXIMIZE,
        ),
    ),
    "nadam_step_": (
        2,
        [1.0, 0.0],
        vary(
            lr=(0.1,),
            beta1=(0.9, 0.3),
            beta2=(0.99,),
            eps=(1e-8,),
            weight_decay=DECAY,
            momentum_decay=(0.1,),
            decoupled=DECOUPLED,
            maximize=MAXIMIZE,
        ),
    ),
    "radam_step_": (
        2,
        [0.0],
        vary(
            lr=(0.1,),
            beta1=(0.9, 0.3),
            beta2=(0.99,),
            eps=(1e-8,),
            weight_decay=DECAY,
            decoupled=DECOUPLED,
            maximize=MAXIMIZE,
        ),
    ),
    "asgd_step_": (
        1,
        [0.1, 1.0, 0.0],
        vary(
            lr=(0.1,),
            lambd=(0.1,),
            alpha=(0.75,),
            t0=(1.0, 1e6),
            weight_decay=DECAY,
            maximize=MAXIMIZE,
        ),
    ),
    "rprop_step_": (
        2,
        [0.0],
        vary(shrink=(0.5,), grow=(1.2,), smallest=(1e-6, 0.2), largest=(0.5,), maximize=MAXIMIZE),
    ),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("name", "options"),
    [(name, options) for name, (_, _, choices) in STEPS.items() for options in choices],
    ids=str,
)
def test_steps_of_other_optimisers_are_numpys_but_for_rounding(name, options, dtype):
    arrays, scalars, _ = STEPS[name]
    tight = 256 * np.finfo(dtype).eps
    sides = []
    for kernels in (NUMPY, COMPILED):
        # Compiled steps take the first three; the rows of the last lie apart.
        shapes = [(1001,), (), (0,), (30, 40), (5, 7)]
        lists = [
            [numbers(shape, dtype, 20 * k + j) for j, shape in enumerate(shapes)] for k in range(2)
        ]
        lists += [[np.full(shape, 0.1, dtype) for shape in shapes] for _ in range(arrays)]
        for tensors in lists:
            tensors[3] = np.asfortranarray(tensors[3])
            tensors[4] = np.repeat(tensors[4], 2, axis=1)[:, ::2]
        counts = [[np.array(value, np.float32) for _ in shapes] for value in scalars]
        for step in range(8):
            for grad in lists[1]:
                grad *= (-0.8) ** step
            kernels[name](*lists, *counts, *options.values())
        sides.append([array for tensors in [*lists, *counts] for array in tensors])
    for wanted, found in zip(*sides, strict=True):
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=tight, atol=tight)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", STEPS)
def test_steps_treat_nan_and_infinity_as_numpy_does(name, dtype):
    arrays, scalars, choices = STEPS[name]
    sides = []
    for kernels in (NUMPY, COMPILED):
        special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0] * 5, dtype)
        lists = [[np.ones_like(special)], [special]]
        lists += [[special[::-1].copy()] for _ in range(arrays)]
        counts = [[np.array(value, np.float32)] for value in scalars]
        kernels[name](*lists, *counts, *choices[0].values())
        sides.append([array for tensors in lists for array in tensors])
    for wanted, found in zip(*sides, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=64 * np.finfo(dtype).eps)


@pytest.mark.parametrize("name", STEPS)
def test_every_step_is_compiled_for_both_dtypes(name):
    table = getattr(optimizer, "_" + name.removesuffix("_step_")).table
    assert set(table) == {np.dtype(dtype) for dtype in DTYPES}


MIXED = {
    "of one kind": lambda lists, counts: None,
    "of two types": lambda lists, counts: [
        tensors.__setitem__(1, tensors[1].astype(np.float64)) for tensors in lists
    ],
    "with gaps": lambda lists, counts: [
        tensors.__setitem__(2, np.repeat(tensors[2], 2, axis=1)[:, ::2]) for tensors in lists
    ],
    "by columns": lambda lists, counts: [
        tensors.__setitem__(2, np.asfortranarray(tensors[2])) for tensors in lists
    ],
    "at two steps": lambda lists, counts: counts[-1][1].fill(5),
    "at a step that float32 cannot count": lambda lists, counts: [
        count.fill(1 << 24) for count in counts[-1]
    ],
}


@pytest.mark.parametrize("change", MIXED)
@pytest.mark.parametrize("name", [*STEPS, "adam_step_", "sgd_step_"])
def test_steps_of_a_list_are_those_of_each_alone(name, change):
    arrays, scalars, choices = STEPS.get(name, (2, [0.0], ()))
    if name == "adam_step_":
        options, more = [0.1, 0.9, 0.99, 1e-8, 0.1, True, False, True], [[]]
    elif name == "sgd_step_":
        arrays, scalars, options, more = 1, [], [0.1, 0.9, 0.0, 0.1, True, False], []
    else:
        options, more = [*choices[-1].values()], []
    sides = []
    for alone in (False, True):
        shapes = [(1001,), (70,), (30, 40), (), (0,)]
        lists = [
            [numbers(shape, np.float32, 20 * k + j) for j, shape in enumerate(shapes)]
            for k in range(2)
        ]
        lists += [[np.full(shape, 0.1, np.float32) for shape in shapes] for _ in range(arrays)]
        counts = [[np.array(value, np.float32) for _ in shapes] for value in scalars]
        if not (name == "sgd_step_" and "step" in change):
            MIXED[change](lists, counts)
        for _ in range(3):
            groups = [slice(i, i + 1) for i in range(len(shapes))] if alone else [slice(None)]
            for group in groups:
                own = [[*tensors[group]] for tensors in (*lists, *more, *counts)]
                COMPILED[name](*own, *options)
        sides.append([array for tensors in [*lists, *counts] for array in tensors])
    for wanted, found in zip(*sides, strict=True):
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


def test_nothing_is_written_where_one_array_of_a_list_does_not_fit():
    p = [np.ones(3, np.float32), np.ones(4, np.float32)]
    g = [np.ones(3, np.float32), np.ones(5, np.float32)]
    with pytest.raises(RuntimeError, match="one shape"):
        optimizer.sgd_step_(p, g, [], 0.1, 0.0, 0.0, 0.0, False, False)
    assert all((a == 1).all() for a in p)
