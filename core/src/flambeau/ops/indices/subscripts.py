"""``x[...]`` and ``x[...] = v``: basic indexing as views, index tensors as gathers."""

from __future__ import annotations

import operator
from typing import Any

from flambeau._autograd.modes import recording, set_recording
from flambeau._dispatch import dispatch as _dispatch
from flambeau._dispatch.arguments import broadcast_shapes
from flambeau._dispatch.dispatch import cast, wrap
from flambeau._dispatch.promotion import python_number
from flambeau._dispatch.warning import warn
from flambeau._memory.views import geometry_of, make_view, storage_of
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.spec import Spec
from flambeau._writes import inplace as _inplace
from flambeau._writes.inplace import scalar_for
from flambeau.ops.creation.creation import from_data
from flambeau.ops.declaration.table import OPS
from flambeau.ops.indices.indexing import (
    flat_selection,
    indexed_shape,
    places_of_true,
    wrapped_index,
)
from flambeau.ops.shapes.movement import apply_view


def split_index(x: Tensor, key: object) -> tuple[tuple[Any, ...], list[Any] | None, str]:
    """A key as (items of the ``slice`` op, index tensors of the ``index`` op or None, node name).

    Raises:
        IndexError: too many indices, one out of range, or of an unsupported kind.
    """
    keys = _keys(key)
    shape = tuple(x._a.shape)
    keys = [_as_index(x, k) if _needs_tensor(k) else k for k in keys]
    used = 0
    ellipses = 0
    for k in keys:
        if isinstance(k, Tensor) and k.dtype is D.uint8:
            warn(
                "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool "
                "instead."
            )
        if k is Ellipsis:
            ellipses += 1
        elif k is None or isinstance(k, bool):
            pass
        elif isinstance(k, Tensor) and k.dtype in (D.bool_, D.uint8):
            used += max(k.dim(), 0)
        else:
            used += 1
    if used > len(shape):
        if not shape and len(keys) == 1 and isinstance(keys[0], int):
            raise IndexError("invalid index of a 0-dim tensor: item() gives its number")
        raise IndexError(f"too many indices for tensor of dimension {len(shape)}")
    rest = len(shape) - used
    if ellipses > 1 and rest and not _last_ellipses(keys):
        # As in PyTorch, every ellipsis goes over all dimensions that no other key names.
        raise IndexError(f"Dimension out of range: an index follows two ellipses of {rest} dims")
    if not ellipses:
        keys.append(Ellipsis)
    items: list[Any] = []
    tensors: list[Any] = []
    advanced = False
    title = "Slice"
    d = 0
    for k in keys:
        if isinstance(k, Tensor) and not hasattr(k._be, "level") and _is_number(k):
            k = k.item()
        if k is Ellipsis:
            for n in shape[d : d + rest]:
                items.append(slice(0, n, 1))
                tensors.append(None)
            d += rest
            rest = 0
        elif k is None:
            items.append(None)
            tensors.append(None)
            title = "Unsqueeze"
        elif isinstance(k, bool):
            # A bool is a mask of a new dimension of size 1.
            items.append(None)
            tensors.append(_vector(x, [0] if k else []))
            advanced = True
        elif isinstance(k, slice):
            items.append(_normal_slice(k, shape[d]))
            tensors.append(None)
            d += 1
        elif isinstance(k, Tensor):
            advanced = True
            if k.dtype in (D.bool_, D.uint8):
                for i, n in enumerate(k._a.shape):
                    if n != shape[d + i]:
                        raise IndexError(
                            f"The shape of the mask {list(k._a.shape)} at index {i} does not match "
                            f"the shape of the indexed tensor {list(shape)} at index {d + i}"
                        )
                if k.dim() == 0:
                    items.append(None)
                    tensors.append(_vector(x, [0] if k.item() else []))
                    continue
                for part in places_of_true(cast(k, D.bool_), k.dim()):
                    items.append(slice(0, shape[d], 1))
                    tensors.append(part)
                    d += 1
            else:
                items.append(slice(0, shape[d], 1))
                tensors.append(_checked(k, shape[d], d, x))
                d += 1
        else:
            try:
                i = operator.index(k)
            except TypeError:
                if isinstance(k, (str, bytes)):
                    raise TypeError(f"an index cannot be of type {type(k).__name__}") from None
                raise IndexError(
                    "only integers, slices (`:`), ellipsis (`...`), None and long or byte tensors "
                    f"are valid indices (got {type(k).__name__})"
                ) from None
            n = shape[d]
            if not -n <= i < n:
                raise IndexError(f"index {i} is out of bounds for dimension {d} with size {n}")
            items.append(i + n if i < 0 else i)
            title = "Select"
            d += 1
    if not advanced:
        return tuple(items), None, title
    return tuple(items), tensors, title


def _last_ellipses(keys: list[Any]) -> bool:
    """Whether nothing that selects follows the second ellipsis."""
    second = [i for i, k in enumerate(keys) if k is Ellipsis][1]
    whole = slice(None)
    return all(k is Ellipsis or (type(k) is slice and k == whole) for k in keys[second:])


def _is_number(k: Tensor) -> bool:
    """Whether an index tensor counts as an integer: the result is a view then, as with `x[1]`."""
    return (
        not k._a.shape
        and k.dtype.category == 1
        and k.dtype is not D.uint8
        and (k.device.type != "meta")
    )


def _keys(key: object) -> list[Any]:
    """The keys of the dimensions: those in a tuple, or in a short list that holds no mere numbers.

    This is what NumPy did for lists, and PyTorch does.
    """
    if isinstance(key, tuple):
        return list(key)
    if isinstance(key, list) and len(key) < 32 and any(map(_is_no_number, key)):
        warn(
            "Using a non-tuple sequence for multidimensional indexing is deprecated; use "
            "x[tuple(seq)] instead of x[seq], or x[torch.tensor(seq)] if it is one index"
        )
        return list(key)
    return [key]


def _is_no_number(key: object) -> bool:
    if key is None or key is Ellipsis or isinstance(key, (Tensor, slice)):
        return True
    return hasattr(key, "__len__") and not isinstance(key, str)


def _is_index_list(key: object) -> bool:
    return isinstance(key, (list, tuple, range)) or (
        hasattr(key, "__array__") and hasattr(key, "shape")
    )


def _needs_tensor(k: object) -> bool:
    if isinstance(k, Tensor):
        return False
    if not _is_index_list(k):
        return False
    # Numbers of an array library are numbers, but a truth value is a mask.
    number = hasattr(k, "__index__") and getattr(k, "shape", None) == ()
    return not number or getattr(getattr(k, "dtype", None), "kind", None) == "b"


def _as_index(x: Tensor, key: object) -> Tensor:
    if isinstance(key, Tensor):
        return key

    t = from_data(list(key) if isinstance(key, range) else key, None, x.device, copy=True)
    if t.numel() == 0 and t.dtype.is_floating_point:
        t = cast(t, D.int64)
    return t


def _vector(x: Tensor, values: list[int]) -> Tensor:
    return wrap(x._be, x._be.host_array(values, (len(values),), D.int64), D.int64)


def _checked(k: Tensor, n: int, d: int, x: Tensor) -> Tensor:
    if k.dtype not in (D.int64, D.int32, D.int16, D.int8):
        raise IndexError(
            f"tensors used as indices must be long, int, byte or bool tensors, got {k.dtype}"
        )
    if k._be is not x._be:
        if k.device.type != "cpu":
            raise RuntimeError(
                f"indices should be either on cpu or on the same device as the indexed tensor "
                f"({x.device}), got {k.device}"
            )
        k = k.to(x.device)
    return wrapped_index(k, n, "index", d)


def _normal_slice(k: slice, n: int) -> slice:
    step = 1 if k.step is None else operator.index(_number(k.step))
    if step <= 0:
        raise ValueError("step must be greater than zero")
    start, stop, _ = slice(_number(k.start), _number(k.stop), step).indices(n)
    return slice(start, max(start, stop), step)


def _number(v: Any) -> Any:
    try:
        return None if v is None else operator.index(v)
    except TypeError as error:
        raise TypeError(
            "slice indices must be integers or None or have an __index__ method, got "
            f"{type(v).__name__}"
        ) from error


def resolved(x: Tensor, key: tuple[Any, ...]) -> tuple[Any, ...]:
    """The index tensors of an `index_put` call, one per dimension, None for whole ones.

    Raises:
        TypeError: a key is no tensor.
        IndexError: a key is no index tensor, or is out of range.
    """
    for place, k in enumerate(key):
        if not isinstance(k, Tensor):
            raise TypeError(
                f"expected Tensor as element {place} in argument 1, but got {type(k).__name__}"
            )
    if (alone := _indices_alone(x, key)) is not None:
        return alone
    # A number would make a view, to which nothing is put.
    key = tuple([k.reshape((1,)) if _is_number(k) else k for k in key])
    _, tensors, _ = split_index(x, key)
    if tensors is None:
        raise IndexError("index_put(): at least one index tensor is required")
    return _dense(tensors)


def _dense(tensors: list[Any]) -> tuple[Any, ...]:
    while tensors and tensors[-1] is None:
        tensors = tensors[:-1]
    return tuple(tensors)


def _after_slicing(items: tuple[Any, ...], tensors: list[Any]) -> list[Any]:
    # Integers drop their dimension in the slice first, so the index tensors move up.  (NumPy would
    # broadcast an integer between index tensors; PyTorch does not.)
    found = []
    t = iter(tensors)
    for item in items:
        if isinstance(item, int):
            continue
        found.append(next(t))
    return found


def getitem(x: Tensor, key: object) -> Tensor:
    """``x[key]``: a view for ints, slices, None and Ellipsis, a copy with index tensors."""
    if type(key) is Tensor and key._be is x._be and (form := key._a.shape):
        shape = x._a.shape
        if key.dtype is D.bool_:
            if form == shape[: (rank := len(form))]:
                if rank > 1 and (found := flat_selection(x, key)) is not None:
                    return found
                return OPS["index"].run(x, places_of_true(key, rank))
        elif key.dtype is D.int64 and shape:
            return OPS["index"].run(x, (wrapped_index(key, shape[0], "index", 0),))
    if (plain := _plain_items(key if type(key) is tuple else (key,), x._a.shape)) is not None:
        items, title = plain
        return make_view(x, "slice", (items,), x._be.slice(x._a, items), title)
    if type(key) is tuple:
        if (indices := _indices_alone(x, key)) is not None:
            return OPS["index"].run(x, indices)
        if (mixed := _indices_beside(x, key)) is not None:
            return OPS["index"].run(*mixed)
    if (numbered := _numbered(key)) is not None:
        return getitem(x, numbered)
    items, tensors, title = split_index(x, key)
    if tensors is None:
        return apply_view(x, "slice", (items,), title)
    base, indices = _sliced(x, items, tensors)
    return OPS["index"](base, indices)


def _numbered(key: object) -> tuple[Any, ...] | None:
    """The keys with integers in the place of 0-d index tensors; None where there is none."""
    keys: tuple[Any, ...] = key if type(key) is tuple else (key,)
    found = [
        k.item() if type(k) is Tensor and not hasattr(k._be, "level") and _is_number(k) else k
        for k in keys
    ]
    return tuple(found) if any(map(operator.is_not, found, keys)) else None


def _indices_alone(x: Tensor, key: tuple[Any, ...]) -> tuple[Tensor | None, ...] | None:
    """Index tensors of one shape, beside whole dimensions; None if there is anything else."""
    be, shape = x._be, x._a.shape
    if len(key) > len(shape):
        return None
    found: list[Tensor | None] = []
    form = None
    for k in key:
        if type(k) is Tensor and k.dtype is D.int64 and k._be is be and (own := k._a.shape):
            if form is not None and own != form:
                return None
            form = own
            found.append(k)
        elif type(k) is slice and k.start is k.stop is k.step is None:
            found.append(None)
        else:
            return None
    if form is None:
        return None
    return _dense(
        [None if k is None else wrapped_index(k, shape[d], "index", d) for d, k in enumerate(found)]
    )


def _indices_beside(
    x: Tensor, key: tuple[Any, ...]
) -> tuple[Tensor, tuple[Tensor | None, ...]] | None:
    """A view of `x` and index tensors of one shape into it; None if there is anything else."""
    be, form = x._be, None
    plain: list[Any] = []
    given: list[tuple[int, Tensor]] = []
    after: int | None = None  # where an ellipsis stands
    for place, k in enumerate(key):
        if type(k) is Tensor:
            if k.dtype is not D.int64 or k._be is not be or not (own := k._a.shape):
                return None
            if form is not None and own != form:
                return None
            form = own
            given.append((place, k))
            plain.append(_WHOLE)
        else:
            if k is Ellipsis:
                after = place
            plain.append(k)
    if not given or (found := _plain_items(tuple(plain), x._a.shape)) is None:
        return None
    items, title = found
    shape, more = x._a.shape, len(items) - len(key)
    indices: list[Tensor | None] = []
    for place, k in given:
        item = place if after is None or place < after else place + more
        before = items[:item]
        dim = item - before.count(None)
        indices += [None] * (item - sum(type(i) is int for i in before) - len(indices))
        indices.append(wrapped_index(k, shape[dim], "index", dim))
    if after is not None and _trivial(items, shape):
        return x, tuple(indices)
    return make_view(x, "slice", (items,), be.slice(x._a, items), title), tuple(indices)


_WHOLE = slice(None)


def _indexed(x: Tensor, key: object) -> tuple[Tensor, tuple[Tensor | None, ...]] | None:
    """Where a plain key with index tensors, or a mask alone, points: into what, and the places."""
    if type(key) is Tensor and key.dtype is D.bool_:
        form = key._a.shape
        if key._be is x._be and form and form == x._a.shape[: len(form)]:
            return x, places_of_true(key, len(form))
        return None
    keys = key if type(key) is tuple else (key,)
    if (alone := _indices_alone(x, keys)) is not None:
        return x, alone
    return _indices_beside(x, keys)


def _trivial(items: tuple[Any, ...], shape: tuple[int, ...]) -> bool:
    return len(items) == len(shape) and all(
        isinstance(i, slice) and i == slice(0, n, 1) for i, n in zip(items, shape, strict=True)
    )


def _sliced(
    x: Tensor, items: tuple[Any, ...], tensors: list[Any]
) -> tuple[Tensor, tuple[Any, ...]]:
    """Apply the basic part of a mixed key; the index tensors then address what is left."""
    base = x if _trivial(items, tuple(x._a.shape)) else apply_view(x, "slice", (items,), "Slice")
    indices = _dense(_after_slicing(items, tensors))
    given = [t for t in indices if t is not None]
    try:
        broadcast_shapes(*[tuple(t._a.shape) for t in given])
    except RuntimeError as error:
        raise IndexError(
            "shape mismatch: indexing tensors could not be broadcast together with shapes "
            + ", ".join(str(list(t._a.shape)) for t in given)
        ) from error
    return base, indices


def setitem(x: Tensor, key: object, value: Any) -> None:
    """``x[key] = value``: a write through a view, or a scatter by index tensors."""
    if _written_at_once(x, key, value):
        return

    if not isinstance(value, Tensor):
        value = _value_tensor(x, value)
    if isinstance(key, bool):  # alone it is no mask: it says whether to write
        if not key:
            return
        key = None
    if _fills_where(x, key, value):
        return
    fits = value.dtype is x.dtype and value._be is x._be
    if fits and not _is_single(value, key) and (found := _indexed(x, key)) is not None:
        put_(*found, _without_leading_ones(value), False)
        return
    items, tensors, title = split_index(x, key)
    if tensors is None:
        if _trivial(items, tuple(x._a.shape)):
            region = x
        else:
            region = apply_view(x, "slice", (items,), title)
        single = value.dim() == 0 and region.dim() > 0  # a fill: order does not matter
        _inplace.copy_(region, value if single else _fitted(value, region), may_overlap=single)
        return
    base, indices = _sliced(x, items, tensors)
    fills = _is_single(value, key)
    if fills:
        # One value for all elements of a mask: its dtype and shape do not matter.
        value = cast(value, x.dtype)
        value = value.reshape(()) if value.dim() else value
    else:
        value = _without_leading_ones(value)
        if value.dtype is not x.dtype:
            # Shapes that do not fit are told first.
            places = [None if i is None else _spec(i) for i in indices]
            OPS["index_put"].body(_spec(base), places, _spec(value), False)
        check_put_dtype(x, value)
    if value._be is not x._be:
        value = value.to(x.device)
    put_(base, indices, value, False, checked=not fills)


def _is_single(value: Tensor, key: object) -> bool:
    """Whether it is one value for all elements of a mask."""
    return value.numel() == 1 and _is_mask(key)


def _fills_where(x: Tensor, key: object, value: Tensor) -> bool:
    """Write one value where a mask holds without asking where that is; False: not such a case.

    How often it holds is a size that depends on values, which a plan cannot have.  Where nothing
    is recorded or captured, and `x` is no copy anyway, the places are fewer than the elements.
    """
    records = recording() and x.dtype.fp and x.requires_grad
    if not (records or _dispatch.captures) or value.numel() != 1:
        return False
    if value.requires_grad and recording():
        return False  # its gradient is the sum of those places
    keys: tuple[Any, ...] = key if isinstance(key, tuple) else (key,)
    masks = [i for i, k in enumerate(keys) if isinstance(k, Tensor)]
    if len(masks) != 1 or not _inplace.repeats_nothing(x):
        return False
    place = masks[0]
    mask = keys[place]
    if mask.dtype is not D.bool_ or mask._be is not x._be or not mask.dim():
        return False
    whole = (slice(None),) * mask.dim()
    plain = _plain_items((*keys[:place], *whole, *keys[place + 1 :]), x._a.shape)
    if plain is None:
        return False
    items, title = plain
    shape, form = x._a.shape, tuple(mask._a.shape)
    used = sum(i is not None for i in items)
    items = (*items, *[slice(0, n, 1) for n in shape[used:]])
    region = x if _trivial(items, tuple(shape)) else apply_view(x, "slice", (items,), title)
    if any(k is Ellipsis for k in keys[:place]):
        after = sum(type(k) is not int for k in keys[place + 1 :])
    else:
        after = region.dim() - mask.dim() - sum(type(k) is not int for k in keys[:place])
    first = region.dim() - after - mask.dim()
    if tuple(region._a.shape)[first : first + len(form)] != form:
        return False
    value = cast(value.detach(), x.dtype).reshape(())
    if value._be is not x._be:
        value = value.to(x.device)
    mask = mask.reshape((*form, *(1,) * after)) if after else mask
    _inplace.inplace(_chosen, region, mask, value, _saves_self=False, _checked=False)
    return True


def _chosen(x: Tensor, mask: Tensor, value: Tensor) -> Tensor:
    return OPS["where"].run(mask, value, x)


def check_put_dtype(x: Tensor, value: Tensor) -> None:
    """Refuse values of another dtype where index tensors point into `x`.

    Raises:
        RuntimeError: the dtypes differ.
    """
    if value.dtype is not x.dtype:
        raise RuntimeError(
            "Index put requires the source and destination dtypes match, got "
            f"{D.type_name(x.dtype)} for the destination and {D.type_name(value.dtype)} for the "
            "source."
        )


def _written_at_once(x: Tensor, key: object, value: Any) -> bool:
    """Write where nothing is recorded, checked for overlap or converted; False: not such a case."""
    be = x._be
    if not be.strided or _dispatch.modes or (x._rg and recording() and x.requires_grad):
        return False
    if x._view is not None and not _inplace.repeats_nothing(x):
        return False
    if type(value) in x.dtype.takes:
        number = True
    elif type(value) is Tensor and value.dtype is x.dtype and value._be is be:
        number = False
        if value._st is x._st is not None:
            return _is_there(x, key, value)
        if value._rg and recording():
            return False
    else:
        return False
    a = region = x._a
    if number:
        _check_width(value)
        if (native := be.consts[x.dtype].get(value)) is None:
            native = scalar_for(x, value)
    else:
        native = value._a
    if number and type(key) is Tensor and key.dtype is D.bool_:
        if key._be is not be or key._a.shape != a.shape:
            return False
        native = be.where(key._a, native, a)
    elif (plain := _plain_items(key if type(key) is tuple else (key,), a.shape)) is None:
        return _put_at_once(x, key, native)
    else:
        region = be.slice(a, plain[0])
    if native.shape and native.shape != region.shape:
        return False
    be.assign(region, native)
    storage_of(x).version += 1
    return True


def _put_at_once(x: Tensor, key: object, native: Any) -> bool:
    """The same where index tensors point, of a value for each place or for all."""
    be = x._be
    if (kernel := getattr(be, "index_put_", None)) is None:
        return False
    if (found := _indexed(x, key)) is None:
        return False
    base, indices = found
    places: list[Any] = []
    for i in indices:
        if i is not None and (i is x or i._st is x._st is not None):
            return False
        places.append(None if i is None else i._a)
    if native.shape and native.shape != indexed_shape(base._a.shape, places):
        return False
    try:
        kernel(base._a, tuple(places), native, False)
    except be.error as error:
        raise _dispatch.kernel_error("index_put", error, (x, *indices)) from error
    storage_of(x).version += 1
    return True


def _is_there(x: Tensor, key: object, value: Tensor) -> bool:
    """Whether ``x[key]`` is `value` in memory, as after ``x[key] += 1``: the write is counted."""
    if value._rg and recording() and value.requires_grad:
        return False
    plain = _plain_items(key if type(key) is tuple else (key,), x._a.shape)
    if plain is None:
        return False
    backend, region, its = x._be.backend, x._be.slice(x._a, plain[0]), value._a
    if region.shape != its.shape or backend.strides(region) != backend.strides(its):
        return False
    if backend.offset(region, its):
        return False
    storage_of(x).version += 1
    return True


def _plain_items(
    keys: tuple[Any, ...], shape: tuple[int, ...]
) -> tuple[tuple[Any, ...], str] | None:
    """The items of the ``slice`` op and the node's name; None for keys that need a closer look."""
    items: list[Any] = []
    title = "Slice"
    d = 0
    rank = len(shape)
    for i, k in enumerate(keys):
        kind = type(k)
        if kind is slice:
            if d == rank or type(k.start) not in _BOUND or type(k.stop) not in _BOUND:
                return None
            if (step := k.step) is not None and (type(step) is not int or step < 1):
                return None
            start, stop, step = k.indices(shape[d])
            items.append(slice(start, stop if stop > start else start, step))
            d += 1
        elif kind is int:
            if d == rank or not -(n := shape[d]) <= k < n:
                return None
            items.append(k if k >= 0 else k + n)
            title = "Select"
            d += 1
        elif k is None:
            items.append(None)
            title = "Unsqueeze"
        elif k is Ellipsis:
            rest = keys[i + 1 :]
            for other in rest:
                if type(other) is not int and type(other) is not slice and other is not None:
                    return None
            stop = rank - len(rest) + rest.count(None)
            if stop < d:
                return None
            items += [slice(0, n, 1) for n in shape[d:stop]]
            d = stop
        else:
            return None
    return tuple(items), title


_BOUND = (int, type(None))


def _is_mask(key: object) -> bool:
    """Whether a key has exactly one mask and no index tensor."""
    keys = key if isinstance(key, (tuple, list)) else (key,)
    found = [k for k in keys if isinstance(k, (Tensor, bool)) or _is_index_list(k)]
    if len(found) != 1:
        return False
    (k,) = found
    return isinstance(k, bool) or (isinstance(k, Tensor) and k.dtype in (D.bool_, D.uint8))


def put_(
    base: Tensor,
    indices: tuple[Any, ...],
    value: Tensor,
    accumulate: bool,
    *,
    checked: bool = True,
) -> Tensor:
    """Write (or add) `value` where index tensors point; `checked` for overlap with `base`."""
    put = OPS["index_put"]
    target = put.body(
        _spec(base), [None if i is None else _spec(i) for i in indices], _spec(value), accumulate
    )
    assert target is not None
    shape, stride, _ = geometry_of(base)
    repeats = [d for d, (n, s) in enumerate(zip(shape, stride, strict=True)) if s == 0 and n > 1]
    if repeats:
        put_(
            *_without_repeats(base, indices, value, accumulate, repeats), accumulate, checked=False
        )
        return base
    return _inplace.inplace(
        lambda b, v: _inplace.put_into(put, b, indices, v, accumulate),
        base,
        value,
        _saves_self=False,
        _scatters=True,
        _checked=checked,
    )


def _without_repeats(
    base: Tensor, indices: tuple[Any, ...], value: Tensor, accumulate: bool, repeats: list[int]
) -> tuple[Tensor, tuple[Any, ...], Tensor]:
    """A write to expanded memory as one to the view without the dimensions of stride 0.

    Of several values for one place the last stays, as in a loop over the elements.
    """
    shape = tuple(base._a.shape)
    given = [d for d, i in enumerate(indices) if i is not None]
    common = len(broadcast_shapes(*[tuple(indices[d]._a.shape) for d in given]))
    adjacent = given == list(range(given[0], given[-1] + 1))
    rest = [d for d in range(len(shape)) if d not in given]
    value = value.expand(indexed_shape(shape, indices))
    kept = list(indices)
    for d in repeats:
        base = base.narrow(d, 0, 1)
        if d in given:
            kept[d] = indices[d] * 0
        else:
            place = rest.index(d) + (common if not adjacent or d > given[0] else 0)
            last = value._a.shape[place] - 1
            value = value.sum(place, True) if accumulate else value.narrow(place, last, 1)
    return base, tuple(kept), value


def _spec(t: Tensor) -> Spec:
    return Spec(tuple(t._a.shape), t.dtype)


def _value_tensor(x: Tensor, value: object) -> Tensor:
    value = python_number(value)
    if isinstance(value, (int, float, complex)):
        _check_width(value)
        return wrap(x._be, scalar_for(x, value), x.dtype)
    if value is None or isinstance(value, (list, tuple, str, bytes, dict)):
        raise TypeError(f"can't assign a {type(value).__name__} to a {x.type()}")
    return from_data(value, None, x.device, copy=False)


def _check_width(value: object) -> None:
    """Refuse whole numbers beyond int64, whatever the dtype: PyTorch reads them as such first."""
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        raise D.NumberError(f"value cannot be converted to type int64 without overflow: {value}")


def _fitted(value: Tensor, region: Tensor) -> Tensor:
    """`value` with the shape of the region it is assigned to."""
    if value._a.shape == region._a.shape:
        return value
    before = recording()
    try:
        set_recording(before and region.dtype.fp)
        return _without_leading_ones(value).expand(tuple(region._a.shape))
    finally:
        set_recording(before)


def _without_leading_ones(value: Tensor) -> Tensor:
    """`value` without its leading sizes of 1, which do not count in an assignment."""
    shape = tuple(value._a.shape)
    start = 0
    while start < len(shape) and shape[start] == 1:
        start += 1
    return value.reshape(shape[start:]) if start else value
