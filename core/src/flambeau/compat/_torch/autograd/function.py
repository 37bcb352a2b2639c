"""Names of ``torch.autograd.function`` that only programs for PyTorch want."""

from flambeau.autograd.function import Function, FunctionNode

__all__ = ["FunctionCtx", "NestedIOFunction"]

FunctionCtx = FunctionNode
NestedIOFunction = Function
