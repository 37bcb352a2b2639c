"""Device ``jax`` for flambeau: JAX arrays, and composites compiled by XLA."""

__version__ = "0.1"
