"""A weight divided by its largest singular value, by a hook before forward (Miyato et al., 2018).

The singular vectors u and v are buffers, made better by one power iteration at every forward of
training: v = Wᵀu / ‖Wᵀu‖, u = Wv / ‖Wv‖; the value is uᵀWv.
"""

from __future__ import annotations

from typing import Any, TypeVar

import flambeau as fb
from flambeau import Tensor
from flambeau.nn.module import Module
from flambeau.nn.parameter import Parameter
from flambeau.nn.utils._iteration import iterate
from flambeau.overrides import takes_as_annotated

__all__ = ["SpectralNorm", "remove_spectral_norm", "spectral_norm"]

M = TypeVar("M", bound=Module)


def _unit(vector: Tensor, eps: float) -> Tensor:
    return vector / vector.norm().clamp(min=eps)


class SpectralNorm:
    """The hook: sets ``name`` from ``name_orig``, ``name_u`` and ``name_v`` before each forward."""

    name: str
    dim: int
    n_power_iterations: int
    eps: float

    def __init__(
        self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        self.name = name
        self.dim = dim
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got "
                f"n_power_iterations={n_power_iterations}"
            )
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        """The weight as a matrix whose rows are dimension `dim`."""
        if self.dim:
            order = (self.dim, *(d for d in range(weight.dim()) if d != self.dim))
            weight = weight.permute(order)
        return weight.reshape(weight.shape[0], -1)

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor:
        """The weight over its largest singular value; iterating changes u and v in place."""
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with fb.no_grad():

                def step() -> None:
                    v.copy_(_unit(fb.mv(matrix.mT, u), self.eps))
                    u.copy_(_unit(fb.mv(matrix, v), self.eps))

                iterate(step, u, self.n_power_iterations)
            # The graph keeps the vectors of this forward while the next one writes into u and v.
            u, v = u.clone(), v.clone()
        return weight / fb.dot(u, fb.mv(matrix, v))

    def note_version(
        self, module: Module, state_dict: object, prefix: str, local_metadata: dict[str, Any]
    ) -> None:
        """Say in the metadata of a ``state_dict`` that the vectors are in it."""
        versions = local_metadata.setdefault("spectral_norm", {})
        versions[f"{self.name}.version"] = 1

    def find_vector(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        *_: object,
    ) -> None:
        """Give a state of PyTorch 0.4, which has `name` and not v, the v that led to it.

        Of W v / σ = u, where σ is W_orig over W: v = (WᵀW)⁻¹ Wᵀ u, of such a length that uᵀWv = σ.
        """
        version = local_metadata.get("spectral_norm", {}).get(f"{self.name}.version")
        key = prefix + self.name
        if version is not None and version >= 1:
            return
        parts = (f"{key}_orig", f"{key}_u", f"{key}_v")
        if version is None and key not in state_dict and all(part in state_dict for part in parts):
            return  # a state of today without its metadata
        missing = [part for part in (f"{key}_orig", key, f"{key}_u") if part not in state_dict]
        if missing:
            missing_keys.extend(missing if strict else [])
            return
        with fb.no_grad():
            original, u = state_dict[f"{key}_orig"], state_dict[f"{key}_u"]
            sigma = (original / state_dict.pop(key)).mean()
            matrix = self.reshape_weight_to_matrix(original)
            v = fb.mv(fb.linalg.pinv(matrix.mT @ matrix) @ matrix.mT, u)
            state_dict[f"{key}_v"] = v * (sigma / fb.dot(u, fb.mv(matrix, v)))

    def __call__(self, module: Module, inputs: object) -> None:
        setattr(module, self.name, self.compute_weight(module, module.training))


@takes_as_annotated
def spectral_norm(
    module: M,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> M:
    """Divide the parameter `name` by its largest singular value before each forward.

    The rows of the matrix are dimension `dim`: 1 for transposed convolutions, 0 otherwise, unless
    given.  `n_power_iterations` are made at each forward of training.

    Raises:
        RuntimeError: the parameter is normalised already.
        ValueError: `n_power_iterations` is not positive.

    >>> import flambeau as fb
    >>> layer = fb.nn.utils.spectral_norm(fb.nn.Linear(20, 40))
    >>> layer.weight_u.shape
    torch.Size([40])
    """
    for hook in module._forward_pre_hooks.values():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            raise RuntimeError(
                f"Cannot register two spectral_norm hooks on the same parameter {name}"
            )
    if dim is None:
        dim = 1 if getattr(module, "transposed", False) else 0
    hook = SpectralNorm(name, n_power_iterations, dim, eps)
    weight = module._parameters.get(name)
    if weight is None:
        raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
    with fb.no_grad():
        matrix = hook.reshape_weight_to_matrix(weight)
        u = _unit(matrix.new_empty((matrix.shape[0],)).normal_(0, 1), eps)
        v = _unit(matrix.new_empty((matrix.shape[1],)).normal_(0, 1), eps)
    del module._parameters[name]
    module.register_parameter(name + "_orig", weight)
    # As a plain attribute, so that anything that reads `name` before a forward finds it.
    setattr(module, name, weight.data)
    module.register_buffer(name + "_u", u)
    module.register_buffer(name + "_v", v)
    module.register_forward_pre_hook(hook)
    module._register_state_dict_hook(hook.note_version)
    module._register_load_state_dict_pre_hook(hook.find_vector)
    return module


@takes_as_annotated
def remove_spectral_norm(module: M, name: str = "weight") -> M:
    """Undo `spectral_norm`: the parameter `name` is one again, with its normalised value.

    Raises:
        ValueError: the parameter is not normalised.

    >>> import flambeau as fb
    >>> layer = fb.nn.utils.spectral_norm(fb.nn.Linear(20, 40))
    >>> sorted(fb.nn.utils.remove_spectral_norm(layer).state_dict())
    ['bias', 'weight']
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            with fb.no_grad():
                weight = hook.compute_weight(module, do_power_iteration=False)
            delattr(module, name)
            delattr(module, name + "_u")
            delattr(module, name + "_v")
            delattr(module, name + "_orig")
            module.register_parameter(name, Parameter(weight.detach()))
            del module._forward_pre_hooks[key]
            for handle, (noting, _) in list(module._state_dict_hooks.items()):
                if noting == hook.note_version:
                    del module._state_dict_hooks[handle]
            for handle, finding in list(module._load_state_dict_pre_hooks.items()):
                if finding == hook.find_vector:
                    del module._load_state_dict_pre_hooks[handle]
            return module
    raise ValueError(f"spectral_norm of '{name}' not found in {module}")
