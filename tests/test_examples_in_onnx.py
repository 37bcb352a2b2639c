"""The networks of the examples, exported: in onnxruntime, and imported again."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

import flambeau as fb
from flambeau import nn

pytest.importorskip("onnx")
pytest.importorskip("matplotlib")  # the programs import it, to draw
pytest.importorskip("sklearn")  # they take images from it
pytest.importorskip("tqdm")
runtime = pytest.importorskip("onnxruntime")

FOLDER = Path(__file__).resolve().parents[1] / "examples"
# All but the backends, which have no networks, and translation_in_parts, which has that of
# translation.
PROGRAMS = [*FOLDER.glob("*.py"), FOLDER / "distributed/digits_in_parts.py"]


class Uses(nn.Module):
    """What a program does with a network, as the network's own forward pass."""

    def __init__(self, network: nn.Module, use: Callable) -> None:
        super().__init__()
        self.network, self.use = network, use

    def forward(self, *inputs):
        return self.use(self.network, *inputs)


class Case(NamedTuple):
    """A network of a program, inputs, others of other sizes, and which axes have them."""

    network: Callable[[ModuleType], nn.Module]
    inputs: Callable[[], tuple]
    others: Callable[[], tuple]
    axes: tuple[tuple[int, ...], ...] = ((0,),)


def words(*sizes: int) -> fb.Tensor:
    """Words of sentences, the first ones of which end early."""
    drawn = fb.randint(3, 30, sizes)
    drawn[0, -1] = 0
    return drawn


CASES = {
    "characters": Case(
        lambda example: example.Writer(),
        lambda: (fb.randint(50, (2, 6)), (fb.randn(1, 2, 192), fb.randn(1, 2, 192))),
        lambda: (fb.randint(50, (3, 1)), (fb.randn(1, 3, 192), fb.randn(1, 3, 192))),
        ((0, 1), (1,), (1,)),
    ),
    "characters without a state": Case(
        lambda example: example.Writer(),
        lambda: (fb.randint(50, (2, 6)),),
        lambda: (fb.randint(50, (1, 9)),),
        ((0, 1),),
    ),
    "dcgan": Case(
        lambda example: example.make_generator(),
        lambda: (fb.randn(2, 32),),
        lambda: (fb.randn(3, 32),),
    ),
    "dcgan, the critic": Case(
        lambda example: example.make_discriminator(),
        lambda: (fb.randn(2, 1, 8, 8),),
        lambda: (fb.randn(3, 1, 8, 8),),
    ),
    "digits": Case(
        lambda example: example.DigitNet(),
        lambda: (fb.rand(2, 1, 8, 8),),
        lambda: (fb.rand(5, 1, 8, 8),),
    ),
    "digits_in_parts": Case(
        lambda example: example.network(),
        lambda: (fb.rand(2, 1, 8, 8),),
        lambda: (fb.rand(5, 1, 8, 8),),
    ),
    "flow": Case(
        lambda example: Uses(example.Flow(), lambda flow, points: flow().log_prob(points)),
        lambda: (fb.randn(4, 2),),
        lambda: (fb.randn(7, 2),),
    ),
    "pole": Case(
        lambda example: example.ActorCritic(), lambda: (fb.rand(3, 4),), lambda: (fb.rand(5, 4),)
    ),
    "regression": Case(
        lambda example: Uses(
            example.Posterior(),
            lambda posterior, places: (
                example.features(places) @ posterior().mean,
                (example.features(places) @ posterior().scale_tril).square().sum(-1).sqrt(),
            ),
        ),
        lambda: (fb.rand(6),),
        lambda: (fb.rand(9),),
    ),
    "sine": Case(
        lambda example: example.setup(0, "cpu", fb.float32)[0],
        lambda: (fb.randn(5, 1),),
        lambda: (fb.randn(8, 1),),
    ),
    "style": Case(
        lambda example: example.Features(),
        lambda: (fb.rand(1, 3, 16, 20),),
        lambda: (fb.rand(1, 3, 24, 16),),
        ((2, 3),),
    ),
    "super_resolution": Case(
        lambda example: example.Enlarger(),
        lambda: (fb.rand(2, 1, 7, 9),),
        lambda: (fb.rand(1, 1, 10, 8),),
        ((0, 2, 3),),
    ),
    "translation": Case(
        lambda example: example.Translator(),
        lambda: (words(2, 6), words(2, 7)),
        lambda: (words(3, 4), words(3, 9)),
        ((0, 1), (0, 1)),
    ),
    "vae": Case(
        lambda example: Uses(
            example.Autoencoder(),
            # What it reconstructs without noise: drawn numbers are others in each run.
            lambda network, images: (
                *network.encode(images),
                network.decoder(network.encode(images)[0]),
            ),
        ),
        lambda: (fb.rand(2, 64),),
        lambda: (fb.rand(4, 64),),
    ),
}


def program(name: str) -> ModuleType:
    """An example, imported."""
    (path,) = (path for path in PROGRAMS if path.stem == name)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tensors(value) -> list[fb.Tensor]:
    """All tensors of nested tuples and lists."""
    return [value] if isinstance(value, fb.Tensor) else [t for each in value for t in tensors(each)]


def trained(network: nn.Module) -> nn.Module:
    """A network whose weights and averages are none that it starts with."""
    with fb.no_grad():
        for tensor in (*network.parameters(), *network.buffers()):
            if tensor.is_floating_point() and tensor.ndim:
                tensor.add_(0.05 * fb.rand_like(tensor))
    return network.eval()


def test_every_example_has_a_case():
    assert {case.split(",")[0].split(" ")[0] for case in CASES} == {path.stem for path in PROGRAMS}


@pytest.mark.filterwarnings("ignore:torch.new_tensor results are registered as constants")
@pytest.mark.parametrize("name", CASES)
def test_a_network_is_the_same_in_a_runtime_and_to_the_bit_when_it_comes_back(name):
    case = CASES[name]
    network = trained(case.network(program(name.split(",")[0].split(" ")[0])))
    names = [f"input{at}" for at in range(len(case.axes))]
    file = io.BytesIO()
    fb.onnx.export(
        network,
        case.inputs(),
        file,
        input_names=names,
        dynamic_axes={name: list(axes) for name, axes in zip(names, case.axes, strict=True)},
    )
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    session = runtime.InferenceSession(file.getvalue(), options, providers=["CPUExecutionProvider"])
    again = fb.onnx.load(io.BytesIO(file.getvalue()))
    for inputs in (case.inputs(), case.others()):
        given = dict(zip(names, tensors(inputs), strict=True))
        with fb.no_grad():
            wanted = tensors(network(*inputs))
            back = tensors(again(**given))
        found = session.run(None, {name: tensor.numpy() for name, tensor in given.items()})
        for want, own, other in zip(wanted, back, found, strict=True):
            assert own.dtype is want.dtype is fb.float32
            assert fb.equal(own, want), (own - want).abs().max().item()
            difference = (fb.from_numpy(other) - want).abs() / want.abs().clamp(min=1)
            assert difference.max().item() <= 1e-5
