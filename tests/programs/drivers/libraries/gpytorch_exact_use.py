"""Ten steps of an exact Gaussian process of gpytorch."""

import math

import gpytorch
import torch

torch.manual_seed(0)
x = torch.linspace(0, 1, 30)
y = torch.sin(x * 2 * math.pi) + torch.randn(30) * 0.1


class M(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(
            gpytorch.kernels.RBFKernel() + gpytorch.kernels.MaternKernel(nu=1.5)
        )

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


likelihood = gpytorch.likelihoods.GaussianLikelihood()
m = M(x, y, likelihood)
m.train()
likelihood.train()
o = torch.optim.Adam(m.parameters(), lr=0.1)
mll = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, m)
for _i in range(10):
    o.zero_grad()
    loss = -mll(m(x), y)
    loss.backward()
    o.step()
    print(loss.item())
m.eval()
likelihood.eval()
with torch.no_grad(), gpytorch.settings.fast_pred_var():
    p = likelihood(m(torch.linspace(0, 1, 7)))
    print(p.mean.tolist(), p.variance.tolist())
    lo, up = p.confidence_region()
    print(lo.sum().item(), up.sum().item())
