"""In-place forms of views: ``x.t_()`` and its like make a tensor a view of what it was."""

from __future__ import annotations

import pytest

import flambeau as fb


def test_transposing_in_place_keeps_the_history(device):
    leaf = fb.ones(2, 3, requires_grad=True, device=device)
    x = leaf * 2
    x.t_()
    assert x.shape == (3, 2) and not x.is_leaf and x._version == 1
    (x * fb.arange(6.0, device=device).view(3, 2)).sum().backward()
    assert leaf.grad.tolist() == [[0.0, 4.0, 8.0], [2.0, 6.0, 10.0]]


def test_transposing_a_leaf_in_place_is_refused_while_recording(device):
    leaf = fb.ones(2, 3, requires_grad=True, device=device)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        leaf.t_()
    with fb.no_grad():
        assert leaf.t_().shape == (3, 2)


def test_writes_after_transposing_in_place_reach_older_views(device):
    x = fb.zeros(2, 2, device=device)
    row = x[0]
    x.t_()
    x[1, 0] = 5
    assert row.tolist() == [0.0, 5.0]


@pytest.mark.parametrize(
    ("method", "arguments", "shape"),
    [
        ("unsqueeze_", (0,), (1, 2, 1)),
        ("squeeze_", (), (2,)),
        ("transpose_", (0, 1), (1, 2)),
        ("swapaxes_", (0, 1), (1, 2)),
    ],
)
def test_in_place_views_change_the_shape_of_the_very_tensor(device, method, arguments, shape):
    x = fb.ones(2, 1, device=device)
    assert getattr(x, method)(*arguments) is x
    assert x.shape == shape


def test_a_retained_gradient_is_that_of_the_value_after_a_write(device):
    leaf = fb.ones(1, requires_grad=True, device=device)
    x = leaf * 2
    x.retain_grad()
    x.mul_(3)
    x.backward()
    assert x.grad.tolist() == [1.0] and leaf.grad.tolist() == [6.0]


def test_reading_the_gradient_of_a_tensor_that_does_not_keep_it_warns(device):
    x = fb.ones(1, requires_grad=True, device=device) * 2
    with pytest.warns(UserWarning, match="not a leaf Tensor"):
        assert x.grad is None


def test_a_plain_copy_counts_and_leaves_its_source_alone(device):
    x, y = fb.zeros(2, 3, device=device), fb.ones(2, 3, device=device)
    for count in (1, 2):
        assert x.copy_(y) is x
        assert x.tolist() == [[1.0] * 3] * 2 and x._version == count and y._version == 0
    y.fill_(2)
    assert x.tolist() == [[1.0] * 3] * 2
    x[0].copy_(y[1])
    assert x.tolist() == [[2.0] * 3, [1.0] * 3] and x._version == 3
    view = x[1]
    x.copy_(y.mul_(2))
    assert view.tolist() == [4.0] * 3


def test_what_augmented_assignment_writes_a_second_time_is_a_write_of_nothing():
    x = fb.arange(12.0).reshape(3, 4).clone()
    whole = x.clone()
    x[:, 1:3] += 1
    whole[:, 1:3] = whole[:, 1:3] + 1
    assert x.equal(whole) and x._version == 2
    x[1] *= fb.tensor(2.0)
    x[..., ::2] -= x[:, 1:2].clone()
    whole[1] = whole[1] * 2
    whole[..., ::2] = whole[..., ::2] - whole[:, 1:2]
    assert x.equal(whole) and x._version == 6


def test_another_part_of_the_same_memory_is_written_as_it_was():
    x = fb.arange(12.0).reshape(3, 4).clone()
    x[:, :2] = x[:, 2:]
    assert x.tolist() == [[2, 3, 2, 3], [6, 7, 6, 7], [10, 11, 10, 11]]
    square = fb.arange(9.0).reshape(3, 3).clone()
    square[:2, :2] = square[:2, :2].t().clone().t()
    square[:2, :2] = square.t()[:2, :2].clone()
    assert square.tolist() == [[0, 3, 2], [1, 4, 5], [6, 7, 8]]
    moved = fb.arange(6.0)
    part = moved[1:3]
    moved.set_(moved.untyped_storage(), 2, (4,))
    moved[1:3] = part  # which are other places of it by now
    assert part.tolist() == [1, 2] and moved.tolist() == [2, 1, 2, 5]


def test_a_gradient_goes_through_augmented_assignment():
    x = fb.ones(2, 3, requires_grad=True)
    y = x * 1
    y[:, 1:] *= 3
    y[:, 1:] += x[:, :2]
    y.sum().backward()
    assert x.grad.tolist() == [[2, 4, 3]] * 2
