"""What a function can reach: its tensors, and the plain values on which its plan depends.

A plan holds for the objects that its function met.  This walk finds them beforehand, from the
function's closure, the globals that its code names, and the objects in these; and it says what has
to be the same when the plan is to be used again.
"""

from __future__ import annotations

import dis
import enum
import io
import random
import sys
import types
from collections import ChainMap, UserDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import is_, itemgetter
from typing import TYPE_CHECKING, Any

from flambeau._memory.record import is_tensor
from flambeau._random.generator import Generator
from flambeau._types.device import device as Device
from flambeau._types.dtype import dtype as DType
from flambeau._types.size import Size

if TYPE_CHECKING:
    from flambeau._tensor.tensor import Tensor


__all__ = ["Check", "Reach", "changes", "is_plain"]

_PLAIN = (bool, int, float, complex, str, bytes, type(None), DType, Device, enum.Enum, Size, range)
_MAPPINGS = (dict, UserDict, ChainMap, types.MappingProxyType)
# What attributes are read and set by that are given as text.
_BY_NAME = frozenset("getattr setattr delattr __setattr__ __delattr__ vars __dict__".split())
_AT_REST = frozenset(
    """__init__ __new__ __del__ __repr__ __str__ __reduce__ __reduce_ex__ __getstate__ __setstate__
    __init_subclass__ __doc__ __module__ __dict__ __weakref__ __annotations__""".split()
)  # special names that no step of a program calls
_MAKES = ("__new__", "__init__")  # but for those of classes that its code names
_MANY = 1000  # a longer container of the user's is data, which a step is given as an argument
_MOST = 50_000  # objects


@dataclass(frozen=True)
class Check:
    """What has to hold for a plan: an expression of what can be read and what was read.

    It may use `same`, which compares values.
    """

    text: str
    get: Any
    held: Any
    name: str

    def holds(self) -> bool:
        """Whether it is so; also False if it can no longer be read or compared."""
        try:
            text = self.text.format(get="get", held="held")
            return eval(text, {"get": self.get, "held": self.held, "same": same})
        except Exception:
            return False


def same(now: Sequence[Any], held: Sequence[Any]) -> bool:
    """Whether these are the same objects, or plain values that no program can tell apart."""
    return len(now) == len(held) and (all(map(is_, now, held)) or all(map(_alike, now, held)))


def _alike(a: Any, b: Any) -> bool:
    """Whether two values are one; 2 and 2.0 are two, and so are zeros of both signs."""
    if a is b:
        return True
    if type(a) is not type(b) or not is_plain(a):
        return False
    if type(a) is tuple:
        return same(a, b)
    return a == b and (bool(a) or repr(a) == repr(b))


def _compared(values: str, held: Iterable[Any]) -> str:
    """The text of a check that `values` are what was held: by ``==`` where that says so.

    It asks first whether two are the same object, and takes a quarter of the time.
    """
    strictly = any(map(_has_equals, held))
    return f"same({values}, {{held}})" if strictly else f"{values} == {{held}}"


def _has_equals(value: Any) -> bool:
    """Whether something else may be equal to a value: a number of another type, a tensor."""
    if isinstance(value, (int, float, complex)):
        return True
    if type(value) is tuple:
        return any(map(_has_equals, value))
    if is_tensor(value):  # of more elements nobody can say whether two are equal: an error
        return value.numel() <= 1
    return type(value).__eq__ is not object.__eq__ and not is_plain(value)


def changes(checks: Sequence[Check]) -> Callable[[], bool]:
    """A function that tells whether one of these does not hold."""
    names: dict[str, Any] = {"same": same}
    parts, strictly, values = ["True"], [], []
    for i, check in enumerate(checks):
        names[f"g{i}"], names[f"h{i}"] = check.get, check.held
        text = check.text.format(get=f"g{i}", held=f"h{i}")
        if text.startswith(before := "same(") and text.endswith(after := f", h{i})"):
            strictly.append(f"*{text[len(before) : -len(after)]}, same")  # what no program has
            values += [*check.held, same]
        else:
            parts.append(text)
    if strictly:  # all at once, which takes a third of the time
        names["all_held"] = tuple(values)
        parts.append(f"same(({', '.join(strictly)}), all_held)")
    lines = "\n        and ".join(parts)
    text = f"def changed():\n    return not (\n        {lines}\n    )\n"
    made: dict[str, Any] = {}
    exec(text, names, made)
    return made["changed"]


class Reach:
    """The walk, and what it found.

    An object may have a method ``__plan__(reach)`` that says by the methods below what of it
    matters; modules, optimisers and schedulers do.

    Attributes:
        tensors: those that were found, by identity, with their names.
        actions: methods that a run calls again at their place, since they keep count of runs:
            (object, name of the method, groups that it changes).
        groups: (parameters, group) of optimisers; options of a group may change between runs.
        options: what stood in each of the groups.
        truths: tensors whose truth decides what the function does.
        refused: why there can be no plan, or None.
        data: the name of a container so long that its values are not watched, or None.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        given: Iterable[Any] = (),
        followed: Iterable[tuple[Any, str]] = (),
    ) -> None:
        """Walk from a function, and from the objects that it is given.

        Entries that are `followed` may be other numbers in every run.
        """
        self.followed = {(id(mapping), key) for mapping, key in followed}
        self.tensors: dict[int, tuple[Any, str]] = {}
        self.actions: list[tuple[Any, str, Sequence[Any]]] = []
        self.groups: list[tuple[list[Any], dict[str, Any]]] = []
        self.options: list[dict[str, Any]] = []
        self.truths: list[Tensor] = []
        self.refused: str | None = None
        self.data: str | None = None
        self._names: set[str] = set()
        self._asks_types = False  # by ``type(x)`` or ``x.__class__``
        self._seen: dict[int, Any] = {}
        self.checks: list[Check] = []
        self._entries: dict[int, tuple[Mapping[Any, Any], dict[Any, Any], str]] = {}
        self._ours: set[int] = set()  # mappings, by identity
        self._empty: list[Any] = []
        self._contents: list[tuple[Any, list[Any]]] = []  # of containers that may get others
        self._objects: list[tuple[Any, str, set[str]]] = []  # with the names looked at so far
        self._walked = {id(getattr(function, "__func__", function))}  # whatever module they are of
        self._waiting: list[tuple[Any, str]] = [(each, _name_of(each)) for each in given]
        self._waiting.append((function, _name_of(function)))
        while (self._waiting or self._named()) and self.refused is None:
            value, name = self._waiting.pop()
            self._visit(value, name)
            if len(self._seen) > _MOST:
                self.refuse(f"more than {_MOST} objects are within reach of the function")
        self._gather()

    def refuse(self, why: str) -> None:
        """Say why there can be no plan."""
        if self.refused is None:
            self.refused = why

    def entries(
        self, mapping: Mapping[str, Any], keys: Iterable[str], name: str, ours: bool = False
    ) -> None:
        """The plan holds while these entries are what they are now; they are walked through.

        Numbers of what is `ours` are read by code that takes 2 and 2.0 for the same.
        """
        if ours:
            self._ours.add(id(mapping))
        for key in keys:
            self.entry(mapping, key, name)

    def entry(self, mapping: Mapping[Any, Any], key: object, name: str, walk: bool = True) -> None:
        """The plan holds while an entry is what it is now, which is walked through."""
        value = mapping[key]
        if (id(mapping), key) in self.followed:
            return
        self._entries.setdefault(id(mapping), (mapping, {}, name))[1][key] = value
        if walk and not is_plain(value):
            self.walk(value, f"{name}.{key}" if isinstance(key, str) else name)

    def attributes(self, value: object, name: str, but: Iterable[str] = ()) -> None:
        """Those attributes and methods of an object matter that the user's code names."""
        self._objects.append((value, name, set(but)))

    def truth(self, tensor: Tensor, name: str) -> None:
        """The plan holds while ``bool(tensor)`` is what it is now: see `decisions.known`."""
        self.truths.append(tensor)
        self.checks.append(Check("bool({get}) is {held}", tensor, bool(tensor), name))

    def children(self, mapping: Mapping[Any, Any], name: str) -> None:
        """The plan holds while a mapping has these values; they are walked through."""
        if not mapping:
            self._empty.append(mapping)
            return
        self._values(mapping.values, mapping.values(), name)
        for key, value in mapping.items():
            self.walk(value, f"{name}.{key}" if isinstance(key, str) else name)

    def items(self, values: list[Any] | deque[Any], name: str) -> None:
        """The plan holds while a list has these elements; they are walked through."""
        if not values:
            self._empty.append(values)
            return
        self.same(values, name)
        self._contents.append((values, self.checks[-1].held))
        for i, value in enumerate(values):
            self.walk(value, f"{name}[{i}]")

    def same(self, values: Sequence[Any], name: str) -> None:
        """The plan holds while a list has these elements, which are not walked through."""
        self._values(values.__iter__, values, name)

    def empty(self, container: object, name: str) -> None:
        """There can be a plan only while `container` is empty."""
        if container:
            self.refuse(f"there are {name}")
        elif id(container) not in self._seen:
            self._seen[id(container)] = container
            self._empty.append(container)

    def group(self, params: list[Any], group: dict[str, Any]) -> None:
        """A group of an optimiser, whose options a plan reads at every run."""
        self.groups.append((params, group))
        self.options.append(dict(group))

    def names(self, name: str) -> bool:
        """Whether the user's code names an attribute."""
        return name in self._names

    def action(self, owner: object, method: str, groups: Sequence[Any] = ()) -> None:
        """A method that every run is to call again where the function called it.

        The options of the `groups` are read before the run: they may not be used after the call.
        """
        self.actions.append((owner, method, groups))

    def walk(self, value: object, name: str) -> None:
        """Look at `value` later."""
        self._waiting.append((value, name))

    def changed(self) -> str | None:
        """The name of what is no longer as it was, or None."""
        return next((check.name for check in self.checks if not check.holds()), None)

    def counted(self) -> bool:
        """Whether what is no longer as it was is a number that is another now."""
        get, held = next((c.get, c.held) for c in self.checks if not c.holds())
        try:
            now: Any = get() if callable(get) else [get.cell_contents]
            pairs = [(a, b) for a, b in zip(now, held, strict=True) if not _alike(a, b)]
            return all(type(x) in (int, float) for pair in pairs for x in pair)
        except Exception:  # it is no list of values
            return False

    def generators(self) -> list[Generator]:
        """Those that were found."""
        return [value for value in self._seen.values() if type(value) is Generator]

    def back(self) -> None:
        """Put back what attributes and containers were, for a run that is made again."""
        for mapping, held, _ in self._entries.values():
            for key, value in held.items():
                if isinstance(mapping, dict) and mapping.get(key) is not value:
                    mapping[key] = value
        for container, held in self._contents:
            if isinstance(container, (list, deque)):
                if not (len(container) == len(held) and all(map(is_, container, held))):
                    container.clear()
                    container.extend(held)
            elif isinstance(container, set):
                container.intersection_update(held)
                container.update(held)
            elif isinstance(container, dict):
                for key in {*container}.difference(held):
                    del container[key]
        for container in filter(len, self._empty):
            container.clear()

    def forget(self) -> None:
        """Let go of what was seen on the way."""
        self.tensors.clear()
        self._seen.clear()

    def moved(self) -> list[tuple[Any, str]]:
        """The entries that are other numbers now, if nothing else is another.

        There are none in a program that asks what is of which type: a number that is followed
        is of another.
        """
        if self._asks_types:
            return []
        held = [(mapping, before) for mapping, before, _ in self._entries.values()]
        held += [(g, o) for (_, g), o in zip(self.groups, self.options, strict=True)]
        found: dict[tuple[int, str], tuple[Any, str]] = {}
        for mapping, before in held:
            for key, value in before.items():
                now = mapping.get(key)
                if now is value or _alike(now, value) or (id(mapping), key) in self.followed:
                    continue
                of_numbers = type(now) is type(value) and type(now) in (int, float)
                if not (of_numbers and type(key) is str and isinstance(mapping, dict)):
                    return []
                found[id(mapping), key] = mapping, key
        return [*found.values()] if all(check.holds() for check in self._besides) else []

    def _values(self, get: Callable[[], Iterable[Any]], held: Iterable[Any], name: str) -> None:
        self.checks.append(Check(_compared("[*{get}()]", held), get, [*held], name))

    def _gather(self) -> None:
        """The entries as checks, one for each mapping."""
        self._besides = [*self.checks]
        for mapping, held, name in self._entries.values():
            keys = [*held]
            get = partial(itemgetter(*keys, keys[0]), mapping)  # of one it would be no tuple
            values = tuple([held[key] for key in (*keys, keys[0])])
            of_ours = id(mapping) in self._ours and not any(map(is_tensor, values))
            text = "{get}() == {held}" if of_ours else _compared("{get}()", values)
            self.checks.append(Check(text, get, values, name))
        if self._empty:
            some = tuple(self._empty)
            self.checks.append(Check("any({get}) is {held}", some, False, "what was empty"))
            self._besides.append(self.checks[-1])

    def _visit(self, value: object | None, name: str) -> None:
        if is_plain(value) or id(value) in self._seen:
            return
        self._seen[id(value)] = value
        if is_tensor(value):
            self._tensor(value, name)
        elif (told := getattr(type(value), "__plan__", None)) is not None:
            told(value, self, name)
        elif isinstance(value, types.FunctionType):
            self._function(value, name)
        elif isinstance(value, types.MethodType):
            self.walk(value.__func__, name)
            self.walk(value.__self__, name.rpartition(".")[0] or name)
        elif isinstance(value, partial):
            self.walk(value.func, name)
            for part in (*value.args, *value.keywords.values()):
                self.walk(part, name)
        elif isinstance(value, (*_MAPPINGS, list, tuple, set, frozenset, deque)):
            if len(value) > _MANY:
                self._long(value, name)
            elif isinstance(value, _MAPPINGS):
                self._mapping(value, name)
            else:
                self._sequence(value, name)
        elif isinstance(value, types.ModuleType):
            if _is_users(value):
                self.attributes(value, name)
        elif isinstance(value, type):
            self._asks_types |= value is type
            if not _is_library(value):
                self.attributes(value, name)
        elif not _is_library(type(value)):
            self.attributes(value, name)
        else:
            self._others(value, name)

    def _others(self, value: Any, name: str) -> None:
        """An object of Python's own or of another library."""
        if isinstance(value, Iterator) and not isinstance(value, io.IOBase):
            self.refuse(f"{name} is an iterator, which gives something else every time")
        elif (state := _stream(value)) is not None:
            self.checks.append(Check("{get}() == {held}", state, state(), name))
        elif (held := _bytes(value)) is not None:
            self.checks.append(Check("bytes({get}) == {held}", value, held, name))
        elif _is_memory(value):
            self.data = name
        elif hasattr(value, "__dict__") and type(value).__module__.partition(".")[0] != "flambeau":
            self.attributes(value, name)

    def _tensor(self, t: Tensor, name: str) -> None:
        if t.is_sparse:
            self._parts(t, name)
            return
        self.tensors[id(t)] = t, name
        if t._grad is not None:
            self.tensors.setdefault(id(t._grad), (t._grad, f"{name}.grad"))
        if t._base is not None:
            self.walk(t._base, f"{name}._base")

    def _parts(self, t: Any, name: str) -> None:
        """The tensors that a sparse one consists of, which has no array of its own."""
        if t.requires_grad:
            self.refuse(f"{name} is sparse and requires a gradient")
            return
        held = t._where, t._stored, t._sorted
        self.checks.append(
            Check(_compared("({get}._where, {get}._stored, {get}._sorted)", held), t, held, name)
        )
        self.walk(t._where, f"{name}.indices()")
        self.walk(t._stored, f"{name}.values()")

    def _function(self, function: types.FunctionType, name: str) -> None:
        wrapped = getattr(function, "__wrapped__", None)
        if wrapped is not None:
            self.walk(wrapped, name)
        if id(function) not in self._walked and _is_library(function):
            return
        used, attributes = _names_in(function.__code__)
        self._names |= used | attributes
        home = sys.modules.get(function.__globals__.get("__name__", ""))  # where it was written
        asks = "type" in used or "__class__" in attributes
        self._asks_types |= asks and (home is None or _is_users(home))
        cells = function.__closure__ or ()
        for key, cell in zip(function.__code__.co_freevars, cells, strict=True):
            try:
                value = cell.cell_contents
            except ValueError:  # not bound yet
                continue
            self.checks.append(
                Check(_compared("({get}.cell_contents,)", (value,)), cell, (value,), key)
            )
            self.walk(value, key)
        names = function.__globals__
        for key in sorted(used & names.keys()):
            if hasattr(function, "__source__"):  # generated, with names that nobody binds anew
                self.walk(names[key], key)
            else:
                self.entry(names, key, key)
        for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self.walk(value, name)
        if function.__dict__:
            self.attributes(function, name)

    def _named(self) -> bool:
        """Walk to what objects have under names that were found; whether there was anything."""
        for value, name, done in self._objects:
            own = {} if isinstance(value, type) else getattr(value, "__dict__", {})
            for key in [key for key in own if key in self._names and key not in done]:
                done.add(key)
                self.entry(own, key, name)
            if not isinstance(value, types.ModuleType):
                self._members(value, name, done)
        return bool(self._waiting)

    def _members(self, value: object, name: str, done: set[str]) -> None:
        """Of the classes that the user wrote, what is named, and what Python calls by itself."""
        made = isinstance(value, type)
        for cls in value.__mro__ if made else type(value).__mro__:
            ours = cls.__module__.partition(".")[0] == "flambeau"
            if cls is object or (ours if hasattr(cls, "__plan__") else _is_library(cls)):
                continue
            for key, member in vars(cls).items():
                called = _is_called(key) or (made and key in _MAKES)
                if key in done or not (key in self._names or called):
                    continue
                done.add(key)
                if isinstance(member, (staticmethod, classmethod)):
                    member = member.__func__
                elif isinstance(member, property):
                    for accessor in filter(None, (member.fset, member.fdel)):
                        self._walked.add(id(accessor))
                        self.walk(accessor, f"{cls.__name__}.{key}")
                    member = member.fget
                if isinstance(member, types.FunctionType):
                    self._walked.add(id(member))
                    self.walk(member, f"{cls.__name__}.{key}")
                elif not key.startswith("__"):
                    get = partial(getattr, value, key, None)  # which may get one of its own instead
                    held = get()
                    self.checks.append(
                        Check(_compared("({get}(),)", (held,)), get, (held,), f"{name}.{key}")
                    )
                    self.walk(held, f"{name}.{key}")

    def _long(self, value: Any, name: str) -> None:
        """A container of many: of plain values these matter, of others how many there are."""
        keyed = isinstance(value, _MAPPINGS)
        if len(value) <= _MOST and all(map(is_plain, value.values() if keyed else value)):
            held = [*value, *value.values()] if keyed else [*value]
            text = "[*{get}, *{get}.values()]" if keyed else "[*{get}]"
            self.checks.append(Check(_compared(text, held), value, held, name))
            return
        self.data = name
        self.checks.append(Check("len({get}) == {held}", value, len(value), name))

    def _mapping(self, value: Mapping[Any, Any], name: str) -> None:
        self.checks.append(Check(_compared("[*{get}]", value), value, [*value], name))
        self._contents.append((value, self.checks[-1].held))
        for key in list(value):
            self.entry(value, key, f"{name}[{key!r}]")

    def _sequence(self, value: Any, name: str) -> None:
        if isinstance(value, (list, deque)):
            self.items(value, name)
            return
        if isinstance(value, set):
            self.checks.append(Check(_compared("[*{get}]", value), value, [*value], name))
            self._contents.append((value, self.checks[-1].held))
        for i, held in enumerate(value):
            self.walk(held, f"{name}[{i}]")


def _is_called(name: str) -> bool:
    """Whether a method is called without being named."""
    if name in ("forward", "backward", "setup_context"):
        return True
    return name[:2] == "__" and name not in _AT_REST


def _stream(value: Any) -> Callable[[], object] | None:
    """What tells how far a generator of Python's or NumPy's random numbers has come."""
    if isinstance(value, random.Random):
        return value.getstate
    bits = getattr(value, "bit_generator", None)
    return None if bits is None else lambda: str(bits.state)


def _bytes(value: Any) -> bytes | None:
    """The memory of an array of numbers that is none of a tensor; None if it is large or none."""
    try:
        return bytes(value) if memoryview(value).nbytes <= 8 * _MANY else None
    except (TypeError, ValueError, BufferError):
        return None


def _is_memory(value: Any) -> bool:
    try:
        memoryview(value)
    except (TypeError, ValueError, BufferError):
        return False
    return True


def is_plain(value: object | None) -> bool:
    """Whether a value is told by ``==`` and has nothing in it that may change."""
    if isinstance(value, _PLAIN):
        return True
    return type(value) is tuple and len(value) <= _MANY and all(map(is_plain, value))


def _names_in(code: types.CodeType) -> tuple[set[str], set[str]]:
    """The globals that a code object and those in it name, and the attributes."""
    found: set[str] = set()
    for line in dis.get_instructions(code):
        if line.opname in ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL"):
            found.add(line.argval)
    attributes = set(code.co_names) - found
    if not _BY_NAME.isdisjoint(code.co_names):
        attributes |= {text for text in code.co_consts if isinstance(text, str)}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            inner, of_inner = _names_in(constant)
            found |= inner
            attributes |= of_inner
    return found, attributes


def _name_of(value: object) -> str:
    return getattr(value, "__qualname__", type(value).__name__)


def _is_library(value: object) -> bool:
    """Whether a class or function is of flambeau, Python itself or an installed package."""
    module = getattr(value, "__module__", None) or ""
    top = module.partition(".")[0]
    if top == "flambeau" or (top in sys.stdlib_module_names and top != "__main__"):
        return True
    found = sys.modules.get(module)
    return found is None or not _is_users(found)


def _is_users(module: types.ModuleType) -> bool:
    """Whether a module is part of a program, not of an installed package."""
    name = module.__name__.partition(".")[0]
    if name == "flambeau" or (name in sys.stdlib_module_names and name != "__main__"):
        return False
    file = getattr(module, "__file__", None)
    return module.__name__ == "__main__" or (file is not None and "site-packages" not in file)
