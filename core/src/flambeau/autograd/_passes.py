"""The two ways into the backward pass: `backward` accumulates, `grad` returns."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import flambeau as fb
from flambeau._autograd import engine
from flambeau._autograd.node import GradientEdge
from flambeau._dispatch.dispatch import wrap
from flambeau._memory.views import edge
from flambeau._tensor.tensor import Tensor
from flambeau.ops.creation.creation import zeros_like

Places = Tensor | GradientEdge | Sequence[Tensor | GradientEdge]
"""Tensors, or places in a graph: one or several."""
Gradients = Tensor | Sequence[Tensor | None]
"""What they are weighted by: one or several."""


def _as_tuple(value: Any) -> tuple[Any, ...]:
    if value is None:
        return ()
    values = (value,) if isinstance(value, (Tensor, GradientEdge)) else tuple(value)
    return tuple([_stand_in(v) if isinstance(v, GradientEdge) else v for v in values])


def _stand_in(place: GradientEdge) -> Tensor:
    """A tensor with this place in the graph."""
    if not isinstance(place.ownership_token, Tensor):
        raise TypeError(
            "GradientEdge: autograd.graph.get_gradient_edge(tensor) makes one; this has no "
            "ownership_token"
        )
    return place.ownership_token


def _gradients(outputs: Sequence[Tensor], grads: Sequence[Any], create_graph: bool) -> list[Tensor]:
    """The gradient of each output, checked; ones for outputs with a single element."""
    for given in grads:
        if given is not None and not isinstance(given, Tensor):
            raise TypeError(
                f"gradients can be either Tensors or None, but got {type(given).__name__}"
            )
    if 0 < len(grads) < len(outputs):  # those left over are not looked at, as in PyTorch
        raise RuntimeError(
            f"got {len(outputs)} tensors and {len(grads)} gradients: give one gradient per tensor"
        )
    found = []
    for i, out in enumerate(outputs):
        given = grads[i] if grads else None
        if not isinstance(out, Tensor):
            raise TypeError(f"element {i} of tensors must be a Tensor, got {type(out).__name__}")
        if edge(out) is None:
            raise RuntimeError(
                f"element {i} of tensors does not require grad and does not have a grad_fn"
            )
        if given is None:
            shape = tuple(out._a.shape)
            if shape and out.numel() != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            if out.dtype.is_complex:
                raise RuntimeError(
                    "grad can be implicitly created only for real scalar outputs but got "
                    f"{out.dtype}; give a gradient, or take a real function of the output"
                )
            be = out._be
            if (seed := getattr(be, "seed", None)) is not None:
                found.append(seed(out))
                continue
            found.append(wrap(be, be.full(shape, 1, out.dtype), out.dtype))
            continue
        if tuple(given._a.shape) != tuple(out._a.shape):
            raise RuntimeError(
                f"Mismatch in shape: grad_output[{i}] has a shape of {given.shape} and output[{i}] "
                f"has a shape of {out.shape}."
            )
        if given.dtype.is_complex is not out.dtype.is_complex:
            raise RuntimeError(
                "For complex Tensors, both grad_output and output are required to have the same "
                f"dtype; got {given.dtype} and {out.dtype}"
            )
        if given._be is not out._be and given.device != out.device:
            raise RuntimeError(
                f"grad_output[{i}] is on {given.device} but output[{i}] is on {out.device}; move "
                "it with .to(device)"
            )
        found.append(given if given.dtype is out.dtype else given.to(out.dtype))
    return found


def backward(
    tensors: Places,
    grad_tensors: Gradients | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Gradients | None = None,
    inputs: Places | None = None,
) -> None:
    """Add the gradients of `tensors`, weighted by `grad_tensors`, to the ``.grad`` of the leaves.

    Args:
        tensors: one or several tensors with a history.
        grad_tensors: their gradients; may be left out for tensors with one element.
        retain_graph: keep the graph for another pass; default `create_graph`.
        create_graph: record the pass itself, for higher derivatives.
        grad_variables: old name of `grad_tensors`.
        inputs: accumulate only into these.

    Raises:
        RuntimeError: a tensor has no history, a gradient is missing or does not fit, or saved
            values were freed or overwritten.

    >>> import flambeau as fb
    >>> x = fb.tensor([3.0], requires_grad=True)
    >>> fb.autograd.backward(x * x); x.grad
    tensor([6.])
    """
    if grad_variables is not None:
        warnings.warn(
            "`grad_variables` is deprecated. Use `grad_tensors` instead.",
            FutureWarning,
            stacklevel=2,
        )
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to "
                "backward(). Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    roots = _as_tuple(tensors)
    wanted = None
    if inputs is not None:
        wanted = _as_tuple(inputs)
        if not wanted:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
        for t in wanted:
            if not isinstance(t, Tensor):
                kind = type(t).__name__
                raise TypeError(f"backward(): argument 'inputs' must be Tensors, not {kind}")
    grads = _gradients(roots, _as_tuple(grad_tensors), create_graph)
    keep = create_graph if retain_graph is None else retain_graph
    if not roots:
        return
    for t in wanted or ():
        t.retain_grad()  # a leaf accumulates as it is
    engine.run(roots, grads, retain_graph=keep, create_graph=create_graph, inputs=wanted)


def grad(
    outputs: Places,
    inputs: Places,
    grad_outputs: Gradients | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """The gradients of `outputs` with respect to `inputs`; nothing is accumulated.

    Args:
        outputs: tensors with a history.
        inputs: tensors for which gradients are returned.
        grad_outputs: gradients of the outputs; may be left out for outputs with one element.
        retain_graph: keep the graph; default `create_graph`.
        create_graph: record the pass itself.
        only_inputs: must be True.
        allow_unused: None for inputs that the outputs do not depend on, instead of an error.
        is_grads_batched: the first dimension of `grad_outputs` is a batch: each entry is a gradient
            of the outputs, and the results have the batch as their first dimension.
        materialize_grads: zeros instead of None for unused inputs.

    Raises:
        RuntimeError: an input is unused and `allow_unused` is not set, or does not require a
        gradient.

    >>> import flambeau as fb
    >>> x = fb.tensor([3.0], requires_grad=True)
    >>> fb.autograd.grad(x * x, x)
    (tensor([6.]),)
    """
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To "
            "accumulate gradient for other parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
            "allow_unused=False."
        )
    roots, wanted = _as_tuple(outputs), _as_tuple(inputs)
    if not wanted:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    for t in wanted:
        if not isinstance(t, Tensor):
            raise TypeError(f"grad(): argument 'inputs' must be Tensors, not {type(t).__name__}")
        if not t.requires_grad:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
    given = _as_tuple(grad_outputs)
    keep = create_graph if retain_graph is None else retain_graph
    if is_grads_batched:
        return _batched_grad(
            roots, wanted, given, keep, create_graph, allow_unused, materialize_grads
        )
    grads = _gradients(roots, given, create_graph)
    found = engine.run(
        roots, grads, retain_graph=keep, create_graph=create_graph, inputs=wanted, accumulate=False
    )
    if materialize_grads:
        found = [
            zeros_like(t, requires_grad=create_graph) if g is None else g
            for t, g in zip(wanted, found, strict=True)
        ]
    elif not allow_unused and any(g is None for g in found):
        raise RuntimeError(
            "One of the differentiated Tensors appears to not have been used in the graph. Set "
            "allow_unused=True if this is the desired behavior."
        )
    return tuple(found)


def _batched_grad(
    roots: tuple[Tensor, ...],
    wanted: tuple[Tensor, ...],
    given: tuple[Any, ...],
    keep: bool,
    create_graph: bool,
    allow_unused: bool | None,
    materialize_grads: bool,
) -> tuple[Any, ...]:
    """The gradients of `grad` for a batch of gradients of the outputs."""
    unused: list[int] = []

    def one(*weights: Any) -> tuple[Any, ...]:
        full = [None if w is None else w for w in weights]
        found = grad(
            roots, wanted, full, keep, create_graph, True, allow_unused or materialize_grads
        )
        unused[:] = [i for i, g in enumerate(found) if g is None]
        return tuple(g for g in found if g is not None)

    dims = tuple(None if w is None else 0 for w in given)
    found = iter(fb.vmap(one, in_dims=dims)(*given))
    size = next(w.shape[0] for w in given if w is not None)
    return tuple(
        (t.new_zeros((size, *t.shape)) if materialize_grads else None)
        if i in unused
        else next(found)
        for i, t in enumerate(wanted)
    )
