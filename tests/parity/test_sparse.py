"""Sparse tensors, their gradients and their optimisers agree with PyTorch."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import flambeau as fb  # noqa: E402

WHERE = [[1, 0, 1, 2, 1], [2, 0, 0, 1, 2]]
VALUES = [3.0, -4.0, 5.0, 0.5, 2.0]
SIZE = (3, 4)


@pytest.fixture(autouse=True)
def _without_beta_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse")
        yield


def made(t: Any, *, coalesced: bool = False, hybrid: bool = False, device: Any = None) -> Any:
    values = t.tensor(VALUES, dtype=t.float64, device=device)
    size: tuple[int, ...] = SIZE
    if hybrid:
        values, size = t.stack([values, values * 2], 1), (*SIZE, 2)
    s = t.sparse_coo_tensor(t.tensor(WHERE, device=device), values, size)
    return s.coalesce() if coalesced else s


def plain(x: Any) -> Any:
    """What can be compared: layout, dtype, size and elements, not how an uncoalesced one splits."""
    if not hasattr(x, "dtype"):
        return x
    if x.is_sparse:
        once = x.coalesce()
        return (
            "sparse",
            str(x.dtype),
            tuple(x.shape),
            x.is_coalesced(),
            once.indices().tolist(),
            once.values().tolist(),
        )
    return "dense", str(x.dtype), tuple(x.shape), x.tolist()


CALLS = {
    "add": lambda t, s: s + s,
    "add scaled": lambda t, s: s.add(s * 2, alpha=3),
    "add other positions": lambda t, s: s + s.index_select(0, t.tensor([2, 0, 1])),
    "mul sparse": lambda t, s: (s * s.index_select(0, t.tensor([1, 0, 2]))).to_dense(),
    "sub": lambda t, s: s - s * 0.5,
    "mul number": lambda t, s: s * 2,
    "number mul": lambda t, s: 2 * s,
    "div number": lambda t, s: s / 4,
    "floor_divide": lambda t, s: s // 2,
    "neg": lambda t, s: -s,
    "abs": lambda t, s: s.abs(),
    "pow": lambda t, s: s**2,
    "tanh": lambda t, s: t.tanh(s),
    "relu": lambda t, s: s.relu(),
    "isnan": lambda t, s: s.isnan(),
    "dense add": lambda t, s: t.ones(s.shape, dtype=s.dtype) + s,
    "dense sub": lambda t, s: t.ones(s.shape, dtype=s.dtype) - s,
    "dense add_": lambda t, s: t.ones(s.shape, dtype=s.dtype).add_(s, alpha=2),
    "mul dense": lambda t, s: s * t.arange(s.numel(), dtype=s.dtype).reshape(s.shape),
    "dense mul": lambda t, s: t.arange(s.numel(), dtype=s.dtype).reshape(s.shape) * s,
    "to_dense": lambda t, s: s.to_dense(),
    "float": lambda t, s: s.float(),
    "to": lambda t, s: s.to(t.float32),
    "clone": lambda t, s: s.clone(),
    "detach": lambda t, s: s.detach(),
    "sum": lambda t, s: s.sum(),
    "sparse.sum 0": lambda t, s: t.sparse.sum(s, 0),
    "sparse.sum -1": lambda t, s: t.sparse.sum(s, -1),
    "sparse.sum both": lambda t, s: t.sparse.sum(s, (0, 1)),
    "sparse.sum dtype": lambda t, s: t.sparse.sum(s, 1, dtype=t.float32),
    "norm": lambda t, s: s.norm(),
    "transpose": lambda t, s: s.transpose(0, 1),
    "unsqueeze": lambda t, s: s.unsqueeze(1),
    "cat": lambda t, s: t.cat([s, s], 1),
    "stack": lambda t, s: t.stack([s, s]),
    "index_select": lambda t, s: s.index_select(0, t.tensor([2, 1, 1])),
    "select": lambda t, s: s.select(1, 2),
    "getitem": lambda t, s: s[1],
    "zero_": lambda t, s: s.clone().zero_(),
    "zeros_like": lambda t, s: t.zeros_like(s),
    "sparse_mask": lambda t, s: t.ones(s.shape, dtype=s.dtype).sparse_mask(s),
    "narrow_copy": lambda t, s: s.narrow_copy(1, 1, 2),
    "sparse_dim": lambda t, s: (s.sparse_dim(), s.dense_dim(), s.numel(), s.is_coalesced()),
    "type": lambda t, s: s.type(),
    "layout": lambda t, s: str(s.layout),
    "stride": lambda t, s: s.stride(),
    "len": lambda t, s: len(s),
    "mul_": lambda t, s: s.clone().mul_(3).to_dense(),
    "add_": lambda t, s: s.clone().add_(s),
    "copy_": lambda t, s: s.clone().copy_(s * 2),
    "resize": lambda t, s: s.clone().sparse_resize_((7, *s.shape[1:]), 2, s.dense_dim()),
    "deepcopy": lambda t, s: copy.deepcopy(s),
    "pickle": lambda t, s: pickle.loads(pickle.dumps(s)),
    "repr": lambda t, s: repr(s),
}
LAST_DIGIT = {"tanh"}  # PyTorch's depends on what vectors the processor has
MATRIX_CALLS = {
    "mm dense": lambda t, s: t.mm(s, t.arange(8, dtype=s.dtype).reshape(4, 2)),
    "dense mm": lambda t, s: t.mm(t.arange(6, dtype=s.dtype).reshape(2, 3), s),
    "mm sparse": lambda t, s: t.sparse.mm(s, s.t()),
    "matmul vector": lambda t, s: s @ t.arange(4, dtype=s.dtype),
    "matmul": lambda t, s: s @ t.ones(4, 1, dtype=s.dtype),
    "mv": lambda t, s: t.mv(s, t.ones(4, dtype=s.dtype)),
    "addmm": lambda t, s: t.addmm(
        t.ones(3, 2, dtype=s.dtype), s, t.ones(4, 2, dtype=s.dtype), beta=2, alpha=3
    ),
    "sparse.addmm": lambda t, s: t.sparse.addmm(
        t.ones(3, 2, dtype=s.dtype), s, t.ones(4, 2, dtype=s.dtype)
    ),
    "hspmm": lambda t, s: t.hspmm(s, t.ones(4, 2, dtype=s.dtype)).to_dense(),
    "smm": lambda t, s: t.smm(s, t.ones(4, 2, dtype=s.dtype)),
    "sspaddmm": lambda t, s: t.sspaddmm(s, s, t.ones(4, 4, dtype=s.dtype)),
    "softmax 1": lambda t, s: t.sparse.softmax(s, 1),
    "log_softmax 0": lambda t, s: t.sparse.log_softmax(s, 0),
    "t": lambda t, s: s.t(),
    "element": lambda t, s: s[1, 2],
}


@pytest.mark.parametrize("coalesced", [False, True])
@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("name", CALLS)
def test_functions_of_sparse_tensors_agree(name: str, hybrid: bool, coalesced: bool) -> None:
    call = CALLS[name]
    try:
        theirs = call(torch, made(torch, coalesced=coalesced, hybrid=hybrid))
    except (RuntimeError, NotImplementedError, IndexError) as error:
        with pytest.raises(type(error)):
            call(fb, made(fb, coalesced=coalesced, hybrid=hybrid))
        return
    ours = call(fb, made(fb, coalesced=coalesced, hybrid=hybrid))
    if name in LAST_DIGIT:
        *_, values = plain(ours)
        *_, expected = plain(theirs)
        np.testing.assert_array_max_ulp(np.array(values), np.array(expected), maxulp=2)
        ours, theirs = ours * 0, theirs * 0
    assert plain(ours) == plain(theirs)


@pytest.mark.parametrize("coalesced", [False, True])
@pytest.mark.parametrize("name", MATRIX_CALLS)
def test_matrix_products_agree(name: str, coalesced: bool) -> None:
    call = MATRIX_CALLS[name]
    ours, theirs = (
        call(fb, made(fb, coalesced=coalesced)),
        call(torch, made(torch, coalesced=coalesced)),
    )
    a, b = plain(ours), plain(theirs)
    assert a[:-1] == b[:-1]
    assert a[-1] == pytest.approx(b[-1]) if a[0] == "sparse" else a[-1] == b[-1]


@pytest.mark.parametrize(
    "name", ["add", "mul number", "to_dense", "sparse.sum 0", "abs", "mul dense"]
)
def test_sparse_tensors_work_without_an_array_library(name: str) -> None:
    def dense(x: Any) -> Any:
        return (x.to_dense() if x.is_sparse else x).tolist()

    fb.set_default_device("ref")
    try:
        ours = CALLS[name](fb, made(fb, device="ref"))
    finally:
        fb.set_default_device("cpu")
    assert dense(ours) == dense(CALLS[name](torch, made(torch)))


@pytest.mark.parametrize("shape", [(2, 3), (4,), (), (0, 3), (2, 0), (2, 2, 3)])
def test_to_sparse_and_back_is_the_identity(shape: tuple[int, ...]) -> None:
    n = 1
    for m in shape:
        n *= m
    x = (fb.arange(n) % 3).reshape(shape)
    y = (torch.arange(n) % 3).reshape(shape)
    assert plain(x.to_sparse()) == plain(y.to_sparse())
    assert plain(x.to_sparse().to_dense()) == plain(y)
    for d in range(1, len(shape) + 1):
        assert plain(x.to_sparse(d)) == plain(y.to_sparse(d))


ERRORS = {
    "negative index": lambda t: t.sparse_coo_tensor(t.tensor([[-1]]), t.ones(1)),
    "different counts": lambda t: t.sparse_coo_tensor(t.tensor([[0, 1]]), t.ones(3)),
    "flat indices": lambda t: t.sparse_coo_tensor(t.tensor([0]), t.ones(1)),
    "wrong rank": lambda t: t.sparse_coo_tensor(t.tensor([[0]]), t.ones(1), (2, 2)),
    "uncoalesced values": lambda t: made(t).values(),
    "uncoalesced indices": lambda t: made(t).indices(),
    "sparse + dense": lambda t: made(t) + t.ones(SIZE, dtype=t.float64),
    "sparse + number": lambda t: made(t) + 1,
    "sizes": lambda t: made(t) + made(t).t(),
    "no such function": lambda t: t.exp(made(t)),
    "view": lambda t: made(t).view(12),
    "storage": lambda t: made(t).untyped_storage(),
    "numpy": lambda t: made(t).numpy(),
    "item": lambda t: made(t).item(),
    "bool": lambda t: bool(made(t)),
    "dense coalesce": lambda t: t.ones(2).coalesce(),
    "dense indices": lambda t: t.ones(2).indices(),
    "dense is_coalesced": lambda t: t.ones(2).is_coalesced(),
    "mm sizes": lambda t: t.mm(made(t), t.ones(3, 1, dtype=t.float64)),
    "bmm": lambda t: made(t).bmm(made(t)),
    "leaf in place": lambda t: made(t).requires_grad_().add_(made(t)),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_have_the_class_of_pytorch(name: str) -> None:
    with pytest.raises(Exception) as theirs:  # noqa: PT011 - any, to compare
        ERRORS[name](torch)
    with pytest.raises(theirs.type):
        ERRORS[name](fb)


def test_positions_outside_of_the_size_are_refused() -> None:
    with pytest.raises(RuntimeError, match="for dim 0, size is 2 but found index 3"):
        fb.sparse_coo_tensor([[3]], [1.0], (2,))


GRADIENTS = {
    "sparse.sum": lambda t, s, d: t.sparse.sum(s),
    "to_dense": lambda t, s, d: (s.to_dense() ** 2).sum(),
    "mm": lambda t, s, d: (t.sparse.mm(s, d) ** 2).sum(),
    "addmm": lambda t, s, d: (t.sparse.addmm(t.ones(3, 2, dtype=d.dtype), s, d) ** 2).sum(),
    "sum 0": lambda t, s, d: (t.sparse.sum(s, 0).to_dense() ** 3).sum(),
    "scaled": lambda t, s, d: t.sparse.sum(s * 3),
    "softmax": lambda t, s, d: (t.sparse.softmax(s, 1).to_dense() ** 2).sum(),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_of_sparse_leaves_and_dense_operands_agree(name: str) -> None:
    found = []
    for t in (fb, torch):
        s = made(t, coalesced=True).detach().requires_grad_()
        d = t.arange(8, dtype=t.float64).reshape(4, 2).requires_grad_()
        GRADIENTS[name](t, s, d).backward()
        grad = s.grad.to_dense() if s.grad.is_sparse else s.grad
        found.append((grad.tolist(), None if d.grad is None else d.grad.tolist()))
    ours, theirs = found
    assert ours[1] == theirs[1]
    assert [pytest.approx(row) for row in ours[0]] == theirs[0]


def test_values_given_to_a_sparse_tensor_receive_its_gradient() -> None:
    found = []
    for t in (fb, torch):
        v = t.tensor(VALUES, requires_grad=True)
        s = t.sparse_coo_tensor(t.tensor(WHERE), v * 2, SIZE)
        (s.to_dense() ** 2).sum().backward()
        found.append(v.grad.tolist())
    assert found[0] == found[1]


def test_gather_sends_a_sparse_gradient_to_leaves_alone() -> None:
    x = fb.ones(2, 3, requires_grad=True)
    i = fb.tensor([[0], [2]])
    x.gather(1, i, sparse_grad=True).sum().backward()
    assert plain(x.grad)[0] == "sparse"
    assert x.grad.to_dense().tolist() == [[1, 0, 0], [0, 0, 1]]
    (x * 2).sum().backward()  # sparse + dense is dense
    assert plain(x.grad) == ("dense", "torch.float32", (2, 3), [[3, 2, 2], [2, 2, 3]])
    x.grad = None
    (x * 3).gather(1, i, sparse_grad=True).sum().backward()
    assert plain(x.grad) == ("dense", "torch.float32", (2, 3), [[3, 0, 0], [0, 0, 3]])


def test_sparse_and_dense_gradients_of_one_pass_add_up() -> None:
    x = fb.ones(2, 3, requires_grad=True)
    i = fb.tensor([[0], [2]])
    parts = [x.gather(1, i, sparse_grad=True).sum(), (x * x).sum(), x.gather(1, i).sum()]
    sum(parts[1:], parts[0]).backward()
    assert x.grad.tolist() == [[4, 2, 2], [2, 2, 4]]


OPTIMISERS = {
    "SGD": {"lr": 0.1},
    "SGD momentum": {"lr": 0.1, "momentum": 0.9},
    "SGD nesterov": {"lr": 0.1, "momentum": 0.9, "nesterov": True},
    "SGD maximize": {"lr": 0.1, "momentum": 0.5, "dampening": 0.1, "maximize": True},
    "Adagrad": {"lr": 0.1, "lr_decay": 0.01},
    "SparseAdam": {"lr": 0.1},
    "SparseAdam maximize": {"lr": 0.1, "betas": (0.5, 0.7), "maximize": True},
}


@pytest.mark.parametrize("name", OPTIMISERS)
def test_twenty_steps_with_sparse_gradients_agree(name: str) -> None:
    found = []
    for t in (fb, torch):
        table = t.arange(10, dtype=t.float64).reshape(5, 2).requires_grad_()
        optimizer = getattr(t.optim, name.split()[0])([table], **OPTIMISERS[name])
        for step in range(20):
            where = t.tensor([[step % 5, (3 * step) % 5, 1]])
            values = t.arange(6, dtype=t.float64).reshape(3, 2) * 0.1 + step * 0.01
            table.grad = t.sparse_coo_tensor(where, values, (5, 2))
            optimizer.step()
        found.append(table.detach().reshape(-1).tolist())
    assert found[0] == pytest.approx(found[1], rel=1e-12)


@pytest.mark.parametrize("name", ["Adam", "AdamW", "RMSprop", "Adadelta", "ASGD", "Rprop", "NAdam"])
def test_other_optimisers_refuse_sparse_gradients(name: str) -> None:
    table = fb.ones(2, requires_grad=True)
    table.grad = fb.sparse_coo_tensor([[0]], [1.0], (2,))
    with pytest.raises(RuntimeError, match="does not support sparse gradients"):
        getattr(fb.optim, name)([table]).step()


def test_sparse_adam_refuses_dense_gradients_and_sparse_parameters() -> None:
    table = fb.ones(2, requires_grad=True)
    optimizer = fb.optim.SparseAdam([table])
    table.grad = fb.ones(2)
    with pytest.raises(RuntimeError, match="does not support dense gradients"):
        optimizer.step()
    with pytest.raises(ValueError, match=r"Sparse params at indices \[\[0, 0\]\]"):
        fb.optim.SparseAdam([fb.ones(2).to_sparse().requires_grad_()])


def test_typed_constructors_make_their_dtype() -> None:
    i, v = fb.tensor([[0, 1]]), fb.tensor([1.0, 2.0])
    s = fb.sparse.FloatTensor(i, v, fb.Size([3]))
    assert s.to_dense().tolist() == [1, 2, 0]
    assert isinstance(s, fb.sparse.FloatTensor)
    assert not isinstance(s, fb.sparse.LongTensor)
    assert fb.sparse.DoubleTensor(2, 3).dtype is fb.float64
    assert tuple(fb.sparse.LongTensor().shape) == (0,)
    with pytest.raises(TypeError, match="values must be torch.int64"):
        fb.sparse.LongTensor(i, v)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("between", [False, True])
def test_functions_of_programs_send_sparse_gradients_to_leaves(between, dtype):
    def gradient(library):
        class Doubled(library.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, g):
                where = library.tensor([[0, 0]])
                return library.sparse_coo_tensor(where, library.ones(2), (2,))

        x = library.ones(2, dtype=getattr(library, dtype), requires_grad=True)
        found = []
        for _ in range(2):
            Doubled.apply(x * 3 if between else x).sum().backward()
            found.append((x.grad.is_sparse, str(x.grad.dtype), x.grad.to_dense().tolist()))
        (x * 1).sum().backward()
        return [*found, (x.grad.is_sparse, x.grad.to_dense().tolist())]

    ours, theirs = gradient(fb), gradient(torch)
    if between:  # an op in between gets, and sends on, the dense gradient
        ours, theirs = ([found[1:] for found in each] for each in (ours, theirs))
    assert ours == theirs


def test_new_makes_sparse_tensors_of_sparse_ones():
    def made(library):
        s = library.sparse_coo_tensor(library.tensor([[0, 1]]), library.ones(2), (2,))
        where, values = library.tensor([[0]]), library.ones(1)
        forms = [(2, 3), (), (library.Size([2, 3]),), (where, values), (where, values, (4,))]
        forms.append((where, values.double()))
        news = [s.new(*form) for form in forms] + [s.new(size=(2, 3))]
        return [(n.is_sparse, tuple(n.shape), str(n.dtype), n.to_dense().tolist()) for n in news]

    assert made(fb) == made(torch)
    s = fb.sparse_coo_tensor(fb.tensor([[0, 1]]), fb.ones(2), (2,))
    with pytest.raises(TypeError, match="only accepts sizes"):
        s.new([2, 3])


CREATIONS = {
    "zeros": lambda t: t.zeros(2, 3, layout=t.sparse_coo),
    "empty": lambda t: t.empty((2, 0), dtype=t.int64, layout=t.sparse_coo),
    "zeros_like": lambda t: t.zeros_like(t.ones(2), layout=t.sparse_coo),
    "zeros_like of sparse": lambda t: t.zeros_like(t.eye(2).to_sparse(), dtype=t.int32),
    "new_zeros": lambda t: t.ones(2, dtype=t.float64).new_zeros((3,), layout=t.sparse_coo),
    "requires grad": lambda t: t.zeros(2, layout=t.sparse_coo, requires_grad=True).detach(),
    "strided": lambda t: t.zeros(2, layout=t.strided),
    "into a sparse one": lambda t: t.zeros(3, out=t.eye(2, dtype=t.float64).to_sparse()),
    "ones": lambda t: t.ones(2, layout=t.sparse_coo),
    "full": lambda t: t.full((2,), 1, layout=t.sparse_coo),
    "no layout": lambda t: t.zeros(2, layout="sparse"),
}


@pytest.mark.parametrize("name", CREATIONS)
def test_layouts_that_are_asked_for_are_made(name: str) -> None:
    def outcome(t: Any) -> Any:
        try:
            return plain(CREATIONS[name](t))
        except Exception as error:
            return type(error)

    assert outcome(fb) == outcome(torch)


@pytest.mark.parametrize("coalesced", [True, False])
def test_the_gradient_of_an_element_that_is_stored_twice_counts_once(coalesced: bool) -> None:
    def gradient(t: Any) -> Any:
        s = made(t, coalesced=coalesced).requires_grad_()
        weights = t.arange(12, dtype=t.float64).reshape(SIZE).to_sparse()
        (s.to_dense() * weights.to_dense()).sum().backward()
        stored = made(t, coalesced=coalesced).detach() * 0 + made(t)
        return (s.grad * stored).to_dense().tolist()

    assert gradient(fb) == gradient(torch)


def test_a_sparse_gradient_reaches_a_sparse_leaf_by_its_sum() -> None:
    def gradient(t: Any) -> Any:
        s = made(t).requires_grad_()
        (s * 2).backward(made(t))
        return s.grad.to_dense().tolist()

    assert gradient(fb) == gradient(torch)


IN_PLACE = ["asin_", "ceil_", "expm1_", "floor_", "log1p_", "sin_", "sqrt_", "tanh_", "trunc_"]


@pytest.mark.parametrize("name", IN_PLACE)
def test_functions_write_into_coalesced_tensors_alone(name: str) -> None:
    def outcome(t: Any, coalesced: bool) -> Any:
        s = made(t, coalesced=coalesced) * 0.1
        try:
            return t.allclose(getattr(s, name)().to_dense(), s.to_dense(), equal_nan=True)
        except RuntimeError as error:
            return "requires coalesced" in str(error)

    for coalesced in (True, False):
        assert outcome(fb, coalesced) == outcome(torch, coalesced)


def test_resizing_what_a_sparse_tensor_was_made_of_leaves_it_as_it_is() -> None:
    def size(t: Any) -> Any:
        where, values = t.tensor([[0], [1]]), t.tensor([[3.0, 4.0]])
        s = t.sparse_coo_tensor(where, values, (1, 2, 2))
        values[0, 0] = 7
        where.resize_(2, 3)
        values.resize_(4, 5)
        return tuple(s._indices().shape), s._values().tolist()

    assert size(fb) == size(torch)


def test_resize_as_keeps_the_stored_elements() -> None:
    def resized(t: Any) -> Any:
        s = t.sparse_coo_tensor([[0]], t.arange(6.0).reshape(1, 2, 3), (2, 2, 3))
        return s.resize_as_(t.sparse_coo_tensor([[0]], t.ones(1, 2, 4), (4, 2, 4)))

    ours, theirs = resized(fb), resized(torch)
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert ours._values().flatten()[:6].tolist() == theirs._values().flatten()[:6].tolist()


REFUSED = {
    "narrow_copy": lambda t, s: s.narrow_copy(-1, 0, 1),
    "sum": lambda t, s: t.sparse.sum(s, [0, 0]),
    "cat sizes": lambda t, s: t.cat([s, s.narrow_copy(1, 0, 2)]),
    "cat dims": lambda t, s: t.cat([s, s.to_dense().to_sparse(1)]),
    "cat dense": lambda t, s: t.cat([s, s.to_dense()]),
    "is_nonzero": lambda t, s: s.is_nonzero(),
    "device": lambda t, s: t.sparse.FloatTensor(t.ones(1, 1).long(), t.ones(1), device="cuda"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_further_refusals_have_the_class_of_pytorch(name: str) -> None:
    classes = []
    for t in (torch, fb):
        try:
            REFUSED[name](t, made(t))
        except Exception as error:
            classes.append(type(error))
    assert issubclass(classes[1], classes[0])


def test_products_by_their_older_names_agree() -> None:
    def products(t: Any) -> Any:
        dense = t.arange(8, dtype=t.float64).reshape(4, 2)
        like = t.ones(3, 2, dtype=t.float64).to_sparse()
        found = t.hsmm(made(t), dense), t.saddmm(like, made(t), dense)
        return [x.to_dense().tolist() for x in found]

    assert products(fb) == products(torch)


def test_empty_sparse_tensors_add_whatever_dimensions_are_sparse() -> None:
    def added(t: Any) -> Any:
        zeros = t.zeros(3, 4, layout=t.sparse_coo).double()
        s = made(t).to_dense().to_sparse(1)
        return (zeros + s).to_dense().tolist(), (s + zeros).to_dense().tolist()

    assert added(fb) == added(torch)


@pytest.mark.parametrize("coalesced", [True, False])
def test_gradients_by_sparse_inputs_can_be_checked(coalesced: bool) -> None:
    def check(t: Any) -> bool:
        s = made(t, coalesced=coalesced).requires_grad_()
        dense = t.arange(8, dtype=t.float64).reshape(4, 2).requires_grad_()
        return t.autograd.gradcheck(t.sparse.mm, (s, dense), masked=True)

    assert check(fb) and check(torch)
    s = made(fb).requires_grad_()
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        fb.autograd.gradcheck(lambda x: x.to_dense().detach() * x.to_dense(), (s,))
    with pytest.raises(RuntimeError, match="inputs are dense"):
        fb.autograd.gradcheck(fb.sparse.sum, (s,), check_sparse_nnz=False)
    assert fb.autograd.gradgradcheck(lambda x: (x.to_dense() ** 3).sum(), (s,))
