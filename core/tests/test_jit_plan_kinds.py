"""Plans of scripted functions that record a history, are given lists, or decide by tensors."""

import pytest
from test_jit_plans import CALLS, plans_of, repeated

import flambeau as fb
from flambeau import nn


def cell(x, h, w):
    for t in range(x.size(0)):
        h = fb.tanh(x[t] @ w + h)
    return h, h.sum()


def gradients(function, inputs):
    """Results, gradients of the sum of all results with a history, and those of their squares."""
    found = function(*inputs)
    results = [t for t in (found if isinstance(found, tuple) else (found,)) if t.requires_grad]
    wanted = [t for t in inputs if t.requires_grad]
    total = sum((t * t).sum() for t in results)
    first = fb.autograd.grad(total, wanted, create_graph=True)
    second = fb.autograd.grad(sum((g * g).sum() for g in first), wanted)
    return [[t.detach() for t in tensors] for tensors in (results, first, second)]


def assert_same_gradients(scripted, function, inputs):
    """Results to the bit; gradients are sums in another order."""
    ours, plain = gradients(scripted, inputs), gradients(function, inputs)
    assert all(map(fb.equal, ours[0], plain[0]))
    fb.testing.assert_close(ours[1:], plain[1:], rtol=1e-12, atol=1e-12)


def test_plans_of_calls_that_record_a_history_have_the_gradients_of_the_function():
    scripted = fb.jit.script(cell)
    for wants in ((True, True, True), (False, True, False), (False, False, True)):
        for _ in range(CALLS):
            inputs = [fb.randn(3, 2, 3), fb.randn(2, 4), fb.randn(3, 4)]
            inputs = [
                t.double().requires_grad_(want) for t, want in zip(inputs, wants, strict=True)
            ]
            assert_same_gradients(scripted, cell, inputs)
        w = inputs[2].detach().requires_grad_()
        inputs[2] = w * 2  # one that has a history itself
        (grad,) = fb.autograd.grad(scripted(*inputs)[1], w, retain_graph=True)
        assert fb.equal(grad, fb.autograd.grad(cell(*inputs)[1], w)[0])
    assert [len(plans) for plans in plans_of(scripted)] == [1, 1, 1]


def test_modules_train_by_plans_as_they_do_without():
    fb.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    other = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    other.load_state_dict(net.state_dict())
    scripted, called = fb.jit.script(net), []
    for step in range(2 * CALLS):
        x, losses = fb.randn(5, 3), []
        if step == CALLS:
            net[0].weight.register_hook(lambda g: called.append(g.shape))
            net[2].bias.requires_grad_(False)
            other[2].bias.requires_grad_(False)
        for model, parameters in ((scripted, net.parameters()), (other, other.parameters())):
            loss = model(x).square().mean()
            loss.backward()
            with fb.no_grad():
                for p in parameters:
                    if p.grad is not None:
                        p -= 0.1 * p.grad
                        p.grad = None
            losses.append(loss.item())
        assert losses[0] == losses[1]
    assert called == [(4, 3)] * CALLS


def test_what_was_written_between_the_passes_is_found():
    scripted, w = fb.jit.script(lambda x, w: (x * w).sum()), fb.ones(2, requires_grad=True)
    y = repeated(scripted, fb.ones(2, requires_grad=True), w)[-1]
    with fb.no_grad():
        w.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_what_draws_and_records_a_history_runs_as_it_is():
    def noisy(x):
        return nn.functional.dropout(x * x, 0.5, True)

    scripted, x = fb.jit.script(noisy), fb.full((8,), 2.0).requires_grad_()
    for _ in range(CALLS):
        y = scripted(x)
        (grad,) = fb.autograd.grad(y.sum(), x, create_graph=True)
        assert fb.equal(grad, y.detach())
    assert not any(plans_of(scripted))


def test_a_result_that_was_given_is_that_tensor():
    def larger(x, y):
        return (x, y + x) if bool(x.max() > y.max()) else (y, x + y)

    scripted = fb.jit.script(larger)
    for wants in (False, True):
        x, y = fb.ones(2).requires_grad_(wants), fb.zeros(2)
        for _ in range(CALLS):
            assert scripted(x, y)[0] is x is scripted(y, x)[0]
    assert all(plans_of(scripted))


def test_results_that_are_one_tensor_stay_one():
    scripted, x = fb.jit.script(lambda x: (x + 1, (x * 2,), x + 1)), fb.ones(2)
    for _ in range(2):
        for first, (second,), third in repeated(scripted, x):
            assert first.tolist() == third.tolist() == [2.0, 2.0] == second.tolist()

    def twice(x):
        y = x * 3 + 1
        return y, (y, y)

    scripted = fb.jit.script(twice)
    for x in (fb.ones(2), fb.ones(2, requires_grad=True)):
        for first, (second, third) in repeated(scripted, x):
            assert first is second is third
    assert [len(plans) for plans in plans_of(scripted)] == [1, 1]


def test_lists_that_are_added_to_and_lists_that_are_given_are_part_of_plans():
    def stacked(parts: list[fb.Tensor], start: tuple[fb.Tensor, float]):
        total, scale = start
        for part in parts:
            total = total * scale + part
        return total

    def collected(x):
        found: list[fb.Tensor] = []
        for i in range(x.size(0)):
            found += [x[i] * i]
        return fb.stack(found)

    scripted = fb.jit.script(stacked)
    for count, scale in ((1, 2.0), (3, 2.0), (3, 0.5), (0, 1.0), (2, -0.0)):
        parts, start = [fb.randn(2) for _ in range(count)], (fb.ones(2), scale)
        for each in repeated(scripted, parts, start):
            assert fb.equal(each, stacked(parts, start))
    scripted, x = fb.jit.script(collected), fb.randn(3, 2)
    assert all(fb.equal(each, collected(x)) for each in repeated(scripted, x))
    assert all(plans_of(scripted))


def test_a_list_that_the_function_changes_is_its_own_in_each_call():
    def grown(parts: list[fb.Tensor]):
        parts.append(parts[-1] + 1)
        return parts[-1] * 2

    scripted, parts = fb.jit.script(grown), [fb.zeros(2)]
    for _ in range(CALLS):
        assert scripted(parts).tolist() == [2.0, 2.0]
    assert len(parts) == 1


def sided(x, y):
    if bool(x.sum() > 0):
        x = x * y
    elif bool(y.sum() > 0):
        x = x - y
    return x + y


@pytest.mark.parametrize("wants", [False, True])
def test_a_function_that_decides_by_tensors_has_a_plan_for_each_way(wants):
    scripted = fb.jit.script(sided)
    for step in range(6 * CALLS):
        sign = (1.0, 1.0) if step < CALLS else ((-1.0, 1.0), (1.0, 1.0))[step // CALLS % 2]
        inputs = [
            fb.full((2,), s * (step + 1), dtype=fb.float64).requires_grad_(wants) for s in sign
        ]
        if wants:
            assert_same_gradients(scripted, sided, inputs)
        else:
            assert fb.equal(scripted(*inputs), sided(*inputs))
    assert {len(plans) for plans in plans_of(scripted)} == {2}


def test_what_a_script_names_is_looked_at_by_none_of_its_calls():
    """Names in generated code are nobody's to bind: what a plan depends on are the arguments."""

    def scaled(x):
        sizes = [2, 3]
        if bool(x.sum() > 0):
            x = fb.tanh(x) * sizes[1]
        return x + 1

    scripted, net = fb.jit.script(scaled), fb.jit.script(nn.Linear(2, 3))
    with fb.no_grad():
        repeated(scripted, fb.ones(2))
        repeated(net, fb.ones(2))
    for function in (scripted, net.forward):
        assert [plan.free for plans in plans_of(function) for plan in plans] == [True]


def test_a_function_that_decides_otherwise_each_time_runs_as_it_is():
    def steps(x):
        for i in range(6):
            if bool(x[i] > 0):
                x = x + 0.5
            else:
                x = x - i
        return x

    scripted = fb.jit.script(steps)
    for _ in range(100):
        x = fb.randn(6)
        assert fb.equal(scripted(x), steps(x))
    assert plans_of(scripted) == [None]


def test_a_decision_by_what_has_no_truth_is_an_error_with_a_plan_too():
    def chosen(x):
        return x + 1 if bool(x > 0) else x - 1

    scripted = fb.jit.script(chosen)
    assert [each.item() for each in repeated(scripted, fb.ones(()))] == [2.0] * CALLS
    assert repeated(scripted, fb.tensor([fb.nan]))[-1].isnan().all()
    with pytest.raises(RuntimeError, match="more than one value"):
        scripted(fb.ones(2))
    with pytest.raises(RuntimeError, match="no values"):
        scripted(fb.ones(0))


def test_what_decides_and_raises_does_so_with_a_plan_of_the_other_way():
    def positive(x):
        if bool(x.min() <= 0):
            raise ValueError("not positive")
        return x.log()

    scripted = fb.jit.script(positive)
    repeated(scripted, fb.ones(3))
    assert all(plans_of(scripted))
    with pytest.raises(RuntimeError, match="not positive"):
        scripted(fb.zeros(3))
    assert scripted(fb.ones(3)).tolist() == [0.0] * 3


def test_what_draws_and_decides_draws_once_in_a_call():
    def walked(x):
        step = fb.rand_like(x)
        return x + step if bool(step.sum() > 1) else x - step

    scripted, x = fb.jit.script(walked), fb.ones(2)
    state = fb.get_rng_state()
    try:
        fb.manual_seed(3)
        found = [scripted(x) for _ in range(40)]
        fb.manual_seed(3)
        assert all(fb.equal(each, walked(x)) for each in found)
    finally:
        fb.set_rng_state(state)
