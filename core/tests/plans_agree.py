"""Whether a function and its plan give the same bits."""

from __future__ import annotations

from typing import Any

import flambeau as fb


def memory(t: fb.Tensor) -> Any:
    """The dtype, geometry and bytes of a tensor."""
    return t.dtype, tuple(t.shape), t.stride(), t.contiguous().cpu().numpy().tobytes()


def agree(function: Any, *args: fb.Tensor) -> None:
    """The function and its plan give the same bits, whatever number of threads there is."""
    compiled, before = fb.compile(function), fb.get_num_threads()
    try:
        expected = [memory(t) for t in function(*args)]
        for threads in (1, 1, 1, 2, 3):
            fb.set_num_threads(threads)
            assert [memory(t) for t in compiled(*args)] == expected
    finally:
        fb.set_num_threads(before)
    assert compiled.explain().replays == 3


def ops_of(steps: list[Any]) -> list[str]:
    """The names of the calls."""
    return [step.op for step in steps]
