"""Names of ``torch.nn.modules.container`` that only programs for PyTorch want."""

import warnings

from flambeau.compat._torch.nn.modules.module import _addindent
from flambeau.nn.module import Module

__all__ = ["Container", "_addindent"]


class Container(Module):
    """Modules by their names: what `Module` was split from, and does itself today."""

    def __init__(self, **kwargs: Module) -> None:
        super().__init__()
        warnings.warn(
            "nn.Container is deprecated: make a subclass of nn.Module, which does all of it",
            FutureWarning,
            stacklevel=2,
        )
        for name, module in kwargs.items():
            self.add_module(name, module)
