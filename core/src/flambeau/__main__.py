"""The command line: ``python -m flambeau`` and the ``flambeau`` script."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from flambeau._doctor import PROBLEM, diagnose, format_findings
from flambeau._overview import kernel_table, overview
from flambeau.plugin.host import PluginHost, host


def main(argv: Sequence[str] | None = None, *, plugins: PluginHost = host) -> int:
    """Run one command and return the exit status: 0, or 1 if something is wrong.

    Args:
        argv: arguments after the program's name; those of the process by default.
        plugins: the host to describe.

    >>> from flambeau.__main__ import main
    >>> from flambeau.plugin.host import PluginHost
    >>> main(["kernels", "nosuch"], plugins=PluginHost(entry_points=list))
    1
    """
    arguments = _parser().parse_args(argv)
    return arguments.run(arguments, plugins)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m flambeau",
        description="Shows which devices flambeau can use, who provides them, and what is wrong.",
    )
    parser.set_defaults(run=_devices)
    commands = parser.add_subparsers(title="commands", metavar="")

    devices = commands.add_parser(
        "devices", help="devices, providers, versions and op coverage (the default)"
    )
    devices.set_defaults(run=_devices)

    kernels = commands.add_parser("kernels", help="who runs each op on a device")
    kernels.add_argument("device", metavar="DEVICE", help="a device type, such as cpu")
    kernels.set_defaults(run=_kernels)

    doctor = commands.add_parser("doctor", help="try everything and explain every failure")
    doctor.add_argument("--traceback", action="store_true", help="show where each error was raised")
    doctor.set_defaults(run=_doctor)
    return parser


def _devices(arguments: argparse.Namespace, plugins: PluginHost) -> int:
    return _printed(overview, plugins)


def _kernels(arguments: argparse.Namespace, plugins: PluginHost) -> int:
    return _printed(lambda p: kernel_table(p, arguments.device), plugins)


def _doctor(arguments: argparse.Namespace, plugins: PluginHost) -> int:
    findings = diagnose(plugins)
    print(format_findings(findings, with_traceback=arguments.traceback))
    return int(any(finding.level == PROBLEM for finding in findings))


def _printed(text: Callable[[PluginHost], str], plugins: PluginHost) -> int:
    try:
        print(text(plugins))
    except (RuntimeError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
