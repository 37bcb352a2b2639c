"""Kullback-Leibler divergences between distributions, and the registry of their formulas."""

from flambeau.distributions.kl import _crossed, _gaussian, _same_family
from flambeau.distributions.kl._registry import (
    _KL_MEMOIZE,
    _KL_REGISTRY,
    _dispatch_kl,
    kl_divergence,
    register_kl,
)

__all__ = ["kl_divergence", "register_kl"]
