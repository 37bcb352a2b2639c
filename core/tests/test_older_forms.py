"""Forms of calls that programs written for older PyTorch use, and some of Python's."""

from __future__ import annotations

import copy
import pickle
import tempfile
import warnings

import numpy as np
import pytest

import flambeau as fb

pytest.importorskip("flambeau_numpy")


def test_types_of_tensors_stand_in_annotations():
    from typing import get_args

    assert get_args(fb.FloatTensor | None) == (fb.FloatTensor, type(None))
    assert get_args(None | fb.LongTensor) == (type(None), fb.LongTensor)


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [(float, fb.float64), (int, fb.int64), (bool, fb.bool), (complex, fb.complex128)],
)
def test_types_of_python_are_dtypes(kind, dtype):
    x = fb.tensor([1.0, 0.0])
    made = [
        fb.zeros(2, dtype=kind),
        fb.ones_like(x, dtype=kind),
        fb.full((2,), 1, dtype=kind),
        fb.empty(2, dtype=kind),
        fb.tensor([1], dtype=kind),
        fb.as_tensor([1], dtype=kind),
        x.new_zeros(2, dtype=kind),
        x.to(kind),
        x.to("cpu", kind),
        x.to(dtype=kind),
        x.sum(dtype=kind),
        x.cumsum(0, dtype=kind),
    ]
    assert {t.dtype for t in made} == {dtype}
    if dtype.category in (1, 2):
        assert fb.arange(3, dtype=kind).dtype is dtype
    if dtype.is_floating_point:
        assert fb.rand(2, dtype=kind).dtype is fb.softmax(x, 0, dtype=kind).dtype is dtype
        assert fb.hann_window(3, dtype=kind).dtype is dtype
        assert fb.finfo(kind) == fb.finfo(dtype)
    assert fb.can_cast(kind, dtype) and fb.promote_types(kind, dtype) is dtype


def test_other_types_are_no_dtypes():
    for call in (
        lambda: fb.zeros(2, dtype=str),
        lambda: fb.rand(2, dtype="float"),
        lambda: fb.tensor([1], dtype=list),
        lambda: fb.arange(2, dtype=str),
        lambda: fb.ones(1).to(str),
    ):
        with pytest.raises(TypeError, match="dtype"):
            call()


def test_facts_of_dtypes_are_equal_where_dtypes_are():
    assert fb.finfo(fb.float32) == fb.finfo(fb.float) == fb.finfo()
    assert fb.finfo(fb.float32) != fb.finfo(fb.float64)
    assert fb.iinfo(fb.int8) == fb.iinfo(fb.int8) != fb.iinfo(fb.uint8)
    assert hash(fb.finfo(fb.float32)) == hash(fb.finfo())
    assert copy.deepcopy(fb.float32) is fb.float32


def test_a_file_is_mapped_by_its_number_of_bytes():
    with tempfile.NamedTemporaryFile() as file:
        file.write(bytes(range(8)))
        file.flush()
        storage = fb.UntypedStorage.from_file(file.name, shared=False, nbytes=4)
        assert list(storage) == [0, 1, 2, 3]


def test_functions_of_numpy_give_tensors():
    x = fb.tensor([1.0, -2.0])
    assert isinstance(np.abs(x), fb.Tensor) and np.abs(x).tolist() == [1.0, 2.0]
    assert np.add(x, x).dtype is fb.float32
    assert np.isnan(x).dtype is fb.uint8
    assert isinstance(np.sin(x.double()), fb.Tensor)
    with pytest.raises(RuntimeError, match="requires grad"):
        np.sin(fb.ones(1, requires_grad=True))


def test_alpha_may_be_a_tensor_of_one_number():
    x = fb.tensor([1.0, 2.0])
    assert fb.add(x, x, alpha=fb.tensor(2)).tolist() == [3.0, 6.0]
    assert x.sub(x, alpha=fb.tensor(0.5)).tolist() == [0.5, 1.0]
    whole = fb.tensor([1])
    with pytest.raises(RuntimeError, match="alpha must not be a floating point number"):
        fb.add(whole, whole, alpha=fb.tensor(2.5))
    for alpha in (fb.tensor([2.0]), fb.tensor(2.0, requires_grad=True)):
        with pytest.raises(TypeError, match="'alpha' must be Number, not Tensor"):
            fb.add(x, x, alpha=alpha)


def test_constructors_take_a_size_by_name():
    x = fb.ones(1, dtype=fb.float64)
    for made in (x.new(size=(2, 3)), fb.Tensor(size=(2, 3)), fb.DoubleTensor(size=(2, 3))):
        assert made.shape == (2, 3)
    assert x.type(fb.Tensor).dtype is fb.float32


def test_elements_are_mapped_by_functions_of_three():
    x, y = fb.tensor([1.0, 2.0]), fb.tensor([3.0])
    z = x.clone()
    assert z.map2_(x, y, lambda a, b, c: a + b * c) is z and z.tolist() == [4.0, 8.0]
    with pytest.raises(RuntimeError, match=r"Can't call map2_\(\) on Variable that requires grad"):
        z.map2_(x, fb.ones(2, requires_grad=True), max)


def test_tensors_have_a_number_and_are_not_inference():
    x, y = fb.ones(1), fb.ones(1)
    assert x._cdata == x._cdata != y._cdata
    assert not x.is_inference() and not fb.is_inference(x)
    assert not (x.is_mps or x.is_xpu or x.is_mkldnn or x.is_nested or x.is_sparse_csr)


def test_masks_of_bytes_warn():
    x, mask = fb.tensor([1.0, 2.0]), fb.tensor([1, 0], dtype=fb.uint8)
    with pytest.warns(UserWarning, match=r"indexing with dtype torch\.uint8 is now deprecated"):
        assert x[mask].tolist() == [1.0]
    with pytest.warns(UserWarning, match="where received a uint8 condition tensor"):
        assert fb.where(mask, x, -x).tolist() == [1.0, -2.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert x[mask.bool()].tolist() == [1.0]


def test_passes_over_a_loader_have_next():
    loader = fb.utils.data.DataLoader(list(range(4)), batch_size=2)
    assert iter(loader).next().tolist() == [0, 1]


def test_the_constructor_takes_tensors_of_any_dtype_and_shares_their_memory():
    class Mapped(fb.Tensor):
        pass

    numbers = fb.arange(3)
    for made in (fb.Tensor(numbers), Mapped(numbers)):
        assert made.dtype is fb.int64 and made.data_ptr() == numbers.data_ptr()
    with pytest.raises(TypeError, match="expected FloatTensor"):
        fb.FloatTensor(numbers)


@pytest.mark.parametrize("upper", [True, False])
def test_symeig_has_the_gradient_of_the_triangle_that_it_reads(upper):
    x = fb.tensor([[2.0, 0.3, -1.0], [9.0, 1.0, 0.5], [7.0, 8.0, -3.0]], dtype=fb.float64)
    x = (x if upper else x.mT.contiguous()).requires_grad_()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert fb.autograd.gradcheck(lambda a: fb.symeig(a, True, upper)[0], (x,))
        assert fb.autograd.gradcheck(lambda a: fb.symeig(a, True, upper)[1].abs(), (x,))
        values = fb.symeig(x, upper=upper).eigenvalues
    whole = (x.triu() + x.triu(1).mT if upper else x.tril() + x.tril(-1).mT).detach()
    assert fb.allclose(values, fb.linalg.eigvalsh(whole))


def test_sizes_of_functions_may_be_given_one_by_one():
    x = fb.arange(3.0).reshape(3, 1)
    assert fb.equal(fb.expand(x, 3, 2), x.expand(3, 2))
    assert fb.equal(fb.expand(x, (3, 2)), x.expand(3, 2))
    assert fb.equal(fb.repeat(x, 2, 2), x.repeat(2, 2))
    assert fb.equal(fb.repeat(fb.ones(2), 2), fb.ones(4))


def test_division_by_its_name_in_python_2():
    assert fb.tensor(4.0).__rdiv__(2.0).item() == 0.5


def test_data_of_another_kind_is_for_programs_of_the_first_version():
    from flambeau.compat import torch_alias

    x = fb.ones(2, requires_grad=True)
    with torch_alias("1.2"):
        x.data = x.data.long()
    assert x.dtype is fb.int64
    y = fb.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="must be floating point"):
        y.data = y.data.long()


def test_elements_cannot_be_deleted():
    x = fb.ones(3)
    with pytest.raises(TypeError, match="deleting"):
        del x[0]


def test_a_bool_is_no_dimension_of_topk():
    with pytest.raises(TypeError, match="'dim' must be int, not bool"):
        fb.ones(3, 3).topk(1, True)


@pytest.mark.filterwarnings("ignore:TypedStorage:UserWarning")
def test_storages_count_the_bytes_of_their_elements():
    def sizes(storage_of):
        return [storage_of(fb.ones(n)).__sizeof__() for n in (0, 10, 100)]

    for storage_of in (fb.Tensor.untyped_storage, fb.Tensor.storage):
        none, ten, hundred = sizes(storage_of)
        assert (ten - none, hundred - none) == (40, 400)


def test_indices_that_cannot_be_are_told_as_programs_expect():
    with pytest.raises(IndexError, match="invalid index of a 0-dim tensor"):
        fb.tensor(1.0)[0]
    with pytest.raises(IndexError, match="too many indices"):
        fb.tensor(1.0)[0, 0]
    for bound in ("1", 1.5):
        with pytest.raises(TypeError, match="slice indices must be integers"):
            fb.ones(3)[bound:]


SELF = [1.0]
SELF.append(SELF)


class NoItems:
    def __len__(self):
        return 2

    def __getitem__(self, item):
        raise TypeError("no items")


def refused_subclass():
    class Own(fb.FloatTensor):
        pass


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: fb.ones(2).apply_(str), TypeError, "must be real number, not str"),
        (lambda: fb.ones(2).map_(fb.ones(2), lambda a, b: None), TypeError, "not NoneType"),
        (lambda: fb.tensor(SELF), TypeError, "self-referential"),
        (lambda: fb.tensor([[1.0], SELF]), TypeError, "self-referential"),
        (lambda: fb.Tensor(NoItems()), ValueError, "could not determine the shape"),
        (lambda: fb.zeros(2, 3).index_copy(0, fb.tensor([0]), fb.ones(3)), IndexError, "dimens"),
        (lambda: fb.empty(3, 3, memory_format=fb.channels_last), RuntimeError, "rank 4"),
        (lambda: fb.zeros(2, layout=fb.sparse_coo, out=fb.ones(2)), RuntimeError, "layout"),
        (lambda: fb.triu_indices(1, 1, layout=fb.sparse_coo), RuntimeError, "layout"),
        (lambda: fb.hann_window(3, layout=fb.sparse_coo), RuntimeError, "for sparse types"),
        (lambda: ~fb.ones(2), TypeError, "operator.invert"),
        (lambda: fb.ones(2, 2, 2).to_sparse().t(), RuntimeError, "<= 2 sparse and 0 dense"),
        (lambda: fb.cat([fb.ones(2), None]), TypeError, "element 1 .* got NoneType"),
        (lambda: fb.LongTensor((6, 0), 1, 1), TypeError, "invalid combination of arguments"),
        (refused_subclass, TypeError, "not an acceptable base type"),
        (
            lambda: fb.isclose(fb.ones(1), fb.ones(1), fb.ones((), requires_grad=True)),
            TypeError,
            "'rtol' must be float",
        ),
        (
            lambda: fb.addcmul(*[fb.ones(1)] * 3, value=fb.ones((), requires_grad=True)),
            TypeError,
            "Number",
        ),
        (
            lambda: fb.nonzero(fb.ones(1), as_tuple=True, out=fb.ones(1).long()),
            RuntimeError,
            "as_tuple",
        ),
        (lambda: fb.randperm(257 + 1, dtype=fb.uint8), RuntimeError, "greater than 256"),
        (lambda: fb.randperm(2050, dtype=fb.float16), RuntimeError, "greater than 2049"),
    ],
)
def test_calls_are_refused_with_the_class_and_words_that_programs_look_for(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_factors_may_be_tensors_without_gradient():
    ones = fb.ones(2, dtype=fb.int32)
    assert fb.addcmul(ones, ones, ones, value=fb.tensor(2.0)).tolist() == [3, 3]
    assert fb.addcmul(ones, ones, ones, value=fb.tensor(2.0)).dtype is fb.int32


def test_as_many_numbers_are_permuted_as_the_dtype_counts():
    assert sorted(fb.randperm(256, dtype=fb.uint8).tolist()) == list(range(256))
    assert fb.randperm(2049, dtype=fb.float16).max() == 2048


def test_new_memory_has_the_order_that_is_asked_for():
    x = fb.empty(2, 3, 4, 5, memory_format=fb.channels_last)
    assert x.is_contiguous(memory_format=fb.channels_last) and x.shape == (2, 3, 4, 5)


def test_typed_constructors_and_new_share_the_memory_of_storages():
    x = fb.arange(3.0)
    for made in (fb.FloatTensor(x.storage()), x.new(x.storage())):
        made[0] = made[0] + 7
    assert x.tolist() == [14, 1, 2]


def test_memory_that_an_array_shows_does_not_grow():
    x = fb.zeros(2)
    array = x.numpy()
    with pytest.raises(RuntimeError, match="not resizable"):
        x.resize_(5)
    assert x.resize_(1).shape == (1,)
    array[0] = 3
    assert x.tolist() == [3]


def test_the_class_of_storages_follows_the_default_dtype():
    assert fb.Storage is fb.FloatStorage
    fb.set_default_dtype(fb.float64)
    try:
        assert fb.Storage is fb.DoubleStorage
    finally:
        fb.set_default_dtype(fb.float32)


def test_a_rank_is_asked_for_with_or_without_a_tolerance():
    x = fb.diag(fb.tensor([3.0, 1.0, 1e-3]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = fb.matrix_rank(x), fb.matrix_rank(x, True), fb.matrix_rank(x, 0.1, True)
    assert [n.item() for n in found] == [3, 3, 2]


def test_reentrant_checkpoints_are_for_backward_alone():
    x = fb.ones(2, requires_grad=True)
    y = fb.utils.checkpoint.checkpoint(fb.exp, x, use_reentrant=True).sum()
    for call in (lambda: fb.autograd.grad(y, x, retain_graph=True), lambda: y.backward(inputs=[x])):
        with pytest.raises(RuntimeError, match="Checkpointing is not compatible"):
            call()
    y = fb.utils.checkpoint.checkpoint(fb.exp, x, use_reentrant=True).sum()
    y.backward()
    assert fb.allclose(x.grad, x.exp())


def test_data_keep_their_layout_and_stay():
    x = fb.ones(2, 2)
    with pytest.raises(RuntimeError, match="incompatible tensor type"):
        x.data = fb.eye(2).to_sparse()
    with pytest.raises(RuntimeError, match="Deleting tensor data"):
        del x.data


def test_results_of_others_are_pickled_as_leaves():
    x = pickle.loads(pickle.dumps(fb.ones(2, requires_grad=True) * 3))
    assert x.tolist() == [3, 3] and x.is_leaf and x.requires_grad


def test_shapes_that_do_not_fit_are_told_before_dtypes():
    x = fb.arange(4)
    with pytest.raises(RuntimeError, match="shape mismatch"):
        x[x > -1] = fb.tensor([1.0, 2.0])
    with pytest.raises(RuntimeError, match="dtypes match"):
        x[x > -1] = fb.ones(4)


def test_entries_of_empty_dimensions_are_out_of_bounds():
    with pytest.raises(IndexError, match="for dimension with size 0"):
        fb.ones(3, 0)[:, [0, 1]]


def test_sparse_gradients_are_added_in_place():
    weight = fb.ones(3, 1, requires_grad=True)

    def backward():
        fb.embedding(weight, fb.tensor([1]), sparse=True).sum().backward()

    backward()
    first = weight.grad
    backward()
    assert weight.grad is first and first.to_dense().tolist() == [[0], [2], [0]]


def test_hooks_say_that_they_do_not_travel():
    hook = fb.utils.hooks.unserializable_hook(lambda grad: grad)
    assert hook.__torch_unserializable__ and hook(3) == 3
