"""What an import of flambeau costs and what it brings along, seen from a fresh interpreter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

ARRAY_LIBRARIES = {"numpy", "scipy", "ml_dtypes", "cupy", "torch"}


def run(program: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def modules_after(program: str) -> set[str]:
    """The names of all modules in a fresh interpreter that ran `program`."""
    report = "import json, sys; print(json.dumps(list(sys.modules)))"
    return set(json.loads(run(f"{program}\n{report}")))


def test_importing_flambeau_and_nn_imports_no_array_library():
    modules = modules_after("import flambeau, flambeau.nn, flambeau.nn.functional, flambeau.optim")
    assert "flambeau.nn" in modules
    assert not ARRAY_LIBRARIES & modules


def test_importing_flambeau_imports_neither_a_backend_nor_nn():
    modules = modules_after("import flambeau")
    assert not {"flambeau_numpy", "flambeau.nn", "flambeau.optim"} & modules


def test_the_first_cpu_tensor_imports_the_cpu_backend():
    before = modules_after("import flambeau; flambeau.device('cpu')")
    after = modules_after("import flambeau; flambeau.ones(2)")
    assert "flambeau_numpy" not in before
    assert "flambeau_numpy" in after


def test_tensors_on_the_reference_device_need_no_array_library():
    modules = modules_after("import flambeau; flambeau.ones(2, device='ref').exp().sum().item()")
    assert not ARRAY_LIBRARIES & modules


def test_importing_flambeau_takes_less_than_100_ms(tmp_path):
    program = (
        "from time import process_time; start = process_time(); import flambeau;"
        "print(start, process_time() - start)"
    )
    # Bytecode as an installed package has it, whatever the environment says about writing it.
    cached = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(tmp_path)}
    measured = [map(float, run(program, **cached).split()) for _ in range(7)]
    start, imported = map(min, zip(*measured, strict=True))
    # Of the processor, since other work stretches the clock's time; where the machine is a slow
    # one, twelve times what Python itself takes to start.  The benchmarks hold the clock to 100 ms.
    assert imported < max(0.1, 12 * start)


def test_no_folder_at_the_root_shadows_the_package():
    """`extend_path` would take ``./flambeau`` of the working directory for a part of it."""
    assert not (ROOT / "flambeau").exists()
