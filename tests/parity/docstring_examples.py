"""Runs examples of documentation in one library: ``torch``, whichever that is in this process.

Arguments: a file of JSON, ``{name: [statement, ...]}``, and one to write to: a line of JSON for
each name, with what every statement printed and which error it raised.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import random
import signal
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

SECONDS = 60  # for a statement


class TookTooLong(BaseException):
    """A statement did; no handler of Exception catches it."""


def _stop(*_: object) -> None:
    raise TookTooLong


def namespace(name: str) -> dict[str, Any]:
    """What the examples of a name take for granted."""
    found: dict[str, Any] = {"torch": torch, "np": np, "numpy": np, "__name__": "__main__"}
    found["nn"], found["optim"] = torch.nn, torch.optim
    found["F"] = importlib.import_module("torch.nn.functional")
    home, _, short = name.rpartition(".")
    if home not in ("torch", "torch.Tensor"):
        with contextlib.suppress(ImportError):
            module = importlib.import_module(home)
            names = getattr(module, "__all__", [short])
            found |= {n: getattr(module, n) for n in names if hasattr(module, n)}
    return found


def run(name: str, statements: list[str]) -> list[tuple[str, str]]:
    """What each statement printed, and the class and text of its error."""
    torch.set_default_device(None)
    torch.set_default_dtype(torch.float32)
    torch.set_grad_enabled(True)
    torch.set_printoptions(profile="default")
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)
    names, found = namespace(name), []
    for statement in statements:
        printed, error = io.StringIO(), ""
        signal.alarm(SECONDS)
        try:
            with contextlib.redirect_stdout(printed):
                exec(compile(statement, "<example>", "single"), names)
        except (Exception, SystemExit, TookTooLong) as raised:
            error = f"{type(raised).__name__}: {raised}"
        finally:
            signal.alarm(0)
        found.append((printed.getvalue(), error))
    return found


def main(given: str, results: str) -> None:
    """Run all; whatever threads the examples left do not keep the process."""
    signal.signal(signal.SIGALRM, _stop)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    with Path(results).open("w") as file:
        for name, statements in json.loads(Path(given).read_text()).items():
            print(json.dumps([name, run(name, statements)]), file=file, flush=True)
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
