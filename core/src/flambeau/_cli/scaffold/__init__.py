"""``python -m flambeau new-backend NAME``: a package that is a backend, to be filled in."""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass
from pathlib import Path

from flambeau.plugin import API_VERSION

TEMPLATES = Path(__file__).parent / "templates"
SUFFIX = ".in"  # so that tools do not take the templates for sources of the core
_COMMON = TEMPLATES / "common"
_RESERVED = ("cpu", "meta", "ref")


@dataclass(frozen=True)
class _Kind:
    """What a package begins as.

    Attributes:
        level: of the conformance kit that it reaches as it is written.
        needs: what it depends on, beside the core.
    """

    level: str
    needs: tuple[str, ...] = ()


_PLAIN = "plain"
_KINDS = {
    _PLAIN: _Kind("memory"),
    "numpy": _Kind("training", ("numpy>=2.1",)),
    "lazy": _Kind("training", ("numpy>=2.1",)),
    "accelerator": _Kind("training", ("flambeau-numpy>=0.1",)),
}
LIKE = tuple(kind for kind in _KINDS if kind != _PLAIN)
"""The kinds that have an example in ``examples/backends``."""


def write_backend(name: str, folder: Path, like: str | None = None) -> list[Path]:
    """Write a backend package for device type `name` into `folder` and return its files.

    The package installs as it is and says in its README what to write next.  By default its arrays
    are bytes, it has a few kernels, and it passes level *memory* of the conformance kit.

    Args:
        name: the device type.
        folder: where it is written; new, or empty.
        like: ``"numpy"``, ``"lazy"`` or ``"accelerator"`` for a whole backend that passes all
            levels, in which the library is to be replaced: of arrays that are computed at once, of
            arrays that are computed when somebody looks, of devices with streams and memory.

    Raises:
        ValueError: `name` is no device type, or one of flambeau's own; `like` is no kind.
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
    if like is not None and like not in LIKE:
        raise ValueError(f"there is no kind {like!r} of backend; there are {', '.join(LIKE)}")
    if folder.exists() and any(folder.iterdir()):
        raise FileExistsError(f"{folder} is not empty; name another one with --directory")
    kind = _KINDS[like or _PLAIN]
    words = {
        "@API@": API_VERSION,
        "@NAME@": name,
        "@CLASS@": "".join(part.capitalize() for part in name.split("_")),
        "@DISTRIBUTION@": f"flambeau-{name.replace('_', '-')}",
        "@PACKAGE@": f"flambeau_{name}",
        "@LEVEL@": kind.level,
        "@QUICK@": str(like is not None),
        "@DEPENDENCIES@": ", ".join(f'"{need}"' for need in ("flambeau-core>=0.1", *kind.needs)),
    }
    written = []
    for template in (_COMMON, TEMPLATES / (like or _PLAIN)):
        for source in sorted(template.rglob(f"*{SUFFIX}")):
            relative = source.relative_to(template).as_posix().removesuffix(SUFFIX)
            target = folder / _filled(relative, words)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(_filled(source.read_text(encoding="utf-8"), words), encoding="utf-8")
            written.append(target)
    return sorted(written)


def _filled(text: str, words: dict[str, str]) -> str:
    for word, value in words.items():
        text = text.replace(word, value)
    return text
