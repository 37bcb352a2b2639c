"""A plan: the kernel calls of a function for one set of shapes, their parts and their text.

What `Backend.compile_plan` is given.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Generic, TypeVar

__all__ = ["Number", "Option", "Plan", "Slot", "Step", "reading", "replayed", "slots_in"]


_T = TypeVar("_T")


class _Once(Generic[_T]):
    """An attribute that is computed when it is first read.

    As `functools.cached_property`, without the lock of Python 3.11, which forks would copy.
    """

    def __init__(self, make: Callable[[Any], _T]) -> None:
        self.make, self.name = make, make.__name__
        self.__doc__ = make.__doc__

    def __get__(self, of: Any, kind: type | None = None) -> _T:
        made = self.make(of)
        setattr(
            of, self.name, made
        )  # not by `__dict__`: objects whose own nobody asks for have none
        return made


class Slot(int):
    """The number of an array in a plan, where it stands among plain arguments."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"%{int(self)}"

    __str__ = int.__repr__


class Number:
    """A plain argument that is read anew at every run."""

    __slots__ = ()

    def text(self, name: Callable[[Any], str]) -> str:
        """The expression of its value; `name` says what an object or number is called in it."""
        raise NotImplementedError

    def options(self) -> Iterator[Option]:
        """The entries of mappings that its value depends on."""
        return iter(())


@dataclass(frozen=True, eq=False)
class Option(Number):
    """``mapping[key]``, or its element `at`: a learning rate, which schedules change."""

    mapping: Any
    key: str
    at: int | None = None

    def read(self) -> Any:
        """The value at present."""
        value = self.mapping[self.key]
        return value if self.at is None else value[self.at]

    def text(self, name: Callable[[Any], str]) -> str:
        """The expression of its value."""
        return f"{name(self.mapping)}[{self.key!r}]" + ("" if self.at is None else f"[{self.at}]")

    def options(self) -> Iterator[Option]:
        """Itself."""
        yield self

    def __repr__(self) -> str:
        return f"[{self.key}]" if self.at is None else f"[{self.key}[{self.at}]]"


@dataclass(eq=False)
class Step:
    """One call; it is not changed once it is made.

    Attributes:
        op: the canonical name of the op, or what else is called.
        kernel: the function.
        args: its arguments: `Slot`, `Number`, plain values, and lists and tuples of these.
        results: where its results go: a slot, a tuple of them (None for what is no array), or None.
        converted: whether a result is no array of the backend, and has to be made one.
        effect: whether it does more than return results: it writes into an argument, draws random
            numbers, or checks values.
    """

    op: str
    kernel: Callable[..., Any]
    args: tuple[Any, ...]
    results: Any
    converted: Callable[[Any], Any] | None = None
    effect: bool = False

    @_Once
    def reads(self) -> list[int]:
        """The slots in its arguments."""
        return slots_in(self.args)

    @_Once
    def makes(self) -> list[int]:
        """The slots of its results."""
        return slots_in(self.results)

    @_Once
    def numbers(self) -> list[Number]:
        """The plain arguments that are read anew at every run."""
        return _numbers_in(self.args, [])

    def __repr__(self) -> str:
        given = ", ".join(map(repr, self.args))
        return f"{_shown(self.results)}{self.op}({given})"


def _shown(results: Any) -> str:
    if results is None:
        return ""
    return f"{results!r} = "


def slots_in(value: Any) -> list[int]:
    """The slots in an argument or in results."""
    kind = type(value)
    if kind is Slot:
        return [value]
    found: list[int] = []
    if kind is tuple or kind is list:
        _collect(value, found)
    return found


def _collect(values: Sequence[Any], found: list[int]) -> None:
    for value in values:
        kind = type(value)
        if kind is Slot:
            found.append(value)
        elif kind is tuple or kind is list:
            _collect(value, found)


def _numbers_in(values: Sequence[Any], found: list[Number]) -> list[Number]:
    for value in values:
        kind = type(value)
        if kind is Slot:
            continue
        if kind is tuple or kind is list:
            _numbers_in(value, found)
        elif isinstance(value, Number):
            found.append(value)
    return found


@dataclass
class Plan:
    """What a captured function asks of one backend.

    Attributes:
        steps: the calls in order, those left out on which nothing depends.
        inputs: slots of the arrays that every run is given, in order.
        outputs: slots of the arrays that a run returns.
        constants: arrays that are the same in all runs, by slot: numbers, tables.
        numbers: plain arguments that every run is given after the arrays.
        specs: shape and dtype of the array of each slot.
        strides: those of the array of each slot, in elements, where arrays have strides.
    """

    steps: Sequence[Step]
    inputs: Sequence[int]
    outputs: Sequence[int]
    constants: dict[int, Any] = field(default_factory=dict)
    specs: dict[int, tuple[tuple[int, ...], Any]] = field(default_factory=dict)
    strides: dict[int, tuple[int, ...]] = field(default_factory=dict)
    numbers: list[Number] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.steps = _live(self.steps, self.outputs)
        if not self.numbers:
            self.numbers = list(dict.fromkeys([n for step in self.steps for n in step.numbers]))
        used = {*self.outputs}.union(*[step.reads for step in self.steps])
        self.constants = {s: a for s, a in self.constants.items() if s in used}

    def in_parts(
        self, compiler: Callable[[Plan, Callable[..., tuple[Any, ...]]], Callable[..., Any]]
    ) -> Callable[..., tuple[Any, ...]] | None:
        """A function of inputs and numbers whose calls without effects are compiled.

        Calls with an effect (draws, checks of values, counts) stay calls and keep their order.
        They are made as early as what they read allows: of most plans one part is compiled.

        Args:
            compiler: makes a function of a part, which is a plan, and of the function that
                repeats its calls.  Both take the arrays of the part's inputs, then its numbers.

        Returns:
            What `Backend.compile_plan` may return; None if calls write into their arguments.
        """
        if any(step.op == "assign" or step.op.endswith("_") for step in self.steps):
            return None
        blocks = _blocks(self)
        steps: list[Step] = []
        known = {*self.inputs, *self.constants}
        for i, (effects, pure) in enumerate(blocks):
            steps += effects
            known.update(s for step in effects for s in step.makes)
            if not pure:
                continue
            later = [step for some in blocks[i + 1 :] for half in some for step in half]
            wanted = {s for step in later for s in step.reads} | {*self.outputs}
            made = {s for step in pure for s in step.makes} - known
            read = {s for step in pure for s in step.reads} - made - {*self.constants}
            part = Plan(
                pure, sorted(read), sorted(made & wanted), self.constants, self.specs, self.strides
            )
            function = compiler(part, replayed(part))
            args = (*map(Slot, part.inputs), *part.numbers)
            results = tuple(map(Slot, part.outputs))
            steps.append(Step("part", function, args, results, effect=True))
            known |= made
        return replayed(self.with_steps(steps))

    def with_steps(self, steps: Sequence[Step], constants: dict[int, Any] | None = None) -> Plan:
        """The plan with other calls that give the same, and further constants."""
        held = {**self.constants, **(constants or {})}
        return Plan(steps, self.inputs, self.outputs, held, self.specs, self.strides, self.numbers)

    def __str__(self) -> str:
        lines = [f"inputs {', '.join(f'%{s}' for s in self.inputs)}"]
        lines += map(repr, self.steps)
        lines.append(f"return {', '.join(f'%{s}' for s in self.outputs)}")
        return "\n".join(lines)


def _live(steps: Sequence[Step], outputs: Sequence[int]) -> list[Step]:
    """The steps that have an effect or a result that somebody reads."""
    wanted, kept = set(outputs), []
    for step in reversed(steps):
        if step.effect or not wanted.isdisjoint(step.makes):
            kept.append(step)
            wanted.update(step.reads)
    return kept[::-1]


def _blocks(plan: Plan) -> list[tuple[list[Step], list[Step]]]:
    """Steps with an effect and those without in turn, each as early as what it reads allows."""
    blocks: list[tuple[list[Step], list[Step]]] = [([], [])]
    made: dict[int, tuple[int, bool]] = {}  # the block of a slot, whether it has no effect
    last = 0  # the block of the last effect
    for step in plan.steps:
        read = [made[s] for s in step.reads if s in made]
        if step.effect:
            at = last = max([last, *[block + pure for block, pure in read]])
        else:
            at = max([0, *[block for block, _ in read]])
        if at == len(blocks):
            blocks.append(([], []))
        blocks[at][not step.effect].append(step)
        for s in step.makes:
            if step.effect:  # a check returns what it has looked at
                made[s] = at, False
            else:
                made.setdefault(s, (at, True))
    return blocks


def reading(numbers: Sequence[Number]) -> Callable[[], list[Any]]:
    """A function of the values of numbers at present."""
    names: dict[str, Any] = {}
    known: dict[int, str] = {}
    lines: dict[str, str] = {}  # names by texts: what several depend on is computed once

    def name(value: object) -> str:
        if isinstance(value, Number):
            text = value.text(name)
            return lines.setdefault(text, f"n{len(lines)}")
        found = known.setdefault(id(value), f"x{len(known)}")
        names[found] = value
        return found

    found = [name(number) for number in numbers]
    text = "".join(f"    {key} = {text}\n" for text, key in lines.items())
    exec(f"def read():\n{text}    return [{', '.join(found)}]\n", names)
    return names["read"]


_serial = count()


def replayed(plan: Plan) -> Callable[..., tuple[Any, ...]]:
    """A function of the inputs and numbers of `plan` that makes its calls one by one.

    Its text has a line for each call and drops each array after its last use, so that the memory
    of a run is that of what is needed at the same time.
    """
    writer = _Writer(plan)
    place = f"<plan {next(_serial)}>"
    text = writer.text()
    linecache.cache[place] = len(text), None, text.splitlines(keepends=True), place
    made: dict[str, Any] = {}
    exec(compile(text, place, "exec"), writer.names, made)
    return made["plan"]


class _Writer:
    """The text of a plan, and the objects that its names stand for."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.names: dict[str, Any] = {}
        self.arrays: dict[int, str] = {}  # the name of the array of each slot
        self.calls: dict[int, str] = {}
        self.numbers = {n: f"n{i}" for i, n in enumerate(plan.numbers)}
        for slot in plan.inputs:
            self.arrays[slot] = f"a{slot}"
        for slot, array in plan.constants.items():
            self.arrays[slot] = f"c{slot}"
            self.names[f"c{slot}"] = array

    def text(self) -> str:
        plan = self.plan
        given = [*(f"a{s}" for s in plan.inputs), *self.numbers.values()]
        lines = [f"def plan({', '.join(given)}):"]
        last: dict[int, int] = {}
        for i, step in enumerate(plan.steps):
            for s in step.reads:
                last[s] = i
            for s in step.makes:
                last[s] = i
        for s in (*plan.inputs, *plan.outputs, *plan.constants):
            last[s] = -1
        arrays = self.arrays
        for i, step in enumerate(plan.steps):
            lines.append("    " + self.line(step))
            ends = {s for s in (*step.reads, *step.makes) if last[s] == i}
            if ends:
                lines.append(f"    {' = '.join(sorted([arrays[s] for s in ends]))} = None")
        lines.append(f"    return ({''.join(f'{self.arrays[s]}, ' for s in plan.outputs)})")
        return "\n".join(lines) + "\n"

    def line(self, step: Step) -> str:
        call = f"{self.name_of(step)}({', '.join(map(self.argument, step.args))})"
        if step.converted is not None:
            self.names["converted"] = step.converted
            call = f"converted({call})"
        if step.results is None:
            return call
        return f"{self.target(step.results)} = {call}"

    def name_of(self, step: Step) -> str:
        key = id(step.kernel)
        if (name := self.calls.get(key)) is None:
            name = self.calls[key] = f"{step.op}_{len(self.calls)}"
            self.names[name] = step.kernel
        return name

    def target(self, results: Any) -> str:
        if results is None:
            return "_"
        if type(results) is tuple:
            return f"({''.join(f'{self.target(r)}, ' for r in results)})"
        if results in self.arrays:  # a kernel that returned its argument
            return "_"
        name = self.arrays[results] = f"v{results}"
        return name

    def argument(self, value: Any) -> str:
        kind = type(value)
        if kind is Slot:
            return self.arrays[value]
        if value is None or kind is bool or kind is int or kind is str:
            return repr(value)
        if isinstance(value, Number):
            return self.numbers[value]
        if (kind is tuple or kind is list) and (slots_in(value) or _numbers_in(value, [])):
            parts = "".join([f"{self.argument(part)}, " for part in value])
            return f"({parts})" if kind is tuple else f"[{parts}]"
        if type(value) is list:  # a kernel may keep or change a list
            return f"[{', '.join(map(self.argument, value))}]"
        name = f"p{len(self.names)}"
        self.names[name] = value
        return name
