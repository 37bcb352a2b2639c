"""The kernels in CUDA C, compiled for devices by NVRTC."""

from __future__ import annotations

import on_host
import pytest

from flambeau_cupy.fusion.expressions import Expression, standard
from flambeau_cupy.fusion.steps import C_TYPES, NUMBER
from flambeau_cupy.source import FAMILIES, TYPES, families, text, whole

pytestmark = pytest.mark.skipif(
    on_host.nvrtc() is None, reason="needs NVRTC: pip install nvidia-cuda-nvrtc-cu12"
)


def compiled(source, architecture):
    library = on_host.nvrtc()
    assert library is not None
    return on_host.compiled(library, source, architecture)


@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_90"])
@pytest.mark.parametrize("dtype", sorted(TYPES))
def test_all_sources_compile_for_the_device(dtype, architecture):
    code = compiled(whole(dtype), architecture)
    for family in families(dtype):
        for name in FAMILIES[family]:
            assert name.encode() in code


def all_steps(kind: str) -> Expression:
    """Every step on operands of a dtype, each with an output, in one kernel."""
    inputs = (kind, kind, "bool", NUMBER)
    steps, outputs = [], []
    for e in standard(kind):
        ((step, result, operands),), ((_, into),) = e.steps, e.outputs
        arrays = iter((0, 1))
        values = [
            {"bool": 2, NUMBER: 3}.get(e.inputs[o], -1)
            if step == "where" or e.inputs[o] == NUMBER
            else next(arrays)
            for o in operands
        ]
        values = [next(arrays) if v < 0 else v for v in values]
        steps.append((step, result, tuple(values)))
        outputs.append((len(inputs) + len(steps) - 1, into))
    return Expression(inputs, tuple(steps), tuple(outputs))


@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_90"])
@pytest.mark.parametrize("kind", sorted(C_TYPES))
def test_every_elementwise_step_compiles_for_the_device(kind, architecture):
    program = all_steps(kind).program
    code = compiled(f"{program.prelude}\n{program.body}", architecture)
    assert program.name.encode() in code


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_each_source_compiles_alone_as_it_is_loaded(family):
    code = compiled(text(family, "float16"), "compute_75")
    assert all(name.encode() in code for name in FAMILIES[family])


def test_a_source_with_a_fault_is_refused_with_the_log():
    with pytest.raises(RuntimeError, match="undefined_name"):
        compiled(text("loss") + "\n__device__ int f() { return undefined_name; }", "sm_80")
