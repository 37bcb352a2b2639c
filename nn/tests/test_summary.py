"""The table of a model's modules, and calls of a module as a function of its parameters."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import pytest

import flambeau as fb
from flambeau import nn
from flambeau.nn.utils import summary


class Two(nn.Module):
    """Two inputs, a nested result, tied layers and a layer that is never called."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(10, 4)
        self.tied = nn.ModuleList([nn.Linear(4, 4), nn.Dropout()])
        self.again = self.tied[0]
        self.unused = nn.Linear(1, 1).requires_grad_(False)

    def forward(self, numbers: Any, x: Any) -> Any:
        y = self.again(self.embed(numbers) + x)
        return {"y": self.tied[1](y), "pair": (y.sum(), [y.mean(0)])}


def test_rows_hold_names_shapes_and_parameters() -> None:
    found = summary(Two(), [(2, 3), (2, 3, 4)], dtypes=[fb.int64, fb.float32])
    rows = [(row.name, row.kind, row.depth, row.parameters) for row in found.rows]
    assert rows == [
        ("", "Two", 0, 0),
        ("embed", "Embedding", 1, 40),
        ("tied", "ModuleList", 1, 0),
        ("tied.0", "Linear", 2, 20),
        ("tied.1", "Dropout", 2, 0),
        ("unused", "Linear", 1, 2),
    ]
    shapes = [row.output_shape for row in found.rows]
    assert shapes[1:] == [(2, 3, 4), None, (2, 3, 4), (2, 3, 4), None]
    assert shapes[0] == {"y": (2, 3, 4), "pair": [(), [(3, 4)]]}


def test_totals_count_tied_parameters_once_and_frozen_ones_apart() -> None:
    found = summary(Two())
    assert (found.total_parameters, found.trainable_parameters) == (62, 60)
    assert found.parameter_bytes == 248
    assert str(found).endswith("Parameters: 62 (248 B)\nTrained: 60; fixed: 2")


def test_the_columns_of_the_table_are_aligned() -> None:
    lines = str(summary(Two(), [(2, 3), (2, 3, 4)], dtypes=[fb.int64, fb.float32])).split("\n")
    assert len({len(line) for line in lines[:-3]}) == 1
    assert "{y: [2, 3, 4], pair: ([], ([3, 4]))}" in lines[2]


def test_the_model_is_left_as_it_was() -> None:
    model = nn.Sequential(nn.BatchNorm1d(2), nn.Dropout().eval())
    summary(model, (4, 2))
    assert [module.training for module in model.modules()] == [True, True, False]
    assert model[0].num_batches_tracked.item() == 0
    assert not any(module._forward_hooks for module in model.modules())
    with pytest.raises(RuntimeError):
        summary(model, (4, 3))
    assert not any(module._forward_hooks for module in model.modules())
    assert model.training


class Busy(nn.Module):
    """Draws, counts in a buffer and replaces another, in every mode."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", fb.zeros(2))
        self.register_buffer("last", None)
        self.layer = nn.Linear(2, 2)

    def forward(self, x: Any, *, fail: bool = False) -> Any:
        self.count += 1
        self.count = self.count * 2
        self.last = fb.nn.functional.dropout(self.layer(x), 0.5, training=True)
        if fail:
            raise ValueError("on purpose")
        return self.last


@pytest.mark.parametrize("fail", [False, True])
def test_buffers_gradients_versions_and_random_numbers_are_left_as_they_were(fail: bool) -> None:
    model = Busy()
    model(fb.ones(3, 2)).sum().backward()
    buffers, versions = dict(model._buffers), [b._version for b in model.buffers()]
    values = [b.tolist() for b in model.buffers()]
    gradients = [(p.grad, p.grad.tolist()) for p in model.parameters()]
    with fb.random.fork_rng():
        state = fb.get_rng_state()
        try:
            summary(model, input_data={"x": fb.ones(3, 2), "fail": fail})
        except ValueError:
            assert fail
        assert fb.equal(fb.get_rng_state(), state)
    assert all(buffers[name] is found for name, found in model._buffers.items())
    assert versions == [b._version for b in model.buffers()]
    assert values == [b.tolist() for b in model.buffers()]
    for parameter, (gradient, value) in zip(model.parameters(), gradients, strict=True):
        assert parameter.grad is gradient
        assert gradient.tolist() == value
    for module in model.modules():
        assert not module._forward_hooks
        assert not module._forward_pre_hooks


def test_memory_is_that_of_the_results_and_time_holds_that_of_children() -> None:
    shared = nn.Linear(4, 4)
    model = nn.Sequential(shared, nn.Sequential(nn.ReLU(), shared), nn.Flatten())
    found = summary(model, fb.ones(2, 4))
    rows = {row.name: row for row in found.rows}
    assert [(r.name, r.calls, r.output_bytes) for r in found.rows] == [
        ("", 1, 32),
        ("0", 2, 32),
        ("1", 1, 32),
        ("1.0", 1, 32),
        ("2", 1, 32),
    ]
    assert found.output_bytes == 4 * 32  # two calls of the shared layer
    assert 0 < rows["1.0"].seconds <= rows["1"].seconds <= rows[""].seconds == found.seconds
    assert sum(row.parameters for row in found.rows) == found.total_parameters == 20
    assert "0: Linear (2 calls)" in str(found)


class Caught(nn.Module):
    """It goes on where a module of it raises, and keeps what it was first called with."""

    class Raises(nn.Module):
        def forward(self, x: Any) -> Any:
            raise ValueError

    def __init__(self) -> None:
        super().__init__()
        self.raises = Caught.Raises()
        self.layer = nn.Linear(2, 2)

    def forward(self, x: Any) -> Any:
        self.register_buffer("first", x, persistent=False)
        try:
            return self.raises(x)
        except ValueError:
            return self.layer(x)


def test_calls_that_raise_take_no_time_from_those_that_catch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = map(float, itertools.count())
    monkeypatch.setattr("flambeau.nn.utils.model_summary.perf_counter", lambda: next(clock))
    found = summary(Caught(), (1, 2))
    # It is looked at when the model, the one that raises and the layer begin, and when two end.
    assert [(row.calls, row.seconds) for row in found.rows] == [(1, 4.0), (0, 0.0), (1, 1.0)]


def test_buffers_that_a_call_makes_are_not_kept() -> None:
    model = Caught()
    summary(model, (1, 2))
    assert not dict(model.named_buffers()) and not model._non_persistent_buffers_set


@dataclasses.dataclass
class Prediction:
    logits: fb.Tensor
    hidden: Any = None


class Predicts(nn.Module):
    def forward(self, x: fb.Tensor) -> Prediction:
        return Prediction(x + 1)


def test_results_in_dataclasses_are_seen() -> None:
    (row,) = summary(Predicts(), (2, 3)).rows
    assert (row.output_shape, row.output_bytes) == ({"logits": (2, 3), "hidden": "None"}, 24)


def test_it_is_found_beside_the_other_utilities() -> None:
    assert fb.utils.summary is summary


def test_lazy_modules_get_their_shapes() -> None:
    model = nn.Sequential(nn.LazyLinear(3))
    assert summary(model).total_parameters == 0
    assert summary(model, (5, 2)).total_parameters == 9


def test_data_may_stand_for_sizes() -> None:
    assert summary(nn.ReLU(), input_data=fb.ones(3, 1)).rows[0].output_shape == (3, 1)
    model = nn.Bilinear(2, 3, 1, dtype=fb.float64)
    pair = fb.ones(4, 2).double(), fb.ones(4, 3).double()
    assert summary(model, input_data=pair).rows[0].output_shape == (4, 1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"input_size": (1,), "input_data": fb.ones(1)}, "not both"),
        ({"input_size": [(1,), (1,)], "dtypes": [fb.int64]}, "1 dtypes for 2 inputs"),
    ],
)
def test_misuse_is_named(options: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        summary(nn.ReLU(), **options)


def test_functional_call_takes_several_dictionaries() -> None:
    layer = nn.Linear(2, 1)
    parts = {"weight": fb.ones(1, 2)}, {"bias": fb.tensor([1.0])}
    assert fb.func.functional_call(layer, parts, fb.ones(2)).tolist() == [3.0]
    assert fb.func.functional_call(layer, parts, None, {"input": fb.ones(2)}).tolist() == [3.0]
    with pytest.raises(ValueError, match="appeared in multiple dictionaries"):
        fb.func.functional_call(layer, (parts[0], parts[0]), fb.ones(2))
    with pytest.raises(ValueError, match="to be a dict, or a list/tuple of dicts"):
        fb.func.functional_call(layer, [1], fb.ones(2))  # type: ignore[list-item]


def test_functional_call_differentiates_by_what_it_is_given() -> None:
    layer = nn.Linear(2, 1, bias=False)
    weight = fb.ones(1, 2, requires_grad=True)
    fb.func.functional_call(layer, {"weight": weight}, fb.tensor([2.0, 3.0])).sum().backward()
    assert weight.grad.tolist() == [[2.0, 3.0]]
    assert layer.weight.grad is None


def test_parameter_lists_take_the_older_names() -> None:
    found = nn.ParameterList(parameters=[fb.ones(1)])
    found.append(parameter=fb.ones(2)).extend(parameters=[fb.ones(3)])
    assert [p.numel() for p in found] == [1, 2, 3]


def test_converting_weights_to_a_memory_format_keeps_values_and_parameters() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 2), nn.Linear(2, 2), nn.ConvTranspose2d(3, 4, 2))
    before = [(p, p.tolist()) for p in model.parameters()]
    assert nn.utils.convert_conv2d_weight_memory_format(model, fb.channels_last) is model
    for parameter, (old, values) in zip(model.parameters(), before, strict=True):
        assert parameter is old
        assert parameter.tolist() == values
