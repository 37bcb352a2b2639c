"""Derivatives of functions: gradients, and products of Jacobians with vectors from either side."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import flambeau as fb
from flambeau._transforms.duals import DualLevel
from flambeau._transforms.gradients import GradLevel
from flambeau._types.trees import tree_flatten, tree_unflatten
from flambeau.func._arguments import (
    Argnums,
    chosen,
    flat_tensors,
    mapped,
    outputs,
    replaced,
    tensors,
    with_aux,
)

Function = Callable[..., Any]

__all__ = ["grad", "grad_and_value", "jvp", "linearize", "vjp"]


def grad(func: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """A function that computes the gradient of `func`, which returns a 0-d tensor.

    Args:
        func: any function of tensors, or of nested containers of them.
        argnums: for which positional argument there are gradients, or for which ones.
        has_aux: `func` returns a pair, whose second part is handed on: the result is
            ``(gradient, aux)``.

    Returns:
        A function of the arguments of `func`.  Gradients have the structure of the argument.

    Raises:
        RuntimeError: `func` returns no 0-d tensor, or `argnums` names no argument.

    >>> import flambeau as fb
    >>> from flambeau.func import grad
    >>> x = fb.tensor(3.0)
    >>> grad(lambda x: x**3)(x), grad(grad(lambda x: x**3))(x)
    (tensor(27.), tensor(18.))
    """

    @wraps(func)
    def gradient(*args: object, **kwargs: object) -> object:
        found, value = _grad_and_value(func, argnums, has_aux, args, kwargs, "grad_and_value")
        return (found, value[1]) if has_aux else found

    return gradient


def grad_and_value(func: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """A function that computes the gradient of `func` and its value: see `grad`.

    It returns ``(gradient, value)``; with `has_aux`, ``(gradient, (value, aux))``.

    >>> import flambeau as fb
    >>> fb.func.grad_and_value(lambda x: x**3)(fb.tensor(3.0))
    (tensor(27.), tensor(27.))
    """

    @wraps(func)
    def gradient(*args: object, **kwargs: object) -> object:
        return _grad_and_value(func, argnums, has_aux, args, kwargs, "grad_and_value")

    return gradient


def _grad_and_value(
    func: Function,
    argnums: Argnums,
    has_aux: bool,
    args: tuple[Any, ...],
    kwargs: object,
    name: str,
) -> tuple[Any, Any]:
    leaves, spec = tensors(chosen(argnums, args), name)
    with GradLevel() as level:
        inputs = [level.input(leaf) for leaf in leaves]
        rest = [mapped(level.argument, arg) for arg in args]
        given = replaced(rest, argnums, tree_unflatten(inputs, spec))
        output, aux = with_aux(
            f"{name}(f)(*args)", func(*given, **mapped(level.argument, kwargs)), has_aux
        )
        if not isinstance(output, fb.Tensor):
            raise RuntimeError(
                f"{name}(f)(*args): Expected f(*args) to return a tensor, got type {type(output)}"
            )
        if output.dim() != 0:
            raise RuntimeError(
                f"{name}(f)(*args): Expected f(*args) to return a scalar tensor, got tensor with "
                f"{output.dim()} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
            )
        value = level.lower(output)
        found = level.gradients([output], inputs, [fb.ones_like(value)])
    filled = [fb.zeros_like(x) if g is None else g for g, x in zip(found, leaves, strict=True)]
    gradient = tree_unflatten(filled, spec)
    return gradient, (value, mapped(level.lower, aux)) if has_aux else value


def vjp(func: Function, *primals: object, has_aux: bool = False) -> Any:
    """The value of `func` at `primals`, and a function that computes vᵀJ from v.

    That function takes a value of the structure of the output and returns a tuple along the
    primals (for one primal, what has its structure).  It may be called several times, also under
    `vmap`.

    Returns:
        ``(output, vjp_fn)``, or with `has_aux` ``(output, vjp_fn, aux)``.

    Raises:
        RuntimeError: `func` returns anything but tensors, or none; or v has another structure.

    >>> import flambeau as fb
    >>> value, product = fb.func.vjp(lambda x: x * x, fb.tensor([1.0, 2.0]))
    >>> product(fb.ones(2))
    (tensor([2., 4.]),)
    """
    return vjp_at(func, primals, has_aux)


def vjp_at(
    func: Function, primals: tuple[Any, ...], has_aux: bool = False, argnums: Argnums | None = None
) -> tuple[Any, ...]:
    """As `vjp`, with respect to some of the arguments only, if `argnums` names them."""
    wanted = primals if argnums is None else chosen(argnums, primals)
    leaves, spec = tensors(wanted, "vjp")
    level = GradLevel()
    with level:
        inputs = [level.input(leaf) for leaf in leaves]
        own = tree_unflatten(inputs, spec)
        rest = tuple(mapped(level.argument, p) for p in primals) if argnums is not None else own
        given = own if argnums is None else replaced(rest, argnums, own)
        output, aux = with_aux("vjp(f, *primals)", func(*given), has_aux)
        results, structure = outputs(output, "vjp(f, *primals)")
    single = argnums is not None and not isinstance(argnums, tuple)

    def product(
        cotangents: object, retain_graph: bool = True, create_graph: object = None
    ) -> object:
        weights, found_structure = tree_flatten(cotangents)
        if found_structure != structure:
            raise RuntimeError(
                f"Expected pytree structure of cotangents to be the same as pytree structure of "
                f"outputs to the function. cotangents: {found_structure}, primal output: "
                f"{structure}"
            )
        for w, r in zip(weights, results, strict=True):
            if not isinstance(w, fb.Tensor) or w.shape != r.shape:
                raise RuntimeError(
                    f"vjp: expected a cotangent with the shape {list(r.shape)} of its output, got "
                    f"{list(w.shape) if isinstance(w, fb.Tensor) else type(w)}"
                )
        found = level.gradients(results, inputs, weights)
        # Zeros of the shapes that the weights lend to the gradients, under `vmap` too.
        filled = [fb.zeros_like(x) if g is None else g for g, x in zip(found, leaves, strict=True)]
        parts = tree_unflatten(filled, spec)
        return (parts,) if single else parts

    value = mapped(level.lower, output)
    return (value, product, mapped(level.lower, aux)) if has_aux else (value, product)


def jvp(
    func: Function,
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> Any:
    """The value of `func` at `primals` and J v, for the direction v = `tangents`, by forward mode.

    Args:
        func: takes the primals.
        primals: a tuple of arguments, tensors or nested containers of tensors.
        tangents: of the same structure and shapes.
        strict: raise where an output does not depend on the primals, instead of giving zeros.
        has_aux: `func` returns a pair, whose second part is handed on.

    Returns:
        ``(output, jvp)``, or with `has_aux` ``(output, jvp, aux)``.

    Raises:
        RuntimeError: the structures or shapes of primals and tangents differ, or `strict` found an
            independent output.

    >>> import flambeau as fb
    >>> fb.func.jvp(lambda x: x * x, (fb.tensor(3.0),), (fb.tensor(1.0),))
    (tensor(9.), tensor(6.))
    """
    return jvp_at(func, primals, tangents, strict=strict, has_aux=has_aux)


def jvp_at(
    func: Function,
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
    *,
    strict: bool = False,
    has_aux: bool = False,
    argnums: Argnums | None = None,
) -> tuple[Any, ...]:
    """As `jvp`, with respect to some of the arguments only, if `argnums` names them."""
    name = "jvp(f, primals, tangents)"
    if not isinstance(primals, tuple):
        raise RuntimeError(
            f"{name}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals)."
        )
    wanted = primals if argnums is None else chosen(argnums, primals)
    leaves, spec = tree_flatten(wanted)
    directions, tangent_spec = tree_flatten(tangents)
    if spec != tangent_spec:
        raise RuntimeError(
            f"{name}: Expected primals and tangents to have the same python structure. For "
            f"example, if primals is a tuple of 3 tensors, tangents also must be. Got primals with "
            f"structure {spec} and tangents with structure {tangent_spec}"
        )
    flat_tensors(tuple(leaves), name, "primals")
    flat_tensors(tuple(directions), name, "tangents")
    with DualLevel() as level:
        inputs = [level.dual(p, t) for p, t in zip(leaves, directions, strict=True)]
        own = tree_unflatten(inputs, spec)
        given = own if argnums is None else replaced(primals, argnums, own)
        output, aux = with_aux(name, func(*given), has_aux)
        results, structure = outputs(output, name)
        found = [level.parts(r) for r in results]
    if strict and any(t is None for _, t in found):
        raise RuntimeError(
            f"{name}: The output of f is independent of the inputs, which strict=True forbids."
        )
    values = tree_unflatten([p for p, _ in found], structure)
    parts = [fb.zeros_like(p) if t is None else t for p, t in found]
    derivative = tree_unflatten(parts, structure)
    if has_aux:
        return values, derivative, mapped(level.lower, aux)
    return values, derivative


def linearize(func: Function, *primals: object) -> tuple[Any, Function]:
    """The value of `func` at `primals`, and the linear function v ↦ J v there.

    `func` is run once.  The linear function keeps what the gradients of `func` need and costs
    about as much as one of them; it takes tangents of the structure of the primals.

    Raises:
        RuntimeError: the tangents differ in structure, shape or dtype from the primals.

    >>> import flambeau as fb
    >>> value, derivative = fb.func.linearize(fb.sin, fb.tensor(0.0))
    >>> value, derivative(fb.tensor(2.0))
    (tensor(0.), tensor(2.))
    """
    leaves, spec = tree_flatten(primals)
    flat_tensors(tuple(leaves), "linearize", "primals")
    level = GradLevel()
    with level:
        inputs = [level.input(leaf) for leaf in leaves]
        results, structure = outputs(func(*tree_unflatten(inputs, spec)), "linearize")
        # vᵀJ is linear in v, so its derivative by v in a direction t is J t, wherever v is.
        weights = [level.input(fb.zeros_like(level.lower(r))) for r in results]
        rows = level.gradients(results, inputs, weights, create_graph=True)

    def derivative(*tangents: object) -> object:
        directions, tangent_spec = tree_flatten(tangents)
        if tangent_spec != spec:
            raise RuntimeError(
                f"linearize: expected tangents of the structure {spec} of the primals, got "
                f"{tangent_spec}"
            )
        for t, p in zip(directions, leaves, strict=True):
            if t.shape != p.shape or t.dtype is not p.dtype:
                raise RuntimeError(
                    f"linearize: expected a tangent of shape {list(p.shape)} and dtype {p.dtype}, "
                    f"as its primal has, got {list(t.shape)} and {t.dtype}"
                )
        there = [(row, t) for row, t in zip(rows, directions, strict=True) if row is not None]
        found = level.gradients([r for r, _ in there], weights, [t for _, t in there])
        parts = [
            fb.zeros_like(level.lower(r)) if g is None else g
            for g, r in zip(found, results, strict=True)
        ]
        return tree_unflatten(parts, structure)

    return tree_unflatten([level.lower(r) for r in results], structure), derivative
