"""Four steps of an autoregressive and a spline flow of nflows."""

import torch
from nflows import distributions, flows, transforms

torch.manual_seed(0)
t = transforms.CompositeTransform(
    [
        transforms.MaskedAffineAutoregressiveTransform(2, 8),
        transforms.RandomPermutation(2),
        transforms.PiecewiseRationalQuadraticCouplingTransform(
            torch.tensor([1, -1]),
            lambda i, o: (
                torch.nn.Sequential()
                if 0
                else __import__("nflows.nn.nets", fromlist=["ResidualNet"]).ResidualNet(i, o, 8)
            ),
            tails="linear",
            tail_bound=3.0,
        ),
    ]
)
f = flows.Flow(t, distributions.StandardNormal([2]))
o = torch.optim.Adam(f.parameters(), 1e-2)
x = torch.randn(32, 2)
for _i in range(4):
    o.zero_grad()
    loss = -f.log_prob(x).mean()
    loss.backward()
    o.step()
    print(loss.item())
