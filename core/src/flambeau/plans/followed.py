"""Numbers of a program that count: each run of a plan finds and leaves them as the function would.

An optimiser written by a user counts its steps in Python, ``state["step"] += 1``, and computes
rates from the count.  While its step is captured, such an entry of a mapping or attribute of an
object holds a stand-in that knows how it is computed.  Nothing loses track of it silently: it is no
number of Python's, so whatever wants one has to ask for it, which refuses the plan.
"""

from __future__ import annotations

import gc
import math
import operator
import sys
import types
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from flambeau._memory.record import is_tensor
from flambeau._types.trees import tree_leaves, tree_map
from flambeau.plans.numbers import Computed
from flambeau.plugin.plan import Option

if TYPE_CHECKING:
    from flambeau._types.dtype import dtype as DType
    from flambeau.plans.capture import Capture
    from flambeau.plugin.plan import Number

__all__ = [
    "Followed",
    "bare",
    "decided_width",
    "followed_in",
    "is_lost",
    "lose",
    "number_of",
    "plainly",
    "sizes_by",
    "to_the_end",
]

_MOST = 100  # parts of a number: of more a run had better call the function
_BINARY = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "truediv": "/",
    "floordiv": "//",
    "mod": "%",
    "pow": "**",
}
_POWER = "{} ** {}"
_COMPARED = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
# Called by Python, or by functions of its own and of others, which go on with a plain number.
_ASKED = "float int trunc hash str repr format divmod rdivmod reduce_ex".split()
_ASKED_WHOLE = "index invert lshift rlshift rshift rrshift and rand or ror xor rxor".split()
_OF_MATH = (
    "floor ceil fabs sqrt pow exp expm1 log log10 log1p log2 sin cos tan tanh hypot "
    "isfinite isinf isnan"
).split()


class Followed:
    """A number in the place of itself, which knows how it is computed."""

    __slots__ = ("__weakref__", "_capture", "_number", "_value")

    def __init__(self, value: float, number: Number | None, capture: Capture) -> None:
        self._value, self._number, self._capture = value, number, capture
        capture.stand_ins.append(weakref.ref(self))

    @property
    def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return type(self._value)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._value, name)
        _asked(self, name)
        return found

    def __bool__(self) -> bool:
        return _decided("bool({})", bool(self._value), (self,))

    def __round__(self, digits: int | None = None) -> Any:
        return _made("round({}, {})", round(self._value, digits), (self, digits))

    def __deepcopy__(self, memo: object) -> float:
        _asked(self, "copied")
        return self._value

    def __array__(self, *args: Any, **named: Any) -> Any:
        _asked(self, "as an array")
        return sys.modules["numpy"].asarray(self._value)  # which calls this


class _Whole(Followed):
    """The same of a whole number."""

    __slots__ = ()


def bare(result: Any) -> Any:
    """What a function returned, with plain numbers."""
    if any(isinstance(leaf, Followed) for leaf in tree_leaves(result)):
        return tree_map(plainly, result)
    return result


def plainly(value: Any) -> Any:
    """A value with numbers in the place of those that are followed."""
    if isinstance(value, Followed):
        return value._value
    kind = type(value)
    if kind is tuple or kind is list:
        return kind([plainly(part) for part in value])
    return value


@contextmanager
def followed_in(capture: Capture, entries: Sequence[tuple[Any, str]]) -> Iterator[None]:
    """A block in which these entries of mappings hold numbers that are followed.

    Behind it they hold plain ones, and the capture has calls that leave them so.
    """
    if not entries:
        yield
        return
    former = {name: getattr(math, name) for name in _OF_MATH}
    try:
        for mapping, key in entries:
            root, value = Option(mapping, key), mapping[key]
            capture.followed.append([mapping, key, root, type(value)])
            mapping[key] = _follow(value, root, capture)
        for name, function in former.items():
            setattr(math, name, _of_math(function))
        yield
        capture.set_numbers()
    finally:
        to_the_end(partial(_let_go, capture, entries, former))


def to_the_end(restore: Callable[[], None]) -> None:
    """Call what puts things back, once more if an interrupt comes into it."""
    interrupt = None
    while True:
        try:
            restore()
            break
        except BaseException as error:
            interrupt = error
    if interrupt is not None:
        raise interrupt


def _let_go(
    capture: Capture, entries: Sequence[tuple[Any, str]], former: dict[str, Callable[..., Any]]
) -> None:
    """End what `followed_in` began."""
    for name, function in former.items():
        setattr(math, name, function)
    for mapping, key in entries:
        if key in mapping:
            mapping[key] = plainly(mapping[key])
    capture.follows = False
    for stand_in in [found for ref in capture.stand_ins if (found := ref()) is not None]:
        capture.refuse("a number that changes is kept where it is not seen")
        _put(stand_in, stand_in._value)
    capture.stand_ins.clear()


def _put(old: Any, new: Any) -> None:
    """Put one value into the place of another wherever a container or variable holds that."""
    for holder in gc.get_referrers(old):
        _put_into(holder, old, new)


def _put_into(holder: Any, old: Any, new: Any) -> None:
    if type(holder) is types.CellType:
        holder.cell_contents = new
    elif isinstance(holder, dict):
        for key in [key for key, value in holder.items() if value is old]:
            holder[key] = new
        if any(key is old for key in holder):
            items = [(new if key is old else key, value) for key, value in holder.items()]
            holder.clear()
            holder.update(items)
    elif isinstance(holder, (list, deque)):
        for place in [i for i, value in enumerate(holder) if value is old]:
            holder[place] = new
    elif isinstance(holder, set):
        holder.discard(old)
        holder.add(new)
    elif type(holder) is tuple:
        _put(holder, tuple([new if value is old else value for value in holder]))
    else:
        if isinstance(own := getattr(holder, "__dict__", None), dict):
            _put_into(own, old, new)
        for place in [member for cls in type(holder).__mro__ for member in vars(cls).values()]:
            if type(place) is types.MemberDescriptorType and _held(place, holder) is old:
                with suppress(AttributeError, TypeError):  # of one that is not written to
                    place.__set__(holder, new)


def _held(place: types.MemberDescriptorType, holder: Any) -> Any:
    try:
        return place.__get__(holder)
    except AttributeError:  # it holds nothing
        return None


def sizes_by(op: str, args: tuple[Any, ...]) -> bool:
    """Whether a number that is followed may be a size or a place, which no plan changes."""
    whole = op != "full" and any(isinstance(a, _Whole) for a in args)  # of that it is the value
    return whole or any(_holds_one(a) for a in args if not isinstance(a, Followed))


def _holds_one(value: Any) -> bool:
    if type(value) is tuple or type(value) is list:
        return any(map(_holds_one, value))
    return isinstance(value, Followed)


def number_of(value: Any) -> Any:
    """How a number is computed, or the value itself if it is not followed."""
    if not isinstance(value, Followed):
        return value
    if value._number is None:
        value._capture.refuse("a schedule's step() comes before what uses its rate")
    return value._number


def lose(capture: Capture, groups: Sequence[Any]) -> None:
    """Follow numbers of these groups no further: a call of the plan has set them."""
    for mapping, key, *_ in capture.followed:
        if any(mapping is group for group in groups):
            mapping[key] = _follow(plainly(mapping[key]), None, capture)


def is_lost(value: object) -> bool:
    """Whether `lose` has left a number."""
    return isinstance(value, Followed) and value._number is None


def _follow(value: float, number: Number | None, capture: Capture) -> Followed:
    return (_Whole if type(value) is int else Followed)(value, number, capture)


def decided_width(number: Any, dtype: DType) -> bool:
    """Whether a whole number has 64 bits; where integers are made of it, decide if that is zero.

    One that is a divisor raises.
    """
    if dtype.category == 1:
        _ = number % (1 << 8 * dtype.itemsize) == 0
    return -(1 << 63) <= number < 1 << 64


def _listens(capture: Capture) -> bool:
    return capture.follows and capture.listens


def _asked(number: Followed, how: str) -> None:
    """Refuse the plan, which does not have the number that is asked for."""
    if _listens(number._capture):
        number._capture.refuse(f"a number that changes was read ({how})")


def _made(form: str, result: Any, parts: tuple[Any, ...]) -> Any:
    """What a function made of numbers, of which one is followed."""
    capture = next(part._capture for part in parts if isinstance(part, Followed))
    if not _listens(capture):
        return result
    number = Computed(form, tuple(map(number_of, parts)))
    if type(result) not in (int, float) or number.size > _MOST:
        capture.refuse("a number that changes makes one that cannot be followed")
        return result
    if form == _POWER:  # of which sort it is depends on signs
        capture.decisions.append((Computed("type({})", (number,)), type(result)))
    return _follow(result, number, capture)


def _decided(form: str, truth: bool, parts: tuple[Any, ...]) -> bool:
    """A decision by numbers: the plan is of runs that decide alike."""
    capture = next(part._capture for part in parts if isinstance(part, Followed))
    if _listens(capture):
        capture.decisions.append((Computed(form, tuple(map(number_of, parts))), truth))
    return truth


def _binary(
    sign: str, function: Callable[..., Any], then: Callable[..., Any], reflected: bool = False
) -> Callable[..., Any]:
    form = f"{{}} {sign} {{}}"

    def run(self: Followed, other: object) -> Any:
        if is_tensor(other):
            return NotImplemented
        if not isinstance(other, Followed) and type(other) not in (int, float, bool):
            _asked(self, f"with a {type(other).__name__}")
            return function(other, self._value) if reflected else function(self._value, other)
        parts = (other, self) if reflected else (self, other)
        return then(form, function(*map(plainly, parts)), parts)

    return run


def _unary(form: str, function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self: _made(form, function(self._value), (self,))


def _of_math(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        result = function(*map(plainly, args))
        if not any(isinstance(a, Followed) for a in args):
            return result
        form = "{}(" + ", ".join("{}" for _ in args) + ")"
        return (_decided if type(result) is bool else _made)(form, result, (function, *args))

    return run


def _plain(name: str) -> Callable[..., Any]:
    def run(self: Followed, *args: Any) -> Any:
        _asked(self, name)
        return getattr(self._value, name)(*map(plainly, args))

    return run


for _name, _sign in _BINARY.items():
    _function = getattr(operator, _name)
    setattr(Followed, f"__{_name}__", _binary(_sign, _function, _made))
    setattr(Followed, f"__r{_name}__", _binary(_sign, _function, _made, reflected=True))
for _name, _sign in _COMPARED.items():
    setattr(Followed, f"__{_name}__", _binary(_sign, getattr(operator, _name), _decided))
for _name, _form in {"neg": "-{}", "pos": "+{}", "abs": "abs({})"}.items():
    setattr(Followed, f"__{_name}__", _unary(_form, getattr(operator, _name)))
for _class, _names in ((Followed, _ASKED), (_Whole, _ASKED_WHOLE)):
    for _name in _names:
        setattr(_class, f"__{_name}__", _plain(f"__{_name}__"))
