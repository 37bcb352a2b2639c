"""Builds the extension; everything else is said in pyproject.toml.

Without a compiler the package installs all the same and offers no kernels.
"""

import os
import platform
import runpy
from glob import glob

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

UNIX = ["-std=c11", "-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off"]
UNIX += ["-fopenmp-simd", "-pthread"]  # of OpenMP the pragmas for vectors, which need no library
UNIX += ["-g0"]  # Python's own flags ask for debug information: a fifth of the time
# Imported by its path: the package itself asks for others, which a build has not.
DIGEST = runpy.run_path("src/flambeau_native/sources.py")["digest"]("csrc")


class Build(build_ext):
    """Adds what the compiler in use understands."""

    def build_extension(self, ext):
        """Choose by the compiler; see the base class."""
        if self.compiler.compiler_type == "msvc":
            ext.extra_compile_args = ["/std:c11", "/O2", "/openmp:experimental"]
        else:
            ext.extra_compile_args = list(UNIX)
            ext.extra_link_args = ["-pthread"]
            if os.environ.get("FLAMBEAU_NATIVE_NARROW"):
                # One copy of each loop, and none chosen by what the processor says of itself.
                ext.extra_compile_args += [
                    "-Dtarget_clones(...)=unused",
                    "-D__builtin_cpu_supports(name)=0",
                ]
            if os.environ.get("FLAMBEAU_NATIVE_SANITIZE"):
                flags = [
                    "-fsanitize=address,undefined",
                    "-fno-sanitize-recover=undefined",
                    "-g",
                    "-O1",
                ]
                ext.extra_compile_args += flags
                ext.extra_link_args = [*ext.extra_link_args, *flags]
        super().build_extension(ext)


setup(
    ext_modules=[
        Extension(
            "flambeau_native._native",
            sorted(glob("csrc/*.c")),
            depends=sorted(glob("csrc/*.h")),
            define_macros=[("Py_LIMITED_API", "0x030b0000"), ("SOURCES", DIGEST)],
            py_limited_api=platform.python_implementation() == "CPython",
            optional=True,
        )
    ],
    cmdclass={"build_ext": Build},
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
