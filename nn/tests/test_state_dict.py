"""Saving and loading the state of modules."""

from __future__ import annotations

import copy
import pickle

import pytest

import flambeau as fb
from flambeau import nn


def model() -> nn.Sequential:
    return nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))


def test_loading_copies_into_the_same_tensors():
    source, target = model(), model()
    weight = target[0].weight
    keys = target.load_state_dict(source.state_dict())
    assert repr(keys) == "<All keys matched successfully>"
    assert target[0].weight is weight
    assert weight.tolist() == source[0].weight.tolist()


def test_values_are_detached_and_share_memory_unless_variables_are_asked_for():
    layer = nn.Linear(2, 1)
    state = layer.state_dict()
    assert not state["weight"].requires_grad
    state["weight"].zero_()
    assert layer.weight.tolist() == [[0.0, 0.0]]
    assert layer.state_dict(keep_vars=True)["weight"] is layer.weight


def test_destination_and_prefix():
    destination = {}
    assert nn.Linear(2, 1).state_dict(destination=destination, prefix="x.") is destination
    assert list(destination) == ["x.weight", "x.bias"]


def test_positional_arguments_still_work_with_a_warning():
    with pytest.warns(FutureWarning, match="Positional args are being deprecated"):
        state = nn.Linear(2, 1).state_dict({}, "x.")
    assert list(state) == ["x.weight", "x.bias"]


def test_versions_are_saved_for_every_module():
    metadata = model().state_dict()._metadata
    assert {k: v["version"] for k, v in metadata.items()} == {"": 1, "0": 1, "1": 2}


def test_a_strict_load_names_missing_and_unexpected_keys():
    with pytest.raises(RuntimeError) as error:
        model().load_state_dict({"0.weight": fb.ones(2, 3), "2.weight": fb.ones(1)})
    text = str(error.value)
    assert text.startswith("Error(s) in loading state_dict for Sequential:\n\tMissing key(s)")
    assert '"0.bias", "1.weight"' in text
    assert 'Unexpected key(s) in state_dict: "2.weight". ' in text


def test_a_wrong_shape_is_an_error_even_when_not_strict():
    state = {"weight": fb.ones(2, 3)}
    with pytest.raises(RuntimeError, match=r"size mismatch for weight: .*\[2, 3\].*\[1, 2\]"):
        nn.Linear(2, 1).load_state_dict(state, strict=False)


def test_objects_that_are_no_tensors_are_errors():
    with pytest.raises(RuntimeError, match=r"expected torch.Tensor or Tensor-like object"):
        nn.Linear(2, 1).load_state_dict({"weight": 3.0}, strict=False)
    with pytest.raises(TypeError, match="Expected state_dict to be dict-like"):
        nn.Linear(2, 1).load_state_dict([("weight", fb.ones(1, 2))])


def test_the_given_dictionary_is_not_changed():
    state = nn.BatchNorm1d(2).state_dict()
    del state["num_batches_tracked"], state._metadata
    nn.BatchNorm1d(2).load_state_dict(state)
    assert "num_batches_tracked" not in state


def test_a_vector_of_one_loads_into_a_scalar():
    module = nn.Module()
    module.scale = nn.Parameter(fb.tensor(1.0))
    module.load_state_dict({"scale": fb.tensor([5.0])})
    assert module.scale.item() == 5.0


def test_assign_takes_the_tensors_themselves_and_keeps_requires_grad():
    layer = nn.Linear(2, 1)
    layer.bias.requires_grad_(False)
    state = {"weight": fb.ones(1, 2, dtype=fb.float64), "bias": nn.Parameter(fb.ones(1))}
    layer.load_state_dict(state, assign=True)
    assert layer.weight.dtype is fb.float64 and isinstance(layer.weight, nn.Parameter)
    assert layer.weight.requires_grad
    assert layer.bias is state["bias"] and not layer.bias.requires_grad
    state["weight"].zero_()
    assert layer.weight.tolist() == [[0.0, 0.0]]


def test_loading_into_meta_tensors_warns_and_assigning_works():
    layer = nn.Linear(2, 1, device="meta")
    state = {"weight": fb.ones(1, 2), "bias": fb.ones(1)}
    with pytest.warns(UserWarning, match="which is a no-op"):
        layer.load_state_dict(state)
    layer.load_state_dict(state, assign=True)
    assert layer(fb.ones(1, 2)).item() == 3.0


def test_loading_records_no_gradient():
    layer = nn.Linear(2, 1)
    layer.load_state_dict({"weight": fb.ones(1, 2, requires_grad=True) * 2}, strict=False)
    assert layer.weight.is_leaf


class Versioned(nn.Module):
    """Version 2 renamed `kernel` to `weight`."""

    _version = 2

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(fb.zeros(1))

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
        if local_metadata.get("version", 1) < 2:
            state_dict[prefix + "weight"] = state_dict.pop(prefix + "kernel")
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


def test_a_class_can_read_its_older_versions():
    outer = nn.Sequential(Versioned())
    outer.load_state_dict({"0.kernel": fb.ones(1)})
    assert outer[0].weight.item() == 1.0
    state = outer.state_dict()
    outer.load_state_dict(state)


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.count = 0

    def get_extra_state(self):
        return {"count": self.count}

    def set_extra_state(self, state):
        self.count = state["count"]


def test_extra_state_is_saved_loaded_and_missed():
    counting = Counting()
    counting.count = 3
    other = nn.Sequential(Counting())
    other.load_state_dict(nn.Sequential(counting).state_dict())
    assert other[0].count == 3
    with pytest.raises(RuntimeError, match=r'Missing.*"_extra_state"'):
        Counting().load_state_dict({})
    with pytest.raises(RuntimeError, match=r'Unexpected.*"_extra_state"'):
        nn.ReLU().load_state_dict({"_extra_state": 1})


def test_hooks_run_before_and_after_saving():
    layer = nn.Linear(1, 1)
    seen = []
    layer.register_state_dict_pre_hook(lambda m, prefix, keep: seen.append((prefix, keep)))
    with layer.register_state_dict_post_hook(lambda m, state, *_: state.clear()):
        assert nn.Sequential(layer).state_dict() == {}
    assert seen == [("0.", False)]
    layer.register_state_dict_post_hook(lambda m, state, *_: state)
    with pytest.raises(RuntimeError, match="must return None"):
        layer.state_dict()


def test_the_private_post_hook_may_replace_the_dictionary():
    layer = nn.Linear(1, 1)
    layer._register_state_dict_hook(lambda m, state, prefix, metadata: {"all": list(state)})
    assert layer.state_dict() == {"all": ["weight", "bias"]}


def rename(module, state_dict, prefix, *rest):
    assert isinstance(module, nn.Module)
    state_dict[prefix + "weight"] = state_dict.pop(prefix + "kernel")


def test_pre_hooks_of_loading_survive_copies():
    layer = nn.Linear(1, 1, bias=False)
    layer.register_load_state_dict_pre_hook(rename)
    for other in (layer, copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        other.load_state_dict({"kernel": fb.ones(1, 1)})
        assert other.weight.item() == 1.0


def test_post_hooks_of_loading_see_the_keys_and_return_nothing():
    layer = nn.Linear(1, 1)
    seen = []
    with layer.register_load_state_dict_post_hook(lambda m, keys: seen.extend(keys.missing_keys)):
        layer.load_state_dict({}, strict=False)
    assert seen == ["weight", "bias"]
    layer.register_load_state_dict_post_hook(lambda m, keys: keys)
    with pytest.raises(AssertionError, match="not expected to return new values"):
        layer.load_state_dict(layer.state_dict())


def test_batch_norm_reads_files_that_did_not_count_batches():
    layer = nn.BatchNorm1d(2)
    layer.num_batches_tracked.fill_(7)
    layer.load_state_dict(
        {name: fb.ones(2) for name in ("weight", "bias", "running_mean", "running_var")}
    )
    assert layer.num_batches_tracked.item() == 7
