"""Ops that a program defines, in exported models: one node each, and never looked into."""

import io

import numpy as np
import pytest

import flambeau as fb
from flambeau import nn
from flambeau.compat import torch_alias
from flambeau.onnx import OperatorExportTypes
from flambeau.utils._named_ops import DEFINED, FAKES

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

SPACE = "ops_of_programs"


@pytest.fixture
def torch():
    with torch_alias() as module:
        yield module
    DEFINED.pop(SPACE, None)
    for name in [each for each in FAKES if each.startswith(SPACE)]:
        del FAKES[name]


@pytest.fixture
def register():
    """Say how an op is written, until the test ends."""
    names = []

    def add(name, function):
        names.append(f"{SPACE}::{name}")
        fb.onnx.register_custom_op_symbolic(names[-1], function, 11)

    yield add
    for name in names:
        fb.onnx.unregister_custom_op_symbolic(name, 11)


def exported(program, args, **settings):
    file = io.BytesIO()
    fb.onnx.export(program, args, file, **settings)
    return file.getvalue()


def flat(value):
    return [value] if isinstance(value, fb.Tensor) else [x for each in value for x in flat(each)]


def check(program, *inputs, **settings):
    """A runtime and the import give what the program does, for all inputs."""
    written = exported(program, inputs[0], **settings)
    session = runtime.InferenceSession(written, providers=["CPUExecutionProvider"])
    back = fb.onnx.load(io.BytesIO(written))
    for given in inputs:
        feed = {i.name: x.numpy() for i, x in zip(session.get_inputs(), given, strict=True)}
        with fb.no_grad():
            wanted, own = flat(program(*given)), flat(back(*given))
        for want, got, again in zip(wanted, session.run(None, feed), own, strict=True):
            assert want.shape == got.shape == again.shape
            assert want.dtype is fb.from_numpy(got).dtype is again.dtype
            np.testing.assert_allclose(got, want.numpy(), 1e-5, 1e-6)
            assert fb.allclose(again, want)
    return onnx.load_from_string(written)


def suppressed(boxes, scores, most):
    """Non-maximum suppression, by elements that Python reads."""
    kept = []
    corners = boxes.tolist()

    def shared(one, other):
        sides = [min(one[d + 2], other[d + 2]) - max(one[d], other[d]) for d in (0, 1)]
        both = max(sides[0], 0) * max(sides[1], 0)
        areas = [(b[2] - b[0]) * (b[3] - b[1]) for b in (one, other)]
        return both / (sum(areas) - both)

    for at in scores.argsort(descending=True).tolist():
        if all(shared(corners[at], corners[other]) <= most for other in kept):
            kept.append(at)
    return fb.tensor(kept, dtype=fb.int64)


def write_suppressed(g, boxes, scores, most):
    found = g.op(
        "NonMaxSuppression",
        g.op("Unsqueeze", boxes, axes_i=[0]),
        g.op("Unsqueeze", scores, axes_i=[0, 1]),
        g.op("Constant", value_t=fb.tensor([2**62])),
        g.op("Constant", value_t=fb.tensor([most])),
    )
    from flambeau.onnx import symbolic_opset11 as opset11

    column = g.op("Constant", value_t=fb.tensor([2]))
    return opset11.squeeze(g, opset11.select(g, found, 1, column), 1)


def boxes(count, far, seed):
    fb.manual_seed(seed)
    corner = fb.rand(count, 2) * far
    return fb.cat([corner, corner + 2 + fb.rand(count, 2)], 1), fb.rand(count)


@pytest.fixture(params=["library", "custom_op", "traced", "scripted"])
def suppressing(request, torch, register):
    """A program with an op that looks at elements."""
    schema = "(Tensor boxes, Tensor scores, float most) -> Tensor"
    if request.param == "custom_op":
        torch.library.custom_op(f"{SPACE}::nms", suppressed, mutates_args=(), schema=schema)
    else:
        library = torch.library.Library(SPACE, "DEF")
        library.define(f"nms{schema}")
        library.impl("nms", suppressed, "CPU")
    register("nms", write_suppressed)

    class Model(nn.Module):
        def forward(self, boxes, scores):
            kept = torch.ops.ops_of_programs.nms(boxes, scores, 0.5)[:4]
            return boxes[kept], scores[kept] * 2, fb.arange(kept.shape[0])

    if request.param == "scripted":
        return fb.jit.script(Model())
    if request.param == "traced":
        return fb.jit.trace(Model(), boxes(6, 1.0, 0), check_trace=False)
    return Model()


@pytest.mark.parametrize("axes", [None, {"boxes": [0], "scores": [0]}])
def test_an_op_that_finds_elements_is_written_by_what_is_registered(suppressing, axes):
    many = [boxes(count, far, count) for count, far in ((6, 1.0), (9, 20.0), (3, 3.0))]
    if axes is None:
        many = [boxes(6, far, int(far)) for far in (1.0, 20.0, 3.0)]
    names = ["boxes", "scores"]
    model = check(suppressing, *many, input_names=names, dynamic_axes=axes, opset_version=12)
    assert sum(node.op_type == "NonMaxSuppression" for node in model.graph.node) == 1


def scaled(torch):
    @torch.library.custom_op(f"{SPACE}::scaled", mutates_args=())
    def scaled(x: fb.Tensor, by: float = 2.0, *, plus: int | None = None) -> fb.Tensor:
        return fb.from_numpy(x.numpy() * np.float32(by) + np.float32(plus or 0))

    return scaled


def test_arguments_are_those_of_the_schema_in_its_order(torch, register):
    op = scaled(torch)
    seen = []

    def write(g, x, by, plus):
        seen.append((by, plus))
        made = g.op("Mul", x, g.op("Constant", value_t=fb.tensor(by)))
        return g.op("Add", made, g.op("Constant", value_t=fb.tensor(float(plus or 0))))

    register("scaled", write)
    x = fb.randn(3)
    check(lambda x: op(x) + op(x, plus=3, by=4) + op(x, 3), (x,), (fb.randn(3),))
    assert seen == [(2.0, None), (4.0, 3), (3.0, None)]


def test_an_op_that_nobody_wrote_is_refused_by_its_name(torch):
    op = scaled(torch)
    with pytest.raises(fb.onnx.UnsupportedOperatorError) as caught:
        exported(lambda x: op(x + 1), (fb.ones(2),))
    told = str(caught.value)
    for part in (f"{SPACE}::scaled", "register_custom_op_symbolic", "FALLTHROUGH", __file__):
        assert part in told


@pytest.mark.parametrize("name", ["ONNX_FALLTHROUGH", "ONNX_ATEN_FALLBACK", "RAW"])
def test_an_op_falls_through_under_its_own_name(torch, name):
    op = scaled(torch)
    kind = OperatorExportTypes[name]
    written = exported(lambda x: op(x, 4.0, plus=3), (fb.ones(2),), operator_export_type=kind)
    model = onnx.load_from_string(written)
    (node,) = model.graph.node
    assert (node.domain, node.op_type) == (SPACE, "scaled")
    given = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
    assert given == {"by": 4.0, "plus": 3}
    assert SPACE in [each.domain for each in model.opset_import]


def parted(torch, fake=None):
    library = torch.library.Library(SPACE, "FRAGMENT")
    library.define("parted(Tensor x) -> (Tensor, Tensor[], int)")

    def parts(x):
        found = x[x > 0]
        return found.clone(), [x * 2, x[:, :1] * 3], int(x.shape[1])

    library.impl("parted", parts, "CPU")
    if fake is not None:
        library.impl("parted", fake, "Meta")
    return torch.ops.ops_of_programs.parted


def test_several_results_and_lists_of_them(torch, register):
    op = parted(torch)

    def write(g, x):
        def number(value):
            return g.op("Constant", value_t=fb.tensor(value))

        places = g.op("NonZero", g.op("Greater", x, number(0.0)))
        found = g.op("GatherND", x, g.op("Transpose", places, perm_i=[1, 0]))
        first = g.op("Slice", x, number([0]), number([1]), number([1]))
        size = g.op("Gather", g.op("Shape", x), number(1))
        return found, [g.op("Mul", x, number(2.0)), g.op("Mul", first, number(3.0))], size

    register("parted", write)

    def program(x):
        found, (twice, first), count = op(x)
        return found, fb.ones(found.shape), twice + first, x.reshape(count, -1), fb.zeros(count)

    sizes = [(3, 4), (2, 5), (6, 1)]
    check(
        program,
        *((fb.randn(size),) for size in sizes),
        input_names=["x"],
        dynamic_axes={"x": [0, 1]},
    )


def sizes_of(program, args, **settings):
    """The sizes of the outputs, as the model states them."""
    model = onnx.load_from_string(exported(program, args, **settings))
    return [
        [each.dim_value or None for each in output.type.tensor_type.shape.dim]
        for output in model.graph.output
    ]


@pytest.mark.parametrize("faked", [False, True])
def test_sizes_are_those_that_the_fake_implementation_tells(torch, faked):
    """Without one, nothing is known of what an operator that is not ONNX's gives."""

    def fake(x):
        count = torch.library.get_ctx().new_dynamic_size()
        assert isinstance(count, int)
        return x.new_empty(count), [fb.empty_like(x), x.new_empty(x.shape[0], 1)], 4

    op = parted(torch, fake if faked else None)

    def program(x):
        found, (twice, first), _ = op(x)
        return found, twice, first

    def write(g, x):
        return g.op("mine::Parted", x, outputs=3)

    def written(g, x):
        one, two, three = write(g, x)
        return one, [two, three], 4

    fb.onnx.register_custom_op_symbolic(f"{SPACE}::parted", written, 11)
    try:
        given = (fb.tensor([[1.0, -1, 2, 3], [4, -2, -3, 5]]),)
        told = sizes_of(program, given)
        assert told == ([[None], [2, 4], [2, 1]] if faked else [[None], [None] * 2, [None] * 2])
        names = {"input_names": ["x"], "dynamic_axes": {"x": [0]}}
        told = sizes_of(program, given, **names)
        assert told == (
            [[None], [None, 4], [None, 1]] if faked else [[None], [None] * 2, [None] * 2]
        )
    finally:
        fb.onnx.unregister_custom_op_symbolic(f"{SPACE}::parted", 11)


def test_a_fake_implementation_that_tells_other_sizes_is_refused(torch, register):
    op = scaled(torch)
    op.register_fake(lambda x, by=2.0, *, plus=None: x.new_empty(5))
    register("scaled", lambda g, x, by, plus: g.op("mine::Scaled", x))
    with pytest.raises(
        fb.onnx.OnnxExporterError, match=r"sizes \[\[\(5,\)\]\], and they have \[\[\(2,\)\]\]"
    ):
        exported(op, (fb.ones(2),))
    op.register_fake(lambda x, by=2.0, *, plus=None: x.nothing)
    with pytest.raises(fb.onnx.OnnxExporterError, match="fake implementation .*nothing"):
        exported(op, (fb.ones(2),))


@pytest.mark.parametrize("told", [True, False])
def test_an_op_that_writes_to_its_argument_is_refused(torch, register, told):
    def doubled(x: fb.Tensor) -> fb.Tensor:
        x.mul_(2)
        return x + 1

    op = torch.library.custom_op(f"{SPACE}::doubled", doubled, mutates_args=("x",) if told else ())
    register("doubled", lambda g, x: g.op("mine::Doubled", x))
    x = fb.ones(2)
    with pytest.raises((fb.onnx.OnnxExporterError, RuntimeError), match="write|written"):
        exported(lambda x: op(x * 1) + x, (x,))
    assert x.tolist() == [1.0, 1.0]


def test_a_result_that_the_symbolic_function_left_out_is_told(torch, register):
    op = parted(torch)
    register("parted", lambda g, x: (g.op("mine::Parted", x),))
    with pytest.raises(fb.onnx.OnnxExporterError, match="gave 1 values for 3 results"):
        exported(lambda x: op(x)[0], (fb.ones(2, 2),))


def test_an_op_without_a_schema_is_one_node_as_well(torch, register):
    op = torch.library.custom_op(f"{SPACE}::plain", lambda x, n: x * n, mutates_args=())
    register("plain", lambda g, x, n: g.op("Mul", x, g.op("Constant", value_t=fb.tensor(float(n)))))
    check(lambda x: op(x, 3) + 1, (fb.randn(2),), (fb.randn(2),))
    with pytest.raises(TypeError, match="has no schema"):
        exported(lambda x: op(x, n=3), (fb.ones(2),))
