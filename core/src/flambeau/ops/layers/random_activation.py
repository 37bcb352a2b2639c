"""The leaky rectifier whose slope is drawn anew for each element."""

from __future__ import annotations

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import need_tensor
from flambeau._random.generator import Generator
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau.ops.creation.creation import empty, ones_like
from flambeau.ops.declaration.public import public
from flambeau.ops.layers.activation import leaky_relu
from flambeau.ops.layers.piecewise_activation import _rrelu_with_noise


@public(method=False, inplace="function")
@takes_as_annotated
def rrelu(
    input: Tensor,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """x where x > 0, else a·x with a drawn from U(`lower`, `upper`) per element.

    Outside training a is the middle of the interval.  The stream equals PyTorch's.

    Raises:
        RuntimeError: `lower` is greater than `upper`.

    >>> import flambeau as fb
    >>> fb.rrelu(fb.tensor([-2.0, 2.0]), 0.25, 0.75)
    tensor([-1.,  2.])
    """
    x = need_tensor(input, "rrelu", "input")
    if lower > upper:
        raise RuntimeError(
            f"Lower bound should be less than or equal to the upper bound, got {lower} and {upper}"
        )
    if not training or x.is_meta:
        return leaky_relu(x.contiguous(), (lower + upper) / 2)
    negative = x <= 0
    # One float64 draw for each element that needs one, in order: PyTorch's use of the generator.
    drawn = empty(int(negative.sum().item()), dtype=D.float64, device=x.device)
    drawn.uniform_(lower, upper, generator=generator)
    slopes = ones_like(x)
    slopes[negative] = drawn.to(x.dtype)
    return _rrelu_with_noise.run(x, slopes)
