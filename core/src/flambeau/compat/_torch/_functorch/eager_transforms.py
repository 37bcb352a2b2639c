"""`torch._functorch.eager_transforms`: names of `torch.func`."""

from flambeau.func import (
    debug_unwrap,
    functionalize,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    vjp,
)

__all__ = [
    "debug_unwrap",
    "functionalize",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "vjp",
]
