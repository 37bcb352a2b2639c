"""The package where something is missing: it says what, and the CPU works."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

from flambeau.plugin import KernelSet
from flambeau.plugin.host import host
from flambeau_cupy import plugin
from flambeau_cupy.kernels import FAMILIES, LAUNCHED, MADE, MADE_LAUNCHED, kernels
from flambeau_cupy.layer import NumpyLayer

HAS_CUPY = importlib.util.find_spec("cupy") is not None


def run(program: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_it_speaks_of_its_own_device_type_only():
    for hook in (plugin.flambeau_backend, plugin.flambeau_report):
        assert hook("cpu") is None
    assert plugin.flambeau_kernels("cpu", None) is None
    assert plugin.flambeau_copier("cpu", "cuda") is None


@pytest.mark.skipif(HAS_CUPY, reason="CuPy is installed")
def test_without_cupy_the_wheels_are_named_and_the_cpu_works():
    lines = run(
        "import flambeau as fb\n"
        "print(fb.cuda.is_available(), fb.cuda.device_count(), fb.backends.cudnn.is_available())\n"
        "try:\n"
        "    fb.ones(2, device='cuda')\n"
        "except RuntimeError as error:\n"
        "    print('cupy-cuda12x' in str(error))\n"
        "print((fb.ones(2) + 1).tolist())\n"
    )
    assert lines == ["False 0 False", "True", "[2.0, 2.0]"]


@pytest.mark.skipif(not HAS_CUPY, reason="CuPy is not installed")
def test_without_a_driver_the_reason_is_named_and_the_cpu_works():
    if host.is_available("cuda"):
        pytest.skip("there is a device")
    lines = run(
        "import flambeau as fb\n"
        "try:\n"
        "    fb.ones(2, device='cuda')\n"
        "except RuntimeError as error:\n"
        "    print('no cuda device is available' in str(error))\n"
        "print((fb.ones(2) + 1).tolist())\n"
    )
    assert lines == ["True", "[2.0, 2.0]"]


def test_every_kernel_is_of_an_op_with_and_without_launches():
    ops = host.op_table()
    for layer in (NumpyLayer(), NumpyLayer(lambda *args: None)):
        offered = KernelSet("test", kernels(layer)).kernels
        known = {name for name in offered if name in ops or name.removesuffix("_") in ops}
        assert known == set(offered) - {"assign", "fill_"}  # writes that are no ops
    plain, launched = kernels(NumpyLayer()), kernels(NumpyLayer(lambda *args: None))
    assert set(plain) < set(launched)
    assert not {*FAMILIES, *MADE} & {*LAUNCHED, *MADE_LAUNCHED}
