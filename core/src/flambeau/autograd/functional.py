"""Derivatives of functions as a whole: Jacobians, Hessians and their products with vectors.

All six are built on `autograd.grad`.  Products from the left (``vjp``, ``vhp``) take one backward;
from the right (``jvp``, ``hvp``) they take two: the gradient g(w) = wᵀJ is linear in w, so a second
backward from g to w, weighted by v, gives J v.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau._autograd.node import Node
from flambeau.autograd.function import FunctionCtx

if TYPE_CHECKING:
    from flambeau import Tensor

Function = Callable[..., Any]

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def vjp(
    func: Function,
    inputs: Tensor | tuple[Tensor, ...],
    v: Tensor | tuple[Tensor, ...] | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The outputs of `func` and vᵀJ, for the Jacobian J of `func` at `inputs`.

    Args:
        func: takes the inputs, returns a tensor or a tuple of tensors.
        inputs: a tensor or a tuple of tensors.
        v: shaped like the outputs; may be left out if there is one output of one element.
        create_graph: make both results differentiable.
        strict: raise if an output does not depend on an input, instead of giving zeros.

    Raises:
        TypeError: an argument or result is no tensor.
        RuntimeError: `v` is missing or has another shape than the outputs, or `strict` found an
            independent input.

    >>> import flambeau as fb
    >>> x = fb.tensor([1.0, 2.0])
    >>> fb.autograd.functional.vjp(lambda x: x * x, x, fb.ones(2))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    with fb.enable_grad():
        xs, several = _inputs(inputs, create_graph, "vjp")
        outputs, several_outputs = _call(func, xs, strict, "vjp")
        weights = _vector(v, outputs, several_outputs, "output", create_graph, "vjp")
        found = _grad(outputs, xs, weights, create_graph)
        result = _filled(found, xs, strict, create_graph, "output of the user-provided function")
    return _pack(outputs, several_outputs, create_graph), _pack(result, several, create_graph)


def jvp(
    func: Function,
    inputs: Tensor | tuple[Tensor, ...],
    v: Tensor | tuple[Tensor, ...] | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The outputs of `func` and J v, for the Jacobian J of `func` at `inputs`.

    `v` is shaped like the inputs and may be left out if there is one input of one element.  The
    other arguments and the exceptions are those of `vjp`.

    >>> import flambeau as fb
    >>> x = fb.tensor([1.0, 2.0])
    >>> fb.autograd.functional.jvp(lambda x: x * x, x, fb.tensor([1.0, 0.0]))
    (tensor([1., 4.]), tensor([2., 0.]))
    """
    with fb.enable_grad():
        xs, several = _inputs(inputs, create_graph, "jvp")
        direction = _vector(v, xs, several, "input", create_graph, "jvp")
        outputs, several_outputs = _call(func, xs, strict, "jvp")
        weights, gradients = _linear_in_weights(outputs, xs, strict)
        found = _grad(gradients, weights, direction, create_graph)
        result = _filled(
            found, outputs, strict, create_graph, "gradient", "entry {} of its weights"
        )
    return _pack(outputs, several_outputs, create_graph), _pack(
        result, several_outputs, create_graph
    )


def jacobian(
    func: Function,
    inputs: Tensor | tuple[Tensor, ...],
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian of `func` at `inputs`: J[i, j] = d output i / d input j.

    Shapes: for one output of shape (*m) and one input of shape (*n) the result is (*m, *n).
    Several inputs give a tuple along the inputs, several outputs one along the outputs, both a
    tuple of tuples.

    Args:
        create_graph: make the result differentiable.
        strict: raise if an output does not depend on an input, instead of giving zeros.
        vectorize: accepted; the result is the same, and rows are computed one after another.
        strategy: ``"reverse-mode"``, a backward for each output element (where these are very many
            and the inputs few: for each input element), or ``"forward-mode"``, a second backward
            for each input element (only with ``vectorize=True``, as in PyTorch).

    Raises:
        TypeError: an argument or result is no tensor.
        RuntimeError: `strict` found an independent input, or is combined with ``vectorize``.
        NotImplementedError: forward mode without ``vectorize`` or with ``create_graph``.

    >>> import flambeau as fb
    >>> fb.autograd.functional.jacobian(lambda x: x * x, fb.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    _check_strategy("jacobian", strategy, vectorize, strict, create_graph)
    with fb.enable_grad():
        xs, several = _inputs(inputs, create_graph, "jacobian")
        outputs, several_outputs = _call(func, xs, strict, "jacobian")
        if strategy == "forward-mode":
            blocks = _by_columns(outputs, xs)
        else:
            own = strict or create_graph
            blocks = tuple(
                (None if own else _of_few(output, xs)) or _by_rows(output, xs, strict, create_graph)
                for output in outputs
            )
    rows = tuple(_pack(row, several, create_graph) for row in blocks)
    return rows if several_outputs else rows[0]


def hessian(
    func: Function,
    inputs: Tensor | tuple[Tensor, ...],
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The second derivatives of `func`, which returns one element: H[i, j] = d² f / d x_i d x_j.

    Shapes: for one input of shape (*n) the result is (*n, *n); several inputs give a tuple of
    tuples.  The arguments are those of `jacobian`; the Hessian is the Jacobian of the gradient.

    Raises:
        RuntimeError: `func` returns more than one tensor or element; and as `jacobian`.

    >>> import flambeau as fb
    >>> fb.autograd.functional.hessian(lambda x: (x**3).sum(), fb.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    _check_strategy("hessian", outer_jacobian_strategy, vectorize, strict, create_graph)

    def gradient(*xs: Tensor) -> tuple[Tensor, ...]:
        return _by_rows(_one_element(func, xs, strict, "hessian"), xs, strict, True)

    found = jacobian(
        gradient, inputs, create_graph, strict, vectorize, strategy=outer_jacobian_strategy
    )
    return found if isinstance(inputs, tuple) else found[0]


def vhp(
    func: Function,
    inputs: Tensor | tuple[Tensor, ...],
    v: Tensor | tuple[Tensor, ...] | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The output of `func`, which has one element, and vᵀH, for the Hessian H of `func`.

    `v` is shaped like the inputs and may be left out if there is one input of one element.  The
    other arguments and the exceptions are those of `vjp`.

    >>> import flambeau as fb
    >>> fb.autograd.functional.vhp(lambda x: (x**3).sum(), fb.tensor([1.0, 2.0]), fb.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    with fb.enable_grad():
        xs, several = _inputs(inputs, create_graph, "vhp")
        weights = _vector(v, xs, several, "input", create_graph, "vhp")
        output = _one_element(func, xs, strict, "vhp")
        gradient = _by_rows(output, xs, strict, True)
        found = _grad(gradient, xs, weights, create_graph)
        result = _filled(found, xs, strict, create_graph, "gradient")
    return _pack((output,), False, create_graph), _pack(result, several, create_graph)


def hvp(
    func: Function,
    inputs: Tensor | tuple[Tensor, ...],
    v: Tensor | tuple[Tensor, ...] | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The output of `func`, which has one element, and H v, for the Hessian H of `func`.

    For twice continuously differentiable functions this is `vhp`, which needs fewer passes.  The
    arguments and the exceptions are those of `vhp`.

    >>> import flambeau as fb
    >>> fb.autograd.functional.hvp(lambda x: (x**3).sum(), fb.tensor([1.0, 2.0]), fb.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    with fb.enable_grad():
        xs, several = _inputs(inputs, create_graph, "hvp")
        direction = _vector(v, xs, several, "input", create_graph, "hvp")
        output = _one_element(func, xs, strict, "hvp")
        gradient = _by_rows(output, xs, strict, True)
        weights, second = _linear_in_weights(gradient, xs, strict)
        found = _grad(second, weights, direction, create_graph)
        result = _filled(found, xs, strict, create_graph, "gradient", "entry {} of its weights")
    return _pack((output,), False, create_graph), _pack(result, several, create_graph)


def _tensors(value: Any, name: str, where: str) -> tuple[tuple[Tensor, ...], bool]:
    """A tensor or a tuple of tensors as a tuple, and whether it was one."""
    several = isinstance(value, tuple)
    found = value if several else (value,)
    for i, item in enumerate(found):
        if not isinstance(item, fb.Tensor):
            place = f", with {type(item).__name__} at index {i}" if several else ""
            raise TypeError(
                f"{where}: {name} must be a tensor or a tuple of tensors, got "
                f"{type(value).__name__}{place}"
            )
    return found, several


def _inputs(value: object, create_graph: bool, where: str) -> tuple[tuple[Tensor, ...], bool]:
    """The inputs as tensors of their own, so that gradients stop (or, recorded, pass) here."""
    given, several = _tensors(value, "inputs", where)
    if not create_graph:
        return tuple(x.detach().requires_grad_() for x in given), several
    own = (x.view_as(x) if x.requires_grad else x.detach().requires_grad_() for x in given)
    return tuple(own), several


def _call(
    func: Function, xs: tuple[Tensor, ...], strict: bool, where: str
) -> tuple[tuple[Tensor, ...], bool]:
    outputs, several = _tensors(func(*xs), "the result of the user-provided function", where)
    for i, output in enumerate(outputs):
        if strict and not output.requires_grad:
            raise RuntimeError(
                f"{where}: output {i} of the user-provided function does not require a gradient, "
                "which strict=True forbids; compute it from the inputs by differentiable operations"
            )
    return outputs, several


def _one_element(func: Function, xs: tuple[Tensor, ...], strict: bool, where: str) -> Tensor:
    """The output of a function that must return one element, as a 0-d tensor."""
    outputs, several = _call(func, xs, strict, where)
    if several:
        raise RuntimeError(f"{where}: func must return a single tensor, got a tuple")
    if outputs[0].numel() != 1:
        raise RuntimeError(
            f"{where}: func must return a tensor with a single element, got shape "
            f"{tuple(outputs[0].shape)}"
        )
    return outputs[0].reshape(())


def _vector(
    v: object,
    like: tuple[Tensor, ...],
    several: bool,
    side: str,
    create_graph: bool,
    where: str,
) -> tuple[Tensor, ...]:
    """`v` checked against the tensors that it multiplies; ones if it may be left out."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(
                f"{where}: v may be left out only if there is a single {side} of one element, got "
                f"shapes {[tuple(x.shape) for x in like]}"
            )
        return (fb.ones_like(like[0]),)
    vs, _ = _tensors(v, "v", where)
    if len(vs) != len(like):
        expected = f"{len(like)} tensors" if several else "a single tensor"
        raise RuntimeError(f"{where}: v must hold {expected}, got {len(vs)}")
    for i, (weight, x) in enumerate(zip(vs, like, strict=True)):
        if weight.shape != x.shape:
            raise RuntimeError(
                f"{where}: entry {i} of v must have the shape {tuple(x.shape)} of its {side}, got "
                f"{tuple(weight.shape)}"
            )
    return vs if create_graph else tuple(weight.detach() for weight in vs)


def _grad(
    outputs: tuple[Tensor | None, ...],
    xs: tuple[Tensor, ...],
    weights: tuple[Tensor | None, ...] | None = None,
    create_graph: bool = False,
    retain_graph: bool | None = None,
    is_grads_batched: bool = False,
) -> tuple[Tensor | None, ...]:
    """`autograd.grad` that gives None for independent inputs and leaves out constant outputs."""
    given = zip(outputs, weights or (None,) * len(outputs), strict=True)
    pairs = [(out, w) for out, w in given if out is not None and out.requires_grad]
    if not pairs:
        return (None,) * len(xs)
    return fb.autograd.grad(
        [out for out, _ in pairs],
        xs,
        [weight for _, weight in pairs],
        retain_graph=retain_graph,
        create_graph=create_graph,
        allow_unused=True,
        is_grads_batched=is_grads_batched,
    )


def _filled(
    found: tuple[Tensor | None, ...],
    like: tuple[Tensor, ...],
    strict: bool,
    create_graph: bool,
    what: str,
    of: str = "input {}",
) -> tuple[Tensor, ...]:
    """Zeros for derivatives that do not exist; under `strict` an exception."""
    if strict:
        for i, gradient in enumerate(found):
            if gradient is None:
                raise RuntimeError(
                    f"the {what} is independent of {of.format(i)}, which strict=True forbids"
                )
            if create_graph and not gradient.requires_grad:
                raise RuntimeError(
                    f"the derivative of the {what} by {of.format(i)} is independent of the inputs, "
                    "which strict=True forbids with create_graph=True"
                )
    return tuple(fb.zeros_like(x) if g is None else g for g, x in zip(found, like, strict=True))


def _linear_in_weights(
    outputs: tuple[Tensor, ...], xs: tuple[Tensor, ...], strict: bool
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Weights of the outputs and the gradients of the inputs as a recorded function of them.

    The gradients are linear in the weights, so the values of these do not matter: zeros.
    """
    weights = tuple(fb.zeros_like(out, requires_grad=True) for out in outputs)
    found = _grad(outputs, xs, weights, True)
    return weights, _filled(found, xs, strict, True, "output of the user-provided function")


def _by_rows(
    output: Tensor, xs: tuple[Tensor, ...], strict: bool, create_graph: bool
) -> tuple[Tensor, ...]:
    """The Jacobians of one output by each input: one backward for each element of the output."""
    for x in xs:  # what memory cannot hold is refused now, not when most rows are there
        fb.empty(output.numel(), x.numel(), dtype=x.dtype, device=x.device)
    rows = []
    for element in output.reshape(-1).unbind():
        found = _grad((element,), xs, (fb.ones_like(element),), create_graph, retain_graph=True)
        rows.append(
            _filled(found, xs, strict, create_graph, "output of the user-provided function")
        )
    return _stacked(rows, (output,), xs, 0)


_MANY, _TIMES = 10_000, 100


def _of_few(output: Tensor, xs: tuple[Tensor, ...]) -> tuple[Tensor, ...] | None:
    """The Jacobians of very many results by few numbers, by columns; None where rows are needed.

    Every row goes back through all results: 131,072 of them by rows took minutes.
    """
    count = sum(x.numel() for x in xs)
    if output.numel() < max(_MANY, _TIMES * count) or not all(
        t.dtype.is_floating_point for t in (output, *xs)
    ):
        return None
    found, stack = set(), [output.grad_fn]
    while stack:
        node = stack.pop()
        # What a program wrote itself need not be made of what is recorded.
        if isinstance(node, FunctionCtx) or getattr(node, "_hooks", None) is not None:
            return None
        for edge in getattr(node, "edges", ()):
            if isinstance(edge, Node) and edge not in found:
                found.add(edge)
                stack.append(edge)
    fb.empty(output.numel(), count, dtype=output.dtype, device=output.device)
    try:
        blocks = _by_columns((output,), xs)[0]
        # A row adds up what is no number anywhere: a zero times an infinity.
        return blocks if all(block.isfinite().all() for block in blocks) else None
    except RuntimeError:  # a formula that has no derivative
        return None


def _by_columns(
    outputs: tuple[Tensor, ...], xs: tuple[Tensor, ...]
) -> tuple[tuple[Tensor, ...], ...]:
    """The same Jacobians by directions: a second backward for each element of the inputs."""
    weights, gradients = _linear_in_weights(outputs, xs, False)
    blocks = []
    for gradient, x in zip(gradients, xs, strict=True):
        columns = []
        for element in gradient.reshape(-1).unbind():
            found = _grad((element,), weights, (fb.ones_like(element),), False, retain_graph=True)
            columns.append(_filled(found, outputs, False, False, "output"))
        blocks.append(_stacked(columns, outputs, (x,), -1))
    return tuple(zip(*blocks, strict=True))


def _stacked(
    pieces: list[tuple[Tensor, ...]],
    outputs: tuple[Tensor, ...],
    xs: tuple[Tensor, ...],
    dim: int,
) -> tuple[Tensor, ...]:
    """Rows (`dim` 0) or columns (-1) joined to one Jacobian for every pair of output and input."""
    shapes = [(*output.shape, *x.shape) for output in outputs for x in xs]
    if not pieces:
        like = xs[0] if dim == 0 else outputs[0]
        return tuple(fb.zeros(shape, dtype=like.dtype, device=like.device) for shape in shapes)
    joined = (fb.stack(parts, dim) for parts in zip(*pieces, strict=True))
    return tuple(block.reshape(shape) for block, shape in zip(joined, shapes, strict=True))


def _check_strategy(
    where: str, strategy: str, vectorize: bool, strict: bool, create_graph: bool
) -> None:
    if strategy not in ("reverse-mode", "forward-mode"):
        raise AssertionError(
            f"{where}: strategy must be 'reverse-mode' or 'forward-mode', got {strategy!r}"
        )
    if strict and (vectorize or strategy == "forward-mode"):
        raise RuntimeError(
            f"{where}: strict=True works only with vectorize=False and reverse-mode, got "
            f"vectorize={vectorize} and {strategy!r}"
        )
    if strategy == "forward-mode" and (create_graph or not vectorize):
        raise NotImplementedError(
            f"{where}: forward-mode needs vectorize=True and create_graph=False, got "
            f"vectorize={vectorize} and create_graph={create_graph}"
        )


def _pack(
    values: tuple[Tensor, ...], several: bool, create_graph: bool
) -> tuple[Tensor, ...] | Tensor:
    """What the caller gets: recorded or detached, and without the tuple that he did not give."""
    kept = values if create_graph else tuple(value.detach() for value in values)
    return kept if several else kept[0]
