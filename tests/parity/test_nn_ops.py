"""Neural-network ops agree with PyTorch in values, both derivatives, dtypes, names and errors.

On device ``cpu`` the backend's kernels are tested, on ``ref`` the decompositions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402

import flambeau as fb  # noqa: E402

DEVICES = ("cpu", "ref")
NAN, INF = math.nan, math.inf

# Values, first and second derivatives: name, our function, theirs, operands.  An operand is a shape
# (distinct numbers of either sign, differentiated), a list (integers), or a tensor.
Operand = tuple[int, ...] | list[Any] | Any
Case = tuple[str, Callable[..., Any], Callable[..., Any], tuple[Operand, ...]]

ACTIVATIONS: list[Case] = [
    ("relu", fb.relu, torch.relu, ((3, 4),)),
    ("sigmoid", fb.sigmoid, torch.sigmoid, ((3, 4),)),
    ("silu", fb.silu, F.silu, ((3, 4),)),
    ("gelu", fb.gelu, F.gelu, ((3, 4),)),
    (
        "gelu tanh",
        lambda x: fb.gelu(x, approximate="tanh"),
        lambda x: F.gelu(x, approximate="tanh"),
        ((3, 4),),
    ),
    ("softplus", fb.softplus, F.softplus, ((3, 4),)),
    ("softplus linear", lambda x: fb.softplus(x, 2, 0.5), lambda x: F.softplus(x, 2, 0.5), ((9,),)),
    ("leaky_relu", lambda x: fb.leaky_relu(x, 0.2), lambda x: F.leaky_relu(x, 0.2), ((3, 4),)),
    ("elu", lambda x: fb.elu(x, 1.5), lambda x: F.elu(x, 1.5), ((3, 4),)),
    ("selu", fb.selu, torch.selu, ((3, 4),)),
    ("celu", lambda x: fb.celu(x, 2.0), lambda x: torch.celu(x, 2.0), ((3, 4),)),
    ("prelu", fb.prelu, torch.prelu, ((2, 3, 4), (3,))),
    ("threshold", lambda x: fb.threshold(x, 0.3, 5), lambda x: F.threshold(x, 0.3, 5), ((3, 4),)),
    ("softmax", lambda x: fb.softmax(x, 0), lambda x: torch.softmax(x, 0), ((3, 4),)),
    ("softmax scalar", lambda x: fb.softmax(x, -1), lambda x: torch.softmax(x, -1), ((),)),
    (
        "log_softmax",
        lambda x: fb.log_softmax(x, 1),
        lambda x: torch.log_softmax(x, 1),
        ((2, 3, 4),),
    ),
]


def _convolution(name: str, transposed: bool, shapes: tuple[Any, ...], **how: Any) -> Case:
    ours, theirs = (
        (fb.conv_transpose2d, F.conv_transpose2d) if transposed else (fb.conv2d, F.conv2d)
    )
    return name, lambda *a: ours(*a, **how), lambda *a: theirs(*a, **how), shapes


CONVOLUTIONS: list[Case] = [
    _convolution("plain", False, ((2, 4, 5, 5), (3, 4, 3, 3), (3,))),
    _convolution(
        "strided",
        False,
        ((1, 2, 7, 8), (2, 2, 2, 3)),
        stride=(3, 2),
        padding=(2, 3),
        dilation=(2, 1),
    ),
    _convolution("grouped", False, ((1, 4, 4, 4), (6, 2, 2, 2), (6,)), groups=2),
    _convolution("depthwise", False, ((2, 3, 4, 4), (3, 1, 3, 3)), groups=3, padding=1),
    _convolution("more padding than kernel", False, ((1, 2, 4, 4), (2, 2, 1, 1)), padding=(2, 1)),
    _convolution("unbatched", False, ((1, 4, 5), (2, 1, 2, 4)), padding="valid", stride=2),
    _convolution("same", False, ((2, 1, 4, 5), (2, 1, 3, 5)), padding="same"),
    _convolution(
        "transposed",
        True,
        ((2, 4, 3, 2), (4, 3, 3, 2), (6,)),
        stride=(2, 3),
        padding=(1, 0),
        output_padding=(1, 2),
        groups=2,
        dilation=(1, 2),
    ),
    (
        "conv1d",
        lambda *a: fb.conv1d(*a, 2, 1),
        lambda *a: F.conv1d(*a, 2, 1),
        ((2, 4, 7), (2, 4, 3), (2,)),
    ),
]


def _pooling(name: str, kind: str, shape: tuple[int, ...], *how: Any) -> Case:
    ours, theirs = getattr(fb, kind), getattr(F, kind)
    return f"{kind} {name}", lambda x: ours(x, *how), lambda x: theirs(x, *how), (shape,)


POOLINGS: list[Case] = [
    _pooling("plain", "max_pool2d", (2, 2, 5, 6), 2),
    _pooling("padded", "max_pool2d", (2, 5, 6), 3, 2, 1),
    _pooling("dilated", "max_pool2d", (1, 2, 5, 6), 2, (1, 2), 0, (2, 3)),
    _pooling("ceil mode", "max_pool2d", (1, 2, 5, 6), (3, 2), 2, 1, 1, True),
    _pooling("plain", "avg_pool2d", (2, 2, 5, 6), (2, 3), 2),
    _pooling("padded", "avg_pool2d", (2, 5, 6), 3, 2, 1, False, True),
    _pooling("border not counted", "avg_pool2d", (1, 2, 5, 6), 3, 2, 1, False, False),
    _pooling("ceil mode", "avg_pool2d", (1, 2, 5, 6), (2, 4), 3, (1, 2), True, True),
    _pooling("ceil mode, border not counted", "avg_pool2d", (1, 2, 5, 6), 3, 2, 1, True, False),
    _pooling("own divisor", "avg_pool2d", (1, 2, 4, 4), 2, 1, 0, False, True, 3),
    _pooling("even", "adaptive_avg_pool2d", (1, 2, 4, 6), (2, 3)),
    _pooling("overlapping", "adaptive_avg_pool2d", (2, 5, 6), (3, None)),
    _pooling("larger", "adaptive_avg_pool2d", (1, 1, 2, 3), (4, 5)),
    _pooling("many", "adaptive_avg_pool2d", (1, 2, 13, 20), (6, 9)),
    _pooling("few and wide", "adaptive_avg_pool2d", (2, 29, 31), (2, 3)),
]


def _batch(*statistics: bool) -> tuple[Any, ...]:
    return (None, None, *statistics, 0.1, 1e-3, False)


NORMALISATIONS: list[Case] = [
    (
        "batch, images",
        lambda *a: fb.batch_norm(*a, *_batch(True)),
        lambda *a: torch.batch_norm(*a, *_batch(True)),
        ((4, 3, 2, 2), (3,), (3,)),
    ),
    (
        "batch, rows",
        lambda x: fb.batch_norm(x, None, None, *_batch(True)),
        lambda x: torch.batch_norm(x, None, None, *_batch(True)),
        ((5, 3),),
    ),
    (
        "batch, given statistics",
        lambda x, w, b, m, v: fb.batch_norm(x, w, b, m, v, False, 0.1, 1e-3, False),
        lambda x, w, b, m, v: torch.batch_norm(x, w, b, m, v, False, 0.1, 1e-3, False),
        (
            (4, 3, 2),
            (3,),
            (3,),
            torch.tensor([0.5, -1, 2]).double(),
            torch.tensor([1, 2, 0.5]).double(),
        ),
    ),
    (
        "layer",
        lambda *a: fb.layer_norm(a[0], [4], *a[1:]),
        lambda *a: torch.layer_norm(a[0], [4], *a[1:]),
        ((2, 3, 4), (4,), (4,)),
    ),
    (
        "layer, two dimensions",
        lambda x: fb.layer_norm(x, [3, 4]),
        lambda x: torch.layer_norm(x, [3, 4]),
        ((2, 3, 4),),
    ),
]

CLASSES = [2, 0, 1, 2]
IGNORING = [2, -100, 1, -100]
CLASS_WEIGHT = torch.tensor([0.5, 2.0, 1.25]).double()


def _classified(name: str, target: list[int], weight: Any, reduction: str, **how: Any) -> Case:
    ours, theirs = getattr(fb, name), getattr(F, name)
    how = {"reduction": reduction, **how}
    return (
        f"{name} {reduction}{' weighted' * (weight is not None)} {target} {[*how.values()][1:]}",
        lambda x, t, *w: ours(x, t, *w, **how),
        lambda x, t, *w: theirs(x, t, *w, **how),
        ((4, 3), target, *(() if weight is None else (weight,))),
    )


LOSSES: list[Case] = [
    *[
        _classified(name, target, weight, reduction)
        for name in ("nll_loss", "cross_entropy")
        for target in (CLASSES, IGNORING)
        for weight in (None, CLASS_WEIGHT)
        for reduction in ("mean", "sum", "none")
    ],
    *[
        _classified("cross_entropy", IGNORING, weight, reduction, label_smoothing=0.2)
        for weight in (None, CLASS_WEIGHT)
        for reduction in ("mean", "sum", "none")
    ],
    *[
        (
            f"probabilities {reduction}",
            lambda x, t, w, how=reduction: fb.cross_entropy(x, t, w, how, label_smoothing=0.1),
            lambda x, t, w, how=reduction: F.cross_entropy(
                x, t, w, reduction=how, label_smoothing=0.1
            ),
            ((4, 3), (4, 3), CLASS_WEIGHT),
        )
        for reduction in ("mean", "sum", "none")
    ],
    ("nll_loss of an image", fb.nll_loss, F.nll_loss, ((2, 3, 2), [[0, 1], [2, -100]])),
    ("cross_entropy of an image", fb.cross_entropy, F.cross_entropy, ((2, 3, 2), [[0, 1], [2, 0]])),
    ("cross_entropy of one row", fb.cross_entropy, F.cross_entropy, ((3,), 1)),
    *[
        (
            f"mse_loss {reduction}",
            lambda x, t, how=reduction: fb.mse_loss(x, t, how),
            lambda x, t, how=reduction: F.mse_loss(x, t, reduction=how),
            ((3, 2), (3, 2)),
        )
        for reduction in ("mean", "sum", "none")
    ],
]

CASES = [*ACTIVATIONS, *CONVOLUTIONS, *POOLINGS, *NORMALISATIONS, *LOSSES]


def theirs_of(operand: Operand, place: int) -> Any:
    if isinstance(operand, tuple):
        count = math.prod(operand)
        # Numbers without ties or zeros, in no order.
        values = torch.arange(count, dtype=torch.float64).mul(1.7 + place).sin().mul(2).add(0.01)
        return values.reshape(operand).requires_grad_()
    return operand if isinstance(operand, torch.Tensor) else torch.tensor(operand)


def ours_of(tensor: Any, device: str) -> Any:
    dtype = getattr(fb, str(tensor.dtype).removeprefix("torch."))
    made = fb.tensor(tensor.flatten().tolist(), dtype=dtype, device=device)
    return made.reshape(tuple(tensor.shape)).requires_grad_(tensor.requires_grad)


def assert_close(ours: Any, theirs: Any, tolerance: float = 1e-9) -> None:
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert str(ours.dtype) == str(theirs.dtype)
    mine = torch.tensor(ours.detach().flatten().tolist(), dtype=theirs.dtype).reshape(theirs.shape)
    torch.testing.assert_close(
        mine, theirs.detach(), rtol=tolerance, atol=tolerance, equal_nan=True
    )


def weighted(results: list[Any], library: Any) -> Any:
    """A number that depends on every element of the results in its own way."""
    total = None
    for place, result in enumerate(results):
        count = library.arange(result.numel(), dtype=library.float64, device=result.device)
        term = (result * (count * 1.3 + place).cos().reshape(tuple(result.shape))).sum()
        total = term if total is None else total + term
    return total


@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("ours", "theirs", "operands"), [pytest.param(*c[1:], id=c[0]) for c in CASES]
)
def test_values_and_both_derivatives_agree(
    ours: Any, theirs: Any, operands: tuple[Operand, ...], device: str
) -> None:
    their_inputs = [theirs_of(operand, place) for place, operand in enumerate(operands)]
    our_inputs = [ours_of(tensor, device) for tensor in their_inputs]
    expected, found = theirs(*their_inputs), ours(*our_inputs)
    assert_close(found, expected)

    expected_first = gradients(torch, [expected], their_inputs)
    native_first = gradients(fb, [found], our_inputs, create_graph=False)
    found_first = gradients(fb, [found], our_inputs)
    for mine, native, reference in zip(found_first, native_first, expected_first, strict=True):
        assert_close(mine, reference)
        assert_close(native, reference)

    recorded = [i for i, g in enumerate(found_first) if g.requires_grad]
    second_theirs = gradients(torch, [expected_first[i] for i in recorded], their_inputs)
    second_ours = gradients(fb, [found_first[i] for i in recorded], our_inputs)
    for mine, reference in zip(second_ours, second_theirs, strict=True):
        assert_close(mine, reference)


def gradients(
    library: Any, outputs: list[Any], inputs: list[Any], create_graph: bool = True
) -> Any:
    """The gradients of the inputs that require one, zeros where they have no part."""
    wanted = [x for x in inputs if x.requires_grad]
    outputs = [y for y in outputs if y.requires_grad]
    if not outputs:
        return [library.zeros_like(x) for x in wanted]
    found = library.autograd.grad(
        weighted(outputs, library),
        wanted,
        retain_graph=True,
        create_graph=create_graph,
        allow_unused=True,
    )
    return [library.zeros_like(x) if g is None else g for x, g in zip(wanted, found, strict=True)]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [("float32", 2e-6), ("float16", 2e-3), ("bfloat16", 2e-2)]
)
@pytest.mark.parametrize(
    ("ours", "theirs", "operands"),
    [pytest.param(*c[1:], id=c[0]) for c in CASES if not c[0].startswith("probabilities")],
)
@pytest.mark.filterwarnings("ignore:Using padding='same'")
def test_shorter_floats_agree_within_their_precision(
    ours: Any, theirs: Any, operands: Any, dtype: str, tolerance: float, device: str
) -> None:
    their_inputs = [
        x.detach().to(getattr(torch, dtype)) if x.dtype.is_floating_point else x
        for x in (theirs_of(operand, place) for place, operand in enumerate(operands))
    ]
    expected = theirs(*their_inputs)
    assert_close(ours(*[ours_of(x, device) for x in their_inputs]), expected, tolerance)


@pytest.mark.parametrize("device", DEVICES)
def test_positions_of_maxima_agree_also_for_equals_and_nan(device: str) -> None:
    rows = [[1, NAN, 3, 3], [NAN, 2, -INF, -INF], [INF, 0, -INF, -INF], [1, 1, 1, NAN]]
    for how in ((2, 2, 0), (3, 1, 1), (2, 1, 1)):
        x = torch.tensor([rows], dtype=torch.float64)
        expected = F.max_pool2d(x, *how, return_indices=True)
        for mine, reference in zip(
            fb.max_pool2d_with_indices(ours_of(x, device), *how), expected, strict=True
        ):
            assert_close(mine, reference)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64"])
def test_maxima_of_integers_agree(dtype: str, device: str) -> None:
    x = torch.arange(25).mul(7).remainder(11).to(getattr(torch, dtype)).reshape(1, 5, 5)
    assert_close(fb.max_pool2d(ours_of(x, device), 3, 2, 1), F.max_pool2d(x, 3, 2, 1))


@pytest.mark.parametrize("device", DEVICES)
def test_functions_agree_at_the_corners(device: str) -> None:
    x = torch.tensor([0.0, -0.0, INF, -INF, NAN, 1e30, -1e30, 88.8, -88.8, -745.2])
    for name in ("relu", "sigmoid", "softplus", "elu", "leaky_relu", "selu"):
        mine = getattr(fb, name)(ours_of(x, device))
        assert_close(mine, getattr(F, name)(x), 1e-6)
    for rows in ([[INF, 0.0]], [[-INF, 0.0]], [[-INF, -INF]], [[NAN, 0.0]], [[1e30, 1e30]]):
        for name in ("softmax", "log_softmax"):
            row = torch.tensor(rows)
            mine = getattr(fb, name)(ours_of(row, device), 1)
            assert_close(mine, getattr(torch, name)(row, 1), 1e-6)


@pytest.mark.parametrize("device", DEVICES)
def test_running_statistics_agree(device: str) -> None:
    x = theirs_of((4, 3, 2), 0).detach()
    mean, var = torch.tensor([0.5, -1, 2]).double(), torch.tensor([1, 2, 0.5]).double()
    our_mean, our_var = ours_of(mean, device), ours_of(var, device)
    torch.batch_norm(x, None, None, mean, var, True, 0.3, 1e-5, False)
    fb.batch_norm(ours_of(x, device), None, None, our_mean, our_var, True, 0.3, 1e-5, False)
    assert_close(our_mean, mean)
    assert_close(our_var, var)


@pytest.mark.parametrize(
    "call",
    [
        lambda t, x: t.relu(x),
        lambda t, x: t.sigmoid(x),
        lambda t, x: t.threshold(x, 0, 0),
        lambda t, x: t.softmax(x, 0),
        lambda t, x: t.log_softmax(x, 0),
        lambda t, x: t.nn.functional.gelu(x),
        lambda t, x: t.nn.functional.silu(x),
        lambda t, x: t.nn.functional.softplus(x),
        lambda t, x: t.nn.functional.leaky_relu(x),
        lambda t, x: t.nn.functional.elu(x),
        lambda t, x: t.conv2d(x[None, None], t.ones(1, 1, 1, 1)),
        lambda t, x: t.nn.functional.max_pool2d(x[None, None], 1),
        lambda t, x: t.nn.functional.avg_pool2d(x[None, None], 1),
        lambda t, x: t.layer_norm(x, [3]),
        lambda t, x: t.batch_norm(x, None, None, None, None, True, 0.1, 1e-5, False),
        lambda t, x: t.nn.functional.nll_loss(x, t.tensor([0, 1])),
        lambda t, x: t.nn.functional.cross_entropy(x, t.tensor([0, 1])),
        lambda t, x: t.nn.functional.mse_loss(x, t.ones(2, 3)),
    ],
)
def test_names_in_the_history_agree(call: Any) -> None:
    names = [call(t, t.ones(2, 3, requires_grad=True)).grad_fn.name() for t in (fb, torch)]
    # A batch dimension that was added and removed may show in PyTorch.
    assert names[0] == names[1]


def _wrong(name: str, *operands: Any, text: str | None = None, **options: Any) -> Any:
    return pytest.param(name, operands, options, text, id=f"{name} {operands} {options}")


def i64(*shape: int) -> Any:
    return torch.zeros(shape, dtype=torch.int64)


IMAGE, FILTER = (1, 2, 4, 4), (2, 2, 3, 3)


@pytest.mark.parametrize(
    ("name", "operands", "options", "text"),
    [
        _wrong("conv2d", (1, 3, 4, 4), FILTER, text="Given groups=1, weight of size"),
        _wrong("conv2d", (3, 4), FILTER, text="Expected 3D (unbatched) or 4D (batched) input"),
        _wrong("conv2d", IMAGE, (2, 2, 3)),
        _wrong("conv2d", (1, 2, 2, 2), FILTER, text="Calculated padded input size per channel"),
        _wrong("conv2d", IMAGE, FILTER, (3,), text="Given weight of size"),
        _wrong("conv2d", IMAGE, FILTER, torch.zeros(2)),
        _wrong(
            "conv2d", IMAGE, (3, 1, 3, 3), groups=2, text="expected weight to be divisible by 2"
        ),
        _wrong(
            "conv2d", IMAGE, (0, 2, 3, 3), text="expected weight to be at least 1 at dimension 0"
        ),
        _wrong("conv2d", IMAGE, FILTER, padding=-1, text="negative padding is not supported"),
        _wrong("conv2d", IMAGE, FILTER, stride=0, text="non-positive stride is not supported"),
        _wrong("conv2d", IMAGE, FILTER, dilation=0, text="dilation should be greater than zero"),
        _wrong("conv2d", IMAGE, FILTER, groups=0, text="non-positive groups is not supported"),
        _wrong("conv2d", IMAGE, FILTER, stride=(1, 2, 3), text="expected stride to be a single"),
        _wrong("conv2d", IMAGE, FILTER, padding="foo", text="Invalid padding string"),
        _wrong("conv2d", IMAGE, FILTER, padding="same", stride=2, text="padding='same' is not"),
        _wrong("conv_transpose2d", (1, 3, 4, 4), FILTER, text="Given transposed=1"),
        _wrong("conv_transpose2d", IMAGE, FILTER, output_padding=1, text="output padding must be"),
        _wrong("max_pool2d", (2, 2), 2),
        _wrong("max_pool2d", (1, 2, 0, 2), 2, text="Expected 3D or 4D (batch mode) tensor"),
        _wrong("max_pool2d", (1, 2, 2), 3, text="Output size is too small"),
        _wrong("max_pool2d", IMAGE, 2, 1, 2, text="pad should be at most half of effective kernel"),
        _wrong("max_pool2d", IMAGE, 2, 1, -1, text="pad must be non-negative"),
        _wrong("max_pool2d", IMAGE, 2, 1, 0, 0, text="dilation should be greater than zero"),
        _wrong("max_pool2d", IMAGE, (2, 2, 2), text="kernel_size must either be a single int"),
        _wrong("avg_pool2d", (1, 2, 2), 3, text="Output size is too small"),
        _wrong("avg_pool2d", IMAGE, 2, divisor_override=0, text="divisor must be not zero"),
        _wrong(
            "avg_pool2d", torch.zeros(1, 2, 2, dtype=torch.int32), 2, text="not implemented for"
        ),
        _wrong("adaptive_avg_pool2d", (4, 4), 2, text="Expected 3D or 4D tensor, but got"),
        _wrong("adaptive_avg_pool2d", (1, 0, 4), 2, text="non-zero size for non-batch dimensions"),
        _wrong("adaptive_avg_pool2d", IMAGE, -1, text="greater than or equal to 0"),
        _wrong(
            "layer_norm", (2, 3), [4], text="Given normalized_shape=[4], expected input with shape"
        ),
        _wrong("layer_norm", (2, 3), [], text="Expected normalized_shape to be at least"),
        _wrong("layer_norm", (2, 3), [3], (2,), text="Expected weight to be of same shape"),
        _wrong("layer_norm", i64(2, 3), [3], text="not implemented for"),
        _wrong("nll_loss", (2, 3), torch.tensor([0, 5]), text="Target 5 is out of bounds."),
        _wrong("nll_loss", (2, 3), torch.tensor([0, -1]), text="Target -1 is out of bounds."),
        _wrong("nll_loss", (2, 3), i64(1), text="to match target batch_size (1)"),
        _wrong("nll_loss", (2, 3), i64(2, 1), text="multi-target not supported"),
        _wrong("nll_loss", (2, 3), (2,), text="expected target dtype to be Long or Byte"),
        _wrong("nll_loss", (2, 3), i64(2), CLASS_WEIGHT[:2], text="either for all 3 classes or no"),
        _wrong("nll_loss", (2, 3, 4), i64(2, 5), text="Expected target size [2, 4], got [2, 5]"),
        _wrong("nll_loss", (), i64(1), text="Expected 1 or more dimensions (got 0)"),
        _wrong("nll_loss", (2, 3), i64(2), CLASS_WEIGHT.float()),
        _wrong("nll_loss", (2, 3), i64(2), (3,)),  # weights that require a gradient
        _wrong("nll_loss", i64(2, 3), i64(2), text="not implemented for"),
        _wrong(
            "nll_loss", (2, 3), i64(2), reduction="x", text="x is not a valid value for reduction"
        ),
        _wrong("cross_entropy", (2, 3), torch.tensor([0, 5]), text="Target 5 is out of bounds."),
        _wrong("cross_entropy", (2, 3), i64(3), text="to match target batch_size (3)"),
        _wrong("cross_entropy", (2, 3), i64(2, 3), text="Expected floating point type for target"),
        _wrong(
            "cross_entropy", (2, 3), (2, 3), ignore_index=1, text="ignore_index is not supported"
        ),
        _wrong(
            "cross_entropy", (2, 3), i64(2), label_smoothing=2.0, text="label_smoothing must be"
        ),
        _wrong("mse_loss", i64(2), i64(2), text="not implemented for"),
        _wrong("softmax", (2, 3), 2, text="Dimension out of range"),
        _wrong("softmax", i64(2), 0, text="not implemented for"),
        _wrong(
            "relu", torch.zeros(1, dtype=torch.bool), text="Boolean inputs not supported for relu"
        ),
        _wrong(
            "gelu", (2,), approximate="x", text="approximate argument must be either none or tanh."
        ),
        _wrong("gelu", i64(2), text="not implemented for"),
        _wrong("celu", (2,), 0.0, text="alpha cannot be 0 for CELU"),
        _wrong("prelu", (2, 3), (2,), text="Mismatch of parameter numbers and input channel size."),
    ],
)
def test_errors_have_the_class_and_the_words_of_pytorch(
    name: str, operands: Any, options: Any, text: str | None
) -> None:
    shapes = {"max_pool2d": 1, "avg_pool2d": 1, "adaptive_avg_pool2d": 1}.get(name, len(operands))
    theirs = [
        theirs_of(x, 0)
        if isinstance(x, torch.Tensor) or (isinstance(x, tuple) and place < shapes)
        else x
        for place, x in enumerate(operands)
    ]
    ours = [ours_of(x, "cpu") if isinstance(x, torch.Tensor) else x for x in theirs]
    with pytest.raises(Exception) as expected:  # noqa: PT011 - whatever PyTorch raises
        getattr(F, name, getattr(torch, name, None))(*theirs, **options)
    with pytest.raises(expected.type) as found:
        getattr(fb, name)(*ours, **options)
    assert found.type is expected.type
    if text is not None:
        assert text in str(expected.value)
        assert text in str(found.value)
