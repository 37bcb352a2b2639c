"""Embeddings agree with PyTorch: values, both derivatives, tables changed in place, errors."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as fb

torch = pytest.importorskip("torch")

from oracle import DEVICES, assert_same, check, check_error, ours_of  # noqa: E402

PLACES = torch.tensor([[2, 0, 2], [3, 1, 2]])
FLAT = torch.tensor([2, 0, 2, 4, 1, 2, 3])
STARTS = torch.tensor([0, 2, 2, 5])
ENDED = torch.tensor([0, 2, 2, 5, 7])
TABLE = (5, 3)


def bag(**how: Any) -> Any:
    return lambda t, w, i, o: t.nn.functional.embedding_bag(i, w, o, **how)


CASES = {
    "rows": (lambda t, w, i: t.nn.functional.embedding(i, w), (TABLE, PLACES)),
    "int32": (lambda t, w, i: t.nn.functional.embedding(i, w), (TABLE, PLACES.int())),
    "one row": (lambda t, w, i: t.embedding(w, i), (TABLE, torch.tensor(3))),
    "no rows": (lambda t, w, i: t.embedding(w, i), (TABLE, torch.tensor([], dtype=torch.int64))),
    "padding": (lambda t, w, i: t.nn.functional.embedding(i, w, -3), (TABLE, PLACES)),
    "by frequency": (
        lambda t, w, i: t.nn.functional.embedding(i, w, 0, scale_grad_by_freq=True),
        (TABLE, PLACES),
    ),
    "bag of rows": (lambda t, w, i: t.nn.functional.embedding_bag(i, w), (TABLE, PLACES)),
}
for mode in ("sum", "mean", "max"):
    CASES[f"bag {mode}"] = (bag(mode=mode), (TABLE, FLAT, STARTS))
    CASES[f"bag {mode} int32"] = (bag(mode=mode), (TABLE, FLAT.int(), STARTS.int()))
    CASES[f"bag {mode} padding"] = (bag(mode=mode, padding_idx=2), (TABLE, FLAT, STARTS))
    CASES[f"bag {mode} ended"] = (bag(mode=mode, include_last_offset=True), (TABLE, FLAT, ENDED))
    CASES[f"bag {mode} empty"] = (bag(mode=mode), (TABLE, FLAT[:0], torch.tensor([0, 0])))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives_agree(name: str, device: str) -> None:
    call, operands = CASES[name]
    check(call, operands, device)


@pytest.mark.parametrize("padding", [None, 2])
def test_weights_of_a_sum_receive_gradients(padding: int | None) -> None:
    table = torch.arange(15.0, dtype=torch.float64).sin().reshape(5, 3)
    share = torch.linspace(-1, 2, 7, dtype=torch.float64)
    results = []
    for t, w, i, o, s in (
        (torch, table, FLAT, STARTS, share),
        (fb, ours_of(table), ours_of(FLAT), ours_of(STARTS), ours_of(share)),
    ):
        w.requires_grad_(), s.requires_grad_()
        result = t.nn.functional.embedding_bag(
            i, w, o, mode="sum", per_sample_weights=s, padding_idx=padding
        )
        results.append([result, *t.autograd.grad(result.square().sum(), [w, s])])
    assert_same(results[1], results[0])


def test_the_gradient_of_a_bag_by_frequency_is_divided_by_the_occurrences() -> None:
    table = fb.ones(5, 2, requires_grad=True)
    places, starts = fb.tensor([2, 0, 2, 4]), fb.tensor([0, 2])
    result = fb.nn.functional.embedding_bag(
        places, table, starts, mode="sum", scale_grad_by_freq=True
    )
    (grad,) = fb.autograd.grad(result.sum(), table)
    assert grad[:, 0].tolist() == [1.0, 0.0, 1.0, 0.0, 1.0]
    result = bag(mode="sum", scale_grad_by_freq=True, padding_idx=2)(
        fb, table, fb.tensor([2, 0, 0, 2, 4]), starts
    )
    (grad,) = fb.autograd.grad(result.sum(), table)
    assert grad[:, 0].tolist() == [1.0, 0.0, 0.0, 0.0, 1.0]


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_second_derivatives_of_bags_are_those_of_differences(mode: str) -> None:
    table = fb.arange(15.0, dtype=fb.float64).sin().reshape(5, 3).requires_grad_()
    places, starts = ours_of(FLAT), ours_of(STARTS)
    assert fb.autograd.gradgradcheck(
        lambda w: fb.nn.functional.embedding_bag(places, w, starts, mode=mode).square(), (table,)
    )


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("padding", [None, 0, 1])
def test_the_maximum_of_a_bag_is_a_nan_only_where_its_first_row_is(
    padding: int | None, dtype: torch.dtype, device: str
) -> None:
    nan, inf = float("nan"), float("inf")
    rows = torch.tensor([[nan, 1.0, -inf], [2.0, nan, nan], [2.0, 0.0, 3.0], [-inf, -inf, nan]])
    table, places = rows.to(dtype), torch.tensor([0, 1, 2, 1, 3, 0, 1, 3])
    starts = torch.tensor([0, 2, 4, 4, 5])
    arguments = False, 2, False, None, False, padding
    expected = torch.embedding_bag(table, places, starts, *arguments)
    found = fb.embedding_bag(*(ours_of(x, device) for x in (table, places, starts)), *arguments)
    assert_same(found[0], expected[0])
    assert_same(found[3], expected[3])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("mode", ["sum", "mean"])
@pytest.mark.parametrize("starts", [[0, 3, 2], [0, 2, 1, 4], [0, 2, 2, 1]])
def test_bags_that_begin_before_the_one_before_are_refused(
    starts: list[int], mode: str, device: str
) -> None:
    arguments = [ours_of(x, device) for x in (torch.ones(5, 3), FLAT, torch.tensor(starts))]
    with pytest.raises(RuntimeError, match="offsets have to ascend"):
        bag(mode=mode)(fb, *arguments)


@pytest.mark.parametrize("mode", ["sum", "mean"])
@pytest.mark.parametrize("padding", [None, 2])
def test_sparse_gradients_of_bags_are_the_dense_ones(padding: int | None, mode: str) -> None:
    grads = []
    for t in (fb, torch):
        for sparse in (False, True):
            w = t.arange(15.0).reshape(5, 3).sin().requires_grad_()
            places, starts = (x if t is torch else ours_of(x) for x in (FLAT, STARTS))
            result = bag(mode=mode, sparse=sparse, padding_idx=padding)(t, w, places, starts)
            (result * t.arange(12.0).reshape(4, 3)).sum().backward()
            assert w.grad.is_sparse is sparse
            grads.append(w.grad.to_dense() if sparse else w.grad)
    for ours, theirs in zip(grads[:2], grads[2:], strict=True):
        assert_same(ours, theirs, 1e-6)


def test_a_bag_is_one_node_as_in_pytorch() -> None:
    w = fb.ones(5, 3, requires_grad=True)
    for mode in ("sum", "mean", "max"):
        result = bag(mode=mode)(fb, w, ours_of(FLAT), ours_of(STARTS))
        assert result.grad_fn is not None and result.grad_fn.name() == "EmbeddingBagBackward0"


@pytest.mark.parametrize("norm_type", [1.0, 2.0, 3.0])
def test_long_rows_are_shortened_in_the_table_itself_if_they_are_asked_for(
    norm_type: float,
) -> None:
    theirs = torch.arange(15.0).reshape(5, 3) / 4
    ours = ours_of(theirs)
    for t, table, places in ((torch, theirs, PLACES), (fb, ours, ours_of(PLACES))):
        t.nn.functional.embedding(places, table, max_norm=1.5, norm_type=norm_type)
    assert_same(ours, theirs, 1e-6)
    assert ours[4].norm() > 3


def test_a_bag_shortens_rows_too() -> None:
    theirs = torch.arange(15.0).reshape(5, 3) / 4
    ours = ours_of(theirs)
    expected = torch.nn.functional.embedding_bag(FLAT, theirs, STARTS, max_norm=0.5)
    found = fb.nn.functional.embedding_bag(ours_of(FLAT), ours, ours_of(STARTS), max_norm=0.5)
    assert_same((found, ours), (expected, theirs), 1e-6)


def test_shortening_is_not_recorded_and_counts_as_a_write() -> None:
    layer = fb.nn.Embedding(4, 3, max_norm=0.1)
    before = layer.weight._version
    layer(fb.tensor([1])).sum().backward()
    assert layer.weight._version > before
    assert layer.weight.grad[1].tolist() == [1.0, 1.0, 1.0]
    assert layer.weight.is_leaf


ONE_HOT = [([0, 2, 1], -1), ([[0], [3]], 5), (2, -1), ([], 3)]


@pytest.mark.parametrize(("classes", "count"), ONE_HOT)
def test_one_hot_agrees(classes: Any, count: int) -> None:
    given = torch.tensor(classes, dtype=torch.int64)
    expected = torch.nn.functional.one_hot(given, count)
    assert_same(fb.nn.functional.one_hot(ours_of(given), count), expected)


@pytest.mark.parametrize("shape", [(4095,), (4097,), (2, 3000), (1, 1), (0, 3)])
@pytest.mark.parametrize("count", [1, 3])
def test_one_hot_of_few_and_of_many_agrees(shape: tuple[int, ...], count: int) -> None:
    given = torch.arange(torch.Size(shape).numel()).reshape(shape) % count
    expected = torch.nn.functional.one_hot(given, count)
    found = fb.nn.functional.one_hot(ours_of(given), count)
    assert_same(found, expected)
    assert found.is_contiguous()


def long(t: Any, *numbers: int) -> Any:
    return t.tensor(list(numbers), dtype=t.int64)


@pytest.mark.parametrize(
    "call",
    [
        lambda t, w: t.nn.functional.embedding(long(t, 5), w),
        lambda t, w: t.nn.functional.embedding(long(t, -1), w),
        lambda t, w: t.nn.functional.embedding(t.tensor([1.0]), w),
        lambda t, w: t.embedding(w[0], long(t, 1)),
        lambda t, w: t.nn.functional.embedding(long(t, 1), w, padding_idx=7),
        lambda t, w: t.nn.functional.embedding(long(t, 1), w, padding_idx=-7),
        lambda t, w: t.nn.functional.embedding_bag(long(t, 1, 2), w),
        lambda t, w: t.nn.functional.embedding_bag(long(t, 1, 2).reshape(1, 2), w, long(t, 0)),
        lambda t, w: t.nn.functional.embedding_bag(long(t, 1, 2), w, long(t, 1)),
        lambda t, w: t.nn.functional.embedding_bag(long(t, 1, 2), w, long(t, 0, 3)),
        lambda t, w: t.nn.functional.embedding_bag(long(t, 1, 2), w, long(t, 0).reshape(1, 1)),
        lambda t, w: t.nn.functional.embedding_bag(long(t, 1), w, long(t, 0), mode="other"),
        lambda t, w: t.nn.functional.embedding_bag(
            long(t, 1), w, long(t, 0), per_sample_weights=t.ones(1)
        ),
        lambda t, w: t.nn.functional.embedding_bag(
            long(t, 1), w, long(t, 0), mode="sum", per_sample_weights=t.ones(2)
        ),
        lambda t, w: t.nn.functional.embedding_bag(
            long(t, 1), w, long(t, 0), mode="sum", per_sample_weights=t.ones(1).int()
        ),
        lambda t, w: t.nn.functional.embedding_bag(
            long(t, 1), w, long(t, 0), mode="max", scale_grad_by_freq=True
        ),
        lambda t, w: t.nn.functional.embedding_bag(
            long(t, 1), w, long(t, 0), mode="max", sparse=True
        ),
        lambda t, w: t.nn.functional.embedding_bag(long(t, 1).reshape(1, 1, 1), w),
        lambda t, w: t.nn.functional.embedding_bag(t.tensor([1.0]), w, long(t, 0)),
        lambda t, w: t.nn.functional.embedding_bag(long(t, 9), w, long(t, 0)),
        lambda t, w: t.nn.functional.one_hot(long(t, 1, -1)),
        lambda t, w: t.nn.functional.one_hot(long(t, 1, 3), 3),
        lambda t, w: t.nn.functional.one_hot(long(t, 1).int()),
        lambda t, w: t.nn.functional.one_hot(long(t)),
        lambda t, w: t.nn.Embedding(3, 2, padding_idx=3),
        lambda t, w: t.nn.Embedding(3, 2, _weight=w),
        lambda t, w: t.nn.Embedding.from_pretrained(w[0]),
    ],
)
def test_refusals_are_of_one_class(call: Any) -> None:
    check_error(call, (TABLE,))


def test_a_bag_that_begins_before_the_indices_is_refused() -> None:
    """PyTorch reads somewhere, or takes the bag to be empty."""
    with pytest.raises(RuntimeError, match="can not be negative .* got offsets.-1. of -1"):
        fb.nn.functional.embedding_bag(long(fb, 1, 2), fb.ones(5, 3), long(fb, 0, -1))


LAYERS = {
    "Embedding": lambda t: t.nn.Embedding(5, 3),
    "Embedding padding": lambda t: t.nn.Embedding(5, 3, padding_idx=-2),
    "Embedding all": lambda t: t.nn.Embedding(5, 3, 1, 2.0, 3.0, True, True),
    "EmbeddingBag": lambda t: t.nn.EmbeddingBag(5, 3),
    "EmbeddingBag all": lambda t: t.nn.EmbeddingBag(
        5, 3, 2.0, 3.0, True, "sum", padding_idx=-2, sparse=True
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_has_pytorchs_text_and_initial_table(name: str) -> None:
    fb.manual_seed(3), torch.manual_seed(3)
    ours, theirs = LAYERS[name](fb), LAYERS[name](torch)
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert_same(ours.weight, theirs.weight, 1e-6)


def test_layers_look_up_as_the_functions_do() -> None:
    table = torch.arange(15.0).reshape(5, 3)
    ours = fb.nn.Embedding.from_pretrained(ours_of(table), padding_idx=0)
    assert_same(ours(ours_of(PLACES)), table[PLACES])
    assert not ours.weight.requires_grad
    bags = fb.nn.EmbeddingBag.from_pretrained(ours_of(table), freeze=False, mode="max")
    expected = torch.nn.EmbeddingBag.from_pretrained(table, mode="max")(FLAT, STARTS)
    assert_same(bags(ours_of(FLAT), ours_of(STARTS)), expected)
    assert bags.weight.requires_grad


SPARSE = {
    "rows": lambda t, w: t.nn.functional.embedding(long(t, 0, 2, 2), w, sparse=True),
    "matrix of rows": lambda t, w: t.nn.functional.embedding(
        long(t, 0, 2, 2, 4).reshape(2, 2), w, sparse=True
    ),
    "one row": lambda t, w: t.nn.functional.embedding(t.tensor(3), w, sparse=True),
    "no rows": lambda t, w: t.nn.functional.embedding(long(t), w, sparse=True),
    "padding": lambda t, w: t.nn.functional.embedding(long(t, 0, 2, 1), w, -3, sparse=True),
    "padding only": lambda t, w: t.nn.functional.embedding(long(t, 2, 2), w, 2, sparse=True),
    "mean": lambda t, w: t.nn.functional.embedding_bag(
        long(t, 0, 2, 2, 4), w, long(t, 0, 1, 1), sparse=True
    ),
    "sum": lambda t, w: t.nn.functional.embedding_bag(
        long(t, 0, 2, 2, 4), w, long(t, 0, 1, 1), mode="sum", padding_idx=4, sparse=True
    ),
    "weighted sum": lambda t, w: t.nn.functional.embedding_bag(
        *(long(t, 0, 2), w, long(t, 0)),
        mode="sum",
        sparse=True,
        per_sample_weights=t.tensor([2.0, -1.0]).double(),
    ),
}


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("name", SPARSE)
def test_a_sparse_gradient_has_pytorchs_entries_and_accumulates(name: str, times: int) -> None:
    table = torch.arange(15.0).double().sin().reshape(5, 3)
    gradients = []
    for t, leaf in ((torch, table.clone()), (fb, ours_of(table))):
        leaf.requires_grad_()
        for _ in range(times):
            result = SPARSE[name](t, leaf)
            (result * t.arange(1.0, result.numel() + 1).double().reshape(result.shape)).backward(
                t.ones(result.shape).double()
            )
        gradients.append(leaf.grad)
    expected, grad = gradients
    assert grad.is_sparse
    assert grad.is_coalesced() == expected.is_coalesced()
    if times > 1:  # how many entries a sum keeps is not specified
        grad, expected = grad.coalesce(), expected.coalesce()
    assert_same(grad._indices(), expected._indices())
    assert_same(grad._values(), expected._values())


@pytest.mark.parametrize("call", [SPARSE["rows"], SPARSE["padding"]])
def test_a_sparse_gradient_can_be_differentiated(call: Any) -> None:
    table = torch.arange(15.0).double().sin().reshape(5, 3)
    second = []
    for t, leaf in ((torch, table.clone()), (fb, ours_of(table))):
        leaf.requires_grad_()
        (grad,) = t.autograd.grad(call(t, leaf).pow(3).sum(), leaf, create_graph=True)
        second.append(t.autograd.grad(grad.to_dense().pow(2).sum(), leaf)[0].to_dense())
    assert_same(second[1], second[0])


def test_a_sparse_gradient_survives_writes_to_the_numbers() -> None:
    leaf = fb.zeros(4, 2, requires_grad=True)
    numbers = fb.tensor([1, 2])
    result = fb.nn.functional.embedding(numbers, leaf, sparse=True)
    numbers.fill_(3)
    result.sum().backward()
    assert leaf.grad.to_dense()[:, 0].tolist() == [0.0, 1.0, 1.0, 0.0]


def test_sparse_gradients_scaled_by_frequency_are_refused_in_backward() -> None:
    check_error(
        lambda t, w: (
            t.nn.functional.embedding(long(t, 1), w, scale_grad_by_freq=True, sparse=True)
            .sum()
            .backward()
        ),
        (TABLE,),
    )


def test_without_recording_sparse_changes_nothing() -> None:
    layer = fb.nn.Embedding(4, 2, sparse=True)
    with fb.no_grad():
        assert not layer(fb.tensor([1])).requires_grad
    layer.requires_grad_(False)
    assert not layer(fb.tensor([1])).requires_grad


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
@pytest.mark.parametrize(
    "optimizer",
    [
        lambda t, p: t.optim.SGD(p, 0.1),
        lambda t, p: t.optim.SparseAdam(list(p), 0.1),
        lambda t, p: t.optim.Adagrad(p, 0.1),
    ],
)
@pytest.mark.parametrize("bags", [False, True])
def test_layers_with_sparse_gradients_train_as_pytorchs(bags: bool, optimizer: Any) -> None:
    losses = []
    for t in (torch, fb):
        t.manual_seed(3)
        if bags:
            layer = t.nn.EmbeddingBag(6, 3, mode="sum", sparse=True, padding_idx=0)
        else:
            layer = t.nn.Embedding(6, 3, padding_idx=0, sparse=True)
        steps, seen = optimizer(t, layer.parameters()), []
        for i in range(5):
            numbers = t.tensor([[i, (2 * i) % 6], [0, 5]])
            loss = (layer(numbers) - 1).pow(2).sum()
            steps.zero_grad()
            loss.backward()
            steps.step()
            seen.append(loss.item())
        losses.append(seen)
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)
