"""The conformance kit fails for a backend with a fault, whichever it is, and passes without.

Each fault is planted in a copy of the NumPy backend, a device type of its own, by replacing a
kernel or a method.  Of the kit, the tests run that concern what was replaced.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import flambeau as fb
from flambeau.plugin import Backend, Expectations, KernelSet, hookimpl
from flambeau.plugin.host import host
from flambeau.testing.backend import _support as kit
from flambeau.testing.backend import (
    test_composites,
    test_errors,
    test_gradients,
    test_memory,
    test_primitives,
    test_views,
)
from flambeau.testing.backend._quick import is_quick
from flambeau.testing.samples import SAMPLES
from flambeau_numpy.backend import NumpyBackend
from flambeau_numpy.dtypes import TO_NUMPY
from flambeau_numpy.kernels import KERNELS

PRIMITIVES = (
    test_primitives.test_every_primitive_has_a_kernel,
    test_primitives.test_samples_agree,
    test_primitives.test_corners_agree,
    test_primitives.test_in_place_kernels_write_what_the_op_returns,
    test_primitives.test_mixed_dtypes_promote,
)
COMPOSITES = (
    test_composites.test_kernels_agree_with_their_decomposition,
    test_composites.test_composite_corners_agree,
    test_composites.test_gradients_agree_with_those_of_the_decomposition,
)
GRADIENTS = (test_gradients.test_gradients_are_derivatives,)
RANDOM = (
    test_composites.test_random_numbers_repeat_with_the_seed,
    test_composites.test_random_kernels_draw_the_stream_of_the_op,
)
MEMORY = tuple(f for n, f in vars(test_memory).items() if n.startswith("test_"))
VIEWS = tuple(f for n, f in vars(test_views).items() if n.startswith("test_"))
ERRORS = tuple(f for n, f in vars(test_errors).items() if n.startswith("test_"))


@dataclass(frozen=True)
class Fault:
    """What is replaced, and which tests look at it; `op` narrows them to cases of one op."""

    tests: tuple[Callable[..., None], ...]
    op: str = ""
    kernel: Callable[..., Any] | None = None
    methods: tuple[tuple[str, Any], ...] = ()
    absent: bool = False


def adds_in_double(a: Any, b: Any) -> Any:
    return np.add(a, b, dtype=np.float64) if a.dtype.kind == "f" else KERNELS["add"](a, b)


def rounds_to_integers(a: Any, dtype: Any) -> Any:
    rounded = a.dtype.kind == "f" and dtype.category == 1
    return KERNELS["cast"](np.rint(a) if rounded else a, dtype)


def writes_its_input(a: Any) -> Any:
    np.negative(a, out=a)
    return a.copy()


def ignores_strides(a: Any) -> Any:
    root = a.base if isinstance(a.base, np.ndarray) else a
    return np.exp(root.reshape(-1)[: a.size].reshape(a.shape))


def sums_without_the_element(a: Any, dim: int) -> Any:
    return a if a.dtype == np.bool_ else KERNELS["cumsum"](a, dim) - a


def starts_one_late(start: Any, step: Any, length: int, dtype: Any) -> Any:
    return KERNELS["arange"](start + step, step, length, dtype)


def one_for_nothing(a: Any, dims: Any, keepdim: bool) -> Any:
    result = KERNELS["sum"](a, dims, keepdim)
    return result if a.size else np.ones_like(result)


def never_keeps_dims(a: Any, dims: Any, keepdim: bool) -> Any:
    return KERNELS["amax"](a, dims, False)


def last_extremum(a: Any, dim: int, keepdim: bool) -> Any:
    if not a.ndim:
        return KERNELS["argmax"](a, dim, keepdim)
    found = a.shape[dim] - 1 - np.argmax(np.flip(a, dim), axis=dim)
    return np.expand_dims(found, dim) if keepdim else found


def sorts_nan_first(a: Any, dim: int, descending: bool, stable: bool) -> Any:
    if a.dtype.kind != "f" or not a.ndim:
        return KERNELS["sort"](a, dim, descending, stable)
    key = np.where(np.isnan(a), -np.inf, a)
    order = np.argsort(-key if descending else key, axis=dim, kind="stable")
    return np.take_along_axis(a, order, dim), order


def sorts_long_rows_unstably(a: Any, dim: int, descending: bool, stable: bool) -> Any:
    values, places = KERNELS["sort"](a, dim, descending, stable)
    if not a.ndim or a.shape[dim] <= 16:
        return values, places
    backwards = KERNELS["sort"](np.flip(a, dim), dim, descending, True)[1]
    return values, a.shape[dim] - 1 - backwards


def first_of_duplicates(a: Any, dim: int, index: Any, src: Any) -> Any:
    if not a.ndim:
        return KERNELS["scatter"](a, dim, index, src)
    src = src[tuple(slice(n) for n in index.shape)]
    return KERNELS["scatter"](a, dim, np.flip(index, dim), np.flip(src, dim))


def rectifies_nan(a: Any) -> Any:
    return np.fmax(a, np.zeros((), a.dtype))


def aliases(a: Any) -> Any:
    return a[...]


def repeats_one_element(shape: Any, value: Any, dtype: Any) -> Any:
    return np.broadcast_to(np.array(value, TO_NUMPY[dtype]), shape)


def compares_to_bytes(a: Any, b: Any) -> Any:
    return np.less(a, b).astype(np.uint8)


def rounds_half_away(a: Any) -> Any:
    if a.dtype.kind != "f":
        return a.copy()
    return np.copysign(np.floor(np.abs(a) + 0.5), a).astype(a.dtype)


def loses_the_sign_of_zero(a: Any) -> Any:
    return (0 - a).astype(a.dtype)


def truncates_quotients(a: Any, b: Any) -> Any:
    if a.dtype.kind != "f":
        return KERNELS["floor_divide"](a, b)
    return np.trunc(KERNELS["div"](a, b)).astype(a.dtype)


def multiplies_in_floats(a: Any, b: Any) -> Any:
    if a.dtype != np.int64:
        return KERNELS["mul"](a, b)
    return np.multiply(a, b, dtype=np.float32).astype(a.dtype)


def adds_once(a: Any, indices: Any, values: Any, accumulate: bool) -> Any:
    result = a.copy()
    key = tuple(slice(None) if i is None else i for i in indices)
    result[key] = result[key] + values if accumulate else values
    return result


def asks_what_the_library_refuses(a: Any, *rest: Any) -> Any:
    return np.reshape(a, (7, 11, 13))


def writes_nothing(a: Any, b: Any) -> None:
    return None


def returns_what_it_wrote(a: Any, b: Any) -> Any:
    KERNELS["mul_"](a, b)
    return a


def always_along_the_last(a: Any, dim: int) -> Any:
    return KERNELS["softmax"](a, max(a.ndim - 1, 0))


def forgets_the_sum(grad: Any, result: Any, dim: int) -> Any:
    return np.asarray(grad * result)


def forgets_the_bias(input: Any, weight: Any, bias: Any) -> Any:
    return KERNELS["linear"](input, weight, None)


def passes_the_other_side(grad: Any, a: Any, threshold: float) -> Any:
    return np.where(a <= threshold, grad, 0).astype(grad.dtype)


def ignores_the_seed(shape: Any, low: float, high: float, dtype: Any, generator: Any) -> Any:
    drawn = np.random.default_rng().uniform(low, high, shape)
    return np.asarray(drawn).astype(TO_NUMPY[dtype])


def permutes_a_copy(a: Any, dims: Any) -> Any:
    return a.transpose(dims).copy()


def slices_a_copy(a: Any, items: Any) -> Any:
    return KERNELS["slice"](a, items).copy()


def writes_the_first_element(dst: Any, src: Any) -> None:
    if src.size:
        dst.fill(src.reshape(-1)[0])


def gives_elements_as_they_lie(self: Any, array: Any) -> bytes:
    return array.tobytes(order="A")


def shares_its_source(self: Any, data: Any, shape: Any, dtype: Any, index: int) -> Any:
    return np.frombuffer(data, TO_NUMPY[dtype]).reshape(shape)


def gives_numpy_scalars(self: Any, array: Any) -> Any:
    return array.reshape(-1)[0]


def counts_bytes(self: Any, array: Any) -> Any:
    return array.strides


def leaves_the_memory(self: Any, root: Any, shape: Any, stride: Any, offset: int) -> Any:
    steps = [s * root.itemsize for s in stride]
    return np.lib.stride_tricks.as_strided(root.reshape(-1)[:1], shape, steps)


def has_no_device(self: Any) -> int:
    return 0


def _method(name: str, value: Any) -> tuple[tuple[str, Any], ...]:
    return ((name, value),)


FAULTS: dict[str, Fault] = {
    "wrong promotion": Fault(PRIMITIVES, "add", adds_in_double),
    "casts round": Fault(PRIMITIVES, "cast", rounds_to_integers),
    "input written to": Fault(PRIMITIVES, "neg", writes_its_input),
    "strides ignored": Fault(PRIMITIVES, "exp", ignores_strides),
    "off by one": Fault(PRIMITIVES, "cumsum", sums_without_the_element),
    "arange starts late": Fault(PRIMITIVES, "arange", starts_one_late),
    "NaN ignored": Fault(PRIMITIVES, "maximum", np.fmax),
    "wrong sum of nothing": Fault(PRIMITIVES, "sum", one_for_nothing),
    "reduced dimension dropped": Fault(PRIMITIVES, "amax", never_keeps_dims),
    "last of equals": Fault(PRIMITIVES, "argmax", last_extremum),
    "NaN sorted first": Fault(PRIMITIVES, "sort", sorts_nan_first),
    "unstable sort": Fault(PRIMITIVES, "sort", sorts_long_rows_unstably),
    "first of duplicates": Fault(PRIMITIVES, "scatter", first_of_duplicates),
    "NaN lost by a composite": Fault(COMPOSITES, "relu", rectifies_nan),
    "clone aliases": Fault(PRIMITIVES, "clone", aliases),
    "result repeats memory": Fault(PRIMITIVES, "full", repeats_one_element),
    "comparison gives bytes": Fault(PRIMITIVES, "lt", compares_to_bytes),
    "halves away from zero": Fault(PRIMITIVES, "round", rounds_half_away),
    "sign of zero": Fault(PRIMITIVES, "neg", loses_the_sign_of_zero),
    "sign of the dividend": Fault(PRIMITIVES, "remainder", KERNELS["fmod"]),
    "quotients truncate": Fault(PRIMITIVES, "floor_divide", truncates_quotients),
    "integers through floats": Fault(PRIMITIVES, "mul", multiplies_in_floats),
    "duplicates dropped": Fault(PRIMITIVES, "index_put", adds_once),
    "library refuses": Fault(PRIMITIVES, "argmax", asks_what_the_library_refuses),
    "library refuses to count": Fault(PRIMITIVES, "nonzero", asks_what_the_library_refuses),
    "kernel missing": Fault(PRIMITIVES, "erf", absent=True),
    "in place does nothing": Fault(PRIMITIVES, "add_", writes_nothing),
    "in place returns": Fault(PRIMITIVES, "mul_", returns_what_it_wrote),
    "wrong dimension": Fault(COMPOSITES, "softmax", always_along_the_last),
    "wrong gradient kernel": Fault(GRADIENTS, "softmax", forgets_the_sum),
    "bias forgotten": Fault(COMPOSITES, "linear", forgets_the_bias),
    "slope of the other side": Fault(COMPOSITES, "threshold_backward", passes_the_other_side),
    "seed ignored": Fault(RANDOM, "uniform", ignores_the_seed),
    "permute copies": Fault(VIEWS, kernel=permutes_a_copy),
    "slice copies": Fault(VIEWS, kernel=slices_a_copy),
    "writes do not broadcast": Fault(VIEWS, kernel=writes_the_first_element),
    "elements as they lie": Fault(MEMORY, methods=_method("to_host", gives_elements_as_they_lie)),
    "host memory shared": Fault(MEMORY, methods=_method("from_host", shares_its_source)),
    "NumPy scalars": Fault(MEMORY, methods=_method("item", gives_numpy_scalars)),
    "strides in bytes": Fault(MEMORY, methods=_method("strides", counts_bytes)),
    "memory left": Fault(MEMORY, methods=_method("as_strided", leaves_the_memory)),
    "no device": Fault(MEMORY, methods=_method("device_count", has_no_device)),
    "wrong exception": Fault(ERRORS, methods=_method("error", (KeyError,))),
}

# Which kernel is replaced, where it is not the op that narrows the tests.
REPLACED = {
    "wrong gradient kernel": "softmax_backward",
    "permute copies": "permute",
    "slice copies": "slice",
    "writes do not broadcast": "assign",
}


def device_of(name: str) -> str:
    return "faulty" + "".join(filter(str.isalnum, name.lower()))


class Plugin:
    """All faulty devices, and one without a fault."""

    @hookimpl
    def flambeau_backend(self, device_type: str) -> Backend | None:
        fault = self.fault(device_type)
        if fault is None:
            return None
        space = {"device_type": device_type, **dict(fault.methods)}
        return type("Faulty", (NumpyBackend,), space)()

    @hookimpl
    def flambeau_kernels(self, device_type: str) -> KernelSet | None:
        fault = self.fault(device_type)
        if fault is None:
            return None
        kernels = dict(KERNELS)
        name = next((n for n in FAULTS if device_of(n) == device_type), "")
        replaced = REPLACED.get(name, fault.op)
        if fault.absent:
            del kernels[replaced]
        elif fault.kernel is not None:
            kernels[replaced] = _quiet(fault.kernel)
        return KernelSet("faulty 0.1", kernels)

    @staticmethod
    def fault(device_type: str) -> Fault | None:
        known = {device_of(name): fault for name, fault in FAULTS.items()}
        return {**known, "faultless": Fault(())}.get(device_type)


def _quiet(kernel: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return kernel(*args)

    return run


@pytest.fixture(scope="module", autouse=True)
def registered() -> Iterator[None]:
    devices = ["faultless", *map(device_of, FAULTS)]
    host.register(Plugin(), name="faulty", device_types=devices)
    yield
    host.unregister("faulty")


def complaints(device: str, fault: Fault) -> Iterator[str]:
    """What the kit says about a device, test by test."""
    for test in fault.tests:
        _, function = getattr(test, "cases", (None, lambda device: [pytest.param()]))
        cases = list(function(device))
        for case in cases:
            name = str(case.id or "")
            if name.startswith("faulty"):
                continue  # a copy to another device of this module
            if fault.op and name != fault.op and not name.startswith(f"{fault.op}-"):
                continue
            if any(mark.name == "skip" for mark in case.marks):
                continue
            try:
                test(device, *case.values)
            except pytest.skip.Exception:
                continue
            except (Exception, pytest.fail.Exception) as error:
                yield f"{test.__name__}[{name}]: {error}"


@pytest.mark.parametrize("name", FAULTS)
def test_the_kit_finds_the_fault(name: str) -> None:
    found = next(complaints(device_of(name), FAULTS[name]), None)
    assert found is not None, "every test of the kit passed"


CONTROLS = {
    **{name: fault for name, fault in FAULTS.items() if fault.op},
    "memory": Fault(MEMORY),
    "views": Fault(VIEWS),
    "errors": Fault(ERRORS),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CONTROLS)
def test_without_the_fault_the_same_tests_pass(name: str) -> None:
    assert list(complaints("faultless", CONTROLS[name])) == []


def test_long_sequences_are_told_apart_by_the_first_difference_alone() -> None:
    long = [1.0] * 50_000
    changed = [*long[:40_000], 2.0, *long[40_001:-1], 3.0]
    assert kit.difference(changed, long) == "element 40000 is 2.0, expected 1.0"
    assert kit.difference(long[1:], long) == "49999 elements, expected 50000"
    assert kit.difference(bytes(9), b"\1" * 9) == "element 0 is 0, expected 1"
    assert kit.difference(list(long), long) == ""


def test_a_difference_tells_the_operands_and_how_many_differ() -> None:
    rows, column = fb.tensor([[1.0, 2.0, 3.0]]), fb.tensor([[4.0], [5.0]])
    found, wanted = rows * column, rows * column + fb.tensor([[0.0, 0, 0], [0, 1, 1]])
    (text,) = kit.differences(found, wanted, 1e-6, operands=(rows, column))
    assert text == ("element 4 of shape (2, 3) is 10.0, expected 11.0, for 2.0, 5.0; 2 of 6 differ")
    (text,) = kit.differences(found, wanted, 1e-6, operands=(rows, fb.ones(5)))
    assert text == "element 4 of shape (2, 3) is 10.0, expected 11.0; 2 of 6 differ"
    assert kit.differences(found, found, 0.0, operands=(rows, column)) == []


@pytest.mark.parametrize("name", ["library refuses", "library refuses to count"])
def test_a_complaint_tells_what_the_library_said(name: str) -> None:
    found = next(complaints(device_of(name), FAULTS[name]))
    op = FAULTS[name].op
    assert f"gave RuntimeError('{op}: cannot be computed for " in found
    assert "for ValueError('cannot reshape array of size " in found


def test_a_quick_run_has_every_primitive_and_the_corners() -> None:
    quick = [
        (test.__name__, case.values)
        for test in (*PRIMITIVES, *COMPOSITES)
        for case in test.cases[1]("faultless")
        if is_quick(
            test,
            test.__module__,
            {
                "device": "faultless",
                **dict(zip(test.cases[0].split(), case.values, strict=True)),
            },
        )
    ]
    corners = {values[0] for name, values in quick if "corners" in name}
    assert {"relu", "add", "sort", "softmax"} <= corners
    sampled = {values[0] for name, values in quick if name == "test_samples_agree"}
    assert set(test_primitives.PRIMITIVES) == sampled
    assert len(quick) < 2000


def test_what_the_reference_gives_is_computed_once_for_layouts_of_the_same_values() -> None:
    (sample, *_) = SAMPLES["sub"]
    outcomes = {
        layout: kit.expected("sub", sample, fb.float32, layout) for layout in kit.layouts_of("sub")
    }
    plain = outcomes["contiguous"]
    assert all(outcomes[layout] is plain for layout in ("transposed", "sliced", "offset"))
    for layout, outcome in outcomes.items():
        found = kit.observed("ref", "sub", sample, fb.float32, layout)
        assert not kit.complaints("ref", "sub", found, outcome, fb.float32)
    assert len({id(outcomes[k]) for k in ("contiguous", "expanded", "empty", "scalar")}) == 4


def test_expectations_are_those_of_the_plugins_at_work() -> None:
    device = device_of(next(iter(FAULTS)))
    assert not kit.promised(device).unsupported_dtypes
    assert kit.promised(device) is kit.promised(device)

    class Wary:
        @staticmethod
        @hookimpl
        def flambeau_expectations(device_type: str) -> Expectations:
            return Expectations(unsupported_dtypes={"float16"})

    host.register(Wary(), name="wary", device_types=[device])
    try:
        assert kit.promised(device).unsupported_dtypes == {"float16"}
    finally:
        host.unregister("wary")
    assert not kit.promised(device).unsupported_dtypes


def test_there_is_a_fault_for_every_part_of_the_kit() -> None:
    assert len(FAULTS) >= 30
    assert len({device_of(name) for name in FAULTS}) == len(FAULTS)
    assert not fb.is_cpu_fallback_enabled()
