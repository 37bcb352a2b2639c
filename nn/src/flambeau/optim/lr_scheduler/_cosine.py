"""Schedulers that follow a cosine."""

from __future__ import annotations

import math

from flambeau.optim.lr_scheduler._base import LRScheduler, Rate, need_step
from flambeau.optim.optimizer import Optimizer

__all__ = ["CosineAnnealingLR", "CosineAnnealingWarmRestarts"]


class CosineAnnealingLR(LRScheduler):
    """Half a cosine down and up again (Loshchilov & Hutter, 2017, without the restarts).

    η = eta_min + (η₀ - eta_min)(1 + cos(π · epoch / T_max)) / 2, computed from the last rate so
    that other schedulers can act beside it.

    Args:
        optimizer: whose groups are scheduled.
        T_max: epochs from the largest rate to the smallest.
        eta_min: the smallest rate.
        last_epoch: the epoch to resume from; -1 to begin.
        verbose: deprecated; print every new rate.

    >>> import flambeau as fb
    >>> optimizer = fb.optim.SGD([fb.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = fb.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2)
    >>> for _ in range(2):
    ...     optimizer.step()
    ...     scheduler.step()
    >>> scheduler.get_last_lr()
    [0.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_max: int,
        eta_min: float = 0.0,
        last_epoch: int = -1,
        verbose: bool | None = None,
    ) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch, verbose)

    def get_lr(self) -> list[Rate]:
        self._check_within_step()
        if self._is_initial:
            return self._unchanged()
        if self._step_count == 1 and self.last_epoch > 0:
            return self._get_closed_form_lr()
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            # The last rate was eta_min, which the quotient below cannot leave.
            height = (1 - math.cos(math.pi / self.T_max)) / 2
            return [
                group["lr"] + (rate - self.eta_min) * height
                for rate, group in zip(self.base_lrs, self.optimizer.param_groups, strict=True)
            ]
        ratio = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / (
            1 + math.cos(math.pi * (self.last_epoch - 1) / self.T_max)
        )
        return [
            ratio * (group["lr"] - self.eta_min) + self.eta_min
            for group in self.optimizer.param_groups
        ]

    def _get_closed_form_lr(self) -> list[Rate]:
        cosine = math.cos(math.pi * self.last_epoch / self.T_max)
        return [self.eta_min + (rate - self.eta_min) * (1 + cosine) / 2 for rate in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine down, again and again (Loshchilov & Hutter, 2017).

    η = eta_min + (η₀ - eta_min)(1 + cos(π · T_cur / T_i)) / 2, where T_cur is the number of epochs
    since the last restart, and T_i that between two: T_0, then T_0·T_mult, T_0·T_mult², …

    Args:
        optimizer: whose groups are scheduled.
        T_0: epochs until the first restart.
        T_mult: factor of the length after each restart.
        eta_min: the smallest rate.
        last_epoch: the epoch to resume from; -1 to begin.
        verbose: deprecated; print every new rate.

    Raises:
        ValueError: `T_0` or `T_mult` is no positive integer, or `eta_min` no number.

    >>> import flambeau as fb
    >>> optimizer = fb.optim.SGD([fb.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = fb.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
    >>> for _ in range(4):
    ...     optimizer.step()
    ...     scheduler.step()
    >>> scheduler.get_last_lr()
    [1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
        verbose: bool | None = None,
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(
                f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}"
            )
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch, verbose)

    def get_lr(self) -> list[Rate]:
        self._check_within_step()
        cosine = math.cos(math.pi * self.T_cur / self.T_i)
        return [self.eta_min + (rate - self.eta_min) * (1 + cosine) / 2 for rate in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:  # type: ignore[override]
        """Set the rates of the next epoch, or of a point within one.

        Args:
            epoch: where to go, a fraction between two epochs; the next one by default.

        Raises:
            ValueError: a negative `epoch`.
        """
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        elif epoch < 0 or epoch == math.inf:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        else:
            need_step(epoch, "step", "epoch")
            self._go_to(epoch)
        self.last_epoch = math.floor(epoch)
        self._set_rates(self.get_lr)

    def _go_to(self, epoch: float) -> None:
        if epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            ratio = self.T_mult
            restarts = int(math.log(epoch / self.T_0 * (ratio - 1) + 1, ratio))
            self.T_cur = epoch - self.T_0 * (ratio**restarts - 1) / (ratio - 1)
            self.T_i = self.T_0 * ratio**restarts
