"""Networks of segmentation-models-pytorch and their losses, in float64."""

import segmentation_models_pytorch as smp
import torch

torch.set_default_dtype(torch.float64)
for kind in (smp.Unet, smp.FPN, smp.Linknet, smp.DeepLabV3Plus):
    torch.manual_seed(0)
    model = kind("resnet18", encoder_weights=None, classes=2)
    x, y = torch.randn(2, 3, 64, 64), torch.randint(0, 2, (2, 64, 64))
    model.train()
    loss = smp.losses.DiceLoss("multiclass")(model(x), y) + smp.losses.FocalLoss("multiclass")(
        model(x), y
    )
    loss.backward()
    print(
        kind.__name__,
        loss.item(),
        sum(p.grad.abs().sum().item() for p in model.parameters() if p.grad is not None),
    )
    model.eval()
    print(model.predict(x).mean().item())
stats = smp.metrics.get_stats(y, 1 - y, mode="multiclass", num_classes=2)
print(smp.metrics.iou_score(*stats, reduction="micro").item(), [s.sum().item() for s in stats])
for loss in (
    smp.losses.JaccardLoss("binary"),
    smp.losses.TverskyLoss("binary"),
    smp.losses.SoftBCEWithLogitsLoss(smooth_factor=0.1),
    smp.losses.MCCLoss(),
):
    print(loss(x[:, :1], (x[:, 1:2] > 0).double()).item())
