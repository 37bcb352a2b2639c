"""Pages of the API reference: one per module, and several for the many names of `flambeau`."""

from __future__ import annotations

import enum
import functools
import importlib
import inspect
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import docstrings
import inventory
from inventory import Entry, Page
from sphinx.util.inspect import stringify_signature

import flambeau

# The pages of `flambeau` beside those of the groups of its ops, by the end of their address.
OTHER_THEMES = {
    "inplace": "Functions that write into their argument",
    "types": "Types, devices, modes and settings",
}
ADDRESS = re.compile(r" at 0x[0-9a-f]+")
GENERIC = re.compile(r"`\w+` of `flambeau\.ops|Create a collection|Initialize self")


class Reference:
    """All pages, as Markdown by path without suffix, and what can be linked to."""

    def __init__(self) -> None:
        self.pages = inventory.pages()
        self.homes: dict[str, str] = {}
        self.short: dict[str, set[str]] = defaultdict(set)
        self.classes: dict[type, str] = {}
        for page in self.pages:
            for entry in page.entries:
                home = entry.same_as or entry.name
                self._known(entry.name, home)
                if inspect.isclass(entry.value) and entry.same_as is None:
                    self.classes[entry.value] = entry.name
        for cls, full in self.classes.items():
            for name, value in inventory.members(cls, self.classes):
                if described(value):
                    self._known(f"{full}.{name}", f"{full}.{name}")
        for name in ("load", "save"):
            self.homes[f"flambeau.{name}"] = f"flambeau.serialization.{name}"

    def _known(self, name: str, home: str) -> None:
        self.homes[name] = home
        self.short[name.rpartition(".")[2]].add(home)

    def resolve(self, name: str, scope: str, taken: frozenset[str] = frozenset()) -> str | None:
        """The full name behind `name` in a text about `scope`; `taken` are names of arguments."""
        if name in taken or not re.fullmatch(r"[A-Za-z_][\w.]*", name):
            return None
        root, _, rest = name.partition(".")
        if root in ("fb", "torch") and rest:
            name = f"flambeau.{rest}"
        place = scope
        while place:
            if (home := self.homes.get(f"{place}.{name}")) is not None:
                return home
            place = place.rpartition(".")[0]
        for candidate in (name, f"flambeau.{name}"):
            if candidate in self.homes:
                return self.homes[candidate]
        found = self.short.get(name, set())
        return next(iter(found)) if len(found) == 1 and len(name) > 4 else None

    def text(self, value: Any, scope: str) -> str:
        """The docstring of `value` as Markdown; empty without one of its own."""
        return docstrings.markdown(
            described(value),
            functools.partial(self.resolve, scope=scope, taken=frozenset(arguments(value))),
        )

    def all_pages(self) -> dict[str, str]:
        """Path (below ``reference/``, without suffix) to Markdown."""
        found = {}
        for page in self.pages:
            if page.module is flambeau:
                found.update(self._core_pages(page))
            else:
                found[page.name] = self._module_page(page)
        found["flambeau.Tensor"] = self._tensor_page()
        return found

    def _module_page(self, page: Page) -> str:
        # `nn.utils.spectral_norm` is a function and a module; the name is the function's.
        kind = "currentmodule" if page.name in self.homes else "module"
        parts = [f"# {page.name}", f"```{{py:{kind}}} {page.name}\n```"]
        parts.append(self.text(page.module, page.name))
        groups: dict[str, list[Entry]] = defaultdict(list)
        for entry in page.entries:
            groups[entry.family if len(page.entries) > 40 else ""].append(entry)
        for heading, entries in sorted((family_title(f), e) for f, e in groups.items()):
            if len(groups) > 1:
                parts.append(f"## {heading}")
            parts += [self.entry(entry) for entry in entries]
        return "\n\n".join(parts) + "\n"

    def _core_pages(self, page: Page) -> Iterator[tuple[str, str]]:
        themes: dict[str, dict[str, list[Entry]]] = defaultdict(lambda: defaultdict(list))
        for entry in page.entries:
            if entry.name == "flambeau.Tensor":
                continue
            family = entry.family
            if family.startswith("flambeau.ops."):
                theme = family.split(".")[2]
            elif family == "flambeau._api.inplace_functions":
                theme = "inplace"
            else:
                theme, family = "types", _kind(entry.value)
            themes[theme][family].append(entry)
        parts = ["# flambeau", "```{py:module} flambeau\n```", self.text(flambeau, "flambeau")]
        rows = ["* {doc}`flambeau.Tensor`: The tensor and its methods"]
        order = sorted(themes, key=lambda theme: (theme in OTHER_THEMES, theme))
        for theme in order:
            count = sum(map(len, themes[theme].values()))
            about = OTHER_THEMES.get(theme) or group_summary(theme).rstrip(".")
            rows.append(f"* {{doc}}`flambeau-{theme}`: {about} ({count})")
        hidden = "\n".join(["flambeau.Tensor", *(f"flambeau-{theme}" for theme in order)])
        parts += ["\n".join(rows), f"```{{toctree}}\n:hidden:\n\n{hidden}\n```"]
        yield "flambeau", "\n\n".join(parts) + "\n"
        for theme, families in themes.items():
            yield f"flambeau-{theme}", self._theme_page(theme, families)

    def _theme_page(self, theme: str, families: dict[str, list[Entry]]) -> str:
        title = OTHER_THEMES.get(theme) or theme.replace("_", " ").capitalize()
        parts = [f"# {title}", "```{py:currentmodule} flambeau\n```"]
        if theme not in OTHER_THEMES:
            parts.append(group_summary(theme))
        for family, entries in sorted(families.items()):
            if len(families) > 1:
                parts.append(f"## {family_title(family)}")
            parts += [self.entry(entry) for entry in entries]
        return "\n\n".join(parts) + "\n"

    def _tensor_page(self) -> str:
        entry = Entry("flambeau.Tensor", flambeau.Tensor)
        return (
            "# Tensor\n\n```{py:currentmodule} flambeau\n```\n\n"
            "Most methods are the functions of the same name with the tensor as first argument; "
            "what they compute, their shapes and errors stand there. Operators and indexing are "
            f"in {{doc}}`/guide/tensors`.\n\n{self.entry(entry)}\n"
        )

    def entry(self, entry: Entry) -> str:
        """The description of one name as a directive of Sphinx's Python domain."""
        value, scope = entry.value, entry.name.rpartition(".")[0]
        if entry.same_as is not None:
            note = f"The same as {{py:obj}}`{entry.same_as}`."
            # Not as a class: annotations would lead to two places and Sphinx complain.
            if inspect.isclass(value):
                return directive("data", entry.short, note)
            return directive("function", entry.short + signature(value), note)
        if inspect.isclass(value):
            kind = "exception" if issubclass(value, BaseException) else "class"
            bases = [self.classes[b] for b in value.__bases__ if b in self.classes]
            above = "Base: " + ", ".join(f"{{py:obj}}`{b}`" for b in bases) + "." if bases else ""
            inside = [self.text(value, scope), above, *self._members(entry)]
            body = "\n\n".join(part for part in inside if part)
            return directive(kind, entry.short + signature(value), body, level=4)
        if inspect.isroutine(value):
            return directive("function", entry.short + signature(value), self.text(value, scope))
        body = self.text(value, scope) if callable(value) else ""
        return directive("data", entry.short, body, options={"value": _repr(value)})

    def _members(self, entry: Entry) -> Iterator[str]:
        if issubclass(entry.value, enum.Enum):
            return
        for name, value in inventory.members(entry.value, self.classes):
            if not described(value):
                continue
            text = self.text(value, entry.name)
            options: dict[str, str] = {}
            plain = value
            if isinstance(value, (staticmethod, classmethod)):
                options[type(value).__name__] = ""
                plain = value.__func__
            if inspect.isfunction(plain):
                shown = signature(plain, bound=not isinstance(value, staticmethod))
                yield directive("method", name + shown, text, options=options)
            else:
                yield directive("property", name, text)


def described(value: Any) -> str:
    """The docstring that `value` has by itself, not by its type."""
    plain = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
    if isinstance(plain, type):
        text = vars(plain).get("__doc__")
    else:
        text = getattr(plain, "__doc__", None)
        if text is not None and text == getattr(type(plain), "__doc__", None):
            text = None
    return text if isinstance(text, str) else ""


def arguments(value: Any) -> tuple[str, ...]:
    """The names of the arguments of something that can be called; none of other things."""
    try:
        return tuple(inspect.signature(value).parameters)
    except (TypeError, ValueError):
        return ()


def signature(value: Any, *, bound: bool = False) -> str:
    """The signature on one line, without `self` if `bound`; "()" if Python cannot tell."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return "()"
    if bound and found.parameters:
        found = found.replace(parameters=list(found.parameters.values())[1:])
    shown = stringify_signature(found, unqualified_typehints=True)
    return " ".join(ADDRESS.sub("", shown).split())


def directive(
    kind: str, argument: str, body: str, *, options: dict[str, str] | None = None, level: int = 3
) -> str:
    """A description in MyST's colon form, which may contain others of a lower `level`."""
    fence = ":" * level
    rows = [f"{fence}{{py:{kind}}} {argument}"]
    rows += [f":{name}: {value}".rstrip() for name, value in (options or {}).items()]
    return "\n".join([*rows, "", body, fence])


def group_summary(group: str) -> str:
    """What a group of ops holds: what its package says first."""
    package = importlib.import_module(f"flambeau.ops.{group}")
    return (package.__doc__ or "").strip().split("\n")[0]


@functools.cache
def family_title(name: str) -> str:
    """The heading of a family: what its module says first."""
    import sys

    module = sys.modules.get(name)
    if module is None or not name.startswith("flambeau."):
        return name
    first = (module.__doc__ or name).strip().split("\n")[0].rstrip(".")
    return docstrings.text(first.replace("`", ""), lambda _: None)


def _kind(value: Any) -> str:
    if isinstance(value, flambeau.dtype):
        return "Element types"
    if inspect.isclass(value):
        return "Classes"
    if type(value).__name__ in ("LegacyTensorType", "_OfOneDtype"):
        return "Types by the names of PyTorch 1.0"
    return "Functions" if inspect.isroutine(value) else "Constants"


def _repr(value: Any) -> str:
    return " ".join(ADDRESS.sub("", repr(value)).split())[:80]
