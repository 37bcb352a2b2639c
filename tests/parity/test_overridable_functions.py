"""Objects with ``__torch_function__`` that are no tensors see the calls that PyTorch shows them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.overrides

import flambeau as fb
from flambeau import fft, linalg, special
from flambeau._tensor.overrides import offering_calls
from flambeau.nn import functional

PAIRS = (
    (torch, fb),
    (torch.nn.functional, functional),
    (torch.linalg, linalg),
    (torch.fft, fft),
    (torch.special, special),
)


class Seen:
    """Says that a call came to it."""

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> str:
        return "seen"


def outcome(function: Any, count: int) -> object:
    """What comes of a call with as many of these objects; None if it is an error."""
    try:
        return function(*[Seen() for _ in range(count)])
    except (TypeError, ValueError, RuntimeError, AttributeError, NotImplementedError):
        return None


def overridable() -> Iterator[tuple[Any, str, int]]:
    """Functions that PyTorch 2.13 calls overridable, and how many arguments each needs."""
    known = torch.overrides.get_testing_overrides()
    for theirs, ours in PAIRS:
        for name, function in vars(theirs).items():
            if name.startswith("_") or not callable(function) or not hasattr(ours, name):
                continue
            if (dummy := known.get(function)) is not None:
                parameters = inspect.signature(dummy).parameters.values()
                needed = [p for p in parameters if p.default is p.empty and p.kind < 2]
                if outcome(function, len(needed)) == "seen":
                    yield ours, name, len(needed)


@pytest.mark.filterwarnings("ignore")
def test_every_function_that_pytorch_shows_is_shown() -> None:
    found = list(overridable())
    assert len(found) > 450
    with offering_calls({}):
        unseen = [name for ours, name, n in found if outcome(getattr(ours, name), n) != "seen"]
    assert unseen == []
