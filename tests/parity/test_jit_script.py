"""Scripted functions and modules: types, results and refusals are PyTorch's."""

import functools
import importlib.util
import math
import re

import numpy as np
import pytest
import torch

import flambeau as fb

# PyTorch 2.13 says so of all of it.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")

SOURCES = {
    "slices of generated sources": """
def f(x: Tensor, n: int):
    s = slice(1)
    x[..., slice(0, 1, None)] += n
    x[slice(None, 1), 0] = 7
    sizes = x.shape[slice(None, -1, None)] + [n]
    parts = (x[slice(None, 2), slice(None, None, 2)], x[s, s], x[..., s], x[s, [0, 1]])
    return parts[slice(0, 3)], x[..., 0], sizes, "abcd"[slice(n, 3)], parts[3]
""",
    "branches": """
def f(x, n: int):
    if n > 2:
        y = x + n
    elif n == 0:
        y = x * 2.5
    else:
        y = -x
    return y, n
""",
    "early returns": """
def f(x, n: int):
    for i in range(n):
        if bool(x.sum() > 10):
            return x
        x = x + i
    if n == 3:
        return x * 2
    x = x - 1
    return x
""",
    "breaks": """
def f(x, n: int):
    i = 0
    while True:
        i += 1
        if i == 2:
            continue
        if i > n:
            break
        x = x * i
    return x, i
""",
    "optionals": """
def f(x, n: int, s: Optional[float] = None, t: Optional[int] = None):
    if s is None:
        s = 2.0
    if t is not None and t > 3:
        x = x + t
    return x * s
""",
    "containers": """
def f(x, n: int):
    a = [1, 2, n]
    a.append(7)
    d = {"a": x, "b": x * 2}
    d["c"] = x - 1
    t = (x, 3, "s")
    total = torch.zeros([2, 3])
    for k in d:
        total = total + d[k]
    b = [i * 2 for i in a]
    for i, (p, q) in enumerate(zip(a, b)):
        total = total + i * p - q
    return total, a, t[1], b[1:3], len(d)
""",
    "slices": """
def f(x, n: int):
    y = x[0], x[:, 1], x[..., -1], x[None, 1:, ::2], x[torch.tensor([1, 0])], x[n - 3]
    x[0, 1] = 5
    x[1] += 2
    return y, x
""",
    "strings": """
def f(x, n: int):
    s = "n is {} of {}".format(n, 1.5)
    assert len(s) > 3, "short"
    return s + "!", s.upper(), s.split(" ")
""",
    "formats": """
def f(x, n: int):
    a, b = "{} {:>3} {0} {x}|{}".format(n, True, 7), "no { braces }".format(n)
    return a, b, "{{}} }}{".format(n), "".format(n)
""",
    "numbers": """
def f(x, n: int):
    return n // 2, n / 2, n % 2, 2 ** n, float(n), int(2.7), math.floor(2.5), n < 4, not n, -n
""",
    "calls": """
def g(x, k: int = 3):
    return x + k
def f(x, n: int):
    return g(x) * n + g(x, k=1) + torch.nn.functional.relu(x - 1.0)
""",
    "shapes": """
def f(x, n: int):
    a, b = x.shape
    y = x.view(b, a).sum(0, keepdim=True)
    v, i = x.max(1)
    m = x.max(dim=0).values
    return y, v, i, m, x.size(0), x.dtype == torch.float32, torch.cat([x, x]), x.chunk(2, 1)
""",
}


def plain(value):
    """A result as lists, whichever library it is of."""
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return value.tolist() if hasattr(value, "tolist") else value


@pytest.mark.parametrize("name", SOURCES)
def test_sources_have_the_types_and_results_of_pytorch(name):
    theirs = torch.jit.CompilationUnit(SOURCES[name])
    ours = _compile(SOURCES[name])
    given = [[v.type().annotation_str for v in f.graph.outputs()] for f in (theirs.f,)]
    assert given == [[v.type().annotation for v in ours.f.graph.outputs()]]
    for n in (3, 1, 4):
        data = [[1.0, -2.0, 3.0], [4.0, 5.5, -6.0]]
        if name == "slices" and n == 1:
            continue
        found = plain(ours.f(fb.tensor(data), n))
        assert found == plain(theirs.f(torch.tensor(data), n))
        again = _compile(ours.f.code) if name != "calls" else ours
        assert plain(again.f(fb.tensor(data), n)) == found


@pytest.mark.filterwarnings("ignore")
def test_what_fx_writes_of_indices_is_scripted():
    def taken(x):
        return x[..., :1] + x[1:, ..., None].sum(), x[:, ..., 0], x[0].expand(x.shape[1:])

    data = [[1.0, -2.0, 3.0], [4.0, 5.5, -6.0]]
    found = [
        library.jit.script(library.fx.symbolic_trace(taken))(library.tensor(data))
        for library in (fb, torch)
    ]
    assert plain(found[0]) == plain(found[1])


def _compile(source):
    torch = fb  # noqa: F841 - the sources name it
    return fb.jit.CompilationUnit(source)


REFUSED = {
    "a slice as a value": "def f(x: Tensor):\n    return slice(1, 2)\n",
    "a slice of nothing": "def f(x: Tensor):\n    return x[slice()]\n",
    "a slice of four numbers": "def f(x: Tensor):\n    return x[slice(1, 2, 3, 4)]\n",
    "a slice by names": "def f(x: Tensor):\n    return x[slice(stop=2)]\n",
    "a slice of a list that is written": "def f(x: List[int]):\n    x[slice(1)] = [2]\n",
    "a name that is not there": "def f(x):\n    return x + missing\n",
    "types of two branches": (
        "def f(x, n: int):\n    if n > 1:\n        a = 1\n    else:\n        a = 'a'\n"
        "    return len(a)\n"
    ),
    "another type in a loop": (
        "def f(x, n: List[int]):\n    for i in n:\n        x = i\n    return x\n"
    ),
    "two types returned": ("def f(x, n: int):\n    if n > 1:\n        return x\n    return n\n"),
    "a result of another type": "def f(x) -> int:\n    return [x]\n",
    "a method that is not there": "def f(x):\n    return x.missing()\n",
    "arguments of an op": "def f(x):\n    return torch.add(x, 'a')\n",
    "try": "def f(x):\n    try:\n        return x\n    except ValueError:\n        return x\n",
    "an argument too many": "def g(x):\n    return x\ndef f(x):\n    return g(x, x)\n",
    "None as a tensor": "def f(x, y: Optional[Tensor]):\n    return x + y\n",
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_are_pytorchs_and_mark_the_line(name):
    with pytest.raises(RuntimeError):
        torch.jit.CompilationUnit(REFUSED[name])
    with pytest.raises(RuntimeError, match="<--- HERE|aren't supported"):
        _compile(REFUSED[name])


def test_messages_of_common_errors_are_pytorchs():
    for name in ("a name that is not there", "a method that is not there"):
        with pytest.raises(RuntimeError) as theirs:
            torch.jit.CompilationUnit(REFUSED[name])
        with pytest.raises(RuntimeError) as ours:
            _compile(REFUSED[name])
        assert str(ours.value).strip() == str(theirs.value).strip()


REMOVED = {f"aten::{op}" for op in ("eig", "gels", "lstsq", "matrix_rank", "solve", "symeig")}
"""Ops that archives of PyTorch 1.x have."""


def test_every_signature_is_one_of_pytorchs():
    theirs = {str(s).replace("SymInt", "int") for s in torch._C._jit_get_all_schemas()}
    from flambeau.jit import _schemas

    ours = {line for lines in _schemas._lines().values() for line in lines}
    assert {re.split(r"[.(]", line)[0] for line in ours - theirs} == REMOVED
    assert len(ours) > 2000
    assert math.isinf(_schemas.parse("aten::f(float x=inf) -> float").arguments[0].default)


def test_type_comments_are_those_of_pytorch():
    source = (
        "def f(x, y, z=None):\n"
        "    # type: (Tensor, List[int], Optional[Dict[str, Tuple[int, float]]]) -> int\n"
        "    return y[0]\n"
    )
    theirs, ours = torch.jit.CompilationUnit(source), fb.jit.CompilationUnit(source)
    found = [v.type().annotation for v in ours.f.graph.inputs()]
    assert found == [v.type().annotation_str for v in theirs.f.graph.inputs()]
    assert found[2] == "Optional[Dict[str, Tuple[int, float]]]"


@pytest.mark.parametrize(
    "made",
    [
        lambda nn: nn.Softplus(2, 10),
        lambda nn: nn.Softshrink(1),
        lambda nn: nn.Hardshrink(1),
    ],
    ids=["softplus", "softshrink", "hardshrink"],
)
def test_layers_whose_numbers_are_whole_are_scripted(made):
    values = [-2.0, 0.5, 3.0]
    ours = fb.jit.script(made(fb.nn))(fb.tensor(values))
    theirs = torch.jit.script(made(torch.nn))(torch.tensor(values))
    torch.testing.assert_close(torch.tensor(ours.tolist()), theirs)


NUMBERS = {
    "int": lambda a: a,
    "float": lambda a: a,
    "bool": lambda a: a,
    "complex": lambda a: a,
    "List[int]": lambda a: [a],
    "List[float]": lambda a: [a],
    "List[bool]": lambda a: [a],
    "Tuple[int, float]": lambda a: (a, a),
    "Dict[str, int]": lambda a: {"a": a},
    "Optional[int]": lambda a: a,
    "Optional[bool]": lambda a: a,
}
VALUES = {
    "tensor": lambda torch: torch.tensor(3),
    "tensor of a float": lambda torch: torch.tensor(3.5),
    "tensor of a bool": lambda torch: torch.tensor(True),
    "tensor of one": lambda torch: torch.tensor([3]),
    "tensor of two": lambda torch: torch.tensor([3, 4]),
    "tensor with a history": lambda torch: torch.tensor(2.5, requires_grad=True),
    **{
        str(each): lambda torch, each=each: each
        for each in (3, 2.5, True, 1j, "3", None, np.int64(3), np.float32(2.5), np.bool_(True))
    },
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", NUMBERS)
def test_arguments_are_the_numbers_that_pytorch_takes_them_for(kind):
    source = f"def f(a: {kind}):\n    return a\n"
    ours, theirs = fb.jit.CompilationUnit(source).f, torch.jit.CompilationUnit(source).f

    def taken(f, value):
        try:
            return f(NUMBERS[kind](value))
        except RuntimeError:
            return "RuntimeError"

    for name, made in VALUES.items():
        found, expected = taken(ours, made(fb)), taken(theirs, made(torch))
        assert repr(found) == repr(expected), name


@functools.cache
def _remembered(x):
    return x * 3


@pytest.mark.parametrize(
    "made",
    [
        lambda torch: functools.partial(torch.pow, exponent=2.0),
        lambda torch: functools.partial(lambda a, factor: a * factor, factor=4),
        lambda torch: functools.partial(torch.mul, torch.tensor([3.0, 4.0])),
        lambda torch: _remembered,
    ],
)
def test_partial_and_remembered_functions_are_run_by_python_and_followed(made):
    def around(func):
        def scripted(x):
            return func(x) + 1

        return scripted

    results = []
    for torch_ in (fb, torch):
        x = torch_.tensor([1.5, -2.0], requires_grad=True)
        y = torch_.jit.script(around(made(torch_)))(x)
        y.sum().backward()
        results.append((y.tolist(), x.grad.tolist()))
    assert results[0] == results[1]


DIFFERENTIATES = """
def weighted(x: Tensor, v: Tensor):
    weights: List[Optional[Tensor]] = [v]
    g = torch.autograd.grad([x * x], [x], weights, retain_graph=True)[0]
    assert g is not None
    return g

def twice(x: Tensor, v: Tensor):
    g = torch.autograd.grad([(x * x * x).sum()], [x], create_graph=True)[0]
    assert g is not None
    h = torch.autograd.grad([(g * v).sum()], [x])
    return g, h[0]

def added(x: Tensor, v: Tensor):
    torch.autograd.backward([(x * v).sum(), (x * x).sum()])
    return x.grad

def unread(x: Tensor, v: Tensor):
    torch.autograd.grad([(x * v).sum()], [x])
    return x
"""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["weighted", "twice", "added", "unread"])
def test_scripts_differentiate(name, tmp_path):
    found = []
    for library in (fb, torch):
        function = _scripted(library, name, tmp_path)
        x = library.tensor([1.0, 2.0], requires_grad=True)
        for _ in range(14):  # the last of these by a plan, were there one
            x.grad = None
            result = function(x, library.tensor([3.0, 4.0]))
        results = result if isinstance(result, tuple) else (result,)
        found.append([plain(each.detach()) for each in results])
    assert found[0] == found[1]


def _scripted(library, name, folder):
    path = folder / f"{library.__name__}_scripts.py"
    path.write_text(
        f"import {library.__name__} as torch\nfrom typing import List, Optional\n"
        f"from {library.__name__} import Tensor\n{DIFFERENTIATES}"
    )
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return library.jit.script(getattr(module, name))
