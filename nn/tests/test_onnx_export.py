"""What is exported gives what the program gives: in onnxruntime, and imported again."""

import io
from typing import Any

import pytest

import flambeau as fb
from flambeau import nn
from flambeau.nn import functional as F

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")


def tensors(value):
    if isinstance(value, fb.Tensor):
        return [value]
    if isinstance(value, dict):
        return [t for each in value.values() for t in tensors(each)]
    if isinstance(value, list | tuple):
        return [t for each in value for t in tensors(each)]
    return []


def exported(program, args, **options):
    file = io.BytesIO()
    fb.onnx.export(program, args, file, **options)
    return file.getvalue()


def copied(value):
    if isinstance(value, fb.Tensor):
        return value.clone()
    if isinstance(value, list | tuple):
        return type(value)(copied(each) for each in value)
    return value


def compare(program, args, others=(), tolerance=1e-5, back=None, **options):
    """Export, run for the example and for others, here, there and imported again."""
    args = args if isinstance(args, tuple) else (args,)
    data = exported(program, args, **options)
    settings = runtime.SessionOptions()
    settings.log_severity_level = 3
    settings.intra_op_num_threads = 1
    session = runtime.InferenceSession(data, settings, providers=["CPUExecutionProvider"])
    again = fb.onnx.load(io.BytesIO(data))
    mode = fb.onnx.TrainingMode.EVAL if isinstance(program, nn.Module) else None
    for given in (args, *others):
        with fb.no_grad(), fb.onnx.select_model_mode_for_export(program, mode):
            wanted = tensors(program(*copied(given)))
        names = [i.name for i in session.get_inputs()]
        # Inputs that nothing reads are no inputs of the model.
        feed = dict(zip(names, (t.numpy() for t in tensors(given)), strict=True))
        found = session.run(None, feed)
        with fb.no_grad():
            mine = tensors(again(**{k: fb.from_numpy(v) for k, v in feed.items()}))
        for want, got, own in zip(wanted, found, mine, strict=True):
            got = fb.from_numpy(got)
            assert got.dtype is want.dtype is own.dtype
            assert got.shape == want.shape == own.shape
            close = fb.allclose(
                got.double(), want.double(), rtol=tolerance, atol=tolerance, equal_nan=True
            )
            assert close, (got.double() - want.double()).abs().max().item()
            bits = fb.equal(want, own) if back is None else fb.allclose(want, own, atol=back)
            assert bits, (want.double() - own.double()).abs().max().item()
    return onnx.load_from_string(data)


@pytest.fixture(autouse=True)
def seeded():
    fb.manual_seed(0)


def kinds(model):
    return [node.op_type for node in model.graph.node]


LAYERS = {
    "linear": (nn.Linear(4, 3), (2, 4)),
    "linear of three dimensions": (nn.Linear(4, 3), (2, 5, 4)),
    "convolution": (nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2), (2, 4, 7, 7)),
    "convolution of the same size": (nn.Conv1d(3, 2, 4, padding="same"), (2, 3, 9)),
    "transposed convolution": (nn.ConvTranspose2d(3, 4, 3, 2, 1, 1), (1, 3, 5, 5)),
    "batch normalisation": (nn.BatchNorm2d(3), (2, 3, 4, 4)),
    "layer normalisation": (nn.LayerNorm(4), (2, 3, 4)),
    "instance normalisation": (nn.InstanceNorm1d(3), (2, 3, 5)),
    "pooling": (nn.MaxPool2d(3, 2, 1, ceil_mode=True), (2, 3, 8, 8)),
    "averages": (nn.AvgPool2d(2), (2, 3, 8, 8)),
    "one average": (nn.AdaptiveAvgPool2d(1), (2, 3, 8, 8)),
    "gelu": (nn.GELU(), (2, 3)),
    "softmax": (nn.Softmax(1), (2, 3, 4)),
    "LSTM": (nn.LSTM(4, 5, 2, bidirectional=True, batch_first=True), (2, 3, 4)),
    "GRU": (nn.GRU(4, 5, 2), (3, 2, 4)),
    "RNN": (nn.RNN(4, 5, 1, bidirectional=True), (3, 2, 4)),
    "linear of many": (nn.Linear(192, 94), (2, 6, 192)),
    "linear without bias": (nn.Linear(64, 3, bias=False), (7, 3, 64)),
    "many transposed convolutions": (
        nn.Sequential(nn.ConvTranspose2d(8, 32, 4, 2, 1), nn.BatchNorm2d(32).eval()),
        (2, 8, 2, 2),
    ),
    "encoder": (nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 1), (3, 2, 8)),
    "padding": (nn.ReflectionPad2d((1, 2, 0, 1)), (1, 2, 4, 5)),
    "pixels": (nn.PixelShuffle(2), (1, 8, 3, 3)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_is_the_same_in_a_runtime_and_to_the_bit_when_it_comes_back(name):
    layer, sizes = LAYERS[name]
    compare(layer, fb.randn(sizes), [(fb.randn(sizes),)])


@pytest.mark.parametrize("opset", range(9, 24))
def test_all_opsets_have_their_forms_of_the_same_layers(opset):
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3),
        nn.BatchNorm2d(4),
        nn.ReLU6(),
        nn.MaxPool2d(2),
        nn.Dropout(),
        nn.Flatten(),
        nn.Linear(16, 6),
        nn.LayerNorm(6),
        nn.Unflatten(1, (2, 3)),
        nn.GELU(),
        nn.Softmax(1),
    )
    model = compare(net, fb.randn(2, 1, 6, 6), opset_version=opset, back=1e-6)
    assert model.opset_import[0].version == opset


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("sizes", [2, 2.0, 1.7, (0.6, 2.3), [(5, 11)], [(1, 4)]])
def test_an_image_is_resampled_as_in_a_runtime_and_to_the_bit_when_it_comes_back(
    mode, corners, sizes
):
    def program(x):
        size, factor = (sizes[0], None) if isinstance(sizes, list) else (None, sizes)
        return F.interpolate(x, size, factor, mode, corners)

    image, other = fb.rand(2, 1, 7, 9), fb.rand(2, 1, 6, 13)
    compare(program, image)
    compare(program, image, [(other,)], input_names=["x"], dynamic_axes={"x": [2, 3]})


def test_an_image_is_resampled_to_the_size_of_another():
    def program(x, y):
        return F.interpolate(x, size=y.shape[2:], mode="bilinear", align_corners=False)

    compare(
        program,
        (fb.rand(1, 2, 3, 4), fb.rand(1, 1, 6, 6)),
        [(fb.rand(1, 2, 5, 4), fb.rand(1, 1, 8, 3))],
        input_names=["x", "y"],
        dynamic_axes={"x": [2, 3], "y": [2, 3]},
    )


@pytest.mark.parametrize("bias", [False, True])
def test_a_product_with_a_transposed_matrix_comes_back_as_no_linear_layer(bias):
    class Product(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(fb.randn(94, 192))
            self.added = nn.Parameter(fb.randn(94))

        def forward(self, x):
            product = x @ self.weight.t()
            return product + self.added if bias else product

    compare(Product(), fb.randn(2, 6, 192))


CALLS = {
    "arithmetic of dtypes": lambda x, i: (x + 1, i / 2, i * 2.5, i // 2, x % 0.3, i % 3, -i, 2**x),
    "comparisons": lambda x, i: (x > 0, i == 2, x <= i, (x > 0) & (i != 1), ~(x > 0)),
    "reductions": lambda x, i: (x.sum(), x.mean(0), i.sum(1), x.max(1), x.min(), x.argmax(1)),
    "more reductions": lambda x, i: (x.var(1), x.std(), x.norm(2, 1), x.logsumexp(0), x.prod(1)),
    "truths": lambda x, i: ((x > 0).any(1), (x > -9).all(), x.amax((0, 1)), i.cumsum(1)),
    "products of all before": lambda x, i: (
        x.cumprod(0), x.cumprod(1), (i % 3).cumprod(-1), x[0].cumprod(0)
    ),
    "sizes": lambda x, i: (x.t(), x.unsqueeze(1), x.reshape(-1, 2), x.flatten(), x.expand(2, 3, 4)),
    "parts": lambda x, i: (*x.split(2, 1), *x.chunk(3), *x.unbind(1)),
    "subscripts": lambda x, i: (x[1], x[:, 1:3], x[..., -1], x[None, 0], x[:, ::2], x[[2, 0]]),
    "tensors as subscripts": lambda x, i: (x[i[:, 0] % 3], x[:, i[0] % 4], x[i % 3, i % 4]),
    "masks": lambda x, i: (x.masked_fill(x > 0, -1.0), fb.where(x > 0, x, 0.0), x[x > 0]),
    "joins": lambda x, i: (fb.cat([x, x], 1), fb.stack([x, i.float()]), fb.cat([x, i.float()])),
    "diagonals": lambda x, i: (
        x[0].diag(1), i[0].diag(-1), (x / 0).diag_embed(), x.diag_embed(1, 0, 2), x.diagonal(1),
        (-x).diag_embed(-2, -1, 0),
    ),
    "starts of shapes": lambda x, i: (
        x.view(x.size()[:-1] + fb.Size((2, 2))), x.reshape(*x.shape[:1], -1)
    ),
    "gathers": lambda x, i: (x.gather(1, i), x.index_select(0, i[0] % 3), fb.take(x, i)),
    "order": lambda x, i: (x.topk(2, 1), x.sort(1), x.flip(0), x.roll(1, 1), x.tril(), x.triu(1)),
    "new tensors": lambda x, i: (fb.zeros_like(x), x.new_ones(2), fb.arange(3), fb.full((2,), 7)),
    "clamps": lambda x, i: (x.clamp(-0.5, 0.5), x.clamp(min=0), i.clamp(max=2), F.hardtanh(x)),
    "activations": lambda x, i: (F.silu(x), F.elu(x), F.softplus(x), F.leaky_relu(x), F.glu(x)),
    "rounding": lambda x, i: (x.round(), x.floor(), x.trunc(), x.ceil(), x.frac(), x.sign()),
    "products": lambda x, i: (x @ x.t(), fb.einsum("ij,kj->ik", x, x), fb.addmm(x, x, x[0].diag())),
    "losses": lambda x, i: (F.mse_loss(x, x + 1), F.cross_entropy(x, i[:, 0]), F.l1_loss(x, -x)),
    "conversions": lambda x, i: (x.long(), i.float(), (x * 3).to(fb.int32), x.double(), i.bool()),
    "scatters": lambda x, i: (x.scatter(1, i % 4, 1.0), x.scatter_add(0, i % 3, x)),
    "one-hot": lambda x, i: F.one_hot(i, 5),
    "attention": lambda x, i: F.scaled_dot_product_attention(x[None], x[None], x[None]),
    "interpolation": lambda x, i: F.interpolate(x[None, None], scale_factor=2.0),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_functions_of_tensors_are_the_same_in_a_runtime(name):
    x = fb.randn(3, 4)
    i = fb.tensor([[0, 1, 2, 3], [3, 2, 1, 0], [1, 1, 3, 2]])
    compare(CALLS[name], (x, i), [(fb.randn(3, 4), (i + 1) % 4)], back=1e-6)


def writes_through_views(x):
    y = x * 1
    y[:, 1] = 0
    y[0].add_(5)
    z = y.view(-1)
    z[2:4] = x.view(-1)[:2]
    y.relu_()
    return y, z, x


def writes_to_a_constant(x):
    mask = fb.zeros(3, 4)
    kept = mask[1]
    mask[1] = x[0]
    mask[:, 0] += 2
    return mask * x, kept


def writes_to_what_was_read(x):
    y = x + 0
    before = y * 2
    y.mul_(3)
    y += before
    return y, before


@pytest.mark.parametrize(
    "program", [writes_through_views, writes_to_a_constant, writes_to_what_was_read]
)
@pytest.mark.parametrize("dynamic", [False, True])
def test_writes_are_seen_by_all_views_and_by_nothing_that_was_read_before(program, dynamic):
    options: dict[str, Any] = {"input_names": ["x"]}
    others = [(fb.randn(3, 4),)]
    if dynamic and program is not writes_to_a_constant:
        options["dynamic_axes"] = {"x": [0]}
        others.append((fb.randn(5, 4),))
    compare(program, fb.randn(3, 4), others, **options)


def test_an_argument_that_is_written_to_stays_as_it_was():
    x = fb.randn(3)
    before = x.clone()
    compare(lambda x: x.add_(1), x)
    assert fb.equal(x, before)


class Sizes(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 2)

    def forward(self, x):
        n, t = x.size(0), x.shape[1]
        y = self.linear(x.reshape(n * t, 4)).view(n, t, -1)
        places = fb.arange(t).unsqueeze(0).expand(n, t)
        return y + places.unsqueeze(-1), fb.zeros(n, t + 1), x[:, : t - 1].mean(1)


@pytest.mark.parametrize("script", [False, True])
def test_sizes_follow_the_inputs_along_dynamic_axes(script):
    net = Sizes()
    model = compare(
        fb.jit.script(net) if script else net,
        fb.randn(2, 3, 4),
        [(fb.randn(5, 7, 4),), (fb.randn(1, 2, 4),)],
        input_names=["x"],
        output_names=["y", "z", "mean"],
        dynamic_axes={"x": {0: "batch", 1: "time"}, "y": {0: "batch", 1: "time"}},
        back=1e-6,
    )
    shapes = [
        [d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim]
        for v in (*model.graph.input, *model.graph.output)
    ]
    assert shapes[:2] == [["batch", "time", 4], ["batch", "time", 2]]


def test_without_dynamic_axes_sizes_are_numbers_and_no_nodes():
    model = compare(Sizes(), fb.randn(2, 3, 4), back=1e-6)
    assert not {"Shape", "Gather"} & set(kinds(model))


@fb.jit.script
def branches(x):
    if bool(x.sum() > 0):
        y = x * 2
    else:
        y = x - 1
    return y + 1


@fb.jit.script
def loops(x, n):
    i = 0
    total = fb.zeros_like(x)
    while bool(total.sum() < n):
        total = total + x * x
        i += 1
    return total, i


@fb.jit.script
def counted(x, n: int):
    for i in range(n):
        x = x * 2 + i
    return x


def test_a_branch_of_a_script_is_chosen_when_the_model_runs():
    model = compare(branches, fb.ones(3), [(-fb.ones(3),)])
    assert "If" in kinds(model)


def test_a_loop_of_a_script_runs_as_often_as_the_inputs_say():
    x = fb.tensor([1.0, 2.0])
    data = exported(loops, (x, fb.tensor(20.0)))
    module = fb.onnx.load(io.BytesIO(data))
    assert "Loop" in kinds(onnx.load_from_string(data))
    for limit in (1.0, 20.0, 33.0, -1.0):
        total, steps = loops(x, fb.tensor(limit))
        found = module(x, fb.tensor(limit))
        assert fb.equal(found[0], total)
        assert found[1].item() == steps


def test_a_loop_of_known_length_is_written_out():
    model = compare(lambda x: counted(x, 3), fb.ones(2))
    assert set(kinds(model)) <= {"Mul", "Add", "Constant"}


def test_a_recurrent_layer_is_one_operator_with_its_weights():
    model = compare(nn.LSTM(4, 5), fb.randn(3, 2, 4))
    assert kinds(model).count("LSTM") == 1
    assert not {"MatMul", "Gemm", "Sigmoid"} & set(kinds(model))


class Packed(nn.Module):
    """A recurrent layer on sequences of different lengths."""

    def __init__(self, layer, *, ordered=True, between=None, total=None, padding=0.0, state=False):
        super().__init__()
        self.rnn, self.between = layer, between or nn.Identity()
        self.ordered, self.total, self.padding, self.state = ordered, total, padding, state

    def forward(self, x, lengths, *state):
        first = self.rnn.batch_first
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, first, self.ordered)
        packed = packed._replace(data=self.between(packed.data))
        out, last = self.rnn(packed, *state)
        out = out._replace(data=self.between(out.data))
        whole, count = nn.utils.rnn.pad_packed_sequence(out, first, self.padding, self.total)
        return whole, count, last


PACKED = {
    "LSTM": (nn.LSTM(3, 4, 2, bidirectional=True), {}),
    "GRU, batch first": (nn.GRU(3, 4, batch_first=True), {}),
    "in any order": (nn.GRU(3, 4, batch_first=True), {"ordered": False}),
    "with a layer on the data": (nn.RNN(3, 3), {"between": nn.Linear(3, 3)}),
    "to a length": (nn.LSTM(3, 4), {"total": 9}),
    "to the length of the input": (nn.LSTM(3, 4), {"total": 6}),
    "with other padding": (nn.GRU(3, 4), {"padding": -2.5}),
    "with a layer and other padding": (nn.GRU(3, 3), {"between": nn.Tanh(), "padding": 7.0}),
}


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize("dynamic", [False, True])
def test_packed_sequences_have_the_lengths_that_the_inputs_say(name, dynamic):
    layer, options = PACKED[name]

    def given(steps, *lengths):
        if options.get("ordered", True):
            lengths = sorted(lengths, reverse=True)
        sizes = (len(lengths), steps) if layer.batch_first else (steps, len(lengths))
        return fb.randn(*sizes, 3), fb.tensor(lengths)

    axes = {"x": {0: "a", 1: "b"}, "lengths": {0: "n"}} if dynamic else None
    others = [given(6, 2, 6, 3), given(6, 1, 4, 2)]
    if dynamic:
        others += [given(5, 5), given(9, 3, 1, 4, 2)]
    compare(
        Packed(layer, **options),
        given(6, 3, 5, 2),
        others,
        back=1e-6,
        input_names=["x", "lengths"],
        dynamic_axes=axes,
    )


def test_what_is_packed_is_what_the_program_has():
    def parts(x, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths)
        return packed.data * 2, packed.batch_sizes

    others = [(fb.randn(5, 3, 2), fb.tensor(lengths)) for lengths in ([5, 5, 1], [2, 1, 1])]
    compare(parts, (fb.randn(5, 3, 2), fb.tensor([4, 3, 1])), others)


def test_weights_keep_their_names_and_are_shared():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(7, 4)
            self.out = nn.Linear(4, 7, bias=False)
            self.out.weight = self.embed.weight

        def forward(self, i):
            return self.out(self.embed(i))

    model = compare(Tied(), fb.tensor([[1, 2], [3, 6]]))
    assert [w.name for w in model.graph.initializer] == ["embed.weight"]


def test_names_are_given_to_inputs_then_weights_and_to_outputs():
    names = ["image", "w0"]
    model = compare(nn.Linear(2, 3), fb.ones(1, 2), input_names=names, output_names=["score"])
    assert [i.name for i in model.graph.input] == ["image"]
    assert [w.name for w in model.graph.initializer] == ["w0", "bias"]
    assert [o.name for o in model.graph.output] == ["score"]
    with pytest.raises(RuntimeError, match="number of input names provided"):
        exported(nn.ReLU(), fb.ones(1), input_names=["a", "b"])
    with pytest.raises(RuntimeError, match="number of output names provided"):
        exported(nn.ReLU(), fb.ones(1), output_names=["a", "b"])


def test_weights_are_inputs_if_they_are_asked_to_be():
    net, x = nn.Linear(2, 3), fb.ones(1, 2)
    both = onnx.load_from_string(exported(net, x, keep_initializers_as_inputs=True))
    assert [i.name for i in both.graph.input] == ["input", "weight", "bias"]
    assert len(both.graph.initializer) == 2
    without = onnx.load_from_string(exported(net, x, export_params=False))
    assert [i.name for i in without.graph.input] == ["input", "weight", "bias"]
    assert not without.graph.initializer


def test_the_mode_is_that_of_the_option_and_then_what_it_was():
    net = nn.Sequential(nn.Dropout(0.5), nn.BatchNorm1d(2))
    net[1].eval()
    mode = fb.onnx.TrainingMode
    x = fb.randn(3, 2)
    assert "Dropout" not in kinds(onnx.load_from_string(exported(net, x)))
    trained = kinds(onnx.load_from_string(exported(net, x, training=mode.TRAINING)))
    assert "Dropout" in trained
    assert "BatchNormalization" not in trained
    kept = kinds(onnx.load_from_string(exported(net, x, training=mode.PRESERVE)))
    assert {"Dropout", "BatchNormalization"} <= set(kept)
    assert [m.training for m in net.modules()] == [True, True, False]
    with pytest.raises(TypeError, match="TrainingMode"):
        exported(net, x, training="eval")


def test_buffers_are_what_they_were_though_the_program_writes_or_rebinds_them():
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            for name in ("rebound", "written"):
                self.register_buffer(name, fb.zeros(2))
            self.register_buffer("none", None)

        def forward(self, x):
            self.rebound = self.rebound + x
            self.written.add_(x)
            self.none = x * 2
            self.register_buffer("new", x)
            return self.rebound + self.written

    module = Counts()
    before = dict(module.named_buffers())
    model = onnx.load_from_string(exported(module, fb.ones(2)))
    assert kinds(model).count("Add") >= 2
    after = dict(module.named_buffers())
    assert {name: id(each) for name, each in before.items()} == {
        name: id(each) for name, each in after.items()
    }
    assert all(fb.equal(each, fb.zeros(2)) for each in after.values())
    assert list(module._buffers) == ["rebound", "written", "none"]


def test_a_program_can_ask_whether_it_is_exported():
    seen = []

    class Asks(nn.Module):
        def forward(self, x):
            seen.append(fb.onnx.is_in_onnx_export())
            return x + 1

    exported(Asks(), fb.ones(1))
    assert seen == [True]
    assert not fb.onnx.is_in_onnx_export()


def test_what_has_no_operator_is_refused_with_its_op_and_line():
    with pytest.raises(fb.onnx.UnsupportedOperatorError) as raised:
        exported(lambda x: fb.erfinv(x) + 1, fb.zeros(2), opset_version=13)
    text = str(raised.value)
    assert "aten::erfinv" in text
    assert "opset 13" in text
    assert "test_onnx_export.py" in text


def test_a_dtype_that_an_operator_of_the_opset_does_not_take_is_refused_with_its_line():
    with pytest.raises(fb.onnx.UnsupportedOperatorError) as raised:
        exported(lambda x: x.relu() + 1, fb.zeros(2, dtype=fb.bfloat16), opset_version=9)
    text = str(raised.value)
    assert "Relu (%" in text
    assert "opset 9" in text
    assert "bfloat16" in text
    assert "test_onnx_export.py" in text


def test_products_of_all_before_are_exported_for_any_size():
    def model(x):
        return x.cumprod(1), x.cumprod(-1)

    x, other = fb.rand(2, 3, 4) + 0.5, fb.rand(3, 6, 2) + 0.5
    # Running products are made in double, as PyTorch's are, and those that the model has in float.
    options = {"input_names": ["x"], "dynamic_axes": {"x": [0, 1, 2]}}
    compare(model, x, [(other,)], back=1e-7, **options)


def test_a_registered_function_writes_an_op():
    def erfinv(g, x):
        return g.op("mine::ErfInv", x, scale_f=2.0).setType(x.type())

    fb.onnx.register_custom_op_symbolic("aten::erfinv", erfinv, 12)
    try:
        data = exported(fb.erfinv, fb.zeros(2), custom_opsets={"mine": 3})
        with pytest.raises(fb.onnx.UnsupportedOperatorError):
            exported(fb.erfinv, fb.zeros(2), opset_version=11)
    finally:
        fb.onnx.unregister_custom_op_symbolic("aten::erfinv", 12)
    model = onnx.load_from_string(data)
    assert [(n.domain, n.op_type) for n in model.graph.node] == [("mine", "ErfInv")]
    assert {o.domain: o.version for o in model.opset_import}["mine"] == 3
    with pytest.raises(ValueError, match="domain::name"):
        fb.onnx.register_custom_op_symbolic("erfinv", erfinv, 12)


@pytest.mark.parametrize("dtype", [fb.float16, fb.float32, fb.float64], ids=str)
@pytest.mark.parametrize("operator", ["Add", "Sub", "Mul", "Div", "Max", "Greater"])
@pytest.mark.parametrize("number", [2, 0.5])
def test_numbers_in_functions_of_programs_have_the_dtype_of_what_they_meet(dtype, operator, number):
    def erfinv(g, x):
        made = g.op(operator, *((number, x) if operator == "Add" else (x, number)))
        return g.op("Where", made, x, x) if operator == "Greater" else made

    fb.onnx.register_custom_op_symbolic("aten::erfinv", erfinv, 12)
    try:
        data = exported(fb.erfinv, fb.zeros(2, dtype=dtype), opset_version=17)
    finally:
        fb.onnx.unregister_custom_op_symbolic("aten::erfinv", 12)
    model = onnx.load_from_string(data)
    onnx.checker.check_model(model, full_check=True)
    constants = [n.attribute[0].t.data_type for n in model.graph.node if n.op_type == "Constant"]
    kept = [t.data_type for t in model.graph.initializer]
    assert {*constants, *kept} == {model.graph.input[0].type.tensor_type.elem_type}


def test_a_function_of_autograd_says_how_it_is_written():
    class Clip(fb.autograd.Function):
        @staticmethod
        def forward(ctx, x, low, high):
            return x.clamp(low, high), x * 2

        @staticmethod
        def symbolic(g, x, low, high):
            made = g.op("mine::Clip", x, low_f=low, high_f=high)
            return made, g.op("Mul", x, g.op("Constant", value_t=fb.tensor(2.0)))

    def program(x):
        clipped, double = Clip.apply(x + 1, -1.0, 2.0)
        return clipped + 1, double

    model = onnx.load_from_string(exported(program, fb.zeros(2)))
    assert [n.op_type for n in model.graph.node if n.op_type != "Constant"] == [
        "Add",
        "Clip",
        "Mul",
        "Add",
    ]
    clip = next(n for n in model.graph.node if n.op_type == "Clip")
    assert {a.name: a.f for a in clip.attribute} == {"low": -1.0, "high": 2.0}
    traced = fb.jit.trace(program, fb.zeros(2), check_trace=False)
    assert "PythonOp" in str(traced.graph)  # a trace that runs has the gradient of the class


def test_a_summary_tells_what_is_in_a_file(tmp_path, capsys):
    from flambeau.__main__ import main

    path = tmp_path / "net.onnx"
    fb.onnx.export(nn.Sequential(nn.Linear(3, 2), nn.ReLU()), fb.ones(1, 3), path)
    assert main(["onnx", str(path)]) == 0
    text = capsys.readouterr().out
    assert "opset 20, format 9, by flambeau" in text
    assert "weights 2, of 8 elements" in text
    assert "1  Gemm" in text
    (tmp_path / "no.onnx").write_bytes(b"\x0a\xff\xff\xff\xff")
    assert main(["onnx", str(tmp_path / "no.onnx")]) == 1
    assert "no model of ONNX" in capsys.readouterr().err
    assert main(["onnx", str(tmp_path / "absent.onnx")]) == 1
    assert "No such file" in capsys.readouterr().err


def test_ops_without_an_operator_can_be_kept_under_their_names():
    kind = fb.onnx.OperatorExportTypes
    program, x = lambda x: fb.erfinv(x.relu()), fb.zeros(2)
    for mode, wanted in (
        (kind.ONNX_ATEN_FALLBACK, [("", "Relu"), ("org.pytorch.aten", "ATen")]),
        (kind.ONNX_FALLTHROUGH, [("", "Relu"), ("aten", "erfinv")]),
        (kind.RAW, [("aten", "relu"), ("aten", "erfinv")]),
    ):
        model = onnx.load_from_string(exported(program, x, operator_export_type=mode))
        assert [(n.domain, n.op_type) for n in model.graph.node] == wanted


def test_a_constant_that_is_a_view_of_an_input_is_refused():
    x = fb.ones(3)
    view = fb.from_numpy(x.numpy())
    with pytest.raises(fb.onnx.OnnxExporterError, match="shares the memory of an input"):
        exported(lambda x: x + view, x)


def constants_of_its_own(x):
    c, d, e = fb.tensor([1.0, 2.0]), x.new_tensor([3.0, 4.0]), fb.tensor([5.0, 6.0])
    before = x * c * d * e
    c.add_(1)
    d[0] = 7
    e[1:].copy_(x[:1])
    return before, c * x, d * x, e * x


KEPT = fb.zeros(2)


def constants_of_others(x):
    before = x + KEPT
    fb.add(KEPT, 1, out=KEPT)
    return before, x + KEPT


class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", fb.zeros(2))

    def forward(self, x):
        before = x + self.count
        self.count += 1
        return before, x + self.count


@pytest.mark.filterwarnings("ignore:torch.*tensor results are registered as constants")
@pytest.mark.parametrize("program", [constants_of_its_own, constants_of_others, Counts()])
def test_constants_that_are_written_to_are_what_they_were_where_they_are_read(program):
    held = program.count if isinstance(program, nn.Module) else KEPT
    held.zero_()
    data = exported(program, fb.tensor([3.0, 4.0]))
    if isinstance(program, nn.Module):
        assert held.tolist() == [0, 0]
    held.zero_()
    x = fb.tensor([5.0, -1.0])
    wanted = program(x)
    for found, want in zip(fb.onnx.load(io.BytesIO(data))(x), wanted, strict=True):
        assert fb.equal(found, want)


def test_a_dtype_is_never_lost():
    def several(x, i, b):
        return x.half(), x.double(), i.int(), i.to(fb.int8), b, i.to(fb.uint8), x.bfloat16().float()

    compare(several, (fb.randn(2), fb.tensor([1, 2]), fb.tensor([True, False])))


def test_arguments_may_be_lists_dictionaries_and_named():
    class Net(nn.Module):
        def forward(self, pair, scale=None):
            return {"sum": pair[0] + pair[1], "scaled": pair[0] * scale}

    data = exported(Net(), ((fb.ones(2), fb.ones(2)), {"scale": fb.tensor(3.0)}))
    module = fb.onnx.load(io.BytesIO(data))
    results = module(fb.ones(2), fb.ones(2), fb.tensor(2.0))
    assert [r.tolist() for r in results] == [[2.0, 2.0], [2.0, 2.0]]
    again = exported(Net(), ((fb.ones(2), fb.ones(2)),), kwargs={"scale": fb.tensor(3.0)})
    assert kinds(onnx.load_from_string(again)) == kinds(onnx.load_from_string(data))


def test_weights_stand_beside_the_file_if_they_shall(tmp_path):
    net, x = nn.Linear(40, 40), fb.randn(2, 40)
    fb.onnx.export(net, x, tmp_path / "net.onnx", external_data=True)
    assert (tmp_path / "net.onnx.data").stat().st_size >= 40 * 40 * 4
    assert fb.equal(fb.onnx.load(tmp_path / "net.onnx")(x), net(x))


def test_weights_that_are_too_many_for_a_message_stand_beside_the_file(tmp_path, monkeypatch):
    from flambeau.onnx._export import exporting

    monkeypatch.setattr(exporting, "LARGEST", 2000)
    net, x = nn.Sequential(nn.Linear(30, 20), nn.Linear(20, 2).half().float()), fb.randn(2, 30)
    path = tmp_path / "net.onnx"
    (tmp_path / "net.onnx.data").write_bytes(b"of an older model" * 1000)
    fb.onnx.export(net, x, str(path))
    assert path.stat().st_size < 2000
    assert (tmp_path / "net.onnx.data").stat().st_size == 30 * 20 * 4
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    assert fb.allclose(fb.from_numpy(found), net(x), atol=1e-5)
    again = fb.onnx.load(path)
    assert fb.equal(again(x), net(x))
    assert {k: v.shape for k, v in again.state_dict().items()} == {
        k: v.shape for k, v in net.state_dict().items()
    }
    with pytest.raises(ValueError, match="written to a path"):
        fb.onnx.export(net, x, io.BytesIO())


def test_the_graph_is_printed_with_types_and_lines(capsys):
    exported(nn.Linear(2, 3), fb.ones(1, 2), verbose=True, input_names=["x"])
    text = capsys.readouterr().out
    assert text.startswith("graph(%x : Float(1, 2)\n")
    assert "onnx::Gemm[alpha=1.0, beta=1.0, transB=1](%x, %weight, %bias)" in text


def test_text_of_a_model_has_its_nodes():
    text = fb.onnx.export_to_pretty_string(nn.ReLU(), fb.ones(2), input_names=["x"])
    assert 'producer_name: "flambeau"' in text
    assert 'Node {type: Relu, inputs: ["x"]' in text
    whole = fb.onnx.export_to_pretty_string(nn.ReLU(), fb.ones(2), google_printer=True)
    assert 'op_type: "Relu"' in whole


def test_a_fault_of_the_program_is_not_blamed_on_the_file():
    with pytest.raises(AttributeError, match="nothing"):
        fb.onnx.export(lambda x: x.nothing, fb.ones(2), io.BytesIO())
    with pytest.raises(TypeError, match="'f' must be str or PathLike or IO, not int"):
        fb.onnx.export(nn.ReLU(), fb.ones(2), 3)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"opset_version": 8}, ValueError, "9 to 23"),
        ({"opset_version": "9"}, TypeError, "integer"),
        ({"input_names": "x"}, TypeError, "list of names"),
        ({"dynamic_axes": {"input": 0}}, TypeError, "dictionary of axes"),
        ({"dynamic_axes": {"input": [5]}}, ValueError, "has no axis 5"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        exported(nn.ReLU(), fb.ones(2), **options)


def test_an_imported_model_is_exported_again():
    net, x = nn.Sequential(nn.Linear(4, 3), nn.Tanh()), fb.randn(2, 4)
    once = fb.onnx.load(io.BytesIO(exported(net, x)))
    twice = fb.onnx.load(io.BytesIO(exported(once, x)))
    assert fb.equal(twice(x), net(x))
    assert list(twice.state_dict()) == list(once.state_dict()) == list(net.state_dict())


def test_a_choice_between_two_tensors_leaves_their_sizes_known():
    compare(lambda x: fb.where(x > 0, x, -x).chunk(2, 1), fb.randn(2, 4))
    compare(lambda x: x.repeat_interleave(2, 1).chunk(2, 1), fb.randn(2, 4))


def test_a_constant_that_is_read_often_is_written_once():
    table = fb.randn(64, 64)

    def program(x):
        for _ in range(10):
            x = x @ table
        return x

    assert len(exported(program, fb.randn(2, 64))) < 2 * 64 * 64 * 4


class Shuffled(nn.Module):
    """Steps in an order that is drawn, as augmentations take them."""

    def forward(self, x):
        for at in fb.randperm(3):
            x = (lambda t: t + 1, lambda t: t * 2, lambda t: t - 3)[at](x)
        return x


@pytest.mark.filterwarnings("ignore::flambeau.jit.TracerWarning")
def test_what_is_drawn_and_read_by_the_program_alone_is_not_written():
    for seed in (0, 1):
        fb.manual_seed(seed)
        program = fb.jit.trace(Shuffled(), fb.rand(3), check_trace=False)
        model = onnx.load(io.BytesIO(exported(program, (fb.rand(3),))))
        kinds = {node.op_type for node in model.graph.node}
        assert kinds == {"Add", "Constant", "Mul", "Sub"}


@pytest.mark.parametrize(
    "program",
    [
        lambda x: fb.rand_like(x),
        lambda x: (x, fb.rand(3)),
        lambda x: x + fb.randn(3, 2).unbind(1)[0],
        lambda x: fb.rand(2, 3).unbind(0),
    ],
)
def test_what_is_drawn_and_given_is_written(program):
    class Drawing(nn.Module):
        def forward(self, x):
            return program(x)

    model = onnx.load(io.BytesIO(exported(Drawing(), (fb.rand(3),))))
    assert any(node.op_type.startswith("Random") for node in model.graph.node)
