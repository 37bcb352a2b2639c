"""Putting a device type together: one owner's backend, and everybody's kernels in one table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from flambeau.plugin._registry import Registry
from flambeau.plugin.backend import Backend
from flambeau.plugin.discovery import Entry, canonical
from flambeau.plugin.errors import Problem, backend_load_error, owner_conflict
from flambeau.plugin.kernels import Kernel, KernelSet
from flambeau.plugin.validation import OpTable, check_backend, check_kernels


@dataclass(frozen=True)
class Activation:
    """What serves a device type, fixed at its first use.

    Attributes:
        backend: the runtime.
        owner: registration name of the plugin that provided it.
        kernels: op name to kernel.
        providers: op name to the provider of its kernel.
        distributions: packages that were loaded for the device, with their versions.
        problems: packages that were to add to the device and failed.
    """

    backend: Backend
    owner: str
    kernels: dict[str, Kernel]
    providers: dict[str, str]
    distributions: dict[str, str]
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True)
class Assembly:
    """The parts from which one device type is activated.

    Attributes:
        device_type: its name.
        registry: where the plugins are registered.
        members: plugins that speak about the device; None in place of an entry: registered by code.
        order: packages in the order that the user prefers.
        ops: the ops that the core declares.
        kept: owner and backend of an earlier activation, whose arrays may be alive.
    """

    device_type: str
    registry: Registry
    members: Mapping[str, Entry | None]
    order: tuple[str, ...]
    ops: OpTable
    kept: tuple[str, Backend] | None

    def activation(self, problems: list[Problem]) -> Activation | None:
        """The finished tables, or None if no plugin owns the device; failures go to `problems`.

        The owner's failure, and that of a plugin registered by code, make the device unusable.  An
        installed package that only adds kernels is left out when it fails.

        Raises:
            BackendLoadError: the device is unusable.
            OwnerConflictError: several plugins own it.
        """
        owners = self._owners(problems)
        if not owners:
            return None
        owner = self._chosen(list(owners))
        backend = owners[owner]
        kernels: dict[str, Kernel] = {}
        providers: dict[str, str] = {}
        fatal: list[Problem] = []
        # A plugin that lost the device made its kernels for arrays of its own.
        helpers = [plugin for plugin in self.members if plugin == owner or plugin not in owners]
        for plugin, offer in self._offers(backend, helpers):
            if isinstance(offer, Exception):
                severe = plugin == owner or self.members[plugin] is None
                (fatal if severe else problems).append(self._problem(plugin, offer))
                continue
            for name, kernel in offer.kernels.items():
                if name not in kernels:
                    kernels[name] = kernel
                    providers[name] = offer.provider
        if fatal:
            raise backend_load_error(self.device_type, fatal)
        loaded = {e.distribution: e.version for e in self.members.values() if e is not None}
        return Activation(backend, owner, kernels, providers, loaded, tuple(problems))

    def _owners(self, problems: list[Problem]) -> dict[str, Backend]:
        owners = {}
        for plugin in self.registry.answering("flambeau_backend", self.members):
            if self.kept is not None and plugin == self.kept[0]:
                owners[plugin] = self.kept[1]
                continue
            try:
                for answer in self.registry.ask(
                    "flambeau_backend", plugin, device_type=self.device_type
                ):
                    owners[plugin] = check_backend(answer, self.device_type)
            except Exception as error:
                problems.append(self._problem(plugin, error))
        return owners

    def _chosen(self, owners: list[str]) -> str:
        if len(owners) == 1:
            return owners[0]
        for preferred in self.order:
            for plugin in owners:
                if package_of(plugin) == preferred:
                    return plugin
        eager = [p for p in owners if self.registry.is_tryfirst("flambeau_backend", p)]
        if len(eager) == 1:
            return eager[0]
        raise owner_conflict(self.device_type, [(p, package_of(p)) for p in sorted(owners)])

    def _offers(
        self, backend: Backend, helpers: list[str]
    ) -> Iterator[tuple[str, KernelSet | Exception]]:
        rank = {name: place for place, name in enumerate(self.order)}
        plugins = self.registry.answering("flambeau_kernels", helpers)
        for plugin in sorted(plugins, key=lambda name: rank.get(package_of(name), len(rank))):
            try:
                for offer in self.registry.ask(
                    "flambeau_kernels", plugin, device_type=self.device_type, backend=backend
                ):
                    if not isinstance(offer, KernelSet):
                        kind = type(offer).__name__
                        raise TypeError(f"flambeau_kernels returned {kind}, expected a KernelSet")
                    check_kernels(offer, self.ops)
                    yield plugin, offer
            except Exception as error:
                yield plugin, error

    def _problem(self, plugin: str, error: Exception) -> Problem:
        entry = self.members[plugin]
        who = (entry.distribution, entry.version) if entry is not None else ("", "")
        return Problem(plugin, self.device_type, *who, error)


def package_of(plugin: str) -> str:
    """The name by which users prefer or block a plugin: its distribution, or its own name."""
    return canonical(plugin.partition(":")[0])
