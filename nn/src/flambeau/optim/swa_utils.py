"""Averages of a model's weights over the course of its training (Izmailov et al., 2018)."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.nn.module import Module
from flambeau.nn.modules.batchnorm import _BatchNorm
from flambeau.optim._options import number
from flambeau.optim.lr_scheduler._base import LRScheduler, Rate, one_per_group
from flambeau.optim.optimizer import Optimizer
from flambeau.overrides import all_take_as_annotated, takes_as_annotated

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]

Average = Callable[[Tensor, Tensor, Any], Tensor]
MultiAverage = Callable[[Sequence[Tensor], Sequence[Tensor], Any], None]


def _check_decay(decay: float) -> None:
    if not 0.0 <= decay <= 1.0:
        raise ValueError(
            f"Invalid decay value {decay} provided. Please provide a value in [0,1] range."
        )


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """An exponential moving average of two tensors: decay · averaged + (1 - decay) · current.

    Raises:
        ValueError: `decay` is outside [0, 1].

    >>> import flambeau as fb
    >>> fb.optim.swa_utils.get_ema_avg_fn(0.75)(fb.tensor(4.0), fb.tensor(8.0), 1)
    tensor(5.)
    """
    _check_decay(decay)

    @takes_as_annotated
    @fb.no_grad()
    def average(averaged: Tensor, current: Tensor, num_averaged: object) -> Tensor:
        return decay * averaged + (1 - decay) * current

    return average


def get_swa_avg_fn() -> Average:
    """The mean of all models so far: averaged + (current - averaged) / (num_averaged + 1).

    >>> import flambeau as fb
    >>> fb.optim.swa_utils.get_swa_avg_fn()(fb.tensor(4.0), fb.tensor(8.0), 3)
    tensor(5.)
    """

    @takes_as_annotated
    @fb.no_grad()
    def average(averaged: Tensor, current: Tensor, num_averaged: Any) -> Tensor:
        return averaged + (current - averaged) / (num_averaged + 1)

    return average


def get_ema_multi_avg_fn(decay: float = 0.999) -> MultiAverage:
    """`get_ema_avg_fn` for lists of tensors, of which the first is changed in place.

    Raises:
        ValueError: `decay` is outside [0, 1].
    """
    _check_decay(decay)
    average = get_ema_avg_fn(decay)

    @takes_as_annotated
    @fb.no_grad()
    def update(averaged: Sequence[Tensor], current: Sequence[Tensor], num_averaged: object) -> None:
        for old, new in zip(averaged, current, strict=True):
            old.copy_(average(old, new, num_averaged))

    return update


def get_swa_multi_avg_fn() -> MultiAverage:
    """`get_swa_avg_fn` for lists of tensors, of which the first is changed in place."""
    average = get_swa_avg_fn()

    @takes_as_annotated
    @fb.no_grad()
    def update(averaged: Sequence[Tensor], current: Sequence[Tensor], num_averaged: Any) -> None:
        # Of a count in a tensor, the weight is a float32, whatever the parameters are: as PyTorch.
        weight = number(1 / (num_averaged + 1))
        for old, new in zip(averaged, current, strict=True):
            if old.is_floating_point() or old.is_complex():
                old.lerp_(new, weight)
            else:
                old.copy_(average(old, new, num_averaged))

    return update


class AveragedModel(Module):
    """A copy of a model with the averages of its parameters, which `update_parameters` renews.

    Args:
        model: the model to average; ``module`` is the copy.
        device: where the averages are kept.
        avg_fn: of an averaged parameter, the current one, and the number of models averaged so
            far: the new average.  The mean of all by default.
        multi_avg_fn: the same for lists of tensors; writes into the first.
        use_buffers: average the buffers too, instead of copying them.

    Raises:
        AssertionError: both functions are given.

    >>> import flambeau as fb
    >>> model = fb.nn.Linear(1, 1, bias=False)
    >>> averaged = fb.optim.swa_utils.AveragedModel(model)
    >>> for value in (1.0, 2.0, 6.0):
    ...     _ = fb.nn.init.constant_(model.weight, value)
    ...     averaged.update_parameters(model)
    >>> averaged.module.weight.item(), averaged.n_averaged
    (3.0, tensor(3))
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: fb.device | str | int | None = None,
        avg_fn: Average | None = None,
        multi_avg_fn: MultiAverage | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if not isinstance(model, Module):
            raise TypeError(
                f"AveragedModel(): argument 'model' must be Module, not {type(model).__name__}"
            )
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", fb.tensor(0, dtype=fb.long, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The averaged model's output."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take the present parameters of `model` into the averages."""
        ours, theirs = (
            [t.detach() for t in self._averaged_of(part)] for part in (self.module, model)
        )
        theirs = [new.to(old.device) for old, new in zip(ours, theirs, strict=True)]
        if not fb.plans.known(self.n_averaged):
            for old, new in zip(ours, theirs, strict=True):
                old.copy_(new)
        elif self.multi_avg_fn is not None:
            self._update_lists(self.multi_avg_fn, ours, theirs)
        else:
            average = self.avg_fn or get_swa_avg_fn()
            for old, new in zip(ours, theirs, strict=True):
                old.copy_(average(old, new, self.n_averaged.to(old.device)))
        if not self.use_buffers:
            for old, new in zip(self.module.buffers(), model.buffers(), strict=True):
                old.detach().copy_(new.detach().to(old.device))
        self.n_averaged += 1

    def __plan__(self, reach: Any, name: str) -> None:
        """What has to stay the same for a plan: a model's, and whether there is an average yet."""
        super().__plan__(reach, name)
        reach.truth(self.n_averaged, f"{name}.n_averaged")

    def _averaged_of(self, part: Module) -> Iterable[Tensor]:
        return chain(part.parameters(), part.buffers()) if self.use_buffers else part.parameters()

    def _update_lists(
        self, update: MultiAverage, ours: Sequence[Tensor], theirs: Sequence[Tensor]
    ) -> None:
        groups: dict[Any, tuple[list[Tensor], list[Tensor]]] = {}
        for old, new in zip(ours, theirs, strict=True):
            left, right = groups.setdefault((old.device, old.dtype), ([], []))
            left.append(old)
            right.append(new)
        for (device, _), (left, right) in groups.items():
            update(left, right, self.n_averaged.to(device))


@takes_as_annotated
def update_bn(loader: Iterable[Any], model: Module, device: object = None) -> None:
    """Compute the running statistics of the batch norms in `model` anew, in one pass over data.

    Each item of `loader` is the input, or a list or tuple that begins with it; it is moved to
    `device` first.

    >>> import flambeau as fb
    >>> model = fb.nn.BatchNorm1d(1)
    >>> fb.optim.swa_utils.update_bn([fb.tensor([[1.0], [3.0]])], model)
    >>> model.running_mean
    tensor([2.])
    """
    norms = [part for part in model.modules() if isinstance(part, _BatchNorm)]
    if not norms:
        return
    momenta = [norm.momentum for norm in norms]
    training = model.training
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # the mean of all batches
    model.train()
    with fb.no_grad():
        for item in loader:
            x = item[0] if isinstance(item, (list, tuple)) else item
            model(x if device is None else x.to(device))
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
    model.train(training)


class SWALR(LRScheduler):
    """Moves the learning rates to `swa_lr` within some epochs and keeps them there.

    η = (1 - α) · η₀ + α · swa_lr, where α goes from 0 to 1 along a line or half a cosine, computed
    from the last rate so that other schedulers can act beside it.

    Args:
        optimizer: whose groups are scheduled.
        swa_lr: the final rate, or one for each group.
        anneal_epochs: the length of the way.
        anneal_strategy: ``"cos"`` or ``"linear"``.
        last_epoch: the epoch to resume from; -1 to begin.

    Raises:
        ValueError: another strategy, no whole number of epochs, or as many rates as groups are not.

    >>> import flambeau as fb
    >>> optimizer = fb.optim.SGD([fb.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = fb.optim.swa_utils.SWALR(optimizer, 0.5, 2, anneal_strategy="linear")
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     scheduler.step()
    ...     print(scheduler.get_last_lr())
    [0.75]
    [0.5]
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | Sequence[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        rates = one_per_group("swa_lr", optimizer, swa_lr)
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        for rate, group in zip(rates, optimizer.param_groups, strict=True):
            group["swa_lr"] = rate
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, step: int) -> float:
        """How much of the way is gone after so many steps."""
        t = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return (1 - math.cos(math.pi * t)) / 2 if self._anneal_strategy == "cos" else t

    def get_lr(self) -> list[Rate]:
        self._check_within_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        rates: list[Rate] = []
        for group in self.optimizer.param_groups:
            goal, rate = number(group["swa_lr"]), group["lr"]
            start = goal if before == 1 else (rate - before * goal) / (1 - before)
            rates.append(goal + (start - goal) * (1 - now))
        return rates


all_take_as_annotated(globals())
