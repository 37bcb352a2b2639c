"""Names of ``torch.nn.functional`` that only programs for PyTorch want."""

from flambeau.compat._grouped import grouped_mm
from flambeau.compat._torch.nn import _reduction as _Reduction

__all__ = ["_Reduction", "grouped_mm"]
