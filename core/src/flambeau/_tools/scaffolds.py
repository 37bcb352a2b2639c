"""The templates of ``new-backend --like KIND``, made of the backends in ``examples/backends``.

``python -m flambeau._tools.scaffolds`` writes them, in a checkout.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from flambeau._cli.scaffold import SUFFIX, TEMPLATES

ROOT = Path(__file__).parents[4]
"""Of the checkout."""

EXAMPLES = {"numpy": "toy", "lazy": "lazy", "accelerator": "simulated"}
"""Kind to the folder of the example, which is named as its device."""

LIBRARY = {
    "flambeau_toy": "@PACKAGE@.library",
    "ToyBackend": "LibraryBackend",
    "Device ``toy`` for flambeau": "The library",
    "device ``toy``": "the library",
    "the toy": "the library",
    '"toy"': '"library"',
}
"""What the toy is in a package that puts its work off."""


def words(device: str) -> dict[str, str]:
    """What is the package's own in the sources of an example."""
    name = device.capitalize()
    return {
        f"flambeau-{device}": "@DISTRIBUTION@",
        f"flambeau_{device}": "@PACKAGE@",
        f"{name}Backend": "@CLASS@Backend",
        f"``{device}``": "``@NAME@``",
        f'"{device}"': '"@NAME@"',
        f"{device}:": "@NAME@:",
        f'"{name} ': '"@CLASS@ ',
    }


def sources(kind: str) -> dict[str, str]:
    """The templates of a kind, by their path below ``src/@PACKAGE@``."""
    device = EXAMPLES[kind]
    found = _replaced(device, words(device) | (LIBRARY if kind == "lazy" else {}))
    if kind == "lazy":
        library = _replaced("toy", LIBRARY)
        del library["plugin.py"]
        found |= {f"library/{name}": text for name, text in library.items()}
    return found


def _replaced(device: str, table: dict[str, str]) -> dict[str, str]:
    folder = ROOT / "examples/backends" / device / "src" / f"flambeau_{device}"
    found = {}
    for path in sorted(folder.glob("*.py")):
        text = path.read_text(encoding="utf-8")
        for word, placeholder in table.items():
            text = text.replace(word, placeholder)
        found[path.name] = text
    return found


def main() -> None:
    """Write them."""
    for kind in EXAMPLES:
        folder = TEMPLATES / kind / "src"
        shutil.rmtree(folder, ignore_errors=True)
        for name, text in sources(kind).items():
            path = folder / "@PACKAGE@" / (name + SUFFIX)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
