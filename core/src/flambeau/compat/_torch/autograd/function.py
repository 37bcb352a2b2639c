"""Names of ``torch.autograd.function`` that only programs for PyTorch want."""

from __future__ import annotations

from flambeau.autograd.function import Function, FunctionCtx

__all__ = ["BackwardCFunction", "InplaceFunction", "NestedIOFunction"]

BackwardCFunction = FunctionCtx
NestedIOFunction = Function


class InplaceFunction(Function):
    """A function whose object knows whether it writes into its input: a base of older programs."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace
