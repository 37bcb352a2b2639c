"""Exported programs at the edges: infinities, no elements, no dimensions, rounded quotients."""

import io

import pytest

import flambeau as fb
from flambeau import nn
from flambeau.nn import functional as F

runtime = pytest.importorskip("onnxruntime")

INF, NAN = float("inf"), float("nan")


def results(program, *args, opset=20):
    """What a program gives here, in onnxruntime, and imported again."""
    file = io.BytesIO()
    fb.onnx.export(program, args, file, opset_version=opset)
    session = runtime.InferenceSession(file.getvalue(), providers=["CPUExecutionProvider"])
    feed = {i.name: x.numpy() for i, x in zip(session.get_inputs(), args, strict=True)}
    found = [fb.from_numpy(each) for each in session.run(None, feed)]
    again = fb.onnx.load(io.BytesIO(file.getvalue()))(*args)
    wanted = program(*args)
    if not isinstance(wanted, tuple):
        wanted, again = (wanted,), (again,)
    return list(zip(wanted, found, again, strict=True))


def check(program, *args, opset=20):
    for wanted, found, again in results(program, *args, opset=opset):
        assert wanted.dtype is found.dtype is again.dtype
        assert wanted.shape == found.shape == again.shape
        for other in (found, again):
            same = fb.isclose(wanted.double(), other.double(), rtol=1e-6, atol=1e-7, equal_nan=True)
            assert same.all(), (wanted, other)


OPSETS = pytest.mark.parametrize("opset", [9, 11, 20])
EDGES = fb.tensor([NAN, INF, -INF, -0.0, 0.5, -3.0])


@OPSETS
def test_one_bound_leaves_infinities_on_the_other_side(opset):
    check(lambda x: (x.clamp(min=0), x.clamp(max=1), x.clamp(0, 1)), EDGES, opset=opset)


@OPSETS
def test_what_is_no_number_stays_none(opset):
    check(
        lambda x: (F.hardshrink(x, 1), F.softshrink(x), F.threshold(x, 0.5, 2.0)),
        EDGES,
        opset=opset,
    )


@pytest.mark.parametrize("opset", [10, 11, 20])
def test_remainders_are_those_of_quotients_that_are_not_rounded(opset):
    x = fb.tensor([1.0, -1.0, 0.6, 7.5, -7.5, 0.3, 6.0])
    y = fb.tensor([0.1, 0.1, 0.2, -2.0, 2.0, 0.1, INF])
    check(lambda x, y: (x % y, x // y, x % 0.1, x // 0.1, x // 2), x, y, opset=opset)


@pytest.mark.parametrize("weight", [0.25, 0.5, 2.0, -1.0])
def test_a_point_between_is_reckoned_from_the_nearer_end(weight):
    check(lambda x, y: x.lerp(y, weight), EDGES, fb.tensor([1.0, 2.0, INF, 4.0, 1e30, 1.0]))


@OPSETS
@pytest.mark.parametrize("dtype", [fb.float32, fb.int64, fb.uint8, fb.bool])
def test_of_nothing_all_is_true_and_any_is_false(dtype, opset):
    x = fb.empty(2, 0, dtype=dtype)
    check(lambda x: (x.any(), x.all(), x.any(1), x.all(1, keepdim=True)), x, opset=opset)


@pytest.mark.parametrize("dim", [0, -1])
@pytest.mark.parametrize("opset", [11, 20])
def test_a_number_counts_as_having_one_dimension_where_one_is_named(dim, opset):
    def program(x):
        return (
            *x.sort(dim), x.argsort(dim, descending=True), *x.topk(1, dim), *x.max(dim),
            x.argmin(dim), x.argmax(dim, keepdim=True), x.cumsum(dim), x.softmax(dim),
            x.logsumexp(dim), x.sum(dim), x.prod(dim), x.std(dim, unbiased=False), x.any(dim),
            x.gather(dim, x.long() * 0), x.scatter(dim, x.long() * 0, x + 1),
            x.index_fill(dim, (x.long() * 0).reshape(1), 3.0), x.nonzero(),
        )  # fmt: skip

    check(program, fb.tensor(2.5), opset=opset)
    check(lambda x: x.nonzero(), fb.tensor(0.0), opset=opset)


def test_whole_numbers_are_rounded_to_themselves():
    check(lambda x: (x.floor(), x.ceil(), x.logsumexp(0)), fb.tensor([3, -4]))


@pytest.mark.parametrize("opset", [9, 13, 20])
def test_sums_of_exponentials_hold_at_infinities(opset):
    other = fb.tensor([1.0, INF, -INF, 0.0, 0.5, 90.0])
    check(lambda x, y: x.logaddexp(y), EDGES, other, opset=opset)


@pytest.mark.parametrize("opset", [11, 20])
def test_angles_of_zeros_and_infinities_have_their_signs(opset):
    values = [0.0, -0.0, 1.0, -2.0, INF, -INF, NAN]
    y, x = (each.flatten() for each in fb.meshgrid(*[fb.tensor(values)] * 2, indexing="ij"))
    check(lambda y, x: y.atan2(x), y, x, opset=opset)


@OPSETS
def test_an_infinity_has_no_whole_quotient(opset):
    check(lambda x: (x // 2, x // 0.25, x.div(4, rounding_mode="floor")), EDGES, opset=opset)


@OPSETS
def test_the_mean_of_nothing_is_no_number(opset):
    x = fb.empty(2, 0)
    check(lambda x: (x.mean(), x.mean(1), x.mean(0), x.mean((0, 1), keepdim=True)), x, opset=opset)
    check(lambda x: F.mse_loss(x, x + 1), x, opset=opset)


def test_steps_between_whole_numbers_are_rounded_at_the_end():
    out = fb.zeros(3, dtype=fb.int64)
    check(lambda x: fb.linspace(1, 3, 3, out=x), out)
    check(lambda x: fb.linspace(x[0], x[1], 5, dtype=fb.int64), fb.tensor([2.0, 9.0]))


@pytest.mark.parametrize("opset", [11, 20])
@pytest.mark.parametrize("dtype", [fb.int8, fb.int16, fb.int32, fb.int64, fb.uint8])
def test_shifts_by_any_number_of_places_are_pytorchs(dtype, opset):
    ends = fb.iinfo(dtype)
    x = fb.tensor([ends.min, ends.max, 0, 1, 5, ends.max - 1], dtype=dtype).reshape(-1, 1)
    y = [0, 1, 2, 7, 8, 15, 31, 32, 63, 64, -1 if ends.min else 200]

    def program(x, y):
        return (x << y, x >> y, x << 1, x >> 2)

    check(program, x, fb.tensor(y, dtype=dtype), opset=opset)


def test_numbers_of_eight_bits_that_are_too_large_become_what_pytorch_makes_of_them():
    x = fb.tensor([1.0, 1e6, -1e6, INF, NAN])
    kinds = (fb.float8_e5m2, fb.float8_e4m3fn, fb.float8_e5m2fnuz, fb.float8_e4m3fnuz)
    check(lambda x: tuple(x.to(kind).float() for kind in kinds), x)


@pytest.mark.parametrize("opset", [16, 20])
def test_nothing_is_written_to_what_has_no_elements(opset):
    x, places = fb.empty(0, 3), fb.tensor([2])

    def program(x, i):
        row = x[:, :1]
        return x.index_fill(1, i, 2.0), x.index_add(1, i, row), x.index_copy(1, i, row)

    check(program, x, places, opset=opset)


@pytest.mark.parametrize("opset", [9, 10, 11, 20])
def test_what_is_no_number_comes_last_among_the_smallest(opset):
    x = fb.tensor([3.0, NAN, 1.0, INF, -INF, NAN, INF, 2.0])

    def program(x):
        return x.topk(8, largest=False)[0], x.topk(6, largest=False)[1][:4], x.sort()[0]

    check(program, x, opset=opset)
    check(program, x.half(), opset=max(opset, 11))


@pytest.mark.parametrize("opset", [9, 10])
def test_the_smallest_of_float64_numbers_are_refused_where_no_operator_finds_them(opset):
    with pytest.raises(fb.onnx.UnsupportedOperatorError, match="the smallest of float64 numbers"):
        results(lambda x: x.topk(1, largest=False), fb.tensor([1.0, NAN]).double(), opset=opset)


@pytest.mark.parametrize("value", [2, 2.5, [2, 3]])
def test_a_remainder_of_a_number_has_the_dtype_of_the_tensor(value):
    check(lambda y: (fb.remainder(7, y), 7 % y, fb.remainder(7.5, y)), fb.tensor(value))


def test_what_there_is_once_and_determinants_and_grids_are_exported():
    x = fb.tensor([[3, 1], [-2, 5], [3, 1]])

    def program(x):
        return (
            *fb.unique(x, return_inverse=True, return_counts=True),
            *fb.unique(x, dim=0, return_inverse=True, return_counts=True),
        )

    check(program, x)
    check(lambda x: (fb.det(x), fb.linalg.det(x)), fb.tensor([[1.0, 2.0], [3.0, 5.0]]))

    def grid(x):
        return (F.affine_grid(x, (2, 3, 4, 5), True), F.affine_grid(x, (2, 3, 4, 5), False))

    # Shifted, so that no coordinate is what is left of terms that cancel.
    check(grid, fb.arange(12.0).reshape(2, 2, 3) + fb.tensor([0.0, 0.0, 20.0]))


@pytest.mark.parametrize("opset", [9, 20])
def test_products_with_logarithms_are_zero_for_zero_and_undefined_below(opset):
    numbers = fb.tensor([-1.0, 0.0, 2.0, INF, NAN])
    x, y = (each.flatten() for each in fb.meshgrid(numbers, numbers, indexing="ij"))
    check(fb.xlogy, x, y, opset=opset)
    check(lambda x, y: F.kl_div(x, y, reduction="none"), x, y, opset=opset)


def test_logarithms_of_determinants_are_exported():
    check(fb.logdet, fb.stack([fb.eye(3) * 2, -fb.eye(3), fb.zeros(3, 3)]))


def test_a_program_without_inputs_is_exported():
    module = fb.nn.Linear(2, 1)
    module.forward = lambda: module.weight * 2
    file = io.BytesIO()
    fb.onnx.export(module, (), file)
    assert fb.equal(fb.onnx.load(io.BytesIO(file.getvalue()))(), module.weight * 2)


@pytest.mark.parametrize("opset", [11, 13])
def test_a_dynamic_dimension_is_not_squeezed_in_silence(opset):
    class Squeezed(fb.nn.Module):
        def forward(self, x):
            return x.squeeze(1)

    def exported(dim):
        file = io.BytesIO()
        names = {"input_names": ["x"], "dynamic_axes": {"x": {dim: "n"}}}
        fb.onnx.export(Squeezed(), fb.ones(2, 1, 3), file, opset_version=opset, **names)
        return file

    with pytest.raises(fb.onnx.OnnxExporterError, match="dimension 1, which is dynamic"):
        exported(1)
    assert exported(0).tell()


def seen(kind):
    """Which of four keys four queries see; the third sees none."""
    kept = fb.tensor([[1, 0, 1, 0], [0, 1, 1, 1], [0, 0, 0, 0], [1, 1, 1, 1]]).bool()
    return kept if kind is fb.bool else fb.zeros(4, 4).masked_fill(~kept, -INF)


@OPSETS
@pytest.mark.parametrize("kind", [fb.bool, fb.float32], ids=str)
@pytest.mark.parametrize("size", [2, 3, 4, 32])
def test_attention_has_its_bits_again_and_a_query_without_keys_has_zeros(opset, kind, size):
    fb.manual_seed(0)
    query, key, value = (fb.randn(2, 4, size) for _ in range(3))
    key[0, 0, 0] = NAN
    for wanted, found, again in results(
        lambda q, k, v, mask: (
            F.scaled_dot_product_attention(q, k, v, mask),
            F.scaled_dot_product_attention(q, v, k, scale=0.3),
            F.scaled_dot_product_attention(v, q, v, is_causal=True),
        ),
        *(query, key, value, seen(kind)),
        opset=opset,
    ):
        assert fb.equal(again.nan_to_num(7.0), wanted.nan_to_num(7.0))
        assert fb.allclose(found, wanted, rtol=1e-5, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize("layer", [nn.TransformerEncoderLayer, nn.TransformerDecoderLayer])
@pytest.mark.parametrize(("size", "heads"), [(6, 2), (8, 2), (12, 4), (64, 2)])
def test_layers_of_transformers_have_their_bits_for_heads_of_any_size(layer, size, heads):
    fb.manual_seed(0)
    network = layer(size, heads, 16, activation="gelu").eval()
    inputs = [fb.randn(5, 3, size) for _ in range(1 + (layer is nn.TransformerDecoderLayer))]
    file = io.BytesIO()
    fb.onnx.export(network, tuple(inputs), file)
    with fb.no_grad():
        wanted = network(*inputs)
        assert fb.equal(fb.onnx.load(io.BytesIO(file.getvalue()))(*inputs), wanted)
    session = runtime.InferenceSession(file.getvalue(), providers=["CPUExecutionProvider"])
    feed = {i.name: x.numpy() for i, x in zip(session.get_inputs(), inputs, strict=True)}
    assert fb.allclose(fb.from_numpy(session.run(None, feed)[0]), wanted, rtol=1e-5, atol=1e-5)
