"""Models made by somebody else: refused by name, and in proportion to the file."""

import io
import os
import time

import pytest

import flambeau as fb

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, parser  # noqa: E402 - onnx may be absent


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


HEAD = '<ir_version: 8, opset_import: ["": 18, "d": 1]> '


@pytest.mark.parametrize(
    "body",
    [
        "g (float[1] x) => (float[1] y) { y = Add(x, z)  z = Neg(y) }",
        "g (float[1] x) => (float[1] y) { y = Add(y, x) }",
        "g (float[1] x) => (float[1] y) { z = Neg(x) }",
        "g (bool c, float[1] x) => (float[1] y) { y = If (c) <then_branch = t () => (float[1] a) "
        "{ a = Neg(b) }, else_branch = e () => (float[1] b) { b = Neg(x) }> }",
    ],
)
def test_nodes_that_read_what_is_not_there_yet_are_refused_when_the_model_is_loaded(body):
    with pytest.raises(ValueError, match="nothing makes"):
        fb.onnx.load(parser.parse_model(HEAD + body))


@pytest.mark.parametrize("other", ["One", "Two"])
def test_a_function_that_calls_itself_is_refused(other):
    text = f"""{HEAD} g (float[1] x) => (float[1] y) {{ y = d.One(x) }}
    <domain: "d", opset_import: ["": 18, "d": 1]> One (a) => (b) {{ b = d.{other}(a) }}
    <domain: "d", opset_import: ["": 18, "d": 1]> Two (a) => (b) {{ b = d.One(a) }}"""
    with pytest.raises(ValueError, match="calls itself"):
        fb.onnx.load(parser.parse_model(text))


def _beside(location):
    weight = TensorProto(name="w", data_type=1, dims=[1], data_location=TensorProto.EXTERNAL)
    weight.external_data.add(key="location", value=location)
    return _model([weight])


@pytest.mark.parametrize("location", ["../secret", "/dev/zero", "link", "", ".", "absent"])
def test_weights_are_read_from_beside_the_file_only(location, tmp_path):
    place = tmp_path / "models"
    place.mkdir()
    (tmp_path / "secret").write_bytes(bytes(4))
    os.symlink(tmp_path / "secret", place / "link")
    (place / "model.onnx").write_bytes(_beside(location).SerializeToString())
    with pytest.raises(ValueError, match="what lies beside"):
        fb.onnx.load(place / "model.onnx")


def test_a_model_without_a_path_reads_no_file_of_the_working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "w").write_bytes(bytes(4))
    model = _beside("w")
    for given in (model, io.BytesIO(model.SerializeToString())):
        with pytest.raises(ValueError, match="'w' lies beside the model's file"):
            fb.onnx.load(given)


def test_names_do_not_reach_the_terminal_as_commands():
    model = _model()
    model.graph.name = model.producer_name = model.graph.node[0].op_type = "\x1b[2J\n"
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "\x1b"
    assert "\x1b" not in fb.onnx.summary(model)
    with pytest.raises(NotImplementedError) as raised:
        fb.onnx.load(model)
    assert "\x1b" not in str(raised.value)


@pytest.mark.parametrize("call", ['Relu("")', "Gather(x)", "Concat(x, x)", "Cast(x)"])
def test_a_node_without_what_it_needs_is_an_error_that_names_it(call):
    model = parser.parse_model(
        HEAD + f"g (float[1] x) => (float[1] y) {{ y = {call.replace(chr(34) * 2, 'x')} }}"
    )
    if '""' in call:
        model.graph.node[0].input[:] = [""]
    with pytest.raises((IndexError, TypeError, ValueError)) as raised:
        fb.onnx.load(model)(fb.ones(1))
    said = [str(raised.value), *getattr(raised.value, "__notes__", ())]
    assert any(f"{model.graph.node[0].op_type} -> y" in each for each in said)


def test_shapes_of_any_length_take_no_time():
    weight = TensorProto(name="w", data_type=1, dims=[2**62] * 100_000)
    start = time.process_time()
    with pytest.raises(ValueError, match="has no such values"):
        fb.onnx.load(_model([weight]))
    fb.onnx.summary(_model([weight]))
    assert time.process_time() - start < 5


def test_a_split_has_as_many_parts_as_the_node_names():
    text = f"{HEAD} g (float[1] x) => (float[1] y) {{ y = Split <num_outputs = {2**62}> (x) }}"
    with pytest.raises(ValueError, match="there are 1 outputs"):
        fb.onnx.load(parser.parse_model(text))(fb.ones(1))


def test_a_result_that_an_operator_does_not_give_is_named():
    model = parser.parse_model(f"{HEAD} g (float[1] x) => (float[1] y) {{ z, y = Add(x, x) }}")
    with pytest.raises(ValueError, match="no operator gave the result 'y'"):
        fb.onnx.load(model)(fb.ones(1))


@pytest.mark.parametrize(
    ("place", "named"),
    [
        ("producer_name", "ModelProto.producer_name"),
        ("graph.name", "GraphProto.name"),
        ("graph.node[0].op_type", "NodeProto.op_type"),
        ("graph.node[0].domain", "NodeProto.domain"),
        ("graph.node[0].output[0]", "NodeProto.output"),
        ("graph.node[0].attribute[0].name", "AttributeProto.name"),
        ("graph.initializer[0].name", "TensorProto.name"),
        ("graph.initializer[0].external_data[0].key", "StringStringEntryProto.key"),
        ("graph.input[0].type.tensor_type.shape.dim[0].dim_param", "Dimension.dim_param"),
        ("opset_import[0].domain", "OperatorSetIdProto.domain"),
        ("metadata_props[0].value", "StringStringEntryProto.value"),
    ],
)
def test_texts_that_are_none_of_utf_8_are_refused(place, named, tmp_path):
    model = parser.parse_model(
        f"{HEAD} g (float[N] x) => (float[N] y) <float[1] w = {{1}}> {{ y = Sum <odd = 1> (x, w) }}"
    )
    model.metadata_props.add().key = "made by"
    model.graph.initializer[0].external_data.add().value = "w.bin"
    *owners, last = place.replace("[", ".").replace("]", "").split(".")
    owner = model
    for part in owners:
        owner = owner[int(part)] if part.isdigit() else getattr(owner, part)
    if last.isdigit():
        owner[int(last)] = "flambeau"
    else:
        setattr(owner, last, "flambeau")
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString().replace(b"flambeau", b"flamb\xff\xfe!"))
    for read in (fb.onnx.load, fb.onnx.summary):
        with pytest.raises(ValueError, match=f"{named} of this model is no text of UTF-8: b'flam"):
            read(path)
