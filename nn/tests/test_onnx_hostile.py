"""Models made by somebody else: what is loaded is in proportion to the file."""

import time

import pytest

import flambeau as fb

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper  # noqa: E402 - onnx may be absent


def _model(initializer=(), sparse=()):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y"])],
        *("g", [x], [y], initializer),
        sparse_initializer=list(sparse),
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


def _constant(name, value=1.0):
    return helper.make_tensor(name, TensorProto.FLOAT, [1], [value])


@pytest.mark.parametrize("dims", [[2**40], [2**31, 2**31], [2**20, 2**12], [-1, 5]])
def test_a_small_file_cannot_ask_for_any_memory_by_sparse_constants(dims):
    places = helper.make_tensor("i", TensorProto.INT64, [1, len(dims)], [0] * len(dims))
    sparse = helper.make_sparse_tensor(_constant("s"), places, dims)
    with pytest.raises(ValueError, match="is too large"):
        fb.onnx.load(_model(sparse=[sparse]))


def test_names_of_constants_may_have_any_number_of_parts():
    names = ["a." * 5000 + "b", "." * 3000, "a." * 5000 + "c", "x.y", "x..y"]
    module = fb.onnx.load(_model([_constant(n, float(i)) for i, n in enumerate(names)]))
    assert [p.item() for p in module._constants().values()] == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert module(fb.ones(1)).item() == 1


def test_names_of_constants_that_modules_have_stay_apart():
    names = ["training.a", "training.b", "forward.a", "forward.b", "training", "if", "_modules.x"]
    module = fb.onnx.load(_model([_constant(n, float(i)) for i, n in enumerate(names)]))
    found = {name: value.item() for name, value in module._constants().items()}
    assert found == {name: float(i) for i, name in enumerate(names)}


def test_two_constants_of_one_name_are_refused():
    with pytest.raises(ValueError, match="two constants of the name 'a'"):
        fb.onnx.load(_model([_constant("a"), _constant("a")]))


def test_many_constants_take_time_in_proportion():
    model = _model([_constant(f"m{i}.weight") for i in range(10000)])
    start = time.process_time()
    assert len(list(fb.onnx.load(model).parameters())) == 10000
    # Half of them took 8 s when each looked through all modules.
    assert time.process_time() - start < 10
