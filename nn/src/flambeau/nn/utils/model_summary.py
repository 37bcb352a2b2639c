"""A table of a model's modules: what each gives and how many parameters it has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.nn.module import Module
from flambeau.nn.parameter import is_lazy
from flambeau.overrides import takes_as_annotated

__all__ = ["ModelSummary", "SummaryRow", "summary"]

Device = fb.device | str | int | None


@dataclass(frozen=True)
class SummaryRow:
    """One module of the table.

    Attributes:
        name: its full name, empty for the model itself.
        kind: its class.
        depth: how many modules it is inside.
        output_shape: of its (last) call; nested as the result is; None if it was not called.
        parameters: the number of elements of its own parameters, without those of its children.
    """

    name: str
    kind: str
    depth: int
    output_shape: Any
    parameters: int


@dataclass(frozen=True)
class ModelSummary:
    """What `summary` found; as a string it is the table.

    Attributes:
        rows: the modules in the order of ``named_modules``.
        total_parameters: the number of elements of all parameters, each counted once.
        trainable_parameters: of those that require a gradient.
        parameter_bytes: the memory of the parameters.
    """

    rows: tuple[SummaryRow, ...]
    total_parameters: int
    trainable_parameters: int
    parameter_bytes: int

    def __str__(self) -> str:
        cells = [("Layer", "Output shape", "Parameters")]
        for row in self.rows:
            name = row.name.rpartition(".")[2]
            label = "  " * row.depth + (f"{name}: {row.kind}" if name else row.kind)
            shape = "-" if row.output_shape is None else _shown(row.output_shape)
            cells.append((label, shape, f"{row.parameters:,}" if row.parameters else "-"))
        wide = [max(len(line[column]) for line in cells) for column in range(3)]
        lines = [f"{a:<{wide[0]}}  {b:<{wide[1]}}  {c:>{wide[2]}}" for a, b, c in cells]
        rule = "-" * len(lines[0])
        fixed = self.total_parameters - self.trainable_parameters
        ends = [
            f"Parameters: {self.total_parameters:,} ({_size(self.parameter_bytes)})",
            f"Trained: {self.trainable_parameters:,}; fixed: {fixed:,}",
        ]
        return "\n".join([lines[0], rule, *lines[1:], rule, *ends])

    __repr__ = __str__


@takes_as_annotated
def summary(
    model: Module,
    input_size: Sequence[Any] | None = None,
    *,
    input_data: Any = None,
    dtypes: fb.dtype | Sequence[fb.dtype] | None = None,
    device: Device = None,
) -> ModelSummary:
    """A table of the modules of `model` with the shapes that a call gives.

    The model is called once, in evaluation mode and without recording, with zeros of `input_size`
    (one size, or a sequence of sizes; the batch is part of it) or with `input_data` (a tuple of
    arguments, or a single one).  Without either nothing is called and no shapes are shown.  Lazy
    modules get their shapes by it.  `dtypes` is that of the zeros, or one for each size, the
    default dtype if left out; `device` is where they are, by default where the first parameter is.

    Raises:
        ValueError: both `input_size` and `input_data` are given, or `dtypes` has another length.

    >>> import flambeau as fb
    >>> model = fb.nn.Sequential(fb.nn.Linear(4, 8), fb.nn.ReLU(), fb.nn.Linear(8, 2))
    >>> fb.nn.utils.summary(model, (16, 4))
    Layer        Output shape  Parameters
    -------------------------------------
    Sequential   [16, 2]                -
      0: Linear  [16, 8]               40
      1: ReLU    [16, 8]                -
      2: Linear  [16, 2]               18
    -------------------------------------
    Parameters: 58 (232 B)
    Trained: 58; fixed: 0
    """
    if input_size is not None and input_data is not None:
        raise ValueError("summary: give input_size or input_data, not both")
    shapes: dict[int, Any] = {}
    if input_size is not None:
        _run(model, _zeros(model, input_size, dtypes, device), shapes)
    elif input_data is not None:
        _run(model, input_data if isinstance(input_data, tuple) else (input_data,), shapes)
    rows = []
    for name, module in model.named_modules():
        own = sum(_count(parameter) for parameter in module.parameters(recurse=False))
        depth = name.count(".") + 1 if name else 0
        rows.append(SummaryRow(name, type(module).__name__, depth, shapes.get(id(module)), own))
    parameters = list(model.parameters())
    return ModelSummary(
        tuple(rows),
        sum(map(_count, parameters)),
        sum(_count(parameter) for parameter in parameters if parameter.requires_grad),
        sum(_count(parameter) * parameter.element_size() for parameter in parameters),
    )


def _run(model: Module, args: tuple[Any, ...], shapes: dict[int, Any]) -> None:
    """Call the model and note the shape of every module's result; it is left as it was."""

    def note(module: Module, given: Any, result: Any) -> None:
        shapes[id(module)] = _shape(result)

    modes = [(module, module.training) for module in model.modules()]
    handles = [module.register_forward_hook(note) for module, _ in modes]
    try:
        model.eval()
        with fb.no_grad():
            model(*args)
    finally:
        for handle in handles:
            handle.remove()
        for module, training in modes:
            module.training = training


def _zeros(model: Module, size: Sequence[Any], dtypes: Any, device: Device) -> tuple[Tensor, ...]:
    sizes = [size] if all(isinstance(n, int) for n in size) else list(size)
    kinds = [dtypes] * len(sizes) if dtypes is None or isinstance(dtypes, fb.dtype) else dtypes
    if len(kinds) != len(sizes):
        raise ValueError(f"summary: {len(kinds)} dtypes for {len(sizes)} inputs; give one for each")
    if device is None:
        first = next(model.parameters(), None)
        device = None if first is None else first.device
    pairs = zip(sizes, kinds, strict=True)
    return tuple(fb.zeros(tuple(n), dtype=kind, device=device) for n, kind in pairs)


def _shape(result: Any) -> Any:
    """The shapes of the tensors of a result, in its tuples, lists and dictionaries."""
    if isinstance(result, Tensor):
        return tuple(result.shape)
    if isinstance(result, (tuple, list)):
        return [_shape(part) for part in result]
    if isinstance(result, dict):
        return {key: _shape(part) for key, part in result.items()}
    return type(result).__name__


def _shown(shape: Any) -> str:
    if isinstance(shape, tuple):
        return str(list(shape))
    if isinstance(shape, list):
        return "(" + ", ".join(map(_shown, shape)) + ")"
    if isinstance(shape, dict):
        return "{" + ", ".join(f"{key}: {_shown(part)}" for key, part in shape.items()) + "}"
    return shape


def _count(parameter: Tensor) -> int:
    return 0 if is_lazy(parameter) else parameter.numel()


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            break
        count /= 1024
    return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
