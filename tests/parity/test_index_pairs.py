"""Index tensors that stand beside each other, and writes and sums by them, as PyTorch's."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import flambeau as fb

SHAPES = [(5, 4), (5, 4, 3), (2, 5, 4, 3)]
DTYPES = ["float32", "float64", "float16", "bfloat16", "int64", "int8", "bool", "complex64"]


def _both(values, dtype):
    t = torch.tensor(values).to(getattr(torch, dtype))
    return t, fb.tensor(values).to(getattr(fb, dtype))


def _same(ours, theirs):
    assert tuple(ours.shape) == tuple(theirs.shape)
    steps = zip(ours.shape, ours.stride(), theirs.stride(), strict=True)
    assert not ours.numel() or all(s == t for n, s, t in steps if n > 1)
    if theirs.dtype is torch.bfloat16:
        ours, theirs = ours.float(), theirs.float()
    assert ours.tolist() == theirs.tolist()


def _array(shape, seed=0):
    return torch.randint(-9, 9, shape, generator=torch.Generator().manual_seed(seed)).tolist()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("form", [(), (1,), (7,), (3, 2), (0,), (600,)])
def test_reads_and_writes_by_two_index_tensors(dtype, shape, form):
    g = torch.Generator().manual_seed(1)
    i = torch.randint(-shape[0], shape[0], form, generator=g)
    j = torch.randint(-shape[1], shape[1], form, generator=g)
    keys = (i, j), tuple(fb.tensor(k.tolist()).long() for k in (i, j))
    for turn in (False, True):
        t, x = _both(_array(shape), dtype)
        if turn:
            t, x = t.transpose(0, -1).contiguous().transpose(0, -1), x.transpose(0, -1).contiguous()
            x = x.transpose(0, -1)
        found = t[keys[0]]
        _same(x[keys[1]], found)
        v, w = _both((torch.arange(found.numel()) % 5).reshape(found.shape).tolist(), dtype)
        v, w = v.reshape(found.shape), w.reshape(tuple(found.shape))
        if len(set(zip(i.reshape(-1).tolist(), j.reshape(-1).tolist(), strict=True))) == i.numel():
            t[keys[0]], x[keys[1]] = v, w
            _same(x, t)
        t[keys[0]], x[keys[1]] = 1, 1
        _same(x, t)
        if dtype != "bool":
            _same(
                x.index_put(keys[1], w, accumulate=True), t.index_put(keys[0], v, accumulate=True)
            )


KEYS = st.lists(
    st.one_of(
        st.just(slice(None)),
        st.just(slice(1, None)),
        st.just(slice(None, None, 2)),
        st.just(None),
        st.just(Ellipsis),
        st.integers(-2, 1),
        st.lists(st.integers(-2, 1), min_size=3, max_size=3),
        st.just("number"),
        st.just("column"),
    ),
    max_size=5,
).filter(lambda parts: sum(p is Ellipsis for p in parts) < 2)


def _key(parts, L):
    found = []
    for p in parts:
        if p == "number":
            p = L.tensor(1)
        elif p == "column":
            p = L.tensor([[0], [1]])
        elif isinstance(p, list):
            p = L.tensor(p)
        found.append(p)
    return tuple(found)


@settings(max_examples=600, deadline=None)
@given(KEYS)
def test_mixed_keys(parts):
    t, x = _both(_array((4, 3, 2, 5)), "float64")
    t.requires_grad_()
    x.requires_grad_()
    try:
        wanted = t[_key(parts, torch)]
    except IndexError:
        with pytest.raises(IndexError):
            x[_key(parts, fb)]
        return
    found = x[_key(parts, fb)]
    _same(found, wanted)
    if not wanted.requires_grad:
        return
    wanted.backward(torch.ones_like(wanted))
    found.backward(fb.ones_like(found))
    assert x.grad.tolist() == t.grad.tolist()
    for value in (2.0, "tensor"):
        a, b = t.detach().clone(), x.detach().clone()
        v, w = (value, value) if value == 2.0 else (wanted.detach() * 2, found.detach() * 2)
        a[_key(parts, torch)], b[_key(parts, fb)] = v, w
        _same(b, a)
        a, b = t * 1, x * 1
        a[_key(parts, torch)], b[_key(parts, fb)] = v, w
        _same(b, a)
        (ga,), (gb,) = torch.autograd.grad(a.sum(), t), fb.autograd.grad(b.sum(), x)
        assert gb.tolist() == ga.tolist()


@pytest.mark.parametrize("key", [([0, 9], [0, 0]), ([0, 1], [0, -8]), ([9],), (1, [9]), (9, [0])])
def test_places_outside(key):
    x = fb.zeros(4, 3)
    own = tuple(fb.tensor(k) if isinstance(k, list) else k for k in key)
    with pytest.raises(IndexError, match="out of bounds"):
        x[own]
    with pytest.raises(IndexError, match="out of bounds"):
        x[own] = 1.0
    with pytest.raises(IndexError, match="out of bounds"):
        x[own] = fb.ones(len(key[-1]))
    assert x.sum().item() == 0


def test_values_that_do_not_fit():
    x, i = fb.zeros(4, 3), fb.tensor([0, 1])
    with pytest.raises((RuntimeError, IndexError), match="shape mismatch"):
        x[i, i] = fb.ones(3)
    with pytest.raises((RuntimeError, IndexError), match="shape mismatch"):
        x[i] = fb.ones(3, 3)
    x[i] = fb.ones(1, 1, 2, 3)
    assert x.sum().item() == 6


def test_an_index_that_is_written_to():
    t = torch.tensor([2, 0, 1])
    t[t.clone()] = torch.tensor([5, 6, 7])
    y = fb.tensor([2, 0, 1])
    y[y.clone()] = fb.tensor([5, 6, 7])
    assert y.tolist() == t.tolist()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dim", [0, 1, 2, -1])
@pytest.mark.parametrize("name", ["scatter", "scatter_add", "gather"])
def test_an_index_that_repeats(dtype, dim, name):
    t, x = _both(_array((4, 3, 5)), dtype)
    for axis in range(3):
        form = [1, 1, 1]
        form[axis] = (4, 3, 5)[axis]
        places = torch.arange(form[axis]).reshape(form) % (4, 3, 5)[dim]
        i, j = places.expand(4, 3, 5), fb.tensor(places.tolist()).expand(4, 3, 5)
        if name == "gather":
            _same(x.gather(dim, j), t.gather(dim, i))
            continue
        if name == "scatter_add" and dtype == "bool":
            continue
        if name == "scatter" and axis != dim % 3:
            continue  # which of several values stays is not defined
        v, w = _both(_array((4, 3, 5), 3), dtype)
        _same(getattr(x, name)(dim, j, w), getattr(t, name)(dim, i, v))
        v, w = v.transpose(0, 2).contiguous().transpose(0, 2), w.transpose(0, 2).contiguous()
        _same(getattr(x, name)(dim, j, w.transpose(0, 2)), getattr(t, name)(dim, i, v))


@pytest.mark.parametrize("form", [(4,), (4, 3), (4, 3, 2)])
def test_values_written_where_a_mask_holds(form):
    t, x = _both(_array((4, 3, 2)), "float64")
    m = torch.randint(0, 2, form, generator=torch.Generator().manual_seed(2)).bool()
    k = fb.tensor(m.tolist())
    for count in (1, int(m.sum())):
        v, w = _both(_array((count, *t.shape[len(form) :]), 5), "float64")
        for needs in (False, True):
            a, b = t.clone().requires_grad_(needs) * 1, x.clone().requires_grad_(needs) * 1
            c, d = v.clone().requires_grad_(needs), w.clone().requires_grad_(needs)
            a[m], b[k] = c, d
            _same(b, a)
            if needs:
                (ga,), (gb,) = (
                    torch.autograd.grad((a**2).sum(), c),
                    fb.autograd.grad((b**2).sum(), d),
                )
                _same(gb, ga)
    with pytest.raises((RuntimeError, IndexError)):
        x[k] = fb.ones(int(m.sum()) + 1, *x.shape[len(form) :], dtype=fb.float64)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[..., 0],
        lambda x: x[1:, ::2],
        lambda x: x.transpose(0, 2)[1],
        lambda x: x.view(-1)[3:7],
        lambda x: x.view(4, 6)[1:3],
        lambda x: x[:, 1:].diagonal(0, 0, 1),
        lambda x: x[:, None, 1],
        lambda x: x[2:2],
        lambda x: x[1:].view(3, 6),
        lambda x: x.unfold(0, 2, 1)[0],
        lambda x: x.as_strided((2, 2), (3, 1), 1),
    ],
)
@pytest.mark.parametrize("number", [True, False])
def test_recorded_writes_through_views(view, number):
    found = []
    for L in (torch, fb):
        t = L.tensor(_array((4, 3, 2)), dtype=L.float64, requires_grad=True)
        y = t * t
        region = view(y)
        v = L.full(tuple(region.shape), 3.0, dtype=L.float64, requires_grad=True)
        region[...] = 2.0 if number else v * 2
        inputs = (t,) if number else (t, v)
        first = L.autograd.grad((y**3).sum(), inputs, create_graph=True)
        second = L.autograd.grad(sum((g**2).sum() for g in first), inputs)
        found.append([y.tolist(), *[g.tolist() for g in (*first, *second)]])
    assert found[1] == found[0]


def test_an_infinite_gradient_ends_where_a_number_was_written():
    x = fb.ones(3, requires_grad=True)
    y = x * 1
    y[1:] = 0.0
    y.sqrt().sum().backward()
    assert x.grad.tolist() == [0.5, 0.0, 0.0]
