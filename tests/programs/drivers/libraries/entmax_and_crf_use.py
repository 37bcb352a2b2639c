"""Sparse softmax functions of entmax, a conditional random field of pytorch-crf."""

import entmax
import torch
from torchcrf import CRF

torch.manual_seed(0)
x = torch.randn(3, 5, requires_grad=True)
for f in (entmax.sparsemax, entmax.entmax15, lambda v: entmax.entmax_bisect(v, 1.3)):
    y = f(x)
    y.pow(2).sum().backward()
    print(y.sum(1).tolist(), x.grad.abs().sum().item())
c = CRF(4)
e = torch.randn(6, 2, 4, requires_grad=True)
t = torch.randint(0, 4, (6, 2))
loss = -c(e, t)
loss.backward()
print(loss.item(), e.grad.abs().sum().item(), c.decode(e))
