"""What scalers of losses that are made after PyTorch's first ones compute."""

from __future__ import annotations

from collections.abc import Sequence

import flambeau as fb
from flambeau import Tensor

__all__ = ["_amp_foreach_non_finite_check_and_unscale_", "_amp_update_scale_"]


@fb.no_grad()
def _amp_foreach_non_finite_check_and_unscale_(
    self: Sequence[Tensor], found_inf: Tensor, inv_scale: Tensor
) -> None:
    """Multiply gradients by `inv_scale`, in place, and write 1 into `found_inf` if any number
    of them was not finite before."""
    for grad in self:
        found_inf.masked_fill_(~grad.isfinite().all(), 1.0)
        grad.mul_(inv_scale)


@fb.no_grad()
def _amp_update_scale_(
    self: Tensor,
    growth_tracker: Tensor,
    found_inf: Tensor,
    scale_growth_factor: float,
    scale_backoff_factor: float,
    growth_interval: int,
) -> Tensor:
    """The next scale, in place: less after numbers that were not finite, more after
    `growth_interval` steps without one, unless that is infinite."""
    missed, counted = found_inf > 0, growth_tracker + 1
    full, grown = counted == growth_interval, self * scale_growth_factor
    grown = fb.where(full & grown.isfinite(), grown, self)
    self.copy_(fb.where(missed, self * scale_backoff_factor, grown))
    growth_tracker.copy_(fb.where(missed | full, 0, counted))
    return self
