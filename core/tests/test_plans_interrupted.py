"""An interrupt during a capture leaves the process as it was."""

from __future__ import annotations

import itertools
import math
import sys
import weakref

import flambeau as fb
from flambeau.plans import capture, followed

PLACES = {"_listen": 197, "_restore": 7, "_of_math": 9, "_let_go": 7}
"""Functions, and how far apart the lines are that are tried."""
FILES = (capture.__file__, followed.__file__)


class Interrupt(BaseException):
    pass


class Counts:
    """Where a number is kept that is followed."""


counts, sqrt = Counts(), math.sqrt


def compiled_with_an_interrupt_at(place, count):
    """Compile and run with an exception before a line of what sets up a capture or ends it."""
    left = itertools.count(count, -1)

    def trace(frame, event, arg):
        if frame.f_code.co_filename not in FILES or frame.f_code.co_name != place:
            return None
        if event == "line" and next(left) == 0:
            raise Interrupt
        return trace

    counts.count = 0

    def counted(x):
        counts.count += 1
        return x * math.sqrt(counts.count)

    f, x = fb.compile(counted), fb.ones(2)
    f(x)
    f(x)
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        for _ in range(2):
            f(x)
    except Interrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def test_an_interrupt_anywhere_around_a_capture_leaves_nothing_that_listens(plain):
    backend, kernels = plain([1.0])._be.backend, dict(plain([1.0])._be.kernels)
    for place, step in PLACES.items():
        hits = 0
        for count in itertools.chain(range(3), itertools.count(3, step)):
            if not compiled_with_an_interrupt_at(place, count):
                break
            hits += 1
            assert plain([1.0])._be.backend is backend, (place, count)
            assert plain([1.0])._be.kernels == kernels
            assert not capture.busy()
            assert type(counts.count) is int, (place, count)
            assert math.sqrt is sqrt
        assert hits > 5
    f = fb.compile(lambda x: x * 3)
    assert [f(plain([float(i)])).item() for i in range(4)] == [0.0, 3.0, 6.0, 9.0]
    assert f.explain().plans == 1


def test_no_code_runs_where_an_array_of_a_capture_or_a_trace_ends():
    # An exception that comes while it runs, be it Ctrl-C, would be printed and forgotten.
    callbacks = []
    note = callbacks.extend  # a list that the function named would be a reason not to plan

    def f(x):
        y = x * 2
        note(ref.__callback__ for ref in weakref.getweakrefs(y._a))
        return y + 1

    g = fb.compile(f)
    for _ in range(3):
        g(fb.ones(2))
    assert g.explain().plans == 1
    captured = len(callbacks)
    fb.jit.trace(f, (fb.ones(2),), check_trace=False)
    assert len(callbacks) > captured > 0
    assert callbacks == [None] * len(callbacks)
