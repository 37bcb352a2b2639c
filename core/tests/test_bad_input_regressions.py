"""Calls that once ended in a wrong result or in the wrong exception."""

from __future__ import annotations

import math

import pytest

import flambeau as fb


@pytest.mark.parametrize("number", [1.5, object()])
def test_an_index_of_another_type_is_an_index_error(number):
    with pytest.raises(IndexError, match="only integers"):
        fb.ones(3)[number]


def test_a_0d_index_tensor_selects_a_view():
    x = fb.zeros(3)
    x[fb.tensor(1)].add_(2)
    assert x.tolist() == [0, 2, 0]


def test_an_integer_tensor_has_no_negative_powers():
    with pytest.raises(RuntimeError, match="negative integer powers"):
        fb.tensor([2]) ** -1


@pytest.mark.parametrize("call", [fb.sort, lambda x: fb.topk(x, 1), lambda x: fb.max(x, 0)])
def test_complex_numbers_have_no_order(call):
    with pytest.raises(RuntimeError, match="complex"):
        call(fb.ones(3, dtype=fb.complex64))


def test_a_dtype_without_a_kernel_is_not_implemented():
    with pytest.raises(NotImplementedError):
        fb.ones(2, dtype=fb.complex64).ceil()


def test_arange_takes_its_end_by_name():
    assert fb.arange(end=3).tolist() == [0, 1, 2]


def test_arange_wants_finite_ends():
    with pytest.raises(RuntimeError, match="unsupported range"):
        fb.arange(math.nan)


def test_scatter_multiplies():
    index = fb.tensor([0, 0, 2])
    found = fb.full((3,), 2.0).scatter(0, index, fb.tensor([3.0, 5.0, 7.0]), reduce="multiply")
    assert found.tolist() == [30, 2, 14]


def test_methods_of_several_results_give_them_all():
    q = fb.eye(2)
    assert q.slogdet().logabsdet.item() == 0
    assert q.geqrf().tau.tolist() == [0, 0]


def test_norm_as_a_method_takes_a_dtype():
    assert fb.ones(4).norm(2, dtype=fb.float64).dtype is fb.float64


def test_a_place_that_is_filled_twice_passes_its_gradient_on_once():
    value = fb.tensor(1.0, requires_grad=True)
    fb.zeros(3).index_fill(0, fb.tensor([1, 1]), value).sum().backward()
    assert value.grad.item() == 1


def test_the_slope_of_a_standard_deviation_of_zero_is_zero():
    x = fb.ones(3, requires_grad=True)
    x.std().backward()
    assert x.grad.tolist() == [0, 0, 0]


@pytest.mark.parametrize("p", [math.inf, -math.inf])
def test_an_extreme_norm_of_no_elements_is_refused(p):
    with pytest.raises(RuntimeError, match="no identity"):
        fb.ones(2, 0).norm(p, dim=1)


def test_a_complex_number_fills_a_bool_tensor_with_whether_it_is_zero():
    assert fb.zeros(1, dtype=fb.bool).fill_(1j).tolist() == [True]


@pytest.mark.parametrize("call", [fb.abs_, fb.is_complex, fb.zeros, lambda x: fb.ones(2).expand(x)])
def test_what_is_no_tensor_or_size_is_a_type_error(call):
    with pytest.raises(TypeError, match="must be"):
        call(["a"])


def test_integers_can_be_cast_to_unsigned_ones():
    assert fb.can_cast(fb.int8, fb.uint8)


def test_a_list_of_tensors_keeps_their_dtype():
    assert fb.tensor([fb.tensor(1.0, dtype=fb.float64)]).dtype is fb.float64


@pytest.mark.parametrize("height", [4, 1])
def test_places_of_a_leaf_that_share_memory_have_equal_parts_of_the_gradient(height):
    x = fb.tensor([1.0, 2.0, 3.0]).expand(height, 3).detach().requires_grad_()
    x.as_strided((1, 2, 2), (3, 1, 1)).square().sum().backward()
    assert x.grad.tolist() == [[2 / height, 8 / height, 6 / height]] * height


def test_windows_of_a_leaf_whose_places_share_memory_have_their_own_parts_of_the_gradient():
    x = fb.tensor([1.0, 2.0, 3.0]).expand(2, 3).detach().requires_grad_()
    x.unfold(1, 2, 1)[1].square().sum().backward()
    assert x.grad.tolist() == [[0, 0, 0], [2, 8, 6]]


@pytest.mark.parametrize(
    "call",
    [
        lambda: fb.zeros(2).put([], fb.ones(2)),
        lambda: fb.repeat([], (2,)),
        lambda: fb.layer_norm(fb.ones(2), [2], [1.0, 1.0]),
        lambda: fb.ones(3).add([-7], alpha=2),
    ],
)
def test_lists_in_the_place_of_tensors_are_type_errors(call):
    with pytest.raises(TypeError, match="must be Tensor"):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: fb.full_like(fb.ones(2), b"x"),
        lambda: fb.full_like(fb.ones(2), 1, dtype=3),
        lambda: fb.ones(3).cumsum(0, dtype="a"),
        lambda: fb.ones(2, out=[1]),
        lambda: fb.eye(2, out=(1, 2)),
        lambda: fb.linspace(0, 1, 3, out=[]),
        lambda: fb.ones(3, device="ref").eq((1, 2)),
        lambda: fb.hsplit([1, 2], 2),
        lambda: fb.resize_as_(1, fb.ones(2)),
        lambda: fb.view_as(1, fb.ones(2)),
        lambda: fb.reshape_as([1], fb.ones(1)),
        lambda: fb.pin_memory(1),
        lambda: fb.ones(3).index_select(0, [0]),
        lambda: fb.bincount(fb.tensor([0, 1]), 3),
        lambda: fb.cov(fb.ones(3, 3), aweights=3),
        lambda: fb.trapz(fb.ones(3), [1.0, 2.0, 3.0]),
        lambda: fb.batch_norm(fb.ones(2, 3), 3, None, None, None, True, 0.1, 1e-5, True),
        lambda: fb.instance_norm(fb.ones(2, 3, 4), None, None, 3, 3, False, 0.1, 1e-5, True),
        lambda: fb.cosine_embedding_loss(fb.ones(2, 3), 3, fb.ones(2)),
        lambda: fb.linalg.householder_product(fb.eye(3), [1.0]),
        lambda: fb.lstm_cell((1, 1), (fb.ones(1, 1),) * 2, fb.ones(4, 1), fb.ones(4, 1)),
        lambda: fb.gru_cell(fb.ones(1, 1), fb.ones(1, 1), [1], fb.ones(3, 1)),
        lambda: fb.polygamma("a", fb.ones(1)),
        lambda: fb.round(fb.ones(3), decimals=1.5),
        lambda: fb.max_pool1d(fb.ones(1, 1, 3), math.inf),
        lambda: fb.max_pool1d(fb.ones(1, 1, 3), (1.5,)),
        lambda: fb.rand(3, generator=3),
        lambda: fb.normal(fb.ones(3), 1.0, (3,)),
        lambda: fb.ones(3).normal_(generator=[1]),
        lambda: fb.fft.fftfreq(4, dtype=3),
        lambda: fb.hann_window(4, dtype=(1,)),
        lambda: fb.finfo(fb.ones(1)),
        lambda: fb.iinfo(False),
        lambda: fb.ones(2).record_stream((3,)),
        lambda: fb.sparse.mm(fb.eye(2).to_sparse(), "a"),
        lambda: fb.eye(2).to_sparse() * [1.0],
        lambda: fb.ones(2).sum(fb.eye(2).to_sparse()),
        lambda: fb.ones(2).storage().copy_(3),
        lambda: fb.ones(2).untyped_storage().byteswap(3),
        lambda: fb.add(fb.ones(2), fb.Size([2]), 2**70),
        lambda: fb.conv1d(fb.ones(1, 1, 3), fb.ones(1, 1, 1), (0.0,)),
        lambda: fb.full((2,), 1, dtype="a"),
        lambda: fb.tensor([], dtype="mean"),
        lambda: fb.as_tensor((1, 2), fb.ones(1)),
        lambda: fb.ones(2).new_zeros((2,), dtype=3),
        lambda: fb.ones(2).index_copy(0, "a", fb.ones(2)),
        lambda: fb.float_power(2, -2),
        lambda: fb.rms_norm(fb.ones(1), [1], 1),
        lambda: fb.histogramdd(fb.ones(3, 3), 3, weight=[1.0]),
        lambda: fb.linear(fb.ones(3, 3), fb.ones(3, 3), 3),
        lambda: fb.ones(3).index_add(0, None, fb.ones(3)),
        lambda: fb.ones(3).index_reduce(0, (1, -1), fb.ones(3), "prod"),
        lambda: fb.arange(0, 1.5, out=(1,)),
        lambda: fb.normal(0.0, size=(2,), out=()),
        lambda: fb.diagflat(fb.ones(2), math.inf),
    ],
)
def test_arguments_of_the_wrong_kind_are_type_errors(call):
    with pytest.raises(TypeError):
        call()


@pytest.mark.filterwarnings("ignore:range is deprecated:UserWarning")
@pytest.mark.parametrize(
    "call",
    [
        lambda: fb.full_like(fb.ones(2, dtype=fb.int64), math.inf),
        lambda: fb.asarray(math.inf, dtype=fb.uint8),
        lambda: fb.ones(2, dtype=fb.int32).mul_(math.nan).clamp_(min=math.inf),
        lambda: fb.ones(2).bernoulli(math.inf),
        lambda: fb.ones(0, dtype=fb.int64).bernoulli(-2),
        lambda: fb.ones(3).tile(2**70),
        lambda: fb.ones(3, device="ref").tile((2**63, 2)),
        lambda: fb.combinations(fb.ones(1), 2**63),
        lambda: fb.chunk(fb.ones(0), 2**70),
        lambda: fb.arange(2**63, device="ref"),
        lambda: fb.range(math.inf),
        lambda: fb.nn.functional.interpolate(fb.ones(1, 1, 3), scale_factor=-math.inf),
        lambda: fb.ones(2, 3, device="ref").copy_(fb.eye(2, 3).to_sparse()),
        lambda: fb.empty(2**70, device="ref"),
        lambda: fb.irfft(fb.ones(1, 1, 1, 2), 1),
        lambda: fb.adaptive_avg_pool1d(fb.ones(2, 2, 3), 2**62),
        lambda: fb.adaptive_max_pool2d(fb.ones(2, 3, 3, device="meta"), 2**70),
        lambda: fb.ones(3, 3).to_sparse().resize_as_(fb.ones(2)),
        lambda: fb.tensor(True).logical_or_(fb.tensor(1, device="ref")),
        lambda: fb.tensor(1.0).true_divide_(fb.ones((), device="meta")),
    ],
)
def test_values_and_sizes_beyond_reason_are_runtime_errors(call):
    with pytest.raises(RuntimeError):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda n: fb.linspace(0, 1, n),
        lambda n: fb.logspace(0, 1, n),
        lambda n: fb.hann_window(n),
        lambda n: fb.signal.windows.gaussian(n),
        lambda n: fb.vander(fb.ones(3), n),
        lambda n: fb.mvlgamma(fb.ones(2) * n, n),
        lambda n: fb.arange(n, device="ref"),
        lambda n: fb.eye(n, device="ref"),
        lambda n: fb.histogramdd(fb.rand(3, 2), n),
    ],
)
def test_what_has_no_room_is_refused_before_a_number_of_it_is_computed(call):
    with pytest.raises((RuntimeError, MemoryError)):
        call(2**45)  # as Python numbers, one second's worth would be a 50,000,000th of it


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.split(2),
        lambda x: x.chunk(2**43),
        lambda x: x.tensor_split(2**43),
        lambda x: x.unbind(),
    ],
)
def test_more_pieces_than_there_is_room_for_are_refused_at_once(call):
    with pytest.raises(fb.OutOfMemoryError, match="not enough memory"):
        call(fb.ones(2**44, device="meta"))


@pytest.mark.parametrize("make", [fb.linspace, lambda a, b, n, device: fb.hann_window(n)])
def test_vectors_on_meta_have_a_shape_and_no_numbers(make):
    n = 2**45 if make is fb.linspace else 4
    assert make(0, 1, n, device="meta").shape == (n,)


def test_a_vandermonde_matrix_of_no_elements_may_have_any_width():
    assert fb.vander(fb.ones(0), 2**45).shape == (0, 2**45)


def test_frequencies_of_no_values_and_of_no_distance_are_those_of_a_division_by_zero():
    assert math.isnan(fb.fft.rfftfreq(0).item())
    assert fb.fft.fftfreq(0).shape == (0,)
    assert str(fb.fft.fftfreq(4, 0.0).tolist()) == "[nan, inf, -inf, -inf]"


@pytest.mark.parametrize("offset", [-(2**31), 2**31, -(2**62), 2**70, -3, 4])
def test_diagonals_beyond_the_corners_are_empty_and_no_other_memory(offset):
    assert fb.ones(2, 3).diagonal(offset).shape == (0,)


def test_dimensions_of_a_number_to_solve_for_are_an_index_error():
    with pytest.raises(IndexError):
        fb.linalg.tensorsolve(fb.tensor(1.0), fb.tensor(1.0), (2,))


def test_a_cross_entropy_of_no_classes_is_not_a_number():
    empty = fb.ones(2, 0)
    assert math.isnan(fb.nn.functional.cross_entropy(empty, empty).item())


def test_rounding_to_more_decimals_than_float64_has_is_that_of_c():
    found = fb.round(fb.tensor([0.5, math.inf]), decimals=400).tolist()
    assert all(math.isnan(x) for x in found)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x @ x,
        lambda x: x + fb.ones(5),
        lambda x: x.view(7),
        lambda x: x.t().view(6),
        lambda x: x.expand(4, 4),
        lambda x: x.sub_(fb.ones(7)),
        lambda x: fb.cat([x, fb.ones(3, 3, 3)]),
        lambda x: x.index_select(0, fb.tensor([9])),
    ],
)
def test_a_wrong_argument_shows_one_exception_without_that_of_the_kernel(call):
    with pytest.raises((RuntimeError, IndexError)) as caught:
        call(fb.ones(2, 3))
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert caught.value.__cause__ is None


MAKERS = {
    "arange": (3,),
    "empty": (3,),
    "eye": (3,),
    "full": ((3,), 1.0),
    "linspace": (0, 1, 3),
    "logspace": (0, 1, 3),
    "ones": (3,),
    "rand": (3,),
    "randint": (3, (2,)),
    "randn": (3,),
    "randperm": (3,),
    "zeros": (3,),
}


@pytest.mark.parametrize("out", [0.0, [1], object()], ids=lambda out: type(out).__name__)
@pytest.mark.parametrize("name", MAKERS)
def test_what_is_no_tensor_is_no_out_even_where_the_device_and_dtype_are_given(name, out):
    dtype = fb.int64 if name.startswith("randi") or name == "randperm" else fb.float32
    with pytest.raises(TypeError, match="must be Tensor"):
        getattr(fb, name)(*MAKERS[name], out=out, device="cpu", dtype=dtype)


def test_places_that_hold_go_nowhere():
    with pytest.raises(TypeError, match="two operands"):
        fb.where(fb.tensor([True]), out=fb.zeros(1))


@pytest.mark.parametrize(
    "size", [(b"x", (6,)), (2, "3"), (2.5, 3), ([2], 3), (2**70, 1), (-1, 2)], ids=repr
)
@pytest.mark.parametrize(
    "call",
    [
        lambda x, size: x.new_zeros(*size),
        lambda x, size: x.new_empty(size),
        lambda x, size: x.sparse_resize_(size, 1, 1),
        lambda x, size: x.sparse_resize_and_clear_(size, 1, 1),
    ],
)
def test_sizes_of_a_sparse_tensor_are_those_that_a_tensor_can_have(call, size):
    for stored in (0, 1):
        x = fb.sparse_coo_tensor(fb.zeros(2, stored, dtype=fb.int64), fb.zeros(stored), (2, 3))
        with pytest.raises((TypeError, RuntimeError), match=r"tuple of ints|negative|overflow"):
            call(x, size)
        assert tuple(x.shape) == (2, 3)


@pytest.mark.parametrize("name", ["data", "requires_grad", "_grad_fn", "_backward_hooks"])
def test_what_makes_a_tensor_is_not_deleted(name):
    x = fb.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="requires_grad must be a bool|[Dd]elet"):
        delattr(x, name)
    assert x.requires_grad
    sparse = fb.eye(2).to_sparse().requires_grad_()
    if name == "requires_grad":
        with pytest.raises(RuntimeError, match="must be a bool"):
            del sparse.requires_grad


@pytest.mark.parametrize("most", [(1 << 63) - 1, 1 << 62, 1 << 60])
def test_counts_of_more_numbers_than_memory_has_are_refused(most):
    with pytest.raises(RuntimeError, match="not enough memory"):
        fb.tensor([0, most]).bincount()
    with pytest.raises(RuntimeError, match="negative"):
        fb.tensor([-1, 1]).bincount()


@pytest.mark.parametrize(
    ("op", "call"),
    [
        ("median_along", lambda x: x.median(1)),
        ("kthvalue", lambda x: x.kthvalue(1)),
        ("mode", lambda x: x.mode()),
        ("ne", lambda x: x.unique_consecutive()),
        ("nonzero", lambda x: x.unique(return_inverse=True)),
        ("repeat_places", lambda x: x.unique(dim=0, return_inverse=True)),
    ],
)
def test_errors_of_kernels_that_a_function_calls_itself_are_told_as_the_op_s(
    op, call, plain, monkeypatch
):
    def broken(*args):
        raise ValueError("no room on the moon")

    x = plain([[3.0, 1.0, 2.0], [1.0, 1.0, 2.0]])
    call(x)
    monkeypatch.setattr(x._be, op, broken)
    with pytest.raises(RuntimeError, match=op):
        call(x)
