"""Two models of timm, their optimisers, schedulers and averages of weights."""

import timm
import timm.optim
import timm.scheduler
import torch
from timm.loss import LabelSmoothingCrossEntropy, SoftTargetCrossEntropy
from timm.utils import ModelEmaV2, accuracy

for name, opt in (("resnet10t", "lamb"), ("vit_tiny_patch16_224", "adamw")):
    torch.manual_seed(0)
    options = {"img_size": 32, "depth": 2} if "vit" in name else {}
    model = timm.create_model(name, num_classes=4, **options)
    optimiser = timm.optim.create_optimizer_v2(model, opt=opt, lr=1e-3, weight_decay=0.05)
    scheduler, _ = timm.scheduler.create_scheduler_v2(
        optimiser, sched="cosine", num_epochs=5, warmup_epochs=1
    )
    average = ModelEmaV2(model, decay=0.5)
    x, y = torch.randn(4, 3, 32, 32), torch.tensor([0, 1, 2, 3])
    for epoch in range(3):
        out = model(x)
        loss = LabelSmoothingCrossEntropy(0.1)(out, y)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        average.update(model)
        scheduler.step(epoch + 1)
        print(name, loss.item(), optimiser.param_groups[0]["lr"])
    model.eval()
    with torch.no_grad():
        print([round(v.item(), 3) for v in accuracy(average.module.eval()(x), y, topk=(1, 2))])
        print(model.forward_features(x).shape, model.forward_features(x).abs().mean().item())
features = timm.create_model("resnet10t", features_only=True)
print(
    [tuple(f.shape) for f in features(torch.zeros(1, 3, 64, 64))], features.feature_info.channels()
)
print(SoftTargetCrossEntropy()(torch.ones(2, 3), torch.eye(3)[:2]).item())
