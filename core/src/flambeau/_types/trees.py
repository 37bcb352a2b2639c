"""Nested containers as a list of leaves and a structure to put others into."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from flambeau._types.size import Size

__all__ = [
    "BUILTIN_TYPES",
    "STANDARD_DICT_TYPES",
    "SUPPORTED_NODES",
    "Context",
    "GetAttrKey",
    "LeafSpec",
    "MappingKey",
    "PyTree",
    "SequenceKey",
    "TreeSpec",
    "is_namedtuple_class",
    "is_namedtuple_instance",
    "is_structseq_class",
    "is_structseq_instance",
    "register_pytree_node",
    "tree_all",
    "tree_all_only",
    "tree_any",
    "tree_any_only",
    "tree_flatten",
    "tree_is_leaf",
    "tree_iter",
    "tree_leaves",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_structure",
    "tree_unflatten",
]

Context = PyTree = Any


class NodeDef(NamedTuple):
    """How containers of a type are taken apart and put together."""

    type: type
    flatten_fn: Callable[[Any], tuple[Iterable[Any], Any]]
    unflatten_fn: Callable[[Iterable[Any], Any], Any]
    flatten_with_keys_fn: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]] | None = None


SUPPORTED_NODES: dict[Any, NodeDef] = {}


def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_fn: Callable[[Iterable[Any], Any], Any],
    *,
    flatten_with_keys_fn: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]] | None = None,
    **settings: object,
) -> None:
    """Let objects of a class be containers.

    Args:
        cls: the class itself, not those derived from it.
        flatten_fn: gives the children, and what `unflatten_fn` wants to know.
        unflatten_fn: makes an object of children and of that.
        flatten_with_keys_fn: gives pairs of a key and a child, and the same; without it, paths
            into these objects cannot be asked for.

    Raises:
        ValueError: the class is registered.
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)


_register_pytree_node = register_pytree_node


def _dict_flatten(d: dict[Any, Any]) -> tuple[list[Any], list[Any]]:
    return list(d.values()), list(d.keys())


class MappingKey(NamedTuple):
    """The place of a child in a mapping."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        """The child at this place."""
        return mapping[self.key]


class SequenceKey(NamedTuple):
    """The place of a child in a sequence."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """The child at this place."""
        return sequence[self.idx]


class GetAttrKey(NamedTuple):
    """The place of a child that is an attribute."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: object) -> Any:
        """The child at this place."""
        return getattr(obj, self.name)


def _dict_flatten_with_keys(d: dict[Any, Any]) -> tuple[list[tuple[MappingKey, Any]], list[Any]]:
    values, keys = _dict_flatten(d)
    return [(MappingKey(k), v) for k, v in zip(keys, values, strict=True)], keys


def _dict_unflatten(values: Iterable[Any], keys: list[Any]) -> dict[Any, Any]:
    return dict(zip(keys, values, strict=True))


def _namedtuple_flatten(t: Any) -> tuple[list[Any], type]:
    return list(t), type(t)


def _namedtuple_unflatten(values: Iterable[Any], kind: Any) -> Any:
    return kind(*values)


def _list_flatten(values: object) -> tuple[Any, None]:
    return values, None


def _tuple_unflatten(values: Iterable[Any], context: None) -> tuple[Any, ...]:
    return tuple(values)


def _list_unflatten(values: Iterable[Any], context: None) -> list[Any]:
    return list(values)


def _odict_unflatten(values: Iterable[Any], keys: list[Any]) -> OrderedDict[Any, Any]:
    return OrderedDict(zip(keys, values, strict=True))


def _list_flatten_with_keys(values: Any) -> tuple[list[tuple[SequenceKey, Any]], None]:
    return [(SequenceKey(i), v) for i, v in enumerate(values)], None


_tuple_flatten = _list_flatten
_tuple_flatten_with_keys = _list_flatten_with_keys
_odict_flatten = _dict_flatten


def _namedtuple_flatten_with_keys(t: Any) -> tuple[list[tuple[GetAttrKey, Any]], type]:
    return [(GetAttrKey(name), getattr(t, name)) for name in t._fields], type(t)


def _defaultdict_flatten(d: Any) -> tuple[list[Any], list[Any]]:
    return list(d.values()), [d.default_factory, list(d)]


def _register(cls: Any, flatten: Any, unflatten: Any, with_keys: Any) -> None:
    register_pytree_node(cls, flatten, unflatten, flatten_with_keys_fn=with_keys)


_register(tuple, _tuple_flatten, _tuple_unflatten, _tuple_flatten_with_keys)
_register(list, _list_flatten, _list_unflatten, _list_flatten_with_keys)
_register(dict, _dict_flatten, _dict_unflatten, _dict_flatten_with_keys)
_register(OrderedDict, _odict_flatten, _odict_unflatten, _dict_flatten_with_keys)
_register(
    defaultdict,
    _defaultdict_flatten,
    lambda v, c: defaultdict(c[0], zip(c[1], v, strict=True)),
    lambda d: (_dict_flatten_with_keys(d)[0], _defaultdict_flatten(d)[1]),
)
_register(
    deque,
    lambda d: (list(d), d.maxlen),
    lambda v, n: deque(v, maxlen=n),
    lambda d: (_list_flatten_with_keys(d)[0], d.maxlen),
)
_register(namedtuple, _namedtuple_flatten, _namedtuple_unflatten, _namedtuple_flatten_with_keys)
BUILTIN_TYPES: frozenset[Any] = frozenset(SUPPORTED_NODES)
_register(Size, _tuple_flatten, _tuple_unflatten, _tuple_flatten_with_keys)
STANDARD_DICT_TYPES: frozenset[Any] = frozenset({dict, OrderedDict, defaultdict})


def _is_namedtuple(tree: object) -> bool:
    return isinstance(tree, tuple) and hasattr(type(tree), "_fields")


def is_namedtuple_class(cls: type) -> bool:
    """Whether this is a class of named tuples."""
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields")


def is_structseq_class(cls: type) -> bool:
    """Whether this is a class of C's named tuples, such as `time.struct_time`."""
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "n_sequence_fields")


def is_structseq_instance(obj: object) -> bool:
    """Whether this is an object of such a class."""
    return is_structseq_class(type(obj))


is_namedtuple_instance = _is_namedtuple


def _get_node_type(tree: object) -> Any:
    """Under which type a container is registered; its own, if it is none."""
    return namedtuple if _is_namedtuple(tree) else type(tree)


@dataclass(frozen=True, repr=False)
class TreeSpec:
    """A structure without its leaves.

    Attributes:
        type: of the container; None for a leaf.
        context: what its `unflatten_fn` wants to know.
        children_specs: the structures in it.
    """

    type: Any
    context: Any
    children_specs: tuple[TreeSpec, ...]

    @property
    def num_leaves(self) -> int:
        """How many leaves are in it."""
        return 1 if self.is_leaf() else sum(c.num_leaves for c in self.children_specs)

    @property
    def num_children(self) -> int:
        """How many structures are directly in it."""
        return len(self.children_specs)

    @property
    def num_nodes(self) -> int:
        """How many containers and leaves there are, this one with them."""
        return 1 + sum(c.num_nodes for c in self.children_specs)

    def children(self) -> list[TreeSpec]:
        """The structures directly in it."""
        return list(self.children_specs)

    def child(self, index: int) -> TreeSpec:
        """One of the structures directly in it."""
        return self.children_specs[index]

    def __repr__(self, indent: int = 0) -> str:
        inner = (",\n" + " " * (indent + 2)).join(
            c.__repr__(indent + 2) for c in self.children_specs
        )
        return f"TreeSpec({self.type.__name__}, {self.context}, [{inner}])"

    def __hash__(self) -> int:
        # Contexts may be lists, and need not have a hash.
        return hash((self.type, self.children_specs))

    def flatten_up_to(self, tree: object) -> list[Any]:
        """What another container has in the places of the leaves.

        Raises:
            ValueError: the container has another structure.
        """
        found: list[Any] = []
        _collect(self, tree, found)
        return found

    def is_leaf(self) -> bool:
        """Whether it is no container."""
        return self.type is None

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """As `tree_unflatten`."""
        return tree_unflatten(leaves, self)


class LeafSpec(TreeSpec):
    """The structure of a leaf."""

    def __init__(self) -> None:
        super().__init__(None, None, ())

    def __repr__(self, indent: int = 0) -> str:
        return "*"

    def __hash__(self) -> int:
        return hash((None, ()))


_LEAF = LeafSpec()


def _collect(spec: TreeSpec, node: Any, into: list[Any]) -> None:
    if spec.is_leaf():
        into.append(node)
        return
    kind = _get_node_type(node)
    dicts = spec.type in STANDARD_DICT_TYPES and kind in STANDARD_DICT_TYPES
    if kind != spec.type and not dicts:
        raise ValueError(f"Node type mismatch; expected {spec.type!r}, but got {kind!r}.")
    children, context = SUPPORTED_NODES[kind].flatten_fn(node)
    children = list(children)
    if len(children) != spec.num_children:
        raise ValueError(
            f"Node arity mismatch; expected {spec.num_children}, but got {len(children)}."
        )
    if dicts:
        keys = spec.context[1] if spec.type is defaultdict else spec.context
        missing, extra = set(keys).difference(node), set(node).difference(keys)
        if missing or extra:
            said = f"; missing key(s): {missing}" if missing else ""
            said += f"; extra key(s): {extra}" if extra else ""
            raise ValueError(f"Node keys mismatch{said}.")
        children = [node[key] for key in keys]
    elif kind is not deque and context != spec.context:
        raise ValueError(
            f"Node context mismatch for node type {spec.type!r}; expected {spec.context!r}, "
            f"but got {context!r}."
        )
    for child, below in zip(children, spec.children_specs, strict=True):
        _collect(below, child, into)


def tree_flatten(
    tree: object, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[Any], TreeSpec]:
    """The leaves from left to right, and the structure.

    >>> from flambeau.utils._pytree import tree_flatten, tree_unflatten
    >>> leaves, spec = tree_flatten({"a": 1, "b": [2, (3,)]})
    >>> leaves, tree_unflatten([x * x for x in leaves], spec)
    ([1, 2, 3], {'a': 1, 'b': [4, (9,)]})
    """
    leaves: list[Any] = []

    def visit(node: object) -> TreeSpec:
        kind = _get_node_type(node)
        if kind not in SUPPORTED_NODES or (is_leaf is not None and is_leaf(node)):
            leaves.append(node)
            return _LEAF
        children, context = SUPPORTED_NODES[kind].flatten_fn(node)
        return TreeSpec(kind, context, tuple(visit(child) for child in children))

    return leaves, visit(tree)


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """The container of a structure and its leaves.

    Raises:
        ValueError: there are more or fewer leaves than the structure has.
    """
    given = list(leaves)
    if len(given) != treespec.num_leaves:
        raise ValueError(
            f"tree_unflatten(leaves, treespec): `leaves` has length {len(given)} but the spec "
            f"refers to a pytree that holds {treespec.num_leaves} items ({treespec})."
        )
    source = iter(given)

    def build(spec: TreeSpec) -> Any:
        if spec.is_leaf():
            return next(source)
        children = [build(child) for child in spec.children_specs]
        return SUPPORTED_NODES[spec.type].unflatten_fn(children, spec.context)

    return build(treespec)


def tree_leaves(tree: object, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves from left to right."""
    return tree_flatten(tree, is_leaf)[0]


def tree_iter(tree: object, is_leaf: Callable[[Any], bool] | None = None) -> Iterable[Any]:
    """The leaves from left to right, one by one."""
    return iter(tree_leaves(tree, is_leaf))


def tree_structure(tree: object, is_leaf: Callable[[Any], bool] | None = None) -> TreeSpec:
    """The structure."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(
    func: Callable[..., Any],
    tree: object,
    *rests: object,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """A container of what a function makes of the leaves, and of what `rests` have there.

    Raises:
        ValueError: one of the `rests` has not this structure.
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    return tree_unflatten(map(func, leaves, *map(spec.flatten_up_to, rests)), spec)


def tree_map_(
    func: Callable[..., Any],
    tree: object,
    *rests: object,
    is_leaf: Callable[..., Any] | None = None,
) -> Any:
    """Call a function with every leaf and return the container as it is."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def tree_map_only(
    kind: Any, func: Callable[..., Any], tree: Any, is_leaf: Callable[..., Any] | None = None
) -> Any:
    """As `tree_map`, of the leaves of a type, or of those for which `kind` is true."""
    types = kind
    asked = callable(kind) and not isinstance(kind, type)

    def chosen(x: object) -> Any:
        applies = types(x) if asked else isinstance(x, types)
        return func(x) if applies else x

    return tree_map(chosen, tree, is_leaf=is_leaf)


def tree_all(
    pred: Callable[[Any], bool], tree: object, is_leaf: Callable[..., Any] | None = None
) -> bool:
    """Whether a condition holds for all leaves."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(
    pred: Callable[[Any], bool], tree: object, is_leaf: Callable[..., Any] | None = None
) -> bool:
    """Whether a condition holds for some leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_is_leaf(tree: object, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether this is a leaf: no container, or what `is_leaf` says is none."""
    return _get_node_type(tree) not in SUPPORTED_NODES or (is_leaf is not None and is_leaf(tree))


def tree_map_only_(
    kind: object,
    func: Callable[..., Any],
    tree: object,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """Call a function with every leaf of a type and return the container as it is."""
    tree_map_only(kind, func, tree, is_leaf)
    return tree


def tree_all_only(
    kind: Any, pred: Callable[[Any], bool], tree: Any, is_leaf: Callable[..., Any] | None = None
) -> bool:
    """Whether a condition holds for all leaves of a type."""
    return all(pred(x) for x in tree_leaves(tree, is_leaf) if isinstance(x, kind))


def tree_any_only(
    kind: Any, pred: Callable[[Any], bool], tree: Any, is_leaf: Callable[..., Any] | None = None
) -> bool:
    """Whether a condition holds for some leaf of a type."""
    return any(pred(x) for x in tree_leaves(tree, is_leaf) if isinstance(x, kind))
