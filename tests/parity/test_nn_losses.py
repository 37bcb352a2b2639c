"""Losses and distances agree with PyTorch: values, both derivatives, modules, warnings, errors."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as fb

torch = pytest.importorskip("torch")

from oracle import DEVICES, assert_same, check, check_error, ours_of  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:reduction. 'mean' divides")

SIGNS = torch.tensor([1, -1, 1, -1])
SIGN_ROWS = torch.tensor([[1, -1, 1], [-1, -1, 1]], dtype=torch.float64)
COUNTS = torch.tensor([[0, 1, 3], [2, 0, 7]], dtype=torch.float64)
SHARES = torch.tensor([[0.2, 0.0, 0.8], [0.5, 0.25, 0.25]], dtype=torch.float64)
CLASSES = torch.tensor([1, 0])
LISTS = torch.tensor([[2, 0, -1], [-1, 1, 0]])
CLASS_WEIGHT = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
ROWS, VECTORS = (2, 3), (4, 3)


def loss(name: str, *args: Any, **how: Any) -> Any:
    """A call of the function with each reduction."""

    def call(t: Any, *operands: Any) -> Any:
        function = getattr(t.nn.functional, name)
        return [
            function(*operands, *args, **how, reduction=kind) for kind in ("mean", "sum", "none")
        ]

    return call


CASES = {
    "kl_div": (loss("kl_div"), (ROWS, SHARES)),
    "kl_div of logarithms": (loss("kl_div", log_target=True), (ROWS, ROWS)),
    "kl_div batchmean": (
        lambda t, x, y: t.nn.functional.kl_div(x, y, reduction="batchmean"),
        (ROWS, SHARES),
    ),
    "kl_div to the target": (loss("kl_div"), (ROWS, SHARES[1].clone().requires_grad_())),
    "poisson_nll_loss": (loss("poisson_nll_loss"), (ROWS, COUNTS)),
    "poisson_nll_loss full": (loss("poisson_nll_loss", full=True), (ROWS, COUNTS)),
    "poisson_nll_loss rates": (
        lambda t, x, y: t.nn.functional.poisson_nll_loss(x.square(), y, False, eps=0.1),
        (ROWS, COUNTS),
    ),
    "gaussian_nll_loss": (
        lambda t, x, y, v: t.nn.functional.gaussian_nll_loss(x, y, v.square(), full=True),
        (ROWS, ROWS, ROWS),
    ),
    "gaussian_nll_loss limited": (
        lambda t, x, y, v: t.nn.functional.gaussian_nll_loss(x, y, v.square(), eps=1.0),
        (ROWS, ROWS, (2, 1)),
    ),
    "gaussian_nll_loss one per row": (
        lambda t, x, y, v: t.nn.functional.gaussian_nll_loss(x, y, v.exp(), reduction="none"),
        (ROWS, ROWS, (2,)),
    ),
    "gaussian_nll_loss number": (
        lambda t, x, y: t.nn.functional.gaussian_nll_loss(x, y, 2.0),
        (ROWS, ROWS),
    ),
    "cosine_embedding_loss": (loss("cosine_embedding_loss", 0.2), (VECTORS, VECTORS, SIGNS)),
    "cosine_embedding_loss unbatched": (
        loss("cosine_embedding_loss", -0.9),
        ((3,), (3,), torch.tensor(-1)),
    ),
    "hinge_embedding_loss": (loss("hinge_embedding_loss", 0.7), (ROWS, SIGN_ROWS)),
    "margin_ranking_loss": (loss("margin_ranking_loss", 0.3), ((4,), (4,), SIGNS)),
    "triplet_margin_loss": (loss("triplet_margin_loss", 2.0), (VECTORS, VECTORS, VECTORS)),
    "triplet_margin_loss swapped": (
        loss("triplet_margin_loss", 2.0, 3, swap=True),
        (VECTORS, VECTORS, VECTORS),
    ),
    "triplet_margin_loss unbatched": (loss("triplet_margin_loss", 3.0, 1), ((3,), (3,), (3,))),
    "triplet_margin_with_distance_loss": (
        loss(
            "triplet_margin_with_distance_loss",
            distance_function=lambda x, y: (x - y).abs().sum(-1),
            swap=True,
        ),
        (VECTORS, VECTORS, VECTORS),
    ),
    "multi_margin_loss": (loss("multi_margin_loss"), (ROWS, CLASSES)),
    "multi_margin_loss unbatched": (loss("multi_margin_loss"), ((3,), torch.tensor(2))),
    "multilabel_margin_loss": (loss("multilabel_margin_loss"), (ROWS, LISTS)),
    "multilabel_margin_loss unbatched": (loss("multilabel_margin_loss"), ((3,), LISTS[0])),
    "multilabel_soft_margin_loss": (loss("multilabel_soft_margin_loss"), (ROWS, SHARES)),
    "multilabel_soft_margin_loss unbatched": (
        loss("multilabel_soft_margin_loss"),
        ((3,), SHARES[0]),
    ),
    "soft_margin_loss": (loss("soft_margin_loss"), (ROWS, SIGN_ROWS)),
    "cosine_similarity": (lambda t, x, y: t.cosine_similarity(x, y, -1), (ROWS, (4, 1, 3))),
    "cosine_similarity short": (
        lambda t, x, y: t.nn.functional.cosine_similarity(x, y, 0, 100.0),
        (ROWS, ROWS),
    ),
    "pairwise_distance": (lambda t, x, y: t.pairwise_distance(x, y), (ROWS, ROWS)),
    "pairwise_distance kept": (
        lambda t, x, y: t.pairwise_distance(x, y, 3.0, 0.1, True),
        (ROWS, (3,)),
    ),
    "no rows": (loss("hinge_embedding_loss"), ((0, 3), torch.ones(0, 3))),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives_agree(name: str, device: str) -> None:
    call, operands = CASES[name]
    check(call, operands, device, 1e-8)


@pytest.mark.parametrize("weighted", [True, False])
def test_the_squared_margin_agrees_and_has_a_second_derivative(weighted: bool) -> None:
    x = torch.arange(6.0, dtype=torch.float64).sin().reshape(2, 3)
    found = []
    for t, v, y, w in (
        (torch, x, CLASSES, CLASS_WEIGHT),
        (fb, ours_of(x), ours_of(CLASSES), ours_of(CLASS_WEIGHT)),
    ):
        v.requires_grad_()
        result = t.nn.functional.multi_margin_loss(v, y, 2, 1.5, w if weighted else None)
        found.append([result, *t.autograd.grad(result, v)])
    assert_same(found[1], found[0])
    y = ours_of(CLASSES)
    assert fb.autograd.gradgradcheck(
        lambda v: fb.nn.functional.multi_margin_loss(v, y, 2, 1.5), (ours_of(x).requires_grad_(),)
    )


ORDERS = [0.0, 1.0, 2.0, 3.0, 0.5, float("inf")]


@pytest.mark.parametrize("p", ORDERS)
@pytest.mark.parametrize("name", ["pdist", "cdist"])
def test_distances_of_all_pairs_agree_where_rows_coincide_too(name: str, p: float) -> None:
    rows = torch.tensor([[0.5, 1.0, -2.0], [0.5, 1.0, -2.0], [3.0, 0.0, 0.25]]).double()
    others = torch.tensor([[[0.0, 1.5, 1.0], [0.5, 1.0, -2.0]]]).double()
    found = []
    for t, x, y in ((torch, rows, others), (fb, ours_of(rows), ours_of(others))):
        x = x.detach().requires_grad_()
        result = t.pdist(x, p) if name == "pdist" else t.cdist(x, y, p)
        weights = t.arange(result.numel(), dtype=t.float64).reshape(tuple(result.shape)) + 1
        found.append([result, *t.autograd.grad((result * weights).sum(), x)])
    assert_same(found[1], found[0])


def test_equal_greatest_differences_have_the_gradient_each() -> None:
    found = []
    for t in (torch, fb):
        x = t.tensor([[1.0, -1.0, 0.5], [0.0, 2.0, 2.0]], requires_grad=True)
        y = t.tensor([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]], requires_grad=True)
        result = t.cdist(x, y, p=float("inf"))
        found.append([result, *t.autograd.grad(result, (x, y), t.tensor([[1.0, 2.0], [3.0, 4.0]]))])
    assert_same(found[1], found[0])


@pytest.mark.parametrize("shapes", [((0, 3), (2, 3)), ((2, 0), (3, 0)), ((2, 0, 3), (2, 4, 3))])
def test_distances_of_nothing_agree(shapes: Any) -> None:
    given = [torch.zeros(s) for s in shapes]
    assert_same(fb.cdist(*map(ours_of, given)), torch.cdist(*given))
    for count in (0, 1):
        assert_same(fb.pdist(fb.zeros(count, 3)), torch.pdist(torch.zeros(count, 3)))


def test_second_derivatives_of_all_distances_are_those_of_differences() -> None:
    x = fb.tensor([[0.5, 1.0], [3.0, 0.0], [-1.0, 2.0]], dtype=fb.float64, requires_grad=True)
    for p in (1.5, 2.0, 4.0):
        assert fb.autograd.gradgradcheck(lambda v: fb.cdist(v, v[:2] * 2 + 1.25, p), (x,))  # noqa: B023
        assert fb.autograd.gradgradcheck(lambda v: fb.pdist(v, p), (x,))  # noqa: B023


LAYERS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "KLDivLoss": (lambda n, **k: n.KLDivLoss(**k), (ROWS, SHARES)),
    "KLDivLoss of logarithms": (lambda n, **k: n.KLDivLoss(log_target=True, **k), (ROWS, ROWS)),
    "PoissonNLLLoss": (lambda n, **k: n.PoissonNLLLoss(full=True, **k), (ROWS, COUNTS)),
    "CosineEmbeddingLoss": (
        lambda n, **k: n.CosineEmbeddingLoss(0.1, **k),
        (VECTORS, VECTORS, SIGNS),
    ),
    "HingeEmbeddingLoss": (lambda n, **k: n.HingeEmbeddingLoss(0.1, **k), (ROWS, SIGN_ROWS)),
    "MarginRankingLoss": (lambda n, **k: n.MarginRankingLoss(0.1, **k), ((4,), (4,), SIGNS)),
    "TripletMarginLoss": (lambda n, **k: n.TripletMarginLoss(2.0, **k), (VECTORS,) * 3),
    "MultiMarginLoss": (lambda n, **k: n.MultiMarginLoss(1, 0.5, **k), (ROWS, CLASSES)),
    "MultiLabelMarginLoss": (lambda n, **k: n.MultiLabelMarginLoss(**k), (ROWS, LISTS)),
    "MultiLabelSoftMarginLoss": (lambda n, **k: n.MultiLabelSoftMarginLoss(**k), (ROWS, SHARES)),
    "SoftMarginLoss": (lambda n, **k: n.SoftMarginLoss(**k), (ROWS, SIGN_ROWS)),
}
SETTINGS = [{"reduction": "sum"}, {"size_average": False}, {"reduce": False}, {"reduce": True}]


@pytest.mark.parametrize("how", SETTINGS)
@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_agrees_and_older_arguments_warn_as_in_pytorch(name: str, how: Any) -> None:
    make, operands = LAYERS[name]
    if "reduction" in how:
        ours, theirs = make(fb.nn, **how), make(torch.nn, **how)
    else:
        with pytest.warns(UserWarning, match="size_average and reduce args") as found:
            ours = make(fb.nn, **how)
        with pytest.warns(UserWarning, match="size_average and reduce args") as expected:
            theirs = make(torch.nn, **how)
        assert str(found[0].message) == str(expected[0].message)
    assert repr(ours) == repr(theirs)
    check(lambda t, *x: (ours if t is fb else theirs)(*x), operands, "cpu", 1e-8)


def test_layers_without_older_arguments_agree() -> None:
    check(lambda t, x, y: t.nn.CosineSimilarity(0)(x, y), (ROWS, ROWS), "cpu")
    check(lambda t, x, y: t.nn.PairwiseDistance(1, keepdim=True)(x, y), (ROWS, ROWS), "cpu")
    check(
        lambda t, x, y, v: t.nn.GaussianNLLLoss(full=True, eps=0.1)(x, y, v.exp()),
        (ROWS, ROWS, ROWS),
        "cpu",
    )
    check(
        lambda t, x, y, z: t.nn.TripletMarginWithDistanceLoss(margin=3.0)(x, y, z),
        (VECTORS,) * 3,
        "cpu",
    )
    weight = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
    for name, target in (("MultiMarginLoss", CLASSES), ("MultiLabelSoftMarginLoss", SHARES)):
        check(
            lambda t, x, y, w: getattr(t.nn, name)(weight=w)(x, y),  # noqa: B023
            (ROWS, target, weight),
            "cpu",
        )


def test_the_mean_of_a_divergence_warns_as_pytorchs() -> None:
    with pytest.warns(UserWarning, match="'mean' divides") as found:
        fb.nn.functional.kl_div(fb.zeros(2), fb.ones(2))
    with pytest.warns(UserWarning, match="'mean' divides") as expected:
        torch.nn.functional.kl_div(torch.zeros(2), torch.ones(2))
    assert str(found[0].message) == str(expected[0].message)
    assert found[0].filename == __file__


@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_the_functions_of_the_library_itself_take_numbers_for_reductions(reduction: int) -> None:
    check(lambda t, x, y: t.kl_div(x, y, reduction), (ROWS, SHARES), "cpu")
    check(lambda t, x, y: t.hinge_embedding_loss(x, y, 1.0, reduction), (ROWS, SIGN_ROWS), "cpu")
    check(
        lambda t, x, y: t.binary_cross_entropy_with_logits(x, y, reduction=reduction),
        (ROWS, SHARES),
        "cpu",
    )


def long(t: Any, *numbers: int) -> Any:
    return t.tensor(list(numbers), dtype=t.int64)


@pytest.mark.parametrize(
    "call",
    [
        lambda t, x: t.nn.functional.kl_div(x, x, reduction="other"),
        lambda t, x: t.nn.functional.poisson_nll_loss(x, x, reduction="other"),
        lambda t, x: t.nn.functional.gaussian_nll_loss(x, x, -1.0),
        lambda t, x: t.nn.functional.gaussian_nll_loss(x, x, x),
        lambda t, x: t.nn.functional.gaussian_nll_loss(x, x, t.ones(3)),
        lambda t, x: t.nn.functional.gaussian_nll_loss(x, x, 1.0, reduction="other"),
        lambda t, x: t.nn.functional.cosine_embedding_loss(x, x, x),
        lambda t, x: t.nn.functional.cosine_embedding_loss(x[0], x[0], long(t, 1)),
        lambda t, x: t.nn.functional.margin_ranking_loss(x, x, x[0]),
        lambda t, x: t.nn.functional.triplet_margin_loss(x, x, x[0]),
        lambda t, x: t.nn.functional.triplet_margin_loss(x, x, x, margin=0),
        lambda t, x: t.nn.functional.triplet_margin_with_distance_loss(x, x, x[0]),
        lambda t, x: t.nn.TripletMarginLoss(margin=-1.0),
        lambda t, x: t.nn.functional.multi_margin_loss(x, long(t, 0, 3)),
        lambda t, x: t.nn.functional.multi_margin_loss(x, long(t, 0, -1)),
        lambda t, x: t.nn.functional.binary_cross_entropy(x.exp(), x.exp()),
        lambda t, x: t.nn.functional.binary_cross_entropy(x * t.nan, x),
        lambda t, x: t.nn.functional.binary_cross_entropy(x > 0, x > 0),
        lambda t, x: t.nn.functional.binary_cross_entropy(x.long(), x.long()),
        lambda t, x: t.nn.functional.binary_cross_entropy(x + 0j, x + 0j),
        lambda t, x: t.nn.functional.multi_margin_loss(x, long(t, 0, 1, 2)),
        lambda t, x: t.nn.functional.multi_margin_loss(x, long(t, 0, 1), p=3),
        lambda t, x: t.nn.functional.multi_margin_loss(x, long(t, 0, 1), weight=x),
        lambda t, x: t.nn.functional.multi_margin_loss(x, x[:, 0]),
        lambda t, x: t.nn.functional.multilabel_margin_loss(x, long(t, 0, 1)),
        lambda t, x: t.nn.functional.multilabel_margin_loss(x, x),
        lambda t, x: t.nn.functional.multilabel_margin_loss(x[0], long(t, 0, 3, -1)),
        lambda t, x: t.nn.MultiMarginLoss(p=3),
        lambda t, x: t.cosine_similarity(x, x, 2),
        lambda t, x: t.cosine_similarity(long(t, 1, 2), long(t, 1, 2), 0),
        lambda t, x: t.pairwise_distance(x, x[:, :2]),
        lambda t, x: t.cdist(x, x[:, :2]),
        lambda t, x: t.cdist(x[0], x),
        lambda t, x: t.cdist(x, x, p=-1.0),
        lambda t, x: t.cdist(x, x, compute_mode="other"),
        lambda t, x: t.pdist(x[0]),
        lambda t, x: t.pdist(x, -2.0),
        lambda t, x: t.pdist(long(t, 1, 2).reshape(2, 1)),
    ],
)
def test_refusals_are_of_one_class(call: Any) -> None:
    check_error(call, (ROWS,))
