"""One run of the kit: which devices it tests, what they promise, and what the run has shown.

Test modules say at which ``LEVEL`` they are; ``@kit.level`` says it of one test.  A test with an
argument ``device`` runs for each device, with ``@kit.cases("name dtype", function)`` for each
`pytest.param` of these arguments that ``function(device)`` yields.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import flambeau as fb
from flambeau.ops import OPS
from flambeau.plugin import API_VERSION, Expectations
from flambeau.plugin.host import host
from flambeau.testing.backend import HINTS, LEVELS
from flambeau.testing.backend._quick import SECONDS, in_turns, is_quick

_KIT = "flambeau.testing.backend"
_PROPERTY = "flambeau level"
HINT = "flambeau hint"
_LATE = "flambeau late"
NOT_REACHED = "not reached"

SEED = int(os.environ.get("FLAMBEAU_TEST_SEED", "0"))
"""Of each test; another one shows what holds by the luck of its numbers."""

BEGAN = pytest.StashKey[float]()
DEVICES = pytest.StashKey[tuple[str, ...]]()
NAMES = pytest.StashKey[dict[str, set[str]]]()
"""All tests of the collected functions, by device; of them a run may select a few."""


def pytest_configure(config: pytest.Config) -> None:
    """Check the devices before anything is collected."""
    named: list[str] | None = config.getoption("device")
    devices = tuple(dict.fromkeys(named or ()))
    if not devices:
        raise pytest.UsageError(
            "say which device to test: --device TYPE, several times if you like; "
            f"there are {', '.join(host.device_types())}"
        )
    written: str | None = config.getoption("conformance_json")
    if written and not Path(written).absolute().parent.is_dir():  # said before the run, not after
        raise pytest.UsageError(f"--conformance-json {written}: there is no such folder")
    for device in devices:
        if device == "meta":
            raise pytest.UsageError("device 'meta' has no data, so there is nothing to compare")
        try:
            host.activate(device)
        except RuntimeError as error:
            raise pytest.UsageError(f"--device {device}: {error}") from error
        for hook, answer in (("expectations", host.expectations), ("report", host.report)):
            try:
                answer(device)
            except Exception as error:  # a plugin's code may raise anything
                cause = f"flambeau_{hook} failed: {type(error).__name__}: {error}"
                raise pytest.UsageError(f"--device {device}: {cause}") from error
    config.stash[DEVICES] = devices
    config.stash[NAMES] = {device: set() for device in devices}


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Who serves the devices, and with which libraries."""
    lines = [f"flambeau {fb.__version__}"]
    for device in config.stash[DEVICES]:
        providers = Counter(host.providers(device).values())
        served = ", ".join(f"{name} ({count} kernels)" for name, count in providers.items())
        facts = ", ".join(f"{name} {value}" for name, value in host.report(device).items())
        lines.append(f"device {device}: {served}{'; ' + facts if facts else ''}")
    return lines


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test per device, or per device and case."""
    if "device" not in metafunc.fixturenames:
        return
    devices = metafunc.config.stash[DEVICES]
    known, test = metafunc.config.stash[NAMES], metafunc.function.__name__
    if not hasattr(metafunc.function, "cases"):
        metafunc.parametrize("device", devices)
        for device in devices:
            known[device].add(test)
        return
    names, function = metafunc.function.cases
    cases = []
    for device in devices:
        for case in function(device):
            named = f"{device}-{case.id}"
            cases.append(pytest.param(device, *case.values, marks=case.marks, id=named))
            known[device].add(f"{test}[{case.id}]")
    metafunc.parametrize(["device", *names.split()], cases)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[Any]) -> None:
    """Note each test's device and level, and turn known failures into tests that must fail."""
    promised = {device: host.expectations(device) for device in config.stash[DEVICES]}
    order = (*LEVELS, HINTS)
    last = order.index(config.getoption("level") or HINTS)
    quick = config.getoption("quick")
    beyond: list[Any] = []
    without_cases = [i for i in items if hasattr(i.function, "cases") and not _runs(i)]
    if without_cases:  # pytest has put a skipped placeholder there
        config.hook.pytest_deselected(items=without_cases)
        items[:] = [i for i in items if i not in without_cases]
    for item in items:
        if not _runs(item):
            continue
        device = item.callspec.params["device"]
        level = getattr(item.function, "level", None) or item.module.LEVEL
        item.user_properties.append((_PROPERTY, f"{device} {level}"))
        if order.index(level) > last or (
            quick and not is_quick(item.function, item.module.__name__, item.callspec.params)
        ):
            beyond.append(item)
        if (reason := promised[device].known_failures.get(key(item))) is not None:
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))
    if beyond:
        config.hook.pytest_deselected(items=beyond)
        dropped = set(map(id, beyond))
        items[:] = [i for i in items if id(i) not in dropped]
    if quick:
        parts = [getattr(i.module, "LEVEL", "") if _is_memory(i) else i.function for i in items]
        items[:] = in_turns(items, [str(part) for part in parts], "memory")
    for device, expectations in promised.items():
        _refuse_unknown(device, expectations, config.stash[NAMES][device])


def _is_memory(item: Any) -> bool:
    return getattr(item.module, "LEVEL", "") == "memory"


def seconds_of(config: pytest.Config) -> float:
    """After how many seconds no test begins; 0 for no such time."""
    given: float | None = config.getoption("seconds")
    return given if given is not None else SECONDS if config.getoption("quick") else 0.0


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> bool | None:
    """Report a test as not reached once the time is over."""
    seconds = seconds_of(item.config)
    if not seconds or not _runs(item):
        return None
    now = time.monotonic()
    if now - item.config.stash.setdefault(BEGAN, now) < seconds:
        return None
    path, line, name = item.location
    report = pytest.TestReport(
        nodeid=item.nodeid,
        location=item.location,
        keywords={},
        outcome="skipped",
        longrepr=(path, line or 0, f"{name}: no time was left"),
        when="call",
        user_properties=[*item.user_properties, (_LATE, "")],
    )
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_report_teststatus(report: object) -> tuple[str, str, str] | None:
    """Count what was not reached under that name."""
    properties = getattr(report, "user_properties", ())
    if getattr(report, "when", "") == "call" and (_LATE, "") in map(tuple, properties):
        return NOT_REACHED, "", ""
    return None


def _runs(item: Any) -> bool:
    """Whether an item is a test of a device."""
    return hasattr(item, "callspec") and isinstance(item.callspec.params.get("device"), str)


def key(item: Any) -> str:
    """What `Expectations.known_failures` calls a test: its name and case, without the device."""
    name, _, identity = item.name.partition("[")
    device = item.callspec.params["device"]
    case = identity.removesuffix("]").removeprefix(device).removeprefix("-")
    return f"{name}[{case}]" if case else name


def _refuse_unknown(device: str, expectations: Expectations, found: set[str]) -> None:
    # A run of some files knows the tests of those.
    collected = {name.partition("[")[0] for name in found}
    unknown = [
        name
        for name in expectations.known_failures
        if name.partition("[")[0] in collected and name not in found
    ]
    if unknown:
        raise pytest.UsageError(
            f"the expectations of device {device!r} list known failures that are no tests of the "
            f"kit: {', '.join(unknown)}"
        )
    if no_ops := sorted({op for op, _ in expectations.tolerances} - OPS.keys()):
        raise pytest.UsageError(
            f"the expectations of device {device!r} have tolerances of what is no op: "
            f"{', '.join(no_ops)}"
        )


@pytest.fixture(autouse=True)
def seeded() -> None:
    """A test draws the same numbers alone as after others, and in whichever worker it runs."""
    fb.manual_seed(SEED)


@pytest.fixture(autouse=True)
def no_hidden_fallback() -> Iterator[None]:
    """No test may pass because the CPU stood in for the device."""
    before = fb.cpu_fallback_counts()
    yield
    assert fb.cpu_fallback_counts() == before, "an op of the device ran on the CPU"


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """The levels that each device has reached."""
    tally: dict[str, Counter[str]] = {}
    hints: dict[str, list[str]] = {}
    named: dict[str, dict[str, list[str]]] = {d: {} for d in config.stash[DEVICES]}
    for outcome, reports in terminalreporter.stats.items():
        for report in reports:
            for name, value in getattr(report, "user_properties", ()):
                if name == _PROPERTY and outcome not in ("", "deselected"):
                    tally.setdefault(value, Counter())[outcome] += 1
                    if outcome not in ("passed", "skipped"):
                        test = report.nodeid.rpartition("::")[2]
                        named[value.partition(" ")[0]].setdefault(outcome, []).append(test)
                elif name == HINT and outcome == "passed":
                    device, _, text = value.partition(" ")
                    hints.setdefault(device, []).append(text)
    terminalreporter.section("conformance")
    left_out = what_left_tests_out(config, terminalreporter)
    summaries = {}
    for device in config.stash[DEVICES]:
        results = [(level, tally.get(f"{device} {level}", Counter())) for level in LEVELS]
        for level, counts in results:
            shown = ", ".join(f"{n} {outcome}" for outcome, n in sorted(counts.items()))
            terminalreporter.line(f"{device}: {level:<11} {verdict(counts):<8} {shown}".rstrip())
        for text in hints.get(device, ()):
            terminalreporter.line(f"{device}: hint: {text}")
        reached = level_reached(results)
        by = f", by a part of the kit ({left_out}): no badge" if left_out else ""
        terminalreporter.line(f"{device}: level reached: {reached}{by}")
        earned = "" if left_out else badge(device, reached)
        if earned:
            terminalreporter.line(f"{device}: badge: {earned}")
        summaries[device] = {
            "reached": reached,
            "badge": earned,
            "complete": not left_out,
            "providers": dict(Counter(host.providers(device).values())),
            "report": host.report(device),
            "levels": {
                level: {"verdict": verdict(counts), "outcomes": dict(sorted(counts.items()))}
                for level, counts in results
            },
            "hints": hints.get(device, []),
            "tests": {outcome: sorted(tests) for outcome, tests in named[device].items()},
        }
    if path := config.getoption("conformance_json"):
        written = {"flambeau": fb.__version__, "api": API_VERSION, "devices": summaries}
        Path(path).write_text(json.dumps(written, indent=2, sort_keys=True) + "\n")


def what_left_tests_out(config: pytest.Config, terminalreporter: Any) -> str:
    """Why the run was not of all tests up to its level; empty if it was."""
    asked = {
        "--quick": config.getoption("quick"),
        "-k": config.option.keyword,
        "-m": config.option.markexpr,
        "--deselect": config.option.deselect,
        "--ignore": config.option.ignore or config.option.ignore_glob,
        "--last-failed": config.getoption("lf", False),
    }
    found = [option for option, value in asked.items() if value]
    if late := len(terminalreporter.stats.get(NOT_REACHED, ())):
        every = late + sum(
            any(name == _PROPERTY for name, _ in getattr(report, "user_properties", ()))
            for outcome, reports in terminalreporter.stats.items()
            if outcome not in ("", "deselected", NOT_REACHED)
            for report in reports
        )
        found.append(f"{every - late} of {every} tests run in {seconds_of(config):g} s")
    whole = (_KIT, str(Path(__file__).parent))
    if not any(argument.rstrip(os.sep) in whole for argument in config.args):
        found.append("single files")
    session = terminalreporter._session
    if session is not None and (session.shouldstop or session.shouldfail):
        found.append("stopped early")
    return ", ".join(found)


def level_reached(results: list[tuple[str, Counter[str]]]) -> str:
    """The last level before the first that has not passed, or ``none``."""
    reached = "none"
    for level, counts in results:
        if verdict(counts) != "passed":
            break
        reached = level
    return reached


def badge(device: str, reached: str) -> str:
    """A badge of the level in Markdown, for the README of the backend.

    >>> from flambeau.testing.backend._session import badge
    >>> badge("toy", "training")
    '![flambeau toy: training](https://img.shields.io/badge/flambeau_toy-training-brightgreen)'
    """
    colour = {"none": "red", "memory": "orange", "primitives": "yellow", "inference": "green"}
    label = device.replace("_", "__")  # a single underscore is a space there
    return (
        f"![flambeau {device}: {reached}](https://img.shields.io/badge/"
        f"flambeau_{label}-{reached}-{colour.get(reached, 'brightgreen')})"
    )


def verdict(counts: Counter[str]) -> str:
    """``passed``, ``FAILED`` or ``not run`` for the counts of outcomes of a level."""
    if counts["failed"] or counts["error"]:
        return "FAILED"
    return "passed" if counts["passed"] else "not run"
