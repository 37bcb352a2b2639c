"""From sources to a library: what changed is compiled, once, whoever asks."""

from __future__ import annotations

import hashlib
import os
import shlex
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from flambeau.utils.cpp_extension import _compiler
from flambeau.utils.cpp_extension._compiling import Records, Step, Workplace
from flambeau.utils.cpp_extension._precompiled import (
    begins_with_header,
    options_of,
    place,
    put_away,
)

__all__ = ["Build", "build", "get_default_build_root"]


@dataclass(frozen=True)
class Build:
    """What an extension is made of."""

    name: str
    sources: Sequence[str] = ()
    inline: Mapping[str, str] = field(default_factory=dict)
    """Texts of sources, by the names of the files that they become."""
    cflags: Sequence[str] = ()
    cuda_cflags: Sequence[str] = ()
    ldflags: Sequence[str] = ()
    include_paths: Sequence[str] = ()
    with_cuda: bool | None = None
    program: bool = False
    keep_objects: bool = True
    precompiled: bool = False
    """Whether the header is compiled by itself already for the first build."""

    @property
    def cuda(self) -> bool:
        """Whether headers and libraries of CUDA are needed."""
        if self.with_cuda is not None:
            return self.with_cuda
        return any(map(_compiler.is_cuda_source, [*self.sources, *self.inline]))


def build(what: Build, directory: str | None, verbose: bool) -> Path:
    """The library (or program), compiled if anything that goes into it has changed."""
    if not isinstance(what.name, str) or not what.name.isidentifier():
        raise ValueError(f"an extension has the name of a module, not {what.name!r}")
    for source in what.sources:
        if not Path(source).is_file():
            raise FileNotFoundError(f"extension {what.name!r}: there is no source {source}")
    folder = _folder(what.name) if directory is None else Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder / ".lock"):
        return _Folder(what, folder.resolve(), verbose).library()


def _folder(name: str) -> Path:
    return _root() / name


def get_default_build_root() -> str:
    """The folder below which extensions are built, unless ``TORCH_EXTENSIONS_DIR`` names one.

    >>> from flambeau.utils import cpp_extension
    >>> cpp_extension.get_default_build_root().endswith("extensions")
    True
    """
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return str(Path(cache, "flambeau", "extensions"))


def _root() -> Path:
    """Below which all extensions of this Python are built."""
    python = f"py{sys.version_info.major}{sys.version_info.minor}"
    if root := os.environ.get("TORCH_EXTENSIONS_DIR"):
        return Path(root, f"flambeau-{python}")
    return Path(get_default_build_root(), python)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock that ends with the process, however it ends."""
    import fcntl

    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class _Folder:
    """Where one extension is built."""

    def __init__(self, what: Build, folder: Path, verbose: bool) -> None:
        self.what = what
        self.folder = folder
        self.cxx = shlex.split(_compiler.compiler())
        self.work = Workplace(what.name, folder, verbose)
        self.records = self.work.records

    def library(self) -> Path:
        what = self.what
        for name, text in what.inline.items():
            path = self.folder / name
            raw = text.encode()
            if not path.exists() or path.read_bytes() != raw:
                path.write_bytes(raw)
        sources = [
            *(Path(source).resolve() for source in what.sources),
            *(self.folder / name for name in what.inline),
        ]
        steps = [self._step(source) for source in sources]
        self.work.compile(steps, self.folder / "build.ninja")
        objects = [step.target for step in steps]
        made = self._linked(objects)
        if not what.keep_objects:
            for path in objects:
                self.records.forget(path)
        return made

    def _step(self, source: Path) -> Step:
        what = self.what
        # Sources of one name may lie in several folders.
        place = hashlib.sha256(str(source).encode()).hexdigest()[:8]
        target = self.folder / f"{source.stem}.{place}.o"
        includes = [f"-I{folder}" for folder in what.include_paths]
        headers, *system = _compiler.include_paths(what.cuda)
        includes.append(f"-I{headers}")
        for folder in (*system, _compiler.python_include()):
            includes += ["-isystem", folder]
        if _compiler.is_cuda_source(source):
            command = [_compiler.nvcc(), *_compiler.cuda_options(what.name, what.cuda_cflags)]
            command += ["-ccbin", self.cxx[0]]
        else:
            command = [*self.cxx, *_compiler.compile_options(what.name, what.cflags)]
        options = [*command, *includes]
        step = Step(source, target, [*options, "-c", str(source), "-o", str(target)])
        if self.records.fresh(target, step.command) or _compiler.is_cuda_source(source):
            return step
        if begins_with_header(source, self.cxx[0]):
            known = Records.place(target).exists()
            return replace(step, header=self._header(options_of(options), known=known))
        return step

    def _header(self, command: list[str], known: bool) -> Path | None:
        """The compiled header; it is made if it is asked for, or when a source is built again."""
        header = place(_root(), Records.known_by(command))
        wanted = known or self.what.precompiled
        if not wanted and not header.exists():
            return None
        try:
            header.parent.mkdir(parents=True, exist_ok=True)
            with _locked(header.parents[1] / ".lock"):
                if not self.records.fresh(header, command):
                    if not wanted:
                        return None
                    self._compile_header(header, command)
                os.utime(header.parents[1])
        except OSError:  # no room, or no right to write there: the header itself is read
            return None
        return header

    def _compile_header(self, header: Path, command: list[str]) -> None:
        self.records.forget(header)
        new = header.with_suffix(".new")
        # A second `#include` takes no compiled header, and looks where the first was found.
        header.with_suffix("").write_text("#pragma once\n#include_next <torch/extension.h>\n")
        source = header.with_name("all.h")
        source.write_text("#include <torch/extension.h>\n")
        noted = ["-MMD", "-MF", str(Records.read_by(header))]
        self.work.run([*command, "-x", "c++-header", *noted, str(source), "-o", str(new)])
        new.rename(header)
        self.records.write(header, command, self.folder)
        put_away(header)

    def _linked(self, objects: list[Path]) -> Path:
        what = self.what
        command = [*self.cxx, *([] if what.program else _compiler.link_options())]
        command += [str(path) for path in objects]
        if what.cuda:
            command += [f"-L{path}" for path in _compiler.library_paths(cuda=True)] + ["-lcudart"]
        if any("-fopenmp" in flag for flag in what.cflags):
            command.append("-fopenmp")
        command += what.ldflags
        if what.program:
            from sysconfig import get_config_var

            version = get_config_var("LDVERSION")
            command += [f"-L{get_config_var('LIBDIR')}", f"-lpython{version}"]
        # A library that is loaded stays what it is: each has a name of its own.
        key = hashlib.sha256("\0".join(command).encode())
        for path in objects:
            key.update(path.read_bytes())
        ending = "" if what.program else ".so"
        target = self.folder / f"{what.name}-{key.hexdigest()[:12]}{ending}"
        if not target.exists():
            new = target.with_name(f".{target.name}.new")
            self.work.run([*command, "-o", str(new)])
            for old in self.folder.glob(f"{what.name}-{'?' * 12}{ending}"):
                # Another process may be about to load one that it has just made.
                if time.time() - old.stat().st_mtime > 3600:
                    old.unlink()
            new.rename(target)
        return target
