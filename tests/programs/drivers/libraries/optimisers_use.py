"""Seventeen optimisers of seven libraries, and warm-up."""

import pytorch_warmup as pw
import torch
import torch_optimizer as to
from dadaptation import DAdaptAdam
from lion_pytorch import Lion
from madgrad import MADGRAD
from prodigyopt import Prodigy
from schedulefree import AdamWScheduleFree

torch.manual_seed(0)
x = torch.randn(32, 4)
y = torch.randn(32, 1)
for Optimizer in (
    Lion,
    MADGRAD,
    Prodigy,
    DAdaptAdam,
    AdamWScheduleFree,
    to.RAdam,
    to.Yogi,
    to.DiffGrad,
    to.AdaBound,
    to.Lamb,
    to.QHAdam,
    to.NovoGrad,
    to.AdaMod,
    to.SWATS,
    to.Ranger,
    to.AggMo,
    to.Shampoo,
):
    torch.manual_seed(1)
    m = torch.nn.Linear(4, 1)
    o = Optimizer(m.parameters(), lr=1e-2)
    if hasattr(o, "train"):
        o.train()
    for _i in range(4):
        o.zero_grad()
        loss = (m(x) - y).pow(2).mean()
        loss.backward()
        o.step()
    print(Optimizer.__name__, loss.item())
o = torch.optim.Adam(m.parameters(), 0.1)
w = pw.LinearWarmup(o, 10)
s = torch.optim.lr_scheduler.CosineAnnealingLR(o, 20)
for _i in range(3):
    o.step()
    with w.dampening():
        s.step()
    print(o.param_groups[0]["lr"])
