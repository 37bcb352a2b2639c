"""The name ``torch`` in processes that are started afresh: by `multiprocessing`, or as commands."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import spawn
from pathlib import Path
from typing import Any, NoReturn

_FLAGS = set("bBdiOqsuvxPR")
"""Options of Python that leave the program its site packages and take no argument."""
_LEFT = {"flambeau", "pip", "ensurepip", "venv"}
"""Modules that are run as they are: what manages an environment has to see what is installed."""
_FIRST = str(Path(__file__).with_name("_first.py"))


class _Meaning:
    """Part of what a started process is sent first: receiving it enters the alias there."""

    def __init__(self, enter: Callable[[str], None], version: str) -> None:
        self.enter, self.version = enter, version

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return self.enter, (self.version,)


@contextmanager
def started_processes(enter: Callable[[str], None], version: str) -> Iterator[None]:
    """A block in which such processes call `enter` with a version before anything else.

    What processes of `multiprocessing` are sent is pickled and read before they import the main
    module and unpickle what they are to do, for the start methods ``spawn`` and ``forkserver``
    alike.  Commands, and what takes this process's place, are changed by `command_with_torch`.
    """
    tell, start = spawn.get_preparation_data, subprocess.Popen.__init__
    replace, replace_in = os.execv, os.execve  # the others of `os` call one of these

    def and_torch(name: str) -> dict[str, Any]:
        return {**tell(name), "torch": _Meaning(enter, version)}

    def started(self: Any, args: Any, *rest: Any, **named: Any) -> None:
        if not (named.get("shell") or named.get("executable")):
            where = (named.get("env") or os.environ).get("PATH")
            args = command_with_torch(args, version, where)
        start(self, args, *rest, **named)

    def replaced(path: Any, argv: Any) -> NoReturn:
        replace(path, command_with_torch(argv, version))

    def replaced_in(path: Any, argv: Any, env: Any) -> NoReturn:
        replace_in(path, command_with_torch(argv, version), env)

    spawn.get_preparation_data = and_torch
    subprocess.Popen.__init__ = started  # type: ignore[method-assign]
    os.execv, os.execve = replaced, replaced_in
    try:
        yield
    finally:
        os.execv, os.execve = replace, replace_in
        subprocess.Popen.__init__ = start  # type: ignore[method-assign]
        spawn.get_preparation_data = tell


def command_with_torch(args: Any, version: str, where: str | None = None) -> Any:
    """The words of a command, so that in a program of this Python ``torch`` means flambeau.

    Programs that start themselves again, launchers and test suites do so. What isolates itself
    from its environment (``-I``, ``-E``, ``-S``) and what manages it (``pip``) is left alone.

    Args:
        args: the words, or one text, which is left alone.
        version: which PyTorch the program is told that it has.
        where: the ``PATH`` in which the command is looked for; that of this process for None.

    >>> import sys
    >>> command_with_torch([sys.executable, "-u", "-m", "pytest", "tests"], "2.13")[1:]
    ['-u', '-m', 'flambeau', 'run', '--as', '2.13', '-m', 'pytest', 'tests']
    >>> command_with_torch([sys.executable, "-m", "pip", "list"], "2.13")[1:]
    ['-m', 'pip', 'list']
    """
    if isinstance(args, (str, bytes, os.PathLike)):
        return args
    words = list(args)
    at = _place(words) if words and _is_this_python(words[0], where) else None
    if at is None:
        return words
    # Python looks for a script's modules beside it, and not where it is started, which may be a
    # folder of anybody's files; with `-m flambeau` it would look there first.
    script = os.fsdecode(words[at]) not in ("-c", "-m")
    first = [_FIRST] if script else ["-m", "flambeau"]
    return [*words[:at], *first, "run", "--as", version, *words[at:]]


def _is_this_python(word: Any, where: str | None) -> bool:
    found = shutil.which(os.fsdecode(word), path=where)
    if found is None or not sys.executable:
        return False
    here = os.path.dirname(os.path.abspath(found)) == os.path.dirname(sys.executable)
    return here and os.path.samefile(found, sys.executable)


def _place(words: list[Any]) -> int | None:
    """Where the program is named among Python's arguments, or none for what is to be left alone."""
    at = 1
    while at < len(words):
        word = os.fsdecode(words[at])
        if word in ("-c", "-m"):
            module = os.fsdecode(words[at + 1]) if word == "-m" and at + 1 < len(words) else ""
            return None if module.partition(".")[0] in _LEFT else at
        if not word.startswith("-"):
            return at
        if word in ("-W", "-X"):
            at += 1
        elif word[:2] not in ("-W", "-X") and not (word[1:] and set(word[1:]) <= _FLAGS):
            return None
        at += 1
    return None
