"""The argument names of PyTorch 1.0 mean what today's names mean."""

import functools
import inspect
import pickle

import pytest

import flambeau as fb
from flambeau._tools.methods import PACKAGE
from flambeau._tools.public_functions import public_functions

X = fb.tensor([[1.0, 2.0], [3.0, 4.0]])
Y = fb.tensor([[2.0, 3.0], [5.0, 0.5]])
V = fb.tensor([1.0, 2.0])
W = fb.tensor([3.0, 4.0])
B = fb.arange(4.0).reshape(1, 2, 2)
INDEX = fb.tensor([1, 0])
GRID = fb.tensor([[0, 1], [1, 0]])
MASK = fb.tensor([[True, False], [False, True]])

SQUARE = fb.tensor([[4.0, 1.0], [1.0, 3.0]])
RIGHT = fb.tensor([[1.0], [2.0]])
REFLECTORS, TAU = fb.geqrf(SQUARE)

FUNCTIONS = {
    "cholesky": ({"A": SQUARE}, (SQUARE,)),
    "cholesky_solve": ({"b": RIGHT, "u": SQUARE, "upper": True}, (RIGHT, SQUARE, True)),
    "det": ({"A": SQUARE}, (SQUARE,)),
    "eig": ({"a": SQUARE, "eigenvectors": False}, (SQUARE, False)),
    "gels": ({"B": RIGHT, "A": SQUARE}, (RIGHT, SQUARE)),
    "gesv": ({"b": RIGHT, "A": SQUARE}, (RIGHT, SQUARE)),
    "logdet": ({"A": SQUARE}, (SQUARE,)),
    "orgqr": ({"a": REFLECTORS, "tau": TAU}, (REFLECTORS, TAU)),
    "ormqr": ({"a": REFLECTORS, "tau": TAU, "mat": SQUARE}, (REFLECTORS, TAU, SQUARE)),
    "potrf": ({"a": SQUARE}, (SQUARE,)),
    "potri": ({"u": SQUARE}, (SQUARE,)),
    "potrs": ({"b": RIGHT, "u": SQUARE}, (RIGHT, SQUARE)),
    "pstrf": ({"a": SQUARE}, (SQUARE,)),
    "slogdet": ({"A": SQUARE}, (SQUARE,)),
    "solve": ({"B": RIGHT, "A": SQUARE}, (RIGHT, SQUARE)),
    "trtrs": ({"b": RIGHT, "A": SQUARE}, (RIGHT, SQUARE)),
    "atan2": ({"input1": X, "input2": Y}, (X, Y)),
    "bmm": ({"batch1": B, "batch2": B}, (B, B)),
    "chunk": ({"tensor": X, "chunks": 2}, (X, 2)),
    "combinations": ({"tensor": V, "r": 2}, (V, 2)),
    "diagflat": ({"input": V, "diagonal": 1}, (V, 1)),
    "div": ({"input": X, "value": 2}, (X, 2)),
    "dot": ({"tensor1": V, "tensor2": W}, (V, W)),
    "equal": ({"tensor1": X, "tensor2": X}, (X, X)),
    "erf": ({"tensor": X}, (X,)),
    "fmod": ({"input": X, "divisor": 2}, (X, 2)),
    "ger": ({"vec1": V, "vec2": W}, (V, W)),
    "is_floating_point": ({"tensor": X}, (X,)),
    "isfinite": ({"tensor": X}, (X,)),
    "isinf": ({"tensor": X}, (X,)),
    "isnan": ({"tensor": X}, (X,)),
    "lerp": ({"start": X, "end": Y, "weight": 0.25}, (X, Y, 0.25)),
    "matmul": ({"tensor1": X, "tensor2": Y}, (X, Y)),
    "mm": ({"mat1": X, "mat2": Y}, (X, Y)),
    "mul": ({"input": X, "value": 3}, (X, 3)),
    "mv": ({"mat": X, "vec": V}, (X, V)),
    "narrow": ({"input": X, "dimension": 1, "start": 1, "length": 1}, (X, 1, 1, 1)),
    "pow": ({"input": X, "exponent": 2}, (X, 2)),
    "remainder": ({"input": X, "divisor": 3}, (X, 3)),
    "stack": ({"seq": [V, W], "dim": 1}, ([V, W], 1)),
    "take": ({"input": X, "indices": GRID}, (X, GRID)),
    "tril_indices": ({"row": 3, "column": 2}, (3, 2)),
    "triu_indices": ({"row": 3, "column": 2}, (3, 2)),
    "unbind": ({"tensor": X, "dim": 1}, (X, 1)),
}
METHODS = {
    "cholesky_solve": (RIGHT, {"input2": SQUARE}, (SQUARE,)),
    "orgqr": (REFLECTORS, {"input2": TAU}, (TAU,)),
    "ormqr": (REFLECTORS, {"input2": TAU, "input3": SQUARE}, (TAU, SQUARE)),
    "bmm": (B, {"batch2": B}, (B,)),
    "div": (X, {"value": Y}, (Y,)),
    "div_": (X, {"value": Y}, (Y,)),
    "dot": (V, {"tensor2": W}, (W,)),
    "fmod": (X, {"divisor": 2}, (2,)),
    "fmod_": (X, {"divisor": 2}, (2,)),
    "index_add": (X, {"dim": 0, "index": INDEX, "tensor": Y}, (0, INDEX, Y)),
    "index_add_": (X, {"dim": 0, "index": INDEX, "tensor": Y}, (0, INDEX, Y)),
    "index_copy": (X, {"dim": 0, "index": INDEX, "tensor": Y}, (0, INDEX, Y)),
    "index_copy_": (X, {"dim": 0, "index": INDEX, "tensor": Y}, (0, INDEX, Y)),
    "index_fill": (X, {"dim": 0, "index": INDEX[:1], "val": 7}, (0, INDEX[:1], 7)),
    "index_fill_": (X, {"dim": 0, "index": INDEX[:1], "val": 7}, (0, INDEX[:1], 7)),
    "index_put": (X, {"indices": (INDEX,), "value": Y}, ((INDEX,), Y)),
    "index_put_": (X, {"indices": (INDEX,), "value": Y}, ((INDEX,), Y)),
    "masked_scatter": (X, {"mask": MASK, "tensor": Y}, (MASK, Y)),
    "masked_scatter_": (X, {"mask": MASK, "tensor": Y}, (MASK, Y)),
    "matmul": (X, {"tensor2": Y}, (Y,)),
    "mul": (X, {"value": Y}, (Y,)),
    "mul_": (X, {"value": Y}, (Y,)),
    "narrow": (X, {"dimension": 1, "start": 1, "length": 1}, (1, 1, 1)),
    "pow": (X, {"exponent": 3}, (3,)),
    "pow_": (X, {"exponent": 3}, (3,)),
    "put": (X, {"indices": INDEX, "tensor": V}, (INDEX, V)),
    "put_": (X, {"indices": INDEX, "tensor": V}, (INDEX, V)),
    "remainder": (X, {"divisor": 3}, (3,)),
    "remainder_": (X, {"divisor": 3}, (3,)),
    "resize_as_": (fb.arange(4.0), {"tensor": X}, (X,)),
    "scatter": (X, {"dim": 1, "index": GRID, "source": Y}, (1, GRID, Y)),
    "scatter_": (X, {"dim": 1, "index": GRID, "source": Y}, (1, GRID, Y)),
    "scatter_add": (X, {"dim": 1, "index": GRID, "source": Y}, (1, GRID, Y)),
    "scatter_add_": (X, {"dim": 1, "index": GRID, "other": Y}, (1, GRID, Y)),
    "split": (X, {"split_size": 1, "dim": 1}, (1, 1)),
    "take": (X, {"indices": GRID}, (GRID,)),
    "tril": (X, {"k": -1}, (-1,)),
    "tril_": (X, {"k": -1}, (-1,)),
    "triu": (X, {"k": 1}, (1,)),
    "triu_": (X, {"k": 1}, (1,)),
    "type_as": (X, {"tensor": INDEX}, (INDEX,)),
    "unfold": (X, {"dim": 1, "size": 2, "step": 1}, (1, 2, 1)),
}


def plain(result):
    if isinstance(result, fb.Tensor):
        return result.dtype, result.tolist()
    return [plain(r) for r in result] if isinstance(result, tuple) else result


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_takes_the_documented_names(name):
    function = getattr(fb, name)
    documented, positional = FUNCTIONS[name]
    assert plain(function(**documented)) == plain(function(*positional))
    assert set(documented) <= set(inspect.signature(function).parameters)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_takes_the_documented_names(name):
    x, documented, positional = METHODS[name]
    assert plain(getattr(x.clone(), name)(**documented)) == plain(
        getattr(x.clone(), name)(*positional)
    )
    assert set(documented) <= set(inspect.signature(getattr(fb.Tensor, name)).parameters)


def test_a_signature_with_documented_names_is_like_others():
    found = inspect.signature(fb.narrow)
    assert list(found.parameters) == ["input", "dim", "start", "length", "dimension"]
    assert found.parameters["dimension"].kind is inspect.Parameter.KEYWORD_ONLY
    assert found == inspect.signature(fb.narrow) == pickle.loads(pickle.dumps(found))
    assert list(found.bind(X, 0, 1, 2).arguments) == ["input", "dim", "start", "length"]
    assert "input" not in inspect.signature(functools.partial(fb.narrow, X)).parameters
    assert found.replace(parameters=[]).return_annotation == found.return_annotation == "Tensor"


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_btrisolve_takes_the_documented_name():
    b, (data, pivots) = RIGHT[:, 0][None], fb.btrifact(SQUARE[None])
    assert plain(fb.btrisolve(b=b, LU_data=data, LU_pivots=pivots)) == plain(
        fb.btrisolve(b, data, pivots)
    )


def test_every_documented_name_of_a_method_is_tested():
    tested = {
        (name.rstrip("_"), argument) for name, (_, call, _) in METHODS.items() for argument in call
    }
    tested |= {("bernoulli", "p_tensor"), ("smm", "mat2"), ("to_sparse", "sparseDims")}
    functions = [f for members in public_functions(PACKAGE / "ops").values() for f in members]
    offered = {(f.name.rstrip("_"), name) for f in functions for name in f.public.names}
    assert len(offered) > 30 and offered <= tested


def test_methods_around_sparse_tensors_take_the_documented_names():
    x = fb.eye(2)
    assert x.to_sparse(sparseDims=1).sparse_dim() == 1
    assert x.to_sparse().smm(mat2=x).to_dense().tolist() == x.tolist()
    assert fb.smm(x.to_sparse(), mat2=x).to_dense().tolist() == x.tolist()


def test_the_power_of_a_number_takes_base_and_input():
    assert fb.pow(base=2, input=V).tolist() == [2.0, 4.0]


def test_probabilities_are_given_as_p_tensor():
    assert fb.zeros(2).bernoulli_(p_tensor=fb.tensor([1.0, 0.0])).tolist() == [1.0, 0.0]


@pytest.mark.parametrize("name", ["median", "mode"])
def test_values_and_indices_are_written_where_they_are_asked_for(name):
    values, indices = fb.empty(0), fb.empty(0, dtype=fb.int64)
    found = getattr(fb, name)(X, 1, values=values, indices=indices)
    assert values.tolist() == found.values.tolist() == [1, 3]
    assert indices.tolist() == found.indices.tolist()


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda out: fb.squeeze(V.reshape(1, 2), 0, out=out), [1, 2]),
        (lambda out: fb.unsqueeze(V, 0, out=out), [[1, 2]]),
        (lambda out: fb.full_like(V, 3, out=out), [3, 3]),
        (lambda out: V.clamp_min(1.5, out=out), [1.5, 2]),
    ],
)
def test_out_receives_the_result(call, expected):
    out = fb.empty(0)
    assert call(out) is out
    assert out.tolist() == expected


def test_out_of_other_dtypes_receives_the_result():
    order = fb.empty(0, dtype=fb.int64)
    assert fb.argsort(fb.tensor([2.0, 1.0]), out=order) is order
    assert order.tolist() == [1, 0]
    truth = fb.empty(0, dtype=fb.bool)
    assert MASK.all(1, out=truth) is truth
    assert truth.tolist() == [False, False]
    assert MASK.any(1, out=truth).tolist() == [True, True]


@pytest.mark.parametrize("name", ["mul", "div", "matmul", "narrow", "take", "dot", "tril_indices"])
def test_a_missing_argument_of_a_function_is_a_type_error(name):
    with pytest.raises(TypeError, match="missing"):
        getattr(fb, name)(X)


@pytest.mark.parametrize("name", ["mul", "mul_", "div", "matmul", "narrow", "take", "split"])
def test_a_missing_argument_of_a_method_is_a_type_error(name):
    with pytest.raises(TypeError, match=f"{name}\\(\\) missing required argument"):
        getattr(X, name)()


def test_two_names_for_one_argument_are_refused():
    with pytest.raises(TypeError, match="multiple values"):
        fb.mul(X, 2, value=3)
    with pytest.raises(TypeError, match="got more than one value for 'other' or 'value'"):
        X.mul(2, value=3)
