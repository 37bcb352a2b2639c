"""Traced modules: results are those of the module, also in PyTorch, and the other way round."""

import pytest
import torch

import flambeau as fb
from oracle import ours_of
from program_exchange import RANDOM, assert_equal, exchanged, flat
from test_nn_every_module import CASES

pytestmark = pytest.mark.filterwarnings(
    "ignore:`torch.jit:DeprecationWarning",
    "ignore::torch.jit.TracerWarning",
    "ignore:input's size at dim=1 does not match num_features:UserWarning",
    "ignore:Initializing zero-element tensors:UserWarning",
    "ignore:`NLLLoss2d` has been deprecated:FutureWarning",
    "ignore:.*nested tensors.*:UserWarning",
    "ignore:.*enable_nested_tensor.*:UserWarning",
)

NOT_THERE = ("CrossMapLRN2d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d")
"""PyTorch cannot trace or save them."""


@pytest.mark.parametrize("name", [n for n in CASES if n not in RANDOM])
def test_modules_are_traced_and_exchanged_with_equal_results(name):
    args, options, given = CASES[name]
    theirs = getattr(torch.nn, name.split()[0])(*args, **options).double().eval()
    ours = getattr(fb.nn, name.split()[0])(*args, **options).double().eval()
    ours.load_state_dict({key: ours_of(value) for key, value in theirs.state_dict().items()})
    operands = tuple(
        ours_of(each) if isinstance(each, torch.Tensor) else tuple(map(ours_of, each))
        for each in given
    )
    expected = theirs(*given)
    traced = fb.jit.trace(ours, operands, check_trace=False)
    assert_equal(traced(*operands), expected)
    assert_equal(exchanged(traced, fb.jit.save, torch.jit.load)(*given), expected)
    if name not in NOT_THERE:
        their_trace = torch.jit.trace(theirs, given, check_trace=False)
        back = exchanged(their_trace, torch.jit.save, fb.jit.load)
        assert_equal(back(*operands), expected)
    compared = 0
    for axis in (0, 1, -1, -2):
        larger = tuple(doubled(each, axis) for each in operands)
        try:
            wanted = ours(*larger)
        except (RuntimeError, ValueError, IndexError, AssertionError):
            continue  # a module whose weights or other operands say how long the axis is
        for a, b in zip(flat(traced(*larger)), flat(wanted), strict=True):
            assert fb.allclose(a, b, equal_nan=True)
        compared += 1
    assert compared or name == "CTCLoss"  # whose lengths are values, and say how long all axes are


def doubled(operand, axis):
    """An operand that is twice as long along an axis, if it has it."""
    if isinstance(operand, tuple):
        return tuple(doubled(each, axis) for each in operand)
    has = -operand.dim() <= axis < operand.dim()
    return fb.cat([operand, operand], axis) if has else operand


SIZES = {
    "Conv2d": (2, 3, 5, 7),
    "BatchNorm2d": (3, 3, 5, 4),
    "AdaptiveAvgPool2d": (1, 3, 9, 4),
    "LSTM": (7, 2, 4),
    "GRU": (6, 1, 4),
    "MultiheadAttention": (7, 4, 8),
    "TransformerEncoderLayer": (7, 2, 8),
    "Unfold": (1, 3, 7, 6),
    "PixelShuffle": (3, 4, 5, 3),
    "Upsample": (1, 3, 5, 6),
    "MaxPool2d": (1, 3, 9, 8),
    "LayerNorm": (3, 5, 4),
}
MADE = {
    "Conv2d": ((3, 4, 2), {}),
    "BatchNorm2d": ((3,), {}),
    "AdaptiveAvgPool2d": ((2,), {}),
    "LSTM": ((4, 3), {"num_layers": 2, "bidirectional": True}),
    "GRU": ((4, 3), {}),
    "MultiheadAttention": ((8, 2), {}),
    "TransformerEncoderLayer": ((8, 2, 16), {}),
    "Unfold": ((2,), {}),
    "PixelShuffle": ((2,), {}),
    "Upsample": ((), {"scale_factor": 2, "mode": "bilinear"}),
    "MaxPool2d": ((2,), {}),
    "LayerNorm": ((4,), {}),
}
FIRST = {3: (5, 3), 4: (2, 3, 6, 5)}


@pytest.mark.parametrize("name", SIZES)
def test_traces_hold_at_a_second_size(name):
    args, options = MADE[name]
    shape = SIZES[name]
    first = (*FIRST[len(shape)], shape[-1]) if len(shape) == 3 else FIRST[4]
    if name == "PixelShuffle":
        first = (2, 4, 3, 3)
    fb.manual_seed(1)
    net = getattr(fb.nn, name)(*args, **options).eval()
    count = 3 if name == "MultiheadAttention" else 1
    traced = fb.jit.trace(net, (fb.randn(first),) * count)
    x = fb.randn(shape)
    expected = net(*(x,) * count)
    for a, b in zip(flat(traced(*(x,) * count)), flat(expected), strict=True):
        assert fb.equal(a, b)
    there = exchanged(traced, fb.jit.save, torch.jit.load)
    y = torch.tensor(x.tolist())
    for a, b in zip(flat(there(*(y,) * count)), flat(expected), strict=True):
        torch.testing.assert_close(a, torch.tensor(b.tolist()), rtol=1e-5, atol=1e-5)
