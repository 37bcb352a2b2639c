"""Tensor products, harmonics and gates of e3nn."""

import torch
from e3nn import nn as enn
from e3nn import o3

torch.manual_seed(0)
ir = o3.Irreps("4x0e+3x1o+2x2e")
x = ir.randn(5, -1)
R = o3.rand_matrix()
D = ir.D_from_matrix(R)
tp = o3.FullyConnectedTensorProduct(ir, "1x0e+1x1o", "4x0e+2x1o")
y = tp(x, o3.Irreps("1x0e+1x1o").randn(5, -1))
y.square().sum().backward()
print(y.sum().item(), tp.weight.grad.abs().sum().item())
linear = o3.Linear(ir, ir)
print((linear(x @ D.T) - linear(x) @ D.T).abs().max().item() < 1e-4, linear(x).sum().item())
print(
    o3.spherical_harmonics([0, 1, 2, 3], torch.tensor([[1.0, 2.0, 3.0]]), True).tolist(),
    o3.wigner_3j(1, 1, 2).abs().sum().item(),
    enn.Gate("2x0e", [torch.tanh], "2x0e", [torch.sigmoid], "2x1o")(torch.ones(1, 10)).sum().item(),
    enn.BatchNorm(ir)(x).sum().item(),
    o3.Norm(ir)(x).sum().item(),
)
