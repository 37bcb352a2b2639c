"""What captum says of a network: gradients, Shapley values, layers."""

import torch
from captum.attr import (
    DeepLift,
    FeatureAblation,
    GuidedBackprop,
    IntegratedGradients,
    LayerConductance,
    NoiseTunnel,
    Occlusion,
    Saliency,
    ShapleyValueSampling,
)
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3), nn.Softmax(1)).eval()
x = torch.randn(5, 4)
base = torch.zeros(5, 4)
target = torch.tensor([0, 1, 2, 0, 1])
for method in (IntegratedGradients, DeepLift):
    found, delta = method(model).attribute(x, base, target=target, return_convergence_delta=True)
    print(
        method.__name__, found.sum().item(), found.std().item(), f"{delta.abs().max().item():.4f}"
    )
for method in (Saliency, GuidedBackprop, FeatureAblation, ShapleyValueSampling):
    found = method(model).attribute(x, target=target)
    print(method.__name__, found.sum().item(), found.std().item())
print("Occlusion", Occlusion(model).attribute(x, (2,), target=target).std().item())
print("layer", LayerConductance(model, model[0]).attribute(x, target=target).sum(0).tolist())
smooth = NoiseTunnel(Saliency(model)).attribute(x, nt_samples=4, stdevs=0.1, target=target)
print("noise", smooth.mean().item())
