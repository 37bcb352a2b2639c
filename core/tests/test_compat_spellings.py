"""NumPy's names of arguments are taken by what a program has beside them, and cost nobody else."""

from __future__ import annotations

import inspect

import pytest

import flambeau as fb
from flambeau.compat import torch_alias
from flambeau.compat._spellings import mentioned

pytest.importorskip("flambeau_numpy")

BY_NUMPY = """
import torch
x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
result = x.sum(axis=0, keepdims=True), torch.cat([x, x], axis=1), torch.add(x1=x, x2=x)
"""


def run(source: str) -> dict:
    names: dict = {}
    exec(compile(source, "<program>", "exec"), names)
    return names


def test_a_program_that_uses_them_finds_functions_that_take_them():
    with torch_alias():
        summed, joined, doubled = run(BY_NUMPY)["result"]
    assert summed.tolist() == [[4, 6]]
    assert joined.shape == (2, 4)
    assert doubled.tolist() == [[2, 4], [6, 8]]


def test_functions_are_what_they_were_after_the_block_and_without_such_a_program():
    functions = [fb.Tensor.sum, fb.cat, fb.add, fb.mul]
    before = [function.__code__ for function in functions]
    signatures = [inspect.signature(function) for function in functions]
    with torch_alias():
        run("import torch\nresult = torch.add(torch.ones(2), 1).sum(dim=0)")
        assert [function.__code__ for function in functions] == before
        run(BY_NUMPY)
        assert fb.add.__code__ is not before[2] and fb.mul.__code__ is before[3]
        assert [inspect.signature(function) for function in functions] == signatures
    assert [function.__code__ for function in functions] == before
    with pytest.raises(TypeError, match="axis"):
        fb.ones(2).sum(axis=0)


def test_functions_with_documented_names_keep_them_after_the_block():
    before = inspect.signature(fb.is_floating_point).parameters
    assert "tensor" in before
    with torch_alias():
        assert run("import torch\nresult = torch.is_floating_point(x1=torch.ones(1))")["result"]
    assert inspect.signature(fb.is_floating_point).parameters == before


def test_names_that_are_built_are_seen():
    with torch_alias():
        found = run("import torch\nwhere = {'axis': 1}\nresult = torch.ones(2, 3).sum(**where)")
    assert found["result"].shape == (2,)


def test_names_of_another_function_are_left_alone():
    module = compile("def f(): torch.relu(y)\ndef g(): return h(x=1)", "<program>", "exec")
    assert "relu" not in mentioned(module) and "h" in mentioned(module)
    module = compile("def f(): torch.relu(y)\ndef g(): return h(axis=1)", "<program>", "exec")
    assert "relu" in mentioned(module)


@pytest.mark.parametrize("around", ["program", "autocast"])
def test_mixed_precision_and_other_names_go_together(around):
    program = (
        "import torch\nx = torch.ones(2, 2)\n"
        "a = torch.mm(x, mat2=x), torch.prod(x.bfloat16(), axis=0), torch.mm(x1=x, mat2=x)"
    )
    plain = fb.mm.__code__
    with torch_alias():
        if around == "autocast":
            with fb.autocast("cpu"):
                narrow, wide, spelt = run(program)["a"]
        else:
            run(program)
            with fb.autocast("cpu"):
                narrow, wide, spelt = run(program)["a"]
        assert narrow.dtype is spelt.dtype is fb.bfloat16
        assert wide.dtype is fb.float32
        assert fb.mm(fb.ones(2, 2), fb.ones(2, 2)).dtype is fb.float32
    assert fb.mm.__code__ is plain
    with fb.autocast("cpu"):
        assert fb.mm(fb.ones(2, 2), fb.ones(2, 2)).dtype is fb.bfloat16
    assert fb.mm.__code__ is plain


TRACED = """
import torch
def f(x):
    return torch.sum(x, axis=0, keepdims=True) + x.mean(axis=0) + torch.cat([x, x], axis=0)[:1]
x = torch.ones(2, 2)
result = torch.jit.trace(f, x)(2 * x), f(2 * x)
"""


def test_they_are_traced():
    with torch_alias():
        traced, plain = run(TRACED)["result"]
    assert traced.tolist() == plain.tolist()


def test_scripts_name_ops_by_their_namespace_and_ask_whether_they_are_traced(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(
        "import torch\n"
        "@torch.jit.script\n"
        "def f(x):\n"
        "    if torch._C._get_tracing_state():\n"
        "        return x\n"
        "    return torch.ops.aten.relu(x)\n"
    )
    names: dict = {}
    with torch_alias():
        exec(compile(path.read_text(), str(path), "exec"), names)
        assert names["f"](fb.tensor([-1.0, 2.0])).tolist() == [0.0, 2.0]
