"""The chi-squared distribution."""

from __future__ import annotations

from flambeau import Tensor
from flambeau.distributions import constraints
from flambeau.distributions.gamma import Gamma

__all__ = ["Chi2"]


class Chi2(Gamma):
    """The distribution of the sum of `df` squared standard normal variables.

    It is Gamma(df/2, 1/2).

    Args:
        df: degrees of freedom, positive.

    >>> from flambeau.distributions import Chi2
    >>> Chi2(3.0).mean, Chi2(3.0).variance
    (tensor(3.), tensor(6.))
    """

    arg_constraints = {"df": constraints.positive}
    _batch_parameters = Gamma._batch_parameters

    def __init__(self, df: Tensor | float, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self) -> Tensor:
        """Degrees of freedom."""
        return self.concentration * 2
