"""Does flambeau agree with PyTorch?  Random programs run on both, and all that shows is compared.

    python tests/parity/agreement.py --programs 5000 --seed 0 --show 5

draws programs (agreement_generator.py), replays each on PyTorch and on flambeau and prints how
many agree in the exception of every step, in shapes, dtypes, values, `requires_grad`, `is_leaf`,
`_version` and the gradients of all leaves.  Programs that disagree are made as small as possible
and printed as code.
"""

from __future__ import annotations

import argparse
import builtins
import importlib
import math
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from agreement_programs import Program, Run, render, replay

# The worst first: a program counts where its worst difference belongs.
CATEGORIES = ("value", "gradient", "exception", "shape", "dtype", "flag", "version")
TOLERANCE = {"float64": 1e-9, "float32": 1e-4}  # by the coarsest dtype of a program


@dataclass(frozen=True)
class Difference:
    """One observation in which two runs differ: category, place and both findings."""

    category: str
    where: str
    expected: Any
    found: Any

    def __str__(self) -> str:
        return f"{self.category}: {self.where}: expected {self.expected}, found {self.found}"


@dataclass(frozen=True)
class Verdict:
    """What the comparison of one program gave.

    Attributes:
        program: the program.
        differences: in the order of `CATEGORIES`; empty if the libraries agree.
        scope: how far the comparison went: `"compared to the end"`, `"nothing requires grad"` or
            `"both raise in backward"`.
        raising: the number of steps that raise in both libraries.
    """

    program: Program
    differences: tuple[Difference, ...]
    scope: str
    raising: int

    @property
    def category(self) -> str:
        return self.differences[0].category if self.differences else "agree"


def judge(program: Program, reference: Any, subject: Any, device: str | None = None) -> Verdict:
    """Replay `program` on two libraries with PyTorch's interface and compare.

    `device` names where the subject's tensors live; the reference always uses its default.
    """
    return compare(program, replay(program, reference), replay(program, subject, device))


def compare(program: Program, expected: Run, found: Run) -> Verdict:
    """Everything that can be seen of two runs of one program."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # reading .grad of what is no leaf warns
        differences = list(_compare(program, expected, found))
    differences.sort(key=lambda item: CATEGORIES.index(item.category))
    backward = [
        error
        for step, error in zip(program.steps, expected.errors, strict=True)
        if step.op == "backward"
    ]
    scope = (
        "nothing requires grad"
        if not any(
            _observe(tensor, "requires_grad") is True for tensor in expected.tensors.values()
        )
        else "both raise in backward"
        if any(backward)
        else "compared to the end"
    )
    raising = sum(error is not None for error in expected.errors)
    return Verdict(program, tuple(differences), scope, raising)


def shrink(program: Program, differs: Callable[[Program], bool]) -> Program:
    """The program less every step that `differs` does not need, the last ones first.

    A step is dropped with all that uses its result, or else short-circuited.
    """
    position = len(program.steps)
    while position:
        position = min(position, len(program.steps)) - 1
        for smaller in (program.without(position), program.bypassing(position)):
            if smaller is not None and differs(smaller):
                program = smaller
                break
    return program


def minimal(verdict: Verdict, reference: Any, subject: Any, device: str | None = None) -> Verdict:
    """The verdict on the smallest program found that shows a difference of the same category."""
    small = verdict.program
    while True:
        before = len(small.steps)
        small = shrink(
            small,
            lambda program: judge(program, reference, subject, device).category == verdict.category,
        )
        if len(small.steps) == before:
            return judge(small, reference, subject, device)


def _compare(program: Program, expected: Run, found: Run) -> Iterator[Difference]:
    raised_in_backward = False
    for step, error, other in zip(program.steps, expected.errors, found.errors, strict=True):
        if _kind(error) != _kind(other):
            # From here on the two programs are no longer the same.
            yield Difference("exception", step.op, _describe(error), _describe(other))
            return
        raised_in_backward |= step.op == "backward" and error is not None
    dtypes = {_dtype(tensor) for tensor in expected.tensors.values()}
    tolerance = max((TOLERANCE.get(dtype, 0.0) for dtype in dtypes), default=0.0)
    # PyTorch's matrix product writes into its result, which counts as a version of it.
    versions = "@" not in program.ops()
    for number, tensor in sorted(expected.tensors.items()):
        if number not in found.tensors:
            yield Difference("shape", f"v{number}", "a tensor", "fewer results")
            return
        yield from _compare_flags(f"v{number}", tensor, found.tensors[number], versions)
        yield from _compare_data("value", f"v{number}", tensor, found.tensors[number], tolerance)
    if raised_in_backward:  # how much was accumulated before the exception is nobody's promise
        return
    for number, tensor in sorted(expected.tensors.items()):
        if _observe(tensor, "is_leaf") is not True:
            continue
        gradient, other = tensor.grad, _observe(found.tensors[number], "grad")
        where = f"v{number}.grad"
        if gradient is None or other is None:
            if gradient is not other:
                yield Difference("gradient", where, _state(gradient), _state(other))
        else:
            yield from _compare_data("gradient", where, gradient, other, tolerance)


def _compare_flags(where: str, expected: Any, found: Any, versions: bool) -> Iterator[Difference]:
    for name in ("requires_grad", "is_leaf"):
        if (flag := _observe(expected, name)) != (other := _observe(found, name)):
            yield Difference("flag", f"{where}.{name}", flag, other)
    if versions and expected._version != found._version:
        yield Difference("version", f"{where}._version", expected._version, found._version)


def _compare_data(
    category: str, where: str, expected: Any, found: Any, tolerance: float
) -> Iterator[Difference]:
    if (shape := tuple(expected.shape)) != (other := tuple(found.shape)):
        yield Difference("shape", where, shape, other)
        return
    if (dtype := _dtype(expected)) != (other := _dtype(found)):
        yield Difference("dtype", where, dtype, other)
        return
    left, right = list(_flat(expected.tolist())), list(_flat(found.tolist()))
    # An element may cancel to almost nothing; what its terms weighed is told by the largest one.
    scale = max((abs(x) for x in left if math.isfinite(x)), default=0.0)
    bound = tolerance * max(scale, 1.0) if dtype in TOLERANCE else 0.0
    if not all(_close(x, y, bound) for x, y in zip(left, right, strict=True)):
        yield Difference(category, where, expected.tolist(), found.tolist())


def _dtype(tensor: Any) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _close(x: float, y: float, bound: float) -> bool:
    return x == y or (math.isnan(x) and math.isnan(y)) or abs(x - y) <= bound


def _flat(data: Any) -> Iterator[float]:
    if isinstance(data, list):
        for item in data:
            yield from _flat(item)
    else:
        yield data


def _observe(tensor: Any, name: str) -> Any:
    """An attribute, or the name of the exception that reading it raises (a view may refuse)."""
    try:
        return getattr(tensor, name)
    except Exception as error:  # the exception is the observation
        return _kind(error)


def _kind(error: Exception | None) -> str | None:
    """The builtin class of an exception: a library may raise subclasses of its own."""
    if error is None:
        return None
    return next(
        cls.__name__ for cls in type(error).__mro__ if getattr(builtins, cls.__name__, None) is cls
    )


def _describe(error: Exception | None) -> str:
    return (
        "no exception"
        if error is None
        else f"{type(error).__name__}: {str(error).splitlines()[:1]}"
    )


def _state(gradient: Any) -> Any:
    return None if gradient is None else gradient.tolist()


def report(verdicts: list[Verdict]) -> str:
    """The table of categories, with what the comparison covered."""
    total = len(verdicts)
    counts = Counter(verdict.category for verdict in verdicts)
    lines = [f"{'category':<24}{'programs':>9}{'share':>9}"]
    for category in ("agree", *CATEGORIES):
        lines.append(f"{category:<24}{counts[category]:>9}{counts[category] / total:>9.2%}")
    scopes = Counter(verdict.scope for verdict in verdicts)
    lines += [f"of all, {scope}: {count}" for scope, count in scopes.most_common()]
    lines.append(
        f"steps that raise in the reference: {sum(verdict.raising for verdict in verdicts)}"
    )
    return "\n".join(lines)


def causes(verdicts: list[Verdict]) -> list[tuple[str, list[Verdict]]]:
    """Minimal verdicts by category and the operations that they need, the most frequent first."""
    groups: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        steps = [step.op for step in verdict.program.steps if step.op != "tensor"]
        groups.setdefault(f"{verdict.category}: {' '.join(steps)}", []).append(verdict)
    return sorted(groups.items(), key=lambda item: -len(item[1]))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--programs", type=int, default=5000, help="how many programs to draw")
    parser.add_argument(
        "--seed", type=int, default=0, help="seed of the first; the next ones follow"
    )
    parser.add_argument("--device", default=None, help="device of flambeau's tensors")
    parser.add_argument(
        "--show", type=int, default=10, metavar="N", help="minimal programs to print"
    )
    parser.add_argument(
        "--library", default="flambeau", help="the library that is compared with torch"
    )
    options = parser.parse_args(arguments)

    warnings.simplefilter("ignore")
    import torch

    from agreement_generator import draw

    subject = importlib.import_module(options.library)
    started = time.perf_counter()
    verdicts = [
        judge(draw(options.seed + index), torch, subject, options.device)
        for index in range(options.programs)
    ]
    print(report(verdicts))
    last, seconds = options.seed + options.programs - 1, time.perf_counter() - started
    print(f"seeds {options.seed} to {last}, {seconds:.0f} s")
    disagreeing = [verdict for verdict in verdicts if verdict.differences]
    smallest = [minimal(verdict, torch, subject, options.device) for verdict in disagreeing]
    for cause, members in causes(smallest)[: options.show]:
        first = min(members, key=lambda verdict: len(verdict.program.steps))
        seeds = ", ".join(str(verdict.program.seed) for verdict in members[:8])
        print(f"\n{len(members)} × {cause}   (seeds {seeds})")
        print(*(f"# {difference}" for difference in first.differences[:3]), sep="\n")
        print(render(first.program, replay(first.program, torch).errors))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
