"""Sources of C++ compiled against the headers of `flambeau.utils.cpp_extension`."""

from __future__ import annotations

import gc
import io
import math
import operator
import os
import shutil
import struct
import subprocess
import sys
import textwrap
import threading
from functools import reduce
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flambeau as fb

pytest.importorskip("pybind11", reason="extensions are compiled with pybind11")
if shutil.which(os.environ.get("CXX", "c++").split()[0]) is None:
    pytest.skip("there is no compiler of C++", allow_module_level=True)

from flambeau.utils import cpp_extension

SOURCE = Path(__file__).with_name("cpp_extension") / "extension.cpp"
# Extensions of others may take warnings for errors, those of the headers too.
FLAGS = "-O0 -fopenmp -Wall -Wextra -Werror".split()
FLAGS += os.environ.get("FLAMBEAU_TEST_CXXFLAGS", "").split()


@pytest.fixture(scope="session")
def build_directory(tmp_path_factory):
    """One for all workers: the first of them compiles."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "cpp_extension"


@pytest.fixture(scope="session")
def ext(build_directory):
    return cpp_extension.load(
        "extension_of_tests", str(SOURCE), extra_cflags=FLAGS, build_directory=str(build_directory)
    )


@pytest.mark.parametrize("dtype", [fb.float32, fb.float64])
@pytest.mark.parametrize("count", [1, 3, 4, 7, 8, 9, 31, 64])
def test_vectors_of_the_cpu_compute_each_number_and_their_reductions(ext, dtype, count):
    x, y = fb.randn(count, dtype=dtype), fb.randn(count, dtype=dtype)
    products, mapped, ends = ext.by_vectors(x, y)
    fb.testing.assert_close(products, x * y + 2 - x.abs())
    fb.testing.assert_close(mapped, x.sigmoid())
    fb.testing.assert_close(ends, fb.stack([x.max(), x.square().sum(), x @ y]))
    assert ext.by_vectors(fb.where(x == x.min(), math.nan, x), y)[2].isnan().all()


def test_functions_of_at_are_those_of_flambeau(ext):
    x, y = fb.randn(3, 4), fb.randn(3, 4)
    z = fb.sigmoid(x) * y.tanh() + 1.5 - 1
    assert fb.equal(ext.gate(x, y, 1.5), (1 - z).reciprocal() * 2)
    first, total, rest, all_of_it = ext.gate_parts(x)
    assert fb.equal(first, x)
    assert fb.equal(total, (x + 1).sum(0, keepdim=True))
    assert fb.equal(rest, x[:, 1:])
    assert fb.equal(all_of_it, x.sum())


def test_functions_of_at_take_sizes_as_one_number_and_slice_as_the_methods_do(ext):
    x = fb.tensor([0.0, 3.0, 1.0, 2.0])
    filled, wide, part, rest, hot = ext.parts_of(x, 4)
    assert filled.tolist() == [-1.0] * 4
    assert filled.dtype is x.dtype
    assert wide.tolist() == [[7] * 4] * 2
    assert wide.dtype is fb.int64
    assert part.tolist() == [3, 2]
    assert rest.tolist() == [3, 1, 2]
    assert hot.argmax(1).tolist() == [0, 3, 1, 2]


X = fb.ones(2, 3)


@pytest.mark.parametrize(
    ("how", "one", "other", "message"),
    [
        (
            "type",
            X,
            X.long(),
            "argument #1 'x' to have the same type as tensor for argument #2 'y'",
        ),
        ("dim", X[0], X, "Expected 2-dimensional tensor, but got 1-dimensional tensor"),
        ("sizes", X.t(), X, r"tensor of size \[2, 3\], but got tensor of size \[3, 2\]"),
        ("same size", X, X.t(), r"\[2, 3\] does not equal \[3, 2\]"),
        ("numel", X, X[0], "6 does not equal 3"),
        ("contiguous", X, X.t(), "non-contiguous tensor for argument #2 'y'"),
        ("gpu", X, X, "'x' is on CPU, .*'y' is on CPU, but expected it to be on GPU"),
    ],
)
def test_checks_of_arguments_name_them(ext, how, one, other, message):
    if how != "gpu":
        ext.checked(X, X, how)
    with pytest.raises(
        RuntimeError, match=message + r".* \(while checking arguments for checked\)"
    ):
        ext.checked(one, other, how)


def test_ops_that_a_library_registers_are_found_by_their_names(ext):
    from flambeau.compat._torch import ops

    x = fb.tensor([1.0, 2.0], requires_grad=True)
    named, older = ops.flambeau_tests, ops.flambeau_older
    assert named.plus(x).tolist() == [2, 3]
    assert named.plus(n=4, x=x).tolist() == [5, 6]
    assert named.by_device(x, 3).tolist() == [4, 5]
    assert named.later([x, x]).tolist() == [0, 1]
    assert older.plus(x, 2).tolist() == [3, 4]
    assert older.minus(x).tolist() == [-1, 0]
    found, nothing = named.maybe(x)
    assert fb.equal(found, x)
    assert nothing is None
    assert [part.tolist() for part in named.maybe(x, how="one", y=x)] == [[2, 3], [1, 2]]
    named.plus(x, 5).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [1, 1]
    for by in ((), (1,), ([1, 1],)):
        assert named.padded(x, *by) == ([1, 1], [])
    assert named.padded(x, by=[3, 4], by_more=0.5) == ([3, 4], [0.5, 0.5, 0.5])
    with pytest.raises(TypeError, match="the argument 'n' is missing"):
        named.by_device(x)
    with pytest.raises(TypeError, match="unexpected arguments 'm'"):
        named.plus(x, m=3)
    with pytest.raises(AttributeError, match="nothing_of_this_name"):
        named.nothing_of_this_name(x)


def test_a_trace_keeps_ops_of_a_library_whole_as_nobody_sees_what_they_write(ext):
    from flambeau.compat._torch import ops

    def program(x):
        return ops.flambeau_tests.row_sums(x * 2, scale=3)

    x = fb.arange(6.0).reshape(2, 3)
    traced = fb.jit.trace(program, (x,))
    assert fb.equal(traced(x + 1), program(x + 1))
    pytest.importorskip("onnx")
    file = io.BytesIO()
    with pytest.raises(fb.onnx.UnsupportedOperatorError, match="flambeau_tests::row_sums"):
        fb.onnx.export(program, x, file)
    name = "flambeau_tests::row_sums"
    fb.onnx.register_custom_op_symbolic(name, lambda g, x, scale: g.op("Mine::Rows", x), 9)
    try:
        assert "Mine::Rows" in fb.onnx.export_to_pretty_string(program, x)
    finally:
        fb.onnx.unregister_custom_op_symbolic(name, 9)


def test_a_script_calls_ops_that_a_library_registers(ext):
    from typing import Optional

    torch = fb

    @torch.jit.script
    def program(x, y: Optional[torch.Tensor] = None):  # noqa: UP045
        first, second = torch.ops.flambeau_tests.maybe(x, y, how="one")
        total = torch.ops.flambeau_tests.plus(first, 2) + torch.ops.flambeau_older.plus(x, 1)
        return total if second is None else total + second

    x = fb.tensor([1.0, 2.0])
    assert program(x).tolist() == [6, 8]
    assert program(x, x).tolist() == [7, 10]


def test_operations_in_cpp_are_recorded(ext):
    x = fb.randn(2, 3, dtype=fb.float64, requires_grad=True)
    y = fb.randn(2, 3, dtype=fb.float64, requires_grad=True)
    assert fb.autograd.gradcheck(lambda x, y: ext.gate(x, y, 3.0), (x, y))
    assert not ext.recorded(x)
    assert fb.is_grad_enabled()


def test_a_gradient_in_cpp_is_differentiated_again(ext):
    x = fb.randn(3, dtype=fb.float64, requires_grad=True)
    assert fb.autograd.gradcheck(lambda x: ext.scaled(x, 1.5), (x,))
    assert fb.autograd.gradgradcheck(lambda x: ext.scaled(x, 1.5), (x,))
    squares, total = ext.scaled(x, 2.0)
    assert fb.equal(squares, x * x * 2)
    assert total.requires_grad


@pytest.mark.parametrize("dtype", [fb.float32, fb.float64, fb.float16, fb.int64, fb.uint8])
def test_accessors_see_elements_whatever_the_strides(ext, dtype):
    x = fb.arange(24).reshape(4, 6).to(dtype)
    for view in (x, x.t(), x[::2, 1::2], x[:, :0], x.expand(4, 6)[1:2]):
        assert ext.row_sums(view).tolist() == view.to(fb.float64).sum(1).tolist()


def test_a_dtype_without_a_case_is_named(ext):
    with pytest.raises(RuntimeError, match="\"row_sums\" not implemented for 'Bool'"):
        ext.row_sums(fb.ones(2, 2, dtype=fb.bool))


def test_pointers_are_the_memory_of_the_tensor(ext):
    x = fb.randn(5, 7).t()
    assert fb.equal(ext.squares(x), x * x)
    assert ext.squares(fb.ones(0)).tolist() == []


def test_packed_accessors_hold_sizes_and_strides(ext):
    x = fb.randn(3, 5, dtype=fb.float64)[::2]
    assert fb.equal(ext.packed(x), x.t())


def test_what_an_index_gives_is_written_to(ext):
    x = fb.zeros(4, 3)
    ext.write_parts(x)
    assert x.tolist() == [[5, 5, 2.5], [6, 0, 2.5], [0, -1, 2.5], [0, -1, 2.5]]


def test_operators_of_bits_have_their_names_of_python(ext):
    x = fb.tensor([12, 5])
    assert ext.by_names_of_python(x, fb.tensor([10, 4])).tolist() == [14, 5]
    assert x.tolist() == [8, 4]


def test_a_write_in_cpp_has_a_gradient_and_a_version(ext):
    base = fb.ones(4, 3, requires_grad=True)
    x = base * 1
    version = x._version
    ext.write_parts(x)
    assert x._version > version
    x.sum().backward()
    assert base.grad is not None
    assert base.grad.tolist() == [[0, 0, 0], [0, 1, 0], [1, 0, 0], [1, 0, 0]]


def test_functions_of_several_results(ext):
    x = fb.tensor([[1.0, 5.0, 2.0], [7.0, 0.0, 7.0]])
    values, indices, count = ext.largest(x)
    assert (values.tolist(), indices.tolist(), count) == ([5.0, 7.0], [1, 0], 3)


def test_sizes_outlive_the_tensor_and_follow_a_resize(ext):
    assert ext.sizes_of_temporaries(fb.ones(2, 3)) == [4, 3, 1, 2, 3, 2, 5]


def test_a_tensor_has_one_size_under_two_names(ext):
    x = fb.ones(2, 3)
    assert ext.same(x, x)
    assert not ext.same(fb.ones(1, 1, 1), x)


def test_memory_of_cpp_is_freed_after_its_last_tensor(ext):
    freed = []
    x = ext.borrowed(4, lambda: freed.append(True))
    assert x.tolist() == [0, 1, 2, 3]
    view = x[2:]
    x[2] = 9
    del x
    gc.collect()
    assert not freed
    assert view.tolist() == [9, 3]
    del view
    gc.collect()
    assert freed == [True]


@pytest.mark.parametrize("dtype", [fb.float64, fb.int32, fb.complex64])
def test_options_say_what_is_made(ext, dtype):
    results = ext.made(fb.device("cpu"), dtype)
    assert {x.dtype for x in results} == {dtype}
    assert [list(x.shape) for x in results] == [[2], [2], [3], [2, 2], [2], [], [2]]
    assert results[1].tolist() == [7, 7]
    with pytest.raises(TypeError, match="incompatible function arguments"):
        ext.made("cpu", "float32")


def test_optional_tensors_are_none(ext):
    assert ext.maybe(None, True) is None
    assert ext.maybe(fb.ones(1), False) is None
    assert ext.maybe(fb.ones(1), True).tolist() == [2]


def test_a_parameter_stays_the_object_that_it_is(ext):
    weight = fb.nn.Parameter(fb.ones(2))
    assert ext.row_sums.__doc__ and "Tensor" in ext.row_sums.__doc__
    with pytest.raises(TypeError, match="incompatible function arguments"):
        ext.squares(None)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        ext.squares([1.0, 2.0])
    assert fb.equal(ext.maybe(weight, True), weight * 2)
    assert ext.maybe(weight, True).requires_grad


def test_facts_of_a_tensor_print_as_in_pytorch(ext):
    assert ext.described(fb.ones(2, 3).t()) == "Float cpu [3, 2] [1, 3] 6 0 CPUFloatType 4"


@pytest.mark.parametrize(
    ("how", "error", "message"),
    [
        ("check", RuntimeError, "^three is 3$"),
        ("condition", RuntimeError, r"Expected how\.empty\(\) to be true"),
        ("index", IndexError, "^far out$"),
        ("value", ValueError, "^no such value$"),
        ("type", TypeError, "^no such type$"),
        ("python", RuntimeError, "invalid for input of size 2"),
        ("undefined", RuntimeError, "the tensor is undefined"),
        ("rank", IndexError, "too many indices"),
        ("pointer", RuntimeError, "expected scalar type Double but found Float"),
        ("thread", RuntimeError, "^in a part$"),
        ("otherwise", RuntimeError, "^nothing failed$"),
    ],
)
def test_errors_of_cpp_are_errors_of_python(ext, how, error, message):
    with pytest.raises(error, match=message):
        ext.fails(how)


def test_errors_of_checks_say_what_was_wrong(ext):
    with pytest.raises(RuntimeError, match="row_sums wants a matrix, not 1 dimensions"):
        ext.row_sums(fb.ones(2))
    with pytest.raises(RuntimeError, match="no memory that C"):
        ext.row_sums(fb.ones(2, 2, device="meta"))


def test_python_runs_while_a_loop_over_elements_does(ext):
    started = []

    def start(finish):
        started.append(threading.Thread(target=finish))
        started[0].start()

    assert ext.waits_for(fb.ones(1), start)
    started[0].join()


def test_functions_may_be_called_without_the_lock(ext):
    x = fb.tensor([1.0, -2.0])
    assert ext.without_lock(x).item() == 1 * 4 + (-2)
    assert ext.threads_of_its_own(x).tolist() == [2, 1, 0, -1]


def test_nothing_is_kept_after_a_call(ext):
    x = fb.ones(3, 3)
    before = sys.getrefcount(x)
    ext.row_sums(x)
    ext.gate(x, x)
    assert sys.getrefcount(x) == before


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(width=32, allow_nan=False), max_size=40))
def test_short_floats_are_rounded_as_the_dtypes_are(ext, values):
    x = fb.tensor(values, dtype=fb.float32)
    assert ext.bfloats(values) == x.to(fb.bfloat16).to(fb.float64).tolist()

    def half(value):
        try:
            return struct.unpack("<e", struct.pack("<e", value))[0]
        except OverflowError:
            return math.copysign(math.inf, value)

    assert ext.halves(values) == [half(value) for value in values]


@pytest.mark.parametrize(("dtype", "sums"), [("float16", "halves"), ("bfloat16", "bfloats")])
def test_each_sum_of_short_floats_is_rounded_as_that_of_tensors_is(ext, dtype, sums):
    for numbers in ((2048.0, 1.0, 1.0), (0.1, 0.2, 0.3), (6e4, 3.0, 6e4), (-0.0, 1e-7, 1.5)):
        x, y, z = fb.tensor(numbers, dtype=getattr(fb, dtype))
        largest = max(x + y, fb.tensor(2.0**-23, dtype=x.dtype))
        expected = [x + y + z, x * y - z, (x + y) * z, largest]
        assert getattr(ext, f"sums_of_{sums}")(*numbers) == [each.item() for each in expected]


@pytest.mark.parametrize("grain", [1, 3, 1000])
def test_sums_do_not_depend_on_the_number_of_threads(ext, grain):
    x = fb.rand(100, dtype=fb.float64)
    parts = [part.tolist() for part in x.split(grain)]
    # One after the other: `sum` of Python 3.12 and later is more exact.
    sums = [reduce(operator.add, part) for part in parts]
    assert ext.sum_of_parts(x, grain) == reduce(operator.add, sums)


def test_threads_of_openmp_use_tensors_that_operations_made(ext):
    for _ in range(20):
        assert ext.filled_by_threads(fb.ones(64, dtype=fb.float64)).tolist() == list(range(64))


def test_a_tensor_tells_of_the_memory_under_it(ext):
    x = fb.zeros(4, 5)
    assert ext.stored(x[1:, 2:]) == (80, True, False)


def test_tensors_become_one_vector_and_come_back(ext):
    tensors = [fb.randn(2, 3), fb.randn(3, 2).t(), fb.randn(()), fb.empty(0, 2)]
    flat = ext.flat(tensors)
    assert fb.equal(flat, fb.cat([t.reshape(-1) for t in tensors]))
    parts = ext.unflat(flat, tensors)
    assert all(fb.equal(part, t) for part, t in zip(parts, tensors, strict=True))
    assert parts[1].data_ptr() == flat.data_ptr() + 6 * 4


@pytest.mark.parametrize("how", ["nn", "nt", "tn", "tt", "NN", "Nt", "TN"])
@pytest.mark.parametrize("beta", [0.0, -1.5])
def test_matrices_of_columns_are_multiplied_as_the_first_pytorch_did(ext, how, beta):
    m, n, k = 3, 4, 5
    for dtype, product in (
        (fb.float32, ext.product_of_floats),
        (fb.float64, ext.product_of_doubles),
    ):
        a, b = fb.randn(m, k, dtype=dtype), fb.randn(k, n, dtype=dtype)
        c = fb.full((m, n), math.nan if beta == 0 else 2.0, dtype=dtype)
        wanted = 2 * (a @ b) + (0 if beta == 0 else beta * c)
        lies = [
            x.contiguous() if t in "tT" else x.t().contiguous()
            for x, t in zip((a, b), how, strict=True)
        ]
        found = c.t().contiguous()
        product(how, m, n, k, 2.0, *lies, beta, found)
        assert fb.allclose(found.t(), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("how", ["n", "t", "N", "T"])
@pytest.mark.parametrize("steps", [(1, 1), (2, 3)])
def test_a_matrix_of_columns_is_multiplied_with_a_vector(ext, how, steps):
    m, n = 3, 4
    a = fb.randn(m, n)
    rows, columns = (m, n) if how in "nN" else (n, m)
    x, y = fb.randn(columns, steps[0]), fb.randn(rows, steps[1])
    wanted = y.clone()
    wanted[:, 0] = 2 * ((a if how in "nN" else a.t()) @ x[:, 0]) + 0.5 * y[:, 0]
    ext.times_vector(how, m, n, a.t().contiguous(), x, steps[0], y, steps[1])
    assert fb.allclose(y, wanted, rtol=1e-5, atol=1e-5)


def test_checks_of_the_first_pytorch_say_what_is_wrong(ext):
    c = fb.ones(2, 3).t()
    with pytest.raises(RuntimeError, match="argument 9 has to be contiguous, not of 2 dimensions"):
        ext.product_of_floats("nn", 3, 2, 1, 1.0, fb.ones(3), fb.ones(2), 0.0, c)


def test_dimensions_are_counted_from_the_front(ext):
    assert [ext.wrapped(dim, 3) for dim in (-3, -1, 0, 2)] == [0, 2, 0, 2]
    assert ext.wrapped(-1, 0) == 0
    with pytest.raises(IndexError, match=r"range of \[-3, 2\], but got 3"):
        ext.wrapped(3, 3)


def test_devices_of_cuda_are_those_of_python(ext):
    assert ext.devices() == (fb.cuda.is_available(), fb.cuda.device_count())


def test_an_accessor_of_a_temporary_is_not_compiled(ext):
    assert ext.variables_have_accessors
    assert not ext.temporaries_have_accessors
    assert ext.variables_have_packed_accessors
    assert not ext.temporaries_have_packed_accessors


WAYS_TO_LOAD = {
    "cpp_extension.load": """
        from flambeau.utils import cpp_extension
        cpp_extension.load(
            "extension_of_tests", SOURCE, extra_cflags=FLAGS, build_directory=str(LIBRARY.parent)
        )
    """,
    "load_library": """
        from flambeau.compat._torch import ops
        ops.load_library(LIBRARY)
    """,
    "import": """
        import importlib.util
        spec = importlib.util.spec_from_file_location("extension_of_tests", LIBRARY)
        importlib.util.module_from_spec(spec)
    """,
}


@pytest.mark.parametrize("way", WAYS_TO_LOAD)
def test_an_op_that_cannot_be_registered_is_an_error_of_whoever_loads_the_library(ext, way):
    known = f"""
        from pathlib import Path
        SOURCE, FLAGS, LIBRARY = {str(SOURCE)!r}, {FLAGS!r}, Path({ext.__file__!r})
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(known) + textwrap.dedent(WAYS_TO_LOAD[way])],
        env={**os.environ, "FLAMBEAU_TESTS_REGISTER_WRONGLY": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    told = "'elsewhere::op' is not of the namespace 'flambeau_tests'"
    last = done.stderr.splitlines()[-1]
    if way == "import":  # the interpreter says that there was an error and not which
        assert last.startswith("SystemError")
        assert f"RuntimeWarning: a library cannot register an op: {told}" in done.stderr
    else:
        assert last.startswith(f"RuntimeError: {told}")
