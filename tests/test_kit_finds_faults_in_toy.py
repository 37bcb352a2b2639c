"""More than forty bugs that authors of backends write, planted in copies of the toy backend.

The toy's arrays are immutable, so these are mistakes in values, dtypes, shapes and memory; those
of strided backends are in test_kit_finds_faults.py.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flambeau.plugin import KernelSet, hookimpl
from flambeau.plugin.host import host
from flambeau.testing.backend import test_errors, test_memory, test_primitives

SOURCE = Path(__file__).resolve().parents[1] / "examples/backends/toy/src"

Kernels = dict[str, Callable[..., Any]]


def in_double(K: Kernels) -> Any:
    return lambda a, b: np.add(a, b, dtype=np.float64) if a.dtype.kind == "f" else K["add"](a, b)


def rounding_cast(K: Kernels) -> Any:
    return lambda a, d: K["cast"](np.rint(a) if a.dtype.kind == "f" and d.category == 1 else a, d)


def negated_in_place(K: Kernels) -> Any:
    def neg(a):
        a *= -1 if a.dtype.kind not in "b" else True
        return a.copy()

    return neg


def of_the_whole_memory(K: Kernels) -> Any:
    def exp(a):
        root = a.base if isinstance(a.base, np.ndarray) else a
        return np.exp(root.reshape(-1)[: a.size].reshape(a.shape))

    return exp


def index_put_in_place(K: Kernels) -> Any:
    def put(a, indices, values, accumulate):
        a[...] = K["index_put"](a, indices, values, accumulate)
        return a.copy()

    return put


def sum_of_nothing(K: Kernels) -> Any:
    return lambda a, dims, keepdim: K["sum"](a, dims, keepdim) + (a.dtype.type(not a.size))


def last_extremum(K: Kernels) -> Any:
    def argmax(a, dim, keepdim):
        if not a.ndim:
            return K["argmax"](a, dim, keepdim)
        return a.shape[dim] - 1 - K["argmax"](np.flip(a, dim), dim, keepdim)

    return argmax


def nan_first(K: Kernels) -> Any:
    def sort(a, dim, descending, stable):
        keys = np.where(a == a, a, -np.inf) if a.dtype.kind == "f" else a
        _, order = K["sort"](keys, dim, descending, stable)
        return K["gather"](a, dim, order), order

    return sort


def descending_by_reversal(K: Kernels) -> Any:
    def sort(a, dim, descending, stable):
        both = K["sort"](a, dim, False, stable)
        return tuple(np.flip(x, dim) if descending and a.ndim else x for x in both)

    return sort


def short_indices(K: Kernels) -> Any:
    def sort(*args):
        values, order = K["sort"](*args)
        return values, order.astype(np.int32)

    return sort


def half_away(K: Kernels) -> Any:
    def rounded(a):
        if a.dtype.kind != "f":
            return a
        return np.copysign(np.floor(np.abs(a) + 0.5), a).astype(a.dtype)

    return rounded


def truncated_quotient(K: Kernels) -> Any:
    def quotient(a, b):
        return np.trunc(a / b).astype(a.dtype) if a.dtype.kind == "f" else K["floor_divide"](a, b)

    return quotient


def through_single(name: str) -> Callable[[Kernels], Any]:
    def plant(K: Kernels) -> Any:
        def kernel(a, b):
            if a.dtype != np.int64:
                return K[name](a, b)
            return K[name](a.astype(np.float32), b.astype(np.float32)).astype(a.dtype)

        return kernel

    return plant


def added_once(K: Kernels) -> Any:
    def put(a, indices, values, accumulate):
        key = tuple(slice(None) if i is None else i for i in indices)
        out = a.copy()
        out[key] = out[key] + values if accumulate else values
        return out

    return put


def along_another(name: str) -> Callable[[Kernels], Any]:
    """Of a square corner, the wrong dimension."""

    def plant(K: Kernels) -> Any:
        def kernel(a, dim, index, *rest):
            return K[name](a, (dim + 1) % a.ndim if a.ndim else dim, index, *rest)

        return kernel

    return plant


def column_major(K: Kernels) -> Any:
    def nonzero(a):
        found = K["nonzero"](a)
        return found[np.lexsort(found.T)] if a.ndim > 1 else found

    return nonzero


def inverse_permutation(K: Kernels) -> Any:
    return lambda a, dims: a.transpose(np.argsort(dims))


def unit_steps(K: Kernels) -> Any:
    def taken(a, items):
        plain = [slice(i.start, i.stop) if isinstance(i, slice) else i for i in items]
        return a[tuple(plain)]

    return taken


def bytes_inverted(K: Kernels) -> Any:
    return lambda a: ~a.view(np.uint8) if a.dtype == np.bool_ else ~a


def swapped(name: str) -> Callable[[Kernels], Any]:
    return lambda K: lambda a, b: K[name](b, a)


def other(name: str) -> Callable[[Kernels], Any]:
    return lambda K: K[name]


def numpy(name: str) -> Callable[[Kernels], Any]:
    """NumPy's reduction as it is: it widens small integers."""
    return lambda K: lambda a, dims, keepdim: getattr(np, name)(a, axis=dims, keepdims=keepdim)


def plain(kernel: Callable[..., Any]) -> Callable[[Kernels], Any]:
    return lambda K: kernel


FAULTS: dict[str, tuple[str, Callable[[Kernels], Any]]] = {
    "sums are doubles": ("add", in_double),
    "casts round": ("cast", rounding_cast),
    "input is written to": ("neg", negated_in_place),
    "memory instead of view": ("exp", of_the_whole_memory),
    "written in place": ("index_put", index_put_in_place),
    "scan leaves out the element": (
        "cumsum",
        lambda K: (
            lambda a, d: K["cumsum"](a, d) ^ a if a.dtype.kind == "b" else K["cumsum"](a, d) - a
        ),
    ),
    "products scan as sums": ("cumprod", other("cumsum")),
    "range starts late": ("arange", lambda K: lambda s, t, n, d: K["arange"](s + t, t, n, d)),
    "maximum skips NaN": ("maximum", plain(np.fmax)),
    "minimum skips NaN": ("minimum", plain(np.fmin)),
    "one for nothing": ("sum", sum_of_nothing),
    "sums widen": ("sum", numpy("sum")),
    "products widen": ("prod", numpy("prod")),
    "dimension dropped": ("amax", lambda K: lambda a, dims, k: K["amax"](a, dims, False)),
    "dimension kept": ("amin", lambda K: lambda a, dims, k: K["amin"](a, dims, True)),
    "all over everything": (
        "all",
        lambda K: lambda a, d, k: np.broadcast_to(a.all(), K["all"](a, d, k).shape).copy(),
    ),
    "any is all": ("any", other("all")),
    "last of equals": ("argmax", last_extremum),
    "argmin of the negative": ("argmin", other("argmax")),
    "NaN sorted first": ("sort", nan_first),
    "equals turned round": ("sort", descending_by_reversal),
    "indices of 32 bits": ("sort", short_indices),
    "comparison gives bytes": ("lt", lambda K: lambda a, b: np.less(a, b).astype(np.uint8)),
    "less or equal": ("le", other("lt")),
    "equal to NaN": ("eq", lambda K: lambda a, b: (a == b) | ((a != a) & (b != b))),
    "halves away from zero": ("round", half_away),
    "towards zero": ("floor", other("trunc")),
    "sign of zero lost": ("neg", lambda K: lambda a: (0 - a).astype(a.dtype)),
    "sign of NaN": ("sign", lambda K: np.sign),
    "sign of the dividend": ("remainder", other("fmod")),
    "sign of the divisor": ("fmod", other("remainder")),
    "quotients truncate": ("floor_divide", truncated_quotient),
    "products in single": ("mul", through_single("mul")),
    "matrices in single": ("matmul", through_single("matmul")),
    "duplicates dropped": ("index_put", added_once),
    "duplicates overwritten": ("scatter_add", other("scatter")),
    "gathered elsewhere": ("gather", along_another("gather")),
    "scattered elsewhere": ("scatter", along_another("scatter")),
    "columns first": ("nonzero", column_major),
    "branches exchanged": ("where", lambda K: lambda c, a, b: np.where(c, b, a)),
    "permuted back": ("permute", inverse_permutation),
    "Fortran order": ("view", lambda K: lambda a, shape: a.reshape(shape, order="F")),
    "steps ignored": ("slice", unit_steps),
    "main diagonal": ("diagonal", lambda K: lambda a, offset, i, j: np.diagonal(a, 0, i, j)),
    "joined backwards": ("cat", lambda K: lambda arrays, dim: K["cat"](arrays[::-1], dim)),
    "one dimension flipped": ("flip", lambda K: lambda a, dims: np.flip(a, dims[:1])),
    "kernel missing": ("erf", lambda K: None),
    "error function approximated": ("erf", lambda K: lambda a: np.tanh(1.2 * a).astype(a.dtype)),
    "arguments exchanged": ("atan2", swapped("atan2")),
    "infinity is finite": ("isfinite", lambda K: lambda a: a == a),
    "filled with doubles": ("full", lambda K: lambda shape, value, d: np.full(shape, value * 1.0)),
    "bools inverted as bytes": ("bitwise_not", bytes_inverted),
    "absolute value is complex": ("abs", lambda K: lambda a: np.abs(a).astype(a.dtype)),
    "negative powers": (
        "pow",
        lambda K: lambda a, b: np.power(a, abs(b)) if a.dtype.kind in "iu" else np.power(a, b),
    ),
}

METHODS: dict[str, dict[str, Any]] = {
    "columns to the host": {"to_host": lambda self, array: array.tobytes(order="A")},
    "wrong byte order": {"to_host": lambda self, array: array.byteswap().tobytes()},
    "no device": {"device_count": lambda self: 0},
    "number for an array": {"item": lambda self, array: array.reshape(-1)[0]},
}


def device_of(name: str) -> str:
    return "toy" + "".join(filter(str.isalnum, name.lower()))


class Plugin:
    @hookimpl
    def flambeau_backend(self, device_type):
        from flambeau_toy.backend import ToyBackend  # type: ignore[import-not-found]

        methods = next((m for n, m in METHODS.items() if device_of(n) == device_type), {})
        return type("FaultyToy", (ToyBackend,), {"device_type": device_type, **methods})()

    @hookimpl
    def flambeau_kernels(self, device_type):
        from flambeau_toy.kernels import KERNELS  # type: ignore[import-not-found]

        kernels = dict(KERNELS)
        for name, (op, plant) in FAULTS.items():
            if device_of(name) == device_type:
                del kernels[op]
                if (kernel := plant(KERNELS)) is not None:
                    kernels[op] = np.errstate(all="ignore")(kernel)
        return KernelSet("faulty toy 0.1", kernels)

    @hookimpl
    def flambeau_expectations(self, device_type):
        return importlib.import_module("flambeau_toy.plugin").flambeau_expectations(device_type)


@pytest.fixture(autouse=True, scope="module")
def registered() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(SOURCE)
        devices = ["toysound", *map(device_of, [*FAULTS, *METHODS])]
        host.register(Plugin(), name="faulty-toys", device_types=devices)
        yield
        host.unregister("faulty-toys")


PRIMITIVES = [
    test_primitives.test_every_primitive_has_a_kernel,
    test_primitives.test_samples_agree,
    test_primitives.test_corners_agree,
    test_primitives.test_mixed_dtypes_promote,
    test_errors.test_kernels_refuse_foreign_arguments_with_errors_that_the_core_knows,
]
MEMORY = [f for n, f in vars(test_memory).items() if n.startswith("test_")]
ERRORS = [f for n, f in vars(test_errors).items() if n.startswith("test_")]


def complaints(device: str, tests: list[Any], op: str = "") -> Iterator[str]:
    """What the kit says about a device, case by case; of one op, if it is named."""
    for test in tests:
        _, function = getattr(test, "cases", (None, lambda device: [pytest.param()]))
        for case in function(device):
            name = str(case.id or "")
            if op and name != op and not name.startswith(f"{op}-"):
                continue
            if name.startswith("toy") or any(mark.name == "skip" for mark in case.marks):
                continue  # a copy to another device of this module, or a dtype that NumPy lacks
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    test(device, *case.values)
            except pytest.skip.Exception:
                continue
            except (Exception, pytest.fail.Exception) as error:
                yield f"{test.__name__}[{name}]: {error}"


@pytest.mark.parametrize("name", FAULTS)
def test_the_kit_finds_the_kernel(name: str) -> None:
    found = next(complaints(device_of(name), PRIMITIVES, FAULTS[name][0]), None)
    assert found is not None, "every test of the kit passed"


@pytest.mark.parametrize("name", METHODS)
def test_the_kit_finds_the_method(name: str) -> None:
    found = next(complaints(device_of(name), MEMORY), None)
    assert found is not None, "every test of the kit passed"


@pytest.mark.slow
@pytest.mark.parametrize("op", sorted({op for op, _ in FAULTS.values()}))
def test_the_sound_toy_passes_the_same_tests(op: str) -> None:
    assert list(complaints("toysound", PRIMITIVES, op)) == []


def test_the_sound_toy_passes_the_tests_of_memory_and_errors() -> None:
    assert list(complaints("toysound", [*MEMORY, *ERRORS])) == []


def test_there_are_at_least_forty_faults() -> None:
    assert len(FAULTS) + len(METHODS) >= 40
    assert len({device_of(name) for name in [*FAULTS, *METHODS]}) == len(FAULTS) + len(METHODS)
