"""The command that installs a package from where the rest of flambeau came from.

Only errors need what is imported inside of functions here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

FOLDERS = {
    "flambeau": ".",
    "flambeau-core": "core",
    "flambeau-cupy": "backends/cuda_cupy",
    "flambeau-mpi": "backends/mpi",
    "flambeau-native": "backends/cpu_native",
    "flambeau-nn": "nn",
    "flambeau-numpy": "backends/cpu_numpy",
    "flambeau-onednn": "backends/cpu_onednn",
}
"""The packages that are on no index, and where the repository has them."""


def install_command(distribution: str, option: str = "") -> str:
    """How pip installs a package here: from a checkout, from a folder of wheels, or by its name.

    Args:
        distribution: the package.
        option: an option of ``pip install``, such as ``--force-reinstall``; with ``-U`` sources
            that are not pip's to fetch are to be brought up to date first.

    >>> from flambeau.plugin.remedies import install_command
    >>> install_command("a-backend-of-others", "-U")
    'pip install -U a-backend-of-others'
    """
    from shlex import quote

    start = " ".join(filter(None, ("pip install", option)))
    record = _record(distribution)
    if not record and distribution in FOLDERS:
        record = _beside_the_core(distribution)
        if not record:
            return f"{start} --find-links DIST {distribution}, DIST being what `make wheels` made"
    url, path = record.get("url", ""), _path(record)
    if "dir_info" in record and path is not None:
        editable = "-e " if record["dir_info"].get("editable") else ""
        place = quote(str(path))
        if option == "-U":
            return f"update {place}, then pip install {editable}{place}"
        return f"{start} {editable}{place}"
    if path is not None:
        return f"{start} --find-links {quote(str(path.parent))} {distribution}"
    if "vcs_info" in record:
        url = f"{record['vcs_info']['vcs']}+{url}"
        if revision := record["vcs_info"].get("requested_revision"):
            url += f"@{revision}"
        if folder := record.get("subdirectory"):
            url += f"#subdirectory={folder}"
    return f"{start} {quote(url) if url else distribution}"


def _record(distribution: str) -> dict[str, Any]:
    """What pip noted of where an installed package is from (PEP 610): empty if from an index."""
    import json
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import distribution as find

    try:
        return json.loads(find(distribution).read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        return {}


def _path(record: dict[str, Any]) -> Path | None:
    from pathlib import Path
    from urllib.parse import unquote, urlsplit

    parts = urlsplit(record.get("url", ""))
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


def _beside_the_core(distribution: str) -> dict[str, Any]:
    """The record of a package that lies where the core was installed from, if it does."""
    from pathlib import Path

    record = _record("flambeau-core")
    path = _path(record)
    if path is not None and path.suffix == ".whl":
        wheels = sorted(path.parent.glob(f"{distribution.replace('-', '_')}-*.whl"))
        return {"url": wheels[-1].as_uri(), "archive_info": {}} if wheels else {}
    # A source tree that is on the path without being installed has no record.
    core = path or Path(__file__).resolve().parents[3]
    folder = core.parent / FOLDERS[distribution]
    if core.name != "core" or not (folder / "pyproject.toml").is_file():
        return {}
    return {"url": folder.resolve().as_uri(), "dir_info": record.get("dir_info", {})}
