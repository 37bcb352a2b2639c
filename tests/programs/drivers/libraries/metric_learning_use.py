"""Fourteen losses and a miner of pytorch-metric-learning."""

import torch
from pytorch_metric_learning import losses, miners

torch.manual_seed(0)
e = torch.randn(12, 8, requires_grad=True)
y = torch.arange(12) % 3
for L in (
    losses.TripletMarginLoss(),
    losses.ContrastiveLoss(),
    losses.NTXentLoss(),
    losses.MultiSimilarityLoss(),
    losses.CircleLoss(),
    losses.SupConLoss(),
    losses.ArcFaceLoss(3, 8),
    losses.ProxyAnchorLoss(3, 8),
    losses.LiftedStructureLoss(),
    losses.NPairsLoss(),
    losses.CosFaceLoss(3, 8),
    losses.SoftTripleLoss(3, 8),
    losses.AngularLoss(),
    losses.FastAPLoss(),
):
    e.grad = None
    loss = L(e, y)
    loss.backward()
    print(type(L).__name__, loss.item(), e.grad.abs().sum().item())
print([t.numel() for t in miners.BatchHardMiner()(e, y)])
