"""Random parameters and values, in and out of bounds, are taken or refused as PyTorch does.

In CI a few of each family; with FLAMBEAU_TEST_WHOLE=1 many.
"""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Callable
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

import torch.distributions as theirs  # noqa: E402 - torch may be absent

import flambeau as fb  # noqa: E402
import flambeau.distributions as ours  # noqa: E402
import flambeau.distributions.relaxed_bernoulli  # noqa: E402
import flambeau.distributions.relaxed_categorical  # noqa: E402
from distribution_cases import CASES  # noqa: E402
from oracle import ours_of  # noqa: E402

WHOLE = os.environ.get("FLAMBEAU_TEST_WHOLE") == "1"
EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.0, 1e-30, 1 + 1e-6, 1e6, math.pi, 40.0]
NONE = [math.nan, math.inf, -math.inf]
numbers = st.one_of(st.sampled_from(EDGES), st.floats(-4, 4, width=32), st.sampled_from(NONE))
# Which element of which tensor of parameters, or of a value, is another number.
changes = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 15), numbers), max_size=2)
kinds = st.sampled_from(["sample", "one", "two", "wrong", "list", "number"])
FAULT = "Double did not match Float"  # of PyTorch: float64 is compared with a number of float32
ERRORS = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)

Changes = list[tuple[int, int, float]]


def built(lib: Any, families: Any, name: str, dtype: str, changed: Changes) -> Any:
    made = 0

    def tensor(values: Any) -> Any:
        nonlocal made
        x = lib.tensor(values, dtype=getattr(lib, dtype)).contiguous().clone()
        for which, place, number in changed:
            if which == made and x.numel():
                x.view(-1)[place % x.numel()] = number
        made += 1
        return x

    return CASES[name](families, tensor)


def value_of(name: str, dtype: str, kind: str, changed: Changes) -> Any:
    """A sample of undisturbed parameters, perhaps with other numbers or another shape."""
    if kind == "list":
        return [0.5]
    if kind == "number":
        return 0.5
    torch.manual_seed(5)
    x = built(torch, theirs, name, dtype, []).sample((2,))
    if kind != "two":
        x = x[0]
    if kind == "one":
        x = x.flatten()[:1].reshape((1,) * x.dim())
    if kind == "wrong":
        x = torch.cat([x.reshape(-1)] * 7)[: max(5, x.numel())].reshape(1, -1)
    x = x.contiguous().clone()
    for _, place, number in changed:
        if x.numel() and (x.is_floating_point() or math.isfinite(number)):
            x.view(-1)[place % x.numel()] = number
    return x


def refusal(call: Callable[[], object]) -> tuple[str, str] | None:
    """The kind of the error, and its words if those are a distribution's, without its module."""
    try:
        call()
    except ValueError as error:
        words = str(error).replace("flambeau.", "torch.")
        return "ValueError", re.sub(r"\s+", " ", words)
    except ERRORS as error:
        return type(error).__name__.lstrip("_"), FAULT if FAULT in str(error) else ""
    return None


def said(
    lib: Any, families: Any, drawn: tuple[str, str, Changes, bool | None], value: Any
) -> list[tuple[str, Any]]:
    """What the constructor and the functions of a value are refused with."""
    name, dtype, changed, checked = drawn
    before = families.Distribution._validate_args
    families.Distribution.set_default_validate_args(before if checked is None else checked)
    try:
        answers = [("constructor", refusal(lambda: built(lib, families, name, dtype, changed)))]
        if answers[0][1] is None:
            d = built(lib, families, name, dtype, changed)
            answers += [
                (method, refusal(lambda m=method: getattr(d, m)(value)))
                for method in ("_validate_sample", "log_prob")
                if method == "log_prob" or isinstance(value, lib.Tensor)
            ]
    finally:
        families.Distribution.set_default_validate_args(before)
    return answers


@pytest.mark.parametrize("name", CASES)
@hypothesis.given(
    dtype=st.sampled_from(["float32", "float64"]),
    parameters=changes,
    checked=st.sampled_from([None, True, True, False]),
    kind=kinds,
    values=changes,
)
@hypothesis.settings(
    max_examples=300 if WHOLE else 2,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(hypothesis.HealthCheck),
    phases=[hypothesis.Phase.generate],
)
def test_what_is_refused_and_how(
    name: str, dtype: str, parameters: Changes, checked: bool | None, kind: str, values: Changes
) -> None:
    # What becomes of a list or a number that nobody checks is left to Python's operators.
    drawn = name, dtype, parameters, kind in ("list", "number") or checked
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = value_of(name, dtype, kind, values)
        wanted = said(torch, theirs, drawn, value)
        mine = ours_of(value) if isinstance(value, torch.Tensor) else value
        found = said(fb, ours, drawn, mine)
    for one, other in zip(found, wanted, strict=True):
        assert one == other or other[1] == ("RuntimeError", FAULT)
