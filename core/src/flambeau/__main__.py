"""The command line: ``python -m flambeau`` and the ``flambeau`` script."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from flambeau import __version__
from flambeau._cli.doctor import PROBLEM, diagnose, format_findings
from flambeau._cli.hotspots import hotspots
from flambeau._cli.overview import kernel_table, missing_kernels, overview
from flambeau._cli.scaffold import LIKE, write_backend
from flambeau.plugin.host import PluginHost, host
from flambeau.plugin.remedies import install_command


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
    words = sys.argv[1:] if argv is None else argv
    arguments = _parser().parse_args([_KEPT if word == "--" else word for word in words])
    for name, value in vars(arguments).items():
        if isinstance(value, list):
            setattr(arguments, name, ["--" if word == _KEPT else word for word in value])
    return arguments.run(arguments, plugins)


_KEPT = "\0--"
"""Stands for ``--``, which argparse would take away from the arguments of a program."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m flambeau",
        description="Shows which devices flambeau can use, who provides them, and what is wrong.",
    )
    parser.add_argument("--version", action="version", version=f"flambeau {__version__}")
    parser.set_defaults(run=_devices)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    devices = commands.add_parser(
        "devices", help="devices, providers, versions and op coverage (the default)"
    )
    devices.set_defaults(run=_devices)

    kernels = commands.add_parser("kernels", help="who runs each op on a device")
    kernels.add_argument("device", metavar="DEVICE", help="a device type, such as cpu")
    form = kernels.add_mutually_exclusive_group()
    form.add_argument(
        "--missing",
        action="store_true",
        help="only the kernels that the device owes and lacks; status 1 if there are any",
    )
    form.add_argument(
        "--profile",
        nargs=argparse.REMAINDER,
        metavar="SCRIPT",
        help="run a script with the arguments after it, and rank the decomposed ops by time",
    )
    kernels.set_defaults(run=_kernels)

    new = commands.add_parser("new-backend", help="write a package that is a backend")
    new.add_argument("name", metavar="NAME", help="the device type, such as toy")
    new.add_argument(
        "--directory", type=Path, help="where to write it; flambeau-NAME here by default"
    )
    new.add_argument(
        "--like",
        choices=LIKE,
        help="begin with a whole backend, to replace its library: of arrays that are computed at "
        "once, of arrays that are computed when somebody looks, or of devices with streams and "
        "memory of their own; by default with a few kernels on bytes",
    )
    new.set_defaults(run=_new_backend)

    doctor = commands.add_parser("doctor", help="try everything and explain every failure")
    doctor.add_argument("--traceback", action="store_true", help="show where each error was raised")
    doctor.set_defaults(run=_doctor)

    model = commands.add_parser("onnx", help="what is in a model of ONNX")
    model.add_argument("model", metavar="MODEL", help="a file in ONNX's format")
    model.set_defaults(run=_onnx)

    script = commands.add_parser("run", help="run a PyTorch script: there, torch means flambeau")
    script.add_argument(
        "--as",
        dest="version",
        choices=("1.2", "2.13"),
        default="2.13",
        help="which PyTorch the script is told that it has; the default is 2.13. With 1.2, "
        "torch.load reads whole objects, as it did then: only files that you trust",
    )
    script.add_argument(
        "-m",
        dest="module",
        nargs=argparse.REMAINDER,
        metavar=("MODULE", "ARGUMENTS"),
        help="run a module instead, with the arguments after it: run -m pytest tests",
    )
    script.add_argument(
        "-c",
        dest="text",
        nargs=argparse.REMAINDER,
        metavar=("PROGRAM", "ARGUMENTS"),
        help="run a program that is given as a text, with the arguments after it",
    )
    script.add_argument("script", metavar="SCRIPT", nargs="?", help="a Python file")
    script.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of the script")
    script.set_defaults(run=_run)

    traced = commands.add_parser(
        "trace", help="run a script and write when each op ran, for Perfetto and chrome://tracing"
    )
    traced.add_argument(
        "--output", type=Path, default=Path("trace.json"), help="the file; trace.json by default"
    )
    traced.add_argument("script", metavar="SCRIPT", help="a Python file; torch means flambeau")
    rest = traced.add_argument(
        "arguments", nargs=argparse.REMAINDER, help="arguments of the script"
    )
    rest.required = False  # or an error would ask for them beside the script
    traced.set_defaults(run=_trace)
    parser.usage = f"{parser.prog} [-h] [--version] [{' | '.join(commands.choices)}] ..."
    return parser


def _devices(arguments: argparse.Namespace, plugins: PluginHost) -> int:
    return _printed(overview, plugins)


def _kernels(arguments: argparse.Namespace, plugins: PluginHost) -> int:
    device = arguments.device
    if arguments.profile == []:
        print("--profile: name the script to run, and its arguments after it", file=sys.stderr)
        return 2
    if arguments.profile:
        return _printed(lambda p: hotspots(p, device, arguments.profile), plugins)
    if not arguments.missing:
        return _printed(lambda p: kernel_table(p, device), plugins)
    found: tuple[str, ...] = ()

    def missing(plugins: PluginHost) -> str:
        nonlocal found
        found = missing_kernels(plugins, device)
        return "\n".join(found) or f"{device}: every required kernel is there"

    return _printed(missing, plugins) or int(bool(found))


def _new_backend(arguments: argparse.Namespace, plugins: PluginHost) -> int:
    name = arguments.name
    folder = arguments.directory or Path(f"flambeau-{name.replace('_', '-')}")
    try:
        written = write_backend(name, folder, arguments.like)
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    for path in written:
        print(path)
    print(f"\n{folder / 'README.md'} says what to write next; to begin:")
    print(f"  cd {folder} && python -m pip install -e . pytest && python -m pytest tests")
    if taken := ", ".join(entry.distribution for entry in plugins.installed().get(name, ())):
        print(
            f"note: {taken} provides device {name!r} here already; only one package can own it",
            file=sys.stderr,
        )
    return 0


def _doctor(arguments: argparse.Namespace, plugins: PluginHost) -> int:
    findings = diagnose(plugins)
    _show(format_findings(findings, with_traceback=arguments.traceback))
    return int(any(finding.level == PROBLEM for finding in findings))


def _run(arguments: argparse.Namespace, plugins: PluginHost) -> int:
    from flambeau.compat import run_command, run_module, run_script, show_from_program

    try:
        if arguments.module:
            return run_module(arguments.module[0], arguments.module[1:], arguments.version)
        if arguments.text:
            return run_command(arguments.text[0], arguments.text[1:], arguments.version)
        if arguments.script is None:
            print("run: name the script, -m and a module, or -c and a program", file=sys.stderr)
            return 2
        return run_script(arguments.script, arguments.arguments, arguments.version)
    except KeyboardInterrupt:
        show_from_program()  # by Python, which then ends the process by the signal
        raise
    except OSError as error:
        print(f"cannot run {arguments.script}: {error.strerror}", file=sys.stderr)
        return 2


def _trace(arguments: argparse.Namespace, plugins: PluginHost) -> int:
    import flambeau
    from flambeau.compat import run_script, show_from_program
    from flambeau.profiler import profile

    for name in plugins.device_types():  # a device that is first used inside would not be seen
        with suppress(RuntimeError, ImportError):  # the script will be told if it uses this one
            flambeau.empty(0, device=name)
    if problem := _unwritable(arguments.output):  # before a script runs for an hour in vain
        print(f"cannot write {arguments.output}: {problem}", file=sys.stderr)
        return 2
    left: BaseException | None = None
    status = 0
    with profile(record_shapes=True) as seen:
        try:
            status = run_script(arguments.script, arguments.arguments)
        except OSError as error:
            print(f"cannot run {arguments.script}: {error.strerror}", file=sys.stderr)
            return 2
        except SystemExit as end:  # what ran before is what was asked for
            left = end
        except KeyboardInterrupt as end:
            show_from_program()
            left = end
    seen.export_chrome_trace(arguments.output)
    print(f"{len(seen.events())} events in {arguments.output}; open it in https://ui.perfetto.dev")
    if left is not None:
        raise left
    return status


def _unwritable(path: Path) -> str | None:
    """Why a file cannot be written, which is not there afterwards if it was not before."""
    existed = path.exists()
    try:
        with path.open("a", encoding="utf-8"):
            pass
        if not existed:
            path.unlink()
    except OSError as error:
        return error.strerror
    return None


def _onnx(arguments: argparse.Namespace, plugins: PluginHost) -> int:
    try:
        from flambeau.onnx import summary
    except ModuleNotFoundError as error:
        print(f"{error}; it is in flambeau-nn: {install_command('flambeau-nn')}", file=sys.stderr)
        return 1
    try:
        return _printed(lambda _: summary(arguments.model), plugins)
    except ModuleNotFoundError:
        print("the package onnx is missing; pip install 'onnx>=1.17'", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"cannot read {arguments.model}: {error.strerror}", file=sys.stderr)
        return 1


def _printed(text: Callable[[PluginHost], str], plugins: PluginHost) -> int:
    try:
        _show(text(plugins))
    except (RuntimeError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _show(text: str) -> None:
    try:
        print(text, flush=True)
    except BrokenPipeError:  # a reader such as `head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at exit


if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]  # where it was started, which is no place of a script's modules
    sys.exit(main())
