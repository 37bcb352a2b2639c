"""The same work as bare NumPy, JAX, tinygrad and Chainer write it; results are waited for."""

from __future__ import annotations

import importlib
import itertools
import math
from collections.abc import Sequence
from typing import Any

from harness import BARE, Code, Setup

BATCH, CLASSES = 64, 10
WIDTHS = (784, 512, 512, CLASSES)

JAX, TINYGRAD, CHAINER = "jax", "tinygrad", "chainer"

# How a statement is finished, so that its result exists when the clock is read.
_FINISHED = {BARE: "{}", JAX: "wait({})", TINYGRAD: "({}).realize()", CHAINER: "{}"}
# JAX records no single ops: its gradients are of whole functions.
_RECORDING = (TINYGRAD, CHAINER)


def _made(shape: tuple[int, ...], recorded: bool) -> dict[str, Setup]:
    """For each library: names x, y and the functions that statements call."""
    size = math.prod(shape)
    values = [i / size for i in range(size)]

    def numpy(np: Any) -> dict[str, Any]:
        x = np.array(values, np.float32).reshape(shape)

        def softmax(a: Any) -> Any:
            e = np.exp(a - a.max())
            return e / e.sum()

        functions = {"exp": np.exp, "maximum": np.maximum, "softmax": softmax}
        return {"x": x, "y": x.copy(), **functions}

    def jax(jax: Any) -> dict[str, Any]:
        x = jax.numpy.array(values, "float32").reshape(shape)
        functions = {"exp": jax.numpy.exp, "maximum": jax.numpy.maximum}
        softmax = jax.nn.softmax
        return {"x": x, "y": x + 0, "wait": jax.block_until_ready, "softmax": softmax, **functions}

    def tinygrad(tinygrad: Any) -> dict[str, Any]:
        tensors = [tinygrad.Tensor(values).reshape(shape).contiguous().realize() for _ in "xy"]
        for tensor in tensors:
            tensor.requires_grad = recorded
        return {
            **dict(zip("xy", tensors, strict=True)),
            "exp": lambda a: a.exp(),
            "maximum": lambda a, b: a.maximum(b),
            "softmax": lambda a: a.softmax(),
        }

    def chainer(chainer: Any) -> dict[str, Any]:
        from numpy import array, float32

        made = [chainer.Variable(array(values, float32).reshape(shape)) for _ in "xy"]
        if not recorded:
            for variable in made:
                variable.requires_grad = False
        functions = chainer.functions
        return {
            **dict(zip("xy", made, strict=True)),
            "exp": functions.exp,
            "maximum": lambda a, b: functions.relu(a) if b == 0 else functions.maximum(a, b),
            "softmax": lambda a: functions.softmax(a, axis=0),
        }

    return {BARE: numpy, JAX: jax, TINYGRAD: tinygrad, CHAINER: chainer}


def _code(
    shape: tuple[int, ...], statement: str, recorded: bool, only: Sequence[str]
) -> dict[str, Code]:
    setups = _made(shape, recorded)
    names = only or (_RECORDING if recorded else tuple(setups))
    # Bare NumPy is the floor of recorded operations as well.
    names = (BARE, *names) if recorded else names
    return {name: (_FINISHED[name].format(statement), setups[name]) for name in names}


def vectors(statement: str, recorded: bool = False, only: Sequence[str] = ()) -> dict[str, Code]:
    """A statement on vectors x and y of sixteen float32 between 0 and 1."""
    return _code((16,), statement, recorded, only)


def matrices(statement: str, recorded: bool = False, only: Sequence[str] = ()) -> dict[str, Code]:
    """A statement on 16 × 16 matrices of float32."""
    return _code((16, 16), statement, recorded, only)


def _jax_chain(jax: Any) -> dict[str, Any]:
    def chain(x: Any, w: Any, b: Any) -> Any:
        for _ in range(10):
            x = jax.numpy.maximum(x * w + b, 0)
        return x.sum()

    x = jax.numpy.arange(16, dtype="float32") / 16
    gradient = jax.grad(chain, (0, 1, 2))
    return {"gradient": gradient, "x": x, "wait": jax.block_until_ready}


def _tinygrad_chain(tinygrad: Any) -> dict[str, Any]:
    def gradient() -> None:
        leaves = [(tinygrad.Tensor.arange(16) / 16).contiguous().realize() for _ in range(3)]
        y, w, b = leaves
        for _ in range(10):
            y = (y * w + b).relu()
        tinygrad.Tensor.realize(*y.sum().gradient(*leaves))

    return {"gradient": gradient}


def _chainer_chain(chainer: Any) -> dict[str, Any]:
    from numpy import arange, float32

    leaves = [chainer.Variable(arange(16, dtype=float32) / 16) for _ in range(3)]

    def gradient() -> None:
        y, w, b = leaves
        for _ in range(10):
            y = chainer.functions.relu(y * w + b)
        chainer.functions.sum(y).backward()
        for leaf in leaves:
            leaf.cleargrad()

    return {"gradient": gradient}


CHAIN: dict[str, Code] = {
    JAX: ("wait(gradient(x, x, x))", _jax_chain),
    TINYGRAD: ("gradient()", _tinygrad_chain),
    CHAINER: ("gradient()", _chainer_chain),
}


def _numpy_mlp(np: Any) -> dict[str, Any]:
    """The step written out by hand, Adam included."""
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((BATCH, WIDTHS[0]), dtype=np.float32)
    targets = np.arange(BATCH) % CLASSES
    parameters = []
    for size, width in itertools.pairwise(WIDTHS):
        bound = 1 / math.sqrt(size)
        parameters.append(rng.uniform(-bound, bound, (size, width)).astype(np.float32))
        parameters.append(rng.uniform(-bound, bound, width).astype(np.float32))
    means = [np.zeros_like(p) for p in parameters]
    squares = [np.zeros_like(p) for p in parameters]
    count = 0

    def step() -> None:
        nonlocal count
        activations = [inputs]
        for k in range(0, len(parameters), 2):
            hidden = activations[-1] @ parameters[k] + parameters[k + 1]
            activations.append(np.maximum(hidden, 0) if k + 2 < len(parameters) else hidden)
        logits = activations.pop()
        grad = np.exp(logits - logits.max(1, keepdims=True))
        grad /= grad.sum(1, keepdims=True)
        grad[np.arange(BATCH), targets] -= 1
        grad /= BATCH
        gradients = []
        for k in range(len(parameters) - 2, -1, -2):
            activation = activations.pop()
            gradients += [grad.sum(0), activation.T @ grad]
            if k:
                grad = (grad @ parameters[k].T) * (activation > 0)
        count += 1
        scale = 1e-3 * math.sqrt(1 - 0.999**count) / (1 - 0.9**count)
        for p, g, m, s in zip(parameters, reversed(gradients), means, squares, strict=True):
            m *= 0.9
            m += 0.1 * g
            s *= 0.999
            s += 0.001 * g * g
            p -= scale * m / (np.sqrt(s) + 1e-8)

    return {"step": step}


def _jax_mlp(jax: Any) -> dict[str, Any]:
    """The step as one compiled function, which is how JAX programs are written."""
    jnp = jax.numpy
    key = jax.random.PRNGKey(0)
    inputs, targets = jax.random.normal(key, (BATCH, WIDTHS[0])), jnp.arange(BATCH) % CLASSES
    parameters = []
    for size, width in itertools.pairwise(WIDTHS):
        bound = 1 / math.sqrt(size)
        parameters.append(jax.random.uniform(key, (size, width), minval=-bound, maxval=bound))
        parameters.append(jax.random.uniform(key, (width,), minval=-bound, maxval=bound))

    def loss(parameters: Any) -> Any:
        hidden = inputs
        for k in range(0, len(parameters), 2):
            hidden = hidden @ parameters[k] + parameters[k + 1]
            if k + 2 < len(parameters):
                hidden = jnp.maximum(hidden, 0)
        return -jax.nn.log_softmax(hidden)[jnp.arange(BATCH), targets].mean()

    @jax.jit
    def update(state: Any) -> Any:
        parameters, means, squares, count = state
        gradients = jax.grad(loss)(parameters)
        count = count + 1
        means = [0.9 * m + 0.1 * g for m, g in zip(means, gradients, strict=True)]
        squares = [0.999 * s + 0.001 * g * g for s, g in zip(squares, gradients, strict=True)]
        scale = 1e-3 * jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
        rows = zip(parameters, means, squares, strict=True)
        return [p - scale * m / (jnp.sqrt(s) + 1e-8) for p, m, s in rows], means, squares, count

    zeros = [jnp.zeros_like(p) for p in parameters]
    state = (parameters, zeros, zeros, jnp.float32(0))

    def step() -> None:
        nonlocal state
        state = jax.block_until_ready(update(state))

    return {"step": step}


def _tinygrad_mlp(tinygrad: Any) -> dict[str, Any]:
    nn = importlib.import_module("tinygrad.nn")
    training = importlib.import_module("tinygrad.helpers").Context
    layers = [nn.Linear(size, width) for size, width in itertools.pairwise(WIDTHS)]
    weights = [p for layer in layers for p in (layer.weight, layer.bias)]
    optimizer = nn.optim.Adam(weights, lr=1e-3)
    inputs = tinygrad.Tensor.randn(BATCH, WIDTHS[0]).realize()
    targets = (tinygrad.Tensor.arange(BATCH) % CLASSES).contiguous().realize()

    def step() -> None:
        with training(TRAINING=1):
            optimizer.zero_grad()
            hidden = inputs
            for layer in layers[:-1]:
                hidden = layer(hidden).relu()
            layers[-1](hidden).sparse_categorical_crossentropy(targets).backward()
            optimizer.step()

    return {"step": step}


def _chainer_mlp(chainer: Any) -> dict[str, Any]:
    from numpy import arange, float32, int32, random

    links = [chainer.links.Linear(size, width) for size, width in itertools.pairwise(WIDTHS)]
    model = chainer.ChainList(*links)
    optimizer = chainer.optimizers.Adam(alpha=1e-3).setup(model)
    inputs = random.default_rng(0).standard_normal((BATCH, WIDTHS[0]), dtype=float32)
    targets = (arange(BATCH) % CLASSES).astype(int32)

    def step() -> None:
        model.cleargrads()
        hidden = inputs
        for link in links[:-1]:
            hidden = chainer.functions.relu(link(hidden))
        chainer.functions.softmax_cross_entropy(links[-1](hidden), targets).backward()
        optimizer.update()

    return {"step": step}


MLP: dict[str, Code] = {
    BARE: ("step()", _numpy_mlp),
    JAX: ("step()", _jax_mlp),
    TINYGRAD: ("step()", _tinygrad_mlp),
    CHAINER: ("step()", _chainer_mlp),
}
