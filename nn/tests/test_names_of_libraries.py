"""Private names of modules that libraries override and call do what they do in PyTorch."""

from __future__ import annotations

import pytest

import flambeau as fb
from flambeau import nn

pytest.importorskip("flambeau_numpy")


@pytest.mark.parametrize(
    "container",
    [nn.ModuleList([nn.ReLU(), nn.Tanh()]), nn.ParameterList([fb.ones(1), fb.ones(2)])],
)
def test_lists_tell_the_name_at_a_position(container):
    assert [container._get_abs_string_index(i) for i in (0, -1)] == ["0", "1"]
    with pytest.raises(IndexError, match="out of range"):
        container._get_abs_string_index(2)


def test_a_call_has_the_names_that_wrappers_take():
    class Twice(nn.Module):
        def forward(self, x):
            return 2 * x

    module = Twice()
    module.register_forward_hook(lambda module, args, result: result + 1)
    assert module._call_impl(fb.ones(1)).item() == 3
    assert module._wrapped_call_impl(fb.ones(1)).item() == 3


@pytest.mark.parametrize("norm_first", [True, False])
def test_parts_of_transformer_layers_can_be_overridden(norm_first):
    class Encoder(nn.TransformerEncoderLayer):
        def _sa_block(self, x, attn_mask, key_padding_mask, is_causal=False):
            seen.append(("attention", attn_mask, key_padding_mask, is_causal))
            return super()._sa_block(x, attn_mask, key_padding_mask, is_causal)

        def _ff_block(self, x):
            seen.append("network")
            return super()._ff_block(x)

    class Decoder(nn.TransformerDecoderLayer):
        def _mha_block(self, x, mem, attn_mask, key_padding_mask, *, is_causal=False):
            seen.append(("memory", mem))
            return super()._mha_block(x, mem, attn_mask, key_padding_mask, is_causal)

    seen: list = []
    sizes = {"d_model": 4, "nhead": 2, "dim_feedforward": 3, "dropout": 0.0}
    x, mask = fb.arange(8.0).reshape(2, 1, 4), fb.zeros(2, 2)
    encoder = Encoder(**sizes, norm_first=norm_first)
    plain = nn.TransformerEncoderLayer(**sizes, norm_first=norm_first)
    plain.load_state_dict(encoder.state_dict())
    assert fb.equal(encoder(x, mask), plain(x, mask))
    assert seen[0][1] is mask and seen[1] == "network"
    decoder = Decoder(**sizes, norm_first=norm_first)
    decoder(x, x + 1)
    assert fb.equal(seen[2][1], x + 1)


def test_the_check_of_an_instance_norm_can_be_overridden():
    class Strict(nn.InstanceNorm1d):
        def _check_input_dim(self, input):
            if input.dim() != 3:
                raise ValueError("three")

    assert Strict(2)(fb.ones(1, 2, 3)).shape == (1, 2, 3)
    with pytest.raises(ValueError, match="three"):
        Strict(2)(fb.ones(2, 3))


def test_flat_weights_that_are_there_stay_where_they_are():
    rnn = nn.RNN(2, 3)
    weight = rnn.weight_ih_l0.detach() * 2
    rnn._parameters["weight_ih_l0"] = weight  # a tensor, as libraries of fast weights put there
    rnn._flat_weights = [rnn._parameters[name] for name in rnn._flat_weights_names]
    assert rnn._parameters["weight_ih_l0"] is weight
    assert len(rnn._flat_weights) == len(rnn._parameters) == 4
