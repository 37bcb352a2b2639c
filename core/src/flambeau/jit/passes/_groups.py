"""Groups of nodes that make one: those with formulas of gradients, and those of one loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flambeau.jit import _graph
from flambeau.jit import _types as T
from flambeau.jit.passes._dead import eliminate_dead_code
from flambeau.jit.passes._effects import has_effects

if TYPE_CHECKING:
    from collections.abc import Callable

    from flambeau.jit._graph import Block, Graph, Node, Value

_DIFFERENTIABLE = frozenset(
    """abs acos adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d add addcmul addmm asin
    atan avg_pool2d batch_norm bmm cat ceil chunk clamp contiguous cos cosh div dot dropout
    embedding eq erf erfc exp expand expand_as expm1 floor fmod frac full_like ge gt index
    layer_norm le lerp linear log log10 log1p log2 log_softmax logsumexp lt matmul max max_pool2d
    mean meshgrid min mm mul mv ne neg nll_loss nonzero ones_like permute pow rand_like reciprocal
    relu remainder reshape round rsqrt rsub sigmoid sin sinh softmax split split_with_sizes sqrt
    squeeze stack std sub t tan tanh threshold to transpose trunc type_as unbind unsqueeze var view
    where __interpolate""".split()
)
"""Ops that PyTorch's own graphs have formulas for."""
_ONE_LOOP = frozenset(
    """abs acos add asin atan atan2 ceil clamp cos cosh div eq erf erfc exp expm1 floor fmod frac
    ge gt le lerp lgamma log log10 log1p log2 lt max min mul ne neg pow rand_like reciprocal relu
    remainder round rsqrt sigmoid sin sinh sqrt sub tan tanh threshold trunc type_as where
    """.split()
)
_OF_TWO_TENSORS = frozenset(("max", "min"))
_OF_A_NUMBER = frozenset(("fmod", "remainder"))
_NEEDS_CONSTANTS = {"dropout": (2,), "expand": (2,)}


class Settings:
    """Groups of fewer nodes than `least` are no groups; `fuses` is whether loops are looked for."""

    least = 5
    fuses = False


def group_differentiable(graph: Graph, least: int | None = None) -> bool:
    """Make ``prim::DifferentiableGraph`` of nodes that depend on each other and have gradients.

    Args:
        least: how many nodes, constants included, a group has; that of `Settings` by default.

    >>> import flambeau as fb
    >>> graph = fb.jit.script(lambda x, y: (x * y).sigmoid()).graph.copy()
    >>> group_differentiable(graph, 1)
    True
    >>> print(graph.str(print_source_ranges=False))
    graph(%x : Tensor,
          %y : Tensor):
      %2 : Tensor = prim::DifferentiableGraph_0(%x, %y)
      return (%2)
    with prim::DifferentiableGraph_0 = graph(%x : Tensor,
          %y : Tensor):
      %2 : Tensor = aten::mul(%x, %y)
      %3 : Tensor = aten::sigmoid(%2)
      return (%3)
    <BLANKLINE>
    """
    fewest = Settings.least if least is None else least
    changed = _group_all(graph.block, "prim::DifferentiableGraph", is_differentiable, fewest)
    return changed and (eliminate_dead_code(graph) or changed)


def group_loops(graph: Graph) -> bool:
    """Make ``prim::FusionGroup`` of elementwise nodes that one loop computes."""
    changed = False
    for node in graph.findAllNodes("prim::DifferentiableGraph"):
        changed |= group_loops(node.attributes["Subgraph"])
    changed |= _group_all(graph.block, "prim::FusionGroup", is_one_loop, 0)
    return changed and (eliminate_dead_code(graph) or changed)


def is_differentiable(node: Node) -> bool:
    """Whether a node is an op of tensors whose gradient has a formula."""
    name = node.kind.removeprefix("aten::")
    if name == node.kind:
        return node.kind == "prim::ConstantChunk"
    if name not in _DIFFERENTIABLE or not _makes_tensors(node):
        return False
    tensors = sum(value.type() is T.TENSOR for value in node.inputs_)
    if (name in _OF_TWO_TENSORS and tensors != 2) or (name in _OF_A_NUMBER and tensors != 1):
        return False
    return all(node.inputs_[at].is_constant() for at in _NEEDS_CONSTANTS.get(name, ()))


def is_one_loop(node: Node) -> bool:
    """Whether a node computes each element of its result from those at the same place."""
    name = node.kind.removeprefix("aten::")
    if name == node.kind or name not in _ONE_LOOP or not _makes_tensors(node):
        return False
    return len(node.outputs_) == 1 and all(
        value.type() in (T.TENSOR, T.FLOAT) or value.is_constant() for value in node.inputs_
    )


def _makes_tensors(node: Node) -> bool:
    return any(value.type() is T.TENSOR for value in node.inputs_) and all(
        value.type() is T.TENSOR or value.type() is T.list_of(T.TENSOR) for value in node.outputs_
    )


def _group_all(block: Block, kind: str, wanted: Callable[[Node], bool], least: int) -> bool:
    changed = _group(block, kind, wanted, least)
    for node in list(block.nodes_):
        for inner in node.blocks_:
            changed |= _group_all(inner, kind, wanted, least)
    return changed


def _group(block: Block, kind: str, wanted: Callable[[Node], bool], least: int) -> bool:
    nodes = [node for node in block.nodes_ if node.kind != "prim::Constant"]
    before = _dependencies(nodes)
    groups: list[set[int]] = []
    for at, node in enumerate(nodes):
        if not wanted(node) or (has_effects(node) and not node.isNondeterministic()):
            continue
        own = {at}
        for group in sorted(groups, key=max, reverse=True):
            if any(before[at] >> member & 1 for member in group) and _reads(nodes, own, group):
                joined = own | group
                if not _cycle(joined, before, groups):
                    groups.remove(group)
                    own = joined
        groups.append(own)
    made = [sorted(group) for group in groups]
    if kind == "prim::FusionGroup":
        made = [group for group in made if len(group) > 1]
    else:
        made = [group for group in made if _size([nodes[at] for at in group]) >= least]
    if not made:
        return False
    _replace(block, kind, nodes, before, made)
    return True


def _reads(nodes: list[Node], own: set[int], group: set[int]) -> bool:
    """Whether one of some nodes reads what one of others makes."""
    makers = {id(nodes[at]) for at in group}
    return any(id(value.node) in makers for at in own for value in nodes[at].inputs_)


def _dependencies(nodes: list[Node]) -> list[int]:
    """For each node, as bits, the earlier nodes that must stay before it."""
    found: list[int] = []
    where = {id(node): at for at, node in enumerate(nodes)}
    fence = 0
    for at, node in enumerate(nodes):
        direct = 0
        for value in _read_by(node):
            made = where.get(id(value.node)) if value.node is not None else None
            if made is not None:
                direct |= 1 << made | found[made]
        if has_effects(node):
            direct = (1 << at) - 1
            fence = direct | 1 << at
        found.append(direct | fence & ((1 << at) - 1))
    return found


def _read_by(node: Node) -> list[Value]:
    """What a node and the nodes of its blocks read."""
    found = list(node.inputs_)
    for block in node.blocks_:
        for inner in block.nodes_:
            found += _read_by(inner)
        found += block.outputs_
    return found


def _cycle(joined: set[int], before: list[int], groups: list[set[int]]) -> bool:
    """Whether a node between must come after one of a group and before another of it."""
    reached = sum(1 << at for at in joined)
    parts = [group for group in groups if not group & joined]
    whole = {at: group for group in parts for at in group}
    last = max(joined)
    after: set[int] = set()
    changed = True
    while changed:
        changed = False
        for at in range(min(joined) + 1, last + 1):
            if at in joined or at in after or not before[at] & reached:
                continue
            more = whole.get(at, {at})
            after |= more
            reached |= sum(1 << each for each in more)
            changed = True
    return any(before[at] >> each & 1 for at in joined for each in after)


def _size(nodes: list[Node]) -> int:
    constants = {id(v) for node in nodes for v in node.inputs_ if v.is_constant()}
    return len(nodes) + len(constants)


def _replace(
    block: Block, kind: str, nodes: list[Node], before: list[int], groups: list[list[int]]
) -> None:
    """Put one node in the place of those of each group, in an order that holds."""
    of = {at: group for group in groups for at in group}
    placed: set[int] = set()
    order: list[Node] = [node for node in block.nodes_ if node.kind == "prim::Constant"]

    def place(at: int) -> None:
        group = of.get(at, [at])
        if group[0] in placed:
            return
        placed.update(group)
        inside = set(group)
        for member in group:
            for each in range(member):
                if before[member] >> each & 1 and each not in inside:
                    place(each)
        chosen = [nodes[each] for each in group]
        order.append(chosen[0] if at not in of else _folded(block, kind, chosen))

    for at in range(len(nodes)):
        place(at)
    block.nodes_ = order
    for node in order:
        node.owner = block


def _folded(block: Block, kind: str, nodes: list[Node]) -> Node:
    """One node whose graph is some nodes, with the constants that they read."""
    inner = _graph.Graph()
    members = set(map(id, nodes))
    given: dict[Value, Value] = {}
    for node in nodes:
        for value in node.inputs_:
            if value not in given and not value.is_constant() and id(value.node) not in members:
                given[value] = inner.block.add_input(value.type(), value.name)
    known = dict(given)
    for node in nodes:
        for value in node.inputs_:
            if value.is_constant() and value not in known and value.node is not None:
                inner.block.append(_graph.copy_node(value.node, known))
        inner.block.append(_graph.copy_node(node, known))
    escaping = [
        value
        for node in nodes
        for value in node.outputs_
        if any(id(user) not in members for user, _ in value.readers)
    ]
    made = _graph.Node(kind, given, [value.type() for value in escaping], {"Subgraph": inner})
    for old, new in zip(escaping, made.outputs_, strict=True):
        inner.block.add_output(known[old])
        new.name = old.name
        old.replaceAllUsesWith(new)
    for node in reversed(nodes):
        node.drop_inputs()
        node.owner = None
    return made
