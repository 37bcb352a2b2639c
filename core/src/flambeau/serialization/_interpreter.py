"""An interpreter of the pickle language that builds data and calls only what a table lists.

Python's own unpickler cannot be made safe by overriding ``find_class``: it calls whatever it has on
its stack and sets state on anything.  This one knows the opcodes that checkpoints consist of.
"""

from __future__ import annotations

import struct
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any

from flambeau.serialization._budget import TEXT, Budget, BudgetError, shown, told
from flambeau.serialization._errors import CheckpointError, WeightsOnlyError
from flambeau.serialization._source import Source

_MARK = object()
_ENTRY = 100  # bytes of an entry of a dict, about


class Interpreter:
    """Runs one pickle out of `source`.

    Args:
        source: the bytes.
        find: gives the object for (module, name), or raises `KeyError`.
        may_call: whether an object that `find` gave may be called.
        may_build: whether ``BUILD`` may set state on an object of a class; those of the language
            itself are handled here.
        persistent: gives the object for a persistent id.
        budget: what the file may spend.
        encoding: for byte strings of Python 2; ``"bytes"`` leaves them as they are.
    """

    def __init__(
        self,
        source: Source,
        *,
        find: Callable[[str, str], Any],
        may_call: Callable[[Any], bool],
        may_build: Callable[[type], bool],
        persistent: Callable[[Any], Any],
        budget: Budget,
        encoding: str = "utf-8",
    ) -> None:
        self._source = source
        self._find = find
        self._may_call = may_call
        self._may_build = may_build
        self._persistent = persistent
        self._encoding = encoding
        self._budget = budget
        self._path = source.path
        self._at = 0

    def run(self, start: int = 0) -> tuple[Any, int]:
        """The object of the pickle that begins at `start`, and where the pickle ends.

        Raises:
            WeightsOnlyError: it contains what is not allowed.
            CheckpointError: it is damaged.
        """
        self._pos = self._at = start
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}
        self._data = data = self._source.begin(start + 1)
        handlers, end = _HANDLERS, len(data)
        try:
            while True:
                self._at = self._pos
                if self._pos >= end:
                    self._need(self._pos + 1)
                if data is not self._data:
                    data, end = self._data, len(self._data)
                op = data[self._pos]
                self._pos += 1
                if op == 0x2E:  # STOP
                    if len(self._stack) != 1 or self._stack[0] is _MARK:
                        raise self._damaged("the pickle ends with a wrong stack")
                    return self._stack.pop(), self._pos
                handler = handlers.get(op)
                if handler is None:
                    raise WeightsOnlyError(
                        f"pickle opcode 0x{op:02x} is not used by checkpoints", self._path, self._at
                    )
                handler(self)
        except (CheckpointError, MemoryError):
            raise
        except BudgetError as error:
            raise self._refused(str(error)) from None
        except Exception as error:
            raise self._damaged(told(error)) from error

    def _need(self, stop: int) -> None:
        """Have the bytes up to `stop` in memory."""
        if stop > self._source.size:
            raise self._damaged("the pickle is cut off")
        self._data = self._source.begin(stop)

    def _damaged(self, text: str) -> CheckpointError:
        return CheckpointError(f"damaged pickle: {text}", self._path, self._at)

    def _refused(self, text: str) -> WeightsOnlyError:
        return WeightsOnlyError(text, self._path, self._at)

    def _take(self, count: int) -> bytes:
        stop = self._pos + count
        if stop > len(self._data):
            self._need(stop)
        taken = bytes(self._data[self._pos : stop])
        self._pos = stop
        return taken

    def _number(self, code: str) -> int:
        size = struct.calcsize(code)
        return struct.unpack(code, self._take(size))[0]

    def _line(self) -> str:
        if self._pos + 512 > len(self._data):
            self._need(min(self._pos + 512, self._source.size))
        stop = bytes(self._data[self._pos : self._pos + 512]).find(b"\n")
        if stop < 0:
            raise self._damaged("a name does not end")
        text = self._take(stop + 1)[:-1].decode("utf-8")
        return text

    def _sized(self, code: str) -> bytes:
        return self._take(self._number(code))

    def _string(self, code: str) -> None:
        raw = self._sized(code)
        self._push(raw if self._encoding == "bytes" else raw.decode(self._encoding))

    def _push(self, value: object) -> None:
        self._stack.append(value)

    def _pop(self) -> Any:
        value = self._stack.pop()
        if value is _MARK:
            raise self._damaged("a value is missing")
        return value

    def _top(self) -> Any:
        value = self._stack[-1]
        if value is _MARK:
            raise self._damaged("a value is missing")
        return value

    def _items(self) -> list[Any]:
        stack = self._stack
        start = len(stack) - 1
        while stack[start] is not _MARK:
            start -= 1
            if start < 0:
                raise self._damaged("a mark is missing")
        items = stack[start + 1 :]
        del stack[start:]
        return items

    def _tuple(self, count: int) -> None:
        stack = self._stack
        items = tuple(stack[-count:])
        if len(items) < count or any(item is _MARK for item in items):
            raise self._damaged("a value is missing")
        del stack[-count:]
        self._nested(items)

    def _nested(self, value: Any) -> None:
        for part in value:
            if type(part) is tuple or type(part) is frozenset:
                self._budget.weigh(value)
                break
        self._stack.append(value)

    def _get(self, index: int) -> None:
        if index not in self._memo:
            raise self._damaged(f"nothing is remembered as {index}")
        self._push(self._memo[index])

    def _put(self, index: int) -> None:
        self._memo[index] = self._top()

    def _set(self, pairs: list[Any]) -> None:
        target = self._top()
        if type(target) not in (dict, OrderedDict, Counter):
            raise self._refused(f"SETITEM on a {type(target).__name__}, which is no dict")
        if len(pairs) % 2:
            raise self._damaged("a key without value")
        charge = self._budget.key
        for i in range(0, len(pairs), 2):
            key = pairs[i]
            if type(key) is not str or len(key) > 64:
                charge(target, key)
            target[key] = pairs[i + 1]

    def _extend(self, items: list[Any]) -> None:
        target = self._top()
        if type(target) is not list:
            raise self._refused(f"APPEND to a {type(target).__name__}, which is no list")
        target.extend(items)

    def _add(self, items: list[Any]) -> None:
        target = self._top()
        if type(target) is not set:
            raise self._refused(f"ADDITEMS to a {type(target).__name__}, which is no set")
        self._put_into(target, items)

    def _put_into(self, target: set[Any], items: list[Any]) -> None:
        for item in items:
            self._budget.key(target, item)
            target.add(item)

    def _frozen(self, items: list[Any]) -> None:
        held: set[Any] = set()
        self._put_into(held, items)
        self._nested(frozenset(held))

    def _global(self, module: str, name: str) -> None:
        if type(module) is not str or type(name) is not str:
            raise self._refused("a global whose name is no string")
        try:
            self._push(self._find(module, name))
        except KeyError:
            raise self._refused(
                f"{module[:TEXT]}.{name[:TEXT]} is not allowed with weights_only=True. If you "
                "trust it, name it in flambeau.serialization.add_safe_globals([...]); if you trust "
                "whoever made the file with everything that you may do on this computer, pass "
                "weights_only=False"
            ) from None

    def _reduce(self) -> None:
        args, func = self._pop(), self._pop()
        if type(args) is not tuple:
            raise self._damaged("arguments are no tuple")
        if not self._may_call(func):
            raise self._refused(
                f"a call of {shown(func)}, which is not allowed with weights_only=True"
            )
        self._push(func(*args))

    def _new(self) -> None:
        args, cls = self._pop(), self._pop()
        if not (isinstance(cls, type) and self._may_call(cls)) or type(args) is not tuple:
            raise self._refused(
                f"an object of {shown(cls)}, which is not allowed with weights_only=True"
            )
        self._push(cls.__new__(cls, *args))

    def _build(self) -> None:
        state, target = self._pop(), self._top()
        kind = type(target)
        if kind is OrderedDict:
            if type(state) is not dict:
                raise self._refused("the state of an OrderedDict is no dict")
            self._budget.copy(_ENTRY * len(state))
            target.__dict__.update(state)
        elif self._may_build(kind):
            if isinstance(state, (dict, list, tuple)):
                self._budget.copy(_ENTRY * len(state))
            _set_state(target, state)
        else:
            raise self._refused(f"BUILD on a {kind.__name__}, which has no state to set")

    def _protocol(self) -> None:
        version = self._take(1)[0]
        if version > 5:
            raise self._damaged(f"pickle protocol {version} is unknown")

    def _stack_global(self) -> None:
        name, module = self._pop(), self._pop()
        self._global(module, name)

    def _long(self, code: str) -> None:
        size = self._number(code)
        if not 0 <= size <= 1024:
            raise self._refused(f"an integer of {size} bytes")
        self._push(int.from_bytes(self._take(size), "little", signed=True))


def _set_state(target: Any, state: Any) -> None:
    """What ``BUILD`` means for an object of a class that the user has allowed."""
    if hasattr(target, "__setstate__"):
        target.__setstate__(state)
        return
    slots = None
    if type(state) is tuple and len(state) == 2:
        state, slots = state
    if state:
        target.__dict__.update(state)
    for name, value in (slots or {}).items():
        setattr(target, name, value)


_Handler = Callable[[Interpreter], Any]


def _pairs(m: Interpreter) -> None:
    items = m._items()
    m._push({})
    m._set(items)


def _one_item(m: Interpreter) -> None:
    value, key = m._pop(), m._pop()
    m._set([key, value])


def _append(m: Interpreter) -> None:
    item = m._pop()
    m._extend([item])


_HANDLERS: dict[int, _Handler] = {
    ord("("): lambda m: m._push(_MARK),
    ord("0"): lambda m: m._stack.pop(),
    ord("1"): lambda m: m._items(),
    ord("2"): lambda m: m._push(m._top()),
    ord("N"): lambda m: m._push(None),
    0x88: lambda m: m._push(True),
    0x89: lambda m: m._push(False),
    ord("J"): lambda m: m._push(m._number("<i")),
    ord("K"): lambda m: m._push(m._number("<B")),
    ord("M"): lambda m: m._push(m._number("<H")),
    ord("G"): lambda m: m._push(m._number(">d")),
    0x8A: lambda m: m._long("<B"),
    0x8B: lambda m: m._long("<i"),
    ord("X"): lambda m: m._push(m._sized("<I").decode("utf-8", "surrogatepass")),
    0x8C: lambda m: m._push(m._sized("<B").decode("utf-8", "surrogatepass")),
    0x8D: lambda m: m._push(m._sized("<Q").decode("utf-8", "surrogatepass")),
    ord("T"): lambda m: m._string("<I"),
    ord("U"): lambda m: m._string("<B"),
    ord("B"): lambda m: m._push(m._sized("<I")),
    ord("C"): lambda m: m._push(m._sized("<B")),
    0x8E: lambda m: m._push(m._sized("<Q")),
    0x96: lambda m: m._push(bytearray(m._sized("<Q"))),
    ord(")"): lambda m: m._push(()),
    ord("]"): lambda m: m._push([]),
    ord("}"): lambda m: m._push({}),
    0x8F: lambda m: m._push(set()),
    ord("t"): lambda m: m._nested(tuple(m._items())),
    ord("l"): lambda m: m._push(m._items()),
    ord("d"): _pairs,
    0x85: lambda m: m._tuple(1),
    0x86: lambda m: m._tuple(2),
    0x87: lambda m: m._tuple(3),
    ord("a"): _append,
    ord("e"): lambda m: m._extend(m._items()),
    ord("s"): _one_item,
    ord("u"): lambda m: m._set(m._items()),
    0x90: lambda m: m._add(m._items()),
    0x91: lambda m: m._frozen(m._items()),
    ord("h"): lambda m: m._get(m._number("<B")),
    ord("j"): lambda m: m._get(m._number("<I")),
    ord("q"): lambda m: m._put(m._number("<B")),
    ord("r"): lambda m: m._put(m._number("<I")),
    0x94: lambda m: m._put(len(m._memo)),
    0x95: lambda m: m._take(8),
    0x80: lambda m: m._protocol(),
    ord("c"): lambda m: m._global(m._line(), m._line()),
    0x93: lambda m: m._stack_global(),
    ord("R"): lambda m: m._reduce(),
    0x81: lambda m: m._new(),
    ord("b"): lambda m: m._build(),
    ord("Q"): lambda m: m._push(m._persistent(m._pop())),
}
