"""Layers, sums and repeats of einops."""

import torch
from einops import einsum, pack, reduce, repeat, unpack
from einops.layers.torch import EinMix, Rearrange, Reduce

torch.manual_seed(0)
net = torch.nn.Sequential(
    Rearrange("b c (h p) (w q) -> b (h w) (p q c)", p=2, q=2),
    torch.nn.Linear(12, 8),
    EinMix("b t c -> b t d", weight_shape="c d", bias_shape="d", c=8, d=6),
    Reduce("b t c -> b c", "mean"),
)
opt = torch.optim.Adam(net.parameters(), 1e-2)
x = torch.randn(4, 3, 8, 8)
y = torch.randn(4, 6)
for _ in range(6):
    opt.zero_grad()
    loss = ((net(x) - y) ** 2).mean()
    loss.backward()
    opt.step()
    print(loss.item())
packed, ps = pack([x.flatten(1), y], "b *")
a, b = unpack(packed, ps, "b *")
print(a.shape, (b == y).all().item(), einsum(x, x, "b c h w, b d h w -> b c d").sum().item())
print(repeat(y, "b c -> b (c k)", k=2).sum().item(), reduce(x, "b c h w -> c", "max").tolist())
