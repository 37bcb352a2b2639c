"""What the tests of several backends share."""

import threading

import numpy as np
import pytest


@pytest.fixture
def agree_at_once():
    """A function that repeats several computations, each in a thread of its own, at one time."""

    def run(compute, items, wanted):
        wrong = []

        def work(item, expected):
            for _ in range(40):
                if not np.array_equal(compute(item), expected):
                    wrong.append(item)

        pairs = zip(items, wanted, strict=True)
        workers = [threading.Thread(target=work, args=pair, daemon=True) for pair in pairs]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(60)
        assert not any(worker.is_alive() for worker in workers), "a thread hangs"
        assert not wrong

    return run
