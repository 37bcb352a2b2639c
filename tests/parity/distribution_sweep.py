"""How much of what distributions answer is PyTorch's: every case in two dtypes and three shapes,
with arguments checked and unchecked.

``python tests/parity/distribution_sweep.py`` prints, for each kind of answer, how many were
compared and how many agree, and lists those that do not.  Left out is what flambeau answers and
PyTorch does not implement, or fails at on its way, or has no formula for; numbers where PyTorch has
NaN are counted apart.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import torch
import torch.distributions as theirs

import flambeau as fb
import flambeau.distributions as ours
import flambeau.distributions.relaxed_bernoulli
import flambeau.distributions.relaxed_categorical
from distribution_cases import CASES
from oracle import ours_of

SHAPES = [(), (3,), (2, 3)]
DIGITS = {"float64": 1e-9, "float32": 1e-4}
BAD = [-1.0, 0.0, 2.5, float("nan"), float("inf")]
ATTRIBUTES = "batch_shape event_shape has_rsample has_enumerate_support support".split()
MOMENTS = "mean mode variance stddev".split()
# PyTorch compares float64 with a number of float32, and writes where its gradients look.
FAILS = "Double did not match Float", "modified by an inplace operation"
# Next to λ = 1/2 PyTorch has the level for the place, and the place for the level.
NO_FORMULA = {"ContinuousBernoulli": ("cdf", "icdf")}
ERRORS = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)

Answers = Iterator[tuple[str, str, Any]]


class Library:
    """One of the two, and how parameters are made in it: of a dtype, one perhaps replaced."""

    def __init__(self, module: Any, families: Any, dtype: str, bad: tuple[int, float] | None):
        self.module, self.families = module, families
        self.dtype, self.bad = getattr(module, dtype), bad
        self.parameters: list[Any] = []

    def tensor(self, values: Any) -> Any:
        made = self.module.tensor(values, dtype=self.dtype)
        if self.bad is not None and len(self.parameters) == self.bad[0]:
            made = made.clone()
            made.view(-1)[0] = self.bad[1]
        self.parameters.append(made.requires_grad_())
        return made

    def build(self, name: str, **options: Any) -> Any:
        return CASES[name](self.families, self.tensor, **options)


def answer(function: Callable[[], Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function()
        except ERRORS as error:
            return error


def answers(library: Library, name: str, values: list[Any]) -> Answers:
    """Kind, name and answer; the same ones in the same order of both libraries."""
    made = answer(lambda: library.build(name))
    if isinstance(made, Exception):
        yield "errors", "construction", made
        return
    yield "repr", "repr", repr(made)
    for attribute in ATTRIBUTES:
        yield "shapes", attribute, str(answer(lambda a=attribute: getattr(made, a)))
    for moment in MOMENTS:
        yield "values", moment, answer(lambda m=moment: getattr(made, m))
    yield "values", "entropy", answer(made.entropy)
    yield "values", "enumerate_support", answer(made.enumerate_support)
    for shape in SHAPES:
        for method in ("sample", "rsample"):
            library.module.manual_seed(11)
            x = answer(lambda s=shape, m=method: getattr(made, m)(s))
            yield "values", f"{method}{shape}", x
            yield "values", f"state after {method}{shape}", str(library.module.get_rng_state())
            if getattr(x, "requires_grad", False):
                yield "gradients", f"{method}{shape}", gradients(library, x)
        wide = answer(lambda s=shape: made.expand((*s, *made.batch_shape)))
        yield "shapes", f"expand{shape}", str(getattr(wide, "batch_shape", wide))
    for k, value in enumerate(values):
        for method in ("log_prob", "cdf", "icdf"):
            x = answer(lambda v=value, m=method: getattr(made, m)(v))
            yield ("errors" if isinstance(x, Exception) else "values"), f"{method} of {k}", x
            if getattr(x, "requires_grad", False):
                yield "gradients", f"{method} of {k}", gradients(library, x)


def gradients(library: Library, x: Any) -> Any:
    found = answer(
        lambda: library.module.autograd.grad(
            x.sum(), library.parameters, allow_unused=True, retain_graph=True
        )
    )
    return found if isinstance(found, Exception) else [g for g in found if g is not None]


def agree(mine: Any, reference: Any, digits: float) -> bool:
    if isinstance(reference, list):
        if not isinstance(mine, list) or len(mine) != len(reference):
            return False
        return all(agree(m, r, digits) for m, r in zip(mine, reference, strict=True))
    if not isinstance(reference, torch.Tensor):
        return type(mine).__name__ == type(reference).__name__ and shown(mine) == shown(reference)
    if not isinstance(mine, fb.Tensor) or tuple(mine.shape) != tuple(reference.shape):
        return False
    if str(mine.dtype) != str(reference.dtype):
        return False
    if reference.dtype == torch.float32:  # what is made of plain numbers is
        digits = DIGITS["float32"]
    one = torch.tensor(mine.detach().flatten().tolist(), dtype=torch.float64)
    other = reference.detach().flatten().double()
    return torch.allclose(one, other, rtol=digits, atol=digits, equal_nan=True)


def shown(x: Any) -> str:
    """As text, without where the class of a distribution is from."""
    return str(x).replace("flambeau.distributions.", "").replace("torch.distributions.", "")


def values_for(name: str, dtype: str) -> list[Any]:
    """Two samples, what is hardly a sample, and a wrong shape, as tensors of PyTorch."""
    made = answer(lambda: Library(torch, theirs, dtype, None).build(name))
    torch.manual_seed(2)
    x = answer(lambda: made.sample((2,)))
    if isinstance(x, Exception):
        return []
    return [x, x[0], x[0] + 0.3, -x[0] - 1, x[0] * float("nan"), torch.zeros(7, 5)]


def without_holes(mine: Any, reference: Any) -> Any:
    """What PyTorch answers, with our numbers where it has NaN."""
    if isinstance(reference, list) and isinstance(mine, list) and len(mine) == len(reference):
        return [without_holes(m, r) for m, r in zip(mine, reference, strict=True)]
    if not (isinstance(reference, torch.Tensor) and isinstance(mine, fb.Tensor)):
        return reference
    if tuple(mine.shape) != tuple(reference.shape):
        return reference
    numbers = torch.tensor(mine.detach().tolist(), dtype=torch.float64).to(reference.dtype)
    return torch.where(reference.detach().isnan(), numbers, reference.detach())


def goes_beyond(name: str, what: str, found: Any, wanted: Any) -> bool:
    """Whether PyTorch has nothing to compare an answer with."""
    if isinstance(wanted, NotImplementedError):
        return not isinstance(found, NotImplementedError)
    if any(text in str(wanted) for text in FAILS):
        return isinstance(wanted, RuntimeError) and not isinstance(found, Exception)
    return what.split()[0] in NO_FORMULA.get(name.split()[0], ())


def compared(
    name: str, dtype: str, bad: tuple[int, float] | None
) -> Iterator[tuple[str, str, bool | None]]:
    """Whether answers agree; None where they do but for NaN of PyTorch."""
    values = values_for(name, dtype) if bad is None else []
    # Of bad parameters: constructed, or why not.  PyTorch draws for ever from some of what is made.
    most = None if bad is None else 1
    mine = [
        *islice(answers(Library(fb, ours, dtype, bad), name, [ours_of(v) for v in values]), most)
    ]
    reference = islice(answers(Library(torch, theirs, dtype, bad), name, values), most)
    known = {(what, kind == "gradients"): (kind, x) for kind, what, x in mine}
    for kind, what, wanted in reference:
        found = known.get((what, kind == "gradients"), (kind, None))[1]
        if goes_beyond(name, what, found, wanted):
            continue
        right: bool | None = agree(found, wanted, DIGITS[dtype])
        if not right and agree(found, without_holes(found, wanted), DIGITS[dtype]):
            right = None
        yield kind, what, right


def sweep(names: list[str]) -> tuple[Counter[str], Counter[str], list[str]]:
    """How many answers there are by kind, how many agree, and those that do not."""
    total: Counter[str] = Counter()
    same: Counter[str] = Counter()
    wrong: list[str] = []
    families = (theirs.Distribution, ours.Distribution)
    before = [family._validate_args for family in families]
    try:
        for checks in (True, False):
            for family in families:
                family.set_default_validate_args(checks)
            _sweep(names, checks, total, same, wrong)
    finally:
        for family, default in zip(families, before, strict=True):
            family.set_default_validate_args(default)
    return total, same, wrong


def _sweep(
    names: list[str], checks: bool, total: Counter[str], same: Counter[str], wrong: list[str]
) -> None:
    """Of bad parameters only if they are checked: PyTorch draws for ever from some."""
    for name in names:
        for dtype in DIGITS:
            count = Library(torch, theirs, dtype, None)
            answer(lambda c=count, n=name: c.build(n))
            faults = [(k, v) for k in range(len(count.parameters)) for v in BAD]
            for bad in [None, *(faults if checks else [])]:
                for kind, what, right in compared(name, dtype, bad):
                    kind = kind if bad is None else "bad parameters"
                    if right is None:
                        kind = "NaN in PyTorch"
                    total[kind] += 1
                    same[kind] += right is not False
                    if right is False:
                        how = "" if checks else "unchecked"
                        wrong.append(f"{name}, {dtype}, {bad or how}: {what}")


def main(names: list[str]) -> int:
    total, same, wrong = sweep(names or list(CASES))
    print("\n".join(wrong))
    for kind, count in total.items():
        print(f"{kind:16}{same[kind]:8} of {count:8} {100 * same[kind] / count:8.2f} %")
    print(f"{'all':16}{same.total():8} of {total.total():8}", end=" ")
    print(f"{100 * same.total() / total.total():8.2f} %")
    return int(same.total() < 0.99 * total.total())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
