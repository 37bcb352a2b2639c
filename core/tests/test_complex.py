"""Complex tensors without strided memory, and what of their gradients needs no other library."""

from __future__ import annotations

import math

import pytest

import flambeau as fb
from flambeau.autograd import gradcheck, gradgradcheck


def numbers(device: str = "ref") -> fb.Tensor:
    values = [1 + 2j, -0.5 + 1j, 0.25 - 2j]
    return fb.tensor(values, dtype=fb.complex128, device=device, requires_grad=True)


def test_the_gradient_points_uphill() -> None:
    x = numbers()
    (x.real**2 + 3 * x.imag).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [complex(2 * v.real, 3) for v in x.tolist()]


def test_hooks_see_the_gradient_that_grad_returns() -> None:
    x, seen = numbers(), []
    x.register_hook(lambda g: seen.append(g.tolist()))
    y = x * 1j
    y.register_hook(lambda g: seen.append(g.tolist()))
    found = fb.autograd.grad((y * y).abs().sum(), (x, y))
    assert seen == [found[1].tolist(), found[0].tolist()]


def test_parts_can_be_assigned_where_they_are_copies() -> None:
    x = fb.tensor([1 + 2j, 3 + 4j], device="ref")
    x.real = 7
    x.imag = fb.tensor([0.5, -1.0], device="ref")
    assert x.tolist() == [7 + 0.5j, 7 - 1j]


def test_an_assigned_part_passes_its_gradient_on() -> None:
    r = fb.tensor([0.5, -1.5, 2.0], dtype=fb.float64, device="ref", requires_grad=True)

    def function(x: fb.Tensor, r: fb.Tensor) -> fb.Tensor:
        y = x * 2
        y.imag = r * r
        return y * y

    assert function(numbers(), r)[0].item() == (2 + 0.25j) ** 2
    assert gradcheck(function, (numbers(), r))
    assert gradgradcheck(function, (numbers(), r))


@pytest.mark.parametrize("name", ["sgn", "angle", "abs", "conj", "exp", "reciprocal"])
def test_derivatives_hold_on_the_reference_device(name: str) -> None:
    assert gradcheck(lambda x: getattr(x, name)(), (numbers(),))
    assert gradgradcheck(lambda x: getattr(x, name)(), (numbers(),))


def test_transforms_hold_on_the_reference_device() -> None:
    x = fb.tensor([1.0, 2.0, 4.0], dtype=fb.float64, device="ref", requires_grad=True)
    assert gradcheck(lambda x: fb.fft.rfft(x), (x,))
    assert gradgradcheck(lambda x: fb.fft.ihfft(x, 4), (x,))
    assert gradcheck(lambda x: fb.fft.irfft(x, 5), (numbers(),))
    assert gradgradcheck(lambda x: fb.fft.fft(x, norm="ortho"), (numbers(),))


def test_shapes_and_dtypes_on_meta() -> None:
    x = fb.ones(3, 4, 2, device="meta")
    z = fb.view_as_complex(x)
    assert (z.shape, z.dtype) == ((3, 4), fb.complex64)
    assert (z.imag.shape, z.imag.dtype) == ((3, 4), fb.float32)
    assert fb.fft.rfft2(z.real).shape == (3, 3)
    assert fb.fft.irfft(z).dtype is fb.float32


def test_infinite_parts_do_not_touch_each_other() -> None:
    x = fb.tensor([complex(math.inf, 1), complex(2, -math.inf)], device="ref")
    assert x.conj().tolist() == [complex(math.inf, -1), complex(2, math.inf)]
    assert fb.view_as_real(x).tolist() == [[math.inf, 1], [2, -math.inf]]


def test_a_complex_root_needs_a_gradient() -> None:
    with pytest.raises(RuntimeError, match="real scalar outputs"):
        numbers().sum().backward()


def test_importing_the_package_leaves_the_transforms_aside() -> None:
    import subprocess
    import sys

    code = "import sys, flambeau; assert 'flambeau.fft' not in sys.modules; flambeau.fft.fft"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
