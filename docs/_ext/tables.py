"""Tables that the op declarations, the plugins and the contract page already contain."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import docstrings
import language
from inventory import Entry, members
from reference import Reference, arguments, directive, signature

from flambeau.compat import PARTS
from flambeau.onnx._export.table import load
from flambeau.ops import OPS
from flambeau.ops.randomness import random
from flambeau.plugin import Backend, dtypes, hookspecs
from flambeau.plugin.host import host
from flambeau.testing.backend._support import ANY_ZERO
from flambeau.testing.reference.meanings import MEANINGS
from flambeau.testing.samples import DTYPE, DTYPES, SAMPLES, Arr

CONTRACT = Path(__file__).resolve().parents[1] / "design" / "contract.md"
UNLISTED = {"no-index": ""}  # the reference of `flambeau.plugin` describes it, too
CATEGORIES = {0: "`bool`", 1: "integers", 2: "floats", 3: "complex numbers"}
# Where the declaration leaves it to the shape rule, or there is no array to have it from.
RESULTS = {
    "abs": "that of the array, and of complex numbers the real one",
    "arange": "`dtype`",
    "cast": "`dtype`",
    "full": "`dtype`",
    "sort": "that of the array; the indices are `int64`",
    "where": "that of `self` and `other`",
}


def onnx_table(_: Reference) -> str:
    """The ops that are exported to ONNX, by family, with the oldest opset that has a form."""
    families: dict[str, list[str]] = {}
    for name, entry in sorted(load().items()):
        if name.startswith("prim_"):
            continue
        family = entry.function.__module__.rpartition(".")[2]
        since = f" ({entry.since})" if entry.since > 9 else ""
        families.setdefault(family, []).append(f"`{name}`{since}")
    rows = [f"| {family} | {', '.join(ops)} |" for family, ops in sorted(families.items())]
    count = sum(map(len, families.values()))
    lead = (
        f"{count} ops are exported, each with its form that writes to a tensor. The number in "
        "brackets is the oldest opset for one; the others are in all of 9 to 23."
    )
    return "\n".join([lead, "", "| family | ops |", "|---|---|", *rows])


def op_table(_: Reference) -> str:
    """Every canonical op: tier, gradient, and the installed packages with a kernel of their own."""
    devices = [d for d in host.device_types() if d != "meta" and _usable(d)]
    active = {device: host.activate(device) for device in devices}
    head = ["op", "tier", "gradient", *(f"`{device}`" for device in devices)]
    rows = [head, ["---"] * len(head)]
    for name, op in sorted(OPS.items()):
        cells = [
            f"`{name}({', '.join(op.params)})`",
            op.tier,
            op.gradient_state.partition(":")[0],
            *(active[d].providers.get(name, "decomposed").partition(" ")[0] for d in devices),
        ]
        rows.append(cells)
    tiers = Counter(op.tier for op in OPS.values())
    lead = (
        f"{tiers['primitive']} primitives and {tiers['composite']} composites, "
        f"on the devices that were installed when this page was made."
    )
    return lead + "\n\n" + "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _usable(device: str) -> bool:
    try:
        host.activate(device)
    except RuntimeError:
        return False
    return True


def primitives(_: Reference) -> str:
    """Every primitive: what it means, dtypes, calls that are tested, and its shape rule."""
    families: dict[str, list[str]] = {}
    for name, op in OPS.items():
        if op.tier == "primitive":
            families.setdefault(op.body.__module__.rpartition(".")[2], []).append(name)
    parts = []
    for family, names in families.items():
        parts.append(f"## {family.capitalize()}")
        parts += [_primitive(name) for name in sorted(names)]
    return "\n\n".join(parts)


def _primitive(name: str) -> str:
    op = OPS[name]
    facts = [f"* Dtypes: {_dtypes(name)}. The result has {_result(name)}."]
    if name in ANY_ZERO:
        facts.append("* A zero may have either sign.")
    facts.append(f"* Gradient: {op.gradient_state}.")
    if calls := _calls(name):
        facts.append(f"* Tested with, among others: {calls}.")
    rule = textwrap.dedent(inspect.getsource(op.body)).rstrip()
    head = f"### {name}\n\n`{name}({', '.join(op.params)})`"
    return f"{head}\n\n{MEANINGS[name]}\n\n" + "\n".join(facts) + f"\n\n```python\n{rule}\n```"


def _dtypes(name: str) -> str:
    """The dtypes that a primitive is asked for, by category where all of one are."""
    found = []
    for category, words in CATEGORIES.items():
        every = [d for d in dtypes if d.category == category]
        asked = [d for d in every if d in DTYPES[name]]
        found += [words] if asked == every else [f"`{d.name}`" for d in asked]
    return ", ".join(found)


def _result(name: str) -> str:
    out = OPS[name].out
    if name in RESULTS:
        return RESULTS[name]
    return "that of the first array" if out == "same" else f"`{out.name}`"


def _calls(name: str) -> str:
    shown = dict.fromkeys(
        f"`{name}({', '.join(_argument(a) for a in sample.args)})`" for sample in SAMPLES[name]
    )
    return ", ".join([call for call in shown if len(call) < 72][:3])


def _argument(value: object) -> str:
    """An argument of a sample; an array by shape and dtype, if it is not the default one."""
    if isinstance(value, Arr):
        kind = "" if value.dtype is None else f"{value.dtype.name} "
        return f"{kind}[{', '.join(map(str, value.shape))}]"
    if isinstance(value, (tuple, list)):
        inside = ", ".join(map(_argument, value))
        return f"({inside}{',' if len(value) == 1 else ''})"
    return "dtype" if value is DTYPE else getattr(value, "name", None) or repr(value)


def hooks(reference: Reference) -> str:
    """The hooks with their arguments and docstrings."""
    parts = ["```{py:currentmodule} flambeau.plugin.hookspecs\n```"]
    for name, value in vars(hookspecs).items():
        if name.startswith("flambeau_"):
            parts.append(
                directive("function", name + signature(value), _plugin_text(reference, value))
            )
    return "\n\n".join(parts)


def backend(reference: Reference) -> str:
    """The class `Backend`: its attributes and methods, required and optional."""
    rows = [_plugin_text(reference, Backend)]
    for name, value in members(Backend, reference.classes):
        if inspect.isfunction(value):
            head = name + signature(value, bound=True)
            rows.append(directive("method", head, _plugin_text(reference, value), options=UNLISTED))
    body = "\n\n".join(rows)
    return directive("class", "flambeau.plugin.Backend", body, options=UNLISTED, level=4)


def _plugin_text(reference: Reference, value: object) -> str:
    taken = frozenset(arguments(value)) if inspect.isfunction(value) else frozenset()
    return docstrings.markdown(
        inspect.getdoc(value) or "", lambda name: reference.resolve(name, "flambeau.plugin", taken)
    )


def modules(reference: Reference) -> str:
    """The modules with a page, and how many names each has."""
    rows = ["| module | what it is | names |", "|---|---|---|"]
    for page in reference.pages:
        title = docstrings.text(page.title, lambda _: None).replace("|", "\\|")
        rows.append(f"| {{doc}}`{page.name}` | {title} | {len(page.entries)} |")
    listed = "\n".join(page.name for page in reference.pages)
    return "\n".join(rows) + f"\n\n```{{toctree}}\n:hidden:\n\nops\n{listed}\n```"


def former_names(reference: Reference) -> str:
    """Functions that take argument names of PyTorch 1.0 beside their own."""
    rows = ["| function | also takes |", "|---|---|"]
    for entry in _functions(reference):
        wrapped = getattr(entry.value, "__wrapped__", None)
        if wrapped is None:
            continue
        try:
            extra = set(inspect.signature(entry.value).parameters) - set(
                inspect.signature(wrapped).parameters
            )
        except (TypeError, ValueError):
            continue
        if extra:
            names = ", ".join(f"`{name}`" for name in sorted(extra))
            rows.append(f"| {{py:obj}}`{entry.name}` | {names} |")
    return "\n".join(rows)


def _functions(reference: Reference) -> Iterator[Entry]:
    for page in reference.pages:
        for entry in page.entries:
            if entry.same_as is None and inspect.isfunction(entry.value):
                yield entry


def random_streams(_: Reference) -> str:
    """The canonical random ops: what each draws, and how equal its numbers are to PyTorch's."""
    rows = ["| stream | what it draws | compared with PyTorch |", "|---|---|---|"]
    for name, value in vars(random).items():
        if name.startswith("_") or not inspect.isfunction(value):
            continue
        if value.__module__ != random.__name__ or not value.__doc__:
            continue
        first, *rest = _sentences(value.__doc__)
        told = [sentence for sentence in (first, *rest) if "PyTorch" in sentence]
        if not told:
            continue  # no stream: a helper of the others
        shown = [docstrings.text(cell, lambda _: None) for cell in (first, " ".join(told))]
        rows.append(f"| `{name}` | " + " | ".join(cell.replace("\n", " ") for cell in shown) + " |")
    return "\n".join(rows)


def _sentences(docstring: str) -> list[str]:
    """The sentences of the paragraphs before the first session or section."""
    prose = re.split(r">>>|\n *(?:Raises|Args):\n", inspect.cleandoc(docstring))[0]
    return [s for s in re.split(r"(?<=[.:]) +(?=[A-Z])", " ".join(prose.split())) if s]


def differences(_: Reference) -> str:
    """The table of accepted differences on the page about agreement."""
    page = (CONTRACT.parent / "agreement.md").read_text("utf-8")
    section = page.partition("## What still differs")[2].partition("\n## ")[0]
    table = [row for row in section.splitlines() if row.startswith("|")]
    return "\n".join(table)


def alias(_: Reference) -> str:
    """What a program that says ``import torch`` finds of the parts that others do not need."""
    rows = ["| part | how much of it | what it is |", "|---|---|---|"]
    for part in PARTS:
        if part.name != "torch":
            rows.append(f"| `{part.name}` | {part.state} | {part.text} |")
    return "\n".join(rows)


TABLES: dict[str, Callable[[Reference], str]] = {
    "alias": alias,
    "backend": backend,
    "differences": differences,
    "former-names": former_names,
    "hooks": hooks,
    "modules": modules,
    "onnx": onnx_table,
    "script-builtins": language.builtins,
    "script-language": language.language,
    "ops": op_table,
    "primitives": primitives,
    "random-streams": random_streams,
}
