"""The choice of kernels for attention."""

from __future__ import annotations

import pytest

import flambeau as fb
from flambeau.nn.attention import SDPBackend, sdpa_kernel
from flambeau.nn.functional import scaled_dot_product_attention as attention


def names_of_ops(choice):
    q = fb.ones(1, 2, 3, 4)
    with sdpa_kernel(choice), fb.autograd.profiler.profile() as profile:
        attention(q, q, q)
    assert all(
        getattr(fb.backends.cuda, f"{name}_sdp_enabled")()
        for name in ("flash", "math", "mem_efficient", "cudnn")
    )
    return {event.key for event in profile.key_averages()}


def test_the_formula_alone_can_be_asked_for():
    assert "fused_attention" not in names_of_ops(SDPBackend.MATH)


def test_without_a_kernel_attention_is_refused_and_the_choice_ends_with_the_block():
    with pytest.raises(RuntimeError, match="No viable backend"):
        names_of_ops([SDPBackend.CUDNN_ATTENTION, SDPBackend.EFFICIENT_ATTENTION])
    assert names_of_ops([SDPBackend.FLASH_ATTENTION])


def test_what_is_no_kernel_is_refused():
    with pytest.raises(AssertionError, match="instance of SDPBackend"):
        sdpa_kernel("flash").__enter__()
