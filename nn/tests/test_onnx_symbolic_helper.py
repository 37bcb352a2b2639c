"""Symbolic functions that are written as those of PyTorch 1.x are."""

import io

import pytest

import flambeau as fb

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

from flambeau.onnx import symbolic_helper as helper  # noqa: E402 - onnx may be absent
from flambeau.onnx import symbolic_opset9 as opset9  # noqa: E402
from flambeau.onnx import symbolic_registry  # noqa: E402
from flambeau.onnx.symbolic_helper import parse_args  # noqa: E402


def exported(program, args, opset=13, **options):
    file = io.BytesIO()
    fb.onnx.export(program, args, file, opset_version=opset, **options)
    return file.getvalue()


def run(data, *inputs):
    session = runtime.InferenceSession(data, providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    found = session.run(None, {n: x.numpy() for n, x in zip(names, inputs, strict=True)})
    return [fb.from_numpy(each) for each in found]


class MaskedSoftmax(fb.autograd.Function):
    @staticmethod
    def forward(ctx, x, mask, dim):
        away = ~mask.bool()
        out = fb.softmax(x.masked_fill(away, float("-inf")), dim)
        return out.masked_fill(away, 0)

    @staticmethod
    def symbolic(g, x, mask, dim):
        kept = g.op("Cast", mask, to_i=helper.cast_pytorch_to_onnx["Long"])
        one = g.op("Constant", value_t=fb.tensor(1, dtype=fb.int64))
        byte = helper.cast_pytorch_to_onnx["Byte"]
        away = g.op("Cast", g.op("Sub", one, kept), to_i=byte)
        least = g.op("Constant", value_t=fb.tensor(float("-inf")))
        out = opset9.softmax(g, opset9.masked_fill(g, x, away, least), dim)
        zero = g.op("Constant", value_t=fb.tensor(0, dtype=fb.uint8))
        return opset9.masked_fill(g, out, away, zero)


@pytest.mark.parametrize("opset", [9, 11, 13, 20])
@pytest.mark.parametrize("dim", [1, -1])
def test_functions_of_an_opset_write_parts_of_a_function_of_autograd(opset, dim):
    def program(x, mask):
        return MaskedSoftmax.apply(x, mask, dim)

    x, mask = fb.randn(2, 3, 4), fb.tensor([1, 1, 0, 1]).expand(2, 3, 4).contiguous()
    (found,) = run(exported(program, (x, mask), opset), x, mask)
    assert fb.allclose(found, program(x, mask), atol=1e-6)


def test_arguments_are_what_letters_say():
    seen = []

    @parse_args("v", "i", "f", "is", "b", "none", "v")
    def op(g, x, whole, real, sizes, truth, nothing, number):
        seen.append((whole, real, sizes, truth, nothing))
        assert helper._is_value(number)
        assert helper._maybe_get_const(number, "i") == 4
        return g.op("Add", x, number)

    class Adds(fb.autograd.Function):
        @staticmethod
        def forward(ctx, x, *rest):
            return x + rest[-1]

        symbolic = staticmethod(op)

    def program(x):
        return Adds.apply(x, 2.0, 3, (5, 6), 1, None, 4)

    x = fb.tensor([1, 2])
    (found,) = run(exported(program, (x,)), x)
    assert seen == [(2, 3.0, [5, 6], True, None)]
    assert isinstance(seen[0][1], float)
    assert found.tolist() == [5, 6]


def test_a_value_in_place_of_a_constant_is_refused_by_name():
    @parse_args("i")
    def op(g, x):
        raise AssertionError

    class Wrong(fb.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x + 1

        symbolic = staticmethod(op)

    with pytest.raises(fb.onnx.OnnxExporterError, match=r"%\w+ depends on the input"):
        exported(Wrong.apply, (fb.ones(2),))
    with pytest.raises(fb.onnx.UnsupportedOperatorError, match="thing: has no size"):
        helper._unimplemented("thing", "has no size")
    with pytest.raises(fb.onnx.OnnxExporterError, match="has 2 arguments"):
        op(None, 1, 2)


def test_types_of_values_in_between_are_known():
    seen = []

    class Asks(fb.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            return x @ w

        @staticmethod
        def symbolic(g, x, w):
            made = g.op("Unsqueeze", g.op("MatMul", x, w), g.op("Constant", value_t=fb.tensor([0])))
            whole = g.op("Cast", made, to_i=helper.cast_pytorch_to_onnx["Long"])
            for each in (x, made, whole):
                seen.append((each.type().scalarType(), each.type().sizes(), each.type().dim()))
            seen.append(
                (x.node().kind(), made.node().kind(), helper._get_tensor_dim_size(made, -1))
            )
            unknown = g.op("mine::Op", made)
            assert unknown.type().sizes() is None
            assert not unknown.isCompleteTensor()
            like = unknown.setType(made.type().with_sizes([7]).with_dtype(fb.float64))
            seen.append((like.type().scalarType(), like.type().sizes(), like.isCompleteTensor()))
            return helper._squeeze_helper(g, made, [-3])

    x, w = fb.randn(2, 3), fb.randn(3, 4)
    file = exported(Asks.apply, (x, w), input_names=["x"], dynamic_axes={"x": [0]})
    assert seen == [
        ("Float", [None, 3], 2),
        ("Float", [1, None, 4], 3),
        ("Long", [1, None, 4], 3),
        ("prim::Param", "onnx::Unsqueeze", 4),
        ("Double", [7], True),
    ]
    assert {node.op_type for node in onnx.load_from_string(file).graph.node} >= {"MatMul"}


@pytest.mark.parametrize("register", ["", "aten", "registry"])
def test_ops_without_a_namespace_are_those_of_pytorch_and_early_opsets_mean_all(register):
    def roll(g, self, shifts, dims):
        assert (shifts, dims) == ([1], [0])
        size = helper._get_tensor_dim_size(self, 0)
        last = helper._slice_helper(g, self, axes=[0], starts=[size - 1], ends=[size])
        rest = helper._slice_helper(g, self, axes=[0], starts=[0], ends=[size - 1])
        return g.op("Identity", g.op("Concat", last, rest, axis_i=0))

    if register == "registry":
        symbolic_registry.register_op("roll", roll, "", 1)
    else:
        fb.onnx.register_custom_op_symbolic(f"{register}::roll", roll, 1)
    try:
        x = fb.arange(5)
        data = exported(lambda x: x.roll(1, 0), (x,), 9)
        assert "Identity" in {n.op_type for n in onnx.load_from_string(data).graph.node}
        assert run(data, x)[0].tolist() == [4, 0, 1, 2, 3]
    finally:
        fb.onnx.unregister_custom_op_symbolic(f"{'' if register else 'aten'}::roll", 1)
    assert symbolic_registry.is_registered_op("roll", "", 9)
    assert not symbolic_registry.is_registered_op("erfinv", "", 9)
    with pytest.raises(KeyError, match="aten::erfinv"):
        symbolic_registry.get_registered_op("erfinv", "", 9)


class Helpers(fb.autograd.Function):
    """Each helper where PyTorch's own op would be."""

    @staticmethod
    def forward(ctx, x):
        return (
            x[:, 1:3], x[1], x.sum(-1), x.reshape(-1, 2), *x.topk(2, 1), x.long(),
            x.flatten(), x.new_tensor(x.numel()).long(), x.new_tensor(x.size(1)).long(),
        )  # fmt: skip

    @staticmethod
    def symbolic(g, x):
        values, places = helper._topk_helper(g, x, g.op("Constant", value_t=fb.tensor(2)), 1)
        return (
            helper._slice_helper(g, x, [1], [1], [3]),
            helper._select_helper(g, x, 0, 1),
            helper._reducesum_helper(g, x, [-1], 0),
            helper._reshape_helper(g, x, g.op("Constant", value_t=fb.tensor([-1, 2]))),
            values,
            places,
            opset9._cast_Long(g, x, False),
            helper._flatten_helper(g, x, 0, 1, 2),
            helper._numel_helper(g, x),
            helper._size_helper(g, x, 1),
        )


@pytest.mark.parametrize("opset", [10, 13, 18])
def test_helpers_write_what_they_are_called(opset):
    x = fb.randn(3, 4)
    found = run(exported(Helpers.apply, (x,), opset), x)
    for got, want in zip(found, Helpers.apply(x), strict=True):
        assert got.dtype is want.dtype
        assert fb.allclose(got.double(), want.double(), atol=1e-6)  # sums are rounded elsewhere


def test_numbers_of_dtypes_agree_with_those_of_the_package():
    types = fb.onnx.TensorProtoDataType
    assert {name: int(number) for name, number in types.__members__.items()} == {
        name: onnx.TensorProto.DataType.Value(name) for name in types.__members__
    }
    for name, number in helper.cast_pytorch_to_onnx.items():
        dtype = helper.pytorch_name_to_type[name]
        assert helper.scalar_type_to_onnx[helper._parse_arg(dtype, "i")] == number


def test_no_module_of_an_opset_has_what_no_op_is_called():
    assert not hasattr(opset9, "no_such_op")
    assert "softmax" in dir(opset9)
