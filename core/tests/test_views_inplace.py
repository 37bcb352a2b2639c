"""Views and in-place writes: memory, versions, histories that follow, refused writes."""

import pytest

import flambeau as fb
from flambeau.autograd import grad


def values(*tensors):
    return [None if t is None else t.tolist() for t in tensors]


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[1],
        lambda x: x[:, 1],
        lambda x: x[0:1, ::2],
        lambda x: x.t(),
        lambda x: x.transpose(0, 1),
        lambda x: x.permute(1, 0),
        lambda x: x.view(3, 2),
        lambda x: x.view(-1),
        lambda x: x.reshape(6),
        lambda x: x.unsqueeze(1),
        lambda x: x.unsqueeze(0).squeeze(0),
        lambda x: x.narrow(1, 1, 2),
        lambda x: x.select(0, 1),
        lambda x: x.diagonal(),
        lambda x: x.flatten(),
        lambda x: x.unbind()[1],
        lambda x: x.split(1)[0],
        lambda x: x.chunk(2, 1)[1],
        lambda x: x.detach(),
        lambda x: x.as_strided((2, 2), (3, 1), 1),
        lambda x: x.unfold(1, 2, 1)[:, 0],
        lambda x: x[:, 1:].t()[0],
    ],
)
def test_views_share_memory_and_versions_with_their_base(view, plain):
    x = plain([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    v = view(x)
    v.fill_(0.0)
    assert (x == 0).sum().item() == v.numel()
    assert v._version == x._version == 1
    x.fill_(7.0)
    assert (v == 7).all().item()
    assert v._version == x._version == 2


def test_one_element_of_a_vector_is_a_view_too(plain):
    x = plain([1.0, 2.0])
    x[1].add_(5)
    element = x[0]
    element.fill_(9)
    assert element.dim() == 0
    assert x.tolist() == [9.0, 7.0]


def test_copies_have_versions_of_their_own(plain):
    x = plain([1.0, 2.0])
    for copy in (x.clone(), x + 0, x[[0, 1]]):
        copy.add_(1)
        assert (x._version, copy._version) == (0, 1)
    assert x.tolist() == [1.0, 2.0]


def test_every_in_place_operation_counts_once(plain):
    x = plain([1.0, 2.0])
    for i, write in enumerate(
        [
            lambda: x.add_(1),
            lambda: x.mul_(x),
            lambda: x.exp_(),
            lambda: x.zero_(),
            lambda: x.copy_(x.clone()),
            lambda: x.__setitem__(0, 3.0),
            lambda: x.__setitem__(slice(None), 3.0),
            lambda: x.__iadd__(1),
            lambda: x.view(2).fill_(1),
        ],
        start=1,
    ):
        write()
        assert x._version == i


def test_in_place_operations_return_the_same_tensor(plain):
    x = y = plain([1.0])
    y += 1
    assert y is x
    assert x.mul_(2) is x
    assert x.copy_(plain([3.0])) is x


def test_a_result_that_does_not_fit_is_not_written(plain):
    x = plain([1.0])
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        x.add_(plain([1.0, 2.0]))
    whole = plain([1])
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
        whole.add_(0.5)
    assert (values(x, whole), x._version, whole._version) == ([[1.0], [1]], 0, 0)


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (lambda x: x[1], [[0.0, 0.0], [1.0, 1.0]]),
        (lambda x: x.t()[0], [[1.0, 0.0], [1.0, 0.0]]),
        (lambda x: x.expand(3, 2, 2), [[3.0, 3.0], [3.0, 3.0]]),
        (lambda x: x.diagonal(), [[1.0, 0.0], [0.0, 1.0]]),
        (lambda x: x.t()[0].unsqueeze(0).expand(2, 2).diagonal(), [[1.0, 0.0], [1.0, 0.0]]),
        (lambda x: x.as_strided((3, 2), (1, 1)), [[1.0, 2.0], [2.0, 1.0]]),
        (lambda x: x.view(4).unfold(0, 2, 1), [[1.0, 2.0], [2.0, 1.0]]),
        (lambda x: x.chunk(2)[1], [[0.0, 0.0], [1.0, 1.0]]),
    ],
)
def test_gradients_flow_through_views_to_what_they_show(view, expected, leaf):
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    view(x).sum().backward()
    assert x.grad.tolist() == expected


def test_a_view_taken_before_a_write_follows_the_new_history(leaf):
    x = leaf([1.0, 2.0])
    y = x * 1
    v = y[0]
    before = v.grad_fn
    y.mul_(3)
    assert v.grad_fn is not before
    (v * 1).backward()
    assert x.grad.tolist() == [3.0, 0.0]


def test_a_view_gains_requires_grad_from_its_base_afterwards(plain, leaf):
    base, w = plain([1.0, 2.0]), leaf(3.0)
    v = base[0]
    assert not v.requires_grad
    base.mul_(w)
    assert v.requires_grad
    (v * 2).backward()
    assert w.grad.item() == 2.0


def test_a_view_of_a_plain_tensor_may_become_a_leaf_of_its_own(plain):
    x = plain([1.0, 2.0])
    v = x[0:1]
    v.requires_grad_()
    (v * 3).backward()
    assert v.is_leaf
    assert v.grad.tolist() == [3.0]
    assert not x.requires_grad


def test_a_write_through_a_view_changes_the_history_of_the_base_and_of_other_views(leaf):
    x, w = leaf([1.0, 2.0, 3.0]), leaf([5.0])
    y = x * 1
    v, other = y[1:2], y[:2]
    v.mul_(w)
    assert y.grad_fn.name() == "CopySlices"
    ((v * 2).sum() + y.sum() + other.sum()).backward()
    assert values(x.grad, w.grad) == [[2.0, 20.0, 1.0], [8.0]]


def test_a_write_to_the_base_and_then_through_a_view(leaf):
    x = leaf([1.0, 2.0])
    y = x * 1
    v = y[0:1]
    y.mul_(2)
    v.mul_(3)
    y.sum().backward()
    assert values(y, x.grad) == [[6.0, 4.0], [6.0, 2.0]]


def test_writes_through_overlapping_views_compose(leaf):
    x = leaf([1.0, 2.0, 3.0])
    y = x * 1
    y[:2].mul_(10)
    y[1:].mul_(100)
    y.mul_(2)
    y.sum().backward()
    assert x.grad.tolist() == [20.0, 2000.0, 200.0]


def test_a_write_through_another_shape_reaches_the_base(leaf, plain):
    x = leaf([1.0, 2.0, 3.0, 4.0])
    y = x * 1
    y.view(2, 2).t()[1].mul_(plain([10.0, 100.0]))
    assert y.tolist() == [1.0, 20.0, 3.0, 400.0]
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 10.0, 1.0, 100.0]


def test_an_in_place_formula_uses_the_values_from_before_the_write(leaf):
    x, w = leaf([2.0]), leaf([3.0])
    y = x * 1
    y.mul_(w)
    y.backward()
    assert values(w.grad, x.grad) == [[2.0], [3.0]]


def test_an_in_place_formula_on_a_view_uses_the_values_from_before_the_write(leaf):
    x, w = leaf([2.0, 5.0]), leaf(3.0)
    y = x * 1
    y[0].mul_(w)
    y.sum().backward()
    assert values(w.grad, x.grad) == [2.0, [3.0, 1.0]]


@pytest.mark.parametrize("write", ["tanh_", "exp_", "sigmoid_", "sqrt_"])
def test_result_saving_writes_on_views_can_be_differentiated_twice(write, leaf):
    def derivatives(apply):
        x = leaf([0.5, 0.7], dtype=fb.float64)
        (g,) = grad(apply(x).sum(), x, create_graph=True)
        (h,) = grad(g.sum(), x, create_graph=True)
        (k,) = grad(h.sum(), x)
        return [g.tolist(), h.tolist(), k.tolist()]

    def in_place(x):
        y = x * x
        getattr(y[0], write)()
        return y

    def out_of_place(x):
        y = x * x
        return fb.stack([getattr(y[0], write[:-1])(), y[1]])

    for found, expected in zip(derivatives(in_place), derivatives(out_of_place), strict=True):
        assert found == pytest.approx(expected)


def test_repeated_writes_accumulate_their_history(leaf):
    x = leaf([1.0])
    y = x * 1
    for _ in range(5):
        y += x
    y.backward()
    assert x.grad.tolist() == [6.0]


def test_overwriting_ends_the_old_history(leaf):
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    y = x * 3
    y.zero_()
    assert y.requires_grad
    y.sum().backward()
    z = x * 3
    z.copy_(w)
    (z * 2).sum().backward()
    assert values(x.grad, w.grad) == [[0.0, 0.0], [2.0, 2.0]]


def test_copies_into_another_dtype_pass_gradients_in_the_sources(plain, leaf):
    w = leaf([3.0, 4.0])
    y = plain([0.0, 0.0], dtype=fb.float64)
    y.copy_(w)
    (y * 2).sum().backward()
    assert w.grad.dtype is fb.float32
    assert w.grad.tolist() == [2.0, 2.0]


def test_assignment_by_index_is_recorded(leaf):
    x, w = leaf([1.0, 2.0, 3.0]), leaf(7.0)
    y = x * 1
    y[1] = w
    (y * y).sum().backward()
    assert values(x.grad, w.grad) == [[2.0, 0.0, 6.0], 14.0]


def test_assignment_by_mask_is_recorded(leaf):
    x = leaf([1.0, 2.0, 3.0])
    y = x * 1
    y[y > 1.5] = 0
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 0.0, 0.0]


def test_assignment_of_a_tensor_with_history_gives_a_plain_tensor_one(plain, leaf):
    x, w = plain([1.0, 2.0]), leaf(7.0)
    x[0] = w
    assert x.requires_grad
    (x * x).sum().backward()
    assert w.grad.item() == 14.0


def test_swapped_rows_carry_their_gradients_along(leaf, plain):
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    y = x * 1
    y[0], y[1] = y[1].clone(), y[0].clone()
    (y * plain([[1.0, 10.0], [100.0, 1000.0]])).sum().backward()
    assert x.grad.tolist() == [[100.0, 1000.0], [1.0, 10.0]]


def test_accumulating_index_put_is_recorded(leaf, plain):
    x, w = leaf([1.0, 2.0, 3.0]), leaf([5.0, 6.0])
    y = x * 1
    y.index_put_((plain([0, 0]),), w, accumulate=True)
    (y * plain([2.0, 3.0, 4.0])).sum().backward()
    assert values(x.grad, w.grad) == [[2.0, 3.0, 4.0], [2.0, 2.0]]


@pytest.mark.parametrize(
    "write",
    [
        lambda y: y.add_(1),
        lambda y: y[0:1].zero_(),
        lambda y: y.detach().add_(1),
        lambda y: y.view(2, 1).mul_(2),
        lambda y: y.__setitem__(0, 5.0),
    ],
    ids=["itself", "a view", "detached", "another shape", "setitem"],
)
@pytest.mark.parametrize(
    ("use", "name"),
    [(lambda y: y * y, "MulBackward0"), (lambda y: y.sin(), "SinBackward0")],
    ids=["two operands", "one operand"],
)
def test_writes_to_saved_operands_are_detected_and_the_operation_is_named(use, name, write, leaf):
    y = leaf([1.0, 2.0]) * 1
    z = use(y)
    write(y)
    with pytest.raises(
        RuntimeError,
        match=f"(?s){name}.*modified by an inplace operation.*version 1; expected version 0",
    ):
        z.sum().backward()


def test_writes_to_saved_results_are_detected(leaf):
    y = leaf([1.0]).exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match="(?s)ExpBackward0.*'result'.*expected version 0"):
        y.backward()


def test_writes_under_no_grad_are_detected_too(leaf):
    y = leaf([1.0]) * 1
    z = y * y
    with fb.no_grad():
        y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_writes_to_what_nobody_saved_are_fine(leaf):
    x = leaf([1.0])
    y = x + 1
    z = y * 2
    y.mul_(5)
    (z + y).backward()
    assert x.grad.tolist() == [7.0]


def test_writes_under_no_grad_change_values_and_not_the_history(leaf):
    x = leaf([1.0, 2.0])
    y = x * 2
    before = y.grad_fn
    with fb.no_grad():
        y.add_(1)
    assert y.grad_fn is before
    assert y.tolist() == [3.0, 5.0]
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_writes_to_detached_memory_change_values_and_not_the_history(leaf):
    x = leaf([1.0, 2.0])
    y = x * 1
    y.detach()[0] = 9
    y.sum().backward()
    assert values(y, x.grad) == [[9.0, 2.0], [1.0, 1.0]]


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda x: x.add_(1), "a leaf Variable that requires grad"),
        (lambda x: x.zero_(), "a leaf Variable that requires grad"),
        (lambda x: x[0].add_(1), "a view of a leaf Variable that requires grad"),
        (lambda x: x.__setitem__(0, 1.0), "a view of a leaf Variable that requires grad"),
        (lambda x: x.view(2).copy_(x.detach().clone()), "a view of a leaf Variable"),
    ],
)
def test_recorded_writes_to_leaves_are_refused(write, message, leaf):
    x = leaf([1.0, 2.0])
    with pytest.raises(RuntimeError, match=message):
        write(x)
    assert x.tolist() == [1.0, 2.0]


def test_leaves_can_be_written_under_no_grad(leaf):
    x = leaf([1.0, 2.0])
    with fb.no_grad():
        x.add_(1)
        x[0] = 7.0
    assert x.tolist() == [7.0, 3.0]
    assert x.is_leaf
    assert x.requires_grad


@pytest.mark.parametrize(
    "split", [lambda y: y.unbind(), lambda y: y.split(1), lambda y: y.chunk(2)]
)
def test_views_made_several_at_once_refuse_recorded_writes(split, leaf):
    y = leaf([1.0, 2.0]) * 1
    first, second = split(y)
    with pytest.raises(RuntimeError, match="output of a function that returns multiple views"):
        first.add_(1)
    y.mul_(2)
    with pytest.raises(RuntimeError, match="output of a function that returns multiple views"):
        second * 1


@pytest.mark.parametrize(
    "use", [lambda v: v * 2, lambda v: v[0], lambda v: v.view(1, 1), lambda v: v.t()]
)
def test_a_no_grad_view_cannot_be_used_after_a_recorded_write_to_its_base(use, leaf):
    base = leaf([1.0, 2.0]) * 1
    with fb.no_grad():
        v = base[0:1]
    base.mul_(2)
    with pytest.raises(RuntimeError, match="(?s)created in no_grad mode and its base.*forbidden"):
        use(v)


def test_a_no_grad_view_refuses_recorded_writes(leaf):
    base = leaf([1.0, 2.0]) * 1
    with fb.no_grad():
        v = base[0:1]
    with pytest.raises(RuntimeError, match="created in no_grad mode"):
        v.mul_(2)


def test_a_no_grad_view_of_an_unchanged_base_passes_no_gradient(leaf):
    base = leaf([1.0, 2.0]) * 1
    with fb.no_grad():
        v = base[0:1]
    assert v.requires_grad
    assert v.is_leaf
    assert (v * 2).requires_grad


def test_expanded_memory_is_written_only_where_elements_are_distinct(plain):
    assert plain([1.0]).expand(3)[0:1].add_(1).tolist() == [2.0]
    assert plain([[1.0]]).expand(1, 3)[:, 0:0].add_(1).shape == (1, 0)
    for write in (
        lambda x: x.add_(1),
        lambda x: x.copy_(plain([1.0, 2.0, 3.0])),
        lambda x: x.fill_(plain(4.0)),
        lambda x: x.exp_(),
    ):
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
            write(plain([1.0]).expand(3))


def test_expanded_memory_can_be_filled_with_one_number(plain):
    x = plain([1.0])
    assert x.expand(3).fill_(4).tolist() == [4.0] * 3
    assert x.tolist() == [4.0]
    x.expand(3).zero_()
    assert x.tolist() == [0.0]


def test_partially_overlapping_operands_are_refused(plain):
    x = plain([1.0, 2.0, 3.0])
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        x[1:] += x[:-1]
    y = plain([[1.0, 2.0], [3.0, 4.0]])
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        y.copy_(y[0])
    assert values(x, y) == [[1.0, 2.0, 3.0], [[1.0, 2.0], [3.0, 4.0]]]


def test_operands_that_overlap_fully_or_strided_are_not_refused(plain):
    x = plain([1.0, 2.0])
    x += x
    x[:].mul_(x)
    assert x.tolist() == [4.0, 16.0]
    y = plain([[1.0, 2.0], [3.0, 4.0]])
    y.t().add_(y[:, 0])


def test_a_write_through_a_view_of_expanded_memory_reaches_the_base(leaf):
    x = leaf([1.0, 2.0])
    y = x * 1
    y.expand(3, 2)[0:1].mul_(3)
    y.sum().backward()
    assert values(y, x.grad) == [[3.0, 6.0], [3.0, 3.0]]


def test_the_gradient_of_an_expansion_written_in_place_is_not_read_only(leaf):
    x = leaf([1.0])
    y = x.expand(3).clone()
    y[0:2].mul_(3)
    y.sum().backward()
    assert x.grad.tolist() == [7.0]


WRITES = {
    "a number": lambda x, y: (x.mul_(3.0), x.add_(1), x.sub_(0.5), x.div_(2.0)),
    "another tensor": lambda x, y: (x.mul_(y), x.add_(y), x.sub_(y), x.div_(y)),
    "itself": lambda x, y: (x.mul_(x), x.add_(x), x.div_(x)),
    "a view of another": lambda x, y: (x.add_(y.flip(0)), x.mul_(y[0])),
}
VIEWS = {
    "a slice": lambda base: base[1:3],
    "a column": lambda base: base[:, 1:2].squeeze(1),
    "transposed": lambda base: base.t(),
    "with gaps": lambda base: base[::2, ::3],
    "a part of one size": lambda base: base[2:3, :1],
    "a diagonal": lambda base: base.diagonal(),
    "detached": lambda base: base.detach(),
    "data": lambda base: base.data,
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("requires_grad", [False, True])
def test_a_write_without_history_reaches_the_elements_of_the_view_and_no_others(
    view: str, write: str, requires_grad: bool, device: str
) -> None:
    base = (fb.arange(16.0, device=device) + 1).reshape(4, 4).requires_grad_(requires_grad)
    with fb.no_grad():
        x = VIEWS[view](base)
        other = fb.full_like(x, 2.0) + fb.arange(float(x.numel()), device=device).reshape(x.shape)
        alone, marked = x.clone(), fb.zeros(4, 4, device=device)
        VIEWS[view](marked).fill_(1.0)
        before, version = base.detach().clone(), x._version
        calls = WRITES[write](x, other)
        WRITES[write](alone, other)
    assert x.tolist() == alone.tolist()
    assert base[marked == 0].tolist() == before[marked == 0].tolist()
    assert x._version == version + len(calls)
    if view != "data":
        assert base._version == version + len(calls)


def test_a_view_that_is_written_without_history_spoils_what_was_saved_of_its_base(
    device: str,
) -> None:
    base = fb.ones(3, device=device, requires_grad=True) * 2
    result = base.exp().sum() + (base * base).sum()
    with fb.no_grad():
        base[1:].mul_(2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.backward()


def test_a_write_of_what_has_a_history_into_a_view_gives_its_base_one(device: str) -> None:
    base, x = fb.zeros(3, device=device), fb.ones(2, device=device, requires_grad=True)
    base[1:].add_(1.0).mul_(x)
    base.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_overlapping_parts_of_memory_that_is_not_counted_are_read_before_they_are_written() -> None:
    pytest.importorskip("flambeau_numpy", reason="needs a device with strides")
    base = fb.arange(6.0)
    base.data[1:].add_(base[:-1])
    assert base.tolist() == [0.0, 1.0, 3.0, 5.0, 7.0, 9.0]
    base.data[::2].mul_(base.data[1::2])
    assert base.tolist() == [0.0, 1.0, 15.0, 5.0, 63.0, 9.0]
