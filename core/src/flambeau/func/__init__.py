"""Functions of functions: gradients, Jacobians, batches, and modules as functions."""

from __future__ import annotations

from flambeau._transforms import functions as _functions
from flambeau.absence import tell as _tell
from flambeau.func.batches import vmap
from flambeau.func.derivatives import grad, grad_and_value, jvp, linearize, vjp
from flambeau.func.functionalization import debug_unwrap, functionalize
from flambeau.func.jacobians import hessian, jacfwd, jacrev
from flambeau.func.modules import (
    functional_call,
    replace_all_batch_norm_modules_,
    stack_module_state,
)

_functions.register()

__all__ = [
    "debug_unwrap",
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]

_tell(__name__)
