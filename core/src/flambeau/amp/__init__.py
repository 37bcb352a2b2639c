"""Mixed precision: ops that choose a narrow dtype where it is safe, and losses that are scaled.

`autocast` is the block in which ops choose, `GradScaler` keeps small gradients from becoming zero
in float16.
"""

from flambeau.amp.autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from flambeau.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
