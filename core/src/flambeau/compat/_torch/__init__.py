"""What only programs that say ``import torch`` want: a module here stands for the one of its path.

Where flambeau has a module of that path, the names in ``__all__`` are added to it for as long as
such a program runs.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau._types.layout import OTHERS
from flambeau.compat._foreach import FOREACH
from flambeau.compat._grouped import grouped_mm as _grouped_mm

if TYPE_CHECKING:
    from flambeau._types.hints import DeviceLike


_DTYPES = {
    **{f"{sign}int{bits}": (1, 1) for sign in ("", "u") for bits in range(1, 8)},
    **dict.fromkeys(("qint8", "quint8", "quint2x4", "quint4x2"), (1, 1)),
    **dict.fromkeys(("bits8", "bits1x8", "bits2x4", "bits4x2"), (1, 1)),
    "bits16": (1, 2),
    "qint32": (1, 4),
    "float4_e2m1fn_x2": (2, 1),
    "float8_e8m0fnu": (2, 1),
    "complex32": (3, 4),
}
"""Dtypes that no tensor has: the category and the bytes of an element."""

__all__ = [
    "DeviceObjType",
    "Future",
    "ScriptModule",
    "Tag",
    "_amp_foreach_non_finite_check_and_unscale_",
    "_amp_update_scale_",
    "_check",
    "_check_tensor_all",
    "_check_tensor_all_with",
    "_check_with",
    "_convert_indices_from_coo_to_csr",
    "_convert_indices_from_csr_to_coo",
    "_debug_has_internal_overlap",
    "_grouped_mm",
    "_has_compatible_shallow_copy_type",
    "_int_mm",
    "_nnpack_available",
    "_segment_reduce",
    "_shape_as_tensor",
    "_softmax_backward_data",
    *FOREACH,
    "fbgemm_is_cpu_supported",
    "get_deterministic_debug_mode",
    "set_deterministic_debug_mode",
    "get_device_module",
    "has_cuda",
    "has_lapack",
    "has_mkl",
    "has_mps",
    "has_openmp",
    "legacy_contiguous_format",
    *OTHERS,
    *_DTYPES,
    "chalf",
    "sym_float",
    "sym_int",
    "sym_ite",
    "sym_max",
    "sym_min",
    "sym_not",
    "sym_sum",
    "typename",
]


has_lapack = True
has_cuda = has_mps = has_mkl = has_openmp = False
"""Libraries that PyTorch's own build has or lacks; devices are asked whether they are there."""

globals().update(FOREACH)
globals().update(OTHERS)
DeviceObjType = fb.device
legacy_contiguous_format = fb.contiguous_format
_segment_reduce = fb.segment_reduce


class AbsentDtype:
    """A dtype that no tensor has: it can be compared, be a key, and say what it is.

    It is no instance of `flambeau.dtype`, so that whatever takes a dtype refuses it.
    """

    def __init__(self, name: str, category: int, itemsize: int) -> None:
        self.name = name
        self.itemsize = itemsize
        self.is_floating_point = category == 2
        self.is_complex = category == 3
        self.is_signed = not name.startswith(("uint", "quint", "bits", "float8_e8"))

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return _absent_dtype, (self.name,)


def _absent_dtype(name: str) -> AbsentDtype:
    return globals()[name]


globals().update({name: AbsentDtype(name, *facts) for name, facts in _DTYPES.items()})
chalf = globals()["complex32"]


# Loaded when they are asked for, as in flambeau.
_HOMES = {
    "Future": "flambeau.futures",
    "ScriptModule": "flambeau.jit",
    "Tag": "flambeau.compat._torch._C",
    "_amp_foreach_non_finite_check_and_unscale_": "flambeau.compat._amp",
    "_amp_update_scale_": "flambeau.compat._amp",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(name)


def typename(obj: Any, /) -> str:
    """The name of an object's type, of a tensor the legacy one.

    >>> import flambeau as fb
    >>> from flambeau.compat import torch_alias
    >>> with torch_alias() as torch:
    ...     print(torch.typename(fb.ones(1)), torch.typename([]))
    torch.FloatTensor list
    """
    if isinstance(obj, fb.Tensor):
        return obj.type()
    named = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(named, "__module__", None) or ""
    return named.__qualname__ if module in ("", "builtins") else f"{module}.{named.__qualname__}"


def fbgemm_is_cpu_supported() -> bool:
    """Whether there are FBGEMM's products of quantised matrices: no."""
    return False


def _has_compatible_shallow_copy_type(input: fb.Tensor, from_: fb.Tensor) -> bool:
    """Whether a tensor could take over the memory and facts of another: both are of one kind."""
    return type(input) is type(from_) and input.layout == from_.layout


def _int_mm(self: fb.Tensor, mat2: fb.Tensor) -> fb.Tensor:
    """The product of two matrices of int8, in int32.

    Raises:
        RuntimeError: the matrices are of another dtype.
    """
    for name, each in (("self", self), ("mat2", mat2)):
        if each.dtype is not fb.int8:
            raise RuntimeError(f"expected {name} dtype to be int8 but got {each.dtype}")
    return fb.mm(self.int(), mat2.int())


def _convert_indices_from_coo_to_csr(
    input: fb.Tensor, size: int, *, out_int32: bool = False
) -> fb.Tensor:
    """Where each of `size` rows begins among sorted numbers of rows, and where the last ends."""
    rows = fb.arange(size + 1, dtype=input.dtype, device=input.device)
    return fb.searchsorted(input, rows, out_int32=out_int32)


def _convert_indices_from_csr_to_coo(
    crow_indices: fb.Tensor,
    col_indices: fb.Tensor,
    *,
    out_int32: bool = False,
    transpose: bool = False,
) -> fb.Tensor:
    """The coordinates of elements, (2, nnz), from where rows begin and the columns in them.

    Of batches, the coordinates in these stand first; `transpose` exchanges rows and columns.
    """
    dtype = fb.int32 if out_int32 else fb.int64
    shape = tuple(col_indices.shape)
    begins = crow_indices.reshape((prod(shape[:-1]), crow_indices.shape[-1])).contiguous()
    columns = col_indices.reshape((prod(shape[:-1]), shape[-1]))
    place = fb.arange(columns.shape[-1], device=columns.device).expand_as(columns).contiguous()
    rows = (fb.searchsorted(begins, place, right=True) - 1).reshape(-1)
    found = [columns.reshape(-1), rows] if transpose else [rows, columns.reshape(-1)]
    batches = [
        fb.arange(n, device=columns.device)
        .reshape((-1, *(1,) * (len(shape) - 1 - d)))
        .expand(shape)
        .reshape(-1)
        for d, n in enumerate(shape[:-1])
    ]
    return fb.stack([each.to(dtype) for each in (*batches, *found)])


def _nnpack_available() -> bool:
    """Whether there are NNPACK's convolutions: no."""
    return False


def _check(cond: bool, message: Callable[[], str] | None = None) -> None:
    """Raise RuntimeError unless a condition holds."""
    if not cond:
        raise RuntimeError(message() if message else "Expected cond to be True, but got False.")


def _check_with(
    error_type: type[Exception], cond: object, message: Callable[[], str] | None = None
) -> None:
    """Raise an error of a class unless a condition holds."""
    if not cond:
        raise error_type(message() if message else "Expected cond to be True, but got False.")


def _check_tensor_all_with(
    error_type: type[Exception], cond: fb.Tensor, message: Callable[[], str] | None = None
) -> None:
    """Raise an error of a class unless all elements are True."""
    _check_with(error_type, bool(cond.all()), message)


def _check_tensor_all(cond: fb.Tensor, message: Callable[[], str] | None = None) -> None:
    """Raise RuntimeError unless all elements are True."""
    _check_tensor_all_with(RuntimeError, cond, message)


def _debug_has_internal_overlap(self: fb.Tensor) -> int:
    """Whether elements share memory: 0 no, 1 yes, 2 hard to say."""
    sizes = sorted((step, n) for n, step in zip(self.shape, self.stride(), strict=True) if n != 1)
    if any(step == 0 for step, _ in sizes):
        return 1
    dense = 1
    for step, n in sizes:
        if step != dense:
            return 2
        dense *= n
    return 0


def _shape_as_tensor(input: fb.Tensor) -> fb.Tensor:
    """The shape as a tensor of int64."""
    return fb.tensor(list(input.shape), dtype=fb.int64)


def _softmax_backward_data(
    grad_output: fb.Tensor, output: fb.Tensor, dim: int, input_dtype: fb.dtype
) -> fb.Tensor:
    """The gradient of softmax by its result: y·(g − Σ g·y)."""
    product = grad_output * output
    return (product - output * product.sum(dim, keepdim=True)).to(input_dtype)


def get_deterministic_debug_mode() -> int:
    """0, or what `use_deterministic_algorithms` asked for: 1 to warn, 2 to raise."""
    if not fb.are_deterministic_algorithms_enabled():
        return 0
    return 1 if fb.is_deterministic_algorithms_warn_only_enabled() else 2


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Let ops without a deterministic algorithm run (0), warn (1) or raise (2).

    Raises:
        RuntimeError: it is none of these, nor "default", "warn" or "error".
        TypeError: it is neither a number nor a text.
    """
    if not isinstance(debug_mode, int | str):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    modes = {"default": 0, "warn": 1, "error": 2}
    if isinstance(debug_mode, str) and debug_mode not in modes:
        raise RuntimeError(
            "invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got "
            f"{debug_mode}"
        )
    mode = modes[debug_mode] if isinstance(debug_mode, str) else debug_mode
    if mode not in (0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {mode}")
    fb.use_deterministic_algorithms(mode > 0, warn_only=mode == 1)


def get_device_module(device: DeviceLike | None = None) -> Any:
    """The module of a type of devices, such as ``torch.cuda``; of the accelerator by default."""
    torch = importlib.import_module("torch")
    if device is None:
        device = fb.accelerator.current_accelerator() or "cpu"
    return getattr(torch, fb.device(device).type)


def sym_int(a: Any) -> int:
    """A number as an int."""
    return int(a)


def sym_float(a: Any) -> float:
    """A number as a float."""
    return float(a)


def sym_not(a: object) -> bool:
    """The opposite of a condition."""
    return not a


def sym_sum(args: Sequence[Any]) -> int:
    """The sum of numbers."""
    return sum(args)


def sym_ite(b: object, t: object, f: Any) -> Any:
    """One of two values, by a condition."""
    return t if b else f


def sym_max(*values: Any) -> Any:
    """The greatest number, a float if one of them is."""
    return _as_one(max(values), values)


def sym_min(*values: Any) -> Any:
    """The least number, a float if one of them is."""
    return _as_one(min(values), values)


def _as_one(value: Any, values: Sequence[Any]) -> Any:
    return float(value) if any(isinstance(each, float) for each in values) else value
