"""Two meta-steps of dragen1860's MAML, whose program reads photographs."""

from types import SimpleNamespace

import numpy as np
import torch
from meta import Meta

torch.manual_seed(0)
config = [
    ("conv2d", [8, 1, 3, 3, 2, 0]),
    ("relu", [True]),
    ("bn", [8]),
    ("conv2d", [8, 8, 3, 3, 2, 0]),
    ("relu", [True]),
    ("bn", [8]),
    ("flatten", []),
    ("linear", [5, 8 * 6 * 6]),
]
arguments = SimpleNamespace(
    update_lr=0.4, meta_lr=1e-3, n_way=5, k_spt=1, k_qry=3, task_num=2, update_step=3,
    update_step_test=3, imgsz=28, imgc=1,
)  # fmt: skip
maml = Meta(arguments, config)
print(maml.net)
for _ in range(2):
    x, y = torch.randn(2, 5, 1, 28, 28), torch.arange(5).repeat(2, 1)
    print(np.round(maml(x, y, torch.randn(2, 15, 1, 28, 28), torch.arange(5).repeat(2, 3)), 3))
print(maml.finetunning(x[0], y[0], torch.randn(15, 1, 28, 28), torch.arange(5).repeat(3)))
