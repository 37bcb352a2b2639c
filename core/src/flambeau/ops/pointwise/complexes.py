"""Complex numbers: their parts, their conjugates, and views between pairs of reals and complex.

Gradients inside of the backward pass are plain transposes: of a real L, the number w with
dL = Re(w dz), the conjugate of what PyTorch calls the gradient.  For functions that have a complex
derivative the formula is then that of real numbers; those of this file have none, or are real.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from flambeau._dispatch.arguments import broadcast_shapes, need_tensor
from flambeau._dispatch.dispatch import cast, common, result_type
from flambeau._memory.views import geometry_of, make_view
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._writes.out import deliver
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import OPS, Op, composite
from flambeau.ops.pointwise.elementwise import replaced
from flambeau.ops.shapes.movement import stack

if TYPE_CHECKING:
    from collections.abc import Callable


@composite(out=None, title="RealBackward0")
def _real(self: Tensor) -> Tensor:
    return self.clone() if not self.dtype.is_complex else cast(self, self.dtype.to_real())


@_real.gradient
def _(F, g, self_dtype):
    return F.cast(g, self_dtype)


@composite(out=None, title="ImagBackward0")
def _imag(self: Tensor) -> Tensor:
    if not self.dtype.is_complex:
        return OPS["sign"](self) * 0  # with the history of a constant
    return cast(self * -1j, self.dtype.to_real())


@_imag.gradient
def _(F, g, self_dtype):
    if not self_dtype.is_complex:
        return F.zeros(g.shape, g)
    w = F.cast(g, self_dtype)  # d Im(z) = Re(-i dz)
    return F.mul(w, F.scalar(-1j, w))


@composite(title="ConjBackward0")
def _conj(self: Tensor) -> Tensor:
    return _complex(_real(self), -_imag(self)) if self.dtype.is_complex else self.clone()


@_conj.gradient
def _(F, g):
    return F.conj(g)


@composite(out=None, title="ComplexBackward0")
def _complex(real: Tensor, imag: Tensor) -> Tensor:
    target = real.dtype.to_complex()
    return cast(real, target) + cast(imag, target) * 1j


@_complex.gradient("real")
def _(F, g, real_dtype):
    return F.cast(g, real_dtype)


@_complex.gradient("imag")
def _(F, g):  # Re(w i dy) = -Im(w) dy
    return F.neg(F.imag(g))


class RetypingView(Op):
    """A canonical op whose result is a view of another dtype; a copy without strided memory."""

    def _run(self, *args: Any) -> Any:
        x = args[0]
        be = x._be
        if not be.strided or self.name not in be.kernels or not self.aliases(x):
            return super()._run(*args)
        native = getattr(be, self.name)(x._a)
        t = make_view(x, self.name, (), native, self.title.removesuffix("Backward0"))
        t.dtype = be.dtype_of(t._a)
        return t

    def aliases(self, x: Tensor) -> bool:
        """Whether the memory of `x` can be read as the other dtype."""
        if self.name == "view_as_real":
            return x.dtype.is_complex
        return x.dtype in (D.float32, D.float64) and x.numel() > 0 and _unpaired(x) is None


def _retyping_view(body: Callable[..., Any]) -> RetypingView:
    title = "".join(word.capitalize() for word in body.__name__.split("_")) + "Backward0"
    return RetypingView(body, "composite", out=None, title=title)


@_retyping_view
def _view_as_real(self: Tensor) -> Tensor:
    return _stack(_real(self), _imag(self))


@_retyping_view
def _view_as_complex(self: Tensor) -> Tensor:
    return _complex(self[..., 0], self[..., 1])


def _stack(*parts: Tensor) -> Tensor:
    return stack(parts, -1)


@_view_as_real.gradient
def _(F, g, self_dtype):  # Re(w dz) = g0 dx + g1 dy for w = g0 - i g1
    return F.cast(F.conj(F.view_as_complex(g)), self_dtype)


@_view_as_complex.gradient
def _(F, g):
    return F.view_as_real(F.conj(g))


@composite(title="SgnBackward0")
def _sgn(self: Tensor) -> Tensor:
    if not self.dtype.is_complex:
        return OPS["sign"](self)
    size = self.abs()
    return self / replaced(size, size == 0, 1)


@_sgn.gradient
def _(F, g, self):
    if not F.is_complex(self):
        return F.zeros(g.shape, g)
    # d(z/|z|) = (dz - s Re(conj(s) dz)) / |z|; at zero the gradient is taken as zero.
    s = F.sgn(self)
    size = F.cast_like(F.abs(self), g)
    zero = F.scalar(0, size)
    at_zero = F.eq(size, zero)
    along = F.mul(F.cast_like(F.real(F.mul(g, s)), g), F.conj(s))
    across = F.div(F.sub(g, along), F.where(at_zero, F.scalar(1, size), size))
    return F.where(at_zero, F.scalar(0, g), across)


@composite(out=None, promotes="float", title="AngleBackward0")
def _angle(self: Tensor) -> Tensor:
    if self.dtype.is_complex:
        return OPS["atan2"](_imag(self), _real(self))
    found = replaced(cast(self < 0, self.dtype) * math.pi, self != self, math.nan)
    return found + OPS["sign"](self) * 0


@_angle.gradient
def _(F, g, self):
    if not F.is_complex(self):
        return F.zeros(g.shape, g)
    # d Im(log z) = Re(-i dz / z); at zero the gradient is taken as zero.
    zero = F.scalar(0, self)
    at_zero = F.eq(self, zero)
    w = F.div(F.cast_like(g, self), F.where(at_zero, F.scalar(1, self), self))
    return F.where(at_zero, zero, F.mul(w, F.scalar(-1j, w)))


@public(method=False)
def view_as_real(input: Tensor) -> Tensor:
    """The real and imaginary parts in a new last dimension of size 2, over the same memory.

    On devices without strided memory the result is a copy.

    Raises:
        RuntimeError: the tensor is not complex.

    >>> import flambeau as fb
    >>> fb.view_as_real(fb.tensor([1 + 2j, 3 - 4j]))
    tensor([[ 1.,  2.],
            [ 3., -4.]])
    """
    x = need_tensor(input, "view_as_real", "input")
    if not x.dtype.is_complex:
        raise RuntimeError(f"view_as_real is only supported for complex tensors, but got {x.dtype}")
    return _view_as_real.run(x)


@public(method=False)
def view_as_complex(input: Tensor) -> Tensor:
    """Pairs of numbers in the last dimension as complex numbers, over the same memory.

    On devices without strided memory the result is a copy.

    Raises:
        RuntimeError: the last dimension is not of size 2, or its pairs are no neighbours in memory,
            or the dtype is neither float32 nor float64.

    >>> import flambeau as fb
    >>> fb.view_as_complex(fb.tensor([[1.0, 2.0], [3.0, -4.0]]))
    tensor([1.+2.j, 3.-4.j])
    """
    x = need_tensor(input, "view_as_complex", "input")
    if x.dtype not in (D.float32, D.float64):
        raise RuntimeError(
            "view_as_complex is only supported for floating point tensors that have a complex "
            f"counterpart (float32, float64), but got {x.dtype}"
        )
    if not x.dim():
        raise RuntimeError("Input tensor must have one or more dimensions")
    if x._a.shape[-1] != 2:
        raise RuntimeError(
            f"Tensor must have a last dimension of size 2, got shape {list(x._a.shape)}"
        )
    if x.numel() and (reason := _unpaired(x)):
        raise RuntimeError(f"Tensor must have a {reason}; use clone()")
    return _view_as_complex.run(x)


def _unpaired(x: Tensor) -> str | None:
    """What memory would need for the last dimension of `x` to be complex numbers in it."""
    shape, stride, offset = geometry_of(x)
    if stride[-1] != 1:
        return f"last dimension with stride 1, got strides {list(stride)}"
    if any(s % 2 for n, s in zip(shape[:-1], stride[:-1], strict=True) if n > 1):
        return f"stride divisible by 2 for all but last dimension, got strides {list(stride)}"
    return f"storage_offset divisible by 2, got {offset}" if offset % 2 else None


@public(method=False)
def real(input: Tensor) -> Tensor:
    """The real parts, over the memory of a complex tensor; a real tensor itself.

    >>> import flambeau as fb
    >>> fb.real(fb.tensor([1 + 2j, 3 - 4j]))
    tensor([1., 3.])
    """
    x = need_tensor(input, "real", "input")
    return view_as_real(x).select(-1, 0) if x.dtype.is_complex else x


@public(method=False)
def imag(input: Tensor) -> Tensor:
    """The imaginary parts, over the memory of a complex tensor.

    Raises:
        RuntimeError: the tensor is not complex.

    >>> import flambeau as fb
    >>> fb.imag(fb.tensor([1 + 2j, 3 - 4j]))
    tensor([ 2., -4.])
    """
    x = need_tensor(input, "imag", "input")
    if not x.dtype.is_complex:
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return view_as_real(x).select(-1, 1)


def write_part(x: Tensor, place: int, value: object) -> None:
    """Write the real (0) or imaginary (1) parts of `x`."""
    part = imag(x) if place else real(x)
    if not isinstance(value, Tensor):
        value = part.new_tensor(value)
    if part is x or (x._st is not None and part._st is x._st):
        part.copy_(value)
        return
    # The parts are copies, so the whole is written.
    new = cast(value, part.dtype).expand(tuple(part._a.shape))
    x.copy_(complex(real(x), new) if place else complex(new, imag(x)))


@public(method=False)
def complex(real: Tensor, imag: Tensor, *, out: Tensor | None = None) -> Tensor:
    """real + i·imag.

    Raises:
        RuntimeError: the parts differ in dtype, or it is neither float32 nor float64.

    >>> import flambeau as fb
    >>> fb.complex(fb.tensor([1.0, 2.0]), fb.tensor([3.0, 4.0]))
    tensor([1.+3.j, 2.+4.j])
    """
    x, y = _pair("complex", real, imag)
    shape = _broadcast(x, y)
    return deliver(_complex.run(x.expand(shape), y.expand(shape)), out, real, imag, exact=True)


@public(method=False)
def polar(abs: Tensor, angle: Tensor, *, out: Tensor | None = None) -> Tensor:
    """abs·(cos(angle) + i·sin(angle)), the complex number with these polar coordinates.

    Raises:
        RuntimeError: the arguments differ in dtype, or it is neither float32 nor float64.

    >>> import flambeau as fb
    >>> fb.polar(fb.tensor([2.0]), fb.tensor([0.0]))
    tensor([2.+0.j])
    """
    size, direction = _pair("polar", abs, angle)
    return deliver(
        _complex.run(size * direction.cos(), size * direction.sin()), out, abs, angle, exact=True
    )


def _pair(name: str, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    x, y = need_tensor(first, name, "first"), need_tensor(second, name, "second")
    for t in (x, y):
        if t.dtype not in (D.float32, D.float64):
            raise RuntimeError(
                f"{name}(): expected both inputs to be Float or Double tensors but got "
                f"{x.dtype} and {y.dtype}"
            )
    if x.dtype is not y.dtype:
        raise RuntimeError(
            f"{name}(): expected objects of one dtype, but got {x.dtype} and {y.dtype}"
        )
    found = common(name, (x, y), x.dtype)
    return found[0], found[1]


def _broadcast(x: Tensor, y: Tensor) -> tuple[int, ...]:
    return broadcast_shapes(tuple(x._a.shape), tuple(y._a.shape))


@public(direct=False)
def conj(input: Tensor) -> Tensor:
    """The complex conjugates, computed at once; a real tensor itself.

    >>> import flambeau as fb
    >>> fb.conj(fb.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    x = need_tensor(input, "conj", "input")
    return _conj.run(x) if x.dtype.is_complex else x


@public(inplace="method")
def conj_physical(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The complex conjugates, as `conj`.

    >>> import flambeau as fb
    >>> fb.conj_physical(fb.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    return deliver(conj(input), out, input, exact=True)


@public
def resolve_conj(input: Tensor) -> Tensor:
    """The tensor itself: conjugation is never put off.

    >>> import flambeau as fb
    >>> fb.resolve_conj(fb.tensor([1 + 2j]).conj())
    tensor([1.-2.j])
    """
    return need_tensor(input, "resolve_conj", "input")


@public
def resolve_neg(input: Tensor) -> Tensor:
    """The tensor itself: negation is never put off.

    >>> import flambeau as fb
    >>> fb.resolve_neg(fb.tensor([1.0]))
    tensor([1.])
    """
    return need_tensor(input, "resolve_neg", "input")


@public
def is_conj(input: Tensor) -> bool:
    """Whether a conjugation is put off: never, since `conj` computes at once.

    >>> import flambeau as fb
    >>> fb.is_conj(fb.tensor([1 + 2j]).conj())
    False
    """
    need_tensor(input, "is_conj", "input")
    return False


@public
def is_neg(input: Tensor) -> bool:
    """Whether a negation is put off: never.

    >>> import flambeau as fb
    >>> fb.is_neg(fb.tensor([1.0]))
    False
    """
    need_tensor(input, "is_neg", "input")
    return False


@public
def adjoint(input: Tensor) -> Tensor:
    """The last two dimensions swapped, and complex numbers conjugated.

    Raises:
        RuntimeError: the tensor has one dimension.

    >>> import flambeau as fb
    >>> fb.adjoint(fb.tensor([[1 + 2j, 3.0]]))
    tensor([[1.-2.j],
            [3.-0.j]])
    """
    x = need_tensor(input, "adjoint", "input")
    if x.dim() == 0:
        return conj(x)
    if x.dim() == 1:
        raise RuntimeError(
            "tensor.adjoint() is only supported on matrices or batches of matrices. Got 1-D tensor."
        )
    return conj(x.transpose(-2, -1))


@public(inplace="method")
def sgn(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """z/|z| of complex numbers, 0 at 0; of others, `sign`.

    >>> import flambeau as fb
    >>> fb.sgn(fb.tensor([3 + 4j, 0j]))
    tensor([0.6000+0.8000j, 0.0000+0.0000j])
    """
    return deliver(_sgn.run(need_tensor(input, "sgn", "input")), out, input, exact=True)


@public
def angle(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The angle of each number with the positive real axis, in radians: 0 or pi for real ones.

    >>> import flambeau as fb
    >>> fb.angle(fb.tensor([1j, -1.0]))
    tensor([1.5708, 3.1416])
    """
    x = need_tensor(input, "angle", "input")
    if not x.dtype.fp:
        x = cast(x, result_type(x, 1.0))
    return deliver(_angle.run(x), out, input)


@public
def isreal(input: Tensor) -> Tensor:
    """Whether each number has no imaginary part.

    >>> import flambeau as fb
    >>> fb.isreal(fb.tensor([1 + 0j, 1j]))
    tensor([ True, False])
    """
    x = need_tensor(input, "isreal", "input")
    if x.dtype.is_complex:
        return _imag.run(x.detach()) == 0
    return x.new_ones(tuple(x._a.shape), dtype=D.bool_)
