"""First and second order extensions of backpack."""

import torch
from backpack import backpack, extend
from backpack.extensions import BatchGrad, DiagGGNExact, DiagHessian, SumGradSquared, Variance

torch.manual_seed(0)
m = extend(torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Sigmoid(), torch.nn.Linear(6, 3)))
L = extend(torch.nn.CrossEntropyLoss())
x = torch.randn(5, 4)
y = torch.randint(0, 3, (5,))
loss = L(m(x), y)
with backpack(BatchGrad(), Variance(), DiagGGNExact(), SumGradSquared(), DiagHessian()):
    loss.backward()
for p in m.parameters():
    print(
        p.grad_batch.abs().sum().item(),
        p.variance.sum().item(),
        p.diag_ggn_exact.sum().item(),
        p.sum_grad_squared.sum().item(),
        p.diag_h.sum().item(),
    )
