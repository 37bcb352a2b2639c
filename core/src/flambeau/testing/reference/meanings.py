"""What each primitive means, in words: its value, its shape, and what is special about it.

The kernels beside this file are the same in Python; `docs/backends/primitives.md` prints both.
"""

from __future__ import annotations

_SAME = "Shape: that of `self`."
_BROADCAST = "Shape: both operands broadcast."
_REDUCED = (
    "`dim` is a tuple of distinct dimensions, empty only if `self` is 0-d; they become 1 with "
    "`keepdim` and are dropped without."
)
_ONE = (
    "`dim` is one dimension, 0 if `self` is 0-d; it becomes 1 with `keepdim` and is dropped "
    "without."
)
_ALONG = "`dim` is one dimension, 0 if `self` is 0-d. Shape: that of `self`."
_VIEW = "A view: on a strided backend an alias of `self`, elsewhere any array of these elements."
_ZERO = "Integers by 0 raise `ZeroDivisionError`."


def _unary(text: str, more: str = "") -> str:
    return " ".join(filter(None, (text, more, _SAME)))


def _binary(text: str, more: str = "") -> str:
    return " ".join(filter(None, (text, more, _BROADCAST)))


MEANINGS: dict[str, str] = {
    "full": (
        "An array of shape `shape` with `value`, a Python number, everywhere; cast as by `cast`."
    ),
    "arange": (
        "start + step·i for i from 0 to length - 1. Where `start` and `step` are ints this is "
        "computed in int64, else in float64, and then cast. Shape: (length,)."
    ),
    "cast": _unary(
        "The elements as `dtype`, as in C: floats lose their fraction, integers wrap, anything "
        "but 0 is True, complex numbers lose their imaginary part, and bools are 0 or 1.",
        "Nan, infinities and floats beyond the range of an integer dtype are left open.",
    ),
    "clone": _unary(
        "A copy that shares no memory. Where the backend has strides, their order is kept if the "
        "elements of `self` fill their memory."
    ),
    "neg": _unary("-x. Integers wrap, and 0.0 becomes -0.0."),
    "abs": _unary("|x|; of complex numbers the modulus, a real number. Integers wrap."),
    "sign": _unary("-1, 0 or 1 as x is below, at or above 0; of nan, 0."),
    "exp": _unary("e raised to x."),
    "expm1": _unary("e raised to x, minus 1, with all digits near 0."),
    "log": _unary("The natural logarithm; of 0 it is -inf, below nan."),
    "log1p": _unary("log(1 + x), with all digits near 0."),
    "sin": _unary("Sine of radians; of infinities nan."),
    "cos": _unary("Cosine of radians; of infinities nan."),
    "tan": _unary("Tangent of radians; of infinities nan."),
    "asin": _unary("Inverse sine, in radians; outside [-1, 1] nan."),
    "acos": _unary("Inverse cosine, in radians; outside [-1, 1] nan."),
    "atan": _unary("Inverse tangent, in radians."),
    "sinh": _unary("Hyperbolic sine."),
    "cosh": _unary("Hyperbolic cosine."),
    "tanh": _unary("Hyperbolic tangent."),
    "sqrt": _unary("The square root; below 0 nan, of -0.0 -0.0."),
    "rsqrt": _unary("1 / sqrt(x); of 0.0 inf."),
    "reciprocal": _unary("1 / x; of 0.0 inf, of -0.0 -inf."),
    "erf": _unary("The error function: 2/sqrt(π) times the integral of exp(-t²) from 0 to x."),
    "floor": _unary("The largest integer not above x. Integers stay."),
    "ceil": _unary("The smallest integer not below x. Integers stay."),
    "trunc": _unary("x without its fraction. Integers stay."),
    "round": _unary("The nearest integer, halves to the even one. Integers stay."),
    "isfinite": _unary("Whether x, or both parts of a complex x, is neither infinite nor nan."),
    "bitwise_not": _unary("All bits inverted; of bools, not."),
    "add": _binary("self + other; of bools, or. Integers wrap."),
    "sub": _binary("self - other. Integers wrap."),
    "mul": _binary("self · other; of bools, and. Integers wrap."),
    "div": _binary("self / other of floats; by 0 it is an infinity or nan."),
    "floor_divide": _binary("The largest integer not above self / other.", _ZERO),
    "remainder": _binary(
        "What is left of self when floor_divide(self, other) times other is taken away: it has "
        "the sign of other.",
        _ZERO,
    ),
    "fmod": _binary(
        "What is left of self when the quotient without its fraction, times other, is taken away: "
        "it has the sign of self.",
        _ZERO,
    ),
    "pow": _binary(
        "self raised to other. Integers wrap; to a negative power they are 0, but those of 1 and "
        "-1 are 1 or -1."
    ),
    "atan2": _binary("The angle of the point (other, self), in radians from -π to π."),
    "maximum": _binary("The larger of two; nan if one is. Of zeros, either. Of bools, or."),
    "minimum": _binary("The smaller of two; nan if one is. Of zeros, either. Of bools, and."),
    "eq": _binary("self == other; nan equals nothing."),
    "ne": _binary("self != other; nan differs from everything."),
    "lt": _binary("self < other; with nan False."),
    "le": _binary("self <= other; with nan False."),
    "gt": _binary("self > other; with nan False."),
    "ge": _binary("self >= other; with nan False."),
    "bitwise_and": _binary("Bits that both have; of bools, and."),
    "bitwise_or": _binary("Bits that one has; of bools, or."),
    "bitwise_xor": _binary("Bits that exactly one has; of bools, whether they differ."),
    "where": (
        "Elements of `self` where the bool `condition` is True, else of `other`. Shape: all three "
        "broadcast."
    ),
    "sum": f"The sum; of nothing 0. Integers wrap; of bools, or. {_REDUCED}",
    "prod": f"The product; of nothing 1. Integers wrap; of bools, and. {_REDUCED}",
    "amax": f"The largest; nan if one is. Never asked of nothing. {_REDUCED}",
    "amin": f"The smallest; nan if one is. Never asked of nothing. {_REDUCED}",
    "all": f"Whether all are True; of nothing True. {_REDUCED}",
    "any": f"Whether one is True; of nothing False. {_REDUCED}",
    "argmax": (
        f"Where the largest is: of equals the first, and the first nan if there is one. {_ONE}"
    ),
    "argmin": (
        f"Where the smallest is: of equals the first, and the first nan if there is one. {_ONE}"
    ),
    "cumsum": f"Sums of the elements up to and with each. Integers wrap; of bools, or. {_ALONG}",
    "cumprod": (
        f"Products of the elements up to and with each. Integers wrap; of bools, and. {_ALONG}"
    ),
    "matmul": (
        "The matrix product of the last two dimensions; those before broadcast. A vector on the "
        "left is a row, one on the right a column, and its dimension leaves the result. With an "
        "inner length of 0 it is 0. Integers wrap, and none may pass through floats. "
        "Shapes: (..., n, k) and (..., k, m) give (..., n, m)."
    ),
    "cat": (
        "The arrays of the tuple or list `tensors` one after another along `dim`: at least one, of "
        "one dtype, with equal lengths elsewhere. Shape: theirs, with the sum of lengths at `dim`."
    ),
    "flip": _unary("The elements in reverse order along each of the dimensions `dims`, if any."),
    "slice": (
        "`items` has for each dimension, from the first, an int, which drops it, or "
        "`slice(start, stop, step)`, with 0 <= start <= stop <= length and step > 0, and None for "
        "each new dimension of length 1; dimensions beyond the last item are kept. The kernel may "
        "have an attribute `part`, a function that is called in its place for less overhead. "
        f"{_VIEW}"
    ),
    "permute": f"Dimension i of the result is dimension `dims[i]` of `self`. {_VIEW}",
    "view": (
        "The same elements in row-major order under another shape of as many elements. On a "
        "strided backend it is asked only where strides can express it. "
        f"{_VIEW} Shape: `shape`."
    ),
    "expand": (
        "`self` repeated along dimensions of length 1 and along new ones in front. "
        f"{_VIEW} Shape: `shape`."
    ),
    "diagonal": (
        "Elements with index i in `dim1` and i + offset in `dim2`, for i from max(-offset, 0): "
        "the two dimensions leave and the diagonal becomes the last one, of length 0 if it lies "
        f"outside. {_VIEW}"
    ),
    "index": (
        "NumPy's `self[indices]` for a tuple of int64 arrays, which broadcast with each other, and "
        "None for a whole dimension; not longer than `self` has dimensions, indices in range and "
        "not negative. The dimensions of the arrays stand where these do if they are neighbours, "
        "else in front."
    ),
    "index_put": (
        "A copy of `self` with `values` at `self[indices]`, for indices as of `index` and values "
        "that broadcast to what it returns. With `accumulate` they are added, as often as a place "
        f"occurs; without, the last of one place stays. {_SAME}"
    ),
    "gather": (
        "For each place of `index` the element of `self` at this place, but with the index as its "
        "coordinate in `dim`: `result[i][j] = self[index[i][j]][j]` for dim 0. `index` is int64, "
        "in range, has as many dimensions as `self` and is not longer in others than `dim`. "
        "Shape: that of `index`."
    ),
    "scatter": (
        "A copy of `self` in which each place of `index` puts the element of `src` at this place "
        "to where `gather` would read: `result[index[i][j]][j] = src[i][j]` for dim 0. `src` is at "
        "least as long as `index` in each dimension. Of several for one place the last in "
        f"row-major order stays. {_SAME}"
    ),
    "scatter_add": (
        f"As `scatter`, but all elements for one place are added to what is there. {_SAME}"
    ),
    "nonzero": (
        "The coordinates of the elements that are not 0, a row for each, in row-major order; nan "
        "is not 0. Shape: (their number, dimensions of `self`)."
    ),
    "sort": (
        "(values, indices): the elements along `dim` in rising order, or falling with "
        "`descending`, and where each was. Nan is the largest. Equal elements keep their order, in "
        f"both directions and whatever `stable` says. {_ALONG}"
    ),
}
"""By canonical name; `self`, `other` and the rest are the arguments as the contract names them."""
