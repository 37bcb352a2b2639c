"""What a model has to be before any of it runs: of texts, in order, no function within itself."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from onnx import NodeProto

__all__ = ["check_order", "check_place", "check_texts", "place_of"]


def place_of(node: NodeProto) -> str:
    """A node as errors name it."""
    # A file says how long these are, and what is in them.
    name = f" {node.name!r:.80}" if node.name else ""
    domain = f"{shown(node.domain):.80}::" if node.domain else ""
    results = ", ".join(f"{shown(output):.80}" for output in node.output[:8])
    return f"node{name} ({domain}{shown(node.op_type):.80} -> {results})"


def shown(name: str) -> str:
    """A name of a file as it may be shown: what terminals would obey is escaped.

    >>> from flambeau.onnx._order import shown
    >>> print(shown("x.1"), shown("x\\x1b[2J"))
    x.1 x\\x1b[2J
    """
    return name if name.isprintable() else repr(name)[1:-1]


def check_place(f: object) -> None:
    """See that a path is no device: what /dev/zero has to give, no memory holds.

    Raises:
        ValueError: it is one.
    """
    if isinstance(f, str | os.PathLike) and os.path.exists(f) and stat.S_ISCHR(os.stat(f).st_mode):
        raise ValueError(f"{os.fspath(f)} is no model of ONNX: it is a device")


def check_texts(message: Message) -> None:
    """See that every text of a message, and of those within it, is one.

    Messages of ONNX are in Protocol Buffers' second version, whose readers let any bytes pass and
    give them as bytes.

    Raises:
        ValueError: one is none of UTF-8.
    """
    for field, value in message.ListFields():
        if field.type == field.TYPE_STRING:
            for text in [value] if isinstance(value, str | bytes) else value:
                if isinstance(text, bytes):
                    raise ValueError(
                        f"{field.full_name.removeprefix('onnx.')} of this model is no text of "
                        f"UTF-8: {text!r:.80}"
                    )
        elif field.type == field.TYPE_MESSAGE:
            for inner in value if hasattr(value, "__len__") else [value]:
                check_texts(inner)


def check_order(graph: Any, functions: Iterable[Any], constants: set[str]) -> None:
    """See that each node reads what there is before it, and that no function calls itself.

    Args:
        constants: the names of the graph's weights.

    Raises:
        ValueError: one reads what nothing before it makes, or a function would never end.
    """
    _check(graph, constants | {value.name for value in graph.input})
    bodies = {(f.domain, f.name): f for f in functions}
    for function in bodies.values():
        _check(function, set(function.input))
    _check_calls(bodies)


def _check(graph: Any, known: set[str]) -> None:
    for node in graph.node:
        for name in node.input:
            if name and name not in known:
                raise ValueError(
                    f"{place_of(node)} reads {name!r:.80}, which nothing makes before it"
                )
        for inner in _within(node):
            names = {tensor.name for tensor in inner.initializer}
            _check(inner, known | names | {value.name for value in inner.input})
        known.update(node.output)
    for each in graph.output:
        name = each if isinstance(each, str) else each.name
        if name not in known:
            raise ValueError(f"nothing makes {name!r:.80}, which is a result of the model")


def _within(node: NodeProto) -> Iterator[Any]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def _called(graph: Any) -> Iterator[tuple[str, str]]:
    for node in graph.node:
        yield node.domain, node.op_type
        for inner in _within(node):
            yield from _called(inner)


def _check_calls(bodies: dict[tuple[str, str], Any]) -> None:
    """Take functions away that call none of those which are left, until none is or all do."""
    calls = {key: {c for c in _called(body) if c in bodies} for key, body in bodies.items()}
    while calls:
        ended = {key for key, called in calls.items() if not called}
        if not ended:
            domain, name = next(iter(calls))
            raise ValueError(f"the function {shown(domain):.80}::{shown(name):.80} calls itself")
        calls = {key: called - ended for key, called in calls.items() if key not in ended}
