"""A library that flambeau does not use."""

from flambeau.compat._torch.backends._absent import is_available

__all__ = ["is_available"]
