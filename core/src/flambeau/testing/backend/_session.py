"""One run of the kit: which devices it tests, what they promise, and what the run has shown.

Test modules say at which ``LEVEL`` they are; ``@kit.level`` says it of one test.  A test with an
argument ``device`` runs for each device, with ``@kit.cases("name dtype", function)`` for each
`pytest.param` of these arguments that ``function(device)`` yields.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

import flambeau as fb
from flambeau.plugin import Expectations
from flambeau.plugin.host import host
from flambeau.testing.backend import LEVELS

_PROPERTY = "flambeau level"

DEVICES = pytest.StashKey[tuple[str, ...]]()


def pytest_configure(config: pytest.Config) -> None:
    """Check the devices before anything is collected."""
    named: list[str] | None = config.getoption("device")
    devices = tuple(dict.fromkeys(named or ()))
    if not devices:
        raise pytest.UsageError(
            "say which device to test: --device TYPE, several times if you like; "
            f"there are {', '.join(host.device_types())}"
        )
    for device in devices:
        if device == "meta":
            raise pytest.UsageError("device 'meta' has no data, so there is nothing to compare")
        try:
            host.activate(device)
        except RuntimeError as error:
            raise pytest.UsageError(f"--device {device}: {error}") from error
    config.stash[DEVICES] = devices


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
    if not hasattr(metafunc.function, "cases"):
        metafunc.parametrize("device", devices)
        return
    names, function = metafunc.function.cases
    cases = [
        pytest.param(device, *case.values, marks=case.marks, id=f"{device}-{case.id}")
        for device in devices
        for case in function(device)
    ]
    metafunc.parametrize(["device", *names.split()], cases)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[Any]) -> None:
    """Note each test's device and level, and turn known failures into tests that must fail."""
    promised = {device: host.expectations(device) for device in config.stash[DEVICES]}
    found: dict[str, set[str]] = {device: set() for device in promised}
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
        name = key(item)
        found[device].add(name)
        if (reason := promised[device].known_failures.get(name)) is not None:
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))
    for device, expectations in promised.items():
        _refuse_unknown(device, expectations, found[device])


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
    # A run of some files only knows some tests; a test function that was collected is complete.
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


@pytest.fixture(autouse=True)
def no_hidden_fallback() -> Iterator[None]:
    """No test may pass because the CPU stood in for the device."""
    before = fb.cpu_fallback_counts()
    yield
    assert fb.cpu_fallback_counts() == before, "an op of the device ran on the CPU"


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """The levels that each device has reached."""
    tally: dict[str, Counter[str]] = {}
    for outcome, reports in terminalreporter.stats.items():
        for report in reports:
            for name, value in getattr(report, "user_properties", ()):
                if name == _PROPERTY and outcome:
                    tally.setdefault(value, Counter())[outcome] += 1
    terminalreporter.section("conformance")
    for device in config.stash[DEVICES]:
        results = [(level, tally.get(f"{device} {level}", Counter())) for level in LEVELS]
        for level, counts in results:
            shown = ", ".join(f"{n} {outcome}" for outcome, n in sorted(counts.items()))
            terminalreporter.line(f"{device}: {level:<11} {verdict(counts):<8} {shown}".rstrip())
        reached = "none"
        for level, counts in results:
            if verdict(counts) != "passed":
                break
            reached = level
        terminalreporter.line(f"{device}: level reached: {reached}")


def verdict(counts: Counter[str]) -> str:
    """``passed``, ``FAILED`` or ``not run`` for the counts of outcomes of a level."""
    if counts["failed"] or counts["error"]:
        return "FAILED"
    return "passed" if counts["passed"] else "not run"
