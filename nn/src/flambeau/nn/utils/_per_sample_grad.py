"""Gradients of parameters by each sample of a batch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau.nn.module import Module
from flambeau.utils import _pytree

if TYPE_CHECKING:
    from flambeau import Tensor


def call_for_per_sample_grads(
    module: Module,
    *,
    batch_size: int | None = None,
    loss_reduction: str = "sum",
    batch_first: bool = True,
) -> Callable[..., Any]:
    """`module.forward`, after whose backward pass parameters have gradients by each sample.

    A parameter of the shape S has them as ``grad_sample``, of the shape (B, *S) for a batch of B
    samples; its ``grad`` stays as it was.  The module is mapped over the batch: it sees batches of
    one sample.  Tensors in its results have the dimension of the batch where those in its
    arguments have it.

    Args:
        module: what is called.  Its samples must not depend on each other.
        batch_size: how many samples there are; arguments of another size are the same for all.
            None if all tensors in the arguments are batches.
        loss_reduction: ``"mean"`` where the loss is the mean over samples: gradients are of the
            loss times B, then, and so each is that of one sample.
        batch_first: whether the batch is the first dimension, and not the second.

    Raises:
        RuntimeError: an argument is not of its kind, a parameter has ``grad_sample`` already, or
            the size of the batch is not known.

    >>> import flambeau as fb
    >>> layer = fb.nn.Linear(2, 1)
    >>> x = fb.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> call_for_per_sample_grads(layer)(x).sum().backward()
    >>> layer.weight.grad_sample.squeeze(1), layer.weight.grad
    (tensor([[1., 2.],
            [3., 4.]]), None)
    """
    if loss_reduction not in ("sum", "mean"):
        raise RuntimeError(
            f"Expected loss_reduction argument to be sum or mean, got {loss_reduction}"
        )
    if not isinstance(module, Module):
        raise RuntimeError(f"Module passed must be nn.Module, got {type(module).__name__}")
    if batch_size is not None and not isinstance(batch_size, int):
        raise RuntimeError(
            f"Batch size passed must be None or an integer, got {type(batch_size).__name__}"
        )
    if batch_size is not None and batch_size < 1:
        raise RuntimeError(f"Batch size must be positive, got {batch_size}")
    for name, weight in module.named_parameters():
        if getattr(weight, "grad_sample", None) is not None:
            raise RuntimeError(
                f"{name} has gradients of samples already, which further ones would be added to: "
                "set its grad_sample to None first"
            )
    dim = 0 if batch_first else 1

    @functools.wraps(module.forward)
    def forward(*args: object, **kwargs: object) -> object:
        count = _batch_size(args, kwargs, dim) if batch_size is None else batch_size
        scale = count if loss_reduction == "mean" else 1
        weights = {
            name: _for_each_sample(weight, count, scale)
            for name, weight in module.named_parameters()
            if weight.requires_grad
        }
        leaves, spec = _pytree.tree_flatten((args, kwargs))
        mapped = [
            isinstance(x, fb.Tensor) and x.dim() > dim and x.shape[dim] == count for x in leaves
        ]
        batches = [x for x, is_batch in zip(leaves, mapped, strict=True) if is_batch]

        def of_one(weights: dict[str, Tensor], batches: list[Tensor]) -> object:
            rest = iter(batches)
            given = [
                next(rest).unsqueeze(dim) if is_batch else x
                for x, is_batch in zip(leaves, mapped, strict=True)
            ]
            args, kwargs = _pytree.tree_unflatten(given, spec)
            found = fb.func.functional_call(module, weights, args, kwargs)
            return _pytree.tree_map_only(fb.Tensor, lambda x: x.squeeze(dim), found)

        return fb.vmap(of_one, in_dims=(0, dim), out_dims=dim, randomness="different")(
            weights, batches
        )

    return forward


def _batch_size(args: tuple[object, ...], kwargs: dict[str, object], dim: int) -> int:
    sizes = [x.shape[dim] for x in _pytree.tree_leaves((args, kwargs)) if isinstance(x, fb.Tensor)]
    if not sizes:
        raise RuntimeError(
            "Unable to find a tensor in the passed args and kwargs: specify the size of the batch "
            "by batch_size"
        )
    if len(set(sizes)) > 1:
        raise RuntimeError(
            "When computing batch size, found at least one input with batch size "
            f"{sizes[0]} and one with batch size {next(s for s in sizes if s != sizes[0])}. Please "
            "specify it explicitly using the batch size kwarg in call_for_per_sample_grads"
        )
    return sizes[0]


def _for_each_sample(weight: Tensor, count: int, scale: int) -> Tensor:
    """A parameter once for each sample, whose gradient becomes the parameter's `grad_sample`."""
    many = weight.detach().expand(count, *weight.shape).requires_grad_()

    def keep(grad: Tensor) -> None:
        grad = grad * scale if scale != 1 else grad
        before = getattr(weight, "grad_sample", None)
        weight.grad_sample = grad if before is None else before + grad  # type: ignore[attr-defined]

    many.register_hook(keep)
    return many
