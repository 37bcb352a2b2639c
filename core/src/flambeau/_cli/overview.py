"""What ``python -m flambeau`` prints: devices, who serves them, and how much of the op table."""

from __future__ import annotations

import importlib.util
import platform
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from flambeau.plugin import API_VERSION
from flambeau.plugin.activation import Activation
from flambeau.plugin.discovery import core_version, distribution_version
from flambeau.plugin.host import PluginHost
from flambeau.plugin.remedies import install_command
from flambeau.plugin.validation import STRIDED_KERNELS, OpTable

_INDENT = "  "


@dataclass(frozen=True)
class Coverage:
    """How much of the op table a device has kernels for.

    Attributes:
        primitives: required ops with a kernel.
        missing: required ops without one, sorted.
        native: composites with a kernel of their own.
        decomposed: composites that run as other ops.
        in_place: kernels that write into their first argument.
    """

    primitives: tuple[str, ...]
    missing: tuple[str, ...]
    native: tuple[str, ...]
    decomposed: tuple[str, ...]
    in_place: tuple[str, ...]


def coverage(kernels: Iterable[str], ops: OpTable) -> Coverage:
    """Compare the names of `kernels` with the ops that the core declares."""
    have = set(kernels)
    primitive = sorted(name for name, op in ops.items() if op.tier == "primitive")
    composite = sorted(name for name, op in ops.items() if op.tier == "composite")
    return Coverage(
        primitives=tuple(name for name in primitive if name in have),
        missing=tuple(name for name in primitive if name not in have),
        native=tuple(name for name in composite if name in have),
        decomposed=tuple(name for name in composite if name not in have),
        in_place=tuple(sorted(name for name in have if name.endswith("_") or name == "assign")),
    )


def nn_version() -> str | None:
    """The version of flambeau-nn, ``"(source tree)"`` if it is only on the path, None if absent."""
    if importlib.util.find_spec("flambeau.nn") is None:
        return None
    return distribution_version("flambeau-nn") or "(source tree)"


def overview(host: PluginHost) -> str:
    """Versions, and one paragraph per device type, broken ones included."""
    nn = nn_version() or "(not installed)"
    lines = [
        f"flambeau-core {core_version()}, plugin API {API_VERSION}, flambeau-nn {nn}, "
        f"Python {platform.python_version()}"
    ]
    device_types = host.device_types()
    for device_type in device_types:
        lines += ["", *_paragraph(host, device_type)]
    if not device_types:
        lines += [
            "",
            "no backend is installed; the usual one is flambeau-numpy: "
            + install_command("flambeau-numpy"),
        ]
    return "\n".join(lines)


def _paragraph(host: PluginHost, device_type: str) -> list[str]:
    try:
        active = activate_quietly(host, device_type)
    except RuntimeError as error:
        return [f"{device_type}: not usable", *_rows([("error", str(error).splitlines()[0])])]
    rows = [("backend", f"{active.owner} ({_class_path(active.backend)})")]
    for provider, count in Counter(active.providers.values()).most_common():
        rows.append(("kernels", f"{provider}: {count}"))
    rows += _coverage_rows(active, host.op_table())
    rows += [("left out", problem.text()) for problem in active.problems]
    try:
        rows += sorted(host.report(device_type).items())
    except Exception as error:  # a report is decoration; its failure must not hide the rest
        rows.append(("report", f"failed: {type(error).__name__}: {error}"))
    return [f"{device_type}: {_device_count(active)}", *_rows(rows)]


def _coverage_rows(active: Activation, ops: OpTable) -> list[tuple[str, str]]:
    if not ops:
        return []
    found = coverage(active.kernels, ops)
    primitives = f"{len(found.primitives)} of {len(found.primitives) + len(found.missing)}"
    if 0 < len(found.missing) <= 8:
        primitives += f", missing: {', '.join(found.missing)}"
    return [
        ("primitives", primitives),
        ("composites", f"{len(found.native)} native, {len(found.decomposed)} decomposed"),
        ("in-place", f"{len(found.in_place)} native"),
    ]


def kernel_table(host: PluginHost, device_type: str) -> str:
    """One line per op: its tier, and who runs it on `device_type`.

    Raises:
        RuntimeError: the device cannot be used; the message says why.
    """
    active = activate_quietly(host, device_type)
    ops = host.op_table()
    names = sorted({*ops, *active.kernels})
    rows = [("op", "tier", "provider")]
    for name in names:
        op = ops.get(name)
        tier = op.tier if op is not None else "in-place" if name.endswith("_") else "strided"
        if (provider := active.providers.get(name)) is None:
            provider = "MISSING" if tier == "primitive" else "decomposition"
        rows.append((name, tier, provider))
    return "\n".join(columns(rows))


def missing_kernels(host: PluginHost, device_type: str) -> tuple[str, ...]:
    """The kernels that `device_type` owes and does not have, sorted.

    Raises:
        RuntimeError: the device cannot be used.
    """
    active = activate_quietly(host, device_type)
    owed = set(coverage(active.kernels, host.op_table()).missing)
    if active.backend.strided:
        owed |= STRIDED_KERNELS - set(active.kernels)
    return tuple(sorted(owed))


def activate_quietly(host: PluginHost, device_type: str) -> Activation:
    """Activate without the warnings about left-out packages, which the caller prints itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return host.activate(device_type)


def _device_count(active: Activation) -> str:
    try:
        count = active.backend.device_count()
    except Exception as error:  # driver trouble belongs in the table, not in a traceback
        return f"devices cannot be counted: {type(error).__name__}: {error}"
    return "1 device" if count == 1 else f"{count} devices"


def _class_path(instance: object) -> str:
    return f"{type(instance).__module__}.{type(instance).__qualname__}"


def _rows(rows: Sequence[tuple[str, str]]) -> list[str]:
    return [_INDENT + line for line in columns(rows)]


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines with the cells of each column below each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
