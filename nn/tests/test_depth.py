"""Models nested in each other as deep as PyTorch 2.13 takes them, with Python's limit of 1000."""

from __future__ import annotations

import copy
import pickle
import sys
import warnings
from collections.abc import Callable
from io import BytesIO
from threading import Thread

import pytest

import flambeau as fb
from flambeau import Tensor, nn

X = fb.tensor([[1.0, 2.0]])


def nested(depth: int) -> nn.Module:
    model: nn.Module = nn.Linear(2, 2)
    for _ in range(depth):
        model = nn.Sequential(model)
    return model


def called_with_hooks(model: nn.Module) -> Tensor:
    for module in model.modules():
        module.register_forward_pre_hook(lambda m, args: None)
        module.register_forward_hook(lambda m, args, result: None)
    return model(X)


def saved_and_loaded(model: nn.Module) -> None:
    file = BytesIO()
    fb.save(model, file)
    file.seek(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that loading runs code, once per process
        fb.load(file, weights_only=False)


WALKS: dict[str, tuple[int, Callable[[nn.Module], object]]] = {
    "call": (247, lambda model: model(X)),
    "call with hooks": (310, called_with_hooks),  # PyTorch: 198
    "backward": (247, lambda model: model(X).sum().backward()),
    "functional_call": (
        247,
        lambda model: fb.func.functional_call(model, dict(model.named_parameters()), (X,)),
    ),
    "summary": (300, lambda model: str(fb.utils.summary(model, X))),
    "summary without a call": (900, lambda model: str(fb.utils.summary(model))),
    "repr": (320, repr),
    "modules": (900, lambda model: list(model.modules())),
    "parameters": (900, lambda model: list(model.named_parameters())),
    "state_dict": (900, lambda model: model.load_state_dict(model.state_dict())),
    "to": (900, lambda model: model.to(fb.float64)),
    "apply": (900, lambda model: model.apply(lambda module: None)),
    "train": (900, lambda model: model.eval().train()),
    "requires_grad_": (900, lambda model: model.requires_grad_(False)),
    "deepcopy": (160, copy.deepcopy),
    "pickle": (185, lambda model: pickle.loads(pickle.dumps(model))),
    "save": (185, saved_and_loaded),
    "trace": (185, lambda model: fb.jit.trace(model, X)(X)),
    "script": (310, fb.jit.script),
    "symbolic_trace": (135, fb.fx.symbolic_trace),
}


@pytest.mark.parametrize("walk", WALKS)
def test_models_may_be_as_deep_as_with_pytorch(walk):
    depth, walked = WALKS[walk]
    assert sys.getrecursionlimit() == 1000
    raised: list[BaseException] = []

    def run() -> None:
        try:
            walked(nested(depth))
        except BaseException as error:
            raised.append(error)

    thread = Thread(target=run)  # whose stack is empty, which that of pytest is not
    thread.start()
    thread.join()
    assert raised == []
