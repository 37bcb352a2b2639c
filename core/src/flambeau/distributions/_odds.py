"""What distributions share that take either probabilities or log-odds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau import Size, Tensor
from flambeau.distributions.utils import (
    broadcast_all,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)

if TYPE_CHECKING:
    from flambeau import device as Device
    from flambeau import dtype as DType


def need_one(probs: object, logits: object) -> None:
    """Refuse both and neither.

    Raises:
        ValueError: `probs` and `logits` are both None, or neither is.
    """
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


def as_tensor_like(value: Any, other: Tensor) -> Tensor:
    """A tensor as it is; a number as one of the dtype and device of another."""
    if isinstance(value, Tensor):
        return value
    return fb.as_tensor(value, dtype=other.dtype, device=other.device)


class BinaryOdds:
    """Attributes `probs` and `logits`, of which one is given and the other made at first use."""

    def _set_odds(self, probs: Tensor | float | None, logits: Tensor | float | None) -> None:
        need_one(probs, logits)
        if probs is not None:
            (self.probs,) = broadcast_all(probs)
            self._param = self.probs
        else:
            (self.logits,) = broadcast_all(logits)
            self._param = self.logits

    def _set_counted_odds(
        self,
        total_count: Tensor | float,
        probs: Tensor | float | None,
        logits: Tensor | float | None,
    ) -> None:
        need_one(probs, logits)
        if probs is not None:
            total_count, self.probs = broadcast_all(total_count, probs)
            self._param = self.probs
        else:
            total_count, self.logits = broadcast_all(total_count, logits)
            self._param = self.logits
        self.total_count = total_count.type_as(self._param)

    def _new(self, *args: object, **kwargs: object) -> Tensor:
        return self._param.new(*args, **kwargs)

    if TYPE_CHECKING:  # subclasses have properties or plain attributes of these names
        logits: Any
        probs: Any
        _param: Any
        total_count: Any
    else:

        @lazy_property
        def logits(self) -> Tensor:
            """The log-odds log(p/(1 − p))."""
            return probs_to_logits(self.probs, is_binary=True)

        @lazy_property
        def probs(self) -> Tensor:
            """The probability p."""
            return logits_to_probs(self.logits, is_binary=True)

    def _part(self) -> Tensor:
        """p, which is no attribute afterwards if it was none."""
        return self.probs if "probs" in self.__dict__ else fb.sigmoid(self.logits)

    def _rest(self) -> Tensor:
        """1 − p, with all digits where log-odds are given."""
        return fb.sigmoid(-self.logits) if "logits" in self.__dict__ else 1 - self.probs

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter that was given."""
        return self._param.size()


class CategoricalOdds:
    """What distributions share that are made of a categorical one, `_categorical`."""

    _categorical: Any

    def _new(self, *args: object, **kwargs: object) -> Tensor:
        return self._categorical._new(*args, **kwargs)

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities of the categories."""
        return self._categorical.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities of the categories."""
        return self._categorical.probs

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter that was given."""
        return self._categorical.param_shape


class Relaxed:
    """What relaxed variables share: the parameters are those of the distribution that is bent."""

    base_dist: Any

    @property
    def temperature(self) -> Tensor:
        """How relaxed."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """The log-odds of 1, or the logarithms of the probabilities of the categories."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """The probability of 1, or of each category."""
        return self.base_dist.probs


def all_values(count: int, dtype: DType, device: Device, batch_shape: Size, expand: bool) -> Tensor:
    """0, 1, …, count − 1 along a first dimension before those of the batch."""
    values = fb.arange(count, dtype=dtype, device=device).view(-1, *(1 for _ in batch_shape))
    return values.expand((-1, *batch_shape)) if expand else values
