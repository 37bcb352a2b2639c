"""Which engines there are: those of installed packages, and the reference for tests."""

from __future__ import annotations

import importlib
import os
import warnings

import pluggy

from flambeau.distributed._names import Backend
from flambeau.plugin import Engine, hookspecs
from flambeau.plugin.discovery import canonical, parse_block
from flambeau.plugin.remedies import install_command

GROUP = "flambeau.distributed"
REFERENCE = "reference"
KINDS = {name: kind for kind, name in Backend.default_device_backend_map.items()}
"""PyTorch's names that mean a type of devices rather than a library."""

_found: dict[str, Engine] | None = None


def engines() -> dict[str, Engine]:
    """The engines of installed packages by name; asked once.  One that fails harms only itself."""
    global _found
    if _found is None:
        _found = {engine.name: engine for engine in _installed()}
    return _found


def _installed() -> list[Engine]:
    from importlib.metadata import entry_points  # slow to import

    blocked = parse_block(os.environ.get("FLAMBEAU_BLOCK", ""))
    found: list[Engine] = []
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.value):
        if entry.dist is not None and canonical(entry.dist.name) in blocked:
            continue
        plugins = pluggy.PluginManager("flambeau")
        plugins.add_hookspecs(hookspecs)
        try:
            plugins.register(entry.load(), entry.name)
            found += [e for offered in plugins.hook.flambeau_engines() for e in offered]
        except Exception as error:
            warnings.warn(
                f"the engine of {entry.value} cannot be used: {type(error).__name__}: {error}",
                RuntimeWarning,
                stacklevel=2,
            )
    return found


def _advice() -> str:
    return f"flambeau-mpi brings processes of CPUs together: {install_command('flambeau-mpi')}"


def usable() -> list[Engine]:
    """The engines that can be used here."""
    return [engine for engine in engines().values() if engine.unavailable() is None]


def named(name: str) -> Engine:
    """The engine of a name, which may be PyTorch's for what serves a type of devices.

    Raises:
        ValueError: no package has such an engine.
        RuntimeError: it cannot be used here.
    """
    if name == REFERENCE:
        return importlib.import_module("flambeau.testing.engine").ReferenceEngine()
    for engine in engines().values():
        if name == engine.name or name in engine.aliases or KINDS.get(name) in engine.devices:
            if (why := engine.unavailable()) is not None:
                raise RuntimeError(f"the engine {engine.name!r} cannot be used: {why}")
            return engine
    there = ", ".join(sorted(engines())) or "none"
    if name in (*KINDS, "mpi"):
        raise RuntimeError(f"no package offers {name!r}; installed engines: {there}. {_advice()}")
    raise ValueError(f"Unknown c10d backend type {name!r}; installed engines: {there}. {_advice()}")


def chosen(backend: str | None) -> dict[str, Engine]:
    """For each type of devices the engine that ``init_process_group(backend)`` means.

    ``"mpi"`` is one for its devices, ``"cpu:mpi,cuda:nccl"`` names types, None is all there are.

    Raises:
        RuntimeError: there is none.
    """
    if backend is None:
        found = usable()
        if not found:
            raise RuntimeError(f"no engine for communication is installed: {_advice()}")
        return {device: engine for engine in reversed(found) for device in engine.devices}
    if ":" not in backend:
        engine = named(backend)
        return dict.fromkeys(engine.devices, engine)
    pairs = [clause.partition(":") for clause in backend.split(",")]
    return {device.strip(): named(name.strip().lower()) for device, _, name in pairs}
