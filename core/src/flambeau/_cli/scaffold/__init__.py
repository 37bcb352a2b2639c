"""``python -m flambeau new-backend NAME``: a package that is a backend, to be filled in."""

from __future__ import annotations

import keyword
import re
from pathlib import Path

from flambeau.plugin import API_VERSION

_TEMPLATE = Path(__file__).parent / "template"
_SUFFIX = ".in"  # so that tools do not take the templates for sources of the core
_RESERVED = ("cpu", "meta", "ref")


def write_backend(name: str, folder: Path) -> list[Path]:
    """Write a backend package for device type `name` into `folder` and return its files.

    The package installs as it is, passes level *memory* of the conformance kit, and says in its
    README what to write next.

    Raises:
        ValueError: `name` is no device type, or one of flambeau's own.
        FileExistsError: `folder` has something in it.

    >>> from flambeau._cli.scaffold import write_backend
    >>> write_backend("cpu", Path("nowhere"))
    Traceback (most recent call last):
    ...
    ValueError: device type 'cpu' belongs to flambeau; choose another name
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise ValueError(
            f"a device type is a lower-case Python name such as 'toy', got {name!r}; "
            "programs write it in device='...'"
        )
    if name in _RESERVED:
        raise ValueError(f"device type {name!r} belongs to flambeau; choose another name")
    if folder.exists() and any(folder.iterdir()):
        raise FileExistsError(f"{folder} is not empty; name another one with --directory")
    words = {
        "@API@": API_VERSION,
        "@NAME@": name,
        "@CLASS@": "".join(part.capitalize() for part in name.split("_")),
        "@DISTRIBUTION@": f"flambeau-{name.replace('_', '-')}",
        "@PACKAGE@": f"flambeau_{name}",
    }
    written = []
    for source in sorted(_TEMPLATE.rglob(f"*{_SUFFIX}")):
        relative = source.relative_to(_TEMPLATE).as_posix().removesuffix(_SUFFIX)
        target = folder / _filled(relative, words)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_filled(source.read_text(encoding="utf-8"), words), encoding="utf-8")
        written.append(target)
    return written


def _filled(text: str, words: dict[str, str]) -> str:
    for word, value in words.items():
        text = text.replace(word, value)
    return text
