"""Wrong arguments raise PyTorch's exception classes, with messages that say what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import flambeau as fb
from flambeau._dispatch.bound import bind
from flambeau.testing.backend import _support as kit

LEVEL = "inference"


def floats(device: str, *shape: int) -> fb.Tensor:
    return fb.ones(shape, dtype=fb.float32, device=device)


def ints(device: str, values: object) -> fb.Tensor:
    return fb.tensor(values, dtype=fb.int64, device=device)


def _sum_of_a_list() -> None:
    values: Any = [1.0]
    fb.sum(values)


Case = tuple[Callable[[str], Any], type[Exception], str]

ERRORS: dict[str, Case] = {
    "add shapes": (
        lambda d: floats(d, 2, 3) + floats(d, 2, 4),
        RuntimeError,
        r"size of tensor a \(3\) must match the size of tensor b \(4\)",
    ),
    "add_ shapes": (
        lambda d: floats(d, 3).add_(floats(d, 2, 3)),
        RuntimeError,
        r"output with shape \[3\] doesn't match the broadcast shape \[2, 3\]",
    ),
    "where shapes": (
        lambda d: fb.where(floats(d, 2) > 0, floats(d, 3), floats(d, 3)),
        RuntimeError,
        r"size of tensor a \(\d\) must match the size of tensor b \(\d\)",
    ),
    "matmul shapes": (
        lambda d: floats(d, 2, 3) @ floats(d, 2, 3),
        RuntimeError,
        r"cannot be multiplied \(2x3 and 2x3\)",
    ),
    "matmul dtypes": (
        lambda d: floats(d, 2, 2) @ ints(d, [[1, 2], [3, 4]]),
        RuntimeError,
        r"same dtype",
    ),
    "matmul scalar": (lambda d: floats(d) @ floats(d, 2), RuntimeError, r"at least 1D"),
    "bmm shapes": (lambda d: floats(d, 2, 3, 4).bmm(floats(d, 3, 4, 5)), RuntimeError, r"batch2"),
    "cat shapes": (
        lambda d: fb.cat([floats(d, 2, 3), floats(d, 3, 2)]),
        RuntimeError,
        r"Sizes of tensors must match except in dimension 0. Expected size 3 but got size 2",
    ),
    "cat ranks": (
        lambda d: fb.cat([floats(d, 2), floats(d, 2, 2)]),
        RuntimeError,
        r"same number of dimensions",
    ),
    "stack shapes": (
        lambda d: fb.stack([floats(d, 2), floats(d, 3)]),
        RuntimeError,
        r"stack expects each tensor to be equal size, but got \[2\] at entry 0 and \[3\]",
    ),
    "view size": (
        lambda d: floats(d, 2, 3).view(4),
        RuntimeError,
        r"shape '\[4\]' is invalid for input of size 6",
    ),
    "view strides": (
        lambda d: floats(d, 2, 3).t().view(6),
        RuntimeError,
        r"view size is not compatible .* Use .reshape\(...\) instead",
    ),
    "reshape size": (
        lambda d: floats(d, 2, 3).reshape(-1, 4),
        RuntimeError,
        r"shape '\[-1, 4\]' is invalid for input of size 6",
    ),
    "expand size": (
        lambda d: floats(d, 2, 3).expand(3, 3),
        RuntimeError,
        r"expanded size of the tensor \(3\) must match the existing size \(2\)",
    ),
    "permute ranks": (lambda d: floats(d, 2, 3).permute(0), RuntimeError, r"permute"),
    "permute twice": (lambda d: floats(d, 2, 3).permute(0, 0), RuntimeError, r"permute.*duplicate"),
    "diagonal dims": (lambda d: floats(d, 2, 3).diagonal(0, 1, 1), RuntimeError, r"diagonal.*1, 1"),
    "sum dim": (
        lambda d: floats(d, 2, 3).sum(2),
        IndexError,
        r"expected to be in range of \[-2, 1\], but got 2",
    ),
    "sum dim twice": (
        lambda d: floats(d, 2, 3).sum((1, -1)),
        RuntimeError,
        r"dim 1 appears multiple",
    ),
    "softmax dim": (lambda d: floats(d, 2).softmax(1), IndexError, r"\[-1, 0\], but got 1"),
    "amax of nothing": (lambda d: floats(d, 2, 0).amax(1), IndexError, r"amax.*reduction dim 1"),
    "max of nothing": (lambda d: floats(d, 0).max(), RuntimeError, r"max\(\)"),
    "argmax of nothing": (lambda d: floats(d, 0).argmax(), IndexError, r"argmax\(\)"),
    "mean of integers": (lambda d: ints(d, [1, 2]).mean(), RuntimeError, r"mean\(\).*floating"),
    "index range": (
        lambda d: floats(d, 2, 3)[2],
        IndexError,
        r"index 2 is out of bounds for dimension 0 with size 2",
    ),
    "index tensor range": (
        lambda d: floats(d, 2, 3)[:, ints(d, [0, 3])],
        IndexError,
        r"index 3 is out of bounds for dimension 1 with size 3",
    ),
    "index assignment range": (
        lambda d: floats(d, 2).__setitem__(ints(d, [-3]), 0.0),
        IndexError,
        r"index -3 is out of bounds for dimension 0 with size 2",
    ),
    "too many indices": (
        lambda d: floats(d, 2)[0, 0],
        IndexError,
        r"too many indices.*dimension 1",
    ),
    "float index": (
        lambda d: floats(d, 2)[floats(d, 2)],
        IndexError,
        r"tensors used as indices must be long, int, byte or bool",
    ),
    "mask shape": (
        lambda d: floats(d, 2, 3)[floats(d, 3) > 0],
        IndexError,
        r"shape of the mask \[3\] at index 0 does not match .* \[2, 3\]",
    ),
    "assigned shape": (
        lambda d: floats(d, 2, 3).__setitem__(0, floats(d, 2)),
        RuntimeError,
        r"expanded size of the tensor \(3\) must match the existing size \(2\) at non-singleton "
        r"dimension 0.  Target sizes: \[3\].  Tensor sizes: \[2\]",
    ),
    "assigned rank": (
        lambda d: floats(d, 2, 3).__setitem__((0, 0), floats(d, 2)),
        RuntimeError,
        r"number of sizes provided \(0\) must be greater or equal to the number of dimensions in "
        r"the tensor \(1\)",
    ),
    "assigned shape at an index tensor": (
        lambda d: floats(d, 2, 3).__setitem__(ints(d, [0, 1]), floats(d, 2)),
        RuntimeError,
        r"value tensor of shape \[2\] cannot be broadcast to indexing result of shape \[2, 3\]",
    ),
    "assigned shape at a mask": (
        lambda d: floats(d, 2).__setitem__(floats(d, 2) > 0, floats(d, 3)),
        RuntimeError,
        r"value tensor of shape \[3\] cannot be broadcast to indexing result of shape \[2\]",
    ),
    "assigned dtype at an index tensor": (
        lambda d: floats(d, 2).__setitem__(ints(d, [0, 1]), ints(d, [0, 1])),
        RuntimeError,
        r"source and destination dtypes match, got Float for the destination and Long",
    ),
    "copied shape": (
        lambda d: floats(d, 2, 3).copy_(floats(d, 4)),
        RuntimeError,
        r"size of tensor a \(3\) must match the size of tensor b \(4\) at non-singleton dimension "
        r"1",
    ),
    "gather range": (
        lambda d: floats(d, 2).gather(0, ints(d, [2])),
        RuntimeError,
        r"gather.*index 2 is out of bounds for dimension.* with size 2",
    ),
    "gather rank": (
        lambda d: floats(d, 2, 2).gather(0, ints(d, [0])),
        RuntimeError,
        r"gather.*same number of dimensions",
    ),
    "gather dtype": (
        lambda d: floats(d, 2).gather(0, floats(d, 1)),
        RuntimeError,
        r"gather.*int64",
    ),
    "scatter dtype": (
        lambda d: floats(d, 2).scatter(0, ints(d, [0]), ints(d, [1])),
        RuntimeError,
        r"scatter.*self.dtype to be equal to src.dtype",
    ),
    "scatter shape": (
        lambda d: floats(d, 2).scatter(0, ints(d, [0, 1]), floats(d, 1)),
        RuntimeError,
        r"scatter.*index \[2\].*src \[1\]",
    ),
    "integer division by zero": (
        lambda d: ints(d, [1]) // ints(d, [0]),
        RuntimeError,
        r"ZeroDivisionError",
    ),
    "integer remainder by zero": (
        lambda d: ints(d, [1]) % ints(d, [0]),
        RuntimeError,
        r"ZeroDivisionError",
    ),
    "masked values": (
        lambda d: floats(d, 3).masked_scatter_(floats(d, 3) > 0, floats(d, 2)),
        RuntimeError,
        r"Number of elements of source < number of ones in mask: 2 < 3",
    ),
    "bag index": (
        lambda d: fb.embedding_bag(floats(d, 3, 2), ints(d, [0, 1]), ints(d, [0, 3])),
        RuntimeError,
        r"offsets\[-1\] can not be .* greater than input's length 2 .* offsets\[-1\] of 3",
    ),
    "label index": (
        lambda d: fb.ctc_loss(
            floats(d, 3, 1, 2).log_softmax(2), ints(d, [[1, 2]]), (3,), (2,), reduction="none"
        ),
        RuntimeError,
        r"ctc_loss: a target is not in \[0, 2\)",
    ),
    "probability above 1": (
        lambda d: fb.bernoulli(floats(d, 2) * 1.5),
        RuntimeError,
        r"Expected p_in >= 0 && p_in <= 1 to be true",
    ),
    "probability below 0": (
        lambda d: floats(d, 2).bernoulli_(-floats(d, 2)),
        RuntimeError,
        r"Expected p_in >= 0 && p_in <= 1 to be true",
    ),
    "rate that is nan": (
        lambda d: fb.poisson(floats(d, 2) * float("nan")),
        RuntimeError,
        r"invalid Poisson rate, expected rate to be non-negative",
    ),
    "infinite weight": (
        lambda d: fb.multinomial(floats(d, 2) / 0, 1),
        RuntimeError,
        r"multinomial: .* either `inf`, `nan` or element < 0",
    ),
    "weights of a row": (
        lambda d: fb.multinomial(floats(d, 2, 2).tril(-1), 2, True),
        RuntimeError,
        r"multinomial: invalid distribution \(sum of probabilities <= 0\)",
    ),
    "deviation": (
        lambda d: fb.normal(floats(d, 2), -floats(d, 2)),
        RuntimeError,
        r"normal expects all elements of std >= 0",
    ),
    "bool minus bool": (
        lambda d: (floats(d, 2) > 0) - (floats(d, 2) > 0),
        RuntimeError,
        r"Subtraction.*bool",
    ),
    "negated bool": (lambda d: -(floats(d, 2) > 0), RuntimeError, r"Negation.*bool"),
    "bitwise floats": (
        lambda d: floats(d, 2) & floats(d, 2),
        NotImplementedError,
        r"bitwise_and.*not implemented for",
    ),
    "lower category": (
        lambda d: ints(d, [1, 2]).add_(1.5),
        RuntimeError,
        r"result type Float can't be cast to the desired output type Long",
    ),
    "item of several": (lambda d: floats(d, 2).item(), RuntimeError, r"2 elements"),
    "truth of several": (lambda d: bool(floats(d, 2)), RuntimeError, r"more than one value"),
    "len of a scalar": (lambda d: len(floats(d)), TypeError, r"0-d"),
    "negative size": (lambda d: fb.zeros(-1, device=d), RuntimeError, r"negative dimension -1"),
    "another device": (
        lambda d: floats(d, 2) + floats("meta", 2),
        RuntimeError,
        r"same device.*(meta.*%(device)s|%(device)s.*meta)",
    ),
    "another device in matmul": (
        lambda d: floats(d, 2, 2) @ floats("meta", 2, 2),
        RuntimeError,
        r"same device.*(meta.*%(device)s|%(device)s.*meta)",
    ),
    "no tensor": (
        lambda d: _sum_of_a_list(),
        TypeError,
        r"sum\(\).*input.*must be Tensor, not list",
    ),
    "backward of several": (
        lambda d: floats(d, 2).requires_grad_().exp().backward(),
        RuntimeError,
        r"grad can be implicitly created only for scalar outputs",
    ),
    "backward without history": (
        lambda d: floats(d).backward(),
        RuntimeError,
        r"does not require grad",
    ),
    "backward twice": (lambda d: _twice(d), RuntimeError, r"retain_graph=True"),
    "gradient shape": (
        lambda d: floats(d, 2).requires_grad_().exp().backward(floats(d, 3)),
        RuntimeError,
        r"grad_output.*\[3\].*\[2\]",
    ),
    "gradient of integers": (
        lambda d: ints(d, [1]).requires_grad_(),
        RuntimeError,
        r"floating point and complex",
    ),
}


def _twice(device: str) -> None:
    y = floats(device).requires_grad_().exp()
    y.backward()
    y.backward()


def errors(device: str) -> Iterator[Any]:
    have = kit.supported(device)
    for name, (function, kind, text) in ERRORS.items():
        needed = fb.int64 if "int" in name or "index" in name else fb.float32
        if needed in have:
            yield pytest.param(function, kind, text, id=name.replace(" ", "_"))


@kit.cases("function kind text", errors)
def test_wrong_arguments(device: str, function: Callable[..., Any], kind: Any, text: str) -> None:
    shown = str(bind(device).device)

    def run() -> None:
        function(device)
        kit.wait(device)  # what only the device sees may be raised then

    with pytest.raises(kind, match="(?s)" + text.replace("%(device)s", shown)) as caught:
        run()
    assert type(caught.value) is kind


def test_a_failed_write_changes_nothing(device: str) -> None:
    x = floats(device, 2, 3)
    for write, text in (
        (lambda: x.add_(floats(device, 2, 4)), r"size of tensor a \(3\) must match .* b \(4\)"),
        (lambda: x.copy_(floats(device, 4)), r"size of tensor a \(3\) must match .* b \(4\)"),
        (
            lambda: x.__setitem__((0, slice(None)), floats(device, 2)),
            r"expanded size of the tensor \(3\) must match the existing size \(2\)",
        ),
    ):
        with pytest.raises(RuntimeError, match=text):
            write()
    assert set(kit.numbers(x)) == {1.0}


FOREIGN = ("add", "matmul", "exp", "sum")
"""Not those of indices: the core has checked them, and kernels need not."""


@kit.cases("name", lambda device: (pytest.param(n, id=n) for n in FOREIGN))
def test_kernels_refuse_foreign_arguments_with_errors_that_the_core_knows(
    device: str, name: str
) -> None:
    """What a kernel cannot take, it reports by the exceptions that `Backend.error` names."""
    be = bind(device)
    a = be.host_array([1.0, 2.0], (2,), fb.float32)
    wrong: dict[str, tuple[Any, ...]] = {
        "add": (a, be.host_array([1.0] * 3, (3,), fb.float32)),
        "matmul": (a, be.host_array([1.0] * 3, (3,), fb.float32)),
        "exp": (None,),
        "sum": (a, (5,), False),
    }

    def run() -> None:
        getattr(be, name)(*wrong[name])
        kit.wait(device)  # what only the device sees may be raised then

    with pytest.raises((*be.error, AttributeError)):
        run()
