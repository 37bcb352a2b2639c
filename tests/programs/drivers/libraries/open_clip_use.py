"""A small CLIP of open_clip learns which image belongs to which text."""

import open_clip
import torch
from open_clip import ClipLoss
from open_clip.model import CLIP, CLIPTextCfg, CLIPVisionCfg

torch.manual_seed(0)
model = CLIP(
    16,
    CLIPVisionCfg(layers=2, width=16, head_width=8, patch_size=8, image_size=16),
    CLIPTextCfg(context_length=8, vocab_size=64, width=16, heads=2, layers=2),
)
images, texts = torch.randn(4, 3, 16, 16), torch.randint(1, 63, (4, 8))
optimiser = torch.optim.AdamW(model.parameters(), 1e-2)
for _ in range(4):
    a, b, scale = model(images, texts)
    loss = ClipLoss()(a, b, scale)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    print(loss.item(), scale.item())
with torch.no_grad():
    a, b = model.encode_image(images, normalize=True), model.encode_text(texts, normalize=True)
    print((a @ b.T).softmax(-1).diag().tolist())
print(len(open_clip.list_models()) > 50)
model.lock_image_tower()
print(sum(p.numel() for p in model.parameters() if p.requires_grad))
