"""Extensions that are compiled when they are loaded."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import shlex
from collections.abc import Sequence
from types import ModuleType

from flambeau._dispatch.annotated import all_take_as_annotated
from flambeau.plugin.forks import make_lock
from flambeau.utils._named_ops import loading
from flambeau.utils.cpp_extension._build import Build, build

__all__ = ["load", "load_inline"]

_loaded: dict[str, ModuleType] = {}
_loading = make_lock()


def load(
    name: str,
    sources: str | Sequence[str],
    extra_cflags: Sequence[str] | None = None,
    extra_cuda_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[str] | None = None,
    build_directory: str | None = None,
    verbose: bool = False,
    with_cuda: bool | None = None,
    is_python_module: bool = True,
    is_standalone: bool = False,
    keep_intermediates: bool = True,
) -> str | ModuleType:
    """Compile sources, unless that was done before, and import the module that they make.

    What was compiled is found again by what went into it: sources, all that they include, options
    and compiler. Processes that want the same extension wait for the first of them.

    Args:
        name: of the module; sources know it as ``TORCH_EXTENSION_NAME``.
        sources: paths of files of C++ (``.cpp``, ``.cc``, …) and CUDA (``.cu``).
        extra_cflags: options for the compiler of C++.
        extra_cuda_cflags: options for nvcc.
        extra_ldflags: options for the linker.
        extra_include_paths: folders of headers.
        build_directory: where to build; by default a folder of this name below
            ``TORCH_EXTENSIONS_DIR``, or else below the user's folder for caches.
        verbose: print the commands and what they say.
        with_cuda: add headers and libraries of CUDA; by default, if a source is ``.cu``.
        is_python_module: False for a library that registers ops: it is loaded into the process, and
            its path is returned.
        is_standalone: make a program and return its path.
        keep_intermediates: keep the object files, so that the next build compiles what changed.

    Returns:
        the module, or a path.

    Raises:
        RuntimeError: a source does not compile; the message has what the compiler said.
        OSError: a source is not there.
        ImportError: pybind11 is not installed, or the library has no module of this name.

    >>> from flambeau.utils import cpp_extension
    >>> cpp_extension.load("none", ["no-such-file.cpp"])
    Traceback (most recent call last):
    FileNotFoundError: extension 'none': there is no source no-such-file.cpp
    """
    return _load(
        Build(
            name=name,
            sources=[sources] if isinstance(sources, str) else [os.fspath(s) for s in sources],
            cflags=_words(extra_cflags),
            cuda_cflags=_words(extra_cuda_cflags),
            ldflags=_words(extra_ldflags),
            include_paths=_folders(extra_include_paths),
            with_cuda=with_cuda,
            program=is_standalone,
            keep_objects=keep_intermediates,
        ),
        build_directory,
        verbose,
        is_python_module,
    )


def load_inline(
    name: str,
    cpp_sources: str | Sequence[str],
    cuda_sources: str | Sequence[str] | None = None,
    functions: object = None,
    extra_cflags: Sequence[str] | None = None,
    extra_cuda_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[str] | None = None,
    build_directory: str | None = None,
    verbose: bool = False,
    with_cuda: bool | None = None,
    is_python_module: bool = True,
    with_pytorch_error_handling: bool = True,
    keep_intermediates: bool = True,
    use_pch: bool = False,
) -> str | ModuleType:
    """As `load`, of sources that are texts.

    ``torch/extension.h`` is included before the first, and `functions` are bound to the module.

    Args:
        name: of the module.
        cpp_sources: text of C++, or several that are put together.
        cuda_sources: text of CUDA; with ``cuda.h`` included before it.
        functions: name of a function to bind, a list of names, or a dict of names with docstrings.
        use_pch: compile the header by itself for the first build already, and not only when a
            source is built again.
        with_pytorch_error_handling: accepted; errors of C++ are those of Python in any case.

    The other arguments, and the errors, are those of `load`; `functions` that are none of these
    are a ValueError.

    >>> from flambeau.utils import cpp_extension
    >>> source = "double twice(double x) { return 2 * x; }"
    >>> module = cpp_extension.load_inline("twice", source, functions="twice")  # doctest: +SKIP
    >>> module.twice(1.5)                                                       # doctest: +SKIP
    3.0
    """
    texts = [cpp_sources] if isinstance(cpp_sources, str) else list(cpp_sources)
    cuda_texts = [cuda_sources] if isinstance(cuda_sources, str) else list(cuda_sources or ())
    bound = _bound(functions)
    main = ["#include <torch/extension.h>", *texts]
    if bound:
        main.append("PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {")
        for function, text in bound.items():
            main.append(f'  m.def("{function}", &{function}, {_quoted(text)});')
        main.append("}")
    inline = {"main.cpp": "\n".join(main) + "\n"}
    if cuda_texts:
        first = ["#include <torch/types.h>", "#include <cuda.h>", "#include <cuda_runtime.h>"]
        inline["cuda.cu"] = "\n".join([*first, *cuda_texts]) + "\n"
    return _load(
        Build(
            name=name,
            inline=inline,
            precompiled=use_pch,
            cflags=_words(extra_cflags),
            cuda_cflags=_words(extra_cuda_cflags),
            ldflags=_words(extra_ldflags),
            include_paths=_folders(extra_include_paths),
            with_cuda=with_cuda,
            keep_objects=keep_intermediates,
        ),
        build_directory,
        verbose,
        is_python_module,
    )


def _load(what: Build, directory: str | None, verbose: bool, is_module: bool) -> str | ModuleType:
    made = str(build(what, directory, verbose))
    if what.program:
        return made
    with _loading:
        if not is_module:
            with loading():
                ctypes.CDLL(made)
            return made
        if made not in _loaded:
            with loading():
                _loaded[made] = _import(what.name, made)
        return _loaded[made]


def _import(name: str, path: str) -> ModuleType:
    # pybind11 keeps a module by its name and gives it again for another library of that name.
    earlier = sum(known.__name__ == name for known in _loaded.values())
    unique = f"{name}_v{earlier}.{name}" if earlier else name
    spec = importlib.util.spec_from_file_location(unique, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.__name__ = name
    return module


def _bound(functions: object) -> dict[str, str]:
    """Names of functions with their docstrings."""
    if functions is None:
        return {}
    if isinstance(functions, str):
        return {functions: functions}
    if isinstance(functions, list | tuple):
        return {function: function for function in functions}
    if isinstance(functions, dict):
        return functions
    raise ValueError(f"Expected 'functions' to be a list or dict, but was {type(functions)}")


def _words(flags: Sequence[str] | None) -> list[str]:
    """Flags as a shell would take them apart: one text may hold several.

    Raises:
        TypeError: one is no text, of which `shlex` would read the process's standard input.
    """
    for flag in flags or ():
        if not isinstance(flag, str):
            raise TypeError(f"flags of an extension are texts, not {type(flag).__name__}")
    return [word for flag in flags or () for word in shlex.split(flag)]


def _folders(paths: Sequence[str] | None) -> list[str]:
    for path in paths or ():
        if not isinstance(path, str):
            raise TypeError(f"folders of an extension are texts, not {type(path).__name__}")
    return [os.path.abspath(path.strip()) for path in paths or ()]


def _quoted(text: str) -> str:
    """A literal of C++."""
    return f'R"flambeau({text})flambeau"'


all_take_as_annotated(globals())
