"""Type promotion equals PyTorch's: dtype × dtype × kind of operand × family of ops."""

from __future__ import annotations

import itertools
import operator

import numpy as np
import pytest

import flambeau as fb

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # of PyTorch, once per process

DTYPES = [
    *("bool", "uint8", "int8", "int16", "int32", "int64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
]
NUMBERS = [True, 2, 1.5, 1j]
BINARY = {
    "arithmetic": "add sub mul",
    "division": "div floor_divide remainder fmod",
    "power": "pow",
    "comparison": "eq ne lt le gt ge",
    "bitwise": "bitwise_and bitwise_or bitwise_xor",
    "logical": "logical_and logical_or logical_xor",
    "extremes": "maximum minimum",
    "angles": "atan2",
}
JOINS = {
    "cat": lambda t, x, y: t.cat([x.reshape(-1), y.reshape(-1)]),
    "stack": lambda t, x, y: t.stack([x.reshape(-1)[:1], y.reshape(-1)[:1]]),
    "where": lambda t, x, y: t.where(t.tensor([True, False]), x, y),
}
REDUCTIONS = (
    "sum prod mean cumsum cumprod std var norm amax argmax all any logsumexp median max".split()
)
INPLACE = "add_ sub_ mul_ div_ pow_ remainder_ fmod_ eq_ bitwise_and_ copy_ floor_divide_".split()


def _outcome(call, *arguments):
    """The dtypes of a result, or "error"."""
    try:
        result = call(*arguments)
    except Exception:
        return "error"
    parts = result if isinstance(result, tuple) else (result,)
    return [str(part.dtype) for part in parts]


def _operands(library, name, kind):
    dtype = getattr(library, name)
    return library.ones((), dtype=dtype) if kind == "0-d" else library.ones(2, dtype=dtype)


def _differing(call, operand_pairs):
    """Where the outcome is another one than PyTorch's, which must have a kernel for it."""
    found = []
    for label, ours, theirs in operand_pairs:
        if len(theirs) > 1 and torch.result_type(*theirs) is torch.complex32:
            continue  # a dtype that flambeau has not: the result is complex64
        expected = _outcome(call, torch, *theirs)
        mine = _outcome(call, fb, *ours)
        if expected != mine and not (expected == "error" and _no_kernel(call, theirs)):
            found.append(f"{label}: {mine} for {expected}")
    return found


def _no_kernel(call, operands):
    try:
        call(torch, *operands)
    except Exception as error:
        return "not implemented for" in str(error) or "not support" in str(error)
    return False


def _pairs(kinds):
    for a, b, (left, right) in itertools.product(DTYPES, DTYPES, kinds):
        yield (
            f"{a} {left}, {b} {right}",
            (_operands(fb, a, left), _operands(fb, b, right)),
            (_operands(torch, a, left), _operands(torch, b, right)),
        )


def _with_numbers():
    for a, kind, number in itertools.product(DTYPES, ("1-d", "0-d"), NUMBERS):
        yield (
            f"{a} {kind}, {number}",
            (_operands(fb, a, kind), number),
            (_operands(torch, a, kind), number),
        )


KINDS = [("1-d", "1-d"), ("1-d", "0-d"), ("0-d", "1-d"), ("0-d", "0-d")]


@pytest.fixture(params=["float32", "float64"])
def default_dtype(request):
    for library in (torch, fb):
        library.set_default_dtype(getattr(library, request.param))
    yield request.param
    for library in (torch, fb):
        library.set_default_dtype(library.float32)


@pytest.mark.parametrize("name", " ".join(BINARY.values()).split())
@pytest.mark.usefixtures("default_dtype")
def test_binary_ops_promote_two_tensors_alike(name):
    assert _differing(lambda t, x, y: getattr(t, name)(x, y), _pairs(KINDS)) == []


@pytest.mark.parametrize("name", " ".join(BINARY.values()).split())
@pytest.mark.usefixtures("default_dtype")
def test_binary_ops_promote_a_tensor_and_a_number_alike(name):
    if name in ("maximum", "minimum", "atan2", "logical_and", "logical_or", "logical_xor"):
        pytest.skip("takes tensors only")
    assert _differing(lambda t, x, y: getattr(t, name)(x, y), _with_numbers()) == []


@pytest.mark.parametrize("operator", ["+", "-", "*", "/", "//", "%", "**"])
@pytest.mark.usefixtures("default_dtype")
def test_a_number_and_a_tensor_promote_alike(operator):
    code = compile(f"y {operator} x", operator, "eval")
    assert _differing(lambda t, x, y: eval(code, {"x": x, "y": y}), _with_numbers()) == []


@pytest.mark.parametrize("name", JOINS)
def test_joined_tensors_promote_alike(name):
    assert _differing(JOINS[name], _pairs(KINDS)) == []


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.usefixtures("default_dtype")
def test_reductions_have_the_same_dtype(name):
    def call(t, x):
        needs_dim = name in ("cumsum", "cumprod", "logsumexp")
        return getattr(t, name)(x, 0) if needs_dim else getattr(t, name)(x)

    pairs = [
        (a, (_operands(fb, a, k),), (_operands(torch, a, k),))
        for a in DTYPES
        for k in ("1-d", "0-d")
    ]
    assert _differing(call, pairs) == []


@pytest.mark.parametrize("name", INPLACE)
def test_inplace_ops_take_and_refuse_the_same_dtypes(name):
    call = lambda t, x, y: getattr(x, name)(y)  # noqa: E731
    assert _differing(call, _pairs([("1-d", "1-d"), ("1-d", "0-d"), ("0-d", "0-d")])) == []


@pytest.mark.parametrize("name", ["add_", "mul_", "div_", "pow_", "remainder_", "fill_"])
def test_inplace_ops_take_and_refuse_the_same_numbers(name):
    assert _differing(lambda t, x, y: getattr(x, name)(y), _with_numbers()) == []


@pytest.mark.usefixtures("default_dtype")
def test_result_type_is_equal():
    def outcome(library, *arguments):
        try:
            return str(library.result_type(*arguments))
        except Exception as error:
            return type(error).__name__

    for label, ours, theirs in [*_pairs(KINDS), *_with_numbers()]:
        if torch.result_type(*theirs) is torch.complex32:
            continue
        assert (label, outcome(fb, *ours)) == (label, outcome(torch, *theirs))
    for a, b in itertools.product(NUMBERS, NUMBERS):
        assert outcome(fb, a, b) == outcome(torch, a, b)


def test_can_cast_and_promote_types_are_equal():
    for a, b in itertools.product(DTYPES, DTYPES):
        ours, theirs = [[getattr(t, n) for n in (a, b)] for t in (fb, torch)]
        assert (a, b, fb.can_cast(*ours)) == (a, b, torch.can_cast(*theirs))
        assert (a, b, str(fb.promote_types(*ours))) == (a, b, str(torch.promote_types(*theirs)))


OF_NUMBERS = (
    "add sub mul div floor_divide true_divide subtract multiply divide rsub remainder fmod pow "
    "maximum minimum fmax fmin eq ne lt le gt ge bitwise_and bitwise_or bitwise_xor logical_and "
    "logical_or logical_xor atan2 copysign hypot logaddexp float_power xlogy gcd lcm"
).split()


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_two_numbers_make_a_tensor_where_they_do_in_pytorch(name):
    forms = [{}]
    forms += [{"alpha": 3}, {"alpha": 2.5}] if name in ("add", "sub", "subtract") else []
    forms += [{"rounding_mode": m} for m in ("floor", "trunc")] if name in ("div", "divide") else []
    wrong = []
    for x, y in itertools.product([True, 7, -7, 2.5, 1j, np.float32(2), np.int64(3)], repeat=2):
        for options in forms:
            found = []
            for library in (torch, fb):
                try:
                    made = getattr(library, name)(x, y, **options)
                    found.append((str(made.dtype), made.shape == (), made.item()))
                except (TypeError, RuntimeError) as error:
                    found.append(type(error).__name__)
            if found[0] != found[1]:
                wrong.append((x, y, options, *found))
    assert not wrong
    for bad in ("a", None, [1]):
        with pytest.raises(TypeError):
            getattr(fb, name)(bad, 2)


@pytest.mark.parametrize("shape", [(), (0, 3), (20,)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_squares_have_the_dtype_of_pytorchs(dtype, shape):
    for device in ("cpu", "ref"):
        ours = fb.ones(shape, dtype=getattr(fb, dtype), device=device)
        theirs = torch.ones(shape, dtype=getattr(torch, dtype))
        assert str(ours.square().dtype) == str(theirs.square().dtype)
        assert ours.square().tolist() == theirs.square().tolist()
    with pytest.raises(RuntimeError, match="result type Long can't be cast"):
        fb.tensor([True]).square_()


@pytest.mark.parametrize("name", ["remainder", "fmod", "floor_divide"])
@pytest.mark.parametrize("other", ["t.tensor([True])", "t.tensor(True)", "True"])
def test_bools_have_no_remainders(name, other):
    for t in (torch, fb):
        x = t.tensor([True, False])
        for call in (getattr(t, name), getattr(t.Tensor, name), getattr(t.Tensor, f"{name}_")):
            with pytest.raises(NotImplementedError):
                call(x, eval(other, {"t": t}))
        assert x.tolist() == [True, False]


def test_two_numbers_are_written_into_a_tensor():
    assert fb.mul(2, 3, out=fb.empty(())).dtype is fb.float32
    assert fb.add(input=1, other=2).item() == fb.add(1, 1, 1).item() + 1 == 3
    assert (fb.mul(2, 3) * fb.ones(2, dtype=fb.int8)).dtype is fb.int8
    with fb.device("meta"):
        assert fb.mul(2, 3).device.type == str(torch.mul(2, 3).device)


BEFORE = [0, 0.0, -0.0, 1, -3, 2.5, float("inf"), float("nan"), 1 << 62, -(1 << 63)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["sub", "pow", "floordiv", "mod", "truediv"])
def test_a_number_before_floats_takes_their_dtype(name: str, dtype: str) -> None:
    run = getattr(operator, name)
    for number in BEFORE:
        found = []
        for t in (torch, fb):
            x = t.tensor([[0.5, -1.5, 2.0], [0.0, 3.0, 1e30]], dtype=getattr(t, dtype)).t()
            x = x.clone().requires_grad_(name in ("sub", "pow", "truediv"))
            y = run(number, x)
            assert y.is_contiguous() == (name == "pow")
            (grad,) = t.autograd.grad(y.sum(), x) if y.requires_grad else (t.zeros(()),)
            found.append(
                (y.dtype == x.dtype, torch.tensor(y.tolist()), torch.tensor(grad.tolist()))
            )
        (same, theirs, slope), (ours_same, ours, our_slope) = found
        assert same
        assert ours_same
        torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=0, equal_nan=True)
        torch.testing.assert_close(our_slope, slope, rtol=1e-6, atol=0, equal_nan=True)


@pytest.mark.parametrize("name", ["and_", "or_", "xor", "lshift", "rshift"])
def test_bits_of_a_number_before_floats_are_refused(name: str) -> None:
    for t in (torch, fb):
        if t is torch and name in ("lshift", "rshift"):
            continue  # PyTorch shifts floats
        with pytest.raises((RuntimeError, NotImplementedError)):
            getattr(operator, name)(1, t.ones(2))


@pytest.mark.parametrize("number", [1 << 64, -(1 << 63) - 1])
def test_a_number_before_floats_that_no_integer_holds_is_refused(number: int) -> None:
    for t in (torch, fb):
        with pytest.raises((RuntimeError, OverflowError)):
            number - t.ones(2)
