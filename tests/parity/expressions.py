"""Short programs on both libraries: their last value, or the class of their error, must be equal.

A program is lines or parts between semicolons over the name `t`, the library.  Its last part is an
expression; tensors in its value are compared in dtype, shape, strides of dimensions that move,
`requires_grad` and values, everything else by ``repr``.
"""

from __future__ import annotations

import ast
import warnings
from typing import Any

import pytest

import flambeau as fb

torch = pytest.importorskip("torch")


def programs(text: str) -> list[str]:
    """One program a line."""
    return [line.strip() for line in text.strip().splitlines() if line.strip()]


def agree(program: str, tolerance: float = 1e-6, device: str = "cpu") -> None:
    """Assert that a program ends alike on both libraries."""
    reference, found = run(torch, program), run(fb, program, device)
    if isinstance(reference, Exception):
        assert type(found) is type(reference), f"{found!r} for {reference!r}"
        return
    assert not isinstance(found, Exception), repr(found)
    same(found, reference, tolerance, strided=device == "cpu")


def run(library: Any, program: str, device: str = "cpu") -> Any:
    """The value of a program's last part, or the error that ended it."""
    code = ast.parse("\n".join(part.strip() for part in program.split(";")))
    last = code.body.pop()
    assert isinstance(last, ast.Expr)
    names: dict[str, Any] = {"t": library, "device": device}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(code, "<program>", "exec"), names)
            return eval(compile(ast.Expression(last.value), "<program>", "eval"), names)
        except Exception as error:
            return error


def same(found: Any, reference: Any, tolerance: float = 1e-6, *, strided: bool = True) -> None:
    """Assert that two values are alike, tensors within a tolerance."""
    if isinstance(reference, (tuple, list)):
        assert isinstance(found, (tuple, list)) and len(found) == len(reference)
        for a, b in zip(found, reference, strict=True):
            same(a, b, tolerance, strided=strided)
    elif isinstance(reference, torch.Tensor):
        assert isinstance(found, fb.Tensor)
        assert str(found.dtype) == str(reference.dtype)
        assert tuple(found.shape) == tuple(reference.shape)
        assert found.requires_grad == reference.requires_grad
        moving = [d for d, n in enumerate(reference.shape) if n > 1]
        if strided and 0 not in reference.shape:
            assert [found.stride(d) for d in moving] == [reference.stride(d) for d in moving]
        values = torch.tensor(found.detach().flatten().tolist(), dtype=reference.dtype)
        torch.testing.assert_close(
            values.reshape(reference.shape),
            reference.detach(),
            rtol=tolerance,
            atol=tolerance,
            equal_nan=True,
        )
    elif isinstance(reference, float):
        assert found == pytest.approx(reference, rel=tolerance, abs=tolerance, nan_ok=True)
    else:
        assert repr(found).replace("flambeau.", "torch.") == repr(reference)
