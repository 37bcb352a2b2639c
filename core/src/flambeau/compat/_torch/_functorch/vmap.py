"""`torch._functorch.vmap`: names of `torch.func`."""

from flambeau import Tensor
from flambeau.func import vmap
from flambeau.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["Tensor", "tree_flatten", "tree_unflatten", "vmap"]
