"""Downloads that go on where they were broken off, and archives that stay in their folder."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
import sys
import zipfile
from collections.abc import Callable, Iterator
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from flambeau.serialization._files import unfinished

_CHUNK = 1 << 17
_MOST_MEMBERS = 100_000
_MOST_BYTES = 4 << 30


def download(url: str, target: str, hash_prefix: str | None, progress: bool) -> None:
    """Fetch `url` into the file `target`, which appears only when it is complete.

    What an earlier, broken download left beside it is continued if the server can.  Such files have
    names that nobody can foretell and are made anew, so that in a folder of several people nobody
    can put a link or a file of theirs in the way; only what belongs to this user is continued.
    What is there and is no regular file (a pipe, a device) is written to directly.

    Raises:
        RuntimeError: the SHA-256 does not begin with `hash_prefix`, or the transfer stopped early.
        urllib.error.URLError: the server cannot be reached or does not have it.
    """
    if os.path.exists(target) and not os.path.isfile(target):
        _download_into(url, target, hash_prefix, progress)
        return
    digest = hashlib.sha256()
    partial, fd = unfinished(*os.path.split(os.path.abspath(target)))
    with open(fd, "r+b") as file:
        response, held = _opened(url, file.seek(0, os.SEEK_END))
        with contextlib.closing(response):
            file.truncate(held)
            file.seek(0)
            while part := file.read(_CHUNK):
                digest.update(part)
            length = response.headers.get("Content-Length")
            total = None if length is None else held + int(length)
            file.seek(held)
            with _progress(total, held, url, progress) as report:
                while part := response.read(_CHUNK):
                    file.write(part)
                    digest.update(part)
                    report(len(part))
        file.flush()
        os.fsync(file.fileno())
        received = file.tell()
    if total is not None and received != total:
        raise RuntimeError(
            f"{url}: {received} of {total} bytes arrived; call again to fetch the rest"
        )
    try:
        _compare(url, digest.hexdigest(), hash_prefix)
    except RuntimeError:
        os.unlink(partial)
        raise
    os.replace(partial, target)


def _download_into(url: str, target: str, hash_prefix: str | None, progress: bool) -> None:
    """Fetch `url` into a pipe or a device, which would be lost if a file took its place."""
    digest = hashlib.sha256()
    with open(target, "wb") as file, contextlib.closing(_opened(url, 0)[0]) as response:
        length = response.headers.get("Content-Length")
        total = None if length is None else int(length)
        with _progress(total, 0, url, progress) as report:
            while part := response.read(_CHUNK):
                file.write(part)
                digest.update(part)
                report(len(part))
    _compare(url, digest.hexdigest(), hash_prefix)


def _compare(url: str, found: str, hash_prefix: str | None) -> None:
    if hash_prefix is not None and not found.startswith(hash_prefix):
        raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{found}") of {url}')


def _opened(url: str, held: int) -> tuple[Any, int]:
    """The response, and the number of held bytes after which it continues."""
    headers = {"User-Agent": "flambeau.hub"}
    if held:
        try:
            ranged = {**headers, "Range": f"bytes={held}-"}
            response = urlopen(Request(url, headers=ranged))
        except HTTPError as error:
            if error.code != 416:  # 416: what is held is all there is, or belongs to another file
                raise
        else:
            start = response.headers.get("Content-Range", "")
            return response, held if start.startswith(f"bytes {held}-") else 0
    return urlopen(Request(url, headers=headers)), 0


@contextlib.contextmanager
def _progress(
    total: int | None, held: int, url: str, wanted: bool
) -> Iterator[Callable[[int], object]]:
    """A function to call with numbers of bytes: a bar of tqdm if that is installed."""
    if not wanted:
        yield lambda n: None
        return
    try:
        from tqdm import tqdm
    except ImportError:
        print(f"Downloading {url}", file=sys.stderr)
        yield lambda n: None
        return
    with tqdm(total=total, initial=held, unit="B", unit_scale=True, unit_divisor=1024) as bar:
        yield bar.update


def extract(archive: str, folder: str) -> str:
    """Unpack a zip file whose members lie in one folder; the path of that folder in `folder`.

    Raises:
        RuntimeError: a member would land outside, is a link, is there twice, or there is too much.
    """
    with zipfile.ZipFile(archive) as source:
        members = source.infolist()
        roots = {member.filename.split("/")[0] for member in members}
        if len(roots) != 1 or len(members) > _MOST_MEMBERS:
            raise RuntimeError(f"{archive}: expected one folder with everything in it")
        if sum(member.file_size for member in members) > _MOST_BYTES:
            raise RuntimeError(f"{archive}: its contents are larger than {_MOST_BYTES} bytes")
        base = os.path.realpath(folder)
        seen = set()
        for member in members:
            place = _place(archive, base, member)
            if place in seen:
                raise RuntimeError(f"{archive}: {member.filename!r} is there twice")
            seen.add(place)
        for member in members:
            place = _place(archive, base, member)
            if member.is_dir():
                os.makedirs(place, exist_ok=True)
                continue
            os.makedirs(os.path.dirname(place), exist_ok=True)
            with source.open(member) as data, open(place, "xb") as file:
                shutil.copyfileobj(data, file)
    return os.path.join(base, roots.pop())


def _place(archive: str, base: str, member: zipfile.ZipInfo) -> str:
    name, mode = member.filename, member.external_attr >> 16
    place = os.path.normpath(os.path.join(base, name))
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise RuntimeError(f"{archive}: {name!r} is a link or a special file")
    inside = place == base or place.startswith(base + os.sep)
    if not inside or place == base or "\\" in name or ":" in name or os.path.isabs(name):
        raise RuntimeError(f"{archive}: {name!r} would be written outside of {base}")
    return place
