"""What the package asks of CuPy by name is there: CuPy can be imported without a device."""

from __future__ import annotations

import ast
import importlib
import inspect
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import flambeau_cupy

cupy = pytest.importorskip("cupy", reason="needs CuPy, of whichever version of CUDA")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what CuPy says where NCCL is not installed
    importlib.import_module("cupy.cuda.nccl")

FOLDER = Path(flambeau_cupy.__file__).parent
# What names mean in which files; `xp` is the array module everywhere.
RUNTIME = {"backend.py", "launch.py", "plugin.py", "runtimes.py", "nccl.py", "communication.py"}
# What is asked of objects, by their classes.
MEMBERS = {
    "cuda.Stream": "ptr device_id done synchronize use record wait_event priority begin_capture "
    "end_capture is_capturing",
    "cuda.ExternalStream": "done synchronize use wait_event priority is_capturing begin_capture",
    "cuda.Event": "done record synchronize",
    "cuda.Graph": "launch",
    "cuda.MemoryPool": "malloc used_bytes total_bytes free_all_blocks",
    "cuda.Device": "id synchronize compute_capability use",
    "ndarray": "data device base strides flags itemsize nbytes view reshape transpose astype copy "
    "take scatter_add ndim shape size dtype __dlpack__ __cuda_array_interface__",
    "cuda.memory.MemoryPointer": "ptr mem copy_from_device_async",
    "cuda.UnownedMemory": "ptr size device_id _owner",
}
OF_NCCL = (
    "abort allGather allReduce broadcast check_async_error recv reduce reduceScatter send".split()
)


def chain(node: ast.AST) -> tuple[str, ...]:
    """The names of an expression with dots, such as ``("cupy", "cuda", "Stream")``."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return (node.id, *reversed(names)) if isinstance(node, ast.Name) and names else ()


def of_cupy(names: tuple[str, ...], path: Path) -> str:
    """What such an expression in a file is of CuPy, from its root; "" for nothing."""
    if not names:
        return ""
    root, *rest = names
    if root == "cupy":
        return ".".join(rest)
    if root == "runtime" and path.name in RUNTIME:
        return ".".join(["cuda.runtime", *rest])
    if root == "nccl" and cupy.cuda.nccl.available:  # else CuPy has no names of it
        return ".".join(["cuda.nccl", *rest])
    if "xp" in names[:-1]:
        return ".".join(names[names.index("xp") + 1 :])
    return ""


def nodes(path: Path) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(path.read_text()))


def asked(path: Path) -> set[str]:
    """What a file asks of CuPy, from its root."""
    return {of_cupy(chain(node), path) for node in nodes(path)} - {""}


def found(name: str) -> Any:
    where: Any = cupy
    for part in name.split("."):
        where = getattr(where, part)
    return where


def has(where: object, name: str) -> bool:
    for part in name.split("."):
        if not hasattr(where, part):
            return False
        where = getattr(where, part)
    return True


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.py")), ids=lambda p: p.stem)
def test_cupy_has_what_a_file_asks_for(path):
    assert [name for name in sorted(asked(path)) if not has(cupy, name)] == []


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.py")), ids=lambda p: p.stem)
def test_calls_have_arguments_that_cupy_takes(path):
    wrong = []
    for node in nodes(path):
        if not isinstance(node, ast.Call) or not (name := of_cupy(chain(node.func), path)):
            continue
        try:
            signature = inspect.signature(found(name))
        except ValueError:
            continue  # compiled without one
        places = [None for a in node.args if not isinstance(a, ast.Starred)]
        known = {k.arg: None for k in node.keywords if k.arg}
        bind = signature.bind if len(places) == len(node.args) else signature.bind_partial
        try:
            bind(*places, **known)
        except TypeError as error:
            wrong.append(f"line {node.lineno}: {name}: {error}")
    assert wrong == []


def test_functions_that_are_found_by_a_table_are_there():
    from cupyx.scipy import special

    from flambeau_cupy.kernels import elementwise

    tables = elementwise.UNARY, elementwise.BINARY, elementwise.COMPARISON, elementwise.BITS
    names = [n for t in (*tables, elementwise.ROUNDING, elementwise.DIVISION) for n in t.values()]
    assert names and [n for n in names if not hasattr(cupy, n)] == []
    chains = [chain(node) for path in FOLDER.rglob("*.py") for node in nodes(path)]
    used = {names[-1] for names in chains if "special" in names}
    assert used and [n for n in used if n != "special" and not hasattr(special, n)] == []


@pytest.mark.parametrize("name", MEMBERS)
def test_objects_have_what_is_asked_of_them(name):
    instance = {"ptr", "device_id"}  # made by the constructor
    assert [m for m in MEMBERS[name].split() if m not in instance and not has(found(name), m)] == []


def test_nccl_has_what_is_asked_of_it():
    nccl = cupy.cuda.nccl
    if not nccl.available:
        pytest.skip("needs NCCL: pip install nvidia-nccl-cu12")
    assert [name for name in OF_NCCL if not has(nccl.NcclCommunicator, name)] == []
    assert len(nccl.get_unique_id()) == 128


def test_memory_knows_who_keeps_it_through_views():
    """By which the runtime learns that the last array of a block is gone."""
    from flambeau_cupy.device.memory import Usage

    class Pointer:
        ptr, size = 4096, 512

    usage = Usage(lambda stream: stream)
    block = usage.took(Pointer(), 512, 1024)
    memory = cupy.cuda.UnownedMemory(4096, 512, block, 0)
    a = cupy.ndarray((4, 4), "f4", cupy.cuda.MemoryPointer(memory, 0))
    view = a.T[1:]
    assert view.data.mem._owner is block and view.data.ptr == 4100 and view.data.device_id == 0
    del block, memory, a
    usage.settle()
    assert usage.allocated == 512
    del view
    usage.settle()
    assert (usage.allocated, usage.peak) == (0, [512, 1024])


def test_the_backend_is_made_without_a_driver_and_without_a_warning():
    program = (
        "import warnings; warnings.simplefilter('error', DeprecationWarning)\n"
        "from flambeau_cupy.backend import CupyBackend, _Borrowed\n"
        "from flambeau_cupy.device.launch import told\n"
        "from cupy.cuda import runtime\n"
        "made = CupyBackend()\n"
        "assert made.device_count() or made.unavailable()\n"
        "stream = _Borrowed(5, 1)\n"
        "assert (stream.ptr, stream.device_id) == (5, 1)\n"
        "assert 'illegal memory access' in made.error_text(700)\n"
        "error = told(runtime.CUDARuntimeError(700))\n"
        "assert error.code == 700 and 'cudaErrorIllegalAddress' in str(error)\n"
        "assert type(told(ValueError('x'))) is ValueError\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
