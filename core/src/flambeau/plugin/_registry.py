"""Plugins by name, and questions to one of them at a time, on top of pluggy.

pluggy answers with values and does not say whose they are. The host needs the name: for conflicts,
for blame and for the user's order. So a hook is called for one plugin at a time, in pluggy's
order.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from typing import Any

import pluggy

from flambeau.plugin import hookspecs
from flambeau.plugin.discovery import Entry, check_api_version
from flambeau.plugin.errors import did_you_mean

HOOKS = tuple(name for name in vars(hookspecs) if name.startswith("flambeau_"))


class Registry:
    """The plugin manager of one host.

    Attributes:
        local: plugins that code registered, with the device types they speak about (none: all).
    """

    def __init__(self) -> None:
        self._manager = pluggy.PluginManager("flambeau")
        self._manager.add_hookspecs(hookspecs)
        self._names: dict[str, str] = {}  # entry name -> name under which its plugin is registered
        self.local: dict[str, frozenset[str]] = {}

    def add_entry(self, entry: Entry) -> str:
        """Import and register an installed plugin; returns its registration name.

        Raises whatever the import or the registration raises; the plugin is not registered then.
        """
        if (known := self._names.get(entry.name)) is not None:
            return known
        plugin = entry.load()
        name = self._manager.get_name(plugin)
        if name is None:  # one module may serve several device types
            check_api_version(plugin, entry.distribution)
            name = self.add(plugin, entry.name)
        self._names[entry.name] = name
        return name

    def add_local(self, plugin: object, name: str, device_types: frozenset[str]) -> None:
        """Register a plugin of this process.

        Raises:
            ValueError: the name or the plugin is registered already, or it implements no hook.
            PluginValidationError: a hook has a name or an argument that does not exist.
            ApiVersionError: it was written for another major version of the contract.
        """
        check_api_version(plugin, name)
        self.add(plugin, name)
        self.local[name] = device_types

    def remove_local(self, name: str) -> None:
        """Unregister a plugin of this process.

        Raises:
            KeyError: no such plugin.
        """
        if name not in self.local:
            raise KeyError(
                f"no plugin {name!r} was registered; registered: {sorted(self.local) or 'none'}"
            )
        del self.local[name]
        self._manager.unregister(name=name)

    def add(self, plugin: object, name: str) -> str:
        """Register `plugin` after checking every hook it implements; all or nothing."""
        if self._manager.has_plugin(name):
            raise ValueError(f"a plugin named {name!r} is registered already; unregister it first")
        if type(plugin).__hash__ is None:
            raise TypeError(f"{_describe(plugin)} cannot be a plugin: it must be hashable")
        try:
            self._manager.register(plugin, name=name)
            self._check_hook_names(plugin)
        except Exception:
            if self._manager.has_plugin(name):
                self._manager.unregister(name=name)
            raise
        return name

    def _check_hook_names(self, plugin: object) -> None:
        # register() checks the arguments of known hooks; check_pending() notices misspelt names.
        try:
            self._manager.check_pending()
        except pluggy.PluginValidationError as error:
            names = [n for n in dir(plugin) if n.startswith("flambeau") and n not in HOOKS]
            hint = did_you_mean(names[0], HOOKS) if names else ""
            raise pluggy.PluginValidationError(
                plugin, f"{error}; hooks are {', '.join(HOOKS)}.{hint}"
            ) from None
        if not self._manager.get_hookcallers(plugin):
            raise ValueError(
                f"{_describe(plugin)} implements no hook; mark functions such as flambeau_backend "
                "with @flambeau.plugin.hookimpl"
            )

    def local_for(self, device_type: str) -> list[str]:
        """Plugins of this process that speak about `device_type`."""
        return [name for name, types in self.local.items() if not types or device_type in types]

    def loaded_for(self, entries: Iterable[Entry]) -> list[str]:
        """Registration names of those entries that have been loaded."""
        return [self._names[entry.name] for entry in entries if entry.name in self._names]

    def answering(self, hook: str, members: Iterable[str]) -> list[str]:
        """Those of `members` that implement `hook`, in pluggy's call order."""
        chosen = set(members)
        order = (impl.plugin_name for impl in reversed(self._implementations(hook)))
        return list(dict.fromkeys(name for name in order if name in chosen))

    def ask(self, hook: str, plugin: str, **arguments: object) -> Iterator[Any]:
        """The answers of one plugin to one hook that are not None."""
        others = [i.plugin for i in self._implementations(hook) if i.plugin_name != plugin]
        answer = self._manager.subset_hook_caller(hook, others)(**arguments)
        answers = answer if isinstance(answer, list) else [answer]
        return (value for value in answers if value is not None)

    def is_tryfirst(self, hook: str, plugin: str) -> bool:
        """Whether the plugin asks to be called before others."""
        return any(i.tryfirst for i in self._implementations(hook) if i.plugin_name == plugin)

    def _implementations(self, hook: str) -> list[pluggy.HookImpl]:
        found = getattr(self._manager.hook, hook).get_hookimpls()
        return [impl for impl in found if not (impl.wrapper or impl.hookwrapper)]


def _describe(plugin: object) -> str:
    return plugin.__name__ if inspect.ismodule(plugin) else f"{type(plugin).__name__} object"
