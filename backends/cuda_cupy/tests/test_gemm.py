"""Matrix products by plans, on a cuBLASLt made for tests that reads descriptors as the real one."""

from __future__ import annotations

import ctypes
from itertools import count

import numpy as np
import pytest
from frontend import said_with_a_driver_that_answers
from planned import served
from test_ops import agree

import flambeau as fb
from flambeau._dispatch.bound import bind
from flambeau.plugin import numerics
from flambeau_cupy.dtypes import BFLOAT16
from flambeau_cupy.kernels import linalg
from flambeau_cupy.layer import NumpyLayer
from flambeau_cupy.libraries import gemm
from flambeau_cupy.libraries.gemm import Products

KINDS = {number: kind for kind, number in gemm.DATA_TYPES.items()}
SIZES = {4: np.int32, 8: np.int64}


def number_at(address, size):
    return int(np.frombuffer((ctypes.c_char * size).from_address(address), SIZES[size])[0])


class RefusedError(Exception):
    """What the bindings raise, with the number that cuBLASLt returned."""

    def __init__(self, status):
        self.status = status


class Library:
    """The bindings: integers stand for descriptors, matrices are read by columns."""

    cuBLASLtError = RefusedError  # noqa: N815

    def __init__(self):
        self.numbers, self.objects, self.asked, self.refuses = count(1), {}, 0, False
        self.status, self.calls = 0, 0

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
        if self.status:
            raise RefusedError(self.status)
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
        self.calls += 1
        found = left.astype(np.float64) @ right.astype(np.float64)
        out, epilogue = self._matrices(d, d_layout), known[gemm.EPILOGUE]
        assert found.shape == out.shape
        if epilogue & 4:
            address, kind = known[gemm.BIAS_POINTER], out.dtype
            assert address % 16 == 0
            memory = (ctypes.c_char * (out.shape[1] * kind.itemsize)).from_address(address)
            found += np.frombuffer(memory, kind).astype(np.float64)[:, None]
        if epilogue & 128:
            address, leading, (_, rows, columns) = (
                known[gemm.AUX_POINTER],
                known[gemm.AUX_LEADING],
                out.shape,
            )
            assert address % 16 == 0 and leading % 8 == 0 and leading >= rows
            memory = (ctypes.c_char * (leading * columns * out.itemsize)).from_address(address)
            strides = out.itemsize, leading * out.itemsize
            np.ndarray((rows, columns), out.dtype, memory, strides=strides)[...] = found[0]
        applied = {0: lambda z: z, 2: lambda z: np.maximum(z, 0), 32: gelu_tanh}
        out[...] = applied[epilogue & ~(1 | 4 | 128)](found)


def gelu_tanh(z):
    return z / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (z + 0.044715 * z**3)))


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
    ops = layer.bound(linalg.KERNELS)
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


@pytest.mark.parametrize("shape", [(), (1,), (3, 4)], ids=str)
def test_a_bias_that_is_no_row_is_added_afterwards(products, shape):
    """The epilogue would read beyond its memory."""
    layer = NumpyLayer()
    layer.product = products
    ops = layer.bound(linalg.KERNELS)
    x, w, bias = numbers(3, 5), numbers(4, 5), np.asarray(numbers(*shape))
    np.testing.assert_allclose(ops["linear"](x, w, bias), x @ w.T + bias, 1e-12)
    np.testing.assert_allclose(ops["addmm"](bias, x, w.T, 1, 1), x @ w.T + bias, 1e-12)
    assert products(x, w.T, bias) is None
    assert not products.takes(x, w, bias, "relu", True)


def test_a_bias_that_no_vector_load_takes_is_copied(products):
    memory = numbers(40)
    skip = 1 + -(memory.ctypes.data // 8) % 2
    a, b = CASES["matrices"]
    bias = memory[skip:][:4]
    assert bias.ctypes.data % 16
    np.testing.assert_allclose(products(a, b, bias), a @ b + bias, 1e-12)


APPLIED = {"relu": lambda z: np.maximum(z, 0), "gelu_tanh": gelu_tanh}
INPUTS = {
    "matrix": numbers(3, 5),
    "batch": numbers(2, 6, 5),
    "turned batch": numbers(2, 5, 6).swapaxes(1, 2),
    "every other": numbers(6, 10)[::2, ::2],
    "one row": numbers(1, 5),
    "expanded": np.broadcast_to(numbers(5), (3, 5)),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, BFLOAT16], ids=str)
@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("activation", APPLIED)
@pytest.mark.parametrize("saves", [False, True])
@pytest.mark.parametrize("biased", [False, True])
def test_activations_are_epilogues(products, name, dtype, activation, saves, biased):
    x = INPUTS[name].astype(dtype, order="K")
    w, bias = numbers(8, 5, seed=1).astype(dtype), numbers(8, seed=2).astype(dtype)
    wanted = x.astype(np.float64) @ w.astype(np.float64).T
    if biased:
        wanted = wanted + bias.astype(np.float64)
    result, z = products.forward(x, w, bias if biased else None, activation, saves)
    library = products._runtime.lt
    assert library.calls == 1
    keeps = saves and activation == "gelu_tanh"
    flags = {"relu": 2, "gelu_tanh": 32}[activation] + 4 * biased + 128 * keeps
    assert library.last[gemm.EPILOGUE] == flags
    tolerance = {8: 1e-12, 4: 1e-5}.get(np.dtype(dtype).itemsize, 2e-2)
    for found, expected in ((result, APPLIED[activation](wanted)), *[(z, wanted)] * keeps):
        assert found.dtype == dtype and found.shape == (*x.shape[:-1], 8)
        np.testing.assert_allclose(found.astype(np.float64), expected, tolerance, tolerance * 4)
    assert keeps or (z.shape == (0,) and z.dtype == dtype)


def test_what_no_epilogue_does_is_not_taken(products):
    x, w, bias = numbers(3, 5), numbers(8, 5), numbers(8)
    takes = products.takes
    assert takes(x, w, bias, "relu", True) and takes(x, w, None, "gelu_tanh", True)
    assert takes(x, w[:7], None, "relu", True) and takes(x, w[:7], None, "gelu_tanh", False)
    refused = {
        "rows that are not read eight at a time": (x, w[:7], None, "gelu_tanh", True),
        "a vector": (x[0], w, bias, "relu", False),
        "a row of weights": (x, w[0], None, "relu", False),
        "integers": (x.astype(int), w.astype(int), None, "relu", False),
        "complex numbers": (x + 0j, w + 0j, None, "relu", False),
        "two dtypes": (x, w.astype(np.float32), None, "relu", False),
        "no rows": (x[:0], w, bias, "relu", False),
        "no features": (x[:, :0], w[:, :0], bias, "relu", False),
        "sizes that do not fit": (x[:, :4], w, bias, "relu", False),
        "a bias that does not fit": (x, w, bias[:4], "relu", False),
    }
    for name, given in refused.items():
        assert not takes(*given), name
        assert products.forward(*given) is None, name
    assert not products._runtime.lt.calls
    products._runtime.lt.refuses = True
    assert products.forward(x, w, bias, "relu", True) is None


def test_cublaslt_may_say_that_it_has_no_algorithm(products):
    """By a status, as the real one does, and not only by a count of none."""
    x, w, bias = numbers(3, 5), numbers(8, 5), numbers(8)
    assert products(x, w.T) is not None
    library = products._runtime.lt
    library.status = gemm.NOT_SUPPORTED
    before = len(library.objects)
    assert products(x[:2], w.T) is None
    assert products.forward(x, w, bias, "relu", False) is None
    assert len(library.objects) == before + 8  # descriptors, and no preferences
    library.status = 1
    with pytest.raises(RefusedError):
        products(x[:1], w.T)


LIBRARIES: list[Library] = []


def planned_on(layer):
    def load():
        runtime = Runtime()
        LIBRARIES.append(runtime.lt)
        return runtime

    layer.product = Products(layer, load)
    return [layer.product]


@pytest.fixture(scope="module")
def device():
    yield from served(planned_on)


def feed_forward(layer):
    return lambda x, *weights: fb.func.functional_call(
        layer, dict(zip((n for n, _ in layer.named_parameters()), weights, strict=True)), (x,)
    )


@pytest.mark.parametrize("dtype", [fb.float64, fb.float32, fb.float16, fb.bfloat16], ids=str)
@pytest.mark.parametrize(
    "activation", [fb.nn.functional.relu, fb.nn.GELU("tanh")], ids=["relu", "gelu"]
)
def test_a_transformer_layer_takes_one_call_for_both(activation, dtype, device):
    kind = fb.nn.TransformerEncoderLayer
    layer = kind(8, 2, 16, 0.0, activation, dtype=fb.float64)
    inputs = [fb.randn(3, 2, 8, dtype=fb.float64), *(p.detach() for p in layer.parameters())]
    ran = []
    whole = fb.ops.linear_activation
    be = bind(device)
    kernel = be.linear_activation

    def watched(*args):
        before = LIBRARIES[-1].calls
        found = kernel(*args)
        ran.append(LIBRARIES[-1].calls - before)
        return found

    watched.takes = kernel.takes
    setattr(be, whole.name, watched)
    try:
        agree(feed_forward(layer), inputs, dtype, device)
    finally:
        setattr(be, whole.name, kernel)
    assert ran == [1]


def test_where_the_library_refuses_the_layer_is_as_before(device, monkeypatch):
    layer = fb.nn.TransformerEncoderLayer(8, 2, 16, 0.0, dtype=fb.float64)
    x = fb.randn(3, 2, 8, dtype=fb.float64)
    layer.to(device)(x.to(device))  # there is a library now
    monkeypatch.setattr(LIBRARIES[-1], "refuses", True)
    monkeypatch.setattr(bind(device).backend.libraries[0], "plans", {})
    found = layer(x.to(device)).to("cpu")
    fb.testing.assert_close(found, layer.to("cpu")(x), rtol=1e-12, atol=1e-12)


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
    kept = attributes.EPILOGUE_AUX_POINTER, attributes.EPILOGUE_AUX_LD
    assert [*map(int, kept)] == [gemm.AUX_POINTER, gemm.AUX_LEADING]
    epilogues = lt.Epilogue
    assert int(epilogues.DEFAULT) == gemm.NO_EPILOGUE
    relu, gelu = gemm.ACTIVATIONS["relu"], gemm.ACTIVATIONS["gelu_tanh"]
    made = {
        "BIAS": gemm.ADD_BIAS,
        "RELU": relu,
        "RELU_BIAS": relu | gemm.ADD_BIAS,
        "GELU": gelu,
        "GELU_BIAS": gelu | gemm.ADD_BIAS,
        "GELU_AUX": gelu | gemm.KEEP_Z,
        "GELU_AUX_BIAS": gelu | gemm.KEEP_Z | gemm.ADD_BIAS,
    }
    assert made == {name: int(getattr(epilogues, name)) for name in made}
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


DESCRIBED = """
import numpy as np
import nvmath.bindings.cublasLt as lt
from flambeau_cupy.libraries import gemm

assert lt.cuBLASLtError(gemm.NOT_SUPPORTED).status == gemm.NOT_SUPPORTED
made, create = [], lt.matmul_desc_create

def note(*args):
    made.append(create(*args))
    return made[-1]

class Noting:
    def __getattr__(self, name):
        return note if name == "matmul_desc_create" else getattr(lt, name)

def read(attribute, dtype):
    value, size = np.zeros((), dtype), np.zeros((), np.uint64)
    lt.matmul_desc_get_attribute(
        made[-1], attribute, value.ctypes.data, value.nbytes, size.ctypes.data
    )
    assert int(size) == value.nbytes
    return int(value)

for kind in gemm.DATA_TYPES:
    for epilogue in (1, 2, 4, 6, 32, 36, 160, 164):
        for batch in (1, 3):
            one = gemm.Factor(24, False, 96, 16)
            signature = gemm.Signature(4, 24, 24, batch, one, one, kind, epilogue, False, 0)
            try:
                gemm.Plan(Noting(), 0, signature)
            except lt.cuBLASLtError as error:
                assert error.status == 1, error  # no handle without a device: all else is said
            assert read(gemm.EPILOGUE, np.int32) == epilogue
            assert read(gemm.AUX_LEADING, np.int64) == (24 if epilogue & gemm.KEEP_Z else 0)
            print(kind, epilogue, batch)
"""


def test_the_real_library_takes_every_descriptor(tmp_path):
    """With a driver's library whose functions all fail: up to the choice of an algorithm."""
    pytest.importorskip("nvmath.bindings.cublasLt", reason="needs nvmath-python")
    pytest.importorskip("nvidia.cublas", reason="needs nvidia-cublas-cu12")
    pytest.importorskip("nvidia.cudnn", reason="needs cuDNN, which names the driver's functions")
    lines = said_with_a_driver_that_answers(DESCRIBED, tmp_path)
    assert len(lines) == len(gemm.DATA_TYPES) * 8 * 2
