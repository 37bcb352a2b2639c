"""The frontend of cuDNN in tests: parts that compute on the host, and the real one, deviceless."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from flambeau_cupy.dtypes import BFLOAT16, FLOAT16


class NotSupportedError(RuntimeError):
    """What the frontend raises where it has no engine."""


class Side:
    """A tensor of a graph."""

    def __init__(self, **known):
        self.__dict__.update(known)

    def __getattr__(self, name):
        def put(value):
            self.__dict__[name.removeprefix("set_")] = value
            return self

        if not name.startswith("set_"):
            raise AttributeError(name)
        return put

    def at(self, address, dtype):
        """The array at an address."""
        size = dtype.itemsize
        reach = 1 + sum(s * (n - 1) for s, n in zip(self.stride, self.dim, strict=True))
        memory = (ctypes.c_char * (reach * size)).from_address(address)
        steps = [s * size for s in self.stride]
        return np.ndarray(self.dim, dtype, memory, strides=steps)


KINDS = {
    "HALF": FLOAT16,
    "BFLOAT16": BFLOAT16,
    "FLOAT": np.dtype(np.float32),
    "DOUBLE": np.dtype(np.float64),
}


class Names:
    """An enumeration whose members are their names."""

    def __getattr__(self, name):
        return name


# A device that is not there, for which the real cuDNN plans.
H200 = {
    **{"deviceName": "NVIDIA H200", "cudaDeviceId": 0, "deviceVer": 900, "driverVer": 13000},
    **{"multiProcessorCount": 132, "totalGlobalMem": 150_000_000_000, "warpSize": 32},
    **{"maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448},
    **{"reservedSharedMemoryPerBlock": 1024, "l2CacheSize": 62914560},
    **{"maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64]},
    **{"regsPerBlock": 65536, "maxRegistersPerSM": 65536, "maxCtasPerSM": 32},
    **{"maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "smClockRateKHz": 1980000},
    **{"memClockRateKHz": 3201000, "isTccDriver": 0, "supportCoopLaunch": 1, "pciDeviceId": 0},
}


def real():
    if importlib.util.find_spec("cudnn") is None:
        return None, "needs nvidia-cudnn-frontend==1.22.1 and cuDNN 9.19"
    try:
        import cudnn

        cudnn.backend_version()
        _load_cublas()
    except (ImportError, OSError, RuntimeError) as error:
        return None, f"cuDNN cannot be loaded: {error}"
    return cudnn, ""


def _load_cublas():
    """Where it is missing, cuDNN ends the process."""
    spec = importlib.util.find_spec("nvidia.cublas")
    folders = [] if spec is None else [Path(f) for f in spec.submodule_search_locations or ()]
    found = [p for f in folders for p in (f / "lib").glob("libcublasLt.so.*")]
    ctypes.CDLL(str(found[0]) if found else "libcublasLt.so", ctypes.RTLD_GLOBAL)


STUB = """
int cuDriverGetVersion(int *version) { *version = 13000; return 0; }
"""


def said_with_a_driver_that_answers(program: str, folder: Path) -> list[str]:
    """What a program prints where libcuda.so.1 has no device: libraries say what they take.

    What is compiled at run time, as attention is, cuDNN only weighs where the driver's library
    can be loaded.  Every function of this one but the version fails as on a machine without the
    driver (cudaErrorStubLibrary).
    """
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("needs a C compiler on Linux")
    source, library = folder / "cuda.c", folder / "libcuda.so.1"
    names = sorted(_driver_functions() - {"cuDriverGetVersion"})
    source.write_text(STUB + "".join(f"int {name}(void) {{ return 34; }}\n" for name in names))
    flags = "-shared", "-fPIC", "-w", f"-Wl,-soname,{library.name}"
    subprocess.run([compiler, *flags, "-o", str(library), str(source)], check=True)
    paths = [str(folder), os.environ.get("LD_LIBRARY_PATH", "")]
    own = [str(Path(__file__).parent), *sys.path]
    told = {"LD_LIBRARY_PATH": ":".join(filter(None, paths)), "PYTHONPATH": ":".join(own)}
    answer = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **told},
        capture_output=True,
        text=True,
    )
    assert answer.returncode == 0, answer.stderr[-2000:]
    return answer.stdout.splitlines()


def _driver_functions() -> set[str]:
    """The names that cuDNN looks for in the driver's library."""
    spec = importlib.util.find_spec("nvidia.cudnn")
    folders = [] if spec is None else [Path(f) for f in spec.submodule_search_locations or ()]
    found: set[str] = set()
    for path in (p for f in folders for p in (f / "lib").glob("libcudnn_graph.so.*")):
        found |= {n.decode() for n in re.findall(rb"\0(cu[A-Z]\w+)(?=\0)", path.read_bytes())}
    return {name for name in found if not name.startswith(("cuGetProcAddress", "cuBLAS"))}
