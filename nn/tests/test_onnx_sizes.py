"""Sizes in exported programs that inputs hold, that inputs have, and that ops find."""

import io

import pytest

import flambeau as fb
from flambeau import nn
from flambeau.nn import functional as F

runtime = pytest.importorskip("onnxruntime")


def flat(value):
    if isinstance(value, fb.Tensor):
        return [value]
    return [each for part in value for each in flat(part)]


def check(program, *inputs, axes=None, opset=20):
    """Export for the first inputs; a runtime and the import give what the program does for all."""
    file = io.BytesIO()
    names = [f"input{at}" for at in range(len(flat(inputs[0])))]
    dynamic = {"input0": axes} if axes else None
    fb.onnx.export(
        program, inputs[0], file, input_names=names, dynamic_axes=dynamic, opset_version=opset
    )
    settings = runtime.SessionOptions()
    settings.log_severity_level = 3
    session = runtime.InferenceSession(
        file.getvalue(), settings, providers=["CPUExecutionProvider"]
    )
    used = [each.name for each in session.get_inputs()]
    again = fb.onnx.load(io.BytesIO(file.getvalue()))
    for given in inputs:
        feed = {n: x for n, x in zip(names, flat(given), strict=True) if n in used}
        found = session.run(None, {n: x.numpy() for n, x in feed.items()})
        with fb.no_grad():
            wanted, back = flat(program(*given)), flat(again(**feed))
        for want, got, own in zip(wanted, map(fb.from_numpy, found), back, strict=True):
            assert want.dtype is got.dtype is own.dtype
            assert want.shape == got.shape == own.shape
            for other in (got, own):
                close = fb.isclose(want.double(), other.double(), 1e-5, 1e-6, equal_nan=True)
                assert close.all(), (want, other)


def followed(x):
    """What shows a size that stayed what it was for the example."""
    sizes = x.new_zeros(x.shape), fb.ones(x.shape[0]), x.flatten(), x.reshape(x.shape[0], -1)
    return x, *sizes, x + fb.arange(x.shape[-1])


TOLD = {
    "slice": lambda x, n: x[:n],
    "slice to the end": lambda x, n: x[:, n:],
    "slice from the end": lambda x, n: x[-n:],
    "narrow": lambda x, n: x.narrow(0, 1, n),
    "zeros": lambda x, n: fb.zeros(n, 3) + x[0, 0],
    "zeros of a list": lambda x, n: fb.zeros([2, n]) + x[0, 0],
    "full": lambda x, n: fb.full((n, 2), 1.5) * x[0, 0],
    "new_ones": lambda x, n: x.new_ones(2, n),
    "arange": lambda x, n: fb.arange(n).float(),
    "arange between": lambda x, n: fb.arange(1, n + 2, 2).float(),
    "linspace": lambda x, n: fb.linspace(0, 1, n) * x[0, 0],
    "eye": lambda x, n: fb.eye(n) * x[0, 0],
    "expand": lambda x, n: x[:1].expand(n, 4),
    "expand in front": lambda x, n: x[0].expand(n, -1),
    "repeat": lambda x, n: x.repeat(n, 1),
    "tile": lambda x, n: x.tile([1, n]),
    "repeat_interleave": lambda x, n: x.repeat_interleave(n, 0),
    "pad": lambda x, n: F.pad(x, (n, 0, 0, n)),
    "topk": lambda x, n: x.topk(n, dim=0)[0],
    "one_hot": lambda x, n: F.one_hot((x[:, 0] > 0).long(), n),
    "view": lambda x, n: x[:n].reshape(n * 2, 2),
    "reshape by a list": lambda x, n: x[:n].reshape([2, n, -1]).sum(0),
    "split": lambda x, n: x.split([n, 8 - n])[0],
    "split, the other": lambda x, n: x.split([n, 8 - n])[1],
    "nonzero": lambda x, n: (x > 0).nonzero()[:n],
    "what is found": lambda x, n: x[x > n / 10],
    "arithmetic": lambda x, n: fb.zeros((n + 1) * 2 - 1, 2) + x[0, 0],
}
FINDS = {"what is found"}


@pytest.mark.parametrize("name", TOLD)
@pytest.mark.parametrize("dynamic", [False, True])
def test_a_size_that_an_input_holds_is_what_it_holds_when_the_model_runs(name, dynamic):
    fb.manual_seed(0)

    def program(x, n):
        made = TOLD[name](x, n)
        return (made, made.new_zeros(made.shape)) if name in FINDS else followed(made)

    x, other = fb.randn(8, 4), fb.randn(8, 5 if dynamic and "view" not in name else 4)
    other = x if name in ("expand", "reshape by a list") else other
    numbers = [(x, fb.tensor(3)), (x, fb.tensor(2)), (other, fb.tensor(4))]
    fixed = name in ("expand", "view", "reshape by a list")
    check(program, *numbers, axes={1: "columns"} if dynamic and not fixed else None)


def test_a_size_within_a_script_is_what_an_input_holds():
    @fb.jit.script
    def cut(x, n: int):
        y = x[:n]
        return y.reshape(y.size(0) * 4), fb.zeros(y.size(0), n)

    x = fb.randn(8, 4)
    check(cut, (x, fb.tensor(3)), (x, fb.tensor(5)))


def test_numbers_among_the_arguments_are_inputs_and_nothing_is_none():
    def program(x, n, factor, pair):
        return (x[:n] * factor + pair[1] if pair[0] is None else x), n * 2

    x = fb.randn(6, 4)
    file = io.BytesIO()
    fb.onnx.export(program, (x, 3, 2.5, (None, x[:1])), file)
    session = runtime.InferenceSession(file.getvalue(), providers=["CPUExecutionProvider"])
    assert [i.name for i in session.get_inputs()] == ["x", "n", "factor", "pair.1"]
    given = x, fb.tensor(5), fb.tensor(0.5, dtype=fb.float64), x[2:3]
    feed = {i.name: each.numpy() for i, each in zip(session.get_inputs(), given, strict=True)}
    found, twice = session.run(None, feed)
    assert fb.allclose(fb.from_numpy(found), x[:5] * 0.5 + x[2:3])
    assert twice == 10 and twice.dtype == "int64"

    @fb.jit.script
    def script(x, n: int, factor: float, twice: bool):
        y = x * factor
        if twice:
            y = y * 2
        return y[:n]

    file = io.BytesIO()
    fb.onnx.export(script, (x, 3, 2.0, True), file)
    session = runtime.InferenceSession(file.getvalue(), providers=["CPUExecutionProvider"])
    kinds = [i.type for i in session.get_inputs()]
    assert kinds == ["tensor(float)", "tensor(int64)", "tensor(double)", "tensor(bool)"]
    given = x, fb.tensor(5), fb.tensor(0.5, dtype=fb.float64), fb.tensor(False)
    feed = {i.name: each.numpy() for i, each in zip(session.get_inputs(), given, strict=True)}
    assert fb.allclose(fb.from_numpy(session.run(None, feed)[0]), script(x, 5, 0.5, False))


@pytest.mark.parametrize("opset", [11, 13, 20])
def test_parts_of_a_dynamic_dimension_are_those_of_the_size_it_has(opset):
    def program(x):
        return (
            x.chunk(3, 1), x.tensor_split(3, 1), x.tensor_split((2, 5), 1),
            x.split([2, x.shape[1] - 2], 1), x[:, :-1].chunk(2, -1), x.split(5, 1),
        )  # fmt: skip

    inputs = [(fb.randn(2, count),) for count in (18, 16, 17, 19)]
    check(program, *inputs, axes={1: "columns"}, opset=opset)


@pytest.mark.parametrize("opset", [11, 13, 20])
def test_a_dynamic_dimension_is_squeezed_where_it_has_one_element(opset):
    x = [(fb.randn(sizes),) for sizes in ((2, 3, 1), (2, 1, 1), (1, 3, 1), (1, 1, 1))]
    axes = {0: "rows", 1: "columns"}
    with pytest.warns(UserWarning, match="squeeze removes dimension 0, which is dynamic"):
        check(lambda x: x.squeeze() * 2, *x, axes=axes, opset=opset)
    with pytest.warns(UserWarning, match="squeeze removes dimension 1, which is dynamic"):
        check(lambda x: x.squeeze(1) * 2, *x, axes=axes, opset=opset)
    with pytest.warns(UserWarning, match="squeeze removes dimension 1, which is dynamic"):
        check(lambda x: x.squeeze((-1, 1)) * 2, *x, axes=axes, opset=opset)
    rows = [(fb.randn(count, 3),) for count in (2, 1, 5)]
    check(lambda x: (x > 0).nonzero()[:, :1].squeeze(1), *rows, axes={0: "rows"}, opset=opset)


def test_a_function_of_a_program_may_find_as_many_as_there_are():
    class Positive(fb.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x[x > 0]

        @staticmethod
        def symbolic(g, x):
            places = g.op("NonZero", g.op("Greater", x, g.op("Constant", value_t=fb.zeros(1))))
            return g.op("GatherND", x, g.op("Transpose", places, perm_i=[1, 0]))

    def program(x):
        found = Positive.apply(x)
        return found, found.new_zeros(found.shape), fb.arange(found.size(0))

    check(program, *[(fb.tensor(each),) for each in ([1.0, -1, 2], [-1.0, -1, -1], [3.0, 3, 1])])


@pytest.mark.parametrize("opset", [11, 13, 20])
def test_what_is_found_is_found_by_dimension(opset):
    def program(x):
        return (
            *(x > 0).nonzero(as_tuple=True), *fb.where(x > 0), x[x.sum(1) > 0].nonzero()[:, 0],
            (x[0] > 0).nonzero().squeeze(1), x[0, 0].nonzero(as_tuple=True)[0],
        )  # fmt: skip

    check(program, (fb.randn(5, 4),), (fb.randn(5, 4),), (fb.zeros(5, 4),), opset=opset)


@pytest.mark.parametrize("opset", [11, 13, 20])
@pytest.mark.parametrize("dtype", [fb.int32, fb.int64])
def test_elements_are_repeated_as_often_as_a_tensor_says(dtype, opset):
    def program(x, counts):
        return (
            x.repeat_interleave(counts, 0), x.t().repeat_interleave(counts, 1),
            x.repeat_interleave(fb.repeat_interleave(counts)[:1], 1),
            x.repeat_interleave(counts[:1]),
            fb.repeat_interleave(counts),
        )  # fmt: skip

    x = fb.randn(4, 3)
    first, other, none = [2, 1, 0, 3], [0, 4, 1, 1], [0, 0, 0, 1]
    inputs = [(x, fb.tensor(each, dtype=dtype)) for each in (first, other, none)]
    check(program, *inputs, opset=opset)


@pytest.mark.parametrize("opset", [11, 13, 20])
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_of_vectors_begin_where_the_input_says(mode, opset):
    fb.manual_seed(0)
    places = fb.tensor([3, 2, 9, 2, 0, 5, 2])
    inputs = [(places, fb.tensor(each)) for each in ([0, 2, 5], [0, 0, 7], [0, 3, 3])]
    for options in ({}, {"padding_idx": 2}, {"include_last_offset": True}):
        check(nn.EmbeddingBag(10, 5, mode=mode, **options), *inputs, opset=opset)
    check(nn.EmbeddingBag(10, 5, mode=mode), (places[:6].reshape(2, 3),), opset=opset)
    if mode == "sum":

        def weighed(vectors, places, starts, weights):
            return F.embedding_bag(places, vectors, starts, mode="sum", per_sample_weights=weights)

        check(weighed, (fb.randn(10, 5), *inputs[0], fb.randn(7)), opset=opset)


def test_strides_are_those_of_a_tensor_in_order():
    x = fb.randn(5, 8, 7)
    check(lambda x: (x.as_strided((3, 3, 2), (1, 4, 2), 2), (x * 2).as_strided((4,), (0,))), (x,))
    for program in (lambda x: x[1:].as_strided((2,), (1,)), lambda x: x.mT.as_strided((2,), (1,))):
        with pytest.raises(fb.onnx.OnnxExporterError, match="places in the memory of another"):
            fb.onnx.export(program, x, io.BytesIO())


@pytest.mark.parametrize("at", [1, -1])
def test_an_element_of_a_list_is_the_one_that_an_input_chooses(at):
    @fb.jit.script
    def choice(x, y, z, at: int):
        return [x, y, z][at] * 2

    parts = fb.randn(3, 4), fb.randn(1, 4), fb.randn(2, 4)
    check(choice, (*parts, fb.tensor(at)), (*parts, fb.tensor(0)))


def test_lists_of_tensors_grow_and_shrink_while_the_graph_is_written():
    @fb.jit.script
    def grown(x, y):
        parts = [x]
        for at in range(3):
            parts.append(y * at)
        parts.insert(1, x + y)
        last = parts.pop()
        parts[0] = parts[1] - last
        del parts[2]
        return fb.stack(parts), len(parts) + x

    check(grown, (fb.randn(2), fb.randn(2)))

    @fb.jit.script
    def elsewhere(x, at: int):
        parts = [x, x]
        parts[at] = x * 2
        return fb.stack(parts)

    with pytest.raises(fb.onnx.OnnxExporterError, match="where a list is read or written depends"):
        fb.onnx.export(elsewhere, (fb.randn(2), fb.tensor(1)), io.BytesIO())


NARROW = {
    "add": lambda x, y: (x + y, x + 3),
    "sub": lambda x, y: (x - y, 3 - x),
    "mul": lambda x, y: (x * y, x * 2),
    "div": lambda x, y: x.div(y, rounding_mode="trunc"),
    "floor_divide": lambda x, y: (x // y, x // 2),
    "remainder": lambda x, y: x % y,
    "equal": lambda x, y: (x == y, x != 3),
    "less": lambda x, y: (x < y, x >= 2),
    "matmul": lambda x, y: x[None] @ y[:, None],
    "sum": lambda x, y: x.sum(),
    "abs": lambda x, y: x.abs(),
}


@pytest.mark.parametrize("opset", [10, 11, 13, 14, 20])
@pytest.mark.parametrize("dtype", [fb.uint8, fb.int8, fb.int16])
@pytest.mark.parametrize("name", NARROW)
def test_narrow_integers_wrap_around_in_every_opset(name, dtype, opset):
    x, y = fb.tensor([1, 100, 120, 3], dtype=dtype), fb.tensor([3, 100, 2, 7], dtype=dtype)
    check(NARROW[name], (x, y), opset=opset)


LOSSES = {
    "mse": lambda x, y, w: F.mse_loss(x, y),
    "l1": lambda x, y, w: F.l1_loss(x, y),
    "smooth l1": lambda x, y, w: F.smooth_l1_loss(x, y),
    "huber": lambda x, y, w: F.huber_loss(x, y),
    "cross entropy": lambda x, y, w: F.binary_cross_entropy(x.sigmoid(), y.float(), weight=w),
    "logits": lambda x, y, w: F.binary_cross_entropy_with_logits(x, y.float(), w, pos_weight=w),
    "outer": lambda x, y, w: (fb.outer(x[0], w), fb.outer(w, y[0])),
}


@pytest.mark.parametrize(
    "dtypes", [(fb.float32, fb.int64), (fb.float64, fb.int32), (fb.float16, fb.int64)]
)
@pytest.mark.parametrize("name", LOSSES)
def test_dtypes_that_differ_are_promoted_in_losses_and_products(name, dtypes):
    fb.manual_seed(0)
    x, y = fb.randn(3, 4), fb.rand(3, 4).to(dtypes[0])
    check(LOSSES[name], (x, y, fb.tensor([3, 1, 2, 0], dtype=dtypes[1])))


SUMS = {
    "scatter_add": lambda x, i, v: x.scatter_add(1, i, v),
    "scatter_add to rows": lambda x, i, v: x.scatter_add(-2, i[:, :2], v),
    "scatter_add_": lambda x, i, v: (x * 1).scatter_add_(0, i, v),
    "scatter_reduce": lambda x, i, v: x.scatter_reduce(1, i, v, "sum"),
    "index_put": lambda x, i, v: x.index_put((i[:, 0], i[:, 1]), v[:, 0], accumulate=True),
    "index_put to rows": lambda x, i, v: x.index_put((i,), v[..., None], accumulate=True),
    "index_put to a transposed": lambda x, i, v: x.t().index_put((i[0],), v[:, :1], True),
    "index_add": lambda x, i, v: x.index_add(0, i[0], x[: i.shape[1]]),
    "index_add to columns": lambda x, i, v: x.index_add(1, i[0], x[:, : i.shape[1]], alpha=2),
}


@pytest.mark.parametrize("opset", [11, 13, 15, 16])
@pytest.mark.parametrize("dtype", [fb.float32, fb.float64, fb.int64, fb.uint8])
@pytest.mark.parametrize("name", SUMS)
def test_sums_into_places_add_all_that_goes_to_one(name, dtype, opset):
    x = fb.arange(12).reshape(3, 4).to(dtype)
    values = fb.tensor([[1, 20, 100], [30, 4, 200], [100, 6, 7]], dtype=dtype)
    places = [fb.tensor([[0, 1, 1], [2, 2, 2], [0, 1, 0]]), fb.zeros(3, 3, dtype=fb.int64)]
    check(SUMS[name], *((x, i, values) for i in places), opset=opset)


@pytest.mark.parametrize("opset", [11, 16])
def test_sums_keep_infinities_apart_and_take_no_values(opset):
    x = fb.tensor([1.0, float("inf"), float("nan"), 2.0])
    i, v = fb.tensor([0, 0, 3]), fb.tensor([2.0, 3.0, float("-inf")])
    check(lambda x, i, v: x.scatter_add(0, i, v), (x, i, v), opset=opset)
    nothing = i[:0], v[:0]
    check(lambda x, i, v: x * 1 + x.scatter_add(0, i, v), (x, *nothing), opset=opset)


def test_an_example_without_elements_tells_nothing_of_dynamic_axes():
    with pytest.raises(fb.onnx.OnnxExporterError, match="size 0 in the example"):
        check(lambda x: x + 1, (fb.ones(0, 3),), axes=[0])


WINDOWS = {
    "hann": lambda x, n: fb.hann_window(n) + x,
    "hann, both ends": lambda x, n: fb.hann_window(n, periodic=False) + x,
    "hamming": lambda x, n: fb.hamming_window(n, False, 0.5, 0.4) + x,
    "blackman": lambda x, n: fb.blackman_window(n, dtype=fb.float64) + x,
}


@pytest.mark.parametrize("opset", [11, 20])
@pytest.mark.parametrize("name", WINDOWS)
def test_windows_are_as_long_as_an_input_says(name, opset):
    sizes = [fb.tensor(n) for n in (5, 8, 2, 1)]
    check(WINDOWS[name], *((fb.zeros(1), n) for n in sizes), opset=opset)
