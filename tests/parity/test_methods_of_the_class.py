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


def test_the_error_names_the_method_and_the_kind_of_the_argument():
    with pytest.raises(TypeError, match="'expand'.*'list'"):
        fb.Tensor.expand([2])


def test_the_error_of_a_tensor_without_an_attribute_stays_one():
    with pytest.raises(AttributeError, match="nothing"):
        fb.Tensor.expand(fb.ones(2), _Size())


class _Size:
    def __index__(self):
        return self.nothing
