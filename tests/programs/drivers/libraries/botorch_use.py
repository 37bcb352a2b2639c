"""A fitted surrogate and three acquisition functions of botorch."""

import torch
from botorch.acquisition import (
    ExpectedImprovement,
    LogExpectedImprovement,
    UpperConfidenceBound,
)
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf
from botorch.utils.sampling import draw_sobol_samples
from gpytorch.mlls import ExactMarginalLogLikelihood

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
x = draw_sobol_samples(torch.tensor([[0.0, 0.0], [1.0, 1.0]]), 8, 1, seed=0).squeeze(1)
y = -((x - 0.3) ** 2).sum(1, keepdim=True)
g = SingleTaskGP(x, y)
fit_gpytorch_mll(ExactMarginalLogLikelihood(g.likelihood, g))
print(g.posterior(torch.tensor([[0.3, 0.3], [0.5, 0.1]])).mean.flatten().tolist())
for a in (
    UpperConfidenceBound(g, beta=0.1),
    LogExpectedImprovement(g, y.max()),
    ExpectedImprovement(g, y.max()),
):
    c, v = optimize_acqf(a, torch.tensor([[0.0, 0.0], [1.0, 1.0]]), 1, 3, 16, options={"seed": 0})
    print(c.tolist(), v.item())
