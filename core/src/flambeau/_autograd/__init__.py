"""Gradients: nodes, the engine that walks them, and the modes that say what is recorded."""
