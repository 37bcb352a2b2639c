"""What programs ask a type, under PyTorch's names."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flambeau.jit._types import Type


class Asked:
    """The questions; a type of the language is one of these.

    >>> import flambeau as fb
    >>> @fb.jit.script
    ... def f(x: list[int]):
    ...     return x
    >>> kind = next(f.graph.inputs()).type()
    >>> kind.kind(), kind.str(), kind.annotation_str, kind.getElementType()
    ('ListType', 'int[]', 'List[int]', int)
    """

    __slots__ = ()
    args: Any
    shown: Any
    annotation: Any

    def str(self) -> builtins.str:
        """The type as graphs have it."""
        return self.shown

    @property
    def annotation_str(self) -> builtins.str:
        """The type as source has it."""
        return self.annotation

    def isSubtypeOf(self, other: Any) -> bool:
        """Whether each value of the type is one of another."""
        from flambeau.jit._types import is_subtype  # the types are made of this class

        own: Any = self
        return is_subtype(own, other)

    def containedTypes(self) -> list[Any]:
        """The types that it is made of."""
        return [*self.args]

    elements = containedTypes

    def getElementType(self) -> Type:
        """The type of the elements of a list, or of what an Optional holds."""
        return self.args[0]

    def getKeyType(self) -> Type:
        """The type of the keys of a dictionary."""
        return self.args[0]

    def getValueType(self) -> Type:
        """The type of the values of a dictionary."""
        return self.args[1]
