"""Schedulers made of schedulers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, ClassVar

from flambeau.optim._options import entry
from flambeau.optim.lr_scheduler._base import (
    LRScheduler,
    checked_verbose,
    group_values,
    set_group_value,
)
from flambeau.optim.lr_scheduler._plateau import ReduceLROnPlateau
from flambeau.optim.optimizer import Optimizer

__all__ = ["ChainedScheduler", "SequentialLR"]


class _CombinedScheduler(LRScheduler):
    """A scheduler that steps others of one optimiser."""

    _not_saved: ClassVar[tuple[str, ...]] = ("optimizer", "_verbose", "_schedulers")
    _schedulers: Sequence[LRScheduler]

    def _check(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer) -> None:
        name = type(self).__name__
        for i, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(f"{name} at index {i} should have `optimizer` as its attribute.")
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(
                    f"{name} does not support `ReduceLROnPlateau` scheduler as it requires "
                    "additional kwargs to be specified when calling `step`, "
                    f"but got one at index {i} in the given schedulers sequence."
                )
            if scheduler.optimizer is not optimizer:
                raise ValueError(
                    f"{name} expects all schedulers to belong to the same optimizer, but got "
                    f"scheduler {type(scheduler).__name__} at index {i} has "
                    f"{scheduler.optimizer}, which is different from {type(optimizer).__name__}."
                )

    def state_dict(self) -> dict[str, Any]:
        """The attributes but the optimiser, with the state of every scheduler."""
        states = [scheduler.state_dict() for scheduler in self._schedulers]
        return {**super().state_dict(), "_schedulers": states}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        states = entry(state_dict, "_schedulers", "the state dict")
        own = {key: value for key, value in state_dict.items() if key != "_schedulers"}
        super().load_state_dict(own)
        for scheduler, state in zip(self._schedulers, states, strict=True):
            scheduler.load_state_dict(state)


class ChainedScheduler(_CombinedScheduler):
    """Several schedulers at once: each `step` is a step of all of them, in their order.

    Args:
        schedulers: of one optimiser, each computing from the last rate.
        optimizer: that optimiser; that of the first scheduler by default.

    Raises:
        ValueError: no schedulers, schedulers of different optimisers, or a `ReduceLROnPlateau`.
        TypeError: something that has no optimiser.

    >>> import flambeau as fb
    >>> optimizer = fb.optim.SGD([fb.ones(1, requires_grad=True)], lr=1.0)
    >>> constant = fb.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=3)
    >>> halving = fb.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> scheduler = fb.optim.lr_scheduler.ChainedScheduler([constant, halving])
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.25]
    """

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        if len(schedulers) < 1:
            raise ValueError(
                f"{type(self).__name__} expects at least one scheduler to be chained, "
                "but got no scheduler."
            )
        if not isinstance(schedulers, Sequence):
            raise TypeError(
                f"{type(self).__name__}(): argument 'schedulers' must be a list, not "
                f"{type(schedulers).__name__}"
            )
        shared: Any = optimizer or getattr(schedulers[0], "optimizer", None)
        self._check(schedulers, shared)
        self._schedulers = schedulers
        self.optimizer = shared
        self._last_lr = group_values(shared, "lr")

    def step(self) -> None:  # type: ignore[override]
        """Step every scheduler."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = group_values(self.optimizer, "lr")


class SequentialLR(_CombinedScheduler):
    """Several schedulers one after the other, each beginning at a milestone.

    Args:
        optimizer: whose groups are scheduled.
        schedulers: of this optimiser, in the order in which they act.
        milestones: the epochs in which the second and later ones take over.
        last_epoch: the epoch to resume from; -1 to begin.
        verbose: deprecated; the schedulers print, where they are told to.

    Raises:
        ValueError: no schedulers, schedulers of other optimisers, a `ReduceLROnPlateau`, or a
            number of milestones that does not fit.
        TypeError: something that has no optimiser.

    >>> import flambeau as fb
    >>> optimizer = fb.optim.SGD([fb.ones(1, requires_grad=True)], lr=1.0)
    >>> warmup = fb.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=9)
    >>> halving = fb.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> scheduler = fb.optim.lr_scheduler.SequentialLR(optimizer, [warmup, halving], [2])
    >>> rates = []
    >>> for _ in range(4):
    ...     rates += scheduler.get_last_lr()
    ...     optimizer.step()
    ...     scheduler.step()
    >>> rates
    [0.5, 0.5, 1.0, 0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: list[LRScheduler],
        milestones: list[int],
        last_epoch: int = -1,
        verbose: bool | None = None,
    ) -> None:
        if len(schedulers) < 1:
            raise ValueError(
                f"{type(self).__name__} expects at least one scheduler, but got no scheduler."
            )
        self._check(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than "
                "the number of milestone points, but got number of schedulers "
                f"{len(schedulers)} and the number of milestones to be equal to {len(milestones)}"
            )
        self._verbose = checked_verbose(verbose)
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer

        # Every scheduler has taken its first step when it was made: only the first one's counts.
        for group in optimizer.param_groups:
            set_group_value(group, "lr", group["initial_lr"])
        self.recursive_undo()
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def recursive_undo(self, sched: LRScheduler | None = None) -> None:
        """Take back one epoch of `sched`, and of the schedulers that it is made of."""
        scheduler = self if sched is None else sched
        if isinstance(scheduler, _CombinedScheduler):
            for part in scheduler._schedulers:
                self.recursive_undo(part)
        elif hasattr(scheduler, "last_epoch"):
            scheduler.last_epoch -= 1

    def step(self) -> None:  # type: ignore[override]
        """Step the scheduler whose turn it is; at its milestone it begins."""
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[i]
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()
