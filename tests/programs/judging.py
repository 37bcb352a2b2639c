"""What the two runs of a program say of flambeau."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from running import Outcome
from table import Program

STATES = ("runs", "fails", "not run")
_NUMBER = re.compile(
    r"(?<![\w.])[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?(?![\w])|\bnan\b|\binf\b"
)


@dataclass(frozen=True)
class Verdict:
    """``runs``, ``fails``, or ``not run`` because PyTorch itself does not; and why."""

    state: str
    text: str


def judge(program: Program, torch: Outcome, flambeau: Outcome | None) -> Verdict:
    """Compare the two runs as the table says."""
    if flambeau is not None and not flambeau.built:
        return Verdict("fails", f"is not built: {last_line(flambeau)}")
    if not torch.built and program.least and flambeau is not None:
        return _judge_alone(program, flambeau)
    if program.check == "tests" and flambeau is not None:
        return _judge_tests(torch, flambeau)
    if program.check == "lines" and flambeau is not None:
        return _judge_lines(program, torch, flambeau)
    if program.check == "suite" and flambeau is not None:
        return _judge_suite(program, torch, flambeau)
    if flambeau is None or torch.status != 0:
        return Verdict("not run", f"on PyTorch: {last_line(torch)}")
    if flambeau.status != 0:
        return Verdict("fails", last_line(flambeau))
    if program.check == "ends":
        return Verdict("runs", "ends")
    ours, theirs = (numbers(run.output, program.ignore) for run in (flambeau, torch))
    count = min(program.numbers or len(theirs), len(theirs))
    if program.endless:
        count = min(len(ours), len(theirs), program.numbers or len(theirs))
        if not count:
            return Verdict("runs", "no number is printed in its time")
    if len(ours) < count or (not program.numbers and not program.endless and len(ours) > count):
        return Verdict("fails", f"prints {len(ours)} numbers, where PyTorch prints {len(theirs)}")
    if not theirs:
        return Verdict("not run", "prints no numbers: the table must say ends")
    for i, (a, b) in enumerate(zip(ours[:count], theirs[:count], strict=True)):
        if not near(a, b, program.tolerance):
            return Verdict("fails", f"number {i} of {count}: {a:g}, where PyTorch has {b:g}")
    return Verdict("runs", f"{count} numbers equal")


def _judge_alone(program: Program, flambeau: Outcome) -> Verdict:
    """What PyTorch of today cannot build or run is held to what its tests say themselves."""
    count = len(passed(flambeau.output))
    text = f"{count} pass; not {'built' if program.build else 'run'} on PyTorch"
    return Verdict("fails" if count < program.least else "runs", text)


def _judge_tests(torch: Outcome, flambeau: Outcome) -> Verdict:
    expected, got = passed(torch.output), passed(flambeau.output)
    if not expected:
        return Verdict("not run", f"on PyTorch: {last_line(torch)}")
    lost = expected - got
    text = f"{len(expected) - len(lost)} of {len(expected)} tests"
    return Verdict("fails" if lost else "runs", text)


def _judge_lines(program: Program, torch: Outcome, flambeau: Outcome) -> Verdict:
    expected, got = passed(torch.output), passed(flambeau.output)
    equal = len(expected & got)
    text = f"{equal} of {len(expected)} lines equal"
    return Verdict("runs" if equal >= (program.least or len(expected)) > 0 else "fails", text)


def _judge_suite(program: Program, torch: Outcome, flambeau: Outcome) -> Verdict:
    expected, got = passed(torch.output), passed(flambeau.output)
    if not got or flambeau.status != 0:
        return Verdict("fails", last_line(flambeau))
    run = len(got) + len(re.findall(r"^FAILED ", flambeau.output, re.MULTILINE))
    if torch.status != 0:
        text = f"{len(got)} of {run} tests; PyTorch 2.13 cannot import them"
        return Verdict("fails" if len(got) < program.least else "runs", text)
    text = f"{len(got)} of {run} tests, {len(expected)} on PyTorch 2.13"
    return Verdict("fails" if len(got) < len(expected) else "runs", text)


def passed(output: str) -> set[str]:
    """The tests that passed, by what pytest prints for ``-rp``, and the driver of suites."""
    return set(re.findall(r"^PASSED (.+)$", output, re.MULTILINE))


def numbers(output: str, ignore: str) -> list[float]:
    """The numbers in a text, without what matches a pattern."""
    text = output.replace("\r", "\n")
    if ignore:
        text = re.sub(ignore, "", text)
    return [float(each) for each in _NUMBER.findall(text)]


def near(a: float, b: float, tolerance: float) -> bool:
    """Whether two numbers are as good as equal."""
    if math.isnan(a) or math.isnan(b) or math.isinf(a) or math.isinf(b):
        return a == b or (math.isnan(a) and math.isnan(b))
    return abs(a - b) <= tolerance * max(1.0, abs(a), abs(b))


def last_line(outcome: Outcome) -> str:
    """What a run that failed said last."""
    if outcome.status == 124:
        return f"no end in {outcome.seconds:.0f} s"
    text = outcome.errors.strip() or outcome.output.strip()
    lines = [
        line for line in text.splitlines() if re.match(r"[\w.]+(Error|Exception|Exit)?: ", line)
    ]
    return (lines or text.splitlines() or [f"exit status {outcome.status}"])[-1].strip()[:200]
