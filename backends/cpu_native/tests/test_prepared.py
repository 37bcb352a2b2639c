"""Kernels that ask once about calls that are alike: they look up what they would be told."""

from __future__ import annotations

import pickle
import random
import threading

import ml_dtypes
import numpy as np
import pytest

from flambeau_native.extension import native
from flambeau_native.kernels import KERNELS as COMPILED
from flambeau_native.kernels._common import form, prepared
from flambeau_numpy.extending import KERNELS as NUMPY

F32 = np.dtype(np.float32)


class Asked:
    """A kernel that sums rows, and what it was asked."""

    def __init__(self, answer=None):
        self.calls, self.others, self.answer = [], [], answer
        self.run = prepared("rows", "as", self.prepare, self.general)

    def prepare(self, a, number):
        self.calls.append((a.shape, a.dtype, number))
        if self.answer is not None:
            return self.answer(a, number)
        rows, columns = a.shape
        return native.sum_f32, (form((rows,), F32),), (rows, columns, 1, float(number))

    def general(self, *args):
        self.others.append(args)
        return "general"


@pytest.mark.parametrize(
    "settings",
    [(1, True, 1.0), (0.5, 0.25), (2, 3, 2), (1 << 40, (1 << 40) + 1)],
    ids=["kinds", "floats", "again", "large"],
)
def test_calls_are_alike_if_shapes_and_settings_are(settings):
    asked = Asked()
    for _ in range(3):
        for number in settings:
            for shape in ((2, 3), (3, 2)):
                a = np.arange(6, dtype=F32).reshape(shape)
                np.testing.assert_allclose(asked.run(a, number), a.sum(1) / number, rtol=1e-6)
    kinds = {(shape, type(number), number) for shape, _, number in asked.calls}
    assert len(asked.calls) == len(kinds) == 2 * len({(type(n), n) for n in settings})
    assert not asked.others


@pytest.mark.parametrize(
    "words",
    [("1", 1, "one", ""), ((1, "2"), (1, ("2", 2)), ("1", 2)), ("\u20ac", "1\0", "1")],
    ids=repr,
)
def test_settings_may_be_words(words):
    asked = Asked(lambda a, setting: None)
    for _ in range(2):
        for word in words:
            again = pickle.loads(pickle.dumps(word))
            assert asked.run(np.ones((1, 2), F32), again) == "general"
    assert [setting for _, _, setting in asked.calls] == list(words)


def test_settings_may_be_tuples_of_tuples():
    asked = Asked(lambda a, number: None)
    for pairs in (((1, 2), (0, 0)), ((1, 2), (0, 0.0)), ((1, 2), None), (), ((),)):
        for _ in range(2):
            assert asked.run(np.ones((1, 2), F32), pickle.loads(pickle.dumps(pairs))) == "general"
    assert len(asked.calls) == 5


def test_zeros_of_both_signs_are_two_settings():
    asked = Asked()
    a = np.ones((1, 2), F32)
    assert [float(asked.run(a, x)[0]) for x in (0.0, -0.0, 0.0)] == [np.inf, -np.inf, np.inf]


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((4, 6), F32)[:, ::-1],
        np.lib.stride_tricks.sliding_window_view(np.zeros(9, F32), 4),
        np.zeros((3, 4), F32).T,
        np.ma.zeros((2, 3), F32),
        [[1.0, 2.0]],
        np.float32(1),
        np.zeros((1,) * 9, F32),
        np.zeros((2, 3), object),
    ],
    ids=[
        "backwards",
        "windows",
        "transposed",
        "subclass",
        "list",
        "number",
        "nine dimensions",
        "objects",
    ],
)
def test_what_is_no_array_in_order_is_not_asked_about(array):
    asked = Asked()
    asked.answer = lambda a, number: None
    assert asked.run(array, 1) == "general"
    assert asked.others == [(array, 1)] or asked.others[0][0] is array
    assert not asked.calls or array.dtype.hasobject


@pytest.mark.parametrize(
    "setting",
    [np.int64(1), [1], b"1", np.str_("1"), (1, (2, (3,))), (1, (2, b"2")), (1, [2]), 1j, object],
    ids=repr,
)
def test_settings_that_are_not_plain_are_not_kept(setting):
    asked = Asked()
    assert asked.run(np.ones((1, 2), F32), setting) == "general"
    assert not asked.calls


def test_a_wrong_number_of_arguments_is_the_general_kernels_business():
    asked = Asked()
    assert asked.run(np.ones((1, 2), F32)) == "general"
    assert asked.run() == "general"
    assert asked.run(*[np.ones((1, 2), F32)] * 20) == "general"


def test_none_is_kept_as_an_answer():
    asked = Asked(lambda a, number: None)
    assert [asked.run(np.ones((1, 2), F32), 1) for _ in range(3)] == ["general"] * 3
    assert len(asked.calls) == 1


def test_an_error_is_raised_and_not_kept():
    def fail(a, number):
        raise ValueError("once")

    asked = Asked(fail)
    a = np.ones((1, 2), F32)
    for _ in range(2):
        with pytest.raises(ValueError, match="once"):
            asked.run(a, 1)
    asked.answer = None
    assert asked.run(a, 1).tolist() == [2.0]


ONE = (form((2,), F32),)
WRONG = {
    "a number": 3,
    "no function": (max, ONE, (2, 3, 1, 1.0)),
    "no forms": (native.sum_f32, (), (2, 3, 1, 1.0)),
    "too many forms": (native.sum_f32, ONE * 2, (2, 3, 1, 1.0)),
    "five forms": (native.sum_f32, ONE * 5, (2, 3, 1, 1.0)),
    "a negative size": (native.sum_f32, ((None, (-2,), F32),), (2, 3, 1, 1.0)),
    "a size that is none": (native.sum_f32, ((None, ("2",), F32),), (2, 3, 1, 1.0)),
    "no shape": (native.sum_f32, ((None, 2, F32),), (2, 3, 1, 1.0)),
    "no dtype": (native.sum_f32, ((None, (2,), "what"),), (2, 3, 1, 1.0)),
    "too many elements": (native.sum_f32, ((None, (1 << 40, 1 << 40), F32),), (2, 3, 1, 1.0)),
    "a form of two": (native.sum_f32, (ONE[0][:2],), (2, 3, 1, 1.0)),
    "a list": (native.sum_f32, list(ONE), (2, 3, 1, 1.0)),
    "too few numbers": (native.sum_f32, ONE, (2, 3, 1)),
    "too many numbers": (native.sum_f32, ONE, (2, 3, 1, 1.0, 1)),
    "no number": (native.sum_f32, ONE, (2, "3", 1, 1.0)),
    "a large number": (native.sum_f32, ONE, (2, 1 << 64, 1, 1.0)),
    "more arrays": (native.distance_f32, ONE, (2, 1.0)),
    "no such result": (native.sum_f32, ONE, (2, 3, 1, 1.0), (1,)),
    "a negative result": (native.sum_f32, ONE, (2, 3, 1, 1.0), (-1,)),
    "no results": (native.sum_f32, ONE, (2, 3, 1, 1.0), ()),
    "two for one": (native.sum_f32, ONE, (2, 3, 1, 1.0), (0, 0)),
}


@pytest.mark.parametrize("answer", WRONG.values(), ids=list(WRONG))
def test_answers_that_are_none_are_refused(answer):
    asked = Asked(lambda a, number: answer)
    for _ in range(2):
        with pytest.raises((SystemError, TypeError, ValueError, OverflowError)):
            asked.run(np.ones((2, 3), F32), 1)
    assert asked.calls


@pytest.mark.parametrize(
    "answer",
    [
        (native.sum_f32, ONE, (2, 4, 1, 1.0)),
        (native.sum_f32, ONE, (1 << 62, 3, 1, 1.0)),
        (native.sum_f32, ONE, (-2, 3, 1, 1.0)),
        (native.sum_f32, (form((1,), F32),), (2, 3, 1, 1.0)),
        (native.sum_f32, (form((2,), np.dtype(np.uint8)),), (2, 3, 1, 1.0)),
    ],
    ids=["long rows", "many rows", "less than none", "a short result", "small items"],
)
def test_answers_that_lead_out_of_an_array_are_refused(answer):
    asked = Asked(lambda a, number: answer)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="bytes"):
            asked.run(np.ones((2, 3), F32), 1)


@pytest.mark.parametrize("maker", [lambda *how: None, lambda *how: [1.0], np.zeros_like])
def test_makers_that_make_no_arrays_are_refused(maker):
    asked = Asked(lambda a, number: (native.sum_f32, ((maker, (2,), F32),), (2, 3, 1, 1.0)))
    with pytest.raises((TypeError, RuntimeError)):
        asked.run(np.ones((2, 3), F32), 1)


@pytest.mark.parametrize("letters", ["", "a" * 11, "s" * 40])
def test_kernels_of_no_or_many_arguments_are_not_made(letters):
    with pytest.raises(ValueError, match="arguments"):
        native.prepared("kernel", letters, max, max, np.ndarray, np.empty)


def test_results_are_fresh_and_writable():
    a = np.ones((2, 3), F32)
    first, second = (COMPILED["sum"](a, (1,), False) for _ in "ab")
    first[0] = 7
    assert second.tolist() == [3.0, 3.0]
    assert first.flags.owndata and not np.may_share_memory(first, second)


def test_more_kinds_of_calls_than_are_kept():
    asked = Asked()
    chosen = random.Random(0)
    for _ in range(3000):
        shape = chosen.randrange(1, 20), chosen.randrange(1, 20)
        number = chosen.choice((1, 2, 4, 8, 16))
        a = np.full(shape, number, F32)
        np.testing.assert_array_equal(asked.run(a, number), np.full(shape[0], shape[1], F32))
    assert len(asked.calls) > 300


def test_threads_share_a_kernel():
    asked, wrong = Asked(), []

    def work(seed):
        chosen = random.Random(seed)
        for _ in range(2000):
            shape = chosen.randrange(1, 9), chosen.randrange(1, 200) ** 2
            found = asked.run(np.ones(shape, F32), 1)
            if found.tolist() != [float(shape[1])] * shape[0]:
                wrong.append(shape)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_a_kernel_may_be_called_while_it_is_asked():
    """What `prepare` does in between may take the place of what is about to be kept."""

    def answer(a, number):
        if number:
            for n in range(number):
                asked.run(a, n)
        rows, columns = a.shape
        return native.sum_f32, (form((rows,), F32),), (rows, columns, 1, 1.0)

    asked = Asked(answer)
    assert asked.run(np.ones((2, 3), F32), 9).tolist() == [3.0, 3.0]


SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0)


def _numbers(shape, dtype, chosen, special):
    a = np.array([chosen.gauss(0, 1) for _ in range(int(np.prod(shape)))]).reshape(shape)
    for _ in range(chosen.randrange(3) if a.size else 0):
        a.flat[chosen.randrange(a.size)] = chosen.choice(special)
    return (
        (a > 0)
        if dtype == np.bool_
        else np.nan_to_num(a).astype(dtype)
        if dtype == np.int64
        else a.astype(dtype)
    )


REDUCTIONS = "amax", "amin", "all", "any", "sum", "prod", "nansum", "count_nonzero"
SELECTIONS = "kthvalue", "median_along", "mode"
DTYPES = np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int64, np.bool_


@pytest.mark.parametrize("name", [*REDUCTIONS, *SELECTIONS, "extremum", "argmax", "argmin", "topk"])
@pytest.mark.filterwarnings("ignore:invalid value")
def test_kernels_give_what_those_of_numpy_give(name):
    """In any order, of any layout, dtype and settings, with as many elements as vectors have."""
    chosen = random.Random(name)
    for _ in range(400):
        rank = chosen.randrange(1, 4)
        shape = tuple([chosen.choice((1, 2, 3, 5, 8, 63, 64, 65, 129)) for _ in range(rank)])
        if np.prod(shape) > 20_000:
            continue
        dtype = chosen.choice(DTYPES)
        if dtype == np.bool_ and name not in ("all", "any", "amax", "amin", "count_nonzero"):
            continue
        if dtype not in (np.float32, np.float64) and name == "nansum":
            continue
        # Of infinite products it matters when others become 0, which is not alike in both.
        a = _numbers(shape, dtype, chosen, SPECIAL if name != "prod" else (0.0, np.nan, 1.0))
        layout = chosen.randrange(4)
        if layout == 1:
            a = a.T
        elif layout == 2:
            a = a[..., ::-1]
        keepdim, largest = chosen.random() < 0.5, chosen.random() < 0.5
        dim = chosen.randrange(rank)
        if name in REDUCTIONS:
            dims = tuple(sorted(chosen.sample(range(rank), chosen.randrange(1, rank + 1))))
            args = a, dims, keepdim
        elif name in SELECTIONS:
            if chosen.random() < 0.5:
                a = np.round(a) if a.dtype.kind == "f" else a  # so that many are equal
            rest = {"kthvalue": (chosen.randrange(a.shape[dim]) + 1,), "mode": ()}
            args = a, dim, keepdim, *rest.get(name, (largest,))
        elif name == "topk":
            args = a, chosen.randrange(1, a.shape[dim] + 1), dim, largest
        else:
            args = (a, dim, keepdim, largest) if name == "extremum" else (a, dim, keepdim)
        found, wanted = COMPILED[name](*args), NUMPY[name](*args)
        for have, want in zip(
            *[r if isinstance(r, tuple) else (r,) for r in (found, wanted)], strict=True
        ):
            want = np.asarray(want)
            assert have.shape == want.shape and have.dtype == want.dtype
            have, want = have.astype(np.float64), want.astype(np.float64)
            if name in ("sum", "prod", "nansum"):
                close = 1e-2 if a.dtype.itemsize == 2 else 1e-5
                np.testing.assert_allclose(have, want, close, close)
            else:
                np.testing.assert_array_equal(have, want)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(8, 3, 6, 6), (1, 1, 2, 2), (2, 3, 7, 9), (1, 1, 2, 40)])
def test_means_of_quarters_are_those_of_any_windows(kind, shape):
    a = np.random.default_rng(0).standard_normal(shape).astype(kind)
    for divisor in (None, 3):
        args = a, (2, 2), (2, 2), (0, 0), False, True, divisor
        np.testing.assert_allclose(
            COMPILED["avg_pool2d"](*args), NUMPY["avg_pool2d"](*args), rtol=1e-6, atol=1e-6
        )


def test_gradients_with_gaps_are_copied_before_they_are_pooled():
    whole = np.random.default_rng(0).standard_normal((2, 3, 6, 6)).astype(np.float32)
    values, places = COMPILED["max_pool2d"](whole, (2, 2), (2, 2), (0, 0), (1, 1), False)
    for grad in (np.broadcast_to(np.float32(2), values.shape), values.transpose(0, 1, 3, 2)):
        for name, rest in (
            ("max_pool2d_backward", (places, whole.shape)),
            ("avg_pool2d_backward", (whole.shape, (2, 2), (2, 2), (0, 0), False, True, None)),
        ):
            np.testing.assert_allclose(
                COMPILED[name](grad, *rest), NUMPY[name](grad, *rest), rtol=1e-6
            )


@pytest.mark.parametrize(
    ("values", "size", "found"),
    [
        ([0, 1, 2], 3, True),
        ([0, 3], 3, False),
        ([-1], 3, False),
        ([], 0, True),
        ([0], 0, False),
        (list(range(5000)), 5000, True),
        (list(range(5000)), 4999, False),
    ],
)
def test_lies_within(values, size, found):
    index = np.array(values, np.int64)
    assert native.lies_within(index, size) is found
    assert native.lies_within(np.repeat(index, 2)[::2], size) is (
        None if len(values) > 1 else found
    )


def test_lies_within_says_nothing_of_what_it_cannot_read():
    for thing in ([0], 3, None, np.zeros(3, np.int32)):
        assert native.lies_within(thing, 3) is None
    with pytest.raises(TypeError):
        native.lies_within(np.zeros(3, np.int64))
    with pytest.raises(TypeError):
        native.lies_within(np.zeros(3, np.int64), "3")
