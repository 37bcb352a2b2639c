"""Mistakes as people make them, one in a line: both type checkers refuse each marked line."""

from __future__ import annotations

import flambeau as torch
import flambeau.nn.functional as F
from flambeau import Tensor, nn
from flambeau.utils.data import DataLoader

w = torch.rand(2, 3)
layer = nn.Linear(3, 2)

torch.nosuch()  # wrong
nn.Lineer(2, 3)  # wrong
torch.autograd.gradd(w)  # wrong
torch.cuda.is_avalable()  # wrong
torch.distributions.Nromal(0, 1)  # wrong
torch.jit.scrpt(layer)  # wrong
torch.testing.assert_closer(w, w)  # wrong
torch.utils.sumary(layer)  # wrong
torch.rand("a")  # wrong
torch.rand(2).nosuch()  # wrong
torch.zeros(2, dtype="float32")  # wrong
torch.ones(2, device=1.5)  # wrong
torch.arange("a")  # wrong
torch.linspace(0, 1, "3")  # wrong
torch.full(2, "a")  # wrong
torch.stack(3)  # wrong
torch.cat([w, w], "0")  # wrong
torch.manual_seed("x")  # wrong
print(torch.sort(w).largest)  # wrong
torch.where(w, 1, 2, 3)  # wrong
print(torch.max(w, 1).positions)  # wrong
w.sum(dim="rows")  # wrong
w.reshape("2")  # wrong
w.view(2.5)  # wrong
print(w["a"])  # wrong
w.softmax()  # wrong
w.backward(gradient="x")  # wrong
w.max(1).total()  # wrong
w.transpose(0)  # wrong
print(w.shape.nosuch)  # wrong
print(w + "text")  # wrong
print(w @ 3)  # wrong
nn.Linear("in", 3)  # wrong
nn.Conv2d(1, 2)  # wrong
nn.Sequential(3)  # wrong
nn.CrossEntropyLoss(reduction=3)  # wrong
layer("text")  # wrong
layer(w).nosuch()  # wrong
layer(w, w)  # wrong
F.relu("x")  # wrong
F.cross_entropy(w)  # wrong
torch.optim.Adam(layer.parameters(), lr="fast")  # wrong
DataLoader([1, 2], batch_size="x")  # wrong
values, indices, rest = torch.topk(w, 2)  # wrong
total: int = w.sum()  # wrong
name: str = w.shape[0]  # wrong
both: Tensor = torch.max(w, 0)  # wrong
