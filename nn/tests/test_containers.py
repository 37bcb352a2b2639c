"""Containers behave like the Python collections they are named after."""

from __future__ import annotations

from collections import OrderedDict

import pytest

import flambeau as fb
from flambeau import nn


def kinds(container) -> list[str]:
    return [type(module).__name__ for module in container]


def sequence() -> nn.Sequential:
    return nn.Sequential(nn.ReLU(), nn.Tanh(), nn.Sigmoid())


def test_sequential_calls_its_modules_in_order():
    model = nn.Sequential(nn.Flatten(0), nn.ReLU())
    assert model(fb.tensor([[-1.0], [2.0]])).tolist() == [0.0, 2.0]
    x = fb.ones(1)
    assert nn.Sequential()(x) is x


def test_sequential_takes_names():
    model = nn.Sequential(OrderedDict(first=nn.ReLU(), second=nn.Tanh()))
    assert [name for name, _ in model.named_children()] == ["first", "second"]
    assert model.second is model[1] is model[-1]
    model[0] = nn.Sigmoid()
    assert isinstance(model.first, nn.Sigmoid)


@pytest.mark.parametrize("make", [sequence, lambda: nn.ModuleList(sequence())])
def test_indices_follow_python(make):
    container = make()
    assert len(container) == 3
    assert isinstance(container[-1], nn.Sigmoid)
    for index in (3, -4):
        with pytest.raises(IndexError, match="is out of range"):
            container[index]
    with pytest.raises(TypeError):
        container["a"]
    assert type(container[1:]) is type(container) and kinds(container[1:]) == ["Tanh", "Sigmoid"]
    assert kinds(container[::-2]) == ["Sigmoid", "ReLU"]
    assert container[:2][0] is container[0]


@pytest.mark.parametrize("make", [sequence, lambda: nn.ModuleList(sequence())])
def test_deletion_renumbers(make):
    container = make()
    del container[0]
    assert [name for name, _ in container.named_children()] == ["0", "1"]
    assert kinds(container) == ["Tanh", "Sigmoid"]
    assert isinstance(container.pop(-1), nn.Sigmoid)
    container = make()
    del container[:2]
    assert kinds(container) == ["Sigmoid"] and len(list(container.named_children())) == 1


@pytest.mark.parametrize("make", [sequence, lambda: nn.ModuleList(sequence())])
def test_growing(make):
    container = make()
    assert container.append(nn.GELU()) is container
    assert container.extend([nn.SiLU()]) is container
    container.insert(0, nn.Identity())
    container.insert(6, nn.ELU())
    assert kinds(container) == ["Identity", "ReLU", "Tanh", "Sigmoid", "GELU", "SiLU", "ELU"]
    assert list(dict(container.named_children())) == [str(i) for i in range(7)]


def test_a_container_can_be_extended_with_itself():
    model = sequence()
    model.extend(model)
    assert len(model) == 6


def test_sequential_insert_checks_position_and_kind():
    model = sequence()
    assert kinds(model.insert(-1, nn.GELU())) == ["ReLU", "Tanh", "GELU", "Sigmoid"]
    with pytest.raises(IndexError):
        model.insert(9, nn.ReLU())
    with pytest.raises(AssertionError, match="should be of type"):
        model.insert(0, 3)


def test_sequential_arithmetic():
    model = sequence()
    joined = model + nn.Sequential(nn.GELU())
    assert kinds(joined) == ["ReLU", "Tanh", "Sigmoid", "GELU"] and len(model) == 3
    tripled = 2 * model
    assert len(tripled) == 6 and tripled[0] is tripled[3] is model[0]
    model *= 2
    assert len(model) == 6
    same = model
    model += nn.Sequential(nn.ELU())
    assert same is model and len(model) == 7
    with pytest.raises(ValueError, match="Sequential class"):
        model.__add__([nn.ReLU()])
    with pytest.raises(ValueError, match="Non-positive"):
        model * 0
    with pytest.raises(TypeError, match="unsupported operand"):
        model * 1.5


def test_module_list_joins_with_iterables_and_is_not_called():
    layers = nn.ModuleList([nn.ReLU()]).__add__([nn.Tanh()])
    assert kinds(layers) == ["ReLU", "Tanh"]
    layers += (nn.GELU() for _ in range(2))
    assert len(layers) == 4
    with pytest.raises(TypeError, match="should be called with an iterable"):
        layers.extend(3)
    with pytest.raises(NotImplementedError):
        layers(1)


def test_module_list_shows_equal_neighbours_once():
    layers = nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Sequential(nn.Tanh()), nn.ReLU()])
    assert repr(layers) == (
        "ModuleList(\n"
        "  (0-1): 2 x ReLU()\n"
        "  (2): Sequential(\n"
        "    (0): Tanh()\n"
        "  )\n"
        "  (3): ReLU()\n"
        ")"
    )
    assert repr(nn.ModuleList()) == "ModuleList()"


def test_module_dict_is_a_dictionary_in_order():
    choices = nn.ModuleDict({"b": nn.ReLU(), "a": nn.Tanh()})
    choices["c"] = nn.GELU()
    assert list(choices) == list(choices.keys()) == ["b", "a", "c"]
    assert kinds(choices.values()) == ["ReLU", "Tanh", "GELU"]
    assert "a" in choices and "z" not in choices and len(choices) == 3
    choices.update(nn.ModuleDict({"a": nn.ELU()}))
    assert list(choices) == ["b", "a", "c"] and isinstance(choices["a"], nn.ELU)
    assert isinstance(choices.pop("a"), nn.ELU)
    del choices["b"]
    assert [key for key, _ in choices.items()] == ["c"]
    choices.clear()
    assert len(choices) == 0
    with pytest.raises(KeyError):
        choices["b"]


@pytest.mark.parametrize("container", [nn.ModuleDict, nn.ParameterDict])
def test_updates_want_pairs(container):
    with pytest.raises(TypeError, match="iterable of key/value pairs, but got int"):
        container().update(3)
    with pytest.raises(TypeError, match="#0 should be Iterable; is int"):
        container().update([3])
    with pytest.raises(ValueError, match="#0 has length 3; 2 is required"):
        container().update([(1, 2, 3)])


def test_parameter_list_makes_parameters_and_keeps_other_objects():
    weights = nn.ParameterList([fb.ones(2), "note", nn.Parameter(fb.zeros(1))])
    assert isinstance(weights[0], nn.Parameter) and weights[1] == "note"
    assert [name for name, _ in weights.named_parameters()] == ["0", "2"]
    weights += [fb.ones(3)]
    weights[-1] = fb.zeros(4)
    assert len(weights) == 4 and weights[3].shape == (4,)
    assert len(weights[1:3]) == 2 and weights[1:3][1] is weights[2]
    assert [type(w).__name__ for w in weights] == ["Parameter", "str", "Parameter", "Parameter"]
    with pytest.raises(TypeError, match="should be called with an iterable, but got"):
        weights.extend(fb.ones(2))
    with pytest.raises(IndexError):
        weights[4]
    with pytest.raises(RuntimeError, match="should not be called"):
        weights()


def test_parameter_list_repr_gives_sizes():
    assert repr(nn.ParameterList([fb.ones(2, 3), 5])) == (
        "ParameterList(\n"
        "    (0): Parameter containing: [torch.float32 of size 2x3]\n"
        "    (1): Object of type: int\n"
        ")"
    )


def test_parameter_dict_is_a_dictionary():
    weights = nn.ParameterDict({"z": fb.ones(1), "a": fb.ones(2)})
    assert list(weights) == ["a", "z"]
    weights["m"] = fb.ones(3)
    weights["n"] = None
    assert list(weights) == ["a", "z", "m", "n"] and next(reversed(weights)) == "n"
    assert weights.popitem() == ("n", None)
    assert weights.setdefault("a", 5) is weights["a"]
    assert weights.get("q") is None and weights.get("q", 3) == 3
    assert [name for name, _ in weights.named_parameters()] == ["a", "z", "m"]
    assert weights.pop("z").shape == (1,) and "z" not in weights
    assert weights.copy()["a"] is weights["a"]
    assert list(weights | nn.ParameterDict({"b": fb.ones(1)})) == ["a", "m", "b"]
    weights |= nn.ParameterDict({"a": fb.zeros(5)})
    assert weights["a"].shape == (5,)
    assert list(weights.fromkeys(["x", "y"], fb.ones(1)).keys()) == ["x", "y"]
    weights.clear()
    assert len(weights) == 0 and list(weights.parameters()) == []
    with pytest.raises(KeyError):
        weights.popitem()
    with pytest.raises(TypeError, match="not a string"):
        weights[3] = fb.ones(1)
    with pytest.raises(RuntimeError, match="should not be called"):
        weights(1)


def test_parameter_dict_keeps_the_order_of_ordered_mappings_and_pairs():
    pairs = [("z", fb.ones(1)), ("a", fb.ones(1))]
    assert list(nn.ParameterDict(OrderedDict(pairs))) == ["z", "a"]
    assert list(nn.ParameterDict(pairs)) == ["z", "a"]


def test_parameter_dict_repr_names_legacy_types():
    weights = nn.ParameterDict({"a": fb.ones(2)})
    assert repr(weights) == (
        "ParameterDict(  (a): Parameter containing: [torch.FloatTensor of size 2])"
    )
