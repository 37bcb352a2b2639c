"""The hooks between the core and its plugins; this file is their documentation.

A plugin marks functions of these names with ``@hookimpl``. It may leave out arguments that it does
not need. Hooks run when a device type is first used, or in tools; never while an op runs. A
plugin that came through an entry point is asked only about the device types it announces.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from flambeau.plugin.backend import Backend
    from flambeau.plugin.communication import Engine
    from flambeau.plugin.formats import Format
    from flambeau.plugin.kernels import Copier, Expectations, Kernel, KernelSet

API_VERSION = "1.15"
"""Version of this contract. A plugin module may state the one it was written for as
``api_version``; the same major number is required. New hooks and new optional arguments raise the
minor number."""

hookspec = pluggy.HookspecMarker("flambeau")
hookimpl = pluggy.HookimplMarker("flambeau")


@hookspec(firstresult=True)
def flambeau_backend(device_type: str) -> Backend | None:
    """Return the runtime of `device_type`, or None if it is not yours.

    Called once per device type, at its first use. One plugin owns a device type: a second owner is
    an error, unless one of them says ``tryfirst=True`` or the user chose one with
    ``FLAMBEAU_PREFER``. Import the array library here, not at the top of the plugin module.
    """


@hookspec
def flambeau_kernels(device_type: str, backend: Backend) -> KernelSet | None:
    """Offer kernels for the arrays of `backend`, or None.

    Called once, right after the owner is known.  For each op the earliest-called offer wins; say
    ``tryfirst=True`` to replace a kernel of another provider, ``trylast=True`` to fill gaps only.
    Without either, the order between providers means nothing.
    """


@hookspec(firstresult=True)
def flambeau_copier(source: str, target: str) -> Copier | None:
    """Return a direct copy from device type `source` to `target`, or None.

    Called once per pair, for plugins of either type. Without an answer copies go through host
    memory.
    """


@hookspec(firstresult=True)
def flambeau_missing_kernel(op: str, device_type: str) -> Kernel | None:
    """Return a kernel for an op that no provider of `device_type` offers, or None.

    The last chance before `MissingKernelError`; an answer is kept. The CPU fallback is a plugin of
    this hook and nothing else.
    """


@hookspec
def flambeau_expectations(device_type: str) -> Expectations | None:
    """Return tolerances, unsupported dtypes and known failures for the conformance kit, or None."""


@hookspec
def flambeau_report(device_type: str) -> Mapping[str, str] | None:
    """Return facts for ``python -m flambeau`` and the test header, such as library versions.

    A fact that begins with ``not`` says why something is not used; the doctor shows it as a note.
    One that begins with ``not installed`` is about the distribution that it is named after, and the
    doctor adds the command that installs it.
    """


@hookspec
def flambeau_serializers() -> Iterable[Format] | None:
    """Return the file formats that `flambeau.save` and `flambeau.load` shall know.

    Asked of the modules that entry points in the group ``flambeau.serializers`` name, once, when a
    format is first asked for by name or a file is no checkpoint of PyTorch's.
    """


@hookspec
def flambeau_engines() -> Iterable[Engine] | None:
    """Return the ways to move arrays between processes that `flambeau.distributed` shall know.

    Asked of the modules that entry points in the group ``flambeau.distributed`` name, once, when a
    program first asks for one. Import the library in `Engine.start`, not at the top of the module.
    """
