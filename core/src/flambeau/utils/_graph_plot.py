"""The graph of a backward pass as a drawing."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from flambeau import Tensor
from flambeau._dispatch.annotated import all_take_as_annotated


def plot_graph(
    output: Tensor, path: str | Path | None = None, *, names: Mapping[str, Tensor] | None = None
) -> str:
    """What ``output.backward()`` would go through, in the language of Graphviz.

    An ellipse is the node of an op, an arrow what its gradient is passed on to, and a box a leaf
    that accumulates it, with its shape.

    Args:
        output: a tensor with a history.
        path: where to write the drawing: ``.svg``, ``.pdf`` or ``.png`` by the program ``dot``,
            anything else the text itself.
        names: what leaves are called, such as ``dict(model.named_parameters())``.

    Returns:
        The text; https://graphviz.org/doc/info/lang.html describes it.

    Raises:
        RuntimeError: the tensor has no history, or there is no ``dot`` to draw with.

    >>> import flambeau as fb
    >>> w = fb.ones(2, requires_grad=True)
    >>> print(fb.utils.plot_graph((w * 3).sum(), names={"w": w}))
    digraph {
      n0 [label="SumBackward0"]
      n1 [label="MulBackward0"]
      n2 [label="w\\n(2,)", shape=box]
      n0 -> n1
      n1 -> n2
    }
    """
    if output.grad_fn is None:
        raise RuntimeError("plot_graph(): the tensor has no history; was it computed from a leaf?")
    known = {id(tensor): name for name, tensor in (names or {}).items()}
    nodes = list(_reached(output.grad_fn))
    # Nodes of leaves are made when they are asked for: it is the leaf that has an identity.
    places: dict[int, str] = {}
    lines, arrows = [], []
    for node in nodes:
        if (key := _key(node)) not in places:
            places[key] = f"n{len(places)}"
            lines.append(f"  {places[key]} [{_look(node, known)}]")
    for node in nodes:
        for following, _ in node.next_functions:
            if following is not None:
                arrows.append(f"  {places[_key(node)]} -> {places[_key(following)]}")
    text = "\n".join(["digraph {", *lines, *arrows, "}"])
    if path is not None:
        _write(text, Path(path))
    return text


def _reached(root: Any) -> Iterator[Any]:
    """The nodes of a graph, each once, by breadth."""
    level, seen = [root], {_key(root)}
    while level:
        yield from level
        following = []
        for node in level:
            for each, _ in node.next_functions:
                if each is not None and _key(each) not in seen:
                    seen.add(_key(each))
                    following.append(each)
        level = following


def _key(node: object) -> int:
    return id(getattr(node, "variable", node))


def _look(node: Any, known: Mapping[int, str]) -> str:
    """The attributes of a node in the drawing."""
    leaf = getattr(node, "variable", None)
    if leaf is None:
        return f'label="{node.name()}"'
    title = known.get(id(leaf), "leaf").replace('"', "'")
    return f'label="{title}\\n{tuple(leaf.shape)}", shape=box'


def _write(text: str, path: Path) -> None:
    kind = path.suffix.removeprefix(".")
    if kind not in ("svg", "pdf", "png"):
        path.write_text(text + "\n", encoding="utf-8")
        return
    program = shutil.which("dot")
    if program is None:
        raise RuntimeError(
            f"{path}: the program `dot` of Graphviz draws it, and is not there; install graphviz, "
            "or name a file that ends in .dot to have the text"
        )
    subprocess.run([program, f"-T{kind}", "-o", str(path)], input=text, text=True, check=True)


all_take_as_annotated(globals())
