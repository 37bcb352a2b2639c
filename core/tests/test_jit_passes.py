"""Passes on graphs: what each removes, and that results stay."""

import pytest

import flambeau as fb
from flambeau.jit import passes
from flambeau.jit._execute import generate
from flambeau.testing import FileCheck


def compiled(source):
    torch = fb  # noqa: F841 - the sources name it
    return fb.jit.CompilationUnit(source).f.graph.copy()


def kinds(graph):
    return [n.kind for n in graph.block.all_nodes() if n.kind != "prim::Constant"]


def test_what_nobody_reads_is_dropped_and_effects_stay():
    graph = compiled("def f(x):\n    y = x + 1\n    y.add_(2)\n    return x\n")
    unread = graph.create("aten::neg", [next(graph.inputs())])
    graph.block.prepend(unread)
    assert passes.eliminate_dead_code(graph)
    assert kinds(graph) == ["aten::add", "aten::add_"]
    assert not passes.eliminate_dead_code(graph)


def test_what_is_computed_twice_is_computed_once():
    graph = compiled("def f(x):\n    return (x + 1) * (x + 1)\n")
    assert passes.eliminate_common_subexpressions(graph)
    assert kinds(graph) == ["aten::add", "aten::mul"]
    assert generate(graph)(fb.ones(1)).item() == 4.0


def test_graphs_that_write_keep_what_is_computed_twice():
    graph = compiled("def f(x):\n    a = x + 1\n    x.add_(1)\n    return a * (x + 1)\n")
    assert not passes.eliminate_common_subexpressions(graph)
    assert generate(graph)(fb.ones(1)).item() == 6.0


def test_constants_are_computed_and_choose_branches():
    source = "def f(x):\n    n = 2 * 3 + 1\n    if n > 5:\n        x = x * n\n    return x\n"
    graph = compiled(source)
    assert passes.propagate_constants(graph)
    passes.clean(graph)
    assert kinds(graph) == ["aten::mul"]
    assert generate(graph)(fb.ones(1)).item() == 7.0


def test_what_raises_is_not_computed_beforehand():
    graph = compiled("def f(n: int):\n    if n > 0:\n        return n // 0\n    return n\n")
    passes.propagate_constants(graph)
    run = generate(graph)
    assert run(-1) == -1
    with pytest.raises(ZeroDivisionError):
        run(1)


def test_calls_are_replaced_by_what_they_call():
    graph = compiled("def g(x):\n    return x + 1\ndef f(x):\n    return g(g(x))\n")
    assert passes.inline(graph) and kinds(graph) == ["aten::add", "aten::add"]
    assert generate(graph)(fb.ones(1)).item() == 3.0


def test_packing_that_is_unpacked_goes():
    graph = compiled("def f(x):\n    a = (x, x * 2)\n    b, c = a\n    return b + c\n")
    passes.peephole(graph)
    passes.clean(graph)
    assert kinds(graph) == ["aten::mul", "aten::add"]
    assert generate(graph)(fb.ones(1)).item() == 3.0


def test_optimised_graphs_compute_the_same():
    source = """
def g(x, n: int):
    if n == 2:
        return x * n
    return x
def f(x):
    for i in range(3):
        x = g(x, 2) + g(x, 1) + (x + 1) - (x + 1)
    return x
"""
    graph = compiled(source)
    before = generate(graph)(fb.ones(2)).tolist()
    count = len(kinds(graph))
    passes.optimize(graph)
    assert generate(graph)(fb.ones(2)).tolist() == before and count
    FileCheck().check("prim::Loop").check_not("prim::CallFunction").run(str(graph))


def test_file_checks_say_what_is_missing():
    text = "a = 1\nb = 2\nb = 3\n"
    FileCheck().check("a").check_next("b").check_same("2").check_count("b", 1).run(text)
    FileCheck().check_count("b", 2, exactly=True).check_not("c").run(text)
    FileCheck().run("# CHECK: a\n# CHECK-NEXT: b", text)
    for wrong in (
        FileCheck().check("c"),
        FileCheck().check("b").check("a"),
        FileCheck().check_not("b"),
        FileCheck().check("a").check_next("3"),
        FileCheck().check("a").check_same("b"),
        FileCheck().check_count("b", 3),
        FileCheck().check_count("b", 1, exactly=True),
    ):
        with pytest.raises(RuntimeError, match="Expected to"):
            wrong.run(text)


def test_generated_functions_call_methods_with_sizes_that_python_knows():
    @fb.jit.script
    def f(x):
        return x.relu().sum(1).reshape(1, 3)

    lines = [line.strip() for line in f.raw.__source__.splitlines()[1:]]
    assert lines == ["v2 = v1.relu()", "v3 = v2.sum(1)", "v4 = v3.reshape((1, 3))", "return v4"]


def test_lists_that_a_loop_adds_to_are_made_where_they_stand():
    @fb.jit.script
    def f(n: int):
        sizes = [1, 2]
        for i in range(n):
            sizes.append(i)
        return sizes

    assert f(3) == [1, 2, 0, 1, 2] and f(0) == [1, 2]


def _both(x, y):
    z = (x * y).sigmoid()
    return z + y


def test_nodes_with_gradients_that_depend_on_each_other_are_one_group():
    graph = fb.jit.script(_both).graph.copy()
    assert passes.group_differentiable(graph, 1)
    (group,) = graph.findAllNodes("prim::DifferentiableGraph")
    inner = group.g("Subgraph")
    assert [n.kind for n in inner.nodes() if n.kind != "prim::Constant"] == [
        "aten::mul",
        "aten::sigmoid",
        "aten::add",
    ]
    assert [n.kind for n in graph.nodes()] == ["prim::DifferentiableGraph"]
    assert "with prim::DifferentiableGraph_0 = graph(" in str(graph)


def test_groups_are_not_joined_around_a_node_between_them():
    def between(x):
        a = x.sigmoid()
        b = fb.cumsum(a, 0)
        return a * b

    graph = fb.jit.script(between).graph.copy()
    assert passes.group_differentiable(graph, 1)
    kinds = [n.kind for n in graph.nodes() if n.kind != "prim::Constant"]
    assert kinds == ["prim::DifferentiableGraph", "aten::cumsum", "prim::DifferentiableGraph"]


def test_no_group_crosses_a_write():
    def writes(x, y):
        a = x * 2
        y.add_(a)
        return a * y

    graph = fb.jit.script(writes).graph.copy()
    passes.group_differentiable(graph, 1)
    kinds = [n.kind for n in graph.nodes() if n.kind != "prim::Constant"]
    assert kinds == ["prim::DifferentiableGraph", "aten::add_", "prim::DifferentiableGraph"]


def test_groups_are_shown_where_an_argument_records_a_history_and_not_else():
    def long(x):
        return ((x * x).tanh() + x).sigmoid() * x

    scripted = fb.jit.script(long)
    kind = "prim::DifferentiableGraph"
    assert scripted.graph_for(fb.ones(2, requires_grad=True)).findAllNodes(kind)
    assert not scripted.graph_for(fb.ones(2)).findAllNodes(kind)
    with fb.no_grad():
        assert not scripted.graph_for(fb.ones(2, requires_grad=True)).findAllNodes(kind)


def test_groups_of_loops_are_elementwise_and_of_two_nodes_at_least():
    def mixed(x, y):
        return (fb.mm(x, y) * y).relu()

    graph = fb.jit.script(mixed).graph.copy()
    assert passes.group_loops(graph)
    (group,) = graph.findAllNodes("prim::FusionGroup")
    assert [n.kind for n in group.g("Subgraph").nodes()] == ["aten::mul", "aten::relu"]
    single = fb.jit.script(lambda x: x.relu()).graph.copy()
    assert not passes.group_loops(single)
