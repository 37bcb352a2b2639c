"""Methods that are taken from the class and given something else than a tensor."""

from __future__ import annotations

import inspect

import pytest

torch = pytest.importorskip("torch")

import flambeau as fb  # noqa: E402

FOREIGN = ([2], "x", 3, None, object())
NAMES = [
    name
    for name in sorted(set(dir(fb.Tensor)) & set(dir(torch.Tensor)))
    if inspect.isfunction(inspect.getattr_static(fb.Tensor, name))
    and (not name.startswith("_") or name.endswith("__"))
]


def _ends(library, name, first):
    """The classes of exceptions of calls with more and more arguments."""
    one = library.ones(2)
    ends = set()
    for others in ((), (1,), (one,), (0, 1), (one, one)):
        try:
            getattr(library.Tensor, name)(first, *others)
        except Exception as error:
            ends.add(type(error))
    return ends


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", FOREIGN, ids=lambda first: type(first).__name__)
def test_what_pytorch_calls_a_type_error_is_none_of_the_first_argument(first):
    assert len(NAMES) > 500
    found = {
        name: strange
        for name in NAMES
        if (strange := _ends(fb, name, first) & {AttributeError, IndexError, AssertionError})
        and not strange & _ends(torch, name, first)
    }
    assert not found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", [3, 1.5, True, 1j], ids=lambda first: type(first).__name__)
def test_a_number_is_no_tensor_to_a_method_of_the_class(first):
    taken = set()
    for name in NAMES:
        for others in ((), (2,), ("x",), ("x", "x")):
            ends = []
            for library in (torch, fb):
                given = [library.ones(2) if other == "x" else other for other in others]
                try:
                    getattr(library.Tensor, name)(first, *given)
                    ends.append(None)
                except Exception as error:
                    ends.append(type(error))
            if ends[0] is TypeError and ends[1] is None:
                taken.add(name)
    operators = {name for name in taken if name.startswith("__")}
    assert taken - operators <= {"is_distributed", "is_inference", "sparse_dim", "to_dense"}


def test_the_error_names_the_method_and_the_kind_of_the_argument():
    with pytest.raises(TypeError, match="'expand'.*'list'"):
        fb.Tensor.expand([2])


def test_the_error_of_a_tensor_without_an_attribute_stays_one():
    with pytest.raises(AttributeError, match="nothing"):
        fb.Tensor.expand(fb.ones(2), _Size())


class _Size:
    def __index__(self):
        return self.nothing
