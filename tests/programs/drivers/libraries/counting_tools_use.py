"""Summaries, counts and graphs of torchinfo, thop, torchsummary and torchviz."""

import thop
import torch
import torchinfo
from torchsummary import summary
from torchviz import make_dot

torch.manual_seed(0)
m = torch.nn.Sequential(
    torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8 * 36, 4)
)
x = torch.randn(1, 3, 8, 8)
s = torchinfo.summary(m, input_data=x, verbose=0)
print(s.total_params, s.total_mult_adds)
print(*thop.profile(m, (x,), verbose=False))
summary(m, (3, 8, 8), device="cpu")
print(len(str(make_dot(m(x).sum(), dict(m.named_parameters())))) > 50)
