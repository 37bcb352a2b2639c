"""Modules that go to ONNX, come back and go again: names, dtypes and bits stay."""

import io

import pytest

import flambeau as fb
from flambeau import nn

onnx = pytest.importorskip("onnx")


def sizes(*shape):
    return lambda: (fb.randn(shape),)


def several(*shapes):
    return lambda: tuple(fb.randn(shape) for shape in shapes)


class Held(nn.Module):
    """Weights and buffers of several dtypes, with and without dimensions."""

    def __init__(self):
        super().__init__()
        self.weight, self.scale = nn.Parameter(fb.randn(3, 4)), nn.Parameter(fb.tensor(2.5))
        self.register_buffer("places", fb.arange(4))
        self.register_buffer("halves", fb.randn(4).half())
        self.register_buffer("mask", fb.tensor([True, False, True, True]))
        self.register_buffer("small", fb.tensor([1, 2, 3, 255], dtype=fb.uint8))
        self.register_buffer("doubles", fb.randn(4, dtype=fb.float64))
        self.parts = nn.ModuleDict({"a": nn.ModuleList([nn.Linear(4, 4)])})

    def forward(self, x):
        given = x + self.places + self.halves.float() + self.mask + self.small
        return given @ self.weight.t() * self.scale, self.parts["a"][0](x), x + self.doubles


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Embedding(5, 4), nn.Linear(4, 5, bias=False)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.second(self.first(x))


def places(*shape):
    return lambda: (fb.randint(0, 5, shape),)


ROUNDED = """bilinear group_norm rms_norm tiny_encoder adaptive_average norm_without_averages cosine
    gelu""".split()
"""Written in several steps: the last digit may differ."""

MODULES = {
    "linear": (nn.Linear(4, 3), sizes(2, 4)),
    "linear_without_bias": (nn.Linear(4, 3, bias=False), sizes(2, 3, 4)),
    "linear_of_a_vector": (nn.Linear(4, 3), sizes(4)),
    "bilinear": (nn.Bilinear(4, 3, 2), several((5, 4), (5, 3))),
    "convolution1": (nn.Conv1d(3, 4, 3, padding=1), sizes(2, 3, 8)),
    "convolution2": (nn.Conv2d(4, 6, 3, 2, 1, groups=2, bias=False), sizes(1, 4, 8, 8)),
    "convolution3": (nn.Conv3d(2, 3, 2, dilation=2), sizes(1, 2, 5, 5, 5)),
    "convolution_same": (nn.Conv2d(2, 3, 3, padding="same"), sizes(1, 2, 6, 6)),
    "convolution_reflected": (
        nn.Conv2d(2, 3, 3, padding=1, padding_mode="reflect"),
        sizes(1, 2, 6, 6),
    ),
    "transposed1": (nn.ConvTranspose1d(3, 4, 3, 2, 1, 1), sizes(2, 3, 8)),
    "transposed2": (nn.ConvTranspose2d(4, 6, 3, 2, groups=2), sizes(1, 4, 5, 5)),
    "transposed3": (nn.ConvTranspose3d(2, 3, 2), sizes(1, 2, 4, 4, 4)),
    "norm1": (nn.BatchNorm1d(4), sizes(3, 4)),
    "norm2": (nn.BatchNorm2d(4, affine=False), sizes(3, 4, 5, 5)),
    "norm3": (nn.BatchNorm3d(4), sizes(1, 4, 2, 2, 2)),
    "norm_without_averages": (
        nn.BatchNorm2d(4, track_running_stats=False),
        sizes(3, 4, 5, 5),
    ),
    "instance_norm": (nn.InstanceNorm2d(4, affine=True), sizes(3, 4, 5, 5)),
    "layer_norm": (nn.LayerNorm(4), sizes(3, 4)),
    "layer_norm_plain": (nn.LayerNorm((3, 4), elementwise_affine=False), sizes(2, 3, 4)),
    "rms_norm": (nn.RMSNorm(4), sizes(3, 4)),
    "group_norm": (nn.GroupNorm(2, 4), sizes(3, 4, 5)),
    "response_norm": (nn.LocalResponseNorm(2), sizes(1, 4, 5, 5)),
    "embedding": (nn.Embedding(5, 3, padding_idx=1), places(2, 4)),
    "bag": (nn.EmbeddingBag(5, 3), places(2, 4)),
    "bag_of_largest": (
        nn.EmbeddingBag(5, 3, mode="max"),
        lambda: (*places(6)(), fb.tensor([0, 2])),
    ),
    "lstm": (nn.LSTM(3, 4), sizes(5, 2, 3)),
    "lstm_both": (nn.LSTM(3, 4, 2, bidirectional=True, batch_first=True), sizes(2, 5, 3)),
    "lstm_without_bias": (nn.LSTM(3, 4, bias=False), sizes(5, 2, 3)),
    "gru": (nn.GRU(3, 4, 2), sizes(5, 2, 3)),
    "gru_both": (nn.GRU(3, 4, bidirectional=True), several((5, 2, 3), (2, 2, 4))),
    "rnn": (nn.RNN(3, 4), sizes(5, 2, 3)),
    "rnn_relu": (nn.RNN(3, 4, nonlinearity="relu", bidirectional=True), sizes(5, 2, 3)),
    "lstm_cell": (nn.LSTMCell(3, 4), sizes(2, 3)),
    "gru_cell": (nn.GRUCell(3, 4), sizes(2, 3)),
    "rnn_cell": (nn.RNNCell(3, 4), sizes(2, 3)),
    "attention": (nn.MultiheadAttention(4, 2), several(*[(3, 2, 4)] * 3)),
    "attention_of_others": (
        nn.MultiheadAttention(4, 2, kdim=3, vdim=5, batch_first=True),
        several((2, 3, 4), (2, 6, 3), (2, 6, 5)),
    ),
    "attention_with_more": (
        nn.MultiheadAttention(4, 2, add_bias_kv=True, add_zero_attn=True),
        several(*[(3, 2, 4)] * 3),
    ),
    "tiny_encoder": (nn.TransformerEncoderLayer(4, 2, 8), sizes(3, 2, 4)),
    "encoder": (nn.TransformerEncoderLayer(64, 4, 128), sizes(7, 3, 64)),
    "decoder": (nn.TransformerDecoderLayer(64, 4, 128), several((7, 3, 64), (5, 3, 64))),
    "prelu": (nn.PReLU(3), sizes(2, 3, 4)),
    "largest": (nn.MaxPool2d(2), sizes(1, 2, 8, 8)),
    "largest_and_where": (nn.MaxPool2d(2, return_indices=True), sizes(1, 2, 8, 8)),
    "average": (nn.AvgPool2d(2, 1, 1), sizes(1, 2, 8, 8)),
    "adaptive_average": (nn.AdaptiveAvgPool2d(3), sizes(1, 2, 8, 8)),
    "adaptive_largest": (nn.AdaptiveMaxPool1d(2), sizes(1, 2, 8)),
    "paddings": (
        nn.Sequential(nn.ReflectionPad2d(1), nn.ReplicationPad2d((1, 0, 2, 0)), nn.ZeroPad2d(1)),
        sizes(1, 2, 4, 4),
    ),
    "upsampled": (nn.Upsample(scale_factor=2), sizes(1, 2, 4, 4)),
    "bilinear_image": (
        nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True),
        sizes(1, 2, 4, 4),
    ),
    "bicubic_image": (nn.Upsample(size=7, mode="bicubic"), sizes(1, 2, 4, 4)),
    "shuffled": (nn.Sequential(nn.PixelShuffle(2), nn.PixelUnshuffle(2)), sizes(1, 4, 4, 4)),
    "windows": (nn.Unfold(2), sizes(1, 2, 4, 4)),
    "flattened": (nn.Sequential(nn.Flatten(), nn.Unflatten(1, (2, 6))), sizes(2, 3, 4)),
    "softmax": (nn.Softmax(1), sizes(2, 3)),
    "log_softmax": (nn.LogSoftmax(1), sizes(2, 3)),
    "spectral": (nn.utils.spectral_norm(nn.Conv2d(2, 3, 3)), sizes(1, 2, 5, 5)),
    "cosine": (nn.CosineSimilarity(), several((2, 4), (2, 4))),
    "held": (Held(), sizes(2, 4)),
    "shared": (Shared(), places(2, 3)),
    "glu": (nn.GLU(), sizes(2, 4)),
    "selu": (nn.SELU(), sizes(2, 4)),
    "celu": (nn.CELU(), sizes(2, 4)),
    "gelu": (nn.GELU(), sizes(2, 4)),
    "hardsigmoid": (nn.Hardsigmoid(), sizes(2, 4)),
    "hardswish": (nn.Hardswish(), sizes(2, 4)),
    "softplus": (nn.Softplus(), sizes(2, 4)),
    "mish": (nn.Mish(), sizes(2, 4)),
    "silu": (nn.SiLU(), sizes(2, 4)),
    "leaky": (nn.LeakyReLU(0.1), sizes(2, 4)),
    "threshold": (nn.Threshold(0.1, 2.0), sizes(2, 4)),
    "softshrink": (nn.Softshrink(), sizes(2, 4)),
}


def flat(value):
    if isinstance(value, fb.Tensor):
        return [value]
    return [each for part in value for each in flat(part)]


def described(data):
    """Weights with dtype and bits, inputs and outputs with dtype and sizes, nodes."""
    graph = onnx.load_from_string(data).graph
    weights = {
        t.name: (t.data_type, tuple(t.dims), onnx.numpy_helper.to_array(t).tobytes())
        for t in graph.initializer
    }
    ends = [each.SerializeToString() for each in (*graph.input, *graph.output)]
    return weights, ends, [node.op_type for node in graph.node]


@pytest.mark.parametrize("dynamic", [False, True], ids=["as it was", "written anew"])
@pytest.mark.parametrize("name", MODULES)
def test_what_goes_to_onnx_comes_back_and_goes_again_as_it_was(name, dynamic):
    fb.manual_seed(0)
    model, made = MODULES[name]
    model, given = model.eval(), made()
    names = [f"given{at}" for at in range(len(given))]
    state = model.state_dict()

    def written(program, **options):
        file = io.BytesIO()
        fb.onnx.export(program, given, file, opset_version=18, input_names=names, **options)
        return file.getvalue()

    first = written(model)
    back = fb.onnx.load(io.BytesIO(first)).eval()
    weights, ends, nodes = described(first)
    own = back.state_dict()
    for key in weights:
        if key in state:
            assert own[key].dtype is state[key].dtype and fb.equal(own[key], state[key])
    shared = {id(p) for p in model.parameters()}
    assert sum(key in state for key in weights) >= len(shared)
    # With dynamic axes, of which there are none, the model is walked as a program is.
    second = written(back, **({"dynamic_axes": {}} if dynamic else {}))
    again = described(second)
    assert again[0] == weights and again[1] == ends
    if not dynamic:
        assert again[2] == nodes
    with fb.no_grad():
        wanted = flat(model(*given))
        for program in (back, fb.onnx.load(io.BytesIO(second)).eval()):
            for want, got in zip(wanted, flat(program(*given)), strict=True):
                assert want.dtype is got.dtype and want.shape == got.shape
                if name in ROUNDED:
                    assert fb.allclose(want, got, rtol=1e-6, atol=1e-6)
                else:
                    assert fb.equal(want, got)


@pytest.mark.parametrize("opset", [9, 11, 18])
@pytest.mark.parametrize("options", [{"scale_factor": 2}, {"scale_factor": 1.5}, {"size": (8, 9)}])
def test_an_imported_image_is_resampled_at_any_size_within_another_module(options, opset):
    if opset == 9 and "size" in options:  # the operator takes factors alone
        options = {"scale_factor": (2.0, 3.0)}
    model, x = nn.Upsample(**options), fb.randn(1, 2, 4, 5)
    axes = {"input_names": ["x"], "dynamic_axes": {"x": [2, 3]}, "opset_version": opset}

    def back(program):
        file = io.BytesIO()
        fb.onnx.export(program, x, file, **axes)
        return fb.onnx.load(io.BytesIO(file.getvalue()))

    again = back(nn.Sequential(back(model)))
    for image in (x, fb.randn(1, 2, 6, 8)):
        assert fb.equal(again(image), model(image))


def test_a_size_of_adaptive_pooling_that_depends_on_the_input_is_refused_with_its_line():
    with pytest.raises(fb.onnx.OnnxExporterError, match="adaptive_avg_pool2d.*a size depends"):
        fb.onnx.export(
            nn.Upsample(scale_factor=0.5, mode="area"),
            fb.randn(1, 2, 4, 4),
            io.BytesIO(),
            input_names=["x"],
            dynamic_axes={"x": [2, 3]},
        )
