"""Weights of torchao in eight bits, and its optimiser whose state has eight."""

import copy

import torch
from torch import nn
from torchao.optim import AdamW8bit
from torchao.quantization import (
    Int8DynamicActivationInt8WeightConfig,
    Int8WeightOnlyConfig,
    quantize_,
)

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 8)).eval()
x = torch.randn(4, 32)
print(model(x).sum().item())
for config in (Int8WeightOnlyConfig(), Int8DynamicActivationInt8WeightConfig()):
    small = copy.deepcopy(model)
    quantize_(small, config)
    print(type(config).__name__, type(small[0].weight).__name__, small(x).sum().item())

optimiser = AdamW8bit(model.parameters(), 1e-2)
for _ in range(3):
    loss = model(x).square().mean()
    loss.backward()
    optimiser.step()
    optimiser.zero_grad()
    print(loss.item())
