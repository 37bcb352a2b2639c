"""What a branch or loop does to what is outside of it: tensors written to, attributes that are set.

ONNX has neither.  A block is walked with a `Frame` that remembers what there was; what the block
changed is an output of it, and everything is put back for the walk of the other branch.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from flambeau import Tensor
from flambeau.onnx._export.cells import Cell
from flambeau.onnx._export.errors import OnnxExporterError

if TYPE_CHECKING:
    from flambeau.jit._graph import Block
    from flambeau.jit._graph import Value as Symbol
    from flambeau.onnx._export.graph import Graph, Value
    from flambeau.onnx._export.walk import Walk

Place = tuple[int, str]
"""An object and the name of an attribute."""


class Saved:
    """What a cell was."""

    def __init__(self, root: Cell) -> None:
        self.value, self.graph, self.loose = root.value, root.graph, root.loose
        self.examples = copies(root.examples)

    def put_back(self, root: Cell) -> None:
        """Let the cell be it again; views are taken anew."""
        root.value, root.graph, root.loose = self.value, self.graph, self.loose
        root.version += 1
        fill(root, self.examples)


def copies(examples: tuple[Any, ...]) -> tuple[Any, ...]:
    """Examples that no write changes."""
    return tuple(e.clone() if isinstance(e, Tensor) else e for e in examples)


def fill(root: Cell, examples: tuple[Any, ...]) -> None:
    """Write examples into those of a cell, which views share."""
    for own, new in zip(root.examples, examples, strict=True):
        if isinstance(own, Tensor):
            own.copy_(new)


class Frame:
    """A block that is being walked.

    Attributes:
        graph: the graph that it is written to.
        cells: the tensors from outside of it that it writes to, as they were.
        attributes: the attributes that were set before.
    """

    def __init__(self, walk: Walk, graph: Graph) -> None:
        self.walk, self.graph = walk, graph
        self.cells: dict[Cell, Saved] = {}
        self.attributes = dict(walk.attributes)

    def walked(self, block: Block, env: dict[Symbol, Any]) -> Effects:
        """Walk the block, and put back what it changed."""
        walk, shared = self.walk, self.graph.shared
        outside = contents([*env.values(), *walk.containers.values()])
        since = len(walk.containers_made)
        before, shared.stale = shared.stale, set(shared.stale)
        walk.frames.append(self)
        try:
            results = walk.block(self.graph, block, env)
        finally:
            walk.frames.pop()
        _need_unchanged([*outside, *walk.containers_made[since:]])
        written = {root: (root.read(self.graph), copies(root.examples)) for root in self.cells}
        stale, shared.stale = shared.stale, before
        changed = {
            place: value
            for place, value in walk.attributes.items()
            if place not in self.attributes or self.attributes[place] is not value
        }
        for root, saved in self.cells.items():
            saved.put_back(root)
        walk.attributes = self.attributes
        return Effects(self.graph, results, written, changed, stale)


Contents = list[tuple[list[Any] | dict[Any, Any], list[Any]]]
"""Lists and dictionaries, each with what was in it."""


def _parts(held: list[Any] | dict[Any, Any]) -> list[Any]:
    return list(held) if isinstance(held, list) else [*held, *held.values()]


def contents(values: list[Any]) -> Contents:
    """The lists and dictionaries among values, with what is in them."""
    found: Contents = []
    for value in values:
        if isinstance(value, list | dict):
            found.append((value, _parts(value)))
        if isinstance(value, list | tuple):
            found += contents(list(value))
        elif isinstance(value, dict):
            found += contents(list(value.values()))
    return found


def _need_unchanged(found: Contents) -> None:
    for held, parts in found:
        now = _parts(held)
        if len(now) != len(parts) or any(a is not b for a, b in zip(now, parts, strict=True)):
            raise OnnxExporterError(
                "a list or dictionary from outside of it is changed within, and which way the "
                "program takes depends on the input; make a new one there and give it out"
            )


class Effects:
    """What came out of a block: results, tensors that it wrote to, attributes that it set.

    Attributes:
        stale: the tensors that must not be read at its end.
    """

    def __init__(
        self,
        graph: Graph,
        results: list[Any],
        written: dict[Cell, tuple[Value, tuple[Any, ...]]],
        changed: dict[Place, Any],
        stale: set[Cell],
    ) -> None:
        self.graph, self.results = graph, results
        self.written, self.changed, self.stale = written, changed, stale

    @contextmanager
    def again(self) -> Iterator[None]:
        """Let tensors be once more what they were at the end of the block."""
        before = {root: Saved(root) for root in self.written}
        for root, (value, examples) in self.written.items():
            root.value = value
            root.version += 1
            fill(root, examples)
        shared = self.graph.shared
        stale, shared.stale = shared.stale, self.stale
        try:
            yield
        finally:
            shared.stale = stale
            for root, saved in before.items():
                saved.put_back(root)


def note_write(walk: Walk, g: Graph, target: Cell) -> None:
    """Have the blocks that a tensor is outside of remember what it was."""
    root = target.root
    owner = root.graph or g.root
    for frame in reversed(walk.frames):
        if frame.graph is owner:
            return
        if root not in frame.cells:
            frame.cells[root] = Saved(root)


def attribute(walk: Walk, g: Graph, changed: dict[Place, Any], place: Place) -> Any:
    """An attribute at the end of a block: what the block made it, or what it is outside."""
    return changed[place] if place in changed else walk.attribute(g, walk.owners[place], place[1])


def become(walk: Walk, g: Graph, root: Cell, value: Value, examples: tuple[Any, ...]) -> None:
    """Let a tensor be what a block left of it."""
    note_write(walk, g, root)
    root.value = root.annotated(value)
    root.version += 1
    fill(root, examples)
