"""Plans of functions: the same values and effects as the function's, or the function itself."""

import threading

import pytest

import flambeau as fb
from flambeau.plans import Compiled, explain


def plan_of(compiled):
    """The text of the plans of a compiled function."""
    return explain(compiled).text


def test_the_third_call_repeats_the_captured_kernel_calls(plain):
    @fb.compile
    def f(x, y):
        return (x * y).tanh() + 1

    x, y = plain([1.0, -2.0]), plain([0.5, 0.25])
    for scale in (1, 2, 3, 4):
        found = f(x * scale, y)
        assert found.tolist() == ((x * scale * y).tanh() + 1).tolist()
    told = f.explain()
    assert (told.calls, told.captures, told.replays, told.plans) == (4, 1, 2, 1)
    assert "mul(%0, %1)" in told.text and "tanh" in told.text


def test_a_result_has_memory_of_its_own_in_every_run(plain):
    f = fb.compile(lambda x: x * 2)
    results = [f(plain([float(i)])) for i in range(5)]
    assert [r.item() for r in results] == [0.0, 2.0, 4.0, 6.0, 8.0]


def test_other_shapes_dtypes_and_strides_are_plans_of_their_own(plain):
    f = fb.compile(lambda x: x.sum(0))
    for x in (
        plain([[1.0, 2.0]]),
        plain([[1.0, 2.0], [3.0, 4.0]]),
        plain([[1.0, 2.0], [3.0, 4.0]]).t(),
        plain([[1, 2]]),
    ):
        for _ in range(3):
            assert f(x).tolist() == x.sum(0).tolist()
    assert f.explain().plans >= 3


def test_containers_of_tensors_and_plain_arguments_are_arguments(plain):
    @fb.compile
    def f(pair, *, by, names):
        return {"sum": pair[0] + pair[1]["b"] * by, "first": (pair[0],), "names": names}

    x, y = plain([1.0]), plain([2.0])
    for by in (1, 1, 1, 3, 3, 3):
        found = f([x, {"b": y}], by=by, names="n")
        assert found["sum"].item() == 1 + 2 * by
        assert found["first"][0] is x and found["names"] == "n"
    assert f.explain().replays == 2


def test_an_argument_given_twice_is_one_tensor(plain):
    f = fb.compile(lambda x, y: x * y)
    x, y = plain([3.0]), plain([5.0])
    for _ in range(3):
        assert (f(x, x).item(), f(x, y).item()) == (9.0, 15.0)


def test_a_write_to_an_argument_is_made_in_every_run(plain):
    f = fb.compile(lambda x: x.add_(1).mul_(2))
    x = plain([1.0])
    found = [f(x) for _ in range(4)]
    assert x.tolist() == [46.0] and all(t is x for t in found)
    assert x._version == 8


def test_a_write_through_a_view_reaches_its_base(plain):
    @fb.compile
    def f(x):
        x[1:].add_(1)
        return x.sum()

    x = plain([1.0, 2.0, 3.0])
    assert [f(x).item() for _ in range(5)] == [8.0, 10.0, 12.0, 14.0, 16.0]


def test_plain_values_that_the_function_can_reach_are_watched(plain):
    options, by = {"shift": 1.0}, 2.0

    class Scale:
        factor = 3.0

    scale = Scale()

    @fb.compile
    def f(x):
        return x * by * scale.factor + options["shift"]

    x = plain([1.0])
    assert [f(x).item() for _ in range(3)] == [7.0] * 3
    by = 4.0
    assert [f(x).item() for _ in range(3)] == [13.0] * 3
    scale.factor = 5.0
    assert [f(x).item() for _ in range(3)] == [21.0] * 3
    options["shift"] = 0.0
    assert [f(x).item() for _ in range(3)] == [20.0] * 3
    assert f.explain().plans == 4


def test_tensors_that_the_function_holds_are_read_anew(plain):
    held = [plain([1.0])]
    f = fb.compile(lambda x: x + held[0])
    x = plain([1.0])
    assert [f(x).item() for _ in range(3)] == [2.0] * 3
    held[0].fill_(5.0)
    assert f(x).item() == 6.0
    held[0].data = plain([7.0])
    assert f(x).item() == 8.0
    held[0] = plain([9.0])
    assert f(x).item() == 10.0


class Counter:
    """Something that counts."""

    calls = 0


def test_a_function_that_counts_has_counted_after_every_run(plain):
    counter = Counter()

    @fb.compile
    def f(x):
        counter.calls += 1
        return x * 2

    for _ in range(7):
        f(plain([1.0]))
    assert counter.calls == 7
    assert f.explain().replays == 4
    (_, why) = f.explain().reasons
    assert "counter" in why and "is followed from now on" in why


def test_a_function_that_counts_in_a_variable_runs_as_it_is(plain):
    calls = 0

    @fb.compile
    def f(x):
        nonlocal calls
        calls += 1
        return x * 2

    for _ in range(7):
        f(plain([1.0]))
    assert calls == 7
    (_, why) = f.explain().reasons
    assert "calls" in why and "count in a tensor" in why


def test_a_list_that_grows_is_an_effect_that_no_plan_has(plain):
    seen = []

    @fb.compile
    def f(x):
        seen.append(x.sum())
        return x * 2

    for _ in range(6):
        f(plain([1.0]))
    assert len(seen) == 6


def test_gradients_of_arguments_are_those_of_the_arguments_of_each_run(leaf):
    def run(function):
        given, found = [leaf([1.0, float(i)]) for i in range(3)], []
        for i in range(12):
            x = given[0 if i < 4 else i % 3]
            x.grad = None
            function(x)
            found.append([None if t.grad is None else t.grad.tolist() for t in given])
        return found

    def step(x):
        (x * x).sum().backward()

    compiled = fb.compile(step)
    assert run(compiled) == run(step)
    assert compiled.explain().replays == 10


def test_gradients_that_arguments_come_with_are_added_to(leaf):
    def run(function):
        given = [leaf([1.0, float(i)]) for i in range(3)]
        for i in range(12):
            function(given[0 if i < 4 else i % 3])
        return [t.grad.tolist() for t in given]

    def step(x):
        (x * x).sum().backward()

    assert run(fb.compile(step)) == run(step)


def test_an_argument_that_the_function_holds_as_well_may_be_another_next_time(plain):
    held = plain([1.0])

    @fb.compile
    def f(x):
        held.mul_(2)
        return x + 1

    assert [f(held).item() for _ in range(4)] == [3.0, 5.0, 9.0, 17.0]
    assert [f(plain([1.0])).item() for _ in range(2)] == [2.0] * 2
    assert held.item() == 64.0


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x * 2 if x.sum() > 0 else x,
        lambda x: x * x.sum().item(),
        lambda x: x[: int(x[0])],
        lambda x: x + len(str(x)),
        lambda x: x * len(x.tolist()),
        lambda x: x[x > 0],
        lambda x: x.masked_select(x > 0).sum(),
        lambda x: x.unique(),
        lambda x: x.nonzero() * 2,
        lambda x: x.repeat_interleave(x.abs().long()),
        lambda x: x.abs().long().bincount(),
    ],
)
def test_a_function_that_reads_values_runs_as_it_is_and_says_where(plain, read):
    f = fb.compile(read)
    for value in (1.0, -1.0, 2.0, 1.0, -3.0):
        x = plain([value, 2.0])
        try:
            expected = read(x).tolist()
        except Exception:
            continue
        assert f(x).tolist() == expected
    assert f.explain().replays == 0
    reasons = [why for why in f.explain().reasons if __file__ in why]
    assert any("values were read" in why or "depends on values" in why for why in reasons)


def test_a_whole_plan_can_be_demanded(plain):
    f = fb.compile(lambda x: x * x.sum().item(), fullgraph=True)
    f(plain([1.0]))
    with pytest.raises(RuntimeError, match="values were read"):
        f(plain([1.0]))


def test_a_result_that_shares_memory_with_an_argument_stays_a_view(plain):
    f = fb.compile(lambda x: x[1:])
    x = plain([1.0, 2.0])
    for _ in range(4):
        f(x).fill_(9.0)
        assert x.tolist() == [1.0, 9.0]
        x[1] = 2.0
    assert f.explain().replays == 0


def test_random_numbers_go_on_as_without_a_plan(plain):
    def f(x):
        return fb.nn.functional.dropout(x, 0.5) + fb.rand(3, device=x.device).to(x.dtype)

    pytest.importorskip("flambeau.nn")
    results = []
    for function in (f, fb.compile(f)):
        fb.manual_seed(3)
        results.append([function(plain([1.0, 2.0, 3.0])).tolist() for _ in range(5)])
    assert results[0] == results[1]


def test_a_seed_set_within_is_an_effect_that_no_plan_has(plain):
    @fb.compile
    def f(x):
        fb.manual_seed(1)
        return x + fb.rand(1, device=x.device)

    assert len({f(plain([0.0])).item() for _ in range(5)}) == 1
    assert f.explain().replays == 0


def test_draws_that_are_taken_back_are_taken_back_in_every_run(plain):
    def f(x):
        with fb.random.fork_rng():
            return x + fb.rand(1, device=x.device)

    compiled = fb.compile(f)
    assert len({compiled(plain([0.0])).item() for _ in range(5)}) == 1


def test_a_checkpoint_draws_the_same_again_in_every_run(leaf):
    def run(function):
        fb.manual_seed(0)
        w, found = leaf([1.0] * 64), []
        for _ in range(5):
            w.grad = None
            found.append((function(w).tolist(), w.grad.tolist()))
        return found

    def step(w):
        y = fb.utils.checkpoint.checkpoint(
            lambda w: fb.dropout(w, 0.5, True), w, use_reentrant=True
        )
        y.sum().backward()
        return y.detach()

    assert run(fb.compile(step)) == run(step)


def test_indices_are_checked_in_every_run(plain):
    f = fb.compile(lambda x, i: x.index_select(0, i))
    x = plain([1.0, 2.0, 3.0])
    for _ in range(3):
        f(x, plain([0, 2]))
    assert f.explain().replays == 1
    with pytest.raises(IndexError, match="out of range"):
        f(x, plain([0, 3]))
    assert f(x, plain([1, 1])).tolist() == [2.0, 2.0]


def gradients(function, *inputs):
    """Gradients of the sum of squares of the results, and their own gradients."""
    found = function(*inputs)
    total = sum((t * t).sum() for t in (found if isinstance(found, tuple) else (found,)))
    first = fb.autograd.grad(total, inputs, create_graph=True)
    second = fb.autograd.grad(sum((g * g).sum() for g in first), inputs)
    return [t.tolist() for t in (total.detach(), *[g.detach() for g in first], *second)]


def test_parameters_and_samples_of_distributions_are_checked_in_every_run(leaf, plain):
    prior = fb.distributions.Normal(plain([0.0]), plain([1.0]))

    @fb.compile
    def f(loc, scale, value):
        loc.grad = None
        found = fb.distributions.Normal(loc, scale)
        sample = found.rsample()
        loss = fb.distributions.kl_divergence(found, prior) - found.log_prob(value)
        (loss + prior.log_prob(sample)).sum().backward()
        return loss.detach()

    loc, value = leaf([1.0, 2.0]), plain([0.5, 0.5])
    for scale in (1.0, 1.0, 1.0, 2.0):
        found, by = f(loc, plain([scale, 1.0]), value), fb.distributions.Normal
        expected = by(loc, plain([scale, 1.0]))
        loss = fb.distributions.kl_divergence(expected, prior) - expected.log_prob(value)
        assert found.tolist() == loss.tolist()
    with pytest.raises(ValueError, match=r"parameter scale .*invalid values:\ntensor\(\[-3"):
        f(loc, plain([-3.0, 1.0]), value)
    with pytest.raises(ValueError, match=r"within the support .*invalid values:\ntensor\(\[nan"):
        f(loc, plain([1.0, 1.0]), plain([float("nan"), 1.0]))
    prior.loc.fill_(3.0)
    assert f(loc, plain([1.0, 1.0]), value).tolist() != found.tolist()
    assert f.explain().replays == 2 + 3


def test_gradients_and_their_gradients_are_those_of_the_function(leaf):
    def f(x, y):
        h = (x @ y).tanh()
        return h, h.sum(0) * 2

    compiled = fb.compile(f)
    for scale in (1.0, 0.5, 2.0, 0.25):
        x = leaf([[scale, 1.0], [0.5, -scale]], dtype=fb.float64)
        y = leaf([[0.5, scale], [1.5, 0.25]], dtype=fb.float64)
        for a, b in zip(gradients(compiled, x, y), gradients(f, x, y), strict=True):
            fb.testing.assert_close(fb.tensor(a), fb.tensor(b), rtol=1e-12, atol=1e-12)
    assert compiled.explain().replays >= 2
    x = leaf([[0.3, 1.0], [0.5, -0.2]], dtype=fb.float64)
    y = leaf([[0.5, 0.1], [1.5, 0.25]], dtype=fb.float64)
    assert fb.autograd.gradcheck(compiled, (x, y))
    assert fb.autograd.gradgradcheck(compiled, (x, y))


def test_gradients_of_gradients_are_those_of_results_beside_arguments_that_are_returned(leaf):
    w = leaf([3.0])
    compiled = fb.compile(lambda x: (x, w, (x * x * w).sum()))
    for _ in range(4):
        x = leaf([2.0]) * 1
        (first,) = fb.autograd.grad(compiled(x)[2], x, create_graph=True)
        (second,) = fb.autograd.grad(first, x)
        assert (first.tolist(), second.tolist()) == ([12.0], [6.0])
    assert compiled.explain().replays == 2


@pytest.mark.parametrize("twice", [False, True])
def test_an_argument_made_of_another_gets_its_own_gradient_only(leaf, twice):
    compiled = fb.compile(lambda a, b: (a * a * b).sum())
    for _ in range(4):
        x = leaf([2.0])
        a = x * 1
        b = a + 1
        if twice:
            (first,) = fb.autograd.grad(compiled(a, b), x, create_graph=True)
            first.backward()
            assert (first.tolist(), x.grad.tolist()) == ([16.0], [14.0])
        else:
            compiled(a, b).backward()
            assert x.grad.tolist() == [16.0]
    assert compiled.explain().replays == 2


def test_hooks_of_arguments_are_called_once_where_gradients_have_gradients(leaf):
    compiled = fb.compile(lambda a: (a * a * a).sum())
    for _ in range(4):
        x = leaf([2.0])
        a, called = x * 1, []
        for t in (x, a):
            t.register_hook(called.append)
        (first,) = fb.autograd.grad(compiled(a), x, create_graph=True)
        assert (first.tolist(), len(called)) == ([12.0], 2)


def test_a_cell_compiled_by_itself_is_repeated_on_what_it_gave_before(leaf):
    w = leaf([0.5])
    cell = fb.compile(lambda x, h: (x + h * w).tanh())
    found = []
    for step in (lambda x, h: (x + h * w).tanh(), cell, cell):
        w.grad, h = None, leaf([0.1])
        for _ in range(4):
            h = step(fb.tensor([1.0], device=w.device), h)
        h.sum().backward()
        found.append(w.grad.tolist())
    assert found[1:] == found[:1] * 2
    assert cell.explain().replays == 6


def test_a_result_whose_gradient_nobody_asks_for_counts_as_zero(leaf):
    f = fb.compile(lambda x: (x * 2, x * 3))
    for _ in range(4):
        x = leaf([1.0])
        f(x)[1].backward()
        assert x.grad.tolist() == [3.0]
    assert f.explain().replays == 2


def test_what_only_an_unused_result_depends_on_has_no_gradient(leaf):
    f = fb.compile(lambda x, y: ((x * 2).unbind(0)[0].sum(), (x * y).sum()))
    for _ in range(4):
        x, y = leaf([[1.0], [2.0]]), leaf([[3.0], [4.0]])
        f(x, y)[0].backward()
        assert x.grad.tolist() == [[2.0], [0.0]]
        assert y.grad is None
    assert f.explain().replays == 2


def test_an_unused_result_with_an_infinite_derivative_does_not_spoil_gradients(leaf):
    f = fb.compile(lambda x: (x * 2, x.sqrt()))
    for _ in range(4):
        x = leaf([0.0, 4.0])
        f(x)[0].sum().backward()
        assert x.grad.tolist() == [2.0, 2.0]
        x = leaf([0.0, 4.0])
        f(x)[1].sum().backward()
        assert x.grad.tolist() == [fb.inf, 0.25]


@pytest.mark.parametrize("within", [False, True])
def test_gradients_go_on_to_what_a_checkpoint_computes_again(leaf, within):
    def squared(w):
        return fb.utils.checkpoint.checkpoint(lambda w: w * w, w, use_reentrant=False)

    f = fb.compile(lambda w: squared(w) * 3 if within else w * 3)
    w = leaf([1.0, 2.0])
    for _ in range(4):
        w.grad = None
        f(w if within else squared(w)).sum().backward()
        assert w.grad.tolist() == [6.0, 12.0]


def test_a_second_pass_through_a_replay_needs_the_graph_to_be_kept(leaf):
    f = fb.compile(lambda x: (x * x).sum())
    for _ in range(3):
        x = leaf([2.0])
        y = f(x)
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [8.0]
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_a_write_between_the_passes_is_found(leaf):
    f = fb.compile(lambda x, w: (x * w).sum())
    x, w = leaf([2.0]), leaf([3.0])
    for _ in range(3):
        y = f(x, w)
    with fb.no_grad():
        w.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_no_history_is_made_without_recording(leaf):
    f = fb.compile(lambda x: x * 2)
    x = leaf([1.0])
    for _ in range(3):
        with fb.no_grad():
            assert not f(x).requires_grad
        assert f(x).requires_grad


def test_views_of_what_has_no_history_have_none(plain):
    f = fb.compile(lambda x: [(x * 2 + 1).view(-1), (x.exp() + 1)[0], x.tanh() * 3])
    x = plain([[1.0, -2.0], [0.5, 0.25]])
    for _ in range(4):
        assert not any(t.requires_grad for t in f(x))
    assert f.explain().replays == 2


def test_hooks_are_called_in_every_run(leaf):
    called = []

    @fb.compile
    def f(x):
        y = x * 2
        y.register_hook(lambda g: called.append(1))
        y.sum().backward()
        return y.detach()

    for _ in range(5):
        f(leaf([1.0]))
    assert len(called) == 5


def test_backward_within_leaves_gradients_as_without_a_plan(leaf):
    weight = leaf([2.0, 3.0])

    def step(x):
        loss = (weight * x).sum() ** 2
        loss.backward()
        return loss.detach()

    results = []
    for function in (step, fb.compile(step)):
        weight.grad = None
        losses = []
        for i in range(6):
            if i == 4:
                weight.grad = None
            losses.append(function(leaf([1.0, float(i)]).detach()).item())
        results.append((losses, weight.grad.tolist()))
    assert results[0] == results[1]


@pytest.mark.parametrize("first", [True, False], ids=["before the check", "after the check"])
def test_gradients_that_a_run_replaces_are_dropped_where_the_function_drops_them(
    leaf, plain, first
):
    w = leaf([0.5, 1.5, 2.5])

    @fb.compile
    def step(places):
        if first:
            w.grad = None
        loss = (w * 2).exp()[places].sum()
        if not first:
            w.grad = None
        loss.backward()
        return loss.detach()

    places = plain([2, 0])
    losses = [step(places).item() for _ in range(4)]
    assert losses[0] == losses[-1] and step.explain().replays == 2
    text = plan_of(step)
    assert text.index("drop()") < text.index("exp(")
    assert (text.index("checked_index") < text.index("drop()")) is not first
    for run in (step, step.__wrapped__):  # as it is without a plan
        step(places)
        kept, values = w.grad, w.grad.tolist()
        with pytest.raises(IndexError, match="index 3 is out of bounds"):
            run(plain([3, 0]))
        if first:
            assert w.grad is None
            step(places)
        else:
            assert w.grad is kept and kept.tolist() == values


@pytest.mark.parametrize("kept", [False, True])
def test_gradients_are_set_where_a_check_behind_the_pass_fails(leaf, device, kept):
    def make(compiled):
        w, v, table = leaf([2.0]), leaf([1.0]), fb.zeros(3, device=device)

        def step(x, at):
            w.grad = None
            (x * w * w).sum().backward()
            w.grad.mul_(2)
            picked = table.index_select(0, at)
            v.grad = None
            (picked + v).sum().backward()
            return table.index_select(0, at + 1)

        run, found = fb.compile(step) if compiled else step, []
        for i, at in enumerate([0, 0, 0, 5, 1, 2, 0]):
            if not kept:
                w.grad = v.grad = None
            try:
                run(fb.tensor([float(i)], device=device), fb.tensor([at], device=device))
            except IndexError as error:
                found.append(str(error))
            found.append([None if t.grad is None else t.grad.tolist() for t in (w, v)])
        return run, found

    run, found = make(True)
    assert found == make(False)[1]
    assert run.explain().replays == 5


def test_gradients_that_are_dropped_behind_a_check_are_gone_after_every_run(leaf, plain):
    def make(compiled):
        table, found = leaf([[1.0], [2.0], [3.0]]), []

        def step(first, second):
            for places in (first, second):  # two batches, one step: the second is checked late
                table[places].exp().sum().backward()
            with fb.no_grad():
                table.sub_(table.grad)
            table.grad = None
            return table.sum()

        run = fb.compile(step) if compiled else step
        for i in range(5):
            loss = run(plain([0, i % 3]), plain([1, 2]))
            found.append((loss.item(), table.tolist(), table.grad))
        return run, found

    run, found = make(True)
    assert found == make(False)[1]
    assert run.explain().replays == 3


def test_gradients_that_are_added_to_and_dropped_before_a_check_keep_their_sums(leaf, plain):
    def make(compiled):
        w, found = leaf([[1.0], [2.0], [3.0]]), []

        def step(places):
            (w * w).sum().backward()  # as a generator's loss is, through its judge
            w.grad = None
            loss = w[places].exp().sum()
            loss.backward()
            return loss

        run = fb.compile(step) if compiled else step
        for i in range(5):
            before = w.grad
            loss = run(plain([i % 3]))
            found.append((loss.item(), w.grad.tolist(), w.grad._version))
            if before is not None:
                found.append((before.tolist(), before._version))
        return run, found

    run, found = make(True)
    assert found == make(False)[1]
    assert run.explain().replays == 3


def test_a_check_does_not_come_before_draws(plain, device):
    drawn, wanted = (fb.Generator(device).manual_seed(3) for _ in range(2))
    f = fb.compile(lambda i: fb.rand(2, device=device, generator=drawn).exp()[i])
    for _ in range(3):
        f(plain([1]))
    assert f.explain().replays == 1
    with pytest.raises(IndexError):
        f(plain([5]))
    for _ in range(4):
        fb.rand(2, device=device, generator=wanted)
    assert drawn.get_state().tolist() == wanted.get_state().tolist()


@pytest.mark.parametrize("whole", [False, True])
def test_a_compiled_function_within_another_is_part_of_its_plan(plain, whole):
    inner = fb.compile(lambda x: x + 1, fullgraph=whole)
    outer = fb.compile(lambda x: inner(x) * 2)
    for _ in range(4):
        assert outer(plain([1.0])).item() == 4.0
    assert "add" in plan_of(outer) and outer.explain().replays == 2


def test_threads_share_a_compiled_function(plain):
    f = fb.compile(lambda x: (x * 3).tanh())
    wrong = []

    def work(value):
        x = plain([value])
        for _ in range(30):
            if f(x).tolist() != (x * 3).tanh().tolist():
                wrong.append(value)

    threads = [threading.Thread(target=work, args=(float(i),)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_kernels_are_as_before_after_a_capture_that_raised(plain):
    f = fb.compile(lambda x: (x * 2).reshape(7))
    x = plain([1.0])
    be = x._be
    before = dict(be.__dict__), dict(be.kernels)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="shape"):
            f(x)
    assert before == (be.__dict__, be.kernels)


def test_forgotten_plans_are_made_again(plain):
    f = fb.compile(lambda x: x * 2)
    for _ in range(3):
        f(plain([1.0]))
    f.forget()
    assert f.explain().plans == 0 and f(plain([2.0])).item() == 4.0


def test_too_many_plans_of_one_form_end_in_the_function_itself(plain):
    held = [0]

    @fb.compile(options={"kept": 2})
    def f(x):
        return x + held[0]

    for i in range(10):
        held[0] = i
        assert f(plain([0.0])).item() == i
    assert f.explain().plans == 2
    assert any("keeps changing" in why for why in f.explain().reasons)


def test_compile_is_a_decorator_with_and_without_options():
    assert isinstance(fb.compile(lambda x: x), Compiled)
    assert isinstance(fb.compile(fullgraph=True)(lambda x: x), Compiled)
    assert fb.compile(len, disable=True) is len
    with pytest.raises(TypeError, match="function or module"):
        fb.compile(3)
    with pytest.raises(TypeError, match="no compiled function"):
        explain(len)


@pytest.mark.parametrize(
    "read", [lambda y: y.item(), lambda y: y.to("cpu"), lambda y: y.tolist()[0]]
)
def test_values_of_another_device_are_read_in_every_call(read):
    pytest.importorskip("flambeau_numpy", reason="needs a second device with values")
    y = fb.ones(1, device="ref")
    f = fb.compile(lambda x: x * read(y))
    for i in range(5):
        y.fill_(i)
        assert f(fb.ones(2)).tolist() == [i, i]


@pytest.mark.parametrize("device", ["meta", "ref"])
def test_arguments_may_be_on_two_devices(device):
    pytest.importorskip("flambeau_numpy", reason="needs a second device with values")
    x, y = fb.ones(2), fb.ones(2, 3, device=device)
    for function in (lambda x, y: (x + 1, y + 1), lambda x, y: x * y.shape[0], lambda y, x: x + 2):
        f = fb.compile(function)
        for _ in range(4):
            given, expected = f(x, y), function(x, y)
            assert str(given) == str(expected)
    assert "cpu and" in str(f.explain())
