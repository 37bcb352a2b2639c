"""Two steps of several models of vit-pytorch."""

import torch
from vit_pytorch import SimpleViT, ViT
from vit_pytorch.cait import CaiT
from vit_pytorch.cct import CCT
from vit_pytorch.deepvit import DeepViT
from vit_pytorch.levit import LeViT
from vit_pytorch.t2t import T2TViT

size = {"image_size": 32, "num_classes": 7}
for make in (
    lambda: ViT(patch_size=8, dim=32, depth=2, heads=2, mlp_dim=32, dropout=0.1, **size),
    lambda: SimpleViT(patch_size=8, dim=32, depth=2, heads=2, mlp_dim=32, **size),
    lambda: DeepViT(patch_size=8, dim=32, depth=2, heads=2, mlp_dim=32, **size),
    lambda: CaiT(patch_size=8, dim=32, depth=2, cls_depth=1, heads=2, mlp_dim=32, **size),
    lambda: T2TViT(dim=32, depth=2, heads=2, mlp_dim=32, t2t_layers=((7, 4), (3, 2)), **size),
    lambda: CCT(img_size=32, embedding_dim=32, n_conv_layers=1, num_layers=2, num_heads=2,
                mlp_ratio=1.0, num_classes=7, positional_embedding="learnable"),
    lambda: LeViT(stages=2, dim=(16, 32), depth=1, heads=(2, 2), mlp_mult=2, **size),
):  # fmt: skip
    torch.manual_seed(0)
    net = make()
    images, labels = torch.randn(4, 3, 32, 32), torch.tensor([0, 1, 2, 3])
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    for _ in range(2):
        loss = torch.nn.functional.cross_entropy(net(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(type(net).__name__, f"{loss.item():.4f}")
