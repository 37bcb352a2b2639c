"""Products of vectors and matrices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from flambeau._autograd.node import Binary, Edges
from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import broadcast_shapes, need_tensor
from flambeau._dispatch.keywords import documented
from flambeau._dispatch.promotion import fitting
from flambeau._tensor.tensor import Tensor
from flambeau._types.hints import Number
from flambeau._types.spec import Spec
from flambeau._writes.out import deliver
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import composite, primitive
from flambeau.ops.layers.activation import _gelu, _relu, wide_dtype

if TYPE_CHECKING:
    from flambeau._types.native import Array
    from flambeau._types.size import Size
    from flambeau.ops.declaration.formulas import Formulas


def _mismatch(a: Tensor, b: Tensor) -> RuntimeError:
    x, y = tuple(a.shape), tuple(b.shape)
    if len(x) == 2 and len(y) == 2:
        return RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({x[0]}x{x[1]} and {y[0]}x{y[1]})"
        )
    if len(x) == 2 and len(y) == 1:
        return RuntimeError(f"size mismatch, got input ({x[0]}), mat ({x[0]}x{x[1]}), vec ({y[0]})")
    if len(x) == 1 and len(y) == 1:
        return RuntimeError(
            f"inconsistent tensor size, expected tensor {list(x)} and src {list(y)} to have the "
            "same number of elements"
        )
    return RuntimeError(
        "matmul: the last dimension of the first operand and the second-to-last of the second must "
        f"agree, got shapes {list(x)} and {list(y)}"
    )


@primitive(title="MmBackward0")
def _matmul(self: Tensor, other: Tensor) -> Spec:
    x, y = tuple(self.shape), tuple(other.shape)
    if not x or not y:
        raise RuntimeError(
            f"both arguments to matmul need to be at least 1D, but they are {len(x)}D and {len(y)}D"
        )
    if self.dtype is not other.dtype:
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {self.dtype} != {other.dtype}"
        )
    if x[-1] != y[-2 if len(y) > 1 else -1]:
        raise _mismatch(self, other)
    batch = broadcast_shapes(x[:-2], y[:-2])
    rows = x[-2:-1]
    columns = y[-1:] if len(y) > 1 else ()
    return Spec((*batch, *rows, *columns), self.dtype)


class MatmulNode(Binary):
    """The history of a matrix product, named as PyTorch names it by the ranks of its operands."""

    __slots__ = ()

    title = "MatmulBackward0"
    keep = (0, 2, 1, 3)

    def apply(self, F: Any, g: Any, edges: Edges = None) -> tuple[Any, ...]:
        a, b = self.operands(F, g)
        if a is None is b:
            return None, None
        if self.shapes is None:
            x = y = (b if a is None else a).shape
        else:
            x, y = self.shapes
        e0, e1 = self.edges if edges is None else edges
        return (
            None if e0 is None else _matmul_grad_self(F, g, x, b),
            None if e1 is None else _matmul_grad_other(F, g, a, y),
        )

    def name(self) -> str:
        ranks = (2, 2) if self.shapes is None else tuple(map(len, self.shapes))
        known = {(2, 2): "Mm", (2, 1): "Mv", (1, 1): "Dot", (3, 3): "Bmm"}
        return known.get(ranks, "UnsafeView") + "Backward0"  # type: ignore[arg-type]


def _matmul_grad_self(
    F: Formulas, g: Array, self_shape: Size | tuple[int, ...], other: Array
) -> Array:
    if len(self_shape) == 1 and len(other.shape) == 1:
        return F.mul(g, other)
    if len(other.shape) == 1:  # (..., n, k) @ (k)
        return F.mul(F.reshape(g, (*g.shape, 1)), other)
    if len(self_shape) == 1:  # (k) @ (..., k, m)
        grad = F.matmul(F.reshape(g, (*g.shape[:-1], 1, g.shape[-1])), F.mT(other))
        return F.sum_to(F.reshape(grad, (*grad.shape[:-2], grad.shape[-1])), self_shape)
    return F.sum_to(F.matmul(g, F.mT(other)), self_shape)


def _matmul_grad_other(
    F: Formulas, g: Array, self: Any, other_shape: Size | tuple[int, ...]
) -> Array:
    if len(other_shape) == 1 and len(self.shape) == 1:
        return F.mul(g, self)
    if len(self.shape) == 1:  # (k) @ (..., k, m)
        column = F.reshape(self, (self.shape[0], 1))
        row = F.reshape(g, (*g.shape[:-1], 1, g.shape[-1]))
        return F.sum_to(F.mul(column, row), other_shape)
    if len(other_shape) == 1:  # (..., n, k) @ (k)
        flat = F.reshape(g, (math.prod(g.shape),))
        return F.matmul(flat, _rows(F, self))
    if len(other_shape) == 2 and len(self.shape) > 2:
        # One large product instead of a batch of small ones that would then be summed.
        return F.matmul(F.mT(_rows(F, self)), _rows(F, g))
    return F.sum_to(F.matmul(F.mT(self), g), other_shape)


_matmul.node = MatmulNode


@composite
def _addmm(self: Tensor, mat1: Tensor, mat2: Tensor, beta: complex, alpha: complex) -> Tensor:
    product = _matmul(mat1, mat2)
    if alpha != 1:
        product = product * alpha
    if beta == 0:
        return product
    return product + (self if beta == 1 else self * beta)


@_addmm.gradient("self")
def _(F, g, self_shape, beta):
    if beta != 1:
        g = F.mul(g, F.scalar(beta, g))
    return F.sum_to(g, self_shape)


@_addmm.gradient("mat1")
def _(F, g, mat2, alpha):
    if alpha != 1:
        g = F.mul(g, F.scalar(alpha, g))
    return F.matmul(g, F.mT(mat2))


@_addmm.gradient("mat2")
def _(F, g, mat1, alpha):
    if alpha != 1:
        g = F.mul(g, F.scalar(alpha, g))
    return F.matmul(F.mT(mat1), g)


@composite(title="AddmmBackward0")
def _linear(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    product = _matmul(input, weight.mT)
    return product if bias is None else product + bias


def _rows(F: Formulas, a: Array) -> Array:
    if len(a.shape) == 2:
        return a
    return F.reshape(a, (math.prod(a.shape[:-1]), a.shape[-1]))


@_linear.gradient("input")
def _(F, g, weight):
    return F.matmul(g, weight)


@_linear.gradient("weight")
def _(F, g, input):
    return F.matmul(F.mT(_rows(F, g)), _rows(F, input))


@_linear.gradient("bias")
def _(F, g, bias_shape):
    return F.sum_to(g, bias_shape)


@composite(results=2)
def _linear_activation(
    input: Tensor, weight: Tensor, bias: Tensor | None, activation: str, saves: bool
) -> tuple[Tensor, Tensor]:
    """(f(z), z) with z = input @ weight.T + bias, and f ``"relu"`` or ``"gelu_tanh"``.

    z, which the gradient of gelu needs, is empty unless `saves`, and always for relu.
    """
    z, empty = _linear(input, weight, bias), input.new_zeros((0,))
    if activation == "relu":
        return _relu(z), empty
    return _gelu(z, "tanh"), z if saves else empty


@_linear_activation.gradient
def _(F, g, input, weight, bias, result0, result1, activation, saves, needs):
    over = None
    if g[0] is not None:
        if activation == "relu":
            over = F.threshold_backward(g[0], result0, 0)
        else:
            z = result1 if saves else F.linear(input, weight, bias)
            over = F.gelu_backward(g[0], z, "tanh")
    if g[1] is not None and saves and activation != "relu":
        over = g[1] if over is None else F.add(over, g[1])
    if over is None:
        over = F.zeros(result0.shape, result0)
    return (
        F.matmul(over, weight) if needs[0] else None,
        F.matmul(F.mT(_rows(F, over)), _rows(F, input)) if needs[1] else None,
        F.sum_to(over, bias.shape) if needs[2] else None,
    )


def _same_dtype(name: str, *tensors: Tensor) -> None:
    first = tensors[0].dtype
    for t in tensors[1:]:
        if need_tensor(t, name, "mat2").dtype is not first:
            raise RuntimeError(
                f"{name}: expected m1 and m2 to have the same dtype, but got: {first} != {t.dtype}"
            )


@public(names={"tensor2": "other"})
@documented({"tensor1": "input", "tensor2": "other"})
def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The matrix product, batched over leading dimensions; vectors lose their extra dimension.

    Shapes: (..., n, k) and (..., k, m) give (..., n, m); leading dimensions broadcast.

    Raises:
        RuntimeError: shapes or dtypes do not fit.

    >>> import flambeau as fb
    >>> fb.matmul(fb.ones(2, 3), fb.ones(3))
    tensor([3., 3.])
    """
    if not (type(input) is Tensor is type(other)):
        need_tensor(input, "matmul", "input")
        need_tensor(other, "matmul", "other")
    result = input @ other
    return (
        result if out is None else deliver(result, out, input, other, exact=True, share="anything")
    )


def _product(name: str, input: Tensor, other: Tensor, ranks: tuple[int, int]) -> Tensor:
    x, y = need_tensor(input, name, "input"), need_tensor(other, name, "mat2")
    if (x.dim(), y.dim()) != ranks:
        kinds = {1: "vector", 2: "matrix", 3: "batch of matrices"}
        raise RuntimeError(
            f"{name}: expected a {kinds[ranks[0]]} ({ranks[0]}D) and a {kinds[ranks[1]]} "
            f"({ranks[1]}D), got {x.dim()}D and {y.dim()}D tensors"
        )
    return x @ y


@public
@documented({"mat1": "input"})
def mm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The product of two matrices, without broadcasting.

    >>> import flambeau as fb
    >>> fb.mm(fb.ones(1, 2), fb.ones(2, 1))
    tensor([[2.]])
    """
    return deliver(
        _product("mm", input, mat2, (2, 2)), out, input, mat2, exact=True, share="anything"
    )


@public
@documented({"mat": "input"})
def mv(input: Tensor, vec: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The product of a matrix and a vector.

    >>> import flambeau as fb
    >>> fb.mv(fb.ones(2, 3), fb.ones(3))
    tensor([3., 3.])
    """
    return deliver(
        _product("mv", input, vec, (2, 1)), out, input, vec, exact=True, share="anything"
    )


@public(names={"tensor2": "tensor"})
@documented({"tensor1": "input", "tensor2": "tensor"})
def dot(input: Tensor, tensor: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inner product of two vectors.

    >>> import flambeau as fb
    >>> fb.dot(fb.tensor([2, 3]), fb.tensor([2, 1]))
    tensor(7)
    """
    return deliver(
        _product("dot", input, tensor, (1, 1)), out, input, tensor, exact=True, share="anything"
    )


@public
def vdot(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inner product of two vectors, of which the first is conjugated.

    >>> import flambeau as fb
    >>> fb.vdot(fb.tensor([1 + 2j]), fb.tensor([1j]))
    tensor(2.+1.j)
    """
    x = need_tensor(input, "vdot", "input")
    return dot(x.conj() if x.dtype.is_complex else x, other, out=out)


@public(names={"batch2": "mat2"})
@documented({"batch1": "input", "batch2": "mat2"})
def bmm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The products of two batches of matrices, (b, n, k) and (b, k, m).

    >>> import flambeau as fb
    >>> fb.bmm(fb.ones(4, 1, 2), fb.ones(4, 2, 3)).shape
    torch.Size([4, 1, 3])
    """
    if need_tensor(input, "bmm", "input").dim() != 3 or need_tensor(mat2, "bmm", "mat2").dim() != 3:
        raise RuntimeError("batch1 and batch2 must be 3D tensors")
    if input.shape[0] != mat2.shape[0]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: "
            f"[{input.shape[0]}, {input.shape[2]}] but got: {list(mat2.shape[:2])}."
        )
    return deliver(input @ mat2, out, input, mat2, exact=True, share="anything")


@public
@documented({"vec1": "input"})
def outer(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The outer product of two vectors.

    >>> import flambeau as fb
    >>> fb.outer(fb.tensor([1, 2]), fb.tensor([3, 4]))
    tensor([[3, 4],
            [6, 8]])
    """
    need_tensor(input, "outer", "input")
    need_tensor(vec2, "outer", "vec2")
    for x in (input, vec2):
        if x.dim() != 1:
            raise RuntimeError(f"outer: Expected 1-D argument, but got {x.dim()}-D")
    return deliver(input.unsqueeze(1) * vec2, out, input, vec2, share="anything")


ger = outer


def addends(
    name: str, given: tuple[Any, ...], beta: object, alpha: object
) -> tuple[Tensor, tuple[Tensor, Tensor], Any, Any]:
    """What is added, the two factors, beta and alpha; the numbers may stand among the tensors.

    That is how they were written once: ``(beta, input, alpha, a, b)``, and of a method
    ``input.f(beta, alpha, a, b)``; either may leave out alpha.

    Raises:
        TypeError: there are not three tensors and at most two numbers.
    """
    tensors = [x for x in given if isinstance(x, Tensor)]
    numbers = [x for x in given if not isinstance(x, Tensor)]
    if len(tensors) != 3 or len(numbers) > 2 or not all(isinstance(n, _NUMBERS) for n in numbers):
        kinds = ", ".join(type(x).__name__ for x in given)
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got ({kinds}), but expected "
            "(Tensor input, Tensor, Tensor, *, Number beta, Number alpha)"
        )
    if numbers:
        beta = numbers[0]
        alpha = numbers[1] if len(numbers) == 2 else alpha
    return tensors[0], (tensors[1], tensors[2]), beta, alpha


_NUMBERS = (int, float, complex)


@public(inplace="method")
def addmm(
    input: Tensor,
    mat1: Tensor | Number,
    mat2: Tensor | Number,
    *legacy: Tensor | Number,
    beta: Number = 1,
    alpha: Number = 1,
    out: Tensor | None = None,
) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2).  With beta = 0, `input` is ignored, nan included.

    Raises:
        RuntimeError: shapes or dtypes do not fit.

    >>> import flambeau as fb
    >>> fb.addmm(fb.ones(2), fb.ones(2, 3), fb.ones(3, 2))
    tensor([[4., 4.],
            [4., 4.]])
    """
    input, (mat1, mat2), beta, alpha = addends("addmm", (input, mat1, mat2, *legacy), beta, alpha)
    _same_dtype("addmm", mat1, mat2, input)
    if mat1.dim() != 2 or mat2.dim() != 2:
        raise RuntimeError(
            f"mat1 and mat2 must be matrices, got {mat1.dim()}-D and {mat2.dim()}-D tensors"
        )
    if mat1.shape[1] != mat2.shape[0]:
        raise _mismatch(mat1, mat2)
    shape = (mat1.shape[0], mat2.shape[1])
    if broadcast_shapes(tuple(input._a.shape), shape) != shape:
        raise RuntimeError(
            f"The expanded size of the tensor ({shape}) must match the existing size "
            f"({tuple(input.shape)})"
        )
    for factor in (beta, alpha):
        if factor != 1:
            fitting(factor, wide_dtype(mat1.dtype))
    return deliver(
        _addmm.run(input, mat1, mat2, beta, alpha),
        out,
        input,
        mat1,
        mat2,
        exact=True,
        share="anything",
    )


@public(method=False)
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input @ weight.T + bias.

    Shapes: input (..., in), weight (out, in) or (in,), bias (out,) or (); result (..., out).

    >>> import flambeau as fb
    >>> fb.nn.functional.linear(fb.ones(1, 2), fb.ones(3, 2), fb.zeros(3))
    tensor([[2., 2., 2.]])
    """
    x, w = need_tensor(input, "linear", "input"), need_tensor(weight, "linear", "weight")
    if w.dtype is not x.dtype:
        _same_dtype("linear", x, w)
    if bias is not None:
        _same_dtype("linear", x, bias)
    sizes, form = x._a.shape, w._a.shape
    if len(form) == 1:
        product = x @ w
        return product if bias is None else product + bias
    if not sizes or sizes[-1] != form[1]:
        rows = x.numel() // max(sizes[-1], 1) if sizes else 1
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({rows}x{sizes[-1] if sizes else 1} and "
            f"{form[1]}x{form[0]})"
        )
    if len(sizes) == 1:
        flat = _linear.run(x.unsqueeze(0), w, bias)
        return flat.squeeze(0)
    return _linear.run(x, w, bias)


@public(method=False)
@takes_as_annotated
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """y_k = x1ᵀ·W_k·x2 + b_k.

    Shapes: input1 (*, in1), input2 (*, in2), weight (out, in1, in2), bias (out); result (*, out).

    Raises:
        RuntimeError: the leading shapes differ or the sizes do not fit the weight.

    >>> import flambeau as fb
    >>> fb.bilinear(fb.ones(1, 2), fb.ones(1, 3), fb.ones(1, 2, 3))
    tensor([[6.]])
    """
    need_tensor(input1, "bilinear", "input1")
    need_tensor(input2, "bilinear", "input2")
    need_tensor(weight, "bilinear", "weight")
    if input1.shape[:-1] != input2.shape[:-1]:
        raise RuntimeError(
            "bilinear(): input batch dimensions do not match: got "
            f"{list(input1.shape)} and {list(input2.shape)}"
        )
    for name, given, place in (("input1", input1, 1), ("input2", input2, 2)):
        if given.shape[-1] != weight.shape[place]:
            raise RuntimeError(
                f"bilinear(): {name} size does not match weight size: "
                f"got {given.shape[-1]} but expected {weight.shape[place]}"
            )
    rows1 = input1.reshape(-1, 1, 1, input1.shape[-1])
    rows2 = input2.reshape(-1, 1, input2.shape[-1], 1)
    result = rows1.matmul(weight).matmul(rows2).reshape((*input1.shape[:-1], weight.shape[0]))
    return result if bias is None else result + bias
