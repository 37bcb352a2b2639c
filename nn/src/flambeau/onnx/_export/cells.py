"""What the walk knows of a value: what it was for the examples, and which value of ONNX it is.

ONNX has no writes.  A `Cell` stands for a tensor that may be written to, or is a view of one: a
write to a view writes to what it is a view of, and other views are taken anew when they are read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.onnx._export.errors import OnnxExporterError
from flambeau.onnx._export.graph import Graph, Size, Value, dtype_of_example


class Module:
    """A module of the program, with the path that leads to it."""

    __slots__ = ("object", "path")

    def __init__(self, path: str, object: object) -> None:
        self.path, self.object = path, object


class Cell:
    """A tensor, or a number that depends on the inputs.

    Attributes:
        examples: what it was, once for each example.
        value: its value in ONNX's graph; None for what is known before the model runs.
        parent, replay: of a view, what it is a view of, and how it is taken.
        loose: the sizes depend on what is in the inputs.
        measured: it is reckoned from sizes that depend on no contents of the inputs.
        graph: the graph that it was made in.
        kin: the tensors whose memory it may share, on some ways through branches and loops.
    """

    __slots__ = (
        "examples",
        "graph",
        "kin",
        "loose",
        "measured",
        "parent",
        "replay",
        "reshapes",
        "root",
        "seen",
        "value",
        "version",
    )

    def __init__(self, examples: tuple[Any, ...], value: Value | None, graph: Graph | None) -> None:
        self.examples, self.value, self.graph = examples, value, graph
        self.loose = self.measured = False
        self.parent: Cell | None = None
        self.replay: Callable[[Graph, Value], Value] | None = None
        self.reshapes = False
        self.root: Cell = self
        self.version = self.seen = 0
        self.kin: set[Cell] = set()

    @property
    def known(self) -> bool:
        """Whether it does not depend on the inputs."""
        return self.root.value is None

    @property
    def is_tensor(self) -> bool:
        """Whether it is a tensor and no number."""
        return isinstance(self.examples[0], Tensor)

    def view_of(
        self, parent: Cell, replay: Callable[[Graph, Value], Value], reshapes: bool
    ) -> None:
        """Note what it is a view of."""
        self.parent, self.replay, self.root = parent, replay, parent.root
        self.reshapes = reshapes
        self.seen = parent.root.version

    def read(self, g: Graph) -> Value:
        """The value as it is now."""
        self.need_fresh(g)
        if self.known:
            return g.constant(self.examples[0])
        if self.parent is not None and (self.value is None or self.seen != self.root.version):
            assert self.replay is not None
            taken = self.annotated(self.replay(g, self.parent.read(g)))
            if g is not (self.graph or g.root):  # a branch or loop, whose values end with it
                return taken
            self.value, self.seen = taken, self.root.version
        assert self.value is not None
        return self.value

    def need_fresh(self, g: Graph) -> None:
        """Refuse what a write to other memory may have changed."""
        if self.root in g.shared.stale and not g.shared.probing:
            raise OnnxExporterError(
                "a tensor is read after a write to another one that may share its memory: whether "
                "it does depends on which way the program took through a branch or loop; call "
                "clone() where the branch or loop gives the one out"
            )

    def leave_stale(self, g: Graph) -> None:
        """Note that there was a write to it, of which its kin may or may not have seen."""
        g.shared.stale |= self.root.kin

    def freeze(self, g: Graph) -> None:
        """Let what is known be a value, since something unknown is about to be written to it."""
        if self.root.value is None:
            root = self.root
            root.value = g.constant(root.examples[0])
            root.version += 1

    def write(self, g: Graph, new: Value) -> None:
        """Let the tensor be `new` from here on."""
        root = self.root
        if self is root:
            self.value = new
        else:
            root.value = root.annotated(_written(g, self, new))
            self.value = new
        root.version += 1
        self.seen = root.version
        self.leave_stale(g)

    def annotated(self, value: Value) -> Value:
        """A value, with dtype and sizes as the examples had them."""
        return annotate(value, self.examples, self.loose)


def _written(g: Graph, view: Cell, new: Value) -> Value:
    """What a view is of, after a write to the view."""
    chain = []
    cell = view
    while cell.parent is not None:
        chain.append(cell)
        cell = cell.parent
    base = view.root.read(g)
    sizes = g.shape_of(base)
    new = g.cast(new, base.dtype) if base.dtype is not None else new
    if all(step.reshapes for step in chain):
        return g.reshape(new, sizes)
    count = g.numel(base)
    if isinstance(count, int):
        places = g.constant(fb.arange(count))
    else:
        g.needs(11, "a write to a part of a tensor whose sizes are dynamic")
        places = g.op("Range", g.constant(0), count, g.constant(1))
        places.shape = (None,)
    places = g.reshape(places, sizes)
    places.shape, places.dtype = base.shape, fb.int64
    for step in reversed(chain):
        assert step.replay is not None
        examples = tuple(fb.empty(e.shape, dtype=fb.int64) for e in step.examples)
        places = annotate(step.replay(g, places), examples, step.loose)
    name = "ScatterElements" if g.opset >= 11 else "Scatter"
    flat = g.reshape(base, [-1])
    # The indices of a known part are known: one constant in place of a chain of nodes.
    made = g.op(name, flat, g.reshape(places, [-1]), g.reshape(new, [-1]), axis_i=0)
    return g.reshape(made, sizes)


def annotate(value: Value, examples: tuple[Any, ...], loose: bool = False) -> Value:
    """Note dtype and sizes; those that differ between the examples are dynamic."""
    first = examples[0]
    value.dtype = dtype_of_example(first)
    if not isinstance(first, Tensor):
        value.shape = ()
        return value
    sizes: list[Size] = list(first.shape)
    told = value.shape
    for other in examples[1:]:
        for dim, size in enumerate(other.shape):
            if size != sizes[dim]:
                sizes[dim] = None
    if loose:  # what the writing of the op knows holds all the same
        known = told if told is not None and len(told) == len(sizes) else (None,) * len(sizes)
        sizes = [n if n == size else None for n, size in zip(known, sizes, strict=True)]
    value.shape = tuple(sizes)
    return value


def leaves(value: object) -> list[Cell]:
    """The cells in lists, tuples and dictionaries."""
    if isinstance(value, Cell):
        return [value]
    if isinstance(value, list | tuple):
        return [leaf for each in value for leaf in leaves(each)]
    if isinstance(value, dict):
        return [leaf for each in value.values() for leaf in leaves(each)]
    return []


def convert(value: object, change: Callable[[Cell], Any]) -> Any:
    """Lists, tuples and dictionaries with each cell replaced."""
    if isinstance(value, Cell):
        return change(value)
    if isinstance(value, list):
        return [convert(each, change) for each in value]
    if isinstance(value, tuple):
        made = [convert(each, change) for each in value]
        return type(value)(*made) if hasattr(value, "_fields") else tuple(made)
    if isinstance(value, dict):
        return {key: convert(each, change) for key, each in value.items()}
    return value.object if isinstance(value, Module) else value
