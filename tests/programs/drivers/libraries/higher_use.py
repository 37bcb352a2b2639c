"""Four steps through inner loops of higher."""

import higher
import torch

torch.manual_seed(0)
m = torch.nn.Sequential(torch.nn.Linear(1, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
meta = torch.optim.Adam(m.parameters(), 1e-2)
for _i in range(4):
    meta.zero_grad()
    tot = 0
    for _k in range(2):
        a = torch.rand(1) * 3
        x = torch.randn(10, 1)
        inner = torch.optim.Adam(m.parameters(), 1e-2)
        with higher.innerloop_ctx(m, inner, copy_initial_weights=False) as (f, d):
            for _ in range(3):
                d.step((f(x) - a * x).pow(2).mean())
            loss = (f(x) - a * x).pow(2).mean()
            loss.backward()
            tot += loss.item()
    meta.step()
    print(tot)
