"""Names of ``torch.testing`` that only programs for PyTorch want."""

from __future__ import annotations

from typing import Any

import flambeau as fb

__all__ = ["assert_allclose"]


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """The `assert_close` of PyTorch 1: also of numbers, and whatever dtypes and devices are.

    Raises:
        AssertionError: they are not close.
    """
    actual = actual if isinstance(actual, fb.Tensor) else fb.tensor(actual)
    expected = (
        expected if isinstance(expected, fb.Tensor) else fb.tensor(expected, dtype=actual.dtype)
    )
    if rtol is None and atol is None:
        tolerances = {fb.float16: (1e-3, 1e-3), fb.float32: (1e-4, 1e-5), fb.float64: (1e-5, 1e-8)}
        pairs = [tolerances.get(t.dtype, (0.0, 0.0)) for t in (actual, expected)]
        rtol, atol = max(r for r, _ in pairs), max(a for _, a in pairs)
    fb.testing.assert_close(
        actual,
        expected,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_device=True,
        check_dtype=False,
        check_stride=False,
        msg=msg or None,
    )
