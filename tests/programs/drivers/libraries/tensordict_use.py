"""Batches of tensors by name, modules and classes of tensordict."""

import torch
from tensordict import (
    TensorDict,
    tensorclass,
)
from tensordict.nn import TensorDictModule, TensorDictSequential

torch.manual_seed(0)
d = TensorDict({"a": torch.randn(4, 3), "n": {"b": torch.ones(4, 2)}}, batch_size=[4])
print(
    d.shape,
    d["n", "b"].sum().item(),
    d[1:3].batch_size,
    d.apply(lambda x: x * 2)["a"].sum().item(),
    torch.stack([d, d]).shape,
    torch.cat([d, d]).shape,
    d.flatten_keys().keys().__len__(),
    d.to(torch.float64)["a"].dtype,
    (d + d)["a"].sum().item(),
    d.expand(2, 4).shape,
    d.reshape(2, 2).shape,
    d.unsqueeze(0).shape,
    next(iter(d.unbind(0))).shape,
    d.split(2)[0].shape,
)
s = TensorDictSequential(
    TensorDictModule(torch.nn.Linear(3, 5), ["a"], ["h"]),
    TensorDictModule(torch.nn.Linear(5, 2), ["h"], ["o"]),
)
o = torch.optim.SGD(s.parameters(), 0.1)
for _i in range(3):
    o.zero_grad()
    loss = (s(d)["o"] - 1).pow(2).mean()
    loss.backward()
    o.step()
    print(loss.item())


@tensorclass
class C:
    x: torch.Tensor
    y: torch.Tensor


c = C(x=torch.ones(3, 2), y=torch.zeros(3), batch_size=[3])
print(c[0].x.tolist(), c.shape, torch.stack([c, c]).y.shape)
p = TensorDict.from_module(torch.nn.Linear(2, 2))
print(sorted(p.keys()))
with p.to_module(torch.nn.Linear(2, 2)):
    pass
print(torch.vmap(lambda t: t["a"].sum())(d).sum().item())
d.memmap_() if 0 else None
d2 = d.clone()
d2["a"].zero_()
print((d == d2)["a"].sum().item(), d.is_contiguous(), d.lock_().is_locked)
