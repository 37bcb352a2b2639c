# ruff: noqa: UP007, UP045 - the spellings are the matter of these tests
"""Schemas that are made of annotations are PyTorch's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Optional, Union

import pytest

import flambeau as fb
from flambeau.compat._torch._library.infer_schema import infer_schema as ours

torch = pytest.importorskip("torch")


def functions(lib: Any) -> list[Callable[..., Any]]:
    T = lib.Tensor

    def plain(x, y=None, *, k=1.0, s="x", b=False): ...
    def lists(x, ys, d=lib.float32, v=None, n=None, q=3): ...
    def nested(x, f, g, o=None): ...
    def number(x): ...
    def bare(x): ...
    def listed(x, z=[1]): ...  # noqa: B006 - what is refused
    def starred(*x): ...
    def unknown(x): ...

    plain.__annotations__ = {
        "x": T, "y": Optional[T], "k": float, "s": str, "b": bool, "return": tuple[T, T],
    }  # fmt: skip
    lists.__annotations__ = {
        "x": T, "ys": Sequence[T], "d": lib.dtype, "v": Optional[lib.device], "n": Optional[int],
        "q": Union[int, float, bool], "return": None,
    }  # fmt: skip
    nested.__annotations__ = {
        "x": T, "f": list[float], "g": Sequence[Optional[T]], "o": Optional[list[int]],
        "return": list[T],
    }  # fmt: skip
    number.__annotations__ = {"x": T, "return": int}
    listed.__annotations__ = {"x": T, "z": list[int], "return": T}
    starred.__annotations__ = {"x": T, "return": T}
    unknown.__annotations__ = {"x": dict, "return": T}
    return [plain, lists, nested, number, bare, listed, starred, unknown]


@pytest.mark.parametrize("changed", [(), ["x"], "unknown", ["ys"], ["d"], ["nobody"], "all"])
@pytest.mark.parametrize("place", range(8))
def test_annotations_make_the_same_schema(place, changed):
    said = []
    for lib, infer in ((fb, ours), (torch, torch.library.infer_schema)):
        try:
            said.append(infer(functions(lib)[place], mutates_args=changed))
        except ValueError:
            said.append("refused")
    assert said[0] == said[1]
