"""`torch._functorch.vmap`: names of `torch.func`."""

from flambeau.func import vmap

__all__ = ["vmap"]
