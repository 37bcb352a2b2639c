"""Matrix products by plans, on a cuBLASLt made for tests that reads descriptors as the real one."""

from __future__ import annotations

import ctypes
from itertools import count

import numpy as np
import pytest

from flambeau.plugin import numerics
from flambeau_cupy import gemm
from flambeau_cupy.dtypes import BFLOAT16
from flambeau_cupy.gemm import Products
from flambeau_cupy.kernels import linalg
from flambeau_cupy.layer import NumpyLayer

KINDS = {number: kind for kind, number in gemm.DATA_TYPES.items()}
SIZES = {4: np.int32, 8: np.int64}


def number_at(address, size):
    return int(np.frombuffer((ctypes.c_char * size).from_address(address), SIZES[size])[0])


class Library:
    """The bindings: integers stand for descriptors, matrices are read by columns."""

    def __init__(self):
        self.numbers, self.objects, self.asked, self.refuses = count(1), {}, 0, False

    def _made(self, **known):
        number = next(self.numbers)
        self.objects[number] = known
        return number

    def matmul_desc_create(self, compute, scale):
        return self._made(compute=compute, scale=scale)

    def matrix_layout_create(self, kind, rows, columns, leading):
        assert leading >= rows
        return self._made(kind=kind, rows=rows, columns=columns, leading=leading)

    def matmul_preference_create(self):
        return self._made()

    def matmul_preference_destroy(self, number):
        del self.objects[number]

    def _set(self, number, attribute, address, size):
        self.objects[number][attribute] = number_at(address, size)

    matmul_desc_set_attribute = matrix_layout_set_attribute = _set
    matmul_preference_set_attribute = _set

    def matmul_algo_get_heuristic(
        self, handle, product, a, b, c, d, preference, wanted, results, found
    ):
        assert handle == 77 and wanted == 1
        assert self.objects[preference][gemm.MAX_WORKSPACE] == gemm.WORKSPACE
        self.asked += 1
        self.last = self.objects[product]
        self.alignments = [self.objects[preference][i] for i in gemm.ALIGNMENTS]
        value = np.int32(not self.refuses)
        ctypes.memmove(found, value.tobytes(), 4)

    def _matrices(self, address, number):
        known = self.objects[number]
        kind, leading = KINDS[known["kind"]], known["leading"]
        batch, step = known.get(gemm.BATCH_COUNT, 1), known.get(gemm.BATCH_STRIDE, 0)
        reach = (batch - 1) * step + leading * (known["columns"] - 1) + known["rows"]
        memory = (ctypes.c_char * (reach * kind.itemsize)).from_address(address)
        strides = [n * kind.itemsize for n in (step, 1, leading)]
        return np.ndarray((batch, known["rows"], known["columns"]), kind, memory, strides=strides)

    def matmul(
        self, handle, product, alpha, a, a_layout, b, b_layout, beta, c, c_layout, d, d_layout,
        algorithm, workspace, size, stream,
    ):  # fmt: skip
        known = self.objects[product]
        assert handle == 77 and stream == 5 and workspace and size == gemm.WORKSPACE and algorithm
        left, right = self._matrices(a, a_layout), self._matrices(b, b_layout)
        if known[gemm.TRANSA]:
            left = left.swapaxes(1, 2)
        if known[gemm.TRANSB]:
            right = right.swapaxes(1, 2)
        found = left.astype(np.float64) @ right.astype(np.float64)
        out = self._matrices(d, d_layout)
        assert found.shape == out.shape
        if known[gemm.EPILOGUE] == gemm.ADD_BIAS:
            address, kind = known[gemm.BIAS_POINTER], out.dtype
            memory = (ctypes.c_char * (out.shape[1] * kind.itemsize)).from_address(address)
            found += np.frombuffer(memory, kind).astype(np.float64)[:, None]
        out[...] = found


class Runtime:
    def __init__(self):
        self.lt = Library()

    def handle(self):
        return 77

    def stream(self):
        return 5

    def device(self):
        return 0


@pytest.fixture
def products(monkeypatch):
    monkeypatch.setattr(numerics, "matmul_tf32", numerics.matmul_tf32)
    return Products(NumpyLayer(), Runtime)


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


CASES = {
    "vectors": (numbers(5), numbers(5)),
    "matrix by vector": (numbers(3, 5), numbers(5)),
    "vector by matrix": (numbers(5), numbers(5, 4)),
    "matrices": (numbers(3, 5), numbers(5, 4)),
    "one by one": (numbers(1, 1), numbers(1, 1)),
    "row by column": (numbers(1, 5), numbers(5, 1)),
    "column by row": (numbers(5, 1), numbers(1, 4)),
    "turned left": (numbers(5, 3).T, numbers(5, 4)),
    "turned right": (numbers(3, 5), numbers(4, 5).T),
    "both turned": (numbers(5, 3).T, numbers(4, 5).T),
    "part of a matrix": (numbers(3, 9)[:, 2:7], numbers(8, 9)[3:, 1:5]),
    "every other": (numbers(6, 10)[::2, ::2], numbers(5, 8)[:, ::2]),
    "backwards": (numbers(3, 5)[:, ::-1], numbers(5, 4)[::-1]),
    "expanded": (np.broadcast_to(numbers(1, 5), (3, 5)), np.broadcast_to(numbers(5, 1), (5, 4))),
    "batches": (numbers(2, 3, 5), numbers(2, 5, 4)),
    "batch by matrix": (numbers(2, 6, 3, 5), numbers(5, 4)),
    "turned batch by matrix": (numbers(2, 5, 3).swapaxes(1, 2), numbers(5, 4)),
    "matrix by batch": (numbers(3, 5), numbers(7, 5, 4)),
    "two batch dimensions": (numbers(2, 6, 3, 5), numbers(2, 6, 5, 4)),
    "repeated in part": (numbers(2, 1, 3, 5), numbers(1, 6, 5, 4)),
    "turned batch": (numbers(2, 6, 5, 3).swapaxes(2, 3), numbers(2, 6, 4, 5).swapaxes(2, 3)),
    "heads": (numbers(2, 3, 6, 5).transpose(0, 2, 1, 3), numbers(2, 5, 6, 4).swapaxes(1, 2)),
    "nothing": (numbers(0, 5), numbers(5, 4)),
    "no inner": (numbers(3, 0), numbers(0, 4)),
    "no batch": (numbers(0, 3, 5), numbers(0, 5, 4)),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, BFLOAT16], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_products_of_all_shapes_and_layouts(products, name, dtype):
    wide = [a.astype(dtype).astype(np.float64) for a in CASES[name]]
    a, b = (c.astype(dtype, order="K") for c in CASES[name])
    wanted = wide[0] @ wide[1]
    found = products(a, b)
    tolerance = {8: 1e-12, 4: 1e-5}.get(np.dtype(dtype).itemsize, 2e-2)
    assert found is not None and found.dtype == dtype and found.flags.c_contiguous
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found.astype(np.float64), wanted, tolerance, tolerance * 4)


@pytest.mark.parametrize(
    "name", ["turned right", "batch by matrix", "no inner", "vector by matrix"]
)
def test_the_bias_is_added_by_the_product(products, name):
    a, b = CASES[name]
    bias = numbers(8, seed=1)[::2]
    np.testing.assert_allclose(products(a, b, bias), a @ b + bias, 1e-12)


def test_what_is_not_a_copy_is_read_where_it_lies(products, monkeypatch):
    monkeypatch.setattr(NumpyLayer, "copy", None)
    a, b = CASES["both turned"]
    for m in (a, b, CASES["part of a matrix"][0], CASES["heads"][0][0]):
        assert products._factor(m, m.shape[:-2])[0] is m
    assert products._factor(CASES["every other"][0], ())[0] is not CASES["every other"][0]


def test_a_plan_is_made_once_per_signature(products):
    a, b = CASES["matrices"]
    for factor in (1, 2, 3):
        np.testing.assert_allclose(products(a * factor, b), a @ b * factor, 1e-12)
    library = products._runtime.lt
    before = library.asked
    products(a.copy(), b.copy())
    assert library.asked == before <= 2  # fresh arrays may be aligned otherwise
    products(a, b, np.zeros(4))
    products(a[:2], b)
    assert library.asked > before + 1


def test_switches_decide_how_is_computed(products):
    a, b = (c.astype(np.float32) for c in CASES["matrices"])
    numerics.matmul_tf32 = False
    products(a, b)
    library = products._runtime.lt
    assert library.last["compute"] == gemm.COMPUTE_32F
    numerics.matmul_tf32 = True
    products(a, b)
    assert library.last["compute"] == gemm.COMPUTE_TF32
    products(a.astype(np.float16), b.astype(np.float16))
    assert library.last["compute"] == gemm.COMPUTE_32F
    products(*CASES["matrices"])
    assert library.last["compute"] == gemm.COMPUTE_64F and library.last["scale"] == 1


def test_addresses_that_no_vector_load_takes_are_told(products):
    memory = numbers(200).astype(np.float32)
    skip = -(memory.ctypes.data // 4) % 4
    odd = memory[skip + 1 :][:15].reshape(3, 5)
    even = memory[skip + 32 :][:20].reshape(5, 4)
    np.testing.assert_allclose(products(odd, even), odd @ even, 1e-5, 1e-6)
    assert products._runtime.lt.alignments == [16, 4, 16, 16]


def test_other_dtypes_and_refusals_go_another_way(products):
    a, b = CASES["matrices"]
    assert products(a.astype(np.int64), b.astype(np.int64)) is None
    assert products(a + 0j, b + 0j) is None
    assert products(a, b) is not None
    products._runtime.lt.refuses = True
    assert products(a[:1], b) is None
    assert products(a[:1], b) is None


def test_a_machine_without_cublaslt_asks_once():
    asked = []

    def load():
        asked.append(1)
        raise ImportError("No module named 'nvmath'")

    products = Products(NumpyLayer(), load)
    assert [products(*CASES["matrices"]) for _ in range(2)] == [None, None]
    assert len(asked) == 1 and products.missing == "No module named 'nvmath'"


def test_the_ops_of_matrices_take_planned_products(products):
    layer = NumpyLayer()
    layer.product = products
    ops = linalg.make(layer)
    x, w, bias = numbers(2, 3, 5), numbers(4, 5), numbers(4)
    np.testing.assert_allclose(ops["linear"](x, w, bias), x @ w.T + bias, 1e-12)
    np.testing.assert_allclose(ops["linear"](x, w, None), x @ w.T, 1e-12)
    np.testing.assert_allclose(ops["matmul"](x, w.T), x @ w.T, 1e-12)
    np.testing.assert_allclose(ops["addmm"](bias, x[0], w.T, 1, 1), x[0] @ w.T + bias, 1e-12)
    scaled = ops["addmm"](bias, x[0], w.T, 2, 0.5)
    np.testing.assert_allclose(scaled, 0.5 * x[0] @ w.T + 2 * bias, 1e-12)
    whole = numbers(3, 4)
    np.testing.assert_allclose(ops["addmm"](whole, x[0], w.T, 1, 1), x[0] @ w.T + whole, 1e-12)
    assert products._runtime.lt.asked >= 4
    half = x.astype(np.float16), w.astype(np.float16)
    assert ops["linear"](*half, None).dtype == np.float16
    assert (ops["matmul"](np.ones((2, 3), bool), np.zeros((3, 2), bool)) == 0).all()


def test_the_numbers_are_those_of_the_bindings():
    lt = pytest.importorskip("nvmath.bindings.cublasLt", reason="needs nvmath-python")
    from nvmath.bindings import cublas

    attributes = lt.MatmulDescAttribute
    names = attributes.TRANSA, attributes.TRANSB, attributes.EPILOGUE, attributes.BIAS_POINTER
    assert [*map(int, names)] == [
        gemm.TRANSA,
        gemm.TRANSB,
        gemm.EPILOGUE,
        gemm.BIAS_POINTER,
    ]
    layouts = lt.MatrixLayoutAttribute
    assert int(layouts.BATCH_COUNT) == gemm.BATCH_COUNT
    assert int(layouts.STRIDED_BATCH_OFFSET) == gemm.BATCH_STRIDE
    preferences = lt.MatmulPreferenceAttribute
    assert int(preferences.MAX_WORKSPACE_BYTES) == gemm.MAX_WORKSPACE
    alignments = [int(getattr(preferences, f"MIN_ALIGNMENT_{m}_BYTES")) for m in "ABCD"]
    assert tuple(alignments) == gemm.ALIGNMENTS
    assert (int(lt.Epilogue.DEFAULT), int(lt.Epilogue.BIAS)) == (gemm.NO_EPILOGUE, gemm.ADD_BIAS)
    kinds = cublas.ComputeType
    numbers = kinds.COMPUTE_32F, kinds.COMPUTE_64F, kinds.COMPUTE_32F_FAST_TF32
    assert [*map(int, numbers)] == [
        gemm.COMPUTE_32F,
        gemm.COMPUTE_64F,
        gemm.COMPUTE_TF32,
    ]
    assert gemm.RESULT.itemsize == 96
    for function in ("matmul", "matmul_algo_get_heuristic", "matmul_desc_create", "create"):
        assert callable(getattr(lt, function))
