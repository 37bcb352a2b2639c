"""File formats by name: those of the library and those of plugins."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from importlib.metadata import entry_points

import pluggy

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau.plugin import Format, hookspecs
from flambeau.serialization import safetensors

GROUP = "flambeau.serializers"

_registered: dict[str, Format] = {}
_scanned = False


@takes_as_annotated
def register_format(format: Format) -> None:
    """Add a format, or replace the one of that name.

    A package does the same by an entry point in the group ``flambeau.serializers``: a module with
    the hook ``flambeau_serializers``.
    """
    _registered[format.name] = format


def _all() -> dict[str, Format]:
    global _scanned
    if not _scanned:
        _scanned = True
        for format in (safetensors.FORMAT, *_installed()):
            _registered.setdefault(format.name, format)
    return _registered


def _installed() -> Iterator[Format]:
    """The formats of installed packages; one that fails harms only itself."""
    for entry in entry_points(group=GROUP):
        plugins = pluggy.PluginManager("flambeau")
        plugins.add_hookspecs(hookspecs)
        try:
            plugins.register(entry.load(), entry.name)
            found = [f for formats in plugins.hook.flambeau_serializers() for f in formats]
        except Exception as error:
            warnings.warn(
                f"file formats of {entry.value} cannot be used: {type(error).__name__}: {error}",
                RuntimeWarning,
                stacklevel=2,
            )
        else:
            yield from found


def named(name: str) -> Format:
    """The format of a name.

    Raises:
        ValueError: nobody offers it.
    """
    if name not in _all():
        raise ValueError(
            f"save: no format {name!r}; there are {', '.join(sorted(_registered))}. Packages add "
            f"formats by entry points in the group {GROUP!r}"
        )
    return _registered[name]


def sniffed(head: bytes) -> Format | None:
    """The format of a file that begins with `head`, None if nobody knows it."""
    return next((format for format in _all().values() if format.sniff(head)), None)
