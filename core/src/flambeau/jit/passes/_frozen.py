"""What can be simplified where parameters are constants and nothing is trained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau.jit import _types as T
from flambeau.jit._graph import Node

if TYPE_CHECKING:
    from flambeau._tensor.tensor import Tensor
    from flambeau.jit._graph import Block, Graph, Value

_TRANSPOSED = 6
"""Where `_convolution` says whether it is a transposed one."""
_OF_SHAPE = frozenset({"aten::dim", "aten::size", "aten::len", "prim::dtype", "prim::device"})
_DROPOUTS = frozenset(
    f"aten::{name}"
    for name in "dropout feature_dropout alpha_dropout feature_alpha_dropout".split()
)


def remove_dropout(graph: Graph) -> bool:
    """Drop the dropout that is off."""
    changed = False
    for node in list(graph.block.all_nodes()):
        if node.kind in _DROPOUTS and _constant(node.inputs_[2]) is False:
            node.output().replaceAllUsesWith(node.inputs_[0])
            node.destroy()
            changed = True
    return changed


def fold_batch_norm(graph: Graph) -> bool:
    """Make a batch normalisation part of the weights of the layer before it.

    w' = w·g / √(var + ε), b' = (b - mean)·g / √(var + ε) + β, for convolutions and linear layers
    with constant weights whose result nothing else reads.
    """
    changed = False
    for node in list(graph.block.all_nodes()):
        if node.kind == "aten::batch_norm" and _constant(node.inputs_[5]) is False:
            changed |= _fold(node)
    return changed


def _constant(value: Value) -> Any:
    return value.toIValue() if value.is_constant() else _UNKNOWN


_UNKNOWN = object()


def _dimension(layer: Node) -> int | None:
    """Which dimension of the weights is that of the results; None for what is no such layer."""
    kind = layer.kind.removeprefix("aten::")
    if kind in ("conv1d", "conv2d", "conv3d", "linear"):
        return 0
    if kind == "_convolution":
        return 0 if _constant(layer.inputs_[_TRANSPOSED]) is False else None
    if kind in ("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"):
        return 1 if _constant(layer.inputs_[6]) == 1 else None
    return None


def _fold(norm: Node) -> bool:
    layer = norm.inputs_[0].node
    if layer is None or layer.owner is not norm.owner:
        return False
    dim = _dimension(layer)
    readers = [reader for reader, _ in layer.output().readers if reader is not norm]
    if dim is None or any(getattr(each, "kind", "") not in _OF_SHAPE for each in readers):
        return False
    weight, bias = (_constant(each) for each in layer.inputs_[1:3])
    scale, shift, mean, var = (_constant(each) for each in norm.inputs_[1:5])
    eps = _constant(norm.inputs_[7])
    tensors = (weight, mean, var)
    if not all(isinstance(each, fb.Tensor) for each in tensors) or not isinstance(eps, float):
        return False
    if any(each is _UNKNOWN for each in (bias, scale, shift)):
        return False
    if mean.numel() != weight.shape[dim]:  # of sequences a norm is over places, not results
        return False
    with fb.no_grad():
        factor = (var + eps).rsqrt()
        if scale is not None:
            factor = factor * scale
        shape = [1] * weight.dim()
        shape[dim] = -1
        folded = weight * factor.reshape(shape)
        moved = (bias - mean if bias is not None else -mean) * factor
        if shift is not None:
            moved = moved + shift
    _replace(layer, 1, folded.to(weight.dtype))
    _replace(layer, 2, moved.to(weight.dtype))
    norm.output().replaceAllUsesWith(layer.output())
    norm.destroy()
    return True


def _replace(node: Node, at: int, tensor: Tensor) -> None:
    """Let a node read a constant."""
    made = Node("prim::Constant", (), (T.TENSOR,), {"value": tensor}, node.place)
    made.insert_before(node)
    node.set_input(at, made.output())


def written(graph: Graph) -> set[Value]:
    """The values that a graph may write to: those that a write reaches through views."""
    found: set[Value] = set()

    def follow(value: Value) -> None:
        if value in found:
            return
        found.add(value)
        node = value.node
        if node is None:
            return
        for each in node.inputs_:
            if each.type() is T.TENSOR or each.type().kind == "List":
                follow(each)
        for block in node.blocks_:
            for each in block.outputs_:
                follow(each)

    def visit(block: Block) -> None:
        for node in block.nodes_:
            if node.schema is not None and node.schema.writes:
                for argument, value in zip(node.schema.arguments, node.inputs_, strict=False):
                    if "!" in argument.text:
                        follow(value)
            for inner in node.blocks_:
                visit(inner)

    visit(graph.block)
    return found
