"""What needs a GPU: the real cuDNN and cuBLASLt, beside the CPU."""

from __future__ import annotations

import on_device
import pytest
from test_cudnn_attention import HALVES, QKV, SQUARE, attend
from test_gemm import feed_forward
from test_ops import agree, numbers
from test_recurrences import FORMS, GATES, close

import flambeau as fb
from flambeau.plugin.host import host

if reason := on_device.missing():
    pytest.skip(reason, allow_module_level=True)
pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def device():
    return "cuda"


def library(name):
    """The library of the backend's, which must be there."""
    backend = host.activate("cuda").backend
    (found,) = [each for each in backend.planned if type(each).__name__ == name]
    assert found.runtime() is not None, found.missing
    return found


@pytest.mark.parametrize("dtype", HALVES)
def test_attention(dtype, device):
    mask = fb.ones(5, 7, dtype=fb.bool).tril(2)
    mask[3] = False  # closed to all keys
    few = [QKV[0], QKV[1][:, :2].contiguous(), QKV[2][:, :2].contiguous()]
    agree(attend(), QKV, dtype, device)
    agree(attend(is_causal=True, scale=0.5), SQUARE, dtype, device)
    agree(lambda q, k, v: attend()(q, k, v, mask.to(q.device)), QKV, dtype, device)
    agree(attend(), [*QKV, numbers(4, 5, 7, seed=3)], dtype, device)
    agree(attend(enable_gqa=True), few, dtype, device)
    assert any(plan is not None for plan in library("Attention").plans.values())


@pytest.mark.parametrize("activation", ["relu", fb.nn.GELU("tanh")], ids=str)
@pytest.mark.parametrize("dtype", [fb.float32, *HALVES], ids=str)
def test_activations_as_epilogues_of_products(dtype, activation, device, monkeypatch):
    monkeypatch.setattr(fb.backends.cuda.matmul, "allow_tf32", False)
    layer = fb.nn.TransformerEncoderLayer(64, 2, 256, 0.0, activation, dtype=fb.float64)
    inputs = [numbers(16, 2, 64), *(p.detach() for p in layer.parameters())]
    agree(feed_forward(layer), inputs, dtype, device)
    made = library("Products").plans.items()
    assert any(plan is not None and signature.epilogue & (2 | 32) for signature, plan in made)


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("mode", GATES)
def test_recurrent_layers(mode, form, device, monkeypatch):
    monkeypatch.setattr(fb.backends.cudnn, "allow_tf32", False)
    for dtype in (fb.float64, fb.float32, fb.float16):
        close({"mode": mode, **form}, dtype, device)
    assert any(stack is not None for stack in library("Recurrences").stacks.values())


@pytest.mark.parametrize("biased", [False, True])
def test_projected_layers(biased, device):
    options = {"mode": "lstm", "layers": 2, "both": True, "biased": biased}
    close(options, fb.float64, device, projected=True)
