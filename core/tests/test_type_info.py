"""Numerical properties of dtypes, legacy defaults and the classes of named results."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import flambeau as fb


@pytest.fixture
def restored() -> Iterator[None]:
    before = fb.get_default_dtype()
    yield
    fb.set_default_dtype(before)
    fb.set_default_device(None)


@pytest.mark.parametrize("name", ["bits", "eps", "max", "min", "tiny", "smallest_normal"])
def test_finfo_has_the_property_on_class_and_instance(name: str) -> None:
    assert hasattr(fb.finfo, name)
    assert isinstance(getattr(fb.finfo(fb.float16), name), (int, float))


@pytest.mark.parametrize("name", ["bits", "max", "min"])
def test_iinfo_has_the_property_on_class_and_instance(name: str) -> None:
    assert hasattr(fb.iinfo, name)
    assert isinstance(getattr(fb.iinfo(fb.uint8), name), int)


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize("kind", ["torch.DoubleTensor", fb.DoubleTensor])
def test_a_legacy_type_sets_the_default_dtype(kind: object) -> None:
    fb.set_default_tensor_type(kind)
    assert fb.tensor([1.5]).dtype is fb.float64
    assert fb.get_default_device().type == "cpu"


@pytest.mark.usefixtures("restored")
def test_a_legacy_type_of_another_device_sets_the_default_device() -> None:
    fb.set_default_tensor_type("torch.meta.HalfTensor")
    x = fb.ones(2)
    assert (x.dtype, x.device.type) == (fb.float16, "meta")


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize("kind", [fb.IntTensor, fb.float64, "torch.FooTensor", 3])
def test_other_default_types_are_refused(kind: object) -> None:
    with pytest.raises(TypeError):
        fb.set_default_tensor_type(kind)
    assert fb.get_default_dtype() is fb.float32


def test_denormals_stay_and_the_answer_says_so() -> None:
    assert fb.set_flush_denormal(True) is False
    assert (fb.tensor([1e-310], dtype=fb.float64) * 1).item() == 1e-310


@pytest.mark.parametrize("name", ["max", "min", "median", "nanmedian", "mode"])
def test_reductions_return_the_class_of_their_name(name: str) -> None:
    found = getattr(fb.tensor([[1.0, 3.0, 2.0]]), name)(dim=1)
    assert type(found) is getattr(fb.return_types, name)
    values, indices = found
    assert values is found.values and indices is found.indices
    assert repr(found).startswith(f"torch.return_types.{name}(\nvalues=")
