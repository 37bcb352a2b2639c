"""What PyTorch 1's own tests import, and the defaults of its time."""

from __future__ import annotations

import importlib
import warnings

import pytest

import flambeau as fb
from flambeau.compat import torch_alias
from flambeau.compat._era import SETTINGS

pytest.importorskip("flambeau.nn")
pytest.importorskip("flambeau_numpy")


@pytest.fixture
def torch():
    with torch_alias("1.2") as module:
        yield module


@pytest.mark.parametrize("shape", [(), (3,), (2, 2)])
def test_jacobians_by_differences_and_by_backward_agree(torch, shape):
    from torch.autograd.gradcheck import get_analytical_jacobian, get_numerical_jacobian

    x = torch.arange(1.0, 1 + fb.Size(shape).numel(), dtype=torch.float64).reshape(shape)
    inputs = [x.clone().requires_grad_(), torch.ones(2)]

    def cube(given):
        return given[0] ** 3

    numerical = get_numerical_jacobian(cube, inputs, eps=1e-4)
    analytical, same, sizes = get_analytical_jacobian(inputs, cube(inputs))
    assert same and sizes and len(numerical) == len(analytical) == 1
    assert fb.allclose(analytical[0], fb.diag(3 * x.reshape(-1) ** 2))
    assert fb.allclose(numerical[0], analytical[0], atol=1e-6)
    assert fb.equal(inputs[0].detach(), x)


def test_copies_that_are_not_contiguous_have_the_same_elements(torch):
    x = torch.arange(24).reshape(2, 3, 4)
    gaps = torch.testing.make_non_contiguous(x)
    assert fb.equal(gaps, x) and not gaps.is_contiguous() and gaps.storage_offset() > 0


def test_reductions_have_the_numbers_and_older_arguments_of_their_time(torch):
    from torch.nn.functional import _Reduction

    assert [_Reduction.get_enum(name) for name in ("none", "mean", "sum")] == [0, 1, 2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert _Reduction.legacy_get_string(None, False, emit_warning=False) == "none"
    with pytest.warns(UserWarning, match="reduction='sum'"):
        assert _Reduction.legacy_get_enum(False, None) == 2
    with pytest.raises(ValueError, match="most"):
        _Reduction.get_enum("most")


def test_an_exception_travels_with_its_traceback(torch):
    from torch._utils import ExceptionWrapper

    try:
        raise KeyError("lost")
    except KeyError:
        wrapped = ExceptionWrapper(where="in a thread")
    assert wrapped.exc_type is KeyError and "Traceback" in wrapped.exc_msg
    with pytest.raises(KeyError, match="Caught KeyError in a thread"):
        wrapped.reraise()


@pytest.mark.parametrize(
    ("first", "second", "answer"),
    [((2, 3), (2, 3), False), ((2, 3), (3,), True), ((2, 3), (1, 1), True), ((3,), (1, 1), True)],
)
def test_shapes_that_exporters_broadcast(torch, first, second, answer):
    from torch.autograd._functions.utils import check_onnx_broadcast

    assert check_onnx_broadcast(first, second) is answer


def test_shapes_that_exporters_do_not_broadcast(torch):
    from torch.autograd._functions.utils import check_onnx_broadcast, prepare_onnx_paddings

    with pytest.raises(ValueError, match="Numpy style broadcasting"):
        check_onnx_broadcast((3, 2), (3, 1))
    assert prepare_onnx_paddings(3, [1, 2, 3, 4]) == [0, 3, 1, 0, 4, 2]


def test_copies_between_devices_refuse_the_cpu_where_pytorch_does(torch):
    from torch.nn.parallel._functions import Broadcast, Gather, Scatter

    x = torch.arange(4.0, requires_grad=True)
    with pytest.raises(TypeError, match="CPU tensors"):
        Broadcast.apply((0, 1), x)
    parts = Scatter.apply(("cpu", "cpu"), [1, 3], 0, x)
    assert [len(part) for part in parts] == [1, 3]
    assert Gather.apply(-1, 0, *parts).tolist() == x.tolist()


def test_defaults_are_those_of_the_version_and_afterwards_ours():
    def defaults():
        grid = fb.nn.functional.affine_grid(fb.eye(2, 3).unsqueeze(0), (1, 1, 1, 2))
        alone = fb.sparse_coo_tensor([[0]], [1.0], (2,)).is_coalesced()
        return fb.full((1,), 3).dtype, grid[0, 0, :, 0].tolist(), alone

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = defaults()
        with torch_alias("1.2"):
            assert defaults() == (fb.float32, [-1.0, 1.0], False)
        with torch_alias("2.13"):
            assert defaults() == ours == (fb.int64, [-0.5, 0.5], True)


@pytest.mark.parametrize("path", SETTINGS)
def test_what_a_version_sets_is_there(path):
    name, value = SETTINGS[path]
    assert getattr(importlib.import_module(path), name) is not value


def test_schedulers_take_epochs_without_a_warning_where_they_did(torch):
    optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    optimizer.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schedule.step(2)
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.1)


def test_a_schedule_by_milestones_may_be_given_them_as_a_list(torch):
    class Listed(torch.optim.lr_scheduler.MultiStepLR):
        def __init__(self, optimizer, milestones):
            self.milestones, self.gamma = sorted(milestones), 0.5
            super(torch.optim.lr_scheduler.MultiStepLR, self).__init__(optimizer)

        def get_lr(self):
            return self._get_closed_form_lr()

    optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    schedule = Listed(optimizer, [3, 1])
    optimizer.step()
    schedule.step(2)
    assert optimizer.param_groups[0]["lr"] == 0.5
