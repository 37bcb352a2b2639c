"""Eight steps of a variational Gaussian process of gpytorch."""

import gpytorch
import torch

torch.manual_seed(0)
x = torch.rand(60, 2)
y = (x.sum(1) * 4).sin()


class G(gpytorch.models.ApproximateGP):
    def __init__(self, z):
        q = gpytorch.variational.CholeskyVariationalDistribution(z.size(0))
        super().__init__(
            gpytorch.variational.VariationalStrategy(self, z, q, learn_inducing_locations=True)
        )
        self.mean_module = gpytorch.means.LinearMean(2)
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=2))

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


m = G(x[:10])
likelihood = gpytorch.likelihoods.GaussianLikelihood()
e = gpytorch.mlls.VariationalELBO(likelihood, m, 60)
o = torch.optim.Adam([*m.parameters(), *likelihood.parameters()], lr=0.05)
for _i in range(8):
    o.zero_grad()
    loss = -e(m(x), y)
    loss.backward()
    o.step()
    print(loss.item())
