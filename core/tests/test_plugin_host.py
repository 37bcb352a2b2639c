"""The plugin host: discovery, activation, order, conflicts, and the texts of its errors."""

from __future__ import annotations

import re
import sys
import threading
import time
import types
import warnings
from types import SimpleNamespace

import pluggy
import pytest

from flambeau._types.device import device as Device
from flambeau.plugin import API_VERSION, Backend, Expectations, KernelSet, float32, hookimpl
from flambeau.plugin.discovery import parse_block, parse_prefer
from flambeau.plugin.errors import (
    ApiVersionError,
    BackendLoadError,
    BackendWarning,
    MissingKernelError,
    OwnerConflictError,
    UnknownDeviceError,
)
from flambeau.plugin.host import PluginHost
from flambeau.plugin.remedies import install_command


class Runtime(Backend):
    array = list

    def __init__(self, device_type: str) -> None:
        self.device_type = device_type

    def from_host(self, data, shape, dtype, index):
        return list(data)

    def to_host(self, array):
        return bytes(array)

    def dtype_of(self, array):
        return float32


def kernel(*args):
    return args


class Owner:
    """A plugin that owns a device type and offers kernels for it."""

    def __init__(self, device_type: str, *ops: str, provider: str = "") -> None:
        self.device_type = device_type
        self.ops = ops
        self.provider = provider or f"flambeau-{device_type} 1.0"
        self.asked: list[str] = []

    @hookimpl
    def flambeau_backend(self, device_type):
        self.asked.append(device_type)
        return Runtime(device_type) if device_type == self.device_type else None

    @hookimpl
    def flambeau_kernels(self, device_type):
        if device_type == self.device_type:
            return KernelSet(self.provider, {op: kernel_of(self.provider, op) for op in self.ops})
        return None


class EagerOwner(Owner):
    @hookimpl(tryfirst=True)
    def flambeau_backend(self, device_type):
        return super().flambeau_backend(device_type)


class SimplePlugin:
    """A plugin whose hooks are given as functions of the device type."""

    def __init__(self, flambeau_backend=lambda device_type: None):
        self._backend = flambeau_backend

    @hookimpl
    def flambeau_backend(self, device_type):
        return self._backend(device_type)


class Accelerator:
    """A plugin that offers kernels for somebody else's device."""

    def __init__(self, provider: str, *ops: str) -> None:
        self.provider = provider
        self.ops = ops

    @hookimpl
    def flambeau_kernels(self, device_type, backend):
        assert backend.device_type == device_type
        return KernelSet(self.provider, {op: kernel_of(self.provider, op) for op in self.ops})


class EagerAccelerator(Accelerator):
    @hookimpl(tryfirst=True)
    def flambeau_kernels(self, device_type, backend):
        return super().flambeau_kernels(device_type, backend)


class LastAccelerator(Accelerator):
    @hookimpl(trylast=True)
    def flambeau_kernels(self, device_type, backend):
        return super().flambeau_kernels(device_type, backend)


def kernel_of(provider, op):
    def run():
        return provider, op

    return run


def entry(device_type, plugin, dist, version="1.0"):
    """An entry point whose loading returns `plugin`, or raises it if it is an exception."""

    def load():
        if isinstance(plugin, Exception):
            raise plugin
        return plugin

    return SimpleNamespace(
        name=device_type,
        value=f"{dist.replace('-', '_')}.plugin",
        dist=SimpleNamespace(name=dist, version=version),
        load=load,
    )


def host_of(*entries, environ=None, ops=()):
    made = PluginHost(entry_points=lambda: entries, environ=environ or {})
    if ops:
        table = {op.name: op for op in ops}
        made.op_table = lambda: table
    return made


def op(name, tier="primitive", why_not=""):
    return SimpleNamespace(name=name, tier=tier, overridable=not why_not, why_not=why_not)


def test_making_a_host_reads_no_entry_points():
    def scan():
        raise AssertionError("scanned")

    PluginHost(entry_points=scan, environ={"FLAMBEAU_PREFER": "nonsense"})


def test_only_the_plugin_of_the_used_device_is_imported():
    loaded = []

    def recording(point):
        load = point.load
        point.load = lambda: (loaded.append(point.name), load())[1]
        return point

    host = host_of(
        recording(entry("toy", Owner("toy", "add"), "flambeau-toy")),
        recording(entry("cuda", Owner("cuda"), "flambeau-cupy")),
    )
    assert host.device_types() == ("cuda", "toy")
    assert loaded == []
    activation = host.activate("toy")
    assert loaded == ["toy"]
    assert activation.kernels["add"]() == ("flambeau-toy 1.0", "add")
    assert activation.providers == {"add": "flambeau-toy 1.0"} == host.providers("toy")
    assert activation.distributions == {"flambeau-toy": "1.0"}
    assert activation.owner == "flambeau-toy:toy"


def test_activation_happens_once():
    owner = Owner("toy", "add")
    host = host_of(entry("toy", owner, "flambeau-toy"))
    assert host.activate("toy") is host.activate("toy")
    assert owner.asked == ["toy"]


def test_installed_plugins_are_asked_only_about_the_devices_they_announce():
    toy, other = Owner("toy", "add"), Owner("other", "add")
    host = host_of(entry("toy", toy, "a"), entry("other", other, "b"))
    host.activate("toy")
    host.activate("other")
    assert (toy.asked, other.asked) == (["toy"], ["other"])


def test_one_module_may_serve_two_device_types():
    class Both:
        @hookimpl
        def flambeau_backend(self, device_type):
            return Runtime(device_type)

    plugin = Both()
    host = host_of(entry("one", plugin, "flambeau-both"), entry("two", plugin, "flambeau-both"))
    assert host.activate("one").backend.device_type == "one"
    assert host.activate("two").backend.device_type == "two"


def test_builtin_device_types_load_lazily_from_a_module_path(monkeypatch):
    host = host_of()
    host.register_builtin("ref", "builtin_device_of_this_test")
    assert host.device_types() == ("ref",)
    module = types.ModuleType("builtin_device_of_this_test")
    module.flambeau_backend = hookimpl(lambda device_type: Runtime(device_type))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    assert host.activate("ref").owner == "flambeau-core:ref"


def test_two_threads_activate_once():
    loads = []
    start = threading.Barrier(4)

    def slow_backend(device_type):
        loads.append(device_type)
        time.sleep(0.05)
        return Runtime(device_type)

    plugin = SimplePlugin(flambeau_backend=slow_backend)
    host = host_of(entry("toy", plugin, "flambeau-toy"))
    found = []

    def use():
        start.wait(60)
        found.append(host.activate("toy"))

    threads = [threading.Thread(target=use, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    assert loads == ["toy"]
    assert len(found) == 4
    assert all(activation is found[0] for activation in found)


def test_using_a_device_while_it_loads_is_an_error_and_not_a_hang():
    plugin = SimplePlugin(lambda device_type: host.activate(device_type).backend)
    host = host_of(entry("toy", plugin, "flambeau-toy"))
    with pytest.raises(BackendLoadError, match="while its own backend is being loaded"):
        host.activate("toy")


def test_availability_needs_a_device_and_never_raises():
    class Absent(Runtime):
        def device_count(self):
            return 0

    host = host_of(
        entry("toy", Owner("toy"), "a"),
        entry("absent", SimplePlugin(Absent), "b"),
        entry("broken", ImportError("no"), "c"),
    )
    names = ("toy", "absent", "broken", "unknown")
    assert [host.is_available(name) for name in names] == [True, False, False, False]


def test_unknown_device_lists_installed_ones_and_suggests():
    host = host_of(entry("toy", Owner("toy"), "flambeau-toy"))
    with pytest.raises(UnknownDeviceError) as caught:
        host.activate("toyy")
    assert isinstance(caught.value, RuntimeError)
    assert str(caught.value) == (
        "no backend is installed for device 'toyy'; installed: toy. Did you mean 'toy'?"
    )


@pytest.mark.parametrize(
    ("device", "package"), [("cpu", "flambeau-numpy"), ("cuda", "flambeau-cupy")]
)
def test_well_known_device_names_the_package_to_install(device, package):
    with pytest.raises(UnknownDeviceError) as caught:
        host_of().activate(device)
    assert str(caught.value) == (
        f"no backend is installed for device {device!r}; installed: none. "
        f"{device!r} is provided by {package}: {install_command(package)}"
    )


@pytest.mark.parametrize(("wrong", "right"), [("gpu", "cuda"), ("CPU", "cpu"), ("cudda", "cuda")])
def test_common_misspellings_are_recognised(wrong, right):
    with pytest.raises(UnknownDeviceError, match=f"Did you mean '{right}'") as caught:
        host_of().activate(wrong)
    assert install_command(f"flambeau-{'cupy' if right == 'cuda' else 'numpy'}") in str(
        caught.value
    )


@pytest.mark.parametrize("name", ["float16", "half", "bool", "float8_e5m2"])
def test_a_dtype_in_the_place_of_a_device_is_recognised(name):
    with pytest.raises(UnknownDeviceError, match=rf"A dtype is passed as torch\.{name}, not as a"):
        host_of(entry("cpu", Owner("cpu"), "flambeau-numpy")).activate(name)
    with pytest.raises(RuntimeError, match="dtypes are passed as they are, not as strings$"):
        Device(f"torch.{name}")


@pytest.mark.parametrize("device", ["xpu", "tpu", "mps", "xla"])
def test_devices_of_pytorch_are_not_taken_for_others(device):
    with pytest.raises(UnknownDeviceError) as caught:
        host_of(entry("cpu", Owner("cpu"), "flambeau-numpy")).activate(device)
    assert str(caught.value) == (
        f"no backend is installed for device {device!r}; installed: cpu. "
        f"`python -m flambeau new-backend {device}` begins a package for it."
    )


def test_no_device_is_suggested_without_saying_how_to_get_it():
    with pytest.raises(UnknownDeviceError) as caught:
        host_of(entry("toy", Owner("toy"), "flambeau-toy")).activate("cudda")
    assert f"It is provided by flambeau-cupy: {install_command('flambeau-cupy')}" in str(
        caught.value
    )


def test_accelerator_without_owner_says_what_to_install():
    host = host_of(entry("cpu", Accelerator("flambeau-fast 2.0", "add"), "flambeau-fast", "2.0"))
    with pytest.raises(UnknownDeviceError) as caught:
        host.activate("cpu")
    assert "flambeau-fast 2.0 can only add kernels to it" in str(caught.value)
    assert install_command("flambeau-numpy") in str(caught.value)


def test_broken_plugin_harms_only_its_own_device():
    cause = ImportError("libcudart.so.12: cannot open shared object file")
    host = host_of(
        entry("cuda", cause, "flambeau-broken", "0.3"), entry("toy", Owner("toy"), "flambeau-toy")
    )
    with pytest.raises(BackendLoadError) as caught:
        host.activate("cuda")
    assert isinstance(caught.value, RuntimeError)
    assert str(caught.value).splitlines()[0] == (
        "backend 'flambeau-broken:cuda' for device 'cuda' failed to load: "
        "ImportError: libcudart.so.12: cannot open shared object file"
    )
    assert "FLAMBEAU_BLOCK=flambeau-broken" in str(caught.value)
    assert caught.value.__cause__ is cause
    assert host.activate("toy").backend.device_type == "toy"


def test_failure_is_remembered_and_raised_as_a_new_exception_each_time():
    calls = []

    def load(device_type):
        calls.append(device_type)
        raise OSError("driver")

    host = host_of(entry("toy", SimplePlugin(load), "flambeau-toy"))
    raised = []
    for _ in range(3):
        with pytest.raises(BackendLoadError) as caught:
            host.activate("toy")
        raised.append(caught.value)
    assert calls == ["toy"]
    assert len({id(error) for error in raised}) == 3
    assert len({id(error.__cause__) for error in raised}) == 1
    assert [error.problems[0].distribution for error in raised] == ["flambeau-toy"] * 3


def test_rescan_finds_new_packages_and_retries_broken_ones():
    points = [entry("toy", ImportError("half installed"), "flambeau-toy")]
    host = PluginHost(entry_points=lambda: list(points), environ={})
    with pytest.raises(BackendLoadError):
        host.activate("toy")
    points[:] = [entry("toy", Owner("toy"), "flambeau-toy"), entry("new", Owner("new"), "n")]
    host.rescan()
    assert host.activate("toy").owner == "flambeau-toy:toy"
    assert host.activate("new").owner == "n:new"


def test_missing_module_is_explained():
    cause = ModuleNotFoundError("No module named 'cupy'", name="cupy")
    host = host_of(entry("cuda", cause, "flambeau-cupy"))
    command = install_command("flambeau-cupy", "--force-reinstall")
    with pytest.raises(BackendLoadError, match=re.escape(command)):
        host.activate("cuda")


def test_broken_accelerator_warns_and_the_device_works():
    host = host_of(
        entry("cpu", Owner("cpu", "add"), "flambeau-numpy"),
        entry("cpu", ImportError("no compiler"), "flambeau-native", "0.2"),
    )
    with pytest.warns(BackendWarning, match="flambeau-native:cpu.*no compiler") as caught:
        activation = host.activate("cpu")
    assert len(caught) == 1
    assert "The device works without it" in str(caught[0].message)
    assert [problem.version for problem in activation.problems] == ["0.2"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        host.activate("cpu")


def test_every_failure_of_a_device_is_reported():
    host = host_of(entry("toy", ImportError("one"), "a"), entry("toy", ImportError("two"), "b"))
    with pytest.raises(BackendLoadError, match="one") as caught:
        host.activate("toy")
    assert any("two" in note for note in caught.value.__notes__)
    assert [problem.plugin for problem in caught.value.problems] == ["a:toy", "b:toy"]


@pytest.mark.parametrize(
    ("backend", "text"),
    [
        (object(), "expected an instance of a subclass of flambeau.plugin.Backend"),
        (Runtime, r"returned the class Runtime for device 'toy'; expected .* Runtime\(\) makes"),
        (Runtime("other"), "device_type is 'other', but it was returned for 'toy'"),
        (type("NoArray", (Runtime,), {"array": None})("toy"), "array must be the class"),
        (type("Views", (Runtime,), {"strided": True})("toy"), "must define strides, offset"),
    ],
)
def test_backend_that_breaks_the_contract_is_refused_with_the_reason(backend, text):
    host = host_of(entry("toy", SimplePlugin(lambda device_type: backend), "flambeau-toy"))
    with pytest.raises(BackendLoadError, match=text):
        host.activate("toy")


def test_misspelt_hook_is_found_and_harms_nobody_else():
    class Misspelt:
        @hookimpl
        def flambeau_kernel(self, device_type):
            return None

    host = host_of(entry("bad", Misspelt(), "flambeau-bad"), entry("toy", Owner("toy"), "t"))
    with pytest.raises(BackendLoadError, match="Did you mean 'flambeau_kernels'"):
        host.activate("bad")
    assert host.activate("toy").owner == "t:toy"


def test_wrong_hook_argument_is_found():
    class Wrong:
        @hookimpl
        def flambeau_backend(self, device):
            return None

    with pytest.raises(BackendLoadError, match=r"flambeau_backend\(device\)"):
        host_of(entry("bad", Wrong(), "flambeau-bad")).activate("bad")


def test_plugin_without_hooks_is_told_about_hookimpl():
    class Forgotten:
        def flambeau_backend(self, device_type):
            return None

    with pytest.raises(BackendLoadError, match="implements no hook; mark functions"):
        host_of(entry("bad", Forgotten(), "flambeau-bad")).activate("bad")


@pytest.mark.parametrize("version", [API_VERSION, f"{API_VERSION.partition('.')[0]}.99", None])
def test_same_major_api_version_is_accepted(version):
    owner = Owner("toy")
    owner.api_version = version
    assert host_of(entry("toy", owner, "flambeau-toy")).activate("toy").owner == "flambeau-toy:toy"


@pytest.mark.parametrize(
    ("version", "remedy"),
    [
        ("0.9", "pip install -U flambeau-toy"),
        ("99.0", install_command("flambeau-core", "-U")),
    ],
)
def test_other_major_api_version_names_both_versions_and_what_to_upgrade(version, remedy):
    owner = Owner("toy")
    owner.api_version = version
    with pytest.raises(BackendLoadError) as caught:
        host_of(entry("toy", owner, "flambeau-toy")).activate("toy")
    text = str(caught.value)
    assert f"flambeau-toy was written for plugin API {version}" in text
    assert f"has plugin API {API_VERSION}" in text
    assert text.count(remedy) == 1
    assert isinstance(caught.value.__cause__, ApiVersionError)
    assert remedy in str(caught.value.__cause__)


def test_unreadable_api_version_is_refused():
    owner = Owner("toy")
    owner.api_version = 1.0
    with pytest.raises(BackendLoadError, match=r"states api_version = 1\.0"):
        host_of(entry("toy", owner, "flambeau-toy")).activate("toy")


def test_two_owners_conflict_names_both_and_the_choice():
    host = host_of(
        entry("cpu", Owner("cpu"), "flambeau-numpy"), entry("cpu", Owner("cpu"), "flambeau-other")
    )
    for _ in range(2):
        with pytest.raises(OwnerConflictError) as caught:
            host.activate("cpu")
        text = str(caught.value)
        assert "'flambeau-numpy:cpu' and 'flambeau-other:cpu'" in text
        assert 'FLAMBEAU_PREFER="cpu=flambeau-numpy"' in text
        assert "pip uninstall flambeau-other" in text


def test_tryfirst_owner_wins_and_the_loser_offers_no_kernels():
    host = host_of(
        entry("cpu", Owner("cpu", "add", "neg", provider="plain"), "flambeau-numpy"),
        entry("cpu", EagerOwner("cpu", "add", provider="eager"), "flambeau-eager"),
    )
    activation = host.activate("cpu")
    assert activation.owner == "flambeau-eager:cpu"
    assert activation.providers == {"add": "eager"}


@pytest.mark.parametrize("by", ["environment", "call"])
def test_preferred_owner_wins_over_tryfirst(by):
    environ = {"FLAMBEAU_PREFER": "cpu=Flambeau_Numpy"} if by == "environment" else {}
    host = host_of(
        entry("cpu", Owner("cpu"), "flambeau-numpy"),
        entry("cpu", EagerOwner("cpu"), "flambeau-eager"),
        environ=environ,
    )
    if by == "call":
        host.prefer("cpu", "flambeau-numpy")
    assert host.activate("cpu").owner == "flambeau-numpy:cpu"


@pytest.mark.parametrize("dists", [("a-fast", "z-base"), ("z-fast", "a-base")])
def test_tryfirst_kernels_win_whatever_the_names_of_the_packages(dists):
    fast, base = dists
    host = host_of(
        entry("cpu", EagerAccelerator("fast", "add", "mul"), fast),
        entry("cpu", Owner("cpu", "add", "neg", provider="base"), base),
    )
    activation = host.activate("cpu")
    assert activation.providers == {"add": "fast", "mul": "fast", "neg": "base"}
    assert activation.kernels["add"]() == ("fast", "add")
    assert activation.distributions == {fast: "1.0", base: "1.0"}


def test_trylast_kernels_only_fill_gaps():
    host = host_of(
        entry("cpu", Owner("cpu", "add", provider="base"), "a-base"),
        entry("cpu", LastAccelerator("filler", "add", "erf"), "z-filler"),
    )
    assert host.providers("cpu") == {"add": "base", "erf": "filler"}


def test_preferred_kernels_win_over_tryfirst():
    host = host_of(
        entry("cpu", Owner("cpu", "add", "neg", provider="base"), "flambeau-numpy"),
        entry("cpu", EagerAccelerator("eager", "add", "neg"), "flambeau-eager"),
        entry("cpu", LastAccelerator("last", "add"), "flambeau-last"),
        environ={"FLAMBEAU_PREFER": "cpu=flambeau-last,flambeau-numpy; cuda=x"},
    )
    assert host.providers("cpu") == {"add": "last", "neg": "base"}
    host.prefer("cpu", "flambeau-eager")
    assert host.providers("cpu") == {"add": "eager", "neg": "eager"}
    host.prefer("cpu")
    assert host.providers("cpu") == {"add": "last", "neg": "base"}


def test_blocked_package_is_not_loaded():
    host = host_of(
        entry("cpu", Owner("cpu", "add", provider="base"), "flambeau-numpy"),
        entry("cpu", AssertionError("must not be imported"), "Flambeau.Native"),
        environ={"FLAMBEAU_BLOCK": "flambeau_native, something-else"},
    )
    assert host.providers("cpu") == {"add": "base"}


def test_block_and_unblock_change_an_active_device_and_keep_its_backend():
    host = host_of(
        entry("cpu", Owner("cpu", "add", provider="base"), "flambeau-numpy"),
        entry("cpu", EagerAccelerator("fast", "add"), "flambeau-fast"),
    )
    before = host.activate("cpu")
    host.block("flambeau-fast")
    blocked = host.activate("cpu")
    host.unblock("flambeau-fast")
    after = host.activate("cpu")
    assert [a.providers["add"] for a in (before, blocked, after)] == ["fast", "base", "fast"]
    assert before.backend is blocked.backend is after.backend


def test_blocked_owner_is_named_in_the_error():
    host = host_of(entry("cpu", Owner("cpu"), "flambeau-numpy"))
    host.block("flambeau-numpy")
    with pytest.raises(UnknownDeviceError, match="flambeau-numpy provides it but is blocked"):
        host.activate("cpu")
    assert host.device_types() == ()


@pytest.mark.parametrize("text", ["cpu", "=x", "cpu=", "cpu=a;broken"])
def test_malformed_preference_says_what_is_expected(text):
    with pytest.raises(ValueError, match=r'expected "DEVICE=PACKAGE,PACKAGE'):
        host_of(environ={"FLAMBEAU_PREFER": text}).activate("cpu")


def test_preferences_and_blocks_are_parsed():
    assert parse_prefer(" cpu = A_b, c ;cuda=d;") == {"cpu": ("a-b", "c"), "cuda": ("d",)}
    assert parse_prefer("") == {}
    assert parse_block("A.b, c\td") == {"a-b", "c", "d"}


def test_registered_plugin_serves_a_device_until_it_is_unregistered():
    host = host_of()
    host.register(Owner("toy", "add"), name="mine")
    assert host.activate("toy").owner == "mine"
    host.unregister("mine")
    with pytest.raises(UnknownDeviceError):
        host.activate("toy")


def test_registering_replaces_a_kernel_of_an_active_device_and_tells_listeners():
    host = host_of(entry("toy", Owner("toy", "add", provider="base"), "flambeau-toy"))
    stale = []
    host.subscribe(stale.append)
    backend = host.activate("toy").backend
    host.register(EagerAccelerator("mine", "add"), name="mine", device_types=["toy"])
    assert stale == ["toy"]
    assert host.providers("toy") == {"add": "mine"}
    assert host.activate("toy").backend is backend
    host.unregister("mine")
    assert stale == ["toy", "toy"]
    assert host.providers("toy") == {"add": "base"}


def test_listeners_are_called_without_the_lock():
    host = host_of(entry("toy", Owner("toy"), "flambeau-toy"))
    host.activate("toy")
    others = []

    def listener(device_type):
        thread = threading.Thread(target=lambda: others.append(host.activate(device_type)))
        thread.start()
        thread.join(60)

    host.subscribe(listener)
    host.block("unrelated")
    assert len(others) == 1


def test_device_types_of_a_registered_plugin_limit_what_it_is_asked():
    host = host_of(entry("toy", Owner("toy", "add"), "flambeau-toy"))
    mine = Owner("mine", "add")
    host.register(mine, name="mine", device_types=["mine"])
    assert host.device_types() == ("mine", "toy")
    host.activate("toy")
    assert mine.asked == []


def test_registering_twice_or_without_hooks_is_refused_and_leaves_nothing_behind():
    host = host_of()
    plugin = Owner("toy")
    host.register(plugin, name="mine")
    with pytest.raises(ValueError, match="named 'mine' is registered already"):
        host.register(Owner("toy"), name="mine")
    with pytest.raises(ValueError, match="already registered"):
        host.register(plugin, name="other")
    with pytest.raises(ValueError, match="implements no hook"):
        host.register(object(), name="empty")
    with pytest.raises(TypeError, match="hashable"):
        host.register(SimpleNamespace(), name="unhashable")
    host.unregister("mine")
    host.register(plugin, name="other")
    with pytest.raises(KeyError, match="no plugin 'mine'"):
        host.unregister("mine")


def test_registering_checks_hooks_and_api_version_at_once():
    class Misspelt:
        @hookimpl
        def flambeau_backends(self, device_type):
            return None

    host = host_of()
    with pytest.raises(pluggy.PluginValidationError, match="Did you mean 'flambeau_backend'"):
        host.register(Misspelt(), name="mine")
    old = Owner("toy")
    old.api_version = "0.1"
    with pytest.raises(ApiVersionError, match=r"plugin API 0\.1"):
        host.register(old, name="mine")
    host.register(Owner("toy"), name="mine")


OPS = (
    op("add"),
    op("erfinv"),
    op("softmax", "composite"),
    op("hinge", "composite", why_not="its gradient comes from its parts"),
)


def test_kernels_of_declared_ops_in_place_forms_and_views_are_accepted():
    names = ("add", "add_", "softmax", "slice", "view", "assign", "fill_")
    host = host_of(entry("toy", Owner("toy", *names), "t"), ops=OPS)
    assert set(host.providers("toy")) == set(names)


def test_unknown_kernel_name_is_refused_with_a_suggestion():
    host = host_of(entry("toy", Owner("toy", "add", "sofmax", "qwzx_"), "t"), ops=OPS)
    with pytest.raises(BackendLoadError) as caught:
        host.activate("toy")
    assert "offers kernels for ops that flambeau-core does not declare: 'qwzx_', 'sofmax' " in str(
        caught.value
    )
    assert "(Did you mean 'softmax'?)" in str(caught.value)


@pytest.mark.parametrize("name", ["hinge", "hinge_"])
def test_composite_without_gradient_cannot_be_overridden(name):
    host = host_of(entry("toy", Owner("toy", name), "t"), ops=OPS)
    with pytest.raises(BackendLoadError, match="cannot be overridden: its gradient comes from"):
        host.activate("toy")


def test_refused_offer_of_an_accelerator_leaves_the_owner_working():
    host = host_of(
        entry("toy", Owner("toy", "add", provider="base"), "t"),
        entry("toy", EagerAccelerator("fast", "add", "nosuch"), "flambeau-fast"),
        ops=OPS,
    )
    with pytest.warns(BackendWarning, match="nosuch"):
        activation = host.activate("toy")
    assert activation.providers == {"add": "base"}


def test_refused_offer_of_a_registered_plugin_is_an_error():
    host = host_of(entry("toy", Owner("toy", "add"), "t"), ops=OPS)
    host.register(Accelerator("mine", "nosuch"), name="mine")
    with pytest.raises(BackendLoadError, match=r"host\.unregister\('mine'\)"):
        host.activate("toy")


def test_offer_of_another_type_is_refused():
    class Wrong(Owner):
        @hookimpl
        def flambeau_kernels(self, device_type):
            return {"add": kernel}

    with pytest.raises(BackendLoadError, match="returned dict, expected a KernelSet"):
        host_of(entry("toy", Wrong("toy"), "t")).activate("toy")


def test_missing_kernel_text_names_op_device_providers_and_remedy():
    host = host_of(
        entry("toy", Owner("toy", "add", "softmax", provider="flambeau-toy 0.1"), "t"), ops=OPS
    )
    with pytest.raises(MissingKernelError) as caught:
        host.missing_kernel("erfinv", "toy")
    assert isinstance(caught.value, NotImplementedError)
    assert str(caught.value) == (
        "op 'erfinv' has no kernel for device 'toy'. Providers of this device: "
        "flambeau-toy 0.1 (2 kernels). 'erfinv' is a required primitive: the provider must supply "
        "it. To run this op on the CPU instead, call flambeau.set_cpu_fallback(True)."
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("softmax", "'softmax' is optional for a provider"),
        ("nosuch", "not an op that flambeau-core declares"),
        ("add_", "writes into its argument"),
        ("assign", "writes into its argument"),
    ],
)
def test_missing_kernel_says_what_kind_of_op_it_is(name, text):
    host = host_of(entry("toy", Owner("toy"), "t"), ops=OPS)
    with pytest.raises(MissingKernelError, match=text):
        host.missing_kernel(name, "toy")


def test_cpu_is_not_offered_as_fallback_for_itself():
    host = host_of(entry("cpu", Owner("cpu"), "t"), ops=OPS)
    with pytest.raises(MissingKernelError) as caught:
        host.missing_kernel("add", "cpu")
    assert "fallback" not in str(caught.value)


def test_missing_kernel_hook_is_asked_once_per_op_and_device():
    asked = []

    class Filler:
        @hookimpl
        def flambeau_missing_kernel(self, op, device_type):
            asked.append((op, device_type))
            return kernel if op == "erfinv" else None

    host = host_of(entry("toy", Owner("toy"), "t"))
    host.register(Filler(), name="filler")
    assert host.missing_kernel("erfinv", "toy") is kernel
    assert host.missing_kernel("erfinv", "toy") is kernel
    assert asked == [("erfinv", "toy")]
    with pytest.raises(MissingKernelError):
        host.missing_kernel("add", "toy")


def test_copier_comes_from_plugins_of_either_device_and_is_kept():
    asked = []

    class Copying(Owner):
        @hookimpl
        def flambeau_copier(self, source, target):
            asked.append((source, target))
            return kernel if (source, target) == ("toy", "other") else None

    host = host_of(
        entry("toy", Copying("toy"), "a"),
        entry("other", Owner("other"), "b"),
        entry("third", Copying("third"), "c"),
    )
    assert host.copier("toy", "other") is kernel
    assert host.copier("other", "toy") is None
    assert host.copier("other", "toy") is None
    assert asked == [("toy", "other"), ("other", "toy")]


def test_reports_and_expectations_are_merged():
    class Telling(Accelerator):
        @hookimpl
        def flambeau_report(self, device_type):
            return {self.provider: device_type, "version": self.provider}

        @hookimpl
        def flambeau_expectations(self, device_type):
            return Expectations(known_failures={self.provider: "a reason"})

    host = host_of(
        entry("toy", Owner("toy"), "base"),
        entry("toy", Telling("one", "add"), "a"),
        entry("toy", Telling("two", "add"), "b"),
    )
    assert {"one": "toy", "two": "toy"}.items() <= host.report("toy").items()
    assert set(host.expectations("toy").known_failures) == {"one", "two"}
