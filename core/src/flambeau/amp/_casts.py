"""What mixed precision does with the operands of one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from flambeau._autograd.modes import recording
from flambeau._dispatch.dispatch import cast, version
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau.amp._lists import lists_of
from flambeau.amp._setting import OFF, current, local, setting

if TYPE_CHECKING:
    from collections.abc import Iterable


_REFUSED = (
    "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.\n"
    "Many models use a sigmoid layer right before the binary cross entropy layer.\n"
    "In this case, combine the two layers using "
    "torch.nn.functional.binary_cross_entropy_with_logits\n"
    "or torch.nn.BCEWithLogitsLoss.  binary_cross_entropy_with_logits and BCEWithLogits are\n"
    "safe to autocast."
)


class Call:
    """One function, or method, while mixed precision is on somewhere.

    Args:
        name: what the lists call it.
        plain: it as it is.
        names: its parameters, those that may be given by position first, and in their order.
    """

    def __init__(self, name: str, plain: Callable[..., Any], names: Sequence[str]) -> None:
        self._name = name
        self._plain = plain
        self._names = tuple(names)
        self._rules: dict[str, str | None] = {}

    def __call__(self, *args: object, **kwargs: object) -> Any:
        now = current()
        if not now.on:
            return self._plain(*args, **kwargs)
        if kwargs.get("out") is not None:
            return self._whole(args, kwargs)
        for device_type in now.on if len(now.on) == 1 else sorted(now.on, key="cpu".__eq__):
            try:
                rule = self._rules[device_type]
            except KeyError:
                rule = self._rules[device_type] = lists_of(device_type).get(self._name)
            if rule is not None and _first(device_type, (*args, *kwargs.values())) is not None:
                break
        else:
            return self._plain(*args, **kwargs)
        if rule == "refused":
            raise RuntimeError(_REFUSED)
        if rule == "accumulates":
            args, kwargs = self._accumulating(device_type, args, kwargs)
        elif (to := self._dtype(rule, device_type, args, kwargs)) is not None:
            args = tuple([_cast(a, to, device_type) for a in args])
            for key, value in kwargs.items():
                kwargs[key] = _cast(value, to, device_type)
        return self._whole(args, kwargs)

    def _whole(self, args: Any, kwargs: Any) -> Any:
        """The call, in which nothing else is chosen."""
        token = setting.set(OFF)
        try:
            return self._plain(*args, **kwargs)
        finally:
            setting.reset(token)

    def _dtype(self, rule: str, device_type: str, args: Any, kwargs: Any) -> D.dtype | None:
        """The dtype that the operands take."""
        narrow = current().on[device_type]
        if rule == "narrow":
            return narrow
        if rule == "float32":
            return D.float32
        if rule == "pads":
            mode = args[2] if len(args) > 2 else kwargs.get("mode", "constant")
            # PyTorch's list leaves the reflection of volumes out.
            flat = mode == "reflect" and len(args[1] if len(args) > 1 else kwargs["pad"]) < 6
            return D.float32 if flat or mode == "replicate" else None
        if rule == "contracts":
            return None if _all_summed(*args[:2], *args[2:3] or (2,)) else narrow
        if rule == "inner":
            sizes = sorted(each.dim() for each in (*args, *kwargs.values())[:2])
            return None if sizes[0] == 0 or sizes[1] < 2 else narrow
        if rule == "whole":
            return None
        if rule == "hidden":
            # A state that is not given is zeros like the input, whose place is before it.
            given = [_first(device_type, [a]) for a in (*args, *kwargs.values())[:2]]
            state = given[-1] if given[-1] is not None else given[0]
            return narrow if state is not None and state.dtype is narrow else D.float32
        return _widest(narrow, device_type, (*args, *kwargs.values()))

    def _accumulating(
        self, device_type: str, args: tuple[Any, ...], kwargs: Any
    ) -> tuple[Any, Any]:
        """The arguments with `dtype` as float32 if the first is of a narrower dtype."""
        if not args or not _chooses(args[0], device_type):
            return args, kwargs
        place = self._names.index("dtype") if "dtype" in self._names else len(args)
        if place < len(args):
            if args[place] is None:
                args = (*args[:place], D.float32, *args[place + 1 :])
        elif kwargs.get("dtype") is None:
            kwargs = {**kwargs, "dtype": D.float32}
        return args, kwargs


def apart(plain: Callable[..., Any]) -> Callable[..., Any]:
    """Who chooses one kernel for several ops, which take different dtypes here."""

    def choose(op: object, x: Tensor) -> object:
        return None if x._be.device.type in current().on else plain(op, x)

    return choose


def _chooses(x: object, device_type: str) -> bool:
    """Whether a value is a tensor whose dtype may be chosen."""
    return (
        isinstance(x, Tensor)
        and x.dtype.is_floating_point
        and x.dtype is not D.float64
        and x._be.device.type == device_type
    )


def _first(device_type: str, values: Iterable[Any]) -> Any:
    """The first tensor on a type of devices, in lists too."""
    for x in values:
        if isinstance(x, Tensor):
            if x._be.device.type == device_type:
                return x
        elif isinstance(x, (list, tuple)) and x and not isinstance(x[0], int):
            if (found := _first(device_type, x)) is not None:
                return found
    return None


def _all_summed(a: Any, b: Any, dims: Any) -> bool:
    """Whether `tensordot` sums over all dimensions of both operands."""
    count = dims if isinstance(dims, int) else len(dims[0]) if isinstance(dims, tuple) else -1
    return count == a.dim() == b.dim()


def _widest(narrow: D.dtype, device_type: str, values: Iterable[Any]) -> D.dtype:
    """float32 if one of the operands is, else the narrow dtype."""
    found = narrow
    for x in values:
        if isinstance(x, (list, tuple)):
            if any(isinstance(each, (Tensor, list, tuple)) for each in x):
                found = D.float32 if _widest(narrow, device_type, x) is D.float32 else found
        elif _chooses(x, device_type):
            if x.dtype is D.float32:
                found = D.float32
            elif x.dtype is not narrow and found is narrow:
                raise RuntimeError("Unexpected floating ScalarType in at::autocast::prioritize")
    return found


def _cast(x: Any, to: D.dtype, device_type: str) -> Any:
    """An argument with its tensors in another dtype."""
    if isinstance(x, Tensor):
        if x.dtype is to or not _chooses(x, device_type):
            return x
        if x.dtype is D.float32 and x._rg and to is not D.float32 and current().caching:
            if x.requires_grad and x.is_leaf and not x._is_view():
                return _kept(x, to)
        return cast(x, to)
    if type(x) in (list, tuple):
        if any(isinstance(each, (Tensor, list, tuple)) for each in x):
            return type(x)([_cast(each, to, device_type) for each in x])
    return x


def _kept(x: Tensor, to: D.dtype) -> Tensor:
    """The narrow copy of a weight, which every use until the outermost block ends shares.

    One without a history is for those who record none, and none outlives a write to the weight.
    """
    key = id(x), to, recording()
    found = local.kept.get(key)
    if found is None or found[1] != version(x):
        found = local.kept[key] = x, version(x), cast(x, to)
    return found[2]
