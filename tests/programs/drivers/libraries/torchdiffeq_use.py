"""Eleven solvers of torchdiffeq, four adjoint steps and an event."""

import torch
from torchdiffeq import odeint, odeint_adjoint, odeint_event

torch.manual_seed(0)


class F(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2)
        )

    def forward(self, t, y):
        return self.net(y**3)


f = F().double()
t = torch.linspace(0, 1, 8).double()
y0 = torch.randn(5, 2).double()
for m in (
    "dopri5",
    "rk4",
    "euler",
    "midpoint",
    "adaptive_heun",
    "bosh3",
    "fehlberg2",
    "dopri8",
    "explicit_adams",
    "implicit_adams",
    "heun3",
):
    y = odeint(f, y0, t, method=m)
    print(
        m.replace("8", "e").replace("5", "f").replace("3", "t").replace("4", "q").replace("2", "z"),
        y.sum().item(),
    )
opt = torch.optim.RMSprop(f.parameters(), 1e-2)
for _i in range(4):
    opt.zero_grad()
    loss = odeint_adjoint(f, y0, t).abs().mean()
    loss.backward()
    opt.step()
    print(loss.item())
et, ys = odeint_event(
    lambda t, y: torch.stack([y[1], -torch.ones_like(y[0]) * 9.8]),
    torch.tensor([1.0, 0.0]).double(),
    torch.tensor(0.0).double(),
    event_fn=lambda t, y: y[0],
)
print(et.item())
