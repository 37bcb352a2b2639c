"""Families of models, with weights that are none they start with: in onnxruntime and back."""

import io

import pytest

import flambeau as fb
from flambeau import nn
from flambeau.nn import functional as F

pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")


def conv(i, o, k, s=1, groups=1):
    return nn.Sequential(
        nn.Conv2d(i, o, k, s, k // 2, groups=groups, bias=False), nn.BatchNorm2d(o), nn.ReLU(True)
    )


class Residual(nn.Module):
    def __init__(self, i, o, s, groups=1):
        super().__init__()
        self.body = nn.Sequential(
            conv(i, o // 2, 1), conv(o // 2, o // 2, 3, s, groups), conv(o // 2, o, 1)[:2]
        )
        self.skip = conv(i, o, 1, s)[:2] if s != 1 or i != o else nn.Identity()

    def forward(self, x):
        return F.relu(self.body(x) + self.skip(x), inplace=True)


class Dense(nn.Module):
    def __init__(self, i):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(
                nn.BatchNorm2d(i + 4 * n), nn.ReLU(True), nn.Conv2d(i + 4 * n, 4, 3, 1, 1)
            )
            for n in range(3)
        )

    def forward(self, x):
        parts = [x]
        for layer in self.layers:
            parts.append(layer(fb.cat(parts, 1)))
        return F.avg_pool2d(fb.cat(parts, 1), 2, 2)


class Fire(nn.Module):
    def __init__(self, i):
        super().__init__()
        self.squeeze, self.one, self.three = conv(i, 4, 1), conv(4, 8, 1), conv(4, 8, 3)

    def forward(self, x):
        x = self.squeeze(x)
        return fb.cat([self.one(x), self.three(x)], 1)


class Branches(nn.Module):
    def __init__(self, i):
        super().__init__()
        self.one, self.wide = conv(i, 4, 1), nn.Sequential(conv(i, 4, 1), conv(4, 6, 5))
        self.tall = nn.Conv2d(i, 3, (7, 1), padding=(3, 0))
        self.pool = nn.Sequential(nn.MaxPool2d(3, 1, 1, ceil_mode=True), conv(i, 4, 1))

    def forward(self, x):
        more = F.avg_pool2d(x, kernel_size=3, stride=1, padding=1)
        return fb.cat([self.one(x), self.wide(x), self.tall(more), self.pool(x)], 1)


class Shuffled(nn.Module):
    def __init__(self, i):
        super().__init__()
        self.body = nn.Sequential(conv(i // 2, i // 2, 1), conv(i // 2, i // 2, 3, 1, i // 2)[:2])

    def forward(self, x):
        first, second = x.chunk(2, dim=1)
        x = fb.cat((first, self.body(second)), dim=1)
        batch, channels, height, width = x.data.size()
        x = x.view(batch, 2, channels // 2, height, width)
        return fb.transpose(x, 1, 2).contiguous().view(batch, -1, height, width)


def classifier(*body):
    channels = body[-1](body[0](fb.zeros(1, 3, 8, 8)).relu()).shape[1]
    return nn.Sequential(
        *body, nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten(1), nn.Dropout(0.5), nn.Linear(channels, 5)
    )


class Inverted(nn.Module):
    def __init__(self, i):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(i, 2 * i, 1), nn.ReLU6(True), nn.Conv2d(2 * i, 2 * i, 3, 1, 1, groups=2 * i),
            nn.ReLU6(True), nn.Conv2d(2 * i, i, 1), nn.BatchNorm2d(i),
        )  # fmt: skip

    def forward(self, x):
        return x + self.body(x)


class Words(nn.Module):
    """A recurrent language model."""

    def __init__(self, kind):
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.layers = kind(8, 8, 2, dropout=0.3)
        self.head = nn.Linear(8, 20)
        self.head.weight = self.embed.weight

    def forward(self, words, state):
        out, state = self.layers(self.embed(words), state)
        decoded = self.head(out.view(out.size(0) * out.size(1), out.size(2)))
        return F.log_softmax(decoded.view(out.size(0), out.size(1), decoded.size(1)), -1), state


class Block(nn.Module):
    """Of GPT: masked attention and a network, each behind a norm."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )
        self.register_buffer("mask", fb.tril(fb.ones(32, 32)).view(1, 1, 32, 32))

    def forward(self, x):
        b, t, c = x.size()
        q, k, v = (
            part.view(b, t, self.heads, c // self.heads).transpose(1, 2)
            for part in self.qkv(self.ln_1(x)).split(c, dim=2)
        )
        scores = (q @ k.transpose(-2, -1)) * (1.0 / (c // self.heads) ** 0.5)
        scores = scores.masked_fill(self.mask[:, :, :t, :t] == 0, float("-inf"))
        y = (F.softmax(scores, dim=-1) @ v).transpose(1, 2).contiguous().view(b, t, c)
        x = x + self.proj(y)
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(30, 12), nn.Embedding(32, 12)
        self.h = nn.ModuleList(Block(12, 3) for _ in range(2))
        self.ln_f, self.head = nn.LayerNorm(12), nn.Linear(12, 30, bias=False)

    def forward(self, words):
        places = fb.arange(0, words.size(1), dtype=fb.long).unsqueeze(0)
        x = self.wte(words) + self.wpe(places)
        for block in self.h:
            x = block(x)
        return self.head(self.ln_f(x))


class BERT(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(30, 12, padding_idx=0), nn.Embedding(32, 12)
        self.kinds, self.norm = nn.Embedding(2, 12), nn.LayerNorm(12, eps=1e-12)
        self.layers = nn.ModuleList(
            nn.ModuleDict(
                {
                    "query": nn.Linear(12, 12), "key": nn.Linear(12, 12),
                    "value": nn.Linear(12, 12), "out": nn.Linear(12, 12),
                    "norm": nn.LayerNorm(12, eps=1e-12), "wide": nn.Linear(12, 24),
                    "narrow": nn.Linear(24, 12), "last": nn.LayerNorm(12, eps=1e-12),
                }
            )
            for _ in range(2)
        )  # fmt: skip
        self.pooler = nn.Linear(12, 12)

    def forward(self, words, mask, kinds):
        places = fb.arange(words.size(1), device=words.device).unsqueeze(0).expand_as(words)
        x = self.norm(self.words(words) + self.places(places) + self.kinds(kinds))
        away = (1.0 - mask.unsqueeze(1).unsqueeze(2).to(x.dtype)) * -10000.0
        for layer in self.layers:
            q, k, v = (
                layer[name](x).view(*x.size()[:-1], 3, 4).permute(0, 2, 1, 3)
                for name in ("query", "key", "value")
            )
            weights = nn.Softmax(dim=-1)(fb.matmul(q, k.transpose(-1, -2)) / 2.0 + away)
            y = fb.matmul(weights, v).permute(0, 2, 1, 3).contiguous()
            x = layer["norm"](x + layer["out"](y.view(*y.size()[:-2], 12)))
            x = layer["last"](x + layer["narrow"](F.gelu(layer["wide"](x))))
        return x, fb.tanh(self.pooler(x[:, 0]))


def images(n=2):
    return (fb.randn(n, 3, 16, 16),)


def words(t, n):
    return fb.randint(1, 20, (t, n))


def masked(n, t):
    mask = fb.ones(n, t, dtype=fb.long)
    mask[0, -2:] = 0
    return words(n, t), mask, fb.randint(0, 2, (n, t))


BATCH = {0: "batch"}
CASES = {
    "residual": (lambda: classifier(conv(3, 8, 7, 2), Residual(8, 16, 2)), images, BATCH),
    "residual in groups": (lambda: classifier(conv(3, 8, 3), Residual(8, 16, 1, 4)), images, BATCH),
    "dense": (lambda: classifier(conv(3, 8, 3), Dense(8)), images, BATCH),
    "squeezed": (lambda: classifier(conv(3, 8, 3), Fire(8)), images, BATCH),
    "inception": (lambda: classifier(conv(3, 8, 3), Branches(8)), images, BATCH),
    "shuffled": (lambda: classifier(conv(3, 8, 3), Shuffled(8)), images, BATCH),
    "inverted residual": (lambda: classifier(conv(3, 8, 3), Inverted(8)), images, BATCH),
    "LSTM words": (
        lambda: Words(nn.LSTM),
        lambda n=2: (words(5, n), (fb.randn(2, n, 8), fb.randn(2, n, 8))),
        {1: "batch"},
    ),
    "GRU words": (
        lambda: Words(nn.GRU), lambda n=2: (words(5, n), fb.randn(2, n, 8)), {1: "batch"}
    ),
    "encoder": (
        lambda: nn.TransformerEncoder(
            nn.TransformerEncoderLayer(8, 2, 16), 2, nn.LayerNorm(8), enable_nested_tensor=False
        ),
        lambda n=2: (fb.randn(5, n, 8),),
        {1: "batch"},
    ),
    "decoder": (
        lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16), 2),
        lambda n=2: (fb.randn(4, n, 8), fb.randn(6, n, 8)),
        {1: "batch"},
    ),
    "both": (
        lambda: nn.Transformer(8, 2, 1, 2, 16),
        lambda n=2: (fb.randn(6, n, 8), fb.randn(4, n, 8)),
        {1: "batch"},
    ),
    "GPT": (GPT, lambda n=2: (words(n, 5 + n),), {0: "batch", 1: "time"}),
    "BERT": (BERT, lambda n=2: masked(n, 6 + n), {0: "batch", 1: "time"}),
}  # fmt: skip


def tensors(value):
    return [value] if isinstance(value, fb.Tensor) else [t for each in value for t in tensors(each)]


def trained(network):
    """A network with other weights and averages than it starts with."""
    with fb.no_grad():
        for tensor in (*network.parameters(), *network.buffers()):
            if tensor.is_floating_point() and tensor.ndim and tensor.max() != tensor.min():
                tensor.add_(0.05 * fb.randn_like(tensor))
            elif tensor.is_floating_point() and tensor.ndim:
                tensor.add_(0.3 * fb.rand_like(tensor))
    return network.eval()


@pytest.mark.parametrize("name", CASES)
def test_a_model_is_the_same_in_a_runtime_and_to_the_bit_when_it_comes_back(name):
    fb.manual_seed(0)
    make, inputs, axes = CASES[name]
    network, args = trained(make()), inputs()
    names = [f"input{at}" for at in range(len(tensors(args)))]
    file = io.BytesIO()
    fb.onnx.export(network, args, file, input_names=names, dynamic_axes=dict.fromkeys(names, axes))
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    session = runtime.InferenceSession(file.getvalue(), options, providers=["CPUExecutionProvider"])
    again = fb.onnx.load(io.BytesIO(file.getvalue()))
    held = {key for key in network.state_dict() if not key.endswith("num_batches_tracked")}
    if name not in ("LSTM words", "GRU words"):  # one operator, with weights in another order
        shared = {"head.weight"}
        assert held - shared <= set(again.state_dict()) | {f"h.{n}.mask" for n in range(2)}
    for given in (args, inputs(3), inputs(1)):
        feed = dict(zip(names, tensors(given), strict=True))
        with fb.no_grad():
            wanted, back = tensors(network(*given)), tensors(again(**feed))
        found = session.run(None, {key: value.numpy() for key, value in feed.items()})
        for want, own, other in zip(wanted, back, found, strict=True):
            assert fb.equal(own, want), (own - want).abs().max().item()
            off = (fb.from_numpy(other) - want).abs() / want.abs().clamp(min=1)
            assert off.max().item() <= 1e-5
