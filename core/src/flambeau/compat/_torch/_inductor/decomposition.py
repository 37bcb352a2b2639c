"""Formulas that libraries give a compiler for their ops: kept, and never asked for."""

from flambeau.compat._torch._decomp import decomposition_table as decompositions
from flambeau.compat._torch._decomp import register_decomposition

__all__ = ["decompositions", "register_decomposition"]
