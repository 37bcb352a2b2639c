"""Two steps of the small models of weiaicunzai/pytorch-cifar100."""

import importlib

import torch

# In float32 batch norm over four images amplifies last digits.
torch.set_default_dtype(torch.float64)

for path, name in (
    ("googlenet", "googlenet"),
    ("mobilenetv2", "mobilenetv2"),
    ("nasnet", "nasnet"),
    ("preactresnet", "preactresnet18"),
    ("rir", "resnet_in_resnet"),
    ("senet", "seresnet18"),
    ("shufflenetv2", "shufflenetv2"),
    ("squeezenet", "squeezenet"),
    ("stochasticdepth", "stochastic_depth_resnet18"),
    ("vgg", "vgg11_bn"),
):
    torch.manual_seed(0)
    net = getattr(importlib.import_module(f"models.{path}"), name)()
    images, labels = torch.randn(4, 3, 32, 32), torch.tensor([0, 1, 2, 3])
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
    for _ in range(2):
        loss = torch.nn.functional.cross_entropy(net(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(name, f"{loss.item():.4f}")
