"""Attention and the Transformer agree with PyTorch."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from oracle import DEVICES, check, check_error

torch = pytest.importorskip("torch")

import flambeau as fb  # noqa: E402

LIBRARIES = (fb, torch)
QKV = ((2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 2))
CAUSAL_QKV = ((2, 3, 4), (2, 3, 4), (2, 3, 4))
OPEN = [[True, False, True, True, False], [True] * 5, [False] * 5]


def sdpa(t: Any, *args: Any, **how: Any) -> Any:
    return t.nn.functional.scaled_dot_product_attention(*args, **how)


CASES: list[tuple[str, Callable[..., Any], tuple[Any, ...]]] = [
    ("plain", lambda t, q, k, v: sdpa(t, q, k, v), QKV),
    ("scale", lambda t, q, k, v: sdpa(t, q, k, v, scale=0.3), QKV),
    ("float mask", lambda t, q, k, v, m: sdpa(t, q, k, v, m), (*QKV, (3, 5))),
    (
        "bool mask with a closed row",
        lambda t, q, k, v: sdpa(t, q, k, v, t.tensor(OPEN, device=q.device)),
        QKV,
    ),
    ("causal", lambda t, q, k, v: sdpa(t, q, k, v, is_causal=True), CAUSAL_QKV),
    ("matrices", lambda t, q, k, v: sdpa(t, q, k, v), ((3, 4), (5, 4), (5, 2))),
    (
        "grouped heads",
        lambda t, q, k, v: sdpa(t, q, k, v, enable_gqa=True),
        ((1, 4, 3, 4), (1, 2, 5, 4), (1, 2, 5, 2)),
    ),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("case", CASES, ids=lambda c: c[0])
def test_attention_agrees_in_values_and_both_derivatives(case, device):
    check(case[1], case[2], device)


def test_attention_drops_the_weights_that_pytorch_drops():
    found = []
    for lib in LIBRARIES:
        lib.manual_seed(1)
        q, k, v = (lib.randn(shape) for shape in QKV)
        found.append(sdpa(lib, q, k, v, dropout_p=0.4).flatten().tolist())
    assert found[0] == pytest.approx(found[1], rel=1e-5, abs=1e-6)


REFUSED = [
    (lambda t, q, k, v: sdpa(t, q, k, v), ((3,), (3,), (3,))),
    (lambda t, q, k, v: sdpa(t, q, k.float(), v), ((3, 4), (5, 4), (5, 4))),
    (lambda t, q, k, v, m: sdpa(t, q, k, v, m, is_causal=True), ((3, 4), (5, 4), (5, 4), (3, 5))),
    (lambda t, q, k, v, m: sdpa(t, q, k, v, m), ((3, 4), (5, 4), (5, 4), (2, 5))),
    (
        lambda t, q, k, v: sdpa(t, q, k, v, enable_gqa=True),
        ((1, 3, 3, 4), (1, 2, 5, 4), (1, 2, 5, 4)),
    ),
]


@pytest.mark.parametrize("case", REFUSED, ids=range(len(REFUSED)))
def test_attention_refuses_what_pytorch_refuses(case):
    check_error(*case)


def flat(result: Any) -> list[Any]:
    if isinstance(result, (tuple, list)):
        return [x for part in result for x in flat(part)]
    return [] if result is None else [result]


def assert_same(ours: Any, theirs: Any) -> None:
    ours, theirs = flat(ours), flat(theirs)
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert (tuple(a.shape), str(a.dtype)) == (tuple(b.shape), str(b.dtype))
        assert a.detach().flatten().tolist() == pytest.approx(
            b.detach().flatten().tolist(), rel=1e-9, abs=1e-9
        )


def compared(
    make: Callable[[Any], Any],
    shapes: list[tuple[int, ...]],
    masks: Callable[[Any], dict[str, Any]] = lambda lib: {},
) -> None:
    """Names, repr, weights, outputs and gradients of a module, in training."""
    found = []
    for lib in LIBRARIES:
        lib.manual_seed(4)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = make(lib)
        operands = [lib.randn(s, dtype=lib.float64).requires_grad_() for s in shapes]
        lib.manual_seed(9)
        results = flat(module(*operands, **masks(lib)))
        weights = [lib.arange(r.numel(), dtype=lib.float64).cos().reshape(r.shape) for r in results]
        total = sum((r * w).sum() for r, w in zip(results, weights, strict=True))
        leaves = [*operands, *module.parameters()]
        grads = lib.autograd.grad(total, leaves, allow_unused=True)
        found.append(
            (list(module.state_dict()), repr(module), list(module.parameters()), results, grads)
        )
    assert found[0][:2] == found[1][:2]
    for ours, theirs in zip(found[0][2:], found[1][2:], strict=True):
        assert_same(ours, theirs)


SELF = [(3, 2, 4)] * 3
HEADS: list[tuple[str, dict[str, Any], list[tuple[int, ...]], Any]] = [
    ("plain", {}, SELF, lambda lib: {}),
    ("cross", {}, [(3, 2, 4), (5, 2, 4), (5, 2, 4)], lambda lib: {"average_attn_weights": False}),
    ("unbatched", {}, [(3, 4), (5, 4), (5, 4)], lambda lib: {}),
    ("batch first, no bias", {"batch_first": True, "bias": False}, SELF, lambda lib: {}),
    ("other sizes", {"kdim": 3, "vdim": 5}, [(3, 2, 4), (5, 2, 3), (5, 2, 5)], lambda lib: {}),
    (
        "extra keys, padding",
        {"add_bias_kv": True, "add_zero_attn": True},
        SELF,
        lambda lib: {
            "key_padding_mask": lib.tensor([[False, True, False], [False, False, True]]),
            "attn_mask": lib.ones(3, 3, dtype=lib.bool).triu(1),
        },
    ),
    (
        "mask per head, dropout",
        {"dropout": 0.3},
        SELF,
        lambda lib: {"attn_mask": lib.ones(4, 3, 3, dtype=lib.float64).cumsum(1)},
    ),
    ("no weights", {}, SELF, lambda lib: {"need_weights": False}),
    (
        "no weights, dropout, padding",
        {"dropout": 0.3},
        SELF,
        lambda lib: {
            "need_weights": False,
            "key_padding_mask": lib.tensor([[False, True, False], [False, False, True]]),
        },
    ),
    (
        "causal",
        {},
        SELF,
        lambda lib: {
            "need_weights": False,
            "is_causal": True,
            "attn_mask": lib.nn.Transformer.generate_square_subsequent_mask(3),
        },
    ),
]


@pytest.mark.parametrize("case", HEADS, ids=lambda c: c[0])
def test_multihead_attention_agrees(case):
    _, options, shapes, masks = case
    compared(
        lambda lib: lib.nn.MultiheadAttention(4, 2, dtype=lib.float64, **options), shapes, masks
    )


LAYERS: list[dict[str, Any]] = [
    {},
    {"norm_first": True, "activation": "gelu", "dropout": 0.2},
    {"batch_first": True, "bias": False, "layer_norm_eps": 1e-3},
]


@pytest.mark.parametrize("options", LAYERS, ids=str)
def test_transformer_layers_agree(options):
    compared(
        lambda lib: lib.nn.TransformerEncoderLayer(4, 2, 6, dtype=lib.float64, **options),
        [(3, 2, 4)],
    )
    compared(
        lambda lib: lib.nn.TransformerDecoderLayer(4, 2, 6, dtype=lib.float64, **options),
        [(3, 2, 4), (3, 2, 4)],
        lambda lib: {
            "tgt_mask": lib.nn.Transformer.generate_square_subsequent_mask(3)
            if not options.get("batch_first")
            else None
        },
    )


@pytest.mark.parametrize("options", LAYERS, ids=str)
def test_transformer_agrees(options):
    shapes = [(3, 2, 4), (5, 2, 4)]
    if options.get("batch_first"):
        shapes = [(2, 3, 4), (2, 5, 4)]
    compared(
        lambda lib: lib.nn.Transformer(4, 2, 2, 2, 6, dtype=lib.float64, **options),
        shapes,
        lambda lib: {
            "tgt_mask": lib.nn.Transformer.generate_square_subsequent_mask(5, dtype=lib.float64),
            "src_key_padding_mask": lib.tensor([[False, False, True], [False, False, False]]),
            "tgt_is_causal": True,
        },
    )


def test_an_activation_may_be_a_module_or_a_function():
    compared(
        lambda lib: lib.nn.TransformerEncoderLayer(
            4, 2, 6, activation=lib.nn.GELU(), dtype=lib.float64
        ),
        [(3, 2, 4)],
    )
    compared(
        lambda lib: lib.nn.TransformerEncoderLayer(4, 2, 6, activation=lib.tanh, dtype=lib.float64),
        [(3, 2, 4)],
    )


ERRORS = [
    lambda lib: lib.nn.MultiheadAttention(4, 3),
    lambda lib: lib.nn.MultiheadAttention(4, 0),
    lambda lib: lib.nn.MultiheadAttention(4, 2)(*[lib.ones(3)] * 3),
    lambda lib: lib.nn.MultiheadAttention(4, 2)(lib.ones(3, 4), lib.ones(3, 2, 4), lib.ones(3, 4)),
    lambda lib: lib.nn.MultiheadAttention(4, 2)(*[lib.ones(3, 2, 5)] * 3),
    lambda lib: lib.nn.MultiheadAttention(4, 2)(*[lib.ones(3, 2, 4)] * 3, is_causal=True),
    lambda lib: lib.nn.MultiheadAttention(4, 2)(*[lib.ones(3, 2, 4)] * 3, attn_mask=lib.ones(2, 2)),
    lambda lib: lib.nn.MultiheadAttention(4, 2)(
        *[lib.ones(3, 2, 4)] * 3, key_padding_mask=lib.ones(3, 2)
    ),
    lambda lib: lib.nn.MultiheadAttention(4, 2)(
        lib.ones(3, 2, 4), lib.ones(5, 2, 4), lib.ones(3, 2, 4)
    ),
    lambda lib: lib.nn.TransformerEncoderLayer(4, 2, 8, activation="x"),
    lambda lib: lib.nn.Transformer(4, 2, 1, 1, 8)(lib.ones(3, 2, 4), lib.ones(3, 1, 4)),
    lambda lib: lib.nn.Transformer(4, 2, 1, 1, 8)(lib.ones(3, 2, 4), lib.ones(3, 2, 5)),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", ERRORS, ids=range(len(ERRORS)))
def test_errors_have_the_class_and_text_of_pytorch(call):
    with pytest.raises(Exception) as theirs:  # noqa: PT011
        call(torch)
    with pytest.raises(type(theirs.value)) as ours:
        call(fb)
    assert str(ours.value)[:25] == str(theirs.value)[:25]


def test_the_causal_mask_is_closed_above_the_diagonal():
    mask = fb.nn.Transformer.generate_square_subsequent_mask(3)
    assert mask.tolist() == [[0, -math.inf, -math.inf], [0, 0, -math.inf], [0, 0, 0]]
