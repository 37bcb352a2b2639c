"""A small UNet of diffusers learns noise; three schedulers sample from it."""

import torch
from diffusers import (
    AutoencoderKL,
    DDIMScheduler,
    DDPMPipeline,
    DDPMScheduler,
    DPMSolverMultistepScheduler,
    EulerDiscreteScheduler,
    UNet2DConditionModel,
    UNet2DModel,
)
from diffusers.optimization import get_cosine_schedule_with_warmup
from diffusers.training_utils import EMAModel

torch.manual_seed(0)
net = UNet2DModel(
    sample_size=8,
    in_channels=1,
    out_channels=1,
    layers_per_block=1,
    block_out_channels=(8, 16),
    norm_num_groups=4,
    down_block_types=("DownBlock2D", "AttnDownBlock2D"),
    up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    attention_head_dim=4,
)
noise_of = DDPMScheduler(num_train_timesteps=50)
optimiser = torch.optim.AdamW(net.parameters(), 2e-3)
rate = get_cosine_schedule_with_warmup(optimiser, 1, 6)
average = EMAModel(net.parameters(), decay=0.9)
clean = torch.rand(4, 1, 8, 8)
for _ in range(4):
    noise, t = torch.randn_like(clean), torch.randint(0, 50, (4,))
    loss = torch.nn.functional.mse_loss(net(noise_of.add_noise(clean, noise, t), t).sample, noise)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimiser.step()
    rate.step()
    optimiser.zero_grad()
    average.step(net.parameters())
    print(loss.item(), rate.get_last_lr()[0])
for kind in (DDPMScheduler, DDIMScheduler, EulerDiscreteScheduler, DPMSolverMultistepScheduler):
    scheduler = kind(num_train_timesteps=50)
    scheduler.set_timesteps(4)
    x = torch.ones(1, 1, 8, 8) * scheduler.init_noise_sigma
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for t in scheduler.timesteps:
            out = net(scheduler.scale_model_input(x, t), t).sample
            extra = {"generator": generator} if kind is not DDIMScheduler else {}
            x = scheduler.step(out, t, x, **extra).prev_sample
    print(kind.__name__, x.mean().item(), x.std().item())
pipe = DDPMPipeline(net, noise_of)
pipe.set_progress_bar_config(disable=True)
image = pipe(
    generator=torch.Generator().manual_seed(2), num_inference_steps=2, output_type="np"
).images
print(image.shape, float(image.mean()))
vae = AutoencoderKL(block_out_channels=(8,), latent_channels=2, norm_num_groups=4, sample_size=8)
latent = vae.encode(torch.ones(1, 3, 8, 8)).latent_dist
print(
    latent.mode().mean().item(), vae.decode(latent.mode()).sample.mean().item(), latent.kl().item()
)
conditional = UNet2DConditionModel(
    sample_size=8,
    in_channels=2,
    out_channels=2,
    block_out_channels=(8, 16),
    layers_per_block=1,
    norm_num_groups=4,
    down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
    up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
    cross_attention_dim=8,
    attention_head_dim=4,
)
print(conditional(torch.ones(1, 2, 8, 8), 3, torch.ones(1, 4, 8)).sample.mean().item())
