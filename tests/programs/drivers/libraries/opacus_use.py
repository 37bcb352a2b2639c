"""Private steps and gradients by sample with opacus."""

import torch
from opacus import PrivacyEngine
from opacus.grad_sample import GradSampleModule
from opacus.layers import DPLSTM
from opacus.validators import ModuleValidator

torch.manual_seed(0)
net = torch.nn.Sequential(
    torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 3)
)
ds = torch.utils.data.TensorDataset(torch.randn(32, 1, 8, 8), torch.randint(0, 3, (32,)))
o = torch.optim.SGD(net.parameters(), 0.1)
pe = PrivacyEngine(accountant="rdp")
net, o, dl = pe.make_private(
    module=net,
    optimizer=o,
    data_loader=torch.utils.data.DataLoader(ds, 8),
    noise_multiplier=1.0,
    max_grad_norm=1.0,
)
for _e in range(2):
    for x, y in dl:
        o.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        o.step()
        print(loss.item())
print(pe.get_epsilon(1e-5))

for m, x in (
    (torch.nn.GroupNorm(2, 4), torch.randn(2, 4, 3)),
    (torch.nn.LayerNorm(4), torch.randn(2, 4)),
    (torch.nn.Conv1d(2, 3, 2), torch.randn(2, 2, 5)),
    (torch.nn.Embedding(5, 3), torch.randint(0, 5, (2, 3))),
):
    g = GradSampleModule(m)
    g(x).pow(2).sum().backward()
    print([p.grad_sample.abs().sum().item() for p in g.parameters()])

torch.manual_seed(1)
recurrent = GradSampleModule(DPLSTM(3, 4, batch_first=True))
out, _ = recurrent(torch.randn(2, 5, 3))
out.sum().backward()
print([p.grad_sample.shape for p in recurrent.parameters()][:2], out.sum().item())
print(
    len(ModuleValidator.validate(torch.nn.BatchNorm2d(3), strict=False)),
    ModuleValidator.fix(torch.nn.Sequential(torch.nn.BatchNorm2d(4))),
)
