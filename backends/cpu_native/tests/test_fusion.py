"""Plans whose neighbouring elementwise calls are one program give the bits that the calls give."""

from __future__ import annotations

import gc
import math
import struct
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plans_agree import agree, memory, ops_of

import flambeau as fb
from flambeau_native.extension import native
from flambeau_native.fusion.borrowed import BORROWED

SHAPES = [(7,), (3, 5), (40, 50), (2, 3, 64), (3, 1100), (130, 256), (4, 1, 3), (2, 0), (5, 7000)]


UNARY: list[Any] = [
    lambda x: -x,
    lambda x: x.abs().sqrt(),
    lambda x: x.exp(),
    lambda x: x.tanh(),
    lambda x: x.sigmoid(),
    lambda x: x.relu(),
    lambda x: x**2,
    lambda x: x**3.0,
    lambda x: x.square(),
    lambda x: x.reciprocal(),
    lambda x: x.rsqrt(),
    lambda x: x.clamp(-0.5, 0.5),
    lambda x: x.clamp(min=0.0),
    lambda x: x.floor(),
    lambda x: x.sign(),
    lambda x: fb.nn.functional.gelu(x),
    lambda x: fb.nn.functional.gelu(x, approximate="tanh"),
    lambda x: fb.nn.functional.silu(x),
    lambda x: fb.nn.functional.softplus(x),
    lambda x: fb.nn.functional.leaky_relu(x, 0.1),
    lambda x: 1 - x * 0.25,
    lambda x: x / 3,
    lambda x: 0.5 / x,
    lambda x: fb.maximum(x, fb.full_like(x, 0.25)),
    lambda x: x.sin(),
    lambda x: x.cos(),
    lambda x: x.abs().log(),
]
BINARY: list[Any] = [
    lambda x, y: x + y,
    lambda x, y: x - y,
    lambda x, y: x * y,
    lambda x, y: x / y,
    lambda x, y: fb.maximum(x, y),
    lambda x, y: fb.minimum(x, y),
    lambda x, y: fb.where(x > y, x, y * 2),
    lambda x, y: fb.where(x <= 0, y, 0.0),
    lambda x, y: fb.add(x, y, alpha=0.3),
    lambda x, y: fb.sub(x, y, alpha=0.7),
    lambda x, y: fb.addcmul(x, y, x, value=0.5),
    lambda x, y: fb.addcmul(x, x, y),
]
ROWS: list[Any] = [
    lambda x: x - x.mean(-1, keepdim=True),
    lambda x: x / (x.sum(-1, keepdim=True) + 1),
    lambda x: x - x.amax(-1, keepdim=True) if x.numel() else x,
    lambda x: x * (x * x).mean(-1, keepdim=True).rsqrt(),
    lambda x: x.sum(-1, keepdim=True) / x,
    lambda x: x.mean(-1, keepdim=True) - x,
    lambda x: fb.where(x > 0, x, x.mean(-1, keepdim=True)),
    lambda x: fb.maximum(x.mean(-1, keepdim=True) * 0.5, x) if x.numel() else x,
    lambda x: chosen_by_row(x.mean(-1, keepdim=True)) * x,
    lambda x: fb.add(x, fb.add(x.mean(-1, keepdim=True), x.sum(-1, keepdim=True), alpha=0.3)),
]


def chosen_by_row(row: fb.Tensor) -> fb.Tensor:
    return fb.where(row > 0, row, row * 2) + row


def operands(shape: tuple[int, ...]) -> list[fb.Tensor]:
    """Arrays that broadcast to a shape, laid out in all ways; not all of it is finite."""
    fb.manual_seed(1)
    x = fb.randn(shape)
    special = [0.0, -0.0, math.inf, -math.inf, math.nan, 1e-40, -3e38]
    count = min(len(special), x.numel())
    x.view(-1)[:count] = fb.tensor(special[:count])
    wide = fb.randn(*shape[:-1], 2 * shape[-1])
    found = [
        x,
        fb.randn(shape),
        wide[..., ::2],
        wide[..., shape[-1] :],
        fb.randn(()),
        fb.randn(shape[-1:]),
    ]
    found += [fb.randn(tuple(reversed(shape))).permute(*reversed(range(len(shape))))]
    return [*found, fb.randn(*shape[:-1], 1), fb.randn(1, *shape[1:])]


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.data())
def test_programs_give_what_their_calls_give(data: st.DataObject) -> None:
    args = operands(data.draw(st.sampled_from(SHAPES)))
    whole = [0, 1, 2, 3, 6]
    kinds = st.sampled_from(["unary", "binary", "binary", "rows"])
    recipe = []
    for made in range(data.draw(st.integers(2, 10))):
        kind = data.draw(kinds)
        table = {"unary": UNARY, "binary": BINARY, "rows": ROWS}[kind]
        known = [*whole, *range(len(args), len(args) + made)]
        first = data.draw(st.sampled_from(known[-6:]))
        second = data.draw(st.integers(0, len(args) + made - 1))
        recipe.append((kind, data.draw(st.integers(0, len(table) - 1)), first, second))
    returned = data.draw(st.sets(st.integers(0, len(recipe) - 1), min_size=1, max_size=3))

    def function(*tensors: fb.Tensor) -> list[fb.Tensor]:
        values = list(tensors)
        for kind, number, first, second in recipe:
            if kind == "unary":
                values.append(UNARY[number](values[first]))
            elif kind == "rows":
                values.append(ROWS[number](values[first]))
            else:
                values.append(BINARY[number](values[first], values[second]))
        return [values[len(tensors) + i] for i in sorted(returned)]

    agree(function, *args)


@pytest.mark.parametrize("shape", [(70001,), (1500, 50), (1200, 64), (40, 2000)])
def test_programs_of_arrays_beyond_the_caches_give_what_their_calls_give(shape: Any) -> None:
    """Of several tiles, the next of which is asked for while one is computed."""

    def function(*tensors: fb.Tensor) -> list[fb.Tensor]:
        p, g, m, v = tensors
        m, v = m * 0.9 + g * 0.1, v * 0.999 + g * g * 0.001
        step = 0.01 * (m / 0.9) / ((v / 0.99).sqrt() + 1e-8)
        step = step - step.mean(-1, keepdim=True) if len(shape) > 1 else step
        return [p - step, m, v, p * g + m * v - step * 2]

    fb.manual_seed(2)
    large = (*shape[:-1], shape[-1] * 3)
    agree(function, *[fb.rand(large)[..., : shape[-1]].contiguous() for _ in range(4)])
    agree(function, *[fb.rand(4 * shape[0], *shape[1:]) for _ in range(4)])


def test_chains_become_one_program(programs: list[Any]) -> None:
    def gelu(x: fb.Tensor) -> list[fb.Tensor]:
        return [0.5 * x * (1 + (0.8 * (x + 0.045 * x**3)).tanh())]

    agree(gelu, fb.randn(300, 200))
    assert ops_of(programs) == ["fused"]


def test_rows_and_what_is_made_of_them_are_one_program(programs: list[Any]) -> None:
    def norm(x: fb.Tensor, w: fb.Tensor, b: fb.Tensor) -> list[fb.Tensor]:
        d = x - x.mean(-1, keepdim=True)
        v = (d * d).mean(-1, keepdim=True)
        return [d * fb.rsqrt(v + 1e-5) * w + b, v]

    agree(norm, fb.randn(30, 200), fb.randn(200), fb.randn(200))
    assert ops_of(programs) == ["fused"]


def test_choices_by_row_are_calls_of_their_own() -> None:
    agree(lambda x: [chosen_by_row(x.amax(-1, keepdim=True)) * x], fb.randn(64, 33))


def test_small_arrays_keep_the_functions_of_numpy(programs: list[Any]) -> None:
    agree(lambda x: [(x * 2 + 1).tanh() * x * 3], fb.randn(50))
    assert ops_of(programs) == (["fused"] if "tanh" in BORROWED else ["fused", "tanh", "fused"])


@pytest.mark.parametrize("name", ["exp", "log", "tanh", "sin", "cos"])
@pytest.mark.parametrize("shape", [(1,), (3,), (15,), (16,), (17,), (33, 31), (1025,), (60, 500)])
def test_programs_call_the_loops_of_numpy(name: str, shape: tuple[int, ...]) -> None:
    fb.manual_seed(3)
    x = fb.randn(*shape, 3) * 10 ** fb.empty(*shape, 3).uniform_(-30, 8)
    special = [0.0, -0.0, math.inf, -math.inf, math.nan, 1e-40, -1e-40, 88.8, -104.0, 1e6, 3.4e38]
    x.view(-1)[: len(special)] = fb.tensor(special)[: x.numel()]
    function, y = getattr(fb, name), fb.rand(*shape, 3)
    agree(
        lambda x: [function(x) * 1, function(-x) + 0],
        x.permute(-1, *range(len(shape))).contiguous(),
    )
    agree(lambda x: [function(x) * 1, function(-x) + 0], x[..., 1])
    agree(lambda x: [function(x) * 1, function(y[..., :1]) * y], x)


@pytest.mark.skipif("tanh" not in BORROWED, reason="this NumPy lends no loops")
def test_what_is_no_loop_of_numpy_is_not_taken() -> None:
    _, capsule = vars(np)["tanh"]._resolve_dtypes_and_context((np.dtype("f4"), None))
    for wrong in (("tanh", capsule), ("nothing", capsule), ("tanh", np.tanh), ("tanh", None)):
        with pytest.raises((ValueError, TypeError, RuntimeError)):
            native.borrow(*wrong)
    run = native.program(
        (2,), "ff", 1, "0", (), 0, (("small_tanh", False, 1, 0, 0, 0, 0.0, 0.0, 0.0),)
    )
    x, out = np.array([0.5, -3], np.float32), np.empty(2, np.float32)
    run(x, out)
    assert out.tolist() == np.tanh(x).tolist()


def step_of_rows(x: fb.Tensor) -> list[fb.Tensor]:
    """The gradient of a tensor whose rows are used in two parts of other sizes."""
    x = x.detach().requires_grad_()
    (x[:3].square().sum() + (x[3:] * 3).sum()).backward()
    return [cast(fb.Tensor, x.grad)]


def test_gradients_of_chunks_are_put_together(programs: list[Any]) -> None:
    def step(x: fb.Tensor, h: fb.Tensor) -> list[fb.Tensor]:
        x = x.detach().requires_grad_()
        a, b, c = (x * 1.5).chunk(3, 1)
        ((a * h).relu() + b.sigmoid() * c).sum().backward()
        return [cast(fb.Tensor, x.grad)]

    x = fb.randn(16, 96)
    x[:, 0] = -0.0
    agree(step, x, fb.randn(16, 32))
    assert "slice_backward" not in ops_of(programs)
    programs.clear()
    agree(step_of_rows, fb.randn(9, 4))
    assert "slice_backward" not in ops_of(programs)


def test_indices_are_checked_in_every_run() -> None:
    table = fb.randn(6, 4)
    compiled = fb.compile(lambda index: table.index_select(0, index[::2]) * 2 + 1)
    good = fb.tensor([0, 9, 5, 9])
    for _ in range(3):
        assert fb.equal(compiled(good), table[good[::2]] * 2 + 1)
    for wrong in (6, -1):
        with pytest.raises(IndexError, match="out of range"):
            compiled(fb.tensor([0, 0, wrong, 0]))
    assert compiled.explain().replays == 3


def test_a_gradient_of_few_of_the_parts_is_no_whole(programs: list[Any]) -> None:
    def step(x: fb.Tensor) -> list[fb.Tensor]:
        x = x.detach().requires_grad_()
        (x[:, :4].square() + x[:, 2:6] * 3).sum().backward()
        return [cast(fb.Tensor, x.grad)]

    agree(step, fb.randn(16, 8))
    assert ops_of(programs).count("slice_backward") == 2


def test_nothing_waits_past_a_write(programs: list[Any]) -> None:
    x = fb.randn(40)

    def step(y: fb.Tensor) -> list[fb.Tensor]:
        before = (x + y) * 2
        x.add_(1)
        return [before, (x + y) * 2]

    compiled = fb.compile(step)
    for _ in range(4):
        y = fb.randn(40)
        expected = [(x + y) * 2, (x + 1 + y) * 2]
        assert [memory(t) for t in compiled(y)] == [memory(t) for t in expected]
    assert ops_of(programs) == ["fused", "add_", "fused"]


class Step:
    """A step of a model with a table, which checks its indices."""

    def __init__(self) -> None:
        fb.manual_seed(0)
        self.table = fb.nn.Embedding(500, 128)
        self.layers = fb.nn.Sequential(fb.nn.Linear(128, 512), fb.nn.Tanh(), fb.nn.Linear(512, 500))
        parameters = [*self.table.parameters(), *self.layers.parameters()]
        self.optimizer = fb.optim.Adam(parameters, lr=0.01)

    def __call__(self, words: fb.Tensor) -> fb.Tensor:
        found = self.layers(self.table(words))
        self.optimizer.zero_grad()
        loss = (found.sigmoid() * 2 - 1).square().mean()
        loss.backward()
        self.optimizer.step()
        return loss.detach()


def test_a_plan_needs_no_more_memory_than_the_function() -> None:
    def peak(run: Any) -> int:
        words = fb.arange(256)
        for _ in range(4):
            run(words)
        gc.collect()
        fb.cpu.reset_peak_memory_stats()
        before = fb.cpu.memory_allocated()
        for _ in range(3):
            run(words)
        return fb.cpu.max_memory_allocated() - before

    assert 0 < peak(fb.compile(Step())) <= peak(Step())


def test_gradients_are_what_they_were_after_a_check_that_raised() -> None:
    found = []
    for plan in (False, True):
        step = Step()
        run = fb.compile(step) if plan else step
        for _ in range(4):
            run(fb.arange(5))
        with pytest.raises(IndexError):
            run(fb.arange(5) * 200)
        grads = [p.grad for group in step.optimizer.param_groups for p in group["params"]]
        found.append([memory(cast(fb.Tensor, g)) for g in grads])
    assert found[0] == found[1]


def test_a_recurrent_step_trains_as_without_a_plan() -> None:
    def losses(compiled: bool) -> list[float]:
        fb.manual_seed(0)
        cell = fb.nn.Linear(12, 32)
        optimizer = fb.optim.Adam(cell.parameters(), lr=0.05)
        words = fb.randn(6, 5, 4)

        def step() -> fb.Tensor:
            optimizer.zero_grad()
            h = c = fb.zeros(5, 8)
            for word in words:
                i, f, g, o = cell(fb.cat((word, h), 1)).chunk(4, 1)
                c = fb.sigmoid(f) * c + fb.sigmoid(i) * fb.tanh(g)
                h = fb.sigmoid(o) * fb.tanh(c)
            loss = (h - 0.5).square().mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        run = fb.compile(step) if compiled else step
        return [run().item() for _ in range(12)]

    assert losses(True) == losses(False)


def packed(*values: float) -> bytearray:
    return bytearray(struct.pack(f"{len(values)}f", *values))


def test_a_value_of_each_row_is_an_operand_of_either_side() -> None:
    x = fb.rand(6, 50)
    for name, expected in (("sub_rows", x - x.sum(-1, True)), ("rows_sub", x.sum(-1, True) - x)):
        operands = (0, 2) if name == "sub_rows" else (2, 0)
        code = (
            ("sum", False, 2, 0, 0, 0, 1.0, 0.0, 0.0),
            (name, False, 1, *operands, 0, 0.0, 0.0, 0.0),
        )
        out = fb.empty(6, 50)
        native.program((6, 50), "ff", 1, "0", (), 1, code)(x.numpy(), out.numpy())
        fb.testing.assert_close(out, expected)


LINE = ("add", False, 2, 0, 1, 0, 0.0, 0.0, 0.0)


def test_a_program_computes_its_lines() -> None:
    run = native.program((2,), "fff", 2, "0", (), 0, (LINE,))
    out = memoryview(packed(0, 0)).cast("f")
    run(memoryview(packed(1, 2)).cast("f"), memoryview(packed(3, 5)).cast("f"), out)
    assert list(out) == [4, 7]


@pytest.mark.parametrize(
    "text",
    [
        ((), "fff", 2, "0", (), 0, (LINE,)),
        ((2,) * 9, "fff", 2, "0", (), 0, (LINE,)),
        ((-1,), "fff", 2, "0", (), 0, (LINE,)),
        ((1 << 40, 1 << 40), "fff", 2, "0", (), 0, (LINE,)),
        ((2,), "fxf", 2, "0", (), 0, (LINE,)),
        ((2,), "Rff", 2, "0", (), 0, (LINE,)),
        ((2,), "fff", 4, "0", (), 0, (LINE,)),
        ((2,), "fff", 2, "", (), 0, (LINE,)),
        ((2,), "f" * 40, 39, "0", (), 0, (LINE,)),
        ((2,), "fff", 2, "0", (), 500, (LINE,)),
        ((2,), "fff", 2, "0", (), -1, (LINE,)),
        ((2,), "fff", 2, "0", (), 0, (LINE,) * 300),
        ((2,), "fff", 2, "0", (), 0, (("nothing", *LINE[1:]),)),
        ((2,), "fff", 2, "0", (), 0, (("add", True, *LINE[2:]),)),
        ((2,), "fff", 2, "0", (), 0, (("add", False, 0, 2, 1, 2, 0.0, 0.0, 0.0),)),
        ((2,), "fff", 2, "0", (), 0, (("add", False, 2, 0, 2, 0, 0.0, 0.0, 0.0),)),
        ((2,), "fff", 2, "0", (), 0, (("add", False, 2, 0, 3, 0, 0.0, 0.0, 0.0),)),
        ((2,), "fff", 2, "0", (), 0, (("add", False, 2, 0, -1, 0, 0.0, 0.0, 0.0),)),
        ((2,), "fff", 2, "0", (1.0,), 0, (("add", False, 3, 0, 1, 0, 0.0, 0.0, 0.0),)),
        ((2, 2), "ffR", 2, "0", (), 0, (LINE,)),
        ((2, 5000), "fR", 1, "0", (), 0, (("sum", False, 1, 0, 0, 0, 1.0, 0.0, 0.0),)),
        ((2, 2), "fRf", 1, "00", (), 0, (("neg", False, 2, 1, 1, 1, 1.0, 0.0, 0.0),)),
        ((2, 2), "fRf", 1, "00", (), 0, (("sub_rows", False, 2, 1, 0, 0, 0.0, 0.0, 0.0),)),
        ((2, 2), "fRf", 1, "00", (), 0, (("rows_sub", False, 2, 0, 1, 0, 0.0, 0.0, 0.0),)),
        ((2, 2), "fRf", 1, "00", (), 0, (("sub_rows", False, 1, 0, 0, 0, 0.0, 0.0, 0.0),)),
        ((2, 2), "ff", 1, "0", (), 0, (("sub_rows", True, 1, 0, 0, 0, 0.0, 0.0, 0.0),)),
        ((2, 2), "ff", 1, "0", (), 0, (("exp_rows", False, 1, 0, 0, 0, 0.0, 0.0, 0.0),)),
        ((2, 5000), "ff", 1, "0", (), 0, (("sub_rows", False, 1, 0, 0, 0, 0.0, 0.0, 0.0),)),
    ],
)
def test_a_program_that_makes_no_sense_is_refused(text: Any) -> None:
    with pytest.raises(ValueError, match=r"program\(\)"):
        native.program(*text)


@pytest.mark.parametrize("text", [(LINE[:4],), (7,), ((1, *LINE[1:]),)])
def test_lines_that_are_none_are_refused(text: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        native.program((2,), "fff", 2, "0", (), 0, text)


def test_arrays_that_a_program_was_not_made_for_are_refused() -> None:
    run = native.program((2,), "fff", 2, "0", (), 0, (LINE,))
    right, long = memoryview(packed(1, 2)).cast("f"), memoryview(packed(1, 2, 3)).cast("f")
    for args in ([long, right, right], [right, right, long], [right, right.cast("B"), right]):
        with pytest.raises(RuntimeError, match="is none that it was made for"):
            run(*args)
    with pytest.raises(RuntimeError, match="array 2"):  # a result is not repeated
        run(right, right, memoryview(packed(1)).cast("f"))
    with pytest.raises(BufferError):
        run(right, right, memoryview(bytes(8)).cast("f"))
    with pytest.raises(TypeError, match="3 arrays, got 2"):
        run(right, right)


def fused(results: Any, targets: Any, shape: Any = (2, 3), limit: int = 1 << 17) -> Any:
    """A program of two arrays that gives their sum, and makes its results."""
    outputs = len(targets)
    code = tuple([("add", False, 2 + i, 0, 1, 0, 0.0, 0.0, 0.0) for i in range(outputs)])
    run = native.program(shape, "ff" + "f" * outputs, 2, "0" * outputs, (), 0, code)
    return native.fused(run, results, targets, np.empty, limit)


F4 = np.dtype("f4")


@pytest.mark.parametrize("limit", [0, 1 << 17])
def test_a_program_makes_its_results(limit: int, unshared: None) -> None:
    x, y = np.arange(6, dtype="f4").reshape(2, 3), np.ones(3, "f4")
    one = fused((((2, 3), F4),), ((0, ()),), limit=limit)
    np.testing.assert_array_equal(one(x, y), x + y)
    np.testing.assert_array_equal(one(x.T.copy().T, x), x + x)
    two = fused((((2, 3), F4), ((2, 3), F4)), ((1, ()), (0, ())), limit=limit)
    first, second = two(x, y)
    assert first is not second
    assert (first == second).all()


def test_parts_of_a_result_lie_where_they_begin() -> None:
    x, y = np.arange(6, dtype="f4").reshape(2, 3), np.ones((2, 3), "f4")
    beside = fused((((2, 6), F4),), ((0, (0, 3)), (0, (0, 0))))(x, y)
    np.testing.assert_array_equal(beside, np.concatenate([x + y, x + y], 1))
    below = fused((((4, 3), F4),), ((0, (0, 0)), (0, (2, 0))))(x, y)
    np.testing.assert_array_equal(below, np.concatenate([x + y, x + y]))


@pytest.mark.parametrize(
    ("results", "targets"),
    [
        ((((2, 6), F4),), ((0, (0, 4)),)),
        ((((2, 6), F4),), ((0, (1, 0)),)),
        ((((2, 6), F4),), ((0, (1 << 40, 1 << 40)),)),
        ((((6,), F4),), ((0, (0, 0)),)),
        ((((2, 4), F4),), ((0, ()),)),
        ((((2, 3), np.dtype("f8")),), ((0, ()),)),
    ],
)
def test_results_that_a_program_does_not_fit_are_refused(results: Any, targets: Any) -> None:
    run = fused(results, targets)
    with pytest.raises(RuntimeError, match="lie within its result|none that it was made for"):
        run(np.ones((2, 3), "f4"), np.ones((2, 3), "f4"))


@pytest.mark.parametrize(
    ("results", "targets"),
    [
        ((), ((0, ()),)),
        ((((2, 3), F4),) * 40, ((0, ()),)),
        ((((2, 3), F4),), ((1, ()),)),
        ((((2, 3), F4),), ((-1, ()),)),
        ((((2, 3), F4),), ((0, (1,)),)),
        ((((2, 3), F4),), ((0, (-1, 0)),)),
        ((((2, 3), F4),), ((0, ("x", 0)),)),
        ((((2, 3), F4),), ((0, (1 << 62, 0)),)),
        ((7,), ((0, ()),)),
        ((([2, 3], F4),), ((0, ()),)),
        ((((2, 3), F4),), (0,)),
    ],
)
def test_results_that_make_no_sense_are_refused(results: Any, targets: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        fused(results, targets)


def test_only_programs_of_as_many_arrays_make_results() -> None:
    run = fused((((2, 3), F4),), ((0, ()),))
    with pytest.raises(TypeError, match="it takes 2 arrays, got 1"):
        run(np.ones((2, 3), "f4"))
    with pytest.raises(RuntimeError, match="none that it was made for"):
        run(np.ones((2, 4), "f4"), np.ones((2, 3), "f4"))
    for wrong in (len, native.silu_f32, None):
        with pytest.raises(TypeError, match="it takes a program"):
            native.fused(wrong, (((2, 3), F4),), ((0, ()),), np.empty, 0)


def test_what_makes_results_may_fail(unshared: None) -> None:
    def broken(shape: Any, dtype: Any) -> Any:
        raise LookupError(shape)

    run = native.program((2,), "fff", 2, "0", (), 0, (LINE,))
    x = np.ones(2, "f4")
    with pytest.raises(LookupError):
        native.fused(run, (((2,), F4),), ((0, ()),), broken, 0)(x, x)
    with pytest.raises(TypeError):
        native.fused(run, (((2,), F4),), ((0, ()),), lambda *_: None, 0)(x, x)


def test_kernels_share_a_pool_of_this_module_alone() -> None:
    for wrong in (7, np.ones(3), type):
        with pytest.raises(TypeError, match="a pool of this module"):
            native.share(wrong)
