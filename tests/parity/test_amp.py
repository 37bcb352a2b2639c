"""Mixed precision beside PyTorch: dtypes of every function on its lists, and training."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import flambeau as fb
import op_parity
from flambeau.amp import _lists
from op_parity_page import by_name, judged
from oracle import ours_of

torch = pytest.importorskip("torch")

GROUPS = by_name()
LISTED = sorted(name for name in _lists.ON_CPU if name in GROUPS)
OTHERS = "add mul exp log softmax sum mean norm einsum tensordot mv dot cumsum layer_norm".split()
NARROW = ("bfloat16", "float16")


def _dtypes(library, case, values, convert, narrow):
    with library.autocast("cpu", dtype=getattr(library, narrow)):
        outcome = op_parity._run(library, case, values, convert, False)
    if outcome.error is not None:
        return None
    return [str(r.dtype) for r in outcome.results if hasattr(r, "dtype")]


def _differing(name, narrow):
    found = []
    for case in GROUPS[name]:
        if case.out or case.layout != "contiguous" or case.dtype not in ("float32", narrow):
            continue
        values = {
            letter: op_parity._values(letter, case)
            for letter in op_parity._letters(case.call)
            if letter != "d"
        }
        theirs = _dtypes(torch, case, values, lambda x: x.clone(), narrow)
        # oneDNN has no LSTM in float16 on some processors, and nobody else has complex32.
        if not theirs or "torch.complex32" in theirs:
            continue
        ours = _dtypes(fb, case, values, op_parity.to_ours, narrow)
        if ours != theirs and judged(case)[0] == "":
            found.append((str(case), theirs, ours))
    return found


@pytest.mark.parametrize("narrow", NARROW)
@pytest.mark.parametrize("name", [*LISTED, *[n for n in OTHERS if n in GROUPS and n not in LISTED]])
def test_every_listed_function_gives_the_dtypes_of_pytorch(name, narrow):
    assert _differing(name, narrow) == []


LOSSES = [
    ("mse_loss", ((3, 4), (3, 4))),
    ("l1_loss", ((3, 4), (3, 4))),
    ("smooth_l1_loss", ((3, 4), (3, 4))),
    ("huber_loss", ((3, 4), (3, 4))),
    ("kl_div", ((3, 4), (3, 4))),
    ("soft_margin_loss", ((3, 4), (3, 4))),
    ("poisson_nll_loss", ((3, 4), (3, 4))),
    ("hinge_embedding_loss", ((3, 4), (3, 4))),
    ("binary_cross_entropy_with_logits", ((3, 4), (3, 4))),
    ("triplet_margin_loss", ((3, 4), (3, 4), (3, 4))),
    ("cosine_similarity", ((3, 4), (3, 4))),
    ("avg_pool3d", ((1, 2, 4, 4, 4), 2)),
    ("max_pool3d", ((1, 2, 4, 4, 4), 2)),
    ("avg_pool2d", ((1, 2, 4, 4), 2)),
    ("interpolate", ((1, 2, 4, 4), 2)),
    ("pad", ((2, 4, 4), (1, 1), "reflect")),
    ("pad", ((1, 2, 4, 4), (1, 1, 1, 1), "replicate")),
    ("pad", ((1, 2, 4, 4), (1, 1), "constant")),
    ("pad", ((2, 4, 4), (1, 1), "circular")),
    ("conv1d", ((1, 2, 5), (3, 2, 3), (3,))),
    ("conv_transpose3d", ((1, 2, 3, 3, 3), (2, 2, 2, 2, 2))),
    ("linear", ((3, 4), (2, 4), (2,))),
    ("prelu", ((3, 4), (1,))),
    ("scaled_dot_product_attention", ((1, 2, 3, 4), (1, 2, 3, 4), (1, 2, 3, 4))),
    ("grid_sample", ((1, 2, 4, 4), (1, 3, 3, 2))),
    ("layer_norm", ((3, 4), (4,))),
    ("softplus", ((3, 4),)),
    ("gelu", ((3, 4),)),
]


@pytest.mark.parametrize("narrow", NARROW)
@pytest.mark.parametrize(("name", "operands"), LOSSES)
def test_functionals_give_the_dtypes_and_values_of_pytorch(name, operands, narrow):
    torch.manual_seed(0)
    shapes = [
        isinstance(o, tuple) and not (name in ("pad", "layer_norm") and i)
        for i, o in enumerate(operands)
    ]
    for wide in (True, False):
        theirs = [
            torch.rand(o).to(torch.float32 if wide else getattr(torch, narrow)) if s else o
            for o, s in zip(operands, shapes, strict=True)
        ]
        ours = [ours_of(t) if isinstance(t, torch.Tensor) else t for t in theirs]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with torch.autocast("cpu", dtype=getattr(torch, narrow)):
                expected = getattr(torch.nn.functional, name)(*theirs)
            with fb.autocast("cpu", dtype=getattr(fb, narrow)):
                found = getattr(fb.nn.functional, name)(*ours)
        assert str(found.dtype) == str(expected.dtype)
        tolerance = 2e-2 if narrow == "bfloat16" else 4e-3
        values = torch.tensor(found.tolist())
        torch.testing.assert_close(values, expected.float(), rtol=tolerance, atol=tolerance)


def _mlp(nn):
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.LayerNorm(16), nn.Linear(16, 3))


def _cnn(nn):
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(16, 3),
    )  # fmt: skip


def _transformer(nn):
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    return nn.Sequential(layer, nn.Flatten(), nn.Linear(40, 3))


def _recurrent(kind):
    def make(nn):
        class Last(nn.Module):
            def __init__(self):
                super().__init__()
                self.cell = getattr(nn, kind)(5, 8, batch_first=True)
                self.head = nn.Linear(8, 3)

            def forward(self, x):
                return self.head(self.cell(x)[0][:, -1])

        return Last()

    return make


MODELS = {
    "mlp": (_mlp, (4, 6)),
    "cnn": (_cnn, (4, 1, 6, 6)),
    "transformer": (_transformer, (4, 5, 8)),
    "LSTM": (_recurrent("LSTM"), (4, 7, 5)),
    "GRU": (_recurrent("GRU"), (4, 7, 5)),
    "RNN": (_recurrent("RNN"), (4, 7, 5)),
}


def _losses(library, model, x, y, narrow, steps):
    optimizer = library.optim.Adam(model.parameters(), lr=0.01)
    scaler = library.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=3)
    found = []
    for _ in range(steps):
        optimizer.zero_grad()
        with library.autocast("cpu", dtype=getattr(library, narrow)):
            loss = library.nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        library.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        found.append(loss.item())
    return found, scaler.state_dict(), str(loss.dtype)


@pytest.mark.parametrize("narrow", NARROW)
@pytest.mark.parametrize("name", MODELS)
def test_training_takes_the_course_of_pytorch(name, narrow, monkeypatch):
    make, shape = MODELS[name]
    torch.manual_seed(1)
    theirs, ours = make(torch.nn), make(fb.nn)
    ours.load_state_dict({k: ours_of(v) for k, v in theirs.state_dict().items()})
    x, y = torch.randn(shape), torch.randint(3, (shape[0],))
    # oneDNN, on which PyTorch stands, has not on every processor an LSTM of short floats.
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", name != "LSTM")
    expected, state, dtype = _losses(torch, theirs, x, y, narrow, 8)
    found, mine, kind = _losses(fb, ours, ours_of(x), ours_of(y), narrow, 8)
    assert found[-1] < found[0] and kind == dtype and mine == state
    tolerance = 5e-2 if narrow == "bfloat16" else 1e-2
    assert found == pytest.approx(expected, rel=tolerance, abs=tolerance)


@pytest.mark.parametrize("first", [0, 1, 2])
@pytest.mark.parametrize("second", [0, 1, 2])
def test_inner_products_are_narrow_where_they_are_products_of_matrices(first, second):
    said = []
    for library in (fb, torch):
        x, y = library.ones([3] * first), library.ones([3] * second)
        with library.autocast("cpu"):
            said.append((str(library.inner(x, y).dtype), str(library.inner(x, other=y).dtype)))
    assert said[0] == said[1]


@pytest.mark.parametrize("kind", ["utils", "parametrizations"])
def test_spectral_norms_iterate_in_the_dtype_of_the_weight(kind):
    said = []
    for library in (fb, torch):
        library.manual_seed(0)
        home = library.nn.utils if kind == "utils" else library.nn.utils.parametrizations
        layer = home.spectral_norm(library.nn.Linear(4, 3))
        with library.autocast("cpu"):
            result = layer(library.ones(2, 4))
            said.append((str(result.dtype), str(layer.weight.dtype), layer.weight.tolist()))
    assert said[0][:2] == said[1][:2]
    np.testing.assert_allclose(said[0][2], said[1][2], rtol=1e-5)
