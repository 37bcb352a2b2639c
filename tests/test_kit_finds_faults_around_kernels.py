"""The kit finds faults in copies, generators, threads and compilation, planted in the toy backend.

Those of its kernels are in test_kit_finds_faults_in_toy.py.
"""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flambeau._random.mt19937 import MT19937
from flambeau.plugin import Expectations, KernelSet, hookimpl
from flambeau.plugin.host import host
from flambeau.testing.backend import test_composites, test_errors, test_execution, test_memory

SOURCE = Path(__file__).resolve().parents[1] / "examples/backends/toy/src"

COPIES = [test_memory.test_copies_to_and_from_other_devices]
COMPILED = [test_execution.test_compiled_composites_agree_with_their_decomposition]
THREADS = [test_execution.test_threads_do_not_disturb_each_other]
RANDOM = [
    test_composites.test_a_generator_continues_from_a_state_that_was_kept,
    test_composites.test_generators_do_not_disturb_each_other_and_the_seed_reaches_the_device,
    test_composites.test_random_numbers_repeat_with_the_seed,
]


def refuses_complex(array: Any) -> Any:
    if array.dtype.kind == "c":
        raise TypeError("no complex numbers")
    return array.copy()


COPIERS: dict[str, Callable[[Any], Any]] = {
    "memory is shared": lambda array: array,
    "doubles for all": lambda array: array.astype(np.float64),
    "one dimension for all": lambda array: array.reshape(-1).copy(),
    "column-major": lambda array: array.reshape(-1, order="F").reshape(array.shape).copy(),
    "a dtype is refused": refuses_complex,
}


def forgets_plain_values(self: Any, op: str, decomposition: Any) -> Any:
    kept: dict[Any, Any] = {}

    def run(*args: Any) -> Any:
        key = tuple([a.shape for a in args if isinstance(a, np.ndarray)])
        if key not in kept:
            kept[key] = decomposition(*args)
        return kept[key]

    return run


def right_the_first_time(self: Any, op: str, decomposition: Any) -> Any:
    calls = []

    def run(*args: Any) -> Any:
        calls.append(op)
        result = decomposition(*args)
        return result if len(calls) % 2 or type(result) is tuple else result + 1

    return run


def half_precision(self: Any, op: str, decomposition: Any) -> Any:
    def run(*args: Any) -> Any:
        result = decomposition(*args)
        if isinstance(result, np.ndarray) and result.dtype == np.float32:
            return result.astype(np.float16).astype(np.float32)
        return result

    return run


def one_of_several_results(self: Any, op: str, decomposition: Any) -> Any:
    def run(*args: Any) -> Any:
        result = decomposition(*args)
        return result[0] if isinstance(result, tuple) else result

    return run


class DeafToSeeds(MT19937):
    def seed(self, seed: int) -> None:
        super().seed(int.from_bytes(os.urandom(4), "little"))


class ForgetsItsState(MT19937):
    def set_words(self, words: Any, position: int) -> None:
        """Nothing."""


class ForgetsItsPosition(MT19937):
    def set_words(self, words: Any, position: int) -> None:
        super().set_words(words, 0)


class BeginsAnew(MT19937):
    def random_bits(self, n: int) -> Any:
        self.seed(5)
        return super().random_bits(n)


ONE = MT19937()


class Scratch:
    """A kernel that leaves its result in memory of its own for a moment."""

    def __init__(self, kernel: Callable[..., Any]) -> None:
        self.kernel = kernel
        self.memory: Any = None

    def __call__(self, *args: Any) -> Any:
        self.memory = self.kernel(*args)
        time.sleep(0.002)
        return self.memory


def of_the_main_thread(self: Any, array: Any) -> bytes:
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("this device belongs to the main thread")
    return array.tobytes()


Planted = tuple[dict[str, Any], list[Any]]

METHODS: dict[str, Planted] = {
    "plain values are forgotten": ({"compile": forgets_plain_values}, COMPILED),
    "right the first time": ({"compile": right_the_first_time}, COMPILED),
    "compiled in half precision": ({"compile": half_precision}, COMPILED),
    "one of several results": ({"compile": one_of_several_results}, COMPILED),
    "deaf to seeds": ({"generator": lambda self, index: DeafToSeeds()}, RANDOM),
    "state is forgotten": ({"generator": lambda self, index: ForgetsItsState()}, RANDOM),
    "position is forgotten": ({"generator": lambda self, index: ForgetsItsPosition()}, RANDOM),
    "every draw begins anew": ({"generator": lambda self, index: BeginsAnew()}, RANDOM),
    "one source for all": ({"generator": lambda self, index: ONE}, RANDOM),
    "threads are refused": ({"to_host": of_the_main_thread}, THREADS),
    "waiting answers": (
        {"synchronize": lambda self, index: True},
        [test_execution.test_a_synchronised_device_has_done_its_work],
    ),
    "errors of its own": (
        {"error": (KeyError,)},
        [test_errors.test_kernels_refuse_foreign_arguments_with_errors_that_the_core_knows],
    ),
    "one number of devices too many": (
        {"device_count": lambda self: 2, "index_of": lambda self, array: 1},
        [test_memory.test_device_indices_are_those_that_exist],
    ),
}
SCRATCH = "threads share memory"


def device_of(name: str) -> str:
    return "around" + "".join(filter(str.isalnum, name.lower()))


def planted(device_type: str, table: dict[str, Any]) -> Any:
    return next((fault for name, fault in table.items() if device_of(name) == device_type), None)


class Plugin:
    """The faulty devices, and `aroundsound`, which has no fault but the same hooks."""

    @hookimpl
    def flambeau_backend(self, device_type):
        from flambeau_toy.backend import ToyBackend  # type: ignore[import-not-found]

        methods = (planted(device_type, METHODS) or ({}, []))[0]
        if device_type == device_of("sound"):
            methods = {
                "compile": lambda self, op, decomposition: decomposition,
                "generator": lambda self, index: MT19937(),
            }
        return type("FaultyToy", (ToyBackend,), {"device_type": device_type, **methods})()

    @hookimpl
    def flambeau_kernels(self, device_type):
        from flambeau_toy.kernels import KERNELS  # type: ignore[import-not-found]

        kernels = dict(KERNELS)
        if device_type == device_of(SCRATCH):
            kernels["matmul"] = Scratch(kernels["matmul"])
        return KernelSet("faulty toy 0.1", kernels)

    @hookimpl
    def flambeau_expectations(self, device_type):
        return Expectations(unsupported_dtypes={"bfloat16"})

    @hookimpl
    def flambeau_copier(self, source, target):
        change = planted(source, COPIERS)
        if source == device_of("sound"):
            change = np.array
        if change is None or target != "cpu":
            return None
        return lambda array, index: change(array)


@pytest.fixture(autouse=True, scope="module")
def registered() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(SOURCE)
        names = ["sound", SCRATCH, *COPIERS, *METHODS]
        host.register(Plugin(), name="faults-around", device_types=map(device_of, names))
        yield
        host.unregister("faults-around")


def complaints(device: str, tests: list[Any], *, most: int = 10_000) -> Iterator[str]:
    """What the kit says about a device, in at most so many cases of a test."""
    for test in tests:
        _, function = getattr(test, "cases", (None, lambda device: [pytest.param()]))
        cases = [c for c in function(device) if not str(c.id or "").startswith("around")]
        for case in cases[:most]:
            if any(mark.name == "skip" for mark in case.marks):
                continue  # bfloat16, which NumPy lacks
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # an exception in a thread is one there
                    test(device, *case.values)
            except (Exception, pytest.fail.Exception) as error:
                yield f"{test.__name__}[{case.id or ''}]: {error}"


@pytest.mark.parametrize("name", COPIERS)
def test_the_kit_finds_the_copier(name: str) -> None:
    assert next(complaints(device_of(name), COPIES), None), "every test of the kit passed"


@pytest.mark.parametrize("name", METHODS)
def test_the_kit_finds_the_method(name: str) -> None:
    found = next(complaints(device_of(name), METHODS[name][1]), None)
    assert found is not None, "every test of the kit passed"


def test_the_kit_finds_memory_that_threads_share() -> None:
    assert next(complaints(device_of(SCRATCH), THREADS), None), "every test of the kit passed"


SOUND = [
    *COPIES,
    *COMPILED,
    *RANDOM,
    *THREADS,
    *(t for _, tests in METHODS.values() for t in tests),
]


@pytest.mark.parametrize("test", dict.fromkeys(SOUND), ids=lambda test: test.__name__)
def test_without_the_fault_the_same_test_passes(test: Any) -> None:
    assert list(complaints(device_of("sound"), [test], most=40)) == []
