"""Archives of programs: their code is compiled and never run, damage is an error of ours."""

import io
import zipfile

import pytest

import flambeau as fb


def archive(module):
    file = io.BytesIO()
    fb.jit.save(module, file)
    return file.getvalue()


def with_code(data, change):
    """The archive with other sources; Python's zip files are stored, too."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            body = old.read(name)
            new.writestr(name, change(body.decode()) if name.endswith(".py") else body)
    return io.BytesIO(out.getvalue())


def test_a_module_comes_back_with_its_parameters_mode_and_sharing():
    class Tied(fb.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = fb.nn.Linear(2, 2)
            self.b = self.a
            self.register_buffer("count", fb.zeros(1, dtype=fb.int64))

        def forward(self, x):
            self.count += 1
            return self.b(self.a(x))

    tied = fb.jit.script(Tied().eval())
    loaded = fb.jit.load(io.BytesIO(archive(tied)))
    x = fb.randn(3, 2)
    assert (loaded(x) - tied(x)).abs().max().item() == 0
    assert not loaded.training and loaded.a.weight is loaded.b.weight
    assert loaded.a.weight.requires_grad and loaded.count.item() == 1
    assert archive(loaded)


def test_a_script_module_without_a_class_takes_parameters_and_methods_at_any_time():
    module = fb.jit.ScriptModule()
    module.weight = fb.nn.Parameter(fb.ones(2))
    module.define("def forward(self, x):\n    return self.weight * x / 2\n")
    module.part = fb.jit.script(fb.nn.ReLU())
    module.register_buffer("shift", fb.ones(2))
    module.define("def moved(self, x):\n    return self.part(self.forward(x) - self.shift)\n")
    x = fb.tensor([1, 4])
    for each in (module, fb.jit.load(io.BytesIO(archive(module)))):
        assert each(x).tolist() == [0.5, 2.0]
        assert each.moved(x).tolist() == [0.0, 1.0]
        assert [name for name, _ in each.named_parameters()] == ["weight"]


@pytest.mark.parametrize(
    ("version", "message"),
    [(b"11", "version 11, and 10 is the newest"), (b"", "no version"), (b"9" * 90, "version 9+")],
)
def test_an_archive_whose_ops_may_mean_something_else_is_refused(version, message):
    data, out = archive(fb.jit.script(fb.nn.ReLU())), io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            new.writestr(name, version if name.endswith("version") else old.read(name))
    out.seek(0)
    with pytest.raises(fb.serialization.CheckpointError, match=message):
        fb.jit.load(out)


CODE = (
    "__import__('os').system('touch /tmp/evil')",
    "open('/tmp/evil', 'w')",
    "x.__class__",
    "eval('1')",
    "torch.__dict__",
    "__torch__.os.system('true')",
    "CONSTANTS.c99",
)


@pytest.mark.parametrize("expression", CODE)
def test_code_that_is_no_torchscript_is_refused_and_not_run(expression, tmp_path):
    data = archive(fb.jit.script(fb.nn.ReLU()))

    def change(text):
        head, _, _ = text.partition("  def forward")
        name = "__torch__.torch.nn.modules.activation.ReLU"
        if "class ReLU" not in text:
            return text
        return (
            head + f"  def forward(self: {name}, x: Tensor) -> Tensor:\n    return {expression}\n"
        )

    with pytest.raises(RuntimeError):
        fb.jit.load(with_code(data, change))


def test_parameters_that_come_back_are_plain_tensors_that_can_be_trained():
    file = io.BytesIO()
    fb.jit.save(fb.jit.script(fb.nn.Linear(2, 1)), file)
    file.seek(0)
    loaded = fb.jit.load(file)
    weights = [loaded.weight, *loaded.parameters(), *loaded.state_dict(keep_vars=True).values()]
    assert all(type(w) is fb.Tensor and w.requires_grad and w.is_leaf for w in weights)
    loaded(fb.ones(3, 2)).sum().backward()
    before = loaded.weight.detach().clone()
    fb.optim.SGD(loaded.parameters(), 1.0).step()
    assert fb.equal(loaded.weight, before - 3)
    again = io.BytesIO()
    fb.jit.save(loaded, again)
    again.seek(0)
    assert [n for n, _ in fb.jit.load(again).named_parameters()] == ["weight", "bias"]


def test_statements_beside_definitions_are_refused():
    data = archive(fb.jit.script(fb.nn.ReLU()))
    for line in ("import os\n", "x = open('/etc/passwd')\n", "@staticmethod\nclass A: pass\n"):
        with pytest.raises(RuntimeError):
            fb.jit.load(with_code(data, lambda text, line=line: line + text))


def test_damage_is_an_error_of_ours_wherever_it_is():
    data = archive(fb.jit.script(fb.nn.Linear(2, 1)))
    for at in range(0, len(data), 97):
        broken = bytearray(data)
        broken[at] ^= 0xFF
        try:
            fb.jit.load(io.BytesIO(bytes(broken)))
        except (RuntimeError, ValueError, fb.serialization.CheckpointError):
            continue


def test_a_checkpoint_is_no_program_and_a_program_no_checkpoint():
    file = io.BytesIO()
    fb.save({"a": 1}, file)
    with pytest.raises(fb.serialization.CheckpointError, match="use load"):
        fb.jit.load(io.BytesIO(file.getvalue()))
    with pytest.raises(fb.serialization.CheckpointError, match=r"use jit\.load"):
        fb.load(io.BytesIO(archive(fb.jit.script(fb.nn.ReLU()))))


def test_what_python_runs_cannot_be_saved():
    class Net(fb.nn.Module):
        def forward(self, x):
            return self.python(x)

        @fb.jit.ignore
        def python(self, x: fb.Tensor) -> fb.Tensor:
            return x * 2

    scripted = fb.jit.script(Net())
    assert scripted(fb.ones(1)).item() == 2
    with pytest.raises(RuntimeError, match="Could not export Python function call 'python'"):
        archive(scripted)


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "net.pt"
    fb.jit.script(fb.nn.Linear(2, 1)).save(path)
    before = path.read_bytes()

    class Bad(fb.nn.Module):
        def forward(self, x):
            return self.python(x)

        @fb.jit.ignore
        def python(self, x: fb.Tensor) -> fb.Tensor:
            return x

    with pytest.raises(RuntimeError):
        fb.jit.script(Bad()).save(path)
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["net.pt"]
    assert fb.jit.load(path)(fb.ones(1, 2)).shape == (1, 1)


def test_a_script_module_of_no_program_is_written_with_what_it_holds():
    from flambeau import nn

    module = fb.jit.ScriptModule()
    module.p = nn.Parameter(fb.ones(2))
    module.register_buffer("b", fb.zeros(1))
    file = io.BytesIO()
    fb.jit.save(module, file)
    file.seek(0)
    back = fb.jit.load(file)
    assert [each.tolist() for each in (*back.parameters(), *back.buffers())] == [[1.0, 1.0], [0.0]]
