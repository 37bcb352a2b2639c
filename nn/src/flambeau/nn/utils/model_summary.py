"""A table of a model's modules: what each gives, its parameters, its memory and its time."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.nn.module import Module
from flambeau.nn.parameter import is_lazy
from flambeau.overrides import takes_as_annotated

__all__ = ["ModelSummary", "SummaryRow", "summary"]

Device = fb.device | str | int | None
_HOSTS = ("cpu", "meta", "ref")


@dataclass(frozen=True)
class SummaryRow:
    """One module of the table.

    Attributes:
        name: its full name, empty for the model itself.
        kind: its class.
        depth: how many modules it is inside.
        output_shape: of its (last) call; nested as the result is; None if it was not called.
        parameters: the number of elements of its own parameters, without those of its children.
        output_bytes: the memory of the tensors that its (last) call gave.
        seconds: how long its calls took, with those of its children.
        calls: how often it was called.
    """

    name: str
    kind: str
    depth: int
    output_shape: Any
    parameters: int
    output_bytes: int = 0
    seconds: float = 0.0
    calls: int = 0


@dataclass(frozen=True)
class ModelSummary:
    """What `summary` found; as a string it is the table.

    Attributes:
        rows: the modules in the order of ``named_modules``.
        total_parameters: the number of elements of all parameters, each counted once.
        trainable_parameters: of those that require a gradient.
        parameter_bytes: the memory of the parameters.
        output_bytes: the memory of what the modules gave that called no other.
        seconds: how long the call took.
    """

    rows: tuple[SummaryRow, ...]
    total_parameters: int
    trainable_parameters: int
    parameter_bytes: int
    output_bytes: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        called = any(row.calls for row in self.rows)
        cells = [("Layer", "Output shape", "Parameters", "Memory", "Time")]
        for row in self.rows:
            name = row.name.rpartition(".")[2]
            label = "  " * row.depth + (f"{name}: {row.kind}" if name else row.kind)
            if row.calls > 1:
                label += f" ({row.calls} calls)"
            cells.append(
                (
                    label,
                    _shown(row.output_shape) if row.calls else "-",
                    f"{row.parameters:,}" if row.parameters else "-",
                    _size(row.output_bytes) if row.calls else "-",
                    f"{row.seconds * 1e3:.2f} ms" if row.calls else "-",
                )
            )
        columns = 5 if called else 3
        wide = [max(len(line[column]) for line in cells) for column in range(columns)]
        left = "<<>>>"
        lines = [
            "  ".join(f"{line[i]:{left[i]}{wide[i]}}" for i in range(columns)) for line in cells
        ]
        rule = "-" * len(lines[0])
        fixed = self.total_parameters - self.trainable_parameters
        ends = [
            f"Parameters: {self.total_parameters:,} ({_size(self.parameter_bytes)})",
            f"Trained: {self.trainable_parameters:,}; fixed: {fixed:,}",
        ]
        if called:
            ends.append(f"Results: {_size(self.output_bytes)}; time: {self.seconds * 1e3:.2f} ms")
        return "\n".join([lines[0], rule, *lines[1:], rule, *ends])

    __repr__ = __str__


@dataclass
class _Calls:
    """What was seen of one module."""

    shape: Any = None
    output_bytes: int = 0
    seconds: float = 0.0
    count: int = 0


@takes_as_annotated
def summary(
    model: Module,
    input_size: Any = None,
    *,
    input_data: object = None,
    dtypes: fb.dtype | Sequence[fb.dtype] | None = None,
    device: Device = None,
) -> ModelSummary:
    """A table of the modules of `model`: what a call of each gives, its parameters, memory, time.

    The model is called once, in evaluation mode and without recording, with `input_data` (a tensor,
    a tuple of arguments, or a dictionary of arguments by name) or with zeros of `input_size` (one
    size, or a sequence of sizes; the batch is part of it).  Tensors may stand at the place of
    `input_size`, too.  Without either nothing is called and no shapes are shown.  `dtypes` is that
    of the zeros, or one for each size, the default dtype if left out; `device` is where they are,
    by default where the first parameter is.

    Whatever is raised, the model is as it was: mode, buffers, gradients and hooks, and so are the
    default generators.  Only lazy modules get their shapes by it.

    Raises:
        ValueError: both `input_size` and `input_data` are given, or `dtypes` has another length.

    >>> import flambeau as fb
    >>> model = fb.nn.Sequential(fb.nn.Linear(4, 8), fb.nn.ReLU(), fb.nn.Linear(8, 2))
    >>> found = fb.utils.summary(model, fb.ones(16, 4))
    >>> found  # doctest: +NORMALIZE_WHITESPACE
    Layer        Output shape  Parameters  Memory     Time
    ---...
    Sequential   [16, 2]                -   128 B  ... ms
      0: Linear  [16, 8]               40   512 B  ... ms
      1: ReLU    [16, 8]                -   512 B  ... ms
      2: Linear  [16, 2]               18   128 B  ... ms
    ---...
    Parameters: 58 (232 B)
    Trained: 58; fixed: 0
    Results: 1.1 KiB; time: ... ms
    >>> found.rows[1].output_shape, found.total_parameters
    ((16, 8), 58)
    """
    if input_size is not None and input_data is not None:
        raise ValueError("summary: give input_size or input_data, not both")
    if input_size is not None and any(True for _ in _tensors(input_size)):
        input_size, input_data = None, input_size
    seen: dict[int, _Calls] = {}
    if input_size is not None:
        _run(model, _zeros(model, input_size, dtypes, device), {}, seen)
    elif isinstance(input_data, Mapping):
        _run(model, (), input_data, seen)
    elif input_data is not None:
        _run(model, input_data if isinstance(input_data, tuple) else (input_data,), {}, seen)
    rows, results, outer = [], 0, _callers(model, seen)
    for name, module in model.named_modules():
        own = sum(_count(parameter) for parameter in module.parameters(recurse=False))
        depth = name.count(".") + 1 if name else 0
        calls = seen.get(id(module), _Calls())
        kind = type(module).__name__
        rows.append(
            SummaryRow(
                name,
                kind,
                depth,
                calls.shape,
                own,
                calls.output_bytes,
                calls.seconds,
                calls.count,
            )
        )
        if id(module) not in outer:
            results += calls.output_bytes * calls.count
    parameters = list(model.parameters())
    return ModelSummary(
        tuple(rows),
        sum(map(_count, parameters)),
        sum(_count(parameter) for parameter in parameters if parameter.requires_grad),
        sum(_count(parameter) * parameter.element_size() for parameter in parameters),
        results,
        rows[0].seconds,
    )


def _callers(model: Module, called: Iterable[int]) -> set[int]:
    """The modules, by ``id``, that one of those called is inside of, at any depth."""
    parents: dict[int, list[int]] = {}
    for module in model.modules():
        for child in module.children():
            if child is not module:
                parents.setdefault(id(child), []).append(id(module))
    found: set[int] = set()
    todo = list(called)
    while todo:
        new = set(parents.get(todo.pop(), ())) - found
        found |= new
        todo += new
    return found


def _run(
    model: Module, args: tuple[Any, ...], named: Mapping[str, Any], seen: dict[int, _Calls]
) -> None:
    """Call the model and note what every module's call is; it is left as it was."""
    begun: list[tuple[Module, float]] = []

    def begin(module: Module, given: object) -> None:
        begun.append((module, perf_counter()))

    def note(module: Module, given: object, result: object) -> None:
        tensors = list(_tensors(result))
        if any(t.device.type not in _HOSTS for t in tensors) and fb.accelerator.is_available():
            fb.accelerator.synchronize()
        calls = seen.setdefault(id(module), _Calls())
        while (last := begun.pop())[0] is not module:
            pass  # this one raised, and who called it went on
        calls.seconds += perf_counter() - last[1]
        calls.shape = _shape(result)
        calls.output_bytes = sum(t.numel() * t.element_size() for t in tensors)
        calls.count += 1

    handles: list[Any] = []
    modes = [(module, module.training) for module in model.modules()]
    try:
        with _buffers_apart(model), fb.random.fork_rng():
            for module, _ in modes:
                handles.append(module.register_forward_pre_hook(begin))
                handles.append(module.register_forward_hook(note))
            model.eval()
            with fb.no_grad():
                model(*args, **named)
    finally:
        for handle in handles:
            handle.remove()
        for module, training in modes:
            module.training = training


@contextmanager
def _buffers_apart(model: Module) -> Iterator[None]:
    """A block whose writes go to copies of the buffers: the versions of the true ones stay, too."""
    copies: dict[int, Tensor] = {}
    before: list[tuple[Module, dict[str, Any], dict[str, Any], set[str]]] = []
    for module in model.modules():
        own = module._buffers
        before.append((module, own, dict(own), set(module._non_persistent_buffers_set)))
        for name, buffer in own.items():
            if isinstance(buffer, Tensor) and not is_lazy(buffer):
                if id(buffer) not in copies:
                    copies[id(buffer)] = buffer.detach().clone()
                own[name] = copies[id(buffer)]
    try:
        yield
    finally:
        for module, own, buffers, kept in before:
            own.clear()
            own.update(buffers)
            module._non_persistent_buffers_set = kept


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


def _tensors(result: object) -> Iterator[Tensor]:
    """The tensors of a result, in its tuples, lists, dictionaries and dataclasses."""
    if isinstance(result, Tensor):
        yield result
    elif (fields := _fields(result)) is not None:
        yield from _tensors(fields)
    elif isinstance(result, (tuple, list)):
        for part in result:
            yield from _tensors(part)
    elif isinstance(result, Mapping):
        for part in result.values():
            yield from _tensors(part)


def _shape(result: object) -> Any:
    """The shapes of the tensors of a result, in its tuples, lists, dictionaries and dataclasses."""
    if isinstance(result, Tensor):
        return tuple(result.shape)
    if (fields := _fields(result)) is not None:
        return _shape(fields)
    if isinstance(result, (tuple, list)):
        return [_shape(part) for part in result]
    if isinstance(result, Mapping):
        return {key: _shape(part) for key, part in result.items()}
    return "None" if result is None else type(result).__name__


def _fields(result: object) -> dict[str, object] | None:
    """Those of a dataclass that is not a container as well."""
    if not dataclasses.is_dataclass(result) or isinstance(result, (type, Mapping, tuple, list)):
        return None
    return {field.name: getattr(result, field.name) for field in dataclasses.fields(result)}


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
