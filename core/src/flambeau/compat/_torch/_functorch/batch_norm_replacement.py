"""`torch._functorch.batch_norm_replacement`: names of `torch.func`."""

from flambeau.func import replace_all_batch_norm_modules_

__all__ = ["replace_all_batch_norm_modules_"]
