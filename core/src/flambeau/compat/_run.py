"""Running a script as Python would, with ``torch`` meaning flambeau."""

from __future__ import annotations

import builtins
import io
import os
import sys
from collections.abc import Sequence
from types import ModuleType, TracebackType

from flambeau.compat._alias import torch_alias
from flambeau.compat._versions import DEFAULT


def run_script(path: str, arguments: Sequence[str] = (), version: str = DEFAULT) -> int:
    """Run a script as the main program and return its exit status.

    Tracebacks begin in the script.  Processes that it starts with `multiprocessing` inherit the
    meaning of ``torch``, those that it starts as another command do not.

    Args:
        path: the script.
        arguments: what it finds in ``sys.argv[1:]``.
        version: which PyTorch it is told that it has, as in `torch_alias`.

    Raises:
        OSError: the script cannot be read.
        SystemExit: the script raised it.
    """
    with io.open_code(os.path.abspath(path)) as file:
        source = file.read()
    module = ModuleType("__main__")
    module.__file__ = path
    module.__dict__["__builtins__"] = builtins
    before = sys.argv, sys.path[:], sys.modules.get("__main__")
    sys.argv = [path, *arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    sys.modules["__main__"] = module
    try:
        with torch_alias(version):
            exec(compile(source, path, "exec"), module.__dict__)
    except SystemExit:
        raise
    except BaseException as error:
        error.__traceback__ = _inside(error.__traceback__, path)
        sys.excepthook(type(error), error, error.__traceback__)
        return 1
    finally:
        sys.argv, sys.path[:], main = before
        if main is not None:
            sys.modules["__main__"] = main
    return 0


def _inside(trace: TracebackType | None, path: str) -> TracebackType | None:
    """The part of a traceback that begins in the script; none of it for errors of its syntax."""
    while trace is not None and trace.tb_frame.f_code.co_filename != path:
        trace = trace.tb_next
    return trace
