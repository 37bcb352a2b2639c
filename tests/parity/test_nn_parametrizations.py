"""Orthogonal and spectrally normalised weights agree with PyTorch's."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as fb

torch = pytest.importorskip("torch")

from oracle import assert_same, ours_of  # noqa: E402


def pair(make: Any, name: str = "weight") -> tuple[Any, Any]:
    """A layer of both libraries with one weight, in float64."""
    torch.manual_seed(1)
    there, here = make(torch).double(), make(fb).double()
    here.load_state_dict({k: ours_of(v) for k, v in there.state_dict().items()})
    return there, here


LAYERS = {
    "square": lambda t: t.nn.Linear(4, 4),
    "tall": lambda t: t.nn.Linear(3, 5),
    "wide": lambda t: t.nn.Linear(5, 3),
}


def agree_in_value_and_gradient(there: Any, here: Any) -> None:
    assert list(here.state_dict()) == list(there.state_dict())
    gradients = []
    for t, layer in ((torch, there), (fb, here)):
        w = layer.weight
        factor = t.arange(1.0, w.numel() + 1).double().cos().reshape(w.shape)
        (w * factor).pow(2).sum().backward()
        gradients.append([p.grad for p in layer.parameters() if p.grad is not None])
    assert_same(here.weight.detach(), there.weight.detach(), 1e-9)
    assert len(gradients[1]) == len(gradients[0]) > 0
    for ours, theirs in zip(gradients[1], gradients[0], strict=True):
        assert_same(ours, theirs, 1e-8)


@pytest.mark.parametrize("trivialised", [True, False])
@pytest.mark.parametrize("kind", [None, "matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("layer", LAYERS)
def test_orthogonal_weights_and_gradients_agree(layer: str, kind: Any, trivialised: bool) -> None:
    there, here = pair(LAYERS[layer])
    for t, made in ((torch, there), (fb, here)):
        t.nn.utils.parametrizations.orthogonal(made, "weight", kind, use_trivialization=trivialised)
    state = {k: ours_of(v) for k, v in there.state_dict().items()}
    if trivialised:  # the completion of a basis is drawn at random: take PyTorch's
        chain = here.parametrizations.weight[0]
        chain.base = state["parametrizations.weight.0.base"]
    here.load_state_dict(state)
    agree_in_value_and_gradient(there, here)
    w = here.weight.detach()
    gram = w.T @ w if w.shape[0] >= w.shape[1] else w @ w.T
    assert fb.allclose(gram, fb.eye(gram.shape[0], dtype=fb.float64), atol=1e-10)


@pytest.mark.parametrize("layer", LAYERS)
def test_assigning_an_orthogonal_matrix_keeps_it(layer: str) -> None:
    made = fb.nn.utils.parametrizations.orthogonal(LAYERS[layer](fb).double())
    q = fb.linalg.qr(fb.randn(5, 5, dtype=fb.float64))[0][: made.weight.shape[0]]
    q = q[:, : made.weight.shape[1]]
    if layer == "square":
        q = fb.linalg.qr(fb.randn(4, 4, dtype=fb.float64))[0]
    made.weight = q
    assert fb.allclose(made.weight, q, atol=1e-10)


SPECTRAL = {
    "linear": (lambda t: t.nn.Linear(4, 3), {}),
    "iterations": (lambda t: t.nn.Linear(4, 3), {"n_power_iterations": 3, "eps": 1e-6}),
    "dimension": (lambda t: t.nn.Linear(4, 3), {"dim": -1}),
    "convolution": (lambda t: t.nn.Conv2d(3, 4, 2), {}),
    "transposed": (lambda t: t.nn.ConvTranspose1d(3, 4, 2), {}),
    "vector": (lambda t: t.nn.Linear(4, 3), {"name": "bias"}),
}


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", SPECTRAL)
def test_spectral_norms_agree(name: str, training: bool) -> None:
    make, options = SPECTRAL[name]
    there, here = pair(make)
    for t, layer in ((torch, there), (fb, here)):
        t.nn.utils.parametrizations.spectral_norm(layer, **options)
        layer.train(training)
    here.load_state_dict({k: ours_of(v) for k, v in there.state_dict().items()})
    if name == "vector":
        assert_same(here.bias.detach(), there.bias.detach(), 1e-12)
        return
    agree_in_value_and_gradient(there, here)
    for key, value in there.state_dict().items():  # the singular vectors move alike
        assert_same(here.state_dict()[key], value, 1e-9)


def test_the_first_vectors_are_near_the_singular_ones() -> None:
    layer = fb.nn.Linear(6, 6)
    left, right = (fb.linalg.qr(fb.randn(6, 6)).Q for _ in range(2))
    # Each of the 15 iterations brings the vectors nearer by the square of the first two's ratio.
    layer.weight.data = left @ fb.diag(fb.tensor([4.0, 2, 2, 1, 1, 0])) @ right
    fb.nn.utils.parametrizations.spectral_norm(layer).eval()
    assert fb.linalg.matrix_norm(layer.weight, 2).item() == pytest.approx(1, abs=1e-5)


ERRORS = [
    lambda t, p: p.spectral_norm(t.nn.Linear(2, 2), "nothing"),
    lambda t, p: p.spectral_norm(t.nn.Linear(2, 2), n_power_iterations=0),
    lambda t, p: p.spectral_norm(t.nn.Linear(2, 2), dim=2),
    lambda t, p: p.orthogonal(t.nn.Linear(2, 2), "nothing"),
    lambda t, p: p.orthogonal(t.nn.Linear(2, 2), "bias"),
    lambda t, p: p.orthogonal(t.nn.Linear(2, 2), orthogonal_map="qr"),
    lambda t, p: p.orthogonal(t.nn.Linear(2, 2, dtype=t.complex64), orthogonal_map="householder"),
    lambda t, p: setattr(p.orthogonal(t.nn.Linear(2, 2)), "weight", t.ones(3, 2)),
    lambda t, p: setattr(
        p.orthogonal(t.nn.Linear(2, 2), use_trivialization=False), "weight", t.eye(2)
    ),
]


@pytest.mark.parametrize("call", ERRORS)
def test_refusals_have_pytorchs_class(call: Any) -> None:
    with pytest.raises(Exception) as there:  # noqa: PT011 - its class is what is compared
        call(torch, torch.nn.utils.parametrizations)
    with pytest.raises(there.type):
        call(fb, fb.nn.utils.parametrizations)
