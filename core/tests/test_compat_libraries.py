"""What libraries written on PyTorch find below its public names."""

from __future__ import annotations

import copy
import gc
import importlib
import io
import pickle
import subprocess
import sys
import time

import pytest

import flambeau as fb
from flambeau.compat import torch_alias
from flambeau.utils._named_ops import DEFINED

pytest.importorskip("flambeau.nn")
pytest.importorskip("flambeau_numpy")


@pytest.fixture
def torch():
    with torch_alias() as module:
        yield module


def test_foreach_functions_apply_an_op_to_each_tensor(torch):
    tensors = [torch.tensor([1.0, 4.0]), torch.tensor([[9.0]])]
    sums = torch._foreach_add(tensors, tensors, alpha=2)
    assert [t.tolist() for t in sums] == [[3.0, 12.0], [[27.0]]]
    assert [t.tolist() for t in torch._foreach_sqrt(tensors)] == [[1.0, 2.0], [[3.0]]]
    scaled = torch._foreach_mul(tensors, [2.0, 0.5])
    assert [t.tolist() for t in scaled] == [[2.0, 8.0], [[4.5]]]
    assert [t.item() for t in torch._foreach_norm(tensors, 1)] == [5.0, 9.0]
    clamped = torch._foreach_minimum(tensors, 2)
    assert [t.tolist() for t in clamped] == [[1.0, 2.0], [[2.0]]]
    values = torch.tensor([1.0, 2.0])
    moved = torch._foreach_addcmul(tensors, tensors, tensors, values)
    assert [t.tolist() for t in moved] == [[2.0, 20.0], [[171.0]]]


def test_foreach_functions_in_place_write_into_the_tensors(torch):
    tensors = [torch.ones(2), torch.ones(1)]
    before = list(tensors)
    torch._foreach_lerp_(tensors, [torch.zeros(2), torch.zeros(1)], 0.25)
    torch._foreach_sub_(tensors, 0.5)
    assert [t.tolist() for t in before] == [[0.25, 0.25], [0.25]]
    torch._foreach_zero_(tensors)
    assert [t.tolist() for t in before] == [[0.0, 0.0], [0.0]]


def test_foreach_functions_refuse_lists_that_do_not_fit(torch):
    with pytest.raises(RuntimeError, match="at least one tensor"):
        torch._foreach_neg([])
    with pytest.raises(RuntimeError, match="got 2 and 1"):
        torch._foreach_add([torch.ones(1), torch.ones(1)], [torch.ones(1)])
    with pytest.raises(RuntimeError, match="scalar list"):
        torch._foreach_add([torch.ones(1)], [1.0, 2.0])
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch._foreach_add_([torch.ones(1, dtype=torch.int64)], 0.5)


def test_a_library_defines_ops_and_gives_them_kernels(torch):
    library = torch.library.Library("flambeau_tests", "DEF")
    assert library.define("twice(Tensor x) -> Tensor") == "twice"
    with pytest.raises(NotImplementedError, match="no device"):
        torch.ops.flambeau_tests.twice(torch.ones(1))
    library.impl("twice", lambda x: 2 * x, "CompositeExplicitAutograd")
    library.impl("twice", lambda x: None, "AutocastCPU")
    assert torch.ops.flambeau_tests.twice(torch.ones(1)).item() == 2.0
    library.impl("twice", lambda x: x + x + 0, "CPU")
    assert torch.ops.flambeau_tests.twice.default(torch.ones(1)).item() == 2.0
    with pytest.raises(RuntimeError, match="flambeau_tests::thrice"):
        library.impl("thrice", lambda x: x, "CPU")
    with pytest.raises(ValueError, match="Unsupported kind"):
        torch.library.Library("flambeau_tests", "OTHER")


def test_ops_of_a_schema_are_implemented_by_name(torch):
    torch.library.define("flambeau_tests::half", "(Tensor x) -> Tensor")

    @torch.library.impl("flambeau_tests::half", ("cpu", "cuda"))
    def half(x):
        return x / 2

    assert torch.ops.flambeau_tests.half(torch.ones(1)).item() == 0.5
    # The shapes of an op that only a compiled library would have.
    assert torch.library.register_fake("flambeau_tests::elsewhere")(half) is half


def test_ops_of_aten_have_overloads_that_can_be_keys(torch):
    aten = torch.ops.aten
    x = torch.arange(6).reshape(2, 3)
    assert aten.clone.default is aten.clone.default
    assert aten.add.Tensor(x, x).tolist() == (x + x).tolist()
    assert aten.slice.Tensor(x, 1, 1, 3).tolist() == x[:, 1:3].tolist()
    assert aten.index.Tensor(x, [None, torch.tensor([0])]).tolist() == x[:, [0]].tolist()
    assert aten._to_copy.default(x, dtype=torch.float32, layout=None).dtype == torch.float32
    assert aten.alias.default(x).data_ptr() == x.data_ptr()
    with pytest.raises(NotImplementedError, match="_sparse_addmm"):
        aten._sparse_addmm.default(x)
    with pytest.raises(AttributeError):
        aten.no_such_op  # noqa: B018


def test_dictionaries_with_weak_tensors_forget_them(torch):
    from torch.utils.weak import WeakIdKeyDictionary

    kept, lost = torch.ones(2), torch.ones(2)
    table = WeakIdKeyDictionary({kept: "kept", lost: "lost"})
    assert table[kept] == "kept" and kept.clone() not in table and len(table) == 2
    del lost
    gc.collect()
    assert len(table) == 1 and [key is kept for key in table] == [True]


def test_a_class_may_treat_its_tensors_as_plain_ones(torch):
    class Plain(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl

    x = torch.ones(2).as_subclass(Plain)
    assert type(x) is Plain and type(x + 1) is fb.Tensor


def test_sets_of_dispatch_keys_are_sets(torch):
    key, keys = torch._C.DispatchKey, torch._C.DispatchKeySet
    both = keys(key.AutocastCPU) | keys(key.CPU)
    assert both.has(key.CPU) and not both.has(key.CUDA)
    assert both - keys(key.CPU) == keys(key.AutocastCPU) == both.remove(key.CPU)
    with torch._C._ExcludeDispatchKeyGuard(both):
        assert torch.ones(1).item() == 1.0


def test_workers_may_seed_numpy_by_the_state_that_pytorch_derives():
    with torch_alias():
        from torch.utils.data._utils.worker import _generate_state

        np = pytest.importorskip("numpy")
        for seed, worker in ((0, 0), (12345, 3), (2**63 + 7, 1)):
            entropy = [worker, seed & 0xFFFFFFFF, seed >> 32, 0]
            expected = np.random.SeedSequence(entropy).generate_state(4).tolist()
            assert _generate_state(seed, worker) == expected


def test_context_managers_of_programs_decorate_functions_and_generators(torch):
    from torch.utils._contextlib import _DecoratorContextManager

    inside = []

    class Inside(_DecoratorContextManager):
        def __enter__(self):
            inside.append(1)

        def __exit__(self, *exc):
            inside.pop()

    @Inside()
    def depth():
        return len(inside)

    @Inside()
    def depths():
        got = yield len(inside)
        yield len(inside) + got

    assert depth() == 1 and not inside
    steps = depths()
    assert next(steps) == 1 and not inside and steps.send(10) == 11 and not inside


def test_texts_of_tensors_are_put_together_from_parts(torch):
    from torch._tensor_str import _add_suffixes, _str_intern, _tensor_str

    x = torch.tensor([1.0, 2.5])
    assert _tensor_str(x, 0) == "[1.0000, 2.5000]"
    assert _str_intern(x, tensor_contents="...") == "tensor(...)"
    assert _add_suffixes("Index([1]", ["dim=2"], 6, False) == "Index([1], dim=2)"
    assert _add_suffixes("Index([1]", ["a=1", "b=2"], 6, True) == "Index([1],\n      a=1, b=2)"


def test_small_checks_and_symbols(torch):
    with pytest.raises(ValueError, match="no"):
        torch._check_with(ValueError, False, lambda: "no")
    torch._check_tensor_all(torch.tensor([True, True]))
    with pytest.raises(RuntimeError):
        torch._check_tensor_all(torch.tensor([True, False]))
    torch._assert_async(torch.tensor(1))
    with pytest.raises(RuntimeError, match="why"):
        torch._assert_async(torch.tensor(0), "why")
    assert torch._shape_as_tensor(torch.ones(2, 3)).tolist() == [2, 3]
    assert torch.sym_sum([1, 2]) == 3 and torch.sym_ite(False, 1, 2) == 2
    y = torch.tensor([0.0, 1.0], requires_grad=True)
    s = y.softmax(0)
    g = torch.tensor([1.0, -2.0])
    expected = torch.autograd.grad(s, y, g)[0]
    found = torch._softmax_backward_data(g, s, 0, torch.float32)
    assert torch.allclose(found, expected)


def test_names_of_exporters_and_annotations_can_be_used_at_import(torch):
    from torch.jit.annotations import BroadcastingList2
    from torch.onnx import register_custom_op_symbolic, symbolic_opset11
    from torch.onnx.symbolic_helper import parse_args

    @parse_args("v", "i")
    def symbolic(g, x, n):
        return n

    register_custom_op_symbolic("flambeau_tests::twice", symbolic, 11)
    assert symbolic(None, None, 3) == 3 and BroadcastingList2[int] is not None
    assert not hasattr(symbolic_opset11, "no_such_name")


def test_names_that_libraries_import_are_there(torch):
    from torch._utils import ExceptionWrapper
    from torch.nn.modules.module import _EXTRA_STATE_KEY_SUFFIX
    from torch.utils._pytree import _list_flatten, _namedtuple_flatten
    from torch.utils.data.dataloader import _collate_fn_t  # noqa: F401 - an annotation

    try:
        raise KeyError("key")
    except KeyError:
        caught = ExceptionWrapper(where="in a thread")
    with pytest.raises(KeyError, match=r"Caught KeyError in a thread.\nOriginal Traceback"):
        caught.reraise()
    assert _EXTRA_STATE_KEY_SUFFIX == "_extra_state" and _list_flatten([1, 2]) == ([1, 2], None)
    assert torch.utils._pytree._namedtuple_flatten is _namedtuple_flatten
    assert torch.ones(1).layout is not torch.sparse_csr
    with getattr(torch.backends, "__allow_nonbracketed_mutation")():
        pass


def test_subclasses_may_ask_super_for_the_dtype(torch):
    class Image(torch.Tensor):
        @property
        def dtype(self):
            with torch._C.DisableTorchFunctionSubclass():
                return super().dtype

    image = torch.ones(2).as_subclass(Image)
    assert image.dtype is torch.float32 and (image * 2).double().dtype is torch.float64
    assert torch.ones(2).dtype is torch.float32


def test_arrays_of_what_requires_a_gradient_are_given_without_recording(torch):
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="requires grad"):
        x.numpy()
    with torch.no_grad():
        assert x.numpy().tolist() == [1.0, 1.0]


def test_functions_of_linalg_fft_and_special_are_offered_to_classes(torch):
    class Lazy:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__

    assert torch.einsum("i,i", [Lazy(), 2]) == torch.einsum("i,i", Lazy(), 2) == "einsum"
    for area, name in ((torch.linalg, "cholesky"), (torch.fft, "fft"), (torch.special, "entr")):
        assert getattr(area, name)(Lazy()) == name


def test_kinds_of_tuples_are_told_apart(torch):
    from collections import namedtuple

    from torch.utils import _pytree

    point = namedtuple("point", "x y")
    kinds = (3, 4), point(1, 2), time.gmtime(0)
    assert [_pytree.is_namedtuple_instance(k) for k in kinds] == [False, True, False]
    assert [_pytree.is_structseq_instance(k) for k in kinds] == [False, False, True]
    assert _pytree.is_namedtuple_class(point) and not _pytree.is_structseq_class(point)


def test_tensors_of_modules_are_swapped(torch):
    from torch.nn.utils._named_member_accessor import set_tensor, swap_tensor

    layer = torch.nn.Linear(2, 1)
    weight, other = layer.weight, torch.ones(1, 2)
    assert swap_tensor(layer, "weight", other) is weight and layer.weight is other
    set_tensor(layer, "weight", weight)
    assert dict(layer.named_parameters())["weight"] is weight
    with pytest.raises(AttributeError, match="no attribute `scale`"):
        swap_tensor(layer, "scale", other)
    assert swap_tensor(layer, "scale", other, allow_missing=True) is not other
    for wrong in ("", "a.b"):
        with pytest.raises(KeyError, match="dot"):
            set_tensor(layer, wrong, other)
    with pytest.raises(TypeError, match="not an instance"):
        set_tensor(layer, "weight", 3)


def test_parts_of_tensors_may_be_named_by_their_indices(torch):
    x = torch.arange(5)
    for parts in (x.tensor_split(indices=(1, 4)), torch.tensor_split(x, indices=(1, 4), dim=0)):
        assert [p.tolist() for p in parts] == [[0], [1, 2, 3], [4]]
    assert len(torch.tensor_split(x, sections=3)) == 3
    with pytest.raises(TypeError, match="one of"):
        torch.tensor_split(x)


def test_the_first_class_that_wants_calls_is_noticed_though_it_is_no_tensor(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import torch\n"
        "class Lazy:\n"
        "    @classmethod\n"
        "    def __torch_function__(cls, func, types, args=(), kwargs=None):\n"
        "        return func.__name__\n"
        "print(torch.add(Lazy(), 1), torch.linalg.cholesky(Lazy()), torch.add(torch.ones(1), 1))\n"
    )
    command = [sys.executable, "-m", "flambeau", "run", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout == "add cholesky tensor([2.])\n", done.stderr


def test_classes_that_are_made_in_functions_are_noticed(torch):
    def lazy():
        class Lazy:
            __torch_function__ = classmethod(lambda cls, func, types, args=(), kwargs=None: func)

        return Lazy()

    assert torch.add(lazy(), 1) is torch.add


def test_no_frame_stands_between_a_class_and_where_it_is_made(torch):
    class Meta(type):
        def __new__(meta, name, bases, body):
            body["maker"] = sys._getframe(1).f_code.co_name
            return super().__new__(meta, name, bases, body)

    class Made(metaclass=Meta):
        around = sys._getframe(1).f_code.co_name

    assert Made.around == Made.maker == "test_no_frame_stands_between_a_class_and_where_it_is_made"


def test_all_distributions_stand_in_the_module(torch):
    found = [v for v in vars(torch.distributions).values() if isinstance(v, type)]
    assert {torch.distributions.Bernoulli, torch.distributions.Wishart} <= set(found)


def test_what_sharded_layers_name_can_be_named(torch):
    from torch.distributed.tensor import Partial, Replicate, Shard
    from torch.distributed.tensor.placement_types import Placement

    assert Shard(1) == Shard(1) != Shard(0) and Replicate() == Replicate() != Shard(0)
    assert Shard(1).is_shard(1) and Shard(1).is_shard() and not Shard(1).is_shard(0)
    assert Partial("avg").is_partial() and Replicate().is_replicate()
    assert [str(p) for p in (Shard(1), Replicate(), Partial())] == ["S(1)", "R", "P(sum)"]
    assert all(isinstance(p, Placement) for p in (Shard(1), Replicate(), Partial()))
    assert isinstance(torch.distributed.ReduceOp.SUM, torch.distributed.ReduceOp.RedOpType)
    assert torch.Future is torch.futures.Future


def test_tensors_are_of_torch_by_their_class_while_it_is_the_name(torch):
    assert type(torch.ones(1)).__module__ == "torch"
    assert str(type(torch.ones(1))) == "<class 'torch.Tensor'>"


def test_the_dictionary_is_the_tensors_own_beside_other_bases():
    class Noted:
        def note(self):
            self.noted = 1

    class Marked(Noted):
        pass

    class Image(Noted, fb.Tensor):
        pass

    class Weight(Noted, fb.nn.Parameter):
        pass

    class Twice(Marked, Image):
        __slots__ = ("other",)

    for kind in (Image, Weight, Twice):
        x = fb.ones(2).as_subclass(kind)
        x.note()
        assert vars(x) == {"noted": 1}
        assert isinstance(x, kind)


def test_the_dictionary_of_a_tensor_has_what_programs_set():
    x = fb.ones(2, requires_grad=True)
    assert vars(x) == {}
    x.note = 1
    x.__dict__["other"] = 2
    x.__dict__.update(third=3)
    assert (x.note, x.other, x.third) == (1, 2, 3)
    assert x.__dict__.pop("note") == 1 and not hasattr(x, "note")
    x.__dict__ = {"only": copy.deepcopy(x.__dict__)}
    assert x.only == {"other": 2, "third": 3} and list(vars(x)) == ["only"]
    assert vars(copy.deepcopy(x)) == vars(copy.copy(x)) == vars(x)


def test_a_dictionary_of_a_tensor_does_not_reach_what_it_is_made_of():
    x = fb.ones(2)
    shown = x.__dict__
    shown["dtype"] = None
    shown.clear()
    assert x.dtype is fb.float32 and x.sum().item() == 2


def test_classes_with_bases_before_the_tensor_show_what_programs_set(torch):
    class Meta:
        def __init__(self):
            self.affine = 1

    class Image(Meta, torch.Tensor):
        def __new__(cls, values):
            return torch.as_tensor(values).as_subclass(cls)

        def __init__(self, values):
            super().__init__()

        def clone(self):
            new = Image(self.as_subclass(torch.Tensor).clone())
            new.__dict__ = copy.deepcopy(self.__dict__)
            return new

    image = Image([1.0, 2.0])
    image.affine = [3]
    twin = image.clone()
    assert vars(image) == vars(twin) == {"affine": [3]} and twin.affine is not image.affine
    assert twin.tolist() == [1.0, 2.0] and isinstance(image, Meta)


def test_functions_that_look_at_classes_show_what_functions_have(torch):
    class Marked(torch.Tensor):
        """From the first subclass on, functions look at their arguments."""

    assert torch.meshgrid.__kwdefaults__ == {"indexing": None}
    assert torch.meshgrid.__code__ is torch.meshgrid._function.__code__


def test_a_product_with_a_subclass_on_the_right_is_of_the_subclass():
    class Marked(fb.Tensor):
        """Nothing of its own."""

    a, b = fb.tensor([[1.0, 2.0], [3.0, 4.0]]), fb.tensor([[0.0, 1.0], [2.0, 0.0]])
    product = a @ b.as_subclass(Marked)
    assert type(product) is Marked and product.tolist() == [[4.0, 1.0], [8.0, 3.0]]
    for value in (2, [1.0, 2.0]):
        with pytest.raises(TypeError):
            value @ b.as_subclass(Marked)


def test_a_dense_matrix_times_a_sparse_one_keeps_their_order():
    a, b = fb.tensor([[1.0, 2.0], [3.0, 4.0]]), fb.tensor([[0.0, 1.0], [2.0, 0.0]])
    assert (a @ b.to_sparse()).tolist() == (a @ b).tolist() != (b @ a).tolist()
    assert (a[0] @ b.to_sparse()).tolist() == (a[0] @ b).tolist()


def test_a_module_has_other_parameters_within_a_block(torch):
    layer = torch.nn.Linear(2, 1, bias=False)
    own = layer.weight
    weight = torch.ones(1, 2, requires_grad=True)
    with torch.nn.utils.stateless._reparametrize_module(layer, {"weight": weight}):
        layer(torch.tensor([3.0, 4.0])).backward()
        assert layer.weight is weight
    assert layer.weight is own and own.grad is None and weight.grad.tolist() == [[3.0, 4.0]]


def test_classes_may_take_keywords_of_any_name(torch):
    class Registered:
        def __init_subclass__(cls, name="", body=""):
            cls.named = name + body

    class One(Registered, name="one", body="!"):
        pass

    assert One.named == "one!"


def test_tensors_that_are_pickled_under_the_name_are_read_without_it():
    with torch_alias() as torch:
        text = pickle.dumps(torch.ones(2))
    assert pickle.loads(text).tolist() == [1.0, 1.0] and b"torch" not in text


def test_lists_of_tensors_are_grouped_by_device_and_dtype_with_their_places(torch):
    from torch.utils._foreach_utils import _group_tensors_by_device_and_dtype as grouped

    a, b, c = torch.ones(1), torch.ones(2, dtype=torch.float64), torch.ones(3)
    found = grouped([[a, b, c], [], [c, None, a]], with_indices=True)
    lists, places = found[a.device, torch.float32]
    assert places == [0, 2]
    assert lists[0][1] is c and lists[1] == [] and lists[2][0] is c
    assert found[a.device, torch.float64] == ([[b], [], [None]], [1])


def test_a_timer_tells_its_times_and_leaves_the_threads_as_they_were(torch):
    from torch.utils.benchmark import Compare, Timer

    threads = torch.get_num_threads()
    indented = """
        x = torch.ones(2)
    """
    assert Timer("x + x", setup=indented).timeit(1).median > 0
    timer = Timer("x + x", globals={"x": torch.ones(2)}, label="sums", sub_label="two")
    found = timer.blocked_autorange(min_run_time=0.01)
    assert 0 < found.median <= max(found.times)
    assert found.times == [each / found.number_per_run for each in found.raw_times]
    assert torch.get_num_threads() == threads
    assert "two" in str(Compare([found, timer.timeit(3)]))


@pytest.mark.parametrize(
    "args", [("cpu",), ("cpu", fb.float64), (fb.device("cpu"),), (fb.ones(1),)]
)
def test_arguments_of_to_have_a_device_that_is_one(torch, args):
    device, _, non_blocking, _ = torch._C._nn._parse_to(*args)
    assert device == torch.device("cpu") and device.type == "cpu" and non_blocking is False
    assert torch._C._nn._parse_to(device="cpu")[0].type == "cpu"
    assert torch._C._nn._parse_to(fb.float64) == (None, fb.float64, False, None)


@pytest.mark.parametrize(
    ("asked", "error", "said"),
    [
        ({"language": "cpp"}, NotImplementedError, "not compiled here"),
        ({"language": "c++", "global_setup": "#include <x>"}, NotImplementedError, "in Python"),
        ({"language": "rust"}, ValueError, "Invalid language `rust`"),
        ({"global_setup": "import x"}, ValueError, "global_setup is C.. only"),
    ],
)
def test_a_timer_says_what_it_does_not_time(torch, asked, error, said):
    from torch.utils.benchmark import Language, Timer

    assert Timer("1 + 1", language=Language.PYTHON).timeit(1).median > 0
    with pytest.raises(error, match=said):
        Timer("torch::ones({2})", **asked)


def test_functions_make_their_tensors_on_the_device_of_a_decorator(torch):
    from torch.utils._device import DeviceContext, set_device

    assert set_device("meta")(lambda: torch.ones(2))().device.type == "meta"
    with DeviceContext("meta"):
        assert torch.zeros(1).device.type == "meta"
    assert torch.zeros(1).device.type == "cpu"


@pytest.mark.parametrize(
    "path",
    """autograd.grad_mode.no_grad cuda.memory.empty_cache cuda.random.manual_seed_all
    cuda.streams.Stream multiprocessing.spawn.spawn multiprocessing.pool.Pool
    optim._multi_tensor.AdamW onnx.utils.export testing._creation.make_tensor
    utils.data._utils.pin_memory.pin_memory utils.checkpoint.CheckpointPolicy
    utils._python_dispatch.TorchDispatchMode""".split(),
)
def test_files_of_pytorch_have_what_flambeau_keeps_elsewhere(torch, path):
    module, _, name = path.rpartition(".")
    found = getattr(importlib.import_module(f"torch.{module}"), name)
    assert callable(found) and not getattr(found, "_path", None)


def test_whether_cuda_has_begun_is_said_under_its_private_name_too(torch):
    assert torch.cuda._initialized is torch.cuda.is_initialized()
    if not torch.cuda.is_available():
        with pytest.raises(RuntimeError):
            torch.cuda._lazy_init()
    with pytest.raises(AttributeError, match="no attribute '_initialised'"):
        torch.cuda._initialised  # noqa: B018 - it is refused


def test_a_file_of_pytorchs_hides_no_function_of_its_name(torch):
    import torch.multiprocessing.spawn
    import torch.utils.checkpoint

    assert torch.multiprocessing.spawn.__name__ == "spawn"
    assert callable(torch.multiprocessing.spawn)
    assert callable(torch.utils.checkpoint.checkpoint)


@pytest.mark.parametrize("name", ["nnpack", "cusparselt", "kleidiai", "miopen"])
def test_libraries_that_are_not_used_say_so(torch, name):
    assert importlib.import_module(f"torch.backends.{name}").is_available() is False


@pytest.mark.parametrize(
    "name", ["multivariate_normal", "half_normal", "kl", "transforms", "normal"]
)
def test_files_of_distributions_have_what_pytorchs_import(torch, name):
    found = importlib.import_module(f"torch.distributions.{name}")
    assert found.Distribution is torch.distributions.Distribution
    assert found.broadcast_all is torch.distributions.utils.broadcast_all


def test_a_singular_matrix_raises_the_error_that_the_compiled_module_names(torch):
    with pytest.raises(torch._C._LinAlgError, match="singular"):
        torch.linalg.solve(torch.zeros(2, 2), torch.ones(2))
    assert torch._C._LinAlgError is torch.linalg.LinAlgError


def test_a_mode_of_debugging_says_what_nondeterministic_ops_do(torch):
    try:
        for mode, number in (("warn", 1), ("error", 2), (1, 1), ("default", 0)):
            torch.set_deterministic_debug_mode(mode)
            assert torch.get_deterministic_debug_mode() == number
            assert torch.are_deterministic_algorithms_enabled() is (number > 0)
    finally:
        torch.use_deterministic_algorithms(False)
    for refused, error in (("loud", RuntimeError), (3, RuntimeError), (None, TypeError)):
        with pytest.raises(error, match="debug_mode"):
            torch.set_deterministic_debug_mode(refused)


def test_the_mode_of_waiting_calls_is_kept_and_checked(torch):
    torch.cuda.set_sync_debug_mode("error")
    assert torch.cuda.get_sync_debug_mode() == 2
    torch.cuda.set_sync_debug_mode(0)
    assert torch.cuda.get_sync_debug_mode() == 0
    with pytest.raises(RuntimeError, match="debug_mode"):
        torch.cuda.set_sync_debug_mode("loud")


def test_facts_of_the_machine_come_from_the_commands_that_a_caller_runs(torch):
    facts = importlib.import_module("torch.utils.collect_env")
    answers = {
        "gcc --version": (0, "gcc (Debian) 12.2.0\nCopyright", ""),
        "nvidia-smi": (0, "| Driver Version: 550.1 CUDA |", ""),
        "nvidia-smi -L": (0, "GPU 0: H200 (UUID: GPU-1)", ""),
        "lscpu": (127, "", "not found"),
    }
    assert facts.get_gcc_version(answers.get) == "(Debian) 12.2.0"
    assert facts.get_nvidia_driver_version(answers.get) == "550.1"
    assert facts.get_gpu_info(answers.get) == "GPU 0: H200"
    assert facts.get_cpu_info(answers.get) == "not found"
    assert facts.get_gcc_version(lambda command: (127, "", "absent")) is None
    assert facts.run([sys.executable, "-c", "print(' x ')"]) == (0, "x", "")
    assert facts.run("exit 3")[0] == 3


def test_ops_of_a_program_are_one_node_of_a_trace_and_of_an_archive(torch):
    def peaks(x: fb.Tensor, least: float = 0.5) -> fb.Tensor:
        found = [at for at, each in enumerate(x.tolist()) if each > least]
        return torch.tensor(found, dtype=torch.int64)

    op = torch.library.custom_op("flambeau_traced::peaks", peaks, mutates_args=())
    library = torch.library.Library("flambeau_traced", "FRAGMENT")
    library.define("pair(Tensor x, *, int by=2) -> (Tensor, int)")
    library.impl("pair", lambda x, *, by: (x * by, int(x.sum())), "CPU")

    def program(x):
        twice, total = torch.ops.flambeau_traced.pair(x, by=3)
        return x[op(x, 1)] * 2, twice, torch.zeros(total)

    traced = torch.jit.trace(program, torch.tensor([1.0, 2, 3]), check_trace=False)
    assert [node.kind() for node in traced.graph.nodes()].count("prim::PythonOp") == 2
    file = io.BytesIO()
    torch.jit.save(traced, file)
    again = torch.jit.load(io.BytesIO(file.getvalue()))
    for values in ([1.0, 2, 3], [5.0, 4, 3], [0.0, 0, 0]):
        x = torch.tensor(values)
        for function in (traced, again):
            for found, wanted in zip(function(x), program(x), strict=True):
                assert torch.equal(found, wanted)


def test_an_archive_calls_no_op_that_the_program_has_not_defined(torch):
    @torch.library.custom_op("flambeau_traced::gone", mutates_args=())
    def gone(x: fb.Tensor) -> fb.Tensor:
        return x + 1

    file = io.BytesIO()
    torch.jit.save(torch.jit.trace(lambda x: gone(x), torch.ones(1)), file)
    del DEFINED["flambeau_traced"]["gone"]
    with pytest.raises(RuntimeError, match="flambeau_traced::gone"):
        torch.jit.load(io.BytesIO(file.getvalue()))


def test_an_op_that_changes_its_argument_does_so_in_a_trace(torch):
    @torch.library.custom_op("flambeau_traced::add_one", mutates_args=("x",))
    def add_one(x: fb.Tensor) -> None:
        x += 1

    def program(x):
        y = x * 2
        add_one(y)
        return y * 3

    traced = torch.jit.trace(program, torch.ones(2), check_trace=False)
    assert traced(torch.zeros(3)).tolist() == [3.0, 3.0, 3.0]


def test_a_fake_implementation_is_asked_on_the_device_meta(torch):
    @torch.library.custom_op("flambeau_traced::rows", mutates_args=())
    def rows(x: fb.Tensor) -> fb.Tensor:
        return torch.tensor(x.sum(1).tolist())

    torch.library.Library("flambeau_traced", "FRAGMENT").define("bare(Tensor x) -> Tensor")
    with pytest.raises(NotImplementedError, match="META"):
        torch.ops.flambeau_traced.bare(torch.empty(2, device="meta"))
    assert rows.register_fake(lambda x: x.new_empty(x.shape[0])) is not None
    found = rows(torch.empty(2, 3, device="meta"))
    assert (found.device.type, found.shape) == ("meta", (2,))
    assert rows(torch.ones(2, 3)).tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError, match="inside of a fake implementation"):
        torch.library.get_ctx()


def test_sizes_that_depend_on_elements_keep_to_their_bounds(torch):
    @torch.library.custom_op("flambeau_traced::found", mutates_args=())
    def found(x: fb.Tensor) -> fb.Tensor:
        return x[x > 0]

    bounds = {}

    @found.register_fake
    def _(x):
        return x.new_empty(torch.library.get_ctx().new_dynamic_size(**bounds))

    x = torch.ones(2)
    for given in ({}, {"min": 20}, {"max": 3}, {"min": 1, "max": 2}, {"min": 9, "max": 10}):
        bounds = given
        sizes = {found.sizes_told([x], at).shape[0] for at in (7, 8)}
        assert len(sizes) == 2
        assert all(given.get("min", 0) <= n <= given.get("max", n) for n in sizes)
    bounds = {"min": 4, "max": 4}
    assert {found.sizes_told([x], at).shape[0] for at in (7, 8)} == {4}
    bounds = {"min": 4, "max": 3}
    with pytest.raises(ValueError, match="min=4, max=3"):
        found.sizes_told([x], 7)
