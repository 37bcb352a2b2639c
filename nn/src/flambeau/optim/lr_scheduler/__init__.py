"""Schedulers: objects that change the learning rates of an optimiser from epoch to epoch.

>>> import flambeau as fb
>>> optimizer = fb.optim.SGD([fb.ones(1, requires_grad=True)], lr=1.0)
>>> scheduler = fb.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
>>> optimizer.step()
>>> scheduler.step()
>>> scheduler.get_last_lr()
[0.5]
"""

from flambeau.optim.lr_scheduler._base import LRScheduler
from flambeau.optim.lr_scheduler._combined import ChainedScheduler, SequentialLR
from flambeau.optim.lr_scheduler._cosine import CosineAnnealingLR, CosineAnnealingWarmRestarts
from flambeau.optim.lr_scheduler._cycles import CyclicLR, OneCycleLR
from flambeau.optim.lr_scheduler._factors import (
    ConstantLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from flambeau.optim.lr_scheduler._plateau import ReduceLROnPlateau

_LRScheduler = LRScheduler  # its name before PyTorch 2.0

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]
