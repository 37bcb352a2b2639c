"""Archives of programs: PyTorch reads ours, and we read PyTorch's, with equal results."""

import io
import zipfile

import pytest
import torch

import flambeau as fb

# PyTorch 2.13 says so of all of it.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")

LAYERS = {
    "linear": (lambda nn: nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Dropout(0.5)), (2, 4)),
    "convolution": (
        lambda nn: nn.Sequential(
            nn.Conv2d(2, 3, 3, padding=1), nn.BatchNorm2d(3), nn.GELU(), nn.MaxPool2d(2)
        ),
        (2, 2, 6, 6),
    ),
    "transposed": (
        lambda nn: nn.Sequential(nn.ConvTranspose1d(2, 3, 3, stride=2), nn.Tanh()),
        (1, 2, 5),
    ),
    "norms": (
        lambda nn: nn.Sequential(
            nn.GroupNorm(1, 2), nn.LayerNorm(4), nn.InstanceNorm1d(2, affine=True), nn.Softmax(1)
        ),
        (2, 2, 4),
    ),
    "pools": (
        lambda nn: nn.Sequential(
            nn.AvgPool2d(2), nn.AdaptiveMaxPool2d((3, 2)), nn.Upsample(scale_factor=2.0)
        ),
        (1, 2, 8, 8),
    ),
    "activations": (
        lambda nn: nn.Sequential(
            nn.ELU(), nn.Hardtanh(), nn.LeakyReLU(0.2), nn.Softplus(), nn.PReLU(), nn.LogSigmoid()
        ),
        (3, 4),
    ),
    "padding": (
        lambda nn: nn.Sequential(nn.ReflectionPad2d(1), nn.ZeroPad2d(1), nn.Flatten()),
        (1, 2, 3, 4),
    ),
}


def exchanged(module, save, load):
    file = io.BytesIO()
    save(module, file)
    file.seek(0)
    return load(file)


@pytest.mark.parametrize("name", LAYERS)
def test_modules_go_to_pytorch_and_come_back_with_equal_results(name):
    make, shape = LAYERS[name]
    torch.manual_seed(1)
    theirs = make(torch.nn).eval()
    ours = make(fb.nn).eval()
    ours.load_state_dict({k: fb.tensor(v.tolist()) for k, v in theirs.state_dict().items()})
    x = torch.randn(shape)
    y = fb.tensor(x.tolist())
    expected = theirs(x)

    there = exchanged(fb.jit.script(ours), fb.jit.save, torch.jit.load)
    torch.testing.assert_close(there(x), expected)
    assert list(there.state_dict()) == list(theirs.state_dict())
    back = exchanged(torch.jit.script(theirs), torch.jit.save, fb.jit.load)
    torch.testing.assert_close(torch.tensor(back(y).tolist()), expected)
    assert [n for n, _ in back.named_parameters()] == [n for n, _ in theirs.named_parameters()]
    again = exchanged(back, fb.jit.save, torch.jit.load)
    torch.testing.assert_close(again(x), expected)


class Program:
    """A class of modules for either library, with attributes and branches."""

    @staticmethod
    def of(torch):
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = torch.nn.Linear(3, 3)
                self.names = ["a", "b"]
                self.sizes = {"x": 1, "y": 2}
                self.pair = (1, 2.5)
                self.table = torch.arange(3)

            def forward(self, x, n: int = 2):
                for i in range(n):
                    if bool(x.sum() > 3):
                        x = self.fc(x) * self.sizes["y"]
                    else:
                        x = self.fc(x) + self.pair[1] + i
                    if x.dim() > 5:
                        break
                while n > 0:
                    n -= 1
                    x = x + self.table
                return x, len(self.names), f"{n}"

        return Net()


def test_programs_with_loops_attributes_and_text_are_exchanged():
    theirs, ours = Program.of(torch), Program.of(fb)
    ours.load_state_dict({k: fb.tensor(v.tolist()) for k, v in theirs.state_dict().items()})
    x = torch.tensor([[1.0, -1.0, 0.5]])
    expected = theirs(x)
    there = exchanged(fb.jit.script(ours), fb.jit.save, torch.jit.load)(x)
    torch.testing.assert_close(there[0], expected[0])
    assert there[1:] == expected[1:]
    back = exchanged(torch.jit.script(theirs), torch.jit.save, fb.jit.load)
    found = back(fb.tensor(x.tolist()))
    torch.testing.assert_close(torch.tensor(found[0].tolist()), expected[0].detach())
    assert found[1:] == expected[1:]
    assert back.names == ["a", "b"] and back.sizes == {"x": 1, "y": 2} and back.pair == (1, 2.5)


def test_functions_are_saved_as_modules_whose_forward_they_are():
    scripted = fb.jit.CompilationUnit("def f(x, n: int):\n    return x * n + 1\n").f
    there = exchanged(scripted, fb.jit.save, torch.jit.load)
    assert there(torch.ones(2), 3).tolist() == [4.0, 4.0]
    assert exchanged(scripted, fb.jit.save, fb.jit.load)(fb.ones(2), 3).tolist() == [4.0, 4.0]


def test_extra_files_go_along():
    file = io.BytesIO()
    fb.jit.save(fb.jit.script(fb.nn.ReLU()), file, _extra_files={"note": "hello"})
    file.seek(0)
    asked = {"note": ""}
    torch.jit.load(file, _extra_files=asked)
    assert asked["note"] == b"hello"
    file.seek(0)
    asked = {"note": ""}
    fb.jit.load(file, _extra_files=asked)
    assert asked["note"] == b"hello"


class Holder:
    """A module that calls another with all that it is given: PyTorch scripts no lone LSTM."""

    @staticmethod
    def of(torch, held, count):
        class One(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.held = held

            def forward(self, x):
                return self.held(x)

        class Two(One):
            def forward(self, x, y):
                return self.held(x, y)

        class Three(One):
            def forward(self, x, y, z):
                return self.held(x, y, z)

        return (One, Two, Three)[count - 1]()


BIG = {
    "rnn": (lambda nn: nn.RNN(4, 3, 2, nonlinearity="relu"), [(5, 2, 4)]),
    "lstm": (lambda nn: nn.LSTM(4, 3, 2, bidirectional=True, batch_first=True), [(2, 5, 4)]),
    "projected": (lambda nn: nn.LSTM(4, 5, proj_size=2), [(5, 4)]),
    "gru": (lambda nn: nn.GRU(4, 3, bias=False), [(5, 2, 4)]),
    "attention": (lambda nn: nn.MultiheadAttention(8, 2), [(5, 3, 8), (4, 3, 8), (4, 3, 8)]),
    "keys": (
        lambda nn: nn.MultiheadAttention(8, 2, kdim=4, vdim=6, add_bias_kv=True, batch_first=True),
        [(3, 5, 8), (3, 4, 4), (3, 4, 6)],
    ),
    "encoder": (
        lambda nn: nn.TransformerEncoder(
            nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2, nn.LayerNorm(8)
        ),
        [(3, 5, 8)],
    ),
    "decoder": (
        lambda nn: nn.TransformerDecoder(
            nn.TransformerDecoderLayer(8, 2, 16, norm_first=True, activation="gelu"), 2
        ),
        [(4, 3, 8), (5, 3, 8)],
    ),
    "transformer": (lambda nn: nn.Transformer(8, 2, 1, 1, 16), [(5, 3, 8), (4, 3, 8)]),
    "triplets": (
        lambda nn: nn.TripletMarginWithDistanceLoss(swap=True, margin=3.0),
        [(5, 3), (5, 3), (5, 3)],
    ),
}


def tensors(value):
    """The tensors in a result, as PyTorch's."""
    if isinstance(value, (list, tuple)):
        return [each for part in value for each in tensors(part)]
    return [torch.tensor(value.tolist()) if isinstance(value, fb.Tensor) else value]


@pytest.mark.parametrize("name", BIG)
@pytest.mark.filterwarnings("ignore:LSTM with projections:UserWarning")
@pytest.mark.filterwarnings("ignore:enable_nested_tensor:UserWarning")
@pytest.mark.filterwarnings("ignore:'norm' was found in ScriptModule constants:UserWarning")
def test_layers_of_sequences_are_exchanged_with_and_without_gradients(name):
    make, shapes = BIG[name]
    torch.manual_seed(2)
    theirs, ours = make(torch.nn).eval(), make(fb.nn).eval()
    ours.load_state_dict({k: fb.tensor(v.tolist()) for k, v in theirs.state_dict().items()})
    given = [torch.randn(shape) for shape in shapes]
    operands = [fb.tensor(each.tolist()) for each in given]
    scripted = fb.jit.script(ours)
    there = exchanged(scripted, fb.jit.save, torch.jit.load)
    back = scripted
    if name != "triplets":  # which PyTorch cannot script
        wrapped = torch.jit.script(Holder.of(torch, theirs, len(shapes)).eval())
        back = exchanged(wrapped, torch.jit.save, fb.jit.load)
    for recording in (True, False):
        with torch.set_grad_enabled(recording), fb.set_grad_enabled(recording):
            expected = tensors(theirs(*given))
            for found in (scripted(*operands), there(*given), back(*operands)):
                torch.testing.assert_close(tensors(found), expected, rtol=1e-5, atol=1e-5)


def test_classes_of_which_most_are_rare_are_exchanged():
    torch.manual_seed(3)
    args = 16, 10, [3, 7], 2.0
    theirs = torch.nn.AdaptiveLogSoftmaxWithLoss(*args)
    ours = fb.nn.AdaptiveLogSoftmaxWithLoss(*args)
    ours.load_state_dict({k: fb.tensor(v.tolist()) for k, v in theirs.state_dict().items()})
    x, target = torch.randn(6, 16), torch.tensor([0, 4, 9, 2, 8, 5])
    expected = tensors(tuple(theirs(x, target)))
    scripted = fb.jit.script(ours)
    found = scripted(fb.tensor(x.tolist()), fb.tensor(target.tolist()))
    assert found._fields == ("output", "loss")
    there = exchanged(scripted, fb.jit.save, torch.jit.load)(x, target)
    for each in (found, there):
        torch.testing.assert_close(tensors(tuple(each)), expected, rtol=1e-5, atol=1e-5)


LOSSES = "L1 MSE SmoothL1 Huber SoftMargin BCE MultiMargin MultiLabelMargin".split()


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("name", LOSSES)
def test_losses_are_reduced_as_they_are_asked_to(name, reduction):
    x = torch.rand(3, 4)
    target = torch.rand(3, 4)
    if name == "MultiMargin":
        target = torch.tensor([0, 3, 1])
    if name == "MultiLabelMargin":
        target = torch.tensor([[0, 2, -1, -1], [3, -1, -1, -1], [1, 2, 0, -1]])
    expected = getattr(torch.nn, f"{name}Loss")(reduction=reduction)(x, target)
    ours = fb.jit.script(getattr(fb.nn, f"{name}Loss")(reduction=reduction))
    found = ours(fb.tensor(x.tolist()), fb.tensor(target.tolist()))
    there = exchanged(ours, fb.jit.save, torch.jit.load)(x, target)
    torch.testing.assert_close([*tensors(found), there], [expected, expected])


def test_frozen_modules_go_to_pytorch_and_those_of_pytorch_come():
    def make(nn):
        return nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten()).eval()

    torch.manual_seed(5)
    theirs, ours = make(torch.nn), make(fb.nn)
    ours.load_state_dict({k: fb.tensor(v.tolist()) for k, v in theirs.state_dict().items()})
    x = torch.randn(2, 2, 5, 5)
    y, expected = fb.tensor(x.tolist()), theirs(x)
    frozen = fb.jit.freeze(fb.jit.script(ours))
    there = exchanged(frozen, fb.jit.save, torch.jit.load)(x)
    back = exchanged(torch.jit.freeze(torch.jit.script(theirs)), torch.jit.save, fb.jit.load)(y)
    for found in (there, *tensors(back), *tensors(frozen(y))):
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


EARLIER = {  # what an op meant changed with some version
    "quotients": "torch.div(x, y), x / y, x / 2, x / 2.0, torch.div(x, 2), 7 / 2",
    "written": "x.clone().div_(y), x.clone().div_(2), x.clone().div_(2.0)",
    "rounded": "torch.div(x, y, rounding_mode='floor'), torch.div(x, 2, rounding_mode='trunc')",
    "into": "torch.div(x, y, out=torch.empty(3, dtype=x.dtype)),",
    "divided": "torch.true_divide(x, y), torch.floor_divide(x, y), x // 2",
    "filled": "torch.full([2], 3), torch.full([2], 2.5), "
    "torch.full([2], 3, dtype=torch.int64), torch.full([2], fill_value=1)",
    "ranges": "torch.linspace(0, 1, 5), torch.logspace(0, 1, 5), torch.linspace(0, 9, steps=4)",
    "gelu": "torch.nn.functional.gelu(x * 0.5), torch.nn.functional.gelu(y * 0.5)",
    "unchanged": "x + y, x * y",
}


OPERANDS = (
    ([7, -7, 1], [2, 2, -3]),
    ([7.0, -7.0, 1.0], [2, 2, 3]),
    ([1, 2, 3], [0.5, 2.0, 3.0]),
)


def defined(library, expressions):
    torch = library  # what the program finds here
    module = type("Program", (torch.jit.ScriptModule,), {})()
    module.define(f"def forward(self, x, y):\n    return {expressions}\n")
    file = io.BytesIO()
    library.jit.save(module, file)
    return file.getvalue()


def version_of(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return int(next(archive.read(n) for n in archive.namelist() if n.endswith("version")))


def of_version(data, version):
    """The archive as if an earlier PyTorch had written it."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            if name.endswith("/version"):
                new.writestr(f"{name.partition('/')[0]}/version", b"%d\n" % version)
            else:
                new.writestr(name, old.read(name))
    return out.getvalue()


@pytest.mark.parametrize("name", EARLIER)
def test_what_ops_mean_is_kept_by_the_version_that_is_written(name):
    ours, theirs = defined(fb, EARLIER[name]), defined(torch, EARLIER[name])
    if name != "divided":  # PyTorch writes true_divide as div
        assert version_of(ours) == version_of(theirs)
    for data in (ours, theirs):
        assert_loads_alike(data)


@pytest.mark.parametrize("version", range(3, 11))
@pytest.mark.parametrize("name", EARLIER)
def test_ops_of_an_archive_mean_what_they_did_in_its_version(name, version):
    for library in (fb, torch):
        assert_loads_alike(of_version(defined(library, EARLIER[name]), version))


def assert_loads_alike(data):
    ours, theirs = fb.jit.load(io.BytesIO(data)), torch.jit.load(io.BytesIO(data))
    for x, y in OPERANDS:
        try:
            expected = theirs(torch.tensor(x), torch.tensor(y))
        except RuntimeError:
            with pytest.raises(RuntimeError):
                ours(fb.tensor(x), fb.tensor(y))
            continue
        found = ours(fb.tensor(x), fb.tensor(y))
        for one, other in zip(found, expected, strict=True):
            if isinstance(other, torch.Tensor):
                assert str(one.dtype) == str(other.dtype)
                assert one.tolist() == pytest.approx(other.tolist(), rel=1e-6, abs=1e-6)
            else:
                assert one == other


@pytest.mark.parametrize(
    ("mode", "dims"),
    [
        ("linear", 1),
        ("bilinear", 2),
        ("bicubic", 2),
        ("trilinear", 3),
        ("nearest", 1),
        ("nearest", 2),
        ("nearest", 3),
    ],
)
@pytest.mark.parametrize("scales", [None, 1.7])
def test_traces_of_pytorch_that_resample_to_sizes_of_the_input_are_read(mode, dims, scales):
    corners = "" if mode == "nearest" else ", True" if scales is None else ", False"
    given = f", {scales}" * dims if scales else ", None" * dims
    size = ", ".join(
        f"int({scales} * x.size({at + 2}))" if scales else f"x.size({at + 2}) + 2"
        for at in range(dims)
    )
    source = f"""
def f(x):
    return torch.ops.aten.upsample_{mode}{dims}d(x, [{size}]{corners}{given})
"""
    theirs = torch.jit.CompilationUnit(source).f
    ours = fb.jit.CompilationUnit(source).f
    for length in (4, 5):
        x = torch.randn(1, 2, *[length] * dims)
        found = torch.tensor(ours(fb.tensor(x.tolist())).tolist())
        torch.testing.assert_close(found, theirs(x), rtol=1e-5, atol=1e-5)


def test_a_trace_of_pytorch_that_resamples_to_the_size_of_another_tensor_is_read():
    def resized(x, y):
        return torch.nn.functional.interpolate(x, y.shape[-2:], mode="bilinear")

    x, y = torch.randn(1, 2, 3, 4), torch.zeros(6, 5)
    came = exchanged(torch.jit.trace(resized, (x, y)), torch.jit.save, fb.jit.load)
    for height in (6, 7):
        y = torch.zeros(height, 5)
        found = came(fb.tensor(x.tolist()), fb.zeros(height, 5))
        torch.testing.assert_close(torch.tensor(found.tolist()), resized(x, y))
