"""Subclasses with ``__torch_dispatch__`` are asked, recorded, copied and saved as in PyTorch."""

from __future__ import annotations

import copy
import importlib
import io
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import flambeau as fb  # noqa: E402 - imported beside its oracle

LIBRARIES = (fb, torch)


def mapped(function: Callable[[Any], Any], value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        made = [mapped(function, each) for each in value]
        return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)
    if isinstance(value, dict):
        return {name: mapped(function, each) for name, each in value.items()}
    return function(value)


def make_classes(lib: Any) -> None:
    """Gives a library's namespace in this module its classes, where pickles find them."""

    class Logged(lib.Tensor):  # type: ignore[misc, name-defined] - a class of either library
        __slots__ = ("elem",)
        seen: list[str] = []  # noqa: RUF012 - shared by all of the class

        @staticmethod
        def __new__(cls: Any, elem: Any, requires_grad: bool = False) -> Any:
            r = lib.Tensor._make_wrapper_subclass(
                cls, elem.size(), strides=elem.stride(), dtype=elem.dtype, device=elem.device,
                requires_grad=requires_grad or elem.requires_grad,
            )  # fmt: skip
            r.elem = elem.detach() if r.requires_grad else elem
            return r

        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            cls.seen.append(str(func).removeprefix("aten.").removesuffix(".default"))
            assert all(issubclass(t, cls) for t in types)
            given = mapped(lambda a: a.elem if isinstance(a, cls) else a, args)
            named = mapped(lambda a: a.elem if isinstance(a, cls) else a, kwargs or {})
            found = func(*given, **named)
            return mapped(lambda a: cls(a) if isinstance(a, lib.Tensor) else a, found)

    class Scaled(lib.Tensor):  # type: ignore[misc, name-defined]
        """What quantised weights are like: ops give plain tensors, but for a few."""

        @staticmethod
        def __new__(cls: Any, values: Any, scale: Any) -> Any:
            return lib.Tensor._make_wrapper_subclass(cls, values.shape, dtype=lib.float32)

        def __init__(self, values: Any, scale: Any) -> None:
            self.values_, self.scale_ = values, scale

        def __tensor_flatten__(self) -> Any:
            return ["values_", "scale_"], None

        @classmethod
        def __tensor_unflatten__(cls, parts: Any, context: Any, size: Any, stride: Any) -> Any:
            return cls(parts["values_"], parts["scale_"])

        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            name = str(func)
            if name in ("aten.detach.default", "aten.clone.default", "aten.alias.default"):
                return cls(args[0].values_, args[0].scale_)
            if name == "aten.t.default":
                return cls(args[0].values_.t(), args[0].scale_)
            if name == "aten.relu.default":
                return NotImplemented
            given = mapped(lambda a: a.values_ * a.scale_ if isinstance(a, cls) else a, args)
            return func(*given, **(kwargs or {}))

    class Inherited(lib.Tensor):  # type: ignore[misc, name-defined]
        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            found = super().__torch_dispatch__(func, types, args, kwargs or {})
            plain = lambda a: isinstance(a, lib.Tensor) and not isinstance(a, cls)  # noqa: E731 - one line of a program
            return mapped(lambda a: cls(a) if plain(a) else a, found)

    for cls in (Logged, Scaled, Inherited):
        name = f"{cls.__name__}Of{'PyTorch' if lib is torch else 'Flambeau'}"
        cls.__name__ = cls.__qualname__ = name
        globals()[name] = cls


for each in LIBRARIES:
    make_classes(each)


def of(lib: Any, name: str) -> Any:
    return globals()[f"{name}Of{'PyTorch' if lib is torch else 'Flambeau'}"]


def numbers(value: Any) -> Any:
    """What a result is: kinds, and numbers."""
    if isinstance(value, (list, tuple)):
        return [numbers(each) for each in value]
    if isinstance(value, LIBRARIES[0].Tensor | torch.Tensor):
        kind = type(value).__name__.partition("Of")[0]
        held = value
        if kind == "Logged":
            held = value.elem
        if kind == "Scaled":
            held = value.values_ * value.scale_
        if kind == "Inherited":
            held = [row.sum().item() for row in value] if value.dim() else value.item()
            return kind, held
        whole = held.detach().tolist()
        return kind, tuple(value.shape), str(value.dtype), value.requires_grad, _rounded(whole)
    return value


def _rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return float(f"{value:.5g}")


def example(lib: Any, requires_grad: bool = False) -> Any:
    return of(lib, "Logged")(lib.arange(6.0).reshape(2, 3) + 1, requires_grad)


def functional(lib: Any) -> Any:
    return importlib.import_module(f"{lib.__name__}.nn.functional")


PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "sum of two": lambda lib, x: x + x,
    "numbers": lambda lib, x: (x + 1, 1 - x, x * 2.5, 1 / x, 2 / x, x**2, 2**x, x > 2, x == 1),
    "products": lambda lib, x: (x @ x.t(), x @ x[0], x.t() @ lib.ones(2, 4)),
    "batched products": lambda lib, x: (
        x[None] @ x.t(),
        x.expand(4, 2, 3) @ x.t().expand(4, 3, 2),
    ),
    "reductions": lambda lib, x: (x.sum(), x.sum(1), x.mean(0, keepdim=True), x.amax(1)),
    "subscripts": lambda lib, x: (x[0], x[0, 1:], x[:, None, ::2], x[lib.tensor([1, 0])]),
    "shapes": lambda lib, x: (x.view(3, 2), x.t(), x.reshape(-1), x.unsqueeze(0), x.permute(1, 0)),
    "functions": lambda lib, x: (x.exp(), lib.softmax(x, -1), x.tanh(), lib.cat([x, x]), x.clone()),
    "casts": lambda lib, x: x.to(lib.float64),
    "like": lambda lib, x: (lib.zeros_like(x), lib.ones_like(x), x.new_zeros(2), x.detach()),
    "linear": lambda lib, x: functional(lib).linear(x, lib.ones(4, 3), lib.ones(4)),
}
COMPARED = frozenset(
    """add.Tensor rsub.Scalar mul.Tensor reciprocal pow.Tensor_Scalar pow.Scalar gt.Scalar
    eq.Scalar mm mv bmm dot t sum sum.dim_IntList mean.dim amax select.int slice.Tensor unsqueeze
    index.Tensor view permute exp _softmax tanh cat clone _to_copy zeros_like ones_like new_zeros
    addmm""".split()
)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_class_is_asked_by_the_names_that_pytorch_uses_and_results_are_of_it(name: str) -> None:
    found = []
    for lib in LIBRARIES:
        x = example(lib)
        of(lib, "Logged").seen.clear()
        result = numbers(PROGRAMS[name](lib, x))
        seen = sorted(each for each in of(lib, "Logged").seen if each in COMPARED)
        if name in ("products", "batched products", "shapes"):  # `x.T` and `x.t()` are one kernel
            seen = sorted(set(seen) - {"t", "permute", "view", "squeeze.dim", "mv", "mm", "bmm"})
        found.append((result, seen))
    assert found[0] == found[1]
    assert "Logged" in str(found[0])


def gradients(lib: Any) -> Any:
    x, w = example(lib, True), lib.ones(3, 2, requires_grad=True)
    heard: list[str] = []
    x.register_hook(lambda g: heard.append(type(g).__name__.partition("Of")[0]))
    ((x.exp() @ w).tanh() * x[:, :2]).mean().backward()
    return x.grad, w.grad, heard


def second_gradients(lib: Any) -> Any:
    x = example(lib, True)
    (g,) = lib.autograd.grad((x**3).sum(), x, create_graph=True)
    (h,) = lib.autograd.grad(g.sum(), x)
    return g, h


def accumulated(lib: Any) -> Any:
    x = example(lib, True)
    for _ in range(3):
        (x * x + x.sigmoid()).sum().backward()
    return x.grad


def written(lib: Any) -> Any:
    x = example(lib)
    v = x[0]
    v.add_(10)
    x.mul_(2)
    x[1] = 5.0
    x += 1
    return x, v, x._version, v._version


def written_and_recorded(lib: Any) -> Any:
    x = example(lib, True)
    y = x * 2
    y.mul_(x)
    y[0] *= 3
    y.sum().backward()
    return y, x.grad


def refused(lib: Any) -> Any:
    x = example(lib, True)
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        x.add_(1)
    with pytest.raises(RuntimeError, match="numpy"):
        example(lib).numpy()
    with pytest.raises(RuntimeError, match=r"\.tolist\(\) is not supported for tensor subclasses"):
        example(lib).tolist()
    with pytest.raises(TypeError, match="must define __torch_dispatch__"):
        lib.Tensor._make_wrapper_subclass(lib.Tensor, (2,))
    scaled = of(lib, "Scaled")(lib.tensor([1.0]), lib.tensor(2.0))
    with pytest.raises(TypeError, match=r"aten\.relu\.default.*NotImplemented"):
        scaled.relu()
    return "refused"


def out_given(lib: Any) -> Any:
    x, y = example(lib), example(lib)
    return lib.add(x, x, out=y) is y, y


def trained(lib: Any) -> Any:
    nn = importlib.import_module(f"{lib.__name__}.nn")
    optim = importlib.import_module(f"{lib.__name__}.optim")
    found = []
    for make in (
        lambda p: optim.SGD(p, lr=0.1, momentum=0.9),
        lambda p: optim.Adam(p, lr=0.1),
        lambda p: optim.AdamW(p, lr=0.1),
    ):
        layer = nn.Linear(3, 2)
        layer.bias.data.zero_()
        layer.weight = nn.Parameter(of(lib, "Logged")(lib.arange(6.0).reshape(2, 3)))
        optimiser = make(layer.parameters())
        for _ in range(3):
            optimiser.zero_grad()
            (layer(lib.ones(1, 3)) ** 2).sum().backward()
            optimiser.step()
        found.append((isinstance(layer.weight, nn.Parameter), layer.weight, layer.bias))
        found.append((sorted(layer.state_dict()), layer(lib.ones(1, 3))))
    return found


def quantised(lib: Any) -> Any:
    nn = importlib.import_module(f"{lib.__name__}.nn")
    layer = nn.Linear(3, 2, bias=False)
    values = lib.arange(6, dtype=lib.int8).reshape(2, 3)
    weight = of(lib, "Scaled")(values, lib.tensor(0.5))
    layer.weight = nn.Parameter(weight, requires_grad=False)
    x = lib.ones(4, 3, requires_grad=True)
    y = layer(x) ** 2
    y.sum().backward()
    return y, x.grad, type(layer.weight) is type(weight)


def plain_results_have_history(lib: Any) -> Any:
    w = of(lib, "Scaled")(lib.ones(2, 3), lib.tensor(3.0)).requires_grad_()
    x = lib.ones(2, 3, requires_grad=True)
    ((w * x) * x).sum().backward()
    return w.grad, x.grad


def inherited(lib: Any) -> Any:
    base = lib.arange(6.0).reshape(2, 3)
    x = of(lib, "Inherited")(base)
    x.add_(1)
    return x + 1, x.sum(), x.data_ptr() == base.data_ptr(), base


def copies(lib: Any) -> Any:
    x = example(lib)
    x.note = [3]
    y = copy.deepcopy(x)
    file = io.BytesIO()
    lib.save({"x": x}, file)
    file.seek(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        z = lib.load(file, weights_only=False)["x"]
    return y, y.elem is not x.elem, y.note, y.note is not x.note, z, z.note


def flattened(lib: Any) -> Any:
    module = importlib.import_module(f"{lib.__name__}.utils._python_dispatch")
    x = of(lib, "Scaled")(lib.ones(2), lib.tensor(3.0))
    asked = module.is_traceable_wrapper_subclass
    doubled = module.transform_subclass(x, lambda name, part: part * 2)
    return asked(x), asked(lib.ones(1)), asked(example(lib)), doubled


def under_a_mode(lib: Any) -> Any:
    base = importlib.import_module(f"{lib.__name__}.utils._python_dispatch").TorchDispatchMode
    said: list[Any] = []

    class Heard(base):  # type: ignore[misc, valid-type]
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            said.append((str(func), [t.__name__.partition("Of")[0] for t in types]))
            return func(*args, **(kwargs or {}))

    x = example(lib)
    with Heard():
        y = x.exp()
    return y, said


def written_as_text(lib: Any) -> Any:
    x = of(lib, "Scaled")(lib.arange(6.0).reshape(2, 3), lib.tensor(0.5))
    return repr(x).partition("Of")[2].partition("(")[2].split()


def swapped(lib: Any) -> Any:
    x, y = example(lib), of(lib, "Logged")(lib.ones(2), True)
    a, b = lib.zeros(2), lib.ones(1, 3, dtype=lib.int64)
    a.note = 3
    swap = importlib.import_module(f"{lib.__name__}.utils").swap_tensors
    swap(x, y)
    swap(a, b)
    p, q = lib.nn.Parameter(lib.ones(2)), lib.nn.Parameter(lib.zeros(3), requires_grad=False)
    swap(p, q)
    with pytest.raises(RuntimeError, match="different slots"):
        swap(x, a)
    reference = weakref.ref(b)
    with pytest.raises(RuntimeError, match="weakref"):
        swap(a, b)
    return x, y, a, b, b.note, hasattr(a, "note"), reference() is b, p, q, p.requires_grad


@pytest.mark.parametrize(
    "program",
    [gradients, second_gradients, accumulated, written, written_and_recorded, refused, out_given,
     trained, quantised, plain_results_have_history, inherited, copies, flattened, under_a_mode,
     written_as_text, swapped],
    ids=lambda program: program.__name__,
)  # fmt: skip
def test_such_tensors_do_what_pytorchs_do(program: Callable[[Any], Any]) -> None:
    ours, theirs = (numbers(program(lib)) for lib in LIBRARIES)
    assert ours == theirs


NO_RESULTS = [3, "x", (), [None], object()]


@pytest.mark.parametrize("lib", LIBRARIES)
@pytest.mark.parametrize("found", NO_RESULTS, ids=lambda found: type(found).__name__)
@pytest.mark.parametrize(
    "use",
    [
        lambda lib, x: x + 1,
        lambda lib, x: x @ x.t(),
        lambda lib, x: x[0],
        lambda lib, x: x.sort(0),
        lambda lib, x: x.clone(),
        lambda lib, x: x.detach(),
        lambda lib, x: x.data,
        lambda lib, x: x.to("meta"),
        lambda lib, x: lib.empty_like(x),
        lambda lib, x: lib.nn.Parameter(x),
        lambda lib, x: x.unfold(0, 2, 1),
        lambda lib, x: lib.linalg.svd(x),
        lambda lib, x: lib.add(lib.ones(3, 4), x, out=lib.empty(3, 4)),
        lambda lib, x: x.requires_grad_().sum().backward(),
    ],
)
def test_what_no_op_gives_is_refused(lib, use, found):
    class Odd(lib.Tensor):  # type: ignore[misc, name-defined]
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None):
            return found

    with pytest.raises(RuntimeError):
        use(lib, lib.Tensor._make_subclass(Odd, lib.ones(3, 4)))


@pytest.mark.parametrize("lib", LIBRARIES)
def test_data_of_another_give_their_dtype_and_not_what_they_hold(lib: Any) -> None:
    class Held(lib.Tensor):  # type: ignore[misc, name-defined] - a class of either library
        @staticmethod
        def __new__(cls: Any, elem: Any) -> Any:
            return lib.Tensor._make_wrapper_subclass(cls, elem.shape, dtype=elem.dtype)

        def __init__(self, elem: Any) -> None:
            self.elem = elem

        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return cls(func(args[0].elem, *args[1:], **(kwargs or {})))

    one, other = Held(lib.ones(2)), Held(lib.ones(3, dtype=lib.bfloat16))
    one.data = other
    assert (one.dtype, tuple(one.shape)) == (lib.bfloat16, (3,))
    assert one.elem.dtype is lib.float32
