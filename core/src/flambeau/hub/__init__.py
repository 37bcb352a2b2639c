"""Models by name from folders and GitHub repositories, and weights by URL.

A repository takes part by a file ``hubconf.py``: its functions are the entry points, its list
``dependencies`` the packages that they need.  Loading from a repository runs its code.
"""

from __future__ import annotations

import contextlib
import errno
import importlib.util
import os
import re
import shutil
import struct
import sys
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.parse import urlparse

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau.hub._download import download, extract
from flambeau.serialization import CheckpointError
from flambeau.serialization import load as _load_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from flambeau._types.hints import DeviceLike


__all__ = [
    "download_url_to_file",
    "get_dir",
    "help",
    "list",
    "load",
    "load_state_dict_from_url",
    "set_dir",
]

_HASH = re.compile(r"-([a-f0-9]{8,64})\.[^.]*$|-([a-f0-9]{8,64})$")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[A-Za-z0-9._-]+\Z")
_TRUSTED_OWNERS = frozenset({"facebookresearch", "facebookincubator", "pytorch", "fairinternal"})
_ARCHIVES = "https://github.com"
_INFLATION, _LEAST_INFLATED = 20, 1 << 24  # bytes of a wrapped checkpoint per byte, and of any
_folder: str | None = None


def get_dir() -> str:
    """The folder of downloads: `set_dir`, ``$TORCH_HUB``, or ``hub`` in ``$TORCH_HOME``.

    ``$TORCH_HOME`` is by default ``$XDG_CACHE_HOME/torch``, that is ``~/.cache/torch``.

    >>> import flambeau as fb
    >>> fb.hub.set_dir("models"); fb.hub.get_dir()
    'models'
    """
    if _folder is not None:
        return _folder
    for name in ("TORCH_HUB_DIR", "TORCH_HUB"):
        if os.getenv(name):
            return os.environ[name]
    cache = os.getenv("XDG_CACHE_HOME", "~/.cache")
    home = os.path.expanduser(os.getenv("TORCH_HOME", os.path.join(cache, "torch")))
    return os.path.join(home, "hub")


def set_dir(d: str | os.PathLike[str]) -> None:
    """Set the folder of downloads."""
    global _folder
    _folder = os.path.expanduser(os.fspath(d))


def list(
    github: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: bool | str | None = None,
    verbose: bool = True,
    *,
    source: str = "github",
) -> Any:
    """The names of a repository's entry points; the arguments are those of `load`."""
    folder = _repository(github, source, force_reload, trust_repo, verbose, "list")
    module = _hubconf(folder)
    return [
        name for name, value in vars(module).items() if callable(value) and not name.startswith("_")
    ]


def help(
    github: str,
    model: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: bool | str | None = None,
    *,
    source: str = "github",
) -> str | None:
    """The docstring of an entry point; the arguments are those of `load`."""
    folder = _repository(github, source, force_reload, trust_repo, True, "help")
    return _entry_point(_hubconf(folder), model).__doc__


def load(
    repo_or_dir: str,
    model: str,
    *args: object,
    source: str = "github",
    trust_repo: bool | str | None = None,
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: object,
) -> object:
    """What an entry point of a repository returns, such as a model with its weights.

    The code of the repository runs in this process.  If it says ``import torch``, call this inside
    of `flambeau.compat.torch_alias`.

    Args:
        repo_or_dir: ``owner/name`` or ``owner/name:branch-or-tag``, followed by
            ``#sha256=DIGEST`` if the archive must have that digest; a folder with
            ``source="local"``.
        model: the entry point.
        args, kwargs: its arguments.
        source: ``"github"`` or ``"local"``.
        trust_repo: True runs the repository and remembers it, ``"check"`` asks about one that is
            not remembered, False always asks; None is ``"check"``.
        force_reload: download again.
        verbose: say what is taken from the cache.
        skip_validation: accepted for PyTorch's sake; nothing is asked of GitHub's servers but the
            archive.

    Raises:
        ValueError: `source` or the form of the name.
        RuntimeError: no such entry point, missing dependencies, not trusted, unsafe archive.
    """
    folder = _repository(repo_or_dir, source, force_reload, trust_repo, verbose, "load")
    return _entry_point(_hubconf(folder), model)(*args, **kwargs)


@takes_as_annotated
def download_url_to_file(
    url: str, dst: str | os.PathLike[str], hash_prefix: str | None = None, progress: bool = True
) -> None:
    """Fetch a URL into a file, which appears when it is complete and its hash is right.

    A transfer that broke off is continued by the next call, if the server can do that.

    Args:
        url: what to fetch.
        dst: the file.
        hash_prefix: how its SHA-256 in hexadecimal must begin.
        progress: whether to show a bar (of tqdm, if installed).

    Raises:
        RuntimeError: another hash, or the transfer broke off.
        urllib.error.URLError: the server cannot be reached or does not have it.
    """
    download(url, os.path.expanduser(os.fspath(dst)), hash_prefix, progress)


@takes_as_annotated
def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = True,
) -> Any:
    """The object in a checkpoint on the web, kept in ``get_dir()/checkpoints``.

    Args:
        url: the file; its name may be ``name-HASH.ext``.
        model_dir: where to keep it.
        map_location, weights_only: see `flambeau.load`.
        progress: whether to show a bar.
        check_hash: whether HASH must begin the file's SHA-256 (8 digits or more).
        file_name: another name than the URL's.

    Raises:
        RuntimeError: as `download_url_to_file`, or the zip file has not exactly one member.
        CheckpointError: the file is no checkpoint.
    """
    if os.getenv("TORCH_MODEL_ZOO"):
        warnings.warn("TORCH_MODEL_ZOO is deprecated, please use env TORCH_HOME", stacklevel=2)
    if model_dir is None:
        model_dir = os.getenv("TORCH_MODEL_ZOO") or os.path.join(get_dir(), "checkpoints")
    os.makedirs(model_dir, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    if not name or name != os.path.basename(name) or name in (".", ".."):
        raise ValueError(f"{url}: {name!r} is no file name; give file_name=")
    target = os.path.join(model_dir, name)
    if not os.path.exists(target):
        sys.stderr.write(f'Downloading: "{url}" to {target}\n')
        found = _HASH.search(name) if check_hash else None
        prefix = (found[1] or found[2]) if found else None
        download_url_to_file(url, target, prefix, progress)
    if _is_wrapped(target):
        return _load_wrapped(target, map_location, weights_only)
    return _load_file(target, map_location, weights_only=weights_only)


def _is_wrapped(path: str) -> bool:
    """Whether a checkpoint is packed in a zip file, as the first ones of 1.0 were."""
    if not zipfile.is_zipfile(path):
        return False
    with _unzipped(path), zipfile.ZipFile(path) as archive:
        return not any(name.endswith("/data.pkl") for name in archive.namelist())


@contextlib.contextmanager
def _unzipped(path: str) -> Iterator[None]:
    """Errors of `zipfile` as those of checkpoints."""
    try:
        yield
    except (CheckpointError, MemoryError):
        raise
    except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, ValueError) as error:
        raise CheckpointError(f"damaged archive: {str(error)[:300]}", path) from error
    except OSError as error:
        if error.errno != errno.EINVAL:  # which is how `zipfile` says that an offset is negative
            raise
        raise CheckpointError("damaged archive: an impossible offset", path) from error


def _load_wrapped(path: str, map_location: Any, weights_only: bool) -> Any:
    most = _LEAST_INFLATED + _INFLATION * os.path.getsize(path)
    with tempfile.TemporaryFile() as plain:
        with _unzipped(path), zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            if len(members) != 1:
                raise RuntimeError(f"{path}: only one file (not dir) is allowed in the zipfile")
            plainly = members[0].compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
            if members[0].flag_bits & 1 or not plainly:
                raise CheckpointError(
                    "the archive is encrypted, or not compressed by deflate", path
                )
            with archive.open(members[0]) as file:
                while part := file.read(1 << 20):
                    plain.write(part)
                    if plain.tell() > most:
                        text = f"its contents are larger than {most} bytes, which its size allows"
                        raise CheckpointError(text, path)
        plain.seek(0)
        return _load_file(plain, map_location, weights_only=weights_only)


def _repository(
    name: str, source: str, force_reload: bool, trust: object, verbose: bool, caller: str
) -> str:
    source = source.lower()
    if source == "local":
        return os.path.expanduser(name)
    if source != "github":
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    name, digest = _split_digest(name)
    owner, repository, ref = _parsed(name)
    base = get_dir()
    os.makedirs(base, exist_ok=True)
    _ask_for_trust(base, owner, repository, trust, caller)
    folder = os.path.join(base, _folder_name(owner, repository, ref or "main", digest))
    older = os.path.join(base, _folder_name(owner, repository, "master", digest))
    if not ref and not os.path.exists(folder) and os.path.exists(older):
        folder = older
    if os.path.exists(folder) and not force_reload:
        if verbose:
            sys.stderr.write(f"Using cache found in {folder}\n")
        return folder
    _fetch(owner, repository, ref, folder, base, digest)
    return folder


def _folder_name(owner: str, repository: str, ref: str, digest: str | None) -> str:
    """A name that no other repository, branch or digest has: PyTorch's where that is so."""
    parts = [owner, repository, *ref.split("/")]
    if digest is None and len(parts) == 3 and not any("_" in part for part in parts):
        return "_".join(parts)
    return "+".join(parts if digest is None else [*parts, digest])


def _split_digest(name: str) -> tuple[str, str | None]:
    """The name of a repository, and the SHA-256 of its archive if the caller gives one."""
    name, mark, digest = name.partition("#sha256=")
    if not mark:
        return name, None
    if not _SHA256.fullmatch(digest.lower()):
        raise ValueError(f"{digest!r} is no SHA-256: expected 64 hexadecimal digits")
    return name, digest.lower()


def _parsed(name: str) -> tuple[str, str, str | None]:
    path, _, ref = name.partition(":")
    owner, slash, repository = path.partition("/")
    parts = [owner, repository, *(ref.split("/") if ref else [])]
    if not slash or any(not _NAME.match(p) or p.strip(".") == "" for p in parts):
        raise ValueError(f"{name!r} is no repository: expected owner/name or owner/name:tag")
    return owner, repository, ref or None


def _fetch(
    owner: str, repository: str, ref: str | None, folder: str, base: str, digest: str | None
) -> None:
    """Put a repository into `folder`; it replaces what is there when it is complete."""
    with tempfile.TemporaryDirectory(dir=base) as work:
        archive = os.path.join(work, "archive.zip")
        _fetch_archive(owner, repository, ref, archive, digest)
        made = extract(archive, os.path.join(work, "contents"))
        if os.path.exists(folder):
            shutil.rmtree(folder)
            # Under PYTHONPYCACHEPREFIX bytecode lies elsewhere, and Python would take it for that
            # of a new file of the same size and second.
            bytecode = importlib.util.cache_from_source(os.path.join(folder, "hubconf.py"))
            shutil.rmtree(os.path.dirname(bytecode), ignore_errors=True)
        os.replace(made, folder)


def _fetch_archive(
    owner: str, repository: str, ref: str | None, archive: str, digest: str | None
) -> None:
    for branch in (ref,) if ref else ("main", "master"):
        url = f"{_ARCHIVES}/{owner}/{repository}/zipball/{branch}"
        sys.stderr.write(f'Downloading: "{url}"\n')
        try:
            download(url, archive, digest, False)
            return
        except HTTPError as error:
            if error.code != 404:
                raise
    raise ValueError(f"cannot find {ref or 'main or master'} in {_ARCHIVES}/{owner}/{repository}")


def _ask_for_trust(base: str, owner: str, repository: str, trust: object, caller: str) -> None:
    if trust not in (True, False, "check", None):
        raise ValueError(f'trust_repo must be True, False, "check" or None, not {trust!r}')
    # PyTorch's entries, "owner_name", are not read: they may mean several repositories.
    path, name = os.path.join(base, "trusted_list"), f"{owner}/{repository}"
    known = []
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            known = file.read().split()
    if trust is not True:
        if trust is not False and (name in known or owner in _TRUSTED_OWNERS):
            return
        try:
            answer = input(
                f"The repository {owner}/{repository} is not trusted, and hub.{caller} runs its "
                "code with your rights. Do you trust it? (y/N) "
            )
        except EOFError:
            answer = ""
        if answer.lower() not in ("y", "yes"):
            raise RuntimeError(
                f"hub.{caller}: {owner}/{repository} is not trusted; if you trust it, pass "
                "trust_repo=True"
            )
    if name not in known:
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{name}\n")


def _hubconf(folder: str) -> ModuleType:
    path = os.path.join(folder, "hubconf.py")
    if not os.path.isfile(path):
        raise FileNotFoundError(f"{folder} has no hubconf.py: it is no repository for the hub")
    sys.path.insert(0, folder)
    try:
        spec = importlib.util.spec_from_file_location("hubconf.py", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(folder)
    return module


def _entry_point(module: ModuleType, name: str) -> Any:
    if not isinstance(name, str):
        raise ValueError("Invalid input: model should be a string of function name")
    needed = getattr(module, "dependencies", None) or []
    missing = [p for p in needed if importlib.util.find_spec(p) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    found = getattr(module, name, None)
    if found is None or not callable(found):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return found
