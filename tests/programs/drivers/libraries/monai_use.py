"""Segmentation networks, losses, metrics and transforms of monai."""

import monai
import torch
from monai.inferers import sliding_window_inference
from monai.losses import DiceCELoss, DiceLoss, FocalLoss, GeneralizedDiceLoss, TverskyLoss
from monai.metrics import DiceMetric, HausdorffDistanceMetric
from monai.networks.nets import (
    AttentionUnet,
    BasicUNet,
    SegResNet,
    UNet,
)
from monai.transforms import (
    Compose,
    NormalizeIntensity,
    RandFlip,
    RandGaussianNoise,
    RandRotate90,
    RandZoom,
    Resize,
    ScaleIntensity,
    SpatialPad,
)

monai.utils.set_determinism(0)
x = torch.rand(2, 1, 32, 32)
y = (torch.rand(2, 1, 32, 32) > 0.5).float()
for m in (
    UNet(2, 1, 1, (4, 8, 16), (2, 2)),
    BasicUNet(2, 1, 1, (4, 4, 8, 8, 16, 4)),
    AttentionUnet(2, 1, 1, (4, 8), (2,)),
    SegResNet(2, 8, 1, 1),
):
    torch.manual_seed(0)
    o = torch.optim.Adam(m.parameters(), 1e-2)
    for _i in range(3):
        o.zero_grad()
        loss = DiceCELoss(sigmoid=True)(m(x), y)
        loss.backward()
        o.step()
        print(type(m).__name__, loss.item())
p = torch.rand(2, 1, 32, 32)
for L in (DiceLoss(), FocalLoss(), TverskyLoss(), GeneralizedDiceLoss()):
    print(L(p, y).item())
print(DiceMetric()(p.round(), y).tolist(), HausdorffDistanceMetric()(p.round(), y).tolist())
t = Compose(
    [
        ScaleIntensity(),
        RandFlip(1.0),
        RandGaussianNoise(1.0),
        Resize((16, 16)),
        RandRotate90(1.0),
        NormalizeIntensity(),
        SpatialPad((20, 20)),
        RandZoom(1.0),
    ]
)
t.set_random_state(0)
z = t(x[0])
print(z.shape, float(z.mean()), type(z).__name__)

print(
    sliding_window_inference(
        torch.rand(1, 1, 40, 40), (16, 16), 2, lambda v: v * 2, overlap=0.5, mode="gaussian"
    )
    .mean()
    .item()
)
