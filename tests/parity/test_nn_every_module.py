"""Every module of PyTorch agrees: text, state, weights of a seed, results, both derivatives."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as fb

torch = pytest.importorskip("torch")

from oracle import assert_same, ours_of  # noqa: E402


def r(*shape: int, seed: int = 0) -> Any:
    """Normally distributed numbers in float64."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed + sum(shape))).double()


def p(*shape: int) -> Any:
    """Numbers between 0.1 and 0.9."""
    return r(*shape).sigmoid() * 0.8 + 0.1


def n(*values: Any) -> Any:
    return torch.tensor(values)


SIGNS = n(1.0, -1.0, 1.0).double()
POOLED = torch.nn.functional.max_pool2d(r(2, 3, 4, 4), 2, return_indices=True)

# Name: arguments, options, operands; several cases of a class have a suffix after a blank.
CASES: dict[str, tuple[tuple[Any, ...], dict[str, Any], tuple[Any, ...]]] = {
    "AdaptiveAvgPool1d": ((3,), {}, (r(2, 3, 7),)),
    "AdaptiveAvgPool2d": (((3, 2),), {}, (r(2, 3, 7, 6),)),
    "AdaptiveAvgPool3d": (((3, 2, 1),), {}, (r(2, 3, 4, 5, 3),)),
    "AdaptiveMaxPool1d": ((3,), {}, (r(2, 3, 7),)),
    "AdaptiveMaxPool2d": (((3, 2),), {}, (r(2, 3, 7, 6),)),
    "AdaptiveMaxPool3d": (((3, 2, 1),), {}, (r(2, 3, 4, 5, 3),)),
    "AdaptiveLogSoftmaxWithLoss": ((6, 10, [3, 7]), {}, (r(5, 6), n(0, 4, 9, 2, 7))),
    "AlphaDropout": ((0.3,), {}, (r(4, 5),)),
    "AvgPool1d": ((3,), {"padding": 1}, (r(2, 3, 7),)),
    "AvgPool2d": ((2,), {"stride": 1}, (r(2, 3, 5, 4),)),
    "AvgPool3d": ((2,), {}, (r(1, 2, 4, 4, 4),)),
    "BCELoss": ((), {}, (p(3, 4), p(4, 3).T)),
    "BCEWithLogitsLoss": ((), {}, (r(3, 4), p(3, 4))),
    "BatchNorm1d": ((3,), {}, (r(5, 3),)),
    "BatchNorm2d": ((3,), {}, (r(2, 3, 4, 2),)),
    "BatchNorm3d": ((2,), {}, (r(2, 2, 2, 3, 2),)),
    "Bilinear": ((3, 4, 2), {}, (r(5, 3), r(5, 4))),
    "CELU": ((1.5,), {}, (r(3, 4),)),
    "CTCLoss": ((), {}, (r(6, 2, 4).log_softmax(2), n([1, 2, 3], [2, 2, 1]), n(6, 5), n(3, 2))),
    "ChannelShuffle": ((2,), {}, (r(2, 4, 3, 3),)),
    "CircularPad1d": ((2,), {}, (r(2, 3, 5),)),
    "CircularPad2d": (((1, 2, 0, 1),), {}, (r(2, 3, 4, 5),)),
    "CircularPad3d": ((1,), {}, (r(1, 2, 3, 2, 3),)),
    "ConstantPad1d": ((2, 3.5), {}, (r(2, 3, 5),)),
    "ConstantPad2d": (((1, 2, 0, -1), 3.5), {}, (r(2, 3, 4, 5),)),
    "ConstantPad3d": ((1, 3.5), {}, (r(1, 2, 3, 2, 3),)),
    "Conv1d": ((4, 6, 3), {"groups": 2}, (r(2, 4, 7),)),
    "Conv2d": ((3, 4, 2), {"stride": 2, "padding": 1}, (r(2, 3, 5, 4),)),
    "Conv3d": ((2, 3, 2), {}, (r(1, 2, 3, 3, 3),)),
    "ConvTranspose1d": ((4, 6, 3), {"groups": 2}, (r(2, 4, 5),)),
    "ConvTranspose2d": ((3, 4, 2), {"stride": 2}, (r(2, 3, 3, 4),)),
    "ConvTranspose3d": ((2, 3, 2), {}, (r(1, 2, 3, 2, 3),)),
    "CosineEmbeddingLoss": ((0.2,), {}, (r(3, 4), r(3, 4, seed=1), SIGNS)),
    "CosineSimilarity": ((), {}, (r(3, 4), r(3, 4, seed=1))),
    "CrossEntropyLoss": ((), {}, (r(4, 3), n(0, 2, 1, 2))),
    "CrossMapLRN2d": ((3,), {}, (r(2, 5, 3, 3),)),
    "Dropout": ((0.3,), {}, (r(4, 5),)),
    "Dropout1d": ((0.3,), {}, (r(4, 5, 2),)),
    "Dropout2d": ((0.3,), {}, (r(2, 5, 2, 2),)),
    "Dropout3d": ((0.3,), {}, (r(2, 5, 2, 2, 2),)),
    "ELU": ((1.5,), {}, (r(3, 4),)),
    "Embedding": ((5, 3), {"padding_idx": 1}, (n([0, 1, 4], [4, 2, 2]),)),
    "EmbeddingBag": ((5, 3), {}, (n(0, 1, 4, 4, 2), n(0, 2, 2))),
    "FeatureAlphaDropout": ((0.3,), {}, (r(4, 5, 3),)),
    "Flatten": ((), {}, (r(2, 3, 4),)),
    "Fold": (((4, 5), (2, 2)), {}, (r(2, 12, 12),)),
    "FractionalMaxPool2d": ((2,), {"output_size": (2, 3)}, (r(2, 3, 5, 7),)),
    "FractionalMaxPool3d": ((2,), {"output_ratio": 0.6}, (r(1, 2, 5, 6, 5),)),
    "GELU": ((), {}, (r(3, 4),)),
    "GLU": ((), {}, (r(3, 4),)),
    "GRU": ((3, 4), {"num_layers": 2, "bidirectional": True}, (r(5, 2, 3),)),
    "GRUCell": ((3, 4), {}, (r(2, 3), r(2, 4))),
    "GaussianNLLLoss": ((), {}, (r(3, 4), r(3, 4, seed=1), p(3, 4))),
    "GroupNorm": ((2, 4), {}, (r(3, 4, 2),)),
    "Hardshrink": ((), {}, (r(3, 4),)),
    "Hardsigmoid": ((), {}, (r(3, 4) * 3,)),
    "Hardswish": ((), {}, (r(3, 4) * 3,)),
    "Hardtanh": ((), {}, (r(3, 4),)),
    "HingeEmbeddingLoss": ((), {}, (r(3), SIGNS)),
    "HuberLoss": ((), {}, (r(3, 4) * 2, r(3, 4, seed=1))),
    "Identity": ((), {}, (r(3, 4),)),
    "InstanceNorm1d": ((3,), {"affine": True}, (r(2, 3, 4),)),
    "InstanceNorm2d": ((3,), {"track_running_stats": True}, (r(2, 3, 4, 2),)),
    "InstanceNorm3d": ((2,), {}, (r(2, 2, 2, 3, 2),)),
    "KLDivLoss": ((), {"reduction": "batchmean"}, (r(3, 4).log_softmax(1), p(3, 4))),
    "L1Loss": ((), {}, (r(3, 4), r(3, 4, seed=1))),
    "LPPool1d": ((2, 3), {}, (p(2, 3, 7),)),
    "LPPool2d": ((2, 2), {}, (p(2, 3, 4, 5),)),
    "LPPool3d": ((2, 2), {}, (p(1, 2, 4, 4, 4),)),
    "LSTM": ((3, 4), {"proj_size": 2, "batch_first": True}, (r(2, 5, 3),)),
    "LSTMCell": ((3, 4), {}, (r(2, 3),)),
    "LayerNorm": ((4,), {}, (r(3, 4),)),
    "LeakyReLU": ((0.2,), {}, (r(3, 4),)),
    "Linear": ((4, 3), {}, (r(2, 4),)),
    "LocalResponseNorm": ((3,), {}, (r(2, 5, 4),)),
    "LogSigmoid": ((), {}, (r(3, 4),)),
    "LogSoftmax": ((1,), {}, (r(3, 4),)),
    "MSELoss": ((), {}, (r(3, 4), r(3, 4, seed=1))),
    "MarginRankingLoss": ((0.1,), {}, (r(3), r(3, seed=1), SIGNS)),
    "MaxPool1d": ((3,), {"padding": 1}, (r(2, 3, 7),)),
    "MaxPool2d": ((2,), {"stride": 1}, (r(2, 3, 5, 4),)),
    "MaxPool3d": ((2,), {}, (r(1, 2, 4, 4, 4),)),
    "MaxUnpool1d": ((2,), {}, (r(1, 1, 3), n([[1, 2, 4]]))),
    "MaxUnpool2d": ((2,), {}, POOLED),
    "MaxUnpool3d": ((2,), {}, (r(1, 1, 1, 1, 2), n([[[[1, 2]]]]))),
    "Mish": ((), {}, (r(3, 4),)),
    "MultiLabelMarginLoss": ((), {}, (r(2, 4), n([3, 0, -1, 1], [1, -1, 0, 0]))),
    "MultiLabelSoftMarginLoss": ((), {}, (r(2, 4), p(2, 4).round())),
    "MultiMarginLoss": ((), {}, (r(4, 3), n(0, 2, 1, 2))),
    "MultiheadAttention": ((4, 2), {}, (r(3, 2, 4), r(5, 2, 4), r(5, 2, 4, seed=1))),
    "NLLLoss": ((), {}, (r(4, 3).log_softmax(1), n(0, 2, 1, 2))),
    "NLLLoss2d": ((), {}, (r(1, 3, 2, 2).log_softmax(1), n([[0, 2], [1, 2]]))),
    "PReLU": ((3,), {}, (r(2, 3, 4),)),
    "PairwiseDistance": ((), {}, (r(3, 4), r(3, 4, seed=1))),
    "PixelShuffle": ((2,), {}, (r(2, 4, 3, 3),)),
    "PixelUnshuffle": ((2,), {}, (r(2, 2, 4, 6),)),
    "PoissonNLLLoss": ((), {"full": True}, (r(3, 4), p(3, 4) * 5)),
    "RMSNorm": ((4,), {}, (r(3, 4),)),
    "RNN": ((3, 4), {"nonlinearity": "relu"}, (r(5, 2, 3),)),
    "RNNCell": ((3, 4), {}, (r(2, 3), r(2, 4))),
    "RReLU": ((), {}, (r(3, 4),)),
    "ReLU": ((), {}, (r(3, 4),)),
    "ReLU6": ((), {}, (r(3, 4) * 4,)),
    "ReflectionPad1d": ((2,), {}, (r(2, 3, 5),)),
    "ReflectionPad2d": (((1, 2, 0, 1),), {}, (r(2, 3, 4, 5),)),
    "ReflectionPad3d": ((1,), {}, (r(1, 2, 3, 2, 3),)),
    "ReplicationPad1d": ((2,), {}, (r(2, 3, 5),)),
    "ReplicationPad2d": (((1, 2, 0, 1),), {}, (r(2, 3, 4, 5),)),
    "ReplicationPad3d": ((1,), {}, (r(1, 2, 3, 2, 3),)),
    "SELU": ((), {}, (r(3, 4),)),
    "SiLU": ((), {}, (r(3, 4),)),
    "Sigmoid": ((), {}, (r(3, 4),)),
    "SmoothL1Loss": ((), {}, (r(3, 4) * 2, r(3, 4, seed=1))),
    "SoftMarginLoss": ((), {}, (r(3), SIGNS)),
    "Softmax": ((1,), {}, (r(3, 4),)),
    "Softmax2d": ((), {}, (r(2, 3, 2, 2),)),
    "Softmin": ((1,), {}, (r(3, 4),)),
    "Softplus": ((), {}, (r(3, 4),)),
    "Softshrink": ((), {}, (r(3, 4),)),
    "Softsign": ((), {}, (r(3, 4),)),
    "Tanh": ((), {}, (r(3, 4),)),
    "Tanhshrink": ((), {}, (r(3, 4),)),
    "Threshold": ((0.1, 2.0), {}, (r(3, 4),)),
    "Transformer": ((4, 2, 1, 1, 5, 0.0), {}, (r(3, 2, 4), r(2, 2, 4))),
    "TransformerDecoderLayer": ((4, 2, 5, 0.0), {}, (r(3, 2, 4), r(2, 2, 4))),
    "TransformerEncoderLayer": ((4, 2, 5, 0.0), {}, (r(3, 2, 4),)),
    "TripletMarginLoss": ((), {}, (r(3, 4), r(3, 4, seed=1), r(3, 4, seed=2))),
    "TripletMarginWithDistanceLoss": ((), {}, (r(3, 4), r(3, 4, seed=1), r(3, 4, seed=2))),
    "Unflatten": ((1, (2, 3)), {}, (r(2, 6),)),
    "Unfold": (((2, 2),), {}, (r(2, 3, 4, 5),)),
    "Upsample": ((), {"scale_factor": 2, "mode": "bilinear"}, (r(1, 2, 3, 4),)),
    "UpsamplingBilinear2d": ((), {"scale_factor": 2}, (r(1, 2, 3, 4),)),
    "UpsamplingNearest2d": ((), {"scale_factor": 2}, (r(1, 2, 3, 4),)),
    "ZeroPad1d": ((2,), {}, (r(2, 3, 5),)),
    "ZeroPad2d": (((1, 2, 0, 1),), {}, (r(2, 3, 4, 5),)),
    "ZeroPad3d": ((1,), {}, (r(1, 2, 3, 2, 3),)),
}

# Modules of modules, bases, and modules that other files of this folder test: why not here.
ELSEWHERE = {
    "Container": "an alias of Module that PyTorch keeps for old programs",
    "DataParallel": "needs several devices: tests/test_data_parallel.py",
    "LinearCrossEntropyLoss": "newer than what this library follows",
    "Module": "test_nn_modules.py",
    "ModuleDict": "test_nn_modules.py",
    "ModuleList": "test_nn_modules.py",
    "ParameterDict": "test_nn_modules.py",
    "ParameterList": "test_nn_modules.py",
    "RNNBase": "the base of RNN, LSTM and GRU",
    "RNNCellBase": "the base of the cells",
    "Sequential": "test_nn_modules.py",
    "SyncBatchNorm": "PyTorch's runs on accelerators only: test_nn_normalization.py",
    "TransformerDecoder": "a stack of layers: test_attention.py",
    "TransformerEncoder": "a stack of layers: test_attention.py",
}


# PyTorch's gradient of these fails its own gradcheck: ours is compared with finite differences.
WRONG_GRADIENT = {"CrossMapLRN2d"}


def module_names() -> list[str]:
    """The names of the public modules of PyTorch that are not lazy."""
    found = ((name, getattr(torch.nn, name)) for name in dir(torch.nn))
    return [
        name
        for name, kind in found
        if isinstance(kind, type)
        and issubclass(kind, torch.nn.Module)
        and not name.startswith(("_", "Lazy"))
    ]


def test_no_module_is_missing() -> None:
    assert sorted(module_names()) == sorted({*CASES, *ELSEWHERE})
    left_out = {"Container", "LinearCrossEntropyLoss"}
    assert {name for name in module_names() if not hasattr(fb.nn, name)} == left_out


def tensors(result: Any) -> list[Any]:
    """The floating tensors of a result."""
    if isinstance(result, (torch.Tensor, fb.Tensor)):
        return [result] if result.is_floating_point() else []
    if isinstance(result, (tuple, list)):
        return [t for part in result for t in tensors(part)]
    return []


def run(t: Any, layer: Any, operands: Any, twice: bool) -> list[list[Any]]:
    """Results; their derivative by operands and parameters; a derivative of that."""
    given = [o.clone() if t is torch else ours_of(o) for o in operands]
    leaves = [
        mine.requires_grad_()
        for mine, o in zip(given, operands, strict=True)
        if o.is_floating_point() and o is not SIGNS  # signs are classes
    ]
    leaves += layer.parameters()
    t.manual_seed(17)
    results = tensors(layer(*given))

    def weighted(values: Any) -> Any:
        total = 0.0
        for value in values:
            if value is not None and value.requires_grad:
                factor = t.arange(1.0, value.numel() + 1).double().cos().reshape(value.shape)
                total = total + (value * factor).sum()
        return total

    loss = weighted(results)
    first = t.autograd.grad(loss, leaves, create_graph=twice, allow_unused=True)
    second: list[Any] = []
    if twice and isinstance(again := weighted(first), t.Tensor) and again.requires_grad:
        second = list(t.autograd.grad(again, leaves, allow_unused=True))
    return [results, list(first), second]


def same(ours: list[Any], theirs: list[Any], tolerance: float) -> None:
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        if a is None or b is None:
            rest = [x for x in (a, b) if x is not None]
            assert all(not x.detach().any() for x in rest)  # None is a gradient of zeros
        else:
            assert_same(a.detach(), b.detach(), tolerance)


def pair(name: str) -> tuple[Any, Any]:
    args, options, _ = CASES[name]
    made = []
    for t in (torch, fb):
        t.manual_seed(7)
        made.append(getattr(t.nn, name)(*args, **options))
    return made[0], made[1]


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("name", CASES)
def test_text_state_and_weights_of_a_seed_agree(name: str) -> None:
    there, here = pair(name)
    assert repr(here) == repr(there)
    assert list(here.state_dict()) == list(there.state_dict())
    assert here.state_dict()._metadata == there.state_dict()._metadata
    for key, value in there.state_dict().items():
        assert_same(here.state_dict()[key], value, 1e-6)
    for listed in ("named_parameters", "named_buffers", "named_modules"):
        names = [[key for key, _ in getattr(layer, listed)()] for layer in (there, here)]
        assert names[0] == names[1]


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_results_and_derivatives_agree(name: str, training: bool) -> None:
    there, here = (layer.double().train(training) for layer in pair(name))
    here.load_state_dict({k: ours_of(v) for k, v in there.state_dict().items()})
    operands = CASES[name][2]
    try:
        expected, twice = run(torch, there, operands, True), True
    except RuntimeError as error:
        # PyTorch has no second one.
        if not any(word in str(error) for word in ("derivative", "differentiation")):
            raise
        there.load_state_dict({k: torch.tensor(v.tolist()) for k, v in here.state_dict().items()})
        expected, twice = run(torch, there, operands, False), False
    found = run(fb, here, operands, twice)
    same(found[0], expected[0], 1e-9)
    if name in WRONG_GRADIENT:
        (x,) = operands
        leaf = x.clone().requires_grad_()
        assert not torch.autograd.gradcheck(there, (leaf,), raise_exception=False)
        assert fb.autograd.gradcheck(here, (ours_of(x).requires_grad_(),))
        return
    same(found[1], expected[1], 1e-8)
    if expected[2]:
        same(found[2] or [None] * len(expected[2]), expected[2], 1e-7)
    for key, value in there.state_dict().items():  # running statistics
        assert_same(here.state_dict()[key], value, 1e-9)
