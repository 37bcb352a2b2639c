"""Seeing all input gradients and all output gradients of a module's call.

A module is any number of operations, so it has no node of its own in the graph.  Its inputs and
its outputs are therefore each passed through one identity with a single node: what flows back
through the second are the output gradients, what flows back through the first the input gradients.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.autograd import Function

Gradients = tuple[Tensor | None, ...]


class _Boundary(Function):
    """The identity of several tensors; ``on_grad`` sees, and returns, all their gradients."""

    _of_ops = True  # of none; hooks are no part of a trace

    @staticmethod
    def forward(ctx: Any, on_grad: Callable[[Gradients], Gradients], *tensors: Tensor) -> Any:
        ctx.set_materialize_grads(False)
        ctx.on_grad = on_grad
        return tensors

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        return None, *ctx.on_grad(grads)


class BackwardHooks:
    """The backward hooks of one call: joins the output gradients with the input gradients."""

    def __init__(self, module: Any, hooks: list[Any], pre_hooks: list[Any]) -> None:
        self.module = module
        self.hooks = hooks
        self.pre_hooks = pre_hooks
        self.grad_outputs: Gradients | None = None
        self.input_places: list[int] = []
        self.output_places: list[int] = []
        self.input_count = 0
        self.output_count = 0

    def wrap_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The positional arguments, with those that require a gradient made observable."""
        self.input_count = len(args)
        args, self.input_places = _observe(args, self._on_input_grads)
        return args

    def wrap_outputs(self, result: object) -> Any:
        """The module's result, with the tensors in it that require a gradient made observable."""
        if isinstance(result, Tensor):
            (result,), self.output_places = _observe((result,), self._on_output_grads)
            self.output_count = 1
        elif isinstance(result, tuple):
            self.output_count = len(result)
            result, self.output_places = _observe(result, self._on_output_grads)
        else:
            warnings.warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of "
                f"Tensors but received {type(result)}",
                stacklevel=5,
            )
        return result

    def _on_output_grads(self, grads: Gradients) -> Gradients:
        outputs = _spread(grads, self.output_places, self.output_count)
        for hook in self.pre_hooks:
            replaced = hook(self.module, outputs)
            if replaced is not None:
                outputs = _as_tuple(replaced, len(outputs), "Backward pre hook", "grad_output")
        self.grad_outputs = outputs
        if not self.input_places:
            self._call_without_input_grads(outputs)
        return tuple(outputs[place] for place in self.output_places)

    def _call_without_input_grads(self, outputs: Gradients) -> None:
        nothing: Gradients = (None,) * self.input_count
        for hook in self.hooks:
            replaced = hook(self.module, nothing, outputs)
            if replaced is not None and any(grad is not None for grad in replaced):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always "
                    "return None or None for all gradients."
                )
        self.grad_outputs = None

    def _on_input_grads(self, grads: Gradients) -> Gradients:
        if self.grad_outputs is None:
            raise RuntimeError(
                "Module backward hook for grad_input is called before the grad_output one. The "
                "gradient reached the module's input without passing through its output: make sure "
                "that the output depends on the input and the loss on the output."
            )
        inputs = _spread(grads, self.input_places, self.input_count)
        for hook in self.hooks:
            replaced = hook(self.module, inputs, self.grad_outputs)
            if replaced is not None:
                inputs = _as_tuple(replaced, len(inputs), "Backward hook", "grad_input")
        self.grad_outputs = None
        return tuple(inputs[place] for place in self.input_places)


def _observe(
    values: tuple[Any, ...], on_grad: Callable[[Gradients], Gradients]
) -> tuple[tuple[Any, ...], list[int]]:
    """`values` with its differentiable tensors behind one boundary, and their places."""
    places = [
        place
        for place, value in enumerate(values)
        if isinstance(value, Tensor) and value.requires_grad
    ]
    if not places or not fb.is_grad_enabled():
        return values, []
    behind = _Boundary.apply(on_grad, *(values[place] for place in places))
    observed = list(values)
    for place, tensor in zip(places, behind, strict=True):
        observed[place] = tensor
    make = getattr(type(values), "_make", tuple)  # named tuples stay what they are
    return make(observed), places


def _spread(grads: Gradients, places: Sequence[int], count: int) -> Gradients:
    found = dict(zip(places, grads, strict=True))
    return tuple(found.get(place) for place in range(count))


def _as_tuple(grads: Tensor | tuple[Tensor, ...], count: int, who: str, what: str) -> Gradients:
    if not isinstance(grads, tuple):
        grads = (grads,)
    if len(grads) != count:
        raise RuntimeError(
            f"{who} returned an invalid number of {what}, got {len(grads)}, but expected {count}"
        )
    return grads


def attach_legacy_hooks(
    module: object, args: tuple[Any, ...], result: Tensor | tuple[Tensor, ...], hooks: list[Any]
) -> None:
    """Register `hooks` on the last node of the graph behind `result`, if there is one."""
    tensor = result
    while not isinstance(tensor, Tensor):
        if isinstance(tensor, dict):
            tensor = next(value for value in tensor.values() if isinstance(value, Tensor))
        else:
            tensor = tensor[0]
    node = tensor.grad_fn
    if node is None:
        return
    for hook in hooks:
        node.register_hook(functools.partial(hook, module))
    missing = _what_legacy_hooks_miss(args, result, node)
    if missing:
        warnings.warn(
            f"Using a non-full backward hook when {missing}. "
            "Please use register_full_backward_hook to get the documented behavior.",
            FutureWarning,
            stacklevel=5,
        )


def _what_legacy_hooks_miss(args: tuple[Any, ...], result: object, node: Any) -> str:
    outputs = (result,) if isinstance(result, Tensor) else result
    if not (isinstance(outputs, tuple) and all(isinstance(o, Tensor) for o in outputs)):
        return (
            "the module does not return a single Tensor or a tuple of Tensors is deprecated: "
            "it will be missing some of the grad_output"
        )
    if not all(isinstance(arg, Tensor) for arg in args):
        return (
            "the module does not take a single Tensor or a tuple of Tensors is deprecated: "
            "it will be missing some of the grad_input"
        )
    if len({o.grad_fn for o in outputs if o.grad_fn is not None}) > 1:
        return (
            "outputs are generated by different autograd Nodes is deprecated: "
            "it will be missing some grad_output"
        )
    behind = {arg.grad_fn for arg in args if arg.grad_fn is not None}
    if behind and not behind <= {following for following, _ in node.next_functions}:
        return (
            "the forward contains multiple autograd Nodes is deprecated: "
            "it will be missing some grad_input"
        )
    return ""
