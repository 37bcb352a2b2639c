"""Modules on several devices of one type: parts, copies, threads, gradients, errors."""

from __future__ import annotations

import threading
from collections import namedtuple
from collections.abc import Iterator
from typing import Any

import fake_accelerator
import pytest

import flambeau as fb
from flambeau import nn
from flambeau.nn import parallel
from flambeau.plugin.host import host

Point = namedtuple("Point", "x y")


class Threaded(fake_accelerator.Fake):
    """The fake device type, with current device and streams for each thread as drivers have it."""

    def __init__(self) -> None:
        self.local = threading.local()
        super().__init__()

    @property
    def current(self) -> int:
        return getattr(self.local, "index", 0)

    @current.setter
    def current(self, index: int) -> None:
        self.local.index = index

    @property
    def streams(self) -> list[Any]:
        if not hasattr(self.local, "streams"):
            self.local.streams = list(self.defaults)
        return self.local.streams

    @streams.setter
    def streams(self, streams: list[Any]) -> None:
        self.local.streams = streams


@pytest.fixture(autouse=True)
def fake() -> Iterator[Any]:
    """The backend of the device type ``fake``, which exists during the test."""
    plugin = fake_accelerator.Plugin()
    plugin.backend = Threaded()
    host.register(plugin, name="fake", device_types=["fake"])
    yield plugin.backend
    host.unregister("fake")


def devices(tensors: Any) -> list[str]:
    return [str(tensor.device) for tensor in tensors]


def net() -> Any:
    fb.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))


BATCH = [[0.5, -1.0], [2.0, 0.25], [1.0, 1.0], [-1.0, 3.0], [0.0, 0.5]]


def alone() -> tuple[Any, Any, list[Any]]:
    """The result on the CPU, and the gradients of the input and the parameters."""
    model, x = net(), fb.tensor(BATCH, requires_grad=True)
    result = model(x)
    result.pow(2).sum().backward()
    return result, x.grad, [p.grad for p in model.parameters()]


@pytest.mark.parametrize("where", ["fake:0", "cpu"])
@pytest.mark.parametrize("ids", [None, [0], [0, 1], ["fake:0", "fake:1"], [fb.device("fake", 0)]])
def test_results_and_gradients_are_those_of_one_device(ids: Any, where: str) -> None:
    model = nn.DataParallel(net().to("fake:0"), ids)
    x = fb.tensor(BATCH, device=where, requires_grad=True)
    result = model(x)
    assert str(result.device) == "fake:0"
    result.pow(2).sum().backward()
    expected, input_grad, grads = alone()
    assert fb.allclose(result.cpu(), expected, atol=1e-6)
    assert fb.allclose(x.grad.cpu(), input_grad, atol=1e-6)
    for parameter, grad in zip(model.parameters(), grads, strict=True):
        assert str(parameter.grad.device) == "fake:0"
        assert fb.allclose(parameter.grad.cpu(), grad, atol=1e-6)


def test_the_function_does_what_the_module_does() -> None:
    model = net().to("fake:0")
    for ids in (None, [0], [0, 1]):
        result = parallel.data_parallel(model, fb.tensor(BATCH), ids, output_device=1)
        expected = "fake:0" if ids == [0] else "fake:1"
        assert str(result.device) == expected
        assert fb.allclose(result.cpu(), alone()[0], atol=1e-6)


class Spy(nn.Module):
    """Notes what reaches it."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(fb.ones(1))
        self.register_buffer("calls", fb.zeros(1))
        self.seen: list[Any] = []
        self.count = 0

    def forward(self, x: Any, factor: Any = 1, *, extra: Any = None) -> Any:
        self.seen.append((x.shape[0], str(x.device), str(self.scale.device), factor, extra))
        self.seen.append((fb.is_grad_enabled(), fb.accelerator.current_device_index()))
        self.count += 1
        self.calls.add_(1)
        return x * self.scale


def test_each_copy_gets_its_part_on_its_device_in_the_modes_of_the_caller() -> None:
    model = nn.DataParallel(Spy().to("fake:0"))
    with fb.no_grad():
        model(fb.ones(5, 2), 3, extra=(fb.zeros(5), "a"))
    parts = sorted((s for s in model.module.seen if len(s) == 5), key=lambda s: s[0])
    assert [part[:4] for part in parts] == [
        (2, "fake:1", "fake:1", 3),
        (3, "fake:0", "fake:0", 3),
    ]
    assert [(part[4][0].shape[0], part[4][1]) for part in parts] == [(2, "a"), (3, "a")]
    assert sorted(s for s in model.module.seen if len(s) == 2) == [(False, 0), (False, 1)]


def test_of_what_copies_change_only_the_buffers_of_the_first_remain() -> None:
    model = nn.DataParallel(Spy().to("fake:0"))
    model(fb.ones(4, 2))
    assert model.module.calls.item() == 1
    assert model.module.count == 0


def test_fewer_parts_than_devices_use_fewer_devices() -> None:
    model = nn.DataParallel(Spy().to("fake:0"))
    assert model(fb.ones(1, 2)).shape == (1, 2)
    assert len(model.module.seen) == 2


def test_scalars_become_a_vector() -> None:
    class Sum(nn.Module):
        def forward(self, x: Any) -> Any:
            return x.sum()

    model = nn.DataParallel(Sum(), [0, 1])
    with pytest.warns(UserWarning, match="all input tensors were scalars") as caught:
        assert model(fb.ones(3, 2)).tolist() == [4.0, 2.0]
    assert len(caught) == 1


def test_hooks_run_once_for_each_device() -> None:
    model, seen = nn.DataParallel(net().to("fake:0")), []
    model.module[0].register_forward_hook(lambda module, args, out: seen.append(str(out.device)))
    model(fb.tensor(BATCH))
    assert sorted(seen) == ["fake:0", "fake:1"]


def test_recurrent_and_tied_modules_are_copied_whole() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(2, 2)
            self.second = self.first
            self.lstm = nn.LSTM(2, 3, batch_first=True)
            self.weights = nn.ParameterList([fb.ones(3)])

        def forward(self, x: Any) -> Any:
            assert self.first is self.second
            return self.lstm(self.second(self.first(x)))[0] * self.weights[0]

    fb.manual_seed(0)
    model = Tied()
    x = fb.randn(3, 4, 2)
    expected = model(x)
    assert fb.allclose(nn.DataParallel(model.to("fake:0"))(x).cpu(), expected, atol=1e-6)


def test_parameters_elsewhere_are_refused() -> None:
    model = nn.DataParallel(net().to("fake:1"), [0, 1])
    with pytest.raises(RuntimeError, match=r"on device fake:0 .* found one .* device: fake:1"):
        model(fb.tensor(BATCH))
    with pytest.raises(RuntimeError, match="device: cpu"):
        parallel.data_parallel(net(), fb.tensor(BATCH), [0, 1])


def test_the_error_of_a_copy_has_its_class_and_tells_where() -> None:
    class Fails(nn.Module):
        def forward(self, x: Any) -> Any:
            if str(x.device) == "fake:1":
                raise KeyError("lost")
            return x

    with pytest.raises(KeyError, match=r"(?s)Caught KeyError in replica 1 on device .*lost"):
        nn.DataParallel(Fails(), [0, 1])(fb.ones(2, 1))


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_what_is_no_error_of_a_copy_reaches_the_caller_as_it_is(kind: Any) -> None:
    class Stops(nn.Module):
        def forward(self, x: Any) -> Any:
            raise kind("stop")

    with pytest.raises(kind, match="^stop$"):
        nn.DataParallel(Stops(), [0, 1])(fb.ones(2, 1))


def test_copies_work_on_the_streams_of_the_caller(fake: Any) -> None:
    """Those of new threads would not wait for the copies that made the parts."""
    devices = fb.accelerator.namespace("fake")
    sides = [devices.Stream(i) for i in (0, 1)]
    seen = []

    class Notes(nn.Module):
        def forward(self, x: Any) -> Any:
            seen.append((devices.current_device(), devices.current_stream()))
            return x

    with devices.stream(sides[1]), devices.stream(sides[0]):
        nn.DataParallel(Notes(), [0, 1])(fb.ones(2, 1))
    assert sorted(seen, key=lambda s: s[0]) == [(0, sides[0]), (1, sides[1])]


def test_lazy_modules_must_be_called_before() -> None:
    with pytest.raises(RuntimeError, match="Run a dummy forward pass"):
        parallel.replicate(nn.LazyLinear(2), ["cpu"])


def test_parts_keep_the_kinds_of_containers() -> None:
    x = fb.arange(4.0)
    parts = parallel.scatter(
        {"a": [x, (x,)], "b": Point(x, None), "c": ((), [], {}), "d": "text"}, [0, 1]
    )
    assert [str(part["a"][0].device) for part in parts] == ["fake:0", "fake:1"]
    assert parts[1]["a"][1][0].tolist() == [2.0, 3.0]
    assert isinstance(parts[1]["b"], Point)
    assert (parts[1]["b"].y, parts[1]["c"], parts[1]["d"]) == (None, ((), [], {}), "text")
    joined = parallel.gather([{"a": part["a"], "b": part["b"]} for part in parts], -1)
    assert joined["a"][0].tolist() == x.tolist()
    assert str(joined["a"][1][0].device) == "cpu"
    assert isinstance(joined["b"], Point)
    assert joined["b"].y is None


def test_parts_are_cut_along_another_dimension() -> None:
    parts = parallel.scatter(fb.ones(2, 5), [1, 0], 1)
    assert devices(parts) == ["fake:1", "fake:0"]
    assert [part.shape for part in parts] == [(2, 3), (2, 2)]
    assert parallel.gather(parts, 1, 1).shape == (2, 5)


def test_arguments_without_partner_are_filled_up() -> None:
    args, named = parallel.scatter_kwargs((), {"x": fb.ones(2)}, [0, 1])
    assert args == ((), ())
    assert devices(part["x"] for part in named) == ["fake:0", "fake:1"]
    args, named = parallel.scatter_kwargs((fb.ones(2),), None, [0, 1])
    assert (len(args), named) == (2, ({}, {}))


def test_copies_have_no_parameters_of_their_own() -> None:
    model = net().to("fake:0")
    first, second = parallel.replicate(model, [0, 1])
    assert not list(second.parameters())
    assert devices([first[0].weight, second[0].weight]) == ["fake:0", "fake:1"]
    second[0].weight.sum().backward()
    assert model[0].weight.grad.cpu().tolist() == [[1.0, 1.0]] * 3
    assert not parallel.replicate(model, [1], detach=True)[0][0].weight.requires_grad


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: parallel.parallel_apply([net()], [fb.ones(2), fb.ones(2)]),
            AssertionError,
            "number of modules 1 is not equal to the number of inputs 2",
        ),
        (
            lambda: parallel.parallel_apply([net()], [fb.ones(2)], [{}, {}]),
            AssertionError,
            "kwargs_tup 2",
        ),
        (lambda: parallel.gather([{"a": 1}, {}], "cpu"), ValueError, "same number of keys"),
        (lambda: parallel.gather([1, 2], "cpu"), TypeError, "got int"),
        (lambda: parallel.scatter(fb.ones(4), [0, 5]), RuntimeError, "5"),
    ],
)
def test_misuse_is_named(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


def test_without_accelerator_the_module_is_called_and_indices_are_refused(fake: Any) -> None:
    fake.count = 0
    model = nn.DataParallel(net())
    assert model.device_ids == []
    assert fb.equal(model(fb.tensor(BATCH)), model.module(fb.tensor(BATCH)))
    with pytest.raises(RuntimeError, match="could not be determined"):
        parallel.data_parallel(net(), fb.tensor(BATCH))
    with pytest.raises(RuntimeError, match="no.* available"):
        parallel.scatter(fb.ones(2), [0, 1])


class Group:
    """A process group of some size."""

    def __init__(self, size: int) -> None:
        self._size = size

    def size(self) -> int:
        return self._size


@pytest.mark.parametrize("kind", ["DistributedDataParallel", "DistributedDataParallelCPU"])
@pytest.mark.parametrize("ids", [None, [0], [0, 1]])
def test_in_a_group_of_one_gradients_are_those_of_the_module(kind: str, ids: Any) -> None:
    model = getattr(parallel, kind)(
        net().to("fake:0" if ids else "cpu"), ids, process_group=Group(1)
    )
    x = fb.tensor(BATCH, requires_grad=True)
    with model.no_sync():
        assert not model.require_backward_grad_sync
    assert model.require_backward_grad_sync
    result = model(x)
    result.pow(2).sum().backward()
    assert fb.allclose(result.cpu(), alone()[0], atol=1e-6)
    for parameter, grad in zip(model.parameters(), alone()[2], strict=True):
        assert fb.allclose(parameter.grad.cpu(), grad, atol=1e-6)


def test_without_a_group_of_one_distribution_is_refused() -> None:
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        parallel.DistributedDataParallel(net())
    with pytest.raises(RuntimeError, match="the group has 2 processes"):
        parallel.DistributedDataParallel(net(), process_group=Group(2))
    with pytest.raises(RuntimeError, match="any parameters that require a gradient"):
        parallel.DistributedDataParallel(nn.ReLU(), process_group=Group(1))
