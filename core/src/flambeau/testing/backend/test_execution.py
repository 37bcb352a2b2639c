"""How a backend runs things: in threads, after a fork, asynchronously, and compiled."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import flambeau as fb
from flambeau._dispatch.bound import bind
from flambeau._dispatch.dispatch import wrap
from flambeau.ops import OPS
from flambeau.plugin import Backend
from flambeau.testing.backend import _support as kit
from flambeau.testing.backend.test_composites import bound
from flambeau.testing.backend.test_laziness import packages, run
from flambeau.testing.samples import DTYPES, SAMPLES, realise

LEVEL = "inference"


def compiled(device: str) -> Iterator[Any]:
    """Composites that the backend may have made something of."""
    be = bind(device)
    if type(be.backend).compile is Backend.compile:
        return
    for name, op in OPS.items():
        if op.tier == "composite" and name not in be.kernels and not name.endswith("_"):
            if name in SAMPLES and not kit.draws(name) and fb.float32 in DTYPES[name]:
                yield kit.case(device, fb.float32, name, id=name)


@kit.cases("name", compiled)
def test_compiled_composites_agree_with_their_decomposition(device: str, name: str) -> None:
    be = bind(device)
    wrong = []
    for sample in SAMPLES[name]:
        args = [kit.native(a) for a in realise(sample.args, kit.maker(device), fb.float32)]
        plain = kit.native_results(OPS[name].decomposed(be)(*args))
        for _ in range(2):  # the second call may be served from what the first has left
            found = kit.native_results(getattr(be, name)(*args))
            assert len(found) == len(plain)
            for a, b in zip(found, plain, strict=True):
                t, e = (wrap(be, be.fresh(x), be.dtype_of(be.fresh(x))) for x in (a, b))
                rtol = bound(device, name, e.dtype)
                wrong += [f"{name} ({sample.name}): {s}" for s in kit.differences(t, e, rtol, rtol)]
    kit.fail_with(wrong)


def work(device: str, seed: int) -> list[Any]:
    """Numbers that a little of everything has gone into, the same for the same seed."""
    x = kit.maker(device)([float(i * seed % 7) for i in range(24)], (4, 6), fb.float32)
    for _ in range(5):
        y = (x @ x.t()).softmax(1)
        x = (y @ x).relu() + seed
    return kit.numbers(x)


def test_threads_do_not_disturb_each_other(device: str) -> None:
    alone = {seed: work(device, seed) for seed in range(1, 5)}
    found: dict[int, list[list[Any]]] = {seed: [] for seed in alone}
    raised: list[Exception] = []

    def repeat(seed: int) -> None:
        try:
            for _ in range(5):
                found[seed].append(work(device, seed))
        except Exception as error:  # nobody else would see it
            raised.append(error)

    threads = [threading.Thread(target=repeat, args=(seed,)) for seed in alone]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise AssertionError(f"a thread raised {raised[0]!r}") from raised[0]
    for seed, numbers in alone.items():
        for again in found[seed]:
            assert not kit.difference(again, numbers)


def test_a_synchronised_device_has_done_its_work(device: str) -> None:
    be = bind(device)
    x = kit.maker(device)([1.0] * 100, (10, 10), fb.float32)
    for _ in range(20):
        x = x @ x / 10
    assert be.backend.synchronize(be.device.index or 0) is None
    assert not kit.difference(kit.numbers(x), [1.0] * 100)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_process_forked_before_the_first_use_may_use_the_device(device: str) -> None:
    if not packages(device):
        pytest.skip(f"device {device!r} was registered by code, not installed")
    program = (
        "import os, signal, warnings, flambeau as fb\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    signal.alarm(60)\n"
        f"x = fb.tensor([1.0, 2.0], dtype=fb.float32, device={device!r})\n"
        "y = ((x + x) * x).tolist()\n"
        "if not child:\n"
        "    os._exit(0 if y == [2.0, 8.0] else 1)\n"
        "print(os.waitpid(child, 0)[1], y)\n"
    )
    assert run(program).strip() == "0 [2.0, 8.0]"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_process_forked_after_the_first_use_computes_or_says_that_it_cannot(device: str) -> None:
    """Worker processes of a data loader are such; one that waits for ever is the worst of all."""
    if not packages(device):
        pytest.skip(f"device {device!r} was registered by code, not installed")
    program = (
        "import os, signal, warnings, flambeau as fb\n"
        "warnings.simplefilter('ignore')\n"
        f"x = fb.tensor([1.0, 2.0], dtype=fb.float32, device={device!r})\n"
        "before = ((x + x) @ x).tolist()\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    signal.alarm(20)\n"
        "    try:\n"
        "        right = ((x + x) @ x).tolist() == before\n"
        "    except RuntimeError:\n"
        "        right = True\n"
        "    os._exit(0 if right else 1)\n"
        "status = os.waitpid(child, 0)[1]\n"
        "print(os.waitstatus_to_exitcode(status), ((x + x) @ x).tolist() == before)\n"
    )
    child, parent = run(program).split()
    assert int(child) != -signal.SIGALRM, (
        "the child hung until its alarm: where a library has threads that a fork does not copy, "
        "from_host and the kernels raise RuntimeError if os.getpid() is not what it was at first"
    )
    assert (child, parent) == ("0", "True")
