"""The base class of schedulers, and what its subclasses share."""

from __future__ import annotations

import types
import warnings
import weakref
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ClassVar

from flambeau import Tensor
from flambeau.optim._options import number
from flambeau.optim.optimizer import Optimizer
from flambeau.overrides import methods_take_as_annotated

Rate = float | Tensor


class LRScheduler:
    """Base class of schedulers: sets the learning rate of every group of an optimiser.

    A subclass defines `get_lr`, the rates for ``self.last_epoch``, mostly computed from the current
    ones, so that schedulers can be chained.  Where the rates have a closed form, the subclass also
    defines ``_get_closed_form_lr``, which `step` uses when it is given an epoch.

    Args:
        optimizer: whose groups are scheduled.
        last_epoch: the epoch to resume from; -1 to begin.
        verbose: deprecated; print every new rate.

    Attributes:
        base_lrs: the rate of each group at the beginning.
        last_epoch: how often `step` has been called since.

    Raises:
        TypeError: `optimizer` is not an optimiser.
        KeyError: resumed with an optimiser whose groups know no initial rate.

    >>> import flambeau as fb
    >>> class Halving(fb.optim.lr_scheduler.LRScheduler):
    ...     def get_lr(self):
    ...         return [rate / 2**self.last_epoch for rate in self.base_lrs]
    >>> optimizer = fb.optim.SGD([fb.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = Halving(optimizer)
    >>> for _ in range(2):
    ...     optimizer.step()
    ...     scheduler.step()
    >>> scheduler.get_last_lr()
    [0.25]
    """

    _not_saved: ClassVar[tuple[str, ...]] = ("optimizer", "_verbose")
    _get_lr_called_within_step: bool = False
    _is_initial: bool = False
    _last_lr: list[Rate]
    _verbose: bool = False

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        methods_take_as_annotated(cls, "get_lr", "_get_closed_form_lr")

    def __init__(
        self, optimizer: Optimizer, last_epoch: int = -1, verbose: bool | None = None
    ) -> None:
        self.optimizer = checked_optimizer(optimizer)
        if last_epoch == -1:
            for group in optimizer.param_groups:
                group.setdefault("initial_lr", _copied(group["lr"]))
        else:
            for i, group in enumerate(optimizer.param_groups):
                if "initial_lr" not in group:
                    raise KeyError(
                        f"param 'initial_lr' is not specified in param_groups[{i}] when resuming "
                        f"scheduler with last_epoch >= 0 (it is {last_epoch}): load the state dict "
                        "of the optimizer first, or begin with last_epoch=-1"
                    )
        self.base_lrs = group_values(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        self._verbose = checked_verbose(verbose, stacklevel=4)
        _note_calls(optimizer)
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def __plan__(self, reach: Any, name: str) -> None:
        """A plan calls `step` where its function did: it counts, and sets the rates."""
        reach.action(self, "step", self.optimizer.param_groups)
        reach.walk(self.optimizer, f"{name}.optimizer")

    def state_dict(self) -> dict[str, Any]:
        """All attributes except the optimiser, whose state has its own dict."""
        return {key: value for key, value in vars(self).items() if key not in self._not_saved}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over the attributes of a `state_dict`."""
        vars(self).update(state_dict)

    def get_last_lr(self) -> list[Rate]:
        """The rate of each group, as the last `step` set it."""
        return self._last_lr

    def get_lr(self) -> list[Rate]:
        """The rate of each group for ``self.last_epoch``: what a subclass defines for `step`."""
        raise NotImplementedError(f"{type(self).__name__} does not define get_lr()")

    def step(self, epoch: int | None = None) -> None:
        """Set the rates of the next epoch.  Call it after ``optimizer.step()``.

        Args:
            epoch: deprecated; the epoch to go to, by the closed form where there is one.
        """
        if self._step_count == 1:
            self._warn_of_order()
        self._step_count += 1
        if epoch is not None:
            need_step(epoch, "step", "epoch")
            warn_of_epoch()
        try:
            self._update_lr(epoch)
        except OverflowError as error:
            raise ValueError(f"step(): there is no rate for epoch {epoch!r:.40}: {error}") from None

    def _warn_of_order(self) -> None:
        if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
            message = (
                "Seems like `optimizer.step()` has been overridden after learning rate scheduler "
                "initialization. Please, make sure to call `optimizer.step()` before "
                f"`lr_scheduler.step()`: {_ORDER}"
            )
        elif not vars(self.optimizer).get("_opt_called", False):
            message = (
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`: the first value "
                "of the learning rate schedule is skipped. Call `optimizer.step()` first, then "
                f"`lr_scheduler.step()`: {_ORDER}"
            )
        else:
            return
        warnings.warn(message, UserWarning, stacklevel=3)

    def _update_lr(self, epoch: int | None = None) -> None:
        closed_form = getattr(self, "_get_closed_form_lr", None)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        rates = closed_form if epoch is not None and closed_form is not None else self.get_lr
        self._set_rates(rates)

    def _set_rates(self, rates: Callable[[], Sequence[Rate]]) -> None:
        self._get_lr_called_within_step = True
        try:
            values = rates()
        finally:
            self._get_lr_called_within_step = False
        for i, (group, rate) in enumerate(zip(self.optimizer.param_groups, values, strict=True)):
            set_group_value(group, "lr", rate)
            if self._verbose:
                print(f"Adjusting learning rate of group {i} to {number(rate):.4e}.")
        self._last_lr = group_values(self.optimizer, "lr")

    def _check_within_step(self) -> None:
        """Warn where `get_lr` is called between steps, when it does not give the last rates."""
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, "
                "please use `get_last_lr()`.",
                UserWarning,
                stacklevel=3,
            )

    def _scaled(self, factor: float) -> list[Rate]:
        """The current rates, multiplied."""
        return [group["lr"] * factor for group in self.optimizer.param_groups]

    def _unchanged(self) -> list[Rate]:
        """Copies of the current rates."""
        return group_values(self.optimizer, "lr")


_ORDER = "https://docs.pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"


def _note_calls(optimizer: Optimizer) -> None:
    """Give `optimizer` a `step` that notes that it has been called; once per optimiser.

    The function refers to the optimiser weakly: otherwise each would keep the other alive.
    """
    if hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        return
    step = optimizer.step.__func__
    reference = weakref.ref(optimizer)

    @wraps(step)
    def noted(*args: object, **kwargs: object) -> object:
        owner = reference()
        if owner is None:
            raise ReferenceError("the optimizer of this step() no longer exists")
        vars(owner)["_opt_called"] = True
        return step(owner, *args, **kwargs)

    vars(noted)["_wrapped_by_lr_sched"] = True
    vars(optimizer)["step"] = noted


def checked_optimizer(optimizer: Optimizer) -> Optimizer:
    """`optimizer`; TypeError where it is none."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
    return optimizer


def checked_verbose(verbose: bool | None, stacklevel: int = 3) -> bool:
    """Whether to print rates; a warning where the deprecated argument is given at all."""
    if verbose is None:
        return False
    warnings.warn(
        "The verbose parameter is deprecated. Please use get_last_lr() to access the learning "
        "rate.",
        UserWarning,
        stacklevel=stacklevel,
    )
    return verbose


WARNS_OF_EPOCHS = True
"""Whether giving an epoch is deprecated: it was not in PyTorch 1.2."""


def need_step(value: object, where: str, name: str) -> None:
    """Refuse what no schedule can divide.

    Raises:
        TypeError: it is no number.
        ValueError: no float holds it.
    """
    try:
        float(value)  # type: ignore[arg-type] - it says so itself
    except (TypeError, ValueError):
        kind = type(value).__name__
        raise TypeError(f"{where}(): argument {name!r} must be a number, not {kind}") from None
    except OverflowError:
        raise ValueError(f"{where}(): argument {name!r} is too large") from None


def warn_of_epoch() -> None:
    """Warn that an epoch has been given to `step`."""
    if not WARNS_OF_EPOCHS:
        return
    warnings.warn(
        "The epoch parameter in `scheduler.step()` is deprecated where possible: call "
        "`scheduler.step()` without it. With an epoch, the closed form of the schedule is used "
        "instead of the chainable one, where available.",
        UserWarning,
        stacklevel=3,
    )


def one_per_group(name: str, optimizer: Optimizer, value: object) -> list[Any]:
    """`value` for every group, or the sequence of values that it is."""
    groups = len(checked_optimizer(optimizer).param_groups)
    if not isinstance(value, (list, tuple)):
        return [_copied(value) for _ in range(groups)]
    if len(value) != groups:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. "
            f"{name} has {len(value)} values, param_groups has {groups}."
        )
    return [_copied(item) for item in value]


def group_values(optimizer: Optimizer, key: str) -> list[Any]:
    """The option `key` of every group; tensors are copied, for they are changed in place."""
    return [_copied(group[key]) for group in optimizer.param_groups]


def set_group_value(group: dict[str, Any], key: str, value: Rate) -> None:
    """Set the option `key` of a group; a tensor is filled, so that all who hold it see it."""
    if isinstance(group[key], Tensor):
        group[key].fill_(number(value))
    else:
        group[key] = value


def saved_callables(functions: Sequence[Any]) -> list[dict[str, Any] | None]:
    """The attributes of callable objects; None for functions, which cannot be saved."""
    return [
        None if isinstance(function, types.FunctionType) else vars(function).copy()
        for function in functions
    ]


def _copied(value: object) -> Tensor | object:
    return value.clone() if isinstance(value, Tensor) else value
