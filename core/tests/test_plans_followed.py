"""Numbers that a function counts up are after each run of a plan what the function leaves."""

from __future__ import annotations

import collections
import copy
import functools
import json
import math

import pytest
from plans_agree import memory

import flambeau as fb


class Place:
    """Where numbers are kept."""


USES = {
    "factor": lambda x, n: x * n,
    "factor before": lambda x, n: n * x,
    "divisor": lambda x, n: x / n,
    "dividend": lambda x, n: n / x,
    "summand": lambda x, n: x + n,
    "minuend": lambda x, n: n - x,
    "exponent": lambda x, n: x.abs() ** n,
    "base": lambda x, n: n**x,
    "alpha": lambda x, n: x.add(x, alpha=n),
    "value": lambda x, n: fb.addcmul(x, x, x, value=n),
    "weight": lambda x, n: fb.lerp(x, x * 2, n),
    "bounds": lambda x, n: x.clamp(-n, n),
    "comparison": lambda x, n: x.where(x > n, x * 2),
    "factor of whole numbers": lambda x, n: (x * 10).long() * n,
    "factor of doubles": lambda x, n: x.double() * n,
    "factor in place": lambda x, n: x.clone().mul_(n),
    "divisor in place": lambda x, n: x.clone().div_(n),
    "alpha in place": lambda x, n: x.clone().sub_(x, alpha=n),
    "value in place": lambda x, n: x.clone().addcdiv_(x, x.abs() + 1, value=-n),
    "filling": lambda x, n: x.clone().fill_(n),
    "filling where": lambda x, n: x.masked_fill(x > 0, n),
    "negative": lambda x, n: x * -n * abs(-n),
    "zero": lambda x, n: x * (n - n),
    "rest": lambda x, n: x * (n % 3) * (n // 2),
    "root": lambda x, n: x * math.sqrt(1 - 0.9**n) / math.exp(-n / 9),
    "rounded": lambda x, n: x * math.floor(n) * round(n, 1),
    "larger": lambda x, n: x * max(n, 1.5) * min(1.0, 2 / n),
    "decision": lambda x, n: x * 2 if n % 2 == 0 else x * 3,
    "truth": lambda x, n: x * 2 if n % 3 else x * 3,
}
READ = {
    "text": lambda x, n: x * len(f"{n}"),
    "whole number": lambda x, n: x * int(n),
    "float": lambda x, n: x * float(n),
    "key": lambda x, n: x * {n: 3.0}[n],
    "copy": lambda x, n: x * copy.deepcopy(n),
    "times": lambda x, n: x * len(range(math.ceil(n))) if n < 50 else x,
    "tensor": lambda x, n: x * fb.tensor(n),
    "complex": lambda x, n: x * (n * 1j).imag,
}
PLACES = {
    "index": lambda x, n: x[n % 3],
    "slice": lambda x, n: x[: n % 3 + 1],
    "from": lambda x, n: x[n % 2 :],
    "size": lambda x, n: x.expand(n, 3),
    "shape": lambda x, n: x.repeat(n),
    "view": lambda x, n: fb.zeros(n, 2).view(2, n),
    "new": lambda x, n: fb.full((n,), 2.0),
    "range": lambda x, n: fb.arange(n),
    "end": lambda x, n: fb.linspace(0, 1, n),
    "dimension": lambda x, n: x.expand(2, 3).sum(n % 2),
    "turned": lambda x, n: x.roll(n),
    "most": lambda x, n: x.topk(n % 3 + 1).values,
    "selected": lambda x, n: x.select(0, n % 3),
    "part": lambda x, n: x.narrow(0, 0, n % 3 + 1),
    "padding": lambda x, n: fb.nn.functional.pad(x, (n, 0)),
    "classes": lambda x, n: fb.nn.functional.one_hot(x.long().clamp(0, 0), n),
    "power": lambda x, n: fb.linalg.matrix_power(x.expand(3, 3), n),
    "drawn": lambda x, n: fb.randint(n, (2,)) * 0,
    "diagonal": lambda x, n: x.expand(3, 3).diagonal(n % 3),
    "triangle": lambda x, n: x.expand(3, 3).tril(n % 3),
    "chunks": lambda x, n: x.chunk(n)[0],
    "running": lambda x, n: x.expand(2, 3).cumsum(n % 2),
    "norm": lambda x, n: x.norm(n),
    "bins": lambda x, n: fb.histc(x, n, 0, 1),
    "repeated": lambda x, n: x.repeat_interleave(n),
    "rounded": lambda x, n: x.round(decimals=n),
    "spread": lambda x, n: x.expand(2, 3).std(0, correction=n % 2),
    "quantile": lambda x, n: x.quantile(1 / (n + 1)),
    "kth": lambda x, n: x.kthvalue(n % 3 + 1).values,
    "softplus": lambda x, n: fb.nn.functional.softplus(x, n),
    "polygamma": lambda x, n: fb.polygamma(n, x.abs() + 1),
    "shift": lambda x, n: x.long() << n,
    "eye": lambda x, n: fb.eye(n),
    "tensor": lambda x, n: fb.tensor([n, 2]),
    "list": lambda x, n: fb.tensor([1.0, 2.0, 3.0])[[n % 3, 0]],
    "set": lambda x, n: x.index_fill(0, fb.tensor([0]), n),
    "into": lambda x, n: fb.full_like(x, n),
    "scatter": lambda x, n: x.scatter(0, fb.tensor([0]), n),
    "celu": lambda x, n: fb.nn.functional.celu(x, n),
    "threshold": lambda x, n: fb.nn.functional.threshold(x, n, 7),
    "gap": lambda x, n: fb.nn.functional.huber_loss(x, x * 2, delta=n),
}


def runs(use, start, by, compiled, device="cpu"):
    """Results and counts of some calls of a function that counts and uses the count."""
    place, found = Place(), []
    place.count = start

    def step(x):
        place.count += by
        return use(x, place.count)

    run = fb.compile(step) if compiled else step
    for i in range(9):
        result = run(fb.tensor([0.5, -2.0, float(i)], device=device))
        found.append((memory(result), type(result), place.count, type(place.count)))
    return run, found


@pytest.mark.parametrize(("start", "by"), [(0, 1), (0.5, 0.25), (4, 2.5)])
@pytest.mark.parametrize("use", USES)
def test_a_count_is_used_as_it_is_at_the_time(use, start, by, device):
    run, found = runs(USES[use], start, by, True, device)
    assert found == runs(USES[use], start, by, False, device)[1]
    assert run.explain().replays >= 3


@pytest.mark.parametrize("start", [1, 1.5])
@pytest.mark.parametrize("use", READ)
def test_a_count_that_something_else_reads_has_no_plan(use, start):
    run, found = runs(READ[use], start, 1, True)
    assert found == runs(READ[use], start, 1, False)[1]
    assert run.explain().replays == 0
    assert "a number that changes was read" in str(run.explain())


@pytest.mark.parametrize("use", PLACES)
def test_a_count_that_is_a_size_or_a_place_is_the_one_of_the_time(use):
    assert runs(PLACES[use], 1, 1, True)[1] == runs(PLACES[use], 1, 1, False)[1]


def test_what_follows_from_counts_is_kept_beside_them():
    def make(compiled):
        state = {"step": 0, "product": 1.0, "last": 0}

        def step(x):
            state["step"] += 1
            rate = 0.9 * (1 - 0.5 * 0.96 ** state["step"])
            state["product"] *= rate
            if state["step"] % 3 == 0:
                state["last"] = 0
            else:
                state["last"] = state["step"]
            return x * state["product"] + state["last"]

        run = fb.compile(step) if compiled else step
        return run, [(run(fb.ones(2)).tolist(), dict(state)) for _ in range(14)]

    run, found = make(True)
    assert found == make(False)[1]
    assert run.explain().plans == 2 and run.explain().replays > 6


def test_a_count_is_what_it_was_where_a_check_before_it_fails():
    def make(compiled):
        place, found = Place(), []
        place.before = place.behind = 0

        def step(x, at):
            place.before += 1
            picked = x[at]
            place.behind += 1
            return picked * place.before

        run = fb.compile(step) if compiled else step
        for at in (0, 1, 0, 2, 7, 1, 7, 0):
            try:
                found.append(run(fb.ones(3), fb.tensor([at])).item())
            except IndexError as error:
                found.append(str(error))
            found.append((place.before, place.behind))
        return run, found

    run, found = make(True)
    assert found == make(False)[1]
    assert run.explain().replays == 5


def test_a_number_that_others_change_is_followed_where_it_can_be():
    place = Place()
    place.weight, place.size = 1.0, 2
    f = fb.compile(lambda x: (x * place.weight)[: place.size])
    for i in range(12):
        place.weight = 1 / (i + 1)
        assert f(fb.ones(3)).tolist() == (fb.ones(3) * place.weight)[:2].tolist()
    assert (f.explain().plans, f.explain().replays) == (2, 9)
    text = fb.compile(lambda x: x * len(str(place.weight)))
    for weight in (1.0, 1.0, 0.25, 0.25, 1.0, 0.25, 0.125, 0.125):
        place.weight = weight
        assert text(fb.ones(1)).item() == len(str(weight))
    assert text.explain().replays >= 2


def test_a_number_is_a_plain_one_wherever_it_was_left():
    place, log, table = Place(), [object()] * 1001, dict.fromkeys(range(1001), object())
    place.count = 0

    def step(x):
        place.count += 1
        log[0] = table[0] = place.count + 1  # of so many nobody looks after each
        return x * place.count

    f = fb.compile(step)
    for i in range(1, 6):
        assert (f(fb.ones(1)).item(), place.count, log[0], table[0]) == (i, i, i + 1, i + 1)
        assert {type(place.count), type(log[0]), type(table[0])} == {int}
    assert "is kept where it is not seen" in str(f.explain())


def test_a_number_that_is_returned_is_a_plain_one():
    place = Place()
    place.count = 0

    def step(x):
        place.count += 1
        return {"x": x * place.count, "counts": [place.count, place.count / 2]}

    f = fb.compile(step)
    for i in range(1, 6):
        found = f(fb.ones(1))
        assert (found["x"].item(), found["counts"]) == (i, [i, i / 2])
        assert [type(n) for n in found["counts"]] == [int, float]
    assert f.explain().replays == 0


LEFT = {
    "attribute": lambda held, n: setattr(held[0], "left", n),
    "slot": lambda held, n: setattr(held[1], "left", n),
    "deque": lambda held, n: held[2].append(n),
    "set": lambda held, n: held[3].add(n),
    "key": lambda held, n: held[4].update({n: 1}),
    "tuple": lambda held, n: held.__setitem__(5, (0, (n, n / 2))),
}


def numbers_in(held):
    """All that may be a number in what `LEFT` fills, and its type."""
    parts = [getattr(held[0], "left", 0), getattr(held[1], "left", 0), *held[2], *held[3]]
    parts += [*held[4], *held[4].values(), *held[5][:1], *held[5][1]]
    return [(part, type(part)) for part in parts]


@pytest.mark.parametrize("way", LEFT)
def test_a_number_that_was_left_in_an_object_nobody_sees_is_a_plain_one(way):
    class Slotted:
        __slots__ = ("left",)

    def make(compiled):
        place, leave, found = Place(), LEFT[way], []
        held = [Place(), Slotted(), collections.deque(maxlen=2), set(), {}, (0, ())]
        held += [object()] * 1001  # of so many nobody looks after each
        place.count = 0

        def step(x):
            place.count += 1
            leave(held, place.count)
            return x * place.count

        run = fb.compile(step) if compiled else step
        for _ in range(5):
            found.append((run(fb.ones(1)).item(), place.count, numbers_in(held)))
        return found

    assert make(True) == make(False)


def test_a_number_that_something_keeps_is_followed_no_further_than_its_capture():
    place = Place()
    place.count = 0.0
    halved = functools.lru_cache(lambda n: n / 2)  # which keeps it where nobody can put another

    def step(x):
        place.count += 1
        return x * halved(place.count)

    f = fb.compile(step)
    for i in range(1, 6):
        assert f(fb.ones(1)).item() == i / 2
        later = [halved(float(n)) + 1 for n in range(1, i + 1)]
        assert (later, {*map(type, later)}) == ([n / 2 + 1 for n in range(1, i + 1)], {float})


KINDS = {
    "power of a whole number": (4, -1, lambda x, n: (x * 8).long() * 2**n),
    "root": (3.5, -1, lambda x, n: x * n**0.5),
    "64 bits": (2**59, 2**59, lambda x, n: x * (4 * n)),
    "of whole numbers": (2**59, 2**59, lambda x, n: x.long() * (4 * n)),
    "divisor": (6, -1, lambda x, n: x.long() // n),
    "divisor of few bits": (250, 1, lambda x, n: x.abs().byte() % n),
    "size of a float": (1e30, 1e38, lambda x, n: x.clone().fill_(n)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_number_of_another_sort_makes_what_it_makes(kind):
    start, by, use = KINDS[kind]

    def make(compiled):
        place, found = Place(), []
        place.count = start

        def step(x):
            place.count += by
            return use(x, place.count)

        run = fb.compile(step) if compiled else step
        for i in range(9):
            try:
                result = run(fb.tensor([0.5, -2.0, float(i)]))
                found.append((result.dtype, repr(result.tolist())))
            except RuntimeError as error:
                found.append((type(error), str(error)))
            found.append((place.count, type(place.count)))
        return run, found

    run, found = make(True)
    assert found == make(False)[1]
    assert run.explain().plans > 0


def test_what_is_no_number_any_more_is_seen_where_nothing_computes_with_it():
    place = Place()
    place.best = 1.0
    f = fb.compile(lambda x: x * 2 if place.best is not None else x * 3)
    for best in (1.0, 1.0, 0.5, 0.25, 0.125, None, 0.1, None):
        place.best = best
        assert f(fb.ones(1)).item() == (3 if best is None else 2)
    assert f.explain().replays >= 2


def test_the_run_that_is_made_again_finds_what_the_first_one_found():
    def make(compiled):
        place, log, seen, names, found = Place(), [], set(), {"a": 1}, []
        place.count, place.text = 0, ""

        def step(x):
            place.count += 1
            if place.count % 4 == 0:
                place.text += "a"
                log.append(4)
                seen.add(len(log))
                names[place.text] = len(names)
                raise ValueError("four")
            return x * place.count

        run = fb.compile(step) if compiled else step
        for _ in range(12):
            try:
                found.append(run(fb.ones(1)).item())
            except ValueError:
                found.append((place.count, place.text, [*log], sorted(seen), dict(names)))
        return run, found

    run, found = make(True)
    assert found == make(False)[1]
    assert run.explain().replays > 3


@pytest.mark.parametrize("counts", [False, True])
def test_gradients_of_what_a_number_scaled_are_those_of_the_time(counts):
    def make(compiled):
        place, w = Place(), fb.tensor([0.5, -2.0, 3.0], requires_grad=True)
        place.scale = 1.0

        def scaled(x):
            if counts:
                place.scale += 0.5
            y = (w * place.scale).add(x, alpha=place.scale) ** place.scale
            return (y.lerp(x, place.scale) / place.scale).clamp(-place.scale, 9).sum()

        run, found = fb.compile(scaled) if compiled else scaled, []
        for i in range(8):
            if not counts:
                place.scale = 1.5 + i
            w.grad = None
            loss = run(fb.tensor([4.0, 5.0, 1.0 + i]))
            loss.backward()
            found.append((loss.item(), w.grad.tolist(), place.scale))
        return found

    assert repr(make(True)) == repr(make(False))


def test_a_run_that_fails_for_a_number_that_is_followed_is_made_again(device):
    def make(compiled):
        place, drawn = Place(), fb.Generator(device).manual_seed(5)
        w = fb.ones(2, device=device, requires_grad=True)
        w.grad, place.count = fb.zeros(2, device=device), 0

        def step(x):
            place.count += 1
            (w * x).sum().backward()
            with fb.no_grad():
                w.sub_(w.grad + fb.rand(2, device=device, generator=drawn))
            place.last = json.dumps([1])
            return w * len(json.dumps({"count": place.count}))  # which wants a number of Python's

        run, found = fb.compile(step) if compiled else step, []
        for i in range(6):
            kept = w.grad
            result = run(fb.ones(2, device=device) * i).tolist()
            found.append((result, w.tolist(), w.grad.tolist(), w.grad is kept, place.count))
        return run, found

    run, found = make(True)
    assert found == make(False)[1]
    assert "TypeError was raised while a number that changes was followed" in str(run.explain())


def test_a_number_is_a_plain_one_behind_an_error_of_the_program():
    place = Place()
    place.count = 0

    def step(x):
        place.count += 1
        if place.count == 3:
            raise ValueError("three")
        return x * place.count

    f = fb.compile(step)
    for i in range(1, 8):
        if i == 3:
            with pytest.raises(ValueError, match="three"):
                f(fb.ones(1))
        else:
            assert f(fb.ones(1)).item() == i
        assert type(place.count) is int and math.sqrt(4) == 2
    assert f.explain().replays == 3


@pytest.mark.parametrize("kind", [type, lambda x: x.__class__], ids=["type", "class"])
def test_a_program_that_asks_for_types_is_told_the_right_ones(kind):
    place = Place()
    place.count = 0

    def step(x):
        place.count += 1
        return x * 2 if kind(place.count) is int else x * 3

    f = fb.compile(step)
    for _ in range(5):
        assert f(fb.ones(1)).item() == 2
    assert isinstance(place.count, int)
