"""What ops are in Python: an expression, or a public function and how it is called."""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau.jit._frontend import numbers as _numbers
from flambeau.jit._frontend.annotations import Future
from flambeau.jit._frontend.source import Error
from flambeau.jit._parts import compiler
from flambeau.jit._schemas import Schema

if TYPE_CHECKING:
    import ast

    from flambeau._tensor.tensor import Tensor
    from flambeau._types.dtype import dtype as DType
    from flambeau._types.hints import DeviceLike
    from flambeau.onnx._export.cells import Cell


# Expressions of the inputs; `_` in front of a name is that of a function below.
TEMPLATES: dict[str, str] = {
    "aten::floordiv": "_floored({0}, {1})",
    "aten::floordiv.int": "({0} // {1})",
    "aten::remainder.int": "({0} % {1})",
    "aten::remainder": "_modulo({0}, {1})",
    "aten::add_.t": "_joined({0}, {1})",
    "aten::mul_.t": "_repeated({0}, {1})",
    "aten::__and__": "({0} & {1})",
    "aten::__or__": "({0} | {1})",
    "aten::__xor__": "({0} ^ {1})",
    "aten::__lshift__": "({0} << {1})",
    "aten::__rshift__": "({0} >> {1})",
    "aten::__not__": "(not {0})",
    "aten::__is__": "({0} is {1})",
    "aten::__isnot__": "({0} is not {1})",
    "aten::__contains__": "({1} in {0})",
    "aten::__range_length": "_range_length({0}, {1}, {2})",
    "aten::__derive_index": "({1} + {0} * {2})",
    "aten::__getitem__": "{0}[{1}]",
    "aten::len": "len({0})",
    "aten::Int": "int({0})",
    "aten::Float": "float({0})",
    "aten::Complex": "complex({args})",
    "aten::Bool": "bool({0})",
    "aten::str": "_text({0})",
    "aten::IntImplicit": "_implicit(int, {0})",
    "aten::FloatImplicit": "_implicit(float, {0})",
    "aten::ComplexImplicit": "_implicit(complex, {0})",
    "aten::ScalarImplicit": "{0}.item()",
    "prim::NumToTensor": "_tensor({0})",
    "aten::format": "_format({args})",
    "aten::percentFormat": "_percent({args})",
    "aten::append": "{0}.append({1})",
    "aten::extend": "{0}.extend({1})",
    "aten::insert": "{0}.insert({1}, {2})",
    "aten::remove": "_remove({0}, {1})",
    "aten::reverse": "{0}.reverse()",
    "aten::clear": "{0}.clear()",
    "aten::list": "list({0})",
    "aten::dict": "dict({args})",
    "aten::_set_item": "_set_item({0}, {1}, {2})",
    "aten::Delete": "_delete({0}, {1})",
    "aten::keys": "list({0}.keys())",
    "aten::values": "list({0}.values())",
    "aten::items": "list({0}.items())",
    "aten::setdefault": "{0}.setdefault({1}, {2})",
    "aten::update": "{0}.update({1})",
    "aten::popitem": "{0}.popitem()",
    "aten::sorted": "_sorted({0})",
    "aten::size": "list({0}.shape)",
    "aten::size.int": "{0}.size({1})",
    "aten::dim": "{0}.dim()",
    "aten::numel": "{0}.numel()",
    "aten::stride": "list({0}.stride())",
    "aten::stride.int": "{0}.stride({1})",
    "aten::item": "{0}.item()",
    "aten::is_floating_point": "{0}.is_floating_point()",
    "aten::is_complex": "{0}.is_complex()",
    "aten::numpy_T": "{0}.T",
    "aten::matrix_H": "{0}.H",
    "aten::mT": "{0}.mT",
    "aten::mH": "{0}.mH",
    "aten::real": "{0}.real",
    "aten::imag": "{0}.imag",
    "aten::is_leaf": "{0}.is_leaf",
    "aten::select.int": "_select({0}, {1}, {2})",
    "aten::select.t": "{0}[{1}]",
    "aten::slice.Tensor": "_slice({0}, {1}, {2}, {3}, {4})",
    "aten::slice.t": "{0}[{1}:{2}:{3}]",
    "aten::slice.str": "{0}[{1}:{2}:{3}]",
    "aten::index.Tensor": "{0}[_indices({1})]",
    "aten::index": "{0}[_indices({1})]",
    "aten::index_put_": "_index_put({0}, {1}, {2}, {3})",
    "aten::tensor": "_make_tensor({0}, {1}, {2}, {3})",
    "aten::_unwrap_optional": "_unwrap({0})",
    "aten::wait": "{0}.wait()",
    "aten::device": "_device({0})",
    "aten::device.with_index": "_device({0}, {1})",
    "aten::warn": "_warn({0}, {1})",
    "aten::divmod": "divmod({0}, {1})",
    "aten::round.int": "_round({0})",
    "aten::round.float": "_round({0})",
    "aten::ord": "ord({0})",
    "aten::chr": "chr({0})",
    "aten::hex": "hex({0})",
    "aten::oct": "oct({0})",
    "aten::bin": "bin({0})",
    "aten::hash": "hash({0})",
    "aten::is_grad_enabled": "_grad_enabled()",
    "aten::set_grad_enabled": "_set_grad({0})",
    "aten::to.prim_other": "{0}",
    "aten::Scalar": "{0}",
    "aten::to.device": "{0}.to({1}, {dtype:2}, {3}, {4})",
    "aten::to.dtype": "{0}.to({dtype:1}, {2}, {3})",
    "aten::to.other": "{0}.to({1}, {2}, {3})",
    "aten::to.dtype_layout": "{0}.to(dtype={dtype:1}, device={3}, non_blocking={5}, copy={6})",
    "aten::to.prim_Device": "{0}.to(device={1}, dtype={dtype:2}, non_blocking={3}, copy={4})",
    "aten::to.prim_dtype": "{0}.to(dtype={dtype:1}, non_blocking={2}, copy={3})",
    "aten::dropout": "_F.dropout({0}, {1}, {2})",
    "aten::dropout_": "_F.dropout({0}, {1}, {2}, True)",
    "aten::append.t": "{0}.append({1})",
    "aten::cat": "_cat({0}, {1})",
    "aten::backward": "{0}.backward({1}, {2}, {3})",
    "aten::backward.TensorList": "_fb.autograd.backward({0}, {1}, {2}, {3})",
    "aten::grad": "[*_fb.autograd.grad({0}, {1}, {2}, {3}, {4}, allow_unused={5})]",
    "aten::_shape_as_tensor": "_tensor(list({0}.shape))",
    "aten::_indices": "{0}._indices()",
    "aten::_values": "{0}._values()",
    "aten::_nnz": "{0}._nnz()",
    "prim::dtype": "_number({0}.dtype)",
    "prim::layout": "_number({0}.layout)",
    "prim::device": "{0}.device",
    "prim::grad": "{0}.grad",
    "prim::data": "{0}.data",
    "prim::name": "getattr({0}, 'name', None)",
    "prim::type": "{0}.type",
    "prim::index": "{0}.index",
    "prim::EnumName": "{0}.name",
    "prim::EnumValue": "{0}.value",
    "prim::unchecked_unwrap_optional": "{0}",
    "prim::StringIndex": "{0}[{1}]",
    "prim::rangelist": "list(range({0}))",
    "prim::id": "id({0})",
    "prim::requires_grad": "{0}.requires_grad",
    "prim::itemsize": "{0}.itemsize",
    "prim::nbytes": "{0}.nbytes",
    "aten::batch_norm": "_batch_norm({0}, {1}, {2}, {3}, {4}, {5}, {6}, {7})",
    "aten::layer_norm": "_fb.layer_norm({0}, {1}, {2}, {3}, {4})",
    "aten::group_norm": "_fb.group_norm({0}, {1}, {2}, {3}, {4})",
    "aten::instance_norm": "_F.instance_norm({0}, {3}, {4}, {1}, {2}, {5}, {6}, {7})",
    "aten::embedding": "_F.embedding({1}, {0}, {2} if {2} >= 0 else None)",
    "aten::nll_loss_nd": "_F.nll_loss({0}, {1}, {2}, None, {4}, None, _REDUCTIONS[{3}])",
    "aten::cross_entropy_loss": (
        "_F.cross_entropy({0}, {1}, {2}, None, {4}, None, _REDUCTIONS[{3}], {5})"
    ),
    "aten::l1_loss": "_F.l1_loss({0}, {1}, reduction=_REDUCTIONS[{2}])",
    "aten::mse_loss": "_F.mse_loss({0}, {1}, reduction=_REDUCTIONS[{2}])",
    "aten::smooth_l1_loss": "_F.smooth_l1_loss({0}, {1}, None, None, _REDUCTIONS[{2}], {3})",
    "aten::huber_loss": "_F.huber_loss({0}, {1}, _REDUCTIONS[{2}], {3})",
    "aten::soft_margin_loss": "_F.soft_margin_loss({0}, {1}, reduction=_REDUCTIONS[{2}])",
    "aten::binary_cross_entropy": (
        "_F.binary_cross_entropy({0}, {1}, {2}, reduction=_REDUCTIONS[{3}])"
    ),
    "aten::multilabel_margin_loss": (
        "_F.multilabel_margin_loss({0}, {1}, reduction=_REDUCTIONS[{2}])"
    ),
    "aten::multi_margin_loss": (
        "_F.multi_margin_loss({0}, {1}, {2}, {3}, {4}, reduction=_REDUCTIONS[{5}])"
    ),
    "aten::nll_loss2d": "_F.nll_loss({0}, {1}, {2}, None, {4}, None, _REDUCTIONS[{3}])",
    "aten::_native_multi_head_attention": "_native.attention({args})",
    "aten::_transformer_encoder_layer_fwd": "_native.encoder_layer({args})",
    "aten::max_unpool2d": "_native.unpooled({0}, {1}, {2})",
    "aten::max_unpool3d": "_native.unpooled({0}, {1}, {2})",
    "aten::_convolution": "_native.convolution({args})",
    "aten::_convolution_mode": "_native.convolution_mode({args})",
    "aten::norm_except_dim": "_native.norm_except_dim({0}, {1}, {2})",
    "aten::_weight_norm": "({0} * ({1} / _native.norm_except_dim({0}, 2, {2})))",
    "aten::_unique2": "_native.unique({0}, {1}, {2}, {3})",
    "aten::unique_dim": "_native.unique({0}, {2}, {3}, {4}, {1})",
    "aten::unique_consecutive": "_native.unique_consecutive({0}, {1}, {2}, {3})",
    "aten::nonzero_numpy": "list({0}.nonzero(as_tuple=True))",
    "aten::stft": "_fb.stft({0}, {1}, {2}, {3}, {4}, False, 'reflect', {5}, {6}, {7})",
    "aten::stft.center": "_fb.stft({0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9})",
    "aten::tensordot": "_fb.tensordot({0}, {1}, ({2}, {3}))",
    "aten::pad_sequence": "_native.pad_sequence({args})",
    "aten::unsafe_chunk": "[_t.clone() for _t in {0}.chunk({1}, {2})]",
    "aten::unsafe_split": "[_t.clone() for _t in {0}.split({1}, {2})]",
    "aten::unsafe_split_with_sizes": "[_t.clone() for _t in {0}.split({1}, {2})]",
    "aten::alias": "{0}.view_as({0})",
    "aten::lift": "{0}",
    "aten::lift_fresh": "{0}",
    "aten::zero": "_fb.zeros_like({0})",
    "aten::gelu_": "{0}.copy_(_F.gelu({0}, {1}))",
    "aten::_softmax": "{0}.softmax({1})",
    "aten::_log_softmax": "{0}.log_softmax({1})",
    "aten::_unsafe_view": "{0}.view({1})",
    "aten::_pin_memory": "{0}.pin_memory()",
    "aten::is_autocast_enabled": "_fb.is_autocast_enabled('cuda')",
    "aten::is_autocast_cpu_enabled": "_fb.is_autocast_enabled('cpu')",
    "aten::_nested_tensor_from_mask_left_aligned": "False",
    "aten::one_hot": "_F.one_hot({0}, {1})",
    "aten::pad": "_F.pad({0}, {1}, {2}, {3})",
    "aten::sum.bool": "sum({0})",
    "aten::sum.int": "sum({0})",
    "aten::sum.float": "sum({0})",
    "aten::any.int": "any({0})",
    "aten::any.float": "any({0})",
    "aten::any.bool": "any({0})",
    "aten::any.str": "any({0})",
    "aten::all.int": "all({0})",
    "aten::all.float": "all({0})",
    "aten::all.bool": "all({0})",
    "aten::copy_": "{0}.copy_({1})",
    "aten::silu": "_F.silu({0})",
    "aten::mish": "_F.mish({0})",
    "aten::gelu": "_F.gelu({0}, {1})",
    "aten::elu": "_F.elu({0}, {1}) if {2} == 1 and {3} == 1 else _not_known('aten::elu')",
    "aten::log_sigmoid": "_F.logsigmoid({0})",
    "aten::upsample_nearest1d.vec": "_resample({0}, {1}, {2}, 'nearest')",
    "aten::upsample_nearest2d.vec": "_resample({0}, {1}, {2}, 'nearest')",
    "aten::upsample_nearest3d.vec": "_resample({0}, {1}, {2}, 'nearest')",
    "aten::_upsample_nearest_exact1d.vec": "_resample({0}, {1}, {2}, 'nearest-exact')",
    "aten::_upsample_nearest_exact2d.vec": "_resample({0}, {1}, {2}, 'nearest-exact')",
    "aten::_upsample_nearest_exact3d.vec": "_resample({0}, {1}, {2}, 'nearest-exact')",
    "aten::_upsample_bilinear2d_aa.vec": "_resample({0}, {1}, {3}, 'bilinear', {2}, True)",
    "aten::_upsample_bicubic2d_aa.vec": "_resample({0}, {1}, {3}, 'bicubic', {2}, True)",
    "aten::upsample_linear1d.vec": "_resample({0}, {1}, {3}, 'linear', {2})",
    "aten::upsample_bilinear2d.vec": "_resample({0}, {1}, {3}, 'bilinear', {2})",
    "aten::upsample_bicubic2d.vec": "_resample({0}, {1}, {3}, 'bicubic', {2})",
    "aten::upsample_trilinear3d.vec": "_resample({0}, {1}, {3}, 'trilinear', {2})",
    "aten::grid_sampler": "_F.grid_sample({0}, {1}, _GRID[{2}], _PADDING[{3}], {4})",
    "aten::affine_grid_generator": "_F.affine_grid({0}, {1}, {2})",
    "aten::__interpolate": "_F.interpolate({args})",
    "aten::broadcast_tensors": "list(_fb.broadcast_tensors(*{0}))",
    "aten::meshgrid": "list(_fb.meshgrid(*{0}))",
    "aten::meshgrid.indexing": "list(_fb.meshgrid(*{0}, indexing={1}))",
    "aten::cartesian_prod": "_fb.cartesian_prod(*{0})",
    "aten::block_diag": "_fb.block_diag(*{0})",
    "aten::chain_matmul": "_fb.chain_matmul(*{0})",
    "aten::atleast_1d.Sequence": "list(_fb.atleast_1d(*{0}))",
    "aten::atleast_2d.Sequence": "list(_fb.atleast_2d(*{0}))",
    "aten::atleast_3d.Sequence": "list(_fb.atleast_3d(*{0}))",
    "aten::im2col": "_F.unfold({0}, {1}, {2}, {3}, {4})",
    "aten::col2im": "_F.fold({0}, {1}, {2}, {3}, {4}, {5})",
}
for _name, _sign in (("add", "+"), ("sub", "-"), ("mul", "*")):
    TEMPLATES[f"aten::{_name}"] = f"({{0}} {_sign} {{1}})"
for _name, _sign in (
    ("eq", "=="),
    ("ne", "!="),
    ("lt", "<"),
    ("le", "<="),
    ("gt", ">"),
    ("ge", ">="),
):
    TEMPLATES[f"aten::{_name}"] = f"({{0}} {_sign} {{1}})"
TEMPLATES["aten::pow"] = "_power({0}, {1})"
TEMPLATES["aten::pow.int"] = "float(_power({0}, {1}))"
TEMPLATES["aten::pow.int_to_int"] = "({0} ** {1})"
TEMPLATES["aten::add.Tensor"] = TEMPLATES["aten::add.Scalar"] = "_add({0}, {1}, {2})"
TEMPLATES["aten::sub.Tensor"] = TEMPLATES["aten::sub.Scalar"] = "_sub({0}, {1}, {2})"
for _name in ("silu", "mish", "hardswish", "hardsigmoid", "relu6"):
    TEMPLATES[f"aten::{_name}_"] = f"_F.{_name}({{0}}, True)"
for _dims in (1, 2, 3):
    TEMPLATES[f"aten::reflection_pad{_dims}d"] = "_F.pad({0}, {1}, 'reflect')"
    TEMPLATES[f"aten::replication_pad{_dims}d"] = "_F.pad({0}, {1}, 'replicate')"
for _mode, _dims in (
    ("linear", 1),
    ("bilinear", 2),
    ("bicubic", 2),
    ("trilinear", 3),
    ("nearest", 1),
    ("nearest", 2),
    ("nearest", 3),
):
    _rest = 2 if _mode == "nearest" else 3  # where the scales begin: the others have corners
    _scales = "".join(f"{{{_rest + each}}}, " for each in range(_dims))
    TEMPLATES[f"aten::upsample_{_mode}{_dims}d"] = (
        f"_resample_to({{0}}, {{1}}, ({_scales}), '{_mode}'{', {2}' * (_rest - 2)})"
    )
for _name in ("Byte", "Char", "Double", "Half", "Int", "Long", "Short"):
    TEMPLATES[f"aten::_cast_{_name}"] = f"{{0}}.{_name.lower()}()"
for _name in ("div", "truediv"):
    TEMPLATES[f"aten::{_name}"] = "_divided({0}, {1})"
    TEMPLATES[f"aten::{_name}.complex"] = "({0} / {1})"
TEMPLATES["aten::div.Tensor"] = TEMPLATES["aten::div.Scalar"] = "({0} / {1})"
for _name in (
    "upper lower strip lstrip rstrip replace join isdigit "
    "isalpha isspace isupper islower title capitalize swapcase center ljust rjust zfill splitlines "
    "partition rpartition expandtabs casefold isidentifier isalnum isdecimal isnumeric istitle "
    "isprintable rsplit"
).split():
    TEMPLATES[f"aten::{_name}"] = f"_strings.{_name}({{args}})"
TEMPLATES["aten::split.str"] = "_strings.split({args})"
TEMPLATES["aten::index.list_int"] = "{0}.index({1})"
for _name in ("startswith", "endswith", "find", "rfind", "rindex"):
    TEMPLATES[f"aten::{_name}"] = f"_within('{_name}', {{args}})"
for _name in ("count", "index"):
    TEMPLATES[f"aten::{_name}.str"] = f"_within('{_name}', {{args}})"
for _kind in ("is_cuda", "is_cpu", "is_xpu", "is_mps", "is_sparse", "is_meta", "is_quantized"):
    TEMPLATES[f"prim::{_kind}"] = f"getattr({{0}}, {_kind!r}, False)"
for _kind in ("is_nested", "is_xla", "is_mkldnn", "is_sparse_csr"):
    TEMPLATES[f"prim::{_kind}"] = f"getattr({{0}}, {_kind!r}, False)"
_MATH = (
    "floor ceil log log10 log2 log1p exp expm1 sqrt sin cos tan asin acos atan atan2 sinh cosh "
    "tanh asinh acosh atanh fmod factorial gcd gamma lgamma erf erfc fabs copysign ldexp frexp "
    "modf degrees radians isfinite isnan isinf"
).split()

REDUCTIONS = {0: "none", 1: "mean", 2: "sum"}


def _range_length(start: int, stop: int, step: int) -> int:
    if step == 0:
        raise RuntimeError("range() arg 3 must not be zero")
    return len(range(start, stop, step))


def _implicit(kind: type, value: Any) -> Any:
    if value.requires_grad:
        raise RuntimeError("Cannot input a tensor that requires grad as a scalar argument")
    if value.dim():
        raise RuntimeError("Cannot input a tensor of dimension other than 0 as a scalar argument")
    if kind is int and (value.is_floating_point() or value.is_complex()):
        raise RuntimeError("Cannot input a tensor that is no integer as an integer argument")
    return kind(value.item())


def _text(value: object) -> str:
    return str(value)


def _format(text: str, *parts: object) -> str:
    """The text with values in the place of each ``{}``; other braces are what they are."""
    first, *pieces = text.split("{}")
    if len(pieces) > len(parts):
        raise RuntimeError(f"Too few arguments for format string: {text}")
    return first + "".join(str(p) + piece for p, piece in zip(parts, pieces, strict=False))


def _percent(text: str, *parts: object) -> str:
    return text % parts


def _divided(left: float, right: float) -> float:
    """A quotient of numbers, which is infinite or no number where Python raises."""
    if right:
        return left / right
    if not left or left != left:
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def _floored(left: float, right: float) -> float:
    """The floor of the quotient of two numbers."""
    if isinstance(left, int) and isinstance(right, int):
        return left // right
    quotient = _divided(left, right)
    if not math.isfinite(quotient):
        return quotient
    return math.copysign(float(math.floor(quotient)), quotient)


def _modulo(left: float, right: float) -> float:
    """A remainder with the sign of the divisor; no number where Python raises."""
    if isinstance(left, int) and isinstance(right, int):
        return left % right
    try:
        return math.fmod(right + math.fmod(left, right), right)
    except ValueError:
        return math.nan


def _power(left: Any, right: Any) -> Any:
    """A power of numbers: infinite where it is too large, no number where it is complex."""
    try:
        made = left**right
    except OverflowError:
        odd = left < 0 and right % 2 == 1
        return -math.inf if odd else math.inf
    whole = not isinstance(left, complex) and not isinstance(right, complex)
    return math.nan if whole and isinstance(made, complex) else made


def _within(method: str, text: str, part: str, start: int = 0, end: int = -1) -> Any:
    """A method of strings about a stretch of one; -1 is its end, as signatures have it."""
    return getattr(text, method)(part, start, end if end >= 0 else end + len(text) + 1)


def _remove(values: list[Any], value: object) -> None:
    try:
        values.remove(value)
    except ValueError:
        raise RuntimeError("list.remove(x): x not in list") from None


def _set_item(of: Any, at: ast.AST | None, value: object) -> Tensor:
    of[at] = value
    return of


def _appended(values: list[Any], value: object) -> list[Any]:
    values.append(value)
    return values


def _delete(of: Any, at: ast.AST | None) -> None:
    del of[at]


def _sorted(values: list[Any]) -> list[Any]:
    return sorted(values)


def _select(of: Tensor, dim: int, at: int) -> Tensor:
    return of.select(dim, at)


def _slice(of: Tensor, dim: int, start: int | None, end: int | None, step: int) -> Tensor:
    if dim == 0:
        return of[start:end:step]
    place = dim if dim >= 0 else of.dim() + dim
    return of[(slice(None),) * place + (slice(start, end, step),)]


def _indices(indices: list[Any]) -> tuple[Any, ...]:
    return tuple(slice(None) if each is None else each for each in indices)


def _index_put(of: Tensor, indices: list[Any], values: Tensor, accumulate: bool) -> Tensor:
    if accumulate:
        return of.index_put_(_indices(indices), values, True)
    of[_indices(indices)] = values
    return of


def _tensor(value: object) -> Tensor:
    return fb.tensor(value)


def _make_tensor(data: object, dtype: DType, device: DeviceLike, requires_grad: bool) -> Tensor:
    kind = _numbers.object_of("ScalarType", dtype)
    return fb.tensor(data, dtype=kind, device=device, requires_grad=requires_grad)


def _unwrap(value: Any) -> Tensor | Cell:
    if value is None:
        raise RuntimeError("Unwrapping null optional")
    return value


def _device(kind: Any, index: int | None = None) -> Any:
    return fb.device(kind) if index is None else fb.device(kind, index)


def _warn(text: str, stacklevel: int = 2) -> None:
    import warnings

    warnings.warn(text, UserWarning, stacklevel=stacklevel + 1)


def _round(value: float) -> float:
    return float(round(value))


def _add(left: Any, right: Any, alpha: Any) -> Tensor:
    return left + right if alpha == 1 else fb.add(left, right, alpha=alpha)


def _sub(left: Any, right: Any, alpha: Any) -> Tensor:
    return left - right if alpha == 1 else fb.sub(left, right, alpha=alpha)


def _not_known(name: str) -> Tensor:
    raise NotImplementedError(f"{name} is not known with these arguments")


def _batch_norm(
    input: Tensor,
    weight: Tensor,
    bias: Tensor,
    mean: Tensor,
    var: Tensor,
    training: bool,
    momentum: float,
    eps: float,
) -> Tensor:
    return fb.nn.functional.batch_norm(input, mean, var, weight, bias, training, momentum, eps)


def _resample(
    input: Tensor,
    size: list[int] | None,
    factors: list[float] | None,
    mode: str,
    corners: bool | None = None,
    smooth: bool = False,
) -> Tensor:
    given = {} if corners is None else {"align_corners": corners}
    if smooth:
        given["antialias"] = True
    return fb.nn.functional.interpolate(input, size, factors, mode, **given)


def _resample_to(
    input: Tensor,
    size: list[int],
    scales: tuple[float | None, ...],
    mode: str,
    corners: bool | None = None,
) -> Tensor:
    """As `_resample`, where a size is given and may be by scales, which then say what lies where.

    Raises:
        NotImplementedError: the size is another than the scales make.
    """
    factors = [by for by in scales if by is not None]
    if not factors:
        return _resample(input, size, None, mode, corners)
    if len(factors) < len(scales):
        raise NotImplementedError(f"upsample_{mode} with a scale for some dimensions only")
    made = [math.floor(n * by) for n, by in zip(input.shape[2:], factors, strict=True)]
    if made != [*size]:
        raise NotImplementedError(f"upsample_{mode} to {size}, where its scales make {made}")
    return _resample(input, None, factors, mode, corners)


def _raised(text: str, cls: str | None) -> Error:
    """What a `raise` in a program raises."""
    shown = f"{cls}: {text}" if cls else text
    return Error(
        "The following operation failed in the TorchScript interpreter.\n"
        f"Traceback of TorchScript (most recent call last):\nRuntimeError: {text}\n{shown}"
        if not cls
        else "The following operation failed in the TorchScript interpreter.\n"
        f"Traceback of TorchScript (most recent call last):\n{shown}"
    )


def _to_list(value: Any, depth: int, kind: type) -> Tensor:
    if value.dim() != depth:
        raise RuntimeError(
            f"Output annotation list dimension and runtime tensor dimension must match for "
            f"tolist(): {depth} and {value.dim()}"
        )
    made = value.tolist()
    flat = [made] if depth == 0 else made
    while depth > 1:
        flat = [each for part in flat for each in part]
        depth -= 1
    if any(type(each) is not kind for each in flat):
        raise RuntimeError(
            "Output annotation element type and runtime tensor element type must match for "
            f"tolist(): {kind.__name__} and {value.dtype}"
        )
    return made


def environment() -> dict[str, Any]:
    """The names that generated functions read."""
    functional = getattr(fb, "nn", None)
    return {
        "_fb": fb,
        "_F": functional.functional if functional is not None else None,
        "_range_length": _range_length,
        "_implicit": _implicit,
        "_text": _text,
        "_format": _format,
        "_percent": _percent,
        "_divided": _divided,
        "_floored": _floored,
        "_modulo": _modulo,
        "_power": _power,
        "_joined": operator.iadd,
        "_repeated": operator.imul,
        "_within": _within,
        "_remove": _remove,
        "_set_item": _set_item,
        "_delete": _delete,
        "_appended": _appended,
        "_sorted": _sorted,
        "_select": _select,
        "_slice": _slice,
        "_indices": _indices,
        "_index_put": _index_put,
        "_tensor": _tensor,
        "_make_tensor": _make_tensor,
        "_unwrap": _unwrap,
        "_device": _device,
        "_warn": _warn,
        "_round": _round,
        "_add": _add,
        "_sub": _sub,
        "_not_known": _not_known,
        "_batch_norm": _batch_norm,
        "_resample": _resample,
        "_resample_to": _resample_to,
        "_cat": fb.cat,
        "_number": _numbers.number_of,
        "_object": _numbers.object_of,
        "_grad_enabled": fb.is_grad_enabled,
        "_set_grad": fb.set_grad_enabled,
        "_raised": _raised,
        "_to_list": _to_list,
        "_Future": Future,
        "_strings": str,
        "_native": compiler.native,
        "_REDUCTIONS": REDUCTIONS,
        "_GRID": {0: "bilinear", 1: "nearest", 2: "bicubic"},
        "_PADDING": {0: "zeros", 1: "border", 2: "reflection"},
        "_operator": operator,
        "_inf": math.inf,
        "_nan": math.nan,
    }


@cache
def function_of(schema: Schema) -> Callable[..., Any] | None:
    """The public function that an op is, or None."""
    space, _, base = schema.name.partition("::")
    numbers = schema.arguments and all(
        a.type.kind in ("int", "float", "number", "complex", "bool") for a in schema.arguments
    )
    if numbers and base in _MATH:
        return _float_power if base == "pow" else getattr(math, base)
    if space == "prim" or numbers:
        found = {"abs": abs, "max": max, "min": min, "neg": operator.neg}.get(base)
        if found is not None:
            return _for_lists(found) if len(schema.arguments) > 1 else found
    if schema.arguments and schema.arguments[0].type.kind in ("List", "str", "Dict"):
        first = schema.arguments[0].type.kind
        kind = {"List": list, "str": str, "Dict": dict}[first]
        if (method := getattr(kind, base, None)) is not None and base not in ("split",):
            if first != "List" or schema.arguments[0].name in ("self", "l"):
                return method
        if base in ("max", "min"):
            return {"max": max, "min": min}[base]
    for prefix, module in (("linalg_", "linalg"), ("fft_", "fft"), ("special_", "special")):
        if base.startswith(prefix):
            found = getattr(getattr(fb, module), base.removeprefix(prefix), None)
            if found is not None:
                return found
    found = getattr(fb, base, None)
    if callable(found) and not isinstance(found, type):
        return found
    found = getattr(fb.Tensor, base, None)
    if callable(found):
        return found
    functional = environment()["_F"]
    found = getattr(functional, base, None)
    return found if callable(found) else None


def _float_power(left: float, right: float) -> float:
    return left**right


def _for_lists(found: Callable[..., Any]) -> Callable[..., Any]:
    return found


@cache
def parameters_of(function: Callable[..., Any]) -> tuple[int, frozenset[str], bool] | None:
    """How many arguments a function takes by position, and which by name; None if unknown."""
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    positional = [p for p in found if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    variadic = any(p.kind is p.VAR_POSITIONAL for p in found)
    named = frozenset(p.name for p in found if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD))
    return (10**6 if variadic else len(positional)), named, variadic
