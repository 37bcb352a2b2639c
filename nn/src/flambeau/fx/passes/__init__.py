"""Ready-made passes over graphs."""

from flambeau.fx.passes import shape_prop, split_module

__all__ = ["shape_prop", "split_module"]
