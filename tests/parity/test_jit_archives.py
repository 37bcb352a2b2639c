"""Archives of programs: PyTorch reads ours, and we read PyTorch's, with equal results."""

import io

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
