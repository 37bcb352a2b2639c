"""Probability distributions, of which only the helpers are there."""

from flambeau.compat._torch.distributions.kl import register_kl

__all__ = ["register_kl"]
