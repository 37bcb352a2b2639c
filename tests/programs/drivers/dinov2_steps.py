"""Steps of three small vision transformers of dinov2, with its heads and losses."""

from functools import partial

import torch
from dinov2.layers.attention import MemEffAttention
from dinov2.layers.block import NestedTensorBlock
from dinov2.layers.dino_head import DINOHead
from dinov2.loss import DINOLoss, KoLeoLoss
from dinov2.models.vision_transformer import DinoVisionTransformer

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
for options in (
    {"ffn_layer": "mlp"},
    {"ffn_layer": "swiglufused", "num_register_tokens": 4, "interpolate_antialias": True,
     "interpolate_offset": 0.0},
    {"ffn_layer": "mlp", "drop_path_rate": 0.3, "drop_path_uniform": True},
):  # fmt: skip
    net = DinoVisionTransformer(
        img_size=28, patch_size=7, embed_dim=48, depth=3, num_heads=3, init_values=1.0,
        block_fn=partial(NestedTensorBlock, attn_class=MemEffAttention), **options,
    )  # fmt: skip
    head, criterion = DINOHead(48, 65, hidden_dim=32, bottleneck_dim=16), DINOLoss(65)
    optimizer = torch.optim.AdamW([*net.parameters(), *head.parameters()], lr=1e-3)
    for height in (28, 42, 28):
        images, masks = torch.randn(4, 3, height, 28), torch.rand(4, height // 7 * 4) > 0.7
        found = net(images, is_training=True, masks=masks)
        student = head(found["x_norm_clstoken"])
        teacher = criterion.softmax_center_teacher(student.detach(), 0.07)
        loss = criterion([student], [teacher]) + KoLeoLoss()(found["x_norm_clstoken"])
        loss = loss + found["x_norm_patchtokens"].pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        grads = [p.grad.norm().item() for p in net.parameters() if p.grad is not None]
        print(loss.item(), *grads[:6])
    net.eval()
    images = torch.randn(1, 3, 28, 28)
    print(*[x.sum().item() for x in net.get_intermediate_layers(images, 2, reshape=True)])
