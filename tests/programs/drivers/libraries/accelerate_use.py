"""A loop of accelerate: gradients gathered over steps, clipped, a state written and read."""

import tempfile

import torch
from accelerate import Accelerator, infer_auto_device_map, init_empty_weights
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

set_seed(1)
x = torch.randn(40, 6)
y = x.sum(1, keepdim=True)
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))
optimiser = torch.optim.Adam(model.parameters(), 0.02)
schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda n: 0.9**n)
model, optimiser, loader, schedule = accelerator.prepare(
    model, optimiser, DataLoader(TensorDataset(x, y), 8, shuffle=True), schedule
)
for _ in range(3):
    for a, b in loader:
        with accelerator.accumulate(model):
            loss = nn.functional.mse_loss(model(a), b)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                print("norm", float(accelerator.clip_grad_norm_(model.parameters(), 1.0)))
            optimiser.step()
            schedule.step()
            optimiser.zero_grad()
    print(accelerator.gather_for_metrics(loss).mean().item(), schedule.get_last_lr())
with tempfile.TemporaryDirectory() as folder:
    accelerator.save_state(folder)
    with torch.no_grad():
        for p in model.parameters():
            p.zero_()
    accelerator.load_state(folder)
    print(sum(p.sum().item() for p in model.parameters()))
    accelerator.save_model(model, folder)
with init_empty_weights():
    big = nn.Sequential(nn.Linear(1000, 1000), nn.Linear(1000, 10))
print({p.device.type for p in big.parameters()}, infer_auto_device_map(big, {"cpu": "1GB"}))
with accelerator.autocast():
    print(accelerator.unwrap_model(model)(x[:2]).sum().item())
