"""Steps of optimisers have PyTorch's numbers to the last bit, where it multiplies and adds at once.

PyTorch's square roots are those of a library, one unit off in a sixth of float32's numbers; here it
is given correctly rounded ones.
"""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import flambeau as fb  # noqa: E402 - without PyTorch there is nothing to compare with

pytest.importorskip("flambeau_native")
if not torch.backends.cpu.get_cpu_capability().startswith("AVX"):
    pytest.skip("PyTorch computes without fused multiply-add here", allow_module_level=True)

SHAPES = [(37, 29), (5,), (), (3, 4, 5)]
FORMS = {
    "SGD": [
        {},
        {"momentum": 0.9},
        {"momentum": 0.9, "nesterov": True},
        {"momentum": 0.9, "dampening": 0.3},
    ],
    "Adam": [{}, {"amsgrad": True}, {"betas": (0.3, 0.6)}],
    "AdamW": [{}, {"amsgrad": True}],
    "NAdam": [{}, {"decoupled_weight_decay": True}],
    "RAdam": [{}, {"decoupled_weight_decay": True}, {"betas": (0.9, 0.5)}],
    "Adamax": [{}, {"betas": (0.4, 0.9)}],
    "RMSprop": [{}, {"momentum": 0.9}, {"centered": True}, {"centered": True, "momentum": 0.9}],
    "Adagrad": [{}, {"lr_decay": 0.1}],
    "Adadelta": [{}, {"rho": 0.3}],
    "ASGD": [{}, {"t0": 2.0}],
    "Rprop": [{}],
}
CASES = [
    (name, {**form, **more})
    for name, forms in FORMS.items()
    for form in forms
    for more in ({}, {"weight_decay": 0.1}, {"weight_decay": 0.1, "maximize": True})
    if name != "Rprop" or not more
]


def _rounded(root):
    """A method of PyTorch's tensors with NumPy's square roots, which are correctly rounded."""

    def method(self):
        found = torch.from_numpy(np.asarray(np.sqrt(self.numpy())))
        return self.copy_(found) if root == "sqrt_" else found

    return method


@pytest.fixture
def rounded_roots(monkeypatch):
    for root in ("sqrt", "sqrt_"):
        monkeypatch.setattr(torch.Tensor, root, _rounded(root))


def _trained(lib, name, form, dtype):
    draw = np.random.default_rng(0)
    params = [lib.nn.Parameter(lib.from_numpy(draw.normal(size=s).astype(dtype))) for s in SHAPES]
    optimiser = getattr(lib.optim, name)(params, **form)
    for _ in range(8):
        for p in params:
            p.grad = lib.from_numpy(np.asarray(draw.normal(size=tuple(p.shape)), dtype))
        optimiser.step()
    state = [optimiser.state[p] for p in params]
    return [p.detach().numpy() for p in params], [
        {k: v.numpy() for k, v in s.items() if v is not None and k != "step"} for s in state
    ]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "form"), CASES, ids=str)
def test_steps_have_pytorchs_bits_but_for_its_square_roots(name, form, dtype, rounded_roots):
    wanted, wanted_states = _trained(torch, name, form, dtype)
    found, states = _trained(fb, name, form, dtype)
    for i, shape in enumerate(SHAPES):
        assert found[i].tobytes() == wanted[i].tobytes(), (
            shape,
            np.abs(found[i] - wanted[i]).max(),
        )
        assert states[i].keys() == wanted_states[i].keys()
        for key, value in states[i].items():
            assert value.tobytes() == wanted_states[i][key].tobytes(), (shape, key)
