"""Helpers of distributions: broadcasting, probabilities and log-odds, lazy attributes."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import reduce, update_wrapper
from numbers import Number
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import flambeau as fb
from flambeau import Tensor
from flambeau.overrides import takes_as_annotated

if TYPE_CHECKING:
    from flambeau import Size
    from flambeau import device as Device
    from flambeau import dtype as DType


__all__ = [
    "broadcast_all",
    "clamp_probs",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

euler_constant = 0.57721566490153286060
"""Euler's constant: −ψ(1), the mean of the standard Gumbel distribution."""

T = TypeVar("T")
Value = TypeVar("Value")


def _is_tensor_like(value: object) -> bool:
    return isinstance(value, Tensor) or hasattr(type(value), "__torch_function__")


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """The values as tensors of one shape.

    Numbers become tensors of the dtype and device of the first tensor among the values, or of the
    default dtype if all are numbers.

    Raises:
        ValueError: a value is neither a number nor a tensor.

    >>> from flambeau.distributions.utils import broadcast_all
    >>> import flambeau as fb
    >>> broadcast_all(fb.zeros(2), 1)
    (tensor([0., 0.]), tensor([1., 1.]))
    """
    if len(values) == 2:
        one, other = values
        if type(one) is type(other) is Tensor and one.shape == other.shape:
            return one, other
    alike = [_is_tensor_like(value) for value in values]
    if not all(alike):
        if not all(a or isinstance(value, Number) for a, value in zip(alike, values, strict=True)):
            raise ValueError(
                "Input arguments must all be instances of Number, torch.Tensor or objects "
                "implementing __torch_function__."
            )
        first = next((value for value in values if isinstance(value, Tensor)), None)
        options: dict[str, Any] = (
            {"dtype": fb.get_default_dtype()}
            if first is None
            else {"dtype": first.dtype, "device": first.device}
        )
        values = tuple(
            value if a else fb.tensor(value, **options)
            for a, value in zip(alike, values, strict=True)
        )
    return fb.broadcast_tensors(*values)


def _standard_normal(shape: Size, dtype: DType, device: Device) -> Tensor:
    return fb.empty(shape, dtype=dtype, device=device).normal_()


def _whole(value: Any, function: str, argument: str) -> int:
    """A whole number, which may come as an array of one element.

    Raises:
        TypeError: it is none.
    """
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(
            f"{function}(): argument {argument!r} must be int, not {type(value).__name__}"
        ) from None


def _sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """The sum over the last `dim` dimensions."""
    return value.reshape((*value.shape[:-dim], -1)).sum(-1) if dim else value


@takes_as_annotated
def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities: the softmax over the last dimension, or, if binary, the logistic function.

    >>> from flambeau.distributions.utils import logits_to_probs
    >>> import flambeau as fb
    >>> logits_to_probs(fb.zeros(2)), logits_to_probs(fb.zeros(2), is_binary=True)
    (tensor([0.5000, 0.5000]), tensor([0.5000, 0.5000]))
    """
    return fb.sigmoid(logits) if is_binary else fb.softmax(logits, dim=-1)


@takes_as_annotated
def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities between ε and 1 − ε, with the ε of their dtype.

    >>> from flambeau.distributions.utils import clamp_probs
    >>> import flambeau as fb
    >>> clamp_probs(fb.tensor([0.0])).item()
    1.1920928955078125e-07
    """
    eps = fb.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


@takes_as_annotated
def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """log p, or, if binary, the log-odds log p − log(1 − p), of probabilities within (0, 1).

    >>> from flambeau.distributions.utils import probs_to_logits
    >>> import flambeau as fb
    >>> probs_to_logits(fb.tensor([0.5, 0.75]), is_binary=True)
    tensor([0.0000, 1.0986])
    """
    inside = clamp_probs(probs)
    return fb.log(inside) - fb.log1p(-inside) if is_binary else fb.log(inside)


class lazy_property(Generic[T, Value]):  # noqa: N801 - PyTorch's name
    """A property that is computed once, at first use, and is an attribute from then on.

    What it computes is recorded for gradients even where it is first read under `no_grad`.
    """

    def __init__(self, wrapped: Callable[[T], Value]) -> None:
        self.wrapped = wrapped
        update_wrapper(self, wrapped)  # pyright: ignore[reportArgumentType]

    def __get__(self, instance: T | None, obj_type: object = None) -> Any:
        if instance is None:
            return _ShownLazyProperty(self.wrapped)
        value = fb.enable_grad()(self.wrapped)(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


class _ShownLazyProperty(lazy_property, property):
    """What a class shows of a lazy property: tools that list properties find one."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        property.__init__(self, wrapped)


def _lower_mask(n: int, diag: int, device: Device) -> Tensor:
    order = fb.arange(n, device=device)
    return order < order.view(-1, 1) + (diag + 1)


@takes_as_annotated
def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The entries on and below a diagonal, row by row: (…, D, D) to (…, M).

    Raises:
        ValueError: there is no such diagonal.

    >>> from flambeau.distributions.utils import tril_matrix_to_vec
    >>> import flambeau as fb
    >>> tril_matrix_to_vec(fb.arange(9).view(3, 3), diag=-1)
    tensor([3, 6, 7])
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    return mat[..., _lower_mask(n, diag, mat.device)]


@takes_as_annotated
def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """The inverse of `tril_matrix_to_vec`: (…, M) to (…, D, D), with zeros above the diagonal.

    Raises:
        ValueError: no matrix has that many entries there.

    >>> from flambeau.distributions.utils import vec_to_tril_matrix
    >>> import flambeau as fb
    >>> vec_to_tril_matrix(fb.tensor([1.0, 2.0, 3.0]))
    tensor([[1., 0.],
            [2., 3.]])
    """
    # M = D(D + 1)/2 + D·diag − …, solved for D.
    odd = 1 + 2 * diag
    n = (-odd + (odd**2 + 8 * vec.shape[-1] + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    if round(n) - n > fb.finfo(vec.dtype).eps:
        raise ValueError(
            f"The size of last dimension is {vec.shape[-1]} which cannot be expressed as "
            "the lower triangular part of a square D x D matrix."
        )
    n = round(n)
    mat = vec.new_zeros((*vec.shape[:-1], n, n))
    mat[..., _lower_mask(n, diag, vec.device)] = vec
    return mat


def _one_hot(indices: Tensor, num_classes: int, like: Tensor) -> Tensor:
    """Vectors of zeros with a one at the index, of the dtype of `like`."""
    return (indices.unsqueeze(-1) == fb.arange(num_classes, device=indices.device)).to(like)


def _logsigmoid(x: Tensor) -> Tensor:
    return -fb.softplus(-x)


def _power_log(exponent: Tensor, x: Tensor) -> Tensor:
    """exponent·log x with 0·log 0 = 0; at x = 0, where it has a pole, its gradients are 0."""
    inside = x != 0
    return fb.where(inside, exponent * fb.where(inside, x, 1.0).log(), _at_pole(exponent))


def _power_log1p(exponent: Tensor, x: Tensor) -> Tensor:
    """exponent·log(1 + x), at x = −1 as `_power_log`."""
    inside = x != -1
    return fb.where(inside, exponent * fb.where(inside, x, 0.0).log1p(), _at_pole(exponent))


def _log1p_square(x: Tensor, *divisors: Tensor) -> Tensor:
    """log(1 + q²) for q = x/d₁/d₂…, where quotients or squares of what is far away overflow."""
    with fb.no_grad():
        far = reduce(fb.div, divisors, x).abs() > fb.finfo(x.dtype).max ** 0.5 / 2
    near = fb.log1p(reduce(fb.div, divisors, fb.where(far, 0.0, x)) ** 2.0)
    logs = (fb.where(far, d, 1.0).log() for d in divisors)
    return fb.where(far, 2 * reduce(fb.sub, logs, fb.where(far, x.abs(), 1.0).log()), near)


def _at_pole(exponent: Tensor) -> Tensor:
    return fb.where(exponent == 0, 0.0, exponent.detach() * -math.inf)


def _log_of_rest(log_part: Tensor) -> Tensor:
    """log(1 − exp(x)) for x ≤ 0, exact near both ends.

    Source: Mächler, "Accurately computing log(1 − exp(−|a|))" (2012).
    """
    near = log_part > -0.6931471805599453
    far = fb.log1p(-fb.exp(fb.where(near, -1.0, log_part)))
    return fb.where(near, fb.log(-fb.expm1(fb.where(near, log_part, -0.5))), far)


def _log_of_part(part: Tensor, rest: Tensor) -> Tensor:
    """The logarithm of a probability from whichever of it and 1 − it is the smaller, exact one."""
    small = part < 0.5
    return fb.where(small, fb.where(small, part, 0.5).log(), (-rest).log1p())


def _binary_cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """−(t·log σ(x) + (1 − t)·log(1 − σ(x))), element by element."""
    return fb.binary_cross_entropy_with_logits(logits, target, reduction="none")


def _implicit(value: Tensor, level: Tensor, density: Tensor) -> Tensor:
    """`value` with the gradient that keeps its level of the distribution function.

    Source: Figurnov, Mohamed and Mnih, "Implicit reparameterization gradients" (2018).
    """
    return value - ((level - level.detach()) / density.detach()).to(value.dtype)
