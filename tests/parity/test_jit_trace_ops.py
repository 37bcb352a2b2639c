"""Documented functions and methods, traced: results are those of the call, at other sizes too.

The calls are those of the op parity suite; where no trace can hold, PyTorch's does not either, or
ours is refused, and says why.
"""

import dataclasses
import math
import os
import warnings

import pytest

import flambeau as fb
from op_parity import SHAPES, Case, Index, _code, _letters, _values, calls_of, to_ours, torch
from op_parity_page import ENTRIES
from oracle import flattened

pytestmark = pytest.mark.filterwarnings("ignore")

LARGER = {2: 3, 3: 4, 4: 6}
"""What lengths become at the second size."""
REFUSED = {
    "sparse": "does not see",
    ".eig(": "does not see",
    ".apply_(": "calls Python for each element",
    ".map_(": "calls Python for each element",
    ".storage()": "set_\\(\\) of a storage",
}
"""Calls that no graph has, and what the error says."""
STEP = 1 if os.environ.get("FLAMBEAU_TEST_WHOLE", "") not in ("", "0") else 6
"""One call in so many; all are swept by hand with FLAMBEAU_TEST_WHOLE=1."""


def traceable():
    """The calls whose results follow from their operands alone."""
    seen = {}
    for entry in ENTRIES:
        for name in entry.names.split():
            for call in calls_of(entry, name):
                dtype = "float64" if "float64" in entry.dtypes else entry.dtypes[0]
                case = Case(entry, name, call, dtype, "contiguous")
                if set(_letters(call)) - {"d"} and "manual_seed" not in call:
                    seen.setdefault(call, case)
    return list(seen.values())


CASES = traceable()


def grown(shape):
    return tuple([LARGER.get(length, length) for length in shape])


def larger(case):
    """The case with operands of other lengths; equal ones stay equal."""
    shapes = dict(case.entry.shapes)
    for letter in _letters(case.call):
        given = shapes.get(letter, SHAPES.get(letter, ()))
        if isinstance(given, Index):
            shapes[letter] = dataclasses.replace(given, shape=grown(given.shape))
        else:
            shapes[letter] = grown(given)
    return dataclasses.replace(case, entry=dataclasses.replace(case.entry, shapes=shapes))


def operands(case):
    try:
        return {letter: _values(letter, case) for letter in _letters(case.call) if letter != "d"}
    except ValueError:  # more distinct indices than there are
        return None


def program(library, case, letters):
    code = _code(case.call)

    def run(*given):
        names = {"t": library, "d": getattr(library, case.dtype), "math": math}
        found = eval(code, names | dict(zip(letters, given, strict=True)))
        return tuple([each for each in flattened(found) if isinstance(each, library.Tensor)])

    return run


def results(function, given):
    """What a seeded call returns, or None if it raises."""
    fb.manual_seed(0)
    try:
        found = function(*given)
    except Exception:
        return None
    return found if isinstance(found, tuple) else (found,)


def equal(found, expected, case):
    return len(found) == len(expected) and all(
        a.shape == b.shape
        and a.dtype is b.dtype
        and (
            "empty" in case.call  # the elements are whatever the memory had
            or fb.allclose(a.to(fb.complex128), b.to(fb.complex128), 1e-12, 1e-12, equal_nan=True)
        )
        for a, b in zip(found, expected, strict=True)
    )


def their_trace_holds(case, first, second):
    call = program(torch, case, list(first))
    try:
        traced = torch.jit.trace(
            call, tuple([each.clone() for each in first.values()]), check_trace=False
        )
        found = traced(*[each.clone() for each in second.values()])
        wanted = call(*[each.clone() for each in second.values()])
        found = found if isinstance(found, tuple) else (found,)
        return all(torch.equal(a, b) for a, b in zip(found, wanted, strict=True))
    except Exception:
        return False


def check(case):
    first, second = operands(case), operands(larger(case))
    call = program(fb, case, list(first))

    def ours(values):
        return tuple([to_ours(each) for each in values.values()])

    expected = results(call, ours(first))
    if not expected:
        return "no answer"
    for part, said in REFUSED.items():
        if part in case.call:
            with pytest.raises(RuntimeError, match=said):
                fb.jit.trace(call, ours(first), check_trace=False)
            return "refused"
    traced = fb.jit.trace(call, ours(first), check_trace=False)
    found = results(traced, ours(first))
    assert found is not None and equal(found, expected, case), "differs at its own operands"
    expected = None if second is None else results(call, ours(second))
    if not expected:
        return "holds"
    found = results(traced, ours(second))
    if found is None or not equal(found, expected, case):
        assert not their_trace_holds(case, first, second), "differs at a second size"
        return "as theirs"
    return "holds at both"


@pytest.mark.parametrize("part", range(4))
def test_traced_calls_are_what_they_were_at_two_sizes(part):
    state = fb.get_rng_state()
    seen = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for case in CASES[part * STEP :: 4 * STEP]:
                try:
                    seen.append(check(case))
                except Exception as error:
                    raise AssertionError(f"{case}: {error}") from error
    finally:
        fb.set_rng_state(state)
    assert seen.count("holds at both") > 40
