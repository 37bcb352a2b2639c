"""Optimisers: objects that hold parameters and update them from their gradients.

>>> import flambeau as fb
>>> weight = fb.tensor([1.0], requires_grad=True)
>>> optimizer = fb.optim.SGD([weight], lr=0.25)
>>> (weight * 2).sum().backward()
>>> optimizer.step()
>>> weight.item()
0.5
"""

from flambeau.optim.adam import Adam
from flambeau.optim.adamw import AdamW
from flambeau.optim.optimizer import Optimizer
from flambeau.optim.sgd import SGD

__all__ = ["SGD", "Adam", "AdamW", "Optimizer"]
