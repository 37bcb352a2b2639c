"""Tensor programs as data: the steps of a program, how to run them and how to print them.

A program is a list of steps; a step is an operation name and arguments, where `Ref(3)` stands for
the tensor `v3` that an earlier step made.  The same program can therefore be replayed on every
library that has PyTorch's interface, printed as code, and made smaller by dropping steps.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "**": operator.pow,
    ">": operator.gt,
    "<=": operator.le,
    "==": operator.eq,
    "@": operator.matmul,
}
AUGMENTED: dict[str, Callable[[Any, Any], Any]] = {
    "+=": operator.iadd,
    "-=": operator.isub,
    "*=": operator.imul,
    "/=": operator.itruediv,
}
SEVERAL = (".split", ".chunk", ".unbind")  # return a tuple even if it holds one tensor


@dataclass(frozen=True)
class Ref:
    """The tensor with this number, printed as `v3`."""

    number: int


@dataclass(frozen=True)
class Dtype:
    """A dtype by name, so that it can be looked up in any library."""

    name: str


@dataclass(frozen=True)
class Const:
    """A tensor written out inside a step: an index, a mask or the gradient given to backward."""

    data: Any
    dtype: str
    shape: tuple[int, ...] | None = (
        None  # given where `data` does not tell it: tensors without elements
    )

    def tensor(self, library: Any, device: str | None = None) -> Any:
        options = {} if device is None else {"device": device}
        made = library.tensor(self.data, dtype=getattr(library, self.dtype), **options)
        return made if self.shape is None else made.reshape(self.shape)


@dataclass(frozen=True)
class Step:
    """One operation.

    Attributes:
        op: `".add_"` is a method of the first argument, `"torch.cat"` a function of the library,
            `"+"` and `"+="` are operators; `"tensor"`, `"getitem"`, `"setitem"` and `"backward"`
            speak for themselves.
        args: positional arguments, with `Ref`, `Dtype` and `Const` as place holders at any depth.
        kwargs: keyword arguments, the same.
        out: numbers of the tensors that the step makes.
        no_grad: whether it runs under `torch.no_grad()`.
    """

    op: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    out: tuple[int, ...] = ()
    no_grad: bool = False

    @property
    def is_inplace(self) -> bool:
        return (
            self.op == "setitem"
            or self.op in AUGMENTED
            or (self.op[0] == "." and self.op[-1] == "_")
        )

    def uses(self) -> set[int]:
        """Numbers of the tensors that the step reads or writes."""
        return {ref.number for ref in _refs((self.args, tuple(self.kwargs.values())))}


@dataclass(frozen=True)
class Program:
    """A seed and the steps drawn from it; `backward` steps come last."""

    seed: int
    steps: tuple[Step, ...]

    def without(self, position: int) -> Program:
        """The program less one step and whatever used its tensors."""
        gone = set(self.steps[position].out)
        kept = list(self.steps[:position])
        for step in self.steps[position + 1 :]:
            if step.uses() & gone:
                gone |= set(step.out)
            else:
                kept.append(step)
        return replace(self, steps=tuple(kept))

    def bypassing(self, position: int) -> Program | None:
        """The program with one step left out and its first operand in place of its result.

        None if the step does not make one tensor from another.
        """
        step = self.steps[position]
        operand = next(_refs(step.args), None)
        if len(step.out) != 1 or operand is None:
            return None
        later = tuple(
            replace(other, args=_substituted(other.args, Ref(step.out[0]), operand))
            for other in self.steps[position + 1 :]
        )
        return replace(self, steps=self.steps[:position] + later)

    def ops(self) -> set[str]:
        return {step.op for step in self.steps}


@dataclass
class Run:
    """What a library made of a program: tensors by number, and each step's exception or None."""

    tensors: dict[int, Any]
    errors: list[Exception | None]


def execute(step: Step, tensors: dict[int, Any], library: Any, device: str | None = None) -> Any:
    """Run one step and return what the operation returned."""
    args = _resolve(step.args, tensors, library, device)
    kwargs = {
        name: _resolve(value, tensors, library, device) for name, value in step.kwargs.items()
    }
    with library.no_grad() if step.no_grad else nullcontext():
        if step.op == "tensor":
            return library.tensor(*args, **kwargs, **({} if device is None else {"device": device}))
        if step.op == "getitem":
            return args[0][args[1]]
        if step.op == "setitem":
            args[0][args[1]] = args[2]
            return None
        if step.op == "backward":
            return library.autograd.backward(*args, **kwargs)
        if operation := BINARY.get(step.op) or AUGMENTED.get(step.op):
            return operation(*args)
        if step.op[0] == ".":
            return getattr(args[0], step.op[1:])(*args[1:], **kwargs)
        return getattr(library, step.op.removeprefix("torch."))(*args, **kwargs)


def results(step: Step, returned: Any) -> list[Any]:
    """The new tensors among what a step returned; an in-place step makes none."""
    if step.is_inplace or returned is None:
        return []
    return list(returned) if isinstance(returned, tuple | list) else [returned]


def replay(program: Program, library: Any, device: str | None = None) -> Run:
    """Run a program on a library, going on after steps that raise."""
    run = Run({}, [])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for step in program.steps:
            try:
                made = results(step, execute(step, run.tensors, library, device))
            except Exception as error:  # compared, not handled
                run.errors.append(error)
            else:
                run.errors.append(None)
                run.tensors.update(zip(step.out, made, strict=False))
    return run


def render(program: Program, errors: Iterable[Exception | None] = ()) -> str:
    """The program as code; steps that raise (`errors`) are wrapped so that the code runs on."""
    lines = ["import torch"]
    for step, error in zip(program.steps, [*errors, *[None] * len(program.steps)], strict=False):
        line = _line(step)
        if step.no_grad:
            line = f"with torch.no_grad(): {line}"
        if error is not None:
            summary = str(error).split("\n")[0][:90]
            line = (
                f"try: {line}  # raises {type(error).__name__}: {summary}\nexcept Exception: pass"
            )
            if step.no_grad:
                line = line.replace("try: ", "try:\n    ", 1)
        lines.append(line)
    return "\n".join(lines)


def _line(step: Step) -> str:
    args = [_show(arg) for arg in step.args]
    named = [f"{name}={_show(value)}" for name, value in step.kwargs.items()]
    if step.op == "getitem":
        text = f"{args[0]}[{_show_index(step.args[1])}]"
    elif step.op == "setitem":
        text = f"{args[0]}[{_show_index(step.args[1])}] = {args[2]}"
    elif step.op in BINARY or step.op in AUGMENTED:
        text = f"{args[0]} {step.op} {args[1]}"
    elif step.op[0] == ".":
        text = f"{args[0]}{step.op}({', '.join(args[1:] + named)})"
    else:
        name = {"tensor": "torch.tensor", "backward": "torch.autograd.backward"}.get(
            step.op, step.op
        )
        text = f"{name}({', '.join(args + named)})"
    if not step.out:
        return text
    names = ", ".join(f"v{number}" for number in step.out)
    return f"{names}{',' if len(step.out) == 1 and step.op in SEVERAL else ''} = {text}"


def _show(value: Any) -> str:
    if isinstance(value, Ref):
        return f"v{value.number}"
    if isinstance(value, Dtype):
        return f"torch.{value.name}"
    if isinstance(value, Const):
        text = f"torch.tensor({value.data}, dtype=torch.{value.dtype})"
        return text if value.shape is None else f"{text}.reshape({value.shape})"
    if isinstance(value, list):
        return f"[{', '.join(map(_show, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(_show, value))}{',' if len(value) == 1 else ''})"
    return "..." if value is Ellipsis else repr(value)


def _show_index(index: Any) -> str:
    if isinstance(index, tuple) and index:
        return ", ".join(map(_show_index, index)) + ("," if len(index) == 1 else "")
    if isinstance(index, slice):
        ends = ["" if end is None else str(end) for end in (index.start, index.stop, index.step)]
        return ":".join(ends[: 3 if ends[2] else 2])
    return _show(index)


def _resolve(value: Any, tensors: dict[int, Any], library: Any, device: str | None) -> Any:
    if isinstance(value, Ref):
        return tensors[value.number]
    if isinstance(value, Dtype):
        return getattr(library, value.name)
    if isinstance(value, Const):
        return value.tensor(library, device)
    if isinstance(value, tuple | list):
        return type(value)(_resolve(item, tensors, library, device) for item in value)
    return value


def _substituted(value: Any, old: Ref, new: Ref) -> Any:
    if isinstance(value, tuple | list):
        return type(value)(_substituted(item, old, new) for item in value)
    return new if value == old else value


def _refs(value: Any) -> Iterable[Ref]:
    if isinstance(value, Ref):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _refs(item)
