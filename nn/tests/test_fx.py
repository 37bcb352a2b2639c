"""Graphs of Python calls: tracing, code, running, passes."""

import copy
import math
import operator
import pickle
import threading
import warnings

import pytest

import flambeau as fb
import flambeau.nn.functional as F
from flambeau import fx, nn, relu
from flambeau.fx.passes.shape_prop import ShapeProp
from flambeau.fx.passes.split_module import split_module
from flambeau.fx.proxy import TraceError


@fx.wrap
def kept(x, by):
    return x * by if by > 1 else x


fx.wrap("len")


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 3)
        self.scale = nn.Parameter(fb.ones(3))
        self.register_buffer("shift", fb.zeros(3))

    def forward(self, x, *, twice=False):
        x = self.inner(x) * self.scale + self.shift
        return relu(x)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Block()
        self.rest = nn.Sequential(nn.ReLU(), nn.Linear(3, 2))

    def forward(self, x):
        return {"out": self.rest(self.first(x)), "size": x.size(0)}


def ops(traced):
    return [(n.op, n.name) for n in traced.graph.nodes]


def model():
    fb.manual_seed(0)
    return Model()


def test_a_traced_model_gives_the_models_results_and_gradients():
    plain, x = model(), fb.arange(6.0).reshape(2, 3)
    traced = fx.symbolic_trace(plain)
    assert fb.equal(traced(x)["out"], plain(x)["out"])
    assert traced(x)["size"] == 2
    traced(x)["out"].sum().backward()
    assert plain.first.scale.grad is not None  # the parameters are shared


def test_parameters_buffers_and_functions_become_nodes_of_their_kind():
    found = ops(fx.symbolic_trace(model()))
    assert ("call_module", "first_inner") in found
    assert ("get_attr", "first_scale") in found
    assert ("call_function", "relu") in found  # imported by name before anything was traced
    assert ("call_method", "size") in found


def test_tracing_leaves_functions_and_modules_as_they_were():
    before = fb.relu, F.gelu, relu, nn.Module.__call__, nn.Module.__getattr__
    fx.symbolic_trace(model())
    with pytest.raises(TraceError):
        fx.symbolic_trace(lambda x: fb.relu(x) if x else x)
    assert (fb.relu, F.gelu, relu, nn.Module.__call__, nn.Module.__getattr__) == before
    assert all(a is b for a, b in zip(before[:3], (fb.relu, F.gelu, relu), strict=True))
    assert not fx._symbolic_trace.is_fx_symbolic_tracing()


def test_the_target_is_the_public_function_itself():
    traced = fx.symbolic_trace(lambda x: fb.relu(x))
    assert list(traced.graph.nodes)[1].target is fb.relu


def test_other_threads_run_modules_while_one_is_traced():
    layer, results = nn.Linear(3, 2), []

    class Waiting(fx.Tracer):
        def call_module(self, m, forward, args, kwargs):
            thread = threading.Thread(target=lambda: results.append(layer(fb.ones(1, 3)).shape))
            thread.start()
            thread.join()
            return super().call_module(m, forward, args, kwargs)

    Waiting().trace(nn.Sequential(nn.ReLU()))
    assert results == [(1, 2)]


@pytest.mark.parametrize(
    "program",
    [
        lambda x: x if x.sum() > 0 else -x,
        lambda x: [i for i in x],  # noqa: C416 - the loop is what is refused
        lambda x: not x,
        lambda x: 1 in x,
    ],
)
def test_a_question_about_values_is_refused(program):
    with pytest.raises(TraceError):
        fx.symbolic_trace(program)


def test_a_value_is_unpacked_to_as_many_names_as_the_statement_has():
    def program(x):
        a, b = x.split(2)
        return a - b

    traced = fx.symbolic_trace(program)
    assert traced(fb.tensor([1.0, 2.0, 3.0, 5.0])).tolist() == [-2.0, -3.0]


def test_stars_and_keywords_are_inputs():
    def program(x, *args, scale=2, **kwargs):
        return x * scale + args[0] + kwargs["more"]

    names = [n.target for n in fx.symbolic_trace(program).graph.nodes if n.op == "placeholder"]
    assert names == ["x", "scale", "*args", "**kwargs"]


def test_concrete_arguments_decide_and_are_checked():
    def program(x, flip=False):
        return -x if flip else x

    traced = fx.symbolic_trace(program, concrete_args={"flip": True})
    assert traced(fb.ones(1), True).item() == -1
    with pytest.raises(AssertionError, match="flip has been specialized to have value True"):
        traced(fb.ones(1), False)


def test_wrapped_functions_stay_one_node_and_run():
    traced = fx.symbolic_trace(lambda x: kept(x, len(x)) + math.sqrt(4))
    assert [n.target for n in traced.graph.nodes if n.op == "call_function"] == [
        len,
        kept,
        operator.add,
    ]
    assert traced(fb.ones(3)).tolist() == [5.0, 5.0, 5.0]


def test_wrap_is_refused_outside_of_a_modules_top_level():
    with pytest.raises(NotImplementedError, match="top level of a module"):
        fx.wrap("len")
    with pytest.raises(RuntimeError, match="callable or string name"):
        fx.wrap(3)


def test_tensors_of_the_program_become_attributes():
    constant = fb.tensor([1.0, 2.0])
    traced = fx.symbolic_trace(lambda x: x.add(constant) * constant)
    assert [n.target for n in traced.graph.nodes if n.op == "get_attr"] == [
        "_tensor_constant0",
        "_tensor_constant0",
    ]
    assert traced(fb.ones(2)).tolist() == [2.0, 6.0]


@pytest.mark.parametrize("how", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_and_pickles_have_the_same_code_and_weights_of_their_own(how):
    traced, x = fx.symbolic_trace(model()), fb.ones(1, 3)
    other = how(traced)
    assert other.code == traced.code
    assert fb.equal(other(x)["out"], traced(x)["out"])
    with fb.no_grad():
        other.first.scale.zero_()
    assert traced.first.scale.sum() == 3


def test_a_graph_of_thousands_of_nodes_is_copied_and_pickled():
    graph = fx.Graph()
    x = graph.placeholder("x")
    for _ in range(5000):
        x = graph.call_function(operator.add, (x, 1))
    graph.output(x)
    assert len(copy.deepcopy(graph).nodes) == len(pickle.loads(pickle.dumps(graph)).nodes) == 5002
    assert fx.GraphModule({}, pickle.loads(pickle.dumps(graph)))(0) == 5000


def test_users_follow_the_arguments():
    graph = fx.Graph()
    a, b = graph.placeholder("a"), graph.placeholder("b")
    c = graph.call_function(operator.add, (a, [b, {"k": b}]))
    assert list(a.users) == [c]
    c.args = (b, b)
    assert not a.users
    assert c.all_input_nodes == [b]
    assert b.replace_all_uses_with(a) == [c]
    assert c.args == (a, a)
    assert not b.users


def test_arguments_cannot_be_changed_in_place():
    graph = fx.Graph()
    x = graph.placeholder("x")
    node = graph.call_function(fb.cat, ([x, x],), {"dim": 0})
    for change in (
        lambda: node.args[0].append(x),
        lambda: node.args[0].sort(),
        lambda: node.kwargs.update(dim=1),
        lambda: node.kwargs.pop("dim"),
    ):
        with pytest.raises(TypeError, match="does not support mutation"):
            change()


def test_nodes_are_inserted_where_the_block_says():
    traced = fx.symbolic_trace(lambda x: (x + 1) * 2)
    x, add, mul, _ = traced.graph.nodes
    with traced.graph.inserting_before(mul):
        traced.graph.call_function(fb.neg, (add,))
        traced.graph.call_function(fb.exp, (add,))
    with traced.graph.inserting_after(x):
        traced.graph.call_function(fb.sin, (x,))
        traced.graph.call_function(fb.cos, (x,))
    names = [n.name for n in traced.graph.nodes]
    assert names == ["x", "cos", "sin", "add", "neg", "exp", "mul", "output"]
    assert add < mul
    assert mul > x
    traced.graph.lint()


def test_what_is_used_cannot_be_erased_and_what_is_unused_can():
    traced = fx.symbolic_trace(lambda x: (x + 1, x * 2)[1])
    _, add, mul, _ = traced.graph.nodes
    with pytest.raises(RuntimeError, match="still had 1 users"):
        traced.graph.erase_node(mul)
    traced.graph.erase_node(add)
    assert len(traced.graph.nodes) == 3


def test_dead_code_is_eliminated_but_not_what_writes():
    def program(x, y):
        x.add_(1)
        fb._assert(y, "never")
        fb.exp(x)
        return x

    traced = fx.symbolic_trace(program)
    assert traced.graph.eliminate_dead_code()
    targets = [n.target for n in traced.graph.nodes]
    assert targets[2:4] == ["add_", fb._assert]
    assert fb.exp not in targets


def test_lint_finds_a_node_that_is_used_too_early():
    traced = fx.symbolic_trace(lambda x: (x + 1).relu())
    _, add, rel, _ = traced.graph.nodes
    rel.append(add)
    with pytest.raises(RuntimeError, match="was used before it has been defined"):
        traced.graph.lint()


def test_a_node_of_another_graph_is_refused():
    one, other = fx.Graph(), fx.Graph()
    x = one.placeholder("x")
    with pytest.raises(AssertionError, match="another graph"):
        other.call_function(fb.neg, (x,))


def test_names_are_legal_and_unique():
    graph = fx.Graph()
    names = [
        graph.placeholder(n).name for n in ("class", "sum", "torch", "1a", "a.b", "a_b", "a_b", "")
    ]
    assert names == ["class_1", "sum_1", "torch_1", "_1a", "a_b", "a_b_1", "a_b_2", "_unnamed"]


def test_interpreter_runs_with_defaults_and_names_the_node_that_fails():
    def program(x, y=2):
        return fb.relu(x) * y

    traced = fx.symbolic_trace(program)
    assert fx.Interpreter(traced).run(fb.ones(1)).item() == 2
    assert fx.Interpreter(traced).boxed_run([fb.ones(1), 3]).item() == 3
    with pytest.raises(RuntimeError, match="Expected positional argument for parameter x"):
        fx.Interpreter(traced).run()
    with pytest.raises(TypeError) as raised:
        fx.Interpreter(traced).run("text")
    assert "While executing %relu" in raised.value.__notes__[0]


def test_interpreter_lets_go_of_values_that_nothing_uses_any_more():
    largest = 0

    class Counting(fx.Interpreter):
        def run_node(self, n):
            nonlocal largest
            largest = max(largest, len(self.env))
            return super().run_node(n)

    Counting(fx.symbolic_trace(lambda x: (((x + 1) * 2).relu() - 3).exp())).run(fb.ones(1))
    assert largest == 1


def test_transformer_keeps_modules_and_defaults():
    traced = fx.symbolic_trace(model())
    new = fx.Transformer(traced).transform()
    x = fb.ones(1, 3)
    assert fb.equal(new(x)["out"], traced(x)["out"])
    assert [n.op for n in new.graph.nodes] == [n.op for n in traced.graph.nodes]


def test_patterns_are_replaced_everywhere_but_where_their_inside_is_used():
    def program(x, y):
        first = fb.relu(x + y)
        inner = first + y
        return fb.relu(inner) * inner

    traced = fx.symbolic_trace(program)
    matches = fx.replace_pattern(traced, lambda a, b: fb.relu(a + b), lambda a, b: fb.maximum(a, b))
    assert len(matches) == 1
    assert [n.name for n in traced.graph.nodes] == [
        "x",
        "y",
        "maximum",
        "add_1",
        "relu_1",
        "mul",
        "output",
    ]
    traced.graph.lint()


def test_patterns_chain_when_one_feeds_the_next():
    traced = fx.symbolic_trace(lambda x: fb.relu(fb.relu(x).neg()).neg())
    fx.replace_pattern(traced, lambda a: fb.relu(a).neg(), lambda a: a.abs() * 2)
    assert traced(fb.tensor([-3.0])).item() == 12


def test_the_replacement_brings_its_modules():
    class New(nn.Module):
        def __init__(self):
            super().__init__()
            self.act = nn.Tanh()

        def forward(self, x):
            return self.act(x)

    traced = fx.symbolic_trace(lambda x: fb.relu(x) + 1)
    fx.replace_pattern(traced, lambda x: fb.relu(x), fx.symbolic_trace(New()))
    assert isinstance(traced.act, nn.Tanh)
    assert traced(fb.zeros(1)).item() == 1


def test_splitting_keeps_the_result_and_refuses_circles():
    plain, x = model(), fb.ones(2, 3)
    traced = fx.symbolic_trace(plain)
    parts = {n: int(n.name.startswith("rest")) for n in traced.graph.nodes}
    split = split_module(traced, plain, lambda n: parts[n])
    assert {name for name, _ in split.named_children()} == {"submod_0", "submod_1"}
    assert fb.equal(split(x)["out"], plain(x)["out"])
    chain = fx.symbolic_trace(lambda x: ((x + 1) * 2) - 3)
    with pytest.raises(RuntimeError, match="cycle"):
        split_module(chain, None, lambda n: int(n.name == "mul"))


def test_shapes_are_noted_on_the_nodes():
    traced = fx.symbolic_trace(model())
    ShapeProp(traced).propagate(fb.ones(5, 3))
    last = next(n for n in traced.graph.nodes if n.name == "rest_1")
    assert last.meta["tensor_meta"].shape == (5, 2)
    assert last.meta["tensor_meta"].dtype == fb.float32


def test_a_module_written_to_a_folder_can_be_imported(tmp_path):
    import importlib.util

    traced = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 1)))
    traced.to_folder(tmp_path / "written", "Written")
    place = tmp_path / "written" / "module.py"
    spec = importlib.util.spec_from_file_location("written_module", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    x = fb.ones(1, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that loading a module runs code
        written = module.Written()
    assert fb.equal(written(x), traced(x))


def test_submodules_are_added_and_deleted_by_path():
    traced = fx.symbolic_trace(lambda x: x + 1)
    assert traced.add_submodule("a.b", nn.ReLU())
    assert isinstance(traced.a.b, nn.ReLU)
    traced.delete_all_unused_submodules()
    assert not hasattr(traced, "a")
    assert not traced.delete_submodule("a.b")


def test_a_subclass_may_look_into_layers_and_at_shapes_of_parameters():
    class Deep(fx.Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            return False

    layer = nn.Linear(3, 2)
    graph = Deep(param_shapes_constant=True).trace(layer)
    assert fb.equal(fx.GraphModule(layer, graph)(fb.ones(1, 3)), layer(fb.ones(1, 3)))
    assert [n.target for n in graph.nodes if n.op == "get_attr"] == ["weight", "bias"]


def test_in_place_operators_print_as_assignments():
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(operator.iadd, (x, 1)))
    made = fx.GraphModule({}, graph)
    assert "x += 1;  iadd = x" in made.code
    value = fb.zeros(1)
    assert made(value) is value
    assert value.item() == 1


def test_draws_of_random_numbers_are_kept_and_asking_does_not_fail():
    graph = fx.Graph()
    drawn, added = (graph.call_function(f, ((2,),)) for f in (fb.rand, fb.relu))
    assert drawn.is_impure()
    assert not drawn.is_impure(impure_random=False)
    assert not added.is_impure()


def test_a_call_of_what_is_no_module_is_named_by_its_type():
    graph = fx.Graph()
    graph.output(graph.call_module("other"))
    made = fx.GraphModule({"other": len}, graph)
    with pytest.raises(RuntimeError, match="does not reference an nn.Module, but builtin_function"):
        made.graph.lint()


def test_a_function_of_containers_refuses_others_than_were_traced():
    def total(parts, scale):
        return {"total": sum(parts["x"]) * scale, "last": parts["y"]}

    given = {"parts": {"x": [fx.PH, fx.PH], "y": (fx.PH, None)}}
    traced = fx.symbolic_trace(total, concrete_args=given)
    one, two = fb.ones(1), fb.full((1,), 2.0)
    for run in (traced, copy.deepcopy(traced), fx.Transformer(traced).transform()):
        found = run({"x": [one, two], "y": (two, None)}, 3)
        assert found["total"].item() == 9
        assert found["last"][0] is two
    for parts in (
        {"x": [one], "y": (two, None)},
        {"x": (one, two), "y": (two, None)},
        {"x": [one, two]},
        {"x": [one, two], "z": (two, None)},
        [one, two],
        None,
    ):
        with pytest.raises(ValueError, match="traced"):
            traced(parts, 3)
    with pytest.raises(AssertionError, match="specialized to have value None"):
        traced({"x": [one, two], "y": (two, two)}, 3)
    with pytest.raises(NotImplementedError, match="functools.partial"):
        fx.symbolic_trace(lambda x, *rest: x[0], concrete_args={"x": [fx.PH]})


def test_lists_that_do_not_change_are_containers():
    tree = fb.utils._pytree
    for frozen in (
        fx.immutable_collections.immutable_list([1, [2, 3]]),
        fx.immutable_collections.immutable_dict(a=1, b=[2, 3]),
    ):
        leaves, spec = tree.tree_flatten(frozen)
        assert leaves == [1, 2, 3]
        back = tree.tree_unflatten(leaves, spec)
        assert back == frozen
        assert type(back) is type(frozen)


def test_operators_of_bits_write_to_nothing():
    class Strict(fx.Tracer):
        check_mutable_operations = True

    graph = Strict().trace(lambda x: (x & 1, x | 1))
    assert [n.target for n in graph.nodes][1:3] == [operator.and_, operator.or_]
    with pytest.raises(RuntimeError, match="mutable operation"):
        Strict().trace(lambda x: fb.log_(x))


class Pair(metaclass=fx.ProxyableClassMeta):
    def __init__(self, left, right):
        self.left, self.right = left, right

    def add(self, other):
        return Pair(self.left + other.left, self.right + other.right)


def test_classes_may_be_made_in_traced_programs():
    traced = fx.symbolic_trace(lambda pair, x: pair.add(Pair(x, right=2 * x)))
    assert [n.target for n in traced.graph.nodes if n.op == "call_function"][-1] is Pair
    found = traced(Pair(1, 2), 3)
    assert (found.left, found.right) == (4, 8)
    assert isinstance(Pair(1, 2), Pair)


def test_a_script_sees_the_asserts_of_a_graph():
    def checked(x):
        fb._assert(x.size(0) > 1, "too few")
        fb._assert(x.sum() > 0, "negative")
        return x + 1

    scripted = fb.jit.script(fx.symbolic_trace(checked))
    assert scripted(fb.ones(2)).tolist() == [2.0, 2.0]
    for x, text in ((fb.ones(1), "too few"), (-fb.ones(2), "negative")):
        for _ in range(2):
            with pytest.raises(RuntimeError, match=text):
                scripted(x)
