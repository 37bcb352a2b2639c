"""What a plugin works with: `Backend`, `KernelSet`, `Expectations`, and the CPU fallback."""

from __future__ import annotations

import ast
import inspect
import struct
import threading
import warnings
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

import flambeau.plugin
from flambeau.ops import OPS
from flambeau.plugin import (
    Backend,
    Expectations,
    KernelSet,
    dtypes,
    float32,
    hookimpl,
    int64,
    steps,
)
from flambeau.plugin.backend import STRIDED_METHODS
from flambeau.plugin.errors import MissingKernelError, UnknownDeviceError
from flambeau.plugin.fallback import (
    FallbackWarning,
    cpu_fallback,
    cpu_fallback_counts,
    is_cpu_fallback_enabled,
    set_cpu_fallback,
)
from flambeau.plugin.host import PluginHost
from flambeau.plugin.steps import SgdStep, takes


class Block:
    """A native array: bytes with a shape, on one device."""

    def __init__(self, data, shape, dtype, index=0):
        self.data, self.shape, self.dtype, self.index = bytes(data), shape, dtype, index


class OtherBlock(Block):
    """The native array of the CPU in these tests, so that a missing conversion shows."""


class Blocks(Backend):
    array = Block

    def __init__(self, device_type="toy", array=Block):
        self.device_type, self.array = device_type, array

    def from_host(self, data, shape, dtype, index):
        return self.array(data, shape, dtype, index)

    def to_host(self, array):
        assert type(array) is self.array
        return memoryview(array.data)

    def dtype_of(self, array):
        return array.dtype

    def index_of(self, array):
        return array.index


@pytest.mark.parametrize("dtype", dtypes, ids=repr)
def test_default_scalar_and_item_are_inverse_for_every_dtype(dtype):
    backend = Blocks()
    value = {0: True, 1: 100, 2: 1.5, 3: 1.5 - 2j}[dtype.category]
    array = backend.scalar(value, dtype)
    assert array.shape == ()
    assert backend.dtype_of(array) is dtype
    assert backend.item(array) == value
    assert type(backend.item(array)) is type(value)
    assert backend.tolist(array) == value


@pytest.mark.parametrize(
    ("shape", "nested"),
    [
        ((0,), []),
        ((2, 0), [[], []]),
        ((0, 2), []),
        ((3,), [0, 1, 2]),
        ((2, 3), [[0, 1, 2], [3, 4, 5]]),
        ((2, 1, 2), [[[0, 1]], [[2, 3]]]),
    ],
)
def test_default_tolist_nests_by_shape(shape, nested):
    count = 1
    for n in shape:
        count *= n
    array = Block(struct.pack(f"<{count}q", *range(count)), shape, int64)
    assert Blocks().tolist(array) == nested


@pytest.mark.parametrize("count", [0, 2])
def test_item_needs_exactly_one_element(count):
    with pytest.raises(ValueError, match=f"one element, got {count}"):
        Blocks().item(Block(bytes(4 * count), (count,), float32))


def test_backend_without_memory_methods_cannot_be_made():
    class Empty(Backend):
        device_type, array = "toy", Block

    with pytest.raises(TypeError, match="dtype_of"):
        Empty()


def test_strided_methods_say_whether_they_are_missing_or_do_not_apply():
    with pytest.raises(NotImplementedError, match="arrays of device 'toy' have no strides"):
        Blocks().strides(Block(b"", (0,), float32))
    claims = type("Claims", (Blocks,), {"strided": True})()
    with pytest.raises(NotImplementedError, match=r"Claims says strided = True.*owns\(\)"):
        claims.owns(Block(b"", (0,), float32))


def test_kernel_set_is_frozen_and_does_not_follow_its_dict():
    offered = {"add": max}
    kernels = KernelSet("flambeau-toy 0.1", offered)
    offered["mul"] = min
    assert dict(kernels.kernels) == {"add": max}
    with pytest.raises(FrozenInstanceError):
        kernels.provider = "other"
    with pytest.raises(TypeError):
        kernels.kernels["mul"] = min


@pytest.mark.parametrize(
    ("provider", "kernels", "error", "text"),
    [
        ("", {}, ValueError, "provider must be a name"),
        ("x", {"add": 1}, TypeError, "kernel of 'add' must be callable, got 1"),
        ("x", {1: max}, TypeError, "op names are strings, got 1"),
    ],
)
def test_kernel_set_refuses_what_cannot_be_a_kernel(provider, kernels, error, text):
    with pytest.raises(error, match=text):
        KernelSet(provider, kernels)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"known_failures": {"test_a": " "}}, "'test_a' needs a reason"),
        ({"unsupported_dtypes": {"float8"}}, r"unknown dtypes \['float8'\]"),
        ({"unsupported_dtypes": "float16"}, "is a set of names"),
        ({"tolerances": {("exp", "half"): 0.1}}, r"unknown dtypes \['half'\]"),
        ({"tolerances": {("exp", "float16"): 0.0}}, "exp for float16 must be > 0"),
        ({"tolerances": {("exp", "float16"): float("nan")}}, "exp for float16 must be > 0"),
    ],
)
def test_expectations_refuse_vague_excuses(arguments, text):
    with pytest.raises(ValueError, match=text):
        Expectations(**arguments)


def test_merged_expectations_keep_the_first_of_two_tolerances():
    key = ("exp", "float16")
    merged = Expectations({key: 1e-3}).merged(Expectations({key: 1e-2, ("log", "float16"): 1e-1}))
    assert dict(merged.tolerances) == {key: 1e-3, ("log", "float16"): 1e-1}


def test_plugin_package_imports_only_dtypes_and_specs_of_the_core():
    allowed = {"flambeau._types.dtype", "flambeau._types.spec"}
    for file in Path(flambeau.plugin.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [node.module] if isinstance(node, ast.ImportFrom) else []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            for name in names:
                if name and name.split(".")[0] == "flambeau":
                    assert name in allowed or name.startswith("flambeau.plugin"), (file, name)


def test_public_names_exist():
    assert all(hasattr(flambeau.plugin, name) for name in flambeau.plugin.__all__)


class Device:
    """A plugin that owns `backend` with the given kernels."""

    def __init__(self, backend, kernels):
        self.backend, self.kernels = backend, kernels

    @hookimpl
    def flambeau_backend(self, device_type):
        return self.backend

    @hookimpl
    def flambeau_kernels(self, device_type):
        return KernelSet(f"flambeau-{device_type} 1.0", self.kernels)


def negate(a):
    assert type(a) is OtherBlock
    values = struct.unpack(f"<{len(a.data) // 4}f", a.data)
    return OtherBlock(struct.pack(f"<{len(values)}f", *[-v for v in values]), a.shape, a.dtype)


def concatenate(arrays, dim):
    assert dim == 0
    data = b"".join(a.data for a in arrays if a is not None)
    return OtherBlock(data, (len(data) // 4,), float32)


@pytest.fixture
def host():
    """A host with device ``toy``, which has no kernels, and a CPU that has some."""
    cpu_kernels = {
        "neg": negate,
        "neg_": negate,
        "cat": concatenate,
        "sort": lambda a: (negate(a), a),
        "full": lambda shape, value, dtype: OtherBlock(bytes(4), shape, dtype),
        "permute": negate,
    }
    made = PluginHost(entry_points=list, environ={})
    made.register(
        Device(Blocks("cpu", OtherBlock), cpu_kernels), name="cpu-of-test", device_types=["cpu"]
    )
    made.register(Device(Blocks("toy"), {}), name="toy-of-test", device_types=["toy"])
    return made


def floats(*values, index=0):
    return Block(struct.pack(f"<{len(values)}f", *values), (len(values),), float32, index)


@pytest.fixture(autouse=True)
def fallback_off():
    yield
    set_cpu_fallback(False)


def used(op, device="toy"):
    return cpu_fallback_counts().get((op, device), 0)


@pytest.mark.filterwarnings("ignore::flambeau.plugin.fallback.FallbackWarning")
def test_fallback_is_off_unless_asked_for(host):
    before = cpu_fallback_counts()
    assert not is_cpu_fallback_enabled()
    with pytest.raises(MissingKernelError, match=r"flambeau\.set_cpu_fallback\(True\)"):
        host.missing_kernel("neg", "toy")
    assert cpu_fallback_counts() == before


@pytest.mark.filterwarnings("ignore::flambeau.plugin.fallback.FallbackWarning")
def test_fallback_copies_arguments_and_results_and_counts(host):
    set_cpu_fallback(True)
    before = used("neg")
    result = host.missing_kernel("neg", "toy")(floats(1.0, -2.0, index=3))
    assert type(result) is Block
    assert (result.shape, result.dtype, result.index) == ((2,), float32, 3)
    assert Blocks().tolist(result) == [-1.0, 2.0]
    assert used("neg") == before + 1


@pytest.mark.filterwarnings("ignore::flambeau.plugin.fallback.FallbackWarning")
def test_fallback_handles_sequences_tuples_and_plain_arguments(host):
    set_cpu_fallback(True)
    joined = host.missing_kernel("cat", "toy")((floats(1.0, index=2), None, floats(2.0)), 0)
    assert Blocks().tolist(joined) == [1.0, 2.0]
    assert joined.index == 2
    values, indices = host.missing_kernel("sort", "toy")(floats(1.0))
    assert (type(values), type(indices)) == (Block, Block)
    assert type(host.missing_kernel("full", "toy")((), 0, float32)) is Block


def test_fallback_warns_once_per_op_and_device(host):
    host.register(Device(Blocks("warning"), {}), name="w", device_types=["warning"])
    with cpu_fallback():
        kernel = host.missing_kernel("neg", "warning")
        with pytest.warns(FallbackWarning, match="op 'neg' has no kernel for device 'warning'"):
            kernel(floats(1.0))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            kernel(floats(1.0))
    assert used("neg", "warning") == 2


@pytest.mark.parametrize("op", ["neg_", "assign", "fill_"])
def test_fallback_refuses_ops_that_write_into_an_argument(host, op):
    with cpu_fallback(), pytest.raises(MissingKernelError, match="cannot stand in"):
        host.missing_kernel(op, "toy")


@pytest.mark.filterwarnings("ignore::flambeau.plugin.fallback.FallbackWarning")
def test_fallback_refuses_views_only_where_views_alias(host):
    strided = type("Strided", (Blocks,), {"strided": True} | dict.fromkeys(STRIDED_METHODS, len))
    host.register(Device(strided("views"), {}), name="views", device_types=["views"])
    with cpu_fallback():
        assert Blocks().tolist(host.missing_kernel("permute", "toy")(floats(1.0))) == [-1.0]
        with pytest.raises(MissingKernelError, match="aliases it"):
            host.missing_kernel("permute", "views")


@pytest.mark.filterwarnings("ignore::flambeau.plugin.fallback.FallbackWarning")
def test_kernel_kept_beyond_the_block_stops_working(host):
    with cpu_fallback():
        kernel = host.missing_kernel("neg", "toy")
        kernel(floats(1.0))
    with pytest.raises(MissingKernelError, match="'neg' has no kernel for device 'toy'"):
        kernel(floats(1.0))
    set_cpu_fallback(True)
    kernel(floats(1.0))
    with cpu_fallback(False), pytest.raises(MissingKernelError):
        kernel(floats(1.0))


def test_block_holds_for_its_own_thread_and_the_setting_for_all():
    seen = []

    def look():
        thread = threading.Thread(
            target=lambda: seen.append(is_cpu_fallback_enabled()), daemon=True
        )
        thread.start()
        thread.join(60)

    with cpu_fallback():
        look()
    set_cpu_fallback(True)
    look()
    assert seen == [False, True]


def test_fallback_works_as_decorator():
    @cpu_fallback()
    def inside():
        return is_cpu_fallback_enabled()

    assert inside()
    assert inside()
    assert not is_cpu_fallback_enabled()


def test_op_that_the_cpu_lacks_too_is_missing(host):
    with cpu_fallback(), pytest.raises(MissingKernelError, match="'erfinv'"):
        host.missing_kernel("erfinv", "toy")


def test_fallback_without_cpu_backend_names_the_package_and_the_reason():
    host = PluginHost(entry_points=list, environ={})
    host.register(Device(Blocks("toy"), {}), name="toy", device_types=["toy"])
    with (
        cpu_fallback(),
        pytest.raises(UnknownDeviceError, match="is provided by flambeau-numpy: pip install") as e,
    ):
        host.missing_kernel("neg", "toy")
    assert e.value.__notes__ == ["The CPU fallback of op 'neg' for device 'toy' needs it."]


def test_the_arguments_of_steps_are_those_of_the_ops():
    stated = {
        f"{name.removesuffix('Step').lower()}_step_": kind._fields
        for name, kind in vars(steps).items()
        if name.endswith("Step")
    }
    assert stated == {name: tuple(op.params) for name, op in OPS.items() if "_step_" in name}


def test_a_kernel_of_a_step_shows_its_arguments_and_takes_no_others():
    @takes(SgdStep)
    def sgd_step_(s):
        given.append(s)

    given = []
    assert list(inspect.signature(sgd_step_).parameters) == list(SgdStep._fields)
    sgd_step_([], [], [], 0.1, 0.0, 0.0, 0.0, False, True)
    assert given == [SgdStep([], [], [], 0.1, 0.0, 0.0, 0.0, False, True)]
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'maximize'"):
        sgd_step_([], [], [], 0.1, 0.0, 0.0, 0.0, False)
