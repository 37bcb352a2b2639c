"""Operands of sizes that do not fit: refused before a kernel walks through them."""

from __future__ import annotations

import pytest

import flambeau as fb
from flambeau import nn
from flambeau.nn.utils.rnn import PackedSequence

ROWS, HIDDEN = 30, 20


@pytest.mark.parametrize("dtype", [fb.float32, fb.float64])
@pytest.mark.parametrize("shape", [(1, HIDDEN), (ROWS + 1, HIDDEN), (ROWS, HIDDEN - 1), (ROWS, 1)])
@pytest.mark.parametrize("which", [0, 1])
def test_a_cell_takes_states_of_its_size_only(which, shape, dtype):
    states = [fb.zeros(ROWS, HIDDEN, dtype=dtype) for _ in "hc"]
    states[which] = fb.zeros(shape, dtype=dtype)
    cell = nn.LSTMCell(10, HIDDEN, dtype=dtype)
    x = fb.zeros(ROWS, 10, dtype=dtype)
    with pytest.raises(RuntimeError):
        cell(x, tuple(states))
    with pytest.raises(RuntimeError):
        fb.lstm_cell(x, states, cell.weight_ih, cell.weight_hh)


def test_a_state_of_smaller_numbers_is_refused():
    cell = nn.LSTMCell(10, HIDDEN).double()
    states = fb.zeros(ROWS, HIDDEN), fb.zeros(ROWS, HIDDEN)
    with pytest.raises(RuntimeError):
        cell(fb.zeros(ROWS, 10).double(), states)


@pytest.mark.parametrize("sizes", [[5, 30], [2, 7], [0, 3], [5, -4], [5, 6]])
@pytest.mark.parametrize("layer", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("both", [False, True])
def test_batch_sizes_do_not_grow(both, layer, sizes):
    packed = PackedSequence(fb.zeros(max(sum(sizes), 10), 3), fb.tensor(sizes))
    with pytest.raises(RuntimeError):
        layer(3, 4, bidirectional=both)(packed)


@pytest.mark.parametrize("sizes", [[5, 4], [5, 4, 0]])
def test_rows_of_no_step_are_left_out(sizes):
    packed = PackedSequence(fb.zeros(10, 3), fb.tensor(sizes))
    assert nn.LSTM(3, 4)(packed)[0].data.shape == (9, 4)


@pytest.mark.parametrize(
    ("h", "c", "taken"),
    [
        ((1, 2, 4), (1, 2, 3), 2),
        ((1, 2, 4), (1, 1, 4), 2),
        ((1, 1, 4), (1, 2, 4), 2),
        ((3, 2, 4), (3, 2, 4), 2),
        ((1, 2, 4), (1, 2, 4), 1),
    ],
)
def test_a_stack_takes_what_fits_it_only(h, c, taken):
    weights = [fb.zeros(16, 3), fb.zeros(16, 4)][:taken]
    states = fb.zeros(h), fb.zeros(c)
    with pytest.raises(RuntimeError):
        fb.lstm(fb.zeros(5, 2, 3), states, weights, False, 1, 0.0, False, False, False)


def test_a_gradient_of_another_size_is_refused():
    hx, weight = fb.zeros(2, 3), fb.zeros(12, 3)
    saved = hx, hx, weight, None, fb.zeros(4, 3), fb.zeros(4, 3), fb.zeros(4, 12), (2, 2), False
    with pytest.raises(RuntimeError, match="grad_cells"):
        fb.ops.lstm_sequence_backward(None, None, None, fb.zeros(3, 3), None, *saved)


OPTIMISERS = {
    "SGD": {"momentum": 0.9},
    "Adam": {"amsgrad": True},
    "AdamW": {},
    "RMSprop": {"momentum": 0.9, "centered": True},
    "Adagrad": {},
    "Adadelta": {},
    "Adamax": {},
    "NAdam": {},
    "RAdam": {},
    "Rprop": {},
    "ASGD": {},
}


def stepped(name, shape):
    p = nn.Parameter(fb.zeros(shape))
    optimizer = getattr(fb.optim, name)([p], lr=0.1, **OPTIMISERS[name])
    p.grad = fb.ones(shape)
    optimizer.step()
    return p, optimizer


@pytest.mark.parametrize("name", OPTIMISERS)
@pytest.mark.parametrize("size", [1, 9, 1000, 100_000])
def test_a_parameter_of_another_size_than_its_gradient_takes_no_step(size, name):
    p, optimizer = stepped(name, 10)
    p.data = fb.zeros(size)
    with pytest.raises(RuntimeError, match="shape"):
        optimizer.step()


@pytest.mark.parametrize("name", OPTIMISERS)
@pytest.mark.parametrize("size", [1, 9, 1000])
def test_state_of_another_size_takes_no_step(size, name):
    p, optimizer = stepped(name, 10)
    for key, value in optimizer.state[p].items():
        if isinstance(value, fb.Tensor) and value.ndim:
            optimizer.state[p][key] = fb.zeros(size)
    with pytest.raises(RuntimeError, match="shape"):
        optimizer.step()


@pytest.mark.parametrize("name", OPTIMISERS)
def test_state_of_another_form_takes_no_step(name):
    p, optimizer = stepped(name, (4, 6))
    for key, value in optimizer.state[p].items():
        if isinstance(value, fb.Tensor) and value.ndim:
            optimizer.state[p][key] = fb.zeros(6, 4)
    with pytest.raises(RuntimeError, match="shape"):
        optimizer.step()
