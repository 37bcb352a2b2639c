"""Traced programs: the same graphs and code as PyTorch's to the letter, and the same results."""

from __future__ import annotations

import importlib
import operator
from typing import Callable, Dict, List, NamedTuple, Optional, Tuple, Union  # noqa: UP035

import pytest

import flambeau as fb

torch = pytest.importorskip("torch")
VALUES = [[1.0, -2.0, 3.0], [-0.5, 4.0, 0.25], [2.0, 1.0, -1.0]]


def make_model(lib):
    class Model(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = lib.nn.Linear(3, 4)
            self.scale = lib.nn.Parameter(lib.ones(4))
            self.layers = lib.nn.Sequential(lib.nn.ReLU(), lib.nn.Linear(4, 4))
            self.register_buffer("shift", lib.zeros(4))
            self.constant = lib.ones(1)

        def forward(self, x, y=2, *, unused=None):
            a = self.linear(x) + self.scale + self.shift * self.constant
            b = self.layers(a).clamp(min=0).view(x.size(0), -1)
            c = lib.cat([a, b], dim=1)[:, 1:, None]
            d = lib.nn.functional.relu(c, inplace=True)
            return {
                "plain": d,
                "nested": (a, b.shape[0] * y, lib.float32),
                "negative": -d // 2,
                "reflected": 2 - d,
                "product": d @ d.transpose(1, 2),
                "device": x.to(lib.device("cpu")),
                "slices": x[..., 0:3:2],
            }

    return Model()


def stars(x, *args, scale=2, **kwargs):
    return x.a.b + args[0] + kwargs["more"] * scale


def unpacked(x):
    a, b = x.split(2)
    return a * b


def in_place(x):
    x += 1
    x -= 2
    return operator.iadd(x, 3)


PROGRAMS = {
    "stars": lambda t: stars,
    "unpacking": lambda t: unpacked,
    "in place": lambda t: in_place,
    "operators": lambda t: lambda x: (x == 1, x < 2, x != 3, ~x, x % 3, x >> 1, 3 / x, x**-2, +x),
    "names": lambda t: lambda class_, sum, torch_: class_ + sum + torch_,
    "none": lambda t: lambda x: x is None,
    "shape": lambda t: lambda x: t.zeros(x.shape[0]),
    "attributes": lambda t: lambda x: x.T.contiguous().view([x.size(0), -1]).grad,
    "functions": lambda t: lambda x, y: t.where(x > 0, t.add(x, y), x.add(y)),
    "keywords": lambda t: lambda x: x.sum(dim=(1, 0), keepdim=True),
    "dtypes": lambda t: lambda x: x.float().to(t.float64),
    "infinities": lambda t: lambda x: x * float("inf") + float("nan"),
    "indices": lambda t: lambda x: x[0, None, ..., 1:2, x],
    "masks": lambda t: lambda x: x[x > 0],
    "lists": lambda t: lambda x: t.stack((x, t.chunk(x, 3, 1)[0].expand(3, 3))),
    "constants": lambda t: lambda x: x.add_(t.ones(3)),
    "branch": lambda t: lambda x: x if x.sum() > 0 else -x,
    "loop": lambda t: lambda x: [i for i in x],  # noqa: C416 - the loop is what is refused
    "length": lambda t: lambda x: len(x),
    "int": lambda t: lambda x: range(x),
    "mapping": lambda t: lambda x: {**x},
    "text": lambda t: lambda x: f"{x}",
    "membership": lambda t: lambda x: 1 in x,
}


def traced_on(lib, program, **options):
    """The graph and code of a program, or the error that it raises."""
    fx = importlib.import_module(f"{lib.__name__}.fx")
    try:
        traced = fx.symbolic_trace(program, **options)
    except (ValueError, TypeError, RuntimeError) as error:
        return type(error).__name__, str(error)
    traced.graph.lint()
    return str(traced.graph), traced.code


@pytest.mark.parametrize("name", PROGRAMS)
def test_graph_and_code_of_functions(name):
    ours, theirs = (traced_on(lib, PROGRAMS[name](lib)) for lib in (fb, torch))
    assert ours == theirs


def test_graph_code_and_text_of_modules():
    ours, theirs = (traced_on(lib, make_model(lib)) for lib in (fb, torch))
    assert ours == theirs
    shown = [
        str(importlib.import_module(f"{lib.__name__}.fx").symbolic_trace(make_model(lib)))
        for lib in (fb, torch)
    ]
    assert shown[0] == shown[1]


@pytest.mark.parametrize("value", [True, None, 1.5, 3])
def test_code_of_concrete_arguments(value):
    def program(x, flag=False):
        return x + 1 if flag else x

    ours, theirs = (traced_on(lib, program, concrete_args={"flag": value}) for lib in (fb, torch))
    assert ours == theirs


@pytest.mark.parametrize("lines", ["code", "readable", "table"])
def test_printed_forms(lines, capsys):
    pytest.importorskip("tabulate") if lines == "table" else None
    shown = []
    for lib in (fb, torch):
        fx = importlib.import_module(f"{lib.__name__}.fx")
        traced = fx.symbolic_trace(make_model(lib))
        if lines == "table":
            traced.graph.print_tabular()
        elif lines == "readable":
            traced.print_readable()
        else:
            traced.graph.eliminate_dead_code()
            print(traced.graph.python_code("root").src)
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]


REWRITES = [
    (lambda t: lambda a, b: t.relu(a + b), lambda t: lambda a, b: t.sigmoid(a) * b),
    (lambda t: lambda a: t.relu(a), lambda t: lambda a: a),
    (lambda t: lambda a, b: a + b, lambda t: lambda a, b: b - a),
    (lambda t: lambda a, b: a * b + b, lambda t: lambda a, b: a),
    (lambda t: lambda a: a.neg().exp(), lambda t: lambda a: 1 / a.exp()),
]


def rewritten(t):
    def program(x, y):
        z = t.relu(x + y)
        q = t.relu(z + x) * x + x
        return (t.relu(q + 1) + z).neg().exp()

    return program


@pytest.mark.parametrize("number", range(len(REWRITES)))
def test_patterns_are_replaced_alike(number):
    found = []
    for lib in (fb, torch):
        fx = importlib.import_module(f"{lib.__name__}.fx")
        traced = fx.symbolic_trace(rewritten(lib))
        pattern, replacement = (make(lib) for make in REWRITES[number])
        matches = fx.replace_pattern(traced, pattern, replacement)
        x = lib.tensor(VALUES, dtype=lib.float64)
        found.append((len(matches), traced.code, traced(x, x.neg() + 1).sum().item()))
    assert found[0][:2] == found[1][:2]
    assert found[0][2] == pytest.approx(found[1][2], rel=1e-12)


def stacked(lib):
    def program(x, parts, flag):
        total = parts["a"][0] + parts["a"][1] if flag else parts["b"]
        return {"sum": total + x, "size": (x, total)}

    return program


def test_containers_among_fixed_arguments_are_taken_apart_alike():
    found = []
    for lib in (fb, torch):
        fx = importlib.import_module(f"{lib.__name__}.fx")
        inputs = {"parts": {"a": (fx.PH, fx.PH), "b": fx.PH}, "flag": True}
        traced = fx.symbolic_trace(stacked(lib), concrete_args=inputs)
        x, y, z = (lib.tensor([float(n)]) for n in range(3))
        given = x, {"a": (y, z), "b": x}, True
        outs = [
            traced(*given),
            traced.graph.process_outputs(
                fx.GraphModule({}, copied(fx, traced))(*traced.graph.process_inputs(*given))
            ),
            fx.Interpreter(traced).run(*given),
            fx.symbolic_trace(traced)(*given),
        ]
        names = [(n.op, n.name) for n in traced.graph.nodes if n.op == "placeholder"]
        found.append(([{k: str(v) for k, v in out.items()} for out in outs], names))
    assert found[0] == found[1]


def copied(fx, traced):
    graph = fx.Graph()
    graph.output(graph.graph_copy(traced.graph, {}))
    return graph


class Labelled(NamedTuple):
    x: int


@pytest.mark.parametrize(
    "kind",
    [
        List[str],  # noqa: UP006
        list[str],
        Dict[str, List[int]],  # noqa: UP006
        List,  # noqa: UP006
        Dict,  # noqa: UP006
        Tuple,  # noqa: UP006
        Callable,
        List[Dict],  # noqa: UP006
        Optional[int],  # noqa: UP045
        Union[int, str],  # noqa: UP007
        Tuple[int, float],  # noqa: UP006
        dict[str, tuple[int, ...]],
        int,
        Labelled,
    ],
    ids=str,
)
def test_annotations_are_written_alike(kind):
    found = []
    for lib in (fb, torch):
        fx = importlib.import_module(f"{lib.__name__}.fx")

        def program(x):
            return x

        program.__annotations__.update(x=kind, **{"return": kind})
        traced = fx.symbolic_trace(program)
        assert traced(3) == 3
        found.append(traced.code.replace("_,", "...,").replace(",_]", ",...]"))
    assert found[0] == found[1]


METHODS = {
    "masked_fill": lambda t: lambda x: t.ones(2, 2).masked_fill(x > 1, 0.5),
    "reshape": lambda t: lambda x: t.ones(4).reshape(x.size(0), 2),
    "repeat": lambda t: lambda x: t.ones(3).repeat(x.size(0), 1),
    "to": lambda t: lambda x: t.ones(3).to(x),
    "type_as": lambda t: lambda x: t.ones(3).type_as(x),
    "add_": lambda t: lambda x: t.ones(2, 2).add_(x),
    "copy_": lambda t: lambda x: t.ones(2, 2).copy_(x),
    "log_": lambda t: lambda x: t.log_(x + 1),
    "index": lambda t: lambda x: t.arange(3)[x.long()],
}


@pytest.mark.parametrize("name", METHODS)
def test_methods_of_tensors_that_the_program_has_are_nodes(name):
    found = []
    for lib in (fb, torch):
        fx = importlib.import_module(f"{lib.__name__}.fx")
        traced = fx.symbolic_trace(METHODS[name](lib))
        x = lib.tensor([[0.0, 1.0], [2.0, 1.0]])
        found.append((traced.code, str(traced(x))))
    assert found[0] == found[1]


@pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning")
def test_scripts_in_traced_programs_are_nodes():
    found = []
    for lib in (fb, torch):
        fx = importlib.import_module(f"{lib.__name__}.fx")
        net = lib.nn.Sequential(lib.jit.script(lib.nn.ReLU()), lib.nn.Tanh())
        traced = fx.symbolic_trace(net)
        found.append(([n.op for n in traced.graph.nodes], str(traced(lib.ones(2)))))
    assert found[0] == found[1]
