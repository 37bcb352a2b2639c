"""`flambeau.futures`: set once, seen by all."""

from __future__ import annotations

import threading

import pytest

from flambeau.futures import Future, collect_all, wait_all


def test_a_result_reaches_other_threads_and_callbacks():
    future, seen = Future(), []
    future.add_done_callback(lambda done: seen.append(done.value()))
    thread = threading.Thread(target=lambda: future.set_result(5))
    thread.start()
    assert future.wait() == 5
    thread.join()
    future.add_done_callback(lambda done: seen.append(done.value() + 1))
    assert seen == [5, 6] and future.done()


def test_errors_travel_through_then():
    future = Future()
    after = future.then(lambda done: done.wait() + 1).then(lambda done: done.wait() * 2)
    future.set_exception(ValueError("lost"))
    for each in (future, after):
        with pytest.raises(ValueError, match="lost"):
            each.wait()
    with pytest.raises(ValueError, match="lost"):
        wait_all([after])


def test_a_future_is_set_once():
    future = Future()
    with pytest.raises(RuntimeError, match="no result yet"):
        future.value()
    future.set_result(1)
    for again in (lambda: future.set_result(2), lambda: future.set_exception(ValueError())):
        with pytest.raises(RuntimeError, match="completed once"):
            again()
    with pytest.raises(AssertionError, match="no error"):
        Future().set_exception("text")


def test_all_are_collected_in_their_order():
    futures = [Future() for _ in range(3)]
    whole = collect_all(futures)
    for i in (2, 0, 1):
        assert not whole.done()
        futures[i].set_result(i)
    assert whole.wait() == futures and wait_all(futures) == [0, 1, 2] and wait_all([]) == []
