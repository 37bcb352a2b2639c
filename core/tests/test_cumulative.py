"""Gradients of running sums of exponentials, by their exact weights."""

import math
import random

import pytest

import flambeau as fb
from flambeau.autograd import grad

INF = math.inf
LINES = {
    "a leading -inf": (-INF, 1.0, 2.0, -3.0),
    "-inf before sums that are below all halves": (-INF, -INF, -1e5, -1e5, -2e5),
    "-inf between": (0.0, -INF, -INF, 2.0, -INF),
    "-inf only": (-INF, -INF, -INF),
    "one -inf": (-INF,),
    "far apart": (-6e4, 3e4, -3e4, 6e4, 0.0),
    "large first": (1e5, -1e5, 0.0, -INF, 1e5),
    "below all halves": (-3e38, -3e38, -1e38),
    "equal": (7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0),
    "all that float32 has": (-3.4e38, 3.4e38, -INF, 3.4e38),
}


def drawn(seed):
    """Numbers of any size, in which -inf is frequent."""
    chance = random.Random(seed)
    sizes = [0.0, -INF, 1.0, 80.0, 7e3, 6e4, 1e5]
    signs = (-1, -1, 1)
    return [
        -INF if s == -INF else chance.choice(signs) * s * chance.random()
        for s in chance.choices(sizes, k=chance.randrange(1, 20))
    ]


def weighted(line, given):
    """The gradient, and the largest of the sums' exponents."""
    sums = []
    for j in range(len(line)):
        top = max(line[: j + 1])
        rest = math.fsum(math.exp(x - top) for x in line[: j + 1]) if top > -INF else 1.0
        sums.append(top + math.log(rest))
    found = [
        math.fsum(
            given[j] * math.exp(line[i] - sums[j]) for j in range(i, len(line)) if sums[j] > -INF
        )
        for i in range(len(line))
    ]
    return found, max((abs(s) for s in sums if s > -INF), default=0.0)


@pytest.mark.parametrize("kind", ["float64", "float32", "bfloat16", "float16"])
@pytest.mark.parametrize(
    "line", [*LINES.values(), *map(drawn, range(30))], ids=[*LINES, *range(30)]
)
def test_gradient_of_logcumsumexp_is_its_weights(line, kind, device):
    dtype = getattr(fb, kind)
    x = fb.tensor(line, device=device).to(dtype)
    x = x.where(x < INF, 0).requires_grad_()
    given = fb.tensor([1.0 + i % 3 for i in range(len(line))], dtype=dtype, device=device)
    found = grad(x.logcumsumexp(0), x, given)[0].tolist()
    exact, largest = weighted(x.tolist(), given.tolist())
    # Sums are rounded, so that their exponentials are wrong by as many units.
    off = math.expm1(min(2 * fb.finfo(dtype).eps * (largest + len(line)), 700.0))
    total = sum(given.tolist())
    assert all(math.isfinite(f) for f in found)
    assert all(abs(f - e) <= min(off, 1.0) * total for f, e in zip(found, exact, strict=True))


def test_gradient_of_logcumsumexp_before_inf_is_zero(device):
    x = fb.tensor([1.0, -2.0, INF, 3.0], device=device, requires_grad=True)
    found = grad(x.logcumsumexp(0)[2:].sum(), x)[0].tolist()
    assert found[:2] == [0.0, 0.0]
    assert math.isnan(found[2])
    assert found[3] == 0.0


def test_second_derivatives_of_logcumsumexp_pass_by_minus_inf(device):
    x = fb.tensor([-INF, -1e5, -1e5], device=device, dtype=fb.float64, requires_grad=True)
    first = grad(x.logcumsumexp(0)[2], x, create_graph=True)[0]
    assert first.tolist() == pytest.approx([0.0, 0.5, 0.5])
    assert grad(first[1], x)[0].tolist() == pytest.approx([0.0, 0.25, -0.25])
    _, forward = fb.func.jvp(
        lambda x: x.logcumsumexp(0), (x.detach(),), (fb.ones_like(x.detach()),)
    )
    assert forward.tolist()[1:] == pytest.approx([1.0, 1.0])
