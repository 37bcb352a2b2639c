"""Nested containers are taken apart, put together and described as by PyTorch."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass, make_dataclass

import pytest

import flambeau as fb
from flambeau.utils import _pytree as ours

torch = pytest.importorskip("torch")
theirs = torch.utils._pytree

Pair = namedtuple("Pair", "a b")
BOTH = pytest.mark.parametrize("tree", [ours, theirs], ids=["flambeau", "torch"])

TREES = [
    {"x": [1, (2, 3)], "n": Pair(4, [5])},
    defaultdict(list, {"q": 6}),
    [OrderedDict(z=7), deque([8, 9], maxlen=3)],
    [],
    5,
    ((), {}, None),
]


@pytest.mark.parametrize("tree", TREES)
def test_paths_and_structures_are_pytorchs(tree):
    said = []
    for lib in (ours, theirs):
        leaves, spec = lib.tree_flatten(tree)
        paths, same = lib.tree_flatten_with_path(tree)
        assert same == spec and hash(same) == hash(spec)
        assert lib.tree_unflatten(leaves, spec) == tree
        assert [lib.key_get(tree, path) for path, _ in paths] == leaves
        assert spec.flatten_up_to(tree) == leaves
        said.append(
            (
                leaves,
                repr(spec),
                lib.treespec_pprint(spec),
                (spec.num_nodes, spec.num_leaves, spec.num_children),
                [(lib.keystr(path), leaf) for path, leaf in paths],
                lib.tree_map_with_path(lambda path, leaf: f"{len(path)} {leaf}", tree),
            )
        )
    assert said[0] == said[1]


@pytest.mark.parametrize(
    ("tree", "rest"),
    [
        ({"x": 1, "y": 2}, {"y": [2, 3], "x": "u"}),
        ([1, 2], [(3, 4), {}]),
        ({"x": 1}, OrderedDict(x=2)),
        ([1, 2], [1]),
        ([1, 2], (1, 2)),
        ({"a": 1}, {"b": 1}),
        (Pair(1, 2), (1, 2)),
        ([1], 1),
    ],
)
def test_what_further_containers_may_be_is_pytorchs(tree, rest):
    said = []
    for lib in (ours, theirs):
        try:
            said.append(lib.tree_map(lambda a, b: (a, b), tree, rest))
        except ValueError as error:
            said.append(str(error).partition(";")[0])
    assert said[0] == said[1]


@BOTH
def test_the_fields_of_dataclasses_are_children(tree):
    Point = make_dataclass("Point", [("x", int), ("y", object, None)])
    tree.register_dataclass(Point)
    assert tree.tree_leaves(Point(1, [2, 3])) == [1, 2, 3]
    assert tree.tree_map(lambda v: 2 * v, Point(1)) == Point(2)
    assert [tree.keystr(p) for p, _ in tree.tree_leaves_with_path(Point(1, [2]))] == [".x", ".y[0]"]
    with pytest.raises(ValueError, match="field_names"):
        tree.register_dataclass(make_dataclass("Other", ["x", "y"]), field_names=["x"])
    with pytest.raises(ValueError, match="not a dataclass"):
        tree.register_dataclass(type("Plain", (), {}))


@BOTH
def test_constants_are_part_of_the_structure(tree):
    @dataclass(frozen=True)
    class Name:
        text: str

    tree.register_constant(Name)
    leaves, spec = tree.tree_flatten([Name("a"), 1])
    assert leaves == [1] and spec != tree.tree_structure([Name("b"), 1])
    assert tree.tree_map(lambda x: x + 1, [Name("a"), 1]) == [Name("a"), 2]
    with pytest.raises(TypeError, match="__eq__"):
        tree.register_constant(type("Plain", (), {}))


@BOTH
def test_containers_without_keys_have_no_paths(tree):
    class Box:
        pass

    tree.register_pytree_node(Box, lambda b: ([], None), lambda v, c: Box())
    with pytest.raises(ValueError, match="flatten_with_keys_fn"):
        tree.tree_leaves_with_path([Box()])


def test_structures_are_written_as_by_pytorch():
    for tree in ({"a": [1, (2,)]}, [], 3, ({}, [[]])):
        text = ours.treespec_dumps(ours.tree_structure(tree))
        assert text == theirs.treespec_dumps(theirs.tree_structure(tree))
        assert ours.treespec_loads(text) == ours.tree_structure(tree)
    with pytest.raises(NotImplementedError, match="serialization name"):
        ours.treespec_dumps(ours.tree_structure(Pair(1, 2)))


@pytest.mark.parametrize(
    ("prefix", "whole"), [([1, 2], [(0, 0), {"a": 0}]), (7, [0, [0]]), ([1, 2], (0, 0))]
)
def test_prefixes_are_spread_as_by_pytorch(prefix, whole):
    said = [
        lib._broadcast_to_and_flatten(prefix, lib.tree_structure(whole)) for lib in (ours, theirs)
    ]
    assert said[0] == said[1]


def test_sizes_are_taken_apart_and_put_together_as_tuples():
    said = []
    for size, lib in ((fb.Size([2, 3]), ours), (torch.Size([2, 3]), theirs)):
        tree = {"shape": size, "n": [1]}
        leaves, spec = lib.tree_flatten(tree)
        found = lib.tree_unflatten(leaves, spec)
        paths = [(lib.keystr(path), leaf) for path, leaf in lib.tree_flatten_with_path(tree)[0]]
        mapped = lib.tree_map(lambda n: n + 1, size)
        said.append((leaves, repr(spec), found, type(found["shape"]), paths, mapped, type(mapped)))
    assert said[0] == said[1]
