"""Five steps of every optimiser of pytorch-optimizer that needs nothing but parameters."""

import pytorch_optimizer
import torch
from torch import nn

data = torch.linspace(-1, 1, 180).sin().mul(7).cos().reshape(5, 1, 6, 6)
labels = torch.tensor([0, 1, 2, 1, 0])
for name in sorted(map(str, pytorch_optimizer.get_supported_optimizers())):
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.Tanh(), nn.Flatten(), nn.Linear(64, 8), nn.Tanh(), nn.Linear(8, 3)
    )
    try:
        optimizer = pytorch_optimizer.load_optimizer(name)(net.parameters())
        for _ in range(5):
            loss = nn.functional.cross_entropy(net(data), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    except Exception as error:  # those that want closures, names of parameters, other shapes
        print(name, type(error).__name__)
        continue
    print(name, f"{loss.item():.4f}")
inner = torch.optim.AdamW(net.parameters(), lr=1e-2)
for around in (pytorch_optimizer.Lookahead, pytorch_optimizer.OrthoGrad, pytorch_optimizer.TRAC):
    optimizer = around(inner)
    loss = nn.functional.cross_entropy(net(data), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(around.__name__, f"{nn.functional.cross_entropy(net(data), labels).item():.4f}")
