"""Numbers, strings and lists in scripts, where Python or PyTorch's signatures have traps."""

import io
import math

import pytest

import flambeau as fb
from flambeau._types.layout import OTHERS


@fb.jit.script
class Box:
    def __init__(self, held):
        self.held = held

    def doubled(self):
        return self.held * 2


def unit(source: str):
    return fb.jit.CompilationUnit(source).f


def test_a_stretch_of_a_string_goes_to_its_end_by_default():
    f = unit(
        "def f(t: str, p: str):\n"
        "    return (t.startswith(p), t.endswith(p), t.find(p), t.rfind(p), t.count(p),\n"
        "            t.index(p), t.rindex(p))\n"
    )
    for text, part in (("a", "a"), ("abab", "ab"), ("xyz", "z")):
        methods = "startswith endswith find rfind count index rindex".split()
        assert f(text, part) == tuple(getattr(text, each)(part) for each in methods)
    g = unit("def f(t: str, a: int, b: int):\n    return t.find('a', a, b)\n")
    assert [g("abca", *stretch) for stretch in ((0, -1), (1, 3), (1, -1), (0, -2), (-2, -1))] == [
        0,
        -1,
        3,
        0,
        3,
    ]


def test_quotients_of_floats_by_zero_are_infinite_and_of_integers_an_error():
    f = unit("def f(a: float, b: float):\n    return a / b, a // b, a % b\n")
    assert f(1.0, 0.0)[:2] == (math.inf, math.inf)
    assert f(-1.0, 0.0)[:2] == (-math.inf, -math.inf)
    assert all(map(math.isnan, f(0.0, 0.0)))
    assert math.isnan(f(1.0, math.inf)[2])
    assert f(-7.5, 2.0) == (-3.75, -4.0, 0.5)
    assert f(1.0, 0.1)[1] == math.floor(1.0 / 0.1)
    g = unit("def f(a: int, b: int):\n    return a // b, a % b\n")
    assert g(-7, 2) == (-4, 1)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        g(1, 0)
    h = unit("def f(a: float, b: float):\n    return a ** b\n")
    assert math.isnan(h(-8.0, 0.5))
    assert h(1e300, 2.0) == math.inf


def test_a_list_that_is_added_to_stays_the_same_list():
    f = unit(
        "def f(l: List[int], n: int):\n"
        "    held = l\n"
        "    for i in range(n):\n"
        "        l += [i]\n"
        "    l *= 2\n"
        "    return held\n"
    )
    assert f([5], 2) == [5, 0, 1, 5, 0, 1]


def test_two_results_of_one_expression_are_two_tensors_when_plans_are_repeated():
    f = fb.jit.script(
        unit("def f(x):\n    a = x + 1\n    b = x + 1\n    return a, b, [x * 2], x * 2\n")
    )
    for _ in range(12):
        a, b, listed, c = f(fb.ones(2))
        a.add_(5)
        listed[0].add_(5)
        assert b.tolist() == [2.0, 2.0]
        assert c.tolist() == [2.0, 2.0]


def test_common_subexpressions_that_are_not_given_back_are_computed_once():
    f = unit("def f(x):\n    return (x + 1) * (x + 1), x.view(-1), x.view(-1)\n")
    graph = f.graph.copy()
    fb.jit.passes.eliminate_common_subexpressions(graph)
    kinds = [node.kind for node in graph.block.all_nodes()]
    assert kinds.count("aten::add") == 1
    assert kinds.count("aten::view") == 2


def test_what_fails_in_a_script_is_a_runtime_error_that_tells_what_python_told():
    for body, told in (
        ("d['a']", "KeyError"),
        ("d.pop('a')", "KeyError"),
        ("[n][n + 1]", "IndexError: list index out of range"),
        ("int('x')", "ValueError"),
        ("'a'.index('b')", "ValueError"),
    ):
        f = unit(f"def f(d: Dict[str, int], n: int):\n    return {body}\n")
        with pytest.raises(RuntimeError, match=told):
            f({}, 3)


def test_an_archive_keeps_a_program_that_makes_objects():
    def f(x):
        return Box(x).doubled()

    file = io.BytesIO()
    fb.jit.save(fb.jit.script(f), file)
    file.seek(0)
    assert fb.jit.load(file)(fb.ones(2)).tolist() == [2.0, 2.0]


def test_sizes_are_made_in_scripts():
    def as_square(x):
        return x.reshape(fb.Size([2, 2]))

    assert fb.jit.script(as_square)(fb.ones(4)).shape == (2, 2)


@pytest.mark.parametrize("kind", ["int", "str", "List[int]", "List[Tensor]", "Dict[str, int]"])
def test_a_tensor_in_the_place_of_something_else_is_refused(kind):
    source = f"def f(self, value: {kind}):\n    return value\n"

    class Scripted(fb.nn.Module):
        def forward(self, x):
            return x

    class Named(fb.Tensor):
        pass

    module = fb.jit.script(Scripted())
    module.define(source)
    function = fb.jit.CompilationUnit(source.replace("self, ", "")).f
    x = fb.ones(2, 3)
    for call in (function, module.f):
        for value in (x, fb.nn.Parameter(x), x.as_subclass(Named)):
            with pytest.raises(RuntimeError, match="Expected a value of type"):
                call(value)


def test_a_tensor_whose_class_knows_better_has_the_call_of_a_script():
    class Loud(fb.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.name

    function = fb.jit.CompilationUnit("def f(value: int):\n    return value\n").f
    assert function(fb.ones(2).as_subclass(Loud)) == "f"


@pytest.mark.parametrize(
    ("name", "number"),
    [("sparse_csr", 2), ("_mkldnn", 3), ("sparse_csc", 4), ("sparse_bsr", 5), ("jagged", 7)],
)
def test_layouts_that_no_tensor_has_are_known_in_scripts(name, number):
    asked = OTHERS[name]

    @fb.jit.script
    def has(x: fb.Tensor):
        return x.layout == asked

    assert has(fb.ones(2)) is False
    assert number in [n.output().toIValue() for n in has.graph.findAllNodes("prim::Constant")]
