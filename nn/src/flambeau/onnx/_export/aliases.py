"""Which tensors may share memory, after branches and loops.

What a branch gives out is one of two tensors, and what a loop carries one of several: it shares the
memory of what is outside on some ways and not on others.  A model has no such tensors.  Those that
may share memory are kin, and a write to one leaves the others stale: who reads one is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

from flambeau.jit._graph import Value as Symbol
from flambeau.onnx._export.cells import Cell
from flambeau.onnx._export.effects import Effects, Place, attribute

if TYPE_CHECKING:
    from flambeau.onnx._export.graph import Graph
    from flambeau.onnx._export.walk import Walk


def relatives(value: object) -> set[Cell]:
    """The tensors whose memory a value may share, itself among them."""
    if not isinstance(value, Cell) or not value.is_tensor:
        return set()
    return {value.root, *value.root.kin}


def make_kin(made: Sequence[object], ways: Sequence[Sequence[set[Cell]]]) -> None:
    """Note what tensors may share memory with that are the results of several ways.

    Args:
        made: the results.
        ways: for each way what each of the results may share memory with on it.
    """
    cells = [value for value in made if isinstance(value, Cell) and value.is_tensor]
    places = [at for at, value in enumerate(made) if value in cells]
    for way in ways:
        for at, cell in zip(places, cells, strict=True):
            for other in way[at]:
                _tie(cell.root, other)
            for before, earlier in zip(places, cells, strict=True):
                if before < at and way[at] & way[before]:
                    _tie(cell.root, earlier.root)


def _tie(one: Cell, other: Cell) -> None:
    if one is not other:
        one.kin.add(other)
        other.kin.add(one)


class Carried:
    """What a loop carries, which is found by walking its body until nothing new is seen.

    The first walks are for finding out: only behind them is refused what may be stale.

    Attributes:
        given: what is carried from step to step, by the name within the body or the attribute.
        held: of the rest, which the body gives back as it got them: the tensors from outside.
        written: the tensors from outside that the body writes to, carried as well.
        cells: what stands for `given` within the body.
    """

    def __init__(self, walk: Walk, g: Graph, carried: dict[Symbol, Any]) -> None:
        self.walk, self.within = walk, g.inner()
        self.given: dict[Symbol | Place, Any] = {**carried}
        self.held: dict[Symbol, Any] = {}
        self.written: list[Cell] = []
        self.cells: dict[Symbol | Place, Cell] = {}
        self.reach: dict[Symbol | Place, set[Cell]] = {
            target: relatives(value) for target, value in carried.items()
        }
        self.shared: dict[tuple[Symbol | Place, Symbol | Place], Cell] = {}
        self.outer_probing, self.stale = g.shared.probing, set(g.shared.stale)
        g.shared.probing = True

    def tie(self, values: Sequence[object]) -> None:
        """Make values for what is carried kin of what they may share memory with."""
        way = []
        for target in self.given:
            pairs = {cell for pair, cell in self.shared.items() if target in pair}
            way.append(self.reach.get(target, set()) | pairs)
        make_kin(values, [way])

    def learn(
        self, g: Graph, effects: Effects, results: Mapping[Symbol | Place, Any], before: set[Cell]
    ) -> bool:
        """Note what a walk showed; whether the body has to be walked again."""
        shared = g.shared
        more = [root for root in effects.written if root not in self.written]
        places = [place for place in effects.changed if place not in self.given]
        self.written += more
        for place in places:
            self.given[place] = attribute(self.walk, g, {}, place)
            self.reach[place] = relatives(self.given[place])
        same = [
            symbol
            for symbol, result in results.items()
            if isinstance(symbol, Symbol)
            and result is self.cells[symbol]
            and isinstance(self.given[symbol], Cell)
            and self.cells[symbol].is_tensor
        ]
        outside = {None, g.root, g, *(frame.graph for frame in self.walk.frames)}
        grown = self._reached(outside, results)
        for symbol in same:
            self.held[symbol] = self.given.pop(symbol)
        if more or places or same or grown:
            shared.stale = set(self.stale)
            return True
        if shared.probing and not self.outer_probing:
            shared.probing, shared.stale = False, set(self.stale)
            return True
        shared.probing = self.outer_probing
        stale = {cell for cell in effects.stale if cell.graph in outside}
        shared.stale = before | stale
        return bool(stale - before)

    def _reached(self, outside: set[Graph | None], results: Mapping[Symbol | Place, Any]) -> bool:
        own = {cell: target for target, cell in self.cells.items()}
        found = {target: relatives(result) for target, result in results.items()}
        grown = False
        for target, cells in found.items():
            for cell in cells:
                more = self.reach[own[cell]] if cell in own else {cell}
                if cell not in own and cell.graph not in outside:
                    continue
                if more - self.reach[target]:
                    self.reach[target] |= more
                    grown = True
        for one, other in combinations(found, 2):
            if found[one] & found[other] and (one, other) not in self.shared:
                self.shared[one, other] = Cell((), None, self.within)
                grown = True
        return grown
