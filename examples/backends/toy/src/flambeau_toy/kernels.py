"""The kernels of device ``toy``: arrays and plain values in, a fresh array out."""

import math

import numpy as np

from flambeau_toy.backend import TO_NUMPY


def cast(a, dtype):
    """C's conversion; a complex number loses its imaginary part."""
    kind = TO_NUMPY[dtype]
    return (a.real if a.dtype.kind == "c" and kind.kind not in "cb" else a).astype(kind)


def power(a, b):
    """a to the b; of integers to negative powers, only those of 1 and -1 are not 0."""
    whole = a.dtype.kind in "iu"
    found = np.power(a, np.where(b < 0, b % 2, b) if whole else b)
    return np.where(whole & (b < 0) & (abs(a) != 1), 0, found).astype(a.dtype)


def divided(ufunc):
    """Integers are not divided by zero."""

    def kernel(a, b):
        if b.dtype.kind in "iu" and not b.all():
            raise ZeroDivisionError("integer division by zero")
        return ufunc(a, b)

    return kernel


def reduced(ufunc):
    """One number of those along `dims`, in their dtype."""
    return lambda a, dims, keepdim: ufunc.reduce(a, axis=dims, keepdims=keepdim, dtype=a.dtype)


def scanned(ufunc):
    """The same for all beginnings along `dim`."""
    return lambda a, dim: ufunc.accumulate(np.atleast_1d(a), dim, a.dtype).reshape(a.shape)


def key(indices):
    """NumPy's index for flambeau's, where None stands for a whole dimension."""
    return tuple([slice(None) if i is None else i for i in indices])


def along(dim, index):
    """NumPy's index of the elements that `index` names along `dim`."""
    found = list(np.indices(index.shape, sparse=True))
    found[dim : dim + 1] = [index] if index.ndim else []
    return tuple(found)


def put(a, where, values, accumulate):
    """A copy of `a` with `values` there; repeated places keep the last, or all are added."""
    out = np.array(a)
    np.add.at(out, where, values) if accumulate else out.__setitem__(where, values)
    return out


def scatter(a, dim, index, src, accumulate=False):
    """A copy of `a` with elements of `src` where `index` says."""
    return put(a, along(dim, index), src[tuple(map(slice, index.shape))], accumulate)


def sort(a, dim, descending, stable):
    """The order along `dim`, and where each came from."""
    rows = np.moveaxis(np.atleast_1d(a), dim, -1)
    step = -1 if descending else 1  # backwards twice, so that equal elements keep their order
    order = np.argsort(rows[..., ::step], axis=-1, kind="stable")[..., ::step]
    order = rows.shape[-1] - 1 - order if descending else order
    both = np.take_along_axis(rows, order, -1), order
    return tuple([np.moveaxis(x, -1, dim).reshape(a.shape) for x in both])


SAME = "exp expm1 log log1p sin cos tan sinh cosh tanh sqrt reciprocal abs floor ceil trunc round"
SAME += " isfinite add maximum minimum bitwise_and bitwise_or bitwise_xor where matmul flip"
OTHER = "neg=negative asin=arcsin acos=arccos atan=arctan bitwise_not=invert sub=subtract"
OTHER += " mul=multiply div=divide atan2=arctan2 eq=equal ne=not_equal lt=less le=less_equal"
OTHER += " gt=greater ge=greater_equal cat=concatenate permute=transpose view=reshape"
OTHER += " expand=broadcast_to diagonal=diagonal clone=copy nonzero=argwhere"
REDUCED = "sum=add prod=multiply amax=maximum amin=minimum all=logical_and any=logical_or"


def named(pairs):
    """NumPy's functions, by flambeau's names."""
    return {ours: getattr(np, its) for ours, its in (pair.split("=") for pair in pairs.split())}


KERNELS = {name: getattr(np, name) for name in SAME.split()} | named(OTHER)
KERNELS |= {name: reduced(ufunc) for name, ufunc in named(REDUCED).items()}
KERNELS |= {name: scanned(ufunc) for name, ufunc in named("cumsum=add cumprod=multiply").items()}
KERNELS |= {name: divided(getattr(np, name)) for name in ("remainder", "fmod", "floor_divide")}
KERNELS |= {
    "cast": cast,
    "pow": power,
    "sign": lambda a: np.sign(np.where(a == a, a, 0)).astype(a.dtype),
    "rsqrt": lambda a: 1 / np.sqrt(a),
    "erf": lambda a: np.vectorize(math.erf, otypes=[float])(a).astype(a.dtype),
    "full": lambda shape, value, dtype: np.full(shape, value).astype(TO_NUMPY[dtype]),
    "arange": lambda start, step, n, dtype: (start + step * np.arange(n)).astype(TO_NUMPY[dtype]),
    "argmax": lambda a, dim, keepdim: np.argmax(a, axis=dim, keepdims=keepdim),
    "argmin": lambda a, dim, keepdim: np.argmin(a, axis=dim, keepdims=keepdim),
    "slice": lambda a, items: a[items],
    "index": lambda a, indices: a[key(indices)],
    "index_put": lambda a, indices, values, accumulate: put(a, key(indices), values, accumulate),
    "gather": lambda a, dim, index: a[along(dim, index)],
    "scatter": scatter,
    "scatter_add": lambda a, dim, index, src: scatter(a, dim, index, src, accumulate=True),
    "sort": sort,
}
KERNELS = {name: np.errstate(all="ignore")(kernel) for name, kernel in KERNELS.items()}
