"""Instructions of programs that are put together give the bits of the instructions one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flambeau_native.extension import native

SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3e38, -3e38, 88.8, -104.0, 1.0]
ONE = "neg abs square sqrt reciprocal rsqrt exp log tanh sigmoid silu sign".split()
TWO = "add sub mul div maximum".split()
LENGTHS = [512, 513, 527, 640, 1000, 1024, 1025, 3000, 4097]
Line = tuple[Any, ...]


def line(name: str, to: int, *given: int, number: float = 1.0, is_row: bool = False) -> Line:
    a, b, c = (*given, *[given[0]] * (3 - len(given)))
    return (name, is_row, to, a, b, c, number, 0.0, 0.0)


def numbers_of(rng: np.random.Generator, *shape: int) -> Any:
    """Numbers of both signs; many rows are finite, others are not, and NaN differ in their bits."""
    found = rng.normal(size=shape).astype("f4")
    odd = rng.random(shape) < (rng.choice([0.0, 0.1], (*shape[:-1], 1)) if shape[1:] else 0.1)
    found[odd] = rng.choice(np.array(SPECIAL, "f4"), int(odd.sum()))
    nan = np.isnan(found)
    bits = 0x7FC00000 + rng.integers(0, 1 << 20, int(nan.sum()))
    found[nan] = bits.astype("u4").view("f4")
    return found


def strided(rng: np.random.Generator, shape: tuple[int, ...], how: int) -> Any:
    """An array of a shape, row-major or with gaps or columns first or repeated along rows."""
    if how == 1:
        return numbers_of(rng, *shape[:-1], 2 * shape[-1])[..., ::2]
    if how == 2:
        return numbers_of(rng, *reversed(shape)).T
    if how == 3:
        return numbers_of(rng, shape[-1])
    if how == 4:
        return numbers_of(rng, *shape[:-1], shape[-1] + 3)[..., 2:-1]
    return numbers_of(rng, *shape)


class Machine:
    """Registers, and what single instructions make of them."""

    def __init__(self, shape: tuple[int, ...], arrays: list[Any], values: list[float]) -> None:
        self.shape = shape
        self.rows = (*shape[:-1], 1)
        self.registers: dict[int, Any] = dict(enumerate(arrays))
        self.values = values

    def run(self, text: Line, outputs: str, first: int) -> None:
        """One instruction as a program of its own, whose operands are inputs."""
        name, is_row, to, *given = text[:6]
        count = 1 if name in ONE or name == "sum" else 2
        slots = [first + len(outputs) + i for i in range(len(self.values))]
        inputs: list[Any] = []
        for r in given[:count]:
            if r in slots:
                inputs.append(np.float32(self.values[slots.index(r)]))
            else:
                inputs.append(self.registers[r])
        by_row = name.endswith("_rows") or name.startswith("rows_")
        gives_row = name == "sum" or is_row
        if by_row:
            place = 1 if name.endswith("_rows") else 0
            inputs[place] = np.broadcast_to(inputs[place], self.shape)
            name = name.removesuffix("_rows").removeprefix("rows_")
        shape = self.rows if is_row else self.shape
        inputs = [np.broadcast_to(x, shape) for x in inputs]
        out = np.empty(self.rows if gives_row else self.shape, "f4")
        kinds = "f" * count + ("R" if name == "sum" else "f")
        code = (line(name, count, *range(count), number=text[6]),)
        native.program(shape, kinds, count, "0", (), 0, code)(*inputs, out)
        self.registers[to] = out


def check(
    shape: tuple[int, ...], arrays: list[Any], values: list[float], code: list[Line], outputs: str
) -> None:
    """The outputs of a program against those of its lines; `outputs` has a kind for each."""
    first = len(arrays)
    read = {r for text in code for r in text[3:6]}
    flags = "".join("1" if first + i in read else "0" for i in range(len(outputs)))
    top = max([first + len(outputs) + len(values) - 1, *[text[2] for text in code]]) + 1
    temporary = top - first - len(outputs) - len(values)
    run = native.program(
        shape, "f" * first + outputs, first, flags, tuple(values), temporary, tuple(code)
    )
    rows = (*shape[:-1], 1)
    found = [np.full(rows if kind == "R" else shape, 7, "f4") for kind in outputs]
    machine = Machine(shape, arrays, values)
    for text in code:
        machine.run(text, outputs, first)
    run(*arrays, *found)
    for i, out in enumerate(found):
        expected = np.ascontiguousarray(machine.registers[first + i])
        np.testing.assert_array_equal(out.view("u4"), expected.view("u4"))


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.data())
def test_chains_give_what_their_instructions_give(data: st.DataObject) -> None:
    length = data.draw(st.sampled_from(LENGTHS))
    shape = data.draw(st.sampled_from([(length,), (length // 40 + 1, 40), (3, length // 3, 5)]))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    arrays = [strided(rng, shape, how) for how in (0, data.draw(st.integers(0, 4)), 0)]
    values = [0.5, float(data.draw(st.sampled_from(SPECIAL)))]
    outputs = "f" * data.draw(st.integers(1, 3))
    first = len(arrays)
    free = first + len(outputs) + len(values)
    slots = [*range(first, first + len(outputs)), *range(free, free + 3)]
    known, code = list(range(first)), []
    count = data.draw(st.integers(len(outputs) + 1, 12))
    for i in range(count):
        name = data.draw(st.sampled_from([*ONE, *TWO, *TWO, *TWO]))
        left = len(outputs) - (count - i)
        to = slots[left] if left >= 0 else data.draw(st.sampled_from(slots))
        operands = [x for x in known if x != to] or [0]
        # What came last is likely, on either side.
        last = operands[-1]
        given = [
            data.draw(st.sampled_from([last, last, *operands, free - 1, free - 2])) for _ in "ab"
        ]
        if all(x >= free - 2 and x < free for x in given):
            given[0] = 0
        code.append(line(name, to, *given[: 1 if name in ONE else 2]))
        known = [x for x in known if x != to] + [to]
    with np.errstate(all="ignore"):
        check(shape, arrays, values, code, outputs)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.data())
def test_products_with_numbers_are_added_as_by_their_instructions(data: st.DataObject) -> None:
    """Whether they wait for their sums or not: what they are of may be written meanwhile."""
    length = data.draw(st.sampled_from([512, 527, 1000, 1025]))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    arrays = [numbers_of(rng, length) for _ in range(2)]
    values = [0.5, float(data.draw(st.sampled_from(SPECIAL)))]
    outputs, temporary, numbers = (2, 3), (6, 7, 8), (4, 5)
    known, code = [0, 1], []
    count = data.draw(st.integers(4, 12))
    for i in range(count):
        left = 2 - (count - i)
        to = outputs[left] if left >= 0 else data.draw(st.sampled_from([*outputs, *temporary]))
        operands = [x for x in known if x != to]
        if data.draw(st.booleans()):
            given = [data.draw(st.sampled_from(operands)), data.draw(st.sampled_from(numbers))]
            code.append(line("mul", to, *data.draw(st.permutations(given))))
        else:
            name = data.draw(st.sampled_from(["add", "sub"]))
            others = [data.draw(st.sampled_from([*operands[-2:], *operands])) for _ in "ab"]
            code.append(line(name, to, *others))
        known = [x for x in known if x != to] + [to]
    with np.errstate(all="ignore"):
        check((length,), arrays, values, code, "ff")


@pytest.mark.parametrize("second", ["square", "times", "plus"])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_passes_over_rows_give_what_their_instructions_give(name: str, second: str) -> None:
    """Of rows of all lengths, with what is between needed later and not."""
    rng = np.random.default_rng(3)
    for columns in [*range(1, 71), 100, 127, 128, 255, 256, 300, 1000]:
        rows = 1 + 1100 // columns
        x, y, z = (numbers_of(rng, rows, columns) for _ in "xyz")
        y, z = (y[0] if columns % 2 else y), (z[0] if columns % 3 else z)
        for is_kept in (False, True):
            code = [line("sum", 6, 0, number=float(columns)), line(f"{name}_rows", 7, 0, 6)]
            if second == "square":
                code += [line("mul", 8, 7, 7), line("sum", 6, 8), line("sqrt", 4, 6, is_row=True)]
            else:
                code.append(line("mul", 8, 7, 1))
                code.append(line("add", 9, 8, 2) if second == "plus" else line("neg", 9, 8))
                code.append(line("sum", 4, 9))
            code.append(line("mul", 3, 7 if is_kept else 0, 5))
            check((rows, columns), [x, y, z], [0.25], code, "fR")


@settings(max_examples=500, deadline=None, derandomize=True)
@given(st.data())
def test_rows_are_normalised_as_by_single_instructions(data: st.DataObject) -> None:
    """Whatever else the registers have before and after, and whoever reads what is between."""
    columns = data.draw(st.sampled_from([1, 3, 16, 17, 50, 64, 255, 256, 300]))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    shape = (1 + 1100 // columns, columns)
    x, weight = numbers_of(rng, *shape), numbers_of(rng, columns)
    bias = numbers_of(rng, *data.draw(st.sampled_from([shape, shape[1:]])))

    def any_of(*registers: int, but: int = -1) -> int:
        return data.draw(st.sampled_from([x for x in registers if x != but]))

    mean, centred = 6, 7
    variance = any_of(mean, 8)
    scale = any_of(mean, 8, 9, but=variance)
    scaled = any_of(10, 14)
    weighted = any_of(11, 14, centred, but=scaled)
    by_row = data.draw(st.sampled_from(["mul_rows", "div_rows", "add_rows"]))
    code = [
        line("sum", mean, 0, number=float(columns)),
        line("sub_rows", centred, 0, mean),
        line("mul", 14, centred, centred),
        line("sum", variance, 14, number=float(columns)),
        line("rsqrt", scale, variance, is_row=True),
        line(by_row, scaled, centred, scale),
        line("mul", weighted, scaled, 1),
        line("add", 3, weighted, 2),
    ]
    # What is read by others, or written anew, before, between and after.
    others = [
        line("sum", 4, centred),
        line("mul", 12, centred, 0),
        line("sum", 4, 12),
        line("neg", centred, 0),
        line("neg", mean, scale, is_row=True),
        line("add", 4, mean, 5, is_row=True),
        line("sub_rows", 15, 0, mean),
        line("sum", 4, 15),
        line("add", 3, 0, centred),
    ]
    for other in data.draw(st.lists(st.sampled_from(others), min_size=1, max_size=4)):
        place = data.draw(st.integers(1, len(code)))
        written = {text[2] for text in code[:place]}
        if {x for x in other[3:6] if x > 5} <= written and other[2] not in other[3:6]:
            code.insert(place, other)
    if 4 not in {text[2] for text in code}:
        code.append(line("neg", 4, scale, is_row=True))
    with np.errstate(all="ignore"):
        check(shape, [x, weight, bias], [0.25], code, "fR")


def adam(first: int) -> list[Line]:
    """A step of Adam on inputs m, g, v, p, whose outputs begin at `first`, numbers after them."""
    n = first + 3
    t = n + 6
    return [
        *(line("mul", t, 0, n), line("mul", t + 1, 1, n + 1), line("add", first, t, t + 1)),
        *(line("mul", t + 1, 2, n + 2), line("mul", t, 1, 1), line("mul", t + 2, t, n + 3)),
        *(line("add", first + 1, t + 1, t + 2), line("div", t + 2, first, n)),
        *(line("mul", t + 1, t + 2, n + 4), line("div", t + 2, first + 1, n + 2)),
        *(line("sqrt", t, t + 2), line("add", t + 2, t, n + 5), line("div", t, t + 1, t + 2)),
        line("sub", first + 2, 3, t),
    ]


@pytest.mark.parametrize("shape", [(70_001,), (1400, 50), (640_003,), (4, 250_001)])
def test_chains_of_large_arrays(shape: tuple[int, ...], threads: Any) -> None:
    """Arrays beyond the caches: what comes next is asked for, results go past the caches."""
    rng = np.random.default_rng(5)
    arrays = [numbers_of(rng, *shape) for _ in range(3)]
    arrays[2] = np.abs(arrays[2])
    arrays.append(strided(rng, shape, 4))
    for count in (1, 2):
        threads(count)
        check(shape, arrays, [0.9, 0.1, 0.999, 0.001, 0.01, 1e-8], adam(4), "fff")
    norm = [
        *(line("mul", 9, 0, 1), line("sum", 10, 9, number=50.0), line("sub_rows", 9, 0, 10)),
        *(line("mul", 11, 9, 9), line("sum", 12, 11, number=50.0)),
        *(line("add", 10, 12, 8, is_row=True), line("rsqrt", 12, 10, is_row=True)),
        *(line("mul_rows", 11, 9, 12), line("mul", 9, 11, 1), line("add", 4, 9, 2)),
        *(line("mul", 5, 4, 4), line("sum", 6, 5), line("sub", 7, 5, 0)),
    ]
    if shape[-1] == 50:
        check(shape, arrays, [1e-5], norm, "ffRf")


def test_rows_beyond_the_caches_are_normalised(threads: Any) -> None:
    """What comes next of two arrays is asked for where there is more of it."""
    rng = np.random.default_rng(6)
    for rows in (1400, 34_000):
        arrays = [numbers_of(rng, rows, 50), numbers_of(rng, 50), numbers_of(rng, 50)]
        code = [
            *(line("sum", 6, 0, number=50.0), line("sub_rows", 7, 0, 6), line("mul", 8, 7, 7)),
            *(line("sum", 9, 8, number=50.0), line("add", 6, 9, 5, is_row=True)),
            *(line("rsqrt", 9, 6, is_row=True), line("mul_rows", 8, 7, 9), line("mul", 7, 8, 1)),
            *(line("add", 3, 7, 2), line("neg", 4, 9, is_row=True)),
        ]
        for count in (1, 2):
            threads(count)
            check((rows, 50), arrays, [1e-5], code, "fR")


def test_results_with_gaps_are_written(threads: Any) -> None:
    """Of outputs that are parts of larger arrays, nothing beside them is touched."""
    rng = np.random.default_rng(6)
    x, y = numbers_of(rng, 300, 70), numbers_of(rng, 300, 70)
    wide = np.full((300, 100), 7, "f4")
    code = (line("mul", 3, 0, 1), line("add", 2, 3, 0))
    for count in (1, 2):
        threads(count)
        native.program((300, 70), "fff", 2, "0", (), 1, code)(x, y, wide[:, 20:90])
        single = np.empty((300, 70), "f4")
        native.program((300, 70), "fff", 2, "0", (), 0, (line("mul", 2, 0, 1),))(x, y, single)
        last = np.empty((300, 70), "f4")
        native.program((300, 70), "fff", 2, "0", (), 0, (line("add", 2, 0, 1),))(single, x, last)
        np.testing.assert_array_equal(wide[:, 20:90].copy().view("u4"), last.view("u4"))
        assert (wide[:, :20] == 7).all()
        assert (wide[:, 90:] == 7).all()


@pytest.mark.parametrize("place", range(4))
def test_of_two_nan_the_first_is_the_result(place: int) -> None:
    """Whether the operands are arrays, numbers, or what came before."""
    a, b = (np.full(700, bits, "u4").view("f4") for bits in (0x7FC00001, 0x7FC00002))
    out = np.empty(700, "f4")
    for name in ("add", "sub", "mul", "div"):
        text = [
            [line("abs", 3, 0), line(name, 2, 3, 1)],
            [line("abs", 3, 0), line(name, 2, 1, 3)],
            [line(name, 2, 0, 1)],
            [line(name, 3, 0, 1), line("abs", 2, 3)],
        ][place]
        native.program((700,), "fff", 2, "0", (), 1, tuple(text))(a, b, out)
        assert set(out.view("u4").tolist()) == {0x7FC00002 if place == 1 else 0x7FC00001}
