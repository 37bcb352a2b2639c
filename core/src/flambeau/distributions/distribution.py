"""The base class of all distributions: shapes, validation, expansion, and what they can do."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, ClassVar

import flambeau as fb
from flambeau import Size, Tensor
from flambeau.distributions import constraints
from flambeau.distributions.utils import lazy_property
from flambeau.overrides import methods_take_as_annotated
from flambeau.plans.checks import check_all

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["Distribution"]


class Distribution:
    """A batch of probability distributions.

    A sample has the shape ``sample_shape + batch_shape + event_shape``: distributions of the batch
    are independent and may differ in their parameters; an event is one draw of one of them.

    Args:
        batch_shape: the shape over which parameters are batched.
        event_shape: the shape of a single sample.
        validate_args: whether parameters and values are checked; by default as set by
            `set_default_validate_args`, which is on unless Python runs with ``-O``.

    Raises:
        ValueError: a parameter is outside of its constraint.

    >>> from flambeau.distributions import MultivariateNormal, Normal
    >>> import flambeau as fb
    >>> Normal(fb.zeros(3, 2), 1.0).batch_shape, Normal(0.0, 1.0).batch_shape
    (torch.Size([3, 2]), torch.Size([]))
    >>> d = MultivariateNormal(fb.zeros(3, 2), fb.eye(2))
    >>> d.batch_shape, d.event_shape, d.sample((5,)).shape
    (torch.Size([3]), torch.Size([2]), torch.Size([5, 3, 2]))
    >>> Normal(0.0, -1.0)
    Traceback (most recent call last):
        ...
    ValueError: Expected parameter scale (Tensor of shape ()) of distribution ...
    """

    has_rsample: Any = False
    """Whether samples are differentiable in the parameters (`rsample`)."""
    has_enumerate_support: Any = False
    """Whether `enumerate_support` lists all values."""
    _validate_args = __debug__
    _batch_parameters: ClassVar[tuple[str, ...]]
    """Attributes that `expand` expands: tensors and distributions whose batch is this one's."""
    _shared_parameters: ClassVar[tuple[str, ...]] = ()
    """Attributes that `expand` hands on as they are."""

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        methods_take_as_annotated(cls, "log_prob", "cdf", "icdf")

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Turn validation on or off for distributions that are not told.

        Raises:
            ValueError: `value` is neither True nor False.

        >>> from flambeau.distributions import Distribution
        >>> Distribution.set_default_validate_args(True)
        """
        if value not in [True, False]:
            raise ValueError
        Distribution._validate_args = value

    def __init__(
        self,
        batch_shape: Size = Size(),
        event_shape: Size = Size(),
        validate_args: bool | None = None,
    ) -> None:
        self._batch_shape = batch_shape
        self._event_shape = event_shape
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._validate_parameters()
        super().__init__()

    def __plan__(self, reach: Any, name: str) -> None:
        """What has to stay the same for a plan: parameters."""
        reach.entries(vars(self), vars(self), name)

    def _validate_parameters(self) -> None:
        try:
            arg_constraints = self.arg_constraints
        except NotImplementedError:
            warnings.warn(
                f"{self.__class__} does not define `arg_constraints`. "
                "Please set `arg_constraints = {}` or initialize the distribution "
                "with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        own = self.__dict__
        for param, constraint in arg_constraints.items():
            if constraints.is_dependent(constraint):
                continue
            if param in own:
                value = own[param]
            elif isinstance(getattr(type(self), param), lazy_property):
                continue  # follows from another parameter, which is checked
            else:
                value = getattr(self, param)
            check_all(
                constraint.check(value),
                value,
                lambda param=param, value=value, constraint=constraint: (
                    f"Expected parameter {param} "
                    f"({type(value).__name__} of shape {tuple(value.shape)}) "
                    f"of distribution {self!r} "
                    f"to satisfy the constraint {constraint!r}, "
                    f"but found invalid values:"
                ),
            )

    def expand(self, batch_shape: Sequence[int], _instance: object = None) -> Any:
        """This distribution with its batch expanded to `batch_shape`; no memory is allocated.

        `_instance` is for subclasses that override the method: the object to fill.

        >>> from flambeau.distributions import Normal
        >>> Normal(0.0, 1.0).expand([2]).mean
        tensor([0., 0.])
        """
        owner = self._expanding_class()
        new = self._get_checked_instance(owner, _instance)
        batch_shape = Size(batch_shape)
        self._expand_parameters(owner, new, batch_shape)
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _expanding_class(self) -> type[Distribution]:
        """The class that says which parameters are expanded."""
        for cls in type(self).__mro__:
            if "_batch_parameters" in cls.__dict__:
                return cls
        raise NotImplementedError

    def _expand_parameters(self, owner: type[Distribution], new: object, batch_shape: Size) -> None:
        own, ndim = self.__dict__, len(self._batch_shape)
        for name in owner._batch_parameters:
            if name in own:
                value = own[name]
                shape = value.batch_shape if isinstance(value, Distribution) else value.shape
                setattr(new, name, value.expand(batch_shape + shape[ndim:]))
        for name in owner._shared_parameters:
            setattr(new, name, own[name])

    @property
    def batch_shape(self) -> Size:
        """The shape over which parameters are batched."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of a single sample (without batching)."""
        return self._event_shape

    if TYPE_CHECKING:  # subclasses have properties or plain attributes of these names
        arg_constraints: Any
        support: Any
    else:

        @property
        def arg_constraints(self) -> dict[str, constraints.Constraint]:
            """The constraint that each parameter must satisfy; others need not be tensors."""
            raise NotImplementedError

        @property
        def support(self) -> Any:
            """The constraint that says which values can occur."""
            raise NotImplementedError

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        raise NotImplementedError(f"{self.__class__} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.variance.sqrt()

    @fb.no_grad()
    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Draws of shape ``sample_shape + batch_shape + event_shape``, without a gradient."""
        return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Draws that are differentiable in the parameters (reparametrised)."""
        raise NotImplementedError

    def sample_n(self, n: int) -> Tensor:
        """`n` draws; deprecated for ``sample((n,))``."""
        warnings.warn(
            "`sample_n(n)` will be deprecated. Use `sample((n,))` instead.",
            FutureWarning,
            stacklevel=2,
        )
        return self.sample(Size((n,)))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density or probability at `value`."""
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of a draw of at most `value`."""
        raise NotImplementedError

    def log_cdf(self, value: Tensor) -> Tensor:
        """log P(X ≤ value); where a family says so, exact in the lower tail.

        Beyond PyTorch, as are the two survival functions.

        >>> from flambeau.distributions import Normal
        >>> import flambeau as fb
        >>> Normal(0.0, 1.0).log_cdf(fb.tensor(-20.0))
        tensor(-203.9172)
        """
        return self.cdf(value).log()

    def survival_function(self, value: Tensor) -> Tensor:
        """P(X > value); where a family says so, exact in the upper tail."""
        return 1 - self.cdf(value)

    def log_survival_function(self, value: Tensor) -> Tensor:
        """log P(X > value); where a family says so, exact in the upper tail."""
        return fb.log1p(-self.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        """The quantile: where `cdf` reaches `value`."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values of a discrete distribution, along a first dimension of their own.

        Values of the batch run in lock-step: ``[[0, 0], [1, 1], …]``.  With ``expand=False`` the
        batch dimensions are singletons.

        >>> from flambeau.distributions import Bernoulli
        >>> import flambeau as fb
        >>> Bernoulli(fb.zeros(3)).enumerate_support(expand=False)
        tensor([[0.],
                [1.]])
        """
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """The entropy −E[log p(x)] in nats, per batch."""
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        """exp(entropy), per batch."""
        return fb.exp(self.entropy())

    def _extended_shape(self, sample_shape: Sequence[int] = Size()) -> Size:
        """The shape of samples."""
        if not isinstance(sample_shape, Size):
            sample_shape = Size(sample_shape)
        if not (sample_shape or self._event_shape):
            return self._batch_shape
        if not (self._batch_shape or self._event_shape):
            return sample_shape
        return sample_shape + self._batch_shape + self._event_shape

    def _drawn_from(self, parameter: Tensor, sample_shape: Sequence[int]) -> Tensor:
        """A parameter of the batch's shape in the shape of samples."""
        return parameter.expand(self._extended_shape(sample_shape)) if sample_shape else parameter

    def _validate_sample(self, value: Any) -> None:
        """Refuse a value whose shape or elements do not fit the distribution.

        Raises:
            ValueError: it is no tensor, does not broadcast, or is outside of the support.
        """
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        shape = value.shape
        expected = self._batch_shape + self._event_shape
        if shape != expected:
            event_start = len(shape) - len(self._event_shape)
            if shape[event_start:] != self._event_shape:
                raise ValueError(
                    f"The right-most size of value must match event_shape: "
                    f"{value.size()} vs {self._event_shape}."
                )
            for i, j in zip(reversed(shape), reversed(expected), strict=False):
                if i != 1 and j != 1 and i != j:
                    raise ValueError(
                        f"Value is not broadcastable with batch_shape+event_shape: "
                        f"{value.size()} vs {expected}."
                    )
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{self.__class__} does not define `support` to enable "
                "sample validation. Please initialize the distribution with "
                "`validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        if support is None:
            raise AssertionError("support is unexpectedly None")
        check_all(
            support.check(value),
            value,
            lambda: (
                "Expected value argument "
                f"({type(value).__name__} of shape {tuple(value.shape)}) "
                f"to be within the support ({support!r}) "
                f"of the distribution {self!r}, "
                f"but found invalid values:"
            ),
        )

    def _get_checked_instance(self, cls: type[Distribution], _instance: object = None) -> Any:
        """An empty object of this class, or `_instance`.

        Raises:
            NotImplementedError: a subclass of `cls` has its own ``__init__``, whose attributes
                `cls` cannot know, and no ``expand`` of its own.
            TypeError: `_instance` is no distribution.
        """
        if not isinstance(_instance, Distribution | None):
            raise TypeError(
                f"expand(): argument '_instance' must be Distribution, "
                f"not {type(_instance).__name__}"
            )
        if _instance is None and type(self).__init__ != cls.__init__:
            raise NotImplementedError(
                f"Subclass {self.__class__.__name__} of {cls.__name__} that defines a custom "
                "__init__ method must also define a custom .expand() method."
            )
        return self.__new__(type(self)) if _instance is None else _instance

    def __repr__(self) -> str:
        own = self.__dict__
        params = [(name, own[name]) for name in self.arg_constraints if name in own]
        shown = ", ".join(f"{k}: {v if v.numel() == 1 else v.size()}" for k, v in params)
        return f"{self.__class__.__name__}({shown})"
