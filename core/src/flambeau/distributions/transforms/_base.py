"""The base class of transforms, inverses, chains, and changes of shape."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau import Size, Tensor
from flambeau.distributions import constraints
from flambeau.distributions.utils import _sum_rightmost, _whole, lazy_property
from flambeau.overrides import methods_take_as_annotated


class Transform:
    """An invertible transformation y = f(x) whose log |det ∂y/∂x| can be computed.

    A subclass defines `_call`, `_inverse` and `log_abs_det_jacobian`, and the attributes `domain`,
    `codomain` (constraints), `bijective` and, where it is monotonic, `sign`.  ``t.inv`` is the
    inverse, and ``t.inv.inv is t``.  Where f is not injective the inverse gives one of the
    preimages: ``t(t.inv(t(x))) == t(x)``.

    With ``cache_size=1`` the last pair (x, y) is remembered, so that the inverse of a y just
    computed is x itself: cheaper and exact, but x and y stay alive, and gradients of a backward
    pass may be asked for twice.

    Raises:
        ValueError: `cache_size` is neither 0 nor 1.

    >>> from flambeau.distributions import ExpTransform
    >>> import flambeau as fb
    >>> t = ExpTransform(cache_size=1)
    >>> x = fb.tensor([0.0, 1.0])
    >>> t(x), t.inv(t(x)) is x, t.log_abs_det_jacobian(x, t(x))
    (tensor([1.0000, 2.7183]), True, tensor([0., 1.]))
    """

    bijective: Any = False
    domain: Any
    codomain: Any

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        methods_take_as_annotated(cls, "_call", "_inverse", "log_abs_det_jacobian")

    def __init__(self, cache_size: int = 0) -> None:
        self._cache_size = cache_size
        self._inv: Any = None
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cached_x_y: tuple[Any, Any] = (None, None)
        super().__init__()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_inv": None}

    @property
    def inv(self) -> Transform:
        """The inverse transform."""
        if self._inv is None:
            self._inv = _InverseTransform(self)
        return self._inv

    if TYPE_CHECKING:  # subclasses have properties or plain attributes of these names
        event_dim: Any
        sign: Any
    else:

        @property
        def event_dim(self) -> Any:
            """How many dimensions make one event, if that is the same before and after.

            Raises:
                ValueError: it is not; ask `domain` and `codomain`.
            """
            if self.domain.event_dim == self.codomain.event_dim:
                return self.domain.event_dim
            raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

        @property
        def sign(self) -> Tensor | int:
            """+1 or −1: whether a univariate transform increases or decreases."""
            raise NotImplementedError

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The same transform with a cache of that size."""
        if self._cache_size == cache_size:
            return self
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = None  # pyright: ignore - equal transforms are not always the same object

    def __call__(self, x: Tensor) -> Tensor:
        if self._cache_size == 0:
            return self._call(x)
        x_old, y_old = self._cached_x_y
        if x is x_old:
            return y_old
        y = self._call(x)
        self._cached_x_y = x, y
        return y

    def _inv_call(self, y: Tensor) -> Tensor:
        if self._cache_size == 0:
            return self._inverse(y)
        x_old, y_old = self._cached_x_y
        if y is y_old:
            return x_old
        x = self._inverse(y)
        self._cached_x_y = x, y
        return x

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Any:
        """log |det ∂y/∂x| at x, which f takes to y."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """The shape of f(x) for x of this shape."""
        return shape

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """The shape of x for f(x) of this shape."""
        return shape


class _InverseTransform(Transform):
    """The inverse of a transform, which does the work and keeps the cache."""

    _inv: Any

    def __init__(self, transform: Transform) -> None:
        super().__init__(cache_size=transform._cache_size)
        self._inv = transform

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__.copy()

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> constraints.Constraint:
        return self._inv.codomain

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> constraints.Constraint:
        return self._inv.domain

    @property
    def bijective(self) -> bool:
        return self._inv.bijective

    @property
    def sign(self) -> Tensor | int:
        return self._inv.sign

    @property
    def inv(self) -> Transform:
        return self._inv

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self.inv.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._inv!r})"

    def __call__(self, x: Tensor) -> Tensor:
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Any:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Sequence[int]) -> Any:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self._inv.forward_shape(shape)


class ComposeTransform(Transform):
    """Transforms one after another; an empty chain is the identity.

    >>> from flambeau.distributions import AffineTransform, ComposeTransform, ExpTransform
    >>> import flambeau as fb
    >>> ComposeTransform([AffineTransform(0.0, 2.0), ExpTransform()])(fb.tensor([0.0, 0.5]))
    tensor([1.0000, 2.7183])
    """

    def __init__(self, parts: list[Transform], cache_size: int = 0) -> None:
        if cache_size:
            parts = [part.with_cache(cache_size) for part in parts]
        if not all(isinstance(part, Transform) for part in parts):
            raise TypeError("ComposeTransform(): argument 'parts' must be a list of Transforms")
        super().__init__(cache_size=cache_size)
        self.parts = parts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> constraints.Constraint:
        if not self.parts:
            return constraints.real
        domain = self.parts[0].domain
        event_dim = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            event_dim += part.domain.event_dim - part.codomain.event_dim
            event_dim = max(event_dim, part.domain.event_dim)
        return _with_event_dim(domain, event_dim)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> constraints.Constraint:
        if not self.parts:
            return constraints.real
        codomain = self.parts[-1].codomain
        event_dim = self.parts[0].domain.event_dim
        for part in self.parts:
            event_dim += part.codomain.event_dim - part.domain.event_dim
            event_dim = max(event_dim, part.codomain.event_dim)
        return _with_event_dim(codomain, event_dim)

    @lazy_property
    def bijective(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return all(p.bijective for p in self.parts)

    @lazy_property
    def sign(self) -> Tensor | int:  # pyright: ignore[reportIncompatibleVariableOverride]
        sign = 1
        for part in self.parts:
            sign = sign * part.sign
        return sign

    @property
    def inv(self) -> Transform:
        if self._inv is None:
            self._inv = ComposeTransform([p.inv for p in reversed(self.parts)])
            self._inv._inv = self
        return self._inv

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return ComposeTransform(self.parts, cache_size=cache_size)

    def __call__(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Any:
        if not self.parts:
            return fb.zeros_like(x)
        # Going through the parts again makes use of their caches.
        xs = [x]
        for part in self.parts[:-1]:
            xs.append(part(xs[-1]))
        xs.append(y)
        terms = []
        event_dim = self.domain.event_dim
        for part, before, after in zip(self.parts, xs[:-1], xs[1:], strict=True):
            term = part.log_abs_det_jacobian(before, after)
            terms.append(_sum_rightmost(term, event_dim - part.domain.event_dim))
            event_dim += part.codomain.event_dim - part.domain.event_dim
        return functools.reduce(operator.add, terms)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        parts = ",\n    ".join(repr(part) for part in self.parts)
        return f"{type(self).__name__}(\n    {parts}\n)"


def _with_event_dim(constraint: Any, event_dim: int) -> Any:
    if event_dim < constraint.event_dim:
        raise AssertionError(
            f"event_dim {event_dim} must be >= the constraint's {constraint.event_dim}"
        )
    if event_dim == constraint.event_dim:
        return constraint
    return constraints.independent(constraint, event_dim - constraint.event_dim)


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform some of whose batch dimensions on the right belong to the event.

    Forward and inverse stay the same; the log determinants are summed over these dimensions.

    >>> from flambeau.distributions import ExpTransform, IndependentTransform
    >>> import flambeau as fb
    >>> t = IndependentTransform(ExpTransform(), 1)
    >>> x = fb.tensor([1.0, 2.0])
    >>> t.log_abs_det_jacobian(x, t(x))
    tensor(3.)
    """

    def __init__(
        self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size=cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = _whole(
            reinterpreted_batch_ndims, "IndependentTransform", "reinterpreted_batch_ndims"
        )

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return IndependentTransform(
            self.base_transform, self.reinterpreted_batch_ndims, cache_size=cache_size
        )

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> constraints.Constraint:
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> constraints.Constraint:
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self) -> bool:
        return self.base_transform.bijective

    @property
    def sign(self) -> Tensor | int:
        return self.base_transform.sign

    def _call(self, x: Tensor) -> Tensor:
        if x.dim() < self.domain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        if y.dim() < self.codomain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        result = self.base_transform.log_abs_det_jacobian(x, y)
        return _sum_rightmost(result, self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"

    def forward_shape(self, shape: Sequence[int]) -> Any:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self.base_transform.inverse_shape(shape)


class ReshapeTransform(Transform):
    """Reshapes the dimensions of an event; its Jacobian determinant is 1.

    Raises:
        ValueError: the shapes have different numbers of elements.

    >>> from flambeau.distributions import ReshapeTransform
    >>> import flambeau as fb
    >>> ReshapeTransform((4,), (2, 2))(fb.zeros(3, 4)).shape
    torch.Size([3, 2, 2])
    """

    bijective = True

    def __init__(self, in_shape: Sequence[int], out_shape: Sequence[int], cache_size: int = 0):
        self.in_shape = Size(in_shape)
        self.out_shape = Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size=cache_size)

    @constraints.dependent_property
    def domain(self) -> constraints.Constraint:
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self) -> constraints.Constraint:
        return constraints.independent(constraints.real, len(self.out_shape))

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return ReshapeTransform(self.in_shape, self.out_shape, cache_size=cache_size)

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(x.shape[: x.dim() - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(y.shape[: y.dim() - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    def forward_shape(self, shape: Sequence[int]) -> Any:
        return _replaced(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return _replaced(shape, self.out_shape, self.in_shape)


def _replaced(shape: Any, old: Size, new: Size) -> Any:
    if len(shape) < len(old):
        raise ValueError("Too few dimensions on input")
    cut = len(shape) - len(old)
    if shape[cut:] != old:
        raise ValueError(f"Shape mismatch: expected {shape[cut:]} but got {old}")
    return shape[:cut] + new
