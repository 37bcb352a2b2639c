"""Scripted functions that repeat plans of themselves: results are those of the function."""

import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

import flambeau as fb
from flambeau import nn
from flambeau.jit._planned import _AFTER, _KINDS, _NOT_ASKED, Planned

CALLS = _AFTER + 6


def runs(scripted):
    """What the calls of a scripted function come to: its plans, or what repeats the last one."""
    return getattr(scripted, "function", scripted)._run.__globals__["run"]


def plans_of(scripted):
    """The plans that the calls of a scripted function have made; None where it has none at all."""
    run = runs(scripted)
    run = getattr(run, "planned", run)
    return list(run.plans.values()) if isinstance(run, Planned) else None


def repeated(scripted, *args):
    """What the calls of a scripted function give, the last ones from a plan."""
    return [scripted(*args) for _ in range(CALLS)]


def cell(x, h, w):
    for t in range(x.size(0)):
        h = fb.tanh(x[t] @ w + h)
    return h, h.sum()


def test_a_loop_over_sizes_is_one_plan_whose_results_are_to_the_bit():
    scripted, w = fb.jit.script(cell), fb.randn(3, 4)
    for length in (2, 5):
        x, h = fb.randn(length, 2, 3), fb.randn(2, 4)
        for found in repeated(scripted, x, h, w):
            assert all(map(fb.equal, found, cell(x, h, w)))
    assert [plan is not None for plan in plans_of(scripted)] == [True, True]


def test_views_without_a_history_have_plans_and_views_of_what_wants_a_gradient_have_none():
    def stepped(x, h, w):
        for t in range(x.size(0)):
            h = fb.tanh(x[t] @ w + h)
        return h, h.sum()

    scripted, w = fb.jit.script(stepped), fb.randn(3, 4)
    base, h = fb.randn(12), fb.randn(2, 4)
    for found in repeated(scripted, base.view(2, 2, 3), h, w):
        assert all(map(fb.equal, found, cell(base.view(2, 2, 3), h, w)))
    assert [plan is not None for plan in plans_of(scripted)] == [True]
    base.requires_grad_()
    for _ in range(2 * CALLS):
        _, total = scripted(base.view(2, 2, 3), h, w)
        (grad,) = fb.autograd.grad(total, base)
    (expected,) = fb.autograd.grad(cell(base.view(2, 2, 3), h, w)[1], base)
    assert fb.equal(grad, expected)


def test_a_plan_reads_parameters_where_they_are_now():
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    scripted, x = fb.jit.script(net), fb.randn(5, 3)
    with fb.no_grad():
        repeated(scripted, x)
        assert len(plans_of(scripted.forward)) == 1
        net[0].weight.mul_(2)
        assert fb.equal(scripted(x), net(x))
        net[0].weight.data = fb.randn(4, 3)
        assert fb.equal(scripted(x), net(x))
        net[2].load_state_dict({"weight": fb.ones(2, 4), "bias": fb.ones(2)})
        assert fb.equal(scripted(x), net(x))
        net.double()
        assert fb.equal(scripted(x.double()), net(x.double()))


def test_calls_that_record_run_as_they_are_and_have_gradients():
    net = nn.Linear(3, 2)
    scripted, x = fb.jit.script(net), fb.randn(4, 3)
    with fb.no_grad():
        repeated(scripted, x)
    scripted(x).sum().backward()
    assert net.weight.grad is not None and fb.equal(net.weight.grad[0], x.sum(0))
    y = x.clone().requires_grad_()
    with fb.no_grad():
        assert not scripted(y).requires_grad
    assert scripted(y).requires_grad


def test_calls_have_plans_again_after_some_that_can_have_none():
    scripted, x = fb.jit.script(lambda a: fb.tanh(a) * 2), fb.ones(3)
    assert fb.equal(repeated(scripted, x)[-1], fb.tanh(x) * 2)
    assert len(plans_of(scripted)) == 1
    far = fb.ones(3, device="meta")
    assert repeated(scripted, far)[-1].shape == (3,)
    for _ in range(_NOT_ASKED + CALLS):
        assert fb.equal(scripted(x.double()), fb.tanh(x.double()) * 2)
    assert len(plans_of(scripted)) == 2


def test_random_numbers_are_drawn_anew_in_each_run_and_in_their_order():
    def noisy(x):
        return nn.functional.dropout(x, 0.5, True) + fb.rand_like(x)

    scripted, x = fb.jit.script(noisy), fb.ones(4, 4)
    state = fb.get_rng_state()
    try:
        fb.manual_seed(3)
        found = repeated(scripted, x)
        fb.manual_seed(3)
        for each in found:
            assert fb.equal(each, noisy(x))
    finally:
        fb.set_rng_state(state)


def test_what_a_call_decides_by_is_part_of_its_kind():
    def chosen(x, n: int, scale: float, flag: bool):
        if flag:
            x = x * n
        return x / scale

    scripted, x = fb.jit.script(chosen), fb.ones(2)
    for args in ((2, 2.0, True), (3, 2.0, True), (2, 2.0, False), (1, 0.0, True), (1, -0.0, True)):
        assert all(fb.equal(each, chosen(x, *args)) for each in repeated(scripted, x, *args))
    for y in (fb.ones(3), fb.ones(2, dtype=fb.float64), fb.ones(2, 2)[:, 0], fb.ones(2).int()):
        assert all(
            fb.equal(each, chosen(y, 2, 2.0, True)) for each in repeated(scripted, y, 2, 2.0, True)
        )


def writes(x):
    x.add_(1)
    return x * 2


def view(x):
    return x.view(-1)


def printed(x):
    print("called")
    return x + 1


def number(x):
    return x + x.sum().item()


@pytest.mark.parametrize("function", [number, writes, view], ids=lambda f: f.__name__)
def test_what_reads_numbers_writes_to_arguments_or_gives_views_has_no_plan(function):
    scripted = fb.jit.script(function)
    for start in (1.0, -1.0):
        x, y = fb.full((2,), start), fb.full((2,), start)
        for _ in range(CALLS):
            assert fb.equal(scripted(x), function(y)) and fb.equal(x, y)
    assert not any(plans_of(scripted) or ())


def test_a_view_that_is_returned_shares_the_memory_of_the_argument():
    scripted, x = fb.jit.script(view), fb.zeros(2, 2)
    for found in repeated(scripted, x):
        found[0] += 1
    assert x[0, 0].item() == CALLS


def test_what_prints_does_so_in_each_call(capsys):
    repeated(fb.jit.script(printed), fb.ones(1))
    assert capsys.readouterr().out.count("called") == CALLS


def test_tensors_that_share_an_array_are_told_from_those_that_do_not():
    scripted, x, y = fb.jit.script(lambda a, b: a * 2 + b), fb.ones(2), fb.full((2,), 5.0)
    assert all(each.tolist() == [3.0, 3.0] for each in repeated(scripted, x, x))
    assert all(each.tolist() == [7.0, 7.0] for each in repeated(scripted, x, y))
    assert scripted(x, x).tolist() == [3.0, 3.0]


def test_batch_norm_in_training_moves_its_statistics_in_each_call():
    ours, plain = nn.BatchNorm1d(3), nn.BatchNorm1d(3)
    scripted, x = fb.jit.script(ours), fb.randn(6, 3)
    with fb.no_grad():
        for _ in range(CALLS):
            assert fb.equal(scripted(x), plain(x))
    assert fb.equal(ours.running_mean, plain.running_mean)
    assert ours.num_batches_tracked.item() == CALLS


def test_lists_of_constants_are_compared_with_none_in_what_is_planned():
    scripted, x = fb.jit.script(nn.AvgPool2d(2)), fb.randn(1, 1, 4, 4)
    assert all(fb.equal(each, nn.functional.avg_pool2d(x, 2)) for each in repeated(scripted, x))

    def pooled(x):
        return nn.functional.interpolate(nn.functional.max_pool2d(x, 2), scale_factor=[2.0, 2.0])

    scripted = fb.jit.script(pooled)
    assert all(fb.equal(each, pooled(x)) for each in repeated(scripted, x))


def test_plans_of_one_function_are_few():
    scripted = fb.jit.script(lambda x: x + 2 - 1)
    for size in range(2 * _KINDS):
        assert repeated(scripted, fb.ones(size + 1))[-1].tolist() == [2.0] * (size + 1)
    assert len(plans_of(scripted)) == _KINDS


def test_a_function_of_one_op_is_called_as_it_is():
    scripted, x = fb.jit.script(lambda x: x.exp()), fb.ones(2)
    assert all(fb.equal(each, x.exp()) for each in repeated(scripted, x))
    assert not plans_of(scripted)
    scripted = fb.jit.script(lambda x: x.exp().exp())
    assert all(fb.equal(each, x.exp().exp()) for each in repeated(scripted, x))
    assert len(plans_of(scripted)) == 1


def test_modes_see_the_calls_of_functions_that_have_plans():
    scripted, x = fb.jit.script(lambda x: fb.tanh(x) + 1), fb.ones(2)
    repeated(scripted, x)
    seen = []

    class Seen(fb.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    with Seen():
        scripted(x)
    assert "tanh" in seen


def test_errors_are_the_same_ones_with_a_plan_and_without():
    scripted, x = fb.jit.script(lambda x, y: x // y), fb.tensor([4, 6])
    repeated(scripted, x, fb.tensor([2, 3]))
    assert any(plan is not None for plan in plans_of(scripted))
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        scripted(x, fb.tensor([1, 0]))


def test_threads_may_make_the_first_calls_at_once():
    source = (
        "def f(x):\n" + "".join(f"    x = x * {n} + {n}\n" for n in range(20)) + "    return x\n"
    )
    wanted = fb.jit.CompilationUnit(source).f(fb.ones(2)).tolist()
    for _ in range(20):
        function, start = fb.jit.CompilationUnit(source).f, threading.Barrier(4)
        with ThreadPoolExecutor(4) as pool:
            calls = [
                pool.submit(lambda f=function, s=start: (s.wait(), f(fb.ones(2)))) for _ in range(4)
            ]
            assert [call.result()[1].tolist() for call in calls] == [wanted] * 4


def test_calls_of_two_kinds_in_turn_have_the_results_of_each():
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
    scripted = fb.jit.script(net)
    few, many = fb.randn(2, 3), fb.randn(5, 3)
    with fb.no_grad():
        repeated(scripted, few)
        repeated(scripted, many)
        for _ in range(3):
            for x in (few, many, many.double(), many.t().contiguous().t()):
                if x.dtype == fb.float64:
                    with pytest.raises(RuntimeError):
                        scripted(x)
                else:
                    assert fb.equal(scripted(x), net(x))


def test_an_input_that_wants_a_gradient_after_many_that_did_not_gets_one():
    scripted, x = fb.jit.script(lambda x: (x * x).sum()), fb.randn(3)
    repeated(scripted, x)
    x.requires_grad_()
    scripted(x).backward()
    assert fb.equal(x.grad, 2 * x.detach())


def test_a_parameter_that_wants_a_gradient_again_gets_one():
    net = nn.Linear(3, 2)
    for each in net.parameters():
        each.requires_grad_(False)
    scripted, x = fb.jit.script(net), fb.randn(4, 3)
    repeated(scripted, x)
    scripted.weight.requires_grad_()
    scripted(x).sum().backward()
    assert fb.allclose(scripted.weight.grad, x.sum(0).expand(2, 3))


def test_two_modules_of_one_type_have_their_own_parameters_in_calls_by_turns():
    nets = [nn.Linear(3, 2) for _ in range(2)]
    pair, x = [fb.jit.script(net) for net in nets], fb.randn(4, 3)
    with fb.no_grad():
        for _ in range(CALLS):
            for net, scripted in zip(nets, pair, strict=True):
                assert fb.equal(scripted(x), net(x))


def test_numbers_and_texts_that_differ_are_told_apart_after_many_calls():
    def scaled(x, by: float, n: int, how: str, shift: int | None = None):
        y = x * by + n
        if shift is not None:
            y = y + shift
        return -y if how == "minus" else y

    scripted, x = fb.jit.script(scaled), fb.ones(2)
    calls = [(2.0, 1, "plus"), (2.0, 2, "plus"), (2.0, 1, "minus"), (0.5, 1, "plus")]
    for by, n, how in [call for call in calls for _ in range(CALLS)] + calls:
        for shift in (None, 3):
            expected = (1.0 * by + n + (shift or 0)) * (-1 if how == "minus" else 1)
            assert scripted(x, by, n, how, shift).tolist() == [expected] * 2


def test_a_module_s_calls_are_repeats_from_the_first_that_a_plan_was_made_for(monkeypatch):
    def line_by_line(*args):
        raise AssertionError("no repeat")

    class Own(nn.Linear):  # modules of one class share their plans
        def forward(self, x):
            return fb.tanh(x @ self.weight.T + self.bias)

    scripted, x = fb.jit.script(Own(3, 2)), fb.randn(4, 3)
    with fb.no_grad():
        expected = repeated(scripted, x)
        assert len(plans_of(scripted.forward)) == 1
        run = runs(scripted.forward)
        monkeypatch.setattr(run.planned, "raw", line_by_line)
        monkeypatch.setitem(run.__globals__, "raw", line_by_line)
        for found in repeated(scripted, x):
            assert fb.equal(found, expected[0])


def test_weights_that_were_replaced_are_let_go_of():
    class Own(nn.Linear):
        pass

    net = Own(3, 2)
    scripted = fb.jit.script(net)
    with fb.no_grad():
        repeated(scripted, fb.randn(4, 3))
        gone = weakref.ref(scripted.weight._a)
        for each in (net, scripted):
            each.double()
        repeated(scripted, fb.randn(4, 3).double())
    gc.collect()
    assert gone() is None
