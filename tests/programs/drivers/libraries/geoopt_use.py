"""Steps on the Poincaré ball and on a Stiefel manifold with geoopt."""

import geoopt
import torch

torch.manual_seed(0)
b = geoopt.PoincareBall(c=1.0)
p = geoopt.ManifoldParameter(torch.randn(5, 2) * 0.1, manifold=b)
t = b.expmap0(torch.randn(5, 2) * 0.3)
o = geoopt.optim.RiemannianAdam([p], lr=0.05)
for _i in range(4):
    o.zero_grad()
    loss = b.dist(p, t).pow(2).sum()
    loss.backward()
    o.step()
    print(loss.item())
s = geoopt.Stiefel()
w = geoopt.ManifoldParameter(s.projx(torch.randn(4, 2)), manifold=s)
o = geoopt.optim.RiemannianSGD([w], lr=0.1)
for _i in range(3):
    o.zero_grad()
    loss = (w.t() @ torch.diag(torch.arange(4.0)) @ w).trace()
    loss.backward()
    o.step()
    print(loss.item())
