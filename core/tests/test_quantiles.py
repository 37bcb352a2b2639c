"""Incomplete beta and gamma functions, their inverses, and how samples follow their parameters.

The numbers are mpmath's, with 40 digits.
"""

from __future__ import annotations

import math

import pytest

import flambeau as fb
from flambeau.autograd import gradcheck
from flambeau.ops.special_functions import incomplete_beta

DEVICES = ["cpu", "ref"]

# a, b, x, the distribution function of Beta(a, b) at x, and dx/da / (1 - x) at that place.
BETA = [
    (0.5, 0.5, 1e-300, 6.366197723675813e-151, 1.3827784670741876e-297),
    (0.001, 0.001, 0.3, 0.49957696213967645, 150361.15191249523),
    (2.0, 3.0, 0.7, 0.9163, 0.3067515481969157),
    (150.0, 220.0, 0.35, 0.013827400738086503, 0.0025139471787666455),
    (30.0, 0.25, 0.99, 0.22980405519665292, 0.033582232085263224),
    (0.01, 500.0, 1e-05, 0.9537515088529238, 0.004766838768403471),
    (5.0, 300.0, 0.05, 0.9994087806754188, 0.005626571381209157),
]

# a, x, the lower and the upper tail of Gamma(a, 1) at x, and dx/da at that place.
GAMMA = [
    (0.001, 1e-200, 0.6313211290858287, 0.36867887091417123, 4.599414466669988e-195),
    (0.3, 0.01, 0.27924099635901484, 0.7207590036409851, 0.14920695356145888),
    (1.0, 5.0, 0.9932620530009145, 0.006737946999085467, 2.3570757536203653),
    (8.1, 7.7, 0.4900286109674467, 0.5099713890325532, 0.9951724716295877),
    (60.0, 30.0, 9.251868804915057e-07, 0.9999990748131196, 0.6950441880904152),
    (150.0, 160.0, 0.7956261882343224, 0.20437381176567754, 1.0337643167612613),
    (2000.0, 1930.0, 0.0574650587029597, 0.9425349412970403, 0.9823740418266511),
]

# As above, for parameters so large that SciPy has few digits or none.
WIDE_GAMMA = [
    (250000.0, 247000.0, 8.534145837574694e-10, 0.9999999991465854),
    (85379001.75, 85313099.25, 4.873019825526103e-13, 0.9999999999995127),
    (1e9, 1000200000.0, 0.9999999998726802, 1.2731986553203086e-10),
]

# a, b, 1 - x, the logarithm of the distribution function of Beta(a, b) at x, and dx/da / (1 - x).
THIN_BETA = [
    (1e4, 0.75, 3e-4, -3.5424580375655967, 9.998624822892327e-05),
    (5e7, 0.5, 3.7e-08, -2.9111619902949375, 1.9999999729999993e-08),
    (1e9, 29.0, 5e-08, -7.580101648990207, 9.999999610000002e-10),
    (4e5, 90.0, 2e-4, -0.1565616653863208, 2.499471936890662e-06),
]


def of(values: object, device: str) -> fb.Tensor:
    return fb.tensor(values, dtype=fb.float64, device=device)


def columns(rows: list[tuple[float, ...]], device: str) -> list[fb.Tensor]:
    return [of(column, device) for column in zip(*rows, strict=True)]


def near(found: fb.Tensor, wanted: fb.Tensor, rtol: float) -> None:
    assert found.tolist() == pytest.approx(wanted.tolist(), rel=rtol, abs=0)


@pytest.mark.parametrize("device", DEVICES)
def test_the_incomplete_beta_function_and_its_inverse(device: str) -> None:
    a, b, x, lower, _ = columns(BETA, device)
    near(fb.special.betainc(a, b, x), lower, 1e-11)
    near(fb.special.betaincinv(a, b, lower), x, 1e-9)


@pytest.mark.parametrize("device", DEVICES)
def test_tails_of_beta_distributions_with_one_parameter_that_is_very_large(device: str) -> None:
    a, b, y, lower, derivative = columns(THIN_BETA, device)
    near(fb.special.log_betainc(a, b, 1 - y, y), lower, 1e-12)
    upper = fb.special.log_betainc(b, a, y, 1 - y)
    near(upper.expm1().neg().log(), lower, 1e-12)
    near(incomplete_beta.tails(a, b, 1 - y, y)[2], derivative, 1e-11)


# a, b, x, 1 - x and the logarithms of both tails there: of numbers that are exact in the smaller of
# x and 1 - x; by quadrature with 40 digits.
WIDE_BETA = [
    (25e6, 75e6, 0.2503, 0.7497, -2.15848683534365411e-12, -26.8616136789185448),
    (3e10, 5e10, 0.37499, 0.62501, -19.7782731022295237, -2.57279468974827325e-9),
    (999259.0, 742.0, 0.999, 0.001, -39.7985369840890997, -5.19654867977925233e-18),
    (4e13, 4e13, 0.4999999, 0.5000001, -3.30173759459904933, -0.0375140707544901275),
    (1e6, 3e9, 0.000332, 0.999668, -9.02829428819213979, -0.000119974144401372464),
    (5e11, 2e12, 0.2000005, 0.7999995, -0.0243474747516320554, -3.72747617864743659),
]


@pytest.mark.parametrize("device", DEVICES)
def test_both_tails_of_beta_distributions_whose_parameters_are_very_large(device: str) -> None:
    a, b, x, y, lower, upper = columns(WIDE_BETA, device)
    for one, other, tail in ((a, x, lower), (b, y, upper)):
        rest, beyond = (b, y) if other is x else (a, x)
        near(fb.special.betainc(one, rest, other, beyond), tail.exp(), 2e-12)
        near(fb.special.log_betainc(one, rest, other, beyond), tail, 2e-12)
    low = lower < upper  # the smaller tail has the digits
    first, second = fb.where(low, a, b), fb.where(low, b, a)
    found = fb.special.betaincinv(first, second, fb.where(low, lower, upper).exp())
    near(found, fb.where(low, x, y), 1e-14)


@pytest.mark.parametrize("device", DEVICES)
def test_both_tails_of_gamma_distributions_whose_shape_is_very_large(device: str) -> None:
    a, x, lower, upper = columns(WIDE_GAMMA, device)
    near(fb.special.gammainc(a, x), lower, 2e-11)
    near(fb.special.gammaincc(a, x), upper, 2e-11)
    near(fb.special.log_gammainc(a, x).exp(), lower, 2e-11)
    near(fb.special.gammaincinv(a, lower)[:2], x[:2], 1e-13)
    near(fb.special.gammainccinv(a, upper)[2:], x[2:], 1e-13)
    level = of([2.0**-39, 2.0**-30, 2.0**-20], device)
    near(fb.special.gammainccinv(a, 1 - level), fb.special.gammaincinv(a, level), 1e-13)
    near(fb.special.gammaincinv(a, 1 - level), fb.special.gammainccinv(a, level), 1e-13)


@pytest.mark.parametrize("device", DEVICES)
def test_inverses_of_the_incomplete_gamma_functions(device: str) -> None:
    a, x, lower, upper, _ = columns(GAMMA, device)
    near(fb.special.gammainccinv(a, upper)[1:4], x[1:4], 1e-10)
    near(fb.special.gammainccinv(a, upper)[5:], x[5:], 1e-10)
    near(fb.special.gammaincinv(a, lower)[1:], x[1:], 1e-10)


@pytest.mark.parametrize("device", DEVICES)
def test_exact_gradients_of_samples(device: str) -> None:
    a, b, x, _, follows = columns(BETA, device)
    near(fb._dirichlet_grad(x, a, a + b, exact=True), follows, 1e-10)
    a, x, _, _, follows = columns(GAMMA, device)
    near(fb._standard_gamma_grad(a, x, exact=True), follows, 1e-11)


def test_an_exact_gradient_is_asked_for_where_numbers_are_drawn() -> None:
    shape = of([0.3, 8.1, 200.0], "cpu").requires_grad_()
    drawn = fb._standard_gamma(shape, exact_gradient=True)
    drawn.sum().backward()
    assert shape.grad is not None
    near(shape.grad, fb._standard_gamma_grad(shape, drawn, exact=True).detach(), 1e-15)
    rough = fb._standard_gamma_grad(shape, drawn).detach()
    assert 0 < (shape.grad / rough - 1).abs().max().item() < 1e-3


def test_gradients_in_all_arguments_are_derivatives() -> None:
    a = of([0.7, 3.0, 150.0], "cpu").requires_grad_()
    b = of([0.4, 5.0, 120.0], "cpu").requires_grad_()
    x = of([0.2, 0.6, 0.55], "cpu").requires_grad_()
    for function in (fb.special.betainc, fb.special.betaincinv):
        assert gradcheck(function, (a, b, x))
    for function in (fb.special.gammaincinv, fb.special.gammainccinv):
        assert gradcheck(function, (a, x))
    for function in (fb.igamma, fb.igammac, fb.special.log_gammainc, fb.special.log_gammaincc):
        assert gradcheck(function, (a, a.detach() * 1.125 + x))
    assert gradcheck(fb.special.log_betainc, (a, b, x))
    for function in (fb.special.betainc, fb.special.log_betainc):
        assert gradcheck(lambda *v, f=function: f(*v, 1 - v[2]), (a, b, x))
        assert gradcheck(lambda *v, f=function: f(*v[:2], 1 - v[2], v[2]), (a, b, x))


# a, b, x and log I(x; a, b).
LOG_BETA = [
    (300.0, 2.0, 0.001, -2066.62047060464663),
    (2.0, 300.0, 0.01, -0.218359483593532809),
    (0.5, 40.0, 1e-300, -343.425666903049682),
    (2500.0, 3000.0, 0.01, -7758.6374998046799),
]
GAMMA_ABOVE = [-2000.0, -99983.0152796730551, -8655.27994330599158]
GAMMA_BELOW = [-1415.90252219176545, -18081.0184334403683]


@pytest.mark.parametrize("device", DEVICES)
def test_logarithms_where_the_functions_are_0(device: str) -> None:
    a, x = of([1.0, 2.5, 300.0, 5000.0], device), of([2000.0, 1e5, 1e4, 50.0], device)
    near(fb.special.log_gammaincc(a[:3], x[:3]), of(GAMMA_ABOVE, device), 1e-13)
    near(fb.special.log_gammainc(a[2:], of([1.0, 50.0], device)), of(GAMMA_BELOW, device), 1e-13)
    a, b, x, wanted = columns(LOG_BETA, device)
    near(fb.special.log_betainc(a, b, x), wanted, 1e-13)
    near(fb.special.log_betainc(b, a, 1 - x, x).exp() + wanted.exp(), a * 0 + 1, 1e-13)


@pytest.mark.parametrize("device", DEVICES)
def test_edges_of_the_functions_and_inverses(device: str) -> None:
    ones = of([1.0, 1.0, 1.0, 2.0, -1.0, math.nan], device)
    found = fb.special.betainc(ones, 2.0, of([0, 1, 1.5, math.nan, 0.5, 0.5], device))
    assert repr(found.tolist()) == "[0.0, 1.0, nan, nan, nan, nan]"
    found = fb.special.betaincinv(ones[:3], 2.0, of([0, 1, 1.5], device))
    assert repr(found.tolist()) == "[0.0, 1.0, nan]"
    found = fb.special.gammaincinv(ones[:3], of([0, 1, 1.5], device))
    assert repr(found.tolist()) == "[0.0, inf, nan]"
    found = fb.special.gammainccinv(ones[:3], of([0, 1, 1.5], device))
    assert repr(found.tolist()) == "[inf, 0.0, nan]"


def test_numbers_shapes_and_dtypes_of_arguments() -> None:
    x = fb.tensor([[0.25], [0.5]])
    assert fb.special.betainc(1, fb.tensor([1, 2, 3]), x).shape == (2, 3)
    assert fb.special.betainc(1.0, 1.0, x).dtype is fb.float32
    assert fb.special.betainc(x.double(), x, 0.5).dtype is fb.float64
    assert fb.special.gammaincinv(fb.zeros(0), 0.5).shape == (0,)
    with pytest.raises(NotImplementedError, match="use a float dtype"):
        fb.special.betainc(fb.tensor(1), 2, 1)


@pytest.mark.parametrize("device", DEVICES)
def test_the_logarithm_of_the_bessel_function(device: str) -> None:
    x = of([-3.0, 0.5, 1e5], device).requires_grad_()
    found = fb.special.log_i0(x)
    near(found.detach(), of([1.5853076, 0.0615498, 99993.3246], device), 1e-5)
    found.sum().backward()
    assert x.grad is not None
    near(x.grad, (fb.special.i1e(x) / fb.special.i0e(x)).detach(), 1e-14)
