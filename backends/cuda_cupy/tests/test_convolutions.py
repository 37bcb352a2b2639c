"""Convolutions by plans: on a cuDNN made for tests, and by the real one without a device."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
from frontend import KINDS, Names, NotSupportedError, Side

from flambeau.plugin import numerics
from flambeau_cupy.dtypes import BFLOAT16
from flambeau_cupy.layer import NumpyLayer
from flambeau_cupy.libraries.convolutions import (
    FORWARD,
    INPUT,
    OUTPUT,
    WEIGHT,
    Convolutions,
    Plan,
    Signature,
)

STRIDE, PADDING, DILATION, GROUPS = (2, 1), (1, 2), (1, 2), 2
GEOMETRY = (STRIDE, PADDING, DILATION, GROUPS)


class Graph:
    """A graph of the frontend that computes on the host, and notes what it was asked."""

    made: ClassVar[list[Graph]] = []
    refuses: ClassVar[set[str]] = set()
    costs: ClassVar[list[float]] = [3.0, 1.0, 2.0]

    def __init__(self, *, io_data_type, intermediate_data_type, compute_data_type, handle):
        self.element, self.compute, self.sides = io_data_type, compute_data_type, {}
        self.refused, self.executed, self.policy = [], [], None
        Graph.made.append(self)

    def tensor(self, **known):
        self.sides[known["uid"]] = side = Side(**known)
        return side

    def _conv(self, kind, padding, stride, dilation):
        if self.element in self.refuses:
            raise NotSupportedError
        self.kind, self.geometry = kind, (stride, padding, dilation)
        self.result = Side()
        return self.result

    def conv_fprop(self, *, image, weight, **geometry):
        return self._conv("fprop", **geometry)

    def conv_dgrad(self, *, loss, filter, **geometry):
        return self._conv("dgrad", **geometry)

    def conv_wgrad(self, *, image, loss, **geometry):
        return self._conv("wgrad", **geometry)

    def validate(self):
        self.sides[self.result.uid] = self.result

    def build_operation_graph(self):
        pass

    def create_execution_plans(self, modes):
        assert modes

    def deselect_numeric_notes(self, notes):
        self.refused += notes

    def check_support(self):
        pass

    def build_plans(self, policy):
        self.policy = policy

    def get_workspace_size(self):
        return 24

    def get_execution_plan_count(self):
        return len(self.costs)

    def get_workspace_size_plan_at_index(self, number):
        return 8 * number

    def execute_plan_at_index(self, pack, workspace, number, handle):
        assert bool(workspace) == bool(number)
        self.execute(pack, workspace or 1, handle, number)

    def execute(self, pack, workspace, handle, number=None):
        assert handle == "handle" and workspace
        self.executed.append(number)
        dtype = KINDS[self.element]
        x, w, y = (self.sides[uid].at(pack[uid], dtype) for uid in (INPUT, WEIGHT, OUTPUT))
        convolve(self.kind, x, w, y, *self.geometry)


def convolve(kind, x, w, y, stride, padding, dilation):
    """Write the one of three arrays that `kind` makes of the others, tap by tap in float64."""
    groups, per_group = x.shape[1] // w.shape[1], w.shape[0] * w.shape[1] // x.shape[1]
    frame = [(0, 0), (0, 0), *((p, p) for p in padding)]
    result = {"fprop": "y", "dgrad": "x", "wgrad": "w"}[kind]
    given = {
        name: np.zeros(a.shape) if name == result else a.astype(np.float64)
        for name, a in (("x", x), ("w", w), ("y", y))
    }
    wide = np.pad(given["x"], frame)
    for g in range(groups):
        outs = slice(g * per_group, (g + 1) * per_group)
        ins = slice(g * w.shape[1], (g + 1) * w.shape[1])
        for tap in np.ndindex(*w.shape[2:]):
            spans = zip(tap, y.shape[2:], stride, dilation, strict=True)
            at = tuple(slice(t * d, t * d + s * (n - 1) + 1, s) for t, n, s, d in spans)
            piece = wide[(slice(None), ins, *at)]
            factor = given["w"][(outs, slice(None), *tap)]
            if kind == "fprop":
                given["y"][:, outs] += np.einsum("oi,ni...->no...", factor, piece)
            elif kind == "dgrad":
                piece += np.einsum("oi,no...->ni...", factor, given["y"][:, outs])
            else:
                pair = [a.reshape(*a.shape[:2], -1) for a in (given["y"][:, outs], piece)]
                given["w"][(outs, slice(None), *tap)] = np.einsum("nop,nip->oi", *pair)
    inside = [slice(p, p + n) for p, n in zip(padding, x.shape[2:], strict=True)]
    if kind == "fprop":
        y[...] = given["y"]
    elif kind == "dgrad":
        x[...] = wide[(slice(None), slice(None), *inside)]
    else:
        w[...] = given["w"]


def library():
    names = ("data_type", "numerical_note", "heur_mode", "build_plan_policy")
    return SimpleNamespace(
        pygraph=Graph,
        cudnnGraphNotSupportedError=NotSupportedError,
        **{name: Names() for name in names},
    )


class Runtime:
    def __init__(self):
        self.cudnn, self.index = library(), 0

    def where(self):
        return {"handle": self.handle()}

    def handle(self):
        return "handle"

    def device(self):
        return self.index

    def milliseconds(self, run):
        run()
        return Graph.costs[Graph.made[-1].executed[-1]]


@pytest.fixture
def convolutions(monkeypatch):
    monkeypatch.setattr(Graph, "made", [])
    monkeypatch.setattr(Graph, "refuses", set())
    for name in ("enabled", "benchmark", "deterministic", "convolution_tf32"):
        monkeypatch.setattr(numerics, name, getattr(numerics, name))
    return Convolutions(NumpyLayer(), Runtime)


def operands(dtype=np.float32, last=False):
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(3, 4, 7, 9)), rng.normal(size=(6, 2, 3, 2))
    y = rng.normal(size=(3, 6, 4, 11))
    arrays = [a.astype(dtype) for a in (x, w, y)]
    if last:
        arrays = [np.moveaxis(np.moveaxis(a, 1, -1).copy(), -1, 1) for a in arrays]
    return arrays


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("dtype", list(KINDS.values()), ids=str)
def test_results_are_those_of_the_definition(convolutions, dtype, last):
    x, w, y = operands(dtype, last)
    bias = np.arange(6).astype(dtype)
    wanted = [a.astype(np.float64) for a in (x, w, y)]
    wide = [a.copy() for a in wanted]
    for kind, place in (("fprop", 2), ("dgrad", 0), ("wgrad", 1)):
        some = [a.copy() for a in wide]
        convolve(kind, *some, STRIDE, PADDING, DILATION)
        wanted[place] = some[place]
    found = [
        convolutions.forward(x, w, bias, *GEOMETRY),
        convolutions.input_grad(y, w, x.shape, *GEOMETRY),
        convolutions.weight_grad(y, x, w.shape, *GEOMETRY),
    ]
    exact = [wanted[2] + np.arange(6).reshape(-1, 1, 1), wanted[0], wanted[1]]
    tolerance = {2: 1e-2, 4: 1e-5, 8: 1e-12}[dtype.itemsize] * (8 if dtype == BFLOAT16 else 1)
    for a, b in zip(found, exact, strict=True):
        assert a is not None and a.dtype == dtype
        assert a.transpose((0, 2, 3, 1)).flags.c_contiguous == last
        np.testing.assert_allclose(a.astype(np.float64), b, tolerance, tolerance * abs(b).max())


def test_arrays_of_any_layout_and_place_are_taken(convolutions):
    x, w, y = operands()
    first = convolutions.forward(x, w, None, *GEOMETRY)
    strange = np.zeros((3, 7, 4, 18), np.float32).transpose(0, 2, 1, 3)[..., ::2]
    strange[...] = x
    memory = np.zeros(w.size + 1, np.float32)
    offset = memory[1:].reshape(w.shape)
    offset[...] = w
    np.testing.assert_array_equal(convolutions.forward(strange, offset, None, *GEOMETRY), first)
    volume = x.reshape(3, 4, 7, 3, 3)
    assert convolutions.forward(
        volume, np.ones((4, 4, 1, 1, 1), np.float32), None, (1,) * 3, (0,) * 3, (1,) * 3, 1
    ).shape == (3, 4, 7, 3, 3)
    assert y.shape == first.shape


def test_a_plan_is_made_once_per_signature(convolutions):
    x, w, _ = operands()
    for _ in range(3):
        convolutions.forward(x, w, None, *GEOMETRY)
    assert len(Graph.made) == 1
    convolutions.forward(x[:2], w, None, *GEOMETRY)
    convolutions.forward(x.astype(np.float64), w.astype(np.float64), None, *GEOMETRY)
    convolutions._runtime.index = 1
    convolutions.forward(x, w, None, *GEOMETRY)
    assert len(Graph.made) == 4


def test_switches_decide_which_engines_may_serve(convolutions):
    x, w, _ = operands()
    numerics.convolution_tf32 = True
    convolutions.forward(x, w, None, *GEOMETRY)
    assert Graph.made[-1].refused == []
    numerics.convolution_tf32 = False
    convolutions.forward(x, w, None, *GEOMETRY)
    assert Graph.made[-1].refused == ["TENSOR_CORE", "DOWN_CONVERT_INPUTS"]
    numerics.deterministic = True
    convolutions.forward(x, w, None, *GEOMETRY)
    assert Graph.made[-1].refused == ["TENSOR_CORE", "DOWN_CONVERT_INPUTS", "NONDETERMINISTIC"]
    half = x.astype(np.float16)
    convolutions.forward(half, w.astype(np.float16), None, *GEOMETRY)
    assert Graph.made[-1].refused == ["NONDETERMINISTIC"] and Graph.made[-1].compute == "FLOAT"
    assert len(Graph.made) == 4


def test_benchmark_takes_the_fastest_plan(convolutions):
    x, w, _ = operands()
    plain = convolutions.forward(x, w, None, *GEOMETRY)
    assert Graph.made[-1].policy == "HEURISTICS_CHOICE"
    numerics.benchmark = True
    for _ in range(2):
        np.testing.assert_array_equal(convolutions.forward(x, w, None, *GEOMETRY), plain)
    assert Graph.made[-1].policy == "ALL"
    assert Graph.made[-1].executed == [0, 0, 1, 1, 2, 2, 1, 1]


def test_what_has_no_plan_decomposes(convolutions):
    asked = []

    def decomposition(*args):
        asked.append(args)
        return "decomposed"

    kernel = convolutions.compiled("conv2d", decomposition)
    assert convolutions.compiled("softmax", decomposition) is None
    x, w, _ = operands()
    assert kernel(x, w, None, *GEOMETRY) is not None and not asked
    Graph.refuses.add("DOUBLE")
    wide = x.astype(np.float64), w.astype(np.float64)
    for args in (wide, (x[:0], w), (x.astype(np.int64), w.astype(np.int64))):
        assert kernel(*args, None, *GEOMETRY) == "decomposed"
    numerics.enabled = False
    assert kernel(x, w, None, *GEOMETRY) == "decomposed"
    assert len(asked) == 4


def test_a_machine_without_cudnn_decomposes_and_asks_once():
    asked = []

    def load():
        asked.append(1)
        raise ImportError("No module named 'cudnn'")

    convolutions = Convolutions(NumpyLayer(), load)
    x, w, _ = operands()
    for _ in range(2):
        assert convolutions.forward(x, w, None, *GEOMETRY) is None
    assert len(asked) == 1 and convolutions.missing == "No module named 'cudnn'"


def row_major(shape):
    return tuple(prod(shape[i + 1 :]) for i in range(len(shape)))


def channels_last(shape):
    _, c, *rest = shape
    inner = row_major((*rest, c))
    return (prod((c, *rest)), 1, *inner[:-1])


@pytest.mark.parametrize("layout", [row_major, channels_last])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("kind", ["fprop", "dgrad", "wgrad"])
def test_cudnn_plans_every_dtype_and_layout(cudnn, where, kind, dtype, layout):
    shapes = (8, 64, 28, 28), (128, 32, 3, 3), (8, 128, 14, 14)
    tensors = [(shape, layout(shape)) for shape in shapes]
    ones = (1, 1)
    signature = Signature(kind, *tensors, dtype, ones, (2, 2), ones, True, False, False, 0)
    assert Plan(cudnn, signature, where).workspace >= 0
    if dtype == "float32":
        exact = replace(signature, tf32=False, deterministic=True)
        assert Plan(cudnn, exact, where).workspace >= 0


def test_benchmark_has_several_plans_to_choose_from(cudnn, where):
    shapes = (8, 64, 28, 28), (64, 64, 3, 3), (8, 64, 28, 28)
    tensors = [(shape, row_major(shape)) for shape in shapes]
    ones = (1, 1)
    every = Signature(FORWARD, *tensors, "float32", ones, ones, ones, True, False, True, 0)
    plan = Plan(cudnn, every, where)
    assert len(plan.candidates()) > 1
    plan.choose(plan.candidates()[-1])
    assert plan.workspace >= 0
