"""Plans of whole training steps: the losses, states and gradients of steps without a plan."""

import copy
import pickle

import pytest

import flambeau as fb
from flambeau import nn, optim


def batches():
    """Ten batches of a regression."""
    generator = fb.Generator().manual_seed(3)
    return [
        (fb.randn(6, 4, generator=generator), fb.randn(6, 3, generator=generator))
        for _ in range(10)
    ]


class Training:
    """A model, its optimiser and a step, with everything that a run leaves behind."""

    def __init__(self, compiled, make=optim.SGD, zero="none", **options):
        fb.manual_seed(0)
        self.model = nn.Sequential(
            nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 3)
        )
        self.optimizer = make(self.model.parameters(), **{"lr": 0.01, **options})
        self.zero = zero
        self.step = fb.compile(self._step) if compiled else self._step
        self.losses = []

    def _step(self, x, y):
        if self.zero == "none":
            self.optimizer.zero_grad()
        elif self.zero == "fill":
            self.optimizer.zero_grad(set_to_none=False)
        loss = nn.functional.mse_loss(self.model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 0.5)
        self.optimizer.step()
        return loss

    def run(self, between=None):
        for i, (x, y) in enumerate(batches()):
            if between is not None:
                between(i, self)
            self.losses.append(self.step(x, y).item())
        return self

    def left(self):
        """Losses, parameters, buffers, gradients, state, versions and the next random number."""
        parameters = list(self.model.parameters())
        state = [self.optimizer.state[p] for p in parameters]
        return (
            self.losses,
            [p.tolist() for p in parameters],
            [b.tolist() for b in self.model.buffers()],
            [None if p.grad is None else p.grad.tolist() for p in parameters],
            [
                {k: v.tolist() if isinstance(v, fb.Tensor) else v for k, v in s.items()}
                for s in state
            ],
            [p._version for p in parameters],
            fb.rand(1).item(),
        )


def check(between=None, replays=1, **options):
    """Both ways of training end the same; returns what became of the calls."""
    plain = Training(False, **options).run(between).left()
    compiled = Training(True, **options).run(between)
    for a, b in zip(compiled.left(), plain, strict=True):
        assert a == b
    told = compiled.step.explain()
    assert told.replays >= replays, told
    return told


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (optim.SGD, {}),
        (optim.SGD, {"momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
        (optim.Adam, {}),
        (optim.Adam, {"capturable": True}),
        (optim.AdamW, {"amsgrad": True}),
        (optim.RMSprop, {"centered": True, "momentum": 0.5}),
        (optim.Adagrad, {}),
        (optim.Adadelta, {}),
        (optim.Adamax, {}),
        (optim.NAdam, {}),
        (optim.RAdam, {}),
        (optim.ASGD, {}),
        (optim.Rprop, {}),
    ],
)
def test_a_step_of_each_optimiser_is_repeated_exactly(make, options):
    check(make=make, replays=8, **options)


def test_an_optimiser_that_reads_values_runs_as_it_is():
    told = check(make=optim.Adafactor, replays=0)
    assert told.plans == 0 and any("values were read" in why for why in told.reasons)


@pytest.mark.parametrize("zero", ["none", "fill", "never"])
def test_gradients_are_set_filled_or_added_to_as_the_step_says(zero):
    check(make=optim.Adam, zero=zero, replays=8)


def test_gradients_are_added_up_over_calls_until_one_of_them_makes_the_step():
    results = []
    for compiled in (False, True):
        fb.manual_seed(0)
        model = nn.Linear(4, 3)
        optimizer = optim.Adam(model.parameters(), lr=0.1)

        def step(x, y, last, model=model, optimizer=optimizer):
            nn.functional.mse_loss(model(x), y).backward()
            if last:
                optimizer.step()
                optimizer.zero_grad()

        train = fb.compile(step) if compiled else step
        found = []
        for i in range(12):
            train(*batches()[i % 10], i % 3 == 2)
            gradients = [p.grad for p in model.parameters()]
            found.append([None if g is None else g.tolist() for g in gradients])
            found.append([p.tolist() for p in model.parameters()])
        results.append(found)
    assert results[0] == results[1]
    assert train.explain().replays == 6


def test_parameters_of_a_group_that_is_added_later_are_trained_too():
    results = []
    for compiled in (False, True):
        fb.manual_seed(0)
        model, scale = nn.Linear(4, 3), nn.Parameter(fb.ones(3))
        optimizer = optim.SGD(model.parameters(), lr=0.1)

        def step(x, y, model=model, scale=scale, optimizer=optimizer):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x) * scale, y).backward()
            optimizer.step()

        train = fb.compile(step) if compiled else step
        for i, batch in enumerate(batches()):
            if i == 5:
                optimizer.add_param_group({"params": [scale]})
            train(*batch)
        results.append((scale.tolist(), model.weight.tolist()))
    assert results[0] == results[1]
    assert train.explain().replays > 0


class CountsInGroups(optim.Optimizer):
    """An optimiser of the user's with a count in each group."""

    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr, "k": 0})

    @fb.no_grad()
    def step(self):
        for group in self.param_groups:
            group["k"] += 1
            for p in group["params"]:
                p.sub_(p.grad, alpha=group["lr"] / group["k"])


class CountsItself(CountsInGroups):
    """The same with one count of its own."""

    k = 0

    @fb.no_grad()
    def step(self):
        self.k += 1
        for group in self.param_groups:
            for p in group["params"]:
                p.sub_(p.grad, alpha=group["lr"] / self.k)


class Decays(optim.SGD):
    """An optimiser of the library that also decays parameters, by the rate as a number."""

    @fb.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                p.mul_(1 - group["lr"])
        super().step()


@pytest.mark.parametrize("make", [CountsInGroups, CountsItself, Decays])
@pytest.mark.parametrize("within", [False, True])
def test_an_optimiser_of_the_user_may_count_and_read_its_options(make, within):
    results = []
    for compiled in (False, True):
        fb.manual_seed(0)
        model = nn.Linear(4, 3)
        optimizer = make(model.parameters(), lr=0.1)
        scheduler = optim.lr_scheduler.StepLR(optimizer, 3)

        def step(x, y, model=model, optimizer=optimizer, scheduler=scheduler):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
            if within:
                scheduler.step()

        train = fb.compile(step) if compiled else step
        found = []
        for batch in batches():
            train(*batch)
            if not within:
                scheduler.step()
            found.append((model.weight.tolist(), optimizer.param_groups[0]["lr"]))
        results.append(found)
    assert results[0] == results[1]


def test_a_schedule_changes_the_rate_of_a_plan():
    def rate(i, training):
        training.optimizer.param_groups[0]["lr"] = 0.1 / (i + 1)

    assert check(rate, make=optim.Adam, replays=8).plans == 1


def test_a_scheduler_within_the_step_counts_in_every_run():
    results = []
    for compiled in (False, True):
        fb.manual_seed(0)
        model = nn.Linear(4, 3)
        optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
        scheduler = optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=12)

        def step(x, y, model=model, optimizer=optimizer, scheduler=scheduler):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            scheduler.step()
            return loss.detach()

        train = fb.compile(step) if compiled else step
        losses = [train(x, y).item() for x, y in batches()]
        results.append((losses, scheduler.last_epoch, optimizer.param_groups[0]["lr"]))
    assert results[0] == results[1]
    assert train.explain().replays == 8


def later(i, act):
    """What does `act` before call `i`."""
    return lambda now, training: act(training) if now == i else None


@pytest.mark.parametrize(
    "act",
    [
        lambda t: t.optimizer.param_groups[0].update(weight_decay=0.1),
        lambda t: t.optimizer.param_groups[0].update(maximize=True),
        lambda t: t.model[0].weight.requires_grad_(False),
        lambda t: t.model.eval(),
        lambda t: setattr(t.model[3], "p", 0.5),
        lambda t: setattr(t.model[1], "momentum", 0.5),
        lambda t: t.model.load_state_dict({k: v * 1.5 for k, v in t.model.state_dict().items()}),
        lambda t: t.optimizer.load_state_dict(copy.deepcopy(t.optimizer.state_dict())),
        lambda t: setattr(t.model[0].weight, "data", t.model[0].weight.data * 2),
        lambda t: setattr(t.model[0], "bias", nn.Parameter(fb.ones(8))),
        lambda t: t.model[0].register_forward_hook(lambda m, i, o: o * 1.1),
        lambda t: t.model[4].weight.register_hook(lambda g: g * 2),
        lambda t: t.model[1].running_mean.numpy().fill(0.5),
        lambda t: setattr(t.model[0].weight, "grad", fb.ones(8, 4)),
        lambda t: t.model.insert(1, nn.Tanh()),
        lambda t: t.optimizer.state.clear(),
        lambda t: setattr(t, "zero", "fill"),
    ],
)
def test_a_change_between_the_runs_is_noticed(act):
    check(later(5, act), make=optim.Adam)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda t, i: t.model[0].weight.requires_grad_(i % 2 == 0), "require a gradient"),
        (lambda t, i: setattr(t.model[0].weight, "grad", None if i % 2 else fb.ones(8, 4)), "was"),
        (lambda t, i: t.optimizer.param_groups[0].update(maximize=i % 2 == 0), "option maximize"),
    ],
)
def test_what_keeps_changing_is_told(change, why):
    training = Training(True)
    training.step = fb.compile(training._step, options={"kept": 1})
    for i, batch in enumerate(batches()):
        change(training, i)
        training.step(*batch)
    assert any(why in reason for reason in training.step.explain().reasons)


def test_an_exception_in_a_run_leaves_the_plan_usable():
    training = Training(True)
    (x, y), *rest = batches()
    for _ in range(3):
        training.step(x, y)
    with pytest.raises(RuntimeError, match="same dtype"):
        training.step(x.double(), y)
    assert training.step(*rest[0]).item() > 0


def test_a_compiled_module_trains_as_the_module_does():
    results = []
    for compiled in (False, True):
        fb.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 3))
        call = fb.compile(model) if compiled else model
        optimizer = optim.SGD(call.parameters(), lr=0.1)
        losses = []
        for x, y in batches():
            x.requires_grad_()
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(call(x * 2), y)
            loss.backward()
            optimizer.step()
            losses.append((loss.item(), x.grad.tolist()))
        call.eval()
        results.append((losses, call(x).tolist(), [b.tolist() for b in model.buffers()]))
    assert results[0] == results[1]
    assert call.explain().replays == 8 and not model.training


def test_a_module_compiled_in_place_keeps_its_names():
    model = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    x = fb.ones(1, 2)
    expected = model(x).tolist()
    model.compile()
    assert [model(x).tolist() for _ in range(4)] == [expected] * 4
    assert model.forward.explain().replays == 2
    assert list(model.state_dict()) == ["0.weight", "0.bias"]
    twin = copy.deepcopy(model)
    twin[0].weight.data.zero_()
    assert [twin(x).tolist() for _ in range(3)] == [nn.Sequential(*twin)(x).tolist()] * 3
    assert model(x).tolist() == expected


def test_a_compiled_module_is_a_module_over_the_same_parameters():
    model = nn.Sequential(nn.Linear(2, 2))
    compiled = fb.compile(model)
    assert isinstance(compiled, nn.Module)
    assert list(compiled.state_dict()) == ["_orig_mod.0.weight", "_orig_mod.0.bias"]
    assert next(compiled.parameters()) is model[0].weight
    for twin in (copy.deepcopy(compiled), pickle.loads(pickle.dumps(compiled))):
        x = fb.ones(1, 2)
        assert [twin(x).tolist() for _ in range(3)] == [model(x).tolist()] * 3


def scheduled(make, compiled, device="ref", before=False, **options):
    """Steps with a schedule; on ``ref``, which has no kernels for them, counts are the host's."""
    fb.manual_seed(0)
    model = nn.Linear(3, 2).to(device)
    optimizer = make(model.parameters(), lr=0.125, **options)
    schedule = optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    optimizer.step()  # there are no gradients yet, but a schedule may go first now

    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        if before:
            schedule.step()
        optimizer.step()
        return loss

    run = fb.compile(step) if compiled else step
    losses = []
    for _ in range(7):
        losses.append(run(fb.rand(4, 3).to(device)).item())
        if not before:
            schedule.step()
    left = [[t.tolist() for t in state.values()] for state in optimizer.state.values()]
    return run, (losses, [p.tolist() for p in model.parameters()], left)


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (optim.SGD, {"momentum": 0.5}),
        (optim.Adam, {}),
        (optim.AdamW, {"weight_decay": 0.125}),
        (optim.RMSprop, {}),
        (optim.Adagrad, {"lr_decay": 0.25}),
        (optim.Adadelta, {}),
        (optim.Adamax, {}),
    ],
)
def test_counts_and_rates_of_the_host_are_those_of_each_run(make, options):
    run, found = scheduled(make, True, **options)
    assert found == scheduled(make, False, **options)[1]
    assert run.explain().replays >= 4


def test_an_optimizer_that_decides_by_a_count_of_the_host_runs_as_it_is():
    run, found = scheduled(optim.RAdam, True)
    assert found == scheduled(optim.RAdam, False)[1]
    assert run.explain().replays == 0


@pytest.mark.parametrize("device", ["cpu", "ref"])
def test_a_rate_that_is_set_within_the_step_before_it_is_used_refuses_the_plan(device):
    run, found = scheduled(optim.SGD, True, device, before=True)
    assert found == scheduled(optim.SGD, False, device, before=True)[1]
    assert any("schedule" in why for why in run.explain().reasons)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"avg_fn": optim.swa_utils.get_ema_avg_fn(0.9)},
        {"multi_avg_fn": optim.swa_utils.get_ema_multi_avg_fn(0.9), "use_buffers": True},
        {"avg_fn": lambda old, new, count: old + (new - old) / (count + 2)},
    ],
)
def test_averages_of_a_model_are_renewed_in_every_run_and_begin_anew_where_the_count_does(options):
    def run(compiled):
        fb.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
        averaged = optim.swa_utils.AveragedModel(model, **options)
        optimizer = optim.SGD(model.parameters(), lr=0.1)

        def step(x, y):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            averaged.update_parameters(model)
            return loss

        found, do = [], fb.compile(step) if compiled else step
        for i, (x, y) in enumerate(batches()):
            if i == 6:
                averaged.n_averaged.zero_()
            do(x, y)
            found.append({key: t.tolist() for key, t in averaged.state_dict().items()})
        return found, do

    found, do = run(True)
    assert found == run(False)[0]
    assert do.explain().replays == 7


def test_an_average_that_reads_the_count_is_computed_as_it_is():
    model = nn.Linear(1, 1)
    averaged = optim.swa_utils.AveragedModel(
        model, avg_fn=lambda old, new, count: old + (new - old) * 0 + count.item()
    )
    update = fb.compile(lambda x: (averaged.update_parameters(model), x + 1)[1])
    for i in range(6):
        update(fb.ones(1))
        added = averaged.module.weight.item() - model.weight.item()
        assert added == pytest.approx(sum(range(i + 1)))
    assert update.explain().replays == 0
