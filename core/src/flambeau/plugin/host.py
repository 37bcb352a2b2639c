"""The plugin host: finds backends, activates a device type once, and explains what went wrong.

pluggy assembles tables here, once per device type; nothing on the path of an op goes through this
module.
"""

from __future__ import annotations

import copy
import importlib
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from flambeau.plugin import discovery, errors
from flambeau.plugin._registry import Registry
from flambeau.plugin.activation import Activation, Assembly, package_of
from flambeau.plugin.errors import Problem
from flambeau.plugin.fallback import CpuFallback
from flambeau.plugin.forks import make_lock
from flambeau.plugin.kernels import Expectations
from flambeau.plugin.validation import OpTable, writes_or_aliases

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from flambeau.plugin.backend import Backend
    from flambeau.plugin.kernels import Copier, Kernel


class PluginHost:
    """Registry of backends; `host` is the one of this process.

    Args:
        entry_points: lists the entry points of installed packages; called at first use of a device.
        environ: where ``FLAMBEAU_PREFER`` and ``FLAMBEAU_BLOCK`` are read, at first use of a
            device.

    Attributes:
        op_table: returns the ops that the core declares; offers are checked against it.

    >>> from flambeau.plugin.host import PluginHost
    >>> PluginHost(entry_points=list).device_types()
    ()
    """

    def __init__(
        self,
        *,
        entry_points: Callable[[], Iterable[EntryPoint]] = discovery.installed_entry_points,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self.op_table: Callable[[], OpTable] = dict
        self._entry_points = entry_points
        self._environ = environ
        self._registry = Registry()
        self._builtin: list[discovery.Entry] = []
        self._scanned: dict[str, tuple[discovery.Entry, ...]] | None = None
        self._env_prefer: dict[str, tuple[str, ...]] = {}
        self._env_block: frozenset[str] = frozenset()
        self._prefer: dict[str, tuple[str, ...]] = {}
        self._block: set[str] = set()
        self._active: dict[str, Activation] = {}
        self._failed: dict[str, Exception] = {}
        self._loading: set[str] = set()
        self._backends: dict[str, tuple[str, Backend]] = {}
        self._missing: dict[tuple[str, str], Kernel] = {}
        self._copiers: dict[tuple[str, str], Copier | None] = {}
        self._listeners: list[Callable[[str], object]] = []
        self._lock = make_lock()
        fallback = CpuFallback(self.activate, self.missing_kernel_error)
        self._registry.add_local(fallback, "flambeau-core:cpu-fallback", frozenset())

    def installed(self) -> Mapping[str, tuple[discovery.Entry, ...]]:
        """Announced device types with their entries, blocked ones included; nothing is imported.

        Raises:
            ValueError: ``FLAMBEAU_PREFER`` cannot be read.
        """
        with self._lock:
            if self._scanned is None:
                self._env_prefer, self._env_block = discovery.read_environment(self._environ)
                self._scanned = discovery.group_entries(self._entry_points(), self._builtin)
            return self._scanned

    def device_types(self) -> tuple[str, ...]:
        """Names of the device types that could be used, sorted; they may still fail to load."""
        with self._lock:
            names = {
                device_type
                for device_type, entries in self.installed().items()
                if any(not self.is_blocked(entry.name) for entry in entries)
            }
            return tuple(sorted(names.union(self._active, *self._registry.local.values())))

    def is_available(self, device_type: str) -> bool:
        """Whether `device_type` loads and has a device; False, not an error, if it is broken."""
        try:
            return self.activate(device_type).backend.device_count() > 0
        except RuntimeError:
            return False

    def activate(self, device_type: str) -> Activation:
        """The backend and kernels of `device_type`, loading its plugins at first use.

        Raises:
            UnknownDeviceError: no installed package provides it.
            BackendLoadError: the package that provides it failed; the cause is kept.
            OwnerConflictError: several packages provide it.
        """
        try:
            return self._active[device_type]
        except KeyError:
            pass
        with self._lock:
            if (found := self._active.get(device_type)) is not None:
                return found
            if (failure := self._failed.get(device_type)) is not None:
                # A copy, because raising the same object again would make its traceback grow.
                raise copy.copy(failure) from failure.__cause__
            if device_type in self._loading:
                raise RuntimeError(
                    f"device {device_type!r} was used while its own backend is being loaded; "
                    "a plugin must not run ops on its device in its hooks or at import"
                )
            self._loading.add(device_type)
            try:
                activation = self._load(device_type)
            except (errors.BackendLoadError, errors.OwnerConflictError) as failure:
                self._failed[device_type] = failure
                raise
            finally:
                self._loading.discard(device_type)
            self._active[device_type] = activation
        for problem in activation.problems:
            warnings.warn(
                f"{problem.text()}\nThe device works without it. Remedy: {problem.remedy()}.",
                errors.BackendWarning,
                stacklevel=3,
            )
        return activation

    def _load(self, device_type: str) -> Activation:
        problems: list[Problem] = []
        members: dict[str, discovery.Entry | None] = {}
        entries = self.installed().get(device_type, ())
        for entry in entries:
            if self.is_blocked(entry.name):
                continue
            try:
                members[self._registry.add_entry(entry)] = entry
            except Exception as error:
                who = (entry.name, device_type, entry.distribution, entry.version)
                problems.append(Problem(*who, error))
        members |= dict.fromkeys(self._registry.local_for(device_type))
        assembly = Assembly(
            device_type,
            self._registry,
            members,
            self.preferences(device_type),
            self.op_table(),
            self._backends.get(device_type),
        )
        if (activation := assembly.activation(problems)) is not None:
            self._backends[device_type] = (activation.owner, activation.backend)
            return activation
        if problems:
            raise errors.backend_load_error(device_type, problems)
        loaded = [entry for entry in entries if not self.is_blocked(entry.name)]
        raise errors.unknown_device(
            device_type,
            [name for name in self.device_types() if name != device_type],
            providers=[f"{entry.distribution} {entry.version}".strip() for entry in loaded],
            blocked=[entry.distribution for entry in entries if entry not in loaded],
        )

    def providers(self, device_type: str) -> dict[str, str]:
        """Op name to the provider of its kernel on `device_type`."""
        return dict(self.activate(device_type).providers)

    def missing_kernel(self, op_name: str, device_type: str) -> Kernel:
        """A kernel for an op that `device_type` lacks, from a plugin such as the CPU fallback.

        Raises:
            MissingKernelError: no plugin has one.
        """
        if (found := self._missing.get((op_name, device_type))) is not None:
            return found
        self.activate(device_type)
        with self._lock:
            for plugin in self._registry.answering(
                "flambeau_missing_kernel", self._members(device_type)
            ):
                for kernel in self._registry.ask(
                    "flambeau_missing_kernel", plugin, op=op_name, device_type=device_type
                ):
                    return self._missing.setdefault((op_name, device_type), kernel)
        raise self.missing_kernel_error(op_name, device_type)

    def missing_kernel_error(self, op_name: str, device_type: str) -> errors.MissingKernelError:
        """The error that explains why `op_name` cannot run on `device_type`."""
        activation = self.activate(device_type)
        op = self.op_table().get(op_name)
        strided = activation.backend.strided
        if op is not None:
            required = op.tier == "primitive"
        else:
            required = True if writes_or_aliases(op_name, strided=strided) else None
        return errors.missing_kernel(
            op_name,
            device_type,
            providers=Counter(activation.providers.values()),
            required=required,
            writes=writes_or_aliases(op_name, strided=strided),
        )

    def copier(self, source: str, target: str) -> Copier | None:
        """The direct copy between two device types, or None if copies go through host memory."""
        try:
            return self._copiers[source, target]
        except KeyError:
            pass
        self.activate(source)
        self.activate(target)
        members = {**dict.fromkeys(self._members(target)), **dict.fromkeys(self._members(source))}
        with self._lock:
            answers = (
                answer
                for plugin in self._registry.answering("flambeau_copier", members)
                for answer in self._registry.ask(
                    "flambeau_copier", plugin, source=source, target=target
                )
            )
            return self._copiers.setdefault((source, target), next(answers, None))

    def expectations(self, device_type: str) -> Expectations:
        """What the providers of `device_type` say about known deviations, merged."""
        merged = Expectations()
        for answer in self._ask_all("flambeau_expectations", device_type):
            merged = merged.merged(answer)
        return merged

    def report(self, device_type: str) -> dict[str, str]:
        """What the providers of `device_type` say about their libraries, merged."""
        merged: dict[str, str] = {}
        for answer in self._ask_all("flambeau_report", device_type):
            merged = {**{str(key): str(value) for key, value in answer.items()}, **merged}
        return merged

    def _ask_all(self, hook: str, device_type: str) -> list[Any]:
        self.activate(device_type)
        with self._lock:
            return [
                answer
                for plugin in self._registry.answering(hook, self._members(device_type))
                for answer in self._registry.ask(hook, plugin, device_type=device_type)
            ]

    def _members(self, device_type: str) -> list[str]:
        """Registered plugins that may speak about `device_type`."""
        return [
            *self._registry.loaded_for(
                entry
                for entry in self.installed().get(device_type, ())
                if not self.is_blocked(entry.name)
            ),
            *self._registry.local_for(device_type),
        ]

    def register_builtin(self, device_type: str, module: str, version: str = "") -> None:
        """Announce a device type of the core itself; `module` is imported at its first use."""
        with self._lock:
            self._builtin.append(discovery.builtin_entry(device_type, module, version))
            self._scanned = None

    def register(self, plugin: object, *, name: str, device_types: Iterable[str] = ()) -> None:
        """Add a plugin (a module or an object with ``@hookimpl`` methods) in this process.

        Args:
            plugin: what an entry point would have loaded.
            name: a unique name for messages, `prefer` and `unregister`.
            device_types: the device types it is asked about; without any, it is asked about all.

        Raises:
            ValueError: the name or the plugin is registered already, or it implements no hook.
            PluginValidationError: a hook has a name or an argument that does not exist.
            ApiVersionError: it was written for another major version of the contract.
        """
        with self._lock:
            self._registry.add_local(plugin, name, frozenset(device_types))
        self._changed()

    def unregister(self, name: str) -> None:
        """Remove a plugin that `register` added.

        Raises:
            KeyError: no such plugin.
        """
        with self._lock:
            self._registry.remove_local(name)
            self._backends = {d: kept for d, kept in self._backends.items() if kept[0] != name}
        self._changed()

    def prefer(self, device_type: str, *names: str) -> None:
        """Take backend and kernels of these packages first, in this order; none: forget the order.

        Overrides ``tryfirst`` and ``FLAMBEAU_PREFER``.

        >>> from flambeau.plugin.host import PluginHost
        >>> PluginHost(entry_points=list).prefer("cpu", "flambeau-numba", "flambeau-numpy")
        """
        with self._lock:
            if names:
                self._prefer[device_type] = tuple(map(discovery.canonical, names))
            else:
                self._prefer.pop(device_type, None)
        self._changed()

    def block(self, distribution: str) -> None:
        """Leave a package out, as ``FLAMBEAU_BLOCK`` does; active devices lose its kernels."""
        with self._lock:
            self._block.add(discovery.canonical(distribution))
        self._changed()

    def unblock(self, distribution: str) -> None:
        """Undo `block`."""
        with self._lock:
            self._block.discard(discovery.canonical(distribution))
        self._changed()

    def is_blocked(self, plugin: str) -> bool:
        """Whether an installed plugin, given as ``"distribution:entry"``, is left out."""
        self.installed()
        return package_of(plugin) in self._block | self._env_block

    def rescan(self) -> None:
        """Look again for installed packages and retry devices that failed, after an install say."""
        importlib.invalidate_caches()
        with self._lock:
            self._scanned = None
        self._changed()

    def subscribe(self, listener: Callable[[str], object]) -> None:
        """Call `listener` with a device type whenever its activation is out of date."""
        self._listeners.append(listener)

    def preferences(self, device_type: str) -> tuple[str, ...]:
        """The packages that the user wants first for `device_type`."""
        self.installed()
        return self._prefer.get(device_type) or self._env_prefer.get(device_type, ())

    def _changed(self) -> None:
        with self._lock:
            stale = list(self._active)
            self._active = {}
            self._failed = {}
            self._missing = {}
            self._copiers = {}
        # Outside the lock: a listener takes locks of its own, which others hold while activating.
        for device_type in stale:
            for listener in list(self._listeners):
                listener(device_type)


host = PluginHost()
"""The plugin host of this process."""
