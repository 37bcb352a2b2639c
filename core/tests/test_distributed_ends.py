"""Ranks that end without a word of theirs: what they had sent arrives, and who needs more hears."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable
from datetime import timedelta
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import pytest

import flambeau as fb
import flambeau.distributed as dist
from flambeau.distributed import _work, _world
from flambeau.testing.ranks import run_ranks, values

_FORK = multiprocessing.get_context("fork")


def _until(seen: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not seen():
        assert time.monotonic() < end
        time.sleep(0.005)


def _whole() -> dist.ProcessGroup:
    group = dist.group.WORLD
    assert group is not None
    return group


def _watch() -> Any:
    return _whole().world.watch


def _join(rank: int, size: int, path: str) -> None:
    limit = timedelta(seconds=60)
    dist.init_process_group("reference", f"file://{path}", limit, world_size=size, rank=rank)
    _whole().checks = False  # else nobody is through before all have come


def _ends_after_a_broadcast(path: str) -> None:
    _join(0, 2, path)
    dist.broadcast(fb.arange(1000.0), 0)


def _fails_after_joining(path: str) -> None:
    _join(0, 2, path)
    raise KeyError("what this rank ends with")


def _stops_after_joining(path: str) -> None:
    _join(0, 2, path)
    raise SystemExit(3)


def _beside(rank: int, size: int, target: Callable[[str], None], path: str) -> tuple[str, int]:
    """What rank 1 hears, in time, of a forked rank 0 that does not leave the job itself."""
    other = _FORK.Process(target=target, args=(path,))
    other.start()
    _join(1, 2, path)
    _until(lambda: _watch().dead or _watch().left)
    x = fb.zeros(1000)
    try:
        dist.broadcast(x, 0)
        said = f"sum {x.sum().item():g}, dead: {_watch().dead}"
    except dist.DistBackendError as error:
        said = str(error)
    dist.destroy_process_group()
    other.join(60)
    assert other.exitcode is not None
    return said, other.exitcode


def test_what_a_forked_rank_has_sent_arrives_though_it_ends_without_destroy(
    tmp_path: Path,
) -> None:
    args = _ends_after_a_broadcast, str(tmp_path / "meet")
    assert values(run_ranks(_beside, 1, *args, join=False)) == [("sum 499500, dead: []", 0)]


@pytest.mark.parametrize(("end", "code"), [(_fails_after_joining, 1), (_stops_after_joining, 3)])
def test_a_forked_rank_that_ends_by_an_error_has_died_for_the_others(
    end: Callable[[str], None], code: int, tmp_path: Path
) -> None:
    args = end, str(tmp_path / "meet")
    [(said, ended)] = values(run_ranks(_beside, 1, *args, join=False))
    assert "rank 0 died" in said and "broadcast #1" in said
    assert ended == code


def _child(path: str) -> None:
    _world._LAST = 0.1
    _join(1, 2, path)
    dist.all_reduce(fb.ones(2))


def _waits_for_its_child(rank: int, size: int, path: str) -> int | None:
    child = _FORK.Process(target=_child, args=(path,))
    child.start()
    _join(0, 2, path)
    dist.all_reduce(fb.ones(2))
    child.join(30)  # before this member leaves
    return child.exitcode


def test_a_member_can_wait_for_the_end_of_one_that_it_has_started(tmp_path: Path) -> None:
    path = str(tmp_path / "meet")
    assert values(run_ranks(_waits_for_its_child, 1, path, join=False)) == [0]


def _one_goes_early(rank: int, size: int, looked: Event) -> str:
    dist.barrier()
    _whole().checks = False
    x = fb.full((3,), rank + 1.0)
    if rank == 0:
        dist.gather(x, None, 1)
        return ""
    _until(lambda: _watch().left)
    if rank == 2:
        looked.wait(60)
        dist.gather(x, None, 1)
        return ""
    found = [fb.zeros(3) for _ in range(size)]
    work = dist.gather(x, found, 1, async_op=True)
    messages = dist.irecv(fb.empty(1), 2), dist.irecv(fb.empty(1))
    for each in work, *messages:
        assert each is not None
        each._look_for_the_dead(10 * _work._GRACE)  # nothing of it is rank 0's to do
    fresh = dist.irecv(fb.empty(1), 0)
    assert fresh is not None and work is not None
    with pytest.raises(dist.DistBackendError) as caught:
        fresh._look_for_the_dead(10 * _work._GRACE)
    looked.set()
    assert work.wait() and [each[0].item() for each in found] == [1.0, 2.0, 3.0]
    return str(caught.value)


def test_a_rank_that_has_left_is_missed_by_those_alone_who_need_it() -> None:
    said = values(run_ranks(_one_goes_early, 3, _FORK.Event()))[1]
    assert "recv (float32[1], from rank 0): rank 0 has ended" in said


def _gives_up_and_ends(rank: int, size: int) -> str:
    dist.barrier()
    if rank == 2:
        _until(lambda: _watch().dead)
        return ""
    work = dist.barrier(async_op=True)
    assert work is not None
    if rank == 1:
        _until(lambda: _watch().dead)
        with pytest.raises(dist.DistTimeoutError) as heard:
            work.wait(timedelta(seconds=_work._GRACE / 2))
        return str(heard.value)
    with pytest.raises(dist.DistTimeoutError):
        work.wait(timedelta(seconds=0.1))
    os._exit(0)


def test_a_rank_that_gives_up_and_ends_has_given_up_for_the_others() -> None:
    said = str(run_ranks(_gives_up_and_ends, 3)[1].value)
    assert "barrier #2 (): rank 0 gave up barrier #2 (): Timed out after 0.1 s" in said


def _one_goes_before(rank: int, size: int) -> str:
    dist.barrier()
    if rank == 0:
        return ""
    _until(lambda: _watch().left)
    if rank == 2:  # by then the first to hear of it has failed, and ended
        _until(lambda: _watch().dead)
    with pytest.raises(dist.DistBackendError) as caught:
        dist.barrier()
    return str(caught.value)


def test_a_collective_that_one_left_before_calling_fails_at_once() -> None:
    outcomes = run_ranks(_one_goes_before, 3)
    for text in values(outcomes)[1:]:
        assert "barrier #2 (): rank 0 has ended" in text
