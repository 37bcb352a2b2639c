"""Names of ``torch.autograd.functional`` that only programs for PyTorch want."""

from __future__ import annotations

from typing import Any

import flambeau as fb
from flambeau.autograd.functional import _grad as _autograd_grad

__all__ = [
    "_as_tuple",
    "_as_tuple_nocheck",
    "_autograd_grad",
    "_check_requires_grad",
    "_construct_standard_basis_for",
    "_grad_postprocess",
    "_grad_preprocess",
    "_tuple_postprocess",
]


def _as_tuple_nocheck(x: object) -> tuple[Any, ...]:
    """A tuple of what a list or a tuple holds, or of one thing."""
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def _as_tuple(inp: Any, arg_name: str | None = None, fn_name: str | None = None) -> Any:
    """Whether tensors came as a tuple, and the tuple; without names the tuple alone.

    Raises:
        TypeError: there is something that is no tensor.
    """
    if arg_name is None and fn_name is None:
        return _as_tuple_nocheck(inp)
    several = isinstance(inp, tuple)
    given = inp if several else (inp,)
    for place, each in enumerate(given):
        if not isinstance(each, fb.Tensor):
            where = f"value at index {place}" if several else f"given {arg_name}"
            raise TypeError(
                f"The {arg_name} given to {fn_name} must be either a Tensor or a tuple of Tensors "
                f"but the {where} has type {type(each)}."
            )
    return several, given


def _construct_standard_basis_for(
    tensors: tuple[Any, ...], tensor_numels: tuple[int, ...]
) -> tuple[Any, ...]:
    """The rows of a unit matrix over all elements of tensors: for each the columns of its own."""
    if not tensors or len(tensors) != len(tensor_numels):
        raise AssertionError("as many sizes as tensors, and at least one, are wanted")
    total, before, parts = sum(tensor_numels), 0, []
    for tensor, count in zip(tensors, tensor_numels, strict=True):
        part = tensor.new_zeros((total, count))
        part.diagonal(-before).fill_(1)
        parts.append(part)
        before += count
    return tuple(parts)


def _tuple_postprocess(res: Any, to_unpack: bool | tuple[bool, bool]) -> Any:
    """The result without the tuples that the caller did not give, of one level or of two."""
    outer, inner = to_unpack if isinstance(to_unpack, tuple) else (to_unpack, True)
    if not inner:
        res = tuple(each[0] for each in res)
    return res if outer else res[0]


def _grad_preprocess(
    inputs: tuple[fb.Tensor, ...], create_graph: bool, need_graph: bool
) -> tuple[Any, ...]:
    """Inputs as tensors of their own: recorded with `create_graph`, else the start of a graph."""

    def own(x: Any) -> Any:
        if create_graph and x.requires_grad:
            return x.clone() if x.is_sparse else x.view_as(x)
        return x.detach().requires_grad_(need_graph)

    return tuple(own(x) for x in inputs)


def _grad_postprocess(inputs: Any, create_graph: bool) -> Any:
    """Tensors in nested tuples, detached unless `create_graph`."""
    if not isinstance(inputs[0], fb.Tensor):
        return tuple(_grad_postprocess(each, create_graph) for each in inputs)
    return inputs if create_graph else tuple(x.detach() for x in inputs)


_STAGES = {
    "outputs": "output {} of the user-provided function does not require gradients",
    "grad_inputs": "the gradient by input {} is independent of the inputs",
    "jacobian": "the jacobian by input {} is independent of the input",
    "hessian": "the hessian by input {} is independent of the input",
}


def _check_requires_grad(inputs: tuple[Any, ...], input_type: str, strict: bool) -> None:
    """Refuse, where `strict`, what is missing or does not depend on the inputs.

    Raises:
        RuntimeError: something is so, or `input_type` names nothing.
    """
    if not strict:
        return
    if input_type not in _STAGES:
        raise RuntimeError("Invalid input_type to _check_requires_grad")
    for place, each in enumerate(inputs):
        if each is None:
            raise RuntimeError(
                f"The output of the user-provided function is independent of input {place}. This "
                "is not allowed in strict mode."
            )
        if not each.requires_grad:
            said = _STAGES[input_type].format(place)
            raise RuntimeError(f"{said[0].upper()}{said[1:]}. This is not allowed in strict mode.")
