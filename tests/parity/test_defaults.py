"""Arguments that PyTorch's functions do without, ours do without."""

from __future__ import annotations

import inspect
from collections import defaultdict

import pytest
import torch

import flambeau as fb

# By PyTorch's own schema; `normal(out=)` alone has it there.
NEEDED = {"normal mean"}


@pytest.mark.parametrize("place", ["", "Tensor", "nn.functional"])
def test_arguments_that_pytorch_has_defaults_for_have_them(place):
    defaults = defaultdict(set)
    for schema in torch._C._jit_get_all_schemas():
        for argument in schema.arguments:
            if argument.has_default_value():
                defaults[schema.name].add(argument.name)
    ours = fb
    for part in place.split(".") if place else ():
        ours = getattr(ours, part)
    seen, lacking = 0, set()
    for name in dir(ours):
        function = getattr(ours, name, None)
        if name.startswith("_") or f"aten::{name}" not in defaults or not callable(function):
            continue
        seen += 1
        for argument in inspect.signature(function).parameters.values():
            alone = argument.kind in (argument.POSITIONAL_OR_KEYWORD, argument.KEYWORD_ONLY)
            if alone and argument.default is argument.empty:
                if argument.name in defaults[f"aten::{name}"]:
                    lacking.add(f"{name} {argument.name}")
    assert seen > 50
    assert lacking - NEEDED == set()
