"""Paths to the leaves of nested containers, and classes that are registered by their fields."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import UnionType
from typing import Any

from flambeau._types.trees import (
    SUPPORTED_NODES,
    GetAttrKey,
    LeafSpec,
    TreeSpec,
    _get_node_type,
    is_namedtuple_class,
    is_structseq_class,
    register_pytree_node,
    tree_leaves,
    tree_map_,
    tree_structure,
    tree_unflatten,
)

__all__ = [
    "CONSTANT_NODES",
    "ConstantNode",
    "arg_tree_leaves",
    "is_constant_class",
    "is_namedtuple",
    "is_structseq",
    "key_get",
    "keystr",
    "map_only",
    "register_constant",
    "register_dataclass",
    "tree_flatten_with_path",
    "tree_leaves_with_path",
    "tree_map_with_path",
    "treespec_dumps",
    "treespec_leaf",
    "treespec_loads",
    "treespec_pprint",
    "treespec_tuple",
]

KeyPath = tuple[Any, ...]
Leaf = Callable[[Any], bool] | None

CONSTANT_NODES: set[type] = set()
"""The classes that `register_constant` was given."""


def tree_leaves_with_path(tree: object, is_leaf: Leaf = None) -> list[tuple[KeyPath, Any]]:
    """Pairs of a path and a leaf, from left to right.

    Raises:
        ValueError: a container's class was registered without keys.

    >>> from flambeau.utils._pytree import keystr, tree_leaves_with_path
    >>> [(keystr(path), leaf) for path, leaf in tree_leaves_with_path({"a": [1, 2], "b": 3})]
    [("['a'][0]", 1), ("['a'][1]", 2), ("['b']", 3)]
    """
    found: list[tuple[KeyPath, Any]] = []

    def visit(node: object, path: KeyPath) -> None:
        kind = _get_node_type(node)
        if kind not in SUPPORTED_NODES or (is_leaf is not None and is_leaf(node)):
            found.append((path, node))
            return
        with_keys = SUPPORTED_NODES[kind].flatten_with_keys_fn
        if with_keys is None:
            raise ValueError(
                f"Did not find a flatten_with_keys_fn for type: {kind}. Please pass a "
                "flatten_with_keys_fn argument to register_pytree_node."
            )
        for key, child in with_keys(node)[0]:
            visit(child, (*path, key))

    visit(tree, ())
    return found


def tree_flatten_with_path(
    tree: object, is_leaf: Leaf = None
) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """As `tree_leaves_with_path`, and the structure."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(
    func: Callable[..., Any], tree: object, *rests: object, is_leaf: Leaf = None
) -> Any:
    """As `tree_map`, of a function that is given the path of every leaf first."""
    leaves, spec = tree_flatten_with_path(tree, is_leaf)
    paths, values = [path for path, _ in leaves], [leaf for _, leaf in leaves]
    return tree_unflatten(map(func, paths, values, *map(spec.flatten_up_to, rests)), spec)


def keystr(kp: Iterable[object]) -> str:
    """A path as Python would write it after the container, such as ``['a'][0].x``."""
    return "".join(map(str, kp))


def key_get(obj: object, kp: Iterable[Any]) -> Any:
    """What is at a path inside a container."""
    for key in kp:
        obj = key.get(obj)
    return obj


def arg_tree_leaves(*args: object, **kwargs: object) -> list[Any]:
    """The leaves of all arguments."""
    return [leaf for each in (*args, *kwargs.values()) for leaf in tree_leaves(each)]


def map_only(kind: object, /) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """A decorator: the function is called with what is of a type, or fulfils a condition.

    Raises:
        TypeError: there is neither a type nor something to call.
    """
    if not (isinstance(kind, (type, tuple, UnionType)) or callable(kind)):
        raise TypeError("Argument must be a type, a tuple of types, or a callable.")

    def pred(x: object) -> bool:
        return isinstance(x, kind) if isinstance(kind, (type, tuple, UnionType)) else bool(kind(x))

    def decorate(func: Callable[..., Any]) -> Callable[[Any], Any]:
        return functools.wraps(func)(lambda x: func(x) if pred(x) else x)

    return decorate


def register_dataclass(
    cls: type,
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Let the fields of a dataclass, or of a class made the same way, be children.

    Args:
        cls: the class.
        field_names: the fields that its `__init__` takes; a dataclass's by default.
        drop_field_names: fields that are no children.
        serialized_type_name: not used: structures with such classes are not written.

    Raises:
        ValueError: the fields are not those of the dataclass, or not said where they must be.
    """
    if not dataclasses.is_dataclass(cls):
        if field_names is None:
            raise ValueError(
                "field_names must be specified with a list of all fields used to initialize "
                f"{cls}, as it is not a dataclass."
            )
    else:
        known = [field.name for field in dataclasses.fields(cls) if field.init]
        if field_names is None:
            field_names = known
        elif set(known).difference(drop_field_names or ()) != set(field_names):
            raise ValueError(
                f"field_names does not include all dataclass fields: {field_names} of {known}"
            )
    names = list(field_names)

    def flatten(obj: object) -> tuple[list[Any], list[list[str]]]:
        there = [name for name in names if getattr(obj, name) is not None]
        return [getattr(obj, n) for n in there], [there, [n for n in names if n not in there]]

    def unflatten(values: Iterable[Any], context: Any) -> Any:
        there, empty = context
        return cls(**dict(zip(there, values, strict=True)), **dict.fromkeys(empty))

    def with_keys(obj: object) -> tuple[list[tuple[Any, Any]], Any]:
        values, context = flatten(obj)
        return list(zip(map(GetAttrKey, context[0]), values, strict=True)), context

    register_pytree_node(cls, flatten, unflatten, flatten_with_keys_fn=with_keys)


@dataclass(frozen=True)
class ConstantNode:
    """An object that is part of a structure."""

    value: Any


def register_constant(cls: type) -> None:
    """Let objects of a class be containers without children, which the structure keeps.

    Raises:
        TypeError: objects of the class are equal only to themselves, or have no hash.
    """
    if cls.__eq__ is object.__eq__:
        raise TypeError(
            "register_constant(cls) expects `cls` to have a non-default `__eq__` implementation."
        )
    if cls.__hash__ is None:
        raise TypeError(
            "register_constant(cls) expects `cls` to have a non-default `__hash__` implementation."
        )

    def flatten(obj: object) -> tuple[list[Any], ConstantNode]:
        return [], ConstantNode(obj)

    register_pytree_node(cls, flatten, lambda _, c: c.value, flatten_with_keys_fn=flatten)
    CONSTANT_NODES.add(cls)


def is_constant_class(cls: type) -> bool:
    """Whether `register_constant` was given this class."""
    return cls in CONSTANT_NODES


def _broadcast_to_and_flatten(
    tree: object, treespec: TreeSpec, is_leaf: Leaf = None
) -> list[Any] | None:
    """The leaves of a container, each as often as the structure has leaves in its place."""
    found: list[Any] = []
    whole = tree_unflatten([0] * treespec.num_leaves, treespec)
    try:
        tree_map_(
            lambda x, below: found.extend([x] * tree_structure(below, is_leaf).num_leaves),
            tree,
            whole,
            is_leaf=is_leaf,
        )
    except ValueError:
        return None
    return found


def treespec_leaf() -> LeafSpec:
    """The structure of a leaf."""
    return LeafSpec()


def treespec_tuple(iterable: Iterable[TreeSpec] = (), /) -> TreeSpec:
    """The structure of a tuple of structures."""
    return TreeSpec(tuple, None, tuple(iterable))


def is_namedtuple(obj: object) -> bool:
    """Whether this is a named tuple, or a class of them."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_structseq(obj: object) -> bool:
    """Whether this is one of C's named tuples, or a class of them."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


class _Asterisk:
    def __repr__(self) -> str:
        return "*"


def treespec_pprint(treespec: TreeSpec) -> str:
    """A structure as a container of asterisks."""
    return repr(tree_unflatten([_Asterisk()] * treespec.num_leaves, treespec))


_WRITTEN = {tuple: "builtins.tuple", list: "builtins.list", dict: "builtins.dict"}
_READ = {name: kind for kind, name in _WRITTEN.items()}


def _told(spec: TreeSpec) -> dict[str, Any]:
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    if spec.type not in _WRITTEN:
        raise NotImplementedError(f"No registered serialization name for {spec.type} found.")
    children = [_told(child) for child in spec.children_specs]
    context = json.dumps(spec.context)
    return {"type": _WRITTEN[spec.type], "context": context, "children_spec": children}


def _heard(told: dict[str, Any]) -> TreeSpec:
    if told["type"] is None:
        return LeafSpec()
    if told["type"] not in _READ:
        raise NotImplementedError(f"Deserializing {told['type']} in pytree is not registered.")
    children = tuple(_heard(child) for child in told["children_spec"])
    return TreeSpec(_READ[told["type"]], json.loads(told["context"]), children)


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """A structure of tuples, lists and dictionaries as PyTorch writes it in JSON.

    Raises:
        TypeError: it is no structure.
        NotImplementedError: there are other containers in it.
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            "treespec_dumps(treespec, protocol): Expected `treespec` to be instance of TreeSpec "
            f"but got item of type {type(treespec)}."
        )
    return json.dumps([1, _told(treespec)])


def treespec_loads(serialized: str) -> TreeSpec:
    """The structure that `treespec_dumps` has written."""
    _, told = json.loads(serialized)
    return _heard(told)
