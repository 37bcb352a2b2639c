"""What a ``setup.py`` says: extensions, and the command that builds them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from setuptools import Extension
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

from flambeau._dispatch.annotated import all_take_as_annotated
from flambeau.utils.cpp_extension import _compiler
from flambeau.utils.cpp_extension._compiling import Step, Workplace

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

    It gives each source the options that the headers need, and compiles those that changed (they,
    a header, an option, the compiler), several at once: as many as ``MAX_JOBS`` of the environment
    says, by default one for each processor. Ninja runs the compilers where it is installed.
    `with_options` makes a class with options: ``use_ninja=False`` has them run from here,
    ``no_python_abi_suffix=True`` names libraries plainly (``lltm_cpp.so``).

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
        self.use_ninja = bool(kwargs.pop("use_ninja", True))
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
        # What has changed is known by contents, headers and options too; setuptools sees times.
        self.force = self.compiler.force = True
        compile_one, compile_all = self.compiler._compile, self.compiler.compile
        work = Workplace(
            ext.name, Path.cwd(), verbose=bool(self.distribution.verbose), ninja=self.use_ninja
        )
        steps: list[Step] = []

        def note(obj: str, src: str, kind: str, cc_args: list[str], _: object, pp: object) -> None:
            said: list[list[str]] = []
            if _compiler.is_cuda_source(src):
                said.append([_compiler.nvcc(), *nvcc, *cc_args, src, "-o", obj])
            else:
                # The newer and the older name of what runs a command.
                with _replaced(self.compiler, call=said.append, spawn=said.append):
                    compile_one(obj, src, kind, cc_args, cxx, pp)
            steps.append(Step(Path(src), Path(obj), said[0]))

        def compile(*args: object, **kwargs: object) -> list[str]:
            objects = compile_all(*args, **kwargs)
            try:
                work.compile(steps, Path(self.build_temp, f"{ext.name}.ninja"))
            except RuntimeError as error:  # so that setuptools knows it: it may be optional
                raise CompileError(str(error)) from None
            return objects

        ext.extra_compile_args = []
        try:
            with _replaced(self.compiler, _compile=note, compile=compile):
                super().build_extension(ext)
        finally:
            ext.extra_compile_args = given

    def get_ext_filename(self, fullname: str) -> str:
        """The name of the library."""
        name = super().get_ext_filename(fullname)
        if not self.no_python_abi_suffix:
            return name
        parts = name.split(".")
        return ".".join([*parts[:-2], parts[-1]])


@contextmanager
def _replaced(owner: object, **methods: Callable[..., object]) -> Iterator[None]:
    before = {name: getattr(owner, name) for name in methods if hasattr(owner, name)}
    vars(owner).update({name: methods[name] for name in before})
    try:
        yield
    finally:
        vars(owner).update(before)


all_take_as_annotated(globals())
