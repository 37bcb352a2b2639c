"""Reparametrised, fused and stateless modules agree with PyTorch."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import flambeau as fb  # noqa: E402

LIBRARIES = (fb, torch)
pytestmark = pytest.mark.filterwarnings("ignore:.*weight_norm:FutureWarning")


def flat(result: Any) -> list[Any]:
    if isinstance(result, (tuple, list)):
        return [x for part in result for x in flat(part)]
    return [result]


def assert_same(ours: Any, theirs: Any) -> None:
    ours, theirs = flat(ours), flat(theirs)
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        if isinstance(b, torch.Tensor):
            assert (tuple(a.shape), str(a.dtype)) == (tuple(b.shape), str(b.dtype))
            mine, yours = (t.detach().flatten().tolist() for t in (a, b))
            assert mine == pytest.approx(yours, rel=1e-8, abs=1e-8)
        else:
            assert a == b


def reparametrised(lib: Any, change: Any, make: Any, shape: tuple[int, ...]) -> list[Any]:
    """Keys, results of two forwards in training and one after it, gradients, repr."""
    lib.manual_seed(6)
    module = change(lib, make(lib).double())
    x = lib.randn(shape, dtype=lib.float64)
    found = [list(module.state_dict()), repr(module)]
    for _ in range(2):
        output = module(x)
        output.sin().sum().backward()
        found += [output, *[p.grad for p in module.parameters()]]
    module.eval()
    return [*found, module(x), *module.state_dict().values()]


LAYERS = [
    (lambda lib: lib.nn.Linear(3, 4), (2, 3)),
    (lambda lib: lib.nn.Conv2d(2, 3, 2), (1, 2, 4, 4)),
    (lambda lib: lib.nn.ConvTranspose2d(2, 3, 2), (1, 2, 4, 4)),
]
CHANGES = [
    lambda lib, m: lib.nn.utils.weight_norm(m),
    lambda lib, m: lib.nn.utils.weight_norm(m, dim=None),
    lambda lib, m: lib.nn.utils.weight_norm(m, "weight", 1),
    lambda lib, m: lib.nn.utils.spectral_norm(m),
    lambda lib, m: lib.nn.utils.spectral_norm(m, n_power_iterations=3),
    lambda lib, m: lib.nn.utils.parametrizations.weight_norm(m),
    lambda lib, m: lib.nn.utils.remove_weight_norm(lib.nn.utils.weight_norm(m)),
    lambda lib, m: lib.nn.utils.remove_spectral_norm(lib.nn.utils.spectral_norm(m)),
    lambda lib, m: lib.nn.utils.parametrize.remove_parametrizations(
        lib.nn.utils.parametrizations.weight_norm(m), "weight"
    ),
]


@pytest.mark.parametrize("change", CHANGES, ids=range(len(CHANGES)))
@pytest.mark.parametrize("layer", LAYERS, ids=range(len(LAYERS)))
def test_reparametrised_layers_agree(layer, change):
    assert_same(*(reparametrised(lib, change, *layer) for lib in LIBRARIES))


def symmetric(lib: Any) -> Any:
    class Symmetric(lib.nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).mT

        def right_inverse(self, x):
            return x.triu()

    return Symmetric()


def doubled(lib: Any) -> Any:
    class Doubled(lib.nn.Module):
        def forward(self, x):
            return 2 * x

        def right_inverse(self, x):
            return x / 2

    return Doubled()


def test_chains_of_parametrizations_agree():
    found = []
    for lib in LIBRARIES:
        P = lib.nn.utils.parametrize
        lib.manual_seed(1)
        layer = lib.nn.Linear(3, 3)
        P.register_parametrization(layer, "weight", symmetric(lib))
        P.register_parametrization(layer, "weight", doubled(lib))
        before = layer.weight.detach().clone()
        layer.weight = lib.eye(3)
        after = layer.weight.detach().clone()
        copied = copy.deepcopy(layer).weight
        layer(lib.ones(3)).sum().backward()
        names = list(layer.state_dict()), type(layer).__name__, P.is_parametrized(layer)
        gradient = layer.parametrizations.weight.original.grad
        P.remove_parametrizations(layer, "weight")
        found.append([*names, before, after, gradient, layer.weight, copied, repr(layer)])
        assert isinstance(layer.weight, lib.nn.Parameter)
    assert_same(*found)


def test_a_copy_keeps_its_parametrization_when_the_original_loses_it():
    layer = fb.nn.utils.parametrizations.weight_norm(fb.nn.Linear(2, 2))
    twin = copy.deepcopy(layer)
    fb.nn.utils.parametrize.remove_parametrizations(layer, "weight")
    assert twin.weight.tolist() == layer.weight.tolist()


def test_cached_computes_once_and_forgets():
    layer = fb.nn.utils.parametrizations.weight_norm(fb.nn.Linear(2, 2))
    with fb.nn.utils.parametrize.cached():
        first = layer.weight
        assert layer.weight is first
    assert layer.weight is not first


def test_parametrized_modules_refuse_pickling_and_load_by_state():
    import pickle

    one, other = (fb.nn.utils.parametrizations.weight_norm(fb.nn.Linear(2, 2)) for _ in range(2))
    with pytest.raises(RuntimeError, match="state_dict"):
        pickle.dumps(one)
    other.load_state_dict(one.state_dict())
    assert other.weight.tolist() == one.weight.tolist()


def test_fused_layers_agree_with_the_pair():
    for lib in LIBRARIES:
        lib.manual_seed(2)
        for layer, bn, transposed, shape in (
            (lib.nn.Conv2d(2, 3, 2, bias=False), lib.nn.BatchNorm2d(3), False, (1, 2, 4, 4)),
            (lib.nn.ConvTranspose2d(2, 3, 2), lib.nn.BatchNorm2d(3), True, (1, 2, 4, 4)),
        ):
            x = lib.randn(shape)
            bn(layer(x))
            layer.eval()
            bn.eval()
            fused = lib.nn.utils.fuse_conv_bn_eval(layer, bn, transposed)
            assert fused(x).flatten().tolist() == pytest.approx(
                bn(layer(x)).flatten().tolist(), rel=1e-4, abs=1e-5
            )


def stateless(lib: Any) -> Any:
    return lib.func.functional_call if lib is torch else lib.nn.utils.stateless.functional_call


def test_functional_calls_agree_and_leave_the_module_alone():
    found = []
    for lib in LIBRARIES:
        lib.manual_seed(3)
        model = lib.nn.Sequential(lib.nn.Linear(2, 2), lib.nn.BatchNorm1d(2)).double()
        given = {
            "0.weight": lib.ones(2, 2, dtype=lib.float64).requires_grad_(),
            "1.running_mean": lib.ones(2, dtype=lib.float64),
        }
        x = lib.randn(4, 2, dtype=lib.float64)
        output = stateless(lib)(model, given, (x,))
        (gradient,) = lib.autograd.grad(output.sin().sum(), given["0.weight"])
        found.append([output, gradient, given["1.running_mean"], *model.state_dict().values()])
    assert_same(*found)


ERRORS = [
    lambda lib: lib.nn.utils.remove_weight_norm(lib.nn.Linear(2, 2)),
    lambda lib: lib.nn.utils.weight_norm(lib.nn.utils.weight_norm(lib.nn.Linear(2, 2))),
    lambda lib: lib.nn.utils.remove_spectral_norm(lib.nn.Linear(2, 2)),
    lambda lib: lib.nn.utils.spectral_norm(lib.nn.utils.spectral_norm(lib.nn.Linear(2, 2))),
    lambda lib: lib.nn.utils.spectral_norm(lib.nn.Linear(2, 2), n_power_iterations=0),
    lambda lib: lib.nn.utils.parametrize.remove_parametrizations(lib.nn.Linear(2, 2), "weight"),
    lambda lib: lib.nn.utils.parametrize.register_parametrization(
        lib.nn.Linear(2, 2), "x", symmetric(lib)
    ),
    lambda lib: lib.nn.utils.parametrize.register_parametrization(
        lib.nn.Linear(2, 2), "bias", lib.nn.Unflatten(0, (1, 2))
    ),
    lambda lib: lib.nn.utils.skip_init(lib.nn.ReLU),
    lambda lib: stateless(lib)(lib.nn.Linear(2, 2), {"x": lib.ones(2)}, lib.ones(2), strict=True),
    lambda lib: lib.nn.utils.fuse_conv_bn_eval(lib.nn.Conv2d(1, 1, 1), lib.nn.BatchNorm2d(1)),
]


@pytest.mark.parametrize("call", ERRORS, ids=range(len(ERRORS)))
def test_errors_have_the_class_and_text_of_pytorch(call):
    with pytest.raises(Exception) as theirs:  # noqa: PT011 - whatever PyTorch raises
        call(torch)
    with pytest.raises(type(theirs.value)) as ours:
        call(fb)
    assert str(ours.value)[:20] == str(theirs.value)[:20]


def test_skip_init_draws_no_random_numbers():
    fb.manual_seed(0)
    expected = fb.rand(1).item()
    fb.manual_seed(0)
    layer = fb.nn.utils.skip_init(fb.nn.Linear, 2, 3)
    assert fb.rand(1).item() == expected
    assert (layer.weight.device.type, tuple(layer.weight.shape)) == ("cpu", (3, 2))


OF_SAMPLES = {
    "linear": ("Linear(4, 3)", (5, 4)),
    "linear of stacks": ("Linear(4, 3, bias=False)", (5, 2, 4)),
    "conv1d": ("Conv1d(2, 4, 3, groups=2)", (3, 2, 7)),
    "conv2d": ("Conv2d(2, 3, 3, stride=2, padding=1, dilation=2)", (3, 2, 7, 6)),
    "conv2d same": ("Conv2d(2, 3, 2, padding='same')", (1, 2, 5, 6)),
    "conv3d": ("Conv3d(2, 3, 2)", (2, 2, 4, 3, 3)),
    "embedding": ("Embedding(7, 3)", None),
    "padded embedding": ("Embedding(7, 3, padding_idx=1)", None),
    "layer norm": ("LayerNorm((3, 4))", (5, 2, 3, 4)),
    "group norm": ("GroupNorm(2, 4)", (3, 4, 5)),
    "instance norm": ("InstanceNorm1d(3, affine=True)", (4, 3, 5)),
    "network": (
        "Sequential(nn.Conv1d(2, 3, 2), nn.ReLU(), nn.Flatten(), nn.Linear(12, 2))",
        (3, 2, 5),
    ),
}


@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("name", OF_SAMPLES)
def test_gradients_by_sample_are_pytorchs(name: str, reduction: str) -> None:
    from torch.nn.utils import _per_sample_grad as theirs

    from flambeau.nn.utils import _per_sample_grad as ours

    written, shape = OF_SAMPLES[name]
    found = []
    for library, here in ((fb, ours), (torch, theirs)):
        library.manual_seed(1)
        layer = eval(f"nn.{written}", {"nn": library.nn}).double()
        if shape is None:
            x = library.randint(0, 7, (4, 5))
        else:
            x = library.randn(shape, dtype=library.float64, requires_grad=True)
        made = here.call_for_per_sample_grads(layer, loss_reduction=reduction)(x)
        weights = library.linspace(-1, 1, made.numel(), dtype=library.float64).view(made.shape)
        getattr(made * weights, reduction)().backward()
        assert all(weight.grad is None for weight in layer.parameters())
        grads = [weight.grad_sample for weight in layer.parameters()]
        found.append([made, *grads, *([] if shape is None else [x.grad])])
        with pytest.raises(RuntimeError, match="grad_sample"):
            here.call_for_per_sample_grads(layer)
    assert_same(*found)


def test_gradients_by_sample_of_a_second_dimension_and_beside_fixed_weights() -> None:
    from flambeau.nn.utils._per_sample_grad import call_for_per_sample_grads

    layer, x = fb.nn.Linear(3, 2), fb.randn(4, 5, 3)
    layer.bias.requires_grad_(False)
    made = call_for_per_sample_grads(layer, batch_first=False)(x)
    assert fb.allclose(made, layer(x))
    made.sum().backward()
    assert layer.weight.grad_sample.shape == (5, 2, 3) and not hasattr(layer.bias, "grad_sample")
    for at in range(5):
        layer.weight.grad = None
        layer(x[:, at]).sum().backward()
        assert fb.allclose(layer.weight.grad, layer.weight.grad_sample[at])
    for wrong in ({"batch_size": 0}, {"batch_size": 2.0}, {"loss_reduction": "max"}):
        with pytest.raises(RuntimeError, match="must be|Expected"):
            call_for_per_sample_grads(fb.nn.Linear(3, 2), **wrong)
    with pytest.raises(RuntimeError, match="nn.Module"):
        call_for_per_sample_grads(3)
    for args in ((fb.ones(2, 3), fb.ones(3, 3)), (3,)):
        with pytest.raises(RuntimeError, match="batch"):
            call_for_per_sample_grads(fb.nn.Bilinear(3, 3, 2))(*args)


def old_states(lib: Any, make: Any, data: Any) -> list[Any]:
    """What a layer becomes by states as PyTorch 0.4 wrote them: without v, and with the weight."""
    layer = lib.nn.utils.spectral_norm(make(lib))
    net = lib.nn.Sequential(layer)
    state = net.state_dict()
    for name, values in data.items():
        state[f"0.{name}"] = lib.tensor(values.tolist(), dtype=lib.float64)
    state["0.weight"] = state["0.weight_orig"] / 3
    found: list[Any] = []
    for lost, strict in [((), True), (("weight",), True), (("weight", "weight_u"), False)]:
        given = {key: value for key, value in state.items() if key[2:] not in ("weight_v", *lost)}
        keys = sorted(given)
        try:
            result = net.load_state_dict(given, strict=strict)
            found += [sorted(result.missing_keys), sorted(result.unexpected_keys)]
        except RuntimeError as error:
            found.append(sorted(str(error).split('"')[1::2]))
        found += [sorted(given) == keys, *(value.numpy() for value in net.state_dict().values())]
    lib.nn.utils.remove_spectral_norm(layer)
    return [*found, sorted(net.state_dict()), net.state_dict()._metadata["0"]]


def test_a_layer_that_was_normalised_reads_its_state():
    layer = fb.nn.utils.remove_spectral_norm(fb.nn.utils.spectral_norm(fb.nn.Linear(2, 2)))
    layer.load_state_dict(layer.state_dict())  # PyTorch keeps the hook and misses `weight_orig`


@pytest.mark.parametrize(
    "make",
    [
        lambda lib: lib.nn.Linear(3, 5).double(),
        lambda lib: lib.nn.Linear(5, 3, bias=False).double(),
        lambda lib: lib.nn.Conv2d(2, 4, 2).double(),
        lambda lib: lib.nn.ConvTranspose1d(3, 2, 2).double(),
    ],
    ids=range(4),
)
def test_spectral_norm_reads_the_states_of_old_versions(make):
    layer = torch.nn.utils.spectral_norm(make(torch))
    data = {name: value.numpy() for name, value in layer.state_dict().items() if "_v" not in name}
    ours, theirs = old_states(fb, make, data), old_states(torch, make, data)
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        if isinstance(mine, np.ndarray):
            np.testing.assert_allclose(mine, other, rtol=1e-9, atol=1e-12)
        else:
            assert mine == other
