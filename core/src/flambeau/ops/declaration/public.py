"""What a function of the ops is to programs, said beside it; the generator reads it from there.

The decorators only note facts on the function, so that a call costs what it cost without them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict, TypeVar, overload

if TYPE_CHECKING:
    from typing import Unpack

F = TypeVar("F", bound=Callable[..., Any])
Inplace = Literal["", "method", "function", "both", "view"]


class Public(NamedTuple):
    """How a function is offered.

    Attributes:
        function: whether there is ``flambeau.name``; without it, the function serves the method.
        method: whether the method of this name is the function with the tensor as first argument;
            if not there is none, or one that is written by hand.
        inplace: which forms write into the first argument: ``"method"``, ``x.name_()``;
            ``"function"``, ``flambeau.name_(x)``; ``"both"``; or ``"view"``, the method
            ``x.name_()`` that makes the tensor the view of itself.
        saves_self: whether the gradient of the in-place form may read the values from before it.
        same_dtype: whether the ``dtype=`` of the in-place form must be that of the tensor.
        direct: whether the method of a unary op calls the kernel itself.
        function_only: arguments of the function that the method has not.
        variadic: the argument whose numbers the method also takes one by one: ``x.tile(2, 3)``.
        names: what PyTorch 1.0 calls arguments of the method, to today's names.  The method takes
            both; the former are keyword-only and come last, so that a call by position, or by
            today's names, is not slower for them.
    """

    function: bool = True
    method: bool = True
    inplace: Inplace = ""
    saves_self: bool = True
    same_dtype: bool = False
    direct: bool = True
    function_only: tuple[str, ...] = ("out",)
    variadic: str = ""
    names: Mapping[str, str] = {}

    @property
    def inplace_method(self) -> bool:
        """Whether ``x.name_()`` is the function with its result written into `x`."""
        return self.inplace in ("method", "both")

    @property
    def inplace_function(self) -> bool:
        """Whether there is ``flambeau.name_(x)``."""
        return self.inplace in ("function", "both")


class Facts(TypedDict, total=False):
    """The arguments of `public`: see `Public`."""

    function: bool
    method: bool
    inplace: Inplace
    saves_self: bool
    same_dtype: bool
    direct: bool
    function_only: tuple[str, ...]
    variadic: str
    names: Mapping[str, str]


_ORDINARY = Public()


@overload
def public(function: F, /) -> F: ...
@overload
def public(**facts: Unpack[Facts]) -> Callable[[F], F]: ...
def public(function: Any = None, /, **facts: Any) -> Any:
    """A decorator: programs may call this function, in the forms that `facts` tell.

    Its other names (``arcsinh = asinh``) are offered as it is, unless `alias` says otherwise.

    >>> from flambeau.ops.declaration.public import offered, public
    >>> @public(inplace="method")
    ... def twice(input): return input + input
    >>> offered("twice", twice).inplace_method
    True
    """
    if function is not None:
        function.public = _ORDINARY
        return function
    offer = Public(**facts)

    def note(function: Any) -> Callable[..., Any]:
        function.public = offer
        return function

    return note


def alias(name: str, function: F, /, **facts: Unpack[Facts]) -> F:
    """The function, which under this other name is offered in other forms."""
    vars(function).setdefault("aliases", {})[name] = Public(**facts)
    return function


def offered(name: str, function: object) -> Public | None:
    """How a function is offered under a name; None if it is not for programs."""
    facts = getattr(function, "__dict__", {})
    return facts.get("aliases", {}).get(name) or facts.get("public")
