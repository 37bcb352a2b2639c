"""Types for annotations, under the path that older programs import."""

from typing import (  # noqa: UP035
    Any,
    Dict,
    List,
    NamedTuple,
    Optional,
    Tuple,
    TypeVar,
    Union,
)

_T = TypeVar("_T")
BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = Union[_T, List[_T]]  # noqa: UP006, UP007
"""A number or a list of as many as the name says."""

__all__ = [
    "Any",
    "BroadcastingList1",
    "BroadcastingList2",
    "BroadcastingList3",
    "Dict",
    "List",
    "NamedTuple",
    "Optional",
    "Tuple",
    "Union",
]
