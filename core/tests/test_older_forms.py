"""Forms of calls that programs written for older PyTorch use, and some of Python's."""

from __future__ import annotations

import copy
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
