"""Recurrent layers and packed sequences agree with PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import flambeau as fb  # noqa: E402

LIBRARIES = (fb, torch)
KINDS = ("RNN", "GRU", "LSTM")
SETTINGS: list[dict[str, Any]] = [
    {},
    {"num_layers": 2, "bidirectional": True},
    {"bias": False, "batch_first": True},
    {"num_layers": 2, "dropout": 0.4},
]
FORMS = ("padded", "unbatched", "packed", "packed unsorted", "with state", "packed with state")


def made(lib: Any, kind: str, **settings: Any) -> Any:
    lib.manual_seed(3)
    return getattr(lib.nn, kind)(3, 4, dtype=lib.float64, **settings)


def flat(result: Any) -> list[Any]:
    if isinstance(result, (tuple, list)):
        return [x for part in result for x in flat(part)]
    return [] if result is None else [result]


def numbers(tensor: Any) -> tuple[tuple[int, ...], str, list[float]]:
    return tuple(tensor.shape), str(tensor.dtype), tensor.detach().flatten().tolist()


def assert_same(ours: Any, theirs: Any) -> None:
    ours, theirs = flat(ours), flat(theirs)
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        (shape, dtype, mine), (shape2, dtype2, yours) = numbers(a), numbers(b)
        assert (shape, dtype) == (shape2, dtype2)
        assert mine == pytest.approx(yours, rel=1e-9, abs=1e-9)


def state_of(lib: Any, layer: Any, batch: int | None) -> Any:
    count = layer.num_layers * (1 + layer.bidirectional)
    shape = (count, layer.proj_size or layer.hidden_size)
    cell = (count, layer.hidden_size)
    if batch is not None:
        shape, cell = (shape[0], batch, shape[1]), (cell[0], batch, cell[1])
    hidden = lib.randn(shape, dtype=lib.float64).requires_grad_()
    if layer.mode != "LSTM":
        return hidden
    return hidden, lib.randn(cell, dtype=lib.float64).requires_grad_()


def given(lib: Any, layer: Any, form: str) -> tuple[Any, Any, Any]:
    """The differentiated leaf, and the arguments of a call."""
    lib.manual_seed(5)
    rnn = lib.nn.utils.rnn
    shape = (4, 3) if form == "unbatched" else (3, 4, 3) if layer.batch_first else (4, 3, 3)
    leaf = lib.randn(shape, dtype=lib.float64).requires_grad_()
    state = state_of(lib, layer, 3) if "state" in form else None
    if "packed" not in form:
        return leaf, leaf, state
    lengths = [2, 4, 1] if "unsorted" in form else [4, 2, 1]
    packed = rnn.pack_padded_sequence(
        leaf, lengths, layer.batch_first, enforce_sorted="unsorted" not in form
    )
    return leaf, packed, state


def outcome(lib: Any, kind: str, settings: dict[str, Any], form: str) -> tuple[Any, Any, Any]:
    """Results, gradients, and the gradients of a sum of squared gradients."""
    layer = made(lib, kind, **settings)
    leaf, *call = given(lib, layer, form)
    lib.manual_seed(11)
    results = flat(layer(*call))
    leaves = [leaf, *flat(call[1]), *layer.parameters()]
    total = sum(
        (r.double() * lib.arange(r.numel(), dtype=lib.float64).cos().reshape(r.shape)).sum()
        for r in results
        if r.requires_grad
    )
    first = lib.autograd.grad(total, leaves, create_graph=True)
    second = lib.autograd.grad(sum((g * g).sum() for g in first), leaves, allow_unused=True)
    return (
        results,
        first,
        [lib.zeros_like(x) if g is None else g for x, g in zip(leaves, second, strict=True)],
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_layers_agree_in_results_and_both_derivatives(kind, settings, form):
    ours, theirs = (outcome(lib, kind, settings, form) for lib in LIBRARIES)
    for mine, reference in zip(ours, theirs, strict=True):
        assert_same(mine, reference)


@pytest.mark.parametrize("form", FORMS)
def test_projected_lstm_agrees(form):
    settings = {"proj_size": 2, "num_layers": 2, "bidirectional": True}
    ours, theirs = (outcome(lib, "LSTM", settings, form) for lib in LIBRARIES)
    for mine, reference in zip(ours, theirs, strict=True):
        assert_same(mine, reference)


def test_relu_layers_agree():
    ours, theirs = (outcome(lib, "RNN", {"nonlinearity": "relu"}, "packed") for lib in LIBRARIES)
    for mine, reference in zip(ours, theirs, strict=True):
        assert_same(mine, reference)


@pytest.mark.parametrize("settings", [{}, {"num_layers": 2, "bidirectional": True, "bias": False}])
@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_gives_the_same_names_weights_and_repr(kind, settings):
    ours, theirs = (made(lib, kind, **settings) for lib in LIBRARIES)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert_same(list(ours.parameters()), list(theirs.parameters()))
    assert repr(ours) == repr(theirs)
    assert_same(ours.all_weights, theirs.all_weights)
    assert ours.flatten_parameters() is None


@pytest.mark.parametrize("batched", [True, False])
@pytest.mark.parametrize("settings", [{}, {"bias": False}])
@pytest.mark.parametrize("kind", ["RNNCell", "GRUCell", "LSTMCell"])
def test_cells_agree(kind, settings, batched):
    results = []
    for lib in LIBRARIES:
        lib.manual_seed(2)
        cell = getattr(lib.nn, kind)(3, 4, dtype=lib.float64, **settings)
        x = lib.randn((2, 3) if batched else (3,), dtype=lib.float64).requires_grad_()
        first = cell(x)
        second = cell(x, first)
        loss = sum((t * t).sum() for t in flat(second))
        grads = lib.autograd.grad(loss, [x, *cell.parameters()])
        results.append((repr(cell), [first, second, grads]))
    assert results[0][0] == results[1][0]
    assert_same(results[0][1], results[1][1])


def test_functions_of_the_library_agree_in_both_forms():
    for name in ("lstm", "gru", "rnn_tanh", "rnn_relu"):
        found = []
        for lib in LIBRARIES:
            kind = name.split("_")[0].upper()
            layer = made(lib, kind)
            state = state_of(lib, layer, 3)
            x = lib.ones(4, 3, 3, dtype=lib.float64)
            weights = list(layer.parameters())
            settings = (state, weights, True, 1, 0.0, False, False)
            function = getattr(lib, name)
            sizes = lib.tensor([3, 3, 3, 3])
            found.append(
                [function(x, *settings, False), function(x.reshape(12, 3), sizes, *settings)]
            )
        state_free = [flat(results) for results in found]
        assert [t.shape for t in state_free[0]] == [t.shape for t in state_free[1]]


ERRORS = [
    lambda lib: lib.nn.LSTM(3, 4)(lib.ones(2, 2, 5)),
    lambda lib: lib.nn.LSTM(3, 4)(lib.ones(3)),
    lambda lib: lib.nn.GRU(3, 4)(lib.ones(3)),
    lambda lib: lib.nn.RNN(3, 4)(lib.ones(3)),
    lambda lib: lib.nn.LSTM(3, 4)(lib.ones(2, 2, 3), (lib.ones(3), lib.ones(4))),
    lambda lib: lib.nn.LSTM(3, 4)(lib.ones(2, 2, 3), (lib.ones(1, 2, 4), lib.ones(1, 3, 4))),
    lambda lib: lib.nn.LSTM(3, 4)(lib.ones(2, 3), (lib.ones(1, 1, 4), lib.ones(1, 1, 4))),
    lambda lib: lib.nn.GRU(3, 4)(lib.ones(2, 2, 3), lib.ones(1, 4)),
    lambda lib: lib.nn.GRU(3, 4)(lib.ones(2, 2, 3), lib.ones(1, 3, 4)),
    lambda lib: lib.nn.LSTM(3, 4)(lib.ones(2, 2, 3, dtype=lib.float64)),
    lambda lib: lib.nn.LSTM(3, 4)(lib.ones(0, 2, 3)),
    lambda lib: lib.nn.GRU(3, 4, proj_size=2),
    lambda lib: lib.nn.LSTM(3, 4, proj_size=4),
    lambda lib: lib.nn.LSTM(3, 4, proj_size=-1),
    lambda lib: lib.nn.LSTM(3, 0),
    lambda lib: lib.nn.LSTM(3, 4.0),
    lambda lib: lib.nn.LSTM(3, 4, 0),
    lambda lib: lib.nn.LSTM(3, 4, dropout=2),
    lambda lib: lib.nn.RNN(3, 4, nonlinearity="x"),
    lambda lib: lib.nn.RNNCell(3, 4, nonlinearity="x")(lib.ones(1, 3)),
    lambda lib: lib.nn.GRUCell(3, 4)(lib.ones(2, 2, 3)),
    lambda lib: lib.nn.LSTMCell(3, 4)(lib.ones(2, 4)),
    lambda lib: lib.nn.GRUCell(3, 4)(lib.ones(2, 3), lib.ones(3, 4)),
    lambda lib: lib.nn.utils.rnn.pad_sequence([]),
    lambda lib: lib.nn.utils.rnn.pad_sequence(3),
    lambda lib: lib.nn.utils.rnn.pad_sequence([lib.ones(2)], padding_side="x"),
    lambda lib: lib.nn.utils.rnn.pack_padded_sequence(lib.ones(2, 2), [1, 2]),
    lambda lib: lib.nn.utils.rnn.pack_padded_sequence(lib.ones(2, 2), [1]),
    lambda lib: lib.nn.utils.rnn.pack_padded_sequence(lib.ones(2, 2), [1, 0]),
    lambda lib: lib.nn.utils.rnn.pack_padded_sequence(lib.ones(2, 2, 0), [2, 1]),
    lambda lib: lib.nn.utils.rnn.pad_packed_sequence(
        lib.nn.utils.rnn.pack_sequence([lib.ones(3)]), total_length=2
    ),
]


@pytest.mark.filterwarnings("ignore:dropout option")
@pytest.mark.parametrize("call", ERRORS, ids=range(len(ERRORS)))
def test_errors_have_the_class_and_text_of_pytorch(call):
    with pytest.raises(Exception) as theirs:  # noqa: PT011 - whatever PyTorch raises
        call(torch)
    with pytest.raises(type(theirs.value)) as ours:
        call(fb)
    assert str(ours.value)[:25].rstrip(".") == str(theirs.value)[:25].rstrip(".")


def test_packing_and_padding_agree():
    found = []
    for lib in LIBRARIES:
        rnn = lib.nn.utils.rnn
        sequences = [lib.arange(n * 2).reshape(n, 2) + 10 * n for n in (2, 4, 1)]
        packed = rnn.pack_sequence(sequences, enforce_sorted=False)
        found.append(
            [
                *(
                    rnn.pad_sequence(sequences, b, 7, side)
                    for b in (False, True)
                    for side in ("left", "right")
                ),
                *(packed.data, packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices),
                *(
                    rnn.pad_packed_sequence(packed, b, -1, total)
                    for b in (False, True)
                    for total in (None, 6)
                ),
                rnn.unpack_sequence(packed),
                rnn.invert_permutation(packed.sorted_indices),
                packed.to(lib.float32).data,
                packed.double().data,
                packed.short().data,
            ]
        )
    assert_same(*found)


def test_sequences_that_differ_beyond_their_length_are_refused():
    for lib in LIBRARIES:
        with pytest.raises(RuntimeError):
            lib.nn.utils.rnn.pad_sequence([lib.ones(2, 3), lib.ones(1, 4)])


def test_states_of_sequences_that_are_over_are_kept():
    layer = made(fb, "GRU")
    x = fb.randn(4, 2, 3, dtype=fb.float64)
    packed = fb.nn.utils.rnn.pack_padded_sequence(x, [4, 2])
    padded, lengths = fb.nn.utils.rnn.pad_packed_sequence(layer(packed)[0])
    final = layer(packed)[1]
    assert lengths.tolist() == [4, 2]
    assert final[0, 1].tolist() == padded[1, 1].tolist()
    assert padded[2:, 1].abs().sum().item() == 0
