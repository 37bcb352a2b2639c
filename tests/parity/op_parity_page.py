"""The page docs/parity.md: what the op parity suite checks and where the libraries differ.

``python tests/parity/op_parity_page.py`` runs every case (some minutes) and writes the page.
"""

# ruff: noqa: E501 - the text of the page

from __future__ import annotations

import collections
import multiprocessing
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from op_parity import Case, cases, compare, torch
from op_parity_arrangement import ARRANGEMENT
from op_parity_differences import DIFFERENCES, reason_for
from op_parity_indexing import INDEXING
from op_parity_layers import LAYERS
from op_parity_math import LINALG, PRODUCTS, REDUCTION
from op_parity_pointwise import CREATION, POINTWISE
from op_parity_views import VIEWS

PAGE = Path(__file__).parents[2] / "docs" / "parity.md"
WITHOUT_CASE = ("Tensor.cuda", "Tensor.pin_memory", "compiled_with_cxx11_abi")
DOCUMENTED = Path(__file__).with_name("documented_names.txt")
ENTRIES = [
    *POINTWISE,
    *CREATION,
    *VIEWS,
    *ARRANGEMENT,
    *INDEXING,
    *REDUCTION,
    *PRODUCTS,
    *LINALG,
    *LAYERS,
]

_HEAD = """# Parity with PyTorch, op by op

Written by `tests/parity/op_parity_page.py`. Each documented function and method is called on PyTorch 2.13
and on flambeau (`cpu`) with the same operands: dtypes (bool to complex128), layouts (contiguous, transposed,
sliced, expanded, offset, empty, 0-d, with NaN and infinities), argument variants, in-place forms and eleven kinds of
`out=`. Compared are the class of an error, values, dtypes, shapes, `requires_grad`, float64 and
complex128 gradients, what happens to the operands, strides, and which results are views.

A case *agrees* if all of that is equal, or if PyTorch has no kernel for the dtype. Every other case is
on record with a reason; the suite fails at one that is not. The suite runs a fixed part of the cases
of each name; those marked `slow` are the rest.
"""


def by_name() -> dict[str, list[Case]]:
    """The cases of each name, from all of its entries."""
    found: dict[str, list[Case]] = {}
    for entry in ENTRIES:
        for name in entry.names.split():
            found.setdefault(name, []).extend(cases(entry, name))
    return dict(sorted(found.items()))


def missing() -> list[str]:
    """Documented names that PyTorch has too, no case calls, and `WITHOUT_CASE` does not list."""
    called = {name for entry in ENTRIES for name in entry.names.split()}
    for group in by_name().values():
        for call in {case.call for case in group}:
            called.update(re.findall(r"\.(\w+)\(", call))
    called |= {name.rsplit(".", 1)[-1] for name in WITHOUT_CASE}
    both = [n for n in DOCUMENTED.read_text().split() if n not in without_oracle()]
    return [n for n in both if n.rsplit(".", 1)[-1] not in called]


def without_oracle() -> list[str]:
    """Documented names that today's PyTorch has not; tests of their own check them."""

    def known(name: str) -> bool:
        found: Any = torch
        for part in name.split("."):
            found = getattr(found, part, None)
        return found is not None

    return [n for n in DOCUMENTED.read_text().split() if not known(n)]


def judged(case: Case) -> tuple[str, str | None]:
    """What differs in a case, and the reason on record; an empty text if nothing differs."""
    what = compare(case)
    return (what, reason_for(case.name, f"{case} {what}")) if what else ("", None)


def _row(name: str) -> tuple[str, int, int, dict[str, int], list[str]]:
    warnings.simplefilter("ignore")
    group, reasons, unknown = by_name()[name], collections.Counter[str](), []
    for case in group:
        what, reason = judged(case)
        if what and reason is None:
            unknown.append(f"{case} {what}")
        elif reason is not None:
            reasons[reason] += 1
    return name, len(group), len(group) - len(unknown) - reasons.total(), dict(reasons), unknown


def write() -> None:
    """Run every case and write the page; differences that are not on record are printed."""
    with multiprocessing.get_context("spawn").Pool() as pool:
        rows = pool.map(_row, by_name(), chunksize=4)
    numbers = {d: n for n, d in enumerate(dict.fromkeys(d.reason for d in DIFFERENCES), 1)}
    PAGE.write_text("\n".join(_lines(rows, numbers)) + "\n")
    for row in rows:
        for text in row[4]:
            print(row[0], "|", text)


def _lines(rows: list, numbers: dict[str, int]) -> Iterator[str]:
    yield _HEAD
    checked, agreed = sum(r[1] for r in rows), sum(r[2] for r in rows)
    yield f"{len(rows)} names, {checked:,} cases, {agreed:,} agree ({agreed / checked:.2%}).\n"
    absent = missing()
    names = [f"`{n}`" for n in (*absent, *WITHOUT_CASE)]
    yield f"Documented names without a case (a device, or a fact of a build): {', '.join(names)}.\n"
    yield f"Names that today's PyTorch has not: {', '.join(f'`{n}`' for n in without_oracle())}.\n"
    totals = collections.Counter[str]()
    for row in rows:
        totals.update(row[3])
    yield "## Recorded differences\n\n| | cases | why |\n|---|---|---|"
    for reason, number in numbers.items():
        yield f"| {number} | {totals[reason]} | {reason} |"
    yield "\n## Names\n\n| name | cases | agree | recorded (number: cases) |\n|---|---|---|---|"
    for name, count, equal, reasons, _ in rows:
        noted = ", ".join(f"{numbers[r]}: {n}" for r, n in sorted(reasons.items(), key=str))
        yield f"| `{name}` | {count} | {equal} | {noted} |"


if __name__ == "__main__":
    write()
