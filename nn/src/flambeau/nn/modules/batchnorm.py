"""Batch normalisation."""

from __future__ import annotations

from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.nn import functional as F
from flambeau.nn import init
from flambeau.nn.module import Module
from flambeau.nn.modules._statistics import statistics_of_all
from flambeau.nn.parameter import Parameter

Device = fb.device | str | int | None


class _NormBase(Module):
    """The state of normalisation with running statistics."""

    _version = 2
    num_features: int
    eps: float
    momentum: float | None
    affine: bool
    track_running_stats: bool
    weight: Parameter  # or None: typed so that programs may initialise it unasked
    bias: Parameter  # or None: typed so that programs may initialise it unasked
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Device = None,
        dtype: fb.dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        for name, present in (("weight", affine), ("bias", affine and bias)):
            values = fb.empty(num_features, device=device, dtype=dtype) if present else None
            self.register_parameter(name, None if values is None else Parameter(values))
        if track_running_stats:
            self.register_buffer("running_mean", fb.zeros(num_features, device=device, dtype=dtype))
            self.register_buffer("running_var", fb.ones(num_features, device=device, dtype=dtype))
            counter = fb.tensor(0, dtype=fb.int64, device=device)
            self.register_buffer("num_batches_tracked", counter)
        else:
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                self.register_buffer(name, None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forget the running statistics: mean 0, variance 1, no batches."""
        if self.running_mean is not None and self.running_var is not None:
            self.running_mean.zero_()
            self.running_var.fill_(1)
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Forget the running statistics and set weight 1 and bias 0."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
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
        version = local_metadata.get("version")
        key = prefix + "num_batches_tracked"
        if (version is None or version < 2) and self.track_running_stats and key not in state_dict:
            counter = self.num_batches_tracked  # version 1 did not count batches
            if counter is None or counter.device.type == "meta":
                counter = fb.tensor(0, dtype=fb.int64)
            state_dict[key] = counter
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class _BatchNorm(_NormBase):
    """Batch normalisation of inputs of any shape; subclasses say which they take."""

    dimensions: tuple[int, ...] = ()

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in self.dimensions:
            expected = " or ".join(f"{n}D" for n in self.dimensions)
            raise ValueError(f"expected {expected} input (got {input.dim()}D input)")

    def forward(self, input: Tensor) -> Tensor:
        """`functional.batch_norm` with this state, which training updates."""
        self._check_input_dim(input)
        momentum = self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if momentum is None:  # cumulative average
                momentum = 1.0 / float(self.num_batches_tracked)
        running = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if running else None,
            self.running_var if running else None,
            self.weight,
            self.bias,
            self.training or (self.running_mean is None and self.running_var is None),
            0.0 if momentum is None else momentum,
            self.eps,
        )


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of features; `functional.batch_norm` gives the formula.

    `momentum` is the weight of the new batch in the running statistics; None averages all batches
    alike.  With `affine` false there are no `weight` and `bias`, with `bias` false no `bias`; with
    `track_running_stats` false the statistics are always those of the batch.

    Shapes: input (N, C) or (N, C, L), result as input.

    >>> import flambeau as fb
    >>> layer = fb.nn.BatchNorm1d(1)
    >>> layer(fb.tensor([[1.0], [3.0]])).detach()
    tensor([[-1.0000],
            [ 1.0000]])
    >>> layer.running_mean
    tensor([0.2000])
    """

    dimensions = (2, 3)


class BatchNorm2d(_BatchNorm):
    """`BatchNorm1d` for images.

    Shapes: input (N, C, H, W), result as input.

    >>> import flambeau as fb
    >>> fb.nn.BatchNorm2d(3)(fb.randn(2, 3, 4, 4)).shape
    torch.Size([2, 3, 4, 4])
    """

    dimensions = (4,)


class BatchNorm3d(_BatchNorm):
    """`BatchNorm1d` for volumes.

    Shapes: input (N, C, D, H, W), result as input.

    >>> import flambeau as fb
    >>> fb.nn.BatchNorm3d(3)(fb.randn(2, 3, 2, 2, 2)).shape
    torch.Size([2, 3, 2, 2, 2])
    """

    dimensions = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation with statistics of the batches of all processes.

    In training the mean and the variance are those of all elements of a channel in all processes,
    whose batches may have different sizes.  In one process, and in evaluation, the layer is
    `BatchNorm1d` for inputs of any number of dimensions from two on.  `process_group` names the
    processes, all if it is None.

    Shapes: input (N, C, *), result as input.

    >>> import flambeau as fb
    >>> fb.nn.SyncBatchNorm(1)(fb.tensor([[1.0], [3.0]])).detach()
    tensor([[-1.0000],
            [ 1.0000]])
    """

    process_group: fb.distributed.ProcessGroup | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: fb.distributed.ProcessGroup | None = None,
        device: Device = None,
        dtype: fb.dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")
        if input.shape[1] == 0:
            raise ValueError(
                "SyncBatchNorm number of input channels should be non-zero, "
                f"got input of shape {list(input.shape)}"
            )

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input; all processes of the group call it."""
        group = self.process_group
        whole = self.training or (self.running_mean is None and self.running_var is None)
        if not whole or (group is None and not fb.distributed.is_initialized()):
            return super().forward(input)
        if fb.distributed.get_world_size(group) == 1:
            return super().forward(input)
        self._check_input_dim(input)
        mean, variance, count = statistics_of_all(input, group)
        self._note(mean.detach(), variance.detach(), count)
        shape = (1, -1) + (1,) * (input.dim() - 2)
        scale = (variance + self.eps).rsqrt()
        if self.weight is not None:
            scale = scale * self.weight
        shift = -mean * scale if self.bias is None else self.bias - mean * scale
        return (input * scale.view(shape) + shift.view(shape)).to(input.dtype)

    def _note(self, mean: Tensor, variance: Tensor, count: float) -> None:
        """Let a batch count in the running statistics."""
        if not self.training or self.running_mean is None or self.running_var is None:
            return
        assert self.num_batches_tracked is not None
        self.num_batches_tracked.add_(1)
        part = self.momentum
        if part is None:
            part = 1.0 / float(self.num_batches_tracked)
        with fb.no_grad():
            self.running_mean.lerp_(mean.to(self.running_mean.dtype), part)
            unbiased = variance * (count / max(count - 1, 1))
            self.running_var.lerp_(unbiased.to(self.running_var.dtype), part)

    @classmethod
    def convert_sync_batchnorm(
        cls, module: Module, process_group: fb.distributed.ProcessGroup | None = None
    ) -> Module:
        """`module` with every batch normalisation replaced by a `SyncBatchNorm` of its state.

        >>> import flambeau as fb
        >>> net = fb.nn.Sequential(fb.nn.BatchNorm2d(2))
        >>> fb.nn.SyncBatchNorm.convert_sync_batchnorm(net)[0]
        SyncBatchNorm(2, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
        """
        result = module
        if isinstance(module, _BatchNorm):
            result = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            result.weight, result.bias = module.weight, module.bias
            result.running_mean, result.running_var = module.running_mean, module.running_var
            result.num_batches_tracked = module.num_batches_tracked
            result.training = module.training
        for name, child in module.named_children():
            result.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return result
