"""Running a script or a module as Python would, with ``torch`` meaning flambeau."""

from __future__ import annotations

import builtins
import io
import os
import runpy
import sys
from collections.abc import Callable, Sequence
from types import ModuleType, TracebackType

from flambeau.compat._alias import module_of, torch_alias
from flambeau.compat._versions import DEFAULT


def run_script(path: str, arguments: Sequence[str] = (), version: str = DEFAULT) -> int:
    """Run a script as the main program and return its exit status.

    Tracebacks begin in the script.  Processes that it starts inherit the meaning of ``torch``, be
    it with `multiprocessing` or as commands of this Python.

    Args:
        path: the script.
        arguments: what it finds in ``sys.argv[1:]``.
        version: which PyTorch it is told that it has, as in `torch_alias`.

    Raises:
        OSError: the script cannot be read.
        SystemExit: the script raised it.
        KeyboardInterrupt: it was interrupted; the traceback is not printed yet.
    """
    with io.open_code(os.path.abspath(path)) as file:
        source = file.read()
    module = _main()
    module.__file__ = path

    def execute() -> None:
        sys.modules["__main__"] = module
        exec(compile(source, path, "exec"), module.__dict__)

    return _run(execute, [path, *arguments], os.path.dirname(os.path.abspath(path)), version)


def run_module(name: str, arguments: Sequence[str] = (), version: str = DEFAULT) -> int:
    """Run a module as the main program, as ``python -m`` does, and return its exit status.

    Args:
        name: the module, or the package whose ``__main__`` it is.
        arguments: what it finds in ``sys.argv[1:]``.
        version: as for `run_script`.

    Raises:
        SystemExit: the module raised it.
        KeyboardInterrupt: it was interrupted; the traceback is not printed yet.
    """

    def execute() -> None:
        runpy.run_module(module_of(name), run_name="__main__", alter_sys=True)

    return _run(execute, [name, *arguments], os.getcwd(), version)


def run_command(text: str, arguments: Sequence[str] = (), version: str = DEFAULT) -> int:
    """Run a text as the main program, as ``python -c`` does, and return its exit status.

    Args:
        text: the program.
        arguments: what it finds in ``sys.argv[1:]``.
        version: as for `run_script`.

    Raises:
        SystemExit: the program raised it.
    """
    module = _main()

    def execute() -> None:
        sys.modules["__main__"] = module
        exec(compile(text, "<string>", "exec"), module.__dict__)

    return _run(execute, ["-c", *arguments], "", version)


def _main() -> ModuleType:
    module = ModuleType("__main__")
    module.__dict__["__builtins__"] = builtins
    return module


def _run(execute: Callable[[], None], arguments: list[str], home: str, version: str) -> int:
    before = sys.argv, sys.path[:], sys.modules.get("__main__")
    sys.argv = arguments
    if not sys.flags.safe_path:
        sys.path.insert(0, home)
    try:
        with torch_alias(version):
            execute()
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:
        error.__traceback__ = _inside(error.__traceback__)
        sys.excepthook(type(error), error, error.__traceback__)
        return 1
    finally:
        sys.argv, sys.path[:], main = before
        if main is not None:
            sys.modules["__main__"] = main
    return 0


def show_from_program() -> None:
    """Let what this process is ended by be shown as Python shows it: from the program on."""
    shown = sys.excepthook

    def show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        inside = trace
        while inside is not None and inside.tb_frame.f_code.co_filename != __file__:
            inside = inside.tb_next
        inside = _inside(inside) or trace
        error.__traceback__ = inside
        shown(kind, error, inside)

    sys.excepthook = show


def _inside(trace: TracebackType | None) -> TracebackType | None:
    """The part of a traceback that begins in the program; none of it for errors of its syntax."""
    while trace is not None and trace.tb_frame.f_code.co_filename in _OUTSIDE:
        trace = trace.tb_next
    return trace


_OUTSIDE = {__file__, runpy.__file__, "<frozen runpy>"}
