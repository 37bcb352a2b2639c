"""Steps and samples of small diffusion models of images and of sequences."""

import torch
from denoising_diffusion_pytorch import GaussianDiffusion, GaussianDiffusion1D, Unet, Unet1D

torch.manual_seed(0)
for objective in ("pred_v", "pred_noise", "pred_x0"):
    net = Unet(
        dim=16, dim_mults=(1, 2), flash_attn=objective == "pred_v", attn_heads=2, attn_dim_head=8
    )
    diffusion = GaussianDiffusion(
        net, image_size=16, timesteps=20, objective=objective,
        sampling_timesteps=None if objective == "pred_x0" else 4,
    )  # fmt: skip
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for _ in range(3):
        loss = diffusion(torch.rand(2, 3, 16, 16))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
    images = diffusion.sample(batch_size=2)
    print(images.shape, images.mean().item(), images.std().item())
net = Unet1D(dim=16, dim_mults=(1, 2), channels=4)
diffusion = GaussianDiffusion1D(net, seq_length=32, timesteps=10, objective="pred_v")
loss = diffusion(torch.rand(3, 4, 32))
loss.backward()
print(loss.item(), *[p.grad.norm().item() for p in list(net.parameters())[:6]])
sequences = diffusion.sample(batch_size=2)
print(sequences.mean().item(), sequences.std().item())
