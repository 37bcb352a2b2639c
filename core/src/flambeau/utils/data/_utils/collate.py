"""From samples to batches: lists of tensors become stacked tensors, in any nest of containers.

NumPy values are recognised only where NumPy has been imported by whoever made them.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import flambeau as fb

if TYPE_CHECKING:
    from flambeau import Tensor


__all__ = ["collate", "default_collate", "default_collate_fn_map", "default_convert"]

CollateMap: TypeAlias = dict[type | tuple[type, ...], Callable[..., Any]]

_NOT_COLLATABLE = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)


def default_convert(data: Any) -> Any:
    """`data` with its NumPy arrays and scalars, at any depth of containers, turned into tensors.

    What a `DataLoader` does to a sample when it makes no batches.  Tuples become lists.

    >>> import flambeau as fb, numpy
    >>> fb.utils.data.default_convert({"x": numpy.array([1, 2]), "name": "one"})
    {'x': tensor([1, 2]), 'name': 'one'}
    """
    kind = type(data)
    if isinstance(data, fb.Tensor):
        return data
    if kind.__module__ == "numpy" and kind.__name__ not in ("str_", "bytes_"):
        is_text = kind.__name__ == "ndarray" and data.dtype.kind in "SaUO"
        return data if is_text else fb.as_tensor(data)
    if isinstance(data, Mapping):
        return _rebuilt_mapping(data, {key: default_convert(data[key]) for key in data})
    if _is_namedtuple(data):
        return kind(*(default_convert(item) for item in data))
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _rebuilt_sequence(data, [default_convert(item) for item in data])
    return data


def default_collate(batch: Sequence[Any]) -> Any:
    """A list of samples as one batch, with a new first dimension.

    Tensors and NumPy arrays are stacked, numbers become a tensor (floats one of float64), strings
    stay as they are.  Mappings, sequences and named tuples are collated entry by entry, and a tuple
    of entries gives a list.

    Raises:
        TypeError: a sample holds something else.
        RuntimeError: samples are sequences of different lengths, or tensors of different shapes.

    >>> import flambeau as fb
    >>> fb.utils.data.default_collate([(1, "one"), (2, "two")])
    [tensor([1, 2]), ('one', 'two')]
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


def _first(batch: Sequence[Any]) -> Any:
    try:
        return batch[0]
    except IndexError:
        raise IndexError("batch index out of range: there are no samples") from None
    except (KeyError, TypeError) as error:  # a mapping's, or of what has no entries
        kind = type(batch).__name__
        raise TypeError(f"expected a sequence of samples, got {kind}") from error


def collate(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Any:
    """A list of samples as one batch, where the map says how each type of leaf is put together.

    Args:
        batch: samples of one structure.
        collate_fn_map: from a type (or tuple of types) to a function of ``(batch, *,
            collate_fn_map)``; the exact type of the first sample is looked up first, then the first
            type in order of which it is an instance.  Containers without an entry are entered.

    Raises:
        TypeError: neither the map nor the rules for containers know the type, or `batch` is no
            sequence.
        IndexError: there are no samples.
        KeyError: a mapping has not every key of the first.

    >>> import flambeau as fb
    >>> total = {int: lambda batch, *, collate_fn_map: sum(batch)}
    >>> from flambeau.utils.data._utils.collate import collate
    >>> collate([{"a": 1}, {"a": 2}], collate_fn_map=total)
    {'a': 3}
    """
    sample = _first(batch)
    kind = type(sample)
    known = collate_fn_map or {}
    if known is default_collate_fn_map and "numpy" in sys.modules:
        _know_numpy()
    function = known.get(kind)
    if function is None:
        function = next((fn for types, fn in known.items() if isinstance(sample, types)), None)
    if function is not None:
        return function(batch, collate_fn_map=collate_fn_map)

    def together(items: Sequence[Any]) -> object:
        return collate(items, collate_fn_map=collate_fn_map)

    if isinstance(sample, Mapping):
        try:
            columns = {key: [other[key] for other in batch] for key in sample}
        except KeyError as error:
            raise KeyError(f"a sample has not the key {error} of the first one") from error
        return _rebuilt_mapping(sample, {key: together(items) for key, items in columns.items()})
    if _is_namedtuple(sample):
        return kind(*(together(items) for items in zip(*batch, strict=True)))
    if isinstance(sample, Sequence):
        if any(len(other) != len(sample) for other in batch):
            raise RuntimeError(
                "each element in list of batch should be of equal size, "
                f"but their sizes are {[len(other) for other in batch]}"
            )
        return _rebuilt_sequence(sample, [together(items) for items in zip(*batch, strict=True)])
    raise TypeError(_NOT_COLLATABLE.format(kind))


def _rebuilt_mapping(like: Mapping[Any, Any], entries: dict[Any, Any]) -> Any:
    """`entries` as a mapping of the type of `like`; a mutable one keeps its further properties."""
    try:
        if isinstance(like, MutableMapping):
            clone = copy.copy(like)
            clone.update(entries)
            return clone
        return type(like)(entries)  # type: ignore[call-arg]
    except TypeError:  # the type cannot be copied, or is not made from a mapping
        return entries


def _rebuilt_sequence(like: Sequence[Any], items: list[Any]) -> Any:
    """`items` as a sequence of the type of `like`; a list for a tuple."""
    if isinstance(like, tuple):
        return items
    try:
        if isinstance(like, MutableSequence):
            clone = copy.copy(like)
            for i, item in enumerate(items):
                clone[i] = item
            return clone
        return type(like)(items)  # type: ignore[call-arg]
    except TypeError:  # the type cannot be copied or assigned to, or is not made from a list
        return items


def _is_namedtuple(value: object) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def collate_tensor_fn(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Tensor:
    return fb.stack(tuple(batch), 0)


def collate_numpy_array_fn(
    batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None
) -> Any:
    if batch[0].dtype.kind in "SaUO":
        raise TypeError(_NOT_COLLATABLE.format(batch[0].dtype))
    tensors = [fb.as_tensor(array) for array in batch]
    return collate(tensors, collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(
    batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None
) -> Tensor:
    try:
        return fb.as_tensor(sys.modules["numpy"].asarray(batch))
    except ValueError as error:  # of arrays of several shapes
        kinds = ", ".join(dict.fromkeys(type(value).__name__ for value in batch))
        raise TypeError(f"default_collate: a batch of {kinds} cannot become one tensor") from error


def collate_float_fn(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Tensor:
    return fb.tensor(batch, dtype=fb.float64)


def collate_int_fn(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Tensor:
    return fb.tensor(batch)


def collate_str_fn(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Any:
    return batch


default_collate_fn_map: CollateMap = {
    fb.Tensor: collate_tensor_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def _know_numpy() -> None:
    """Enter NumPy's types into the default map, once; not by an import, for core has none of it."""
    numpy = sys.modules["numpy"]
    default_collate_fn_map.setdefault(numpy.ndarray, collate_numpy_array_fn)
    default_collate_fn_map.setdefault(
        (numpy.bool_, numpy.number, numpy.object_), collate_numpy_scalar_fn
    )
