"""Builds the wheels of packages into one folder, with a list of what is in all of them.

Two builds of one commit give the same bytes, wherever they run: they are built from copies with
the same file modes, dated as the commit is, by what ``.ci/wheels.txt`` names; compiled kernels also
need the same compiler and the same Python to build with.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from email.parser import Parser
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BILL = "flambeau.cdx.json"
UNDATED = 1580601600
"""Seconds of the time that hatchling takes when none is given, for a tree without its history."""
NOT_SOURCES = shutil.ignore_patterns("__pycache__", "*.egg-info", "*.so", "*.so.*")
NOT_BUILT_FROM = {"build", "oneDNN", "tests", "src/flambeau_onednn/lib"}
OF_METAPACKAGE = ("pyproject.toml", "README.md", "LICENSE")


def main() -> None:
    """Build what the command line asks for and say what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where to put the wheels; older ones go")
    parser.add_argument("packages", nargs="*", type=Path, help="folders; the metapackage is added")
    parser.add_argument(
        "--offline",
        action="store_true",
        help="build with what this Python has, whatever its version: nothing is fetched",
    )
    arguments = parser.parse_args()
    folder = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    for stale in (*folder.glob("flambeau*.whl"), folder / BILL):
        stale.unlink(missing_ok=True)
    projects = [*arguments.packages, Path()]
    os.umask(0o022)
    for number, project in enumerate(projects, 1):
        name = project.as_posix() if project != Path() else "flambeau, which asks for the others"
        print(f"[{number}/{len(projects)}] {name} ...", end=" ", flush=True)
        begin = time.monotonic()
        built = _build(project, folder, offline=arguments.offline)
        size = built.stat().st_size / 1e6
        print(f"{built.name}, {size:.1f} MB, {time.monotonic() - begin:.0f} s", flush=True)
    text = json.dumps(bill(sorted(folder.glob("flambeau*.whl"))), indent=2)
    (folder / BILL).write_text(text + "\n", encoding="utf-8")
    print(f"{folder / BILL} lists what is in them; to install from here:")
    print(f"  python -m pip install --find-links {folder} flambeau")


def _build(project: Path, folder: Path, *, offline: bool) -> Path:
    with tempfile.TemporaryDirectory() as scratch:
        copy, out = Path(scratch, "source"), Path(scratch, "wheel")
        if project == Path():
            copy.mkdir()
            for name in OF_METAPACKAGE:
                shutil.copyfile(ROOT / name, copy / name)
        else:
            shutil.copytree(ROOT / project, copy, ignore=_left, copy_function=shutil.copyfile)
        command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "wheel"]
        command += ["--no-deps", "--wheel-dir", str(out), str(copy)]
        if offline:
            command += ["--no-index", "--no-build-isolation"]
        else:
            command += ["--build-constraint", str(ROOT / ".ci/wheels.txt")]
        flags = f"{os.environ.get('CFLAGS', '')} -g0 -ffile-prefix-map={scratch}=."
        subprocess.run(
            command,
            check=True,
            env={**os.environ, "SOURCE_DATE_EPOCH": str(_date()), "CFLAGS": flags.strip()},
        )
        (built,) = out.glob("*.whl")
        return Path(shutil.move(built, folder / built.name))


def _left(folder: str, names: list[str]) -> set[str]:
    """Of the files in a folder those that are made, or are not for users."""
    inside = Path(folder).resolve().relative_to(ROOT).parts
    # A package is the root's grandchild at most, and what is left out is at known places in it.
    depth = 2 if inside[0] == "backends" else 1
    here = Path(*inside[depth:])
    made = {name for name in names if (here / name).as_posix() in NOT_BUILT_FROM}
    return made | NOT_SOURCES(folder, names)


def _date() -> int:
    """When the commit was made."""
    if "SOURCE_DATE_EPOCH" in os.environ:
        return int(os.environ["SOURCE_DATE_EPOCH"])
    command = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    try:
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    except (OSError, subprocess.CalledProcessError):
        return UNDATED


def bill(wheels: list[Path]) -> dict[str, Any]:
    """The wheels, what they ask for and what they hold of others, in the form of CycloneDX."""
    components, dependencies = [], []
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            info = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
            metadata = Parser().parsestr(archive.read(info).decode())
            folder = info.removesuffix("METADATA") + "sboms/"
            inner = [json.loads(archive.read(n)) for n in archive.namelist() if folder in n]
        reference = f"pkg:pypi/{metadata['Name']}@{metadata['Version']}"
        held = [component for one in inner for component in one["components"]]
        components.append(
            {
                "type": "library",
                "bom-ref": reference,
                "name": metadata["Name"],
                "version": metadata["Version"],
                "hashes": [
                    {"alg": "SHA-256", "content": hashlib.sha256(wheel.read_bytes()).hexdigest()}
                ],
                "licenses": [{"expression": metadata["License-Expression"]}],
                "purl": reference,
                "properties": [
                    {"name": "requires", "value": value}
                    for value in metadata.get_all("Requires-Dist", [])
                ],
                "components": held,
            }
        )
        dependencies.append({"ref": reference, "dependsOn": [one["bom-ref"] for one in held]})
        dependencies += [{"ref": one["bom-ref"]} for one in held]
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "components": components,
        "dependencies": dependencies,
    }


if __name__ == "__main__":
    main()
