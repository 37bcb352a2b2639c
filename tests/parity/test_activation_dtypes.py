"""Activations take and refuse the dtypes that PyTorch's do."""

from __future__ import annotations

import pytest
import torch

import flambeau as fb

NAMES = """celu elu gelu glu hardshrink hardsigmoid hardswish hardtanh leaky_relu logsigmoid mish
relu relu6 rrelu selu softplus softshrink tanhshrink""".split()
KINDS = "bool uint8 int64 float16 bfloat16 float32 float64 complex64".split()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_dtypes_of_activations_are_those_of_pytorch(name, kind):
    def outcome(t):
        try:
            return str(getattr(t.nn.functional, name)(t.ones(4).to(getattr(t, kind))).dtype)
        except (RuntimeError, NotImplementedError) as error:
            return type(error).__name__

    assert outcome(fb) == outcome(torch)
