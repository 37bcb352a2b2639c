"""Layers agree with PyTorch: weights of a seed, state, repr, outputs, gradients and errors."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import flambeau as fb  # noqa: E402

# (class, arguments, options, shapes of the inputs); lists among the options are tensors.
LAYERS: list[tuple[str, tuple[Any, ...], dict[str, Any], list[tuple[int, ...]]]] = [
    ("Identity", (), {}, [(3, 4)]),
    ("Linear", (4, 3), {}, [(5, 4)]),
    ("Linear", (4, 3), {"bias": False}, [(2, 5, 4)]),
    ("Linear", (4, 3), {}, [(4,)]),
    ("Bilinear", (4, 3, 5), {}, [(2, 4), (2, 3)]),
    ("Bilinear", (4, 3, 5), {"bias": False}, [(4,), (3,)]),
    ("Conv1d", (4, 6, 3), {"stride": 2, "padding": 1}, [(2, 4, 9)]),
    ("Conv1d", (4, 6, 3), {"padding": "same", "groups": 2}, [(4, 9)]),
    ("Conv2d", (3, 4, 3), {}, [(2, 3, 7, 8)]),
    ("Conv2d", (3, 4, (2, 3)), {"stride": (2, 1), "padding": (1, 2)}, [(2, 3, 7, 8)]),
    ("Conv2d", (4, 4, 3), {"groups": 4, "dilation": 2, "bias": False}, [(1, 4, 9, 9)]),
    ("Conv2d", (4, 6, 3), {"groups": 2}, [(4, 6, 6)]),
    ("Conv2d", (3, 4, (2, 5)), {"padding": "same", "dilation": (3, 1)}, [(1, 3, 7, 8)]),
    ("Conv2d", (3, 4, 3), {"padding": "valid"}, [(1, 3, 7, 8)]),
    ("Conv2d", (3, 4, 3), {"padding": (1, 2), "padding_mode": "reflect"}, [(1, 3, 7, 8)]),
    ("Conv2d", (3, 4, 3), {"padding": 2, "padding_mode": "replicate"}, [(1, 3, 7, 8)]),
    ("Conv2d", (3, 4, 4), {"padding": "same", "padding_mode": "circular"}, [(1, 3, 7, 8)]),
    ("BatchNorm1d", (3,), {}, [(5, 3)]),
    ("BatchNorm1d", (3,), {"momentum": None}, [(5, 3, 2)]),
    ("BatchNorm1d", (3,), {"affine": False, "eps": 0.1}, [(5, 3)]),
    ("BatchNorm2d", (3,), {"track_running_stats": False}, [(2, 3, 4, 5)]),
    ("BatchNorm2d", (3,), {"momentum": 0.3}, [(2, 3, 4, 5)]),
    ("BatchNorm3d", (2,), {}, [(2, 2, 3, 2, 2)]),
    ("MaxPool1d", (3,), {"stride": 2, "padding": 1}, [(2, 3, 9)]),
    ("MaxPool2d", (2,), {}, [(2, 3, 7, 8)]),
    ("MaxPool2d", ((3, 2),), {"stride": (2, 1), "padding": 1, "dilation": (1, 2)}, [(3, 7, 8)]),
    ("MaxPool2d", (3,), {"stride": 2, "ceil_mode": True}, [(1, 2, 8, 8)]),
    ("AvgPool1d", (3,), {"stride": 2, "padding": 1}, [(2, 3, 9)]),
    ("AvgPool2d", (2,), {}, [(2, 3, 7, 8)]),
    ("AvgPool2d", ((3, 2),), {"padding": 1, "count_include_pad": False}, [(2, 3, 7, 8)]),
    ("AvgPool2d", (3,), {"stride": 2, "ceil_mode": True, "padding": 1}, [(3, 8, 8)]),
    ("AvgPool2d", (2,), {"divisor_override": 3}, [(1, 3, 4, 4)]),
    ("AdaptiveAvgPool1d", (4,), {}, [(2, 3, 9)]),
    ("AdaptiveAvgPool2d", (1,), {}, [(2, 3, 7, 8)]),
    ("AdaptiveAvgPool2d", ((3, None),), {}, [(3, 7, 8)]),
    ("AdaptiveAvgPool2d", ((7, 4),), {}, [(2, 3, 7, 8)]),
    ("AdaptiveAvgPool2d", ((9, 3),), {}, [(2, 3, 7, 8)]),
    ("ReLU", (), {}, [(3, 4)]),
    ("ReLU", (), {"inplace": True}, [(3, 4)]),
    ("ReLU6", (), {}, [(3, 4)]),
    ("LeakyReLU", (0.2,), {}, [(3, 4)]),
    ("LeakyReLU", (), {"inplace": True}, [(3, 4)]),
    ("PReLU", (), {}, [(3, 4)]),
    ("PReLU", (4,), {"init": 0.5}, [(3, 4, 2)]),
    ("RReLU", (), {}, [(3, 4)]),
    ("ELU", (1.5,), {}, [(3, 4)]),
    ("ELU", (), {"inplace": True}, [(3, 4)]),
    ("SELU", (), {}, [(3, 4)]),
    ("CELU", (2.0,), {}, [(3, 4)]),
    ("GELU", (), {}, [(3, 4)]),
    ("GELU", (), {"approximate": "tanh"}, [(3, 4)]),
    ("SiLU", (), {}, [(3, 4)]),
    ("SiLU", (), {"inplace": True}, [(3, 4)]),
    ("Mish", (), {}, [(3, 4)]),
    ("Sigmoid", (), {}, [(3, 4)]),
    ("LogSigmoid", (), {}, [(3, 4)]),
    ("Tanh", (), {}, [(3, 4)]),
    ("Softplus", (), {"beta": 2.0, "threshold": 1.0}, [(3, 4)]),
    ("Softsign", (), {}, [(3, 4)]),
    ("GLU", (), {"dim": 0}, [(4, 3)]),
    ("Threshold", (0.1, 20.0), {}, [(3, 4)]),
    ("Threshold", (0.1, 20.0), {"inplace": True}, [(3, 4)]),
    ("Hardtanh", (-0.5, 0.7), {}, [(3, 4)]),
    ("Hardtanh", (), {"inplace": True}, [(3, 4)]),
    ("Hardsigmoid", (), {}, [(3, 4)]),
    ("Hardswish", (), {}, [(3, 4)]),
    ("Hardshrink", (), {}, [(3, 4)]),
    ("Softshrink", (0.3,), {}, [(3, 4)]),
    ("Tanhshrink", (), {}, [(3, 4)]),
    ("Softmax", (), {"dim": 1}, [(3, 4)]),
    ("Softmin", (), {"dim": 0}, [(3, 4)]),
    ("LogSoftmax", (), {"dim": -1}, [(3, 4)]),
    ("Softmax2d", (), {}, [(2, 3, 4, 4)]),
    ("Flatten", (), {}, [(2, 3, 4)]),
    ("Flatten", (0, 1), {}, [(2, 3, 4)]),
    ("Unflatten", (1, (2, 3)), {}, [(2, 6, 4)]),
    ("Dropout", (0.3,), {}, [(4, 5)]),
    ("Dropout", (), {"inplace": True}, [(4, 5)]),
    ("Dropout", (0.0,), {}, [(4, 5)]),
    ("Dropout", (1.0,), {}, [(4, 5)]),
    ("Dropout1d", (0.3,), {}, [(4, 5, 2)]),
    ("Dropout1d", (0.3,), {}, [(5, 2)]),
    ("Dropout2d", (0.3,), {}, [(2, 5, 2, 2)]),
    ("Dropout3d", (0.3,), {}, [(5, 2, 2, 2)]),
    ("AlphaDropout", (0.3,), {}, [(4, 5)]),
    ("FeatureAlphaDropout", (0.3,), {}, [(4, 5, 3)]),
]

CLASSES = [0, 2, 1, 2]
PROBABILITIES = [[0.1, 0.2, 0.7], [0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.3, 0.3, 0.4]]
WEIGHT = [0.2, 0.5, 2.0]
IMAGE = [[[0, 1], [2, -100]], [[1, 1], [0, 2]]]

# (class, options, shape of the input, target)
LOSSES: list[tuple[str, dict[str, Any], tuple[int, ...], Any]] = [
    ("NLLLoss", {}, (4, 3), CLASSES),
    ("NLLLoss", {"weight": WEIGHT, "ignore_index": 2}, (4, 3), CLASSES),
    ("NLLLoss", {}, (3,), 1),
    ("NLLLoss", {"weight": WEIGHT}, (2, 3, 2, 2), IMAGE),
    ("CrossEntropyLoss", {}, (4, 3), CLASSES),
    ("CrossEntropyLoss", {"ignore_index": 2}, (4, 3), CLASSES),
    ("CrossEntropyLoss", {"weight": WEIGHT}, (4, 3), CLASSES),
    ("CrossEntropyLoss", {"label_smoothing": 0.2}, (4, 3), CLASSES),
    ("CrossEntropyLoss", {"label_smoothing": 0.2, "weight": WEIGHT}, (4, 3), CLASSES),
    ("CrossEntropyLoss", {"label_smoothing": 0.2, "ignore_index": 2}, (4, 3), CLASSES),
    ("CrossEntropyLoss", {}, (3,), 1),
    ("CrossEntropyLoss", {"label_smoothing": 0.2, "weight": WEIGHT}, (3,), 1),
    ("CrossEntropyLoss", {}, (2, 3, 2, 2), IMAGE),
    ("CrossEntropyLoss", {"label_smoothing": 0.2, "weight": WEIGHT}, (2, 3, 2, 2), IMAGE),
    ("CrossEntropyLoss", {}, (4, 3), PROBABILITIES),
    ("CrossEntropyLoss", {"weight": WEIGHT, "label_smoothing": 0.1}, (4, 3), PROBABILITIES),
    ("CrossEntropyLoss", {}, (3,), PROBABILITIES[0]),
    ("MSELoss", {}, (4, 3), PROBABILITIES),
    ("L1Loss", {}, (4, 3), PROBABILITIES),
    ("SmoothL1Loss", {}, (4, 3), PROBABILITIES),
    ("SmoothL1Loss", {"beta": 0.3}, (4, 3), PROBABILITIES),
    ("SmoothL1Loss", {"beta": 0.0}, (4, 3), PROBABILITIES),
    ("HuberLoss", {"delta": 0.4}, (4, 3), PROBABILITIES),
    ("BCEWithLogitsLoss", {}, (4, 3), PROBABILITIES),
    ("BCEWithLogitsLoss", {"weight": WEIGHT, "pos_weight": WEIGHT}, (4, 3), PROBABILITIES),
]


def values(tensor: Any) -> list[float]:
    return tensor.detach().double().flatten().tolist()


def same(here: Any, there: Any, tolerance: float = 1e-5) -> None:
    """Equal shape, dtype and, within rounding, values."""
    assert tuple(here.shape) == tuple(there.shape)
    assert str(here.dtype) == str(there.dtype)
    assert values(here) == pytest.approx(values(there), rel=tolerance, abs=tolerance, nan_ok=True)


def made(
    lib: Any, name: str, args: tuple[Any, ...] = (), options: dict[str, Any] | None = None
) -> Any:
    """A layer with the weights of a seed."""
    lib.manual_seed(7)
    given = {k: lib.tensor(v) if isinstance(v, list) else v for k, v in (options or {}).items()}
    return getattr(lib.nn, name)(*args, **given)


def inputs(lib: Any, shapes: list[tuple[int, ...]]) -> list[Any]:
    lib.manual_seed(13)
    return [lib.randn(shape).requires_grad_() for shape in shapes]


def run(lib: Any, layer: Any, given: list[Any]) -> tuple[Any, list[Any]]:
    """The output, and the gradients of its weighted sum for inputs and parameters."""
    lib.manual_seed(17)
    # In-place layers must not write into a leaf.
    output = layer(*[tensor * 1.0 for tensor in given])
    weights = lib.arange(1.0, output.numel() + 1).reshape(output.shape)
    wanted = [*given, *layer.parameters()]
    return output, list(lib.autograd.grad((output * weights).sum(), wanted, allow_unused=True))


def ids(case: Any) -> str:
    return " ".join(str(part) for part in case[:3])


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
@pytest.mark.parametrize("case", LAYERS, ids=ids)
def test_layer_agrees(case):
    name, args, options, shapes = case
    here, there = made(fb, name, args, options), made(torch, name, args, options)
    assert repr(here) == repr(there)
    assert list(here.state_dict()) == list(there.state_dict())
    for key, value in there.state_dict().items():
        same(here.state_dict()[key], value, 2e-7)
    for training in (True, False, True):
        here.train(training)
        there.train(training)
        output, gradients = run(fb, here, inputs(fb, shapes))
        expected, expected_gradients = run(torch, there, inputs(torch, shapes))
        same(output, expected)
        for gradient, wanted in zip(gradients, expected_gradients, strict=True):
            assert (gradient is None) == (wanted is None)
            if wanted is not None:
                same(gradient, wanted, 1e-4)
        for key, value in there.state_dict().items():  # running statistics
            same(here.state_dict()[key], value)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("case", LOSSES, ids=ids)
def test_loss_agrees(case, reduction):
    name, options, shape, target = case
    options = {**options, "reduction": reduction}
    results = []
    for lib in (fb, torch):
        loss = made(lib, name, (), options)
        (given,) = inputs(lib, [shape])
        scores = given.log_softmax(-1 if len(shape) < 2 else 1) if name == "NLLLoss" else given
        result = loss(scores, lib.tensor(target))
        results.append((result, lib.autograd.grad(result.sum(), given)[0]))
    (here, gradient), (there, expected) = results
    same(here, there)
    same(gradient, expected)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_binary_cross_entropy_agrees_where_probabilities_are_exact(reduction, weight):
    results = []
    for lib in (fb, torch):
        loss = made(lib, "BCELoss", (), {"weight": weight, "reduction": reduction})
        given = lib.tensor([[0.0, 1.0, 0.3], [1.0, 0.0, 1e-30]], requires_grad=True)
        target = lib.tensor([[0.0, 1.0, 0.3], [0.0, 1.0, 0.5]], requires_grad=True)
        result = loss(given, target)
        results.append((result, *lib.autograd.grad(result.sum(), [given, target])))
    for here, there in zip(*results, strict=True):
        same(here, there)


KINKS = [-3.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 3.0, 6.0, float("inf"), float("-inf"), float("nan")]
POINTWISE = [
    *["ReLU", "ReLU6", "LeakyReLU", "ELU", "SELU", "CELU", "GELU", "Sigmoid", "Tanh", "Softplus"],
    *["SiLU", "Hardtanh", "Hardsigmoid", "Hardshrink", "Softshrink", "LogSigmoid", "PReLU"],
]


@pytest.mark.parametrize("name", POINTWISE)
def test_activation_agrees_at_kinks_and_infinities(name):
    results = []
    for lib in (fb, torch):
        given = lib.tensor(KINKS, requires_grad=True)
        output = made(lib, name)(given)
        results.append((output, lib.autograd.grad(output.sum(), given)[0]))
    (here, gradient), (there, expected) = results
    # PyTorch's vectorised GELU makes nan of inf, its scalar one does not.
    known = [i for i in range(len(KINKS)) if name != "GELU" or i != KINKS.index(float("inf"))]
    same(here[known], there[known])
    # At infinity some formulas have a derivative of nan where others have its limit.
    same(gradient[:9], expected[:9])


PADS = [
    ((3, 4), (1, 2), "constant"),
    ((3, 4), (1, 2, 0, 3), "constant"),
    ((3, 4), (-1, 2, 1, -2), "constant"),
    ((2, 0), (1, 2), "constant"),
    ((2, 5), (4, 3), "reflect"),
    ((1, 2, 5, 4), (3, 1, 0, 4), "reflect"),
    ((1, 1, 3, 3, 3), (1, 2, 2, 0, 1, 1), "reflect"),
    ((2, 5), (7, 0), "replicate"),
    ((1, 2, 5, 4), (1, 2, 3, 0), "replicate"),
    ((2, 5), (5, 3), "circular"),
    ((1, 2, 5, 4), (4, 1, 0, 5), "circular"),
    ((1, 2, 5, 4), (-1, 2, 1, -2), "reflect"),
    ((1, 2, 5, 4), (-1, 2, 1, -2), "replicate"),
    ((1, 2, 5, 4), (-1, 2, 1, -2), "circular"),
]


@pytest.mark.parametrize(("shape", "pad", "mode"), PADS, ids=str)
def test_pad_agrees(shape, pad, mode):
    results = []
    for lib in (fb, torch):
        (given,) = inputs(lib, [shape])
        output = lib.nn.functional.pad(given, pad, mode)
        weights = lib.arange(1.0, output.numel() + 1).reshape(output.shape)
        results.append((output, lib.autograd.grad((output * weights).sum(), given)[0]))
    (here, gradient), (there, expected) = results
    same(here, there)
    same(gradient, expected)


@pytest.mark.parametrize("ceil_mode", [False, True])
def test_max_pool_indices_agree(ceil_mode):
    results = []
    for lib in (fb, torch):
        (given,) = inputs(lib, [(2, 3, 7, 8)])
        results.append(lib.nn.functional.max_pool2d(given, 3, 2, 1, 1, ceil_mode, True))
    for here, there in zip(*results, strict=True):
        same(here, there)


def x(lib: Any, *shape: int) -> Any:
    return lib.zeros(shape)


def long(lib: Any, *numbers: int) -> Any:
    return lib.tensor(list(numbers))


# The call and as much of PyTorch's text as is a fact and not a choice of words.
ERRORS: list[tuple[Any, str]] = [
    (lambda t: t.nn.Linear(3, 2)(x(t, 2, 4)), "cannot be multiplied"),
    (lambda t: t.nn.Conv2d(3, 4, 3, groups=2), "in_channels must be divisible by groups"),
    (lambda t: t.nn.Conv2d(4, 3, 3, groups=2), "out_channels must be divisible by groups"),
    (lambda t: t.nn.Conv2d(3, 3, 3, groups=0), "groups must be a positive integer"),
    (lambda t: t.nn.Conv2d(3, 4, 3, padding="full"), "Invalid padding string"),
    (lambda t: t.nn.Conv2d(3, 4, 3, padding="same", stride=2), "strided convolutions"),
    (lambda t: t.nn.Conv2d(3, 4, 3, padding_mode="odd"), "padding_mode must be one of"),
    (lambda t: t.nn.Conv2d(3, 4, 3)(x(t, 1, 2, 5, 5)), "to have 3 channels, but got 2 channels"),
    (lambda t: t.nn.Conv2d(3, 4, 3)(x(t, 5, 5)), "Expected 3D (unbatched) or 4D (batched) input"),
    (lambda t: t.nn.Conv2d(3, 4, 3)(x(t, 1, 3, 2, 5)), "can't be greater than actual input size"),
    (lambda t: t.nn.functional.conv2d(x(t, 1, 1, 3, 3), x(t, 1, 1, 2, 2), x(t, 2)), "bias"),
    (lambda t: t.nn.functional.conv2d(x(t, 1, 1, 3, 3), x(t, 1, 1, 2, 2), stride=0), "stride"),
    (lambda t: t.nn.functional.conv2d(x(t, 1, 1, 3, 3), x(t, 1, 1, 2, 2), padding=-1), "padding"),
    (
        lambda t: t.nn.functional.conv2d(x(t, 1, 1, 3, 3), x(t, 1, 1, 2, 2), stride=(1, 1, 1)),
        "stride",
    ),
    (lambda t: t.nn.BatchNorm1d(3)(x(t, 3)), "expected 2D or 3D input (got 1D input)"),
    (lambda t: t.nn.BatchNorm2d(3)(x(t, 2, 3)), "expected 4D input (got 2D input)"),
    (lambda t: t.nn.BatchNorm1d(3)(x(t, 1, 3)), "Expected more than 1 value per channel"),
    (lambda t: t.nn.BatchNorm1d(3)(x(t, 2, 4)), "running_mean should contain 4 elements not 3"),
    (lambda t: t.nn.functional.batch_norm(x(t, 2, 3), None, None), "running_mean"),
    (lambda t: t.nn.MaxPool2d((2, 2, 2))(x(t, 1, 1, 4, 4)), "kernel_size must"),
    (lambda t: t.nn.MaxPool2d(3, padding=2)(x(t, 1, 1, 4, 4)), "at most half of effective kernel"),
    (lambda t: t.nn.MaxPool2d(5)(x(t, 1, 1, 4, 4)), "Output size is too small"),
    (lambda t: t.nn.MaxPool2d(2, stride=-1)(x(t, 1, 1, 4, 4)), "stride"),
    (lambda t: t.nn.MaxPool2d(2)(x(t, 1, 0, 4, 4)), "optional 0 dim batch size"),
    (lambda t: t.nn.AvgPool2d(2, divisor_override=0)(x(t, 1, 1, 4, 4)), "must be not zero"),
    (lambda t: t.nn.AdaptiveAvgPool2d(2)(x(t, 3, 3)), "Expected 3D or 4D tensor, but got [3, 3]"),
    (
        lambda t: t.nn.functional.adaptive_avg_pool2d(x(t, 1, 3, 3, 3), (2, 2, 2)),
        "output_size must be 2",
    ),
    (lambda t: t.nn.Dropout(1.5), "has to be between 0 and 1, but got 1.5"),
    (lambda t: t.nn.functional.dropout(x(t, 2), -0.5), "has to be between 0 and 1, but got -0.5"),
    (lambda t: t.nn.functional.feature_alpha_dropout(x(t, 2), 0.5, True), "at least 2 dimensions"),
    (lambda t: t.nn.CELU(0.0)(x(t, 2)), "alpha cannot be 0"),
    (lambda t: t.nn.GELU("sinh")(x(t, 2)), "approximate argument must be either none or tanh"),
    (lambda t: t.nn.GLU()(x(t, 3)), "Halving dimension must be even, but dimension 0 is size 3"),
    (lambda t: t.nn.PReLU(2)(x(t, 2, 3)), "parameter numbers = 2 and channel size = 3"),
    (lambda t: t.nn.Softshrink(-1.0)(x(t, 2)), "found -1"),
    (lambda t: t.nn.Softmax2d()(x(t, 2)), "expected input to be 3D or 4D, got 1D instead"),
    (lambda t: t.nn.functional.hardtanh(x(t, 2), 1, -1), "min_val cannot be greater than max_val"),
    (
        lambda t: t.nn.functional.rrelu(x(t, 2), 0.5, 0.1),
        "Lower bound should be less than or equal",
    ),
    (lambda t: t.nn.functional.pad(x(t, 2), (1,)), "Padding length must be divisible by 2"),
    (
        lambda t: t.nn.functional.pad(x(t, 2), (1, 1, 1, 1)),
        "padding length 4 and input of dimension 1",
    ),
    (lambda t: t.nn.functional.pad(x(t, 2), (1, 1), "odd"), "Unrecognised padding mode odd"),
    (lambda t: t.nn.functional.pad(x(t, 2), (1, 1), "reflect"), "not supported for 1D input"),
    (lambda t: t.nn.functional.pad(x(t, 2, 2), (2, 1), "reflect"), "less than the corresponding"),
    (
        lambda t: t.nn.functional.pad(x(t, 2, 2), (3, 1), "circular"),
        "wrapping around more than once",
    ),
    (lambda t: t.nn.functional.pad(x(t, 2), (-3, 0)), ""),
    (lambda t: t.nn.NLLLoss()(x(t, 2, 3), long(t, 0, 3)), "Target 3 is out of bounds"),
    (lambda t: t.nn.CrossEntropyLoss()(x(t, 2, 3), long(t, 0, -1)), "Target -1 is out of bounds"),
    (lambda t: t.nn.CrossEntropyLoss()(x(t, 2, 3), long(t, 0)), "input batch_size (2) to match"),
    (lambda t: t.nn.CrossEntropyLoss()(x(t, 2, 3), x(t, 2)), "target dtype to be Long or Byte"),
    (lambda t: t.nn.CrossEntropyLoss()(x(t, 2, 3), long(t, 0, 1).int()), "Long or Byte"),
    (lambda t: t.nn.CrossEntropyLoss()(x(t, 2, 3), x(t, 2, 3).long()), "class probabilities"),
    (
        lambda t: t.nn.CrossEntropyLoss()(x(t, 2, 3), x(t, 2, 2).long()),
        "multi-target not supported",
    ),
    (lambda t: t.nn.CrossEntropyLoss(t.ones(2))(x(t, 2, 3), long(t, 0, 1)), "for all 3 classes"),
    (lambda t: t.nn.CrossEntropyLoss(ignore_index=1)(x(t, 2, 3), x(t, 2, 3)), "ignore_index"),
    (lambda t: t.nn.CrossEntropyLoss(label_smoothing=2.0)(x(t, 2, 3), long(t, 0, 1)), "Got: 2"),
    (
        lambda t: t.nn.CrossEntropyLoss(reduction="max")(x(t, 2, 3), long(t, 0, 1)),
        "max is not a valid",
    ),
    (
        lambda t: t.nn.NLLLoss()(x(t, 2, 3, 4), x(t, 2, 5).long()),
        "Expected target size [2, 4], got [2, 5]",
    ),
    (lambda t: t.nn.MSELoss(reduction="max")(x(t, 2), x(t, 2)), "max is not a valid value"),
    (lambda t: t.nn.BCELoss()(x(t, 2) + 2, x(t, 2)), "should be between 0 and 1"),
    (lambda t: t.nn.BCELoss()(x(t, 2), x(t, 3)), "that is different to the input size"),
    (lambda t: t.nn.BCEWithLogitsLoss()(x(t, 2), x(t, 3)), "must be the same as input size"),
    (lambda t: t.nn.SmoothL1Loss(beta=-1.0)(x(t, 2), x(t, 2)), "negative values for beta"),
    (lambda t: t.nn.HuberLoss(delta=0.0)(x(t, 2), x(t, 2)), "non-positive values for delta"),
    (lambda t: t.nn.Unflatten(1, 2), "must be a tuple of ints, but found type int"),
    (lambda t: t.nn.Unflatten(1, ("a",)), "must be tuple of ints"),
    (lambda t: t.nn.Bilinear(0, 2, 3), "in1_features must be > 0, but got (in1_features=0)"),
    (
        lambda t: t.nn.Bilinear(2, 2, 3)(x(t, 4, 2), x(t, 4, 5)),
        "input2 size does not match weight size",
    ),
]


@pytest.mark.parametrize(("call", "text"), ERRORS)
def test_error_has_pytorchs_class_and_facts(call, text):
    with pytest.raises(Exception) as there:  # noqa: PT011 - its class is what is compared
        call(torch)
    with pytest.raises(type(there.value)) as here:
        call(fb)
    assert text in str(here.value)
    assert text in str(there.value)


DTYPES = [
    *[f"t.nn.{name}()(x(t, 2).long())" for name in ("GELU", "ELU", "SELU", "LeakyReLU", "SiLU")],
    *[
        f"t.nn.{name}()(x(t, 2).long())"
        for name in ("Softplus", "Mish", "LogSigmoid", "Hardshrink")
    ],
    *[f"t.nn.{name}()(x(t, 2).long())" for name in ("CELU", "GLU", "Softsign", "Hardtanh")],
    "t.nn.Softmax(0)(x(t, 2).long())",
    "t.nn.LogSoftmax(0)(x(t, 2).long())",
    "t.nn.Linear(2, 2)(x(t, 2).double())",
    "t.nn.Linear(2, 2)(x(t, 2).half())",
    "t.nn.functional.linear(x(t, 2), x(t, 2, 2), x(t, 2).double())",
    "t.nn.functional.linear(x(t, 2).long(), x(t, 2, 2).long())",
    "t.nn.Conv2d(1, 1, 2)(x(t, 1, 3, 3).double())",
    "t.nn.functional.conv2d(x(t, 1, 3, 3), x(t, 1, 1, 2, 2), x(t, 1).double())",
    "t.nn.BatchNorm1d(2)(x(t, 3, 2).double())",
    "t.nn.BatchNorm1d(2)(x(t, 3, 2).half())",
    "t.nn.BatchNorm1d(2).eval()(x(t, 3, 2).bfloat16())",
    "t.nn.BatchNorm1d(2, affine=False, track_running_stats=False)(x(t, 3, 2).double())",
    "t.nn.BatchNorm1d(2, affine=False, track_running_stats=False)(x(t, 3, 2).long())",
    "t.nn.MaxPool2d(2)(x(t, 1, 4, 4).long())",
    "t.nn.MaxPool2d(2)(x(t, 1, 4, 4).half())",
    "t.nn.AvgPool2d(2)(x(t, 1, 4, 4).bfloat16())",
    "t.nn.Dropout()(x(t, 2).half())",
    "t.nn.Dropout()(x(t, 2).long())",
    "t.nn.PReLU()(x(t, 2).double())",
    "t.nn.MSELoss()(x(t, 2), x(t, 2).double())",
    "t.nn.MSELoss()(x(t, 2), x(t, 2).long())",
    "t.nn.MSELoss()(x(t, 2).long(), x(t, 2).long())",
    "t.nn.MSELoss()(x(t, 2).half(), x(t, 2).bfloat16())",
    "t.nn.L1Loss()(x(t, 2), x(t, 2).long())",
    "t.nn.SmoothL1Loss()(x(t, 2), x(t, 2).long())",
    "t.nn.BCELoss()(x(t, 2), x(t, 2).long())",
    "t.nn.CrossEntropyLoss()(x(t, 2, 3).long(), long(t, 0, 1))",
    "t.nn.CrossEntropyLoss()(x(t, 2, 3).half(), long(t, 0, 1))",
    "t.nn.CrossEntropyLoss(t.ones(3).double())(x(t, 2, 3), long(t, 0, 1))",
    "t.nn.CrossEntropyLoss()(x(t, 2, 3), x(t, 2, 3).double())",
]


@pytest.mark.parametrize("call", DTYPES)
def test_dtypes_give_the_result_or_the_error_of_pytorch(call):
    outcomes = []
    for lib in (fb, torch):
        try:
            outcomes.append(str(eval(call, {"t": lib, "x": x, "long": long}).dtype))
        except (RuntimeError, NotImplementedError) as error:
            outcomes.append(type(error))
    assert outcomes[0] == outcomes[1]


WARNINGS: list[tuple[Any, str]] = [
    (lambda t: t.nn.MSELoss(size_average=False), "please use reduction='sum' instead"),
    (lambda t: t.nn.CrossEntropyLoss(reduce=False), "please use reduction='none' instead"),
    (
        lambda t: t.nn.functional.l1_loss(x(t, 2), x(t, 2), size_average=True),
        "reduction='mean' instead",
    ),
    (lambda t: t.nn.functional.mse_loss(x(t, 2), x(t, 2, 1)), "likely lead to incorrect results"),
    (lambda t: t.nn.Softmax()(x(t, 2)), "Implicit dimension choice for softmax"),
    (lambda t: t.nn.functional.log_softmax(x(t, 2)), "Implicit dimension choice for log_softmax"),
    (lambda t: t.nn.Hardtanh(min_value=-2.0), "keyword argument `min_value` is deprecated"),
]


@pytest.mark.parametrize(("call", "text"), WARNINGS)
def test_warning_has_pytorchs_class_and_text(call, text):
    seen = []
    for lib in (torch, fb):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call(lib)
        (warning,) = [w for w in caught if text in str(w.message)]
        seen.append(warning.category)
    assert seen[0] is seen[1]


CALLS = [
    lambda t: t.nn.functional.mse_loss(x(t, 2), x(t, 2, 1)),
    lambda t: t.nn.functional.l1_loss(x(t, 2), x(t, 2), size_average=True),
    lambda t: t.nn.functional.softmax(x(t, 2)),
    lambda t: t.nn.Softmax()(x(t, 2)),
    lambda t: t.nn.L1Loss(reduce=False),
    lambda t: t.nn.Hardtanh(max_value=2.0),
    lambda t: t.nn.init.normal(x(t, 2)),
]


@pytest.mark.parametrize("call", CALLS)
def test_warning_points_at_the_callers_line(call):
    with pytest.warns() as caught:
        call(fb)
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize(
    ("size_average", "reduce"),
    [(a, b) for a in (None, False, True) for b in (None, False, True) if (a, b) != (None, None)],
)
def test_older_reduction_arguments_choose_the_same(size_average, reduce):
    chosen = []
    for lib in (torch, fb):
        with pytest.warns(UserWarning, match="reduction="):
            chosen.append(lib.nn.L1Loss(size_average, reduce).reduction)
    assert chosen[0] == chosen[1]


def network(lib: Any) -> Any:
    nn = lib.nn
    lib.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout(0.25),
        nn.Flatten(),
        nn.Linear(64, 10),
    )


def test_a_network_trains_along_pytorchs_loss_curve():
    curves = []
    for lib in (torch, fb):
        model = network(lib)
        lib.manual_seed(1)
        images, labels = lib.randn(12, 1, 8, 8), lib.randint(0, 10, (12,))
        losses = []
        for _ in range(5):
            loss = lib.nn.functional.cross_entropy(model(images), labels)
            model.zero_grad()
            loss.backward()
            with lib.no_grad():
                for parameter in model.parameters():
                    parameter -= 0.1 * parameter.grad
            losses.append(loss.item())
        curves.append(losses)
    assert curves[1] == pytest.approx(curves[0], rel=1e-3)


def test_a_tree_of_modules_has_pytorchs_names_and_text():
    trees = []
    for lib in (torch, fb):
        nn = lib.nn
        model = nn.Module()
        model.layers = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2), nn.ReLU(), network(lib)])
        model.choices = nn.ModuleDict({"a": nn.Linear(1, 2), "b": nn.ModuleList()})
        model.weights = nn.ParameterList([lib.ones(2), lib.zeros(2, 3)])
        model.named = nn.ParameterDict({"z": lib.ones(1), "a": lib.ones(2, 2)})
        model.tied = model.layers[0]
        model.register_buffer("seen", lib.zeros(1), persistent=False)
        trees.append(model)
    there, here = trees
    assert repr(here) == repr(there)
    assert list(here.state_dict()) == list(there.state_dict())
    assert here.state_dict()._metadata == there.state_dict()._metadata
    for listed in ("named_modules", "named_parameters", "named_buffers"):
        for options in ({}, {"prefix": "p"}, {"remove_duplicate": False}):
            names = [[n for n, _ in getattr(m, listed)(**options)] for m in (here, there)]
            assert names[0] == names[1]


LOADS = [
    {},
    {"0.weight": (2, 3)},
    {"0.weight": (3, 2), "0.bias": (2,)},
    {"0.weight": (2, 3), "0.bias": (2,), "1.running_mean": (2,), "extra": (1,)},
    {"0.weight": (2, 3), "0.bias": (2,), "7.weight": (1,), "0.more.deep": (1,)},
]


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("state", LOADS, ids=str)
def test_loading_reports_what_pytorch_reports(state, strict):
    reports = []
    for lib in (torch, fb):
        model = lib.nn.Sequential(lib.nn.Linear(3, 2), lib.nn.BatchNorm1d(2))
        try:
            keys = model.load_state_dict({k: lib.ones(s) for k, s in state.items()}, strict=strict)
            reports.append((repr(keys), list(keys.missing_keys), list(keys.unexpected_keys)))
        except RuntimeError as error:
            reports.append(str(error))
    assert reports[0] == reports[1]


def test_state_loads_between_the_libraries():
    there, here = network(torch), network(fb)
    state = {
        k: fb.tensor(v.tolist(), dtype=here.state_dict()[k].dtype) + 1
        for k, v in there.state_dict().items()
    }
    assert repr(here.load_state_dict(state)) == "<All keys matched successfully>"
    for key, value in there.state_dict().items():
        same(here.state_dict()[key] - 1, value)
