"""Functions of functions: calls of a module as a function of its parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import flambeau as fb

if TYPE_CHECKING:
    from flambeau._tensor.tensor import Tensor


__all__ = ["functional_call", "replace_all_batch_norm_modules_", "stack_module_state"]


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    args: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """``module(*args, **kwargs)`` with the given tensors in the places of their names.

    Several dictionaries count as one and must not share a name.  `args` that is no tuple is the
    single argument.  Tensors that the module has under several names are replaced under all of them
    if `tie_weights`.

    Raises:
        ValueError: a name is in several dictionaries, tied names are given different tensors, or
            the dictionaries are neither a dictionary nor a sequence of them.
        RuntimeError: under `strict` names are missing or unexpected.

    >>> import flambeau as fb
    >>> layer = fb.nn.Linear(2, 1, bias=False)
    >>> fb.func.functional_call(layer, {"weight": fb.ones(1, 2)}, fb.tensor([1.0, 2.0]))
    tensor([3.])
    """
    given = parameter_and_buffer_dicts
    if isinstance(given, Mapping):
        tensors = dict(given)
    elif isinstance(given, Sequence) and all(isinstance(part, Mapping) for part in given):
        names = [name for part in given for name in part]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior is ambiguous")
        tensors = {name: value for part in given for name, value in part.items()}
    else:
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
            f"{type(given)}"
        )
    from flambeau.nn.utils import stateless  # functions of tensors need no nn

    return stateless.functional_call(
        module, tensors, args, kwargs, tie_weights=tie_weights, strict=strict
    )


def stack_module_state(models: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters and the buffers of models of one kind, each name's stacked to one tensor.

    With `functional_call` under `vmap` they run as one: an ensemble.  Stacked parameters are
    leaves, which require a gradient if those of the models do.

    Raises:
        RuntimeError: there is no model, or they differ in class, in training mode, or in which
            parameters require a gradient.

    >>> import flambeau as fb
    >>> models = [fb.nn.Linear(2, 3) for _ in range(4)]
    >>> params, buffers = fb.func.stack_module_state(models)
    >>> params["weight"].shape
    torch.Size([4, 3, 2])
    """
    for model in models:
        _need_module(model, "stack_module_state", "models")
    if len(models) == 0:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if not (all(m.training for m in models) or all(not m.training for m in models)):
        raise RuntimeError(
            "stack_module_state: Expected all models to have the same training/eval mode."
        )
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    all_params = [dict(m.named_parameters()) for m in models]
    all_buffers = [dict(m.named_buffers()) for m in models]
    params = {k: _stacked(tuple(p[k] for p in all_params)) for k in all_params[0]}
    buffers = {k: _stacked(tuple(b[k] for b in all_buffers)) for k in all_buffers[0]}
    return params, buffers


def _need_module(value: object, function: str, argument: str) -> Any:
    """`value` if it is a module; the class belongs to nn, which core does not import.

    Raises:
        TypeError: it is none.
    """
    if not hasattr(value, "named_parameters"):
        raise TypeError(
            f"{function}(): argument {argument!r} must be Module, not {type(value).__name__}"
        )
    return value


@fb.no_grad()
def _stacked(leaves: tuple[Any, ...]) -> Tensor:
    wanted = leaves[0].requires_grad
    if any(leaf.requires_grad is not wanted for leaf in leaves):
        raise RuntimeError(
            "Expected all parameters or buffers of one name to have the same .requires_grad"
        )
    joined = fb.stack(leaves)
    return joined.requires_grad_(wanted)


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Switch off the running statistics of all batch normalisations in a module, in place.

    Under `vmap` a buffer outside of it cannot be written to; without one they always use the
    statistics of their batch.

    >>> import flambeau as fb
    >>> model = fb.nn.Sequential(fb.nn.BatchNorm1d(2))
    >>> fb.func.replace_all_batch_norm_modules_(model)[0].running_mean is None
    True
    """
    for module in _need_module(root, "replace_all_batch_norm_modules_", "root").modules():
        # The class belongs to nn, which core does not import: it is known by name.
        if any(base.__name__ == "_BatchNorm" for base in type(module).__mro__):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
