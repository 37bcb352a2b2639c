"""The command that an error names can be run where the user is."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from flambeau.plugin import remedies
from flambeau.plugin.errors import KNOWN_PACKAGES
from flambeau.plugin.remedies import FOLDERS, install_command

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A function that lets a package be installed from somewhere, as pip notes it."""
    monkeypatch.syspath_prepend(tmp_path / "site")

    def install(name, record=None):
        info = tmp_path / "site" / f"{name.replace('-', '_')}-0.1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n")
        if record is not None:
            (info / "direct_url.json").write_text(json.dumps(record))

    return install


@pytest.fixture
def checkout(tmp_path):
    """A folder as the repository is."""
    for folder in FOLDERS.values():
        path = tmp_path / "the checkout" / folder
        path.mkdir(parents=True, exist_ok=True)
        (path / "pyproject.toml").touch()
    return tmp_path / "the checkout"


@pytest.mark.parametrize("editable", [False, True])
def test_checkout_installs_its_own_folders(installed, checkout, editable):
    info = {"editable": True} if editable else {}
    installed("flambeau-core", {"url": (checkout / "core").as_uri(), "dir_info": info})
    installed("flambeau-cupy")
    command = shlex.split(install_command("flambeau-cupy"))
    folder = str(checkout / "backends" / "cuda_cupy")
    assert command == ["pip", "install", *(["-e"] if editable else []), folder]


def test_folder_of_wheels_is_where_others_are_looked_for(installed, tmp_path):
    core = tmp_path / "dist" / "flambeau_core-0.1.0-py3-none-any.whl"
    core.parent.mkdir()
    (core.parent / "flambeau_mpi-0.1.0-py3-none-any.whl").touch()
    installed("flambeau-core", {"url": core.as_uri(), "archive_info": {}})
    installed("flambeau-mpi")
    installed("flambeau-cupy")
    found = install_command("flambeau-mpi")
    assert shlex.split(found) == [
        "pip", "install", "--find-links", str(core.parent), "flambeau-mpi"
    ]  # fmt: skip
    assert "make wheels" in install_command("flambeau-cupy")  # it is not in that folder


def test_without_a_record_the_folder_is_for_the_user_to_say(installed, monkeypatch, tmp_path):
    monkeypatch.setattr(remedies, "__file__", str(tmp_path / "site/flambeau/plugin/remedies.py"))
    installed("flambeau-core")
    installed("flambeau-mpi")
    found = install_command("flambeau-mpi")
    assert found == "pip install --find-links DIST flambeau-mpi, DIST being what `make wheels` made"


def test_sources_that_are_only_on_the_path_know_their_checkout(installed, monkeypatch, checkout):
    file = checkout / "core" / "src" / "flambeau" / "plugin" / "remedies.py"
    monkeypatch.setattr(remedies, "__file__", str(file))
    installed("flambeau-core")
    installed("flambeau-mpi")
    found = shlex.split(install_command("flambeau-mpi"))
    assert found == ["pip", "install", str(checkout / "backends" / "mpi")]


@pytest.mark.parametrize(
    ("record", "wanted"),
    [
        (None, "pip install --force-reinstall theirs"),
        (
            {"url": "file:///a%20b/theirs", "dir_info": {}},
            "pip install --force-reinstall '/a b/theirs'",
        ),
        (
            {"url": "file:///a/theirs-1-py3-none-any.whl", "archive_info": {}},
            "pip install --force-reinstall --find-links /a theirs",
        ),
        (
            {"url": "https://a.org/theirs.zip", "archive_info": {}},
            "pip install --force-reinstall https://a.org/theirs.zip",
        ),
        (
            {"url": "https://a.org/theirs", "vcs_info": {"vcs": "git", "commit_id": "1"}},
            "pip install --force-reinstall git+https://a.org/theirs",
        ),
        (
            {
                "url": "https://a.org/theirs",
                "subdirectory": "packages/theirs",
                "vcs_info": {"vcs": "git", "commit_id": "1", "requested_revision": "v2"},
            },
            "pip install --force-reinstall "
            "'git+https://a.org/theirs@v2#subdirectory=packages/theirs'",
        ),
    ],
)
def test_packages_of_others_come_again_from_where_they_came(installed, record, wanted):
    installed("theirs", record)
    assert install_command("theirs", "--force-reinstall") == wanted


def test_sources_are_brought_up_to_date_before_they_are_installed_again(installed):
    installed("theirs", {"url": "file:///a/theirs", "dir_info": {"editable": True}})
    assert install_command("theirs", "-U") == "update /a/theirs, then pip install -e /a/theirs"


def test_every_package_is_where_the_repository_has_it():
    for name, folder in FOLDERS.items():
        text = (ROOT / folder / "pyproject.toml").read_text(encoding="utf-8")
        assert f'name = "{name}"' in text
    assert set(KNOWN_PACKAGES.values()) <= FOLDERS.keys()
