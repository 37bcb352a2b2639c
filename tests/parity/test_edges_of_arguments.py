"""Arguments at the edge of what is allowed: refused where PyTorch refuses, else with its result."""

from __future__ import annotations

import itertools

import pytest

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

import flambeau as fb  # noqa: E402

BATCHES = ((), (0,), (1,), (3,), (0, 3), (1, 3), (2, 3), (2, 0), (0, 0), (2, 3, 1))
REDUCTIONS = ("none", "sum", "mean")


def _done(call, t):
    try:
        return call(t)
    except Exception as error:
        return type(error)


def _listed(x):
    if isinstance(x, tuple):
        return [_listed(part) for part in x]
    return [list(x.shape), str(x.dtype), x.detach().double().flatten().tolist()]


def approximately(found, expected):
    return found == pytest.approx(expected, rel=1e-6, abs=1e-6, nan_ok=True)


@pytest.mark.parametrize("name", ["zeros", "ones", "empty", "eye", "full", "arange", "linspace"])
def test_a_dtype_other_than_that_of_out_is_refused(name):
    arguments = {"full": ((2,), 1), "linspace": (0, 1, 2)}.get(name, (2,))
    for t in (torch, fb):
        with pytest.raises(RuntimeError, match=r"dtype Long does not match dtype of out parameter"):
            getattr(t, name)(*arguments, dtype=t.int64, out=t.zeros(2))
        out = t.zeros(2, dtype=t.int64)
        assert getattr(t, name)(*arguments, out=out) is out


@pytest.mark.parametrize(
    "text",
    "[2,3] [True,2] [np.int64(3)] [np.array(2)] [np.array([2])] [2.0] [np.float64(2)] ['a'] [None]"
    " [t.tensor(2)] [t.tensor(True)] [t.tensor([2])] [t.tensor([[2]])] [t.tensor(2.0)]"
    " [t.tensor([2,3])] range(3) t.ones(2,3).shape ()".split(),
)
def test_sizes_are_whole_numbers(text):
    def made(t):
        return t.Size(eval(text, {"t": t, "np": np}))

    expected, found = _done(made, torch), _done(made, fb)
    if isinstance(expected, type):
        assert found is expected
    else:
        assert (tuple(found), set(map(type, found)) | {int}) == (tuple(expected), {int})


@pytest.mark.parametrize("name", ["baddbmm", "addbmm", "addmv", "addmm"])
@pytest.mark.parametrize("beta", [1, 1.0, 1.5, 2.7, -1.5, 0.0])
@pytest.mark.parametrize("alpha", [1, 1.5, -2.7])
def test_factors_of_integer_products_are_cut(name, beta, alpha):
    shapes = {"baddbmm": [(2, 2, 2)] * 3, "addbmm": [(2, 2)] + [(2, 2, 2)] * 2}
    shapes |= {"addmv": [(2,), (2, 2), (2,)], "addmm": [(2, 2)] * 3}

    def call(t):
        operands = [t.full(shape, 3 + i) for i, shape in enumerate(shapes[name])]
        return getattr(t, name)(*operands, beta=beta, alpha=alpha)

    assert _listed(call(fb)) == _listed(call(torch))


@pytest.mark.parametrize("name", ["multi_margin_loss", "multilabel_margin_loss"])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_margin_losses_of_few_elements(name, reduction):
    multi = name == "multi_margin_loss"
    for shape, target in itertools.product(BATCHES, [*BATCHES, None]):
        if target is None:
            target = shape[:1] if multi else shape
        if 0 in shape and reduction != "none":
            continue  # PyTorch returns what lay in memory

        def call(t, shape=shape, target=target):
            given, classes = t.full(shape, 0.25), t.zeros(target, dtype=t.int64)
            return getattr(t.nn.functional, name)(given, classes, reduction=reduction)

        expected, found = _done(call, torch), _done(call, fb)
        if isinstance(expected, type) or isinstance(found, type):
            assert found is expected, (shape, target)
        else:
            assert list(found.shape) == list(expected.shape), (shape, target)
            assert approximately(found.tolist(), expected.tolist()), (shape, target)


@pytest.mark.parametrize("mean", [False, True])
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("eps", [0.0, 1e-5, -1.0])
def test_running_statistics_come_together_and_eps_is_positive(mean, training, eps):
    def call(t):
        given = (t.zeros(3), None) if mean else (None, t.ones(3))
        return t.nn.functional.batch_norm(t.ones(2, 3), *given, training=training)

    def small(t):
        x = t.arange(6.0).reshape(2, 3)
        return t.nn.functional.batch_norm(x, None, None, training=True, eps=eps)

    for form in (call, small):
        expected, found = _done(form, torch), _done(form, fb)
        if isinstance(expected, type):
            assert found is expected
        else:
            assert approximately(found.flatten().tolist(), expected.flatten().tolist())


NORMS = {"BatchNorm1d": (4, 3, 2), "BatchNorm2d": (2, 3, 2, 2), "InstanceNorm1d": (2, 3, 4)}
NORMS |= {"InstanceNorm2d": (2, 3, 2, 2)}


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("momentum", [None, 0.0, 0.1, 1.0])
@pytest.mark.parametrize(("affine", "tracked"), list(itertools.product((False, True), repeat=2)))
def test_buffers_of_normalisation_after_three_batches(name, momentum, affine, tracked):
    shape = NORMS[name]
    states = []
    for t in (torch, fb):
        options = {"momentum": momentum, "affine": affine, "track_running_stats": tracked}
        layer = getattr(t.nn, name)(3, **options)
        x = t.arange(float(np.prod(shape))).mul(1.7).sin().reshape(shape)
        for given in (x, x[:1].expand(shape) * 2, x * 3 - 1):
            layer(given)
        layer.eval()
        found = [layer(x).flatten().tolist()]
        states.append(found + [b.flatten().tolist() for b in layer.buffers()])
    for a, b in zip(*states, strict=True):
        assert a == pytest.approx(b, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("key", ["np.array(True)", "(0, np.array(False))", "np.array(2)"])
def test_numpys_values_without_dimensions_index_as_in_pytorch(key):
    found = []
    for lib in (fb, torch):
        x = lib.arange(9.0).reshape(3, 3)
        where = eval(key, {"np": np})
        y = x.clone()
        y[where] = -1.0
        found.append((x[where].tolist(), y.tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("steps", [3, 7, 50, 20_000])
def test_zeros_of_linspace_have_the_sign_of_pytorchs(steps):
    for bounds in ((0, -1), (-1, 0), (0, 0), (-0.0, -1.0), (0.0, 1.0), (1, 0)):
        ours, theirs = (t.linspace(*bounds, steps).numpy() for t in (fb, torch))
        assert np.array_equal(np.signbit(ours), np.signbit(theirs)), bounds
        assert (ours[0], ours[-1]) == (theirs[0], theirs[-1])


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "int32", "int64", "bool", "float32"])
@pytest.mark.parametrize("exponent", [0, 1, 3, 200, -1, True, 2.0])
def test_powers_by_plain_numbers_are_pytorchs(kind, exponent):
    def call(t):
        x = t.tensor([-3, 0, 1, 2, 100]).to(getattr(t, kind))
        return _listed(x**exponent), _listed(x[1] ** exponent)

    ours, theirs = _done(call, fb), _done(call, torch)
    assert repr(ours) == repr(theirs)


@pytest.mark.parametrize("kind", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("exponent", [-0.5, -1, -2, 0.5, 0, 1, 2, 3])
@pytest.mark.parametrize("writes", [False, True])
def test_special_powers_of_the_ends_of_the_line_are_pytorchs(kind, exponent, writes):
    def call(t):
        x = t.tensor([0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, 4.0] * 400)
        x = x.to(getattr(t, kind))
        found = x.pow_(exponent) if writes else x**exponent
        return _listed(found[:7]), found.unique().numel(), _listed(x[1:2] ** exponent)

    ours, theirs = _done(call, fb), _done(call, torch)
    assert type(ours) is tuple
    assert repr(ours) == repr(theirs)


def test_convolutions_that_were_looked_at_are_looked_at_again_with_other_arguments():
    def call(t, **other):
        given = {"dtype": t.float32, "bias": 2, "stride": 1, "groups": 1} | other
        x, w = t.ones(1, 2, 4, 4), t.ones(2, 2, 1, 1, dtype=given["dtype"])
        bias = t.ones(given["bias"])
        return t.nn.functional.conv2d(x, w, bias, given["stride"], groups=given["groups"])

    for t in (fb, torch):
        assert call(t).shape == (1, 2, 4, 4)
        for other in ({"dtype": t.float64}, {"bias": 3}, {"stride": 0}, {"groups": 2}):
            for _ in range(2):
                assert _done(lambda t, other=other: call(t, **other), t) is RuntimeError


SMALL_CALLS = [
    *("copysign(i, -7)", "copysign(i, -7.0)", "copysign(x, -7)", "copysign(x.double(), -7)"),
    *(f"unravel_index(i.to(t.{kind}), (2, 300))" for kind in ("uint8", "int16", "int32", "int64")),
    *("diff(i, 0, 0, i, i)", "diff(x, 0, append=x)", "diff(x, 1, append=x)"),
    *("gradient(x, spacing=None)", "gradient(x, spacing=None, dim=0, edge_order=2)"),
    *(f"tensor(1).to(t.{kind}).sum_to_size(())" for kind in ("bool", "uint8", "int32", "float64")),
    *("linalg.vander(t.tensor(3), N=3)", "linalg.vander(t.tensor(3.0))", "linalg.vander(x, N=2)"),
    *("take_along_dim(x, i, 0)", "take_along_dim(x, -5 * i, 0)", "take_along_dim(x, -i)"),
    *("nn.functional.pairwise_distance(i, i + 1)", "nn.functional.pairwise_distance(i, x, 1)"),
    *("nn.functional.pairwise_distance(i > 1, i > 2)", "nn.functional.cosine_similarity(i, i)"),
    "nn.functional.triplet_margin_loss(i[None], i[None] + 1, i[None] - 3)",
    "nn.functional.margin_ranking_loss(i, i + 1, i)",
    "nn.functional.margin_ranking_loss(i, i + 1, i, margin=2, reduction='none')",
    *("hstack([])", "vstack([])", "dstack([])", "column_stack([])", "row_stack([])", "cat([])"),
    *(
        "amax(t.zeros(5, 0))",
        "amax(t.zeros(5, 0), 1)",
        "amax(t.zeros(5, 0), 0)",
        "amin(t.zeros(0))",
    ),
    *("aminmax(t.zeros(5, 0))", "aminmax(t.zeros(5, 0), dim=1)", "aminmax(t.zeros(5, 0), dim=0)"),
    *("narrow(x, 0, t.tensor(1), 2)", "narrow(x, 0, i[:1], 2)", "narrow(x, 0, i, 2)"),
    *("narrow(x, 0, t.tensor(True), 2)", "narrow(x, 0, t.tensor(1, dtype=t.uint8), 2)"),
    *(
        f"{half}_indices(2, 3, dtype=t.{kind})"
        for half in ("tril", "triu")
        for kind in ("bool", "uint8", "int16", "int32", "int64", "float32")
    ),
]


@pytest.mark.parametrize("text", SMALL_CALLS)
def test_small_calls_end_as_in_pytorch(text):
    def call(t):
        names = {"t": t, "x": t.tensor([3.0, 1.0, 6.0]), "i": t.tensor([1, 2, 0])}
        found = eval(f"t.{text}", names)
        return [_listed(x) for x in (found if isinstance(found, tuple) else (found,))]

    ours, theirs = _done(call, fb), _done(call, torch)
    if isinstance(theirs, type):
        assert ours is theirs
    else:
        assert [x[:2] for x in ours] == [x[:2] for x in theirs]
        assert all(approximately(x[2], y[2]) for x, y in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("order", [0, 1, -1, 2, -2, 0.5, float("inf"), -float("inf"), "fro", "nuc"])
@pytest.mark.parametrize("shape", [(0,), (0, 0), (0, 3), (3, 0), (2, 0, 3), (2, 3, 0), (0, 2, 2)])
def test_norms_of_nothing_are_pytorchs(order, shape):
    def call(t):
        dim = (-2, -1) if len(shape) > 1 else None
        return [
            _listed(t.linalg.norm(t.zeros(shape), order, dim=dim, keepdim=keepdim))
            for keepdim in (False, True)
        ]

    assert _done(call, fb) == _done(call, torch)


EINSUMS = ["ij,k->ik", "ij,jk->ik", "ij,ij->i", "ij->i", "ijk->jk", "...ik,...j->ij", "ij,kl->"]


@pytest.mark.parametrize("kind", ["bool", "uint8", "int16", "int64", "float32"])
@pytest.mark.parametrize("equation", EINSUMS)
def test_sums_of_small_integers_in_einsum_are_pytorchs(equation, kind):
    def call(t):
        letters = equation.replace("...", "").partition("->")[0].split(",")
        operands = [t.full((3,) * len(sub), 100).to(getattr(t, kind)) for sub in letters]
        return _listed(t.einsum(equation, *operands))

    ours, theirs = _done(call, fb), _done(call, torch)
    assert ours == theirs or isinstance(theirs, type)
