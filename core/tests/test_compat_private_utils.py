"""Private names of PyTorch's submodules that libraries import: each is there and does its work."""

from __future__ import annotations

import importlib
import os
import sys

import pytest

import flambeau as fb
from flambeau.compat import torch_alias

pytest.importorskip("flambeau.nn")
pytest.importorskip("flambeau_numpy")


@pytest.fixture
def torch():
    with torch_alias() as module:
        yield module


def _leaf(value=3.0):
    return fb.tensor(value, requires_grad=True)


def _checkpointed(function):
    x = _leaf()
    function.apply(lambda v: v * v, True, x).backward()
    return x.grad.item()


def _detached(function):
    x, number = function((_leaf(), 2))
    return x.requires_grad, x.is_leaf, number


def _warned(function):
    with pytest.warns(UserWarning, match="requires_grad"):
        function([fb.ones(1)])
    return function([_leaf()])


def _stepped(function):
    param, buffers = fb.ones(2), [None]
    options = {"weight_decay": 0, "dampening": 0, "nesterov": False, "maximize": False}
    function([param], [fb.ones(2)], buffers, momentum=0.5, lr=0.25, **options)
    return param.tolist(), buffers[0].tolist()


def _preprocessed(function):
    x = _leaf()
    (recorded,), (own,) = function((x,), True, True), function((x,), False, True)
    return recorded.grad_fn is not None, own.grad_fn is None and own.requires_grad


def _refused(function):
    with pytest.raises(RuntimeError, match="strict mode"):
        function((fb.ones(1),), "outputs", strict=True)
    return function((fb.ones(1),), "outputs", strict=False)


def _generated(function):
    def states():
        yield fb.is_grad_enabled()
        yield fb.is_grad_enabled()

    return list(function(fb.no_grad, states)()), fb.is_grad_enabled()


def _batches(fetcher):
    made = fetcher([1, 2, 3], True, list, False)
    return made.fetch([0, 1]), made.fetch([2])


def _modes(is_in):
    from flambeau.utils._python_dispatch import TorchDispatchMode

    with TorchDispatchMode():
        inside = is_in()
    return inside, is_in()


# The module, the name, what is asked of it, the answer.
_WORK = [
    ("utils.checkpoint", "CheckpointFunction", _checkpointed, 6.0),
    ("utils.checkpoint", "detach_variable", _detached, (True, True, 2)),
    ("utils.checkpoint", "check_backward_validity", _warned, None),
    ("utils.checkpoint", "_infer_device_type", lambda f: f([fb.ones(1, device="meta")]), "meta"),
    ("utils.checkpoint", "_get_device_module", lambda f: f("cpu"), fb.cpu),
    ("utils.checkpoint", "_get_autocast_kwargs", lambda f: f("cpu")[1]["enabled"], False),
    ("optim.sgd", "sgd", _stepped, ([0.75, 0.75], [1.0, 1.0])),
    ("optim._functional", "sgd", _stepped, ([0.75, 0.75], [1.0, 1.0])),
    ("autograd.function", "_iter_tensors", lambda f: len(list(f([_leaf(), (_leaf(), None)]))), 2),
    (
        "autograd.function",
        "_nested_map",
        lambda f: f(callable, str)([None, (None,)]),
        [None, (None,)],
    ),
    ("autograd.function", "_unflatten", lambda f: f([1, 2], [0, (None, 0)]), [1, (None, 2)]),
    ("autograd.function", "FunctionMeta", lambda f: isinstance(fb.autograd.Function, f), True),
    ("autograd.functional", "_as_tuple", lambda f: f([1, 2]), (1, 2)),
    ("autograd.functional", "_grad_preprocess", _preprocessed, (True, True)),
    ("autograd.functional", "_tuple_postprocess", lambda f: f(((1,),), (False, False)), 1),
    ("autograd.functional", "_check_requires_grad", _refused, None),
    ("autograd.gradcheck", "GradcheckError", lambda e: issubclass(e, RuntimeError), True),
    ("autograd.profiler_util", "format_time", lambda f: f(1500.0), "1.500ms"),
    ("utils._contextlib", "_wrap_generator", _generated, ([False, False], True)),
    ("utils._python_dispatch", "is_in_torch_dispatch_mode", _modes, (True, False)),
    ("utils._python_dispatch", "any_torch_dispatch_mode_on_stack", _modes, (True, False)),
    ("utils._pytree", "_is_leaf", lambda f: (f(1), f([1])), (True, False)),
    ("utils.data._utils.fetch", "_MapDatasetFetcher", _batches, ([1, 2], [3])),
    ("utils.data._utils.fetch", "_IterableDatasetFetcher", _batches, ([1, 2], [3])),
    ("utils.data._utils.worker", "ManagerWatchdog", lambda w: w().is_alive(), True),
    ("utils.data.dataloader", "_InfiniteConstantSampler", lambda s: next(iter(s())), None),
    ("utils.collect_env", "get_platform", lambda f: f(), sys.platform),
    ("utils.collect_env", "run_and_read_all", lambda f: f(lambda c: (0, c, ""), "x"), "x"),
    ("utils.collect_env", "get_pip_packages", lambda f: "numpy==" in f(None)[1], True),
    ("utils.cpp_extension", "_get_pybind11_abi_build_flags", lambda f: f(), []),
    ("utils.cpp_extension", "_is_cuda_file", lambda f: (f("a.cu"), f("a.cpp")), (True, False)),
    ("utils.cpp_extension", "check_compiler_ok_for_platform", lambda f: f("no-such"), False),
]


@pytest.mark.parametrize(("module", "name", "asked", "answer"), _WORK)
def test_private_names_of_submodules_do_their_work(torch, module, name, asked, answer):
    assert asked(getattr(importlib.import_module(f"torch.{module}"), name)) == answer


def test_a_watchdog_sees_that_its_parent_has_ended(torch, monkeypatch):
    from torch.utils.data._utils.worker import ManagerWatchdog

    watchdog = ManagerWatchdog()
    monkeypatch.setattr(os, "getppid", lambda: watchdog.manager_pid + 1)
    assert not watchdog.is_alive()
    monkeypatch.undo()
    assert not watchdog.is_alive()


def test_reports_of_an_environment_say_what_runs(torch):
    from torch.utils.collect_env import get_env_info, pretty_str

    found = get_env_info()
    assert found.torch_version == torch.__version__
    assert "flambeau-core==" in found.pip_packages
    assert f"torch version: {torch.__version__}" in pretty_str(found)


def test_workers_share_a_stream_that_is_shuffled_alike_in_all(torch):
    from torch.utils.data.datapipes.iter import IterableWrapper

    pipe = IterableWrapper(range(12)).shuffle().sharding_filter()
    loader = torch.utils.data.DataLoader(pipe, batch_size=None, num_workers=2)
    assert sorted(loader) == list(range(12))
