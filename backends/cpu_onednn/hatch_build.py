"""Puts oneDNN into the wheel: one copy of the library, from the package that distributes it.

That package, a requirement of the build only, holds the library three times, 164 MB. Where it
does not exist (only Linux on x86-64 has it) the wheel has no library, and the system's serves.
The licences of what is inside go where tools look for them (PEP 639), and so does the list of it
(PEP 770, in the form of CycloneDX).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

SOURCE = "onednn-cpu-gomp"
LIBRARY = "libdnnl.so.3"
TARGET = "src/flambeau_onednn/lib"
PAPERS = "oneDNN"
LICENSES = ("LICENSE", "THIRD-PARTY-PROGRAMS")
# Of the programs in oneDNN's list those that are compiled into a library for x86-64.
INSIDE = {
    "xbyak": "BSD-3-Clause",
    "Instrumentation and Tracing Technology API": "BSD-3-Clause",
    "Boost C++ Libraries": "BSL-1.0",
}


def _found() -> dict[str, Path]:
    """The files of the package that distributes oneDNN, by their names; empty without it."""
    try:
        source = distribution(SOURCE)
    except PackageNotFoundError:
        return {}
    found = {Path(str(file)).name: Path(str(file.locate())) for file in source.files or ()}
    return found if LIBRARY in found else {}


def _put(source: Path, target: Path) -> None:
    """Copy a library to another file, which takes the place of the old one.

    Programs that have loaded the old one keep it. Contents that change under them are what their
    writable memory becomes as well, and they end with a signal.
    """
    new = target.with_name(f"{target.name}.{os.getpid()}")
    shutil.copyfile(source, new)
    new.replace(target)


def _bill(name: str, version: str, found: dict[str, Path]) -> dict[str, Any]:
    """What the wheel holds of others, without a word that another build would say otherwise."""
    library, source = found[LIBRARY], f"pkg:pypi/{SOURCE}@{distribution(SOURCE).version}"
    release = max((file.removeprefix("libdnnl.so.") for file in found if LIBRARY in file), key=len)
    own, inside = f"pkg:pypi/{name}@{version}", f"pkg:github/uxlfoundation/oneDNN@v{release}"
    apache = [{"license": {"id": "Apache-2.0"}}]
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": own,
                "name": name,
                "version": version,
                "licenses": apache,
                "purl": own,
            }
        },
        "components": [
            {
                "type": "library",
                "bom-ref": inside,
                "name": "oneDNN",
                "version": release,
                "description": f"{LIBRARY} of {source}; THIRD-PARTY-PROGRAMS has the notices",
                "hashes": [
                    {"alg": "SHA-256", "content": hashlib.sha256(library.read_bytes()).hexdigest()}
                ],
                "licenses": apache,
                "purl": inside,
                "externalReferences": [
                    {"type": "distribution", "url": f"https://pypi.org/project/{SOURCE}/"},
                    {"type": "vcs", "url": "https://github.com/uxlfoundation/oneDNN"},
                ],
                "components": [
                    {
                        "type": "library",
                        "bom-ref": f"{inside}#{part.partition(' ')[0].lower()}",
                        "name": part,
                        "licenses": [{"license": {"id": identifier}}],
                    }
                    for part, identifier in INSIDE.items()
                ],
            }
        ],
        "dependencies": [{"ref": own, "dependsOn": [inside]}, {"ref": inside}],
    }


class CustomMetadataHook(MetadataHookInterface):
    """Names the licences of oneDNN beside ours, where oneDNN is put in."""

    def update(self, metadata: dict[str, Any]) -> None:
        papers = Path(self.root, PAPERS)
        found = _found()
        licenses = {"Apache-2.0", *(INSIDE.values() if found else ())}
        metadata["license"] = " AND ".join(sorted(licenses))
        metadata["license-files"] = ["LICENSE"]
        for name in LICENSES:
            if name in found:
                papers.mkdir(exist_ok=True)
                shutil.copyfile(found[name], papers / name)
                metadata["license-files"].append(f"{PAPERS}/{name}")


class CustomBuildHook(BuildHookInterface):
    """Copies the library beside the sources, for wheels and editable installs."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if not (found := _found()):
            return
        target, papers = Path(self.root, TARGET), Path(self.root, PAPERS)
        for folder in (target, papers):
            folder.mkdir(exist_ok=True)
        _put(found[LIBRARY], target / LIBRARY)
        build_data["artifacts"].append(f"{TARGET}/{LIBRARY}")
        bill = _bill(self.metadata.name, self.metadata.version, found)
        (papers / "oneDNN.cdx.json").write_text(json.dumps(bill, indent=2) + "\n", encoding="utf-8")
        build_data["sbom_files"].append(f"{PAPERS}/oneDNN.cdx.json")
        build_data["pure_python"] = False
        build_data["tag"] = "py3-none-manylinux_2_5_x86_64.manylinux1_x86_64"
