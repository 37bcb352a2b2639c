"""Pruning: parameters of which a mask sets some entries to zero.

A pruned parameter ``name`` is kept as ``name_orig``, its mask as the buffer ``name_mask``; their
product is the attribute ``name``, which a hook renews before each forward.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import flambeau as fb
from flambeau import Tensor
from flambeau.nn._refusals import require_tensors
from flambeau.nn.module import Module
from flambeau.nn.utils._pruning import (
    BasePruningMethod,
    CustomFromMask,
    Identity,
    L1Unstructured,
    LnStructured,
    PruningContainer,
    RandomStructured,
    RandomUnstructured,
    further_masked,
    hook_of,
)
from flambeau.overrides import all_take_as_annotated, takes_as_annotated

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]

M = TypeVar("M", bound=Module)


@takes_as_annotated
def identity(module: M, name: str) -> M:
    """Give the parameter `name` the form of a pruned one, with a mask of ones."""
    Identity.apply(module, name)
    return module


@takes_as_annotated
def random_unstructured(module: M, name: str, amount: float) -> M:
    """Prune `amount` entries of the parameter `name` (a share of them for a float) at random.

    >>> from flambeau.nn.utils import prune
    >>> layer = prune.random_unstructured(fb.nn.Linear(2, 3), name="weight", amount=1)
    >>> int((layer.weight_mask == 0).sum())
    1
    """
    RandomUnstructured.apply(module, name, amount=amount)
    return module


@takes_as_annotated
def l1_unstructured(
    module: M, name: str, amount: float, importance_scores: Tensor | None = None
) -> M:
    """Prune the entries of `name` of smallest magnitude, or of smallest score.

    >>> from flambeau.nn.utils import prune
    >>> sorted(prune.l1_unstructured(fb.nn.Linear(2, 3), "weight", amount=0.2).state_dict())
    ['bias', 'weight_mask', 'weight_orig']
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


@takes_as_annotated
def random_structured(module: M, name: str, amount: float, dim: int) -> M:
    """Prune slices of `name` along `dim` at random.

    >>> from flambeau.nn.utils import prune
    >>> layer = prune.random_structured(fb.nn.Linear(5, 3), "weight", amount=3, dim=1)
    >>> int((layer.weight.abs().sum(0) == 0).sum())
    3
    """
    RandomStructured.apply(module, name, amount=amount, dim=dim)
    return module


@takes_as_annotated
def ln_structured(
    module: M,
    name: str,
    amount: float,
    n: object,
    dim: int,
    importance_scores: Tensor | None = None,
) -> M:
    """Prune the slices of `name` along `dim` of smallest norm of order `n`.

    >>> from flambeau.nn.utils import prune
    >>> layer = fb.nn.Conv2d(5, 3, 2)
    >>> layer = prune.ln_structured(layer, "weight", amount=0.3, dim=1, n=float("-inf"))
    >>> layer.weight_mask[0, :, 0, 0].sum()
    tensor(3.)
    """
    LnStructured.apply(
        module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores
    )
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: dict[tuple[Module, str], Tensor] | None = None,
    **kwargs: object,
) -> None:
    """Prune several parameters as if they were one: pairs of a module and a name.

    `kwargs` are the constructor arguments of `pruning_method`, an unstructured one.

    Raises:
        TypeError: the parameters are no iterable, the scores no dictionary, or the method is not
            unstructured.

    >>> from flambeau.nn.utils import prune
    >>> net = fb.nn.Sequential(fb.nn.Linear(10, 4), fb.nn.Linear(4, 1))
    >>> pairs = [(net[0], "weight"), (net[1], "weight")]
    >>> prune.global_unstructured(pairs, prune.L1Unstructured, amount=10)
    >>> sum(int((layer.weight == 0).sum()) for layer in net)
    10
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    chosen = list(parameters)
    given = {} if importance_scores is None else importance_scores
    if not isinstance(given, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    method = pruning_method(**kwargs)
    kind = getattr(method, "PRUNING_TYPE", None)
    if kind != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
            f"{pruning_method} of type {kind}"
        )
    scores, masks = [], []
    for module, name in chosen:
        current = getattr(module, name)
        require_tensors("global_unstructured", **{name: current})
        score: Any = given.get((module, name), current)
        scores.append(score.detach().reshape(-1))
        mask = getattr(module, name + "_mask", None)
        masks.append((fb.ones_like(current) if mask is None else mask).reshape(-1))
    joined = further_masked(method, fb.cat(scores), fb.cat(masks))
    parts = joined.split([len(mask) for mask in masks])
    for (module, name), part in zip(chosen, parts, strict=True):
        custom_from_mask(module, name, part.reshape(getattr(module, name).shape))


@takes_as_annotated
def custom_from_mask(module: M, name: str, mask: Tensor) -> M:
    """Prune the parameter `name` where `mask` is zero.

    >>> from flambeau.nn.utils import prune
    >>> layer = prune.custom_from_mask(fb.nn.Linear(5, 3), "bias", fb.tensor([0, 1, 0]))
    >>> layer.bias_mask
    tensor([0., 1., 0.])
    """
    CustomFromMask.apply(module, name, mask)
    return module


@takes_as_annotated
def remove(module: M, name: str) -> M:
    """Make the pruned parameter `name` an ordinary one again; what was pruned stays zero.

    Raises:
        ValueError: the parameter is not pruned.

    >>> from flambeau.nn.utils import prune
    >>> layer = prune.random_unstructured(fb.nn.Linear(5, 7), "weight", amount=0.2)
    >>> sorted(prune.remove(layer, "weight").state_dict())
    ['bias', 'weight']
    """
    key, hook = hook_of(module, name)
    if hook is None:
        raise ValueError(
            f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed"
        )
    hook.remove(module)
    del module._forward_pre_hooks[key]
    return module


@takes_as_annotated
def is_pruned(module: Module) -> bool:
    """Whether the module or one inside it has a pruned parameter.

    >>> from flambeau.nn.utils import prune
    >>> layer = fb.nn.Linear(5, 7)
    >>> prune.is_pruned(layer), prune.is_pruned(prune.identity(layer, "bias"))
    (False, True)
    """
    return any(
        isinstance(hook, BasePruningMethod)
        for part in module.modules()
        for hook in part._forward_pre_hooks.values()
    )


all_take_as_annotated(globals())
