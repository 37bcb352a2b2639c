"""Every public name of PyTorch's namespaces is in flambeau, or is known to be absent."""

from __future__ import annotations

import importlib

import pytest
import torch

from flambeau.absence import instead

NAMESPACES = (
    "torch torch.autograd torch.cuda torch.fft torch.func torch.jit torch.linalg torch.nn "
    "torch.nn.functional torch.nn.init torch.nn.utils torch.optim torch.optim.lr_scheduler "
    "torch.profiler torch.random torch.signal torch.sparse torch.special torch.utils "
    "torch.utils.data"
).split()


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_every_public_name_is_there_or_says_what_to_use(namespace):
    own = namespace.replace("torch", "flambeau", 1)
    theirs, ours = importlib.import_module(namespace), importlib.import_module(own)
    public = [name for name in getattr(theirs, "__all__", ()) if not name.startswith("_")]
    unknown = [name for name in public if not hasattr(ours, name) and instead(own, name) is None]
    assert unknown == []
    assert torch.__version__.startswith("2.13")
