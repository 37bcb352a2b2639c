"""The examples in PyTorch's own docstrings print with us what they print with PyTorch.

They are read from the installed package and run statement by statement, each docstring in a
namespace of its own with the same seed, once there and once in a process in which ``torch`` is
flambeau.  What is different is listed, by the name of what is documented, with the reason.
"""

from __future__ import annotations

import doctest
import importlib
import inspect
import json
import re
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

MODULES = """
torch torch.Tensor torch.nn torch.nn.functional torch.linalg torch.fft torch.special torch.optim
torch.optim.lr_scheduler torch.optim.swa_utils torch.distributions torch.distributions.transforms
torch.distributions.constraints torch.func torch.sparse torch.utils.data torch.nn.utils
torch.nn.utils.rnn torch.nn.utils.prune torch.nn.utils.parametrize torch.nn.utils.parametrizations
torch.nn.init torch.nn.attention torch.nn.parameter torch.autograd torch.autograd.functional
torch.autograd.graph torch.autograd.forward_ad torch.fx torch.jit torch.amp torch.signal.windows
torch.overrides torch.futures torch.utils.checkpoint torch.utils.benchmark torch.testing
torch.random torch.quasirandom
""".split()

PARTS = 6  # in which they are run, so that processes share them

UNSPECIFIED = """
torch.empty torch.empty_like torch.empty_strided torch.Tensor.new_empty
torch.Tensor.new_empty_strided torch.nn.utils.skip_init torch.Generator.seed torch.sort
torch.cholesky_inverse torch.linalg.solve torch.linalg.solve_triangular
torch.nn.utils.parametrizations.orthogonal
""".split()
"""Whose examples print memory that nothing was written to, a seed that nobody gave, the order of
equals after a sort that is not stable, or errors of rounding."""

REASONS = {
    "there are no sparse tensors but in coordinates": """
        torch.Tensor.col_indices torch.Tensor.crow_indices torch.Tensor.to_sparse
        torch.Tensor.to_sparse_bsc torch.Tensor.to_sparse_bsr
        torch.Tensor.to_sparse_csc torch.Tensor.to_sparse_csr torch.sparse_bsc_tensor
        torch.sparse_bsr_tensor torch.sparse_compressed_tensor torch.sparse_csc_tensor
        torch.sparse_csr_tensor torch.sparse.as_sparse_gradcheck torch.sparse.spdiags""",
    "there are no quantised dtypes": """
        torch.fake_quantize_per_channel_affine torch.fake_quantize_per_tensor_affine
        torch.quantize_per_channel torch.quantize_per_tensor torch.quantize_per_tensor_dynamic
        torch.quantized_batch_norm torch.quantized_max_pool1d torch.quantized_max_pool2d""",
    "a matter of PyTorch's dispatcher, tracers and kernels": """
        torch.Event torch.func.functionalize torch.overrides.redispatch_function
        torch.nn.attention.register_flash_attention_impl torch.thread_safe_generator
        torch.autograd.enforce_grad_layout_policy torch.vmap""",
    "the name is not there": """
        torch.Tensor.dim_order torch.empty_permuted torch.Tensor.grad_dtype torch.func.rearrange
        torch.hash_tensor torch.overrides.get_ignored_functions
        torch.overrides.get_testing_overrides torch.overrides.is_tensor_method_or_property""",
    "generators and handles show what they are": """
        torch.Generator.manual_seed torch.Generator.set_state torch.nn.CrossEntropyLoss
        torch.nn.LinearCrossEntropyLoss torch.autograd.graph.register_multi_grad_hook""",
    "conjugates and negatives are computed at once": """
        torch.conj torch.resolve_conj torch.resolve_neg""",
    "other operations make the same numbers": """
        torch.autograd.functional.hvp torch.autograd.functional.jvp torch.autograd.functional.vhp
        torch.autograd.functional.vjp torch.nn.Module.to torch.sparse.mm""",
    "factors without pivoting are computed on the CPU, too": "torch.linalg.lu",
    "there are no complex numbers of halves": "torch.set_default_dtype",
    "the processor's flag belongs to each thread": "torch.set_flush_denormal",
}

DIFFERENT = {name: reason for reason, names in REASONS.items() for name in names.split()}

_NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:e[-+]?\d+)?|nan|inf")


def _statements(text: str) -> list[str]:
    """The examples of a docstring, or its lines with prompts where it is malformed."""
    text = inspect.cleandoc(text)
    try:
        return [e.source for e in doctest.DocTestParser().get_examples(text) if e.source.strip()]
    except ValueError:
        found: list[str] = []
        for line in map(str.strip, text.splitlines()):
            if line.startswith(">>> "):
                found.append(line[4:] + "\n")
            elif line.startswith("...") and found:
                found[-1] += line[4:] + "\n"
        return found


def _documented() -> Iterator[tuple[str, Any]]:
    for home in MODULES:
        owner = torch.Tensor if home == "torch.Tensor" else importlib.import_module(home)
        for name in dir(owner):
            value = None if name.startswith("_") else getattr(owner, name, None)
            if value is None or isinstance(value, types.ModuleType):
                continue
            if home == "torch" and name.endswith("Tensor") and name != "Tensor":
                continue  # the old classes have the methods of `Tensor`
            made_in = getattr(value, "__module__", None) or home
            if not (home.startswith("torch.Tensor") or made_in.startswith((home, "torch._C"))):
                continue  # imported there for its own use
            yield f"{home}.{name}", value
            if isinstance(value, type) and value.__module__.startswith("torch"):
                for method, function in vars(value).items():
                    if not method.startswith("_"):
                        yield f"{home}.{name}.{method}", getattr(function, "__func__", function)


def examples() -> dict[str, list[str]]:
    """The statements of every docstring, by the first name that has it."""
    found: dict[str, list[str]] = {}
    seen: set[str] = set()
    for name, value in _documented():
        text = getattr(value, "__doc__", None)
        if not isinstance(text, str) or ">>>" not in text or text in seen:
            continue
        seen.add(text)
        if name not in UNSPECIFIED and (statements := _statements(text)):
            found[name] = statements
    return found


def _alike(ours: str, theirs: str) -> bool:
    """Whether two texts are one but for spaces, addresses, and the last digits of numbers."""
    ours, theirs = (
        re.sub(r"0x[0-9a-f]+", "", t).replace("flambeau", "torch") for t in (ours, theirs)
    )
    bare = [re.sub(r"\s+", "", t) for t in (ours, theirs)]
    if bare[0] == bare[1]:
        return True
    shapes = [_NUMBER.sub("#", t).replace("-", "") for t in bare]
    numbers = [[float(n) for n in _NUMBER.findall(t)] for t in (ours, theirs)]
    return shapes[0] == shapes[1] and all(
        a == pytest.approx(b, rel=2e-3, abs=2e-5, nan_ok=True)
        for a, b in zip(*numbers, strict=True)
    )


def _results(path: Path, given: Path, *launcher: str) -> dict[str, list[tuple[str, str]]]:
    driver = Path(__file__).with_name("docstring_examples.py")
    command = [sys.executable, *launcher, str(driver), str(given), str(path)]
    done = subprocess.run(command, cwd=path.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(json.loads(line) for line in path.read_text().splitlines())


@pytest.mark.parametrize("part", range(PARTS))
def test_the_examples_of_docstrings_print_the_same(part: int, tmp_path: Path) -> None:
    chosen = dict(list(examples().items())[part::PARTS])
    given = tmp_path / "examples.json"
    given.write_text(json.dumps(chosen))
    theirs = _results(tmp_path / "theirs", given)
    ours = _results(tmp_path / "ours", given, "-m", "flambeau", "run")
    different = {}
    for name, statements in chosen.items():
        for statement, (printed, error), (expected, refused) in zip(
            statements, ours[name], theirs[name], strict=True
        ):
            # Most errors of theirs are names that an example takes for granted.
            if not refused and (error or not _alike(printed, expected)):
                different[name] = f"{statement}ours: {printed}{error}\ntheirs: {expected}"
                break
    listed = {name: reason for name, reason in DIFFERENT.items() if name in chosen}
    assert different.keys() == listed.keys(), (
        "\n\n".join(f"{name}: {text}" for name, text in different.items() if name not in listed)
        or f"no longer different: {sorted(listed.keys() - different.keys())}"
    )
