"""Random programs give as scripts what they give as scripts of PyTorch, and as plain Python.

In CI a few; ``python tests/parity/test_script_programs.py FIRST LAST`` runs those of many seeds.
"""

from __future__ import annotations

import copy
import linecache
import random
import sys
import typing
import warnings
from typing import Any

import hypothesis
import pytest
import torch
from hypothesis import strategies as st

import flambeau as fb
import script_generator

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
compiled = {True: 0, False: 0}  # how many PyTorch took, and how many it refused
CALLS = 12  # more than a function runs before it repeats plans of itself


@hypothesis.given(seed=st.integers(0, 10**9))
@hypothesis.settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[hypothesis.Phase.generate],  # a smaller seed is no smaller program
)
def test_a_random_program_is_on_both_what_it_is_in_python(seed: int) -> None:
    said = differs(seed)
    assert not said, said


def test_most_random_programs_are_taken() -> None:
    for seed in range(10, 14):
        assert not differs(seed)
    assert compiled[True] > 3 * compiled[False]


def differs(seed: int) -> str:
    """Where the program of a seed differs; nothing if it does not."""
    numbers = random.Random(seed)
    source = script_generator.Program(numbers).source()
    calls = [script_generator.inputs(numbers) for _ in range(3)]
    ours, theirs = _function(fb, source, seed), _function(torch, source, seed)
    their_script = _scripted(torch, theirs)
    compiled[their_script is not None] += 1
    if their_script is None:  # what it refuses, some of which is taken here
        return ""
    our_script = _scripted(fb, ours)
    if our_script is None:
        return f"{source}\nrefused"
    plain = [_run(ours, fb, call) for call in calls]
    for at in range(CALLS):
        call, python = calls[at % 3], plain[at % 3]
        if isinstance(python, ZeroDivisionError):  # on PyTorch an integer % 0 ends the process
            continue
        expected, got = _run(their_script, torch, call), _run(our_script, fb, call)
        if isinstance(expected, Exception) and isinstance(got, Exception):
            continue
        # PyTorch drops what is not read, and its errors.
        if isinstance(python, Exception) and isinstance(got, Exception):
            continue
        if repr(expected) != repr(got):
            return f"{source}\ncall {at} of {call}:\n{expected}\n{got}\n{python}"
    return ""


def _function(library: Any, source: str, seed: int) -> Any:
    name = f"<random program {seed} of {library.__name__}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    space = {
        "__name__": "random_programs",
        "torch": library,
        "math": __import__("math"),
        "Tensor": library.Tensor,
    }
    space |= {name: getattr(typing, name) for name in ("List", "Dict", "Tuple", "Optional")}
    exec(compile(source, name, "exec"), space)
    return space["f"]


def _scripted(library: Any, function: Any) -> Any:
    try:
        return library.jit.script(function)
    except RuntimeError:
        return None


def _run(function: Any, library: Any, call: Any) -> Any:
    """What a call gives and does to its arguments, and which results share memory."""
    x, y, *rest = copy.deepcopy(call)
    given = [library.tensor(x), library.tensor(y), *rest]
    try:
        made = function(*given)
    except Exception as error:  # what a program raises is an answer, too
        return error
    first = _plain(made), _plain(given)
    for each in made:
        for tensor in each if isinstance(each, list) else [each]:
            if isinstance(tensor, torch.Tensor | fb.Tensor):
                tensor.add_(1)
    return first, _plain(made)


def _plain(what: Any) -> Any:
    if isinstance(what, tuple | list):
        return type(what)(map(_plain, what))
    if isinstance(what, dict):
        return {key: _plain(value) for key, value in what.items()}
    if isinstance(what, torch.Tensor | fb.Tensor):
        dtype = str(what.dtype).rpartition(".")[2]
        return dtype, tuple(what.shape), [f"{v + 0:.5g}" for v in what.detach().flatten().tolist()]
    return f"{what + 0.0:.9g}" if isinstance(what, float) else what


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    found = {seed: differs(seed) for seed in range(int(sys.argv[1]), int(sys.argv[2]))}
    for seed, text in found.items():
        if text:
            print(f"--- seed {seed}\n{text}")
    print(f"PyTorch took {compiled[True]} and refused {compiled[False]}")
    print(f"{sum(map(bool, found.values()))} of {len(found)} programs differ")
