"""What a ``setup.py`` says: extensions, and the command that builds them."""

from __future__ import annotations

import shlex
import subprocess
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from setuptools import Extension
from setuptools.command.build_ext import build_ext

from flambeau._dispatch.annotated import all_take_as_annotated
from flambeau.utils.cpp_extension import _compiler
from flambeau.utils.cpp_extension._build import at_once

__all__ = ["BuildExtension", "CUDAExtension", "CppExtension"]


def CppExtension(name: str, sources: list[str], *args: object, **kwargs: object) -> Extension:
    """A `setuptools.Extension` of C++ with the headers of ``torch/extension.h``.

    Takes the arguments of `setuptools.Extension`.

    >>> from flambeau.utils.cpp_extension import CppExtension
    >>> CppExtension("lltm_cpp", ["lltm.cpp"]).language
    'c++'
    """
    return _extension(name, sources, args, kwargs, cuda=False)


def CUDAExtension(name: str, sources: list[str], *args: object, **kwargs: Any) -> Extension:
    """As `CppExtension`, with headers and libraries of CUDA; nvcc compiles the sources in ``.cu``.

    ``extra_compile_args`` may be ``{"cxx": [...], "nvcc": [...]}``.

    Raises:
        OSError: CUDA was not found.
    """
    kwargs["library_dirs"] = [*kwargs.get("library_dirs", []), *_compiler.library_paths(cuda=True)]
    kwargs["libraries"] = [*kwargs.get("libraries", []), "cudart"]
    return _extension(name, sources, args, kwargs, cuda=True)


def _extension(
    name: str, sources: list[str], args: tuple[Any, ...], kwargs: dict[str, Any], *, cuda: bool
) -> Extension:
    own = kwargs.get("include_dirs", [])
    kwargs["include_dirs"] = [*own, *_compiler.include_paths(cuda)]
    kwargs["language"] = "c++"
    return Extension(name, sources, *args, **kwargs)


class BuildExtension(build_ext):
    """The command ``build_ext`` for `CppExtension` and `CUDAExtension`.

    It gives each source the options that the headers need, and compiles several at once, as many
    as ``MAX_JOBS`` of the environment says, by default one for each processor. `with_options`
    makes a class with ``no_python_abi_suffix=True``, which names libraries plainly
    (``lltm_cpp.so``); ``use_ninja`` is accepted.

    >>> from flambeau.utils.cpp_extension import BuildExtension
    >>> BuildExtension.with_options(no_python_abi_suffix=True).__name__
    'cls_with_options'
    """

    @classmethod
    def with_options(cls, **options: object) -> type[BuildExtension]:
        """The class with options given beforehand."""

        class cls_with_options(cls):  # noqa: N801
            def __init__(self, *args: object, **kwargs: object) -> None:
                kwargs.update(options)
                super().__init__(*args, **kwargs)

        return cls_with_options

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.no_python_abi_suffix = kwargs.pop("no_python_abi_suffix", False)
        kwargs.pop("use_ninja", None)
        super().__init__(*args, **kwargs)

    def build_extension(self, ext: Any) -> None:
        """Compile and link one extension."""
        self.compiler.src_extensions = [*self.compiler.src_extensions, ".cu"]
        given = ext.extra_compile_args
        given = given if isinstance(given, dict) else {"cxx": given or [], "nvcc": given or []}
        name = ext.name.rpartition(".")[2]
        cxx = _compiler.compile_options(name, given.get("cxx", []))
        nvcc = _compiler.cuda_options(name, given.get("nvcc", []))
        if "-fopenmp" in cxx and "-fopenmp" not in (ext.extra_link_args or []):
            # Many a setup.py leaves it to PyTorch's libraries to bring OpenMP.
            ext.extra_link_args = [*(ext.extra_link_args or []), "-fopenmp"]
        self.parallel = None  # the compiler is changed while an extension is built
        compile_one, compile_all = self.compiler._compile, self.compiler.compile
        started: list[Future[None]] = []

        def now(obj: str, src: str, kind: str, cc_args: list[str], pp: object) -> None:
            if _compiler.is_cuda_source(src):
                command = [_compiler.nvcc(), *nvcc, *cc_args, src, "-o", obj]
                self.announce(shlex.join(command), level=2)
                subprocess.run(command, check=True)
            else:
                compile_one(obj, src, kind, cc_args, cxx, pp)

        def start(obj: str, src: str, kind: str, cc_args: list[str], _: object, pp: object) -> None:
            started.append(pool.submit(now, obj, src, kind, cc_args, pp))

        def compile(*args: Any, **kwargs: Any) -> list[str]:
            objects = compile_all(*args, **kwargs)
            for each in started:
                each.result()
            return objects

        ext.extra_compile_args = []
        self.compiler._compile, self.compiler.compile = start, compile
        pool = ThreadPoolExecutor(at_once(len(ext.sources)))
        try:
            super().build_extension(ext)
        finally:
            pool.shutdown(cancel_futures=True)
            self.compiler._compile, self.compiler.compile = compile_one, compile_all
            ext.extra_compile_args = given

    def get_ext_filename(self, fullname: str) -> str:
        """The name of the library."""
        name = super().get_ext_filename(fullname)
        if not self.no_python_abi_suffix:
            return name
        parts = name.split(".")
        return ".".join([*parts[:-2], parts[-1]])


all_take_as_annotated(globals())
