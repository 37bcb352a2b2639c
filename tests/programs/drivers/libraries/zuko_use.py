"""Three steps of each of seven flows of zuko."""

import torch
import zuko

for F in (
    zuko.flows.NSF,
    zuko.flows.MAF,
    zuko.flows.NICE,
    zuko.flows.NAF,
    zuko.flows.SOSPF,
    zuko.flows.BPF,
    zuko.flows.GF,
    zuko.flows.UNAF if 0 else zuko.flows.CNF,
):
    torch.manual_seed(0)
    f = (
        F(3, 2, transforms=2, hidden_features=(16, 16))
        if F is not zuko.flows.CNF
        else F(3, 2, hidden_features=(16,))
    )
    o = torch.optim.Adam(f.parameters(), 1e-2)
    x = torch.randn(16, 3) * 0.5
    c = torch.randn(16, 2)
    for _i in range(3):
        o.zero_grad()
        loss = -f(c).log_prob(x).mean()
        loss.backward()
        o.step()
        print(F.__name__, loss.item())
    torch.manual_seed(1)
    print(f(c[:2]).sample((2,)).sum().item() if F is not zuko.flows.BPF else 0)
