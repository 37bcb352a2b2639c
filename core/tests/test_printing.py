"""Printing, on a stand-in tensor that needs no backend and counts what is fetched from it.

That the text is PyTorch's is what tests/parity/test_printing.py shows; here are the fixed points.
"""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

import flambeau as fb
from flambeau._tensor.printing import get_printoptions, set_printoptions, tensor_format, tensor_repr
from flambeau._types import dtype as _dtype


class Tensor:
    """Numbers i/scale in row-major order of a box, all that printing asks of a tensor."""

    fetched = 0

    def __init__(self, shape, dtype=_dtype.float32, *, scale=1, device="cpu", ranges=None):
        self.dtype, self.scale = dtype, scale
        self.device = device
        self.full = shape
        self.ranges = ranges or [range(size) for size in shape]
        self.requires_grad, self.grad_fn = False, None

    @property
    def shape(self):
        return tuple(len(r) for r in self.ranges)

    @property
    def device(self):
        return self._device

    @device.setter
    def device(self, name):
        device = type("Device", (), {"type": name.split(":")[0], "__str__": lambda _: name})
        self._device = device()

    def detach(self):
        return self

    def __getitem__(self, items):
        ranges = [r[s] for r, s in zip(self.ranges, items, strict=False)]
        ranges += self.ranges[len(ranges) :]
        return Tensor(self.full, self.dtype, scale=self.scale, ranges=ranges)

    def item(self):
        return self.tolist()

    def tolist(self):
        Tensor.fetched += math.prod(self.shape)

        def nested(position, dims):
            if not dims:
                return position if self.scale is None else position / self.scale
            size = self.full[len(self.full) - len(dims)]
            return [nested(position * size + i, dims[1:]) for i in dims[0]]

        return nested(0, self.ranges)


@pytest.fixture(autouse=True)
def default_options():
    yield
    set_printoptions(profile="default")


def integers(*shape):
    return Tensor(shape, _dtype.int64, scale=None)


def test_whole_floats_print_a_bare_point():
    assert tensor_repr(Tensor((3,))) == "tensor([0., 1., 2.])"
    assert tensor_repr(Tensor(())) == "tensor(0.)"


def test_fractions_print_the_set_precision():
    assert tensor_repr(Tensor((3,), scale=8)) == "tensor([0.0000, 0.1250, 0.2500])"
    set_printoptions(precision=2)
    assert tensor_repr(Tensor((3,), scale=8)) == "tensor([0.00, 0.12, 0.25])"


def test_a_wide_range_of_sizes_prints_scientific_unless_forbidden():
    tensor = Tensor((3,), scale=1e5)
    assert tensor_repr(tensor) == "tensor([0.0000e+00, 1.0000e-05, 2.0000e-05])"
    set_printoptions(sci_mode=False)
    assert tensor_repr(tensor) == "tensor([0.0000, 0.0000, 0.0000])"


def test_rows_wrap_at_the_line_width_and_align():
    set_printoptions(linewidth=24)
    assert tensor_repr(integers(12)) == (
        "tensor([ 0,  1,  2,  3,\n         4,  5,  6,  7,\n         8,  9, 10, 11])"
    )


def test_blocks_of_three_dimensions_stand_apart():
    assert tensor_repr(integers(2, 1, 2)) == "tensor([[[0, 1]],\n\n        [[2, 3]]])"


def test_a_large_tensor_prints_corners():
    assert tensor_repr(integers(40, 30)) == (
        "tensor([[   0,    1,    2,  ...,   27,   28,   29],\n"
        "        [  30,   31,   32,  ...,   57,   58,   59],\n"
        "        [  60,   61,   62,  ...,   87,   88,   89],\n"
        "        ...,\n"
        "        [1110, 1111, 1112,  ..., 1137, 1138, 1139],\n"
        "        [1140, 1141, 1142,  ..., 1167, 1168, 1169],\n"
        "        [1170, 1171, 1172,  ..., 1197, 1198, 1199]])"
    )


@pytest.mark.parametrize("shape", [(10**9,), (10**6, 10**6), (2, 10**9, 3)], ids=str)
def test_a_large_tensor_is_fetched_at_its_corners_only(shape):
    before = Tensor.fetched
    tensor_repr(integers(*shape))
    assert Tensor.fetched - before == math.prod(min(size, 6) for size in shape)


def test_no_edge_items_leave_the_size():
    set_printoptions(edgeitems=0, threshold=1)
    assert tensor_repr(integers(4, 4)) == "tensor([...], size=(4, 4))"


@pytest.mark.parametrize(
    ("tensor", "text"),
    [
        (Tensor((0,)), "tensor([])"),
        (Tensor((0, 3)), "tensor([], size=(0, 3))"),
        (integers(0), "tensor([], dtype=torch.int64)"),
        (integers(2, 0), "tensor([], size=(2, 0), dtype=torch.int64)"),
        (integers(1), "tensor([0])"),
        (Tensor((1,), _dtype.float64), "tensor([0.], dtype=torch.float64)"),
        (Tensor((1,), device="toy:1"), "tensor([0.], device='toy:1')"),
        (Tensor((2, 3), device="meta"), "tensor(..., device='meta', size=(2, 3))"),
        (
            Tensor((), _dtype.int64, device="meta"),
            "tensor(..., device='meta', size=(), dtype=torch.int64)",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_suffixes_say_what_the_numbers_do_not(tensor, text):
    assert tensor_repr(tensor) == text


def test_autograd_suffix_names_the_node_before_the_flag():
    tensor = Tensor((1,))
    tensor.requires_grad = True
    assert tensor_repr(tensor) == "tensor([0.], requires_grad=True)"
    tensor.grad_fn = SimpleNamespace(name=lambda: "AddBackward0")
    assert tensor_repr(tensor) == "tensor([0.], grad_fn=<AddBackward0>)"


def test_a_suffix_without_room_starts_a_line():
    set_printoptions(linewidth=20)
    tensor = Tensor((1,), _dtype.float64)
    assert tensor_repr(tensor) == "tensor([0.],\n       dtype=torch.float64)"


def test_subclasses_print_under_their_own_name():
    class Mask(Tensor):
        pass

    assert tensor_repr(Mask((2,))) == "Mask([0., 1.])"


def test_set_printoptions_without_sci_mode_returns_it_to_automatic():
    set_printoptions(sci_mode=True, precision=6)
    assert get_printoptions()["sci_mode"] is True
    set_printoptions(linewidth=100)
    assert get_printoptions() == {
        "precision": 6,
        "threshold": 1000,
        "edgeitems": 3,
        "linewidth": 100,
        "sci_mode": None,
    }


def test_an_explicit_option_wins_over_the_profile():
    set_printoptions(profile="short", precision=7)
    assert (get_printoptions()["precision"], get_printoptions()["edgeitems"]) == (7, 2)


def test_format_spec_needs_one_number():
    assert tensor_format(Tensor(()), ".2f") == "0.00"
    with pytest.raises(TypeError, match=r"'\.2f' formats one number, this tensor has shape \(2,\)"):
        tensor_format(Tensor((2,)), ".2f")


@pytest.mark.parametrize("name", ["precision", "threshold", "edgeitems", "linewidth"])
@pytest.mark.parametrize("value", ["3", [3], 1j, fb.tensor(3, device="ref")])
def test_options_that_are_no_numbers_are_refused_and_change_nothing(name, value):
    before = get_printoptions()
    others = {"linewidth": 7, "edgeitems": 9, "sci_mode": True}
    with pytest.raises(TypeError, match=f"{name} must be .*, not {type(value).__name__}"):
        set_printoptions(**(others | {name: value}))
    assert get_printoptions() == before


@pytest.mark.parametrize(("value", "error"), [(-1, ValueError), (1.5, TypeError)])
def test_digits_are_counted_from_0(value, error):
    with pytest.raises(error, match="precision must"):
        set_printoptions(precision=value)
