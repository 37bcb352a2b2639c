"""Pruning methods: the hooks that choose and mask entries of a parameter."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.nn.module import Module
from flambeau.nn.parameter import Parameter

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
]


class BasePruningMethod(ABC):
    """A way to choose the entries to prune; registered on a module, the hook that masks them.

    A subclass defines `compute_mask` and says in `PRUNING_TYPE` what it chooses among when a
    parameter is pruned again: ``"unstructured"``, the entries that are left, ``"structured"``, the
    slices along its `dim` that are not all masked, or ``"global"``, everything.

    >>> from flambeau.nn.utils import prune
    >>> prune.L1Unstructured(amount=2).prune(fb.tensor([3.0, -1.0, 2.0, -4.0]))
    tensor([ 3., -0.,  0., -4.])
    """

    PRUNING_TYPE: str
    _tensor_name: str | None = None

    def __call__(self, module: Module, inputs: object) -> None:
        """The hook before forward."""
        assert self._tensor_name is not None
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask for the scores `t`: `default_mask` with more entries set to zero."""

    def apply_mask(self, module: Module) -> Tensor:
        """Mask times original parameter.

        Raises:
            AttributeError: the method was not applied to a module.
        """
        if self._tensor_name is None:
            raise AttributeError(f"Module {module} has to be pruned")
        original = getattr(module, self._tensor_name + "_orig")
        return getattr(module, self._tensor_name + "_mask").to(dtype=original.dtype) * original

    @classmethod
    def apply(
        cls,
        module: Module,
        name: str,
        *args: Any,
        importance_scores: Tensor | None = None,
        **kwargs: Any,
    ) -> BasePruningMethod:
        """Prune the parameter `name` by a new instance of this class; the hook now in force.

        The further arguments are the constructor's.  Entries are chosen by `importance_scores`, or
        by the parameter itself.  A second pruning makes, or joins, a `PruningContainer`.  An error
        leaves the module as it was.

        Raises:
            AssertionError: `importance_scores` has another shape than the parameter.
        """
        method: BasePruningMethod = cls(*args, **kwargs)
        method._tensor_name = name
        key, earlier = hook_of(module, name)
        current = getattr(module, name)
        parameter = current if earlier is None else getattr(module, name + "_orig")
        if not isinstance(parameter, Parameter):
            raise TypeError(f"{name!r} of {type(module).__name__} is no parameter")
        scores = current if importance_scores is None else importance_scores
        if scores.shape != current.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}, "
                f"got {scores.shape} vs {current.shape}"
            )
        if earlier is None:
            mask = method.compute_mask(scores, default_mask=fb.ones_like(current))
            module.register_parameter(name + "_orig", parameter)
            del module._parameters[name]
        else:
            before = getattr(module, name + "_mask").detach().clone()
            mask = further_masked(method, scores, before)
            if not isinstance(earlier, PruningContainer):
                earlier = PruningContainer(earlier)
            earlier.add_pruning_method(method)
            method = earlier
            del module._forward_pre_hooks[key]
        module.register_buffer(name + "_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(
        self,
        t: Tensor,
        default_mask: Tensor | None = None,
        importance_scores: Tensor | None = None,
    ) -> Tensor:
        """`t` pruned, without a module.

        Raises:
            AssertionError: `importance_scores` has another shape than `t`.
        """
        scores = t if importance_scores is None else importance_scores
        if scores.shape != t.shape:
            raise AssertionError(
                "importance_scores should have the same shape as tensor t, "
                f"got {scores.shape} vs {t.shape}"
            )
        if default_mask is None:
            default_mask = fb.ones_like(t)
        return t * self.compute_mask(scores, default_mask=default_mask)

    def remove(self, module: Module) -> None:
        """Make the parameter one again, with the zeros in it; the hook itself stays registered.

        Raises:
            AttributeError: the method was not applied to a module.
        """
        name = self._tensor_name
        if name is None:
            raise AttributeError(f"Module {module} has to be pruned before pruning can be removed")
        pruned = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        parameter: Any = module._parameters.pop(name + "_orig")
        del module._buffers[name + "_mask"]
        parameter.data = pruned.data
        setattr(module, name, parameter)


def hook_of(module: Module, name: str) -> tuple[int, BasePruningMethod | None]:
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            return key, hook
    return -1, None


class PruningContainer(BasePruningMethod):
    """Several prunings of one parameter, in their order.

    >>> from flambeau.nn.utils import prune
    >>> layer = prune.random_unstructured(fb.nn.Linear(4, 3), "weight", 2)
    >>> method = prune.L1Unstructured.apply(layer, "weight", 3)
    >>> len(method), int(layer.weight_mask.sum())
    (2, 7)
    """

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if len(args) == 1 and isinstance(args[0], BasePruningMethod):
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod) -> None:
        """Append a method for the same parameter.

        Raises:
            TypeError: it is no pruning method.
            ValueError: it prunes another parameter.
        """
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method._tensor_name != self._tensor_name:
            raise ValueError(
                f"This PruningContainer prunes the parameter named '{self._tensor_name}', "
                f"the method to add '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: int) -> BasePruningMethod:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """`default_mask`, further masked by the method that was added last."""
        return further_masked(self._pruning_methods[-1], t, default_mask)


def further_masked(method: BasePruningMethod, t: Tensor, mask: Tensor) -> Tensor:
    """`mask` with the choice of `method` among what it leaves, as its `PRUNING_TYPE` says."""
    kind = method.PRUNING_TYPE
    mask = mask.to(dtype=t.dtype)
    if kind == "unstructured":
        rest = mask == 1
    elif kind == "structured":
        if not hasattr(method, "dim"):
            raise AttributeError("Pruning methods of PRUNING_TYPE 'structured' need a `dim`")
        place: int = method.dim  # type: ignore[attr-defined] - asked above
        place = place % t.dim() if -t.dim() <= place < t.dim() else _refuse_dim(t, place)
        others = [d for d in range(t.dim()) if d != place]
        rest = (*[slice(None)] * place, mask.sum(dim=others) != 0)
    elif kind == "global":
        rest = (slice(None),) * t.dim()
    else:
        raise ValueError(f"Unrecognized PRUNING_TYPE {kind}")
    result = mask.clone()
    result[rest] = method.compute_mask(t[rest], default_mask=mask[rest]).to(dtype=mask.dtype)
    return result


def _refuse_dim(t: Tensor, dim: int) -> int:
    raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")


def _check_amount(amount: object) -> None:
    if not isinstance(amount, Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    share: Any = amount
    if share < 0 or (share > 1 and not isinstance(amount, Integral)):
        raise ValueError(
            f"amount={amount} should be a float in the range [0.0, 1.0] or a non-negative integer"
        )


def _count(amount: Any, size: int) -> int:
    """How many of `size` entries an amount is: itself, or that share of them."""
    if not isinstance(amount, Integral):
        return round(amount * size)
    count = int(amount)
    if count > size:
        raise ValueError(
            f"amount={count} should be smaller than the number of parameters to prune={size}"
        )
    return count


class Identity(BasePruningMethod):
    """Prunes nothing: gives a parameter the form of a pruned one."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """`default_mask` itself."""
        return default_mask


class _Unstructured(BasePruningMethod):
    """Prunes `amount` entries, or that share for a float; a subclass says which."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: float) -> None:
        _check_amount(amount)
        self.amount = amount

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """`default_mask` with the chosen entries set to zero."""
        count = _count(self.amount, t.numel())
        mask = default_mask.clone()
        if count:
            mask.view(-1)[self._chosen(t, count)] = 0
        return mask

    def _chosen(self, t: Tensor, count: int) -> Tensor:
        """Places of `count` entries of `t` in row-major order."""
        raise NotImplementedError


class RandomUnstructured(_Unstructured):
    """Prunes entries at random: `amount` of them, or that share for a float."""

    def _chosen(self, t: Tensor, count: int) -> Tensor:
        return fb.topk(fb.rand_like(t).view(-1), count).indices


class L1Unstructured(_Unstructured):
    """Prunes the entries of smallest magnitude: `amount` of them, or that share for a float."""

    def _chosen(self, t: Tensor, count: int) -> Tensor:
        return fb.topk(t.detach().abs().reshape(-1), count, largest=False).indices


def _channels(t: Tensor, amount: float, dim: int) -> tuple[int, int]:
    """How many slices there are along a dimension, and how many to prune."""
    if t.dim() < 2:
        raise ValueError(
            "Structured pruning can only be applied to multidimensional tensors. Found tensor of "
            f"shape {t.shape} with {t.dim()} dims"
        )
    if not -t.dim() <= dim < t.dim():
        _refuse_dim(t, dim)
    return t.shape[dim], _count(amount, t.shape[dim])


def _keeping(kept: Tensor, dim: int, default_mask: Tensor) -> Tensor:
    """`default_mask` where `kept`, a vector of truth values along `dim`, says so."""
    shape = [1] * default_mask.dim()
    shape[dim] = -1
    return default_mask * kept.to(default_mask.device).reshape(shape).to(default_mask.dtype)


class RandomStructured(BasePruningMethod):
    """Prunes slices along `dim` at random: `amount` of them, or that share for a float."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        _check_amount(amount)
        self.amount = amount
        self.dim = dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """`default_mask` with the chosen slices set to zero.

        Raises:
            ValueError: `t` has fewer than two dimensions, or fewer slices than are to be pruned.
            IndexError: `dim` is no dimension.
        """
        size, count = _channels(t, self.amount, self.dim)
        if not count:
            return default_mask
        draws = fb.rand(size)
        kept = draws > fb.kthvalue(draws, count).values
        return _keeping(kept, self.dim, default_mask.to(dtype=t.dtype))


class LnStructured(BasePruningMethod):
    """Prunes the slices along `dim` of smallest norm of order `n`, one of `flambeau.norm`.

    `amount` of them, or that share for a float.
    """

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, n: Any, dim: int = -1) -> None:
        _check_amount(amount)
        self.amount = amount
        self.n = n
        self.dim = dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """`default_mask` with the chosen slices set to zero.

        Raises:
            ValueError: `t` has fewer than two dimensions, or fewer slices than are to be pruned.
            IndexError: `dim` is no dimension.
        """
        size, count = _channels(t, self.amount, self.dim)
        if not count:
            return default_mask
        others = [d for d in range(t.dim()) if d != self.dim % t.dim()]
        norms = fb.norm(t.detach(), p=self.n, dim=others)
        kept = fb.zeros(size, dtype=fb.bool, device=t.device)
        kept[fb.topk(norms, size - count).indices] = True
        return _keeping(kept, self.dim, default_mask.to(dtype=t.dtype))


class CustomFromMask(BasePruningMethod):
    """Prunes where a given mask has zeros."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Both masks' product.

        Raises:
            AssertionError: they differ in shape.
        """
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"mask shape {self.mask.shape} does not match that of the parameter, "
                f"{default_mask.shape}"
            )
        return default_mask * self.mask.to(dtype=default_mask.dtype)
