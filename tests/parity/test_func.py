"""Function transforms give what PyTorch's give."""

from __future__ import annotations

import importlib
import warnings

import pytest

import flambeau as fb

torch = pytest.importorskip("torch")


def both(program, *arrays):
    """The numbers that a program of (library, `func`, *tensors) gives on both."""
    found = []
    for lib in (fb, torch):
        func = importlib.import_module(f"{lib.__name__}.func")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = program(lib, func, *[lib.tensor(a, dtype=lib.float64) for a in arrays])
        leaves = importlib.import_module(f"{lib.__name__}.utils._pytree").tree_leaves(result)
        found.append([(tuple(x.shape), x.requires_grad, x.detach().tolist()) for x in leaves])
    return found


def rows(shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).tolist()


X, Y = rows((4, 3)), rows((3, 3), 1)
IMAGES, FILTERS = rows((3, 2, 2, 5, 5), 2), rows((3, 4, 2, 3, 3), 3)


def layer(lib, weights, x):
    return lib.tanh(x @ weights["w"] + weights["b"])


def loss(lib, weights, x):
    return (layer(lib, weights, x) ** 2).sum()


def weights_of(lib, y):
    return {"w": y, "b": y[0]}


PROGRAMS = {
    "gradient": lambda lib, f, x, y: f.grad(lambda x: (x.sin() @ y).prod(1).sum())(x),
    "several arguments": lambda lib, f, x, y: f.grad(
        lambda a, b: (a @ b).exp().mean(), argnums=(0, 1)
    )(x, y),
    "value and aux": lambda lib, f, x, y: f.grad_and_value(
        lambda a: ((a * a).sum(), {"a": a.sum(0)}), has_aux=True
    )(x),
    "per-sample gradients": lambda lib, f, x, y: f.vmap(
        f.grad(lambda w, row: loss(lib, w, row)), in_dims=(None, 0)
    )(weights_of(lib, y), x),
    "jacobian, reverse": lambda lib, f, x, y: f.jacrev(lambda a: lib.softmax(a @ y, -1))(x),
    "jacobian, forward": lambda lib, f, x, y: f.jacfwd(lambda a: lib.softmax(a @ y, -1))(x),
    "jacobian of trees": lambda lib, f, x, y: f.jacrev(
        lambda w, a: {"out": layer(lib, w, a), "norm": w["w"].norm()}, argnums=(0, 1)
    )(weights_of(lib, y), x),
    "hessian": lambda lib, f, x, y: f.hessian(lambda a: loss(lib, weights_of(lib, y), a))(x[0]),
    "hessian of a batch": lambda lib, f, x, y: f.vmap(
        f.hessian(lambda a: loss(lib, weights_of(lib, y), a))
    )(x),
    "vjp": lambda lib, f, x, y: f.vjp(lambda a: (a @ y, a.sum()), x)[1]((x, x.sum())),
    "jvp": lambda lib, f, x, y: f.jvp(lambda a, b: lib.logsumexp(a @ b, 1), (x, y), (x, y)),
    "jvp of limits that are met": lambda lib, f, x, y: f.jvp(
        lib.clamp, (y, y * 1, y @ y), (y, y + 1, y - 1)
    ),
    "jvp of a sort": lambda lib, f, x, y: f.jvp(lambda a: a.sort(1).values.cumsum(0), (x,), (x,)),
    "linearize": lambda lib, f, x, y: f.linearize(lambda a: (a @ y).sigmoid(), x)[1](x),
    "solve in a batch": lambda lib, f, x, y: f.vmap(lambda row: lib.linalg.solve(y, row))(x),
    "inverse": lambda lib, f, x, y: f.jacrev(lib.linalg.inv)(y),
    "index in a batch": lambda lib, f, x, y: f.vmap(lambda row: x[row.argsort()[0], row.argsort()])(
        x
    ),
    "write in a batch": lambda lib, f, x, y: f.vmap(
        lambda row: row.clone().index_put_((row.argmax().reshape(1),), row.sum().reshape(1))
    )(x),
    "gather in a batch": lambda lib, f, x, y: f.vmap(
        lambda row: row.gather(0, row.argsort(descending=True))
    )(x),
    "nested batches": lambda lib, f, x, y: f.vmap(
        f.vmap(lambda a, b: a * b + b.sum(), (None, 0)), (0, None), 1
    )(x, y),
    "out of a tape": lambda lib, f, x, y: f.vmap(lambda row: row @ y)(x.requires_grad_()),
    "in a chunk": lambda lib, f, x, y: f.vmap(lambda row: row.outer(row), chunk_size=3)(x),
    "norms": lambda lib, f, x, y: f.vmap(
        lambda a: lib.nn.functional.layer_norm(a, (3,)) + lib.linalg.norm(a)
    )(x),
    "losses": lambda lib, f, x, y: f.vmap(
        f.grad(lambda a: lib.nn.functional.cross_entropy(a.unsqueeze(0), lib.tensor([1])))
    )(x),
    "cross entropy of probabilities": lambda lib, f, x, y: f.vmap(
        f.grad(lambda a, t: lib.nn.functional.binary_cross_entropy(a.sigmoid(), t), (0, 1))
    )(x, x.flip(0).sigmoid()),
    "its hessian": lambda lib, f, x, y: f.hessian(
        lambda a: lib.nn.functional.binary_cross_entropy(a.sigmoid(), x.flip(0).sigmoid())
    )(x),
    "cholesky factors": lambda lib, f, x, y: f.vmap(
        f.grad(lambda a: lib.linalg.cholesky(a @ a.T + lib.eye(3)).sum())
    )(lib.stack([y, y.T])),
    "ctc loss": lambda lib, f, x, y: f.vmap(
        lambda a: lib.nn.functional.ctc_loss(
            a.log_softmax(1).unsqueeze(1), lib.tensor([[1]]), (4,), (1,)
        )
    )(lib.stack([x, x.flip(0)])),
    "jvp of a matrix exponential": lambda lib, f, x, y: f.jvp(lib.matrix_exp, (y,), (y @ y,)),
    "singular values": lambda lib, f, x, y: f.vmap(
        lambda a: (
            lib.linalg.svdvals(a),
            lib.linalg.cond(a),
            lib.linalg.matrix_rank(a),
            lib.linalg.norm(a, "nuc"),
            lib.linalg.lu_factor(a).pivots,
        )
    )(lib.stack([y, y.T])),
    "matrix functions": lambda lib, f, x, y: f.vmap(lambda s: lib.linalg.det(y * s + y.T))(x[0]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_transforms_agree(name):
    ours, theirs = both(PROGRAMS[name], X, Y)
    assert len(ours) == len(theirs)
    for (shape, wants, numbers), (their_shape, their_wants, their_numbers) in zip(
        ours, theirs, strict=True
    ):
        assert (shape, wants) == (their_shape, their_wants)
        close = torch.allclose(torch.tensor(numbers), torch.tensor(their_numbers), 1e-9, 1e-9)
        assert close, name


@pytest.mark.parametrize("dims", [(0, 0), (None, 0), (0, None)])
def test_convolutions_in_a_batch_agree_with_their_gradients(dims):
    def program(lib, f, x, w):
        given = [t if d == 0 else t[0] for t, d in zip((x, w), dims, strict=True)]

        def value(a, b):
            out = lib.nn.functional.conv2d(a, b, stride=2, padding=1)
            return lib.nn.functional.max_pool2d(out, 2).square().sum()

        return f.vmap(f.grad(value, argnums=(0, 1)), dims)(*given)

    ours, theirs = both(program, IMAGES, FILTERS)
    for (shape, _, numbers), (their_shape, _, their_numbers) in zip(ours, theirs, strict=True):
        assert shape == their_shape
        assert torch.allclose(torch.tensor(numbers), torch.tensor(their_numbers), 1e-9, 1e-9)


def test_ensembles_agree():
    def program(lib, f, x, y):
        models = []
        for i in range(3):
            model = lib.nn.Sequential(lib.nn.Linear(3, 4), lib.nn.ReLU(), lib.nn.Linear(4, 2))
            for p in model.parameters():
                p.data = lib.linspace(-1 - i, 1, p.numel(), dtype=lib.float64).reshape(p.shape)
            models.append(model)
        params, buffers = f.stack_module_state(models)

        def call(params, buffers, x):
            return f.functional_call(models[0], (params, buffers), (x,))

        return f.vmap(call, in_dims=(0, 0, None))(params, buffers, x)

    ours, theirs = both(program, X, Y)
    assert ours[0][:2] == theirs[0][:2]
    assert torch.allclose(torch.tensor(ours[0][2]), torch.tensor(theirs[0][2]), 1e-9, 1e-9)


@pytest.mark.parametrize("randomness", ["same", "different"])
def test_random_numbers_in_a_batch_are_pytorch_s(randomness):
    found = []
    for lib in (fb, torch):
        func = importlib.import_module(f"{lib.__name__}.func")
        lib.manual_seed(0)
        draw = func.vmap(lambda a, lib=lib: a + lib.randn(5), randomness=randomness)
        found.append([draw(lib.zeros(3, 5)).tolist(), lib.rand(2).tolist()])
    assert found[0] == found[1]
