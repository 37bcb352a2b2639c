"""Every module that PyTorch scripts is scripted here, and archives of both are read by both."""

import pytest
import torch

import flambeau as fb
from oracle import ours_of
from program_exchange import RANDOM, assert_equal, exchanged
from test_nn_every_module import CASES

pytestmark = pytest.mark.filterwarnings(
    "ignore:`torch.jit:DeprecationWarning",
    "ignore:Initializing zero-element tensors:UserWarning",
    "ignore:`NLLLoss2d` has been deprecated:FutureWarning",
    "ignore:'norm' was found in ScriptModule constants:UserWarning",
    "ignore:.*nested tensors.*:UserWarning",
    "ignore:.*enable_nested_tensor.*:UserWarning",
)

REFUSED = {
    "AdaptiveLogSoftmaxWithLoss",
    "GaussianNLLLoss",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
    "TripletMarginWithDistanceLoss",
}
"""PyTorch scripts none of these, or its program does not run."""


def made(library, name):
    args, options, _ = CASES[name]
    layer = getattr(library.nn, name.split()[0])(*args, **options).double()
    # Their `forward` is overloaded, and PyTorch's program has one only where another calls it.
    return library.nn.Sequential(layer) if name in ("GRU", "LSTM", "RNN") else layer


def in_both_states(program, operands, seed):
    """What a program gives in training and in evaluation, from the same numbers each time."""
    found = []
    for training in (True, False):
        seed(3)
        found.append(program.train(training)(*operands))
    return found


@pytest.mark.parametrize("name", [n for n in CASES if n not in RANDOM and n not in REFUSED])
def test_modules_that_pytorch_scripts_are_exchanged_with_equal_results(name):
    given = CASES[name][2]
    theirs, ours = made(torch, name), made(fb, name)
    ours.load_state_dict({key: ours_of(value) for key, value in theirs.state_dict().items()})
    operands = tuple(
        ours_of(each) if isinstance(each, torch.Tensor) else tuple(map(ours_of, each))
        for each in given
    )
    scripted, program = torch.jit.script(theirs), fb.jit.script(ours)
    sent = exchanged(program, fb.jit.save, torch.jit.load)
    came = program
    if name != "CrossMapLRN2d":  # PyTorch's calls Python, and cannot be saved
        came = exchanged(scripted, torch.jit.save, fb.jit.load)
    # Buffers are shared with the module: nothing may run before all was saved.
    expected = in_both_states(theirs, given, torch.manual_seed)
    assert_equal(in_both_states(sent, given, torch.manual_seed), expected)
    assert_equal(in_both_states(came, operands, fb.manual_seed), expected)
    if came is not program:
        assert_equal(in_both_states(program, operands, fb.manual_seed), expected)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_is_not_exchanged_is_refused_by_pytorch(name):
    unsupported = torch.jit.frontend.NotSupportedError
    refusals = RuntimeError, ValueError, AttributeError, AssertionError, unsupported
    with pytest.raises(refusals):
        torch.jit.script(made(torch, name))(*CASES[name][2])
