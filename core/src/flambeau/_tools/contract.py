"""The surface of the plugin contract, and whether its version says what changed.

``python -m flambeau._tools.contract`` compares the surface with the record in
``core/tests/contract.json``; with ``--write`` it records a change whose version number is right.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import sys
from collections.abc import Mapping
from pathlib import Path

Surface = Mapping[str, str]

PROVISIONAL = frozenset(
    [
        *("Accelerator", "DeviceProperties", "MemoryStatistics", "OutOfMemoryError"),
        *("numerics", "Format"),
        *("Backend.generator", "Backend.compile", "Backend.deferred", "Backend.reinterpret"),
        "Backend.compile_plan",
        *("Backend.lies_within", "Backend.stand_in"),
        *("Backend.memory_statistics", "Backend.reset_peak"),
        *("Backend.empty_cache", "Backend.caches_memory"),
        *("Backend.get_num_threads", "Backend.set_num_threads"),
        *("flambeau_missing_kernel", "flambeau_serializers", "flambeau_engines"),
        *("Engine", "Communicator", "Job", "Request", "Done", "Steps", "Compared"),
    ]
)
"""Names, classes with all their members, and hooks that a minor version may change."""

DTYPE = (
    *("name", "itemsize", "is_floating_point", "is_complex", "is_signed"),
    *("to_real", "to_complex"),
)
"""What backends may ask of a `dtype`."""


def surface() -> dict[str, str]:
    """Everything a backend may rely on or owes: name to signature, type or value."""
    from flambeau import plugin
    from flambeau.ops import OPS
    from flambeau.plugin import hookspecs
    from flambeau.plugin.validation import STRIDED_KERNELS

    found = {f"name {name}": type(getattr(plugin, name)).__name__ for name in plugin.__all__}
    for kind in (plugin.Backend, plugin.Accelerator):
        for name, member in vars(kind).items():
            if callable(member) and not name.startswith("_"):
                found[f"{kind.__name__}.{name}"] = str(inspect.signature(member))
        for name, annotation in inspect.get_annotations(kind).items():
            default = getattr(kind, name, "required")
            named = isinstance(default, tuple)
            shown = [e.__name__ for e in default] if named else default
            found[f"{kind.__name__}.{name}"] = f"{annotation} = {shown}"
    for kind in (
        *(plugin.KernelSet, plugin.Expectations),
        *(plugin.DeviceProperties, plugin.MemoryStatistics, plugin.Job),
    ):
        for field in dataclasses.fields(kind):
            found[f"{kind.__name__}.{field.name}"] = str(field.type)
    for kind in (plugin.Engine, plugin.Communicator, plugin.Request, plugin.Compared):
        for name, member in (inspect.get_annotations(kind) | vars(kind)).items():
            if not name.startswith("_"):
                shown = inspect.signature(member) if callable(member) else member
                found[f"{kind.__name__}.{name}"] = str(shown)
    for field in dataclasses.fields(plugin.numerics):
        found[f"numerics.{field.name}"] = str(field.type)
    for name, reference in inspect.get_annotations(plugin.Format).items():
        found[f"Format.{name}"] = reference.__forward_arg__
    found |= {f"Spec.{name}": "" for name in plugin.Spec.__slots__}
    found |= {f"dtype.{name}": "" for name in DTYPE if hasattr(plugin.float32, name)}
    for name, hook in vars(hookspecs).items():
        if name.startswith("flambeau_"):
            found[f"hook {name}"] = str(inspect.signature(hook))
    for op in OPS.values():
        if op.overridable:
            found[f"{op.tier} {op.name}"] = ", ".join(op.params)
    found |= {f"strided kernel {name}": "" for name in STRIDED_KERNELS}
    return dict(sorted(found.items()))


def complaint(old: Surface, old_version: str, new: Surface, new_version: str) -> str:
    """Why the step from one version of the contract to the next is wrong; empty if it is right.

    What is removed or changed breaks backends and needs a new major number, or a new minor one if
    it was provisional; what is added needs a new minor one, for a backend that uses it must be able
    to say so. Composites may be added freely: nobody owes them.

    >>> complaint({"a": "1"}, "1.0", {"a": "1", "b": "2"}, "1.0")
    'added: b; raise API_VERSION from 1.0 to at least 1.1'
    >>> complaint({"a": "1"}, "1.0", {"a": "1", "b": "2"}, "1.1")
    ''
    """
    different = sorted(name for name in old if new.get(name) != old[name])
    broken = [name for name in different if not provisional(name)]
    added = sorted(n for n in new.keys() - old.keys() if not n.startswith("composite "))
    if not different and not added:
        return ""
    before, after = _numbers(old_version), _numbers(new_version)
    wanted = (before[0] + 1, 0) if broken else (before[0], before[1] + 1)
    if after >= wanted:
        return ""
    parts = [f"removed or changed: {', '.join(different)}"] if different else []
    parts += [f"added: {', '.join(added)}"] if added else []
    return (
        f"{'; '.join(parts)}; raise API_VERSION from {old_version} "
        f"to at least {wanted[0]}.{wanted[1]}"
    )


def provisional(name: str) -> bool:
    """Whether an entry of the surface may change in a minor version.

    >>> provisional("Accelerator.pinned"), provisional("Backend.compile"), provisional("name dtype")
    (True, True, False)
    """
    bare = name.rpartition(" ")[2]
    return bare in PROVISIONAL or bare.partition(".")[0] in PROVISIONAL


def _numbers(version: str) -> tuple[int, int]:
    major, minor = version.split(".")
    return int(major), int(minor)


def main(record: Path, *, write: bool) -> int:
    """Compare, or record; 1 if the version does not say what changed, or the record is old."""
    from flambeau.plugin import API_VERSION

    known = json.loads(record.read_text())
    now = surface()
    if wrong := complaint(known["surface"], known["version"], now, API_VERSION):
        print(wrong, file=sys.stderr)
        return 1
    current = {"version": API_VERSION, "surface": now}
    if write:
        record.write_text(json.dumps(current, indent=1) + "\n")
    elif known != current:
        print(
            "the contract has changed as its version and its rules allow; record it with "
            "python -m flambeau._tools.contract --write",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    source = Path(__file__).resolve().parents[3] / "tests" / "contract.json"
    sys.exit(main(source, write="--write" in sys.argv))
