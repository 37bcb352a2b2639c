"""Special functions by the names of ``torch.special``; those of `flambeau` itself are the same.

`betainc`, `betaincinv`, `gammaincinv`, `gammainccinv` and the logarithms `log_betainc`,
`log_gammainc`, `log_gammaincc` and `log_i0`, which PyTorch lacks, come beside them; the first four
are named as in SciPy.

>>> import flambeau as fb
>>> fb.special.expit is fb.sigmoid, fb.special.gammaln is fb.lgamma
(True, True)
"""

from __future__ import annotations

from flambeau._api.functions import (
    digamma,
    erf,
    erfc,
    erfinv,
    exp2,
    expm1,
    log1p,
    log_softmax,
    logit,
    logsumexp,
    polygamma,
    round,
    sinc,
    softmax,
    xlogy,
)
from flambeau._api.functions import digamma as psi
from flambeau._api.functions import lgamma as gammaln
from flambeau._api.functions import mvlgamma as multigammaln
from flambeau._api.functions import sigmoid as expit
from flambeau._tensor.overrides import offer_calls
from flambeau.ops.special_functions.bessel import (
    airy_ai,
    bessel_j0,
    bessel_j1,
    bessel_y0,
    bessel_y1,
    i0,
    i0e,
    i1,
    i1e,
    log_i0,
    modified_bessel_i0,
    modified_bessel_i1,
    modified_bessel_k0,
    modified_bessel_k1,
    scaled_modified_bessel_k0,
    scaled_modified_bessel_k1,
    spherical_bessel_j0,
)
from flambeau.ops.special_functions.gamma_quantiles import gammainccinv, gammaincinv
from flambeau.ops.special_functions.incomplete_beta import betainc, betaincinv
from flambeau.ops.special_functions.incomplete_gamma import igamma as gammainc
from flambeau.ops.special_functions.incomplete_gamma import igammac as gammaincc
from flambeau.ops.special_functions.incomplete_gamma import zeta
from flambeau.ops.special_functions.log_tails import log_betainc, log_gammainc, log_gammaincc
from flambeau.ops.special_functions.normal_distribution import (
    entr,
    erfcx,
    log_ndtr,
    ndtr,
    ndtri,
    xlog1py,
)
from flambeau.ops.special_functions.polynomials import (
    chebyshev_polynomial_t,
    chebyshev_polynomial_u,
    chebyshev_polynomial_v,
    chebyshev_polynomial_w,
    hermite_polynomial_h,
    hermite_polynomial_he,
    laguerre_polynomial_l,
    legendre_polynomial_p,
    shifted_chebyshev_polynomial_t,
    shifted_chebyshev_polynomial_u,
    shifted_chebyshev_polynomial_v,
    shifted_chebyshev_polynomial_w,
)

__all__ = [
    "airy_ai",
    "bessel_j0",
    "bessel_j1",
    "bessel_y0",
    "bessel_y1",
    "betainc",
    "betaincinv",
    "chebyshev_polynomial_t",
    "chebyshev_polynomial_u",
    "chebyshev_polynomial_v",
    "chebyshev_polynomial_w",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "exp2",
    "expit",
    "expm1",
    "gammainc",
    "gammaincc",
    "gammainccinv",
    "gammaincinv",
    "gammaln",
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
    "log1p",
    "log_betainc",
    "log_gammainc",
    "log_gammaincc",
    "log_i0",
    "log_ndtr",
    "log_softmax",
    "logit",
    "logsumexp",
    "modified_bessel_i0",
    "modified_bessel_i1",
    "modified_bessel_k0",
    "modified_bessel_k1",
    "multigammaln",
    "ndtr",
    "ndtri",
    "polygamma",
    "psi",
    "round",
    "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1",
    "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u",
    "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w",
    "sinc",
    "softmax",
    "spherical_bessel_j0",
    "xlog1py",
    "xlogy",
    "zeta",
]


offer_calls(globals())
