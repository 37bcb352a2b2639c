"""The Transformer under every mask agrees with PyTorch, in values and gradients."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch.nn.attention")

import flambeau as fb  # noqa: E402

LIBRARIES = (fb, torch)
BATCH, SOURCE, TARGET, WIDTH, HEADS = 2, 5, 4, 4, 2
pytestmark = pytest.mark.filterwarnings("ignore:.*nested_tensor.*:UserWarning")


def wave(lib: Any, *shape: int, shift: float = 0.0) -> Any:
    count = math.prod(shape)
    values = lib.arange(count, dtype=lib.float64).mul(1.7).add(shift).sin()
    return values.reshape(shape).requires_grad_()


def sequence(lib: Any, length: int, batch_first: bool, shift: float) -> Any:
    shape = (BATCH, length, WIDTH) if batch_first else (length, BATCH, WIDTH)
    return wave(lib, *shape, shift=shift)


def added(lib: Any, rows: int, columns: int) -> Any:
    """A mask that is added, with one place closed."""
    mask = wave(lib, rows, columns, shift=0.3).detach()
    mask[1, 0] = -math.inf
    return mask


def closed(lib: Any, rows: int, columns: int) -> Any:
    """A mask of truth values: the last two places of the first half of the rows are closed."""
    mask = lib.zeros(rows, columns, dtype=lib.bool)
    mask[: rows // 2, -2:] = True
    return mask


def causal(lib: Any, length: int) -> Any:
    return lib.nn.Transformer.generate_square_subsequent_mask(length, dtype=lib.float64)


def padding(lib: Any, length: int, kind: str) -> Any:
    mask = closed(lib, BATCH, length)
    if kind == "bool":
        return mask
    return lib.zeros(BATCH, length, dtype=lib.float64).masked_fill(mask, -math.inf)


def outcome(lib: Any, module: Any, inputs: list[Any], options: dict[str, Any]) -> list[Any]:
    output = module(*inputs, **options)
    output.mul(wave(lib, *output.shape, shift=0.9).detach()).sin().sum().backward()
    found = [output.detach(), *[x.grad for x in inputs]]
    return [x.flatten().tolist() for x in [*found, *[p.grad for p in module.parameters()]]]


def assert_agreement(program: Any) -> None:
    ours, theirs = (program(lib) for lib in LIBRARIES)
    assert len(ours) == len(theirs)
    for mine, reference in zip(ours, theirs, strict=True):
        assert mine == pytest.approx(reference, rel=1e-9, abs=1e-9, nan_ok=True)


ENCODER_MASKS = {
    "none": lambda lib: {},
    "added": lambda lib: {"mask": added(lib, SOURCE, SOURCE)},
    "per head": lambda lib: {
        "mask": wave(lib, BATCH * HEADS, SOURCE, SOURCE, shift=0.1).detach(),
    },
    "closed": lambda lib: {"mask": closed(lib, SOURCE, SOURCE)},
    "padding": lambda lib: {"src_key_padding_mask": padding(lib, SOURCE, "bool")},
    "float padding": lambda lib: {"src_key_padding_mask": padding(lib, SOURCE, "float")},
    "causal": lambda lib: {"mask": causal(lib, SOURCE), "is_causal": True},
    "causal, padding": lambda lib: {
        "mask": causal(lib, SOURCE),
        "src_key_padding_mask": padding(lib, SOURCE, "float"),
    },
}
FORMS = [
    pytest.param(b, n, t, id=f"{'batch' if b else 'time'}-{'pre' if n else 'post'}-{t}")
    for b, n, t in product((False, True), (False, True), ("train", "eval"))
]
DECODER_MASKS = {
    "none": lambda lib: {},
    "causal": lambda lib: {"tgt_mask": causal(lib, TARGET), "tgt_is_causal": True},
    "added": lambda lib: {
        "tgt_mask": added(lib, TARGET, TARGET),
        "memory_mask": added(lib, TARGET, SOURCE),
    },
    "closed": lambda lib: {
        "tgt_mask": closed(lib, TARGET, TARGET),
        "memory_mask": closed(lib, TARGET, SOURCE),
    },
    "padding": lambda lib: {
        "tgt_mask": causal(lib, TARGET),
        "tgt_key_padding_mask": padding(lib, TARGET, "float"),
        "memory_key_padding_mask": padding(lib, SOURCE, "bool"),
    },
}


@pytest.mark.parametrize("masks", ENCODER_MASKS)
@pytest.mark.parametrize(("batch_first", "norm_first", "mode"), FORMS)
def test_the_encoder_agrees(batch_first: bool, norm_first: bool, mode: str, masks: str) -> None:
    def program(lib: Any) -> list[Any]:
        lib.manual_seed(1)
        layer = lib.nn.TransformerEncoderLayer(
            *(WIDTH, HEADS, 6, 0.0),
            batch_first=batch_first,
            norm_first=norm_first,
            dtype=lib.float64,
        )
        norm = lib.nn.LayerNorm(WIDTH, dtype=lib.float64)
        module = lib.nn.TransformerEncoder(layer, 2, norm, enable_nested_tensor=False)
        getattr(module, mode)()
        source = sequence(lib, SOURCE, batch_first, 0.2)
        return outcome(lib, module, [source], ENCODER_MASKS[masks](lib))

    assert_agreement(program)


@pytest.mark.parametrize("masks", DECODER_MASKS)
@pytest.mark.parametrize(("batch_first", "norm_first", "mode"), FORMS)
def test_the_decoder_agrees(batch_first: bool, norm_first: bool, mode: str, masks: str) -> None:
    def program(lib: Any) -> list[Any]:
        lib.manual_seed(1)
        layer = lib.nn.TransformerDecoderLayer(
            *(WIDTH, HEADS, 6, 0.0),
            batch_first=batch_first,
            norm_first=norm_first,
            dtype=lib.float64,
        )
        module = lib.nn.TransformerDecoder(layer, 2)
        getattr(module, mode)()
        inputs = [
            sequence(lib, TARGET, batch_first, 0.2),
            sequence(lib, SOURCE, batch_first, 0.7),
        ]
        return outcome(lib, module, inputs, DECODER_MASKS[masks](lib))

    assert_agreement(program)


WHOLE_MASKS = {
    "none": lambda lib: {},
    "all added": lambda lib: {
        "src_mask": added(lib, SOURCE, SOURCE),
        "tgt_mask": causal(lib, TARGET),
        "memory_mask": added(lib, TARGET, SOURCE),
        "src_key_padding_mask": padding(lib, SOURCE, "float"),
        "tgt_key_padding_mask": padding(lib, TARGET, "float"),
        "memory_key_padding_mask": padding(lib, SOURCE, "float"),
    },
    "all closed": lambda lib: {
        "src_mask": closed(lib, SOURCE, SOURCE),
        "tgt_mask": lib.ones(TARGET, TARGET, dtype=lib.bool).triu(1),
        "src_key_padding_mask": padding(lib, SOURCE, "bool"),
        "tgt_key_padding_mask": padding(lib, TARGET, "bool"),
        "memory_key_padding_mask": padding(lib, SOURCE, "bool"),
    },
    "causal": lambda lib: {
        "src_mask": causal(lib, SOURCE),
        "tgt_mask": causal(lib, TARGET),
        "src_is_causal": True,
        "tgt_is_causal": True,
    },
}


@pytest.mark.parametrize("masks", WHOLE_MASKS)
@pytest.mark.parametrize(("batch_first", "norm_first", "mode"), FORMS)
def test_the_transformer_agrees(batch_first: bool, norm_first: bool, mode: str, masks: str) -> None:
    def program(lib: Any) -> list[Any]:
        lib.manual_seed(1)
        module = lib.nn.Transformer(
            *(WIDTH, HEADS, 1, 2, 6, 0.0, "gelu"),
            batch_first=batch_first,
            norm_first=norm_first,
            dtype=lib.float64,
        )
        getattr(module, mode)()
        inputs = [
            sequence(lib, SOURCE, batch_first, 0.7),
            sequence(lib, TARGET, batch_first, 0.2),
        ]
        return outcome(lib, module, inputs, WHOLE_MASKS[masks](lib))

    assert_agreement(program)


@pytest.mark.parametrize("norm_first", [False, True])
def test_dropout_in_training_draws_pytorchs_numbers(norm_first: bool) -> None:
    def program(lib: Any) -> list[Any]:
        lib.manual_seed(1)
        module = lib.nn.Transformer(
            *(WIDTH, HEADS, 1, 1, 6, 0.3), norm_first=norm_first, dtype=lib.float64
        )
        inputs = [sequence(lib, SOURCE, False, 0.7), sequence(lib, TARGET, False, 0.2)]
        lib.manual_seed(2)
        return outcome(lib, module, inputs, WHOLE_MASKS["causal"](lib))

    assert_agreement(program)


ATTENTION_MASKS = {
    "none": lambda lib: {},
    "added": lambda lib: {"attn_mask": added(lib, TARGET, SOURCE)},
    "closed": lambda lib: {"attn_mask": closed(lib, TARGET, SOURCE)},
    "padding": lambda lib: {"key_padding_mask": padding(lib, SOURCE, "bool")},
    "both": lambda lib: {
        "attn_mask": added(lib, TARGET, SOURCE),
        "key_padding_mask": padding(lib, SOURCE, "float"),
    },
}


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("masks", ATTENTION_MASKS)
def test_second_derivatives_of_attention_agree(masks: str, weights: bool) -> None:
    def program(lib: Any) -> list[Any]:
        lib.manual_seed(1)
        module = lib.nn.MultiheadAttention(WIDTH, HEADS, add_bias_kv=True, dtype=lib.float64)
        query = sequence(lib, TARGET, False, 0.2)
        memory = sequence(lib, SOURCE, False, 0.7)
        options = ATTENTION_MASKS[masks](lib)
        # PyTorch's faster kernel has no second derivative.
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            result = module(query, memory, memory, need_weights=weights, **options)
        value = result[0].sin().sum() + (result[1].pow(2).sum() if weights else 0)
        wanted = [query, memory, *module.parameters()]
        first = lib.autograd.grad(value, wanted, create_graph=True)
        second = lib.autograd.grad(sum(g.pow(2).sum() for g in first), wanted)
        return [x.flatten().tolist() for x in (result[0], *first, *second)]

    assert_agreement(program)
