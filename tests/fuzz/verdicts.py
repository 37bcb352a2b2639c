"""What a program did: a result, an error that tells users what is wrong, or something worse.

As a script it is the child that runs programs; its argument is the library, so that the same
programs can run on PyTorch.
"""

from __future__ import annotations

import ast
import linecache
import os
import pickle
import re
import sys
import traceback
import warnings
from datetime import timedelta
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

OK, USER, FOREIGN, LIBRARY, PYTHON = "ok", "user error", "foreign", "library text", "python text"
PROGRAM = "<program>"

WORDED = (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, UserWarning)
LIBRARIES = re.compile(
    r"ufunc|(?<!indexing tensors )could not (be )?broadcast|setting an array element|"
    r"[Cc]annot cast|[Mm]aximum (allowed|supported) dimension|Unable to allocate|array is too big|"
    r"shape mismatch: objects|cannot reshape array|Input operand|data type '.*' not|"
    r"numpy\.[a-z_]+\(|"
    r"array must not contain|axes don't match|buffer is smaller|"
    r"cannot be safely cast|is out of bounds for array|inhomogeneous shape|array dimensions|"
    r"non-native byte order|no loop matching|arrays used as indices"
)
"""How NumPy, SciPy, oneDNN and their like speak; users called none of them."""
NAMED = re.compile(r"DLPack|LAPACK|dnnl|oneDNN|NumPy")
"""Names that a message of ours may say, where that is what it is about."""
SPOKEN = re.compile(
    r"object is not (subscriptable|iterable|callable)|unsupported operand type|"
    r"not supported between|"
    r"has no len\(\)|cannot unpack|cannot be interpreted as an integer|must be real number|"
    r"not enough values|too many values|out of range$|has no attribute|int too large|"
    r"unhashable type|bad operand type|invalid literal|could not convert|NoneType|division by zero|"
    r"cannot convert float|can't multiply sequence|can only concatenate|argument of type|zip\(\)|"
    r"__index__ returned|must be a string or a number|math domain error|empty (sequence|iterable)"
)
"""How the interpreter speaks of what is wrong inside of a function."""

OF_GRAPHS = ("call_function", "call_method")
"""Methods of `fx.Interpreter` that call what a program's graph names, in C: its error is theirs."""

OF_MAPPINGS = ("__getitem__", "__delitem__", "pop", "popitem")
"""Methods whose word for a key that is not there is KeyError."""

OF_DATASETS = ("_utils/fetch.py", "data/sampler.py", "data/dataset.py")
"""Files whose KeyError is that of a mapping which a program gave for a dataset."""


def verdict(error: BaseException, library: str) -> tuple[str, str]:
    """The kind of an error that a program ended in, and where in the library it arose."""
    frames = list(traceback.walk_tb(error.__traceback__))
    inner, line = frames[-1]
    ours = [
        (f, n)
        for f, n in frames
        if library in Path(f.f_code.co_filename).parts
        or any(p.startswith("flambeau") for p in Path(f.f_code.co_filename).parts[-4:])
    ]
    if not ours or inner.f_code.co_filename == PROGRAM:
        bound = not ours and inner.f_code.co_filename == PROGRAM
        return (OK if bound else USER), PROGRAM  # a call that Python itself did not begin
    own = [i for i, (f, _) in enumerate(frames) if f.f_code.co_filename == PROGRAM]
    if own and own[-1] > max(i for i, (f, _) in enumerate(frames) if (f, _) in ours):
        return USER, PROGRAM  # a function of the program that the library called called others
    last, at = ours[-1]
    if isinstance(error, KeyError) and inner is last and last.f_code.co_name in OF_MAPPINGS:
        return USER, PROGRAM
    if isinstance(error, KeyError) and inner.f_code.co_filename.endswith(OF_DATASETS):
        return USER, PROGRAM
    if inner is last and last.f_code.co_name in OF_GRAPHS:
        return USER, PROGRAM
    where = f"{'/'.join(Path(last.f_code.co_filename).parts[-2:])}:{at} {last.f_code.co_name}"
    if inner.f_code.co_filename.startswith("<") and inner is not last:
        return USER, where  # a hostile object's own error passes through
    raised = deliberate(inner, line) and (inner is last)
    kind = type(error)
    own = kind.__module__.startswith(library)
    if isinstance(error, MemoryError):
        return (USER if isinstance(error, RuntimeError) else FOREIGN), where
    if not own and (LIBRARIES.search(str(error)) or (NAMED.search(str(error)) and not raised)):
        return LIBRARY, where
    if isinstance(error, pickle.PicklingError) or (
        isinstance(error, OSError) and error.filename is not None
    ):
        return USER, where  # Python's own, which name the object or the file
    if (
        isinstance(error, RecursionError)
        and sum(f.f_code.co_filename == PROGRAM for f, _ in frames) > 9
    ):
        return USER, where  # the program's own functions call themselves
    if kind.__module__.split(".")[0] in ("numpy", "scipy"):
        return FOREIGN, where
    if kind in WORDED or own:
        return (USER if raised or not SPOKEN.search(str(error)) else PYTHON), where
    if raised and (str(error).strip("'\" ") or last.f_code.co_name == "assert_close"):
        return USER, where  # `KeyError` of a `ParameterDict`, said on purpose
    return FOREIGN, where


def deliberate(frame: FrameType, line: int) -> bool:
    """Whether the line that a frame stopped at belongs to a ``raise``."""
    path = frame.f_code.co_filename
    if path not in _raises:
        try:
            tree = ast.parse("".join(linecache.getlines(path)))
        except SyntaxError:
            tree = ast.Module([], [])
        _raises[path] = {
            n
            for node in ast.walk(tree)
            if isinstance(node, ast.Raise) or (isinstance(node, ast.Assert) and node.msg)
            for n in range(node.lineno, (node.end_lineno or node.lineno) + 1)
        }
    return line in _raises[path]


_raises: dict[str, set[int]] = {}


def run(text: str, library: Any) -> dict[str, str]:
    """Run a program on a library, and what it did."""
    if library.__name__ != "flambeau":
        text = text.replace("import flambeau as fb", "import torch as fb")
    fb: Any = library
    names: dict[str, Any] = {"__name__": "program"}
    # `script` reads the source of functions.
    linecache.cache[PROGRAM] = (len(text), None, text.splitlines(keepends=True), PROGRAM)
    classes = {name: value for name, value in vars(fb).items() if isinstance(value, type)}
    fb.manual_seed(0)
    ends: list[BaseException] = []  # what objects raised as they were collected
    sys.unraisablehook = lambda found: ends.append(found.exc_value) if found.exc_value else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            try:
                exec(compile(_tree(text, fb), PROGRAM, "exec"), names)
            finally:  # ``for torch.Tensor in ...`` puts something else there
                vars(fb).update(classes)
            _finish(fb, names.get("r"))
            found = {"kind": OK, "class": "", "message": "", "where": ""}
        except BaseException as error:
            found = _found(error, library.__name__)
        if fb.__name__ == "flambeau" and found["kind"] in (OK, USER):
            found = _of_survivors(fb, names) or found
    names.clear()
    _reset(fb)
    sys.unraisablehook = sys.__unraisablehook__
    for error in ends:
        ended = _found(error, library.__name__)
        if found["kind"] in (OK, USER, PYTHON) and ended["where"] != PROGRAM:
            found = {**ended, "kind": FOREIGN, "message": f"at its end: {ended['message']}"}
    return found


def _tree(text: str, fb: Any) -> str | ast.Module:
    """The program; of flambeau's, what its calls are given is kept, to be used again."""
    if fb.__name__ != "flambeau":
        return text
    from second_use import kept

    return kept(text, PROGRAM)


def _found(error: BaseException, library: str) -> dict[str, str]:
    """What an error was; nothing of it is held."""
    found = {"kind": FOREIGN, "where": "", "class": type(error).__name__, "message": ""}
    if not isinstance(error, KeyboardInterrupt | SystemExit):
        found["kind"], found["where"] = verdict(error, library)
        found["message"] = str(error).encode(errors="replace").decode()[:300]
    _forget(error.__traceback__)
    return found


def _of_survivors(fb: Any, names: dict[str, Any]) -> dict[str, str] | None:
    """The first fault that is seen when the objects of a program are used again."""
    from second_use import uses

    for name, use, value in uses(names):
        try:
            use(value)
        except BaseException as error:
            found = _found(error, fb.__name__)
            if found["kind"] not in (OK, USER, PYTHON):
                line = use.__code__.co_firstlineno if hasattr(use, "__code__") else use
                return {**found, "message": f"{name}, used by {line}: {found['message']}"}
    return None


def _finish(fb: Any, result: Any) -> None:
    """Print what came out, and go back through its history."""
    several = result if isinstance(result, tuple | list) else [result]
    for value in list(several)[:4]:
        if isinstance(value, fb.Tensor):
            repr(value)
            if value.requires_grad and value.grad_fn is not None and value.numel() < 10**7:
                value.sum().abs().backward()
        elif isinstance(value, fb.nn.Module):
            repr(value)


def _forget(trace: TracebackType | None) -> None:
    if trace is not None:
        traceback.clear_frames(trace)


def _reset(fb: Any) -> None:
    """As it was before the program, for the next."""
    if fb.distributed.is_initialized():
        fb.distributed.destroy_process_group()
    if fb.get_default_dtype() is not fb.float32:
        fb.set_default_dtype(fb.float32)
    if not fb.is_grad_enabled():
        fb.set_grad_enabled(True)
    if fb.are_deterministic_algorithms_enabled():
        fb.use_deterministic_algorithms(False)
    if str(fb.get_default_device()) != "cpu":
        fb.set_default_device(None)
    fb.set_printoptions(profile="default", sci_mode=False)


def _wait_little() -> None:
    """Groups of processes whose other members never come are given up after two seconds."""
    from flambeau.distributed import _init

    given = _init.as_timedelta
    _init.as_timedelta = lambda timeout: min(given(timeout), timedelta(seconds=2))


def main() -> None:
    """Serve programs."""
    import importlib

    from children import serve

    library = importlib.import_module(sys.argv[1])
    library.set_num_threads(2)
    os.environ["CXX"] = "false"  # extensions fail when they are compiled, not before
    if library.__name__ == "flambeau":
        _wait_little()
    serve(lambda text: run(text, library), peaks=False)


if __name__ == "__main__":
    main()
