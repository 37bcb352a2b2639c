"""What goes wrong between a user and a plugin, each said once: what, who, why, and the remedy."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from flambeau._types.dtype import EVERY
from flambeau.plugin.remedies import install_command

KNOWN_PACKAGES = {"cpu": "flambeau-numpy", "cuda": "flambeau-cupy"}
"""Packages that provide well-known device types, for the remedy when none is installed."""

_OTHER_NAMES = {"gpu": "cuda", "cupy": "cuda", "numpy": "cpu", "host": "cpu"}
_OF_PYTORCH = frozenset("hip hpu ipu maia mps mtia npu tpu vulkan xla xpu".split())
"""Types that programs for PyTorch name, and that are no misspellings of others."""
_DTYPES = frozenset([d.name for d in EVERY])
_DTYPES |= frozenset("half float double short int long cfloat cdouble".split())


class UnknownDeviceError(RuntimeError):
    """No installed package provides this device type."""


class BackendLoadError(RuntimeError):
    """The package that provides this device type cannot be used; ``__cause__`` says why.

    Attributes:
        problems: everything that failed, one `Problem` per plugin.
    """

    def __init__(self, message: str, problems: Sequence[Problem] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)


class OwnerConflictError(RuntimeError):
    """Two packages provide the same device type and nothing says which one to take."""


class ApiVersionError(RuntimeError):
    """A plugin was written for another major version of the plugin contract.

    Attributes:
        summary: which versions meet.
        remedy: the command that makes them fit.
    """

    def __init__(self, summary: str, remedy: str) -> None:
        super().__init__(summary, remedy)
        self.summary = summary
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.summary}. Remedy: {self.remedy}"


class MissingKernelError(NotImplementedError):
    """No provider of the device has a kernel for this op."""


class BackendWarning(UserWarning):
    """A package that adds to a device could not be used; the device works without it."""


@dataclass(frozen=True)
class Problem:
    """One plugin that failed for one device type.

    Attributes:
        plugin: registration name, ``"distribution:entry"`` for installed packages.
        device_type: the device it was loaded for.
        distribution: the package to blame; empty for a plugin registered by code.
        version: its version, possibly empty.
        error: what was raised.
    """

    plugin: str
    device_type: str
    distribution: str
    version: str
    error: Exception

    def text(self) -> str:
        """One sentence: plugin, device and cause."""
        cause = self.error.summary if isinstance(self.error, ApiVersionError) else self.error
        return (
            f"backend {self.plugin!r} for device {self.device_type!r} failed to load: "
            f"{type(self.error).__name__}: {cause}"
        )

    def remedy(self) -> str:
        """What the user can do about it."""
        if isinstance(self.error, ApiVersionError):
            return self.error.remedy
        if not self.distribution:
            return f"correct the plugin, or host.unregister({self.plugin!r})"
        leave_out = f"to leave it out, set FLAMBEAU_BLOCK={self.distribution}"
        if isinstance(self.error, ModuleNotFoundError) and self.error.name:
            return (
                "a module it needs is missing; "
                f"{install_command(self.distribution, '--force-reinstall')} "
                f"installs what it depends on; {leave_out}"
            )
        return f"python -m flambeau doctor --traceback shows where; {leave_out}"


def backend_load_error(device_type: str, problems: Sequence[Problem]) -> BackendLoadError:
    """The error of a device that `problems` make unusable; its cause is that of the first."""
    first, *others = problems
    error = BackendLoadError(f"{first.text()}\nRemedy: {first.remedy()}.", problems)
    error.__cause__ = first.error
    for problem in others:
        error.add_note(f"Also: {problem.text()}\nRemedy: {problem.remedy()}.")
    return error


def unknown_device(
    device_type: str,
    installed: Collection[str],
    *,
    providers: Iterable[str] = (),
    blocked: Iterable[str] = (),
) -> UnknownDeviceError:
    """The error of a device type that nobody owns.

    `providers` are plugins that were loaded for it and offered no backend; `blocked` are packages
    that announce it and that the user blocked.
    """
    names = ", ".join(sorted(installed)) or "none"
    package = KNOWN_PACKAGES.get(device_type)
    parts = [f"no backend is installed for device {device_type!r}; installed: {names}."]
    if accelerators := list(providers):
        parts[0] = (
            f"no backend owns device {device_type!r}: {', '.join(accelerators)} can only add "
            f"kernels to it; installed: {names}."
        )
    if held_back := sorted(blocked):
        parts.append(
            f"{', '.join(held_back)} provides it but is blocked (FLAMBEAU_BLOCK or host.block)."
        )
    elif package is not None:
        parts.append(f"{device_type!r} is provided by {package}: {install_command(package)}")
    elif device_type in _DTYPES:
        parts.append(f"A dtype is passed as torch.{device_type}, not as a string.")
    elif device_type in _OF_PYTORCH:
        parts.append(f"`python -m flambeau new-backend {device_type}` begins a package for it.")
    elif guess := _closest_device(device_type, installed):
        parts.append(f"Did you mean {guess!r}?")
        if guess not in installed:
            package = KNOWN_PACKAGES[guess]
            parts.append(f"It is provided by {package}: {install_command(package)}")
    return UnknownDeviceError(" ".join(parts))


def owner_conflict(device_type: str, owners: Sequence[tuple[str, str]]) -> OwnerConflictError:
    """The error of a device with several owners, each a plugin and the name to prefer it by."""
    names = " and ".join(repr(name) for name, _ in owners)
    first, second = owners[0][1], owners[1][1]
    return OwnerConflictError(
        f"device {device_type!r} has {len(owners)} backends: {names}. Only one can own it: choose "
        f'one with FLAMBEAU_PREFER="{device_type}={first}" in the environment or '
        f"host.prefer({device_type!r}, {first!r}), or remove the other: pip uninstall {second}"
    )


def missing_kernel(
    op: str,
    device_type: str,
    *,
    providers: Mapping[str, int],
    required: bool | None,
    writes: bool,
) -> MissingKernelError:
    """The error of an op without kernel.

    `providers` maps a provider's name to its number of kernels, `required` says whether the op is a
    primitive (None: the core does not know the op), `writes` whether the CPU fallback is barred.
    """
    offers = ", ".join(f"{name} ({count} kernels)" for name, count in providers.items()) or "none"
    parts = [
        f"op {op!r} has no kernel for device {device_type!r}. Providers of this device: {offers}."
    ]
    if required is None:
        parts.append(f"{op!r} is not an op that flambeau-core declares.")
    elif required:
        parts.append(f"{op!r} is a required primitive: the provider must supply it.")
    else:
        parts.append(f"{op!r} is optional for a provider.")
    if device_type != "cpu":
        parts.append(
            "It writes into its argument or aliases it, so the CPU fallback cannot stand in."
            if writes
            else "To run this op on the CPU instead, call flambeau.set_cpu_fallback(True)."
        )
    return MissingKernelError(" ".join(parts))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``" Did you mean 'x'?"``, or nothing if no known name is close."""
    import difflib

    close = difflib.get_close_matches(name, list(known), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def _closest_device(device_type: str, installed: Collection[str]) -> str | None:
    lowered = device_type.lower()
    if (known := _OTHER_NAMES.get(lowered)) is not None:
        return known
    if lowered in installed:
        return lowered
    import difflib

    close = difflib.get_close_matches(lowered, [*installed, *KNOWN_PACKAGES], n=1)
    return close[0] if close else None
