"""Instance normalisation: per channel of each element of a batch."""

from __future__ import annotations

from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.nn import functional as F
from flambeau.nn._refusals import require_tensors
from flambeau.nn.modules.batchnorm import Device, _NormBase
from flambeau.overrides import warn


class _InstanceNorm(_NormBase):
    """Instance normalisation; subclasses say how many dimensions an element has."""

    spatial: int = 0

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Device = None,
        dtype: fb.dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )

    def forward(self, input: Tensor) -> Tensor:
        """`functional.instance_norm` with this state, which training updates."""
        batched = self.spatial + 2
        require_tensors(type(self).__name__, input=input)
        self._check_input_dim(input)
        place = input.dim() - batched + 1
        if input.shape[place] != self.num_features:
            message = (
                f"expected input's size at dim={place} to match num_features "
                f"({self.num_features}), but got: {input.shape[place]}."
            )
            if self.affine:
                raise ValueError(message)
            warn(
                f"input's size at dim={place} does not match num_features. You can silence this "
                "warning by not passing in num_features, which is not used because affine=False",
            )
        if input.dim() == batched:
            return self._normalized(input)
        return self._normalized(input.unsqueeze(0)).squeeze(0)

    def _check_input_dim(self, input: Tensor) -> None:
        # Subclasses written for PyTorch override it.
        batched = self.spatial + 2
        if input.dim() not in (batched - 1, batched):
            raise ValueError(
                f"expected {batched - 1}D or {batched}D input (got {input.dim()}D input)"
            )

    def _normalized(self, input: Tensor) -> Tensor:
        return F.instance_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        # The first version kept statistics by default; a module that keeps none says so.
        if local_metadata.get("version") is None and not self.track_running_stats:
            names = ("running_mean", "running_var")
            if kept := [prefix + name for name in names if prefix + name in state_dict]:
                error_msgs.append(
                    f"Unexpected running stats buffer(s) {' and '.join(map(repr, kept))} for "
                    f"{type(self).__name__} with track_running_stats=False. If state_dict is a "
                    "checkpoint saved before 0.4.0, this may be expected because "
                    f"{type(self).__name__} does not track running stats by default since 0.4.0. "
                    "Please remove these keys from state_dict. If the running stats are actually "
                    f"needed, instead set track_running_stats=True in {type(self).__name__} to "
                    "enable them. See the documentation of "
                    f"{type(self).__name__} for details."
                )
                for key in kept:
                    state_dict.pop(key)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class InstanceNorm1d(_InstanceNorm):
    """Instance normalisation of sequences; `functional.instance_norm` gives the formula.

    Without `affine` there are no `weight` and `bias`; with `track_running_stats` evaluation uses
    statistics collected in training.

    Shapes: input (N, C, L) or (C, L), result as input.

    >>> import flambeau as fb
    >>> fb.nn.InstanceNorm1d(1)(fb.tensor([[[1.0, 3.0]]]))
    tensor([[[-1.0000,  1.0000]]])
    """

    spatial = 1


class InstanceNorm2d(_InstanceNorm):
    """`InstanceNorm1d` for images.

    Shapes: input (N, C, H, W) or (C, H, W), result as input.

    >>> import flambeau as fb
    >>> fb.nn.InstanceNorm2d(3)(fb.randn(2, 3, 4, 4)).shape
    torch.Size([2, 3, 4, 4])
    """

    spatial = 2


class InstanceNorm3d(_InstanceNorm):
    """`InstanceNorm1d` for volumes.

    Shapes: input (N, C, D, H, W) or (C, D, H, W), result as input.

    >>> import flambeau as fb
    >>> fb.nn.InstanceNorm3d(3)(fb.randn(3, 2, 2, 2)).shape
    torch.Size([3, 2, 2, 2])
    """

    spatial = 3
