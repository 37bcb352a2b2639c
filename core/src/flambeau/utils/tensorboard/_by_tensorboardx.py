"""The writer of tensorboardX, taught what a tensor is."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import tensorboardX

from flambeau._tensor.tensor import Tensor

__all__ = ["FileWriter", "SummaryWriter"]

FileWriter = tensorboardX.FileWriter


def _plain(value: Any) -> Any:
    """Tensors as NumPy arrays, also inside lists, tuples and dictionaries."""
    if isinstance(value, Tensor):
        return value.detach().cpu().numpy()
    if isinstance(value, dict):
        return {key: _plain(v) for key, v in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_plain(v) for v in value)
    return value


def _with_tensors(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def write(self: object, *args: object, **kwargs: object) -> object:
        return method(self, *_plain(args), **_plain(kwargs))

    return write


class SummaryWriter(tensorboardX.SummaryWriter):
    """tensorboardX's writer, whose methods take tensors of any device.

    Arguments and methods are those of `tensorboardX.SummaryWriter` and of PyTorch's class of this
    name.  ``add_graph`` needs PyTorch's tracer and is refused.
    """

    def add_graph(self, *args: object, **kwargs: object) -> None:
        """Refused: a graph is drawn from PyTorch's traces.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(
            "add_graph(): flambeau records no traces; `flambeau.nn.utils.summary` or the graph "
            "behind `grad_fn` shows a model's structure"
        )


for _name in (
    "add_audio add_embedding add_figure add_hparams add_histogram add_image add_image_with_boxes "
    "add_images add_mesh add_pr_curve add_scalar add_scalars add_text add_video"
).split():
    setattr(SummaryWriter, _name, _with_tensors(getattr(SummaryWriter, _name)))
