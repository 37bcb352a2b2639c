"""Finding plugins: installed entry points, and what the user says about them in the environment."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING

from flambeau.plugin.errors import ApiVersionError
from flambeau.plugin.hookspecs import API_VERSION
from flambeau.plugin.remedies import install_command

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "flambeau.backends"
CORE = "flambeau-core"


@dataclass(frozen=True)
class Entry:
    """An announcement: this distribution serves this device type, from this module.

    Attributes:
        device_type: name of the entry point.
        distribution: the package that announces it, in its canonical spelling.
        version: version of that package, empty if unknown.
        target: where the plugin is, such as ``"flambeau_numpy.plugin"``.
        load: imports and returns the plugin.
    """

    device_type: str
    distribution: str
    version: str
    target: str
    load: Callable[[], object]

    @property
    def name(self) -> str:
        """The registration name, unique even when two packages serve one device type."""
        return f"{self.distribution}:{self.device_type}"


def canonical(distribution: str) -> str:
    """A distribution's name as indexes compare it: lower case, runs of ``-_.`` are one ``-``."""
    return re.sub(r"[-_.]+", "-", distribution.strip()).lower()


def core_version() -> str:
    """The version of flambeau-core, or ``"(source tree)"`` if it is not installed."""
    return distribution_version(CORE) or "(source tree)"


def distribution_version(distribution: str) -> str | None:
    """The version of an installed distribution, or None."""
    from importlib.metadata import PackageNotFoundError, version  # slow to import

    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def installed_entry_points() -> Iterable[EntryPoint]:
    """The entry points of the group in this environment: the scan that first use pays for."""
    from importlib.metadata import entry_points  # slow to import

    return entry_points(group=GROUP)


def group_entries(
    entry_points: Iterable[EntryPoint], builtin: Iterable[Entry] = ()
) -> dict[str, tuple[Entry, ...]]:
    """Entries by device type, sorted by distribution so that install order has no effect."""
    found = list(builtin)
    for point in entry_points:
        dist = point.dist
        found.append(
            Entry(
                device_type=point.name,
                distribution=canonical(dist.name or "unknown") if dist else "unknown",
                version=(dist.version or "") if dist else "",
                target=point.value,
                load=point.load,
            )
        )
    grouped: dict[str, list[Entry]] = {}
    for entry in sorted(found, key=lambda e: (e.distribution, e.target)):
        same = grouped.setdefault(entry.device_type, [])
        # One environment can list a distribution twice, as on a path that appears under two names.
        if all(other.name != entry.name for other in same):
            same.append(entry)
    return {device_type: tuple(entries) for device_type, entries in sorted(grouped.items())}


def builtin_entry(device_type: str, module: str, version: str) -> Entry:
    """The entry of a device type that the core itself provides from `module`."""

    def load() -> ModuleType:
        return importlib.import_module(module)

    return Entry(device_type, CORE, version, module, load)


def parse_prefer(text: str) -> dict[str, tuple[str, ...]]:
    """``"cpu=a,b;cuda=c"``: for each device type, distributions in order of preference.

    Raises:
        ValueError: the text has another form.
    """
    chosen: dict[str, tuple[str, ...]] = {}
    for clause in filter(None, (part.strip() for part in text.split(";"))):
        device_type, equals, names = clause.partition("=")
        order = _names(names)
        if not equals or not device_type.strip() or not order:
            raise ValueError(
                f'FLAMBEAU_PREFER: expected "DEVICE=PACKAGE,PACKAGE;DEVICE=PACKAGE", such as '
                f'"cpu=flambeau-numba", got {text!r}'
            )
        chosen[device_type.strip()] = order
    return chosen


def parse_block(text: str) -> frozenset[str]:
    """``"a,b"``: the distributions that the user does not want loaded."""
    return frozenset(_names(text))


def _names(text: str) -> tuple[str, ...]:
    return tuple(canonical(name) for name in re.split(r"[,\s]+", text) if name)


def check_api_version(plugin: object, distribution: str) -> None:
    """Accept a plugin that states no `api_version`, or one with the core's major number.

    Raises:
        ApiVersionError: another major number, or a version that cannot be read.
    """
    stated = getattr(plugin, "api_version", None)
    if stated is None:
        return
    match = re.fullmatch(r"(\d+)(\.\d+)*", stated) if isinstance(stated, str) else None
    who = distribution or "the plugin"
    if match is None:
        raise ApiVersionError(
            f"{who} states api_version = {stated!r}",
            f"state a string such as {API_VERSION!r} in the plugin",
        )
    theirs, ours = int(match[1]), int(API_VERSION.partition(".")[0])
    if theirs != ours:
        old = CORE if theirs > ours else distribution
        raise ApiVersionError(
            f"{who} was written for plugin API {stated}, but flambeau-core {core_version()} has "
            f"plugin API {API_VERSION}",
            install_command(old, "-U") if old else "update the plugin",
        )


def read_environment(
    environ: Mapping[str, str],
) -> tuple[dict[str, tuple[str, ...]], frozenset[str]]:
    """``FLAMBEAU_PREFER`` and ``FLAMBEAU_BLOCK``, parsed.

    Raises:
        ValueError: ``FLAMBEAU_PREFER`` has another form.
    """
    return (
        parse_prefer(environ.get("FLAMBEAU_PREFER", "")),
        parse_block(environ.get("FLAMBEAU_BLOCK", "")),
    )
