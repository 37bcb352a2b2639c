"""Three solvers of stochastic differential equations of torchsde."""

import torch
import torchsde

torch.manual_seed(0)


class S(torch.nn.Module):
    noise_type = "diagonal"
    sde_type = "ito"

    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(2, 2)
        self.b = torch.nn.Linear(2, 2)

    def f(self, t, y):
        return self.a(y)

    def g(self, t, y):
        return torch.sigmoid(self.b(y))


m = S()
y0 = torch.ones(4, 2)
ts = torch.linspace(0, 1, 5)
o = torch.optim.Adam(m.parameters(), 1e-2)
for k in ("euler", "milstein", "srk"):
    bm = torchsde.BrownianInterval(
        0.0, 1.0, size=(4, 2), entropy=1, levy_area_approximation="space-time"
    )
    o.zero_grad()
    loss = torchsde.sdeint(m, y0, ts, bm=bm, method=k, dt=0.1).pow(2).mean()
    loss.backward()
    o.step()
    print(loss.item())
