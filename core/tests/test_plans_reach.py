"""What a plan depends on: what the function can read, wherever it is kept."""

import argparse
import collections
import gc
import itertools
import random
import types
import weakref

import numpy as np
import pytest

import flambeau as fb


class Slotted:
    """An object without a dictionary."""

    __slots__ = ("by",)


class Constants:
    """A class that is used as a namespace."""

    by = 0.0


class Scale:
    """Something that the function makes anew in every run."""

    def __init__(self):
        self.by = Constants.by

    def __call__(self, x):
        return x * self.by


class Scaled(fb.autograd.Function):
    """A function with a gradient that reads a global."""

    @staticmethod
    def forward(ctx, x):
        return x * Constants.by

    @staticmethod
    def backward(ctx, g):
        return g * Constants.by


def counted(x):
    """A function with an attribute of its own."""
    return x * counted.by


def attribute(holder):
    """A reader and a writer of an attribute."""
    return lambda x: x * holder.by, lambda value: setattr(holder, "by", value)


def entry(holder, key="by"):
    """A reader and a writer of an entry."""
    return lambda x: x * float(holder[key]), lambda value: holder.__setitem__(key, value)


def by_text():
    holder = argparse.Namespace(by=0.0)
    return lambda x: x * getattr(holder, "by"), lambda value: setattr(holder, "by", value)  # noqa: B009


def behind_a_proxy():
    held = {"by": 0.0}
    proxy = types.MappingProxyType(held)
    return lambda x: x * proxy["by"], lambda value: held.update(by=value)


def of_a_set():
    held = {0.0}
    return lambda x: x * sum(held), lambda value: (held.clear(), held.add(value))


def first_of_a_dict():
    held = {0.0: None, 1.0: None, 2.0: None}

    def put_first(value):
        for key in [key for key in held if key != value]:
            held[key] = held.pop(key)

    return lambda x: x * next(iter(held)), put_first


def in_a_compiled_function():
    held = [0.0]
    inner = fb.compile(lambda x: x * held[0])
    return lambda x: inner(x), lambda value: held.__setitem__(0, value)


def in_a_list_that_becomes_a_tensor():
    held = [0.0]

    def function(x):
        made = fb.tensor([[1.0, held[0]], [2, True]], device=x.device)
        made[0, 0] += 1
        assert made.shape == (2, 2)
        return x * made[0, 1] + (made[0, 0] - 2)

    return function, lambda value: held.__setitem__(0, value)


def set_constant(value):
    """Write the attribute of a class."""
    Constants.by = value


@pytest.mark.parametrize(
    "make",
    [
        lambda: attribute(argparse.Namespace(by=0.0)),
        lambda: attribute(types.SimpleNamespace(by=0.0)),
        lambda: attribute(Slotted()),
        lambda: attribute(Constants),
        lambda: (lambda x: Scale()(x), set_constant),
        lambda: (Scaled.apply, set_constant),
        lambda: (lambda x: Scaled.apply(x), set_constant),
        lambda: (counted, lambda value: setattr(counted, "by", value)),
        lambda: entry(collections.deque([0.0]), 0),
        lambda: entry(collections.UserDict(by=0.0)),
        lambda: entry(collections.ChainMap({"by": 0.0})),
        lambda: entry(np.zeros(2, np.float32), 1),
        by_text,
        behind_a_proxy,
        of_a_set,
        first_of_a_dict,
        in_a_compiled_function,
        in_a_list_that_becomes_a_tensor,
    ],
)
def test_a_value_is_read_anew_wherever_it_is_kept(plain, make):
    function, write = make()
    write(0.0)
    compiled = fb.compile(function)
    for value in (0.0, 0.0, 0.0, 1.0, 1.0, 2.0, 2.0):
        write(value)
        assert compiled(plain([1.0])).tolist() == [value]
    assert compiled.explain().replays > 0


def of_an_attribute():
    return attribute(types.SimpleNamespace(by=0))


def of_a_cell():
    by = 0

    def write(value):
        nonlocal by
        by = value

    return lambda x: x * by, write


def of_an_element():
    held = [0]
    return lambda x: x * held[0], lambda value: held.__setitem__(0, value)


def of_many():
    held = [0] * 2000
    return lambda x: x * held[7], lambda value: held.__setitem__(7, value)


def of_many_by_name():
    held = dict.fromkeys(range(2000), 0)
    return lambda x: x * held[7], lambda value: held.__setitem__(7, value)


@pytest.mark.parametrize(
    "make", [of_an_attribute, of_a_cell, of_an_element, of_many, of_many_by_name]
)
def test_numbers_that_are_equal_and_not_the_same_are_told_apart(device, make):
    function, write = make()
    x = fb.tensor([1, 2], device=device)
    compiled = fb.compile(function)
    for value in (2, 2, 2, 2.0, 2, 1, True, 0.0, 0.0, -0.0, 0.0):
        write(value)
        assert repr(compiled(x)) == repr(x * value)
    assert compiled.explain().replays > 0


def test_zeros_of_both_signs_are_two_arguments(plain):
    compiled = fb.compile(lambda x, by: x * by)
    for _ in range(3):
        for by in (0.0, -0.0):
            assert str(compiled(plain([1.0]), by).item()) == str(by)
    assert compiled.explain().replays == 2


def test_an_equal_tensor_in_the_place_of_another_is_another(plain):
    held = types.SimpleNamespace(t=plain([2.0]))
    compiled = fb.compile(lambda x: x * held.t)
    for value in (2.0, 2.0, 2.0, 3.0, 3.0, 4.0):
        held.t = plain([2.0])
        held.t.fill_(value)
        assert compiled(plain([1.0])).item() == value


@pytest.mark.parametrize("make", [list, collections.deque, np.array])
def test_a_tensor_of_numbers_among_many_is_made_anew_in_every_run(plain, make):
    held = make([0.0] * 2000)

    @fb.compile
    def function(x):
        return x + fb.tensor([float(held[0]), 0.0], device=x.device)

    for value in (0.0, 0.0, 0.0, 1.0, 2.0):
        held[0] = value
        assert function(plain([1.0, 1.0])).tolist() == [value + 1, 1.0]


@pytest.mark.parametrize("length", [0, 2000])
@pytest.mark.parametrize("kind", [list, collections.deque])
def test_what_is_appended_is_appended_in_every_run(plain, kind, length):
    held = kind([0.0] * length)

    @fb.compile
    def f(x):
        held.append(x.sum())
        return x * 2

    for _ in range(6):
        f(plain([1.0]))
    assert len(held) == length + 6


@pytest.mark.parametrize(
    "make", [itertools.count, lambda: (i for i in range(9)), lambda: iter(range(9))]
)
def test_an_iterator_goes_on_in_every_run(plain, make):
    held = make()
    f = fb.compile(lambda x: x + next(held))
    assert [f(plain([0.0])).item() for _ in range(6)] == [0, 1, 2, 3, 4, 5]
    assert any("iterator" in why for why in f.explain().reasons)


RANDOM, NUMPY = random.Random(0), np.random.default_rng(0)


@pytest.mark.parametrize(
    "draw",
    [
        random.random,
        lambda: RANDOM.random(),
        lambda: NUMPY.random(),
        lambda: np.random.rand(),
    ],
)
def test_random_numbers_of_others_are_drawn_in_every_run(plain, draw):
    f = fb.compile(lambda x: x + float(draw()))
    assert len({f(plain([0.0])).item() for _ in range(6)}) == 6


class Options:
    """An object that a function is given."""

    by = 0.0


def given_object():
    held = Options()
    return lambda x, options: x * options.by, held, lambda value: setattr(held, "by", value)


def given_function():
    held = [0.0]
    return lambda x, by: by(x), lambda x: x * held[0], lambda value: held.__setitem__(0, value)


@pytest.mark.parametrize("make", [given_object, given_function])
@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: [x], lambda x: {"in": (x,)}])
def test_what_is_in_an_argument_is_read_anew(plain, make, wrap):
    function, argument, write = make()

    def unwrapped(x, wrapped):
        while isinstance(wrapped, (list, dict, tuple)):
            wrapped = wrapped["in"] if isinstance(wrapped, dict) else wrapped[0]
        return function(x, wrapped)

    compiled = fb.compile(unwrapped)
    for value in (0.0, 0.0, 0.0, 1.0, 1.0, 2.0, 2.0):
        write(value)
        assert compiled(plain([1.0]), wrap(argument)).tolist() == [value]
    assert compiled.explain().replays > 0


def test_arguments_that_come_once_are_not_kept(plain):
    f, living = fb.compile(lambda x, options: x * options.by), []
    for _ in range(5):
        options = Options()
        living.append(weakref.ref(options))
        f(plain([1.0]), options)
    del options
    gc.collect()
    assert not any(ref() for ref in living)


def test_of_ever_other_arguments_nothing_is_kept(plain):
    f = fb.compile(lambda x, by: x * by)
    for i in range(2500):
        assert f(plain([1.0]), i).item() == i
    assert len(f._tries) <= 1000


class Watched:
    """An object with a property that counts how often it is set and deleted."""

    sets = drops = 0
    _by = 1.0

    @property
    def by(self):
        return self._by

    @by.setter
    def by(self, value):
        self._by = value
        self.sets += 1

    @by.deleter
    def by(self):
        self.drops += 1


def sets_a_property(held, x):
    held.by = 2.0


def deletes_a_property(held, x):
    del held.by


def sets_by_text(held, x):
    setattr(held, "sets", held.drops + 7)  # noqa: B010


def sets_a_tensor_by_text(held, x):
    setattr(held, "sets", x * 2)  # noqa: B010


@pytest.mark.parametrize(
    "change", [sets_a_property, deletes_a_property, sets_by_text, sets_a_tensor_by_text]
)
def test_what_a_function_sets_by_other_means_is_set_in_every_run(change):
    def make(compiled):
        held = Watched()
        held.sets, held.drops, found = 1, 1, []

        def step(x):
            change(held, x)
            return x * 3

        run = fb.compile(step) if compiled else step
        for i in range(6):
            run(fb.ones(1) * i)
            found.append((float(held.sets), held.drops))
            if change is sets_by_text:
                held.sets = 0
        return found

    assert make(True) == make(False)
