"""What programs that say ``import torch`` find beside flambeau's names, and what they are told."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import pkgutil
import subprocess
import sys

import pytest

import flambeau as fb
from flambeau.compat import PARTS, VERSIONS, torch_alias
from flambeau.compat._absent import table
from flambeau.compat._parts import part_of

pytest.importorskip("flambeau.nn")
pytest.importorskip("flambeau_numpy")


@pytest.fixture
def torch():
    with torch_alias() as module:
        yield module


@pytest.mark.parametrize(("told", "release"), VERSIONS.items())
def test_every_question_for_the_version_has_one_answer(told, release):
    whole = f"{release}+flambeau{fb.__version__}"
    with torch_alias(told) as torch:
        import torch.version

        assert torch.__version__ == torch.version.__version__ == whole
        assert importlib.metadata.version("torch") == whole
        assert importlib.metadata.distribution("torch").metadata["Name"] == "torch"
        assert importlib.util.find_spec("torch").name == torch.__spec__.name == "torch"
        assert torch.__version__ >= tuple(map(int, told.split(".")))


def test_versions_that_nobody_asks_for_are_refused():
    with pytest.raises(ValueError, match=r"1\.2 or 2\.13, not '9'"), torch_alias("9"):
        pass


def test_the_command_line_offers_the_versions(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import torch; print(torch.__version__)")
    for told, release in VERSIONS.items():
        command = [sys.executable, "-m", "flambeau", "run", "--as", told, str(script)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.stdout.startswith(release), done.stderr


def test_versions_compare_as_versions(torch):
    Version = torch.torch_version.TorchVersion
    assert Version("2.13.0") > "2.9" and Version("2.13.0") >= (2, 13)
    assert Version("1.10.0a0") < "1.10" and Version("1.2.0") != "1.2.1"
    assert Version("2.13.0+cpu") > "2.13.0" and Version("2.13") == (2, 13, 0)
    assert {Version("1.2"): 1}["1.2"] == 1


def test_pkg_resources_is_told_of_torch(tmp_path, monkeypatch):
    (tmp_path / "pkg_resources.py").write_text(
        "class Distribution:\n"
        "    def __init__(self, project_name, version):\n"
        "        self.key, self.version = project_name, version\n"
        "class Set(dict):\n"
        "    def add(self, dist, replace):\n"
        "        self[dist.key] = dist\n"
        "working_set = Set()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "pkg_resources", raising=False)
    with torch_alias() as torch:
        import pkg_resources

        assert pkg_resources.working_set["torch"].version == torch.__version__
    del sys.modules["pkg_resources"]


def test_importing_a_submodule_hides_no_function(torch):
    packages = [fb.autograd, fb.nn.utils, fb.nn.parallel, fb.optim, fb.testing, fb.utils.data]
    seen = 0
    for package in packages:
        path = "torch" + package.__name__.removeprefix("flambeau")
        importlib.import_module(path)
        names = {each.name for each in pkgutil.iter_modules(package.__path__)}
        names |= {p.rpartition(".")[2] for p in sys.modules if p.rpartition(".")[0] == path}
        for name in sorted(names - {"_gradcheck"}):
            before = getattr(package, name, None)
            importlib.import_module(f"{path}.{name}")
            if callable(before):
                seen += 1
                assert getattr(package, name) is before, f"{path}.{name}"
    assert seen > 3
    import torch.autograd.gradcheck

    assert torch.autograd.gradcheck is fb.autograd.gradcheck
    from torch.autograd.gradcheck import gradgradcheck

    assert gradgradcheck is fb.autograd.gradgradcheck


def test_what_was_added_is_gone_afterwards():
    with torch_alias():
        import torch.cuda.streams
        from torch.hub import _get_torch_home

        assert _get_torch_home() == fb.hub.get_dir().removesuffix("/hub")
        assert torch.cuda.streams.Stream is fb.cuda.Stream
    assert not hasattr(fb.hub, "_get_torch_home")
    assert not hasattr(fb.cuda, "streams")
    assert fb.ops.OPS


def test_importing_flambeau_imports_nothing_of_this():
    code = "import flambeau, sys; print([m for m in sys.modules if '.compat' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_path_that_is_named_can_be_imported(torch):
    from flambeau.compat._alias import _own_modules
    from flambeau.compat._moved import MOVED

    paths = [f"torch.{p}" for p in (*sorted(_own_modules()), *MOVED)] + sorted(table())
    assert len(paths) > 150
    for path in paths:
        module = importlib.import_module(path)
        assert isinstance(module.__name__, str)


def test_what_was_moved_is_found_without_importing_its_path():
    from flambeau.compat._moved import MOVED

    # In a process of its own: here other tests have imported the paths.
    code = (
        "import operator, torch\n"
        "from flambeau.compat._moved import MOVED\n"
        "for path, homes in MOVED.items():\n"
        "    below = path.startswith(('nn.', 'cuda.'))\n"
        "    module = operator.attrgetter(path)(torch) if below else None\n"
        "    for name in ' '.join(homes.values()).split() if module else ():\n"
        "        assert hasattr(module, name), f'{path}.{name}'\n"
    )
    command = [
        sys.executable,
        "-c",
        f"from flambeau.compat import torch_alias\nwith torch_alias():\n    exec({code!r})",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, len(MOVED) > 20) == (0, True), done.stderr


def test_every_name_of_a_module_is_there(torch):
    for path in (p.name for p in PARTS if p.name != "torch"):
        module = importlib.import_module(path)
        for name in getattr(module, "__all__", ()):
            assert hasattr(module, name), f"{path}.{name}"


def test_parts_are_sorted_and_say_what_they_are(torch):
    names = [part.name for part in PARTS]
    assert names == sorted(names, key=str.lower)
    for part in PARTS:
        assert importlib.import_module(part.name), part.name
    assert part_of("torch.fx.node.Node").name == "torch.fx"


def test_what_is_absent_can_be_asked_for_and_raises_when_used(torch):
    import torch.distributed as dist
    import torch.export

    assert dist is fb.distributed and not dist.is_initialized()
    assert not hasattr(torch.export, "nosuch")

    class Program(torch.export.ExportedProgram):
        pass

    assert not isinstance(fb.ones(1), torch.export.ExportedProgram)
    no_class = r"no torch\.export\.ExportedProgram \(which Program is\)"
    with pytest.raises(NotImplementedError, match=no_class):
        Program()
    with pytest.raises(NotImplementedError, match=r"torch\.export\.export: programs are not"):
        torch.export.export(fb.nn.ReLU(), ())
    with pytest.raises(NotImplementedError, match=r"torch\.distributed\.init_device_mesh: groups"):
        dist.init_device_mesh("cpu", (1,))
    with pytest.raises(AttributeError, match=r"flambeau has no torch\.export\.nosuch"):
        torch.export.nosuch  # noqa: B018
    assert issubclass(dist.DistBackendError, Exception)
    assert dist.ProcessGroup | None  # in annotations


def test_decorators_of_compilers_give_back_what_they_decorate(torch):
    import torch._dynamo
    import torch.compiler

    def f(x):
        return x + 1

    for decorator in (
        torch.jit.unused,
        torch.jit.ignore,
        torch.jit.ignore(drop=True),
        torch.jit.export,
        torch.compiler.disable,
        torch.compiler.disable(recursive=False),
        torch._dynamo.disable,
        torch._dynamo.allow_in_graph,
    ):
        assert decorator(f) is f
    for compiled in (torch.compile(f), torch.compile(dynamic=True, mode="max-autotune")(f)):
        assert [compiled(fb.ones(1)).item() for _ in range(4)] == [2.0] * 4
        assert compiled.explain().replays == 2
    torch.compiler.reset()
    assert compiled.explain().plans == 0
    assert not torch.jit.is_scripting() and not torch.jit.is_tracing()
    assert not torch.compiler.is_compiling() and not torch.onnx.is_in_onnx_export()
    with torch._dynamo.config.patch(cache_size_limit=99):
        assert torch._dynamo.config.cache_size_limit == 99
    assert torch._dynamo.config.cache_size_limit == 8


def test_the_older_names_of_the_compiler_make_plans_and_explain_them(torch):
    import torch._dynamo

    def f(x):
        return (x + 1).exp()

    for decorator in (
        torch._dynamo.optimize("inductor"),
        torch._dynamo.optimize(),
        torch._dynamo.optimize(nopython=True),
        torch._dynamo.optimize_assert("eager"),
    ):
        compiled = decorator(f)
        assert all(fb.equal(compiled(fb.ones(2)), f(fb.ones(2))) for _ in range(4))
        assert compiled.explain().replays == 2
    for told in (torch._dynamo.explain(f)(fb.ones(2)), torch._dynamo.explain(f, fb.ones(2))):
        assert (told.graph_count, told.graph_break_count, told.op_count) == (1, 0, 2)
        assert told.ops_per_graph == [["add", "exp"]]
        assert "Op Count: 2\nBreak Reasons:\nOps per Graph:\n  Ops 1:\n    add" in str(told)

    def reads(x):
        return x * 2 if x.sum() > 0 else x

    told = torch._dynamo.explain(reads)(fb.ones(2))
    assert (told.graph_count, told.graph_break_count, told.op_count) == (0, 1, 0)
    assert "values were read" in told.break_reasons[0]
    assert f"Break Reason 1:\n    Reason: {told.break_reasons[0]}" in str(told)
    compiled = torch._dynamo.optimize_assert()(reads)
    compiled(fb.ones(2))
    with pytest.raises(RuntimeError, match="no plan, since values were read"):
        compiled(fb.ones(2))


def test_a_vmapped_tensor_is_a_subscript_within_the_mode_that_libraries_enter_for_it(torch):
    from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex

    table = torch.arange(12).reshape(3, 4)
    with TransformGetItemToIndex():
        rows = torch.vmap(lambda row, column: table[row, column], in_dims=(0, None))
        found = torch.vmap(rows, in_dims=(None, 0))(torch.arange(3), torch.arange(4))
    assert fb.equal(found, table.t())


def test_ops_are_a_namespace_of_the_programs(torch):
    @torch.library.custom_op("toys::triple", mutates_args=())
    def triple(x):
        return x * 3

    def setup(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    triple.register_autograd(lambda ctx, g: g * 3, setup_context=setup)
    x = fb.tensor([1.0, 2.0], requires_grad=True)
    torch.ops.toys.triple(x).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    assert torch.ops.aten.add(1 + x, 1).tolist() == [3.0, 4.0]
    assert torch.ops is not fb.ops
    with pytest.raises(AttributeError, match="'toys' object has no attribute 'nosuch'"):
        torch.ops.toys.nosuch  # noqa: B018


def test_ops_with_a_gradient_take_arguments_by_name_and_defaults(torch):
    def scaled(x: torch.Tensor, by: float = 2.0, *, plus: float = 0.0) -> torch.Tensor:
        return x * by + plus

    op = torch.library.custom_op("toys::scaled", scaled, mutates_args=())
    told = []

    def setup(ctx, inputs, keyword_only_inputs, output):
        told.append((len(inputs), inputs[1], dict(keyword_only_inputs)))
        ctx.by = inputs[1]

    def backward(ctx, grad):
        assert ctx.needs_input_grad[0]
        return grad * ctx.by, None

    op.register_autograd(backward, setup_context=setup)
    x = fb.tensor([1.0, 2.0], requires_grad=True)
    calls = [((x, 3.0), {"plus": 1.0}), ((x,), {"by": 3.0, "plus": 1.0}), ((), {"x": x, "by": 3.0})]
    for args, kwargs in calls:
        (grad,) = fb.autograd.grad(op(*args, **kwargs).sum(), x)
        assert grad.tolist() == [3.0, 3.0]
    (grad,) = fb.autograd.grad(torch.ops.toys.scaled(x).sum(), x)
    assert grad.tolist() == [2.0, 2.0]
    assert told == [
        (2, 3.0, {"plus": 1.0}),
        (2, 3.0, {"plus": 1.0}),
        (2, 3.0, {"plus": 0.0}),
        (2, 2.0, {"plus": 0.0}),
    ]


def test_a_library_that_is_not_there_cannot_be_loaded(torch):
    with pytest.raises(OSError, match=r"nosuch\.so"):
        torch.ops.load_library("./nosuch.so")


def test_helpers_of_distributions(torch):
    from torch.distributions.utils import broadcast_all, lazy_property, probs_to_logits

    class Counted:
        calls = 0

        @lazy_property
        def value(self):
            self.calls += 1
            return fb.ones(1)

    counted = Counted()
    assert counted.value is counted.value and counted.calls == 1
    a, b = broadcast_all(fb.ones(2, dtype=fb.float64), 3)
    assert b.tolist() == [3.0, 3.0] and b.dtype is a.dtype
    odds = probs_to_logits(fb.tensor([0.5, 1.0]), is_binary=True)
    assert odds[0] == 0 and odds[1].isfinite()


def test_switches_of_backends_answer(torch):
    assert torch.backends.mkldnn.is_available() in (True, False)
    assert not torch.backends.opt_einsum.is_available()


def test_mixed_precision_is_there_by_its_former_names(torch):
    from torch.cuda.amp.autocast_mode import custom_fwd
    from torch.cuda.amp.grad_scaler import GradScaler, OptState

    assert custom_fwd is fb.cuda.amp.custom_fwd and GradScaler is fb.cuda.amp.GradScaler
    assert OptState.READY.value == 0
    with pytest.warns(FutureWarning), torch.cuda.amp.autocast(enabled=False):
        assert fb.ones(1).dtype is fb.float32
    with torch.autocast("cpu"):
        assert not torch.is_autocast_enabled() and torch.is_autocast_enabled("cpu")
    weight = fb.ones(1, requires_grad=True)
    optimizer = fb.optim.SGD([weight], lr=0.5)
    scaler = torch.amp.GradScaler("cuda", enabled=False)
    scaler.scale(weight.sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert weight.tolist() == [0.5]


def test_devices_that_nobody_serves_say_so(torch):
    for name in ("xpu", "mps", "mtia"):
        module = importlib.import_module(f"torch.{name}")
        assert getattr(torch, name) is module
        assert not module.is_available() and not module.is_bf16_supported()
        assert module.device_count() == 0


def test_names_of_types(torch):
    assert torch.typename(fb.ones(1)) == "torch.FloatTensor"
    assert torch.typename(3) == "int"
    with pytest.raises(AssertionError, match="no"):
        torch._assert(False, "no")
    with pytest.raises(RuntimeError, match="not so"):
        torch._check(False, lambda: "not so")
    assert torch.torch is torch
    assert fb.float32 != torch.complex32


def test_the_distribution_shows_what_runs(torch):
    assert "cpu" in torch.__config__.show()
    import torch.utils.collect_env

    assert "flambeau-core" in torch.utils.collect_env.get_pretty_env_info()
