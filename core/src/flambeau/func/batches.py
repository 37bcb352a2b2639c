"""`vmap`: a function of one example as a function of a batch of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import flambeau as fb
from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._transforms import batching_rules
from flambeau._transforms.batches import BatchLevel
from flambeau._types.trees import SUPPORTED_NODES, TreeSpec, tree_flatten, tree_unflatten

Function = Callable[..., Any]

__all__ = ["vmap"]


batching_rules.register()


@takes_as_annotated
def vmap(
    func: Function,
    in_dims: object = 0,
    out_dims: object = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Function:
    """A function that maps `func` over a dimension of its arguments, in one pass.

    Inside of `func` tensors do not show the dimension that is mapped over, and each op works on
    the whole batch at once.  Ops without a rule for batches run once for each entry, with the same
    result.

    Args:
        func: any function of tensors, or of nested containers of them.  It must not ask for
            values of batched tensors (``item()``, ``if x > 0``) nor make shapes of them.
        in_dims: the dimension of each argument: a number for all, or a structure of numbers like
            that of the arguments; None for what is the same for all entries.
        out_dims: where the batch stands in the results; likewise.
        randomness: what random ops do in `func`: raise (``"error"``), draw for all entries
            together (``"same"``), or for each (``"different"``).
        chunk_size: how many entries go through `func` at a time; all by default.

    Returns:
        A function of batched arguments; keyword arguments are mapped over dimension 0 as they are
        in PyTorch only if they are tensors of this batch already: they are handed on as they are.

    Raises:
        ValueError: `in_dims` or `out_dims` do not fit, sizes of the batch differ, or something
            that is no tensor is mapped over or returned.
        RuntimeError: `func` draws random numbers under ``"error"``, or asks for values.

    >>> import flambeau as fb
    >>> x = fb.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> fb.vmap(fb.dot)(x, x)
    tensor([ 5., 25.])
    >>> fb.vmap(fb.func.grad(lambda x: (x * x).sum()))(x)
    tensor([[2., 4.],
            [6., 8.]])
    """
    if randomness not in ("error", "same", "different"):
        raise RuntimeError(
            "Only allowed values for randomness are 'error', 'different', or 'same'. Got "
            f"{randomness}"
        )
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @wraps(func)
    def mapped(*args: object, **kwargs: object) -> object:
        name = _name(func)
        _check_out_dims(name, out_dims)
        leaves, spec = tree_flatten(args)
        dims = _dims_of_arguments(name, in_dims, args, leaves, spec)
        size = _batch_size(leaves, dims)
        if chunk_size is None:
            return _mapped(func, leaves, spec, dims, size, out_dims, randomness, kwargs)
        parts = []
        for first in range(0, max(size, 1), chunk_size):
            count = min(chunk_size, size - first)
            own = [
                leaf if d is None else leaf.narrow(d, first, count)
                for leaf, d in zip(leaves, dims, strict=True)
            ]
            parts.append(_mapped(func, own, spec, dims, count, out_dims, randomness, kwargs))
        return _joined(parts, out_dims)

    return mapped


def _mapped(
    func: Function,
    leaves: list[Any],
    spec: Any,
    dims: list[Any],
    size: int,
    out_dims: object,
    randomness: str,
    kwargs: dict[str, Any],
) -> Any:
    with BatchLevel(size, randomness) as level:
        own = [
            leaf if d is None else level.batch(leaf, d)
            for leaf, d in zip(leaves, dims, strict=True)
        ]
        result = func(*tree_unflatten(own, spec), **kwargs)
        return _unbatched(level, _name(func), result, out_dims)


def _unbatched(level: BatchLevel, name: str, result: object, out_dims: object) -> Any:
    outputs, structure = tree_flatten(result)
    if isinstance(result, fb.Tensor):
        dims = [out_dims] if out_dims is None or isinstance(out_dims, int) else None
        if isinstance(out_dims, (tuple, list)) and len(out_dims) == 1:
            dims = list(out_dims)
    else:
        dims = spread(out_dims, structure)
    if dims is None:
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with "
            f"the structure of `outputs`. out_dims has structure {tree_flatten(out_dims)[1]} but "
            f"outputs has structure {structure}."
        )
    found = []
    for output, dim in zip(outputs, dims, strict=True):
        if dim is None:
            if isinstance(output, fb.Tensor):
                if level.is_batched(output):
                    raise ValueError(
                        f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim "
                        "is None"
                    )
                output = level.lower(output)
            found.append(output)
            continue
        if not isinstance(output, fb.Tensor):
            raise ValueError(
                f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(output)}. "
                "Did you mean to set out_dims= to None for output?"
            )
        rank = output.dim() + 1
        if not -rank <= dim < rank:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but "
                f"got {dim})"
            )
        found.append(level.unbatched(output, dim % rank))
    return tree_unflatten(found, structure)


def _joined(parts: list[Any], out_dims: object) -> Any:
    """The results of chunks as one."""
    flat = [tree_flatten(part) for part in parts]
    structure = flat[0][1]
    dims = (
        [out_dims if not isinstance(out_dims, (tuple, list)) else out_dims[0]]
        if structure.is_leaf()
        else spread(out_dims, structure)
    )
    assert dims is not None  # the first chunk has checked it
    found = [
        same[0] if dim is None else fb.cat(same, dim)
        for dim, *same in zip(dims, *[leaves for leaves, _ in flat], strict=True)
    ]
    return tree_unflatten(found, structure)


def spread(tree: object, spec: TreeSpec) -> list[Any] | None:
    """A leaf for each one of a structure, those of `tree` repeated below them.

    None if it has another structure.
    """
    own = tree_flatten(tree)[1]
    found: list[Any] = []

    def visit(part: object, mine: TreeSpec, theirs: TreeSpec) -> bool:
        if mine.is_leaf():
            found.extend([part] * theirs.num_leaves)
            return True
        if mine.type is not theirs.type or mine.context != theirs.context:
            return False
        if mine.num_children != theirs.num_children:
            return False
        children = list(SUPPORTED_NODES[mine.type].flatten_fn(part)[0])
        return all(map(visit, children, mine.children_specs, theirs.children_specs))

    return found if visit(tree, own, spec) else None


def _dims_of_arguments(
    name: str, in_dims: object, args: tuple[Any, ...], leaves: list[Any], spec: TreeSpec
) -> list[Any]:
    head = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): "
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"{head}expected `in_dims` to be int or a (potentially nested) tuple matching the "
            f"structure of inputs, got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are "
            "trying to vmap over a function with no inputs. The latter is unsupported."
        )
    dims = spread(in_dims, spec)
    if dims is None:
        raise ValueError(
            f"{head}in_dims is not compatible with the structure of `inputs`. in_dims has "
            f"structure {tree_flatten(in_dims)[1]} but inputs has structure {spec}."
        )
    found = []
    for leaf, dim in zip(leaves, dims, strict=True):
        if dim is None:
            found.append(None)
            continue
        if not isinstance(dim, int):
            raise ValueError(
                f"{head}Got in_dim={dim} for an input but in_dim must be either an integer "
                "dimension or None."
            )
        if not isinstance(leaf, fb.Tensor):
            raise ValueError(
                f"{head}Got in_dim={dim} for an input but the input is of type {type(leaf)}. We "
                "cannot vmap over non-Tensor arguments, please use None as the respective in_dim"
            )
        rank = leaf.dim()
        if not -rank <= dim < rank:
            raise ValueError(
                f"{head}Got in_dim={dim} for some input, but that input is a Tensor of "
                f"dimensionality {rank} so expected in_dim to satisfy -{rank} <= in_dim < {rank}."
            )
        found.append(dim % rank)
    return found


def _batch_size(leaves: list[Any], dims: list[Any]) -> int:
    sizes = [leaf.shape[d] for leaf, d in zip(leaves, dims, strict=True) if d is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if any(n != sizes[0] for n in sizes):
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    return sizes[0]


def _check_out_dims(name: str, out_dims: object) -> None:
    for dim in tree_flatten(out_dims)[0]:
        if dim is not None and not isinstance(dim, int):
            raise ValueError(
                f"vmap({name}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a "
                "python collection of ints representing where in the outputs the vmapped "
                "dimension should appear."
            )


def _name(func: Callable[..., Any]) -> str:
    if hasattr(func, "__name__"):
        return func.__name__
    if isinstance(func, partial):
        return f"functools.partial({_name(func.func)}, ...)"
    return repr(func)
