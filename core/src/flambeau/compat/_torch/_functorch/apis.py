"""`torch._functorch.apis`: names of `torch.func`."""

from flambeau.compat._functorch.experimental import chunk_vmap
from flambeau.func import grad, grad_and_value, vmap

__all__ = ["chunk_vmap", "grad", "grad_and_value", "vmap"]
