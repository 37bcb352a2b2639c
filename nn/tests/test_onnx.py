"""Models of ONNX: the package's own cases, and what a user does with an imported module."""

import copy
import io
import os
import pickle

import pytest

import flambeau as fb
import flambeau.onnx
from flambeau import nn

onnx = pytest.importorskip("onnx")
from onnx import helper, numpy_helper, parser  # noqa: E402
from onnx.backend.test.runner import BackendIsNotSupposedToImplementIt  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

from flambeau.onnx import UnsupportedError, backend, load  # noqa: E402

DATA = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data")
WHOLE = os.environ.get("FLAMBEAU_TEST_WHOLE") == "1"


def folders(kind):
    place = os.path.join(DATA, kind)
    return [os.path.join(place, name) for name in sorted(os.listdir(place))]


def array(path):
    with open(path, "rb") as file:
        data = file.read()
    try:
        return numpy_helper.to_array(onnx.TensorProto.FromString(data))
    except Exception:  # a list of tensors; the file does not say which of the two it is
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))


def arrays(folder, kind):
    names = [n for n in os.listdir(folder) if n.startswith(kind)]
    return [array(os.path.join(folder, f"{kind}_{i}.pb")) for i in range(len(names))]


def assert_close(ours, theirs, rtol=1e-3, atol=1e-7):
    if isinstance(theirs, list | tuple):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            assert_close(a, b, rtol, atol)
        return
    assert ours.shape == theirs.shape
    assert str(ours.dtype) == str(theirs.dtype)
    same = (ours == theirs) | ((ours != ours) & (theirs != theirs))
    wrong = abs(ours.astype(float) - theirs.astype(float)) > atol + rtol * abs(theirs.astype(float))
    assert not (wrong & ~same).any() if ours.shape else not (wrong and not same)


@pytest.mark.parametrize(
    "folder", folders("pytorch-operator") + folders("pytorch-converted"), ids=os.path.basename
)
def test_models_that_pytorch_exported_give_their_results(folder):
    prepared = backend.prepare(onnx.load(os.path.join(folder, "model.onnx")))
    for part in sorted(os.listdir(folder)):
        if part.startswith("test_data_set"):
            place = os.path.join(folder, part)
            assert_close(prepared.run(arrays(place, "input")), tuple(arrays(place, "output")))


RANDOM = ("test_bernoulli", "test_training_dropout")
"""Cases of random draws, which have a shape and no values."""

LAST_DIGITS = {
    *(
        f"test_attention_{name}{suffix}"
        for name in (
            "3d_causal_bf16",
            "4d_attn_mask_causal_bf16",
            "4d_causal_bf16",
            "4d_causal_fp16",
            "4d_causal_padded_kv_bf16",
            "4d_padded_kv_bf16",
        )
        for suffix in ("", "_expanded")
    ),
    "test_dft_inverse",
    "test_dft_inverse_opset19",
}
"""Cases whose values are rounded otherwise: sums of 16 bits, and zeros of float32."""


@pytest.mark.skipif(not WHOLE, reason="makes 1,884 cases, in a minute: FLAMBEAU_TEST_WHOLE=1")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of NumPy, where the package makes cases
def test_cases_of_single_operators_give_their_results_or_are_refused():
    from onnx.backend.test.loader import load_model_tests

    wrong, passed = [], 0
    for case in load_model_tests(kind="node"):
        try:
            prepared = backend.prepare(case.model)
            for inputs, outputs in case.data_sets:
                found = prepared.run([plain(a) for a in inputs])
                if not case.name.startswith(RANDOM) and case.name not in LAST_DIGITS:
                    assert_close(found, tuple(map(plain, outputs)), case.rtol, case.atol)
            passed += 1
        except BackendIsNotSupposedToImplementIt:
            continue
        except Exception as error:
            wrong.append((case.name, repr(error)))
    assert not wrong
    assert passed >= 1720


@pytest.mark.skipif(not WHOLE, reason="makes 1,884 cases, in a minute: FLAMBEAU_TEST_WHOLE=1")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of NumPy, where the package makes cases
def test_imported_cases_of_single_operators_are_exported_as_they_were():
    from onnx.backend.test.loader import load_model_tests

    count = 0
    for case in load_model_tests(kind="node"):
        try:
            module = load(case.model)
            given = [backend._tensors(plain(each)) for each in case.data_sets[0][0]]
            fb.manual_seed(0)
            wanted = module(*given)
        except NotImplementedError:
            continue
        file = io.BytesIO()
        flambeau.onnx.export(module, tuple(given), file)
        model = onnx.load_from_string(file.getvalue())
        assert list(model.graph.node) == list(case.model.graph.node), case.name
        assert list(model.graph.input) == list(case.model.graph.input), case.name
        assert list(model.graph.output) == list(case.model.graph.output), case.name
        fb.manual_seed(0)
        assert _same(load(model)(*given), wanted), case.name
        count += 1
    assert count >= 1720


def _same(one, other):
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    if one is None or one.dtype is not other.dtype:
        return one is other
    return one.shape == other.shape and bool(
        ((one == other) | ((one != one) & (other != other))).all()
    )


def plain(value):
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return [plain(v) for v in value] if isinstance(value, list | tuple) else value


X = [[[0.5, -1.0, 2.0, 3.5], [1.0, 0.0, -2.5, 4.0], [-0.5, 1.5, 2.5, -3.0]]]
NODES = [
    ("Resize(x, r, s) <mode = 'linear'>", "float[3] s = {1., 2., 1.5}, float[0] r = {}"),
    ("Resize(x, r, s) <mode = 'cubic'>", "float[3] s = {1., 1., 2.}, float[0] r = {}"),
    ("Resize(x, r, s)", "float[3] s = {1., 1., 0.6}, float[0] r = {}"),
    ("Pad(x, p) <mode = 'reflect'>", "int64[6] p = {0, 1, 2, 0, 0, 3}"),
    ("Pad(x, p) <mode = 'edge'>", "int64[6] p = {0, 1, 2, 0, 0, 3}"),
    ("Pad(x, p)", "int64[6] p = {0, 1, 1, 0, 2, 3}"),
    ("Slice(x, b, e, a, s)", "int64[1] b={9}, int64[1] e={-9}, int64[1] a={2}, int64[1] s={-2}"),
    ("Slice(x, b, e)", "int64[2] b = {0, 1}, int64[2] e = {1, 99}"),
    ("Reshape(x, s)", "int64[3] s = {0, -1, 2}"),
    ("Gather(x, i) <axis = 1>", "int64[2, 2] i = {0, -1, 2, 1}"),
    ("ScatterElements(x, i, u) <axis = 1, reduction = 'max'>",
     "int64[1, 1, 2] i = {2, -3}, float[1, 1, 2] u = {9., -9.}"),
    ("CumSum(x, a) <exclusive = 1, reverse = 1>", "int64 a = {2}"),
    ("ReduceLogSumExp(x, a) <keepdims = 0>", "int64[2] a = {-1, 1}"),
    ("ArgMax(x) <axis = 2, select_last_index = 1>", ""),
    ("LayerNormalization(x, w, b)", "float[4] w = {1., 2., 3., 4.}, float[4] b = {0., 1., 0., 1.}"),
    ("MaxPool(x) <kernel_shape = [2], strides = [2], ceil_mode = 1, pads = [1, 0]>", ""),
    ("AveragePool(x) <kernel_shape = [3], pads = [1, 1], count_include_pad = 1>", ""),
    ("Conv(x, w) <pads = [2, 0], dilations = [2]>", "float[1, 3, 2] w = {1., 2., 3., 4., 5., 6.}"),
    ("ConvTranspose(x, w) <strides = [2], output_padding = [1], pads = [1, 0]>",
     "float[3, 1, 3] w = {1., 2., 3., 4., 5., 6., 7., 8., 9.}"),
    ("Softmax(x) <axis = 1>", ""),
    ("QuantizeLinear(x, s, z) <axis = 1>",
     "float[3] s = {0.1, 0.2, 0.5}, int8[3] z = {0, 5, -7}"),
    ("Mod(x, m) <fmod = 1>", "float m = {1.5}"),
    ("Clip(x, l)", "float l = {0.}"),
    ("GRU(x, w, r) <hidden_size = 1, direction = 'reverse'>",
     "float[1, 3, 4] w = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1., 1.1, 1.2}, "
     "float[1, 3, 1] r = {0.5, -0.5, 0.25}"),
]  # fmt: skip


OTHERS = "float[1] a = {0.7}, float b = {1.5}, bool[4] c = {1, 0, 0, 1}"


@pytest.mark.parametrize(("call", "weights"), NODES, ids=[call for call, _ in NODES])
def test_operators_give_what_the_packages_evaluator_gives(call, weights):
    call = call.replace("'", '"')
    text = f"""
    <ir_version: 8, opset_import: ["": 18]>
    g (float[1, 3, 4] x) => (y) <{weights}> {{ y = {_options_first(call)} }}
    """
    model = parser.parse_model(text)
    x = fb.tensor(X)
    (theirs,) = ReferenceEvaluator(model).run(None, {"x": x.numpy()})
    ours = backend.prepare(model).run([x.numpy()])[0]
    assert_close(ours, theirs, 1e-5, 1e-6)


@pytest.mark.parametrize(("call", "weights"), NODES, ids=[call for call, _ in NODES])
def test_operators_run_on_the_device_of_what_they_are_given(call, weights):
    text = f"""
    <ir_version: 8, opset_import: ["": 18]>
    g (float[1, 3, 4] x) => (y) <{weights}> {{ y = {_options_first(call.replace("'", '"'))} }}
    """
    model = parser.parse_model(text)
    x = fb.tensor(X)
    moved, there = load(model)(x), load(model).to("ref")(x.to("ref"))
    assert there.device.type == "ref"
    assert fb.allclose(there.cpu().double(), moved.double(), rtol=1e-5, atol=1e-6, equal_nan=True)


@pytest.mark.filterwarnings("ignore::flambeau.jit.TracerWarning")
@pytest.mark.parametrize(
    ("call", "weights"),
    [*NODES, ("Max(x, a, b)", OTHERS), ("Min(x, a, b)", OTHERS), ("Where(c, x, a)", OTHERS)],
    ids=lambda text: text.partition("(")[0],
)
def test_an_operator_that_was_imported_is_exported_again(call, weights):
    text = f"""
    <ir_version: 8, opset_import: ["": 18]>
    g (float[1, 3, 4] x) => (y) <{weights}> {{ y = {_options_first(call.replace("'", '"'))} }}
    """
    module, x = load(parser.parse_model(text)), fb.tensor(X)
    file = io.BytesIO()
    flambeau.onnx.export(module, (x,), file, opset_version=20)  # not that of the file
    again = load(onnx.load_from_string(file.getvalue()))
    assert fb.equal(again(x), module(x))
    assert (again.input_names, again.output_names) == (["x"], ["y"])


def _options_first(call):
    """``f(x) <a = 1>`` as the parser wants it: ``f <a = 1> (x)``."""
    name, _, rest = call.partition("(")
    inputs, _, options = rest.partition(")")
    return f"{name}{options}({inputs})"


def linear_model():
    float32 = onnx.TensorProto.FLOAT
    nodes = [
        helper.make_node("MatMul", ["x", "fc.weight"], ["h"]),
        helper.make_node("Add", ["h", "fc.bias"], ["y"]),
    ]
    weights = [
        helper.make_tensor("fc.weight", float32, [3, 2], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        helper.make_tensor("fc.bias", float32, [2], [0.5, -0.5]),
    ]
    x = helper.make_tensor_value_info("x", float32, ["N", 3])
    y = helper.make_tensor_value_info("y", float32, ["N", 2])
    return helper.make_model(helper.make_graph(nodes, "g", [x], [y], weights))


def linear():
    return load(linear_model())


def test_weights_are_parameters_under_the_names_of_the_file():
    module = linear()
    assert {n: tuple(p.shape) for n, p in module.named_parameters()} == {
        "fc.weight": (3, 2),
        "fc.bias": (2,),
    }
    assert module(fb.ones(1, 3)).tolist() == [[9.5, 11.5]]


def test_an_imported_module_is_trained_and_saved(tmp_path):
    module = linear()
    optimiser = fb.optim.SGD(module.parameters(), lr=0.01)
    first = None
    for _ in range(100):
        optimiser.zero_grad()
        loss = nn.functional.mse_loss(module(fb.eye(3)), fb.ones(3, 2))
        first = loss.item() if first is None else first
        loss.backward()
        optimiser.step()
    assert loss.item() < first / 2
    fb.save(module.state_dict(), tmp_path / "weights.pt")
    other = linear()
    other.load_state_dict(fb.load(tmp_path / "weights.pt"))
    assert fb.equal(other(fb.eye(3)), module(fb.eye(3)))


@pytest.mark.parametrize("how", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_compute_the_same_with_weights_of_their_own(how):
    module = linear()
    other = how(module)
    assert fb.equal(other(fb.eye(3)), module(fb.eye(3)))
    with fb.no_grad():
        other.fc.bias.zero_()
    assert module.fc.bias.tolist() == [0.5, -0.5]


def test_inputs_are_given_by_name_and_missing_ones_are_named():
    module = linear()
    assert module(x=fb.ones(1, 3)).shape == (1, 2)
    with pytest.raises(TypeError, match="inputs x are missing"):
        module()
    with pytest.raises(TypeError, match="no further input 'z'"):
        module(fb.ones(1, 3), z=1)
    with pytest.raises(TypeError, match=r"has 1 inputs \(x\), got 2"):
        module(fb.ones(1, 3), fb.ones(1, 3))


def test_a_weight_may_be_given_as_an_input():
    assert linear()(fb.ones(1, 3), **{"fc.bias": fb.zeros(2)}).tolist() == [[9.0, 12.0]]


def test_an_unknown_operator_is_refused_when_the_model_is_loaded():
    text = '<ir_version: 8, opset_import: ["": 18, "mine": 1]> g (float[N] x) => (float[N] y) '
    model = parser.parse_model(text + "{ y = mine.Twist(x) }")
    with pytest.raises(UnsupportedError, match=r"mine::Twist -> y.*no such operator"):
        load(model)


def test_an_error_names_the_node():
    text = '<ir_version: 8, opset_import: ["": 18]> g (float[N] x, float[M] z) => (float[N] y) '
    module = load(parser.parse_model(text + "{ y = MatMul(x, z) }"))
    with pytest.raises(RuntimeError) as raised:
        module(fb.ones(2), fb.ones(3))
    assert "MatMul -> y" in raised.value.__notes__[-1]


def test_an_error_names_the_node_of_a_linear_layer_too():
    text = (
        '<ir_version: 8, opset_import: ["": 18]> g (float[N,M] x, float[A,B] w) => (float[N,C] y) '
    )
    module = load(
        parser.parse_model(text + "{ t = Transpose <perm = [1, 0]> (w) y = MatMul(x, t) }")
    )
    with pytest.raises(RuntimeError) as raised:
        module(fb.ones(1, 3), fb.ones(2, 2))
    assert "MatMul -> y" in raised.value.__notes__[-1]


@pytest.mark.parametrize(("taken", "wanted"), [(True, [[19.0, 43.0]]), (False, [[5.0, 7.0]])])
def test_branches_may_use_one_name_for_different_things(taken, wanted):
    text = """<ir_version: 8, opset_import: ["": 18]>
    g (bool c, float[1,2] x, float[2,2] w) => (float[1,2] y) {
      t = Transpose <perm = [1, 0]> (w)
      y = If (c) <
        then_branch = g1 () => (float[1,2] b) { b = MatMul(x, t) },
        else_branch = g2 () => (float[1,2] b) { b = Relu(x) }
      >
    }"""
    module = load(parser.parse_model(text))
    given = fb.tensor(taken), fb.tensor([[5.0, 7.0]]), fb.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert module(*given).tolist() == wanted


@pytest.mark.parametrize("dims", [[3], [2, 2, 2], [0], [-1, 6], [2**62, 2**62]])
def test_a_weight_whose_values_are_not_as_many_as_its_shape_says_is_refused_by_name(dims):
    weight = helper.make_tensor("w", onnx.TensorProto.FLOAT, [2], bytes(8), raw=True)
    weight.dims[:] = dims
    graph = helper.make_graph([helper.make_node("Neg", ["w"], ["y"])], "g", [], [], [weight])
    with pytest.raises(ValueError, match=r"the tensor 'w' of shape \[.*\] has no such values"):
        load(helper.make_model(graph))


def test_strings_and_damaged_files_are_refused(tmp_path):
    value = helper.make_tensor("s", onnx.TensorProto.STRING, [1], [b"text"])
    graph = helper.make_graph([], "g", [], [], [value])
    with pytest.raises(UnsupportedError, match="STRING"):
        load(helper.make_model(graph))
    (tmp_path / "damaged.onnx").write_bytes(b"\x0a\xff\xff\xff\xff")
    with pytest.raises(ValueError, match="is no model of ONNX"):
        load(tmp_path / "damaged.onnx")


def test_functions_of_a_model_are_called_with_their_attributes():
    text = """
    <ir_version: 8, opset_import: ["": 18, "mine": 1]>
    g (float[N] x) => (float[N] y) { y = mine.Shift <by = 3.0> (x) }
    <domain: "mine", opset_import: ["": 18]>
    Shift <by> (a) => (b) { c = Constant <value_float: float = @by> ()  b = Add(a, c) }
    """
    assert load(parser.parse_model(text))(fb.zeros(2)).tolist() == [3.0, 3.0]


def test_weights_beside_the_file_are_read(tmp_path):
    model = linear_model()
    for tensor in model.graph.initializer:  # external data are raw
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor), tensor.name))
    onnx.save(
        model,
        tmp_path / "model.onnx",
        save_as_external_data=True,
        location="weights.bin",
        size_threshold=0,
    )
    assert (tmp_path / "weights.bin").exists()
    assert load(tmp_path / "model.onnx")(fb.ones(1, 3)).tolist() == [[9.5, 11.5]]


def test_gradients_reach_inputs_through_a_loop():
    text = """
    <ir_version: 8, opset_import: ["": 18]>
    g (int64 count, float[N] x) => (float[N] y) {
      yes = Constant <value = bool {1}> ()
      y = Loop (count, yes, x) <body = b (int64 i, bool go, float[N] a) => (bool on, float[N] c)
        { on = Identity(go)  c = Mul(a, x) }>
    }
    """
    module = load(parser.parse_model(text))
    x = fb.tensor([2.0, 3.0], requires_grad=True)
    module(fb.tensor(2), x).sum().backward()  # x³
    assert x.grad.tolist() == [12.0, 27.0]
