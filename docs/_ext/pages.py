"""The source of the site: ``python docs/_ext/pages.py FOLDER`` writes it, ready for Sphinx.

Pages and pictures are copied from ``docs/`` and from the folders that keep theirs beside the code.
A block of the form

    ```{generated} ops
    ```

is replaced by what `tables` says, and ``reference/`` is filled from docstrings. A file is written
only if its text changed, so Sphinx builds again only what did.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import gallery
import home
from reference import Reference
from tables import TABLES

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```\{generated\} ([\w-]+)\n```$", re.MULTILINE)
PROGRAMS = {path: f"examples/{path.name}" for path in ROOT.glob("examples/*.py")}
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?![a-z]+:|#)([^)#\s]+)(#[^)\s]*)?\)")
FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def sources() -> dict[Path, PurePosixPath]:
    """Every hand-written page and its place in the site."""
    found = {path: PurePosixPath(path.relative_to(DOCS).as_posix()) for path in DOCS.rglob("*.md")}
    found[ROOT / "CONTRIBUTING.md"] = PurePosixPath("contributing.md")
    found[ROOT / "CHANGELOG.md"] = PurePosixPath("changelog.md")
    for readme in [*ROOT.glob("*/README.md"), *ROOT.glob("backends/*/README.md")]:
        if readme.parent.name in ("core", "nn") or readme.parent.parent.name == "backends":
            found[readme] = PurePosixPath("packages") / f"{readme.parent.name}.md"
    return found


def further(_: Reference) -> str:
    """A table of contents with the pages beside the index that it does not name itself."""
    index = (DOCS / "index.md").read_text("utf-8")
    named = set(re.findall(r"^([\w/-]+)$", index, re.MULTILINE)) | {"index"}
    names = sorted({path.stem for path in DOCS.glob("*.md")} - named)
    listed = "\n".join(names)
    return f"```{{toctree}}\n:hidden:\n:caption: More\n\n{listed}\n```" if names else ""


GENERATED: dict[str, Callable[[Reference], str]] = {
    **TABLES,
    **home.HOME,
    "gallery": gallery.rows,
    "further": further,
}


def page(path: Path, places: dict[Path, PurePosixPath], reference: Reference) -> str:
    """The text of one page of the site."""
    text = BLOCK.sub(lambda block: GENERATED[block[1]](reference), path.read_text("utf-8"))
    here = places[path].parent

    def moved(link: re.Match[str]) -> str:
        image, label, target, anchor = link[1], link[2], link[3], link[4] or ""
        file = (path.parent / target).resolve()
        if file in places:
            return f"[{label}]({os.path.relpath(places[file], here)}{anchor})"
        if image or not file.exists() or file.is_relative_to(DOCS):
            return link[0]
        if file in PROGRAMS:
            return f"{{download}}`{label} <{os.path.relpath(PROGRAMS[file], here)}>`"
        name = file.relative_to(ROOT).as_posix()
        if label == name:
            return f"`{name}`"
        return label if "`" in label else f"{label} (`{name}`)"

    parts = FENCE.split(text)
    return "".join(p if p.startswith("```") else LINK.sub(moved, p) for p in parts)


def build() -> dict[PurePosixPath, str]:
    """All pages of the site by their place."""
    reference = Reference()
    places = sources()
    written = {place: page(path, places, reference) for path, place in places.items()}
    for name, text in reference.all_pages().items():
        written[PurePosixPath("reference") / f"{name}.md"] = text
    for path, place in PROGRAMS.items():  # to be downloaded
        written[PurePosixPath(place)] = path.read_text("utf-8")
    return {**written, **gallery.pictures(), **home.pictures()}


def write(folder: Path) -> None:
    """Make `folder` hold exactly the pages of the site."""
    pages = build()
    for old in folder.rglob("*.md"):
        if PurePosixPath(old.relative_to(folder).as_posix()) not in pages:
            old.unlink()
    for place, text in pages.items():
        file = folder / place
        if not file.exists() or file.read_text("utf-8") != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
    for picture in [*DOCS.rglob("*.png"), *DOCS.rglob("*.svg")]:
        copy = folder / picture.relative_to(DOCS)
        if not copy.exists() or copy.read_bytes() != picture.read_bytes():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(picture, copy)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python docs/_ext/pages.py FOLDER")
    write(Path(sys.argv[1]))
