"""Optimisers: what a step does, and how groups, states, hooks and copies of them behave."""

from __future__ import annotations

import copy
import math
import pickle
from types import SimpleNamespace

import pytest

import flambeau as fb
from flambeau.optim import (
    ASGD,
    SGD,
    Adadelta,
    Adagrad,
    Adam,
    Adamax,
    AdamW,
    NAdam,
    Optimizer,
    RAdam,
    RMSprop,
    Rprop,
)
from flambeau.optim._options import per_device
from flambeau.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
    required,
)


def parameter(*values: float, dtype=fb.float64):
    return fb.tensor(values, dtype=dtype, requires_grad=True)


def with_gradient(*gradient: float, start: float = 0.0, dtype=fb.float64):
    param = parameter(*[start] * len(gradient), dtype=dtype)
    param.grad = fb.tensor(gradient, dtype=dtype)
    return param


def centred_rmsprop(params):
    return RMSprop(params, lr=0.1, momentum=0.9, centered=True)


OPTIMIZERS = [
    lambda params: SGD(params, lr=0.1),
    lambda params: SGD(params, lr=0.1, momentum=0.9, dampening=0.5),
    lambda params: Adam(params, lr=0.1, amsgrad=True),
    lambda params: AdamW(params, lr=0.1),
    centred_rmsprop,
    lambda params: Adagrad(params, lr=0.1),
    lambda params: Adadelta(params, lr=0.1),
    lambda params: Adamax(params, lr=0.1),
    lambda params: NAdam(params, lr=0.1),
    lambda params: RAdam(params, lr=0.1),
    lambda params: ASGD(params, lr=0.1),
]
SIGNS = [lambda params: Rprop(params, lr=0.1)]


def test_sgd_moves_against_the_gradient_by_the_learning_rate():
    param = with_gradient(1.0, -2.0)
    SGD([param], lr=0.5).step()
    assert param.tolist() == [-0.5, 1.0]


def test_maximize_moves_along_the_gradient():
    param = with_gradient(1.0, -2.0)
    SGD([param], lr=0.5, maximize=True).step()
    assert param.tolist() == [0.5, -1.0]


def test_the_first_gradient_enters_the_momentum_undamped_and_the_second_damped():
    param = with_gradient(1.0)
    optimizer = SGD([param], lr=1.0, momentum=0.5, dampening=0.25)
    optimizer.step()
    assert param.tolist() == [-1.0]
    optimizer.step()  # velocity 0.5 · 1 + 0.75 · 1
    assert param.tolist() == [-2.25]


def test_a_parameter_that_joins_later_has_its_own_first_step():
    first, late = with_gradient(1.0), parameter(0.0)
    optimizer = SGD([first, late], lr=1.0, momentum=0.5, dampening=0.25)
    optimizer.step()
    late.grad = fb.tensor([1.0], dtype=fb.float64)
    optimizer.step()
    assert (first.tolist(), late.tolist()) == ([-2.25], [-1.0])


def test_nesterov_momentum_looks_one_step_ahead():
    param = with_gradient(1.0)
    SGD([param], lr=1.0, momentum=0.5, nesterov=True).step()
    assert param.tolist() == [-1.5]


@pytest.mark.parametrize("gradient", [1e-3, -5.0, 1e6])
def test_the_first_step_of_adam_has_the_length_of_the_learning_rate(gradient):
    param = with_gradient(gradient)
    Adam([param], lr=0.1).step()
    assert param.item() == pytest.approx(-math.copysign(0.1, gradient), rel=1e-4)


def test_adamw_shrinks_a_parameter_whose_gradient_is_zero_and_adam_with_decay_moves_it_more():
    decoupled, coupled = with_gradient(0.0, start=1.0), with_gradient(0.0, start=1.0)
    AdamW([decoupled], lr=0.1, weight_decay=0.5).step()
    Adam([coupled], lr=0.1, weight_decay=0.5).step()
    assert decoupled.item() == pytest.approx(0.95)
    assert coupled.item() == pytest.approx(0.9)


def test_amsgrad_keeps_the_largest_second_moment():
    param = with_gradient(2.0)
    optimizer = Adam([param], lr=0.1, amsgrad=True, betas=(0.9, 0.5))
    optimizer.step()
    param.grad = fb.zeros_like(param)
    optimizer.step()
    state = optimizer.state[param]
    assert (state["max_exp_avg_sq"].item(), state["exp_avg_sq"].item()) == (2.0, 1.0)


@pytest.mark.parametrize("make", OPTIMIZERS + SIGNS)
@pytest.mark.parametrize("data", [[], [[1.0], [2.0]], 3.0], ids=["empty", "matrix", "0-d"])
def test_a_step_changes_values_but_neither_shape_nor_identity(make, data):
    param = fb.tensor(data, requires_grad=True)
    before, shape = param.tolist(), param.shape
    param.grad = fb.ones_like(param)
    optimizer = make([param])
    optimizer.step()
    assert optimizer.param_groups[0]["params"][0] is param
    assert param.shape == shape
    assert param.requires_grad
    assert param.grad_fn is None
    assert (param.tolist() == before) == (param.numel() == 0)


@pytest.mark.parametrize("make", OPTIMIZERS + SIGNS)
def test_a_parameter_without_gradient_is_left_alone_and_counts_no_step(make):
    param, other = parameter(1.0), with_gradient(1.0)
    optimizer = make([param, other])
    optimizer.step()
    assert param.tolist() == [1.0]
    if isinstance(optimizer, Adagrad):  # whose state exists from the beginning
        assert optimizer.state[param]["step"].item() == 0
    else:
        assert param not in optimizer.state


@pytest.mark.parametrize("make", OPTIMIZERS + SIGNS)
def test_a_transposed_parameter_takes_the_step_of_its_values(make):
    values = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    plain = fb.tensor(values, requires_grad=True)
    strided = fb.tensor(values).t().contiguous().t().requires_grad_()
    for param in (plain, strided):
        param.grad = fb.tensor(values)
        make([param]).step()
    if (
        make is centred_rmsprop
    ):  # of two means that nearly cancel the last digit depends on the layout
        assert (strided - plain).abs().max().item() <= 2**-23
    else:
        assert strided.tolist() == plain.tolist()


@pytest.mark.parametrize("make", OPTIMIZERS)
def test_a_nan_gradient_reaches_only_its_own_element(make):
    param = with_gradient(float("nan"), 1.0)
    make([param]).step()
    assert math.isnan(param[0].item())
    assert math.isfinite(param[1].item())


def test_a_nan_gradient_has_no_sign_and_moves_nothing_in_rprop():
    param = with_gradient(float("nan"), 1.0)
    Rprop([param], lr=0.1).step()
    assert param.tolist() == [0.0, -0.1]


@pytest.mark.parametrize("make", OPTIMIZERS + SIGNS)
def test_a_step_invalidates_what_backward_had_saved_of_the_parameter(make):
    param = with_gradient(1.0)
    loss = (param * param).sum()
    make([param]).step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_the_closure_runs_with_gradients_on_and_its_loss_is_returned():
    param = parameter(3.0)
    optimizer = SGD([param], lr=0.5)

    def closure():
        optimizer.zero_grad()
        loss = (param * param).sum()
        loss.backward()
        return loss

    with fb.no_grad():
        loss = optimizer.step(closure)
    assert loss.item() == 9.0
    assert param.item() == 0.0


def test_the_step_of_the_base_class_says_that_it_is_missing():
    with pytest.raises(NotImplementedError, match="Optimizer does not define step"):
        Optimizer([parameter(1.0)], {}).step()


def test_zero_grad_drops_gradients_or_fills_them_with_zeros_in_place():
    param = with_gradient(1.0, 2.0)
    optimizer = SGD([param], lr=0.1)
    gradient = param.grad
    optimizer.zero_grad(set_to_none=False)
    assert param.grad is gradient
    assert gradient.tolist() == [0.0, 0.0]
    optimizer.zero_grad()
    assert param.grad is None


def test_zero_grad_detaches_a_gradient_that_has_history():
    param = parameter(2.0)
    (param.grad,) = fb.autograd.grad((param**3).sum(), [param], create_graph=True)
    assert param.grad.requires_grad
    SGD([param], lr=0.1).zero_grad(set_to_none=False)
    assert (param.grad.requires_grad, param.grad.tolist()) == (False, [0.0])


def test_groups_keep_their_options_and_take_the_rest_from_the_defaults():
    a, b, c = with_gradient(1.0), with_gradient(1.0), with_gradient(1.0)
    optimizer = SGD([{"params": [a], "lr": 0.5}, {"params": [b]}], lr=0.25)
    optimizer.add_param_group({"params": c, "lr": 2.0})
    optimizer.step()
    assert [p.item() for p in (a, b, c)] == [-0.5, -0.25, -2.0]


def test_parameters_may_come_as_a_generator():
    assert len(SGD((parameter(1.0) for _ in range(3)), lr=0.1).param_groups[0]["params"]) == 3


def test_duplicate_parameters_warn():
    param = parameter(1.0)
    with pytest.warns(UserWarning, match="duplicate parameters"):
        SGD([param, param], lr=0.1)


def test_a_required_option_must_be_given_by_every_group():
    with pytest.raises(ValueError, match="required optimization parameter rate"):
        Optimizer([parameter(1.0)], {"rate": required})


def test_a_group_that_is_not_a_dict_is_refused():
    with pytest.raises(TypeError, match="param_group must be a dict"):
        SGD([parameter(1.0)], lr=0.1).add_param_group([parameter(2.0)])


def test_names_of_parameters_are_kept_in_groups_and_state_dicts():
    optimizer = SGD([("w", parameter(1.0)), ("b", parameter(2.0))], lr=0.1)
    assert optimizer.param_groups[0]["param_names"] == ["w", "b"]
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["w", "b"]


def test_loading_a_state_dict_without_names_keeps_the_names():
    unnamed = SGD([parameter(1.0)], lr=0.1).state_dict()
    optimizer = SGD([("w", parameter(1.0))], lr=0.5)
    optimizer.load_state_dict(unnamed)
    assert optimizer.param_groups[0]["param_names"] == ["w"]
    assert optimizer.param_groups[0]["lr"] == 0.1


def test_a_state_dict_numbers_parameters_across_groups():
    groups = [{"params": [with_gradient(1.0), parameter(1.0)]}, {"params": [with_gradient(2.0)]}]
    optimizer = SGD(groups, lr=0.1, momentum=0.9)
    optimizer.step()
    saved = optimizer.state_dict()
    assert [group["params"] for group in saved["param_groups"]] == [[0, 1], [2]]
    assert {k: v["momentum_buffer"].tolist() for k, v in saved["state"].items() if v} == {
        0: [1.0],
        2: [2.0],
    }


def test_loading_copies_options_and_casts_state_to_the_parameter_but_not_the_step_count():
    source = Adam([with_gradient(1.0)], lr=0.25)
    source.step()
    target = Adam([parameter(0.0, dtype=fb.float16)])
    target.load_state_dict(source.state_dict())
    (state,) = target.state.values()
    assert (state["exp_avg"].dtype, state["step"].dtype) == (fb.float16, fb.float32)
    assert target.param_groups[0]["lr"] == 0.25
    target.param_groups[0]["lr"] = 1.0
    assert source.param_groups[0]["lr"] == 0.25


@pytest.mark.parametrize("optimizer", [Adam, Adamax, Adadelta, ASGD, NAdam, RMSprop, Rprop])
def test_steps_after_loading_leave_the_loaded_dict_as_it_was(optimizer):
    source = optimizer([with_gradient(1.0, 2.0)], lr=0.25)
    source.step()
    saved = source.state_dict()
    before = copy.deepcopy(saved)
    target = optimizer([with_gradient(3.0, 1.0)], lr=0.25)
    target.load_state_dict(saved)
    target.step()
    for key, value in before["state"][0].items():
        assert fb.equal(fb.as_tensor(saved["state"][0][key]), fb.as_tensor(value)), key


def test_a_step_count_saved_as_a_number_is_loaded_as_a_tensor():
    source = Adam([with_gradient(1.0)])
    source.step()
    saved = source.state_dict()
    saved["state"] = {0: {**saved["state"][0], "step": 7}}
    param = with_gradient(1.0)
    target = Adam([param])
    target.load_state_dict(saved)
    target.step()
    assert target.state[param]["step"].item() == 8


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([[1.0], [2.0]], "different number of parameter groups"),
        ([[1.0, 2.0]], "doesn't match the size of optimizer's group"),
    ],
)
def test_a_state_dict_of_other_groups_is_refused(groups, message):
    saved = SGD([{"params": [parameter(x) for x in g]} for g in groups], lr=0.1).state_dict()
    with pytest.raises(ValueError, match=message):
        SGD([parameter(1.0)], lr=0.1).load_state_dict(saved)


def test_step_hooks_run_around_the_step_and_the_global_ones_outside():
    param = with_gradient(1.0)
    optimizer = SGD([param], lr=1.0)
    seen = []

    def note(name):
        return lambda opt, args, kwargs: seen.append((name, opt is optimizer, param.item()))

    handles = [
        register_optimizer_step_pre_hook(note("global before")),
        register_optimizer_step_post_hook(note("global after")),
        optimizer.register_step_pre_hook(note("before")),
        optimizer.register_step_post_hook(note("after")),
    ]
    optimizer.step()
    assert seen == [
        ("global before", True, 0.0),
        ("before", True, 0.0),
        ("after", True, -1.0),
        ("global after", True, -1.0),
    ]
    for handle in handles:
        handle.remove()
    optimizer.step()
    assert len(seen) == 4


def test_a_step_pre_hook_may_replace_the_arguments():
    optimizer = SGD([with_gradient(1.0)], lr=1.0)
    optimizer.register_step_pre_hook(lambda opt, args, kwargs: ((opt, lambda: "replaced"), {}))
    assert optimizer.step() == "replaced"


def test_a_step_pre_hook_that_returns_something_else_is_an_error():
    optimizer = SGD([with_gradient(1.0)], lr=1.0)
    optimizer.register_step_pre_hook(lambda opt, args, kwargs: 3)
    with pytest.raises(RuntimeError, match="None or a tuple of"):
        optimizer.step()


def test_hooks_run_once_where_a_subclass_calls_the_step_of_its_parent():
    class Counting(SGD):
        def step(self, closure=None):
            return super().step(closure)

    optimizer = Counting([with_gradient(1.0)], lr=1.0)
    calls = []
    optimizer.register_step_post_hook(lambda *_: calls.append(1))
    optimizer.step()
    assert calls == [1]


def test_state_dict_hooks_may_replace_what_is_saved_and_loaded():
    optimizer = SGD([parameter(1.0)], lr=0.1)
    order = []
    optimizer.register_state_dict_pre_hook(lambda opt: order.append("second"))
    optimizer.register_state_dict_pre_hook(lambda opt: order.append("first"), prepend=True)
    optimizer.register_state_dict_post_hook(lambda opt, saved: {**saved, "extra": 1})
    saved = optimizer.state_dict()
    assert order == ["first", "second"]
    assert saved["extra"] == 1

    def halve(opt, state):
        (group,) = state["param_groups"]
        return {**state, "param_groups": [{**group, "lr": group["lr"] / 2}]}

    optimizer.register_load_state_dict_pre_hook(halve)
    optimizer.register_load_state_dict_post_hook(
        lambda opt: order.append(opt.param_groups[0]["lr"])
    )
    optimizer.load_state_dict(saved)
    assert order[-1] == 0.05
    assert saved["param_groups"][0]["lr"] == 0.1


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
@pytest.mark.parametrize("make", OPTIMIZERS + SIGNS)
def test_a_copy_continues_on_its_own_parameters(make, duplicate):
    param = with_gradient(1.0, -1.0)
    optimizer = make([param])
    optimizer.step()
    twin = duplicate(optimizer)
    (twin_param,) = twin.param_groups[0]["params"]
    assert twin_param is not param
    for opt, p in ((optimizer, param), (twin, twin_param)):
        p.grad = fb.tensor([0.5, 2.0], dtype=fb.float64)
        opt.step()
    assert twin_param.tolist() == param.tolist()


def test_adamw_stays_decoupled_after_loading_what_adam_saved():
    saved = Adam([parameter(1.0)]).state_dict()
    optimizer = AdamW([parameter(1.0)])
    optimizer.load_state_dict(saved)
    assert optimizer.param_groups[0]["decoupled_weight_decay"] is True


def test_fused_refuses_integer_parameters():
    param = fb.tensor([1, 2])
    param.grad = fb.tensor([1, 1])
    with pytest.raises(RuntimeError, match="fused=True"):
        SGD([param], fused=True).step()


def test_adam_refuses_complex_parameters_with_the_remedy_where_memory_has_no_views():
    param = fb.tensor([1j], device="ref")
    param.grad = fb.tensor([1j], device="ref")
    with pytest.raises(NotImplementedError, match="real and imaginary parts as two parameters"):
        Adam([param]).step()


def test_lists_are_split_by_the_device_of_the_parameter():
    a, b, c = (SimpleNamespace(device=d) for d in ("cpu", "cuda:0", "cpu"))
    assert list(per_device([a, b, c], [1, 2, 3], [])) == [([a, c], [1, 3], []), ([b], [2], [])]
    assert list(per_device([a, c], [1, 3], [])) == [([a, c], [1, 3], [])]
    assert list(per_device([], [], [])) == []


class _StepOfAMixin:
    def step(self, closure=None):
        return "stepped"


def test_hooks_run_around_a_step_that_a_mixin_brings():
    class Mixed(_StepOfAMixin, Optimizer):
        pass

    optimizer = Mixed([fb.ones(1, requires_grad=True)], {})
    seen: list[str] = []
    optimizer.register_step_pre_hook(lambda *_: seen.append("before"))
    optimizer.register_step_post_hook(lambda *_: seen.append("after"))
    assert optimizer.step() == "stepped" and seen == ["before", "after"]
    assert not hasattr(_StepOfAMixin.step, "hooked")


def test_an_optimiser_around_another_needs_no_super_init():
    class Around(Optimizer):
        def __init__(self, inner):
            self.inner = inner
            self._patch_step_function()

        @property
        def param_groups(self):
            return self.inner.param_groups

        def step(self, closure=None):
            return self.inner.step(closure)

    weight = fb.ones(1, requires_grad=True)
    weight.grad = fb.ones(1)
    around = Around(SGD([weight], lr=0.5))
    seen: list[str] = []
    around.register_step_post_hook(lambda *_: seen.append("after"))
    around.step()
    assert weight.tolist() == [0.5] and seen == ["after"]
