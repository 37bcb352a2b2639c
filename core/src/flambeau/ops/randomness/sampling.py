"""Random tensors: public functions and in-place fills over the canonical streams of `ops.random`.

The same seed gives PyTorch's numbers; where a stream differs, its canonical op says so.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, overload

from flambeau._autograd.modes import recording
from flambeau._dispatch import dispatch as _dispatch
from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import (
    broadcast_shapes,
    check_values,
    checked_sizes,
    need_tensor,
    sizes,
)
from flambeau._dispatch.bound import home
from flambeau._dispatch.dispatch import (
    cast,
    drawable,
    kernel_error,
    where_to_draw,
    wrap,
    written,
)
from flambeau._memory.views import storage_of
from flambeau._random.generator import Generator, generator_for
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.dtype import dtype as DType
from flambeau._types.hints import DeviceLike, Ints
from flambeau._types.layout import layout as Layout
from flambeau._types.memory_format import memory_format as MemoryFormat
from flambeau._types.spec import Spec
from flambeau._writes import inplace as _inplace
from flambeau.ops.creation.creation import (
    arranged,
    device_or,
    dtype_or,
    empty_like,
    finished,
    order_like,
    size_of,
    zeros,
)
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import Op, composite
from flambeau.ops.declaration.written import drawing
from flambeau.ops.indices.indexing import untouched
from flambeau.ops.randomness import random as streams

if TYPE_CHECKING:
    from flambeau._dispatch.bound import BoundBackend

Draw = Callable[[tuple[int, ...], Any], Any]
"""From a shape and a backend an array of new numbers."""

STD_IS_POSITIVE = True
"""Whether a tensor of standard deviations is refused if one of them is negative."""


class RandomOp(Op):
    """A canonical random op: a stream of `ops.random` unless the backend has a kernel.

    Attributes:
        draw: ``draw(be, *arguments)``, a tensor of new numbers.
    """

    def __init__(self, body: Callable[..., Any], shape: Callable[..., Sequence[int]]) -> None:
        super().__init__(body, "composite", differentiable=False)
        self._shape = shape
        self.draw: Callable[..., Tensor] = self._first_draw

    def decomposed(self, be: BoundBackend) -> Callable[..., Any]:
        """The stream's numbers as a native array; on ``meta``, only their shape."""

        def run(*args: object) -> Any:
            shape = tuple(self._shape(*args))
            dtype = next((a for a in args if isinstance(a, D.dtype)), D.int64)
            if be.device.type == "meta":
                return Spec(shape, dtype)
            return be.host_array(list(self.body(*args)), shape, dtype)

        return run

    def _first_draw(self, be: BoundBackend, *args: Any) -> Tensor:
        """`draw`, which is written out when it is first asked for."""
        self.draw = drawing(self)
        return self.draw(be, *args)


def _first(shape: Sequence[int], *rest: object) -> Sequence[int]:
    return shape


_uniform = RandomOp(streams.uniform, _first)
_normal = RandomOp(streams.normal, _first)
_normal_serial = RandomOp(streams.normal_serial, _first)
_bernoulli_scalar = RandomOp(streams.bernoulli_scalar, _first)
_randint = RandomOp(streams.randint, lambda low, high, shape, *rest: shape)
_random_full = RandomOp(streams.random_full, _first)
_randperm = RandomOp(streams.randperm, lambda n, *rest: (n,))
_exponential = RandomOp(streams.exponential, _first)
_cauchy = RandomOp(streams.cauchy, _first)
_log_normal = RandomOp(streams.log_normal, _first)
_geometric = RandomOp(streams.geometric, _first)


@composite(differentiable=False)
def _bernoulli(p: Tensor, generator: Generator) -> Tensor:
    if p._be.device.type == "meta":
        return empty_like(p)
    flat = p.reshape((-1,)).tolist()
    values = streams.bernoulli(flat, p.dtype, generator)
    return wrap(p._be, p._be.host_array(list(values), p._a.shape, p.dtype), p.dtype)


@composite(differentiable=False)
def _poisson(rates: Tensor, generator: Generator) -> Tensor:
    if rates._be.device.type == "meta":
        return empty_like(rates)
    values: list[Any] = list(streams.poisson(rates.reshape((-1,)).tolist(), generator))
    native = rates._be.host_array(values, rates._a.shape, rates.dtype)
    return wrap(rates._be, native, rates.dtype)


@composite(out=D.int64, differentiable=False)
def _multinomial(
    probs: Tensor, num_samples: int, replacement: bool, generator: Generator
) -> Tensor:
    shape = tuple(probs._a.shape)
    if probs._be.device.type == "meta":
        return wrap(probs._be, Spec((*shape[:-1], num_samples), D.int64), D.int64)
    flat = probs.reshape((-1,)).tolist()
    found = streams.multinomial(flat, shape, num_samples, replacement, probs.dtype, generator)
    native = probs._be.host_array(list(found), (*shape[:-1], num_samples), D.int64)
    return wrap(probs._be, native, D.int64)


def _made(
    op: RandomOp,
    shape: tuple[int, ...],
    first: float,
    second: float,
    generator: Generator | None,
    out: Any,
    dtype: DType | None,
    device: Any,
    requires_grad: bool,
) -> Tensor:
    """A new tensor of an op of two numbers."""
    if dtype is None and out is None:
        dtype = D.get_default_dtype()
    else:
        dtype = dtype_or(dtype, out)
    be = home(device if out is None else device_or(device, out))
    if _dispatch.drawing is not None:
        be = where_to_draw(be)
    source = generator_for(be.device, generator)
    made = op.draw(be, shape, first, second, dtype, source)
    return made if out is None and not requires_grad else finished(made, requires_grad, out)


@public(method=False)
def rand(
    *shape: Ints,
    size: Ints | None = None,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Uniform numbers from [0, 1).  The stream equals PyTorch's.

    >>> import flambeau as fb
    >>> _ = fb.manual_seed(0); fb.rand(2)
    tensor([0.4963, 0.7682])
    """
    found = size_of("rand", shape, size)
    return _made(_uniform, found, 0.0, 1.0, generator, out, dtype, device, requires_grad)


@public(method=False)
def randn(
    *shape: Ints,
    size: Ints | None = None,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Standard normal numbers.  The stream equals PyTorch's.

    >>> import flambeau as fb
    >>> _ = fb.manual_seed(0); fb.randn(2)
    tensor([ 1.5410, -0.2934])
    """
    found = size_of("randn", shape, size)
    return _made(_normal, found, 0.0, 1.0, generator, out, dtype, device, requires_grad)


@public(method=False)
def rand_like(
    input: Tensor,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    memory_format: MemoryFormat | None = None,
    generator: Generator | None = None,
    pin_memory: bool = False,
) -> Tensor:
    """`rand` with the shape, dtype and device of `input`.

    >>> import flambeau as fb
    >>> fb.rand_like(fb.zeros(2, 3)).shape
    torch.Size([2, 3])
    """
    x = need_tensor(input, "rand_like", "input")
    kind = dtype_or(dtype, x)
    if kind.fp and _dispatch.drawing is None and order_like(x, memory_format) is None:
        shape, where = tuple(x._a.shape), x._be if device is None else device
        return _made(_uniform, shape, 0.0, 1.0, generator, None, kind, where, requires_grad)
    t = drawable(empty_like(x, dtype=dtype, device=device, memory_format=memory_format))
    return finished(uniform_(t, generator=generator), requires_grad, None)


@public(method=False)
def randn_like(
    input: Tensor,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    memory_format: MemoryFormat | None = None,
    generator: Generator | None = None,
    pin_memory: bool = False,
) -> Tensor:
    """`randn` with the shape, dtype and device of `input`.

    >>> import flambeau as fb
    >>> fb.randn_like(fb.zeros(2, 3)).shape
    torch.Size([2, 3])
    """
    x = need_tensor(input, "randn_like", "input")
    kind = dtype_or(dtype, x)
    if kind.fp and _dispatch.drawing is None and order_like(x, memory_format) is None:
        shape, where = tuple(x._a.shape), x._be if device is None else device
        return _made(_normal, shape, 0.0, 1.0, generator, None, kind, where, requires_grad)
    t = drawable(empty_like(x, dtype=dtype, device=device, memory_format=memory_format))
    return finished(normal_(t, generator=generator), requires_grad, None)


def _whole(where: str, name: str, bound: object) -> int:
    """A bound as an integer; TypeError for what is none, a float of whole value too."""
    if type(bound) is int:
        return bound
    if not hasattr(bound, "__index__"):
        raise TypeError(f"{where}(): argument {name!r} must be int, not {type(bound).__name__}")
    return sizes((bound,), name)[0]


@overload
def randint(
    high: int,
    size: Sequence[int],
    /,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor: ...
@overload
def randint(
    low: int,
    high: int,
    size: Sequence[int],
    /,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor: ...
@overload
def randint(
    *numbers: int,
    low: int = 0,
    high: int | None = None,
    size: Sequence[int],
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor: ...
@public(method=False)
@takes_as_annotated
def randint(
    *args: Any,
    low: int = 0,
    high: int | None = None,
    size: Sequence[int] | None = None,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Integers from [low, high): ``randint(high, size)`` or ``randint(low, high, size)``.

    Raises:
        RuntimeError: the range is empty, or the dtype cannot hold it.

    >>> import flambeau as fb
    >>> _ = fb.manual_seed(0); fb.randint(3, (4,))
    tensor([2, 0, 2, 0])
    """
    numbers = list(args)
    if size is None:
        if not numbers:
            raise TypeError("randint() missing required argument 'size'")
        size = numbers.pop()
    if len(numbers) == 2:
        low, high = numbers
    elif len(numbers) == 1:
        if high is None:
            high = numbers[0]
        else:
            low = numbers[0]
    if high is None:
        raise TypeError("randint() missing required argument 'high'")
    low, high = _whole("randint", "low", low), _whole("randint", "high", high)
    dtype = D.int64 if dtype is None and out is None else dtype_or(dtype, out)
    if low >= high:
        raise RuntimeError(
            f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
        )
    low, high = streams.integer_range(low, high, dtype)
    be = where_to_draw(home(device_or(device, out)))
    shape = checked_sizes(sizes((size,)))
    made = _randint.draw(be, low, high, shape, dtype, generator_for(be.device, generator))
    return finished(made, requires_grad, out)


@overload
def randint_like(
    input: Tensor,
    high: int | Tensor,
    /,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    memory_format: MemoryFormat | None = None,
    pin_memory: bool = False,
) -> Tensor: ...
@overload
def randint_like(
    input: Tensor,
    low: int,
    high: int,
    /,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    memory_format: MemoryFormat | None = None,
    pin_memory: bool = False,
) -> Tensor: ...
@overload
def randint_like(
    input: Tensor,
    *,
    low: int = 0,
    high: int,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    memory_format: MemoryFormat | None = None,
    pin_memory: bool = False,
) -> Tensor: ...
@public(method=False)
@takes_as_annotated
def randint_like(
    input: Tensor,
    *args: Any,
    low: int = 0,
    high: int | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    memory_format: MemoryFormat | None = None,
    pin_memory: bool = False,
) -> Tensor:
    """`randint` with the shape, dtype and device of `input`.

    >>> import flambeau as fb
    >>> fb.randint_like(fb.zeros(2, 3), 5).dtype
    torch.float32
    """
    x = need_tensor(input, "randint_like", "input")
    kind, where = dtype or x.dtype, x.device if device is None else device

    def draw(shape: tuple[int, ...]) -> Tensor:
        return randint(*args, low=low, high=high, size=shape, dtype=kind, device=where)

    return finished(arranged(x, memory_format, draw), requires_grad, None)


@public(method=False)
@takes_as_annotated
def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A random permutation of 0 ... n - 1.  The stream equals PyTorch's.

    Raises:
        RuntimeError: n is negative, or the dtype cannot tell so many numbers apart.

    >>> import flambeau as fb
    >>> _ = fb.manual_seed(0); fb.randperm(4)
    tensor([0, 1, 3, 2])
    """
    if n < 0:
        raise RuntimeError(f"n must be non-negative, got {n}")
    dtype = D.int64 if dtype is None and out is None else dtype_or(dtype, out)
    if n - 1 > (top := streams.exact_range(dtype)):
        raise RuntimeError(f"randperm(): n cannot be greater than {top + 1} for {dtype}")
    be = where_to_draw(home(device if out is None else device_or(device, out)))
    made = _randperm.draw(be, n, dtype, generator_for(be.device, generator))
    return made if out is None and not requires_grad else finished(made, requires_grad, out)


@public
@takes_as_annotated
def bernoulli(
    input: Tensor,
    p: float | None = None,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Ones with the probabilities in `input` (or `p` everywhere), zeros otherwise.

    Raises:
        RuntimeError: a probability is outside [0, 1].

    >>> import flambeau as fb
    >>> fb.bernoulli(fb.ones(2))
    tensor([1., 1.])
    """
    x = drawable(need_tensor(input, "bernoulli", "input"))
    g = generator_for(x._be.device, generator)
    if p is not None:
        if not 0 <= p <= 1:
            raise RuntimeError(f"bernoulli expects p to be in [0, 1], but got p={p}")
        made = _bernoulli_scalar.draw(x._be, tuple(x._a.shape), p, x.dtype, g)
    else:
        made = _flat(wrap(x._be, _bernoulli_native(x, x.dtype, g), x.dtype), x)
    return finished(made, False, out)


def _flat(drawn: Tensor, *parameters: object) -> Tensor:
    """`drawn` with a history in which those that it was drawn with have the gradient 0."""
    for x in parameters:
        if isinstance(x, Tensor) and x.requires_grad:
            drawn = untouched(drawn, cast(x, drawn.dtype))
    return drawn


def _check_probabilities(p: Tensor) -> None:
    if p.dtype.category != 2:
        raise RuntimeError(f"expected a floating tensor of probabilities, got {p.dtype}")
    text = "Expected p_in >= 0 && p_in <= 1 to be true, but got false."
    check_values(p, 0.0, 1.0, text)


def _bernoulli_native(p: Tensor, dtype: DType, generator: Generator) -> Any:
    p = drawable(p)
    _check_probabilities(p)
    return cast(_bernoulli(p.detach().contiguous(), generator), dtype)._a


@public(method=False)
def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """A number of events for each element, its rate.  The stream equals PyTorch's.

    The gradient is zero.

    Raises:
        RuntimeError: a rate is negative or nan.
        NotImplementedError: the dtype is not floating.

    >>> import flambeau as fb
    >>> _ = fb.manual_seed(0); fb.poisson(fb.tensor([0.0, 5.0, 50.0]))
    tensor([ 0.,  8., 45.])
    """
    x = drawable(need_tensor(input, "poisson", "input"))
    if not x.dtype.is_floating_point:
        raise NotImplementedError(f'"poisson" not implemented for {x.dtype}: rates are floats')
    be = x._be
    looks = getattr(be.poisson, "checks_rates", False)
    if not looks:
        _check_rates(x)
    try:
        drawn = _poisson.run(plain_rows(x), generator_for(be.device, generator))
    except RuntimeError:
        if looks:  # a kernel that has looked leaves the words to this
            _check_rates(x)
        raise
    return _flat(drawn, x)


def _check_rates(x: Tensor) -> None:
    check_values(x, 0.0, math.inf, "invalid Poisson rate, expected rate to be non-negative")


def plain_rows(x: Tensor) -> Tensor:
    """`x` without history and contiguous: itself where it is."""
    if not x._rg and x._be.strided and x._be.backend.is_contiguous(x._a):
        return x
    return x.detach().contiguous()


@public
@takes_as_annotated
def multinomial(
    input: Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """`num_samples` indices drawn from each row of weights.

    Raises:
        RuntimeError: weights are negative, infinite or sum to zero, or too few are positive.

    >>> import flambeau as fb
    >>> fb.multinomial(fb.tensor([0.0, 1.0]), 2, replacement=True)
    tensor([1, 1])
    """
    x = drawable(need_tensor(input, "multinomial", "input"))
    if x.dim() not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if x.dtype.category != 2:
        raise RuntimeError(
            f"multinomial only supports floating-point dtypes for input, got: {x.dtype}"
        )
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > x.shape[-1]:
        raise RuntimeError(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement"
        )
    be = x._be
    g = generator_for(be.device, generator)
    weights = x.detach() if x._rg else x
    if 0 in x._a.shape:
        _check_weights(weights)
        shape = (*x._a.shape[:-1], num_samples)
        return finished(zeros(shape, dtype=D.int64, device=x.device), False, out)
    looks = getattr(be.multinomial, "checks_weights", False)
    if not looks:
        _check_weights(weights)
    try:
        drawn = _multinomial.run(weights, num_samples, replacement, g)
    except RuntimeError:
        if looks:  # a kernel that has looked leaves the words to this
            _check_weights(weights)
        raise
    return finished(drawn, False, out)


def _check_weights(weights: Tensor) -> None:
    check_values(
        weights,
        0.0,
        sys.float_info.max,
        "multinomial: probability tensor contains either `inf`, `nan` or element < 0",
    )
    check_values(
        weights.sum(-1),
        math.ulp(0.0),  # the smallest number above 0
        math.inf,
        "multinomial: invalid distribution (sum of probabilities <= 0); each row needs a positive "
        "weight",
    )


@public(method=False)
@takes_as_annotated
def normal(
    mean: Tensor | float,
    std: Tensor | float = 1.0,
    size: Sequence[int] | None = None,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Normal numbers of given means and standard deviations, numbers or tensors with gradient 0.

    Raises:
        RuntimeError: a standard deviation is negative, NaN or complex.

    >>> import flambeau as fb
    >>> fb.normal(0.0, 1.0, (2, 3)).shape
    torch.Size([2, 3])
    """
    if size is not None:
        if isinstance(mean, Tensor) or isinstance(std, Tensor):
            raise TypeError("normal() with a size needs numbers for mean and std")
        _check_std(std)
        return _made(
            _normal,
            sizes((size,)),
            float(mean),
            float(std),
            generator,
            out,
            dtype,
            device,
            requires_grad,
        )
    tensors = [v for v in (mean, std) if isinstance(v, Tensor)]
    if not tensors:
        raise TypeError("normal() with numbers for mean and std needs a size")
    shape = torch_shape(mean, std)
    like = tensors[0]
    if isinstance(std, Tensor):
        if std.dtype.is_complex:
            raise RuntimeError("normal expects standard deviation to be non-complex")
        if STD_IS_POSITIVE:
            check_values(std, 0.0, math.inf, "normal expects all elements of std >= 0.0")
    else:
        _check_std(std)
    noise = randn(shape, generator=generator, dtype=like.dtype, device=like.device)
    drawn = noise * _detached(std) + _detached(mean)
    return finished(_flat(drawn, mean, std), requires_grad, out)


def _detached(x: Tensor | float) -> Tensor | float:
    return x.detach() if isinstance(x, Tensor) else x


def torch_shape(mean: object, std: object) -> tuple[int, ...]:
    """The common shape of tensor arguments."""
    return broadcast_shapes(*[tuple(v._a.shape) for v in (mean, std) if isinstance(v, Tensor)])


def _check_std(std: float) -> None:
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")


def _filled(
    x: Tensor,
    op: Op,
    numbers: tuple[Any, ...],
    generator: Generator | None,
    otherwise: Draw | None = None,
) -> Tensor:
    """Write fresh numbers of `op`, in one pass where the device has a kernel that does so."""
    be = x._be
    if be.strided and not (x._rg and recording()) and _dispatch.drawing is None:
        kernel = getattr(be, op.filling, None)
        if kernel is not None and be.backend.is_contiguous(a := x._a):
            source = generator_for(be.device, generator)
            try:
                if len(numbers) == 2:
                    kernel(a, numbers[0], numbers[1], source)
                else:
                    kernel(a, *numbers, source)
            except be.error as error:
                raise kernel_error(op.name, error, numbers) from error
            if (st := x._st) is None:
                st = storage_of(x)
            st.version += 1
            return x
    if otherwise is not None:
        return _filled_by(x, otherwise)
    assert isinstance(op, RandomOp)
    if op is _normal and not x.is_contiguous():
        # PyTorch draws for those one number at a time, whatever their size.
        op = _normal_serial

    def draw(shape: tuple[int, ...], be: BoundBackend) -> Any:
        given = (*numbers, shape) if op is _randint else (shape, *numbers)
        return op.draw(be, *given, x.dtype, generator_for(be.device, generator))._a

    return _filled_by(x, draw)


def _filled_by(x: Tensor, draw: Draw) -> Tensor:
    """Write fresh numbers in the order in which PyTorch visits the elements of `x`."""
    if recording() and x.requires_grad:
        _inplace.check_recorded_write(x)
    _inplace.check_write(x, [])
    shape = tuple(x._a.shape)
    be = x._be
    if be.device.type == "meta":
        return x
    if where_to_draw(be) is be and len(shape) < 2:
        _inplace.write(x, draw(shape, be))
        if recording() and x.requires_grad:
            _inplace.adopt(x, None, replaces=True)
        return x
    if where_to_draw(be) is not be:
        raise RuntimeError(
            "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will "
            "appear like same randomness. Draw out of place (rand_like ...), or make the tensor a "
            "batched one."
        )
    order = streams.fill_order(shape, x.stride())
    native = draw(tuple(shape[d] for d in order), be)
    if order != tuple(range(len(shape))):
        inverse = [0] * len(order)
        for i, d in enumerate(order):
            inverse[d] = i
        native = be.permute(native, tuple(inverse))
    _inplace.write(x, native)
    if recording() and x.requires_grad:
        _inplace.adopt(x, None, replaces=True)
    return x


@public(function=False)
@takes_as_annotated
def uniform_(
    input: Tensor,
    from_: float = 0.0,
    to: float = 1.0,
    *,
    generator: Generator | None = None,
    **legacy: Any,
) -> Tensor:
    """Fill with uniform numbers from [from, to)."""
    low = from_
    if legacy:
        low = legacy.pop("from", from_)
        if legacy:
            raise TypeError(f"uniform_() got an unexpected keyword argument {next(iter(legacy))!r}")
    _need_float("uniform_", input)
    if low > to:
        raise RuntimeError(
            f"uniform_ expects to return a [from, to) range, but found from={low} > to={to}"
        )
    return _filled(input, _uniform, (float(low), float(to)), generator)


@public(function=False)
@takes_as_annotated
def normal_(
    input: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill with normal numbers."""
    _check_std(std)
    _need_float("normal_", input)
    return _filled(input, _normal, (float(mean), float(std)), generator)


@public(function=False)
def random_(input: Tensor, *bounds: int | None, generator: Generator | None = None) -> Tensor:
    """Fill with integers: below `to`, from `from` to `to`, or all that the dtype holds."""
    if not bounds:
        if input.dtype.is_complex:
            raise NotImplementedError(f'"random_" not implemented for {input.dtype}')
        return _filled(input, _random_full, (), generator)
    given = (0, bounds[0]) if len(bounds) == 1 else bounds[:2]
    low = _whole("random_", "from", given[0])
    high = None if given[1] is None else _whole("random_", "to", given[1])
    if high is not None and low >= high:
        raise RuntimeError(
            f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
        )
    low, high = streams.integer_range(low, high, input.dtype)
    return _filled(input, _randint, (low, high), generator)


@public(function=False, names={"p_tensor": "p"})
@takes_as_annotated
def bernoulli_(
    input: Tensor, p: Tensor | float = 0.5, *, generator: Generator | None = None
) -> Tensor:
    """Fill with ones of probability `p` (a number or a tensor), zeros otherwise."""
    _need_real("bernoulli_", input)
    if isinstance(p, Tensor):
        if p._be is not input._be:
            p = written(input, p)
        shape = tuple(input._a.shape)
        probabilities = p if p._a.shape == shape else p.expand(shape)

        def draw(_: object, be: Any) -> Any:
            order = streams.fill_order(tuple(input._a.shape), input.stride())
            source = generator_for(be.device, generator)
            return _bernoulli_native(probabilities.permute(order), input.dtype, source)

        if p.dtype is input.dtype:
            _check_probabilities(p)
            return _filled(input, _bernoulli, (probabilities._a,), generator, draw)
        return _filled_by(input, draw)
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p}")
    return _filled(input, _bernoulli_scalar, (float(p),), generator)


@public(function=False)
@takes_as_annotated
def exponential_(
    input: Tensor, lambd: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill with numbers of density lambd * exp(-lambd * x)."""
    _need_continuous("Exponential", input)
    if not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd}")
    return _filled(input, _exponential, (float(lambd),), generator)


@public(function=False)
@takes_as_annotated
def cauchy_(
    input: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill with numbers of the Cauchy distribution."""
    _need_continuous("Cauchy", input)
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma}")
    return _filled(input, _cauchy, (float(median), float(sigma)), generator)


@public(function=False)
@takes_as_annotated
def log_normal_(
    input: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill with numbers whose logarithm is normal with `mean` and `std`."""
    _need_float("log_normal_", input)
    _need_real("log_normal_", input)
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std}")
    return _filled(input, _log_normal, (float(mean), float(std)), generator)


@public(function=False)
@takes_as_annotated
def geometric_(input: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Fill with the number of trials of probability `p` up to the first success."""
    _need_real("geometric_", input)
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p}")
    return _filled(input, _geometric, (float(p),), generator)


def _need_float(name: str, x: Tensor) -> None:
    if x.dtype.category < 2:
        raise NotImplementedError(
            f'"{name}" not implemented for {x.dtype}: it fills floating tensors'
        )


def _need_real(name: str, x: Tensor) -> None:
    if x.dtype.is_complex:
        raise NotImplementedError(f'"{name}" not implemented for {x.dtype}: it fills real tensors')


def _need_continuous(name: str, x: Tensor) -> None:
    if not x.dtype.is_floating_point:
        raise RuntimeError(
            f"{name} distribution is a continuous probability distribution. dtype must be a "
            f"floating point but you specified {x.dtype}"
        )
