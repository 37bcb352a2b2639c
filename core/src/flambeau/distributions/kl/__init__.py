"""Kullback-Leibler divergences between distributions, and the registry of their formulas."""

from flambeau.distributions.kl import _crossed, _gaussian, _same_family
from flambeau.distributions.kl._registry import (
    _KL_MEMOIZE,
    _KL_REGISTRY,
    _dispatch_kl,
    kl_divergence,
    register_kl,
)
from flambeau.distributions.kl._same_family import _kl_expfamily_expfamily

__all__ = ["kl_divergence", "register_kl"]
