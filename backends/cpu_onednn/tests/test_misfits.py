"""Operands that do not fit the kernels of oneDNN: refused, or computed with as NumPy does.

The kit's misfits are too small for most paths of oneDNN, and ops refuse most of them before a
kernel is asked. Here the kernels themselves get them, whatever their size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import flambeau as fb
from flambeau.testing.backend import _support as kit
from flambeau.testing.misfits import misfits
from flambeau.testing.samples import SAMPLES, realise
from flambeau_numpy.dtypes import BFLOAT16
from flambeau_numpy.extending import offered
from flambeau_numpy.kernels import KERNELS as NUMPY
from flambeau_numpy.kernels import linalg as general
from flambeau_onednn import primitives, runs
from flambeau_onednn.kernels import KERNELS, convolution, linalg
from flambeau_onednn.runs import LIMIT, Plans

DTYPES = [np.dtype(np.float32), BFLOAT16, np.dtype(np.float16)]
EPS = {DTYPES[0]: 1e-5, BFLOAT16: 3e-2, DTYPES[2]: 4e-3}
ROOM = 64
"""Bytes before and after each array, in which a kernel that trusts shapes would write or read."""


class Memory:
    """Arrays amid bytes that are known: NaN, in each floating dtype."""

    def __init__(self) -> None:
        self.made: list[tuple[np.ndarray, int]] = []

    def empty(self, shape: Any, dtype: Any) -> np.ndarray:
        dtype = np.dtype(dtype)
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        whole = np.full(size + 2 * ROOM, 255, np.uint8)
        self.made.append((whole, size))
        return whole[ROOM : ROOM + size].view(dtype).reshape(shape)

    def copy(self, a: np.ndarray) -> np.ndarray:
        made = self.empty(a.shape, a.dtype)
        made[...] = a
        return made

    def whole(self) -> bool:
        """Whether nothing was written beside the arrays."""
        return all(
            (w[:ROOM] == 255).all() and (w[ROOM + size :] == 255).all() for w, size in self.made
        )


@pytest.fixture(params=["compiled threads", "Python's threads"])
def kernels(monkeypatch, request) -> Iterator[tuple[dict[str, Callable[..., Any]], Memory]]:
    """The kernels, for operands of any size, and the memory that they get."""
    memory = Memory()
    native = None
    if request.param == "compiled threads":
        native = pytest.importorskip("flambeau_native.extension").native
        if native is None:
            pytest.skip("flambeau-native was installed without a compiler")
    monkeypatch.setattr(offered, "sgemm", None if native is None else native.sgemm)
    monkeypatch.setattr(offered, "primitives", None if native is None else native.primitives)
    monkeypatch.setattr(offered, "linear", None)
    for module, name, value in (
        *((linalg, "LEAST", 0), (linalg, "LEAST_HALF", 0), (linalg, "plans", Plans(LIMIT))),
        *((convolution, "SMALL", 0), (convolution, "THIN", 0)),
        *((convolution, "plans", Plans(LIMIT)), (runs, "LITTLE", -1)),
        *(
            (linalg, "empty", memory.empty),
            (primitives, "empty", memory.empty),
            (runs, "empty", memory.empty),
        ),
    ):
        monkeypatch.setattr(module, name, value)
    found = dict(KERNELS)
    if linalg.KERNELS:
        monkeypatch.setattr(general, "SMALL", 0)
        found["matmul"] = general.make_matmul(linalg._large_matmul, linalg._half_matmul)
        found["linear"] = general.make_linear(linalg._any_linear)
        monkeypatch.setattr(linalg, "matmul", found["matmul"])
        monkeypatch.setattr(linalg, "linear", found["linear"])
    return found, memory


def natives(value: Any, memory: Memory, dtype: np.dtype) -> Any:
    """Samples' operands as arrays of a dtype in memory of known surroundings."""
    if isinstance(value, fb.Tensor):
        return memory.copy(value.numpy().astype(dtype))
    if isinstance(value, tuple | list):
        return type(value)(natives(item, memory, dtype) for item in value)
    return value


def outcome(kernel: Callable[..., Any], args: tuple[Any, ...]) -> list[np.ndarray] | None:
    """What a kernel gives; None where it refuses."""
    try:
        with np.errstate(all="ignore"):
            found = kernel(*args)
    except (RuntimeError, ValueError, IndexError, TypeError):
        return None
    return [np.asarray(a) for a in (found if isinstance(found, tuple) else (found,))]


def wrong(found: Any, wanted: Any, dtype: np.dtype) -> str:
    """How the results differ; nothing where the kernel refuses, as ops do before it is asked."""
    if found is None:
        return ""
    if wanted is None:  # dimensions of 1 too many, which are left out
        return "" if all(np.isfinite(f.astype(np.float64)).all() for f in found) else "not finite"
    for f, w in zip(found, wanted, strict=True):
        if f.shape != w.shape:
            return f"{f.shape}, and NumPy's kernel {w.shape}"
        f, w = f.astype(np.float64), w.astype(np.float64)
        scale = np.abs(w).max(initial=1.0)
        if not np.allclose(f, w, rtol=0, atol=EPS[dtype] * scale):
            return f"another result than NumPy's kernel: {f} {w}"
    return ""


def reference(name: str) -> Callable[..., Any]:
    """What NumPy's kernels make of the same arrays."""
    if name != "linear_activation":
        return NUMPY[name]

    def composed(x: Any, weight: Any, bias: Any, activation: str, saves: bool) -> Any:
        z = NUMPY["linear"](x, weight, bias)
        if activation == "relu":
            return NUMPY["relu"](z), z[:0].reshape(-1)[:0]
        return NUMPY["gelu"](z, "tanh"), z if saves else z.reshape(-1)[:0]

    return composed


def check(kernels: Any, name: str, called: Any, dtype: np.dtype) -> None:
    """Nothing beside operands and results is read, for it would be NaN, or written."""
    table, memory = kernels
    bad, computed, wanted_of = [], 0, reference(name)
    for text, args in called:
        found, wanted = outcome(table[name], args), outcome(wanted_of, args)
        computed += found is not None
        if said := wrong(found, wanted, dtype):
            bad.append(f"{text}: {said}")
        if not memory.whole():
            bad.append(f"{text}: wrote beside an array")
        memory.made.clear()
    assert not bad, "\n".join(bad)
    assert computed, "all was refused"


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", KERNELS)
def test_operands_of_another_shape_are_refused_or_computed_with(kernels, name, dtype):
    def called() -> Iterator[tuple[str, Any]]:
        for text, args in misfits(name, 3):
            yield text, natives(realise(args, kit.maker("cpu"), fb.float32), kernels[1], dtype)

    check(kernels, name, called(), dtype)


@pytest.mark.parametrize("other", [BFLOAT16, np.dtype(np.float64), np.dtype(np.int8)], ids=str)
@pytest.mark.parametrize("name", KERNELS)
def test_operands_of_another_dtype_are_refused_or_computed_with(kernels, name, other):
    def called() -> Iterator[tuple[str, Any]]:
        for sample in SAMPLES[name]:
            args = realise(sample.args, kit.maker("cpu"), fb.float32)
            for i, value in enumerate(args):
                if isinstance(value, fb.Tensor):
                    arrays = list(natives(args, kernels[1], DTYPES[0]))
                    arrays[i] = natives(value, kernels[1], other)
                    yield f"{sample.name}: operand {i} is {other}", tuple(arrays)

    check(kernels, name, called(), BFLOAT16)


@pytest.mark.parametrize("name", KERNELS)
def test_operands_at_odd_addresses_and_with_gaps_are_computed_with(kernels, name):
    def laid(value: Any) -> Iterator[np.ndarray]:
        whole = np.frombuffer(bytearray(value.nbytes + 1), np.uint8)[1:]
        odd = whole.view(value.dtype).reshape(value.shape)
        odd[...] = value
        yield odd
        yield value.T.copy().T
        yield np.repeat(value, 2, -1)[..., ::2] if value.ndim else value
        yield value[..., ::-1].copy()[..., ::-1] if value.ndim else value

    def called() -> Iterator[tuple[str, Any]]:
        for sample in SAMPLES[name]:
            args = realise(sample.args, kit.maker("cpu"), fb.float32)
            for i, value in enumerate(args):
                if isinstance(value, fb.Tensor):
                    for how, array in enumerate(laid(value.numpy().astype(np.float32))):
                        arrays = list(natives(args, kernels[1], DTYPES[0]))
                        arrays[i] = array
                        yield f"{sample.name}: operand {i}, layout {how}", tuple(arrays)

    check(kernels, name, called(), DTYPES[0])
