"""Names of ``torch.testing`` that only programs for PyTorch want."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import flambeau as fb

if TYPE_CHECKING:
    from flambeau._types.hints import DeviceLike


__all__ = [
    "assert_allclose",
    "get_all_device_types",
    "get_all_dtypes",
    "get_all_math_dtypes",
    "make_non_contiguous",
    "rand_like",
    "randn_like",
]

rand_like, randn_like = fb.rand_like, fb.randn_like


def get_all_dtypes() -> list[fb.dtype]:
    """The dtypes that PyTorch 1 had."""
    integers = [fb.uint8, fb.bool, fb.int8, fb.int16, fb.int32, fb.int64]
    return [*integers, fb.float32, fb.float64, fb.float16, fb.bfloat16]


def get_all_math_dtypes(device: DeviceLike) -> list[fb.dtype]:
    """Those of them that PyTorch 1 computed with: float16 not on the CPU."""
    integers = [fb.uint8, fb.int8, fb.int16, fb.int32, fb.int64]
    half = [] if fb.device(device).type == "cpu" else [fb.float16]
    return [*integers, fb.float32, fb.float64, *half]


def get_all_device_types() -> list[str]:
    """The CPU, and CUDA if it is there."""
    return ["cpu", "cuda"] if fb.cuda.is_available() else ["cpu"]


def make_non_contiguous(tensor: fb.Tensor) -> fb.Tensor:
    """A copy of a tensor that lies with gaps in a larger one, behind its begin."""
    if tensor.numel() <= 1:
        return tensor.clone()
    room = fb.empty([*(2 * n + 1 for n in tensor.shape)], dtype=tensor.dtype, device=tensor.device)
    for dim, size in enumerate(tensor.shape):
        room = room.narrow(dim, 1, 2 * size)[(*(slice(None),) * dim, slice(None, None, 2))]
    return room.copy_(tensor)


def assert_allclose(
    actual: Any,
    expected: object,
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
