"""Four steps of a coupling flow of normflows."""

import normflows as nf
import torch

torch.manual_seed(0)
b = nf.distributions.DiagGaussian(2)
fl = []
for _i in range(3):
    fl += [
        nf.flows.AffineCouplingBlock(nf.nets.MLP([1, 8, 2], init_zeros=True)),
        nf.flows.Permute(2, mode="swap"),
    ]
m = nf.NormalizingFlow(b, fl)
o = torch.optim.Adam(m.parameters(), 1e-2)
x = torch.randn(64, 2) * 2 + 1
for _i in range(4):
    o.zero_grad()
    loss = m.forward_kld(x)
    loss.backward()
    o.step()
    print(loss.item())
