"""Hooks around a module's forward and backward."""

from __future__ import annotations

from collections import namedtuple

import pytest

import flambeau as fb
from flambeau import nn
from flambeau.nn.modules import module as global_hooks


class Pair(nn.Module):
    """Two inputs, two outputs."""

    def forward(self, x, y, *, scale=1.0):
        return x * y * scale, x + y


def test_pre_hooks_replace_arguments_in_order():
    layer = nn.Identity()
    layer.register_forward_pre_hook(lambda m, args: args[0] + 1)
    layer.register_forward_pre_hook(lambda m, args: (args[0] * 10,))
    layer.register_forward_pre_hook(lambda m, args: (args[0] - 1,), prepend=True)
    assert layer(fb.tensor(2.0)).item() == 20.0


def test_hooks_with_keywords_see_and_replace_them():
    layer = Pair()
    layer.register_forward_pre_hook(
        lambda m, args, kwargs: (args, {"scale": kwargs["scale"] + 1}), with_kwargs=True
    )
    seen = []
    layer.register_forward_hook(lambda m, a, kw, out: seen.append(kw["scale"]), with_kwargs=True)
    product, _ = layer(fb.tensor(2.0), fb.tensor(3.0), scale=1.0)
    assert product.item() == 12.0 and seen == [2.0]


def test_a_pre_hook_with_keywords_returns_a_pair():
    layer = nn.Identity()
    layer.register_forward_pre_hook(lambda m, args, kwargs: 3, with_kwargs=True)
    with pytest.raises(RuntimeError, match="must return None or a tuple"):
        layer(fb.ones(1))


def test_forward_hooks_replace_the_output_in_order():
    layer = nn.Identity()
    layer.register_forward_hook(lambda m, args, out: out + 1)
    layer.register_forward_hook(lambda m, args, out: None)
    layer.register_forward_hook(lambda m, args, out: out * 10, prepend=True)
    assert layer(fb.tensor(2.0)).item() == 21.0


def test_a_removed_hook_leaves_nothing_behind():
    layer = nn.Identity()
    handle = layer.register_forward_hook(
        lambda m, a, k, out: out + 1, with_kwargs=True, always_call=True
    )
    other = layer.register_forward_pre_hook(lambda m, a, k: None, with_kwargs=True)
    for registered in (handle, other):
        registered.remove()
        registered.remove()
    assert layer(fb.tensor(2.0)).item() == 2.0
    assert not layer._forward_hooks_with_kwargs and not layer._forward_hooks_always_called
    assert not layer._forward_pre_hooks_with_kwargs


class Failing(nn.Module):
    def forward(self, x):
        raise ZeroDivisionError("forward failed")


def test_always_called_hooks_run_when_forward_fails():
    layer, seen = Failing(), []
    layer.register_forward_hook(lambda m, args, out: seen.append(out), always_call=True)
    layer.register_forward_hook(lambda m, args, out: seen.append("never"))
    with pytest.raises(ZeroDivisionError, match="forward failed"):
        layer(1)
    assert seen == [None]


def test_an_always_called_hook_that_fails_too_only_warns():
    layer = Failing()
    layer.register_forward_hook(lambda m, args, out: 1 / 0, always_call=True)
    with (
        pytest.warns(UserWarning, match="silenced"),
        pytest.raises(ZeroDivisionError, match="forw"),
    ):
        layer(1)


def test_an_always_called_hook_that_fails_is_not_called_again():
    layer, calls = nn.Identity(), []

    def fail(module, args, output):
        calls.append(1)
        raise ValueError("hook failed")

    layer.register_forward_hook(fail, always_call=True)
    with pytest.raises(ValueError, match="hook failed"):
        layer(1)
    assert calls == [1]


def test_full_backward_hooks_see_gradients_by_position():
    layer, seen = Pair(), []
    layer.register_full_backward_hook(lambda m, gin, gout: seen.append((gin, gout)))
    x = fb.tensor(2.0, requires_grad=True)
    product, total = layer(x, fb.tensor(3.0))
    (product * 5 + total).backward()
    ((grad_input, grad_output),) = seen
    assert [g.item() for g in grad_output] == [5.0, 1.0]
    assert grad_input[0].item() == 16.0 and grad_input[1] is None
    assert x.grad.item() == 16.0


def test_full_backward_hooks_replace_input_gradients_one_after_the_other():
    layer = nn.Identity()
    layer.register_full_backward_hook(lambda m, gin, gout: (gin[0] * 2,))
    layer.register_full_backward_hook(lambda m, gin, gout: gin[0] + 1)
    x = fb.tensor(1.0, requires_grad=True)
    layer(x).backward()
    assert x.grad.item() == 3.0


def test_backward_pre_hooks_replace_output_gradients():
    layer, seen = nn.Linear(1, 1, bias=False), []
    layer.register_full_backward_pre_hook(lambda m, gout: (gout[0] * 10,))
    layer.register_full_backward_hook(lambda m, gin, gout: seen.append(gout[0].item()))
    x = fb.ones(1, requires_grad=True)
    layer(x).backward()
    assert layer.weight.grad.item() == 10.0 and seen == [10.0]


def test_backward_hooks_without_input_gradients_get_none():
    layer, seen = nn.Linear(1, 1), []
    layer.register_full_backward_hook(lambda m, gin, gout: seen.append(gin))
    layer(fb.ones(1)).backward()
    assert seen == [(None,)]
    layer.register_full_backward_hook(lambda m, gin, gout: (fb.ones(1),))
    with pytest.raises(RuntimeError, match="no input requires gradient"):
        layer(fb.ones(1)).backward()


def test_a_wrong_number_of_gradients_is_an_error():
    layer = nn.Identity()
    x = fb.ones(1, requires_grad=True)
    handle = layer.register_full_backward_hook(lambda m, gin, gout: (gin[0], gin[0]))
    with pytest.raises(RuntimeError, match="number of grad_input, got 2, but expected 1"):
        layer(x).backward()
    handle.remove()
    layer.register_full_backward_pre_hook(lambda m, gout: ())
    with pytest.raises(RuntimeError, match="number of grad_output, got 0, but expected 1"):
        layer(x).backward()


def test_outputs_keep_their_type():
    Both = namedtuple("Both", "first second")

    class Named(nn.Module):
        def forward(self, x):
            return Both(x * 1, 3)

    layer = Named()
    layer.register_full_backward_hook(lambda m, gin, gout: None)
    output = layer(fb.ones(1, requires_grad=True))
    assert type(output) is Both and output.second == 3


def test_outputs_that_are_no_tensors_warn():
    class Listing(nn.Module):
        def forward(self, x):
            return [x]

    layer = Listing()
    layer.register_full_backward_hook(lambda m, gin, gout: None)
    with pytest.warns(UserWarning, match="output should be a Tensor or a tuple of Tensors"):
        layer(fb.ones(1, requires_grad=True))


def test_backward_hooks_do_nothing_without_recording():
    layer, seen = nn.Linear(1, 1), []
    layer.register_full_backward_hook(lambda m, gin, gout: seen.append(1))
    with fb.no_grad():
        assert not layer(fb.ones(1, requires_grad=True)).requires_grad
    assert seen == []


def test_older_backward_hooks_watch_the_last_operation():
    layer, seen = nn.Sigmoid(), []
    layer.register_backward_hook(lambda m, gin, gout: seen.append((gin[0].item(), gout[0].item())))
    layer(fb.zeros(1, requires_grad=True)).backward()
    assert seen == [(0.25, 1.0)]


def test_older_backward_hooks_replace_the_gradient():
    layer = nn.Sigmoid()
    layer.register_backward_hook(lambda m, gin, gout: (gin[0] * 100,))
    x = fb.zeros(1, requires_grad=True)
    layer(x).backward()
    assert x.grad.item() == 25.0


def test_older_backward_hooks_warn_where_they_miss_gradients():
    layer = Pair()
    layer.register_backward_hook(lambda m, gin, gout: None)
    x = fb.ones(1, requires_grad=True)
    with pytest.warns(FutureWarning, match="different autograd Nodes"):
        layer(x, x)


def test_both_kinds_of_backward_hooks_do_not_mix():
    layer = nn.Identity()
    layer.register_full_backward_hook(lambda m, gin, gout: None)
    with pytest.raises(RuntimeError, match="both regular backward hooks and full"):
        layer.register_backward_hook(lambda m, gin, gout: None)


def test_global_hooks_surround_every_module():
    seen = []
    model = nn.Sequential(nn.Identity(), nn.ReLU())
    x = fb.ones(1, requires_grad=True)
    with (
        global_hooks.register_module_forward_pre_hook(lambda m, args: seen.append("before")),
        global_hooks.register_module_forward_hook(lambda m, args, out: out + 1),
        global_hooks.register_module_full_backward_pre_hook(lambda m, gout: seen.append("pre")),
        global_hooks.register_module_full_backward_hook(lambda m, gin, gout: (gin[0] * 2,)),
    ):
        output = model(x)
        output.backward()
    assert output.item() == 4.0
    assert x.grad.item() == 8.0
    assert seen.count("before") == 3 and seen.count("pre") == 3
    assert model(x).item() == 1.0


def test_global_backward_hooks_do_not_mix():
    with (
        global_hooks.register_module_backward_hook(lambda m, gin, gout: None),
        pytest.raises(RuntimeError, match="as a global Module hook"),
    ):
        global_hooks.register_module_full_backward_hook(lambda m, gin, gout: None)


def test_global_always_called_hooks_run_when_forward_fails():
    seen = []
    handle = global_hooks.register_module_forward_hook(
        lambda m, args, kwargs, out: seen.append(kwargs), with_kwargs=True, always_call=True
    )
    with handle, pytest.raises(ZeroDivisionError):
        Failing()(1)
    assert seen == [{}]
