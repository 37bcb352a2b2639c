"""A round trip keeps names and dtypes, or says that it does not."""

import io
import warnings
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flambeau as fb
from flambeau import nn

onnx = pytest.importorskip("onnx")

DTYPES = [
    fb.float16, fb.bfloat16, fb.float32, fb.float64, fb.int8, fb.int16, fb.int32, fb.int64,
    fb.uint8, fb.bool,
]  # fmt: skip
KINDS = ("plus", "cast", "choice", "join", "same", "weight", "constant")
WORDS = st.text("abcxyzAB_ 0189:/-é日", min_size=1, max_size=6)
PARTS = (WORDS | st.sampled_from(["if", "input", "1", "weight", "None"])).filter(
    lambda part: not hasattr(nn.Module(), part)
)
PATHS = st.lists(PARTS, min_size=1, max_size=3).map(".".join)


class Weight(NamedTuple):
    path: str
    dtype: fb.dtype
    buffer: bool


class Output(NamedTuple):
    kind: str
    at: int
    weight: int
    dtype: fb.dtype


class Program(nn.Module):
    """Weights under paths, and an output for each recipe."""

    def __init__(self, weights, outputs):
        super().__init__()
        self.__dict__["_recipes"] = outputs
        self.__dict__["_paths"] = [w.path for w in weights]
        for path, dtype, buffer in weights:
            *above, last = path.split(".")
            owner = self
            for part in above:
                if part not in owner._modules:
                    owner.add_module(part, nn.Module())
                owner = owner._modules[part]
            value = fb.arange(1, 4).to(dtype)
            if buffer or not dtype.is_floating_point:
                owner.register_buffer(last, value)
            else:
                owner.register_parameter(last, nn.Parameter(value))

    def _held(self, at):
        owner = self
        for part in self._paths[at].split("."):
            owner = getattr(owner, part)
        return owner

    def forward(self, *inputs):
        results = []
        for kind, at, which, dtype in self._recipes:
            x, w = inputs[at], self._held(which)
            results.append(
                {
                    "plus": lambda x, w, d: x.to(w.dtype) + w,
                    "cast": lambda x, w, d: x.to(d) + w.to(d),
                    "choice": lambda x, w, d: fb.where(x.bool(), x.to(w.dtype), w),
                    "join": lambda x, w, d: fb.cat([x.to(w.dtype), w]),
                    "same": lambda x, w, d: x,
                    "weight": lambda x, w, d: w,
                    "constant": lambda x, w, d: x.to(d) + fb.tensor([0, 1, 1]).to(d),
                }[kind](x, w, dtype)
            )
        return tuple(results)


@st.composite
def cases(draw):
    paths = draw(st.lists(PATHS, min_size=1, max_size=4, unique=True))
    paths = [p for p in paths if not any(q != p and q.startswith(f"{p}.") for q in paths)]
    dtypes = st.sampled_from(DTYPES)
    weights = [Weight(path, draw(dtypes), draw(st.booleans())) for path in paths]
    inputs = draw(st.lists(dtypes, min_size=1, max_size=3))
    recipe = st.builds(
        Output,
        st.sampled_from(KINDS),
        st.integers(0, len(inputs) - 1),
        st.integers(0, len(weights) - 1),
        dtypes,
    )
    outputs = draw(st.lists(recipe, min_size=1, max_size=4))
    count = len(inputs) + len(outputs)
    names = draw(st.lists(PATHS, min_size=count, max_size=count, unique=True))
    axes = draw(st.booleans())
    return weights, inputs, outputs, names[: len(inputs)], names[len(inputs) :], axes


def written(module, args, **options):
    file = io.BytesIO()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        fb.onnx.export(module, args, file, **options)
    return onnx.load_from_string(file.getvalue()), [str(each.message) for each in said]


def typed(values):
    return {v.name: v.type.tensor_type.elem_type for v in values}


def described(model):
    """Names and dtypes of all that has both, in order, and the names of sizes."""
    graph = model.graph
    sizes = {
        v.name: [d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim]
        for v in (*graph.input, *graph.output)
    }
    weights = {w.name: w.data_type for w in graph.initializer}
    return (
        graph.name,
        list(typed(graph.input).items()),
        list(typed(graph.output).items()),
        sizes,
        weights,
    )


@settings(max_examples=25, deadline=None)
@given(cases())
def test_names_and_dtypes_of_any_program_are_those_of_the_model_and_of_what_is_loaded(case):
    weights, inputs, outputs, ins, outs, dynamic = case
    program = Program(weights, outputs)
    args = tuple(fb.tensor([0, 1, 2]).to(dtype) for dtype in inputs)
    axes = None
    if dynamic and all(o.kind in ("same", "weight") for o in outputs):
        axes = {name: {0: f"n of {name}"} for name in ins}
    model, said = written(program, args, input_names=ins, output_names=outs, dynamic_axes=axes)
    results = program(*args)
    number = fb.onnx.symbolic_helper.number_of
    assert list(typed(model.graph.input).items()) == [
        (name, number(dtype)) for name, dtype in zip(ins, inputs, strict=True)
    ]
    assert list(typed(model.graph.output).items()) == [
        (name, number(result.dtype)) for name, result in zip(outs, results, strict=True)
    ]
    read = {o.weight for o in outputs if o.kind in ("plus", "cast", "choice", "join", "weight")}
    wanted = {weights[at].path: weights[at].dtype for at in read}
    found = {w.name: w.data_type for w in model.graph.initializer}
    for path, dtype in wanted.items():
        if path in (*ins, *outs):
            assert any(f"the weight {path!r} is called" in message for message in said)
        else:
            assert found[path] == number(dtype)

    again = fb.onnx.load(model)
    assert again.input_names == ins
    assert again.output_names == outs
    held = program.state_dict()
    for path, value in again.state_dict().items():
        if path in held:
            assert value.dtype is held[path].dtype
            assert fb.equal(value, held[path])
    assert set(wanted) - {*ins, *outs} <= set(again.state_dict())
    back = again(*args)
    back = back if isinstance(back, tuple) else (back,)
    for mine, want in zip(back, results, strict=True):
        assert mine.dtype is want.dtype
        assert fb.equal(mine, want)

    assert written(again, args)[0].graph == model.graph
    twice, said = written(again, args, opset_version=19)
    assert not [each for each in said if "is called" in each or "these sizes" in each]
    assert described(twice) == described(model)


def imported():
    x = onnx.helper.make_tensor_value_info("x", 1, ["n", 3])
    y = onnx.helper.make_tensor_value_info("y", 1, ["n", 2])
    nodes = [
        onnx.helper.make_node("MatMul", ["x", "fc.weight"], ["h"], name="first", doc_string="text"),
        onnx.helper.make_node("Add", ["h", "fc.bias"], ["y"]),
    ]
    weights = [
        onnx.helper.make_tensor("fc.weight", 1, [3, 2], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        onnx.helper.make_tensor("fc.bias", 1, [2], [0.5, -0.5]),
    ]
    graph = onnx.helper.make_graph(nodes, "g", [x], [y], weights)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 8)])
    model.metadata_props.add(key="author", value="somebody")
    return model


def test_an_imported_model_is_written_as_it_was_with_the_weights_that_it_has_now():
    model = imported()
    module = fb.onnx.load(model)
    with fb.no_grad():
        module.fc.bias.fill_(7)
    again, _ = written(module, (fb.ones(1, 3),))
    assert fb.onnx.load(again).fc.bias.tolist() == [7.0, 7.0]
    for each in (model, again):
        del each.graph.initializer[:]
    assert again == model  # the opset, too, which no program can be exported with


def test_weights_of_an_imported_model_are_inputs_where_that_is_asked_for():
    module = fb.onnx.load(imported())
    names = ["x", "fc.weight", "fc.bias"]
    both, _ = written(module, (fb.ones(1, 3),), keep_initializers_as_inputs=True)
    assert ([i.name for i in both.graph.input], len(both.graph.initializer)) == (names, 2)
    bare, _ = written(module, (fb.ones(1, 3),), export_params=False)
    assert ([i.name for i in bare.graph.input], len(bare.graph.initializer)) == (names, 0)
    back, _ = written(fb.onnx.load(both), (fb.ones(1, 3),), keep_initializers_as_inputs=False)
    assert [i.name for i in back.graph.input] == ["x"]


@pytest.mark.parametrize("change", ["dtype", "hook", "names", "axes", "opset"])
def test_an_imported_model_that_is_to_differ_from_its_file_is_written_anew(change):
    module, options = fb.onnx.load(imported()), {}
    x = fb.ones(1, 3)
    if change == "dtype":
        module, x = module.double(), x.double()
    elif change == "hook":
        module.register_forward_hook(lambda module, inputs, result: result + 1)
    else:
        options = {
            "names": {"input_names": ["data"]},
            "axes": {"dynamic_axes": {"x": {0: "m"}}},
            "opset": {"opset_version": 17},
        }[change]
    model, _ = written(module, (x,), **options)
    assert fb.equal(fb.onnx.load(model)(x), module(x))
    assert model.opset_import[0].version == options.get("opset_version", 20)


def test_the_messages_of_an_imported_module_have_no_second_copy_of_its_weights():
    module = fb.onnx.load(imported())
    assert not any(each.float_data or each.raw_data for each in module._graph.initializer)


def test_a_sequence_cannot_become_several_outputs_of_an_imported_model():
    text = """<ir_version: 8, opset_import: ["": 18]>
    g (float[N] x) => (seq(float[M]) s) { s = SplitToSequence(x) }"""
    module, x = fb.onnx.load(onnx.parser.parse_model(text)), fb.ones(3)
    back = fb.onnx.load(written(module, (x,))[0])
    assert [each.tolist() for each in back(x)] == [each.tolist() for each in module(x)]
    with pytest.raises(fb.onnx.OnnxExporterError, match="'s' of the imported model is no tensor"):
        written(module, (x,), opset_version=20)


@pytest.mark.parametrize("ways", [1, 2])
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_weights_of_recurrent_layers_have_their_names_in_the_file_and_come_back(kind, ways):
    layer = kind(3, 4, num_layers=2, bidirectional=ways == 2)
    x = fb.randn(5, 2, 3)
    model, _ = written(layer, (x,))
    assert {w.name for w in model.graph.initializer} >= set(layer.state_dict())
    again = fb.onnx.load(model)
    again.load_state_dict(layer.state_dict(), strict=False)
    assert all(map(fb.equal, again(x), fb.utils._pytree.tree_leaves(layer(x))))


def test_weights_that_a_program_computes_with_have_their_names_and_learn():
    layer = nn.utils.parametrizations.weight_norm(nn.Conv1d(2, 3, 2))
    x = fb.randn(1, 2, 5)
    again = fb.onnx.load(written(layer, (x,))[0])
    assert set(layer.state_dict()) <= set(again.state_dict())
    again(x).sum().backward()
    layer(x).sum().backward()
    for name, weight in layer.named_parameters():
        assert fb.allclose(dict(again.named_parameters())[name].grad, weight.grad)
