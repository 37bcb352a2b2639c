"""A file of PyTorch 1.2's own tests, by unittest: a line for each test that passed or was skipped.

Arguments: the file, and how many seconds of processor time a test may take.
"""

from __future__ import annotations

import importlib
import math
import os
import signal
import sys
import traceback
import types
import unittest
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any


def main() -> None:
    """Run the tests of the file; the exit status is 0 if it could be imported."""
    path, seconds = Path(sys.argv[1]), float(sys.argv[2])
    sys.argv = [str(path)]
    sys.path.insert(0, str(path.parent))
    os.chdir(path.parent)
    _older_names()
    tests = unittest.defaultTestLoader.loadTestsFromModule(importlib.import_module(path.stem))
    signal.signal(signal.SIGPROF, _stop)
    tests.run(Lines(seconds))
    print(f"{tests.countTestCases()} tests", flush=True)
    os._exit(0)  # whatever threads and processes the tests left


class TookTooLong(BaseException):
    """A test used up its time; no handler of Exception catches it."""


def _stop(*_: object) -> None:
    raise TookTooLong


class Lines(unittest.TestResult):
    """Says what came of each test as soon as it is known."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        signal.setitimer(signal.ITIMER_PROF, self.seconds)

    def stopTest(self, test: unittest.TestCase) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        super().stopTest(test)

    def addSuccess(self, test: unittest.TestCase) -> None:
        print("PASSED", test.id(), flush=True)

    def addExpectedFailure(self, test: unittest.TestCase, err: Any) -> None:
        self.addSuccess(test)

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        print("SKIPPED", test.id(), flush=True)

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        print(
            "FAILED", test.id(), traceback.format_exception_only(*err[:2])[-1].strip(), flush=True
        )

    addError = addFailure  # noqa: N815 - the name that unittest calls


def _older_names() -> None:
    """What these files import and today's PyTorch no longer has; flambeau's stay as they are."""
    import torch
    import torch.autograd._functions.utils as exporting
    import torch.autograd.function as function
    import torch.autograd.gradcheck as checking
    import torch.autograd.profiler as profiling

    if "torch._six" not in sys.modules and importlib.util.find_spec("torch._six") is None:
        six: Any = types.ModuleType("torch._six")
        six.inf, six.nan = math.inf, math.nan
        six.string_classes, six.int_classes = (str, bytes), int
        six.istuple = lambda each: isinstance(each, tuple)
        sys.modules["torch._six"] = torch._six = six
        type(torch.backends.cudnn).disable_global_flags = staticmethod(lambda: None)
    everything = [torch.uint8, torch.bool, torch.int8, torch.int16, torch.int32, torch.int64]
    floating = [torch.float32, torch.float64]
    added = {
        torch: {"fbgemm_is_cpu_supported": lambda: False},
        torch._C: {"_infer_size": torch.functional.broadcast_shapes},
        torch.multiprocessing: {"_supports_context": True},
        checking: {"iter_tensors": _tensors},
        profiling: {"format_time": str},
        exporting: {"prepare_onnx_paddings": None, "check_onnx_broadcast": None},
        torch.testing: {
            "make_non_contiguous": _with_gaps,
            "rand_like": torch.rand_like,
            "randn_like": torch.randn_like,
            "get_all_device_types": lambda: ["cpu"],
            "get_all_math_dtypes": lambda device: [
                *(each for each in everything if each is not torch.bool),
                *floating,
            ],
            "get_all_dtypes": lambda: [*everything, *floating, torch.float16, torch.bfloat16],
        },
        function: {"_nested_map": _nested_map},
        torch._C: dict.fromkeys(["parse_ir", "_propagate_shapes", "_jit_python_print"], _absent),
    }
    for module in ("torch.jit._logging", "torch.jit.quantized"):
        try:
            importlib.import_module(module)
        except ModuleNotFoundError:
            sys.modules[module] = types.ModuleType(module)
            setattr(torch.jit, module.rpartition(".")[2], sys.modules[module])
    for module, names in added.items():
        for name, value in names.items():
            if not hasattr(module, name):
                setattr(module, name, value)


def _tensors(nested: Any, only_requiring_grad: bool = False) -> Iterator[Any]:
    import torch

    if isinstance(nested, torch.Tensor):
        if nested.requires_grad or not only_requiring_grad:
            yield nested
    elif isinstance(nested, Iterable) and not isinstance(nested, str):
        for each in nested:
            yield from _tensors(each, only_requiring_grad)


def _nested_map(chosen: Any, change: Any) -> Any:
    def walk(nested: Any) -> Any:
        if chosen(nested):
            return change(nested)
        if isinstance(nested, dict):
            return {key: walk(value) for key, value in nested.items()}
        return type(nested)(map(walk, nested)) if isinstance(nested, list | tuple) else nested

    return walk


def _absent(*_: Any, **__: Any) -> None:
    raise NotImplementedError("there is no such function")


def _with_gaps(tensor: Any) -> Any:
    if tensor.numel() < 2:
        return tensor.clone()
    room = tensor.new_empty([2 * n for n in tensor.shape])
    return room[(slice(None, None, 2),) * tensor.dim()].copy_(tensor)


if __name__ == "__main__":
    main()
