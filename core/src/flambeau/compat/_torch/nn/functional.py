"""Names of ``torch.nn.functional`` that only programs for PyTorch want."""

from flambeau.compat._torch.nn import _reduction as _Reduction

__all__ = ["_Reduction"]
