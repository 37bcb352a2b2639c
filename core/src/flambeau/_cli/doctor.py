"""What ``python -m flambeau doctor`` checks: everything that keeps an installation from working."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Iterator
from dataclasses import dataclass

from flambeau._cli.overview import activate_quietly, coverage, nn_version
from flambeau.plugin import API_VERSION
from flambeau.plugin.activation import Activation
from flambeau.plugin.discovery import canonical, core_version
from flambeau.plugin.errors import BackendLoadError, Problem
from flambeau.plugin.host import PluginHost
from flambeau.plugin.remedies import install_command
from flambeau.plugin.validation import OpTable

OK, NOTE, PROBLEM = "ok", "note", "problem"


@dataclass(frozen=True)
class Finding:
    """One line of the diagnosis.

    Attributes:
        level: ``"ok"``, ``"note"`` (works, but worth knowing) or ``"problem"``.
        text: what was found.
        remedy: the command or step that helps; empty if none is needed.
        error: the exception behind it, for ``--traceback``.
    """

    level: str
    text: str
    remedy: str = ""
    error: BaseException | None = None


def diagnose(host: PluginHost) -> list[Finding]:
    """Try everything that is installed and say what works and what does not."""
    findings = [
        Finding(OK, f"flambeau-core {core_version()}, plugin API {API_VERSION}"),
        _nn(),
    ]
    try:
        installed = host.installed()
    except ValueError as error:  # FLAMBEAU_PREFER
        remedy = "correct or unset FLAMBEAU_PREFER in the environment"
        return [*findings, Finding(PROBLEM, str(error), remedy, error)]
    device_types = host.device_types()
    for device_type in sorted({*device_types, "cpu"}):
        findings += _device(host, device_type)
    announced = {entry.distribution for entries in installed.values() for entry in entries}
    for device_type in sorted({*installed, *device_types}):
        for name in host.preferences(device_type):
            if name not in announced:
                text = f"{name} is preferred for {device_type}, but it is not installed"
                findings.append(
                    Finding(NOTE, text, f"{install_command(name)}, or drop the preference")
                )
    for name in sorted(n for n in announced if host.is_blocked(n)):
        findings.append(Finding(NOTE, f"{name} is installed but blocked, as FLAMBEAU_BLOCK asks"))
    return findings


def format_findings(findings: list[Finding], *, with_traceback: bool = False) -> str:
    """The findings as text, one per paragraph, with a count of the problems at the end."""
    lines = []
    for finding in findings:
        first, *rest = finding.text.splitlines()
        lines.append(f"{finding.level:<8} {first}")
        lines += [f"{'':8} {line}" for line in rest]
        if finding.remedy:
            lines.append(f"{'':8} remedy: {finding.remedy}")
        if with_traceback and finding.error is not None:
            trace = "".join(traceback.format_exception(finding.error)).splitlines()
            lines += [f"{'':8} | {line}" for line in trace]
    count = sum(finding.level == PROBLEM for finding in findings)
    lines.append(
        {0: "no problem found", 1: "1 problem found"}.get(count, f"{count} problems found")
    )
    return "\n".join(lines)


def _nn() -> Finding:
    if (version := nn_version()) is None:
        return Finding(
            PROBLEM,
            "flambeau.nn is not installed: modules, losses and optimisers are in flambeau-nn",
            install_command("flambeau-nn"),
        )
    return Finding(OK, f"flambeau-nn {version}")


def _device(host: PluginHost, device_type: str) -> Iterator[Finding]:
    try:
        active = activate_quietly(host, device_type)
    except BackendLoadError as error:
        for problem in error.problems:
            yield _of_problem(problem)
        return
    except RuntimeError as error:  # unknown device, conflict: their text holds the remedy
        yield Finding(PROBLEM, f"{device_type}: {error}", error=error)
        return
    versions = ", ".join(
        f"{name} {version}".rstrip() for name, version in active.distributions.items()
    )
    yield from _hardware(active, f"{device_type}: {versions or active.owner}")
    if (ops := host.op_table()) and (missing := coverage(active.kernels, ops).missing):
        shown = ", ".join(missing[:8]) + (", ..." if len(missing) > 8 else "")
        yield Finding(
            NOTE,
            f"{device_type}: required primitives without a kernel ({len(missing)}): {shown}",
            f"python -m flambeau kernels {device_type} lists them; its provider must supply them",
        )
    yield from _misfits(active, ops, device_type)
    for problem in active.problems:
        yield _of_problem(problem)
    try:
        facts = host.report(device_type)
    except Exception as error:  # a plugin's code may raise anything, and the rest is to be told
        cause = f"{type(error).__name__}: {error}"
        yield Finding(PROBLEM, f"{device_type}: flambeau_report failed: {cause}", "", error)
        return
    for name, fact in facts.items():
        if fact.startswith("not "):  # an accelerator says why it offers nothing
            remedy = install_command(name) if fact.startswith("not installed") else ""
            yield Finding(NOTE, f"{device_type}: {name}: {fact}", remedy)


def _misfits(active: Activation, ops: OpTable, device_type: str) -> Iterator[Finding]:
    """Kernels that cannot be called with the arguments of their op."""
    for name, kernel in sorted(active.kernels.items()):
        params = getattr(ops.get(name), "params", None)
        if params is None:  # a kernel that writes in place, or is of no op
            plain = ops.get(name.removesuffix("_"))
            params = getattr(plain, "filling_params", None) or getattr(plain, "params", None)
        if params is None:
            continue
        try:
            inspect.signature(kernel).bind(*params)
        except ValueError:
            continue  # written in C, says nothing of its arguments
        except TypeError as error:
            yield Finding(
                PROBLEM,
                f"{device_type}: the kernel of {active.providers[name]} for {name!r} does not take "
                f"the arguments ({', '.join(params)}): {error}",
                "correct the kernel; arguments come by position",
                error,
            )


def _hardware(active: Activation, text: str) -> Iterator[Finding]:
    try:
        count = active.backend.device_count()
    except Exception as error:
        cause = f"{type(error).__name__}: {error}"
        yield Finding(
            PROBLEM,
            f"{text}: devices cannot be counted: {cause}",
            "check the driver of this device",
            error,
        )
        return
    if count:
        yield Finding(OK, f"{text}, {count} device{'s' if count > 1 else ''}")
    else:
        yield Finding(NOTE, f"{text} is installed, but this machine has no such device")


def _of_problem(problem: Problem) -> Finding:
    text = f"{problem.device_type}: {problem.text()}"
    if problem.version:
        text += f"\n{canonical(problem.distribution)} {problem.version}"
    chain: list[str] = []
    cause = problem.error.__cause__ or problem.error.__context__
    while cause is not None and len(chain) < 5:
        chain.append(f"caused by {type(cause).__name__}: {cause}")
        cause = cause.__cause__ or cause.__context__
    return Finding(PROBLEM, "\n".join([text, *chain]), problem.remedy(), problem.error)
