"""Nested containers as a list of leaves and a structure: the names under which libraries ask."""

from flambeau._types import tree_paths, trees
from flambeau._types.tree_paths import *  # noqa: F403
from flambeau._types.tree_paths import _broadcast_to_and_flatten as _broadcast_to_and_flatten
from flambeau._types.trees import *  # noqa: F403
from flambeau._types.trees import _dict_flatten as _dict_flatten
from flambeau._types.trees import _dict_flatten_with_keys as _dict_flatten_with_keys
from flambeau._types.trees import _dict_unflatten as _dict_unflatten
from flambeau._types.trees import _get_node_type as _get_node_type
from flambeau._types.trees import _is_namedtuple as _is_namedtuple
from flambeau._types.trees import _list_flatten as _list_flatten
from flambeau._types.trees import _list_flatten_with_keys as _list_flatten_with_keys
from flambeau._types.trees import _list_unflatten as _list_unflatten
from flambeau._types.trees import _namedtuple_flatten as _namedtuple_flatten
from flambeau._types.trees import _namedtuple_flatten_with_keys as _namedtuple_flatten_with_keys
from flambeau._types.trees import _namedtuple_unflatten as _namedtuple_unflatten
from flambeau._types.trees import _odict_flatten as _odict_flatten
from flambeau._types.trees import _odict_unflatten as _odict_unflatten
from flambeau._types.trees import _register_pytree_node as _register_pytree_node
from flambeau._types.trees import _tuple_flatten as _tuple_flatten
from flambeau._types.trees import _tuple_flatten_with_keys as _tuple_flatten_with_keys
from flambeau._types.trees import _tuple_unflatten as _tuple_unflatten

__all__ = [*trees.__all__, *tree_paths.__all__]
