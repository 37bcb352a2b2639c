"""Event files for TensorBoard, written by way of tensorboard or, without it, tensorboardX.

    pip install tensorboard

>>> from flambeau.utils.tensorboard import SummaryWriter  # doctest: +SKIP
>>> with SummaryWriter("runs/first") as writer:  # doctest: +SKIP
...     writer.add_scalar("loss", flambeau.tensor(0.25), global_step=1)
"""

from __future__ import annotations

__all__ = ["FileWriter", "SummaryWriter"]

try:
    from flambeau.utils.tensorboard._by_tensorboard import FileWriter, SummaryWriter
except ModuleNotFoundError:
    try:
        from flambeau.utils.tensorboard._by_tensorboardx import FileWriter, SummaryWriter
    except ModuleNotFoundError as _error:
        raise ModuleNotFoundError(
            "flambeau.utils.tensorboard needs tensorboard, or tensorboardX: "
            "pip install tensorboardX",
            name="tensorboard",
        ) from _error
