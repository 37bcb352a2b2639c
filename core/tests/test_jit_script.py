"""Scripting: how functions, classes and modules become graphs, and what runs."""

import collections
import copy
import dataclasses
import enum
import io
import itertools
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, Optional

import pytest

import flambeau as fb
from flambeau import Tensor, nn
from flambeau.jit import _settings


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Point(NamedTuple):
    x: fb.Tensor
    n: int


def test_an_enum_is_compared_and_has_its_value():
    @fb.jit.script
    def f(c: Color) -> int:
        if c == Color.RED:
            return 10
        return c.value

    assert (f(Color.RED), f(Color.BLUE)) == (10, 2)


def test_a_named_tuple_is_made_and_read():
    @fb.jit.script
    def f(x) -> Point:
        p = Point(x + 1, n=3)
        return Point(p.x * p.n, p.n)

    found = f(fb.ones(1))
    assert type(found) is Point and found.n == 3 and found.x.item() == 6.0


def test_classes_have_state_methods_and_operators():
    @fb.jit.script
    class Counter:
        def __init__(self, start: int):
            self.count = start

        def add(self, n: int) -> int:
            self.count += n
            return self.count

        def __len__(self) -> int:
            return self.count

    @fb.jit.script
    def f(n: int) -> int:
        c = Counter(n)
        c.add(2)
        return len(c) * 10

    assert f(3) == 50


def test_any_is_refined_by_isinstance():
    @fb.jit.script
    def f(x: Any) -> int:
        if isinstance(x, int):
            return x + 1
        elif isinstance(x, list[int]):
            return x[0]
        return -1

    assert (f(2), f([7]), f("a")) == (3, 7, -1)


def test_what_raises_says_what_the_program_said():
    @fb.jit.script
    def f(n: int):
        if n < 0:
            raise ValueError(f"n is {n}")
        return n

    assert f(1) == 1
    with pytest.raises(fb.jit.Error, match="n is -1"):
        f(-1)


def test_arguments_are_checked_before_anything_runs():
    @fb.jit.script
    def f(x, n: int, s: str = "a"):
        return x * n

    with pytest.raises(RuntimeError, match="Expected a value of type 'int' for argument 'n'"):
        f(fb.ones(1), 2.5)
    with pytest.raises(RuntimeError, match="missing value for argument 'n'"):
        f(fb.ones(1))
    with pytest.raises(RuntimeError, match="Unknown keyword argument 'm'"):
        f(fb.ones(1), 1, m=2)
    with pytest.raises(RuntimeError, match="at most 3"):
        f(fb.ones(1), 1, "a", 2)


@pytest.mark.parametrize("value", [1 << 63, -(1 << 63) - 1, 10**400])
def test_integers_of_programs_have_64_bits(value):
    @fb.jit.script
    def f(n: int, each: list[int], either: int | None = None, pair: tuple[int, str] = (0, "")):
        return n

    assert f((1 << 63) - 1, [-(1 << 63)], -(1 << 63)) == (1 << 63) - 1
    for args in [(value, [1]), (1, [1, value]), (1, [1], value), (1, [1], 1, (value, ""))]:
        with pytest.raises(RuntimeError, match="Expected a value of type"):
            f(*args)


@pytest.mark.parametrize(
    "body",
    [
        "{'a': x} + 1",
        f"[{'[' * 40}x{']' * 40}] == 1",
        f"{'not ' * 5000}x +",
        f"x + {'nothing + ' * 2000}1",
        f"x{' ' * 10_000} + nothing{' ' * 10_000} + x",
        f"{'x + ' * 300}nothing({'x, ' * 500})",
    ],
)
def test_errors_show_a_part_of_what_is_long(body):
    with pytest.raises(RuntimeError) as caught:
        fb.jit.CompilationUnit(f"def f(x):\n    return {body}\n")
    text = str(caught.value)
    assert len(text) < 3000
    *_, line, marks = [each for each in text.splitlines() if each.strip()]
    if "<--- HERE" in marks:
        at = marks.index("~")
        assert at <= len(line)
        assert "nothing" not in line or line[at:].startswith("nothing")


def test_lists_that_are_given_are_not_changed():
    @fb.jit.script
    def f(a: list[int]):
        a.append(1)
        return a

    given = [0]
    assert f(given) == [0, 1] and given == [0]


def test_gradients_flow_through_a_scripted_function():
    @fb.jit.script
    def f(x):
        y = x
        for _ in range(3):
            y = y * x
        return y.sum()

    x = fb.tensor([1.0, 2.0], requires_grad=True)
    f(x).backward()
    assert x.grad.tolist() == [4.0, 32.0]


def test_no_grad_ends_where_its_block_does_even_by_an_error():
    @fb.jit.script
    def f(x, fail: bool):
        with fb.no_grad():
            y = x * 2
            if fail:
                raise RuntimeError("inside")
        return y, x * 3

    x = fb.ones(1, requires_grad=True)
    y, z = f(x, False)
    assert not y.requires_grad and z.requires_grad
    with pytest.raises(fb.jit.Error):
        f(x, True)
    assert fb.is_grad_enabled()


class Net(fb.nn.Module):
    scale: Final[float]

    def __init__(self):
        super().__init__()
        self.layers = fb.nn.ModuleList([fb.nn.Linear(3, 3), fb.nn.ReLU(), fb.nn.Linear(3, 2)])
        self.scale = 2.0
        self.calls = 0
        self.register_buffer("seen", fb.zeros(1))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        self.calls += 1
        return self.scaled(x)

    def scaled(self, x):
        if self.training:
            self.seen += 1
        return x * self.scale

    @fb.jit.export
    def reset(self) -> int:
        before = self.calls
        self.calls = 0
        return before

    @fb.jit.unused
    def broken(self, x):
        return {*x}


def test_a_scripted_module_does_what_the_module_does_with_its_parameters():
    net = Net()
    scripted = fb.jit.script(net)
    x = fb.randn(4, 3)
    assert (scripted(x) - net(x)).abs().max().item() == 0
    assert [n for n, _ in scripted.named_parameters()] == [n for n, _ in net.named_parameters()]
    assert scripted.layers[0].weight is net.layers[0].weight
    assert scripted.reset() == 1 and scripted.calls == 0
    scripted.eval()
    scripted(x)
    assert scripted.seen.item() == net.seen.item() == 2  # they share the buffer
    assert "CallMethod" in str(scripted.graph) and "CallMethod" not in str(scripted.inlined_graph)
    assert not hasattr(scripted, "missing")


def test_scripts_read_parts_of_sparse_tensors_as_they_are():
    @fb.jit.script
    def parts(x: fb.Tensor):
        y = x.coalesce()
        return y._indices(), y._values(), y._nnz()

    indices, values, count = parts(fb.tensor([[0.0, 5.0], [7.0, 0.0]]).to_sparse())
    assert (indices.tolist(), values.tolist(), count) == ([[0, 1], [1, 0]], [5.0, 7.0], 2)


class Pair:
    def __init__(self, one: fb.Tensor, other: fb.Tensor):
        self.one = one
        self.other = other

    @classmethod
    def of_twice(self, one: fb.Tensor):  # noqa: N804 - scripts call it on an object
        self = Pair.__new__(Pair)
        self.one = one
        self.other = one * 2
        return self

    def next(self):
        return self.of_twice(self.other)


def test_methods_of_a_class_are_called_on_its_objects():
    Scripted = fb.jit.script(Pair)

    @fb.jit.script
    def program(x: fb.Tensor):
        pair = Scripted(x, x + 1).next().next()
        return pair.one, pair.other

    one, other = program(fb.tensor([1.0]))
    assert (one.item(), other.item()) == (4.0, 8.0)


def test_modules_of_one_class_and_settings_share_their_type():
    a, b, c = (fb.jit.script(fb.nn.Linear(2, n)) for n in (3, 3, 4))
    assert a._type_of_script is b._type_of_script is not c._type_of_script


def test_what_cannot_be_compiled_says_through_which_call():
    class Bad(fb.nn.Module):
        def forward(self, x):
            return self.helper(x)

        def helper(self, x):
            return x.missing_method()

    with pytest.raises(fb.jit.CompilationError) as error:
        fb.jit.script(Bad())
    text = str(error.value)
    assert (
        "missing_method" in text and "'helper' is being compiled since it was called from" in text
    )


def test_methods_of_older_classes_are_compiled_when_the_object_is_made():
    class Old(fb.jit.ScriptModule):
        __constants__ = ("n",)

        def __init__(self):
            super().__init__()
            self.n = 2
            self.names = fb.jit.Attribute(["a"], list[str])
            self.w = fb.nn.Parameter(fb.ones(2))
            self.define("""
                def twice(self, x):
                    return x + x
            """)

        @fb.jit.script_method
        def forward(self, x):
            for _ in range(self.n):
                x = self.twice(x) * self.w
            return x, len(self.names)

    old = Old()
    x, names = old(fb.ones(2))
    assert x.tolist() == [4.0, 4.0] and names == 1
    with pytest.raises(AttributeError, match="constant"):
        old.n = 3


def test_sequences_and_dicts_of_modules_are_gone_over():
    class Many(fb.nn.Module):
        def __init__(self):
            super().__init__()
            self.by_name = fb.nn.ModuleDict({"a": fb.nn.ReLU(), "b": fb.nn.Tanh()})
            self.seq = fb.nn.Sequential(fb.nn.ReLU(), fb.nn.ReLU())

        def forward(self, x):
            names: list[str] = []
            for name, layer in self.by_name.items():
                names.append(name)
                x = layer(x)
            return self.seq(x), names, self.by_name["b"](x), len(self.seq)

    many = Many()
    ours, names, tanh, count = fb.jit.script(many)(fb.tensor([-1.0, 1.0]))
    assert names == ["a", "b"] and count == 2
    assert ours.tolist() == many(fb.tensor([-1.0, 1.0]))[0].tolist() and tanh.shape == (2,)


def test_a_fork_is_waited_for():
    @fb.jit.script
    def g(x, n: int):
        return x * n

    @fb.jit.script
    def f(x):
        later = fb.jit.fork(g, x, 3)
        return x + fb.jit.wait(later)

    assert f(fb.ones(1)).item() == 4.0


def test_importing_the_package_loads_no_compiler():
    import subprocess
    import sys

    code = "import flambeau, sys; print('flambeau.jit' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@dataclasses.dataclass(order=True)
class Span:
    start: int
    end: int = 4
    note: Optional[str] = None  # noqa: UP045 - the older spelling

    def __post_init__(self):
        assert self.start >= 0

    def length(self) -> int:
        return self.end - self.start


def test_data_classes_are_scripted_with_the_methods_that_they_get():
    span = fb.jit.script(Span)

    @fb.jit.script
    def f(a: int, b: int):
        x, y = span(a), span(start=b, end=5)
        return x.length() + y.length(), x == y, x == span(a), x.note is None

    assert span is Span and f(1, 2) == (6, False, True, True)
    with pytest.raises(fb.jit.Error):
        f(-1, 2)


@dataclasses.dataclass(order=True)
class Version:
    major: int
    minor: int


def test_ordered_data_classes_are_compared_field_by_field():
    @fb.jit.script
    def f(a: int, b: int, c: int, d: int):
        x, y = Version(a, b), Version(c, d)
        return x < y, x <= y, x > y, x >= y

    for a, b, c, d in itertools.product(range(2), repeat=4):
        x, y = Version(a, b), Version(c, d)
        assert f(a, b, c, d) == (x < y, x <= y, x > y, x >= y)


@dataclasses.dataclass
class Made:
    values: list[int] = dataclasses.field(default_factory=list)


def test_defaults_that_a_function_makes_are_refused():
    with pytest.raises(NotImplementedError, match="Default factory initializers"):
        fb.jit.script(Made)


def test_methods_that_are_named_after_dtypes_change_them():
    @fb.jit.script
    def f(x):
        return x.float(), x.double(), x.half(), x.long(), x.int(), x.short(), x.char(), x.byte()

    @fb.jit.script
    def g(x):
        return x.cfloat(), x.cdouble()

    x = fb.tensor([3])
    for made in (f, g):
        names = ("float double half long int short char byte", "cfloat cdouble")[made is g].split()
        assert [y.dtype for y in made(x)] == [getattr(x, name)().dtype for name in names]


def test_a_list_of_constants_can_be_changed():
    @fb.jit.script
    def changed(x):
        y = [1, 2]
        y += [3]
        z = [1, 2].copy()
        z.append(4)
        return x.reshape([1, -1]), y, z

    found, y, z = changed(fb.ones(2))
    assert (tuple(found.shape), y, z) == ((1, 2), [1, 2, 3], [1, 2, 4])


def test_a_module_whose_forward_is_a_text_is_called_copied_and_saved():
    class Wrapped(fb.jit.ScriptModule):
        def __init__(self):
            super().__init__()
            self.scale = 3.0

    made = Wrapped()
    made.define("def forward(self, x):\n    return x * self.scale\n")
    x = fb.ones(2)
    file = io.BytesIO()
    made.save(file)
    file.seek(0)
    for each in (made, copy.deepcopy(made), fb.jit.load(file)):
        assert each(x).tolist() == [3.0, 3.0]
    with pytest.raises((AttributeError, NotImplementedError), match="forward"):
        Wrapped()(x)


def test_types_answer_to_the_names_of_pytorch():
    @fb.jit.script
    def f(x, a: list[int], b: tuple[int, float], c: dict[str, float], d: int | None):
        return x

    x, a, b, c, d = [value.type() for value in f.graph.inputs()]
    assert [each.kind() for each in (x, a, b, c, d)] == [
        "TensorType",
        "ListType",
        "TupleType",
        "DictType",
        "OptionalType",
    ]
    assert [each.str() for each in (a, b, c, d)] == [
        "int[]",
        "(int, float)",
        "Dict(str, float)",
        "int?",
    ]
    assert [str(each) for each in b.elements()] == ["int", "float"]
    assert (str(c.getKeyType()), c.getValueType().annotation_str) == ("str", "float")
    assert d.getElementType().isSubtypeOf(d) and not d.isSubtypeOf(d.getElementType())


@fb.jit.ignore
def _left_to_python(a, b):
    return a * b


def test_what_python_runs_returns_a_tensor_unless_it_says_otherwise():
    @fb.jit.script
    def f(x, y):
        return _left_to_python(x, y) + x

    assert f(fb.ones(2), fb.full((2,), 3.0)).tolist() == [4.0, 4.0]


def test_classes_of_the_enclosing_function_may_be_named_in_comments_and_in_themselves():
    @fb.jit.script
    class Held:
        def __init__(self, x: int):
            self.x = x

        def twin(self, other):
            # type: (Held) -> Held
            return Held(other.x)

    @fb.jit.script
    def use(held):
        # type: (Held) -> int  # and another comment
        return held.twin(held).x

    assert use(Held(3)) == 3


def test_a_tuple_is_a_list_where_lists_are_one_of_several_types():
    def length(x: list[int] | int | None) -> int:
        return len(x) if isinstance(x, list) else -1

    @fb.jit.script
    def use(x: fb.Tensor) -> int:
        return length((int(x), 2))

    assert use(fb.tensor(3)) == 2


def test_sizes_given_one_by_one_may_be_tensors():
    @fb.jit.script
    def rows(x, n):
        return x.reshape(n, -1), x.view(2, n)

    first, second = rows(fb.arange(6), fb.tensor(3))
    assert (first.shape, second.shape) == ((3, 2), (2, 3))


def test_appending_to_a_list_gives_the_list():
    @fb.jit.script
    def sums(x):
        found = [x]
        for i in range(2):
            found = found.append(x + i)
        again = found.append(x)
        found.append(x)
        return fb.stack(again)

    assert sums(fb.ones(1)).tolist() == [[1.0], [1.0], [2.0], [1.0], [1.0]]


def test_a_type_comment_may_end_in_another_and_say_arguments_only():
    @fb.jit.script
    def counted(x, device):
        # type: (List[int], Device)  # of a tensor
        return len(x)

    kinds = [str(each.type) for each in counted.schema.arguments]
    assert kinds == ["List[int]", "Device"]
    assert counted([1, 2], fb.device("cpu")) == 2


def test_without_an_annotation_a_function_that_does_not_always_return_gives_none_else():
    def branch(x):
        if bool(x):
            return 1

    def loop(x):
        for i in range(3):
            if bool(x) and i == 1:
                return i

    for f, found in ((branch, 1), (loop, 1)):
        scripted = fb.jit.script(f)
        assert str(next(scripted.graph.outputs()).type()) == "Optional[int]"
        assert scripted(fb.ones(())) == found and scripted(fb.zeros(())) is None

    def annotated(x) -> int | None:
        if bool(x):
            return 1

    with pytest.raises(RuntimeError, match="does not return along all paths"):
        fb.jit.script(annotated)


def test_comments_may_leave_out_what_is_returned():
    def f(n, x):
        # type: (int, Tensor)
        return x * n

    assert fb.jit.script(f)(2, fb.ones(1)).tolist() == [2.0]


def test_generators_are_lists_and_lists_of_several_types_have_a_union():
    @fb.jit.script
    def f(x):
        return any(i > 1 for i in [1, 2]), [1, 2.5], {"a": 1, "b": 2.5}, len([x, 1])

    assert f(fb.ones(1)) == (True, [1, 2.5], {"a": 1, "b": 2.5}, 2)
    kinds = next(f.graph.outputs()).type().elements()
    assert [str(kind) for kind in kinds[1:3]] == [
        "List[Union[float, int]]",
        "Dict[str, Union[float, int]]",
    ]


def test_what_is_returned_becomes_what_is_annotated_member_by_member():
    def numbers(x):
        # type: (Tensor) -> Tuple[int, float]
        return x.item(), x.item()

    def either(x) -> int | fb.Tensor:
        if bool(x):
            return 1
        return x

    assert fb.jit.script(numbers)(fb.ones(())) == (1, 1.0)
    scripted = fb.jit.script(either)
    file = io.BytesIO()
    fb.jit.save(scripted, file)
    file.seek(0)
    assert "_0 : Union[Tensor, int] = 1" in scripted.code
    for each in (scripted, fb.jit.load(file)):
        assert each(fb.ones(())) == 1 and each(fb.zeros(())).tolist() == 0.0


def test_functions_of_nn_functional_are_scripted_by_themselves():
    import flambeau.nn.functional as F  # the tests of the core run without nn, too

    padded = fb.jit.script(F.pad)
    assert padded(fb.ones(2), [1, 1]).tolist() == [0.0, 1.0, 1.0, 0.0]
    assert fb.jit.script(F.relu)(fb.tensor([-1.0, 1.0])).tolist() == [0.0, 1.0]


def test_a_module_holds_a_function_that_offers_its_calls_to_modes_and_classes():
    from flambeau._tensor.overrides import Overridable

    offering = fb.relu if isinstance(fb.relu, Overridable) else Overridable(fb.relu)

    class Active(fb.nn.Module):
        def __init__(self):
            super().__init__()
            self.activation = offering

        def forward(self, x):
            return self.activation(x)

    assert fb.jit.script(Active())(fb.tensor([-1.0, 1.0])).tolist() == [0.0, 1.0]


def test_an_ordered_dictionary_is_a_dictionary():
    def keyed(x):
        found = collections.OrderedDict()
        found["b"] = x
        found["a"] = -x
        return found

    scripted = fb.jit.script(keyed)
    assert (
        str(scripted.graph.findNode("prim::DictConstruct").output().type()) == "Dict[str, Tensor]"
    )
    assert {key: each.item() for key, each in scripted(fb.ones(())).items()} == {"b": 1, "a": -1}


def test_numbers_of_a_layer_that_a_program_derives_are_what_they_are():
    class Simple(fb.nn.Conv3d):
        def __init__(self, planes, stride=1):
            super().__init__(planes, 2, (3, 3, 3), stride=stride, padding=1, bias=False)

    layer, x = Simple(2), fb.randn(1, 2, 3, 4, 4)
    assert fb.equal(fb.jit.script(layer)(x), layer(x))


def test_a_sequence_of_modules_may_end_with_one_that_returns_a_tuple():
    net, x = fb.nn.Sequential(fb.nn.Linear(3, 3), fb.nn.LSTM(3, 4)), fb.randn(5, 2, 3)
    (found, (h, c)), (expected, (wanted_h, wanted_c)) = fb.jit.script(net)(x), net(x)
    assert fb.equal(found, expected) and fb.equal(h, wanted_h) and fb.equal(c, wanted_c)


def test_an_attribute_may_have_the_name_of_a_method_of_modules():
    class Named(fb.jit.ScriptModule):
        def __init__(self):
            super().__init__()
            self.float = fb.jit.Attribute(2.5, float)
            self.children = fb.jit.Attribute(3, int)

        @fb.jit.script_method
        def forward(self):
            return self.float, self.children

    assert Named()() == (2.5, 3)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "program",
    [
        lambda x: x.solve(x.t())[0],
        lambda x: x.symeig(True, False)[0],
        lambda x: x.symeig()[0],
        lambda x: fb.lstsq(x, x)[0],
        lambda x: fb.matrix_rank(x),
        lambda x: fb.eig(x @ x.t() * 0.1)[0],
    ],
)
def test_ops_that_pytorch_has_removed_are_in_traces(program):
    traced = fb.jit.trace(program, fb.eye(2) + fb.ones(2, 2))
    x = fb.tensor([[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 4.0]])
    assert fb.equal(traced(x), program(x))
    again = fb.jit.CompilationUnit(traced.code)
    assert fb.equal(next(iter(again._functions.values()))(x), program(x))


def test_resampling_as_one_op_is_run():
    unit = fb.jit.CompilationUnit(
        "def f(x):\n"
        "    return torch.__interpolate(x, None, [2.0], 'linear', True), "
        "torch.__interpolate(x, 4)\n"
    )
    x = fb.arange(3.0).reshape(1, 1, 3)
    line, nearest = unit.f(x)
    assert line.flatten().tolist() == pytest.approx([0.0, 0.4, 0.8, 1.2, 1.6, 2.0])
    assert nearest.flatten().tolist() == [0.0, 0.0, 1.0, 2.0]


def test_programs_can_be_compiled_with_what_they_call_in_the_place_of_calls(monkeypatch):
    def inner(x):
        return x.neg()

    def program(x):
        return fb.jit.script(inner)(x) + 1

    source = "def inner(x):\n    return x.neg()\ndef program(x):\n    return inner(x) + 1\n"
    whole = fb.jit.CompilationUnit(source).program
    monkeypatch.setattr(_settings, "INLINES", True)
    for each in (fb.jit.CompilationUnit(source).program, fb.jit.trace(program, fb.ones(1))):
        assert not each.graph.findAllNodes("prim::CallFunction")
        assert [node.kind for node in each.graph.findAllNodes("aten::neg")] == ["aten::neg"]
        assert each(fb.ones(1)).tolist() == whole(fb.ones(1)).tolist() == [0.0]


def test_a_unit_sees_the_names_of_the_function_that_makes_it():
    F = fb.nn.functional
    unit = fb.jit.CompilationUnit("def f(x):\n    return F.relu(x)\n")
    assert F and unit.f(fb.tensor([-1.0, 2.0])).tolist() == [0.0, 2.0]


def test_legacy_names_of_tensors_are_annotations_of_tensors():
    def chosen(x: fb.FloatTensor, mask: fb.ByteTensor | None = None) -> fb.Tensor:
        return x if mask is None else x * mask

    scripted = fb.jit.script(chosen)
    assert [str(each.type) for each in scripted.schema.arguments] == ["Tensor", "Optional[Tensor]"]
    assert scripted(fb.ones(2), fb.tensor([0, 1], dtype=fb.uint8)).tolist() == [0.0, 1.0]


def test_the_class_of_a_tensor_is_in_messages():
    def checked(x: fb.Tensor, weight: fb.Tensor | None = None) -> str:
        if weight is not None and not isinstance(weight, fb.Tensor):
            raise TypeError(f"weight is a {type(weight)}")
        if x.dim() > 1:
            raise ValueError(f"{x.dim()} dimensions of a {type(x)}")
        kind = type(x)
        return f"{kind}"

    scripted = fb.jit.script(checked)
    assert scripted(fb.ones(1)) == str(fb.Tensor)
    with pytest.raises(fb.jit.Error, match=r"ValueError: 2 dimensions of a <class"):
        scripted(fb.ones(1, 1))

    def of_a_number(n: int) -> str:
        return f"{type(n)}"

    with pytest.raises(RuntimeError, match=r"found type 'int'"):
        fb.jit.script(of_a_number)


class Fitted(fb.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = fb.nn.Parameter(fb.ones(2))
        self.fitted = False

    def fit(self, x: fb.Tensor) -> "Fitted":
        self.fitted = True
        return self

    def of(self, other: Optional["Fitted"]) -> fb.Tensor:
        return fb.zeros(1) if other is None else other.weight

    def forward(self, x: fb.Tensor) -> fb.Tensor:
        if not self.fitted:
            self.fit(x)
        return x + self.of(self)


class FittedBelow(Fitted):
    pass


def test_methods_of_a_module_name_its_class():
    scripted = fb.jit.script(Fitted())
    assert scripted(fb.ones(2)).tolist() == [2.0, 2.0] and scripted.fitted
    with pytest.raises(RuntimeError, match="Fitted"):
        fb.jit.script(FittedBelow())


class SetsItsWeight(fb.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = fb.nn.Linear(2, 2, bias=False)
        self.register_buffer("count", fb.zeros(1))

    def forward(self, x: fb.Tensor) -> fb.Tensor:
        self.linear.weight = x * 2
        self.count = self.count + 1
        return self.linear(x) + self.count


def test_a_script_sets_a_parameter_to_any_tensor() -> None:
    scripted = fb.jit.script(SetsItsWeight())
    x = fb.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert fb.equal(scripted(x), x @ (x * 2).t() + 1)
    assert fb.equal(scripted(x), x @ (x * 2).t() + 2)
    assert [name for name, _ in scripted.named_parameters()] == ["linear.weight"]
    assert fb.equal(scripted.linear.weight, x * 2)
    assert set(scripted.state_dict()) == {"linear.weight", "count"}


class WithHelpers(fb.nn.Module):
    TIMES = 3

    @staticmethod
    def raised(x: fb.Tensor, by: int) -> fb.Tensor:
        return x + by

    def forward(self, x: fb.Tensor) -> fb.Tensor:
        return WithHelpers.raised(x, 2) * WithHelpers.TIMES


class MakesAModule(fb.nn.Module):
    def forward(self, x: fb.Tensor) -> fb.Tensor:
        return WithHelpers()(x)


class MisspellsAMethod(fb.nn.Module):
    def forward(self, x: fb.Tensor) -> fb.Tensor:
        return WithHelpers.lowered(x)  # type: ignore[attr-defined,no-any-return]


def test_a_script_reads_static_methods_and_constants_of_a_class_of_modules() -> None:
    assert fb.jit.script(WithHelpers())(fb.ones(2)).tolist() == [9.0, 9.0]
    with pytest.raises(RuntimeError, match="only objects of it can be used"):
        fb.jit.script(MakesAModule())
    with pytest.raises(RuntimeError, match="'WithHelpers' has no attribute 'lowered'"):
        fb.jit.script(MisspellsAMethod())


class Uncounted(tuple):
    """A tuple that has neither a length nor elements to whoever asks it."""

    def __len__(self) -> int:
        raise NotImplementedError

    def __iter__(self) -> Iterator[object]:
        raise NotImplementedError


@pytest.mark.parametrize("held", [(), (3,), (1, Uncounted((2.0, "a")))])
def test_the_tuple_below_a_class_is_what_a_module_keeps(held):
    class Holder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.held = Uncounted(held)

        def forward(self, x: Tensor) -> Tensor:
            return x + len(self.held)

    scripted = fb.jit.script(Holder())
    assert scripted(fb.ones(1)).item() == 1 + len(held)
    assert type(scripted.held) is tuple and repr(scripted.held) == repr(held)


# fmt: off
def _known_beside_and_after(
    a,  # type: Tensor
    n,  # type: int
):
    # type: (...) -> Tensor
    return a * n


def _one_is_not_known(
    a,  # type: Tensor
    n,
):
    # type: (...) -> Tensor
    return a * n


def _no_result_beside(
    a,  # type: Tensor
    n,  # type: int
):
    return a * n


def _two_after(a, n):
    # type: (Tensor, int) -> Tensor
    # type: no types
    return a * n


def _no_space(a, n):
    #type: (Tensor, int) -> Tensor
    return a * n


def _space_before_the_colon(a, n):
    # type : (Tensor, int) -> Tensor
    return a * n


def _meant_for_checkers(a, n: int):  # type : ignore
    return a * n
# fmt: on


def test_types_in_comments_beside_parameters_are_all_known_or_refused():
    assert str(fb.jit.script(_known_beside_and_after).schema).endswith(
        "(Tensor a, int n) -> Tensor"
    )
    with pytest.raises(RuntimeError, match=r"Number of type annotations \(1\) did not match the"):
        fb.jit.script(_one_is_not_known)
    for fn in (_no_result_beside, _two_after):
        with pytest.raises(RuntimeError, match="Return type line '# type: .* not found on multi"):
            fb.jit.script(fn)


def test_a_comment_that_is_nearly_one_of_types_is_refused():
    for fn in (_no_space, _space_before_the_colon):
        with pytest.raises(RuntimeError, match="annotation prefix in line 1 is probably invalid"):
            fb.jit.script(fn)
    assert fb.jit.script(_meant_for_checkers)(fb.ones(1), 2).item() == 2


def test_strings_are_split_from_the_right_at_single_spaces():
    @fb.jit.script
    def f(x: str, at: str, n: int):
        return x.rsplit(), x.rsplit(at), x.rsplit(at, n)

    assert f(" a b  c", "b", 0) == (["", "a", "b", "", "c"], [" a ", "  c"], [" a b  c"])


def test_scripts_switch_the_recording_of_gradients():
    @fb.jit.script
    def f(x):
        fb.set_grad_enabled(False)
        y = x * 2
        fb.set_grad_enabled(True)
        return y, x * 2

    x = fb.ones(1, requires_grad=True)
    for _ in range(12):  # and the plan of it, if there were one
        assert [y.requires_grad for y in f(x)] == [False, True]
