"""What ``--quick`` runs: of each part of the kit what finds most faults for its time.

It begins no test after a minute: a library that compiles each op for each shape takes far longer.
Tests of memory come first, and the others in turns, so that what is not reached is a part of each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from flambeau._dispatch.bound import bind

if TYPE_CHECKING:
    from collections.abc import Callable

SECONDS = 60.0

T = TypeVar("T")

_MODULES = ("test_memory", "test_laziness", "test_execution", "test_streams")
# A device that compiles takes minutes for all of its composites.
_NOT = ("test_compiled_composites_agree_with_their_decomposition",)
_TESTS = frozenset(
    [
        *("test_every_primitive_has_a_kernel", "test_corners_agree"),
        *("test_composite_corners_agree", "test_a_step_repeated_leaves_what_the_step_leaves"),
        "test_a_plan_looks_at_indices_in_every_run",
    ]
)
_DTYPES = ("float32", "int64", "complex64")
_OF_BOOLS = ("all", "any")
_DIFFERENTIATED = frozenset(["matmul", "softmax", "log_softmax", "conv2d", "layer_norm", "sort"])


def is_quick(test: Callable[..., Any], module: str, params: Mapping[str, Any]) -> bool:
    """Whether a case of a test function belongs to a first verdict.

    The whole kit asks for every dtype and layout, every derivative, and every write through every
    view; this does for one dtype of each kind, and for other layouts where arrays have strides.
    """
    name = test.__name__
    if name in _NOT:
        return False
    if name in _TESTS or module.rpartition(".")[2] in _MODULES:
        return True
    op, layout = params.get("name"), params.get("layout")
    dtype = getattr(params.get("dtype"), "name", "")
    match name:
        case "test_samples_agree" if layout == "transposed":
            return dtype == "float32" and bind(params["device"]).strided
        case "test_samples_agree":
            return layout == "contiguous" and (dtype in _DTYPES or op in _OF_BOOLS)
        case "test_kernels_agree_with_their_decomposition":
            return layout == "contiguous" and dtype == "float32"
        case "test_gradients_are_derivatives":
            return layout == "contiguous" and op in _DIFFERENTIATED
    return False


def in_turns(items: Sequence[T], parts: Sequence[str], first: str) -> list[T]:
    """The items, with those of all parts in the same proportion however soon they end.

    Args:
        items: of the parts.
        parts: the part of each.
        first: a part that comes before the others.

    >>> "".join(in_turns("abcABCDEFxy", "lllUUUUUUmm", "m"))
    'xyAaBCbDEcF'
    """
    total, seen, places = Counter(parts), Counter[str](), []
    for part in parts:
        seen[part] += 1
        places.append((part != first, (seen[part] - 0.5) / total[part]))
    order = sorted(range(len(items)), key=places.__getitem__)
    return [items[i] for i in order]
