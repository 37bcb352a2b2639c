"""Two steps of every model of kuangliu/pytorch-cifar that a CPU computes in seconds."""

import models
import torch
from torch import nn, optim

# In float32 batch norm over two images amplifies last digits: PyTorch's own second loss of
# MobileNet is 1 % from its float64 one.
torch.set_default_dtype(torch.float64)

for name, make in (
    ("LeNet", models.LeNet),
    ("MobileNet", models.MobileNet),
    ("MobileNetV2", models.MobileNetV2),
    ("ShuffleNetV2", lambda: models.ShuffleNetV2(0.5)),
    ("EfficientNetB0", models.EfficientNetB0),
    ("RegNetX_200MF", models.RegNetX_200MF),
    ("ResNet18", models.ResNet18),
    ("PreActResNet18", models.PreActResNet18),
    ("SENet18", models.SENet18),
    ("DLA", models.DLA),
    ("ResNeXt29_2x64d", models.ResNeXt29_2x64d),
):
    torch.manual_seed(0)
    net = make()
    inputs, targets = torch.randn(2, 3, 32, 32), torch.tensor([1, 7])
    optimizer = optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
    print(name, sum(p.numel() for p in net.parameters()))
    for _ in range(2):
        optimizer.zero_grad()
        loss = nn.CrossEntropyLoss()(net(inputs), targets)
        loss.backward()
        optimizer.step()
        print(f"{loss.item():.4f}")
