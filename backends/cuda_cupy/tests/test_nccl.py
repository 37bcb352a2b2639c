"""The engine ``nccl`` between processes, on an NCCL and devices for tests (see `fake_nccl`)."""

from __future__ import annotations

import os
import signal
import sys
import time
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import fake_cupy
import fake_nccl
import on_host
import pytest
from test_backend import backend  # noqa: F401 (its fixture)

import flambeau as fb
import flambeau.distributed as dist
from flambeau import nn
from flambeau.distributed import _engines, checkpoint
from flambeau.distributed._init import _get_default_group
from flambeau.optim.zero_redundancy import ZeroRedundancyOptimizer
from flambeau.plugin import Job
from flambeau.testing import engine_kit
from flambeau.testing.ranks import run_ranks, values
from flambeau_cupy.communication import NcclEngine, flambeau_engines

pytestmark = pytest.mark.skipif(
    on_host.COMPILER is None or sys.platform != "linux",
    reason="needs g++ or clang++ on Linux: nothing would be launched",
)


@pytest.fixture
def nccl(backend: Any, monkeypatch: Any) -> ModuleType:  # noqa: F811 (the fixture)
    made = fake_nccl.module()
    monkeypatch.setattr(sys.modules["cupy.cuda"], "nccl", made, raising=False)
    monkeypatch.setitem(sys.modules, "cupy.cuda.nccl", made)
    monkeypatch.delitem(sys.modules, "flambeau_cupy.libraries.nccl", raising=False)
    monkeypatch.setattr(NcclEngine, "unavailable", lambda self: None)
    monkeypatch.setattr(_engines, "_found", {e.name: e for e in flambeau_engines()})
    return made


@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_engine_keeps_the_contract(nccl: ModuleType, size: int) -> None:
    assert engine_kit.check("nccl", [size]) == {}


def _calls(rank: int, size: int) -> list[str]:
    x = fb.ones(4, device="cuda")
    dist.barrier()
    fake_nccl.calls.clear()
    dist.all_reduce(x)
    dist.all_reduce(x, dist.ReduceOp.AVG)
    whole = fb.empty(8, device="cuda")
    dist.all_gather_into_tensor(whole, x)
    dist.reduce_scatter_tensor(x, whole)
    dist.broadcast(x, 1)
    dist.reduce(x, 0)
    dist.all_reduce(x.short())  # of which NCCL knows nothing
    dist.all_to_all_single(fb.empty_like(x), x)
    return fake_nccl.calls


def test_collectives_are_those_of_nccl_where_it_has_them(nccl: ModuleType) -> None:
    compared = "allReduce"  # of what all call, before each
    messages = [compared, "send", "recv", "group"]
    expected = ["allReduce", "allReduce", "allGather", "reduceScatter", "broadcast", "reduce"]
    wanted = [name for made in expected for name in (compared, made)]
    for calls in values(run_ranks(_calls, 2, engine="nccl")):
        assert calls[: len(wanted)] == wanted
        rest = [sorted(calls[i : i + 4]) for i in range(len(wanted), len(calls), 4)]
        assert rest == [sorted(messages)] * 2


def _both_ways(rank: int, size: int) -> float:
    other = 1 - rank
    mine, room = fb.full((1000,), float(rank), device="cuda"), fb.empty(1000, device="cuda")
    x = fb.ones(3, device="cuda")
    first = dist.isend(mine, other) if rank else dist.irecv(room, other)
    whole = dist.all_reduce(x, async_op=True)  # after the messages, in both
    second = dist.irecv(room, other) if rank else dist.isend(mine, other)
    for work in (whole, second, first):
        assert work is not None
        work.wait()
    return room[0].item() + 10 * x[0].item()


def test_messages_leave_before_the_collectives_that_follow_them(nccl: ModuleType) -> None:
    assert values(run_ranks(_both_ways, 2, engine="nccl")) == [21.0, 20.0]


def _order(rank: int, size: int) -> None:
    x = fb.ones(3, device="cuda")
    dist.all_reduce(x)
    for side in (fb.cuda.current_stream(), fb.cuda.Stream()):
        with fb.cuda.stream(side):
            fake_cupy.log.clear()
            x.mul_(2)
            dist.all_reduce(x)
            log = [*fake_cupy.log]
        ours = next(e for e in log if e[0] == "record" and e[2] == side.cuda_stream)
        waits = [e for e in log if e[0] == "wait" and e[3] is ours[3]]
        assert len(waits) == 1 and waits[0][2] != side.cuda_stream
        done = [e for e in log if e[0] == "record" and e[2] == waits[0][2]]
        assert done and log.index(ours) < log.index(waits[0]) < log.index(done[-1])
    assert x.tolist() == [32.0] * 3


def test_the_communicator_waits_for_the_stream_that_makes_the_arrays(nccl: ModuleType) -> None:
    values(run_ranks(_order, 2, engine="nccl"))


def _refusals(rank: int, size: int) -> None:
    fb.cuda.set_device(rank)
    x = fb.ones(3, device="cuda")
    dist.all_reduce(x)
    assert x.device == fb.device("cuda", rank) and x.tolist() == [2.0] * 3
    with pytest.raises(RuntimeError, match="src is needed"):
        dist.recv(x)
    with pytest.raises(RuntimeError, match="No backend type associated with device type cpu"):
        dist.all_reduce(fb.ones(3))
    dist.barrier()
    with pytest.raises(ValueError, match=rf"takes part with cuda:{rank}.*on cuda:{1 - rank}"):
        dist.isend(fb.ones(3, device=f"cuda:{1 - rank}"), 1 - rank)


def test_what_nccl_has_not_is_refused(nccl: ModuleType) -> None:
    values(run_ranks(_refusals, 2, engine="nccl"))


def _differing(rank: int, size: int) -> str:
    x = fb.ones(3 + rank, device="cuda")
    dist.all_reduce(fb.ones(1, device="cuda"))
    with pytest.raises(dist.DistBackendError) as caught:
        dist.broadcast(x, 0)
    return str(caught.value)


def test_ranks_that_differ_are_told_what_each_had_called(nccl: ModuleType) -> None:
    for said in values(run_ranks(_differing, 2, engine="nccl")):
        assert "float32[3], src=0" in said and "float32[4], src=0" in said


def _fault_of_the_network(rank: int, size: int, folder: str) -> str:
    x = fb.ones(3, device="cuda")
    dist.all_reduce(x)
    comm = _get_default_group().communicator(x)
    comm._comm.failure = "unhandled system error"
    comm._stream.work.runs = False
    fake_nccl.NcclCommunicator._on = lambda *args: None  # whose event never comes
    with pytest.raises(dist.DistBackendError) as caught:
        dist.all_reduce(x)
    # Who has noticed and ends is a death for one that has not looked yet.
    (Path(folder) / str(rank)).touch()
    end = time.monotonic() + 15
    while len(os.listdir(folder)) < size and time.monotonic() < end:
        time.sleep(0.01)
    return str(caught.value)


def test_a_fault_that_nccl_has_noticed_is_told(nccl: ModuleType, tmp_path: Path) -> None:
    for said in values(run_ranks(_fault_of_the_network, 2, str(tmp_path), engine="nccl")):
        assert "NcclError: unhandled system error" in said


def _death(rank: int, size: int, name: str) -> float:
    x = fb.ones(1 << 16, device="cuda")
    if name != "all_reduce, the first":
        dist.all_reduce(x)
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    start = time.monotonic()
    with pytest.raises(dist.DistError, match="rank 1 died"):  # noqa: PT012 - by one of them
        dist.all_reduce(x, group=dist.new_group() if name == "new_group" else None)
        dist.barrier()
    return time.monotonic() - start


@pytest.mark.parametrize("name", ["all_reduce", "all_reduce, the first", "new_group"])
def test_a_killed_rank_is_named_long_before_the_timeout(nccl: ModuleType, name: str) -> None:
    outcomes = run_ranks(_death, 3, name, engine="nccl")
    assert outcomes[1].code == -signal.SIGKILL
    assert max(values([outcomes[0], outcomes[2]])) < 10


class Net(nn.Module):
    """A network one layer of which stays unused."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 1)
        self.spare = nn.Linear(2, 2)

    def forward(self, x: fb.Tensor) -> fb.Tensor:
        return self.last(self.norm(self.first(x)).tanh())


def _training(rank: int, size: int, options: dict[str, Any]) -> list[float]:
    fb.cuda.set_device(rank)
    fb.manual_seed(3 + rank)  # the parameters of rank 0 are taken
    net = nn.SyncBatchNorm.convert_sync_batchnorm(Net()).to("cuda")
    fb.manual_seed(3)
    x, y = fb.randn(6, 4), fb.randn(6, 1)
    rows = slice(None) if size == 1 else slice(3 * rank, 3 * rank + 3)
    model = nn.parallel.DistributedDataParallel(net, device_ids=[rank], **options)
    optimizer = fb.optim.SGD(model.parameters(), lr=0.1)
    with model.join():
        for _ in range(3):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x[rows].to("cuda")), y[rows].to("cuda"))
            loss.backward()
            optimizer.step()
    return [p.double().sum().item() for p in net.parameters()]


@pytest.mark.parametrize(
    "options", [{"find_unused_parameters": True}, {"static_graph": True}], ids=["unused", "static"]
)
def test_two_devices_train_as_one_does_on_both_batches(
    nccl: ModuleType, options: dict[str, Any]
) -> None:
    first, second = values(run_ranks(_training, 2, options, engine="nccl"))
    (alone,) = values(run_ranks(_training, 1, options, engine="nccl"))
    assert first == second
    assert first == pytest.approx(alone, rel=1e-5, abs=1e-6)


def _objects(rank: int, size: int, folder: str) -> object:
    fb.cuda.set_device(rank)
    net = nn.Linear(3, 3).to("cuda")
    optimizer = ZeroRedundancyOptimizer(net.parameters(), fb.optim.Adam, lr=0.1)
    net(fb.ones(2, 3, device="cuda")).sum().backward()
    optimizer.step()
    checkpoint.save({"x": fb.full((2,), 5.0, device="cuda")}, checkpoint_id=folder)
    state = {"x": fb.zeros(2, device="cuda")}
    checkpoint.load(state, checkpoint_id=folder)
    if rank:
        dist.recv_object_list(found := [None], 0)
        return found, state["x"].tolist()
    dist.send_object_list([{"a": (1, "b")}], 1)
    return [{"a": (1, "b")}], state["x"].tolist()


def test_objects_and_checkpoints_of_processes_without_an_engine_for_the_cpu(
    nccl: ModuleType, tmp_path: Any
) -> None:
    wanted = [{"a": (1, "b")}], [5.0, 5.0]
    assert values(run_ranks(_objects, 2, str(tmp_path), engine="nccl")) == [wanted] * 2


def test_the_engine_says_what_is_missing(monkeypatch: Any) -> None:
    engine = NcclEngine()
    with fake_cupy.installed(), monkeypatch.context() as patch:
        cuda = sys.modules["cupy.cuda"]
        patch.setattr("importlib.util.find_spec", lambda name: name == "cupy" or None)
        made = fake_nccl.module()
        patch.setattr(cuda, "nccl", made, raising=False)
        assert engine.unavailable() is None

        def none() -> int:
            raise fake_cupy.CUDARuntimeError(100)

        patch.setattr(cuda.runtime, "getDeviceCount", none)
        assert "no CUDA device" in str(engine.unavailable())
        made.available = False  # type: ignore[attr-defined] - of a module made here
        assert "nvidia-nccl-cu12" in str(engine.unavailable())
        patch.setattr("importlib.util.find_spec", lambda name: None)
        assert "cupy-cuda12x" in str(engine.unavailable())


def test_a_start_that_fails_is_an_error(nccl: ModuleType, monkeypatch: Any) -> None:
    def refuse(*args: object) -> None:
        raise fake_nccl.NcclError("duplicate GPU detected")

    def wait(done: Any, what: str) -> None:
        deadline = time.monotonic() + timedelta(seconds=20).total_seconds()
        while not done():
            assert time.monotonic() < deadline

    monkeypatch.setattr(nccl, "NcclCommunicator", refuse)
    kept: dict[str, bytes] = {}
    job = Job(
        rank=0,
        size=2,
        get=kept.__getitem__,
        set=kept.__setitem__,
        arithmetic=None,
        host="",
        device=0,
        timeout=1.0,
        wait=wait,
    )  # type: ignore[arg-type] # fmt: skip - no arithmetic is needed
    with pytest.raises(fake_nccl.NcclError, match="duplicate GPU"):
        NcclEngine().start(job)
