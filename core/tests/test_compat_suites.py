"""What PyTorch 1's own tests import, and the defaults of its time."""

from __future__ import annotations

import copy
import functools
import importlib
import io
import pickle
import re
import warnings
from datetime import timedelta

import pytest

import flambeau as fb
from flambeau.compat import torch_alias
from flambeau.compat._era import SETTINGS

pytest.importorskip("flambeau.nn")
pytest.importorskip("flambeau_numpy")


@pytest.fixture
def torch():
    with torch_alias("1.2") as module:
        yield module


@pytest.mark.parametrize("shape", [(), (3,), (2, 2)])
def test_jacobians_by_differences_and_by_backward_agree(torch, shape):
    from torch.autograd.gradcheck import get_analytical_jacobian, get_numerical_jacobian

    x = torch.arange(1.0, 1 + fb.Size(shape).numel(), dtype=torch.float64).reshape(shape)
    inputs = [x.clone().requires_grad_(), torch.ones(2)]

    def cube(given):
        return given[0] ** 3

    numerical = get_numerical_jacobian(cube, inputs, eps=1e-4)
    analytical, same, sizes = get_analytical_jacobian(inputs, cube(inputs))
    assert same and sizes and len(numerical) == len(analytical) == 1
    assert fb.allclose(analytical[0], fb.diag(3 * x.reshape(-1) ** 2))
    assert fb.allclose(numerical[0], analytical[0], atol=1e-6)
    assert fb.equal(inputs[0].detach(), x)


def test_copies_that_are_not_contiguous_have_the_same_elements(torch):
    x = torch.arange(24).reshape(2, 3, 4)
    gaps = torch.testing.make_non_contiguous(x)
    assert fb.equal(gaps, x) and not gaps.is_contiguous() and gaps.storage_offset() > 0


def test_reductions_have_the_numbers_and_older_arguments_of_their_time(torch):
    from torch.nn.functional import _Reduction

    assert [_Reduction.get_enum(name) for name in ("none", "mean", "sum")] == [0, 1, 2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert _Reduction.legacy_get_string(None, False, emit_warning=False) == "none"
    with pytest.warns(UserWarning, match="reduction='sum'"):
        assert _Reduction.legacy_get_enum(False, None) == 2
    with pytest.raises(ValueError, match="most"):
        _Reduction.get_enum("most")


def test_an_exception_travels_with_its_traceback(torch):
    from torch._utils import ExceptionWrapper

    try:
        raise KeyError("lost")
    except KeyError:
        wrapped = ExceptionWrapper(where="in a thread")
    assert wrapped.exc_type is KeyError and "Traceback" in wrapped.exc_msg
    with pytest.raises(KeyError, match="Caught KeyError in a thread"):
        wrapped.reraise()


@pytest.mark.parametrize(
    ("first", "second", "answer"),
    [((2, 3), (2, 3), False), ((2, 3), (3,), True), ((2, 3), (1, 1), True), ((3,), (1, 1), True)],
)
def test_shapes_that_exporters_broadcast(torch, first, second, answer):
    from torch.autograd._functions.utils import check_onnx_broadcast

    assert check_onnx_broadcast(first, second) is answer


def test_shapes_that_exporters_do_not_broadcast(torch):
    from torch.autograd._functions.utils import check_onnx_broadcast, prepare_onnx_paddings

    with pytest.raises(ValueError, match="Numpy style broadcasting"):
        check_onnx_broadcast((3, 2), (3, 1))
    assert prepare_onnx_paddings(3, [1, 2, 3, 4]) == [0, 3, 1, 0, 4, 2]


def test_copies_between_devices_refuse_the_cpu_where_pytorch_does(torch):
    from torch.nn.parallel._functions import Broadcast, Gather, Scatter

    x = torch.arange(4.0, requires_grad=True)
    with pytest.raises(TypeError, match="CPU tensors"):
        Broadcast.apply((0, 1), x)
    parts = Scatter.apply(("cpu", "cpu"), [1, 3], 0, x)
    assert [len(part) for part in parts] == [1, 3]
    assert Gather.apply(-1, 0, *parts).tolist() == x.tolist()


def test_defaults_are_those_of_the_version_and_afterwards_ours():
    def defaults():
        grid = fb.nn.functional.affine_grid(fb.eye(2, 3).unsqueeze(0), (1, 1, 1, 2))
        alone = fb.sparse_coo_tensor([[0]], [1.0], (2,)).is_coalesced()
        return fb.full((1,), 3).dtype, grid[0, 0, :, 0].tolist(), alone

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = defaults()
        with torch_alias("1.2"):
            assert defaults() == (fb.float32, [-1.0, 1.0], False)
        with torch_alias("2.13"):
            assert defaults() == ours == (fb.int64, [-0.5, 0.5], True)


@pytest.mark.parametrize("place", SETTINGS)
def test_what_a_version_sets_is_there(place):
    path, _, name = place.partition(":")
    assert getattr(importlib.import_module(path), name) is not SETTINGS[place]


def test_schedulers_take_epochs_without_a_warning_where_they_did(torch):
    optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    optimizer.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schedule.step(2)
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.1)


def test_a_schedule_by_milestones_may_be_given_them_as_a_list(torch):
    class Listed(torch.optim.lr_scheduler.MultiStepLR):
        def __init__(self, optimizer, milestones):
            self.milestones, self.gamma = sorted(milestones), 0.5
            super(torch.optim.lr_scheduler.MultiStepLR, self).__init__(optimizer)

        def get_lr(self):
            return self._get_closed_form_lr()

    optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    schedule = Listed(optimizer, [3, 1])
    optimizer.step()
    schedule.step(2)
    assert optimizer.param_groups[0]["lr"] == 0.5


def test_after_the_block_every_function_is_the_one_of_today():
    from flambeau.compat._earlier import _EARLIER

    def now():
        return [
            functools.reduce(getattr, path.split("."), importlib.import_module(module))
            for module, path, _ in _EARLIER
        ]

    before = now()
    with torch_alias("1.2"):
        assert all(old is not new for old, new in zip(before, now(), strict=True))
    assert all(old is new for old, new in zip(before, now(), strict=True))
    with torch_alias():
        assert all(old is new for old, new in zip(before, now(), strict=True))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda t: t.cat([]), RuntimeError, "non-empty"),
        (lambda t: t.ones(2, 1).rot90(1, [0, -3]), RuntimeError, "out of range"),
        (lambda t: t.norm(t.ones(2), "nuc", (0, 1)), RuntimeError, "out of range"),
        (lambda t: t.tensor([]).is_nonzero(), RuntimeError, "^bool value of Tensor"),
        (lambda t: t.nonzero(t.ones(1), as_tuple=True, out=t.ones(1).long()), TypeError, "inv"),
        (lambda t: t.max(t.ones(2, 0)), RuntimeError, "does not have an identity"),
        (lambda t: t.mvlgamma(t.tensor([0.5]), 3), RuntimeError, "Condition for computing"),
        (lambda t: t.ones(1, 2, 2).lu(pivot=False), RuntimeError, "without pivoting"),
        (lambda t: t.tensor(), TypeError, "missing 1 required positional arguments"),
        (lambda t: t.utils.data.RandomSampler([1], num_samples=1), ValueError, "replacement"),
        (
            lambda t: t.utils.data.DataLoader([1], num_workers=1, multiprocessing_context=3),
            ValueError,
            "valid context",
        ),
        (lambda t: t.load(object()), AttributeError, "seekable"),
    ],
)
def test_errors_are_those_of_their_time(torch, call, error, words):
    with pytest.raises(error, match=words):
        call(torch)


def test_copies_are_in_row_major_order_unless_another_is_asked_for(torch):
    x = torch.ones(2, 3).t()
    assert x.clone().is_contiguous() and torch.empty_like(x).is_contiguous()
    assert not torch.empty_like(x, memory_format=torch.preserve_format).is_contiguous()
    assert torch.eye(2).to_sparse().clone().is_sparse


def test_integers_are_drawn_between_bounds_that_the_dtype_has_not(torch):
    found = torch.randint(-128, 128, (200,), dtype=torch.uint8)
    assert found.max() > 127
    with pytest.raises(RuntimeError, match="out of bounds"):
        torch.randint(5, (2,), dtype=torch.bool)


def test_systems_are_solved_for_rows_with_a_warning(torch):
    a = torch.eye(2).expand(3, 2, 2) * 2
    with pytest.warns(UserWarning, match="Passing RHS tensor"):
        found = torch.lu_solve(torch.ones(3, 2), *a.lu())
    assert found.tolist() == [[0.5, 0.5]] * 3


def test_streams_have_no_length_in_batches(torch):
    class Two(torch.utils.data.IterableDataset):
        def __iter__(self):
            return iter([1, 2])

        def __len__(self):
            return 2

    with pytest.raises(TypeError, match="Cannot determine the DataLoader length"):
        len(torch.utils.data.DataLoader(Two()))
    assert len(torch.utils.data.DataLoader([1, 2])) == 2


def test_checkpoints_are_streams_which_may_follow_other_bytes(torch):
    file = io.BytesIO()
    file.write(b"before")
    torch.save(torch.arange(3), file)
    file.write(b"after")
    file.seek(len(b"before"))
    assert torch.load(file, weights_only=True).tolist() == [0, 1, 2] and file.read() == b"after"


def test_byte_strings_of_python_2_are_ascii(torch):
    file = io.BytesIO()
    torch.save({"name": 1}, file, pickle_protocol=2)
    data = file.getvalue().replace(b"X\x04\x00\x00\x00name", b"U\x04n\xc3\xa4m")
    with pytest.raises(UnicodeDecodeError, match="ascii"):
        torch.load(io.BytesIO(data), weights_only=True)
    assert torch.load(io.BytesIO(data), weights_only=True, encoding="utf-8") == {"näm": 1}


def test_segments_may_begin_with_several_arguments_or_none(torch):
    from torch.utils.checkpoint import checkpoint_sequential

    x = torch.ones(2, requires_grad=True)
    y = torch.full((2,), 3.0, requires_grad=True)
    parts = [lambda a, b: a * b, torch.exp, torch.sin]
    with pytest.warns(DeprecationWarning, match="number of inputs"):
        found = checkpoint_sequential(parts, 2, x, y)
    found.sum().backward()
    z = torch.tensor([3.0, 3.0], requires_grad=True)
    z.exp().sin().sum().backward()
    assert fb.allclose(y.grad, z.grad) and fb.allclose(x.grad, 3 * z.grad)
    with pytest.warns(DeprecationWarning, match="number of inputs"):
        assert checkpoint_sequential([lambda: 1], 1) == 1


def test_elements_that_share_memory_are_found(torch):
    x = torch.ones(3, 4)
    assert torch._debug_has_internal_overlap(x.t()) == 0
    assert torch._debug_has_internal_overlap(x[:1].expand(2, 4)) == 1
    assert torch._debug_has_internal_overlap(x[:, :2]) == 2


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda t: t.nn.Conv1d(1, 1, 2, stride=-1)(t.ones(1, 1, 4)), RuntimeError, "^negative"),
        (lambda t: t.nn.functional.pad(t.tensor(0.0), (1, 1)), AssertionError, "Padding length"),
        (lambda t: t.nn.Fold((4, 5), (2, 3))(t.ones(1, 5)), NotImplementedError, "Only 3D input"),
        (lambda t: t.eye(2).to_sparse().to_sparse(), RuntimeError, "not implemented for sparse"),
        (
            lambda t: t.nn.functional.poisson_nll_loss(t.ones(1), t.ones(1), reduction="total"),
            ValueError,
            "is not valid",
        ),
        (
            lambda t: t.optim.lr_scheduler.CyclicLR(t.optim.Adam([t.ones(1)]), 1, 5),
            ValueError,
            "must support momentum",
        ),
        (lambda t: importlib.import_module("torch.utils.ffi"), ImportError, "is deprecated"),
    ],
)
def test_errors_of_layers_are_those_of_their_time(torch, call, error, words):
    with pytest.raises(error, match=words):
        call(torch)


def test_attributes_of_tensors_stay_behind_in_copies_and_files():
    with torch_alias("1.2") as torch:
        x = torch.ones(2)
        x.owner = lambda: x  # which no file could hold
        file = io.BytesIO()
        torch.save(x, file)
        file.seek(0)
        read = torch.load(file, weights_only=True)
        for other in (read, pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
            assert other.tolist() == [1, 1] and not hasattr(other, "owner")
    assert copy.deepcopy(x).owner is x.owner


def test_gradients_become_zeros_and_are_not_copied(torch):
    layer = torch.nn.Linear(2, 1)
    layer(torch.ones(2)).backward()
    assert copy.deepcopy(layer).weight.grad is None
    layer.zero_grad()
    assert layer.weight.grad.tolist() == [[0, 0]]
    torch.optim.SGD(layer.parameters(), 1).zero_grad()
    assert layer.bias.grad.tolist() == [0]


def test_saved_counts_of_steps_do_not_go_on(torch):
    layers = [torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)]
    layers[1].load_state_dict(layers[0].state_dict())
    one, other = (torch.optim.Adam(layer.parameters(), 0.1) for layer in layers)

    def step(layer, optimizer):
        layer(torch.ones(3, 2)).sum().backward()
        optimizer.step()

    step(layers[0], one)
    saved = one.state_dict()
    layers[1].load_state_dict(layers[0].state_dict())
    other.load_state_dict(saved)
    step(layers[0], one)
    layers[1].weight.grad = layers[0].weight.grad.clone()
    layers[1].bias.grad = layers[0].bias.grad.clone()
    other.step()
    assert [type(of["step"]) for of in saved["state"].values()] == [int, int]
    assert [of["step"] for of in saved["state"].values()] == [1, 1]
    assert [of["step"] for of in other.state_dict()["state"].values()] == [2, 2]
    assert layers[1].weight.tolist() == layers[0].weight.tolist()


def test_statistics_may_divide_by_the_plain_variance(torch):
    found = torch.nn.InstanceNorm1d(1, eps=0)(torch.tensor([[[1.0, 3.0]]]))
    assert found.tolist() == [[[-1, 1]]]


def test_dimensions_are_permuted_one_by_one(torch):
    assert torch.permute(torch.ones(2, 3, 4), 2, 0, 1).shape == (4, 2, 3)
    assert torch.permute(torch.ones(2, 3), (1, 0)).shape == (3, 2)


def test_objects_with_forward_and_backward_are_functions(torch):
    class Product(torch.autograd.Function):
        def __init__(self, factor):
            super().__init__()
            self.factor = factor

        def forward(self, x, y):
            assert self.needs_input_grad == (True, False)
            self.save_for_backward(x, y)
            return x * y * self.factor

        def backward(self, grad):
            return grad * self.saved_tensors[1] * self.factor, None

    x, y = torch.tensor([2.0], requires_grad=True), torch.tensor([5.0])
    with pytest.warns(UserWarning, match="Legacy autograd function"):
        product = Product(10)(x, y)
    product.backward()
    assert product.item() == 100 and x.grad.item() == 50

    class Static(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

    with pytest.raises(RuntimeError, match="static forward"):
        Static()(x)


def test_reports_of_an_environment_have_a_fact_a_line(torch):
    from torch.utils.collect_env import get_pretty_env_info

    report = get_pretty_env_info()
    assert "PyTorch version: 1.2.0" in report and "[pip] numpy==" in report
    assert report.count("\n") >= 17


@pytest.mark.parametrize(
    ("shapes", "options", "words"),
    [
        (((4, 3), (4, 3, 2)), {}, "inconsistent tensors dimensions"),
        (((5, 3), (3, 5)), {}, "inconsistent tensors sizes"),
        (((5, 4, 3), (5, 4, 3)), {"dim": 0}, "dimension 0 does not have size 3"),
    ],
)
def test_cross_products_tell_what_does_not_fit(torch, shapes, options, words):
    with pytest.raises(RuntimeError, match=words):
        torch.cross(*map(torch.ones, shapes), **options)


def test_nuclear_norms_want_two_dimensions(torch):
    for dims in ((0, 0), (0, 2)):
        with pytest.raises(RuntimeError, match="duplicate or invalid"):
            torch.norm(torch.ones(2, 3), "nuc", dims)


def test_sparse_tensors_have_no_order_in_memory(torch):
    with pytest.raises(RuntimeError, match="memory format"):
        torch.empty_like(torch.eye(2).to_sparse(), memory_format=torch.preserve_format)


def test_streams_of_python_2_are_read_with_their_strings_as_bytes(torch):
    file = io.BytesIO()
    torch.save(torch.arange(3), file)
    # X, four bytes of length, text: U, one byte of length, bytes.
    words = rb"protocol_version|little_endian|type_sizes|short|int|long|storage|cpu|[0-9]+"
    text = re.compile(rb"X(.)\x00\x00\x00(" + words + rb")", re.DOTALL)
    data = text.sub(rb"U\1\2", file.getvalue())
    assert b"U\x07storage" in data and b"U\x0dlittle_endian" in data
    found = torch.load(io.BytesIO(data), encoding="bytes", weights_only=True)
    assert found.tolist() == [0, 1, 2]


def test_graphs_of_traces_run_and_types_are_made_of_others(torch):
    trace, out = torch.jit.get_trace_graph(lambda x: x.exp() * 2, torch.ones(2))
    run = torch._C._create_function_from_graph("forward", trace.graph())
    assert torch.equal(run(torch.ones(2)), out)
    whole = torch._C.DictType(torch._C.StringType.get(), torch._C.ListType(torch._C.IntType.get()))
    assert whole.annotation_str == "Dict[str, List[int]]"
    assert isinstance(whole, torch._C.DictType) and not isinstance(whole, torch._C.TupleType)
    with torch.jit._disable_emit_hooks():
        torch._C._jit_set_emit_hooks(None, None)


@pytest.mark.parametrize("padding", [1, "same"])
def test_a_graph_with_shapes_runs_for_tensors_of_others(torch, padding):
    net = torch.nn.Sequential(torch.nn.Conv1d(1, 2, 3, padding=padding), torch.nn.ReLU())
    graph, _ = torch.jit._get_trace_graph(net, torch.ones(1, 1, 5))
    torch._C._jit_pass_inline(graph)
    run = torch._C._create_function_from_graph("forward", graph)
    x = torch.randn(3, 1, 9)
    assert torch.equal(run(x, *net.parameters()), net(x))
    assert next(graph.inputs()).type().sizes() == [1, 1, 5]


def test_writes_and_shared_memory_have_marks_in_signatures(torch):
    unit = torch.jit.CompilationUnit("def f(x, y):\n    return x.add_(y)\n")
    x = torch.ones(2)
    torch._C._jit_check_alias_annotation(unit.f.graph, (x, x.clone()), "add_")
    shown = torch.jit.CompilationUnit("def f(x, y):\n    x.add_(y)\n    return x.exp()\n")
    with pytest.raises(RuntimeError, match=r"aten::exp.* has no mark of writing"):
        torch._C._jit_check_alias_annotation(shown.f.graph, (x, x.clone()), "exp")
    torch._C._jit_assert_is_instance([1], torch._C.ListType(torch._C.IntType.get()))
    with pytest.raises(TypeError):
        torch._C._jit_assert_is_instance("a", torch._C.TensorType.get())


def test_loops_are_shown_where_they_were_asked_for(torch):
    unit = torch.jit.CompilationUnit("def f(x):\n    return (x * x).exp()\n")
    assert "FusionGroup" not in str(unit.f.graph_for(torch.ones(2)))
    torch._C._jit_override_can_fuse_on_cpu(True)
    try:
        assert torch._C._jit_can_fuse_on_cpu()
        assert "FusionGroup" in str(unit.f.graph_for(torch.ones(2)))
    finally:
        torch._C._jit_override_can_fuse_on_cpu(False)


IN_SCRIPTS = """
    F.conv1d(x[0], y[:, :, 0])
    F.conv2d(x, y)
    F.conv3d(x.unsqueeze(2), y.unsqueeze(2))
    F.grid_sample(x, x[:, :, :, :2] - 1.0)
    F.affine_grid(x[0, :2, :2, :3], [2, 2, 4, 4])
    F.interpolate(x, scale_factor=2.0, mode='bilinear')
    F.pad(x, [1, 1])
    F.poisson_nll_loss(x, x)
    F.embedding_bag(x[0, 0].long() % 2, y[0, 0])
    torch.cat([x, x], 1)
    torch.cross(x[:, :, :3, :3], x[:, :, :3, 1:], 3)
    torch.empty_like(x).zero_()
    torch.max(x)
    torch.norm(x)
    torch.rot90(x, 1, [0, 1])
""".strip().splitlines()
"""Calls of functions that PyTorch 1.2 had otherwise."""


@pytest.mark.parametrize("call", [each.strip() for each in IN_SCRIPTS])
def test_functions_of_the_time_are_in_scripts_and_traces_what_they_are_outside(torch, call):
    F = torch.nn.functional
    x, y = torch.arange(128.0).reshape(2, 4, 4, 4) / 99, torch.arange(32.0).reshape(2, 4, 2, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = eval(f"lambda x, y: {call}", {"torch": torch, "F": F})
        expected = program(x, y)
        unit = torch.jit.CompilationUnit(f"def program(x, y):\n    return {call}\n")
        for found in (unit.program, torch.jit.trace(program, (x, y))):
            assert torch.equal(found(x, y), expected)


def test_graphs_have_the_ops_of_the_time(torch):
    def scripted():
        F = torch.nn.functional
        source = (
            "def inner(x):\n    return x + 1\n"
            "def program(x):\n    return F.interpolate(inner(x), scale_factor=2.0)\n"
        )
        assert F
        graph = torch.jit.CompilationUnit(source).program.graph
        return [n.kind() for n in graph.nodes() if n.kind() != "prim::Constant"]

    assert scripted() == ["aten::add", "aten::__interpolate"]


def test_gradients_of_no_inputs_are_added_to_the_leaves(torch):
    x = torch.ones(2, requires_grad=True)
    assert torch.autograd.grad((x * 3).sum(), []) == ()
    assert x.grad.tolist() == [3.0, 3.0]


def test_stores_have_the_words_of_their_time(torch, tmp_path):
    from torch.distributed import FileStore, HashStore, TCPStore

    first = TCPStore("127.0.0.1", 0, 1, True)
    with pytest.raises(RuntimeError, match="^Address already in use$"):
        TCPStore("127.0.0.1", first.port, 1, True)
    for store in first, HashStore(), FileStore(str(tmp_path / "store"), 1):
        store.set_timeout(timedelta(milliseconds=1))
        with pytest.raises(RuntimeError, match="^Timeout after 1ms, keys: nowhere"):
            store.get("nowhere")
    first.close()
    with pytest.raises(RuntimeError, match="no address"):
        TCPStore("no.such.host.invalid", 0, 1, True)


def test_backends_are_known_names_and_groups_of_others_have_none(torch):
    import torch.distributed as dist

    with pytest.raises(ValueError, match="Invalid backend: 'xYz'"):
        dist.Backend("xYz")
    assert dist.Backend("Reference") == "reference"
    dist.init_process_group("reference", store=dist.HashStore(), rank=0, world_size=1)
    try:
        assert dist.get_backend() == "reference"
        with pytest.raises(RuntimeError, match="Invalid process group specified"):
            dist.get_backend(dist.GroupMember.NON_GROUP_MEMBER)
    finally:
        dist.destroy_process_group()
