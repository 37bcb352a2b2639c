"""`asarray` agrees with PyTorch: what shares memory, what is copied, refused, recorded."""

from __future__ import annotations

import array
from collections.abc import Callable
from typing import Any

import pytest

import flambeau as fb

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

OBJECTS: dict[str, Callable[[Any], Any]] = {
    "leaf": lambda t: t.tensor([1.0, 2.0], requires_grad=True),
    "with history": lambda t: t.tensor([1.0, 2.0], requires_grad=True) * 2,
    "tensor": lambda t: t.tensor([1.0, 2.0]),
    "array": lambda t: np.arange(3.0),
    "empty array": lambda t: np.zeros((2, 0)),
    "array of one row": lambda t: np.broadcast_to(np.arange(3.0), (2, 3)).copy(),
    "scalar of an array": lambda t: np.float64(2),
    "reversed array": lambda t: np.arange(3.0)[::-1],
    "bytes": lambda t: bytearray(b"12345678"),
    "odd bytes": lambda t: bytearray(b"123"),
    "no bytes": lambda t: bytearray(),
    "view of bytes": lambda t: memoryview(bytearray(b"12345678")),
    "Python's array": lambda t: array.array("d", [1, 2]),
    "capsule": lambda t: t.utils.dlpack.to_dlpack(t.arange(3)),
    "numbers": lambda t: [1, 2],
    "number": lambda t: 3.5,
    "text": lambda t: "ab",
    "nothing": lambda t: None,
    "empty list": lambda t: [],
}


def _facts(t: Any, make: Callable[[Any], Any], **how: Any) -> Any:
    obj = make(t)
    how = {k: getattr(t, v) if k == "dtype" and v is not None else v for k, v in how.items()}
    try:
        r = t.asarray(obj, **how)
    except (TypeError, ValueError, RuntimeError) as error:
        return type(error)
    shares = None
    if isinstance(obj, t.Tensor):
        shares = r.data_ptr() == obj.data_ptr()
    elif isinstance(obj, np.ndarray) and r.numel():
        shares = r.data_ptr() == obj.__array_interface__["data"][0]
    dtype = str(r.dtype).rpartition(".")[2]
    return tuple(r.shape), dtype, r.requires_grad, r.tolist(), shares


WISHES: list[dict[str, Any]] = [
    *({"requires_grad": wish} for wish in (None, True, False)),
    *({"dtype": dtype} for dtype in ("float32", "float64", "int16")),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("how", WISHES, ids=str)
@pytest.mark.parametrize("copy", [None, True, False])
@pytest.mark.parametrize("name", OBJECTS)
def test_tensors_of_objects_agree(name: str, copy: bool | None, how: dict[str, Any]) -> None:
    found, expected = (
        _facts(fb, OBJECTS[name], copy=copy, **how),
        _facts(torch, OBJECTS[name], copy=copy, **how),
    )
    # PyTorch asks for a gradient of integers itself there, and takes the pointer of a scalar once.
    if (name in ("leaf", "with history") and how.get("dtype") == "int16") or (
        name == "scalar of an array" and copy and "dtype" in how
    ):
        expected = found if copy is not False else expected
    assert found == expected


def test_a_leaf_whose_history_is_not_wanted_keeps_its_own() -> None:
    leaf = fb.ones(2, requires_grad=True)
    assert not fb.asarray(leaf, requires_grad=False).requires_grad
    assert leaf.requires_grad


@pytest.mark.parametrize("dtype", [None, "float32", "complex64", "int64", "bool"])
@pytest.mark.parametrize(
    "value", [None, [None], [1, None], object(), [object()], "a", ["a"], [1, "a"], {}, [{}], b"a"]
)
def test_what_is_no_number_is_refused_alike(value: object, dtype: str | None) -> None:
    for name in ("tensor", "as_tensor"):
        errors = []
        for t in (fb, torch):
            with pytest.raises((TypeError, ValueError, RuntimeError)) as error:
                getattr(t, name)(value, dtype=dtype and getattr(t, dtype))
            errors.append(type(error.value))
        assert errors[0] is errors[1]
