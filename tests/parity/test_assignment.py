"""What `x[key] = value` does with values of other shapes and kinds agrees, messages included."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import flambeau as fb  # noqa: E402

CASES: dict[str, Any] = {
    "row": lambda t: (0, t.ones(2)),
    "all": lambda t: (slice(None), t.ones(2)),
    "ellipsis": lambda t: (Ellipsis, t.ones(4, 3)),
    "leading ones": lambda t: (Ellipsis, t.ones(1, 2, 3)),
    "rank": lambda t: (0, t.ones(2, 3)),
    "cut rank": lambda t: (0, t.ones(1, 1, 2)),
    "element": lambda t: ((0, 0), t.ones(2)),
    "new dimension": lambda t: (None, t.ones(2)),
    "index": lambda t: (t.tensor([0, 1]), t.ones(3, 3)),
    "index and leading ones": lambda t: (t.tensor([0, 1]), t.ones(1, 2, 3)),
    "index rank": lambda t: (t.tensor([0, 1]), t.ones(4, 2, 3)),
    "list": lambda t: ([0, 1], t.ones(2)),
    "pairs": lambda t: ((t.tensor([0, 1]), t.tensor([0, 2])), t.ones(3)),
    "columns": lambda t: ((slice(None), t.tensor([0, 2])), t.ones(3, 2)),
    "row mask": lambda t: (t.tensor([True, False]), t.ones(2)),
    "mask": lambda t: (t.ones(2, 3) > 0, t.ones(4)),
    "mask and number": lambda t: ((t.tensor([True, False]), 0), t.ones(2)),
    "true": lambda t: (True, t.ones(2)),
    "true of another dtype": lambda t: (True, t.ones(3, dtype=t.float64)),
    "false": lambda t: (False, t.ones(2)),
    "dtype at an index": lambda t: (t.tensor([0, 1]), t.ones(3, dtype=t.float64)),
    "list of numbers": lambda t: (0, [1.0, 2.0, 3.0]),
    "text": lambda t: (0, "a"),
    "none": lambda t: (0, None),
    "out of range": lambda t: (5, 1.0),
    "too many": lambda t: ((0, 0, 0), 1.0),
}


def outcome(library: Any, case: str) -> Any:
    x = library.zeros(2, 3)
    key, value = CASES[case](library)
    try:
        x[key] = value
    except Exception as error:  # what is compared
        return type(error), str(error).split("\n")[0]
    return x.tolist()


@pytest.mark.parametrize("case", CASES)
def test_assignments_agree_with_pytorch(case: str) -> None:
    assert outcome(fb, case) == outcome(torch, case)


@pytest.mark.parametrize("shape", [(4,), (2, 2, 3)])
def test_copies_of_another_shape_are_refused_in_pytorchs_words(shape: tuple[int, ...]) -> None:
    messages = []
    for library in (torch, fb):
        with pytest.raises(RuntimeError) as caught:
            library.zeros(2, 3).copy_(library.ones(shape))
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
