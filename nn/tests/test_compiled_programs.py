"""Training steps as programs write them, compiled and as they are: the same losses and weights."""

import math

import pytest

import flambeau as fb
from flambeau import nn, optim
from flambeau.nn import functional as F


class Block(nn.Module):
    """A layer of a GPT as it is often written."""

    def __init__(self, width, heads, longest):
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.register_buffer("mask", fb.tril(fb.ones(longest, longest)).view(1, 1, longest, -1))

    def forward(self, x):
        b, t, c = x.size()
        q, k, v = self.qkv(self.first(x)).split(c, dim=2)
        q, k, v = (y.view(b, t, self.heads, c // self.heads).transpose(1, 2) for y in (q, k, v))
        scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        scores = scores.masked_fill(self.mask[:, :, :t, :t] == 0, float("-inf"))
        mixed = F.dropout(F.softmax(scores, dim=-1), 0.1, self.training) @ v
        x = x + self.out(mixed.transpose(1, 2).contiguous().view(b, t, c))
        h = self.wide(self.second(x))
        h = 0.5 * h * (1.0 + fb.tanh(math.sqrt(2.0 / math.pi) * (h + 0.044715 * fb.pow(h, 3.0))))
        return x + self.narrow(h)


def gpt(compiled):
    embed, place = nn.Embedding(11, 8), nn.Parameter(fb.zeros(6, 8))
    blocks, head = nn.ModuleList([Block(8, 2, 6) for _ in range(2)]), nn.Linear(8, 11, bias=False)
    weights = [*embed.parameters(), place, *blocks.parameters(), *head.parameters()]
    optimizer = optim.AdamW(weights, lr=0.01, weight_decay=0.1)

    def step(tokens):
        x = embed(tokens) + place
        for block in blocks:
            x = block(x)
        loss = F.cross_entropy(head(x).view(-1, 11), tokens.roll(-1, 1).reshape(-1))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        return loss

    run = compiled(step)
    return [run(fb.randint(0, 11, (3, 6))) for _ in range(8)], weights


def lstm_by_hand(compiled):
    cell, head = nn.LSTMCell(4, 6), nn.Linear(6, 1)
    weights = [*cell.parameters(), *head.parameters()]
    optimizer = optim.RMSprop(weights, lr=0.01)

    def step(x, y):
        optimizer.zero_grad()
        h = x.new_zeros(x.shape[1], 6)
        c = fb.zeros_like(h)
        found = []
        for t in range(x.shape[0]):
            h, c = cell(x[t], (h, c))
            found.append(head(h))
        loss = F.mse_loss(fb.stack(found).squeeze(-1), y)
        loss.backward()
        optimizer.step()
        return loss

    run = compiled(step)
    return [run(fb.randn(5, 3, 4), fb.randn(5, 3)) for _ in range(8)], weights


def gan(compiled):
    maker = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.LeakyReLU(0.2), nn.Linear(8, 2))
    judge = nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2), nn.Dropout(0.3), nn.Linear(8, 1))
    first = optim.Adam(maker.parameters(), lr=0.02, betas=(0.5, 0.999))
    second = optim.Adam(judge.parameters(), lr=0.02, betas=(0.5, 0.999))
    criterion = nn.BCEWithLogitsLoss()

    def step(real):
        ones, zeros = fb.ones(len(real), 1), fb.zeros(len(real), 1)
        second.zero_grad()
        fake = maker(fb.randn(len(real), 3))
        told = criterion(judge(real), ones) + criterion(judge(fake.detach()), zeros)
        told.backward()
        second.step()
        first.zero_grad()
        fooled = criterion(judge(fake), ones)
        fooled.backward()
        first.step()
        return told + fooled

    run = compiled(step)
    return [run(fb.randn(6, 2)) for _ in range(8)], [*maker.parameters(), *judge.parameters()]


def variational(compiled):
    enter, mean, spread = nn.Linear(6, 8), nn.Linear(8, 2), nn.Linear(8, 2)
    leave = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 6), nn.Sigmoid())
    parts = nn.ModuleList([enter, mean, spread, leave])
    optimizer = optim.Adam(parts.parameters(), lr=0.01)

    def step(x):
        optimizer.zero_grad()
        h = F.relu(enter(x))
        mu, logvar = mean(h), spread(h)
        z = mu + fb.randn_like(mu) * fb.exp(0.5 * logvar)
        apart = F.binary_cross_entropy(leave(z), x, reduction="sum")
        loss = apart - 0.5 * fb.sum(1 + logvar - mu.pow(2) - logvar.exp())
        loss.backward()
        optimizer.step()
        return loss

    run = compiled(step)
    return [run(fb.rand(5, 6)) for _ in range(8)], list(parts.parameters())


def graph(compiled):
    one, two = nn.Linear(4, 8), nn.Linear(8, 3)
    weights = [*one.parameters(), *two.parameters()]
    optimizer = optim.SGD(weights, lr=0.1, momentum=0.9, nesterov=True)
    edges = fb.randint(0, 7, (2, 20))

    def gathered(x):
        source, target = edges
        return fb.zeros_like(x).index_add(0, target, x[source]) + x

    def step(x, labels):
        optimizer.zero_grad()
        loss = F.nll_loss(F.log_softmax(two(gathered(F.relu(one(gathered(x))))), 1), labels)
        loss.backward()
        optimizer.step()
        return loss

    run = compiled(step)
    return [run(fb.randn(7, 4), fb.randint(0, 3, (7,))) for _ in range(8)], weights


def penalty(compiled):
    judge = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = optim.Adam(judge.parameters(), lr=0.01)

    def step(real, fake):
        optimizer.zero_grad()
        share = fb.rand(len(real), 1)
        between = (share * real + (1 - share) * fake).requires_grad_()
        (slope,) = fb.autograd.grad(judge(between).sum(), between, create_graph=True)
        loss = judge(fake).mean() - judge(real).mean() + ((slope.norm(2, 1) - 1) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    run = compiled(step)
    return [run(fb.randn(6, 2), fb.randn(6, 2)) for _ in range(8)], list(judge.parameters())


def distilled(compiled):
    teacher, pupil = nn.Linear(4, 3).requires_grad_(False), nn.Linear(4, 3)
    average = [p.detach().clone() for p in pupil.parameters()]
    optimizer = optim.Adagrad(pupil.parameters(), lr=0.1)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, 8)

    def step(x):
        optimizer.zero_grad()
        with fb.no_grad():
            wanted = F.softmax(teacher(x) / 2.0, -1)
        loss = F.kl_div(F.log_softmax(pupil(x) / 2.0, -1), wanted, reduction="batchmean") * 4.0
        loss.backward()
        optimizer.step()
        schedule.step()
        with fb.no_grad():
            for a, p in zip(average, pupil.parameters(), strict=True):
                a.mul_(0.9).add_(p, alpha=0.1)
        return loss

    run = compiled(step)
    return [run(fb.randn(5, 4)) for _ in range(8)], [*pupil.parameters(), *average]


def accumulated(compiled):
    model = nn.Sequential(nn.Conv2d(1, 3, 3), nn.GroupNorm(1, 3), nn.SiLU(), nn.Flatten())
    head = nn.Linear(48, 2)
    weights = [*model.parameters(), *head.parameters()]
    optimizer = optim.SGD(weights, lr=0.1, weight_decay=0.01)

    def step(parts, labels):
        optimizer.zero_grad(set_to_none=False)
        total = 0.0
        for x, y in zip(parts.chunk(2), labels.chunk(2), strict=True):
            loss = F.cross_entropy(head(model(x)), y, label_smoothing=0.1) / 2
            loss.backward()
            total = total + loss.detach()
        nn.utils.clip_grad_value_(weights, 0.5)
        optimizer.step()
        return total

    run = compiled(step)
    return [run(fb.randn(4, 1, 6, 6), fb.randint(0, 2, (4,))) for _ in range(8)], weights


def contrastive(compiled):
    model, heat = (
        nn.Sequential(nn.Linear(5, 8), nn.GELU(), nn.Linear(8, 4)),
        nn.Parameter(fb.ones(())),
    )
    weights = [*model.parameters(), heat]
    optimizer = optim.AdamW(weights, lr=0.01, amsgrad=True)

    def step(x):
        optimizer.zero_grad()
        a = F.normalize(model(x + 0.1 * fb.randn_like(x)), dim=-1)
        b = F.normalize(model(F.dropout(x, 0.2)), dim=-1)
        scores = a @ b.t() * heat.exp()
        same = fb.arange(len(x))
        loss = (F.cross_entropy(scores, same) + F.cross_entropy(scores.t(), same)) / 2
        loss.backward()
        optimizer.step()
        return loss

    run = compiled(step)
    return [run(fb.randn(6, 5)) for _ in range(8)], weights


def policy(compiled):
    actor, critic = nn.Linear(4, 3), nn.Linear(4, 1)
    weights = [*actor.parameters(), *critic.parameters()]
    optimizer = optim.Adam(weights, lr=0.05)

    def step(states, actions, returns, before):
        optimizer.zero_grad()
        told = F.log_softmax(actor(states), -1)
        chosen = told.gather(1, actions.unsqueeze(1)).squeeze(1)
        value = critic(states).squeeze(-1)
        gain = (returns - value).detach()
        gain = (gain - gain.mean()) / (gain.std() + 1e-8)
        ratio = (chosen - before).exp()
        clipped = fb.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain)
        entropy = -(told.exp() * told).sum(-1).mean()
        loss = -clipped.mean() + 0.5 * F.smooth_l1_loss(value, returns) - 0.01 * entropy
        loss.backward()
        optimizer.step()
        return loss

    run = compiled(step)
    made = [run(fb.randn(6, 4), fb.randint(0, 3, (6,)), fb.randn(6), -fb.rand(6)) for _ in range(8)]
    return made, weights


def scaled(compiled):
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    scaler = fb.amp.GradScaler("cpu", init_scale=256.0, growth_interval=3)

    def step(x, y):
        optimizer.zero_grad()
        with fb.autocast("cpu", dtype=fb.bfloat16):
            loss = F.mse_loss(model(x).float(), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        return loss

    run = compiled(step)
    return [run(fb.randn(5, 4), fb.randn(5, 1)) for _ in range(8)], list(model.parameters())


def encoder(compiled):
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True, norm_first=True)
    model, head = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(8, 3)
    weights = [*model.parameters(), *head.parameters()]
    optimizer = optim.NAdam(weights, lr=0.01)
    schedule = optim.lr_scheduler.OneCycleLR(optimizer, 0.02, total_steps=20)

    def step(x, y):
        optimizer.zero_grad()
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        loss = F.cross_entropy(head(model(x, mask=mask, is_causal=True)).flatten(0, 1), y.flatten())
        loss.backward()
        optimizer.step()
        schedule.step()
        return loss

    run = compiled(step)
    return [run(fb.randn(3, 4, 8), fb.randint(0, 3, (3, 4))) for _ in range(8)], weights


PROGRAMS = [
    *(gpt, lstm_by_hand, gan, variational, graph, penalty, distilled),
    *(accumulated, contrastive, policy, scaled, encoder),
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_compiled_programs_learn_what_they_learn_as_they_are(program):
    found, compiled = [], []
    for make in (lambda step: step, lambda step: compiled.append(fb.compile(step)) or compiled[0]):
        fb.manual_seed(0)
        losses, weights = program(make)
        found.append(([loss.item() for loss in losses], [w.tolist() for w in weights]))
    assert found[0] == found[1]
    assert len(set(found[0][0])) == 8
    assert compiled[0].explain().replays >= 5, compiled[0].explain()


def overflowing(compiled):
    """Steps of which some are left out, and versions of what they would have written."""
    fb.manual_seed(0)
    model = nn.Linear(3, 1)
    optimizer = optim.Adam(model.parameters(), lr=0.1)
    scaler = fb.amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss

    run, told = compiled(step), []
    for i in range(12):
        loss = run(fb.full((2, 3), float("inf") if i in (4, 5, 9) else 0.5 + i))
        versions = [t._version for t in model.parameters()]
        versions += [s["exp_avg"]._version for s in optimizer.state.values()]
        told.append((str(loss.item()), scaler.get_scale(), scaler._get_growth_tracker(), versions))
    return told, [p.tolist() for p in model.parameters()]


def test_a_step_that_is_scaled_is_left_out_where_gradients_are_not_finite():
    plainly = overflowing(lambda step: step)
    compiled = []
    assert overflowing(lambda step: compiled.append(fb.compile(step)) or compiled[0]) == plainly
    assert {scale for _, scale, *_ in plainly[0]} == {4.0, 8.0, 16.0}
    assert compiled[0].explain().replays >= 9


class Rectified(optim.Optimizer):
    """Adam with averages that start unbiased, as it is written by hand: it counts in its state."""

    def __init__(self, params, lr=0.1, betas=(0.9, 0.99), warm=4):
        super().__init__(params, {"lr": lr, "betas": betas, "warm": warm, "step": 0})

    @fb.no_grad()
    def step(self):
        for group in self.param_groups:
            group["step"] += 1
            first, second = group["betas"]
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["step"], state["mean"], state["square"] = 0, fb.zeros_like(p), p * 0
                state["step"] += 1
                state["mean"].mul_(first).add_(p.grad, alpha=1 - first)
                state["square"].mul_(second).addcmul_(p.grad, p.grad, value=1 - second)
                rate = group["lr"] / (1 - first ** state["step"])
                if group["step"] > group["warm"]:
                    part = state["square"].sqrt().div_(math.sqrt(1 - second ** state["step"]))
                    p.addcdiv_(state["mean"], part.add_(1e-8), value=-rate)
                else:
                    p.add_(state["mean"], alpha=-rate * min(1.0, group["step"] / group["warm"]))


def counted(compiled):
    model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))
    weights = list(model.parameters())
    optimizer = Rectified(
        [{"params": weights[:2]}, {"params": weights[2:], "betas": (0.8, 0.9), "warm": 2}]
    )
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)

    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        return loss

    run, losses = compiled(step), []
    for _ in range(20):
        losses.append(run(fb.randn(5, 4), fb.randint(3, (5,))))
        schedule.step()
    state = [fb.tensor(s["step"] / 1) for s in optimizer.state.values()]
    return losses, [*weights, *state, *(s["mean"] for s in optimizer.state.values())]


def test_an_optimiser_written_by_hand_counts_in_every_run():
    found, compiled = [], []
    for make in (lambda step: step, lambda step: compiled.append(fb.compile(step)) or compiled[0]):
        fb.manual_seed(0)
        losses, weights = counted(make)
        found.append(([loss.item() for loss in losses], [w.tolist() for w in weights]))
    assert found[0] == found[1]
    told = compiled[0].explain()
    assert told.plans <= 4 and told.replays >= 14, told


def test_a_scaler_whose_scale_is_not_chosen_in_the_step_refuses_the_plan():
    model = nn.Linear(2, 1)
    optimizer, scaler = optim.SGD(model.parameters(), lr=0.1), fb.amp.GradScaler("cpu")

    @fb.compile
    def step(x):
        optimizer.zero_grad()
        scaler.scale(model(x).sum()).backward()
        scaler.step(optimizer)

    for _ in range(4):
        step(fb.ones(1, 2))
        scaler.update()
    assert step.explain().replays == 0


def test_probabilities_are_looked_at_in_every_run():
    loss = fb.compile(lambda p: F.binary_cross_entropy(p, fb.zeros_like(p)))
    for _ in range(4):
        assert loss(fb.tensor([0.5])).item() == pytest.approx(math.log(2))
    with pytest.raises(RuntimeError, match="between 0 and 1"):
        loss(fb.tensor([1.5]))
    assert loss.explain().replays == 3


def test_classes_are_looked_at_in_every_run():
    def told(function):
        weight, found = fb.ones(3, requires_grad=True), []

        def step(x, y):
            weight.grad = None
            loss = ((x * weight - F.one_hot(y, 3)) ** 2).mean()
            loss.backward()
            return loss.detach()

        run = function(step)
        for classes in ([0, 2], [1, 1], [2, 0], [0, 1], [0, 3], [7, -2], [1, 2]):
            try:
                loss = run(fb.full((2, 3), 0.3), fb.tensor(classes)).item()
                found.append((loss, weight.grad.tolist()))
            except RuntimeError as error:
                found.append((type(error), str(error)))
        return run, found

    run, found = told(fb.compile)
    assert found == told(lambda step: step)[1]
    assert "must be smaller than num_classes: got 3 of 3" in found[4][1]
    assert "must be non-negative, got -2" in found[5][1]
    assert (run.explain().plans, run.explain().replays) == (2, 3)  # one begins without gradients
