"""Pictures of distributions: densities of a few parameters, and samples of the first of them."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import cache
from pathlib import PurePosixPath
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

import flambeau as fb
import flambeau.distributions as D

FOLDER = PurePosixPath("guide/gallery")
SAMPLES = 2000

# Each builder stands in the table as it is written here.
LINES = """
Beta(2.0, 5.0) | Beta(0.5, 0.5)
Cauchy(0.0, 1.0) | Cauchy(2.0, 0.5)
Chi2(4.0) | Chi2(8.0)
ContinuousBernoulli(0.2) | ContinuousBernoulli(0.6)
Exponential(1.0) | Exponential(0.5)
FisherSnedecor(10.0, 12.0) | FisherSnedecor(3.0, 12.0)
Gamma(3.0, 1.0) | Gamma(8.0, 2.0)
GeneralizedPareto(0.0, 1.0, 0.1) | GeneralizedPareto(0.0, 1.0, -0.4)
Gumbel(0.0, 1.0) | Gumbel(1.0, 2.0)
HalfCauchy(1.0) | HalfCauchy(2.0)
HalfNormal(1.0) | HalfNormal(2.0)
InverseGamma(3.0, 1.0) | InverseGamma(5.0, 3.0)
Kumaraswamy(2.0, 3.0) | Kumaraswamy(0.5, 0.5)
Laplace(0.0, 1.0) | Laplace(1.0, 0.5)
LogNormal(0.0, 0.5) | LogNormal(0.5, 0.25)
Normal(0.0, 1.0) | Normal(1.0, 0.5)
Pareto(1.0, 3.0) | Pareto(1.0, 6.0)
RelaxedBernoulli(0.7, probs=0.4) | RelaxedBernoulli(2.0, probs=0.4)
StudentT(3.0) | StudentT(30.0)
Uniform(0.0, 1.0) | Uniform(0.5, 2.0)
VonMises(0.0, 2.0) | VonMises(1.0, 8.0)
Weibull(1.0, 1.5) | Weibull(1.0, 4.0)
MixtureSameFamily(Categorical(t([0.3, 0.7])), Normal(t([-1.0, 1.0]), 0.5))
TransformedDistribution(Normal(0.0, 1.0), [TanhTransform()])
""".strip().splitlines()
COUNTS = """
Bernoulli(0.3)
Binomial(10, 0.4) | Binomial(10, 0.8)
Categorical(t([0.2, 0.5, 0.1, 0.2]))
Geometric(0.3) | Geometric(0.6)
NegativeBinomial(4.0, 0.5) | NegativeBinomial(1.0, 0.7)
Poisson(4.0) | Poisson(9.0)
""".strip().splitlines()
# Of points of the plane, and of matrices and vectors the two numbers at these places.
PLANES: list[tuple[str, tuple[Any, Any]]] = [
    ("Dirichlet(t([2.0, 3.0, 4.0]))", (0, 1)),
    ("Independent(Normal(t([0.0, 0.0]), t([1.0, 0.5])), 1)", (0, 1)),
    ("LKJCholesky(3, 1.5)", ((1, 0), (2, 0))),
    ("LogisticNormal(t([0.0, 0.5]), t([1.0, 0.5]))", (0, 1)),
    ("LowRankMultivariateNormal(t([0.0, 0.0]), t([[1.0], [0.8]]), t([0.1, 0.2]))", (0, 1)),
    ("Multinomial(10, t([0.2, 0.3, 0.5]))", (0, 1)),
    ("MultivariateNormal(t([0.0, 0.0]), t([[1.0, 0.6], [0.6, 0.8]]))", (0, 1)),
    ("OneHotCategorical(t([0.2, 0.3, 0.5]))", (0, 1)),
    ("OneHotCategoricalStraightThrough(t([0.5, 0.3, 0.2]))", (0, 1)),
    ("RelaxedOneHotCategorical(t(0.8), t([0.2, 0.3, 0.5]))", (0, 1)),
    ("Wishart(t(4.0), t([[1.0, 0.4], [0.4, 1.0]]))", ((0, 0), (1, 1))),
]


def _made(text: str) -> Any:
    names = {"t": fb.tensor, **{name: getattr(D, name) for name in D.__all__}}
    if text.startswith("RelaxedBernoulli("):
        text = text.replace("(", "(t(", 1).replace(", probs=", "), t(") + ")"
    return eval(text, names)


def _finish(figure: Figure) -> str:
    for panel in figure.axes:
        panel.tick_params(labelsize=6)
        panel.set_yticks([])
    out = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "flambeau"}):
        figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()


def _panels() -> tuple[Figure, Any, Any]:
    figure = Figure(figsize=(5.2, 1.5), layout="constrained")
    left, right = figure.subplots(1, 2, sharex=True)
    return figure, left, right


def _line(text: str) -> str:
    members = [_made(part) for part in text.split(" | ")]
    figure, left, right = _panels()
    samples = members[0].sample((SAMPLES,)).flatten()
    levels = fb.tensor([0.002, 0.98])
    ends = [fb.quantile(m.sample((SAMPLES,)).flatten(), levels).tolist() for m in members]
    low, high = min(a for a, _ in ends), max(b for _, b in ends)
    edge = 0.02 * (high - low)
    x = fb.linspace(low - edge, high + edge, 300)
    for member in members:
        inside = member.support.check(x)
        safe = fb.where(inside, x, member.sample().flatten()[0])
        density = fb.where(inside, member.log_prob(safe).exp(), 0.0).clamp(max=8.0)
        left.plot(x.tolist(), density.tolist(), linewidth=1)
    right.hist(samples.tolist(), bins=50, range=(low, high), color="tab:blue")
    return _finish(figure)


def _count(text: str) -> str:
    members = [_made(part) for part in text.split(" | ")]
    figure, left, right = _panels()
    samples = members[0].sample((SAMPLES,))
    most = int(max(member.sample((200,)).max().item() for member in members))
    for i, member in enumerate(members):
        if (limit := getattr(member.support, "upper_bound", None)) is not None:
            most = min(most, int(limit))
        k = fb.arange(most + 1).to(samples.dtype)
        places = (k.float() + 0.3 * i).tolist()
        left.bar(places, member.log_prob(k).exp().tolist(), width=0.28)
    right.hist(samples.tolist(), bins=[k - 0.5 for k in range(most + 2)], color="tab:blue")
    return _finish(figure)


def _plane(text: str, places: tuple[Any, Any]) -> str:
    samples = _made(text).sample((SAMPLES,))
    figure, left, right = _panels()
    columns = []
    for place in places:
        index = place if isinstance(place, tuple) else (place,)
        columns.append(samples[(slice(None), *index)].tolist())
    left.hist2d(*columns, bins=40, cmap="Blues")
    right.plot(*columns, ".", markersize=1)
    return _finish(figure)


@cache
def pictures() -> dict[PurePosixPath, str]:
    """The pictures by their place in the site."""
    fb.manual_seed(0)
    drawn: dict[PurePosixPath, str] = {}
    jobs: list[tuple[Callable[..., str], str, tuple[Any, ...]]] = [
        *((_line, text, ()) for text in LINES),
        *((_count, text, ()) for text in COUNTS),
        *((_plane, text, (places,)) for text, places in PLANES),
    ]
    for draw, text, more in jobs:
        drawn[FOLDER / f"{text.partition('(')[0]}.svg"] = draw(text, *more)
    return drawn


def rows(_: object) -> str:
    """One row for each distribution, in the order of the alphabet."""
    texts = [*LINES, *COUNTS, *(text for text, _ in PLANES)]
    shown = {text.partition("(")[0] for text in texts} | {"Distribution", "ExponentialFamily"}
    found = {n for n in D.__all__ if isinstance(getattr(D, n), type)}
    missing = {n for n in found - shown if issubclass(getattr(D, n), D.Distribution)}
    if missing:
        raise RuntimeError(f"the gallery has no picture of {sorted(missing)}")
    lines = ["| distribution | densities, and samples of the first |", "|---|---|"]
    for text in sorted(texts):
        name = text.partition("(")[0]
        code = "<br>".join(f"`{part}`" for part in text.split(" | "))
        lines.append(f"| {code} | ![{name}](gallery/{name}.svg) |")
    return "\n".join(lines)
