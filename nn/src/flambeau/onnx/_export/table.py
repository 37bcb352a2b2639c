"""The symbolic functions: what writes each op in operators of ONNX."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flambeau.onnx._export.errors import OnnxExporterError, UnsupportedOperatorError

if TYPE_CHECKING:
    from flambeau.jit._schemas import Schema

Symbolic = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Entry:
    """A symbolic function.

    Attributes:
        function: called with the graph and the op's arguments, by their names.
        since: the opset from which on there is a form.
        parameters: the names that the function takes; None if it takes any.
    """

    function: Symbolic
    since: int
    parameters: tuple[str, ...] | None


SYMBOLIC: dict[str, Entry] = {}
"""By the op's name without its namespace."""

CUSTOM: dict[str, dict[int, Symbolic]] = {}
"""By the op's full name and opset, what programs have registered."""


def symbolic(*names: str, since: int = 9) -> Callable[[Symbolic], Symbolic]:
    """Put a function into the table under the names of ops."""

    def add(function: Symbolic) -> Symbolic:
        parameters = inspect.signature(function).parameters
        anything = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        taken = None if anything else tuple(parameters)[1:]
        for name in names:
            SYMBOLIC[name] = Entry(function, since, taken)
        return function

    return add


def custom(name: str, opset: int) -> Symbolic | None:
    """What a program has registered for an op: the newest that is not newer than the opset."""
    versions = CUSTOM.get(name, {})
    fitting = [version for version in versions if version <= opset]
    return versions[max(fitting)] if fitting else None


@functools.cache
def load() -> dict[str, Entry]:
    """The table, with all families in it."""
    from flambeau.onnx._export import symbolic as families

    assert families
    return SYMBOLIC


def need_number(value: object, what: str) -> Any:
    """A number that is known before the model runs.

    Raises:
        OnnxExporterError: it depends on the input.
    """
    from flambeau.onnx._export.graph import Value

    if isinstance(value, Value):
        if value.tensor is not None and value.maker is not None and value.tensor.numel() == 1:
            return value.tensor.item()
        raise OnnxExporterError(f"{what} depends on the input; ONNX needs a number here")
    if isinstance(value, list | tuple):
        return [need_number(each, what) for each in value]
    return value


IGNORED = frozenset(
    """generator layout device pin_memory memory_format requires_grad cudnn_enabled cudnn_enable
    non_blocking copy implicit sparse sparse_grad scale_grad_by_freq out path padding_idx""".split()
)
"""Arguments that say nothing about what is computed."""


def fitting(
    parameters: tuple[str, ...] | None, named: dict[str, Any], schema: Schema | None
) -> dict[str, Any]:
    """The arguments that a symbolic function takes.

    Raises:
        OnnxExporterError: it does not know one that is given.
    """
    if parameters is None:
        return named
    from flambeau.onnx._export.graph import Value

    kept = {}
    defaults = {} if schema is None else {a.name: a.default for a in schema.arguments}
    for name, value in named.items():
        if name in parameters:
            kept[name] = value
        elif name in ("self", "input") and parameters[0] in ("self", "input"):
            kept[parameters[0]] = value
        elif name in ("a", "b") and len(parameters) > (name == "b"):  # ops of numbers
            kept[parameters[name == "b"]] = value
        elif name not in IGNORED and not (
            value is None or (not isinstance(value, Value) and value == defaults.get(name))
        ):
            raise UnsupportedOperatorError(f"the argument {name} is not supported")
    return kept
