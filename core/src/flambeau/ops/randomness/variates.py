"""Gamma, Dirichlet and binomial tensors, and how samples follow the parameters (pathwise).

The streams are those of `ops.randomness.rejection`.  The gradients of a sample are PyTorch's
approximations (`ops.randomness.pathwise`) unless exact ones are asked for.
"""

from __future__ import annotations

from collections.abc import Callable

from flambeau._dispatch.arguments import need_tensor
from flambeau._dispatch.dispatch import wrap
from flambeau._random.generator import Generator, generator_for
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau.ops.creation.creation import empty_like
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import composite
from flambeau.ops.randomness import rejection as streams
from flambeau.ops.shapes.broadcasting import broadcast_tensors

_NAMES = {
    D.float16: "Half",
    D.bfloat16: "BFloat16",
    D.complex64: "ComplexFloat",
    D.complex128: "ComplexDouble",
    D.bool_: "Bool",
    D.uint8: "Byte",
    D.int8: "Char",
    D.int16: "Short",
    D.int32: "Int",
    D.int64: "Long",
}


@composite
def _standard_gamma(self: Tensor, exact: bool, generator: Generator) -> Tensor:
    return _drawn(
        self,
        lambda: streams.standard_gamma(_flat(self), self.dtype, generator),
    )


@composite
def _sample_dirichlet(self: Tensor, generator: Generator) -> Tensor:
    columns = self._a.shape[-1] if self._a.shape else 1
    return _drawn(
        self,
        lambda: streams.sample_dirichlet(_flat(self), columns, self.dtype, generator),
    )


@composite
def _binomial(count: Tensor, prob: Tensor, generator: Generator) -> Tensor:
    return _drawn(
        count,
        lambda: streams.binomial(_flat(count), _flat(prob), count.dtype, generator),
    )


def _drawn(like: Tensor, draw: Callable[[], list[float]]) -> Tensor:
    if like.device.type == "meta":
        return empty_like(like)
    native = like._be.host_array(list(draw()), like._a.shape, like.dtype)
    return wrap(like._be, native, like.dtype)


def _flat(x: Tensor) -> list[float]:
    return x.reshape((-1,)).tolist()


@_standard_gamma.gradient
def _(F, g, self, result, exact):
    return F.mul(g, F.standard_gamma_grad(self, result, exact))


_sample_dirichlet.gradient_missing("the derivative for '_sample_dirichlet' is not implemented.")
_binomial.gradient_missing("the derivative for 'binomial' is not implemented.")


@public(method=False)
def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """Numbers of successes in `count` trials, each of which succeeds with probability `prob`.

    Both are floating tensors of one dtype, whose shapes broadcast.  The stream equals PyTorch's;
    where `count` or `prob` is nan, so is the result.

    Raises:
        ValueError: `count` is not of a floating dtype.
        RuntimeError: the dtypes differ.
        NotImplementedError: the dtype is a half precision.

    >>> import flambeau as fb
    >>> _ = fb.manual_seed(0); fb.binomial(fb.tensor([10.0, 100.0]), fb.tensor([0.5, 0.5]))
    tensor([ 7., 51.])
    """
    n, p = need_tensor(count, "binomial", "count"), need_tensor(prob, "binomial", "prob")
    for name, x in (("count", n), ("prob", p)):
        if not x.dtype.is_floating_point:
            raise ValueError(
                f"binomial only supports floating-point dtypes for {name}, "
                f"got: {_NAMES.get(x.dtype, x.dtype)}"
            )
    if n.dtype is not p.dtype:
        raise RuntimeError(f"binomial: prob has dtype {p.dtype}, expected that of count: {n.dtype}")
    need_dtype(n, "binomial_cpu")
    if n._a.shape != p._a.shape:
        n, p = broadcast_tensors(n, p)
    return _binomial.run(n.contiguous(), p.contiguous(), generator_for(n._be.device, generator))


def standard_gamma(
    input: Tensor, generator: Generator | None = None, *, exact_gradient: bool = False
) -> Tensor:
    """Gamma numbers whose shapes are in `input`, of scale 1; ``flambeau._standard_gamma``.

    The stream equals PyTorch's.  The gradient is that of a sample whose place in its distribution
    stays the same while the shape changes: PyTorch's approximation, which is off by up to 8e-4, or
    with `exact_gradient` the derivative itself.

    Raises:
        NotImplementedError: the dtype is neither float32 nor float64.

    >>> import flambeau as fb
    >>> _ = fb.manual_seed(0); fb._standard_gamma(fb.tensor([0.5, 5.0]))
    tensor([7.8936e-04, 2.7153e+00])
    """
    x = need_dtype(need_tensor(input, "_standard_gamma", "input"), "gamma_cpu")
    return _standard_gamma(x.contiguous(), exact_gradient, generator_for(x._be.device, generator))


def sample_dirichlet(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Rows that sum to 1, with the concentrations in `input`; ``flambeau._sample_dirichlet``.

    The stream equals PyTorch's.  For gradients see `dirichlet_grad`.

    Raises:
        NotImplementedError: the dtype is neither float32 nor float64.

    >>> import flambeau as fb
    >>> _ = fb.manual_seed(0); fb._sample_dirichlet(fb.ones(3))
    tensor([0.8349, 0.1317, 0.0334])
    """
    x = need_dtype(need_tensor(input, "_sample_dirichlet", "input"), "dirichlet")
    return _sample_dirichlet(x.contiguous(), generator_for(x._be.device, generator))


for _function in (standard_gamma, sample_dirichlet):  # their names for programs
    _function.__name__ = _function.__qualname__ = f"_{_function.__name__}"


def need_dtype(x: Tensor, name: str) -> Tensor:
    """`x` itself, of float32 or float64."""
    if x.dtype not in (D.float32, D.float64):
        raise NotImplementedError(
            f"\"{name}\" not implemented for '{_NAMES.get(x.dtype, x.dtype)}'"
        )
    return x
