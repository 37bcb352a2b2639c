"""Calls of every kernel for a process in which AddressSanitizer watches the memory."""

from __future__ import annotations

import threading
from contextlib import suppress
from types import SimpleNamespace

import numpy as np
from on_host import HostLauncher

from flambeau import plugin
from flambeau.plugin import numerics
from flambeau_cupy.device.faults import ANY
from flambeau_cupy.device.philox import Philox
from flambeau_cupy.dtypes import TO_NUMPY
from flambeau_cupy.kernels import indexing, kernels
from flambeau_cupy.layer import NumpyLayer
from flambeau_cupy.source import FAMILIES, families

SHAPES = [(1, 1), (3, 7), (2, 129), (5, 32)]


def run() -> None:
    """Call the kernels on arrays that end where their elements end."""
    launcher = HostLauncher()
    layer = NumpyLayer(launcher)
    ops = SimpleNamespace(**kernels(layer), faults=layer.faults)
    for dtype in (plugin.float32, plugin.float16):
        for shape in SHAPES:
            for numerics.deterministic in (True, False):
                call(ops, dtype, shape)
    base, start = np.empty(2, np.uint64), np.uint64(4)
    launcher(np.dtype(np.float32), "philox_place", 1, 32, base, start, start)
    done = {name for _, name in launcher.launched}
    missing = {name for family in families("float32") for name in FAMILIES[family]} - done
    assert not missing, f"never launched: {sorted(missing)}"


def call(ops, dtype, shape) -> None:
    """Every kernel once, on arrays of about this shape."""
    (rows, columns), kind = shape, TO_NUMPY[dtype]
    seed = np.random.default_rng(0)

    def fresh(*shape: int) -> np.ndarray:
        return seed.random(shape, np.float32).astype(kind)

    x, grad, target = fresh(rows, columns), fresh(rows, columns), seed.integers(0, columns, rows)
    ops.relu(x)
    ops.gelu_backward(grad, x, "none")
    wide, row, unaligned = x[:, ::2], x[:1], fresh(rows * columns + 1)[1:].reshape(x.shape)
    for a, b in ((x, grad), (x, row), (x.T, grad.T), (wide, wide), (x, unaligned), (x[::-1], x)):
        ops.where(ops.lt(a, b), ops.add(a, b), ops.exp(a))
        ops.add_(np.array(a), b)
    ops.add_(wide, row[:, ::2])
    ops.cast(x, plugin.int64)
    for dim in (0, 1):
        for name in ("softmax", "log_softmax"):
            getattr(ops, f"{name}_backward")(grad, getattr(ops, name)(x, dim), dim)
    weight, bias = fresh(columns), fresh(columns)
    _, mean, invstd = ops.layer_norm(x, weight, bias, (columns,), 1e-5)
    ops.layer_norm_backward(grad, x, weight, mean, invstd, (columns,))
    for a in (x, fresh(2, columns, 3, rows)):
        _, mean, invstd = ops.batch_norm_train(a, weight, bias, 1e-5)
        ops.batch_norm_backward(a, a, weight, mean, invstd)
    ops.nll_loss(x, target, weight, "none", -1)
    loss, log_probs, count = ops.cross_entropy(x, target, -1)
    ops.cross_entropy_backward(loss, log_probs, target, -1, count)
    ops.nll_loss_backward(loss, x.shape, target, weight, "mean", -1, count)
    image = fresh(2, 3, rows + 3, columns + 3)
    window = (3, 2), (2, 1), (1, 1)
    values, places = ops.max_pool2d(image, *window, (1, 1), True)
    ops.max_pool2d_backward(values, places, image.shape)
    ops.avg_pool2d_backward(
        ops.avg_pool2d(image, *window, True, False, None), image.shape, *window, True, False, None
    )
    ops.embedding(x, target % rows, -1, False)
    ops.index_put(x, (target % rows,), grad, True)
    sequences = fresh(4, rows, columns + 1), seed.integers(1, columns + 1, (rows, 2))
    lengths = (4,) * rows, (2,) * rows
    losses = ops.ctc_loss(*sequences, *lengths, 0, False)
    ops.ctc_loss_backward(losses, *sequences, *lengths, 0, False)
    index = seed.integers(0, columns, (rows, 4))
    ops.scatter_add(x, 1, index, ops.gather(x, 1, index))
    ops.scatter_extremum(x, 1, index, ops.gather(x, 1, index), True)
    ops.scatter_extremum(target, 0, target[:1] % rows, target, False)
    ops.topk(x, min(3, columns), 1, True)
    assert not ops.index(x, (np.array([rows, -1, 1 << 40]),)).any()
    with suppress(IndexError):
        ops.faults.look()
        raise AssertionError("rows that are none were taken")
    long, several = fresh(rows, 20 * columns), indexing.LONG_ROW
    for indexing.LONG_ROW in (1, several):
        for k in (1, columns, 12 * columns):
            ops.topk(long, k, 1, False)
        if rows == 2:
            ops.topk(fresh(5001), 2100, 0, True)
    faults = ops.faults
    for given in (index, index[::2], index.T):
        assert (faults.index(given, columns, True, -100, (IndexError, "")) == given).all()
        assert (faults.divisor(given + 1) == given + 1).all()
    faults.look()
    generator = SimpleNamespace(lock=threading.RLock(), engine=Philox(3))
    ops.uniform(shape, 0.0, 1.0, dtype, generator)
    ops.normal(shape, 0.0, 1.0, dtype, generator)
    ops.bernoulli_scalar(shape, 0.5, dtype, generator)
    assert faults.values(x, 0.0, 9.0, ANY) and faults.values(index, 0, columns, ANY)
    ops.bernoulli(x, generator)
    ops.poisson(x * kind.type(30), generator)
    ops.binomial(x * kind.type(60), grad, generator)
    ops.standard_gamma(x, False, generator)
    ops.sample_dirichlet(x, generator)
    for how in ((3, True), (1, False)):
        ops.multinomial(x, *how, generator)
    faults.look()
    ops.dropout(x, 0.25, generator)
    ops.randint(0, 9, shape, plugin.int64, generator)
    state = [fresh(*shape) for _ in range(3)]
    ops.sgd_step_([x], [grad], [state[0]], 0.1, 0.9, 0.0, 0.1, True, False)
    lists = [[x], [grad], *([a] for a in state)]
    hyper = (0.1, 0.9, 0.99, 1e-8, 0.1)
    for step in (np.zeros((), np.float32), 1.0):
        scalars = [[1.0] if step == 1.0 else [np.ones((), np.float32)] for _ in range(2)]
        ops.adam_step_(*lists, [step], *hyper, True, True, False)
        ops.asgd_step_(*lists[:3], *scalars, [step], 0.1, 0.1, 0.75, 1.0, 0.1, False)
        ops.rmsprop_step_(*lists, [step], 0.1, 0.9, 1e-8, 0.1, 0.9, True, False)
        ops.adagrad_step_(*lists[:3], [step], 0.1, 0.1, 1e-8, 0.1, False)
        ops.adadelta_step_(*lists[:4], [step], 0.1, 0.9, 1e-8, 0.1, False)
        ops.adamax_step_(*lists[:4], [step], *hyper, False)
        ops.nadam_step_(*lists[:4], scalars[0], [step], *hyper, 0.1, True, False)
        ops.radam_step_(*lists[:4], [step], *hyper, True, False)
        ops.rprop_step_(*lists[:4], [step], 0.5, 1.2, 1e-6, 50.0, False)


if __name__ == "__main__":
    run()
