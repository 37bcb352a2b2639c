"""Names of ``torch.utils._pytree`` that only programs for PyTorch want."""

from __future__ import annotations

from typing import Any

from flambeau.utils._pytree import (
    TreeSpec,
    is_namedtuple_instance,
    register_pytree_node,
    tree_is_leaf,
)

__all__ = [
    "KeyEntry",
    "KeyPath",
    "PyTreeSpec",
    "_is_leaf",
    "_is_namedtuple_instance",
    "_private_register_pytree_node",
]

KeyEntry = Any
KeyPath = tuple[Any, ...]
PyTreeSpec = TreeSpec
_is_leaf = tree_is_leaf
_is_namedtuple_instance = is_namedtuple_instance
_private_register_pytree_node = register_pytree_node
