"""Jacobians and Hessians of functions, row by row or column by column in one batch."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import flambeau as fb
from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._types.trees import tree_flatten, tree_unflatten
from flambeau.func._arguments import Argnums, chosen, nonempty, outputs
from flambeau.func.batches import vmap
from flambeau.func.derivatives import jvp_at, vjp_at

Function = Callable[..., Any]

__all__ = ["hessian", "jacfwd", "jacrev"]


@takes_as_annotated
def jacrev(
    func: Function,
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Function:
    """A function that computes the Jacobian of `func` by reverse mode, all rows in one batch.

    For an output of shape (*m) and an input of shape (*n) the Jacobian has shape (*m, *n).  The
    result has the structure of the output, and in the place of each tensor the structure of the
    inputs that `argnums` names.

    Args:
        func: a function of tensors, or nested containers of them.
        argnums: by which positional argument, or by which ones.
        has_aux: `func` returns a pair, whose second part is handed on: ``(jacobian, aux)``.
        chunk_size: how many rows are in one batch at most: less memory, more calls.

    Raises:
        ValueError: `chunk_size` is not positive.
        RuntimeError: an input or output is complex or no tensor.

    >>> import flambeau as fb
    >>> fb.func.jacrev(lambda x: x * x)(fb.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @wraps(func)
    def jacobian(*args: object) -> object:
        _refuse_complex("jacrev", args, "inputs")
        found = vjp_at(func, args, has_aux, argnums)
        value, product = found[:2]
        results, structure = outputs(value, "jacrev")
        nonempty(results, "jacrev", "output")
        _refuse_complex("jacrev", value, "outputs")

        def rows(*weights: object) -> list[Any]:
            return tree_flatten(product(tree_unflatten(weights, structure)))[0]

        wanted, spec = tree_flatten(chosen(argnums, args))
        columns = _in_chunks(rows, results, chunk_size)
        blocks = [
            [
                part.reshape((*out.shape, *x.shape))
                for out, part in zip(results, _split(column, results), strict=True)
            ]
            for column, x in zip(columns, wanted, strict=True)
        ]
        trees = [tree_unflatten(list(row), spec) for row in zip(*blocks, strict=True)]
        whole = tree_unflatten(trees, structure)
        return (whole, found[2]) if has_aux else whole

    return jacobian


def jacfwd(
    func: Function, argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Function:
    """A function that computes the Jacobian of `func` by forward mode, all columns in one batch.

    Cheaper than `jacrev` where there are more outputs than inputs.  Arguments, result and errors
    are those of `jacrev`; `randomness` is that of `vmap`.

    >>> import flambeau as fb
    >>> fb.func.jacfwd(lambda x: x * x)(fb.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """

    @wraps(func)
    def jacobian(*args: object) -> object:
        _refuse_complex("jacfwd", args, "inputs")
        wanted, spec = tree_flatten(chosen(argnums, args))
        nonempty(wanted, "jacfwd", "inputs")
        kept: list[Any] = []

        def columns(*directions: object) -> tuple[Any, ...]:
            tangents = tree_unflatten(directions, spec)
            found = jvp_at(func, args, tangents, has_aux=has_aux, argnums=argnums)
            flat, structure = tree_flatten(found[1])
            kept[:] = [structure]
            return tuple(flat), found[2] if has_aux else None

        # What a function returns beside its value does not depend on the direction.
        batch = vmap(columns, out_dims=(0, None), randomness=randomness)
        flat, aux = batch(*_basis(wanted))
        (structure,) = kept
        trees = []
        for column in flat:
            _refuse_complex("jacfwd", column, "outputs")
            parts = [
                part.movedim(0, -1).reshape((*column.shape[1:], *x.shape))
                for x, part in zip(wanted, _split(column, wanted), strict=True)
            ]
            trees.append(tree_unflatten(parts, spec))
        whole = tree_unflatten(trees, structure)
        return (whole, aux) if has_aux else whole

    return jacobian


def hessian(func: Function, argnums: Argnums = 0) -> Function:
    """A function that computes the Hessian of `func`: the forward Jacobian of the reverse one.

    For a 0-d output and an input of shape (*n) the result has shape (*n, *n).

    >>> import flambeau as fb
    >>> fb.func.hessian(lambda x: (x**3).sum())(fb.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


def _basis(like: list[Any], first: int = 0, last: int | None = None) -> list[Any]:
    """The unit vectors of the space of all tensors together, those from `first` to `last`."""
    total = sum(t.numel() for t in like)
    last = total if last is None else last
    rows, start = [], 0
    for t in like:
        n = t.numel()
        row = fb.arange(first - start, last - start, device=t.device).unsqueeze(1)
        unit = row == fb.arange(n, device=t.device)
        rows.append(unit.to(t.dtype).reshape((last - first, *t.shape)))
        start += n
    return rows


def _in_chunks(rows: Function, results: list[Any], chunk_size: int | None) -> list[Any]:
    """What `rows` gives for every unit vector, in batches."""
    total = sum(t.numel() for t in results)
    step = chunk_size or max(total, 1)
    pieces = []
    for first in range(0, max(total, 1), step):
        basis = _basis(results, first, min(first + step, total))
        if chunk_size == 1:
            found = rows(*[b.squeeze(0) for b in basis])
            pieces.append([g.unsqueeze(0) for g in found])
        else:
            pieces.append(list(vmap(lambda *w: tuple(rows(*w)))(*basis)))
    if len(pieces) == 1:
        return pieces[0]
    return [fb.cat(parts) for parts in zip(*pieces, strict=True)]


def _split(rows: Any, like: list[Any]) -> tuple[Any, ...]:
    return rows.split([t.numel() for t in like], 0)


def _refuse_complex(function: str, tree: object, what: str) -> None:
    for i, leaf in enumerate(tree_flatten(tree)[0]):
        if isinstance(leaf, fb.Tensor) and leaf.is_complex():
            raise RuntimeError(
                f"{function}: Expected all {what} to be real but received complex tensor at "
                f"flattened input idx: {i}"
            )
