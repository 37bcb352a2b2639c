"""Parameters and buffers as tensors."""

from __future__ import annotations

import copy
import pickle

import pytest

import flambeau as fb
from flambeau import nn


def test_a_parameter_shares_the_memory_of_its_data():
    data = fb.zeros(2)
    parameter = nn.Parameter(data)
    data.fill_(3.0)
    assert parameter.tolist() == [3.0, 3.0]


def test_a_parameter_is_a_leaf_whatever_its_data():
    source = fb.ones(2, requires_grad=True)
    parameter = nn.Parameter(source * 2)
    assert parameter.is_leaf and parameter.requires_grad
    assert not nn.Parameter(source, requires_grad=False).requires_grad


def test_results_of_operations_are_tensors():
    parameter = nn.Parameter(fb.ones(2))
    for result in (parameter * 2, parameter[0], parameter.detach(), parameter.data, parameter.t()):
        assert type(result) is fb.Tensor


def test_gradients_flow_to_a_parameter():
    parameter = nn.Parameter(fb.tensor([2.0]))
    (parameter * parameter).backward()
    assert parameter.grad.tolist() == [4.0]


def test_an_empty_parameter_without_data():
    assert nn.Parameter().shape == (0,)


def test_integers_cannot_require_a_gradient():
    with pytest.raises(RuntimeError, match="floating point"):
        nn.Parameter(fb.ones(2, dtype=fb.int64))
    assert nn.Parameter(fb.ones(2, dtype=fb.int64), requires_grad=False).dtype is fb.int64


def test_repr_names_it():
    assert repr(nn.Parameter(fb.ones(1))).startswith("Parameter containing:\n")


@pytest.mark.parametrize("requires_grad", [True, False])
def test_copies_are_parameters_with_memory_of_their_own(requires_grad):
    parameter = nn.Parameter(fb.ones(2), requires_grad)
    for other in (copy.deepcopy(parameter), pickle.loads(pickle.dumps(parameter))):
        assert type(other) is nn.Parameter and other.requires_grad is requires_grad
        other.data.zero_()
        assert parameter.tolist() == [1.0, 1.0]


def test_deepcopy_keeps_identity_within_one_copy():
    parameter = nn.Parameter(fb.ones(2))
    first, second = copy.deepcopy([parameter, parameter])
    assert first is second


def test_a_buffer_registers_itself():
    module = nn.Module()
    module.kept = nn.Buffer(fb.ones(2))
    module.lost = nn.Buffer(fb.ones(2), persistent=False)
    assert [n for n, _ in module.named_buffers()] == ["kept", "lost"]
    assert list(module.state_dict()) == ["kept"]
    assert not module.kept.requires_grad
    assert list(module.parameters()) == []


def test_copies_of_buffers_keep_their_persistence():
    buffer = nn.Buffer(fb.ones(2), persistent=False)
    for other in (copy.deepcopy(buffer), pickle.loads(pickle.dumps(buffer))):
        assert type(other) is nn.Buffer and other.persistent is False
        assert other.tolist() == [1.0, 1.0]


def test_subclasses_survive_deepcopy():
    class Named(nn.Parameter):
        pass

    assert type(copy.deepcopy(Named(fb.ones(1)))) is Named
