"""`torch._functorch.functional_call`: names of `torch.func`."""

from flambeau.func import functional_call, stack_module_state

__all__ = ["functional_call", "stack_module_state"]
